"""Random well-typed expressions, in two spellings.

Every expression is generated for a type (real, boolean, count, or another of `catalogue.py`) and a depth, from the
catalogue's forms and from names that earlier steps bound, so it evaluates without error from every state that inference
can reach: arguments of densities stay in their domains, counts in 0...2 where they are positions, recursions end with
probability one, keys of blocks are constants or memoized arguments. Scope `r` holds continuous choices only, `d`
choices of finite support only, `s` anything.

In a *finite* program every choice that is not observed has finite support, and there are few of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.generator.catalogue import ANY, COMPUTED, FINITE, ONLY_LOOSELY, RANGES, SIMPLE, Forms
from tests.generator.programs import Call, Names
from tests.generator.twins import EVIDENT, EVIDENT_CALLS, HEAVY, LIGHT, Twin, both, twin

Rng = np.random.Generator
Form = Callable[[int], Twin]
PLACE = re.compile(r"<([a-z][a-z ]*)>")
BRANCHING = re.compile(r"\((if|cond|and|or|map|filter|fold|lambda)\b")
COUNTS = ("(poisson", "(geometric", "(neg_binomial")
PLENTY = 1e9
"""Choices of a program that is not finite."""


@dataclass(slots=True)
class Expressions:
    """Generates expressions of each type. `names` grows as directives are made."""

    rng: Rng
    finite: bool = False
    # Whether names are wrapped into calls and branches, too.
    heavy: bool = True
    names: Names = field(default_factory=Names)
    # Where expressions of each type end, and what follows from other values.
    simple: Forms = field(default_factory=lambda: SIMPLE)
    forms: Forms = field(default_factory=lambda: COMPUTED)
    # There are no branches and no calls but the language's own, so that particles can move side by side, in columns.
    straight: bool = False
    # Choices that may still be made, and how often the body at hand will run.
    budget: float = PLENTY
    copies: float = 1.0
    # Bodies that run many times carry no tags of scope `d`: gibbs would enumerate all of them at once.
    tags_finite: bool = True
    blocks: int = 0
    bound: int = 0
    # The offset of block keys: the memoized argument where there is one.
    key: Twin | None = None

    # ------------------------------------------------------------------------------------------ choosing and spelling

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, options: Sequence[str]) -> str:
        return options[int(self.rng.integers(len(options)))]

    def pick_twin(self, options: Sequence[Twin]) -> Twin:
        return options[int(self.rng.integers(len(options)))]

    def one_of(self, forms: Sequence[Form], depth: int) -> Twin:
        return forms[int(self.rng.integers(len(forms)))](depth - 1)

    def constant(self, low: float, high: float) -> Twin:
        return both(f"{self.rng.uniform(low, high):.2f}")

    def fresh(self, prefix: str) -> str:
        """A name that nothing else is bound to."""
        self.bound += 1
        return f"{prefix}{self.bound}"

    def spend(self, choices: float = 1.0) -> bool:
        """Whether that many choices may be made here; they are counted."""
        if self.budget < choices * self.copies:
            return False
        self.budget -= choices * self.copies
        return True

    def wrapper(self) -> str:
        """What changes nothing around a value."""
        return self.pick(HEAVY if self.heavy else LIGHT)

    def evident_wrapper(self) -> str:
        """What lets evidence through."""
        return self.pick([*EVIDENT, *EVIDENT_CALLS] if self.heavy else EVIDENT)

    def dress(self, item: Twin, often: float = 0.35) -> Twin:
        """The same, sometimes wrapped."""
        return Twin(item.plain, self.wrapper().format(item.dressed)) if self.chance(often) else item

    def mention(self, names: Sequence[Twin]) -> Twin:
        return self.dress(self.pick_twin(names))

    def values(self, kind: str) -> list[Twin]:
        return self.names.values.get(kind, [])

    def block(self) -> Twin:
        """A block's key, sometimes shared."""
        if self.blocks == 0 or self.rng.random() < 0.85:
            self.blocks += 1
        number = int(self.rng.integers(self.blocks)) if self.rng.random() < 0.1 else self.blocks
        return both(str(number)) if self.key is None else twin(f"(+ {1000 * number} {{0}})", self.key)

    # ------------------------------------------------------------------------------------------------------ all types

    def make(self, kind: str, depth: int) -> Twin:
        """An expression of a type."""
        match kind:
            case "real":
                return self.real(depth)
            case "boolean":
                return self.boolean(depth)
            case "count":
                return self.count(depth)
            case "index":
                # A key of few values, now and then a random one.
                return self.count(depth) if self.chance(0.4) else both(self.pick(["0", "1"]))
            case "table":
                return both(self.pick(["0", "1"]))
        return self.number(kind, depth) if kind in RANGES else self.compound(kind, depth)

    def number(self, kind: str, depth: int) -> Twin:
        """A number of a range."""
        if depth <= 0 or self.chance(0.4):
            return self.constant(*RANGES[kind])
        drawn = not self.finite and kind in ANY and self.chance(0.25)
        return self.filled(self.pick(self.allowed((ANY if drawn else self.forms)[kind])), depth)

    def compound(self, kind: str, depth: int) -> Twin:
        """A vector, a matrix, a list, a string, a covariance."""
        names = self.values(kind)
        if names and (kind not in self.forms or self.chance(0.5)):
            return self.mention(names)
        if depth > 0 and kind in self.names.calls and self.chance(0.3):
            return self.call(kind, depth - 1, lambda a: self.computed(kind, a))
        if depth <= 0 or not self.allowed(self.forms.get(kind, ())):
            return self.filled(self.pick(self.simple[kind]), 0)
        draws = (FINITE if self.finite else ANY).get(kind, ())
        if draws and self.chance(0.3) and self.spend(1.5):
            return self.filled(self.pick(draws), depth)
        if self.chance(0.15) and not self.straight:
            return self.filled(f"(if <boolean> <{kind}> <{kind}>)", depth)
        return self.computed(kind, depth)

    def computed(self, kind: str, depth: int) -> Twin:
        forms = self.forms[kind] if self.finite else (*self.forms[kind], *ONLY_LOOSELY.get(kind, ()))
        return self.filled(self.pick(self.allowed(forms)), depth)

    def allowed(self, forms: Sequence[str]) -> Sequence[str]:
        return [form for form in forms if not BRANCHING.search(form)] if self.straight else forms

    def filled(self, form: str, depth: int) -> Twin:
        """`form` with an expression in each of its places, simpler ones where they are many."""
        depth -= form.count("<") > 2
        parts: list[Twin] = []

        def place(found: re.Match[str]) -> str:
            parts.append(self.make(found[1], depth - 1))
            return f"{{{len(parts) - 1}}}"

        template = PLACE.sub(place, form.replace("{", "{{").replace("}", "}}"))
        return twin(template, *parts)

    def let(self, kind: str, depth: int) -> Twin:
        name, value = self.fresh("l"), self.make(kind, depth)
        outer, self.names = self.names, self.names.copy()
        self.names.bind(kind, both(name))
        body = self.make(kind, depth)
        self.names = outer
        return twin(f"(let (({name} {{0}})) {{1}})", value, body)

    def branch(self, kind: str, depth: int) -> Twin:
        if self.straight:
            return self.computed(kind, depth + 1)
        if self.chance(0.2):
            return self.filled(f"(cond (<boolean> <{kind}>) (<boolean> <{kind}>) (else <{kind}>))", depth + 1)
        return self.filled(f"(if <boolean> <{kind}> <{kind}>)", depth + 1)

    def call(self, kind: str, depth: int, otherwise: Form) -> Twin:
        calls = self.names.calls.get(kind)
        if not calls:
            return otherwise(depth)
        call = calls[int(self.rng.integers(len(calls)))]
        return self.applied(call, depth) if not call.cost or self.spend(call.cost) else otherwise(depth)

    def applied(self, call: Call, depth: int) -> Twin:
        """A call with arguments; a name in operator position is sometimes wrapped."""
        given = [self.make(kind, depth) for kind in call.arguments]
        made = (
            twin("{0}", call.spelling)
            if not given
            else Twin(
                call.spelling.plain.format(*(a.plain for a in given)),
                call.spelling.dressed.format(*(a.dressed for a in given)),
            )
        )
        if call.named and self.heavy and self.chance(0.3):
            operator, space, rest = made.dressed[1:].partition(" ")
            operator, closing = (operator, rest) if space else (operator[:-1], ")")
            return Twin(made.plain, f"({self.wrapper().format(operator)} {closing}")
        return made

    # ---------------------------------------------------------------------------------------------------------- reals

    def real(self, depth: int) -> Twin:
        if depth <= 0:
            return self.mention([*self.values("real"), *self.values("count"), self.constant(-2, 2)])
        drawn: list[Form] = [self.drawn_real, self.drawn_real, self.drawn_real, self.tagged_real]
        forms: list[Form] = [
            self.computed_real,
            self.computed_real,
            self.computed_real,
            lambda a: self.branch("real", a),
            lambda a: self.let("real", a),
            lambda a: self.call("real", a, self.computed_real if self.finite else self.drawn_real),
        ]
        return self.one_of(forms if self.finite else [*drawn, *forms], depth)

    def drawn_real(self, depth: int) -> Twin:
        return self.filled(self.pick(ANY["real"]), depth + 1)

    def computed_real(self, depth: int) -> Twin:
        return self.computed("real", depth + 1)

    def positive(self, depth: int) -> Twin:
        return self.number("positive", depth)

    def probability(self, depth: int) -> Twin:
        return self.number("probability", depth)

    def tagged_real(self, depth: int) -> Twin:
        if self.chance(0.5):
            continuous = [form for form in ANY["real"] if not form.startswith(COUNTS)]
            choice = self.filled(self.pick(continuous), 1)
            return twin("(scope_include 'r {0} {1})", self.block(), choice)
        return twin("(scope_include 's {0} {1})", self.block(), self.real(depth))

    # ------------------------------------------------------------------------------------------------------- booleans

    def boolean(self, depth: int) -> Twin:
        if depth <= 0:
            return self.some_boolean(depth)
        forms: list[Form] = [
            self.flip,
            self.flip,
            self.computed_boolean,
            self.computed_boolean,
            lambda a: self.branch("boolean", a),
            lambda a: self.call("boolean", a, self.flip),
            self.tagged_boolean,
            self.some_boolean,
            self.random_operator,
            self.filtered,
            lambda a: self.let("boolean", a),
        ]
        return self.one_of(forms, depth)

    def some_boolean(self, depth: int) -> Twin:
        names = self.values("boolean")
        if names and self.chance(0.8):
            return self.mention(names)
        return self.flip(0)

    def flip(self, depth: int) -> Twin:
        if not self.spend():
            names = self.values("boolean")
            return self.mention(names) if names else both(self.pick(["true", "false"]))
        return self.filled(self.pick(FINITE["boolean"]), depth + 1)

    def computed_boolean(self, depth: int) -> Twin:
        labels = self.values("label")
        if len(labels) > 1 and self.chance(0.25):
            return twin("(= {0} {1})", self.mention(labels), self.mention(labels))
        return self.computed("boolean", depth + 1)

    def tagged_boolean(self, depth: int) -> Twin:
        return self.tagged_finite(self.flip(0))

    def random_operator(self, depth: int) -> Twin:
        """A random procedure as a value."""
        if self.straight or not self.spend():
            return self.some_boolean(depth)
        p = self.probability(depth)
        form = self.pick(
            ["((first (list flip 1)) {0})", "((lambda (f) (f {0})) flip)", "((lookup (dict 'f flip) 'f) {0})"]
        )
        if self.chance(0.4):
            return twin("((if {0} flip bernoulli) {1})", self.boolean(depth), p)
        if not self.heavy:
            form = "(let ((f flip)) (f {0}))"
        return Twin(f"(flip {p.plain})", form.format(p.dressed))

    def filtered(self, depth: int) -> Twin:
        """A list whose length is random."""
        if self.straight or not self.spend(2):
            return self.some_boolean(depth)
        forms = [
            "(is_empty (filter (lambda (w) (flip <probability>)) (range 2)))",
            "(contains (map (lambda (w) (flip <probability>)) (range 2)) true)",
        ]
        return self.filled(self.pick(forms), 0)

    # --------------------------------------------------------------------------------------------------------- counts

    def count(self, depth: int) -> Twin:
        """0, 1 or 2."""
        if depth <= 0:
            return self.mention([*self.values("count"), both(str(int(self.rng.integers(3))))])
        forms: list[Form] = [
            self.drawn_count,
            self.drawn_count,
            self.computed_count,
            self.computed_count,
            lambda a: self.branch("count", a),
            lambda a: self.call("count", a, self.drawn_count),
            self.tagged_count,
            lambda a: self.let("count", a),
        ]
        return self.one_of(forms, depth)

    def drawn_count(self, depth: int) -> Twin:
        if not self.spend(1.5):
            return self.count(0)
        return self.filled(self.pick(self.allowed((FINITE if self.finite else ANY)["count"])), depth + 1)

    def computed_count(self, depth: int) -> Twin:
        return self.computed("count", depth + 1)

    def tagged_count(self, depth: int) -> Twin:
        if not self.spend(1.5):
            return self.count(0)
        forms = ["(uniform_discrete 0 3)", "(categorical (vector 0.6 0.4))", "(softmax_categorical (list 0 1 0.5))"]
        return self.tagged_finite(both(self.pick(forms)))

    def tagged_finite(self, choice: Twin) -> Twin:
        if not self.tags_finite or not choice.plain.startswith("("):
            return choice
        return twin("(scope_include 'd {0} {1})", self.block(), choice)
