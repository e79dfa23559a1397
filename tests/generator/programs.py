"""Random well-typed expressions, and what a random program is.

Every expression is generated for a type (real, boolean, count) and a depth, from names that earlier steps bound, so it
evaluates without error from every state that inference can reach: arguments of densities stay in their domains,
recursions end with probability one, keys of blocks are constants or memoized arguments. Scope `r` holds continuous
choices only, `d` choices of finite support only, `s` anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on a model; `label` names its directive."""

    # assume, observe, predict, force or forget.
    kind: str
    label: str
    # The directive, without its label.
    text: str


@dataclass(frozen=True, slots=True)
class Program:
    """Directives, then operations that come between transitions."""

    directives: tuple[Step, ...]
    operations: tuple[Step, ...]

    @property
    def text(self) -> str:
        return "\n".join(step.text for step in self.directives)


@dataclass(slots=True)
class Names:
    """What earlier steps bound, by type."""

    reals: list[str] = field(default_factory=list)
    booleans: list[str] = field(default_factory=list)
    counts: list[str] = field(default_factory=list)
    # Calls by the type of their value; `{}` stands for an argument.
    real_calls: list[str] = field(default_factory=list)
    boolean_calls: list[str] = field(default_factory=list)
    count_calls: list[str] = field(default_factory=list)
    # Applications that can be observed, with their possible values.
    observable: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    # Names bound directly to a random choice, with a value to force.
    forceable: list[tuple[str, str]] = field(default_factory=list)

    def copy(self) -> Names:
        return Names(**{name: list(getattr(self, name)) for name in self.__slots__})


@dataclass(slots=True)
class Expressions:
    """Generates expressions of each type. `names` grows as directives are made."""

    rng: Rng
    names: Names = field(default_factory=Names)
    # Bodies that run many times carry no tags of scope `d`: gibbs would enumerate all of them at once.
    tags_finite: bool = True
    blocks: int = 0
    # The offset of block keys: the memoized argument where there is one.
    key: str | None = None

    def pick(self, options: list[str]) -> str:
        return options[int(self.rng.integers(len(options)))]

    def constant(self, low: float, high: float) -> str:
        return f"{self.rng.uniform(low, high):.2f}"

    def block(self) -> str:
        """A block's key, sometimes shared."""
        if self.blocks == 0 or self.rng.random() < 0.85:
            self.blocks += 1
        number = int(self.rng.integers(self.blocks)) if self.rng.random() < 0.1 else self.blocks
        return str(number) if self.key is None else f"(+ {1000 * number} {self.key})"

    def real(self, depth: int) -> str:
        if depth <= 0:
            return self.pick([*self.names.reals, *self.names.counts, self.constant(-2, 2)])
        forms: list[Callable[[int], str]] = [
            self.normal,
            self.normal,
            self.other_continuous,
            self.arithmetic,
            self.real_branch,
            self.real_let,
            self.real_call,
            self.tagged_real,
            self.collection,
        ]
        return forms[int(self.rng.integers(len(forms)))](depth - 1)

    def positive(self, depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.4:
            return self.constant(0.3, 2)
        real = self.real(depth - 1)
        return self.pick([f"(+ 0.3 (abs {real}))", f"(exp (sin {real}))", "(gamma 2 2)"])

    def probability(self, depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.5:
            return self.constant(0.1, 0.9)
        return self.pick(
            [f"(logistic (sin {self.real(depth - 1)}))", f"(if {self.boolean(depth - 1)} 0.2 0.7)", "(beta 2 2)"]
        )

    def normal(self, depth: int) -> str:
        return f"(normal {self.real(depth)} {self.positive(depth)})"

    def other_continuous(self, depth: int) -> str:
        return self.pick(
            [
                f"(gamma {self.positive(depth)} 1.5)",
                f"(beta {self.positive(0)} {self.positive(depth)})",
                f"(expon {self.positive(depth)})",
                f"(inv_gamma 3 {self.positive(depth)})",
                f"(student_t 4 {self.real(depth)} {self.positive(0)})",
                f"(uniform_continuous -1 {self.positive(depth)})",
                f"(lookup (multivariate_normal (vector {self.real(depth)} 0) {{COV}}) 0)",
                f"(lookup (symmetric_dirichlet {self.positive(depth)} 3) 1)",
            ]
        )

    def arithmetic(self, depth: int) -> str:
        a, b = self.real(depth), self.real(depth)
        return self.pick([f"(+ {a} {b})", f"(- {a} {b})", f"(* 0.5 {a})", f"(max {a} {b})", f"(* (sin {a}) {b})"])

    def real_branch(self, depth: int) -> str:
        a, b, c = self.real(depth), self.real(depth), self.real(depth)
        if self.rng.random() < 0.2:
            return f"(cond ({self.boolean(depth)} {a}) ({self.boolean(depth)} {b}) (else {c}))"
        return f"(if {self.boolean(depth)} {a} {b})"

    def real_let(self, depth: int) -> str:
        name = f"l{int(self.rng.integers(1000))}"
        value = self.real(depth)
        outer, self.names = self.names, self.names.copy()
        self.names.reals.append(name)
        body = self.real(depth)
        self.names = outer
        return f"(let (({name} {value})) {body})"

    def real_call(self, depth: int) -> str:
        if not self.names.real_calls:
            return self.normal(depth)
        call = self.pick(self.names.real_calls)
        return call.replace("{real}", self.real(depth)).replace("{count}", self.count(depth))

    def tagged_real(self, depth: int) -> str:
        if self.rng.random() < 0.5:
            choice = self.pick(
                [f"(normal {self.real(0)} {self.positive(0)})", "(gamma 2 2)", "(uniform_continuous -1 2)"]
            )
            return f"(scope_include 'r {self.block()} {choice})"
        return f"(scope_include 's {self.block()} {self.real(depth)})"

    def collection(self, depth: int) -> str:
        a, b = self.real(depth), self.real(depth)
        return self.pick(
            [
                f"(lookup (list {a} {b}) {self.pick(['0', '1'])})",
                f"(dot (vector {a} {b}) (vector 0.5 -0.3))",
                f"(first (pair {a} (list {b})))",
                f"(* 0.1 (size (list {a} {b})))",
            ]
        )

    def boolean(self, depth: int) -> str:
        if depth <= 0:
            return self.pick([*self.names.booleans, f"(flip {self.constant(0.2, 0.8)})"])
        a, b = depth - 1, depth - 1
        forms: list[Callable[[], str]] = [
            lambda: f"(flip {self.probability(a)})",
            lambda: f"(bernoulli {self.probability(a)})",
            lambda: f"(< {self.real(a)} {self.real(b)})",
            lambda: f"(= {self.count(a)} {self.count(b)})",
            lambda: f"(not {self.boolean(a)})",
            lambda: f"({self.pick(['and', 'or'])} {self.boolean(a)} {self.boolean(b)})",
            lambda: self.call(self.names.boolean_calls, a, f"(flip {self.probability(a)})"),
            lambda: self.tagged_finite(f"(flip {self.constant(0.2, 0.8)})"),
        ]
        return forms[int(self.rng.integers(len(forms)))]()

    def count(self, depth: int) -> str:
        """A small integer, 0 or more."""
        if depth <= 0:
            return self.pick([*self.names.counts, str(int(self.rng.integers(3)))])
        a = depth - 1
        forms: list[Callable[[], str]] = [
            lambda: f"(uniform_discrete 0 {self.pick(['2', '3'])})",
            lambda: f"(binomial 2 {self.probability(a)})",
            lambda: "(categorical (vector 0.2 0.3 0.5))",
            lambda: f"(poisson {self.constant(0.3, 1.5)})",
            lambda: f"(if {self.boolean(a)} {self.count(a)} {self.count(a)})",
            lambda: self.call(self.names.count_calls, a, "(binomial 2 0.4)"),
            lambda: self.tagged_finite(self.pick(["(uniform_discrete 0 3)", "(categorical (vector 0.6 0.4))"])),
        ]
        return forms[int(self.rng.integers(len(forms)))]()

    def call(self, calls: list[str], depth: int, otherwise: str) -> str:
        return self.pick(calls).replace("{count}", self.count(depth)) if calls else otherwise

    def tagged_finite(self, choice: str) -> str:
        return f"(scope_include 'd {self.block()} {choice})" if self.tags_finite else choice
