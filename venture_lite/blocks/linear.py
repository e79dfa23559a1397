"""The linear predictor of a group of choices: which part of their arguments is linear in the principals.

A likelihood such as `(bernoulli (logistic (dot w x)))` reads the principals through one number for each row that is an
affine function of them: features times coefficients, plus an offset. The text says so: `dot`, sums, and products with
what does not depend on the principals keep a value affine. This module goes over the operations that a choice's
references are, rows at once, and reads the features off them; what it cannot read so it refuses with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.blocks.affine import (
    Affine,
    NotLinear,
    PrincipalRows,
    Scores,
    Stack,
    Whole,
    aligned,
    by_row,
    is_affine,
    scaled,
)
from venture_lite.errors import KernelError
from venture_lite.interpreter.readers import ColumnsText
from venture_lite.interpreter.references import Operations, References, Value, row_given
from venture_lite.interpreter.sources import named_node
from venture_lite.procedures.columns import RowByRow, kinds_of
from venture_lite.procedures.predictor import LinearPredictor
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.straight_line import Node, depending, needed
from venture_lite.program.code import Code, Kind
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.nodes import node_at, row_of, site_of
from venture_lite.trace.table import Column, NotColumnar, length, listed

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

MOST_UNITS = 2**27
"""Numbers (a gigabyte) that the features of `lookup` may take."""


OTHERS = "mh with 'drift, hmc, or subsampled_mh without 'proxy"
"""What moves a block that is not read linearly."""


@dataclass(frozen=True, slots=True)
class Linear:
    """`eta = features @ coefficients + offset`, the coefficients being the principals one after the other.

    For a vector predictor the principals are the rows of one matrix (K, F), or that matrix, and `eta = features @
    coefficients.T + offset`.
    """

    predictor: LinearPredictor
    # (rows, F), each row in one piece: a few of them are gathered quickly
    features: np.ndarray
    # (rows,), or (rows, K) for a vector predictor; one number where all rows share it
    offset: Any
    # values (rows, ...) of the choices
    values: np.ndarray
    # the other arguments of the record in their order, each (rows, ...) or one value; None in the predictor's place
    others: tuple[Any, ...]
    # which of these differ between rows
    lifted: tuple[bool, ...]
    # columns that all of this was read from
    columns: tuple[Column, ...]

    @property
    def count(self) -> int:
        return len(self.values)

    def eta(self, coefficients: np.ndarray, rows: Any = slice(None)) -> np.ndarray:
        """The predictors of some rows; `coefficients` (F,), or (K, F) for a vector predictor."""
        # `take` gathers rows in two thirds of the time that an index needs
        features = self.features.take(rows, axis=0) if isinstance(rows, np.ndarray) else self.features[rows]
        found: np.ndarray = features @ coefficients.T
        offset = self.offset
        if isinstance(offset, np.ndarray) and offset.ndim == found.ndim:
            found += offset[rows]
        elif not isinstance(offset, float) or offset != 0.0:
            found += offset
        return found

    def is_as(self, other: Linear) -> bool:
        """Whether another reading of the trace found the same likelihoods."""
        pairs = [(self.features, other.features), (self.offset, other.offset), (self.values, other.values)]
        pairs.extend(zip(self.others, other.others, strict=True))
        is_alike = self.predictor is other.predictor and self.count == other.count
        return is_alike and all(a is None or np.array_equal(a, b) for a, b in pairs)

    def given(self, eta: Any, rows: Any = slice(None)) -> tuple[Any, ...]:
        """The arguments of the predictor's functions, the value first."""
        taken = [other[rows] if up else other for other, up in zip(self.others, self.lifted, strict=True)]
        taken[self.predictor.argument] = eta
        return (self.values[rows], *taken)


def linear_predictor(trace: Trace, site: int, rows: Any, principals: Sequence[int], moving: Iterable[int]) -> Linear:
    """How the choices of a site read the principals, over a slice or an index array of rows; `moving` are the nodes
    whose values change with the principals, these among them.

    Raises KernelError where the record has no linear predictor, or where it is no affine function of the principals.
    """
    code = trace.program.site_code[site]
    slot = code.slots[trace.program.site_slot[site]]
    record = slot.record
    known = record.predictor if isinstance(record, Random) else None
    if known is None or not isinstance(record, Random):
        name = "this call" if record is None else record.name
        raise KernelError(f"{name} has no linear predictor", slot.span, OTHERS)
    reading = _Reading(trace, code, rows, principals, moving)
    try:
        arguments = [reading.references.read(code, reading.row, argument) for argument in slot.arguments]
        for position, value in enumerate(arguments):
            if position != known.argument and reading.depends(value):
                raise NotLinear(f"{record.arguments[position].name} of {record.name} depends on the block too")
        eta = reading.through_link(arguments[known.argument], known.inverse_link)
        features, offset = reading.design(reading.affine(eta), known.is_vector)
        arguments[known.argument] = None
        read, lifted = zip(*reading.plain(arguments), strict=True)
        # true counts one
        others = tuple([each + 0 if kinds_of([each]) == {bool} else each for each in read])
        values = np.asarray(trace.column(site).gather(rows))
    except NotLinear as error:
        raise KernelError(f"{record.name} does not read the block linearly: {error}", slot.span, OTHERS) from None
    except (NotColumnar, RowByRow):
        raise KernelError(f"the arguments of {record.name} are no columns of numbers", slot.span, OTHERS) from None
    return Linear(known, features, offset, values, others, lifted, (trace.column(site), *reading.operations.columns))


class _Reading:
    """What the references of a group of rows read, and the values of it: plain, or affine in the principals."""

    def __init__(self, trace: Trace, code: Code, rows: Any, principals: Sequence[int], moving: Iterable[int]) -> None:
        self.trace = trace
        self.rows = rows
        self.count = length(rows)
        self.principals = list(principals)
        self.operations = Operations()
        self.row = self.operations.record("row", "r0")
        self.references = References(trace, self.operations, self._known)
        self._given = {self.row.place: listed(rows)}
        # site -> the rows in which its values move
        self._moving: dict[int, list[int]] = {}
        for node in moving:
            self._moving.setdefault(site_of(node), []).append(row_of(node))

    def depends(self, value: Value) -> bool:
        """Whether a value reads a principal."""
        return bool(self._depending([value]))

    def _depending(self, values: list[Value]) -> set[int]:
        return depending(values, lambda node: node.operation in ("principal", "in_some_rows", "unread"))

    # ------------------------------------------------------------------------------------------------ reading

    def _known(self, site: int, at: Value) -> Value:
        """What a stored slot that moves in any row is read as: a principal, or what it is computed from."""
        column = self.trace.column(site)
        stored = column.site if isinstance(column, BorrowedColumn) else site
        if stored not in self._moving:
            return None
        rows: Any = np.atleast_1d(row_given(self.operations, at, self._given))
        read: Any = rows
        if isinstance(column, BorrowedColumn):
            read = row_of(column.edges.array[rows])
        moves = np.isin(read, self._moving[stored])
        if not moves.any():
            return None
        code, slot, _ = self.trace.decode(node_at(site, 0))
        item = code.slots[slot]
        if isinstance(item.record, Deterministic) and (at is self.row or at.__class__ is int):
            arguments = [self.references.read(code, at, argument) for argument in item.arguments]
            return self.operations.call(item.record, site, at, arguments)
        principal, *others = {self._principal(node_at(stored, row)) for row in np.unique(read[moves]).tolist()}
        if others:
            return self.operations.record("unread", "rows call different parts of the block")
        if principal < 0:
            return self.operations.record("unread", "it is read in a way that the text does not show to be linear")
        if moves.all():
            return self.operations.record("principal", principal)
        # it gives the offset, too
        self.operations.column(column)
        return self.operations.record("in_some_rows", principal, self.operations.object((moves, column.gather(rows))))

    def _principal(self, node: int) -> int:
        """The principal whose value a node has: itself, or the result of the family that it calls; -1 for none."""
        packed = self.trace.edge(node)
        if packed >= 0 and self.trace.kind(node) is Kind.CALL:
            node = named_node(self.trace, self.trace.program.codes[site_of(packed)], row_of(packed))
        return node if node in self.principals else -1

    def through_link(self, value: Value, inverse_link: str | None) -> Value:
        """The predictor inside `(exp eta)` and the like."""
        if inverse_link is None:
            return value
        if value.__class__ is Node and value.operation == "call":
            record, _, row = self.operations.calls[value.place]
            if record.name == inverse_link and row is self.row:
                return value.operands[1]
        raise NotLinear(f"the argument is not ({inverse_link} ...) of a predictor")

    def plain(self, values: Sequence[Value]) -> list[tuple[Any, bool]]:
        """The values of what does not depend on the principals: over rows (rows, ...), or one that all share; and
        whether they differ between rows."""
        text = ColumnsText(self.operations)
        try:
            found = text.reader(values)(self.rows)
        except Exception:
            # what cannot be computed for all rows at once
            raise NotColumnar from None
        return list(zip(found, map(text.is_lifted, values), strict=True))

    def affine(self, eta: Value) -> Any:
        """A value of `affine.py` where it depends on the principals, else plain numbers: one, one for each row, or
        vectors (1 or rows, D)."""
        places = self._depending([eta])
        nodes = [node for node in needed([eta]) if node.place in places]
        read = [part for node in nodes for part in node.operands if part.__class__ is Node]
        plain = [part for part in (*read, eta) if part.__class__ is Node and part.place not in places]
        found: dict[int, Any] = {}
        for part, (value, is_lifted) in zip(plain, self.plain(plain), strict=True):
            numbers = _numbers(value)
            # a vector that all rows share, not a number for each
            found[part.place] = numbers[None] if numbers.ndim == 1 and not is_lifted else numbers
        for node in nodes:
            found[node.place] = self._evaluated(node, found)
        return found[eta.place] if eta.__class__ is Node else eta

    def _evaluated(self, node: Node, found: dict[int, Any]) -> Any:
        if node.operation == "principal":
            return Whole(node.operands[0])
        if node.operation == "unread":
            raise NotLinear(node.operands[0])
        if node.operation == "in_some_rows":
            principal, number = node.operands
            moves, values = self.operations.objects[number]
            terms = self._times(self._number(Whole(principal)), moves)
            return self._plus(terms, np.where(moves, 0.0, _numbers(values)))
        record, _, row = self.operations.calls[node.place]
        arguments = [found[part.place] if part.__class__ is Node else _numbers(part) for part in node.operands[1:]]
        if row.__class__ is int and any(isinstance(part, (Scores, Stack)) for part in arguments):
            raise NotLinear("scores are computed elsewhere")
        return self._apply(record, arguments)

    # ---------------------------------------------------------------------------------------------- arithmetic

    def _apply(self, record: Deterministic, arguments: list[Any]) -> Any:
        match record.name, arguments:
            case "dot", [one, other]:
                return self._dot(one, other)
            case "matmul", [Whole(node=node, scale=scale), other] if not is_affine(other) and np.ndim(scale) < 2:
                return Scores(node, scaled(other, scale))
            case "matrix", [PrincipalRows()]:
                return arguments[0]
            case (("matrix" | "list"), parts) if all(map(self._is_row, parts)):
                return PrincipalRows(tuple(part.node for part in parts))
            case "matmul", [PrincipalRows(nodes=nodes), other] if not is_affine(other):
                return Stack(tuple(Affine({node: other}, 0.0) for node in nodes))
            case "vector", parts:
                return Stack(tuple(parts))
            # a default stands last, None where none is given
            case "lookup", [Whole(node=node, scale=scale), position, _] if not is_affine(position):
                return Affine({node: scaled(self._units(node, position), scale)}, 0.0)
            case "+", [first, *rest]:
                for item in rest:
                    first = self._plus(first, item)
                return first
            case "-", [only]:
                return self._times(only, -1.0)
            case "-", [first, other]:
                return self._plus(first, self._times(other, -1.0))
            case "*", [first, *rest]:
                for item in rest:
                    first = self._times(item, first) if is_affine(item) else self._times(first, item)
                return first
            case "/", [first, other] if not is_affine(other):
                return self._times(first, 1.0 / other)
        raise NotLinear(f"{record.name} of it is not linear")

    def _is_row(self, item: Any) -> bool:
        return isinstance(item, Whole) and item.is_bare() and np.ndim(self.trace.value(item.node)) == 1

    def _units(self, node: int, positions: Any) -> np.ndarray:
        """Features (rows, D) or (D,) that choose one coordinate."""
        value = self.trace.value(node)
        if np.ndim(value) != 1:
            raise NotLinear("lookup of a matrix is not linear")
        size = np.size(value)
        if np.size(positions) * size > MOST_UNITS:
            raise NotLinear("as features, the positions that are looked up would take too much memory")
        if not ((positions >= 0) & (positions < size)).all():
            raise NotLinear("some positions have no element")
        found = np.zeros((*np.shape(positions), size))
        np.put_along_axis(found, np.asarray(positions, dtype=np.int64)[..., None], 1.0, axis=-1)
        return found

    def _dot(self, one: Any, other: Any) -> Affine:
        if isinstance(other, Whole):
            one, other = other, one
        if not isinstance(one, Whole) or is_affine(other):
            raise NotLinear("dot of it is not linear")
        return Affine({one.node: scaled(other, one.scale)}, 0.0)

    def _number(self, item: Any) -> Affine:
        """A scalar principal as an affine number."""
        match item:
            case Affine():
                return item
            case Whole(node=node) if not self._is_wide(node):
                return Affine({node: np.ones(1)}, 0.0)
        raise NotLinear("a vector stands where a number is expected")

    def _is_wide(self, node: int) -> bool:
        return isinstance(self.trace.value(node), (np.ndarray, tuple))

    def _plus(self, one: Any, other: Any) -> Any:
        if not is_affine(one):
            one, other = other, one
        if not is_affine(one):
            return np.add(*aligned(one, other))
        if isinstance(one, Scores) and not is_affine(other):
            return Scores(one.node, one.features, one.offset + by_row(other))
        one = self._number(one)
        if not is_affine(other):
            return Affine(one.terms, one.offset + other)
        other = self._number(other)
        terms = dict(one.terms)
        for node, coefficients in other.terms.items():
            terms[node] = terms[node] + coefficients if node in terms else coefficients
        return Affine(terms, one.offset + other.offset)

    def _times(self, one: Any, factor: Any) -> Any:
        if not is_affine(one):
            return np.multiply(*aligned(one, factor))
        if is_affine(factor):
            raise NotLinear("two parts of the block are multiplied")
        by = _numbers(factor)
        match one:
            case Whole(node=node, scale=scale) if self._is_wide(node):
                return Whole(node, np.multiply(*aligned(scale, by)))
            case Scores(node=node, features=features, offset=offset) if by.ndim < 2:
                return Scores(node, scaled(features, by), offset * by_row(by))
        number = self._number(one)
        return Affine({node: scaled(part, by) for node, part in number.terms.items()}, by * number.offset)

    # ------------------------------------------------------------------------------------------------- design

    def design(self, found: Any, is_vector: bool) -> tuple[np.ndarray, Any]:
        """Features (rows, F) in the order of the principals, and the offset."""
        if is_vector:
            if isinstance(found, Stack):
                return self._stacked(found)
            if not isinstance(found, Scores) or self.principals != [found.node]:
                raise NotLinear("scores are read as (matmul W x) of one matrix")
            offset = found.offset
            return self._wide(found.features), offset[0] if np.ndim(offset) == 2 and len(offset) == 1 else offset
        number = self._number(found)
        widths = [np.size(self.trace.value(node)) for node in self.principals]
        parts = [
            self._wide(number.terms.get(node, np.zeros(width)))
            for node, width in zip(self.principals, widths, strict=True)
        ]
        features = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        offset = number.offset
        return features, float(offset) if np.ndim(offset) == 0 else offset

    def _stacked(self, found: Stack) -> tuple[np.ndarray, Any]:
        """Scores (vector (dot w0 x) (dot w1 x) ...): each choice of the block, in order, times the same features."""
        numbers = [self._number(part) for part in found.parts if is_affine(part)]
        nodes = [node for number in numbers for node in number.terms]
        if len(numbers) < len(found.parts) or nodes != self.principals:
            raise NotLinear("each score must read one choice of the block, in their order")
        features = [self._wide(number.terms[node]) for number, node in zip(numbers, nodes, strict=True)]
        if any(not np.array_equal(features[0], other) for other in features[1:]):
            raise NotLinear("the scores multiply different features")
        offsets = [np.broadcast_to(number.offset, (self.count,)) for number in numbers]
        return features[0], np.stack(offsets, axis=1)

    def _wide(self, coefficients: Any) -> np.ndarray:
        array = np.asarray(coefficients, dtype=np.float64)
        return np.ascontiguousarray(np.broadcast_to(array, (self.count, array.shape[-1])))


def _numbers(value: Any) -> np.ndarray:
    """Plain numbers as floats. Raises NotColumnar where a value is none."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise NotColumnar from None
