"""Hidden Markov models whose states are never drawn: an application `(h t)` is the emission at time t, given all the
others.

The states are integrated out by messages between the times that have emissions: forward, the distribution of the state
at a time given the emissions up to it, and backward, the probability of those after it given the state. A change at one
time leaves the forward messages before it and the backward messages after it, and what it does leave is computed
when somebody asks: so emissions that come in the order of time cost O(K^2) each, a sweep over all times in order as
much, and a change anywhere at most O(T K^2). Over a gap the transition is raised to a power, O(K^2 log gap).

Messages are functions of the emissions and parameters alone, so taking a change back restores them bit for bit.
"""

from __future__ import annotations

import functools
import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import transforms
from venture_lite.procedures.domains import COUNT, PROBABILITY_VECTOR, STOCHASTIC_MATRIX
from venture_lite.procedures.exchangeable.emissions import Emission, FamilyEmission, TableEmission, stochastic, within
from venture_lite.procedures.record import Argument, JointGradient, Maker, Random

Array = np.ndarray
TimeToken = tuple[int, Any, int, int]

SMALL = 1e-200
"""Products of probabilities whose sum is below this are formed again in logarithms: some may have vanished."""


def joined(message: Array, log_evidence: Array) -> tuple[Array, float]:
    """message * exp(log_evidence), (K,), scaled to sum to 1, and the log of its sum; all zeros and -inf where the two
    exclude each other."""
    top = float(log_evidence.max())
    if top > -math.inf:
        product = message * np.exp(log_evidence - top)
        total = float(product.sum())
        if total > SMALL:
            return product / total, top + math.log(total)
    with np.errstate(divide="ignore"):
        logs = np.log(message) + log_evidence
    top = float(logs.max())
    if top == -math.inf:
        return np.zeros(len(message)), -math.inf
    product = np.exp(logs - top)
    total = float(product.sum())
    return product / total, top + math.log(total)


class Chain:
    """The parameters, as they were checked, with rows that sum to 1 to the last bit and powers of the transition."""

    __slots__ = ("_powers", "emission", "initial")

    def __init__(self, family: Random | None, initial: Any, transition: Any, *emission: Any) -> None:
        """`family` is the distribution of what is emitted, `emission` its parameters; None for a matrix."""
        self.initial = stochastic(initial)
        # the transition to the powers 1, 2, 4, ...
        self._powers = [stochastic(transition)]
        states, shape = len(self.initial), self._powers[0].shape
        if shape != (states, states):
            of = " by ".join(map(str, shape))
            raise ArgumentError(f"make_lazy_hmm: initial has {states} entries, but transition is {of}")
        self.emission: Emission = (
            TableEmission(states, *emission) if family is None else FamilyEmission(family, states, emission)
        )

    @property
    def transition(self) -> Array:
        return self._powers[0]

    def forth(self, message: Array, steps: int) -> Array:
        """The distribution of the state some steps after one with the distribution `message`, (K,)."""
        for power in self._factors(steps):
            message = message @ power
        return message

    def back(self, message: Array, steps: int) -> Array:
        """For each state, what `message` (K,) is expected to be some steps later."""
        for power in self._factors(steps):
            message = power @ message
        return message

    def slopes(self, messages: Iterable[tuple[Array, int, Array]]) -> tuple[Array, Array]:
        """The derivatives by the transition (K, K) and by the first of some messages (K,), each with the steps that it
        takes and the derivatives by what it becomes: back through the factors, and through the squares that these
        are."""
        by_power = [np.zeros_like(self._powers[0]) for _ in range(64)]
        by_first: Array | None = None
        for message, steps, slope in messages:
            taken = [message]
            taken += [message := message @ power for power in self._factors(steps)]
            places = [place for place in range(64) if steps >> place & 1]
            for before, place in zip(reversed(taken[:-1]), reversed(places), strict=True):
                by_power[place] += np.outer(before, slope)
                slope = self._powers[place] @ slope
            by_first = slope if by_first is None else by_first
        for place in range(len(self._powers) - 1, 0, -1):
            square, root = by_power[place], self._powers[place - 1]
            by_power[place - 1] += square @ root.T + root.T @ square
        assert by_first is not None
        return by_power[0], by_first

    def _factors(self, steps: int) -> Iterable[Array]:
        position = 0
        while steps:
            if position == len(self._powers):
                # without scaling, rounding would grow with the power
                self._powers.append(stochastic(self._powers[-1] @ self._powers[-1]))
            if steps & 1:
                yield self._powers[position]
            steps >>= 1
            position += 1


class Emissions:
    """What was emitted, and when. Mutable; every change has an exact inverse."""

    __slots__ = ("counts", "times")

    def __init__(self) -> None:
        # the times with emissions, in order
        self.times: list[int] = []
        # time -> value -> how often
        self.counts: dict[int, dict[Any, int]] = {}

    def change(self, time: int, outcome: Any, by: int) -> None:
        here = self.counts.get(time)
        if here is None:
            here = self.counts[time] = {}
            self.times.insert(bisect_left(self.times, time), time)
        after = here.get(outcome, 0) + by
        if after:
            here[outcome] = after
        else:
            del here[outcome]
        if not here:
            del self.counts[time]
            del self.times[bisect_left(self.times, time)]

    def log_evidence(self, position: int, chain: Chain) -> Array:
        """For each state (K,), the log density of all that was emitted at one of the times."""
        return chain.emission.log_evidence(self.counts[self.times[position]])


class Messages:
    """Between the times of the emissions, under one chain; each message is computed when it is asked for.

    Mutable: `forget` drops what a change of the emissions makes wrong.
    """

    __slots__ = ("_backward", "_forward", "_log_joint", "chain", "emissions")

    def __init__(self, chain: Chain, emissions: Emissions) -> None:
        self.chain = chain
        self.emissions = emissions
        # of the first times: distribution of the state given the emissions up to then, and log probability of those
        self._forward: list[Array] = []
        self._log_joint: list[float] = []
        # of the last times, the last one first: probability of later emissions given the state, in proportion
        self._backward: list[Array] = []

    def forget(self, before: int, after: int) -> None:
        """Keep only the forward messages of the first times, `before` of them, and the backward ones of the last."""
        del self._forward[before:]
        del self._log_joint[before:]
        del self._backward[after:]

    def forward(self, position: int) -> Array:
        times, chain = self.emissions.times, self.chain
        if not self._forward:
            chain.emission.prepare(value for counts in self.emissions.counts.values() for value in counts)
        while (at := len(self._forward)) <= position:
            if at:
                expected, so_far = chain.forth(self._forward[-1], times[at] - times[at - 1]), self._log_joint[-1]
            else:
                expected, so_far = chain.forth(chain.initial, times[0]), 0.0
            message, log_probability = joined(expected, self.emissions.log_evidence(at, chain))
            self._forward.append(message)
            self._log_joint.append(so_far + log_probability)
        return self._forward[position]

    def backward(self, position: int) -> Array:
        times, chain = self.emissions.times, self.chain
        wanted = len(times) - position
        while len(self._backward) < wanted:
            after = len(times) - len(self._backward)
            if after == len(times):
                self._backward.append(np.ones(len(chain.initial)))
            else:
                self._backward.append(chain.back(self._from(after), times[after] - times[after - 1]))
        return self._backward[wanted - 1]

    def _from(self, position: int) -> Array:
        """For each state, in proportion, the probability of the emissions at one of the times and later."""
        return joined(self.backward(position), self.emissions.log_evidence(position, self.chain))[0]

    def state(self, time: int) -> Array:
        """Distribution (K,) of the state at a time given all emissions; all zeros where those are impossible."""
        times, chain = self.emissions.times, self.chain
        position = bisect_left(times, time)
        if position < len(times) and times[position] == time:
            past, future = self.forward(position), self.backward(position)
        else:
            if position:
                past = chain.forth(self.forward(position - 1), time - times[position - 1])
            else:
                past = chain.forth(chain.initial, time)
            if position == len(times):
                return past
            future = chain.back(self._from(position), times[position] - time)
        with np.errstate(divide="ignore"):
            return joined(past, np.log(future))[0]

    def log_joint(self) -> float:
        if not self.emissions.times:
            return 0.0
        self.forward(len(self.emissions.times) - 1)
        return self._log_joint[-1]

    def slopes(self) -> tuple[Any, ...] | None:
        """The derivatives of `log_joint` by the parameters, whose probabilities are scaled to sum to 1; None where all
        derivatives are 0."""
        chain, count = self.chain, len(self.emissions.times)
        if not math.isfinite(self.log_joint()) or not count:
            return None
        with np.errstate(all="ignore"):
            steps = [self._step(position) for position in range(count)]
            by_transition, by_initial = chain.slopes(steps)
            by_emission = chain.emission.slopes(map(self._emitted, range(count)))
        return within(by_initial, chain.initial), within(by_transition, chain.transition), *by_emission

    def _step(self, position: int) -> tuple[Array, int, Array]:
        """The message that leads to one of the times, the steps, and the derivatives by what it becomes there."""
        times, chain = self.emissions.times, self.chain
        before = self.forward(position - 1) if position else chain.initial
        steps = times[position] - times[position - 1] if position else times[0]
        log_weight = self.emissions.log_evidence(position, chain) + np.log(self.backward(position))
        weight = np.exp(log_weight - log_weight.max())
        return before, steps, weight / float(chain.forth(before, steps) @ weight)

    def _emitted(self, position: int) -> tuple[dict[Any, int], Array]:
        """What was emitted at one of the times, and the probabilities of the states (K,) given all emissions."""
        state = self.forward(position) * self.backward(position)
        return self.emissions.counts[self.emissions.times[position]], state / state.sum()


class LazyHmmState:
    """The emissions, and the messages under the present parameters and under those before, which a rejected proposal
    finds as they were."""

    __slots__ = ("_before", "_clock", "_emissions", "_family", "_latest", "_messages", "_stamp", "arguments", "count")

    def __init__(self, *arguments: Any, family: Random | None = None) -> None:
        self.arguments, self._family = arguments, family
        self.count = 0
        self._emissions = Emissions()
        self._messages = Messages(Chain(family, *arguments), self._emissions)
        # names the emissions at hand: equal stamps, equal emissions
        self._stamp = self._clock = 0
        self._before: tuple[int, tuple[Any, ...], Messages] | None = None
        # the time last asked for, with the probabilities of its states
        self._latest: tuple[int, Array] | None = None

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        before = self._before
        if before is not None and before[0] == self._stamp and before[1] is arguments:
            messages = before[2]
        else:
            messages = Messages(Chain(self._family, *arguments), self._emissions)
        self._before = (self._stamp, self.arguments, self._messages)
        self.arguments, self._messages, self._latest = arguments, messages, None

    def _states(self, time: int) -> Array:
        """The probabilities of the states (K,), all zeros where the other emissions are impossible."""
        if self._latest is None or self._latest[0] != time:
            self._latest = (time, self._messages.state(time))
        return self._latest[1]

    def simulate(self, rng: np.random.Generator, t: Any) -> Any:
        """Where the other emissions are impossible, as if there were none."""
        chain, states = self._messages.chain, self._states(int(t))
        if not states.any():
            states = chain.forth(chain.initial, int(t))
        return chain.emission.draw(rng, states)

    def log_predictive(self, value: Any, t: Any) -> float:
        emission = self._messages.chain.emission
        return emission.log_density(value, self._states(int(t))) if emission.can_be(value) else -math.inf

    def log_joint(self) -> float:
        return self._messages.log_joint()

    def slopes(self) -> tuple[Any, ...]:
        """The derivatives of `log_joint` by the arguments."""
        nothing = (0.0 if isinstance(each, (int, float)) else None for each in self.arguments)
        return self._messages.slopes() or tuple(nothing)

    def support(self, t: Any) -> Sequence[Any] | None:
        return self._messages.chain.emission.support()

    def add(self, value: Any, t: Any) -> TimeToken:
        return self._change(int(t), self._messages.chain.emission.key(value), 1)

    def remove(self, value: Any, t: Any) -> TimeToken:
        return self._change(int(t), self._messages.chain.emission.key(value), -1)

    def restore(self, token: TimeToken) -> None:
        time, outcome, by, stamp = token
        self._change(time, outcome, by)
        self._stamp = stamp

    def _change(self, time: int, outcome: Any, by: int) -> TimeToken:
        emissions = self._emissions
        position = bisect_left(emissions.times, time)
        # the messages of later times stay, and the backward one of this time if it is among the times throughout
        later = len(emissions.times) - position - (time in emissions.counts)
        stays = time in emissions.counts
        emissions.change(time, outcome, by)
        self._messages.forget(position, later + (stays and time in emissions.counts))
        self.count += by
        self._latest = None
        self._clock += 1
        stamp, self._stamp = self._stamp, self._clock
        return (time, outcome, -by, stamp)

    def recount(self, applications: Iterable[tuple[Any, ...]]) -> None:
        self.count, self._before, self._latest = 0, None, None
        self._emissions = Emissions()
        self._messages = Messages(self._messages.chain, self._emissions)
        for value, t in applications:
            self.add(value, t)

    def statistics(self) -> dict[tuple[int, Any], int]:
        """(time, value) -> how often."""
        return {(time, outcome): n for time, here in self._emissions.counts.items() for outcome, n in here.items()}


MAKE_LAZY_HMM = Maker(
    "make_lazy_hmm",
    (
        Argument("initial", PROBABILITY_VECTOR), Argument("transition", STOCHASTIC_MATRIX),
        Argument("emission", STOCHASTIC_MATRIX),
    ),
    "A hidden Markov model: applied to a time 0, 1, 2, ... it emits an outcome 0, 1, ...; the states are summed out; "
    "row i of transition and of emission holds what follows state i. Emissions at one time are independent given its "
    "state. In the place of the matrix a distribution of numbers may be written, as (normal MEANS SDS): then values of "
    "it are emitted, with item i of the vectors among its arguments in state i.",
    LazyHmmState,
    source="forward-backward recursions (Rabiner 1989, A tutorial on hidden Markov models, section III), scaled",
    applied=(Argument("t", COUNT),), gradient=JointGradient((True, True, True), LazyHmmState.slopes),
)  # fmt: skip


@functools.cache
def emitting(family: Random) -> Maker:
    """`make_lazy_hmm` where what is emitted has a distribution of numbers: its parameters come after the initial
    probabilities and the transition.

    Raises ArgumentError for a distribution that has no parameters of each item.
    """
    if family.item_log_densities is None:
        message = f"make_lazy_hmm: {family.name} has no vectors among its arguments, one item for each state"
        raise ArgumentError(message, hint="a distribution of numbers, as (normal MEANS SDS)")
    by_parameter = family.gradient.exists[1:] if family.gradient is not None else (False,) * len(family.arguments)
    discrete = family.transform is None
    return Maker(
        f"make_lazy_hmm {family.name}",
        (*MAKE_LAZY_HMM.arguments[:2], *family.arguments),
        f"A hidden Markov model whose states emit values of {family.name}.",
        partial(LazyHmmState, family=family),
        # another support than the line may depend on the state
        transform=None if discrete else family.transform if family.transform in WHOLE else transforms.REAL,
        source=MAKE_LAZY_HMM.source, applied=MAKE_LAZY_HMM.applied, finite=discrete and family.support is not None,
        gradient=JointGradient((True, True, *by_parameter), LazyHmmState.slopes),
    )  # fmt: skip


WHOLE = (transforms.REAL, transforms.POSITIVE, transforms.UNIT)
"""Transforms onto supports that do not depend on parameters."""

RECORDS = (MAKE_LAZY_HMM,)
