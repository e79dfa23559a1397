"""`(mh SCOPE BLOCK PROPOSAL T)`: Metropolis-Hastings by a procedure of the user's, from a block's values to new ones.

The procedure takes the values x of the block's choices as arguments, in the order of their addresses, and gives one
value, or a list of as many: y. It is evaluated as `sample` evaluates, in the state at hand, and for the way back in the
proposed state: so it may read anything in the model.

The density of a proposal is taken from the random choices that the procedure makes. Entries of y that are its own
random choices have their densities; an entry that is computed has the probability of the choices that lead to it. Of
all other choices on the way, those of finite support are summed over: so the forward density is q(y | x) in the state
at hand, the reverse one q(x | y) in the proposed state. Those without finite support, s, are drawn, and kept for the
reverse move: its ratio is p(s) q(x | y, s) at y over p(s) q(y | x, s) at x, which is exact, for s is drawn anew from
its distribution given x before each move (an auxiliary variable; Storvik 2011, On the flexibility of
Metropolis-Hastings acceptance probabilities in auxiliary variable proposal generation). A run that makes other choices
than s has density 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from venture_lite.blocks.distributions import has_mass, name_of
from venture_lite.errors import KernelError
from venture_lite.inference.replay import WHOLE, ReplayedProcedure
from venture_lite.interpreter.application import simulate
from venture_lite.interpreter.candidates import support_of
from venture_lite.interpreter.kernel import BlockKernel, Course, Metropolis, Move
from venture_lite.interpreter.selection import Selection, in_order
from venture_lite.interpreter.weights import Weight, density_of
from venture_lite.kernels.compiled import kernel
from venture_lite.procedures.functions.elementary import logsumexp
from venture_lite.procedures.record import Maker, Random
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.trace import Trace
from venture_lite.values import equal, freeze, show

ENOUGH = 100
"""After so many proposals, none of which could have proposed the way back, the user is told."""


RANDOM_VALUES = "(normal x 1) for (+ x (normal 0 1)), (if (flip) (+ k 1) (- k 1)) where values are discrete"


class _Outside(Exception):
    """A proposed value lies outside the support of its choice."""


class OwnProposal(BlockKernel):
    """Transitions of one `mh` action with the user's proposal."""

    counts = True

    def __init__(self, density: ProposalDensity, warn: Callable[[str], None]) -> None:
        super().__init__(density.model)
        self.density = density
        self.warn = warn
        self._moves = kernel(self.model, Move(self, self._decide, looks=True))
        self._metropolis = Metropolis(self.model)
        # proposals that could not have proposed the way back; None once one could
        self._one_way: int | None = 0

    @property
    def rows(self) -> int:
        return self._moves.rows

    def course(self, nodes: list[int], at: Selection) -> Course:
        self.refuse(nodes)
        return self._moves.course(in_order(self.model, nodes), at)

    def step(self, nodes: list[int], at: Selection) -> bool:
        # of the transition under way
        self._block, self._at = in_order(self.model, nodes), at
        try:
            return self._moves.step(self._block, at)
        except _Outside:
            return False

    def refuse(self, nodes: list[int]) -> None:
        """Raises KernelError where a choice's values are labels without a density of their own."""
        trace = self.model.trace
        for node in nodes:
            operator, _ = trace.application(node)
            if isinstance(operator, Exchangeable) and operator.record.labels:
                labels = f"the labels of {operator.record.name} mean nothing but equality"
                error = KernelError(
                    f"{labels}: there is no density to propose by", None, "gibbs, or mh without a proposal"
                )
                raise error.at(*trace.place(*trace.decode(node)))

    # what a transition calls, in this order

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Apply the procedure in the old state."""
        if list(principals) != self._block:
            raise self._refusal("takes away choices of its block by what it does to others")
        choices = list(map(trace.choice, self._block))
        self._start = tuple(value for *_, value in choices)
        self._discrete = frozenset(i for i, (operator, _, value) in enumerate(choices) if has_mass(operator, value))
        self._drawn = drawn = self.density.draw(self._start, self._discrete)
        for i in drawn.computed - self._discrete:
            if not equal(drawn.values[i], self._start[i]):
                raise self._computed()
        self._proposed = dict(zip(self._block, drawn.values, strict=True))

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        value = self._proposed[node]
        if density_of(self.model.trace, node, operator, arguments, value) == float("-inf"):
            raise _Outside
        return value, 0.0

    def _decide(self, weight: Weight) -> bool:
        """Weigh the way back in the new state."""
        if self.model.trace.journal.restructured and set(self._at.members_now()) != set(self._block):
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


MOST_BRANCHES = 1000
"""Auxiliary choices of more values are kept, not summed over."""
LONGEST_TEXT = 60
"""Characters of a proposal's text in a message."""
MOST_PATHS = 10_000
"""Runs of a procedure, one for each combination of auxiliary choices, that a density may take."""


@dataclass(frozen=True, slots=True)
class ProposalDraw:
    """What a procedure made of a block's values."""

    values: tuple[Any, ...]
    # of the values and what was kept; -inf where they could not come about
    log_density: float
    # auxiliary choices without finite support: (what drew it, value)
    kept: tuple[tuple[Any, Any], ...]
    # positions of values that are no random choices of the procedure's own
    computed: frozenset[int]
    # whether the procedure made any random choice
    is_random: bool


ValueOf = Callable[[int, Any, tuple[Any, ...], Sequence[int]], Any]
"""(choice, distribution, arguments, positions among the values that are it) -> its value."""


class _DeadEnd(Exception):
    """The run cannot end in the values that are wanted."""


class ProposalDensity:
    """How probable it is that a procedure gives certain values."""

    def __init__(self, procedure: ReplayedProcedure) -> None:
        self.procedure = procedure
        self.model = procedure.model
        text = " ".join(procedure.span.text.split())
        self.text = text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ..."

    def error(self, what: str, hint: str | None = None) -> KernelError:
        return KernelError(f"the proposal {self.text} {what}", self.procedure.span, hint)

    def draw(self, start: tuple[Any, ...], discrete: frozenset[int]) -> ProposalDraw:
        """Apply the procedure. `discrete` are the positions at which a computed value has a probability."""
        if self.procedure.count not in (None, len(start)):
            many = "1 choice" if len(start) == 1 else f"{len(start)} choices"
            raise self.error(f"takes {self.procedure.count} values, but the block has {many}")
        is_random = branches = False
        kept: list[tuple[Any, Any]] = []

        def drawn_value(node: int, operator: Any, arguments: tuple[Any, ...], positions: Sequence[int]) -> Any:
            nonlocal is_random, branches
            is_random = True
            value = simulate(self.model.trace, node, operator, arguments)
            if not positions and _finite(operator, arguments) is not None:
                branches = True
            elif not positions:
                kept.append((_space(operator), value))
            return value

        values, total, computed = self._applied(start, discrete, drawn_value)
        drawn = ProposalDraw(values, total, tuple(kept), computed, is_random)
        if not branches:
            return drawn
        return replace(drawn, log_density=self.log_density(start, values, drawn, discrete))

    def _applied(
        self, start: tuple[Any, ...], discrete: frozenset[int], value_of: ValueOf, is_sought: bool = False
    ) -> tuple[tuple[Any, ...], float, frozenset[int]]:
        """The procedure's values, the log density of its choices, each of which takes what `value_of` says, and the
        positions of values that are no choices of its own. Where a run `is_sought`, one of density zero is a dead
        end."""
        total = 0.0
        chosen: set[int] = set()

        def choose(node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
            nonlocal total
            positions = self._positions(node, operator, len(start))
            chosen.update(positions)
            value = value_of(node, operator, arguments, positions)
            self._check_kind(operator, value, positions, discrete)
            term = density_of(self.model.trace, node, operator, arguments, value)
            if is_sought and term == -math.inf:
                raise _DeadEnd
            total += term
            return value

        values = self._spread(self.procedure(start, choose), start)
        return values, total, frozenset(range(len(start))) - chosen

    def log_density(
        self, start: tuple[Any, ...], target: tuple[Any, ...], like: ProposalDraw, discrete: frozenset[int]
    ) -> float:
        """That the procedure makes `target` of `start`, with the choices kept in `like` and the same values computed,
        over all auxiliary choices of finite support."""
        tape: list[list[Any]] = []
        terms: list[float] = []
        while True:
            terms.append(self._path(start, target, like, discrete, tape))
            while tape and tape[-1][1] + 1 == len(tape[-1][0]):
                tape.pop()
            if not tape:
                return logsumexp(*terms)
            tape[-1][1] += 1
            if len(terms) >= MOST_PATHS:
                raise self.error(
                    f"makes more than {MOST_PATHS:,} combinations of choices on the way to its value",
                    "fewer choices that are no part of the value",
                )

    def _path(
        self,
        start: tuple[Any, ...],
        target: tuple[Any, ...],
        like: ProposalDraw,
        discrete: frozenset[int],
        tape: list[list[Any]],
    ) -> float:
        """Log density along one path of auxiliary choices. `tape` holds (support, index) of each; it grows."""
        kept = iter(like.kept)
        at = 0

        def wanted(node: int, operator: Any, arguments: tuple[Any, ...], positions: Sequence[int]) -> Any:
            nonlocal at
            if positions:
                return _part(target, positions)
            if (support := _finite(operator, arguments)) is not None:
                if at == len(tape):
                    tape.append([support, 0])
                at += 1
                return tape[at - 1][0][tape[at - 1][1]]
            space, value = next(kept, (None, None))
            if space is not _space(operator):
                raise _DeadEnd
            return value

        try:
            values, total, computed = self._applied(start, discrete, wanted, is_sought=True)
        except _DeadEnd:
            return -math.inf
        complete = next(kept, None) is None and computed - discrete == like.computed - discrete
        return total if complete and all(equal(values[i], target[i]) for i in computed) else -math.inf

    def _positions(self, node: int, operator: Any, count: int) -> Sequence[int]:
        positions = self.procedure.positions(node)
        if positions and isinstance(operator, Exchangeable) and operator.record.labels:
            raise self.error(
                f"takes its value from {operator.record.name}: a label means nothing but equality, and has no density"
            )
        return range(count) if positions is WHOLE else positions

    def _check_kind(self, operator: Any, value: Any, positions: Sequence[int], discrete: frozenset[int]) -> None:
        """A value with a probability cannot stand in for one with a density, nor the other way round."""
        is_discrete = has_mass(operator, value)
        if any((position in discrete) != is_discrete for position in positions):
            mine, theirs = ("discrete", "continuous") if is_discrete else ("continuous", "discrete")
            raise self.error(f"takes its value from {name_of(operator)}, which is {mine}, for a {theirs} choice")

    def _spread(self, result: Any, start: tuple[Any, ...]) -> tuple[Any, ...]:
        """The procedure's result as one value for each choice of the block, of the kinds that these have."""
        if len(start) == 1:
            values: tuple[Any, ...] = (result,)
        else:
            values = tuple(result.tolist()) if isinstance(result, np.ndarray) and result.ndim == 1 else result
            if not isinstance(values, tuple) or len(values) != len(start):
                raise self.error(f"gave {show(result)}, which is no list of {len(start)} values", "one for each choice")
        return tuple(map(self._fitted, values, start))

    def _fitted(self, value: Any, old: Any) -> Any:
        if isinstance(old, np.ndarray) and isinstance(value, tuple):
            try:
                value = freeze(np.array(value, dtype=np.float64))
            except (TypeError, ValueError):
                raise self.error(f"gave {show(value)}, where the choice is {show(old)}") from None
        if _kind(value) != _kind(old):
            raise self.error(f"gave {show(value)}, where the choice is {show(old)}")
        if isinstance(value, (float, np.ndarray)) and np.isnan(value).any():
            raise self.error("gave NaN")
        return value


def _kind(value: Any) -> Any:
    """What a choice's value and the one proposed for it have in common."""
    if isinstance(value, np.ndarray):
        return value.shape
    return "number" if isinstance(value, (int, float)) else "no number" if value is not None else "nothing"


def _finite(operator: Random | Exchangeable, arguments: tuple[Any, ...]) -> Sequence[Any] | None:
    support = support_of(operator, arguments)
    return support if support is not None and len(support) <= MOST_BRANCHES else None


def _space(operator: Random | Exchangeable) -> Random | Maker:
    """Choices of one space have densities that can be compared."""
    return operator if isinstance(operator, Random) else operator.record


def _part(target: tuple[Any, ...], positions: Sequence[int]) -> Any:
    if isinstance(positions, range):
        # one choice for all
        return target[0] if len(target) == 1 else freeze(np.array(target, dtype=np.float64))
    first, *others = (target[position] for position in positions)
    if not all(equal(first, other) for other in others):
        raise _DeadEnd
    return first
