"""Columns and tables: where every value of a trace is stored.

A `Column` holds one slot's values over the rows of a Code. Its type follows what is put into it: float64, int64 or bool
in a NumPy array that grows by doubling, rows of a matrix for data loaded together and for the vectors of a wide table,
otherwise a Python list of objects. Single values are read through `column.view[row]` (a memoryview or the list itself,
which return Python numbers), groups of rows through `column.gather(rows)`.

A `Table` holds a Code's rows: what is live, the environment, the user, the edges. It never writes to a journal; whoever
changes it does.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from venture_lite.errors import InternalError
from venture_lite.program.code import Code, Kind
from venture_lite.trace.row_order import RowOrder

STAMPS = itertools.count(1)
"""Every change of a column takes the next stamp, so that equal stamps mean equal contents."""

_DTYPE: dict[type, Any] = {float: np.float64, int: np.int64, bool: np.bool_}
_KINDS = {"f": float, "i": int, "b": bool}
"""By the kind of a dtype."""

NONE = -1
"""No row, no node."""

# kinds of a CALL's edge that lead to no row
RANDOM_EDGE = -2
MAKER_EDGE = -3
PRIMITIVE_EDGE = -4

ROW_MASK = 0xFFFFFFFF
"""The row's part of a packed node."""


SWEEPS = 64
MOST_BYTES = 2**26
"""A matrix of at most so many bytes, read as a whole more often than this, is kept by columns as well."""


WIDE = 32
"""Vectors of one length in more rows than this are kept as rows of a matrix: an array is made of fewer in no time, and
a list gives out the object that was put in, with what is known of it."""


class NotColumnar(Exception):
    """The values of a group of rows do not form an array; go row by row."""


def memory(array: Any) -> memoryview:
    """The array's memory: reading one number from it is several times faster than indexing the array."""
    return memoryview(array)


class _Copies:
    """What `column.view` is for a matrix whose rows change: a row is read out as a copy, since values never do."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, row: int) -> np.ndarray:
        value: np.ndarray = self.array[row].copy()
        value.flags.writeable = False
        return value


class Column:
    __slots__ = ("_by_feature", "_gathered", "_narrow", "_sweeps", "array", "kind", "stamp", "view")

    # how often the memory of any column was replaced, because it grew or took on another kind
    reshaped: ClassVar[int] = 0

    def __init__(self, kind: type | None = None, capacity: int = 0) -> None:
        # float, int or bool; object for a list; np.ndarray for rows of a matrix, of which data are read out as they
        # lie there until the first of them changes; None while empty
        self.kind: type | None = kind
        self.array: Any = np.zeros(capacity, _DTYPE[kind]) if kind in _DTYPE else None
        self.view: Any = memory(self.array) if kind in _DTYPE else [None] * capacity
        self.stamp = next(STAMPS)
        # how often a matrix was read row after row, and its copy by columns, as of a stamp
        self._sweeps = 0
        self._by_feature: tuple[int, np.ndarray] | None = None
        # (stamp, how many numbers were gathered as of it), and the numbers in a narrower type, as of a stamp
        self._gathered = (0, 0)
        self._narrow: tuple[int, np.ndarray] | None = None

    def _hold(self, kind: type, array: np.ndarray, changes: bool = False) -> None:
        """Keep the values in an array from here on; of a matrix, whether its rows will be written over."""
        self.kind, self.array = kind, array
        self.view = memory(array) if kind in _DTYPE else _Copies(array) if changes else array
        Column.reshaped += 1

    def hold(self, kind: type | None, values: Any) -> None:
        """Have another column's content: its kind, and its array or list."""
        if isinstance(values, np.ndarray):
            self._hold(kind, values, changes=values.flags.writeable)  # type: ignore[arg-type]
        else:
            self.kind, self.array, self.view = kind, None, values
            Column.reshaped += 1
        self.stamp = next(STAMPS)

    def content(self) -> tuple[type | None, Any]:
        """Its kind, and its array or list: what `hold` takes."""
        return self.kind, self.view if self.array is None else self.array

    def __reduce__(self) -> Any:
        return Column, (), self.content()

    def __setstate__(self, content: tuple[type | None, Any]) -> None:
        self.hold(*content)

    def reserve(self, capacity: int) -> None:
        """Room for rows below `capacity`."""
        if self.array is not None:
            if len(self.array) < capacity:
                dtype = np.float64 if self.kind is np.ndarray else self.array.dtype
                grown = np.zeros((max(capacity, 8), *self.array.shape[1:]), dtype)
                grown[: len(self.array)] = self.array
                self._hold(self.kind, grown, self._changes())  # type: ignore[arg-type]
        elif len(self.view) < capacity:
            self.view.extend([None] * (capacity - len(self.view)))
            if capacity > WIDE and self.kind is object:
                self._vectors_to_rows()

    def _changes(self) -> bool:
        """Whether rows of the matrix have been written over."""
        return isinstance(self.view, _Copies)

    def _vectors_to_rows(self) -> None:
        """A list that holds vectors of one length alone becomes a matrix."""
        vectors = [value for value in self.view if value is not None]
        if not vectors or not isinstance(vectors[0], np.ndarray):
            return
        shape = vectors[0].shape
        if len(shape) != 1 or not all(isinstance(value, np.ndarray) and value.shape == shape for value in vectors):
            return
        array = np.zeros((len(self.view), *shape))
        for row, value in enumerate(self.view):
            if value is not None:
                array[row] = value
        self._hold(np.ndarray, array, changes=True)

    def own(self) -> None:
        """Make the rows of a matrix writable: who read one of the data before keeps what was read."""
        if self.kind is np.ndarray and not self._changes():
            self._hold(np.ndarray, self.array.copy(), changes=True)

    def put(self, row: int, value: Any) -> None:
        """Store a value; the column takes on a wider type where it must."""
        if type(value) is self.kind and self.kind in _DTYPE:
            try:
                self.view[row] = value
            except ValueError:  # an integer beyond 64 bits
                self._put_other(row, value)
        elif self.kind is object:
            self.view[row] = value
        elif self.kind is np.ndarray and isinstance(value, np.ndarray) and value.shape == self.array.shape[1:]:
            if not self._changes() and self.array[row].tobytes() == value.tobytes():
                return  # evidence that is given to its choice again
            self.own()
            self.array[row] = value
        else:
            self._put_other(row, value)
        self.stamp = next(STAMPS)

    def fill(self, row: int, value: Any) -> None:
        """Store a value in a row that nothing has read yet: rows of a matrix may be written in place."""
        if self.kind is np.ndarray and isinstance(value, np.ndarray) and value.shape == self.array.shape[1:]:
            self.array[row] = value
            self.stamp = next(STAMPS)
        else:
            self.put(row, value)

    def _put_other(self, row: int, value: Any) -> None:
        kind = type(value)
        if self.kind is None and kind in _DTYPE:
            self._become(kind)
        elif self.kind is float and kind is int and abs(value) <= 2**53:
            value = float(value)
        elif self.kind is int and kind is float and not (np.abs(self.array) > 2**53).any():
            self._hold(float, self.array.astype(np.float64))
        else:
            self._to_objects()
        try:
            self.view[row] = value
        except (ValueError, TypeError):
            self._to_objects()
            self.view[row] = value

    def _become(self, kind: type) -> None:
        self._hold(kind, np.zeros(len(self.view), _DTYPE[kind]))

    def _to_objects(self) -> None:
        self.kind, self.array, self.view = object, None, list(self.view)
        Column.reshaped += 1

    def adopt(self, first: int, values: np.ndarray | list[Any]) -> None:
        """Store values of rows `first`, `first + 1`, ... at once. An array that fills an empty column is taken over."""
        self.stamp = next(STAMPS)
        kind: type | None = None
        if isinstance(values, np.ndarray):
            kind = _KINDS.get(values.dtype.kind) if values.ndim == 1 else np.ndarray
            if first == 0 and self.kind is None and kind is not None:
                self._hold(kind, values)
                return
        self.reserve(first + len(values))
        if self.kind is None and kind in _DTYPE:
            self._become(kind)
        if isinstance(values, np.ndarray) and self.kind is kind and values.shape[1:] == self.array.shape[1:]:
            self.array[first : first + len(values)] = values
            return
        for row, value in enumerate(values.tolist() if kind in _DTYPE else values, first):  # type: ignore[union-attr]
            self.put(row, value)

    def gather(self, rows: Any) -> np.ndarray:
        """The values of a group of rows (a slice or an index array) along the first axis.

        Raises NotColumnar where they do not form an array of numbers.
        """
        if self.array is not None:
            if not isinstance(rows, slice):
                # twice as fast as an index
                return self.array.take(rows, axis=0)  # type: ignore[no-any-return]
            return (self._swept() if self.kind is np.ndarray else self.array)[rows]
        chosen = self.view[rows] if isinstance(rows, slice) else [self.view[row] for row in rows.tolist()]
        if not chosen:
            return np.zeros(0)
        kinds = set(map(type, chosen))
        if len(kinds) > 1 or not (kinds <= _DTYPE.keys() or kinds == {np.ndarray}):
            # one array would make numbers of truth values, and round integers beyond 53 bits beside floats
            raise NotColumnar
        try:
            return np.array(chosen)
        except ValueError:  # shapes differ
            raise NotColumnar from None

    def gather_narrow(self, rows: Any) -> np.ndarray:
        """`gather`, where it matters whether numbers are whole, or 0 and 1: in the narrowest type that holds them all.

        What the numbers are is found out once as many have been read as there are, and stands until one changes: a
        column that changes at each transition, or of which a minibatch is read, is not searched as a whole.
        """
        array = self.array
        if array is None or array.ndim != 1 or self.kind is bool:
            return self.gather(rows)
        if self._narrow is None or self._narrow[0] != self.stamp:
            stamp, gathered = self._gathered
            gathered = (gathered if stamp == self.stamp else 0) + length(rows)
            self._gathered = (self.stamp, gathered)
            if gathered <= len(array):
                return self.gather(rows)
            self._narrow = (self.stamp, narrowest(array))
        narrow = self._narrow[1]
        return narrow[rows] if isinstance(rows, slice) else narrow.take(rows)

    def _swept(self) -> np.ndarray:
        """The matrix for a product over all its rows. One that is swept again and again, wide and of moderate size,
        is copied by columns, which BLAS multiplies a fifth faster; single rows are still read from the original."""
        self._sweeps += 1
        narrow = self.array.ndim != 2 or self.array.shape[1] < 8
        if self._sweeps <= SWEEPS or narrow or self.array.nbytes > MOST_BYTES or self._changes():
            return self.array  # type: ignore[no-any-return]
        if self._by_feature is None or self._by_feature[0] != self.stamp:
            self._by_feature = (self.stamp, np.asfortranarray(self.array))
        return self._by_feature[1]

    def bytes_used(self) -> int:
        narrow = 0 if self._narrow is None or self._narrow[1] is self.array else self._narrow[1].nbytes
        return narrow + (self.array.nbytes if self.array is not None else 8 * len(self.view))


def column_of(values: list[Any]) -> np.ndarray:
    """One node's values as an array: of numbers where all are of one kind, else of objects."""
    kinds = set(map(type, values))
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind in _DTYPE:
        try:
            return np.array(values, kind)
        except OverflowError:
            pass
    elif kind is np.ndarray and len({value.shape for value in values}) == 1 and values[0].dtype == np.float64:
        return np.stack(values)
    found = np.empty(len(values), object)
    for at, value in enumerate(values):
        # one by one: an array takes lists of one length for rows
        found[at] = value
    return found


def length(rows: Any) -> int:
    return len(range(rows.start, rows.stop, rows.step or 1)) if isinstance(rows, slice) else len(rows)


def one_of(each: Any, index: int) -> Any:
    """What is given for one row, where all rows are given a slice, an array, a list, or one number."""
    if isinstance(each, slice):
        return int(each.start + index * (each.step or 1))
    if isinstance(each, np.ndarray) and each.ndim:
        return int(each[index])
    return each[index] if isinstance(each, list) else int(each)


def part_of(each: Any, start: int, stop: int) -> Any:
    """What is given for some rows."""
    if isinstance(each, slice):
        step = each.step or 1
        return slice(each.start + step * start, each.start + step * stop, each.step)
    return each[start:stop] if isinstance(each, list) or np.ndim(each) else int(each)


def picked(each: Any, at: np.ndarray) -> Any:
    """What is given for the rows at some places (n,)."""
    if isinstance(each, slice):
        return each.start + at * (each.step or 1)
    return (
        [each[place] for place in at.tolist()] if isinstance(each, list) else each[at] if np.ndim(each) else int(each)
    )


def listed(rows: Any) -> np.ndarray:
    """The numbers (n,) of rows, which may be a slice."""
    return np.arange(rows.start, rows.stop, rows.step or 1) if isinstance(rows, slice) else rows


def narrowest(numbers: np.ndarray) -> np.ndarray:
    """The same numbers as booleans where all are 0 or 1, as integers where all are whole and exact, else as given."""
    if bool(((numbers == 0) | (numbers == 1)).all()):
        return numbers.astype(np.bool_)
    if numbers.dtype.kind == "f" and bool((np.abs(numbers) <= 2.0**53).all()) and not (numbers % 1.0).any():
        return numbers.astype(np.int64)
    return numbers


class Table:
    """The rows of one Code."""

    def __init__(self, code: Code) -> None:
        self.code = code
        # rows ever made, and how many of them are dead
        self.count = 0
        self.dead = 0
        self.capacity = 0
        self.live = bytearray()
        # dead rows that may be used again
        self.free: list[int] = []
        # rows, dead or about to be, that only their directive may use again
        self.withheld: set[int] = set()
        # slot -> its values; None for fused slots
        self.columns: list[Column | None] = [Column() if slot.stored else None for slot in code.slots]
        # row of the parent Code's table
        self.environment = Column(int) if code.parent is not None else None
        # environment's row -> bag of the rows of this Code made in it; kept where inner code reads the environment
        self.children: dict[int, Any] = {}
        self.child_position = Column(int) if code.rooted and code.kind == "lambda" else None
        # packed node whose value this row's result is; MANY when `users` has a bag; NONE for directives
        self.user = Column(int)
        # row -> its users, for memoized rows with more than one: a tuple of nodes while they are few, then bags
        self.users: dict[int, Any] = {}
        # slot -> packed row (Code index << 32 | row) of a CALL's or IF's family, or a negative kind
        self.edges: dict[int, Column] = {
            i: Column(int) for i, slot in enumerate(code.slots) if slot.kind in (Kind.CALL, Kind.IF)
        }
        # slot -> position of the choice in its bag of the default scope
        self.positions: dict[int, Column] = {
            i: Column(int) for i, slot in enumerate(code.slots) if slot.kind in (Kind.RANDOM, Kind.CALL)
        }
        # slot -> whether evidence fixes the value
        self.observed: dict[int, bytearray] = {}
        # interned tags that the row inherited, 0 for none; made when first needed
        self.context: Column | None = None
        # the memo that each memoized row belongs to
        self.memos: list[Any] | None = None
        # of rows that have lost their last user: whether they stay without (`interpreter/constants.py`)
        self.constant: dict[int, bool] = {}
        # the live rows in a random order, where minibatches are drawn of them
        self.order: RowOrder | None = None
        # changes whenever a row comes or goes
        self.shape_stamp = next(STAMPS)

    def _changed(self, first: int, stop: int) -> None:
        """Some of these rows came or went."""
        self.shape_stamp = next(STAMPS)
        if self.order is not None:
            self.order.touched.update(range(first, stop))

    def allocate(self) -> int:
        """A row number for a new family; its cells hold rubbish."""
        if self.free:
            row = self.free.pop()
            self.dead -= 1
            for flags in self.observed.values():
                flags[row] = 0
        else:
            row = self.count
            if row >= self.capacity:
                self._grow(max(8, 2 * row if row < 4096 else row + (row >> 2)))
            self.count = row + 1
        if self.constant:
            self.constant.pop(row, None)
        self.live[row] = 1
        self._changed(row, row + 1)
        return row

    def allocate_block(self, count: int, live: bool) -> int:
        """The first of `count` new neighbouring rows, without reusing dead ones.

        Rows that are not live yet are brought to life by `awake`, one by one.
        """
        first = self.count
        self._grow(first + count, values=False)
        self.count = first + count
        if live:
            self.live[first : self.count] = b"\x01" * count
        else:
            self.dead += count
        self._changed(first, self.count)
        return first

    def reserve_cells(self) -> None:
        """Room in every column for the rows that there are."""
        for column in self._all_columns():
            if column is not self.user:
                column.reserve(self.count)

    def awake(self, row: int) -> None:
        """A row of a block, about to be evaluated."""
        if not self.live[row]:
            self.revive(row)

    def _grow(self, capacity: int, values: bool = True) -> None:
        for flags in (self.live, *self.observed.values()):
            flags.extend(bytes(max(0, capacity - len(flags))))
        for column in self._all_columns() if values else self._edge_columns():
            column.reserve(capacity)
        if self.memos is not None:
            self.memos.extend([None] * (capacity - len(self.memos)))
        self.capacity = capacity if values else min(self.capacity, self.count)

    def _edge_columns(self) -> list[Column]:
        extra = [self.environment, self.context, self.child_position, *self.edges.values()]
        return [column for column in extra if column is not None]

    def _all_columns(self) -> list[Column]:
        kept = [column for column in self.columns if column is not None]
        return [*kept, *self._edge_columns(), *self.positions.values(), self.user]

    def bytes_used(self) -> int:
        return len(self.live) + sum(column.bytes_used() for column in self._all_columns())

    def kill(self, row: int) -> None:
        """The row is no longer part of the trace; its cells stay as they are until it is used again."""
        self.live[row] = 0
        self.dead += 1
        self._changed(row, row + 1)

    def revive(self, row: int) -> None:
        """Undo of `kill`."""
        self.live[row] = 1
        self.dead -= 1
        self._changed(row, row + 1)

    def unmake(self, row: int, reused: bool) -> None:
        """Undo of `allocate`."""
        self.live[row] = 0
        if self.memos is not None:
            self.memos[row] = None
        if reused:
            self.dead += 1
            self.free.append(row)
        else:
            self.count -= 1
            for flags in self.observed.values():
                flags[row] = 0
        self._changed(row, row + 1)

    def truncate(self, first: int) -> None:
        """Undo of `allocate_block`."""
        if any(self.live[self.count :]):
            raise InternalError("rows beyond the end of a table are live")
        self._changed(first, self.count)
        for flags in (self.live, *self.observed.values()):
            flags[first : self.count] = bytes(self.count - first)
        if self.memos is not None:
            self.memos[first : self.count] = [None] * (self.count - first)
        self.free = [row for row in self.free if row < first]
        self.dead = first - sum(self.live[:first])
        self.count = first

    def rows(self) -> Any:
        """All live rows: a slice while none is dead, else an index array."""
        if self.dead == 0:
            return slice(0, self.count)
        return np.flatnonzero(np.frombuffer(self.live, np.uint8, self.count))

    def live_rows(self) -> Sequence[int]:
        """All live rows, one by one."""
        if self.dead == 0:
            return range(self.count)
        return np.flatnonzero(np.frombuffer(self.live, np.uint8, self.count)).tolist()

    def rows_that_draw(self, slot: int) -> list[int]:
        """The live rows in which the call at a slot applies a distribution."""
        rows = listed(self.rows())
        found: list[int] = rows[self.edges[slot].array[rows] == RANDOM_EDGE].tolist()
        return found

    def memo_of(self, row: int) -> Any:
        """The memo that a row belongs to, None where it is no family of a memoized procedure."""
        return None if self.memos is None else self.memos[row]

    def set_observed(self, slot: int, row: int, flag: bool) -> None:
        flags = self.observed.get(slot)
        if flags is None:
            flags = self.observed[slot] = bytearray(len(self.live))
        flags[row] = flag

    def is_observed(self, slot: int, row: int) -> bool:
        flags = self.observed.get(slot)
        return flags is not None and bool(flags[row])

    def context_of(self, row: int) -> int:
        return 0 if self.context is None else int(self.context.view[row])

    def set_context(self, row: int, context: int) -> None:
        if self.context is None:
            if context == 0:
                return
            self.context = Column(int, len(self.live))
        self.context.put(row, context)
