"""The data of a program, each of which can be out of one chain's trace for a while."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from venture_lite.errors import Span, VentureError
from venture_lite.interpreter.weights import Weight
from venture_lite.interpreter.withdrawal import Places, put_back, requested, withdraw
from venture_lite.program.code import Code
from venture_lite.session.live import Directory, LivePasses, LoopPart


@dataclass(slots=True)
class _Group:
    """The data of one loop: its directives, in order, and the passes that still have an observation."""

    passes: LivePasses
    span: Span
    parts: list[LoopPart]
    positions: Sequence[int] = ()


class LoopData:
    """Data by number, from 0, in the order of entry. A *datum* is a pass of an innermost loop that observes, with all
    rows of that pass; where they are asked for, also an observation outside of loops. Holds what is out; the trace
    holds the rest.

    Raises VentureError where two passes of a loop have the same index.
    """

    def __init__(self, directory: Directory, chain: int, with_single: bool = False) -> None:
        self.model = directory.chains.models[chain]
        self._chain = chain
        self._groups = [group for group in _groups(directory, with_single) if group.positions]
        self._starts = list(accumulate((len(group.positions) for group in self._groups), initial=0))
        # datum that is out -> what each of its rows observed
        self._observed: dict[int, list[Any]] = {}

    @property
    def count(self) -> int:
        return self._starts[-1]

    def is_out(self, datum: int) -> bool:
        return datum in self._observed

    def remove(self, datum: int) -> None:
        """Take a datum out, with the choices that nothing else refers to."""
        self._observed[datum] = withdraw(self.model, self._places(datum))

    def add(self, datum: int) -> None:
        """Put a datum back; choices that it brings are drawn as evaluation draws them."""
        self.feed(datum)
        self.is_in(datum)

    def feed(self, datum: int) -> Weight:
        """As `add`, but for the next state of the trace the datum is out again, until `is_in` says otherwise; the
        weight of what it observes."""
        try:
            return put_back(self.model, self._places(datum), self._observed[datum])
        except VentureError as error:
            group, position = self._find(datum)
            if group.passes.names:
                error.in_pass(group.passes.told(position))
            raise

    def is_in(self, datum: int) -> None:
        """The datum is in, in every state that the trace will have."""
        del self._observed[datum]

    def all_in(self) -> None:
        """The trace is in a state in which no datum is out."""
        self._observed.clear()

    def can_go(self, datum: int) -> bool:
        """Whether a datum observes choices that nothing else has made."""
        return not any(made.elsewhere for made, _ in self._places(datum))

    def evidence(self, datum: int) -> list[int]:
        """The choices that a datum which is in observes, in order."""
        found = ((made, int(made.rows[position])) for made, position in self._places(datum) if made.observed)
        return [node for made, row in found for node in self.model.evidence_nodes(made.code, row)]

    def rows(self, datum: int) -> list[tuple[Code, int]]:
        """The rows of a datum's directives, in order."""
        return [(made.code, int(made.rows[position])) for made, position in self._places(datum)]

    def choices(self, datum: int) -> list[int]:
        """The unobserved choices of a datum that is in."""
        return requested(self.model.trace, self._places(datum))

    def _find(self, datum: int) -> tuple[_Group, int]:
        at = bisect_right(self._starts, datum) - 1
        group = self._groups[at]
        return group, group.positions[datum - self._starts[at]]

    def _places(self, datum: int) -> Places:
        group, position = self._find(datum)
        return [(part.rows[self._chain], position) for part in group.parts if position not in part.forgotten]


def _groups(directory: Directory, with_single: bool) -> list[_Group]:
    """The data by loop; where a loop runs pass by pass, by pass; observations outside of loops by themselves, where
    they are asked for."""
    groups: dict[Any, _Group] = {}
    # a directive of a loop that runs pass by pass stands once in each pass
    written: set[tuple[Any, Span]] = set()
    for live in directory:
        for part in live.parts:
            if part.passes is None:
                if with_single and part.rows[0].observed:
                    groups[id(part)] = _Group(LivePasses((), (), 1), live.span, [part])
                continue
            at = (int(column[0]) for column in part.passes.variables)
            key = id(part.passes) if live.is_loop else (id(live.run), part.passes.names, *at)
            group = groups.setdefault(key, _Group(part.passes, live.span, []))
            if not live.is_loop and (key, live.span) in written:
                raise _repeated(group, 0)
            written.add((key, live.span))
            group.parts.append(part)
    for group in groups.values():
        observing = [part for part in group.parts if any(rows.observed for rows in part.rows)]
        group.positions = _left(group.passes, observing)
        _refuse_repeated(group)
    return list(groups.values())


def _left(passes: LivePasses, observing: list[LoopPart]) -> Sequence[int]:
    """Positions that some observation still has."""
    if any(not part.forgotten for part in observing):
        return range(passes.count)
    return sorted({position for part in observing for position in part.left()})


def _refuse_repeated(group: _Group) -> None:
    variables = group.passes.variables
    if not variables or any(isinstance(column, range) for column in variables):
        return
    seen, first = np.unique(np.stack([np.asarray(column) for column in variables]), axis=1, return_index=True)
    if seen.shape[1] < group.passes.count:
        raise _repeated(group, min(set(range(group.passes.count)) - set(first.tolist())))


def _repeated(group: _Group, position: int) -> VentureError:
    message = f"two data have the same index ({group.passes.told(position)})"
    return VentureError(message, group.span, "give each loop a variable of its own")
