"""What went wrong in a fused expression: it is evaluated again, slowly, until the call that fails is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from venture_lite.errors import InternalError, NameUnknown, VentureError
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.record import Deterministic
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, SlotRef
from venture_lite.trace.runtime import Closure

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


def explain(trace: Trace, site: int, row: int, error: Exception) -> Exception:
    """A located VentureError for an error met while the arguments of a slot were read."""
    code = trace.program.site_code[site]
    index = trace.program.site_slot[site]
    slot = code.slots[index]
    refs = slot.arguments if slot.operator is None else (slot.operator, *slot.arguments)
    return explain_refs(trace, code, refs, index, row, error)


def explain_refs(trace: Trace, code: Code, refs: tuple[Ref, ...], index: int, row: int, error: Exception) -> Exception:
    try:
        for ref in refs:
            _evaluate(trace, code, row, ref)
    except VentureError as found:
        return found.at(found.span, trace.call_chain(code, index, row))
    if isinstance(error, VentureError):
        return error.at(code.slots[index].span if index >= 0 else code.span, trace.call_chain(code, index, row))
    return InternalError(f"evaluation failed without a cause: {error!r}")


def _evaluate(trace: Trace, code: Code, row: int, ref: Ref) -> Any:
    match ref:
        case Constant(value=value):
            return value
        case GlobalRef(target=target):
            if target.code is None:
                if target.awaited and target.order == 0:
                    raise NameUnknown(f"unknown name {target.name}", target.span, target.hint)
                raise VentureError(
                    f"{target.name} is used before it has a value", hint="a name sees what stands before it"
                )
            return _evaluate(trace, target.code, target.row, target.code.result)
        case SlotRef(depth=depth, slot=index):
            for _ in range(depth):
                environment = trace.tables[code.index].environment
                assert environment is not None
                row = environment.view[row]
                assert code.parent is not None
                code = code.parent
            slot = code.slots[index]
            if slot.stored:
                return trace.tables[code.index].columns[index].view[row]  # type: ignore[union-attr]
            if slot.kind is Kind.LAMBDA:
                assert slot.body is not None
                return Closure(slot.body, row)
            values = tuple(_evaluate(trace, code, row, argument) for argument in slot.arguments)
            assert isinstance(slot.record, Deterministic)
            return apply_checked(slot.record, values, slot.span)


def apply_checked(record: Deterministic, values: tuple[Any, ...], span: Any) -> Any:
    """A primitive's value, with every error located."""
    checked = check_arguments(record, values, span)
    try:
        return record.scalar(*checked)
    except VentureError as error:
        raise error.at(span) from error
    except (TypeError, ValueError, ArithmeticError, IndexError) as error:
        raise VentureError(f"{record.name} cannot be applied to these values: {error}", span) from error
