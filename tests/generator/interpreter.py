"""An interpreter of modelling expressions for checking the package's: written from the language's description alone.

A program is compiled into Python closures and run from its beginning for every world. It keeps no trace: a choice is
known by its path (the places of the calls that lead to it), and what value it takes is asked of a `Chooser`. Evidence
goes down with evaluation to the choice that takes it; a choice that exists already has its value or the world none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.integrate import solve_ivp

from tests.generator import interpreter_compounds, loops
from tests.generator.interpreter_functions import DETERMINISTIC, Higher, Symbol, key_of, same
from tests.generator.interpreter_procedures import MAKERS, RANDOM, FiniteRandom, Made, MakerOf
from tests.generator.interpreter_queries import ASKED, Chances, Paths, enumerated
from tests.generator.programs import Step
from tests.posterior.reader import Text, parse

FREE: Any = object()
Place = tuple[Any, ...]
Frame = list[Any]
Run = Callable[[Frame, Place, Any], Any]
Scope = tuple[list[str], Any] | None


class Impossible(Exception):
    """The world at hand has probability zero."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A value in the place of an expression."""

    value: Any


@dataclass(eq=False, slots=True)
class Closure:
    body: Run
    frame: Frame
    parameters: int
    name: Place


@dataclass(eq=False, slots=True)
class Memory:
    procedure: Any
    name: Place
    values: dict[Any, Any] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Atoms:
    """Draws of a Dirichlet process, or of the two-parameter one: each table has an atom of the base."""

    tables: Made
    base: Any
    name: Place
    values: dict[Any, Any] = field(default_factory=dict)


class Chooser(Protocol):
    def choose(self, procedure: FiniteRandom, arguments: Sequence[Any], path: Place) -> Any:
        """The value of the choice at `path`."""


@dataclass(frozen=True, slots=True)
class Directive:
    kind: str
    name: str
    run: Run
    evidence: Any = FREE
    # Of a loop, in which all passes run the same.
    at: int = 0


EPSILON = 2.0**-52


class Interpreter:
    """A program that can be run many times; `log_weight` is of the evidence met in the present run."""

    def __init__(self, steps: Sequence[Step], frozen: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        self.parameters = parameters
        self.sites = 0
        self.globals: dict[str, Any] = {}
        self.log_weight = 0.0
        # what rounding of probabilities near 1 may make of the log weights of all runs: a probability is only as exact
        # as its complement, the log of a small one so much less
        self.rounding = 0.0
        self.chooser: Chooser | None = None
        # the variable of the loop that is compiled, with its range, and which pass runs
        self._loop: tuple[str, range] | None = None
        self._pass = 0
        self.program: list[Directive] = []
        for step in steps:
            if step.kind == "clear":
                self.program.clear()
            else:
                self.program += self._directives(step, frozen)

    def compiled(self, text: str) -> Run:
        return self._compile(parse(text)[0], None)

    def run(self, chooser: Chooser) -> None:
        """Raises Impossible where evidence cannot be met."""
        self.globals, self.log_weight, self.chooser = {}, 0.0, chooser
        for number, directive in enumerate(self.program):
            self._pass = directive.at
            value = directive.run([None], (number,), directive.evidence)
            if directive.kind == "assume":
                self.globals[directive.name] = value
            elif directive.kind == "factor":
                self.log_weight += value
            elif directive.kind == "condition" and not value:
                raise Impossible

    def _directives(self, step: Step, frozen: Mapping[str, Any]) -> list[Directive]:
        if step.kind == "load":
            _, path = parse(step.text)[0]
            return [self._directive(form) for form in parse(Path(path.text).read_text(encoding="utf-8"))]
        loop = loops.one_loop(step.text)
        if loop is not None and step.label not in frozen:
            return self._passes(*loop)
        forms = [parse(directive)[0] for _, found in loops.passes(step.text) for directive in found]
        if step.label in frozen:
            forms = [[*forms[0][:-1], Constant(frozen[step.label])]]
        return [self._directive(form) for form in forms]

    def _passes(self, variable: str, passes: range, texts: list[str]) -> list[Directive]:
        """The directives of each pass of a loop, compiled once."""
        self._loop = variable, passes
        found = [(self._directive(parse(text)[0]), self._evidences(parse(text)[0])) for text in texts]
        self._loop = None
        return [replace(made, evidence=given[at], at=at) for at in range(len(passes)) for made, given in found]

    def _evidences(self, form: Any) -> list[Any]:
        """What each pass of a loop observes."""
        assert self._loop is not None
        if form[0] != "observe":
            return [FREE] * len(self._loop[1])
        run, found = self._compile(form[2], None), []
        for number in range(len(self._loop[1])):
            self._pass = number
            found.append(run([None], (), FREE))
        self._pass = 0
        return found

    def _in_passes(self, text: str) -> Run:
        """What depends on the variable of the loop at hand."""
        assert self._loop is not None
        variable, passes = self._loop
        values = [loops.value_of(re.sub(rf"\b{variable}\b", str(n), text), self.parameters) for n in passes]
        return lambda frame, path, evidence: meet(values[self._pass], evidence)

    def _is_in_passes(self, text: str) -> bool:
        """True if a name or braces depend on the variable of the loop at hand, which stands for nothing else."""
        if self._loop is None or not re.search(rf"\b{self._loop[0]}\b", text):
            return False
        return text[0] == "{" or text == self._loop[0]

    def _directive(self, form: Any) -> Directive:
        match form:
            case ["assume", [name, *parameters], body]:
                return Directive("assume", name, self._compile(["lambda", parameters, body], None))
            case ["assume", name, body]:
                return Directive("assume", name, self._compile(body, None))
            case ["observe", expression, value]:
                run = self._compile(expression, None)
                return Directive("observe", "", run, self._compile(value, None)([None], (), FREE))
            case ["factor" | "condition" as kind, expression]:
                return Directive(kind, "", self._compile(expression, None))
            case ["predict", expression]:
                return Directive("predict", "", self._compile(expression, None))
        raise ValueError(form)

    # ---------------------------------------------------------------------------------------------------- compilation

    def _compile(self, form: Any, scope: Scope) -> Run:
        match form:
            case str() if self._is_in_passes(form):
                return self._in_passes(form)
            case str() if form[0] == "{":
                return met(loops.value_of(form, self.parameters))
            case str():
                return self._name(form, scope)
            case ["if", predicate, yes, no]:
                return self._if(predicate, yes, no, scope)
            case ["cond", [predicate, body], *clauses]:
                if predicate == "else":
                    return self._compile(body, scope)
                return self._if(predicate, body, ["cond", *clauses], scope)
            case ["and"]:
                return met(True)
            case ["or"]:
                return met(False)
            case ["and" | "or" as word, *parts]:
                return self._connective(word, parts, scope)
            case ["let" | "letrec" as word, bindings, body]:
                return self._let(word, bindings, body, scope)
            case ["begin", *before, last]:
                return self._begin([self._compile(part, scope) for part in before], self._compile(last, scope))
            case ["lambda", parameters, body]:
                return self._lambda(parameters, body, scope)
            case ["quote", datum]:
                return met(quoted(datum))
            case ["mem", procedure]:
                return self._mem(self._compile(procedure, scope))
            case ["scope_include" | "tag", _, _, body]:
                return self._compile(body, scope)
            case ["enumerate", ["lambda", [], body]]:
                return self._query(self._compile(body, scope))
            case ["factor" | "condition" as word, weight]:
                return self._weighing(word, self._compile(weight, scope))
            case [str() as word, *_] if word in interpreter_compounds.FORMS:
                made, arguments = interpreter_compounds.compound(form)
                return self._application([Constant(made), *arguments], scope)
            case ["make_lazy_hmm", *_] if (emitted := interpreter_compounds.emitting(form)) is not None:
                return self._application([Constant(emitted[0]), *emitted[1]], scope)
            case list():
                return self._application(form, scope)
            case Text(text):
                return met(text)
            case Constant(value):
                return met(value)
        return met(form)

    def _name(self, name: str, scope: Scope) -> Run:
        depth = 0
        while scope is not None:
            names, scope = scope
            if name in names:
                return local(depth, names.index(name) + 1)
            depth += 1
        known = BUILT_IN.get(name)

        def read(frame: Frame, path: Place, evidence: Any) -> Any:
            return meet(self.globals.get(name, known) if known is not None else self.globals[name], evidence)

        return read

    def _if(self, predicate: Any, yes: Any, no: Any, scope: Scope) -> Run:
        test, then, other = (self._compile(part, scope) for part in (predicate, yes, no))

        def run(frame: Frame, path: Place, evidence: Any) -> Any:
            return (then if truth(test(frame, path, FREE)) else other)(frame, path, evidence)

        return run

    def _connective(self, word: str, parts: list[Any], scope: Scope) -> Run:
        compiled, ends = [self._compile(part, scope) for part in parts], word == "or"

        def run(frame: Frame, path: Place, evidence: Any) -> Any:
            value = None
            for part in compiled:
                value = part(frame, path, FREE)
                if truth(value) == ends:
                    break
            return meet(value, evidence)

        return run

    def _let(self, word: str, bindings: list[Any], body: Any, scope: Scope) -> Run:
        # One frame for each name of a let, since each may be bound again by the next; one for all of a letrec.
        values: list[Run] = []
        if word == "letrec":
            scope = ([name for name, _ in bindings], scope)
            values = [self._compile(value, scope) for _, value in bindings]
        else:
            for name, value in bindings:
                values.append(self._compile(value, scope))
                scope = ([name], scope)
        inner = self._compile(body, scope)
        taken = taking([name for name, _ in bindings], [value for _, value in bindings], body)

        def sequential(frame: Frame, path: Place, evidence: Any) -> Any:
            for number, value in enumerate(values):
                frame = [frame, value(frame, path, evidence if number == taken else FREE)]
            return inner(frame, path, FREE if taken is not None else evidence)

        def recursive(frame: Frame, path: Place, evidence: Any) -> Any:
            frame = [frame]
            for value in values:
                frame.append(value(frame, path, FREE))
            return inner(frame, path, evidence)

        return recursive if word == "letrec" else sequential

    def _begin(self, before: list[Run], last: Run) -> Run:
        def run(frame: Frame, path: Place, evidence: Any) -> Any:
            for part in before:
                part(frame, path, FREE)
            return last(frame, path, evidence)

        return run

    def _query(self, body: Run) -> Run:
        site = self._site()

        def run(frame: Frame, path: Place, evidence: Any) -> Any:
            def world(paths: Paths) -> tuple[Any, float] | None:
                self.chooser, self.log_weight = paths, 0.0
                try:
                    return body(frame, (path, site), FREE), math.exp(self.log_weight)
                except Impossible:
                    return None

            chooser, log_weight = self.chooser, self.log_weight
            try:
                return meet(enumerated(world), evidence)
            finally:
                self.chooser, self.log_weight = chooser, log_weight

        return run

    def _weighing(self, word: str, weight: Run) -> Run:
        def run(frame: Frame, path: Place, evidence: Any) -> Any:
            value = weight(frame, path, FREE)
            if word == "factor":
                self.log_weight += value
            elif not truth(value):
                raise Impossible
            return value

        return run

    def _lambda(self, parameters: list[str], body: Any, scope: Scope) -> Run:
        inner, site = self._compile(body, (parameters, scope)), self._site()
        return lambda frame, path, evidence: Closure(inner, frame, len(parameters), (path, site))

    def _mem(self, procedure: Run) -> Run:
        site = self._site()
        return lambda frame, path, evidence: Memory(procedure(frame, path, FREE), (path, site))

    def _application(self, form: list[Any], scope: Scope) -> Run:
        site, parts, taken = self._site(), [self._compile(part, scope) for part in form], None
        match form:
            case [["lambda", [*parameters], body], *arguments]:
                taken = taking(parameters, arguments, body)

        def listed(frame: Frame, path: Place, evidence: Any) -> Any:
            parts_of = evidence if form[0] == "list" else (evidence[0], evidence[1:])
            found = [part(frame, path, here) for part, here in zip(parts[1:], parts_of, strict=True)]
            return self.apply(DETERMINISTIC[form[0]], found, (path, site), FREE)

        def taking_evidence(frame: Frame, path: Place, evidence: Any) -> Any:
            procedure, *arguments = [
                part(frame, path, evidence if number - 1 == taken else FREE) for number, part in enumerate(parts)
            ]
            return self.apply(procedure, arguments, (path, site), FREE)

        def run(frame: Frame, path: Place, evidence: Any) -> Any:
            if evidence is not FREE and form[0] in ("list", "pair"):
                return listed(frame, path, evidence)
            procedure, *arguments = [part(frame, path, FREE) for part in parts]
            return self.apply(procedure, arguments, (path, site), evidence)

        return run if taken is None else taking_evidence

    def _site(self) -> int:
        self.sites += 1
        return self.sites

    # ---------------------------------------------------------------------------------------------------- application

    def apply(self, procedure: Any, arguments: list[Any], path: Place, evidence: Any) -> Any:
        if callable(procedure):
            return meet(procedure(*arguments), evidence)
        match procedure:
            case Closure(body, frame, count):
                assert len(arguments) == count, "wrong number of arguments"
                return body([frame, *arguments], path, evidence)
            case Memory(inner, name, values):
                key = tuple(map(key_of, arguments))
                if key in values:
                    return meet(values[key], evidence)
                values[key] = self.apply(inner, arguments, (name, tuple(map(named, key))), evidence)
                return values[key]
            case Atoms(tables, base, name, values):
                table = self.apply(tables, [], (path, "table"), FREE)
                if table not in values:
                    values[table] = self.apply(base, [], (name, table), FREE)
                return meet(values[table], evidence)
            case FiniteRandom():
                return self.draw(procedure, arguments, path, evidence)
            case Made(random, parameters, values):
                value = self.draw(random, [values, *parameters, *arguments], path, evidence)
                values.append((value, *arguments) if arguments else value)
                return value
            case MakerOf(random):
                return Made(random, tuple(arguments), [], path)
            case Higher("map") if evidence is not FREE:
                f, items = arguments
                rows = enumerate(zip(items, evidence, strict=True))
                return tuple(self.apply(f, [item], (path, i), value) for i, (item, value) in rows)
            case Higher(name):
                return meet(HIGHER[name](self, arguments, path), evidence)
        raise TypeError(f"{procedure} is applied")

    def draw(self, random: FiniteRandom, arguments: Sequence[Any], path: Place, evidence: Any) -> Any:
        if evidence is not FREE:
            weight = random.log_density(evidence, *arguments)
            if weight == -math.inf:
                raise Impossible
            self.log_weight += weight
            if not isinstance(evidence, (float, np.ndarray)):
                self.rounding += EPSILON * math.exp(min(-weight, 700.0))
            return evidence
        assert self.chooser is not None
        return self.chooser.choose(random, arguments, path)


def taking(names: list[str], values: list[Any], body: Any) -> int | None:
    """Which of the bound expressions the evidence on a body goes to, where the body is no more than its name."""
    taken = None
    for number in reversed(range(len(names))):
        if names[number] == body:
            taken, body = number, values[number]
    return taken


def truth(value: Any) -> bool:
    assert value == 0 or value == 1, f"{value} is no predicate"
    return bool(value)


def meet(value: Any, evidence: Any) -> Any:
    """Evidence on a value that exists already."""
    if evidence is not FREE and not same(value, evidence):
        raise Impossible
    return value


def met(value: Any) -> Run:
    return lambda frame, path, evidence: meet(value, evidence)


def local(depth: int, index: int) -> Run:
    def read(frame: Frame, path: Place, evidence: Any) -> Any:
        for _ in range(depth):
            frame = frame[0]
        return meet(frame[index], evidence)

    return read


def quoted(datum: Any) -> Any:
    if isinstance(datum, list):
        return tuple(map(quoted, datum))
    return Symbol(datum) if isinstance(datum, str) else datum.text if isinstance(datum, Text) else datum


def named(key: Any) -> Any:
    """A key that is the same in every run: procedures by where they were made."""
    return key.name if isinstance(key, (Closure, Memory, Made, Atoms)) else key


def process_over(interpreter: Interpreter, arguments: list[Any], path: Place) -> Any:
    *parameters, base = arguments
    return Atoms(interpreter.apply(MAKERS["make_crp"], parameters, path, FREE), base, path)


def map_over(interpreter: Interpreter, arguments: list[Any], path: Place) -> Any:
    f, *lists = arguments
    rows = enumerate(zip(*lists, strict=False))
    return tuple(interpreter.apply(f, list(row), (path, i), FREE) for i, row in rows)


def expected(interpreter: Interpreter, arguments: list[Any], path: Place) -> Any:
    chances, f = arguments
    assert isinstance(chances, Chances)
    entries = enumerate(chances.entries.values())
    return sum(chance * interpreter.apply(f, [value], (path, i), FREE) for i, (value, chance) in entries)


def filter_by(interpreter: Interpreter, arguments: list[Any], path: Place) -> Any:
    f, items = arguments
    return tuple(item for i, item in enumerate(items) if truth(interpreter.apply(f, [item], (path, i), FREE)))


def fold_over(interpreter: Interpreter, arguments: list[Any], path: Place) -> Any:
    f, gathered, items = arguments
    for i, item in enumerate(items):
        gathered = interpreter.apply(f, [gathered, item], (path, i), FREE)
    return gathered


def solution_of(interpreter: Interpreter, arguments: list[Any], path: Place) -> Any:
    """Of differential equations, a row for each time."""
    f, start, time, times = arguments

    def side(t: float, y: np.ndarray) -> Any:
        return interpreter.apply(f, [t, y], path, FREE)

    found = solve_ivp(side, (time, max(times)), np.array(start), t_eval=times, rtol=1e-6, atol=1e-6)
    return found.y.T


def holding(interpreter: Interpreter, arguments: list[Any], path: Place) -> Iterator[tuple[Any, bool]]:
    """The items with what the predicate says of each, which is asked no further than needed."""
    f, items = arguments
    return ((item, truth(interpreter.apply(f, [item], (path, i), FREE))) for i, item in enumerate(items))


HIGHER: dict[str, Callable[[Interpreter, list[Any], Place], Any]] = {
    "map": map_over,
    "filter": filter_by,
    "fold": fold_over,
    "any": lambda *call: any(held for _, held in holding(*call)),
    "all": lambda *call: all(held for _, held in holding(*call)),
    "find": lambda *call: next(item for item, held in holding(*call) if held),
    "count": lambda *call: sum(held for _, held in holding(*call)),
    "apply": lambda interpreter, arguments, path: interpreter.apply(arguments[0], [*arguments[1]], path, FREE),
    "expectation": expected,
    "ode": solution_of,
    "make_dp": process_over,
    "make_pitman_yor": process_over,
}
BUILT_IN: dict[str, Any] = {**DETERMINISTIC, **ASKED, **RANDOM, **MAKERS, "pi": math.pi}
