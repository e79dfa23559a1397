"""The state in which a block was left.

Seen to fail where the version of the trace, the block, or changes that are still open do not count.
"""

from __future__ import annotations

from venture_lite import Venture
from venture_lite.interpreter.last_state import LastState
from venture_lite.interpreter.model import Model
from venture_lite.trace.table import Column


def test_what_was_left_is_known_until_a_change_is_kept() -> None:
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)] [assume y (normal 0 1)]")
    model = v.traces[0]
    journal, (column, row) = model.trace.journal, somewhere(model)
    left = LastState[str](journal)
    assert left.of((1,)) is None

    left.leave((1,), "here")
    assert left.of((1,)) == "here"
    assert left.of((2,)) is None
    with model.transaction():
        journal.put(column, row, 3.0)
        assert left.of((1,)) is None
    # it was taken back
    assert left.of((1,)) == "here"
    with model.transaction() as change:
        journal.put(column, row, 3.0)
        change.keep()
    assert left.of((1,)) is None


def test_what_was_left_inside_of_another_transition_is_not_known() -> None:
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)]")
    model = v.traces[0]
    journal, (column, row) = model.trace.journal, somewhere(model)
    left = LastState[str](journal)
    with model.transaction():
        with model.transaction() as change:
            journal.put(column, row, 3.0)
            change.keep()
        left.leave((1,), "there")
    assert left.of((1,)) is None


def somewhere(model: Model) -> tuple[Column, int]:
    """A place of a number in the trace."""
    trace = model.trace
    code, slot, row = trace.decode(next(iter(trace.default.everything())))
    return trace.tables[code.index].columns[slot], row
