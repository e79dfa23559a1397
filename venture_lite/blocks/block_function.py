"""A block's log density and its gradient as one function.

Called row by row, a regression on fourteen data spends most of a gradient between its rows, and a recursion of a
thousand steps between its columns. So the operations of all rows are recorded together (`block_passes.py`), equal ones
once, and printed as one text (`block_text.py`): over numbers, where few rows move, else over columns. What does not
depend on the block is computed before, once for as long as it stands. The function moves nothing: the trace is where it
was. Where a number on the way is not finite, an argument is outside its domain, or anything fails, it says nothing, and
the passes over rows say what is right.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.block_passes import WIDE, recorded, sums_of
from venture_lite.blocks.block_text import ArrayFunction, NumbersFunction, SumsFunction, printed
from venture_lite.blocks.block_values import NotOneFunction
from venture_lite.blocks.moving import BlockState, RowKind
from venture_lite.blocks.recursions import Recursion, Stretch
from venture_lite.errors import VentureError
from venture_lite.interpreter.weights import CHUNK, AtLimit
from venture_lite.procedures.columns import RowByRow

MOST_ROWS = 64
"""Rows that move, and others that weigh them, one by one."""
MOST_TOGETHER = 2 * CHUNK
"""Rows of one kind that are moved or weighed at once."""

FAILURES = (TypeError, ValueError, ArithmeticError, VentureError, RowByRow, AtLimit)
"""What a function may raise where it has no value."""


@dataclass(frozen=True, slots=True, eq=False)
class DensityFunction:
    """A block's log density and its derivatives, as functions of its free coordinates that move nothing."""

    of_array: ArrayFunction
    # where it is one of few numbers
    of_numbers: NumbersFunction | None = None


class BlockFunction:
    """The function of one block, good while its columns hold numbers of the same kinds. Mutable: keeps what stands."""

    def __init__(
        self, state: BlockState, moved: Sequence[Stretch], turns: Sequence[Stretch | Recursion],
        terms: Sequence[RowKind], size: int,
    ) -> None:  # fmt: skip
        """`moved` are the rows that move, parents first, `turns` the same with recursions, and `terms` those that weigh
        them.

        Raises NotOneFunction where too many rows go one by one, or where not all is numbers.
        """
        kinds = dict.fromkeys(kind for kind, _, _ in moved)
        if any(kind.column.kind is not float for kind in kinds) or any(kind.is_maker for kind in terms):
            raise NotOneFunction
        if any(kind.count > MOST_TOGETHER for kind in (*terms, *kinds)):
            raise NotOneFunction
        record, sums = None, dict[int, Any]()
        if is_small(moved, terms):
            with contextlib.suppress(NotOneFunction):
                record = recorded(state, moved, terms, size, False)
                sums = sums_of(record)
        self._is_wide = record is None
        if record is None:
            singly = [each for each in turns if not isinstance(each, Recursion) and each[2] - each[1] == 1]
            if not is_small(singly, terms):
                raise NotOneFunction
            record = recorded(state, turns, terms, size, True)
        operations = record.operations
        self._read = operations.read
        self._gathers = [gather for _, gather in operations.gathers]
        columns = [column for column, _ in operations.read]
        columns += [column for found, _ in operations.gathers for column in found]
        self._columns = list(dict.fromkeys(columns))
        # the sites of which there are sums, by their position
        self.sites = {site: position for position, site in enumerate(sums)}
        self._make = printed(operations, record.results(sums.values()), size, self._is_wide)
        self._stamps: list[int] | None = None
        self._made: DensityFunction | None = None
        self.sums: SumsFunction | None = None

    def now(self) -> DensityFunction | None:
        """As what does not depend on the block stands now; the same object while that is so."""
        stamps = [column.stamp for column in self._columns]
        if stamps != self._stamps:
            try:
                numbers = [column.view[row] for column, row in self._read]
                made = self._make(*numbers, *(gather() for gather in self._gathers))
            except Exception:
                # an argument that no function takes, for one: the passes over rows say so
                made = None
            self._made, self.sums = None, None
            if made is not None:
                function, self.sums = made
                over = DensityFunction(function) if self._is_wide else None
                self._made = over or DensityFunction(partial(_of_array, function), function)
            self._stamps = stamps
        return self._made


def is_small(moved: Sequence[Stretch], terms: Sequence[RowKind]) -> bool:
    """Whether rows are few enough to go one by one; a value that is handed on costs nothing."""
    computed = sum(stop - start for kind, start, stop in moved if kind.operator is not None)
    return computed + sum(kind.count for kind in terms if kind.count <= WIDE) <= MOST_ROWS


def _of_array(function: NumbersFunction, free: np.ndarray) -> tuple[float, np.ndarray] | None:
    found = function(*free.tolist())
    return None if found is None else (found[0], np.array(found[1]))
