"""What engines ask of a choice's distribution, whether a record or an exchangeable procedure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.procedures.bounds import certain
from venture_lite.procedures.record import Maker, Random
from venture_lite.procedures.transforms import Transform
from venture_lite.program.code import Kind
from venture_lite.trace.runtime import Exchangeable


def transform_of(operator: Random | Exchangeable) -> Transform | None:
    return operator.transform if isinstance(operator, Random) else operator.record.transform


def reads_arguments(transform: Transform | None) -> bool:
    return transform is not None and transform.reads_arguments


def name_of(operator: Random | Exchangeable) -> str:
    return operator.name if isinstance(operator, Random) else f"a draw of {operator.record.name}"


def has_mass(operator: Random | Exchangeable, value: Any) -> bool:
    """Whether single values of a choice have probabilities."""
    record = operator if isinstance(operator, Random) else operator.record
    if record.transform is not None:
        return False
    if isinstance(record, Maker) or record.support is not None or record.log_bound is certain:
        return True
    # a density registered from Python may lack a transform
    return not isinstance(value, float) or value % 1 == 0


def refuse_discrete(mover: str, instead: str) -> Callable[[Model, list[int]], None]:
    """What raises KernelError, before anything moves, where `mover` meets a discrete choice."""

    def refuse(model: Model, nodes: list[int]) -> None:
        for node in nodes:
            code, slot, row = model.trace.decode(node)
            item = code.slots[slot]
            operator = item.record if item.kind is Kind.RANDOM else model.trace.application(node)[0]
            assert isinstance(operator, (Random, Exchangeable))
            if transform_of(operator) is None:
                raise KernelError(
                    f"{mover} moves continuous choices; {name_of(operator)} is discrete",
                    item.span,
                    instead,
                    model.trace.call_chain(code, slot, row),
                )

    return refuse
