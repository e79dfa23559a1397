"""`{X[n]}`: what the braces of a program mean, for one value and for a whole loop at once.

Positions count from 1. Over a loop an index expression is evaluated for all passes together, as arrays: a million rows
of `X[n]` are one slice of X, copied once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from venture_lite.errors import ParameterError, Span, in_passes, nearest
from venture_lite.language.syntax import Index, IndexArithmetic, IndexName, IndexNumber, IndexOf
from venture_lite.program.supplied import Parameters
from venture_lite.values import Dictionary, freeze, from_python, is_value, show

Passes = Mapping[str, np.ndarray]
"""Loop variable -> its value in each pass, int64 of one length."""


def names_in(index: Index) -> Iterator[IndexName]:
    """Every name in an index expression, with its place."""
    match index:
        case IndexName():
            yield index
        case IndexOf(base=base, positions=positions):
            for part in (base, *positions):
                yield from names_in(part)
        case IndexArithmetic(left=left, right=right):
            yield from names_in(left)
            yield from names_in(right)


def index_names(index: Index) -> frozenset[str]:
    """The same, without places."""
    return frozenset(found.name for found in names_in(index))


def constant_index(index: Index, parameters: Mapping[str, Any], passes: Mapping[str, int] | None = None) -> Any:
    """The value of an index expression where every loop variable has one value."""
    match index:
        case IndexNumber(value=value):
            return value
        case IndexName(name=name, span=span):
            if passes is not None and name in passes:
                return passes[name]
            if isinstance(parameters, Parameters):
                parameters.note_whole(name)
            return refuse_missing(from_python(_parameter(name, parameters, span)), span)
        case IndexArithmetic(operator=operator, left=left, right=right, span=span):
            sides = [_number(constant_index(side, parameters, passes), side.span) for side in (left, right)]
            return _ARITHMETIC[operator](*sides)
        case IndexOf(base=base, positions=positions):
            _refuse_unknown_positions(positions, parameters, passes or {})
            at = [_whole(constant_index(position, parameters, passes), position.span) for position in positions]
            found = _deep(data := _raw(base, parameters), at, index)
            _note_rows(base, parameters, data, at[0], bool(passes))
            return found
    raise ParameterError("not an index expression", index.span)


def _refuse_unknown_positions(
    positions: Iterable[Index], parameters: Mapping[str, Any], passes: Mapping[str, Any]
) -> None:
    """Raises ParameterError for a name that indexes data and is bound outside the model by nothing."""
    for position in positions:
        for name in sorted(index_names(position)):
            if name not in passes and name not in parameters:
                hint = (
                    f"an argument of a procedure cannot stand in braces: pass it the datum, or write "
                    f"(lookup {{DATA}} (- {name} 1)); a parameter is given by {name}=... from Python, -p {name}=..."
                )
                raise ParameterError(f"{name} is neither the variable of a loop nor a parameter", position.span, hint)


def index_column(index: Index, parameters: Mapping[str, Any], passes: Passes) -> np.ndarray | list[Any]:
    """An index expression in every pass: (passes,) or (passes, dims) float64, int64 or bool, else a list."""
    match index:
        case IndexName(name=name) if name in passes:
            return passes[name]
        case IndexArithmetic(operator=operator, left=left, right=right):
            sides = [index_column(side, parameters, passes) for side in (left, right)]
            if not all(isinstance(side, np.ndarray) and side.dtype.kind in "if" for side in sides):
                raise ParameterError("arithmetic in braces takes numbers", index.span)
            return np.asarray(_ARITHMETIC[operator](*sides))
        case IndexOf(base=base, positions=positions) if not index_names(base) & passes.keys():
            _refuse_unknown_positions(positions, parameters, passes)
            at = [_positions(index_column(position, parameters, passes), position) for position in positions]
            gathered = _gather(data := _raw(base, parameters), at, index)
            _note_rows(base, parameters, data, at[0], True)
            return gathered
    count = len(next(iter(passes.values())))
    value = constant_index(index, parameters)
    if isinstance(value, (bool, int, float)):
        return np.full(count, value)
    return [value] * count


def _note_rows(base: Index, parameters: Mapping[str, Any], data: Any, positions: Any, in_loop: bool) -> None:
    """Which rows of the data were read, for who supplied them."""
    if isinstance(base, IndexName) and isinstance(parameters, Parameters):
        parameters.note_rows(base.name, len(data), positions, in_loop)


def _gather(data: Any, positions: list[np.ndarray], index: IndexOf) -> np.ndarray | list[Any]:
    """Rows `positions[0]` (and columns `positions[1]`, ...) of the data, copied."""
    first, *others = positions
    _refuse_out_of_range(data, first, index, index.positions[0])
    if not isinstance(data, np.ndarray) or data.dtype.kind not in "biuf" or data.ndim < 1:
        if others:
            return in_passes(lambda i: _deep(data, [int(p[i]) for p in positions], index), range(len(first)))
        return _listed(data, first, index)
    if not others:
        contiguous = len(first) > 0 and first[-1] - first[0] == len(first) - 1 and bool((np.diff(first) == 1).all())
        taken = data[first[0] - 1 : first[-1]] if contiguous else data[first - 1]
        if taken.ndim > 2:
            return [freeze(np.array(row, dtype=np.float64)) for row in taken]
        return _checked_copy(taken, index, positions)
    if data.ndim < len(positions):
        raise ParameterError(f"{_name(index)} has {data.ndim} dimensions, indexed with {len(positions)}", index.span)
    for axis, (at, written) in enumerate(zip(others, index.positions[1:], strict=True), start=1):
        _refuse_out_of_range(np.moveaxis(data, axis, 0), at, index, written)
    return _checked_copy(data[tuple(at - 1 for at in positions)], index, positions)


def _checked_copy(taken: np.ndarray, index: IndexOf, positions: list[np.ndarray]) -> np.ndarray:
    """A copy that the trace may own, as float64, int64 or bool; NaN is refused with its place."""
    kind = "f" if taken.ndim > 1 else taken.dtype.kind
    copy: np.ndarray = np.array(taken, dtype={"f": np.float64, "b": np.bool_}.get(kind, np.int64))
    if copy.dtype.kind == "f" and not np.isfinite(copy.sum()) and np.isnan(copy).any():
        at, *inside = (int(i) for i in np.argwhere(np.isnan(copy))[0])
        place = _place([*(int(position[at]) for position in positions), *(i + 1 for i in inside)])
        error = _missing_value(_name(index), place, index.span)
        error.position = at
        raise error
    return copy


def _place(positions: list[int]) -> str:
    """Where in the data, from 1, as a person counts."""
    row, *column = positions
    return f"row {row}" + (f", column {column[0]}" if column else "")


def _listed(data: Any, positions: np.ndarray, index: IndexOf) -> np.ndarray | list[Any]:
    def value_in(at: int) -> Any:
        return refuse_missing(from_python(data[positions[at] - 1]), index.span, f"row {positions[at]}", _name(index))

    values = in_passes(value_in, range(len(positions)))
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {bool, int, float}:
        return np.array(values)
    if kinds == {int, float} and all(abs(value) <= 2**53 for value in values if type(value) is int):
        return np.array(values, dtype=np.float64)
    rows = [len(v) if isinstance(v, tuple) and all(type(i) in (int, float) for i in v) else -1 for v in values]
    if rows and min(rows) > 0:
        if len(set(rows)) > 1:
            message = f"the rows of {_name(index)} differ in length ({min(rows)} and {max(rows)})"
            raise ParameterError(message, index.span)
        return np.array(values, dtype=np.float64)
    return values


def _deep(data: Any, positions: list[int], index: IndexOf) -> Any:
    value = data
    for position, written in zip(positions, index.positions, strict=True):
        value = _element(value, position, index, written)
    found = from_python(value)
    if isinstance(found, np.ndarray) and np.isnan(found).any():
        inside = [int(i) + 1 for i in np.argwhere(np.isnan(found))[0]]
        raise _missing_value(_name(index), _place([*positions, *inside]), index.span)
    return refuse_missing(found, index.span, _place(positions), _name(index))


def refuse_missing(value: Any, span: Span, place: str = "", name: str = "") -> Any:
    """The value, unless it is NaN, holds a NaN, or is None."""
    missing = value is None or (isinstance(value, float) and value != value)
    if isinstance(value, np.ndarray) and np.isnan(value).any():
        place = place or _place([int(i) + 1 for i in np.argwhere(np.isnan(value))[0]])
        missing = True
    if isinstance(value, tuple):
        for position, item in enumerate(value, start=1):
            refuse_missing(item, span, place=place or f"row {position}", name=name)
    if isinstance(value, Dictionary):
        for key, item in value.items():
            refuse_missing(item, span, place=place or f"entry {show(key)}", name=name)
    name = name or span.text.strip("{}")
    if missing:
        raise _missing_value(name, place, span)
    if not is_value(value):
        where = f" in {place}" if place else ""
        if isinstance(value, (Real, Decimal)):
            message = f"the value of {name}{where} is too large for a float"
            raise ParameterError(message, span, "scale it, or pass its logarithm")
        message = f"the value of {name}{where} is a {type(value).__name__}, which the language has no values for"
        raise ParameterError(message, span, "pass numbers, strings, or lists of them")
    return value


def _missing_value(name: str, place: str, span: Span) -> ParameterError:
    return ParameterError(
        f"the value of {name}{' in ' + place if place else ''} is missing (NaN)",
        span,
        "drop the row before you pass the data (pandas: df.dropna(), polars: df.drop_nulls(), NumPy: x[~np.isnan(x)]), "
        "or leave out its observe and predict the value instead",
    )


def _raw(base: Index, parameters: Mapping[str, Any]) -> Any:
    """The indexed object itself, not copied."""
    match base:
        case IndexName(name=name, span=span):
            return _parameter(name, parameters, span)
    return constant_index(base, parameters)


def _parameter(name: str, parameters: Mapping[str, Any], span: Span) -> Any:
    if name not in parameters:
        hint = parameters.hint(name) if isinstance(parameters, Parameters) else None
        hint = hint or nearest(name, parameters)
        hint = hint or f"give it a value: {name}=... from Python, -p {name}=VALUE or -d {name}=FILE on the command line"
        raise ParameterError(f"the program needs a parameter {name}", span, hint)
    try:
        return parameters[name]
    except ParameterError as error:
        error.at(span)
        raise


def _element(data: Any, position: int, index: IndexOf, written: Index) -> Any:
    _refuse_out_of_range(data, np.array([position]), index, written)
    return data[position - 1]


def _refuse_out_of_range(data: Any, positions: np.ndarray, index: IndexOf, written: Index) -> None:
    if not hasattr(data, "__len__") or isinstance(data, (str, dict)) or getattr(data, "ndim", 1) == 0:
        raise ParameterError(f"{_name(index)} is a single value and cannot be indexed", index.span)
    size = len(data)
    wrong = (positions < 1) | (positions > size)
    if wrong.any():
        which = int(np.argmax(wrong))
        counted = f"{size} row{'' if size == 1 else 's'}, counted from 1"
        message = f"index {int(positions[which])} is out of range: {_name(index)} has {counted}"
        error = ParameterError(message, written.span)
        error.position = which
        raise error


def _positions(column: np.ndarray | list[Any], written: Index) -> np.ndarray:
    whole = isinstance(column, np.ndarray) and (column.dtype.kind != "f" or bool((abs(column) < 2**63).all()))
    if not isinstance(column, np.ndarray) or not whole or (column.dtype.kind == "f" and (column % 1.0).any()):
        raise ParameterError("an index must be a whole number", written.span)
    return column.astype(np.int64, copy=False)


def _whole(value: Any, span: Span) -> int:
    if isinstance(value, (int, float)) and value % 1 == 0:
        return int(value)
    raise ParameterError(f"an index must be a whole number, got {value}", span)


def _number(value: Any, span: Span) -> Any:
    if not isinstance(value, (int, float)):
        raise ParameterError("arithmetic in braces takes numbers", span)
    return value


def _name(index: IndexOf) -> str:
    return index.base.span.text


_ARITHMETIC = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
