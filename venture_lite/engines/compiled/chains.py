"""Chains by which a round sees what a proposer is worth on the data at hand: in the session's trace, and taken back.

Where structure stays, blocks are the same in all states. Where it depends on choices, blocks come and go; they are
known by their keys, in each transition some are drawn from those that there are, as for `one`, and what chains are
compared by are the choices that are there in all states, and of all others how many there are, and their sums.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from venture_lite.blocks import mode_search
from venture_lite.blocks.gradients import Densities
from venture_lite.blocks.worlds import Features, names_of
from venture_lite.draws.diagnostics import ess_bulk, r_hat
from venture_lite.engines.compiled.moves import CompiledMH
from venture_lite.engines.compiled.proposer import Proposer, SiteTexts
from venture_lite.engines.compiled.standing import StateProposal
from venture_lite.interpreter.kernel import Interpreted, Move, Resimulation
from venture_lite.interpreter.model import GivenValues, Model
from venture_lite.interpreter.selection import Selection, Selector, in_order, order_of
from venture_lite.values import key_of

CHAINS = 4
MOST_SWEPT = 20
"""Blocks that a transition moves, one after the other, where there are several."""
MOST_WATCHED = 100
"""Blocks of structure that changes by which chains are compared, the first in order."""

Identity = tuple[Hashable, SiteTexts]
"""Of a block where structure changes: its key, or its address, and the sites of its choices."""
Ends = dict[Any, list[Any]]
"""By block the values of its choices, in order."""


@dataclass(slots=True)
class ChainRun:
    """What chains came to. Mutable: grows state by state."""

    # how many transitions at the end of each chain its refusals are counted of
    counted: int
    # (C, T, Q) coordinates of all blocks, their squares and the log density
    quantities: np.ndarray = field(default_factory=lambda: np.zeros(0))
    # by kind the states of its blocks after they moved: what was read, and the numbers of the frame
    read: dict[SiteTexts, list[Features]] = field(default_factory=dict)
    numbers: dict[SiteTexts, list[list[float]]] = field(default_factory=dict)
    # of these, where the rest of the trace stays, the log densities but for a constant
    targets: list[float] = field(default_factory=list)
    # of each chain
    ends: list[Ends] = field(default_factory=list)
    # CPU seconds, and how many moves were refused
    seconds: float = 0.0
    refused: int = 0

    def _varied(self) -> Iterator[np.ndarray]:
        """(C, T) of each quantity that is not one number in all states of all chains: that has nothing to tell."""
        for at in range(self.quantities.shape[2]):
            if np.ptp(found := self.quantities[:, :, at]) > 0.0:
                yield found

    def least_ess(self) -> float:
        """Over all quantities."""
        return min((float(np.nan_to_num(ess_bulk(found))) for found in self._varied()), default=0.0)

    def worst_r_hat(self) -> float:
        return max((float(np.nan_to_num(r_hat(found), nan=np.inf)) for found in self._varied()), default=1.0)

    def note(self, engine: CompiledMH, times: int = 1) -> None:
        """What was read for a block that has just moved, and where it stands now."""
        state = engine.proposal.stands_at
        if isinstance(state, StateProposal) and times:
            self.read.setdefault(state.kind.sites, []).extend([state.reading.features] * times)
            self.numbers.setdefault(state.kind.sites, []).extend([state.numbers(engine.proposal.present())] * times)


class ChainDriver(Protocol):
    """Those of one `compile`."""

    def run(self, proposer: Proposer, starts: Sequence[Ends] | None, count: int, counted: int) -> ChainRun:
        """States of so many transitions of each chain, from draws of the prior or from where others have ended. The
        refusals of the last `counted` are counted. The trace is left as it was."""


def chains_of(model: Model, selection: Selection, safe: float, rng: np.random.Generator, varies: bool) -> ChainDriver:
    """`varies`: blocks come and go."""
    kind = ChangingChains if varies else SteadyChains
    return kind(model, selection, safe, rng)


@contextmanager
def _aside(model: Model, rng: np.random.Generator) -> Iterator[None]:
    trace = model.trace
    before, trace.rng = trace.rng, rng
    try:
        with model.aside():
            yield
    finally:
        trace.rng = before


# ------------------------------------------------------------------------------------------- where structure stays


class SteadyChains:
    """Of blocks that are the same in all states."""

    def __init__(self, model: Model, selection: Selection, safe: float, rng: np.random.Generator) -> None:
        self.model, self.selection, self.safe, self.rng = model, selection, safe, rng
        self._densities = Densities(model, "compile", lambda text: None)
        self.blocks = [in_order(model, nodes) for _, nodes in selection.present() if nodes]

    def run(self, proposer: Proposer, starts: Sequence[Ends] | None, count: int, counted: int) -> ChainRun:
        run, begun = ChainRun(counted), time.process_time()
        found = []
        for chain in range(CHAINS):
            with _aside(self.model, self.rng):
                self._start(proposer, starts[chain] if starts is not None else None)
                found.append(self._chain(proposer, run, count))
                run.ends.append(
                    {tuple(block): [self.model.trace.value(node) for node in block] for block in self.blocks}
                )
        run.quantities, run.seconds = np.array(found), time.process_time() - begun
        return run

    def _start(self, proposer: Proposer, ends: Ends | None) -> None:
        for block in self.blocks:
            _step(self.model, block, self.selection, None if ends is None else ends[tuple(block)])
        if ends is None:
            for block in self.blocks:
                self._climb(proposer, block)

    def _climb(self, proposer: Proposer, block: list[int]) -> None:
        """To the mode nearest to a draw of the prior: chains in modes that what was learned does not join stay there,
        where from far away all would go to the mode of the frame. Heads and body together need not have a mode."""
        kind = proposer.kind_of(self.model, block)
        if kind.frame.heads:
            return
        density = self._densities.of(block)

        def evaluate(free: np.ndarray) -> tuple[float, np.ndarray] | None:
            with self.model.aside():
                found = self._densities.at(density, free)
            return None if found is None or found[0].impossible else (found[0].total, found[1])

        start = density.present()
        if evaluate(start) is not None and evaluate(peak := mode_search.search(evaluate, start).at) is not None:
            density.put(peak)

    def _chain(self, proposer: Proposer, run: ChainRun, count: int) -> np.ndarray:
        """(T, Q)."""
        engine = CompiledMH(self.model, {proposer.name: proposer}, proposer.name, self.safe, lambda text: None)
        engine.proposal.teaches = True
        states, here = [], [np.zeros(0)] * len(self.blocks)
        for transition in range(count):
            self.model.poll()
            for at in self._moved_now(first=not transition):
                moved = engine.step(self.blocks[at], self.selection)
                run.refused += not moved and transition >= count - run.counted
                # the block that stands there is read anew, where its form did not
                engine.proposal.standing()
                here[at] = np.array(engine.proposal.present())
                if 2 * transition >= count:
                    run.note(engine)
                    if len(self.blocks) == 1 and isinstance(engine.proposal.stands_at, StateProposal):
                        run.targets.append(self.model.log_score().total + engine.proposal.log_volume())
            every = np.concatenate(here)
            states.append(np.concatenate((every, every**2, [self.model.log_score().total])))
        return np.array(states)

    def _moved_now(self, first: bool) -> Iterable[int]:
        size = len(self.blocks)
        return range(size) if first or size <= MOST_SWEPT else self.rng.choice(size, MOST_SWEPT, replace=False).tolist()


def _values(model: Model, block: list[int]) -> list[Any]:
    return [model.trace.value(node) for node in block]


def _step(model: Model, block: list[int], at: Selection, values: Sequence[Any] | None) -> None:
    """Put a block at some values, or draw it from the prior."""
    proposal = (
        Resimulation(model) if values is None else GivenValues(dict(zip(block, values, strict=True)), counts=False)
    )
    Interpreted(model, Move(proposal, lambda weight: True)).step(block, at)


# ----------------------------------------------------------------------------------------- where structure changes


class ChangingChains:
    """Of blocks that come and go with structure."""

    def __init__(self, model: Model, selection: Selection, safe: float, rng: np.random.Generator) -> None:
        self.model, self.safe, self.rng = model, safe, rng
        # sweeps are as long as there are blocks: their blocks are drawn
        is_swept = selection.selector.kind in ("each", "ordered")
        self.selection = Selection(model, selection.scope, Selector("one") if is_swept else selection.selector)
        self._is_range = selection.selector.kind == "range"
        self._blocks_before = self.selection.drawn_from()

    def run(self, proposer: Proposer, starts: Sequence[Ends] | None, count: int, counted: int) -> ChainRun:
        run, begun = ChainRun(counted), time.process_time()
        found = []
        for chain in range(CHAINS):
            with _aside(self.model, self.rng):
                self._start(starts[chain] if starts is not None else {})
                found.append(self._chain(proposer, run, count))
                run.ends.append({each: _values(self.model, block) for each, block in self._blocks().items()})
        run.quantities, run.seconds = _compared(found), time.process_time() - begun
        return run

    def _blocks(self) -> dict[Identity, list[int]]:
        """Those that there are in this state, the choices of each in order."""
        model, is_default, found = self.model, self.selection.scope == "default", {}
        for key, nodes in self.selection.present():
            if nodes:
                block = in_order(model, nodes)
                known = order_of(model, key) if is_default else key_of(key)
                found[known, names_of(model, block)] = block
        return found

    def _start(self, ends: Ends) -> None:
        """Every block at some values, or drawn from the prior; also those that this brings about."""
        done: set[Identity] = set()
        is_there = self.model.trace.default.has
        while todo := [pair for pair in self._blocks().items() if pair[0] not in done]:
            for each, block in todo:
                if not all(map(is_there, block)):
                    # it went with another, and others may have come
                    break
                done.add(each)
                _step(self.model, block, self.selection, ends.get(each))

    def _chain(self, proposer: Proposer, run: ChainRun, count: int) -> list[tuple[dict[Identity, np.ndarray], float]]:
        """Of each state the numbers of its blocks, and the log density."""
        engine = CompiledMH(self.model, {proposer.name: proposer}, proposer.name, self.safe, lambda text: None)
        engine.proposal.teaches = True
        states = []
        for transition in range(count):
            self.model.poll()
            for block in self._moved_now():
                moved = engine.step(block, self.selection)
                run.refused += not moved and transition >= count - run.counted
                if 2 * transition >= count:
                    run.note(engine, self._times())
            watched = list(self._blocks().items())[:MOST_WATCHED]
            states.append(({each: self._numbers(block) for each, block in watched}, self.model.log_score().total))
        return states

    def _times(self) -> int:
        """How often the state of a block that was drawn and moved counts: a block of few is drawn more often than one
        of many, though states with many are as likely as they are. In the state at the beginning, once."""
        return int(self.selection.drawn_from() / self._blocks_before + self.rng.random())

    def _moved_now(self) -> Iterator[list[int]]:
        """As many as a sweep has, each drawn from those that there are then."""
        if self._is_range:
            yield from self.selection.sweep()
            return
        size = self.selection.found().block_count() if self.selection.is_drawn else 1
        for _ in range(min(size, MOST_SWEPT)):
            if nodes := self.selection.next_block():
                yield nodes

    def _numbers(self, block: list[int]) -> np.ndarray:
        """Free coordinates, and the values of discrete choices."""
        found: list[float] = []
        for node in block:
            operator, arguments, value = self.model.trace.choice(node)
            transform = getattr(operator, "transform", None)
            found += (
                np.ravel(value if transform is None else transform.to_free(value, arguments)).astype(float).tolist()
            )
        return np.array(found)


def _compared(chains: list[list[tuple[dict[Identity, np.ndarray], float]]]) -> np.ndarray:
    """(C, T, Q): numbers of blocks that are there in all states with their squares; of the blocks of each kind how many
    there are, and the sums of their numbers and of the squares of these; log densities."""
    states = [state for chain in chains for state in chain]
    always = sorted(set(states[0][0]).intersection(*(blocks.keys() for blocks, _ in states)), key=repr)
    widths: dict[SiteTexts, int] = {}
    for blocks, _ in states:
        for (_, sites), numbers in blocks.items():
            widths[sites] = min(widths.get(sites, len(numbers)), len(numbers))
    rows = []
    for blocks, density in states:
        row = [np.concatenate((blocks[each], blocks[each] ** 2)) for each in always]
        for sites, width in widths.items():
            alike = np.array([numbers[:width] for (_, its), numbers in blocks.items() if its == sites])
            alike = alike.reshape(-1, width)
            row += [np.array([float(len(alike))]), alike.sum(axis=0), (alike**2).sum(axis=0)]
        rows.append(np.concatenate((*row, [density])))
    return np.array(rows).reshape(len(chains), len(chains[0]), -1)
