"""A density as a straight line of operations, recorded by calling it once.

A density has no `if`: it is the same operations whatever the numbers are. So one call with `Node`s in place of numbers
records all that it does; equal operations are recorded once. `compiled` turns the nodes that are asked for back into
Python source, over single numbers or over columns.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import numpy as np

from venture_lite.errors import InternalError
from venture_lite.procedures import numeric
from venture_lite.procedures.numeric import COLUMNS

MOST_TEXTS = 1000
"""Functions that are kept by their text."""

_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "negative": operator.neg,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "&": operator.and_, "|": operator.or_,
}  # fmt: skip

digamma = numeric.of_scipy("psi")
"""The derivative of lgamma."""


def i0e_slope(x: Any) -> Any:
    """The derivative of i0e for x not negative, relative to i0e: I1(x) / I0(x) - 1.

    From 1000 on, where nearly all digits of the difference cancel, by the asymptotic series, whose next term is
    13 / (32 x^5) (Abramowitz and Stegun, 9.7.1).
    """
    from scipy.special import i0e, i1e

    large = np.maximum(x, 1000.0)
    series = -(0.5 + (0.125 + (0.125 + 25.0 / 128.0 / large) / large) / large) / large
    return np.where(x > 1000.0, series, i1e(x) / i0e(x) - 1.0)[()]


def split_slope(k: float, n: float, p: float) -> float:
    """The derivative of log_split by k, with n = k + m: digamma(n + 1) - digamma(k + 1) + log p.

    From 16 on by digamma(x + 1) - log x, a series whose next term is 1 / (240 x^8), and log(n p / k), which is small
    where the others cancel.
    """
    if k > 16.0 and n * p > 0.0:
        return float(_digamma_rest(n) - _digamma_rest(k) + numeric.log_ratio(n * p, k))
    return float(digamma(n + 1.0) - digamma(k + 1.0) + numeric.log(p))


def _split_slope_of_columns(k: Any, n: Any, p: Any) -> Any:
    large = np.maximum(k, 16.0)
    slope = _digamma_rest(np.maximum(n, 16.0)) - _digamma_rest(large) + COLUMNS["log_ratio"](n * p, large)
    exact = digamma(n + 1.0) - digamma(k + 1.0) + np.log(p)
    return np.where(np.greater(k, 16.0) & np.greater(n * p, 0.0), slope, exact)


def rest_slope(x: float) -> float:
    """The derivative of stirling_rest: digamma(x + 1) - log x."""
    return float(_digamma_rest(x) if x > 16.0 else digamma(x + 1.0) - numeric.log(x))


def _rest_slope_of_columns(x: Any) -> Any:
    return np.where(np.greater(x, 16.0), _digamma_rest(np.maximum(x, 16.0)), digamma(x + 1.0) - np.log(x))


def _digamma_rest(x: Any) -> Any:
    square = 1.0 / (x * x)
    return 0.5 / x - square * (1.0 / 12.0 - square * (1.0 / 120.0 - square / 252.0))


def _by_shape(name: str, position: int) -> Callable[..., Any]:
    """The derivative of a smooth function by a positive argument, by differences of fourth order: for functions of
    whose derivative there is no closed form."""
    function = COLUMNS[name]

    def slope(*numbers: Any) -> Any:
        given = [np.asarray(number, dtype=np.float64) for number in numbers]
        step = 1e-3 * given[position]

        def at(steps: int) -> Any:
            return function(*given[:position], given[position] + steps * step, *given[position + 1 :])

        with np.errstate(all="ignore"):
            found = (8.0 * (at(1) - at(-1)) - (at(2) - at(-2))) / (12.0 * step)
            return found if np.ndim(found) else float(found)

    return slope


log_gammainc_by_shape = _by_shape("log_gammainc", 0)
log_gammaincc_by_shape = _by_shape("log_gammaincc", 0)
log_betainc_by_a = _by_shape("log_betainc", 0)
log_betainc_by_b = _by_shape("log_betainc", 1)
log_betaincc_by_a = _by_shape("log_betaincc", 0)
log_betaincc_by_b = _by_shape("log_betaincc", 1)

_SHAPE_SLOPES = {
    "log_gammainc_by_shape": log_gammainc_by_shape,
    "log_gammaincc_by_shape": log_gammaincc_by_shape,
    "log_betainc_by_a": log_betainc_by_a,
    "log_betainc_by_b": log_betainc_by_b,
    "log_betaincc_by_a": log_betaincc_by_a,
    "log_betaincc_by_b": log_betaincc_by_b,
}

COLUMN_NAMES: dict[str, Any] = {
    **COLUMNS,
    **_SHAPE_SLOPES,
    "dot": lambda x, y: float(x.dot(y)),
    "total": lambda x: float(np.add.reduce(x)),
    "repeated": lambda x, rows: np.full(rows, x, dtype=np.float64),
    "digamma": digamma,
    "i0e_slope": i0e_slope,
    "split_slope": _split_slope_of_columns,
    "rest_slope": _rest_slope_of_columns,
}
SCALAR_NAMES: dict[str, Any] = {name: getattr(numeric, name) for name in COLUMNS} | {
    "digamma": digamma, "i0e_slope": i0e_slope, "split_slope": split_slope,
    "rest_slope": rest_slope, **_SHAPE_SLOPES,
}  # fmt: skip


class Recording:
    """The operations recorded so far; grows only."""

    def __init__(self) -> None:
        self.nodes: dict[tuple[Any, ...], Node] = {}

    def input(self, position: int) -> Node:
        return self.record("input", position)

    def record(self, operation: str, *operands: Any) -> Node:
        # 1, 1.0 and True are equal as keys, and so are 0.0 and -0.0: their class and their text tell them apart
        key = (operation, *((x.__class__, id(x) if x.__class__ is Node else x or repr(x)) for x in operands))
        node = self.nodes.get(key)
        if node is None:
            node = self.nodes[key] = Node(self, len(self.nodes), operation, operands)
        return node


def _condition(operation: str) -> Callable[[Any, Any], Any]:
    """The method of a node that compares it, or joins it with another condition."""
    return lambda node, other: node._with(operation, other)


class Node:
    """The result of one operation; immutable."""

    __slots__ = ("operands", "operation", "place", "recording")

    def __init__(self, recording: Recording, place: int, operation: str, operands: tuple[Any, ...]) -> None:
        self.recording = recording
        # position in the order of recording, which is an order of evaluation
        self.place = place
        self.operation = operation
        self.operands = operands

    def _with(self, operation: str, other: Any) -> Any:
        return self.recording.record(operation, self, other) if _is_operand(other) else NotImplemented

    def _after(self, operation: str, other: Any) -> Any:
        return self.recording.record(operation, other, self) if _is_operand(other) else NotImplemented

    # what is left out, or done in another order, changes no digit: signs move outwards, powers of two are multiplied

    def __add__(self, other: Any) -> Any:
        if _is(other, 0.0):
            return self
        if other is self:
            return 2.0 * self
        if _is_negative(other):
            return self - other.operands[0]
        return other - self.operands[0] if _is_negative(self) and _is_operand(other) else self._with("+", other)

    def __radd__(self, other: Any) -> Any:
        if _is_negative(self) and _is_operand(other):
            return other - self.operands[0]
        return self if _is(other, 0.0) else self._after("+", other)

    def __sub__(self, other: Any) -> Any:
        if _is_negative(other):
            return self + other.operands[0]
        return self if _is(other, 0.0) else self._with("-", other)

    def __rsub__(self, other: Any) -> Any:
        if _is_negative(self) and _is_operand(other):
            return other + self.operands[0]
        return -self if _is(other, 0.0) else self._after("-", other)

    def __mul__(self, other: Any) -> Any:
        if _is_negative(other):
            return -(self * other.operands[0])
        if _is_negative(self) and _is_operand(other):
            return -(self.operands[0] * other)
        return self if _is(other, 1.0) else -self if _is(other, -1.0) else self._with("*", other)

    def __rmul__(self, other: Any) -> Any:
        if _is_negative(self) and _is_operand(other):
            return -other * self.operands[0]
        if self.operation == "*" and _is_power_of_two(other) and _is_power_of_two(self.operands[0]):
            return (other * self.operands[0]) * self.operands[1]
        return self if _is(other, 1.0) else -self if _is(other, -1.0) else self._after("*", other)

    def __truediv__(self, other: Any) -> Any:
        if _is_negative(other):
            return -(self / other.operands[0])
        if _is_negative(self) and _is_operand(other):
            return -(self.operands[0] / other)
        return self if _is(other, 1.0) else self._with("/", other)

    def __rtruediv__(self, other: Any) -> Any:
        if _is_negative(self) and _is_operand(other):
            return -other / self.operands[0]
        return self._after("/", other)

    def __neg__(self) -> Any:
        if self.operation == "*" and self.operands[0].__class__ is float:
            return -self.operands[0] * self.operands[1]
        return self.operands[0] if self.operation == "negative" else self.recording.record("negative", self)

    __lt__ = _condition("<")
    __le__ = _condition("<=")
    __gt__ = _condition(">")
    __ge__ = _condition(">=")
    __eq__ = _condition("==")
    __ne__ = _condition("!=")
    __and__ = __rand__ = _condition("&")
    __or__ = __ror__ = _condition("|")

    def __bool__(self) -> bool:
        raise InternalError("a density has no `if`, `and` or `or`: it uses `where`, `&` and `|`")

    __hash__ = None  # type: ignore[assignment]


def _is_operand(other: Any) -> bool:
    return other.__class__ is Node or isinstance(other, (int, float))


def _is(other: Any, number: float) -> bool:
    return isinstance(other, (int, float)) and other == number


def _is_negative(value: Any) -> bool:
    return value.__class__ is Node and value.operation == "negative"


def _is_power_of_two(value: Any) -> bool:
    """One of either sign, of which products with others lose no digit."""
    return value.__class__ is float and 2.0**-64 <= abs(value) <= 2.0**64 and abs(math.frexp(value)[0]) == 0.5


def recorded(name: str) -> Callable[..., Any]:
    """A function of the numeric namespace, of nodes; of constants alone, its value."""
    function = SCALAR_NAMES[name]

    def call(*operands: Any) -> Any:
        for operand in operands:
            if operand.__class__ is Node:
                return operand.recording.record(name, *operands)
        return function(*operands)

    return call


@functools.cache
def recordable(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function over the numeric namespace, of nodes."""
    return numeric.rebound(function, {name: recorded(name) for name in SCALAR_NAMES})


def compiled(nodes: Iterable[Any], count: int, columns: bool, draws: bool = False) -> Callable[..., tuple[Any, ...]]:
    """A function of `count` inputs that returns the values of the nodes, over columns or over single numbers; of nodes
    that draw, a function of a generator and these."""
    results = list(nodes)
    lines = [f"    {_name(node)} = {text_of(node, _name, columns)}\n" for node in needed(results)]
    inputs = ", ".join((*(("rng",) if draws else ()), *(f"i{position}" for position in range(count))))
    returned = "".join(f"{_name(result)}, " for result in results)
    return _executed(f"def line({inputs}):\n{''.join(lines)}    return ({returned})\n", columns)


@functools.lru_cache(MOST_TEXTS)
def _executed(text: str, columns: bool) -> Callable[..., tuple[Any, ...]]:
    """The function that a text defines: many blocks have one text."""
    namespace = {**(COLUMN_NAMES if columns else SCALAR_NAMES), "inf": math.inf, "nan": math.nan}
    exec(text, namespace)
    function: Callable[..., tuple[Any, ...]] = namespace["line"]
    return function


def needed(results: Sequence[Any], known: Container[int] = ()) -> list[Node]:
    """What the results depend on, in order of evaluation, inputs apart and what is known, by its place."""
    found: dict[int, Node] = {}
    open_ = [result for result in results if result.__class__ is Node]
    while open_:
        node = open_.pop()
        if node.operation != "input" and node.place not in found and node.place not in known:
            found[node.place] = node
            open_.extend(operand for operand in node.operands if operand.__class__ is Node)
    return [found[place] for place in sorted(found)]


def applied(operation: str, *operands: Any) -> Any:
    """An operation on nodes, or on numbers alone; of nodes what changes no digit is left out."""
    if operation == "where" and operands[0].__class__ is not Node:
        return operands[1] if operands[0] else operands[2]
    return _OPERATORS[operation](*operands) if operation in _OPERATORS else recorded(operation)(*operands)


def again(results: Sequence[Any], inputs: Sequence[Any], apply: Callable[..., Any]) -> list[Any]:
    """Recorded results of other inputs: `apply(operation, *operands)` makes each operation anew."""
    found: dict[int, Any] = {}

    def of(value: Any) -> Any:
        if value.__class__ is not Node:
            return value
        return inputs[value.operands[0]] if value.operation == "input" else found[value.place]

    for node in needed(list(results)):
        found[node.place] = apply(node.operation, *map(of, node.operands))
    return list(map(of, results))


def depending(results: list[Any], starts: Callable[[Node], bool]) -> set[int]:
    """The places of those operations on the way to the results that depend on one of the starts, these included."""
    found: set[int] = set()
    for node in needed(results):
        if starts(node) or any(operand.__class__ is Node and operand.place in found for operand in node.operands):
            found.add(node.place)
    return found


def _name(x: Any) -> str:
    if x.__class__ is not Node:
        return f"({x!r})"
    return f"i{x.operands[0]}" if x.operation == "input" else f"t{x.place}"


def text_of(node: Node, name: Callable[[Any], str], columns: bool) -> str:
    """An operation as Python over operands with these names."""
    if node.operation == "draw":
        _, method, *arguments = node.operands
        return f"rng.{method}({', '.join(map(name, arguments))})"
    names = [name(operand) for operand in node.operands]
    match node.operation:
        case "negative":
            return f"-{names[0]}"
        case "where" if not columns:
            return f"{names[1]} if {names[0]} else {names[2]}"
        case "clip" if not columns:
            # no call: nearly every draw passes here
            x, low, high = names
            return f"{low} if {x} < {low} else {high} if {x} > {high} else {x}"
        case operation if operation.isidentifier():
            return f"{operation}({', '.join(names)})"
        case operation:
            return f"{names[0]} {operation} {names[1]}"
