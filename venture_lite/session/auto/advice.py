"""What a model might be written as instead, where that is all that keeps it from a kernel that moves it well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from venture_lite.interpreter.ancestry import depends_on_choice
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.procedures.record import Random
from venture_lite.program.code import Code, Kind
from venture_lite.trace.nodes import site_of

LOOKED_AT = 3
"""Choices of a site: what the first one of a chain is given may be known, and the last one decides nothing."""


def written_apart(model: Model, nodes: Sequence[int]) -> Iterator[str]:
    """A line for each `if` whose branches are choices of one distribution that decide which others there are.

    So are the states of a chain that is written `(if (state (- t 1)) (flip p) (flip q))`: a state that changes makes
    another choice of the next one, and with it of all that follow.
    """
    trace, looked, told = model.trace, Counter[int](), set[tuple[int, int]]()
    for node in nodes:
        branch, _, row = trace.decode(node)
        looked[site_of(node)] += 1
        if branch.kind != "branch" or looked[site_of(node)] > LOOKED_AT:
            continue
        code, row = trace.environment(branch, row)
        apart, key = code.slots[branch.if_slot], (code.index, branch.if_slot)
        record, other = map(_drawn_by, apart.branches)
        if record is None or record is not other or key in told:
            continue
        if not depends_on_choice(trace, code, row, [apart.operator], keys_are_fixed=True):
            continue
        if not Builder(trace).build([node], with_brush=False).structural:
            continue
        told.add(key)
        place = "" if apart.span is None else f"{apart.span.place()}: "
        yield (
            f"{place}each branch is a choice of its own, which decides what others there are, and is moved by itself: "
            f"({record.name} (if ... p q)) in place of (if ... ({record.name} p) ({record.name} q)) is one choice, and "
            "may be drawn with its neighbours"
        )


def _drawn_by(branch: Code) -> Random | None:
    """The distribution of the choice that a branch is; None where it is something else."""
    slot = branch.result_slot
    if slot < 0 or branch.slots[slot].kind is not Kind.RANDOM:
        return None
    record = branch.slots[slot].record
    return record if isinstance(record, Random) else None
