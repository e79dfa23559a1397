"""Random well-typed expressions, in two spellings.

Every expression is generated for a type (real, boolean, count) and a depth, from names that earlier steps bound, so it
evaluates without error from every state that inference can reach: arguments of densities stay in their domains, counts
in 0...2 where they are positions, recursions end with probability one, keys of blocks are constants or memoized
arguments. Scope `r` holds continuous choices only, `d` choices of finite support only, `s` anything.

In a *finite* program every choice that is not observed has finite support, and there are few of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tests.generator.programs import Call, Names
from tests.generator.twins import EVIDENT, EVIDENT_CALLS, HEAVY, LIGHT, Twin, both, twin

Rng = np.random.Generator
Form = Callable[[int], Twin]
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

    # ---------------------------------------------------------------------------------------------------------- reals

    def real(self, depth: int) -> Twin:
        if depth <= 0:
            return self.mention([*self.values("real"), *self.values("count"), self.constant(-2, 2)])
        drawn: list[Form] = [self.normal, self.normal, self.other_continuous, self.tagged_real]
        forms: list[Form] = [self.arithmetic, self.real_branch, self.real_let, self.real_call, self.collection]
        return self.one_of(forms if self.finite else [*drawn, *forms], depth)

    def positive(self, depth: int) -> Twin:
        if depth <= 0 or self.chance(0.4):
            return self.constant(0.3, 2)
        forms = ["(+ 0.3 (abs {0}))", "(exp (sin {0}))"]
        made = twin(self.pick(forms), self.real(depth - 1))
        return made if self.finite or self.chance(0.7) else both("(gamma 2 2)")

    def probability(self, depth: int) -> Twin:
        if depth <= 0 or self.chance(0.4):
            return self.constant(0.15, 0.85)
        match int(self.rng.integers(4 if self.finite else 5)):
            case 0:
                return twin("(logistic (sin {0}))", self.real(depth - 1))
            case 1:
                return twin("(if {0} 0.2 0.7)", self.boolean(depth - 1))
            case 2:
                return twin("(lookup (list 0.2 0.5 0.8) {0})", self.count(depth - 1))
            case 3:
                return twin("(/ (+ 1 {0}) 4)", self.count(depth - 1))
        return both("(beta 2 2)")

    def normal(self, depth: int) -> Twin:
        return twin("(normal {0} {1})", self.real(depth), self.positive(depth))

    def other_continuous(self, depth: int) -> Twin:
        real, positive, simple = self.real(depth), self.positive(depth), self.positive(0)
        forms = [
            "(gamma {1} 1.5)",
            "(beta {2} {1})",
            "(expon {1})",
            "(inv_gamma 3 {1})",
            "(student_t 4 {0} {2})",
            "(uniform_continuous -1 {1})",
            "(laplace {0} {1})",
            "(lognormal (sin {0}) 0.5)",
            "(lookup (multivariate_normal (vector {0} 0) {{COV}}) 0)",
            "(lookup (symmetric_dirichlet {1} 3) 1)",
            "(lookup (dirichlet (vector {1} 1)) 0)",
        ]
        return twin(self.pick(forms), real, positive, simple)

    def arithmetic(self, depth: int) -> Twin:
        forms = ["(+ {0} {1})", "(- {0} {1})", "(* 0.5 {0})", "(max {0} {1})", "(* (sin {0}) {1})", "(min {0} 1 {1})"]
        return twin(self.pick(forms), self.real(depth), self.real(depth))

    def real_branch(self, depth: int) -> Twin:
        a, b, c = self.real(depth), self.real(depth), self.real(depth)
        if self.chance(0.2):
            return twin("(cond ({0} {1}) ({2} {3}) (else {4}))", self.boolean(depth), a, self.boolean(depth), b, c)
        return twin("(if {0} {1} {2})", self.boolean(depth), a, b)

    def real_let(self, depth: int) -> Twin:
        return self.let("real", self.real, depth)

    def let(self, kind: str, make: Form, depth: int) -> Twin:
        name, value = self.fresh("l"), make(depth)
        outer, self.names = self.names, self.names.copy()
        self.names.bind(kind, both(name))
        body = make(depth)
        self.names = outer
        return twin(f"(let (({name} {{0}})) {{1}})", value, body)

    def real_call(self, depth: int) -> Twin:
        return self.call("real", depth, self.arithmetic if self.finite else self.normal)

    def call(self, kind: str, depth: int, otherwise: Form) -> Twin:
        calls = self.names.calls.get(kind)
        if not calls:
            return otherwise(depth)
        call = calls[int(self.rng.integers(len(calls)))]
        return self.applied(call, depth) if not call.cost or self.spend(call.cost) else otherwise(depth)

    def applied(self, call: Call, depth: int) -> Twin:
        """A call with arguments; a name in operator position is sometimes wrapped."""
        given = [self.argument(kind, depth) for kind in call.arguments]
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

    def argument(self, kind: str, depth: int) -> Twin:
        if kind == "index":
            # A key of few values, now and then a random one.
            return self.count(depth) if self.chance(0.4) else both(self.pick(["0", "1"]))
        if kind == "table":
            return both(self.pick(["0", "1"]))
        if kind == "probability":
            return self.probability(depth)
        return {"real": self.real, "boolean": self.boolean, "count": self.count}[kind](depth)

    def tagged_real(self, depth: int) -> Twin:
        if self.chance(0.5):
            forms = ["(normal {0} {1})", "(gamma 2 2)", "(uniform_continuous -1 2)"]
            choice = twin(self.pick(forms), self.real(0), self.positive(0))
            return twin("(scope_include 'r {0} {1})", self.block(), choice)
        return twin("(scope_include 's {0} {1})", self.block(), self.real(depth))

    def collection(self, depth: int) -> Twin:
        forms = [
            "(lookup (list {0} {1}) {2})",
            "(lookup (list 1 {0} {1}) {2})",
            "(dot (vector {0} {1}) (vector 0.5 -0.3))",
            "(first (pair {0} (list {1})))",
            "(* 0.1 (size (list {0} {1})))",
            "(fold + 0 (map (lambda (w) (* w 0.5)) (list {0} {1})))",
            "(lookup (dict 'a {0} \"a\" {1}) 'a)",
        ]
        return twin(self.pick(forms), self.real(depth), self.real(depth), both(self.pick(["0", "1"])))

    # ------------------------------------------------------------------------------------------------------- booleans

    def boolean(self, depth: int) -> Twin:
        if depth <= 0:
            return self.some_boolean(depth)
        forms: list[Form] = [
            self.flip,
            self.flip,
            self.comparison,
            self.connective,
            self.boolean_branch,
            self.boolean_call,
            self.tagged_boolean,
            self.some_boolean,
            self.random_operator,
            self.filtered,
            lambda a: self.let("boolean", self.boolean, a),
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
        return twin(self.pick(["(flip {0})", "(flip {0})", "(bernoulli {0})"]), self.probability(depth))

    def comparison(self, depth: int) -> Twin:
        if self.chance(0.4) and not self.finite:
            return twin("(< {0} {1})", self.real(depth), self.real(depth))
        labels = self.values("label")
        if len(labels) > 1 and self.chance(0.4):
            return twin("(= {0} {1})", self.mention(labels), self.mention(labels))
        form = self.pick(["(= {0} {1})", "(< {0} {1})", "(>= {0} {1})", "(contains (list 0 {0}) {1})"])
        return twin(form, self.count(depth), self.count(depth))

    def connective(self, depth: int) -> Twin:
        form = self.pick(["(not {0})", "(and {0} {1})", "(or {0} {1})"])
        return twin(form, self.boolean(depth), self.boolean(depth) if "{1}" in form else both(""))

    def boolean_branch(self, depth: int) -> Twin:
        return twin("(if {0} {1} {2})", self.boolean(depth), self.boolean(depth), self.boolean(depth))

    def boolean_call(self, depth: int) -> Twin:
        return self.call("boolean", depth, self.flip)

    def tagged_boolean(self, depth: int) -> Twin:
        return self.tagged_finite(self.flip(0))

    def random_operator(self, depth: int) -> Twin:
        """A random procedure as a value."""
        if not self.spend():
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
        if not self.spend(2):
            return self.some_boolean(depth)
        form = self.pick(
            [
                "(is_empty (filter (lambda (w) (flip {0})) (range 2)))",
                "(contains (map (lambda (w) (flip {0})) (range 2)) true)",
            ]
        )
        return twin(form, self.probability(0))

    # --------------------------------------------------------------------------------------------------------- counts

    def count(self, depth: int) -> Twin:
        """0, 1 or 2."""
        if depth <= 0:
            return self.mention([*self.values("count"), both(str(int(self.rng.integers(3))))])
        forms: list[Form] = [
            self.drawn_count,
            self.drawn_count,
            self.count_branch,
            self.count_call,
            self.tagged_count,
            self.computed_count,
            lambda a: self.let("count", self.count, a),
        ]
        return self.one_of(forms, depth)

    def drawn_count(self, depth: int) -> Twin:
        if not self.spend(1.5):
            return self.count(0)
        forms = [
            "(uniform_discrete 0 {0})",
            "(binomial 2 {1})",
            "(categorical (vector 0.2 0.3 0.5))",
            # Supports that depend on choices.
            "(uniform_discrete 0 (+ 1 {2}))",
            "(binomial {2} {1})",
            "(categorical (if {3} (list 0.4 0.6) (list 0.5 0.2 0.3)))",
        ]
        if not self.finite:
            forms.append("(min 2 (poisson 0.7))")
        form = self.pick(forms)
        return twin(
            form,
            both(self.pick(["2", "3"])),
            self.probability(depth) if "{1}" in form else both(""),
            self.count(depth) if "{2}" in form else both(""),
            self.boolean(depth) if "{3}" in form else both(""),
        )

    def count_branch(self, depth: int) -> Twin:
        return twin("(if {0} {1} {2})", self.boolean(depth), self.count(depth), self.count(depth))

    def count_call(self, depth: int) -> Twin:
        return self.call("count", depth, self.drawn_count)

    def tagged_count(self, depth: int) -> Twin:
        if not self.spend(1.5):
            return self.count(0)
        return self.tagged_finite(both(self.pick(["(uniform_discrete 0 3)", "(categorical (vector 0.6 0.4))"])))

    def computed_count(self, depth: int) -> Twin:
        form = self.pick(
            [
                "(min 2 (+ {0} {1}))",
                "(mod (+ {0} {1}) 3)",
                "(lookup (list {0} {1} 1) {0})",
                "(size (map (lambda (w) true) (range {0})))",
                "(size (filter (lambda (w) (< w {1})) (range {0})))",
                "(fold max 0 (list {0} {1}))",
            ]
        )
        return twin(form, self.count(0), self.count(depth) if "{1}" in form else both(""))

    def tagged_finite(self, choice: Twin) -> Twin:
        if not self.tags_finite or not choice.plain.startswith("("):
            return choice
        return twin("(scope_include 'd {0} {1})", self.block(), choice)
