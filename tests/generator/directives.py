"""Directives of random programs, and the operations that a session performs between transitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from tests.generator.programs import Expressions, Program, Step

DEPTH = 3
# The covariance that generated programs refer to as {COV}.
PARAMETERS = {"COV": np.array([[1.0, 0.3], [0.3, 0.8]])}


@dataclass(slots=True)
class Directives:
    """Generates the steps of one program."""

    rng: np.random.Generator
    expressions: Expressions = field(init=False)
    counter: int = 0

    def __post_init__(self) -> None:
        self.expressions = Expressions(self.rng)

    def fresh(self, prefix: str) -> str:
        self.counter += 1
        return f"{prefix}{self.counter}"

    def step(self, kind: str, text: str) -> Step:
        return Step(kind, self.fresh("step"), text)

    def assume(self, name: str, expression: str) -> Step:
        return self.step("assume", f"[assume {name} {expression}]")

    def body(self, parameter: str, is_real: bool, make: Callable[[], str], memoized: bool) -> str:
        """A procedure's body, in which `parameter` is bound."""
        e = self.expressions
        outer = e.names, e.tags_finite, e.key
        e.names = e.names.copy()
        (e.names.reals if is_real else e.names.counts).append(parameter)
        e.tags_finite, e.key = memoized, parameter if memoized else None
        made = make()
        e.names, e.tags_finite, e.key = outer
        return made

    def assume_choice(self) -> Step:
        """A name bound directly to a random choice."""
        e, kind = self.expressions, int(self.rng.integers(3))
        name = self.fresh("x")
        if kind == 0:
            step = self.assume(name, f"(normal {e.real(1)} {e.positive(1)})")
            e.names.reals.append(name)
        elif kind == 1:
            step = self.assume(name, f"(flip {e.probability(1)})")
            e.names.booleans.append(name)
        else:
            step = self.assume(name, f"(binomial 3 {e.probability(1)})")
            e.names.counts.append(name)
        e.names.forceable.append((name, ("0.37", "true", "2")[kind]))
        return step

    def assume_value(self) -> Step:
        e, kind = self.expressions, int(self.rng.integers(3))
        name = self.fresh("v")
        make, names = ((e.real, e.names.reals), (e.boolean, e.names.booleans), (e.count, e.names.counts))[kind]
        step = self.assume(name, make(DEPTH))
        names.append(name)
        return step

    def assume_lambda(self) -> Step:
        e, name = self.expressions, self.fresh("f")
        step = self.assume(f"({name} a)", self.body("a", True, lambda: e.real(DEPTH), memoized=False))
        e.names.real_calls.append(f"({name} {{real}})")
        return step

    def assume_memo(self) -> Step:
        e, name, is_real = self.expressions, self.fresh("m"), self.rng.random() < 0.6
        make = e.real if is_real else e.boolean
        body = self.body("i", False, lambda: make(DEPTH - 1), memoized=True)
        step = self.assume(name, f"(mem (lambda (i) {body}))")
        (e.names.real_calls if is_real else e.names.boolean_calls).append(f"({name} {{count}})")
        return step

    def assume_recursion(self) -> Step:
        e, name = self.expressions, self.fresh("rec")
        if self.rng.random() < 0.5:
            step = self.assume(f"({name})", f"(if (flip {e.constant(0.55, 0.9)}) 0 (+ 1 ({name})))")
            e.names.count_calls.append(f"({name})")
        else:
            term = self.body("k", False, lambda: e.real(1), memoized=False)
            step = self.assume(f"({name} k)", f"(if (<= k 0) 0 (+ {term} ({name} (- k 1))))")
            e.names.real_calls.append(f"({name} {{count}})")
        return step

    def assume_maker(self) -> Step:
        e, kind = self.expressions, int(self.rng.integers(5))
        name = self.fresh("made")
        if kind == 0:
            maker = e.pick(["make_beta_bernoulli", "make_uc_beta_bernoulli"])
            step = self.assume(name, f"({maker} {e.positive(1)} {e.positive(1)})")
            e.names.boolean_calls.append(f"({name})")
            e.names.observable.append((f"({name})", ("true", "false")))
        elif kind == 1:
            step = self.assume(name, f"(make_sym_dir_mult {e.positive(1)} 3)")
            e.names.count_calls.append(f"({name})")
            e.names.observable.append((f"({name})", ("0", "1", "2")))
        elif kind == 2:
            step = self.assume(name, f"(make_gamma_poisson {e.positive(1)} 2)")
            e.names.count_calls.append(f"({name})")
            e.names.observable.append((f"({name})", ("0", "1", "3")))
        elif kind == 3:
            step = self.assume(name, f"(make_normal_inv_chi_sq {e.real(1)} 1 3 {e.positive(1)})")
            e.names.real_calls.append(f"({name})")
            e.names.observable.append((f"({name})", ("0.5", "-1.2")))
        else:
            step = self.assume(name, f"(mem (lambda (i) (make_beta_bernoulli {e.positive(0)} 1)))")
            e.names.boolean_calls.append(f"(({name} {{count}}))")
            e.names.observable.append((f"(({name} {e.count(1)}))", ("true", "false")))
        return step

    def assume_tables(self) -> list[Step]:
        """A Chinese restaurant, its customers, and something for each table."""
        e = self.expressions
        crp, z, dish = self.fresh("crp"), self.fresh("z"), self.fresh("dish")
        discount = " 0.2" if self.rng.random() < 0.4 else ""
        e.blocks += 1
        steps = [
            self.assume(crp, f"(make_crp {e.positive(1)}{discount})"),
            self.assume(z, f"(mem (lambda (i) (scope_include 'd (+ {1000 * e.blocks} i) ({crp}))))"),
        ]
        if self.rng.random() < 0.5:
            steps.append(self.assume(dish, f"(mem (lambda (t) {self.body('t', False, lambda: e.real(1), True)}))"))
            e.names.real_calls.append(f"({dish} ({z} {{count}}))")
            value = ("0.4", "-1")
        else:
            steps.append(self.assume(dish, f"(mem (lambda (t) (make_beta_bernoulli {e.positive(1)} 1)))"))
            e.names.boolean_calls.append(f"(({dish} ({z} {{count}})))")
            value = ("true", "false")
            e.names.observable.append((f"(({dish} ({z} 1)))", value))
            e.names.observable.append((f"(({dish} ({z} 2)))", value))
        e.names.count_calls.append(f"({z} {{count}})")
        return steps

    def density(self, depth: int) -> str:
        return f"(normal {self.expressions.real(depth)} {self.expressions.positive(depth)})"

    def observe(self) -> list[Step]:
        """Evidence on a choice, found directly, in a branch, through a call, a memoized call or a maker."""
        e = self.expressions
        number = e.constant(-2, 2)
        match int(self.rng.integers(8)):
            case 0:
                expression, value = f"(flip {e.probability(2)})", e.pick(["true", "false", "1"])
            case 1:
                expression, value = f"(poisson {e.positive(2)})", e.pick(["0", "1", "3"])
            case 2:
                expression, value = f"(if {e.boolean(2)} {self.density(1)} {self.density(2)})", number
            case 3:
                inner = f"(let ((a {e.real(2)})) (normal a {e.positive(0)}))"
                expression, value = f"(if {e.boolean(1)} {inner} {self.density(1)})", number
            case 4:
                name = self.fresh("g")
                body = self.body("a", True, lambda: self.density(1), memoized=False)
                return [
                    self.assume(f"({name} a)", body),
                    self.step("observe", f"[observe ({name} {e.real(1)}) {number}]"),
                    self.step("observe", f"[observe ({name} {e.real(1)}) {e.constant(-2, 2)}]"),
                ]
            case 5:
                name = self.fresh("o")
                body = self.body("i", False, lambda: self.density(1), memoized=True)
                return [
                    self.assume(name, f"(mem (lambda (i) {body}))"),
                    self.step("predict", f"[predict (+ ({name} 0) ({name} 1))]"),
                    self.step("observe", f"[observe ({name} 1) {number}]"),
                    self.step("observe", f"[observe ({name} 2) {e.constant(-2, 2)}]"),
                ]
            case 6 if e.names.observable:
                expression, values = e.names.observable[int(self.rng.integers(len(e.names.observable)))]
                value = e.pick(list(values))
            case _:
                expression, value = self.density(DEPTH - 1), number
        return [self.step("observe", f"[observe {expression} {value}]")]

    def predict(self) -> Step:
        e = self.expressions
        make = (e.real, e.boolean, e.count)[int(self.rng.integers(3))]
        return self.step("predict", f"[predict {make(DEPTH)}]")


def random_program(seed: int) -> Program:
    """The program of this seed."""
    rng = np.random.default_rng(seed)
    make = Directives(rng)
    kinds: list[Callable[[], Step | list[Step]]] = [
        make.assume_choice,
        make.assume_value,
        make.assume_value,
        make.assume_lambda,
        make.assume_memo,
        make.assume_recursion,
        make.assume_maker,
        make.assume_tables,
        make.observe,
        make.observe,
        make.predict,
    ]
    steps = [make.assume_choice()]
    for _ in range(int(rng.integers(3, 9))):
        made = kinds[int(rng.integers(len(kinds)))]()
        steps.extend([made] if isinstance(made, Step) else made)
    steps.extend(make.observe())
    return Program(tuple(steps), random_operations(make, steps))


def random_operations(make: Directives, steps: list[Step]) -> tuple[Step, ...]:
    """Operations in an order that is always legal: nothing that is referred to is forgotten."""
    rng, operations = make.rng, []
    removable = [step for step in steps if step.kind in ("observe", "predict")]
    for _ in range(int(rng.integers(2, 6))):
        kind = int(rng.integers(4))
        if kind == 0 and removable:
            step = removable.pop(int(rng.integers(len(removable))))
            operations.append(Step("forget", step.label, f"[forget {step.label}]"))
        elif kind == 1:
            name, value = make.expressions.names.forceable[0]
            operations.append(make.step("force", f"[force {name} {value}]"))
        elif kind == 2:
            # The first of an observation's steps may bind a procedure for it.
            new = make.observe()
            operations.extend(new)
            removable.extend(step for step in new if step.kind != "assume")
        else:
            operations.append(make.predict())
            removable.append(operations[-1])
    return tuple(operations)
