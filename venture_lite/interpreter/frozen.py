"""`freeze`: a directive's value becomes a constant.

The row of the directive goes, with the families and choices that only it kept alive, and a row that holds the value as
its argument takes its place: a name that stood for the old row stands for the new one, and nothing that reads it can
tell the difference. What the lost choices depended on is no longer informed by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from venture_lite.errors import VentureError
from venture_lite.interpreter.addresses import procedures_in
from venture_lite.interpreter.model import Model, Rows
from venture_lite.interpreter.scaffold import going
from venture_lite.program.code import Code, Kind, Slot
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.trace.table import NONE


def freeze_rows(model: Model, made: Rows, positions: Sequence[int]) -> Rows:
    """Put the present values of these rows of a directive in place of what they evaluate.

    Raises VentureError, with nothing changed yet, for a procedure and where a choice that would go is observed.
    """
    values = {position: model.trace.result(made.code, int(made.rows[position])) for position in positions}
    for position in model.polled(values):
        _refuse_procedure(made.code, values[position])
        _refuse_observed(model, made, position)
    trace = model.trace
    code = _code_of_a_value(made.code)
    trace.program.finish(code)
    table = trace.table(code)
    rows = [NONE] * len(made.rows)
    for position in reversed(positions):
        model.remove_row(made, position)
    for position, value in values.items():
        row = rows[position] = trace.new_row(table, [value])
        table.set_context(row, 0)
        if made.bound is not None:
            trace.bindings.bind(made.bound, code, row)
    _read_again(model)
    return Rows(code, rows, False, made.bound)


def _code_of_a_value(frozen: Code) -> Code:
    """A body whose result is its argument."""
    code = Code("directive", frozen.name, None, 1, frozen.span)
    code.result = code.add(Slot(Kind.ARGUMENT, frozen.span, stored=True))
    return code


def _refuse_procedure(code: Code, value: Any) -> None:
    if any(isinstance(held, (Closure, Memo, Exchangeable)) for held in procedures_in(value)):
        raise VentureError(
            "a procedure of the program cannot be frozen: what it draws belongs to its calls",
            code.span,
            "freeze a value that it gives",
        )


def _refuse_observed(model: Model, made: Rows, position: int) -> None:
    trace = model.trace
    for node in model.regenerator.choices_that_go(going(trace, (made.code, int(made.rows[position])))):
        if trace.is_observed(node):
            hint = "an observed choice stays as it is; forget its observation first"
            error = VentureError("an observed choice would leave the trace", hint=hint)
            raise error.at(*trace.place(*trace.decode(node)))


def _read_again(model: Model) -> None:
    """Whatever was derived from where a name stood is derived anew, also when this is taken back."""
    for derived in model.trace.derived:
        derived.clear()
        model.trace.journal.note(dict.clear, derived)
