"""How the program at hand differs from the one that a proposer was compiled for, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from venture_lite.blocks.worlds import names_of
from venture_lite.interpreter.model import Model
from venture_lite.procedures import registry
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import Elementwise

FAR = 1e300
"""A free coordinate at which a value is at the end of its support."""

Distributions = Sequence[str]
"""Of the choices of a block, in order."""


def another_block(model: Model, block: Sequence[int], kinds: Mapping[tuple[str, ...], Distributions]) -> str:
    """Between a block and the kinds of blocks that were compiled, by the texts of their sites: the first choice that is
    another one in the kind most alike."""
    here = names_of(model, block)
    alike = [kind for kind in kinds if len(kind) == len(here)]
    if not alike:
        known = "; ".join(", ".join(kind) for kind in kinds) or "none yet"
        return f"for other blocks: here are {', '.join(here)}, there {known}"
    there = max(alike, key=lambda kind: sum(one == other for one, other in zip(here, kind, strict=True)))
    at = next(at for at, (one, other) in enumerate(zip(here, there, strict=True)) if one != other)
    operator = str(getattr(model.trace.application(block[at])[0], "name", here[at]))
    was = kinds[there][at]
    # by their texts alone: `_called` says where they stand
    own, other = (name.split(": ", 1)[-1] for name in (here[at], there[at])) if operator == was else (operator, was)
    return f"for another program: {_called(model, block[at])} is {own} here, {other} there"


def changed(model: Model, node: int, was: str, width: int) -> str | None:
    """How a choice differs from the one at its site that was compiled, `was` with so many free coordinates, 0 of a
    discrete one; None where it does not."""
    record, arguments = model.trace.application(node)
    if not isinstance(record, Random):
        return None
    own = described(record)
    if own != was:
        return f"for another program: {_called(model, node)} is {own} here, {was} there"
    here = 0
    if record.transform is not None:
        here = int(np.size(record.transform.to_free(model.trace.value(node), arguments)))
    if here != width:
        return f"for data of other sizes: {_called(model, node)} has {_numbers(here)} here, {_numbers(width)} there"
    return None


def described(record: Random) -> str:
    """A distribution, as files know it: of one that Python registered, also where its values lie, if it says so."""
    transform = record.transform
    is_known = registry.PROCEDURES.get(record.name) is record
    if is_known or not isinstance(transform, Elementwise) or transform.reads_arguments:
        return record.name
    low, high = (_end(transform.from_free(end, ())) for end in (-FAR, FAR))
    return f"{record.name} from {low:.3g} to {high:.3g}"


def _end(value: float) -> float:
    """Of a support whose values lie strictly inside."""
    return math.copysign(math.inf, value) if abs(value) >= FAR else 0.0 if abs(value) <= 1.0 / FAR else value


def _numbers(width: int) -> str:
    return "a discrete value" if not width else "1 number" if width == 1 else f"{width} numbers"


def _called(model: Model, node: int) -> str:
    """What the program calls a choice: by the procedure that makes it, or the name that it is bound to."""
    code, slot, row = model.trace.decode(node)
    calls = model.trace.call_chain(code, slot, row, 1)
    return calls[0].name if calls else code.name if code.name != "expression" else names_of(model, (node,))[0]
