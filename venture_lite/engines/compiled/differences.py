"""How the program at hand differs from the one that a proposer was compiled for, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from venture_lite.blocks.worlds import names_of
from venture_lite.interpreter.model import Model

Distributions = Sequence[str]
"""Of the choices of a block, in order."""


def difference(model: Model, block: Sequence[int], kinds: Mapping[tuple[str, ...], Distributions]) -> str:
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


def _called(model: Model, node: int) -> str:
    """What the program calls a choice: by the procedure that makes it, or the name that it is bound to."""
    code, slot, row = model.trace.decode(node)
    calls = model.trace.call_chain(code, slot, row, 1)
    return calls[0].name if calls else code.name if code.name != "expression" else names_of(model, (node,))[0]
