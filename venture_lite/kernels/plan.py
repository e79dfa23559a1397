"""Plans: a transition whose scaffold changes no structure, prepared once and run thousands of times.

A plan holds what a scaffold says: the principals and what is computed from them, in an order in which each finds its
parents done, and what absorbs. It is good while rows, edges and readers stay as they are. It makes the same draws, in
the same order, and the same decisions as detach and regenerate do on the same scaffold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from venture_lite.errors import VentureError
from venture_lite.interpreter.impossible import Standing, rejects
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.scaffold import Builder, Scaffold, UserGroup, is_maker_application
from venture_lite.interpreter.sources import computed_from, parents_of, source_value
from venture_lite.interpreter.weights import NEVER, Weight, density_of, log_density
from venture_lite.program.code import Kind
from venture_lite.trace.table import RANDOM_EDGE, ROW_MASK, Column, Table

Route = list[tuple[int, str, list[int]]]
"""How the nodes of a scaffold were found (`Builder.route`)."""

LONGEST = 64
"""More renewed nodes than this are left to the machine, which walks chains of any length."""


def make_plan(model: Model, block: tuple[int, ...], templates: Templates) -> Plan | None:
    """A plan for a block, or None where a transition may change structure or statistics."""
    if len(block) == 1 and (shaped := templates.bind(model, block[0])) is not None:
        return Plan(model, [block[0]], *shaped)
    builder = Builder(model.trace, by_family=True)
    scaffold = builder.build(block)
    if any(is_maker_application(model.trace, node) for node in scaffold.absorbing):
        return None
    if scaffold.structural or scaffold.makers or scaffold.brush or len(scaffold.pending) > LONGEST:
        return None
    if not all(_is_distribution(model, node) for node in scaffold.principals):
        return None
    order = _order(model, scaffold)
    if order is None:
        return None
    if len(block) == 1 and builder.route is not None and not scaffold.groups and not scaffold.users:
        templates.learn(model, block[0], builder.route, order, list(scaffold.absorbing))
    return Plan(
        model,
        list(scaffold.principals),
        order,
        list(scaffold.absorbing),
        list(scaffold.groups),
        list(scaffold.users),
    )


class Template:
    """The shape of a plan for one principal: how each node is found from another, by hops between sites."""

    def __init__(self, model: Model, principal: int, route: Route, order: list[int], absorbing: list[int]) -> None:
        places = {principal: 0}
        for _, _, nodes in route:
            for node in nodes:
                places.setdefault(node, len(places))
        self.size = len(places)
        tables, codes = model.trace.tables, model.trace.program.site_code
        # (place of the node it is found from, its table, environment column or None, packed site, place), or for users
        # (place, table, None, -1, [(site, place) of each])
        self.hops: list[tuple[int, Table, Column | None, int, Any]] = []
        for source, hop, nodes in route:
            table = tables[codes[source >> 32].index]
            if hop == "users":
                targets = [(node >> 32, places[node]) for node in nodes]
                self.hops.append((places[source], table, None, -1, targets))
            else:
                environment = table.environment if hop == "environment" else None
                (node,) = nodes
                self.hops.append((places[source], table, environment, node >> 32 << 32, places[node]))
        self.order = [places[node] for node in order]
        self.absorbing = [places[node] for node in absorbing]
        # (place, its flags' owner, slot, whether evidence fixes it), for what is renewed
        self.fixed = []
        for node in order:
            code, slot, row = model.trace.decode(node)
            table = tables[code.index]
            self.fixed.append((places[node], table, slot, table.is_observed(slot, row)))

    def bind(self, model: Model, principal: int) -> tuple[list[int], list[int]] | None:
        """(order, absorbing) for another principal of the same site, or None where its surroundings differ."""
        found = [-1] * self.size
        found[0] = principal
        for source, table, environment, site, place in self.hops:
            row = found[source] & ROW_MASK
            if site < 0:
                nodes = model.trace.users.nodes(table.code, row)
                if len(nodes) != len(place):
                    return None
                for node, (user_site, at) in zip(nodes, place):  # noqa: B905
                    if node >> 32 != user_site or found[at] not in (-1, node):
                        return None
                    found[at] = node
                continue
            node = site | (row if environment is None else environment.view[row])
            if found[place] not in (-1, node):
                return None
            found[place] = node
        for place, table, slot, fixed in self.fixed:
            flags = table.observed.get(slot)
            if fixed != (flags is not None and bool(flags[found[place] & ROW_MASK])):
                return None
        if len(set(found)) < self.size:
            return None
        return [found[place] for place in self.order], [found[place] for place in self.absorbing]


class Templates:
    """The shapes met so far, by the principal's site."""

    MOST = 8

    def __init__(self) -> None:
        self._by_site: dict[int, list[Template]] = {}
        self._version = -1

    def bind(self, model: Model, principal: int) -> tuple[list[int], list[int]] | None:
        if self._version != model.trace.program.version:
            self._by_site.clear()
            self._version = model.trace.program.version
        for template in self._by_site.get(principal >> 32, ()):
            shaped = template.bind(model, principal)
            if shaped is not None:
                return shaped
        return None

    def learn(self, model: Model, principal: int, route: Route, order: list[int], absorbing: list[int]) -> None:
        known = self._by_site.setdefault(principal >> 32, [])
        if len(known) < self.MOST:
            known.append(Template(model, principal, route, order, absorbing))


def _is_distribution(model: Model, node: int) -> bool:
    code, slot, row = model.trace.decode(node)
    if code.slots[slot].kind is Kind.RANDOM:
        return True
    return bool(model.trace.tables[code.index].edges[slot].view[row] == RANDOM_EDGE)


def _order(model: Model, scaffold: Scaffold) -> list[int] | None:
    """Principals and renewed nodes, parents first, in the order in which the machine would renew them."""
    waiting = {**scaffold.principals, **scaffold.pending}
    order: list[int] = []
    for first in list(waiting):
        stack = [first]
        while stack:
            node = stack[-1]
            if node not in waiting:
                stack.pop()
                continue
            needed = [parent for parent in parents_of(model.trace, node) if parent in waiting and parent != node]
            if not needed:
                order.append(node)
                del waiting[node]
                stack.pop()
            elif needed[0] in stack or len(stack) > LONGEST:
                return None
            else:
                stack.append(needed[0])
    return order


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
        "rows",
    )

    def __init__(
        self,
        model: Model,
        principals: list[int],
        order: list[int],
        absorbing: list[int],
        groups: Sequence[int] = (),
        users: Sequence[UserGroup] = (),
    ) -> None:
        self._model = model
        self._stamp = model.trace.structure_stamp()
        self._principals = principals
        # principals and renewed nodes, parents first
        self._order = order
        self._absorbing = absorbing
        # sites all of whose rows absorb
        self._groups = groups
        # choices that absorb as users of one family
        self._users = users
        # weight of the principals and of what absorbs but for whole sites, as of a version of the trace
        self._kept = Weight()
        self._kept_at = -1
        # rows of absorbing choices that a transition weighs
        self.rows = len(absorbing)
        for site in groups:
            table = model.trace.tables[model.trace.program.site_code[site].index]
            self.rows += table.count - table.dead
        self.rows += sum(group.rows.count for group in users)

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
        return source_value(self._model.machine, source)

    def transition(self, proposal: Proposal, decide: Callable[[Weight], bool]) -> bool:
        model = self._model
        journal = model.trace.journal
        try:
            with model.transaction() as change:
                proposal.prepare(model.trace, self._principals)
                old = self._present(proposal.counts, journal.version)
                weight = Weight()
                for site in self._groups:
                    weight.minus_also(model.kept.all_rows(site))
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
                old.add(log_density(trace, node >> 32, node & ROW_MASK))
        new, ratio = self._renew(proposal)
        return new.minus(old), ratio

    def _present(self, counts: bool, version: int) -> Weight:
        """What the principals and single absorbing choices weigh now; kept while nothing else was changed."""
        if self._kept_at == version:
            return self._kept
        weight = Weight()
        if counts:
            for node in self._principals:
                weight.add(log_density(self._model.trace, node >> 32, node & ROW_MASK))
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
                    trace.journal.put(column, row, self._renewed(node))
                    continue
                operator, arguments = trace.application(site, row)
                value, ratio = proposal.propose(node, operator, arguments, column.view[row])
                if proposal.counts:
                    weight.add(density_of(trace, site, row, operator, arguments, value))
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
            weight.add_choice(trace, node, log_density(trace, node >> 32, node & ROW_MASK))
        for group in self._users:
            weight.plus(self._model.kept.users(group).weigh(group.rows.array()))

    def _absorb_groups(self) -> Weight:
        weight = Weight()
        for site in self._groups:
            weight.plus(self._model.kept.all_rows(site))
        return weight
