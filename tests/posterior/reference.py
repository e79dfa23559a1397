"""A small reference implementation of the language: forward simulation, likelihood weighting and single-site MH.

It exists to check the checkers: the exact answers of the cases are compared with likelihood weighting, and the
comparisons are shown to fail on a Metropolis-Hastings that is wrong in one place. Every transition re-executes the
whole program (Wingate, Stuhlmueller and Goodman 2011), which is slow and easy to believe. Recursion is the host's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.posterior.reader import parse
from tests.posterior.reference_procedures import DETERMINISTIC, MAKERS, RANDOM, Made, Maker, Random, UncollapsedMaker

FREE = object()
Tags = Mapping[Any, Any]
Address = tuple[Any, ...]


class Quoted(str):
    """A symbol as a value."""


@dataclass(eq=False, slots=True)
class Environment:
    names: dict[str, Any]
    outer: Environment | None = None

    def lookup(self, name: str) -> Any:
        scope: Environment | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        raise NameError(name)


@dataclass(eq=False, slots=True)
class Closure:
    parameters: list[str]
    body: Any
    environment: Environment


@dataclass(eq=False, slots=True)
class Memoised:
    procedure: Any
    address: Address
    values: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    value: Any
    log_density: float
    tags: Tags


GLOBALS = Environment({**DETERMINISTIC, **RANDOM, **MAKERS})
# the atom of a table is drawn where the table is first met
PROCESS = parse("(let ((seat (make_crp alpha discount)) (dish (mem (lambda (t) (base))))) (lambda () (dish (seat))))")[
    0
]
GLOBALS.names["make_pitman_yor"] = Closure(["alpha", "discount", "base"], PROCESS, GLOBALS)
GLOBALS.names["make_dp"] = Closure(["alpha", "base"], ["make_pitman_yor", "alpha", 0, "base"], GLOBALS)


@dataclass(eq=False, slots=True)
class Execution:
    """One run of a program. Choices at addresses in `kept` take those values, all others are simulated."""

    rng: np.random.Generator
    parameters: Mapping[str, Any]
    kept: Mapping[Address, Any] = field(default_factory=dict)
    choices: dict[Address, Choice] = field(default_factory=dict)
    log_evidence: float = 0.0
    # Log density of the choices that were simulated, not kept.
    log_fresh: float = 0.0
    globals: Environment = field(default_factory=lambda: Environment({}, GLOBALS))

    def run(self, directives: list[Any]) -> None:
        for index, directive in enumerate(directives):
            place: Address = (index,)
            match directive:
                case ["assume", [name, *parameters], body]:
                    self.globals.names[name] = Closure(parameters, body, self.globals)
                case ["assume", name, expression]:
                    self.globals.names[name] = self.evaluate(expression, self.globals, place, {})
                case ["observe", expression, value]:
                    value = self.evaluate(value, self.globals, place, {})
                    self.evaluate(expression, self.globals, place, {}, value)
                case ["predict", expression]:
                    self.evaluate(expression, self.globals, place, {})
                case _:
                    raise ValueError(directive)

    def query(self, expressions: Mapping[str, Any]) -> dict[str, Any]:
        """Values of expressions in this execution, whose own new choices are not recorded."""
        recorded, self.choices = self.choices, dict(self.choices)
        found = {name: self.evaluate(e, self.globals, ("query", name), {}) for name, e in expressions.items()}
        self.choices = recorded
        return found

    def evaluate(self, form: Any, env: Environment, place: Address, tags: Tags, evidence: Any = FREE) -> Any:
        match form:
            case str() if form[0] == "{":
                return self.parameter(form[1:-1])
            case str():
                return self.met(env.lookup(form), evidence)
            case [("if" | "cond" | "and" | "or"), *_]:
                return self.branch(form, env, place, tags, evidence)
            case [("let" | "letrec" | "begin"), *_]:
                return self.bind(form, env, place, tags, evidence)
            case ["lambda", parameters, body]:
                return Closure(parameters, body, env)
            case ["quote", datum]:
                return tuple(map(Quoted, datum)) if isinstance(datum, list) else Quoted(datum)
            case ["mem", expression]:
                return Memoised(self.evaluate(expression, env, (*place, 0), tags), place)
            case ["scope_include" | "tag", scope, block, body]:
                key = self.evaluate(block, env, (*place, 1), tags)
                name = self.evaluate(scope, env, (*place, 2), tags)
                return self.evaluate(body, env, (*place, 0), {**tags, name: key}, evidence)
            case list():
                values = [self.evaluate(part, env, (*place, i), tags) for i, part in enumerate(form)]
                return self.apply(values[0], values[1:], (*place, "call"), tags, evidence)
            case _:
                return self.met(form, evidence)

    def parameter(self, text: str) -> Any:
        name, _, index = text.rstrip("]").partition("[")
        return self.parameters[name][int(index) - 1] if index else self.parameters[name]

    def branch(self, form: list[Any], env: Environment, place: Address, tags: Tags, evidence: Any) -> Any:
        match form:
            case ["if", predicate, yes, no]:
                taken = self.evaluate(predicate, env, (*place, 0), tags)
                part, position = (yes, 1) if taken else (no, 2)
                return self.evaluate(part, env, (*place, position), tags, evidence)
            case ["cond", *clauses]:
                for i, (predicate, body) in enumerate(clauses):
                    if predicate == "else" or self.evaluate(predicate, env, (*place, i, 0), tags):
                        return self.evaluate(body, env, (*place, i, 1), tags, evidence)
        value: Any = form[0] == "and"
        for i, part in enumerate(form[1:]):
            value = self.evaluate(part, env, (*place, i), tags)
            if bool(value) == (form[0] == "or"):
                break
        return self.met(value, evidence)

    def bind(self, form: list[Any], env: Environment, place: Address, tags: Tags, evidence: Any) -> Any:
        *before, last = form[1:] if form[0] == "begin" else [*form[1], form[-1]]
        inner = Environment({}, env)
        for i, part in enumerate(before):
            if form[0] == "begin":
                self.evaluate(part, env, (*place, i), tags)
            else:
                inner = inner if form[0] == "letrec" else Environment({}, inner)
                inner.names[part[0]] = self.evaluate(part[1], inner, (*place, i), tags)
        return self.evaluate(last, inner, (*place, len(before)), tags, evidence)

    def met(self, value: Any, evidence: Any) -> Any:
        """Evidence on a value that exists already: all or nothing, so for discrete values only."""
        if evidence is not FREE:
            assert not isinstance(value, float), "evidence on an existing continuous value has no weight"
            if value != evidence:
                self.log_evidence = -math.inf
        return value

    def apply(self, procedure: Any, arguments: list[Any], place: Address, tags: Tags, evidence: Any) -> Any:
        match procedure:
            case Closure(parameters, body, environment):
                names = dict(zip(parameters, arguments, strict=True))
                return self.evaluate(body, Environment(names, environment), place, tags, evidence)
            case Memoised(body, address, values):
                key = tuple(arguments)
                if key in values:
                    return self.met(values[key], evidence)
                values[key] = self.apply(body, arguments, ("mem", address, key), {}, evidence)
                return values[key]
            case Random(simulate, log_density):
                return self.draw(
                    lambda rng: simulate(rng, *arguments), lambda x: log_density(x, *arguments), place, tags, evidence
                )
            case Made(predictive, parameters, values):
                value = self.draw(*predictive(values, *parameters, *arguments), place, tags, evidence)
                values.append((value, *arguments) if arguments else value)
                return value
            case Maker(predictive):
                return Made(predictive, tuple(arguments), [])
            case UncollapsedMaker(prior, likelihood):
                random, hyper = prior(*arguments)
                drawn = self.apply(random, list(hyper), (*place, "parameter"), tags, FREE)
                return Random(lambda rng: likelihood.simulate(rng, drawn), lambda x: likelihood.log_density(x, drawn))
            case _:
                return self.met(procedure(*arguments), evidence)

    def draw(self, simulate: Any, log_density: Any, place: Address, tags: Tags, evidence: Any) -> Any:
        if evidence is not FREE:
            self.log_evidence += log_density(evidence)
            return evidence
        assert place not in self.choices, f"two choices at one address: {place}"
        kept = place in self.kept
        value = self.kept[place] if kept else simulate(self.rng)
        choice = Choice(value, log_density(value), tags)
        self.choices[place] = choice
        if not kept:
            self.log_fresh += choice.log_density
        return value

    @property
    def log_joint(self) -> float:
        return self.log_evidence + math.fsum(c.log_density for c in self.choices.values())


def likelihood_weighting(
    program: str, query: Mapping[str, str], parameters: Mapping[str, Any], runs: int, rng: np.random.Generator
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Draws of each query variable, `(runs,)`, from the prior with their log weights, `(runs,)`."""
    directives = parse(program)
    expressions = {name: parse(text)[0] for name, text in query.items()}
    values: dict[str, list[float]] = {name: [] for name in query}
    log_weights = np.empty(runs)
    for i in range(runs):
        execution = Execution(rng, parameters)
        execution.run(directives)
        log_weights[i] = execution.log_evidence
        # The query of an impossible execution may have no value.
        drawn = execution.query(expressions) if execution.log_evidence > -math.inf else dict.fromkeys(query, 0.0)
        for name, value in drawn.items():
            values[name].append(float(value))
    return {name: np.array(v) for name, v in values.items()}, log_weights


@dataclass(frozen=True, slots=True)
class Faults:
    """Ways in which the reference chain can be broken on purpose."""

    ignore_block_counts: bool = False
    ignore_fresh_choices: bool = False


def single_site_mh(
    program: str,
    query: Mapping[str, str],
    parameters: Mapping[str, Any],
    draws: int,
    thin: int,
    rng: np.random.Generator,
    scope: str = "default",
    faults: Faults = Faults(),
) -> dict[str, np.ndarray]:
    """Draws of each query variable, `(draws,)`, from `(mh SCOPE one THIN)` by re-execution.

    For programs without exchangeable makers, whose labels make re-execution by address irreversible.
    """
    directives = parse(program)
    expressions = {name: parse(text)[0] for name, text in query.items()}
    current = Execution(rng, parameters)
    current.run(directives)
    while current.log_joint == -math.inf:
        current = Execution(rng, parameters)
        current.run(directives)
    values: dict[str, list[float]] = {name: [] for name in query}
    for _ in range(draws):
        for _ in range(thin):
            current = mh_transition(current, directives, scope, faults)
        for name, value in current.query(expressions).items():
            values[name].append(float(value))
    return {name: np.array(v) for name, v in values.items()}


def blocks(execution: Execution, scope: str) -> list[Any]:
    if scope == "default":
        return list(execution.choices)
    return list({c.tags[scope]: None for c in execution.choices.values() if scope in c.tags})


def mh_transition(current: Execution, directives: list[Any], scope: str, faults: Faults) -> Execution:
    """Resimulate one block, chosen uniformly, and whatever it brings into being; accept or stay."""
    rng = current.rng
    before = blocks(current, scope)
    key = before[int(rng.integers(len(before)))]

    def is_principal(address: Address, choice: Choice) -> bool:
        return address == key if scope == "default" else scope in choice.tags and choice.tags[scope] == key

    principal = {a for a, c in current.choices.items() if is_principal(a, c)}
    kept = {a: c.value for a, c in current.choices.items() if a not in principal}
    proposed = Execution(rng, current.parameters, kept)
    proposed.run(directives)
    stale = {a for a in current.choices if a in principal or a not in proposed.choices}
    # A choice that joins the block without being drawn could not be drawn on the way back.
    if any(is_principal(a, c) and a in kept for a, c in proposed.choices.items()):
        raise NotImplementedError("a kept choice changed its block")
    log_accept = proposed.log_joint - current.log_joint
    if not faults.ignore_fresh_choices:
        log_accept += math.fsum(current.choices[a].log_density for a in stale) - proposed.log_fresh
    if not faults.ignore_block_counts:
        log_accept += math.log(len(before)) - math.log(len(blocks(proposed, scope)))
    return proposed if math.log(rng.random()) < log_accept else current
