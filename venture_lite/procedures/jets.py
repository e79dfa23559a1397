"""Numbers with their derivatives in several directions, which NumPy computes with as it does with arrays.

A formula over arrays that is written in NumPy's functions and operators takes jets in place of arrays as it stands: the
gradient of a density gives its second derivatives in this way. What would drop the derivatives, `float(x)`,
`np.asarray(x)` and any function without a rule here, raises NoRule.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from venture_lite.procedures.numeric import on_columns
from venture_lite.procedures.pullbacks import ELEMENTARY, TWO_OVER_SQRT_PI
from venture_lite.procedures.straight_line import digamma


class NoRule(Exception):
    """Derivatives would be lost."""


class Jet(np.lib.mixins.NDArrayOperatorsMixin):
    """An array and its derivatives, `tangent` (directions, *value.shape); immutable."""

    __slots__ = ("tangent", "value")

    def __init__(self, value: Any, tangent: np.ndarray) -> None:
        self.value: np.ndarray = np.asarray(value)
        self.tangent = tangent

    dtype = property(operator.attrgetter("value.dtype"))
    ndim = property(operator.attrgetter("value.ndim"))
    shape = property(operator.attrgetter("value.shape"))

    @property
    def T(self) -> Jet:
        axes = (0, *range(self.tangent.ndim - 1, 0, -1))
        return Jet(self.value.T, self.tangent.transpose(axes))

    def __array__(self, *arguments: Any, **named: Any) -> Any:
        raise NoRule("a jet as an array")

    def __float__(self) -> float:
        raise NoRule("a jet as a number")

    __bool__ = __int__ = __index__ = __float__

    def __getitem__(self, key: Any) -> Jet:
        keys = key if isinstance(key, tuple) else (key,)
        return Jet(self.value[key], self.tangent[(slice(None), *keys)])

    def __len__(self) -> int:
        return len(self.value)

    def reshape(self, *shape: Any) -> Jet:
        value = self.value.reshape(*shape)
        return Jet(value, self.tangent.reshape(len(self.tangent), *value.shape))

    def astype(self, kind: type, copy: bool = True) -> Jet:
        """Derivatives are floats."""
        return self

    def sum(self, axis: Any = None, keepdims: bool = False) -> Jet:
        axes = range(self.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        later = tuple(each + 1 if each >= 0 else each for each in axes)
        return Jet(self.value.sum(axis=axis, keepdims=keepdims), self.tangent.sum(axis=later, keepdims=keepdims))

    def max(self, axis: int | None = None, keepdims: bool = False) -> Jet:
        if axis is None:
            return self.reshape(-1)[int(self.value.argmax())]
        at = np.expand_dims(self.value.argmax(axis=axis), axis)
        found = Jet(
            np.take_along_axis(self.value, at, axis),
            np.take_along_axis(self.tangent, at[None], axis + 1 if axis >= 0 else axis),
        )
        return found if keepdims else Jet(found.value.squeeze(axis), found.tangent.squeeze(axis % self.ndim + 1))

    def __array_ufunc__(self, function: Any, method: str, *given: Any, **named: Any) -> Any:
        if method != "__call__" or "out" in named:
            raise NoRule(function.__name__)
        values = [value_of(x) for x in given]
        with np.errstate(all="ignore"):
            result = function(*values, **named)
            if function.__name__ in STEPS:
                return result
            if function in COMPARISONS:
                return _compared(function, *given)
            if function is np.absolute:
                return _where(given[0] > 0.0, given[0], -given[0])
            if function in CHOICES:
                return _where(CHOICES[function](*given), *given)
            if function is np.matmul:
                return _product(result, *given)
            slopes = RULES.get(function.__name__)
            if slopes is None:
                raise NoRule(function.__name__)
            parts = [
                slope(result, *values) * _widened(x.tangent, result.ndim)
                for slope, x in zip(slopes, given, strict=True)
                if x.__class__ is Jet
            ]
        return _jet(result, sum(parts[1:], parts[0]))

    def __array_function__(self, function: Any, types: Any, given: Any, named: Any) -> Any:
        apply = FUNCTIONS.get(function)
        if apply is None:
            raise NoRule(function.__name__)
        return apply(*given, **named)


def value_of(x: Any) -> Any:
    return x.value if x.__class__ is Jet else x


def _jet(value: Any, tangent: np.ndarray) -> Jet:
    return Jet(value, np.broadcast_to(tangent, (len(tangent), *np.shape(value))))


def _widened(tangent: np.ndarray, dimensions: int) -> np.ndarray:
    """With so many dimensions behind the directions, as broadcasting would add them before a value's."""
    missing = dimensions + 1 - tangent.ndim
    return tangent.reshape(len(tangent), *(1,) * missing, *tangent.shape[1:]) if missing else tangent


def _product(result: Any, left: Any, right: Any) -> Jet:
    """Of vectors and matrices."""
    parts = []
    if left.__class__ is Jet:
        parts.append(left.tangent @ value_of(right))
    if right.__class__ is Jet:
        if right.ndim == 1:
            parts.append((value_of(left) @ right.tangent[..., None])[..., 0])
        else:
            parts.append(value_of(left) @ right.tangent)
    return _jet(result, sum(parts[1:], parts[0]))


def _compared(function: Any, left: Any, right: Any) -> Any:
    """Equal numbers are told apart by where they are heading along the sum of all directions, so that what is smooth
    but made of pieces has at a seam the derivatives of one and the same side."""
    found, ties = function(value_of(left), value_of(right)), np.equal(value_of(left), value_of(right))
    if np.any(ties):
        ways = [x.tangent.sum(axis=0) if x.__class__ is Jet else 0.0 for x in (left, right)]
        found = np.where(ties, function(*ways), found)
    return found


def _where(condition: Any, then: Any, otherwise: Any) -> Any:
    value = np.where(condition, value_of(then), value_of(otherwise))
    parts = [_widened(x.tangent, value.ndim) if x.__class__ is Jet else 0.0 for x in (then, otherwise)]
    return _jet(value, np.where(condition, *parts))


def _stacked(parts: Sequence[Any], axis: int = 0) -> Jet:
    """Along an axis that is not negative."""
    count = next(len(part.tangent) for part in parts if part.__class__ is Jet)
    none = np.zeros((count, *np.shape(value_of(parts[0]))))
    tangents = [part.tangent if part.__class__ is Jet else none for part in parts]
    return Jet(np.stack([value_of(part) for part in parts], axis), np.stack(tangents, axis + 1))


def _clip(x: Any, low: Any, high: Any) -> Any:
    return np.minimum(np.maximum(x, low), high)


def _trigamma(y: Any, x: Any) -> Any:
    from scipy.special import polygamma

    return polygamma(1, x)


def _by_order_one(y: Any, x: Any) -> Any:
    from scipy.special import i0e

    # I1'(x) = I0(x) - I1(x) / x, and 1/2 at 0
    return np.where(x == 0, 0.5, i0e(x) - y / np.where(x == 0, 1.0, x) - np.sign(x) * y)


def _same(y: Any, *arguments: Any) -> float:
    return 1.0


def _none(y: Any, *arguments: Any) -> float:
    return 0.0


RULES: dict[str, tuple[Callable[..., Any], ...]] = {
    **{name: tuple(map(on_columns, slopes)) for name, slopes in ELEMENTARY.items()},
    "add": (_same, _same),
    "subtract": (_same, lambda y, *arguments: -1.0),
    "multiply": (lambda y, left, right: right, lambda y, left, right: left),
    "negative": (lambda y, x: -1.0,),
    # bounds of clipping
    "nextafter": (_same, _none),
    "fmod": (_same, _none),
    "psi": (_trigamma,),
    "gammaln": (lambda y, x: digamma(x),),
    "i1e": (_by_order_one,),
    "erfcx": (lambda y, x: 2.0 * x * y - TWO_OVER_SQRT_PI,),
}
"""Functions of NumPy and SciPy, by name -> the derivative by each argument, of (result, *arguments)."""

STEPS = frozenset(("floor", "rint", "isfinite", "isnan", "sign", "equal", "not_equal"))
"""Functions whose derivative is 0 wherever there is one: their results are plain."""

CHOICES: dict[Any, Any] = {np.maximum: operator.ge, np.minimum: operator.le}
"""Functions whose value is the first of their arguments where this holds of both."""

COMPARISONS = (np.less, np.less_equal, np.greater, np.greater_equal)


def _inner(of: str, left: Any, right: Any) -> Any:
    if of != "nd,nd->n":
        raise NoRule(of)
    return (left * right).sum(axis=1)


def _counted(index: np.ndarray, weights: Any, minlength: int) -> Jet:
    sums = np.zeros((max(minlength, int(index.max(initial=-1)) + 1), len(weights.tangent)))
    np.add.at(sums, index, weights.tangent.T)
    return Jet(np.bincount(index, weights.value, minlength), sums.T)


FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.clip: _clip,
    np.sum: Jet.sum,
    np.ndim: operator.attrgetter("ndim"),
    np.shape: operator.attrgetter("shape"),
    np.max: Jet.max,
    np.stack: _stacked,
    np.all: lambda x: x.value.all(),
    np.broadcast_to: lambda x, shape: x + np.zeros(shape),
    np.bincount: _counted,
    np.round: lambda x: x.value.round(),
    np.einsum: _inner,
}
