"""Detach and regenerate: the two mirrored halves of every transition on a scaffold.

`detach` takes out what the scaffold holds and returns the weight of the state that it leaves; `regenerate` puts new
values in and returns the weight of the state that it makes. Fresh choices come from their distributions, so that they
cancel and carry no weight; what counts is what absorbs: choices with evidence or with a parent that moved, and the
joint densities of makers' statistics.

The order keeps exchangeable procedures exact. Detach: first the applications that absorb, then the brush, then the
principals, last the makers' joint densities. Regenerate: the mirror image. So each predictive density is taken with the
same other applications present, whichever way a transition goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from venture_lite.errors import InternalError, KernelError, LimitError, VentureError
from venture_lite.interpreter.evidence import take_in
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.impossible import REJECTING, Standing
from venture_lite.interpreter.machine import Machine
from venture_lite.interpreter.scaffold import Scaffold
from venture_lite.interpreter.weights import KeptWeights, Weight, count_if_impossible, density_of, log_density
from venture_lite.procedures.record import Random
from venture_lite.program.code import Code, Kind
from venture_lite.trace.keys import KeyIndex
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import MAKER_EDGE, RANDOM_EDGE, ROW_MASK
from venture_lite.trace.trace import Trace


class Proposal(Protocol):
    """Where a principal's new value comes from."""

    # whether the principal's own density counts: false where the proposal is its own distribution, which cancels
    counts: bool

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Look at the old state before it is detached."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        """(new value, log of the ratio of proposal densities, reverse over forward; Jacobians included)."""


@runtime_checkable
class Formulated(Proposal, Protocol):
    """A proposal that is arithmetic on numbers, where their distributions allow it."""

    @property
    def key(self) -> Hashable | None:
        """Equal keys mean equal proposals in all states of a model; None where that cannot be said."""

    def formula(
        self,
        over: Callable[[Callable[..., Any]], Callable[..., Any]],
        rng: Any,
        record: Random,
        old: Any,
        before: Sequence[Any],
        arguments: Sequence[Any],
    ) -> tuple[Any, Any] | None:
        """What `propose` gives, of a value and of its arguments before and now; None where that is no arithmetic.
        `over` makes a function of the numeric namespace one of what these are."""


Straight = Callable[..., tuple[Any, float]]
"""(row, old value, *arguments) -> what `propose` gives."""


@runtime_checkable
class Straightened(Proposal, Protocol):
    """A proposal that has a shorter way where a single choice moves and no structure changes."""

    def straight(self, site: int, record: Random, count: int) -> Straight | None:
        """What `prepare` and `propose` come to for a choice at a site, of so many arguments, as one function; None
        where there is none."""


class Regenerator:
    """Works on one trace with its machine and its kept weights."""

    def __init__(self, trace: Trace, machine: Machine, kept: KeptWeights) -> None:
        self.trace = trace
        self.machine = machine
        self.kept = kept
        # the power of observed choices' densities: other than 1 while their likelihood is tempered
        self.power = 1.0
        # how often a scaffold was taken out, to be made anew or put back, or other work was done row by row
        self.regenerations = 0

    @contextmanager
    def tempered(self, power: float) -> Iterator[None]:
        """In the block observed choices count with their densities to a power."""
        before, self.power = self.power, power
        try:
            yield
        finally:
            self.power = before

    # ------------------------------------------------------------------------------------------------- detach

    def detach(self, scaffold: Scaffold, counts: bool) -> Weight:
        """Take the scaffold out of the trace; `counts` says whether the principals' densities are weighed."""
        self.regenerations += 1
        trace = self.trace
        weight = Weight()
        if self.power != 1.0 and scaffold.makers:
            code, slot, _ = trace.decode(next(iter(scaffold.makers)))
            raise KernelError("single draws are tempered, not the joint density of these", code.slots[slot].span)
        for node in scaffold.absorbing:
            self._absorb(node, weight, enters=False)
        for site in scaffold.groups:
            self._weigh_group(site, weight)
        if scaffold.edges or scaffold.brush:
            self._detach_families(scaffold, weight)
        for node in reversed(scaffold.principals):
            self._take_out(node)
            if counts:
                weight.add(log_density(trace, node))
        for node in scaffold.makers:
            weight.add(trace.value(node).state.log_joint())
        return weight

    def _detach_families(self, scaffold: Scaffold, weight: Weight) -> None:
        """Take out what goes as a whole, its choices with evidence first."""
        trace = self.trace
        free = []
        for node in self.choices_that_go(scaffold):
            if trace.is_observed(node):
                self._absorb(node, weight, enters=False)
            else:
                free.append(node)
        for node in free:
            trace.unregister(*trace.decode(node))
            self._take_out(node)
        self._release(scaffold)

    def touched(self, scaffold: Scaffold) -> Iterator[int]:
        """Choices whose density a change of the scaffold may change, or that go with it."""
        yield from Standing(self.trace, [*scaffold.principals, *scaffold.absorbing], scaffold.groups)
        yield from self.choices_that_go(scaffold)

    def choices_that_go(self, scaffold: Scaffold) -> list[int]:
        """Choices of the brush, and structural nodes that are choices themselves, in the reverse order of making."""
        trace = self.trace
        found: list[int] = []
        for node in scaffold.structural:
            if trace.edge(node) in (RANDOM_EDGE, MAKER_EDGE):
                found.append(node)
        for code, row in scaffold.brush:
            for step in code.steps:
                if trace.is_choice(code, step, row):
                    found.append((code.first_site + step) << 32 | row)
        found.reverse()
        return found

    def _take_out(self, node: int) -> None:
        """Remove an application from the statistics of its maker."""
        trace = self.trace
        if trace.edge(node) == MAKER_EDGE:
            operator, *inputs = trace.read(node >> 32, node & ROW_MASK)
            trace.statistics.unincorporate(operator, trace.value(node), tuple(inputs))

    def _release(self, scaffold: Scaffold) -> None:
        """Let go of families: users leave memoized ones, and what nobody uses any more dies."""
        trace = self.trace
        for node in scaffold.edges:
            packed = trace.edge(node)
            if packed >= 0 and trace.tables[packed >> 32].memo_of(packed & ROW_MASK) is not None:
                trace.users.remove(trace.program.codes[packed >> 32], packed & ROW_MASK, node >> 32, node & ROW_MASK)
        for code, row in reversed(scaffold.brush):
            self._kill(code, row)

    def _kill(self, code: Code, row: int) -> None:
        trace = self.trace
        table = trace.tables[code.index]
        for step in code.steps:
            if code.slots[step].kind is Kind.MAKER:
                trace.statistics.drop(table.columns[step].view[row])  # type: ignore[union-attr]
        memo = table.memo_of(row)
        if memo is not None:
            assert table.memos is not None
            key = trace.memo_key(code, row)
            memo.entries.remove(key)
            trace.journal.note(KeyIndex.add, memo.entries, key, row)
            trace.journal.note(table.memos.__setitem__, row, memo)
            table.memos[row] = None
        if table.child_position is not None:
            assert table.environment is not None
            environment = table.environment.view[row]
            bag = table.children[environment]
            bag.remove(row, trace.journal)
            if not bag.count:
                trace.journal.del_item(table.children, environment)
        trace.journal.kill(table, row)

    # ---------------------------------------------------------------------------------------------- regenerate

    def regenerate(self, scaffold: Scaffold, proposal: Proposal) -> Weight:
        """Put new values in. An error leaves it to the caller to roll back."""
        machine = self.machine
        handler = Regeneration(self.trace, scaffold, proposal)
        weight = handler.weight
        with machine.handled_by(handler):
            try:
                for node in scaffold.principals:
                    machine.renew(node)
                for node in scaffold.pending:
                    machine.renew(node)
                self.weigh_constrained(weight)
                for node in reversed(scaffold.absorbing):
                    self._absorb(node, weight)
                for site in scaffold.groups:
                    self._weigh_group(site, weight)
            except VentureError as error:
                raise self._judged(scaffold, handler, error) from error
        return weight

    def _judged(self, scaffold: Scaffold, handler: Regeneration, error: VentureError) -> VentureError:
        """An error met on the way to a new state, or an ImpossibleState: first all else that needs no more decisions is
        renewed, in so far as it can be."""
        machine = self.machine
        machine.stack.clear()
        unproposed = Unproposed(self.trace, handler)
        if not isinstance(error, (*REJECTING, KernelError, LimitError)):
            with machine.handled_by(unproposed):
                for node in scaffold.pending:
                    try:
                        machine.renew(node)
                    except VentureError as another:
                        machine.stack.clear()
                        if isinstance(another, REJECTING):
                            return another
        single = [*scaffold.principals, *unproposed.constrained, *scaffold.absorbing]
        return Standing(self.trace, single, scaffold.groups).judged(error, unproposed.pending)

    def weigh_constrained(self, weight: Weight) -> None:
        """Count and incorporate the constrained choices that evaluation made."""
        constrained = self.machine.handler.constrained
        for node in constrained:
            self._absorb(node, weight)
        constrained.clear()

    def _absorb(self, node: int, weight: Weight, enters: bool = True) -> None:
        """Weigh a choice whose value stays, tempered where it is observed. An application enters the statistics of its
        maker after that; or leaves them before."""
        trace = self.trace
        operator, arguments, value = trace.choice(node)
        if not enters and isinstance(operator, Exchangeable):
            trace.statistics.unincorporate(operator, value, arguments)
        term = density_of(trace, node, operator, arguments, value)
        if term == -math.inf:
            weight.impossible += count_if_impossible(trace, node)
        elif self.power == 1.0 or not trace.is_observed(node):
            weight.total += term
        else:
            weight.total += term * self.power
        if enters and isinstance(operator, Exchangeable):
            take_in(trace, node, operator, value, arguments, term)

    def _weigh_group(self, site: int, weight: Weight) -> None:
        if self.power == 1.0:
            weight.plus(self.kept.all_rows(site))
            return
        for node in self.trace.nodes_of(site):
            self._absorb(node, weight)


class Regeneration(Handler):
    """Gives principals their values and makers their arguments, and weighs both."""

    def __init__(self, trace: Trace, scaffold: Scaffold, proposal: Proposal) -> None:
        super().__init__(trace, (*scaffold.principals, *scaffold.pending), scaffold.structural)
        self.scaffold = scaffold
        self.proposal = proposal
        # of the state that is made
        self.weight = Weight()

    def renew(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        trace, proposal, weight = self.trace, self.proposal, self.weight
        if node in self.scaffold.makers:
            trace.statistics.set_arguments(operator, arguments)
            weight.add(operator.state.log_joint())
            return operator
        if node not in self.scaffold.principals:
            raise InternalError("a choice outside the principals was renewed")
        value, ratio = proposal.propose(node, operator, arguments, trace.value(node))
        weight.total += ratio
        term = 0.0
        if proposal.counts:
            term = density_of(trace, node, operator, arguments, value)
            weight.add(term)
        if isinstance(operator, Exchangeable):
            take_in(trace, node, operator, value, arguments, term)
        return value

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        assert self.before is not None
        return self.before.choose(node, operator, arguments)


class Unproposed(Handler):
    """What still waits after an error: a proposal has nothing to say about a state without a value for each of its
    choices."""

    def __init__(self, trace: Trace, after: Handler) -> None:
        super().__init__(trace, after.pending, after.structural)
        self.constrained = after.constrained

    def renew(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        raise VentureError("a choice that has no value yet")
