"""What `compile` refuses before it trains: choices that no head is for, and more memory than there may be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from venture_lite.blocks.distributions import name_of
from venture_lite.errors import KernelError, LimitError
from venture_lite.interpreter.model import Model
from venture_lite.procedures.record import Random
from venture_lite.trace.runtime import Exchangeable

COPIES = 4.0
"""Of the features of all worlds: as they were read, joined, compressed, and in the type that is trained."""


def refuse_choices(model: Model, blocks: Iterable[Sequence[int]]) -> None:
    """Raises KernelError for a choice whose values are no numbers or matrices, or real ones without a transform."""
    for block in blocks:
        for node in block:
            operator, arguments = model.trace.application(node)
            if why := _unlearnable(operator, arguments, model.trace.value(node)):
                code, slot, row = model.trace.decode(node)
                reason = f"a proposal for {name_of(operator)} cannot be learned: {why}"
                chain = model.trace.call_chain(code, slot, row)
                raise KernelError(reason, code.slots[slot].span, "gibbs, or mh", chain)


def _unlearnable(record: Random | Exchangeable, arguments: tuple[Any, ...], value: Any) -> str | None:
    if isinstance(record, Exchangeable):
        return "what it gives depends on its other draws"
    if np.ndim(value) > 1:
        return "its values are matrices"
    if record.transform is not None:
        return None
    support = record.support(*arguments) if record.support is not None else ()
    if not all(isinstance(each, (int, float)) for each in chain((value,), support)):
        return "its values are no numbers"
    if record.support is None and not isinstance(value, int):
        return "it has neither a domain of real numbers nor a list of its values"
    return None


def refuse_memory(model: Model, numbers: int, worlds: int) -> None:
    """Raises LimitError where so many numbers of each world would take the process beyond its limit."""
    megabytes = COPIES * 8.0 * worlds * numbers / 2**20
    try:
        model.machine.refuse_excess(megabytes)
    except LimitError as error:
        error.message = f"training reads {numbers:,} numbers in each of {worlds:,} worlds: {error.message}"
        error.hint = "fewer 'worlds, or a higher limit"
        raise
