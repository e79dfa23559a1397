"""Directives of every kind, right and wrong alike: all procedures on all kinds of values, in any order.

Where the programs of `directives.py` mean something, these need not: arguments fit their procedures in about three of
four calls, names may be taken, labels unknown, kernels out of place. What a session must do with them is the same: run
them, or refuse them and stay as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from venture_lite.procedures.record import REQUIRED, Maker
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.session.standard import NAMES

NUMBERS = (
    "0",
    "1",
    "2",
    "3",
    "-1",
    "0.5",
    "0.25",
    "1.5",
    "-2.5",
    "1e-300",
    "1e300",
    "9007199254740993",
    "-0.0",
    "1e12",
)
LITERALS = (*NUMBERS, "true", "false", '"x"', '""', "'red", "'x", "(list)", "(dict)")
OPERATORS = ("+", "*", "flip", "normal", "first", "size", "make_crp", "bernoulli", "categorical", "not")
SELECTORS = ("one", "all", "each", "ordered", "(ordered_range 0 2)", "1", "0", "'red", '"x"')
KERNELS = (
    "(mh {at} 3)", "(mh {at} 2)", "(mh {at} 'drift 0.5 2)", "(mh {at} 'drift 0.5 'precondition 1)", "(gibbs {at} 1)",
    "(slice {at} 1 8 1)", "(rejection {at} 1)", "(hmc {at} 0.1 3 1)", "(mala {at} 0.1 1)",
    "(pgibbs {scope} ordered 3 1)", "(pgibbs {scope} ordered 3 'ancestor 1)", "(subsampled_mh {at} 2 0.1 1)",
    "(flymc {at} auto 'map 0.1 'drift 0.1 1)", "(flymc {at} auto 'untuned 0.1 'slice 0.5 1)",
    "(mh {at} (lambda (x) (normal x 1)) 1)", "(cycle ((mh {at} 1) (gibbs {at} 1)) 1)",
    "(mixture (0.5 (mh {at} 1) 0.5 (gibbs default one 1)) 1)", "(anneal {scope} linear 1 (mh default one 1))",
    "(repeat 2 (do (mh {at} 1) (collect {value})))", "(collect {value})", "(print {value})",
)  # fmt: skip
"""Kernels, `{at}` a scope and a block, `{value}` an expression."""


@dataclass(slots=True)
class DirectiveGrammar:
    """Writes one directive after another; remembers the names and labels that it has used."""

    rng: np.random.Generator
    names: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    # what a body may refer to besides
    bound: list[str] = field(default_factory=list)
    count: int = 0

    # ---------------------------------------------------------------------------------------------- expressions

    def pick(self, items: Sequence[str]) -> str:
        return items[int(self.rng.integers(len(items)))]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def expression(self, depth: int) -> str:
        """A value of any kind, or none."""
        if depth <= 0 or self.chance(0.12):
            return self.leaf()
        makes: tuple[Callable[[int], str], ...] = (
            self.call, self.call, self.call, self.call, self.named_call, self.form, self.procedure, self.collection,
        )  # fmt: skip
        return makes[int(self.rng.integers(len(makes)))](depth - 1)

    def leaf(self) -> str:
        if self.bound and self.chance(0.4):
            return self.pick(self.bound)
        if self.names and self.chance(0.4):
            return self.pick(self.names)
        if self.chance(0.1):
            return self.pick((*PROCEDURES, *NAMES))
        return self.pick(LITERALS)

    def call(self, depth: int) -> str:
        """A procedure of the language, most often with arguments that it takes."""
        record = PROCEDURES[self.pick(tuple(PROCEDURES))]
        given = [a for a in record.arguments if a.default is REQUIRED or self.chance(0.4)]
        arguments = [self.argument(a.domain.name, depth) for a in given]
        rest = getattr(record, "rest", None)
        if rest is not None:
            arguments += [self.argument(rest.name, depth) for _ in range(int(self.rng.integers(3)))]
        if self.chance(0.04):
            arguments.append(self.expression(depth))
        made = f"({' '.join([record.name, *arguments])})"
        if isinstance(record, Maker) and self.chance(0.7):
            return f"({' '.join([made, *(self.argument(a.domain.name, depth) for a in record.applied)])})"
        return made

    def argument(self, domain: str, depth: int) -> str:
        if self.chance(0.12):
            return self.expression(depth)
        if self.chance(0.25) and self.names:
            return self.pick(self.names)
        return self.pick(FITTING.get(domain, LITERALS))

    def named_call(self, depth: int) -> str:
        """A name or a value, applied."""
        operator = self.leaf() if self.chance(0.7) else self.procedure(depth)
        count = int(self.rng.integers(3))
        return f"({' '.join([operator, *(self.expression(depth) for _ in range(count))])})"

    def with_bound(self, name: str, make: Callable[[int], str], depth: int) -> str:
        self.bound.append(name)
        made = make(depth)
        self.bound.pop()
        return made

    def procedure(self, depth: int) -> str:
        """A lambda, a memoized procedure, a maker's product, a procedure by its name."""
        kind = int(self.rng.integers(6))
        if kind < 2:
            return f"(lambda (i) {self.with_bound('i', self.expression, depth)})"
        if kind == 2:
            return f"(lambda () {self.expression(depth)})"
        if kind == 3:
            return f"(mem (lambda (i) {self.with_bound('i', self.expression, depth)}))"
        if kind == 4:
            makers = [name for name, record in PROCEDURES.items() if isinstance(record, Maker)]
            record = PROCEDURES[self.pick(makers)]
            return f"({' '.join([record.name, *(self.argument(a.domain.name, depth) for a in record.arguments)])})"
        return self.pick(OPERATORS)

    def collection(self, depth: int) -> str:
        head = self.pick(("list", "vector", "pair", "dict", "map (lambda (i) i)", "map", "filter", "fold", "matrix"))
        count = int(self.rng.integers(4))
        return f"({' '.join([head, *(self.expression(depth) for _ in range(count))])})"

    def form(self, depth: int) -> str:
        def e() -> str:
            return self.expression(depth)

        match int(self.rng.integers(9)):
            case 0 | 1:
                return f"(if {self.predicate(depth)} {e()} {e()})"
            case 2:
                return f"(let ((a {e()})) {self.with_bound('a', self.expression, depth)})"
            case 3:
                return f"(letrec ((f {self.procedure(depth)})) {self.with_bound('f', self.expression, depth)})"
            case 4:
                return f"(begin {e()} {e()})"
            case 5:
                return f"({self.pick(('and', 'or'))} {self.predicate(depth)} {e()})"
            case 6:
                return f"(cond ({self.predicate(depth)} {e()}) (else {e()}))"
            case 7:
                return f"({self.pick(('tag', 'scope_include'))} {self.pick(SCOPES)} {self.leaf()} {e()})"
            case _:
                return f"(quote {self.pick(('red', '(1 x)', '()'))})"

    def predicate(self, depth: int) -> str:
        return self.argument("boolean", depth)

    # ------------------------------------------------------------------------------------------------ directives

    def directive(self) -> str:
        """The text of one."""
        makes: tuple[Callable[[], str], ...] = (
            self.assume, self.assume, self.assume, self.observe, self.observe, self.observe, self.predict, self.predict,
            self.loop, self.loop, self.sample, self.force, self.reference, self.reference, self.infer, self.infer,
            self.other, self.weighed,
        )  # fmt: skip
        return makes[int(self.rng.integers(len(makes)))]()

    def labelled(self, text: str) -> str:
        if not self.chance(0.5):
            return text
        self.count += 1
        label = f"label{self.count}" if not self.labels or self.chance(0.9) else self.pick(self.labels)
        self.labels.append(label)
        return f"{label}: {text}"

    def assume(self) -> str:
        self.count += 1
        name = f"n{self.count}" if not self.names or self.chance(0.95) else self.pick(self.names)
        make = self.procedure if self.chance(0.4) else self.expression
        text = f"[assume {name} {make(3)}]"
        if name not in self.names:
            self.names.append(name)
        return self.labelled(text) if self.chance(0.3) else text

    def observed(self) -> str:
        """An expression and a value for it."""
        if self.chance(0.3):
            return f"{self.named_call(1)} {self.value()}"
        return f"{self.call(2)} {self.value()}"

    def value(self) -> str:
        kind = "(list 0 1)", "(vector 0.5 0.5)", "(matrix (list 1 0) (list 0 1))", "(lambda (i) i)", "(+ 1 1)", "flip"
        return self.pick(kind) if self.chance(0.15) else self.pick(LITERALS)

    def observe(self) -> str:
        return self.labelled(f"[observe {self.observed()}]")

    def weighed(self) -> str:
        return self.labelled(
            f"[factor {self.argument('real', 2)}]" if self.chance(0.5) else f"[condition {self.predicate(2)}]"
        )

    def predict(self) -> str:
        return self.labelled(f"[predict {self.expression(3)}]")

    def loop(self) -> str:
        """Rows that are loaded together, often more than are weighed one by one."""
        last = self.pick(("1", "3", "30", "0"))
        self.bound.append("t")
        body = self.pick(("observe", "observe", "observe", "predict", "infer", "both", "factor"))
        if body == "observe":
            text = f"[observe {self.observed()}]"
        elif body == "predict":
            text = f"[predict {self.expression(2)}]"
        elif body == "factor":
            text = f"[factor {self.expression(2)}]"
        elif body == "both":
            text = f"[observe {self.observed()}] [observe {self.observed()}] [predict {self.expression(1)}]"
        else:
            last = "2"
            text = f"[observe {self.observed()}] {self.infer()}"
        self.bound.pop()
        return self.labelled(f"for t in 1...{last}: {text}")

    def sample(self) -> str:
        return f"[sample {self.expression(3)}]"

    def force(self) -> str:
        return f"[force {self.leaf() if self.chance(0.7) else self.named_call(1)} {self.value()}]"

    def reference(self) -> str:
        known = [*self.labels, *self.names, "1", "2", "3", "5", "8"]
        keyword = self.pick(("forget", "forget", "freeze", "report"))
        position = f" {self.pick(('1', '2', '17'))}" if self.chance(0.2) else ""
        return f"[{keyword} {self.pick(known)}{position}]"

    def infer(self) -> str:
        scope = self.pick(("default", "default", *SCOPES))
        at = f"{scope} {self.pick(SELECTORS)}"
        return f"[infer {self.pick(KERNELS).format(at=at, scope=scope, value=self.expression(2))}]"

    def other(self) -> str:
        if self.chance(0.5):
            return "[get_logscore]"
        bare = self.expression(1)
        return self.pick(("[list_directives]", f"[define d{self.count} {bare}]", bare))


SCOPES = ("'s", "'red", '"x"', "1")

FITTING: dict[str, tuple[str, ...]] = {
    "real": (*NUMBERS, "(normal 0 1)"),
    "positive": ("1", "2", "0.5", "3", "1e-300", "1e300", "(gamma 2 2)"),
    "non-negative": ("0", "1", "0.5", "(gamma 2 2)"),
    "probability": ("0", "1", "0.5", "0.25", "(beta 1 1)"),
    "positive probability": ("1", "0.5", "0.25", "(beta 2 2)"),
    "discount": ("0", "0.5"),
    "integer": ("0", "1", "2", "-1", "(binomial 3 0.5)"),
    "count": ("0", "1", "2", "3", "(poisson 2)"),
    "positive integer": ("1", "2", "3", "(+ 1 (binomial 2 0.5))"),
    "order": ("1", "2"),
    "length": ("0", "1", "2", "3", "(binomial 3 0.5)"),
    "part": ("0", "1", "(list 0 1)"),
    "boolean": ("true", "false", "0", "1", "(flip 0.5)", "(flip)"),
    "numeric": ("1", "0.5", "(vector 1 2)", "(matrix (list 1 0) (list 0 1))", "(normal 0 1)", "true"),
    "numbers": ("(list 1 2)", "(vector 1 2)", "(list (normal 0 1) 2)"),
    "vector": ("(vector 1 2)", "(list 1 2)", "(vector (normal 0 1) 2)"),
    "scores": ("(vector 1 2)", "(list 0 1 2)"),
    "coordinates": ("1", "(vector 1 2)"),
    "point": ("1", "2", "(vector 1 2)", "(normal 0 1)"),
    "positive vector": ("(vector 1 2)", "(list 1 1 1)"),
    "probability vector": ("(list 0.5 0.5)", "(vector 0.25 0.75)", "(dirichlet (list 1 1))"),
    "matrix": ("(matrix (list 1 0) (list 0 1))", "(list (list 1 2) (list 3 4))"),
    "stochastic matrix": ("(matrix (list 0.5 0.5) (list 0 1))",),
    "positive definite": ("(matrix (list 1 0) (list 0 1))", "(matrix (list 2 1) (list 1 2))", "(wishart 3 (eye 2))"),
    "list": ("(list)", "(list 1 2)", "(list (list 1) 'x)", "(list (normal 0 1) flip)"),
    "sequence": ("(list 1 2)", "(vector 1 2)", "(list)", "(list true 0.5 'x)"),
    "collection": ("(list 1 2)", "(vector 1 2)", '"xy"', "(dict 1 2)", "(list flip (lambda (i) i))"),
    "joinable": ("(list 1 2)", "(vector 1 2)", '"xy"'),
    "dictionary": ("(dict 1 2)", "(dict 'x flip)", "(dict \"x\" (normal 0 1))"),
    "string": ('"x"', '""', '"xy"'),
    "name": ("'x", '"x"', "'red"),
    "key": ("0", "1", "'x", "(binomial 1 0.5)"),
    "mean function": ("0", "1", "(gp_linear_mean 1)", "(lambda (i) 0)"),
    "covariance": ("(gp_squared_exponential 1 1)", "(+ (gp_noise 1) (gp_constant 1))", "(lambda (i) 0)"),
}  # fmt: skip
"""What an argument of each domain may be; of domains that do not stand here, anything."""
