"""What went wrong in a fused expression: it is evaluated again, slowly, until the call that fails is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from venture_lite.errors import InternalError, NameUnknown, VentureError
from venture_lite.interpreter.references import Operations, References
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.straight_line import Node, needed
from venture_lite.program.code import Code, Ref
from venture_lite.program.selects import Untaken
from venture_lite.trace.runtime import Closure

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


def explain(trace: Trace, code: Code, refs: tuple[Ref, ...], index: int, row: int, error: Exception) -> Exception:
    """A located VentureError for an error met while references were read that a slot, or a row's result (-1), reads."""
    operations = Operations()
    references = References(trace, operations)
    try:
        _evaluate(trace, operations, [references.read(code, row, ref) for ref in refs])
    except VentureError as found:
        return found.at(found.span, trace.call_chain(code, index, row))
    if isinstance(error, VentureError):
        return error.at(*trace.place(code, index, row))
    return InternalError(f"evaluation failed without a cause: {error!r}")


def _evaluate(trace: Trace, operations: Operations, results: list[Any]) -> None:
    values: dict[int, Any] = {}
    for node in needed(results):
        number, *rest = node.operands
        operands = [values[item.place] if item.__class__ is Node else item for item in rest]
        match node.operation:
            case "load":
                values[node.place] = operations.columns[number].view[operands[0]]
            case "call":
                record, site, _ = operations.calls[node.place]
                span = trace.program.site_code[site].slots[trace.program.site_slot[site]].span
                value = values[node.place] = apply_checked(record, tuple(operands), span)
                if isinstance(value, Untaken):
                    value.error.at(span)
            case "object":
                values[node.place] = operations.objects[number]
            case "closure":
                values[node.place] = Closure(operations.objects[number], operands[0])
            case "unbound":
                target = operations.objects[number]
                if target.awaited and target.order == 0:
                    raise NameUnknown(f"unknown name {target.name}", target.span, target.hint)
                raise VentureError(
                    f"{target.name} is used before it has a value", hint="a name sees what stands before it"
                )


def apply_checked(record: Deterministic, values: tuple[Any, ...], span: Any) -> Any:
    """A primitive's value, with every error located."""
    checked = check_arguments(record, values, span)
    try:
        return record.scalar(*checked)
    except VentureError as error:
        raise error.at(span) from error
    except (TypeError, ValueError, ArithmeticError, IndexError) as error:
        raise VentureError(f"{record.name} cannot be applied to these values: {error}", span) from error
