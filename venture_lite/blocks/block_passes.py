"""Both passes over all rows of a block as recorded operations.

Rows are recorded one by one, or together, over columns: those of one kind that weigh the block, where they are many,
and where the block is wide, also those that move.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from venture_lite.blocks.block_columns import RowsTogether
from venture_lite.blocks.block_record import BlockRecord
from venture_lite.blocks.block_recursions import Recurring, RowsInTurn
from venture_lite.blocks.block_rows import RowsSingly
from venture_lite.blocks.moving import BlockState, RowKind
from venture_lite.blocks.recursions import Recursion, Stretch
from venture_lite.interpreter.weights import NARROW
from venture_lite.trace.table import listed

WIDE = 40
"""Rows of one kind that weigh a block, of which more are faster over columns."""


def recorded(
    state: BlockState, moved: Sequence[Stretch | Recursion], terms: Sequence[RowKind], size: int, is_wide: bool
) -> BlockRecord:
    """The record of a block, as of `BlockFunction`; recursions are wide.

    Raises NotOneFunction where not all is numbers.
    """
    record = BlockRecord(state, size)
    singly, together = RowsSingly(record), RowsTogether(record, is_wide)
    in_turn, recurring = RowsInTurn(record, together), dict[int, Recurring]()

    def is_column(start: int, stop: int) -> bool:
        return is_wide and stop - start > 1

    for each in moved:
        if isinstance(each, Recursion):
            recurring[id(each)] = in_turn.move(each)
        elif is_column(*each[1:]):
            together.move(*each)
        else:
            kind, start, stop = each
            for n in range(start, stop):
                singly.move(kind, n)
    for kind in terms:
        if kind.count > WIDE:
            together.weigh(kind, 0, kind.count)
        for n in range(kind.count if kind.count <= WIDE else 0):
            singly.weigh(kind, n)
    for each in reversed(moved):
        if isinstance(each, Recursion):
            in_turn.back(recurring[id(each)])
        elif is_column(*each[1:]):
            together.back(*each)
        else:
            kind, start, stop = each
            for n in range(start, stop):
                singly.back(kind, n)
    return record


def sums_of(record: BlockRecord) -> dict[int, Any]:
    """The sum of the log densities of all choices of a site, row by row, where the block moves or weighs all."""
    trace, found = record.trace, dict[int, Any]()
    for site, terms in record.terms.items():
        rows = listed(trace.tables[trace.program.site_code[site].index].rows()).tolist()
        if len(rows) <= NARROW and sorted(terms) == rows:
            found[site] = functools.reduce(lambda left, right: left + right, [terms[row] for row in rows])
    return found
