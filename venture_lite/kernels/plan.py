"""Plans: a transition whose scaffold changes no structure, prepared once and run thousands of times.

A plan is a shape with its binding (`interpreter/shape.py`), good while rows, edges and readers stay as they are. It
makes the same draws, in the same order, and the same decisions as detach and regenerate do on the same scaffold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from venture_lite.errors import VentureError
from venture_lite.interpreter.impossible import Standing, rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.scaffold import UserGroup
from venture_lite.interpreter.shape import Binding, NoShape, Shape
from venture_lite.interpreter.sources import computed_from, parents_of, source_value
from venture_lite.interpreter.weights import NEVER, Weight, density_of, log_density
from venture_lite.kernels.shapes import Shapes
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.table import ROW_MASK


def make_plan(model: Model, block: Sequence[int], shapes: Shapes) -> Plan | NoShape:
    """A plan for a block, or why a transition cannot be planned."""
    found = shapes.shape_of(model.trace, block)
    return found if isinstance(found, NoShape) else Plan(model, *found)


class Plan:
    __slots__ = (
        "_absorbing",
        "_groups",
        "_kept",
        "_kept_at",
        "_model",
        "_order",
        "_principals",
        "_stamp",
        "_users",
        "binding",
        "rows",
        "shape",
        "uses",
    )

    def __init__(self, model: Model, shape: Shape, binding: Binding) -> None:
        self._model = model
        self._stamp = model.trace.structure_stamp()
        # what forms are made of (`formed.py`), and how many transitions were made
        self.shape, self.binding, self.uses = shape, binding, 0
        nodes = binding.nodes
        self._principals = [nodes[place] for place in shape.principals]
        # principals and renewed nodes, parents first
        self._order = [nodes[place] for place in shape.order]
        self._absorbing = [nodes[place] for place in shape.absorbing]
        # sites all of whose rows absorb
        self._groups = shape.groups
        # choices that absorb as users of one family
        self._users = binding.users
        # weight of the principals and of what absorbs but for whole sites, as of a version of the trace
        self._kept = Weight()
        self._kept_at = -1
        # rows of absorbing choices that a transition weighs
        self.rows = len(self._absorbing)
        for site in shape.groups:
            table = model.trace.tables[model.trace.program.site_code[site].index]
            self.rows += table.count - table.dead
        self.rows += sum(group.rows.count for group in binding.users)

    def pays_at_once(self) -> bool:
        """Whether one transition by the plan and the making of it cost less than one without."""
        return self.shape.hops is not None or bool(self.shape.users)

    def is_valid(self) -> bool:
        return self._stamp == self._model.trace.structure_stamp()

    @property
    def order(self) -> list[int]:
        """The block and what is computed from it, parents first."""
        return self._order

    @property
    def sites(self) -> Sequence[int]:
        """Sites all of whose rows absorb."""
        return self._groups

    @property
    def users(self) -> Sequence[UserGroup]:
        """Choices that absorb as users of one family."""
        return self._users

    @property
    def single(self) -> list[int]:
        """Choices that absorb one by one."""
        return self._absorbing

    def _renewed(self, node: int) -> Any:
        """The new value of a node that is computed from others."""
        source = computed_from(self._model.trace, node)
        assert source is not None
        return source_value(self._model.trace, source)

    def transition(self, proposal: Proposal, decide: Callable[[Weight], bool]) -> bool:
        model = self._model
        journal = model.trace.journal
        try:
            with model.transaction() as change:
                proposal.prepare(model.trace, self._principals)
                old = self._present(proposal.counts, journal.version)
                weight = Weight()
                for site in self._groups:
                    weight.minus_also(model.weights.all_rows(site))
                weight.minus_also(old)
                new, ratio = self._renew(proposal)
                weight.total += ratio
                self._weigh(new, weight)
                accepted = decide(weight)
                if accepted:
                    change.keep()
        except VentureError as error:
            if not self.rejects(error):
                raise
            return decide(Weight(NEVER))
        self._kept, self._kept_at = new if accepted else old, journal.version
        return accepted

    def _weigh(self, new: Weight, weight: Weight) -> None:
        """Add what absorbs the new values to the weight of the new state, and all of it to the weight of the change."""
        try:
            self._absorb(new)
            weight.plus(new)
            weight.plus(self._absorb_groups())
        except VentureError as error:
            raise self.judged(error) from error

    @property
    def _standing(self) -> Standing:
        """Made where an error asks for it: there are as many plans as blocks."""
        return Standing(self._model.trace, [*self._principals, *self._absorbing], self._groups, self._users)

    def judged(self, error: VentureError) -> VentureError:
        """An error met where what absorbs is weighed, all else having its new value."""
        return self._standing.judged(error, ())

    def rejects(self, error: VentureError) -> bool:
        """Whether an error rejects the proposal that met it, which was taken back."""
        return rejects(self._model, error, self._standing)

    def propose(self, proposal: Proposal) -> tuple[Weight, float]:
        """New values for the block and what is computed from it: the change of the block's own weight, the ratio."""
        trace = self._model.trace
        proposal.prepare(trace, self._principals)
        old = Weight()
        if proposal.counts:
            for node in self._principals:
                old.add(log_density(trace, node))
        new, ratio = self._renew(proposal)
        return new.minus(old), ratio

    def _present(self, counts: bool, version: int) -> Weight:
        """What the principals and single absorbing choices weigh now; kept while nothing else was changed."""
        if self._kept_at == version:
            return self._kept
        weight = Weight()
        if counts:
            for node in self._principals:
                weight.add(log_density(self._model.trace, node))
        self._absorb(weight)
        return weight

    def _renew(self, proposal: Proposal) -> tuple[Weight, float]:
        """New values for principals and what is computed from them; the principals' weight and the proposals' ratio."""
        trace = self._model.trace
        weight, ratios = Weight(), 0.0
        at = 0
        try:
            for at, node in enumerate(self._order):  # noqa: B007
                site, row = node >> 32, node & ROW_MASK
                column = trace.column(site)
                if node not in self._principals:
                    if not isinstance(column, BorrowedColumn):
                        trace.journal.put(column, row, self._renewed(node))
                    continue
                operator, arguments = trace.application(node)
                value, ratio = proposal.propose(node, operator, arguments, column.view[row])
                if proposal.counts:
                    weight.add(density_of(trace, node, operator, arguments, value))
                ratios += ratio
                trace.journal.put(column, row, value)
        except VentureError as error:
            raise self._standing.judged(error, self._renew_others(at)) from error
        return weight, ratios

    def _renew_others(self, failed: int) -> set[int]:
        """Where a node cannot be renewed: renew the later ones that can be; those that do not have new values."""
        model, trace = self._model, self._model.trace
        waiting = set(self._order[failed:])
        for node in self._order[failed + 1 :]:
            if node in self._principals or not waiting.isdisjoint(parents_of(model.trace, node)):
                continue
            try:
                trace.journal.put(trace.column(node >> 32), node & ROW_MASK, self._renewed(node))
            except VentureError:
                continue
            waiting.discard(node)
        return waiting

    def _absorb(self, weight: Weight) -> None:
        """Add the single absorbing choices and the users of families."""
        trace = self._model.trace
        for node in self._absorbing:
            weight.add_choice(trace, node, log_density(trace, node))
        for group in self._users:
            weight.plus(self._model.weights.users(group).weigh(group.rows.array()))

    def _absorb_groups(self) -> Weight:
        weight = Weight()
        for site in self._groups:
            weight.plus(self._model.weights.all_rows(site))
        return weight
