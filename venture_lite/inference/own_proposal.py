"""`(mh SCOPE BLOCK PROPOSAL T)`: Metropolis-Hastings by a procedure of the user's, from a block's values to new ones.

The procedure takes the values of the block's choices as arguments, in the order of their addresses, and gives one
value, or a list of as many. It is evaluated as `sample` evaluates, in the state at hand, and for the way back in the
proposed state: so it may read anything in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from venture_lite.errors import KernelError
from venture_lite.inference.distributions import has_mass
from venture_lite.inference.proposal import Density, Drawn
from venture_lite.inference.selection import in_order, members_now
from venture_lite.inference.transitions import Transitions, metropolis
from venture_lite.trace.directives import Model
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.trace import Trace
from venture_lite.trace.weights import Weight, density_of
from venture_lite.values import equal

ENOUGH = 100
"""After so many proposals, none of which could have proposed the way back, the user is told."""


RANDOM_VALUES = "(normal x 1) for (+ x (normal 0 1)), (if (flip) (+ k 1) (- k 1)) where values are discrete"


class _Outside(Exception):
    """A proposed value lies outside the support of its choice."""


class OwnProposal:
    """Transitions of one `mh` action with the user's proposal."""

    counts = True

    def __init__(
        self,
        density: Density,
        scope: Any,
        block_count: Callable[[], int] | None,
        warn: Callable[[str], None],
    ) -> None:
        self.density = density
        self.model = density.model
        self.scope = scope
        self.warn = warn
        self.transitions = Transitions(self.model, block_count, self._decide)
        self._metropolis = metropolis(self.model)
        # of the transition under way
        self._block: list[int] = []
        self._key: Any = None
        self._start: tuple[Any, ...] = ()
        self._discrete: frozenset[int] = frozenset()
        self._drawn = Drawn((), 0.0, (), frozenset(), False)
        self._proposed: dict[int, Any] = {}
        # proposals that could not have proposed the way back; None once one could
        self._one_way: int | None = 0

    @property
    def rows(self) -> int:
        return self.transitions.rows

    def step(self, nodes: list[int], key: Any) -> bool:
        self._block, self._key = in_order(self.model, nodes), key
        try:
            return self.transitions.step(self._block, self)
        except _Outside:
            return False

    # what a transition calls, in this order

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Apply the procedure in the old state."""
        if list(principals) != self._block:
            raise self._refusal("takes away choices of its block by what it does to others")
        applications = [trace.application(node >> 32, node & ROW_MASK)[0] for node in self._block]
        self._start = tuple(map(trace.value, self._block))
        self._discrete = frozenset(
            i for i, (operator, value) in enumerate(zip(applications, self._start, strict=True))
            if has_mass(operator, value)
        )  # fmt: skip
        self._drawn = drawn = self.density.draw(self._start, self._discrete)
        for i in drawn.computed - self._discrete:
            if not equal(drawn.values[i], self._start[i]):
                raise self._computed()
        self._proposed = dict(zip(self._block, drawn.values, strict=True))

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        value = self._proposed[node]
        if density_of(self.model.trace, node >> 32, node & ROW_MASK, operator, arguments, value) == float("-inf"):
            raise _Outside
        return value, 0.0

    def _decide(self, weight: Weight) -> bool:
        """Weigh the way back in the new state."""
        if self.model.trace.journal.restructured:
            now = members_now(self.model, self.scope, self._key)
            if set(now) != set(self._block):
                raise self._refusal("brings choices into its block by what it does to others")
        if weight.impossible <= 0:
            drawn = self._drawn
            back = self.density.log_density(drawn.values, self._start, drawn, self._discrete)
            self._count_way_back(back > float("-inf"))
            if back == float("-inf"):
                return False
            weight.total += back - drawn.log_density
        return self._metropolis(weight)

    def _count_way_back(self, exists: bool) -> None:
        """Say so where a proposal never proposes back."""
        if exists:
            self._one_way = None
            return
        if not self._drawn.is_random or (self._drawn.kept and len(self._drawn.computed) == len(self._block)):
            raise self._computed()
        if self._one_way is not None:
            self._one_way += 1
            if self._one_way == ENOUGH:
                place = self.density.procedure.span.place()
                self.warn(f"{place}: none of {ENOUGH} moves by the proposal {self.density.text} could be proposed back")

    def _computed(self) -> KernelError:
        if not self._drawn.is_random:
            hint = "a random choice around the value, as (normal x 1)"
            return self.density.error("never proposes back: it makes no random choice", hint)
        what = "computes its value from random choices, so that its density is not known"
        return self.density.error(what, RANDOM_VALUES)

    def _refusal(self, what: str) -> KernelError:
        return self.density.error(what, "mh without a proposal, or tags that keep what it moves in a block of its own")


def refuse_labels(model: Model, nodes: list[int]) -> None:
    """Raises KernelError, before anything moves, where a choice's values are labels without a density of their own."""
    for node in nodes:
        operator, _ = model.trace.application(node >> 32, node & ROW_MASK)
        if isinstance(operator, Exchangeable) and operator.record.labels:
            code, slot, row = model.trace.decode(node)
            raise KernelError(
                f"the labels of {operator.record.name} mean nothing but equality: there is no density to propose by",
                code.slots[slot].span,
                "gibbs, or mh without a proposal",
                model.trace.call_chain(code, slot, row),
            )
