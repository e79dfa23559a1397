"""Transitions of Metropolis and Hastings for all particles of a population at once, where only values change.

A proposal that is arithmetic on numbers is the same arithmetic on columns; what absorbs is weighed for every particle
by the columns form of its density. Each particle has numbers of its own, and is accepted by itself. What is printed
stands as long as structure does: a density is looked up in the text when it is asked for, since its power may change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from venture_lite.interpreter.answered_columns import value_at
from venture_lite.interpreter.application import admitted
from venture_lite.interpreter.impossible import REJECTING
from venture_lite.interpreter.kernel import Metropolis, Move
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.regenerate import Formulated
from venture_lite.interpreter.schedule import BlockNodes, Bundle, Schedule, StrandRows
from venture_lite.interpreter.weights import density_of
from venture_lite.kernels.population import ColumnChoice, Failures, Population, StepFunction, Writer
from venture_lite.procedures.numeric import on_columns
from venture_lite.procedures.simulation import ColumnGenerator
from venture_lite.trace.nodes import row_of
from venture_lite.trace.table import column_of

MOST = 2000
"""Choices that absorb a block: a function that weighs more of them takes long to print."""


class NoColumns(Exception):
    """A transition cannot be made for all particles at once."""


class _Propose:
    """New values of one choice, by a proposal from those that stand."""

    def __init__(self, choice: ColumnChoice, proposal: Formulated) -> None:
        self.choice = choice
        self.proposal = proposal
        # what stands, with its arguments; then the log of the ratio of the proposal's densities
        self.old = np.zeros(0)
        self.before: tuple[Any, ...] = ()
        self.ratio: Any = 0.0

    def __call__(self, particles: int, *arguments: Any) -> np.ndarray:
        """Raises NoColumns for what does not depend on the values: a transition that is given up for what it proposed
        would be another one."""
        choice = self.choice
        rng: Any = ColumnGenerator(choice.trace.rng, particles)
        arguments = self._admitted(particles, arguments)
        with np.errstate(all="ignore"):
            found = self.proposal.formula(on_columns, rng, choice.record, self.old, self.before, arguments)
        if found is None:
            raise NoColumns
        values = np.broadcast_to(np.asarray(found[0]), (particles,))
        if values.dtype != self.old.dtype:
            raise NoColumns
        self.ratio = found[1]
        return values.copy()

    def _admitted(self, particles: int, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments; those from which a particle can draw nothing are noted, and its old ones stand for them."""
        choice = self.choice
        if choice._fit(arguments):
            return arguments

        def admit(at: int, row: tuple[Any, ...]) -> bool:
            return admitted(choice.trace, choice.record, row, choice.nodes[0])

        refused = ~np.array(choice._row_by_row(particles, arguments, admit, False), bool)
        return tuple(np.where(refused, old, new) for old, new in zip(self.before, arguments, strict=True))


class _MoveWriter(Writer):
    """Writes what a transition computes."""

    keeps_records = False

    def propose(self, node: int, proposal: Formulated) -> _Propose:
        record, _, arguments = self._application(node)
        texts, lifted = list(map(self.value, arguments)), tuple(map(self.is_lifted, arguments))
        made = _Propose(ColumnChoice(self.trace, [node], record, lifted, self.failures, False), proposal)
        self._set(node, f"{self._bind(made)}(n, {', '.join(texts)})")
        self.choices[node] = made.choice
        return made

    def tell(self, node: int) -> None:
        """Give the arguments of a choice."""
        _, _, arguments = self._application(node)
        self.lines.append(f"w.append(({''.join(f'{self.value(each)}, ' for each in arguments)}))")


class ColumnMove:
    """One block's transitions by a move, for populations of the nodes given.

    Raises NoColumns where its proposal is no arithmetic, or too much absorbs.
    """

    def __init__(self, model: Model, block: Sequence[int], known: Sequence[int], move: Move) -> None:
        proposal = move.proposal
        if not isinstance(proposal, Formulated) or proposal.key is None or not isinstance(move.decide, Metropolis):
            raise NoColumns
        self._model, self._trace = model, model.trace
        schedule = Schedule(model.trace, [block])
        (step,) = schedule.steps or [BlockNodes()]
        if not schedule.is_plain() or len(step.absorbing) > MOST:
            raise NoColumns
        self._failures: Failures = {}
        self._known, self._principals = known, list(schedule.scaffold.principals)
        self._rows: dict[int, StrandRows] = {node: row_of(node) for node in (*known, *step.order, *step.absorbing)}
        self._bundle = Bundle([BlockNodes(list(self._rows))], 1, self._rows)
        told, weigh, propose = (self._writer() for _ in range(3))
        for node in self._principals:
            told.tell(node)
        for node in (*(self._principals if proposal.counts else ()), *step.absorbing):
            weigh.weigh(node)
        self._proposes: dict[int, _Propose] = {}
        for node in step.order:
            if node in schedule.scaffold.principals:
                self._proposes[node] = propose.propose(node, proposal)
            else:
                propose.renew(node)
        self._tell, self._weigh, self._propose = told.step(), weigh.step(), propose.step()
        # what moves with the block
        self._moves = [node for node in step.order if node in propose.moved]

    def _writer(self) -> _MoveWriter:
        return _MoveWriter(self._model, self._bundle, self._known, self._failures, retains=False)

    def step(self, population: Population, count: int) -> np.ndarray:
        """One transition of each particle; whether each was accepted (count,).

        Raises NoColumns, the population being as it was, where values or arguments are not as columns have them.
        """
        if any(population[node].ndim > 1 or population[node].dtype == object for node in self._principals):
            raise NoColumns
        before, after = _total(self._weigh, population, count, self._failures), dict(population)
        for node, given in zip(self._principals, self._tell(population, count), strict=True):
            self._proposes[node].old, self._proposes[node].before = population[node], tuple(given)
        self._failures.clear()
        self._propose(after, count)
        weight = _total(self._weigh, after, count, self._failures, dict(self._failures)) - before
        for made in self._proposes.values():
            weight = weight + made.ratio
        accepted = np.log(self._trace.rng.random(count)) < weight
        for node in self._moves:
            population[node] = _chosen(accepted, after[node], population[node])
        return np.asarray(accepted)


class ColumnWeights:
    """The sum of the log densities of some choices, for populations of the nodes given. Raises NoColumns for too many
    of them."""

    def __init__(self, model: Model, nodes: Sequence[int], known: Sequence[int]) -> None:
        if len(nodes) > MOST:
            raise NoColumns
        rows: dict[int, StrandRows] = {node: row_of(node) for node in (*known, *nodes)}
        self._trace = model.trace
        self._failures: Failures = {}
        writer = _MoveWriter(model, Bundle([BlockNodes(list(rows))], 1, rows), known, self._failures, retains=False)
        # those that read no node of the population
        self._fixed = [node for node in nodes if not writer.weigh(node)]
        self._weigh = writer.step()

    def __call__(self, population: Population, count: int) -> np.ndarray:
        """For every particle (count,)."""
        fixed = sum(density_of(self._trace, node, *self._trace.choice(node)) for node in self._fixed)
        return fixed + _total(self._weigh, population, count, self._failures)


def _chosen(accepted: np.ndarray, new: np.ndarray, old: np.ndarray) -> np.ndarray:
    """The new values of the particles that were accepted, and the old ones of the others."""
    if new.dtype == old.dtype and new.shape == old.shape and new.dtype != object:
        return np.where(accepted.reshape(-1, *[1] * (new.ndim - 1)), new, old)
    return column_of([value_at(new if moved else old, at) for at, moved in enumerate(accepted.tolist())])


def _total(
    weigh: StepFunction, population: Population, count: int, failures: Failures, failed: Failures | None = None
) -> np.ndarray:
    """The sum of what a function weighs: -inf where a particle is in a state that cannot be; some have `failed`
    before. An error in a state that is impossible for another reason as well says nothing against the program."""
    failures.clear()
    total = np.zeros(count)
    with np.errstate(all="ignore"):
        for term in weigh(population, count):
            total += term
    for particle, error in {**failures, **(failed or {})}.items():
        if total[particle] > -np.inf and not isinstance(error, REJECTING):
            raise error
        total[particle] = -np.inf
    return total
