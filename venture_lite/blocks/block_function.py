"""A block's log density and its gradient as one function of numbers, where what moves is few numbers.

Called row by row, a regression on fourteen data spends most of a gradient between its rows. So the operations of all
rows are recorded together (`block_passes.py`), equal ones once, and printed as one text (`block_text.py`); many data of
one kind are weighed in it by columns. What does not depend on the block is computed before, once for as long as it
stands. The function moves nothing: the trace is where it was. Where a number on the way is not finite, an argument is
outside its domain, or anything fails, it says nothing, and the passes over rows say what is right.
"""

from __future__ import annotations

from collections.abc import Sequence

from venture_lite.blocks.block_passes import WIDE, BlockPasses, NotOneFunction
from venture_lite.blocks.block_text import NumbersFunction, SumsFunction, printed
from venture_lite.blocks.moving import BlockState, RowKind
from venture_lite.errors import VentureError
from venture_lite.interpreter.weights import CHUNK, AtLimit
from venture_lite.procedures.columns import RowByRow

MOST_ROWS = 64
"""Rows that move, and others that weigh them, of which a function is made."""
MOST_TOGETHER = 2 * CHUNK
"""Rows of one kind that are weighed at once."""

FAILURES = (TypeError, ValueError, ArithmeticError, VentureError, RowByRow, AtLimit)
"""What a function may raise where it has no value."""


class BlockFunction:
    """The function of one block, good while its columns hold numbers of the same kinds. Mutable: keeps what stands."""

    def __init__(
        self, state: BlockState, moved: Sequence[tuple[RowKind, int, int]], terms: Sequence[RowKind], size: int
    ) -> None:
        """`moved` are the rows that move, parents first, `terms` those that weigh them.

        Raises NotOneFunction where there are too many rows, or where not all is numbers.
        """
        # a value that is handed on costs nothing
        computed = sum(stop - start for kind, start, stop in moved if kind.operator is not None)
        single = sum(kind.count for kind in terms if kind.count <= WIDE)
        if computed + single > MOST_ROWS or any(kind.count > MOST_TOGETHER for kind in terms):
            raise NotOneFunction
        passes = BlockPasses(state, moved, terms, size)
        operations, sums = passes.operations, passes.sums()
        self._read = operations.read
        self._gathers = [gather for _, gather in operations.gathers]
        self._columns = list(dict.fromkeys(column for column, _ in (*operations.read, *operations.gathers)))
        # the sites of which there are sums, by their position
        self.sites = {site: position for position, site in enumerate(sums)}
        self._make = printed(operations, passes.results(sums.values()))
        self._stamps: list[int] | None = None
        self._made: NumbersFunction | None = None
        self.sums: SumsFunction | None = None

    def now(self) -> NumbersFunction | None:
        """As what does not depend on the block stands now; the same object while that is so."""
        stamps = [column.stamp for column in self._columns]
        if stamps != self._stamps:
            try:
                numbers = [column.view[row] for column, row in self._read]
                made = self._make(*numbers, *(gather() for gather in self._gathers))
            except Exception:
                # an argument that no function takes, for one: the passes over rows say so
                made = None
            self._made, self.sums = made or (None, None)
            self._stamps = stamps
        return self._made
