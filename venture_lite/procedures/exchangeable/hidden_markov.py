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

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures.domains import COUNT, PROBABILITY_VECTOR, STOCHASTIC_MATRIX
from venture_lite.procedures.record import Argument, JointGradient, Maker

Array = np.ndarray
TimeToken = tuple[int, int, int, int]

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

    __slots__ = ("_powers", "emission", "initial", "log_emission")

    def __init__(self, initial: Any, transition: Any, emission: Any) -> None:
        self.initial = _stochastic(initial)
        self.emission = _stochastic(emission)
        # the transition to the powers 1, 2, 4, ...
        self._powers = [_stochastic(transition)]
        states = len(self.initial)
        for name, matrix in (("transition", self._powers[0]), ("emission", self.emission)):
            if len(matrix) != states or (name == "transition" and matrix.shape[1] != states):
                shape = " by ".join(map(str, matrix.shape))
                raise ArgumentError(f"make_lazy_hmm: initial has {states} entries, but {name} is {shape}")
        with np.errstate(divide="ignore"):
            self.log_emission = np.log(self.emission)

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
                self._powers.append(_stochastic(self._powers[-1] @ self._powers[-1]))
            if steps & 1:
                yield self._powers[position]
            steps >>= 1
            position += 1


def _stochastic(rows: Any) -> Array:
    given = np.array(rows, dtype=np.float64)
    scaled: Array = given / given.sum(axis=-1, keepdims=True)
    return scaled


class Emissions:
    """What was emitted, and when. Mutable; every change has an exact inverse."""

    __slots__ = ("counts", "times")

    def __init__(self) -> None:
        # the times with emissions, in order
        self.times: list[int] = []
        # time -> outcome -> how often
        self.counts: dict[int, dict[int, int]] = {}

    def change(self, time: int, outcome: int, by: int) -> None:
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
        """For each state (K,), the log probability of all that was emitted at one of the times."""
        counts = self.counts[self.times[position]]
        outcomes = sorted(counts)
        if outcomes[-1] >= chain.emission.shape[1]:
            return np.full(len(chain.initial), -math.inf)
        evidence: Array = chain.log_emission[:, outcomes] @ np.array([counts[outcome] for outcome in outcomes], float)
        return evidence


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

    def slopes(self) -> tuple[Array, Array, Array] | None:
        """The derivatives of `log_joint` by the parameters, whose rows are scaled to sum to 1; None where all
        derivatives are 0."""
        chain, count = self.chain, len(self.emissions.times)
        if not math.isfinite(self.log_joint()) or not count:
            return None
        with np.errstate(all="ignore"):
            steps = [self._step(position) for position in range(count)]
            by_transition, by_initial = chain.slopes(steps)
            by_emission = sum(map(self._emitted, range(count))) / np.where(chain.emission > 0.0, chain.emission, 1.0)
        return (
            _within(by_initial, chain.initial),
            _within(by_transition, chain.transition),
            _within(by_emission, chain.emission),
        )

    def _step(self, position: int) -> tuple[Array, int, Array]:
        """The message that leads to one of the times, the steps, and the derivatives by what it becomes there."""
        times, chain = self.emissions.times, self.chain
        before = self.forward(position - 1) if position else chain.initial
        steps = times[position] - times[position - 1] if position else times[0]
        log_weight = self.emissions.log_evidence(position, chain) + np.log(self.backward(position))
        weight = np.exp(log_weight - log_weight.max())
        return before, steps, weight / float(chain.forth(before, steps) @ weight)

    def _emitted(self, position: int) -> Array:
        """(K, M): how often each outcome was emitted at one of the times, by the state's probability."""
        found, state = np.zeros_like(self.chain.emission), self.forward(position) * self.backward(position)
        for outcome, count in self.emissions.counts[self.emissions.times[position]].items():
            found[:, outcome] = count * state / state.sum()
        return found


def _within(slopes: Array, rows: Array) -> Array:
    """Derivatives by rows that are scaled to sum to 1, from those by what the scaling gives."""
    found: Array = slopes - (slopes * rows).sum(axis=-1, keepdims=True)
    return found


class LazyHmmState:
    """The emissions, and the messages under the present parameters and under those before, which a rejected proposal
    finds as they were."""

    __slots__ = ("_before", "_clock", "_emissions", "_latest", "_messages", "_stamp", "arguments", "count")

    def __init__(self, initial: Any, transition: Any, emission: Any) -> None:
        self.arguments: tuple[Any, ...] = (initial, transition, emission)
        self.count = 0
        self._emissions = Emissions()
        self._messages = Messages(Chain(initial, transition, emission), self._emissions)
        # names the emissions at hand: equal stamps, equal emissions
        self._stamp = self._clock = 0
        self._before: tuple[int, tuple[Any, ...], Messages] | None = None
        # the time last asked for, with the probabilities of its outcomes
        self._latest: tuple[int, Array] | None = None

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        before = self._before
        if before is not None and before[0] == self._stamp and before[1] is arguments:
            messages = before[2]
        else:
            messages = Messages(Chain(*arguments), self._emissions)
        self._before = (self._stamp, self.arguments, self._messages)
        self.arguments, self._messages, self._latest = arguments, messages, None

    def _probabilities(self, time: int) -> Array:
        """(M,), all zeros where the other emissions are impossible."""
        if self._latest is None or self._latest[0] != time:
            self._latest = (time, self._messages.state(time) @ self._messages.chain.emission)
        return self._latest[1]

    def simulate(self, rng: np.random.Generator, t: Any) -> int:
        """Where the other emissions are impossible, as if there were none."""
        chain, probabilities = self._messages.chain, self._probabilities(int(t))
        if not probabilities.any():
            probabilities = chain.forth(chain.initial, int(t)) @ chain.emission
        cumulative = np.cumsum(probabilities)
        drawn = int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
        return min(drawn, int(np.flatnonzero(probabilities)[-1]))

    def log_predictive(self, value: Any, t: Any) -> float:
        outcomes = self._messages.chain.emission.shape[1]
        if not (isinstance(value, (int, float)) and 0 <= value < outcomes and value % 1 == 0):
            return -math.inf
        probability = float(self._probabilities(int(t))[int(value)])
        return math.log(probability) if probability > 0.0 else -math.inf

    def log_joint(self) -> float:
        return self._messages.log_joint()

    def slopes(self) -> tuple[Any, ...]:
        """The derivatives of `log_joint` by the arguments."""
        return self._messages.slopes() or (None, None, None)

    def support(self, t: Any) -> Sequence[int]:
        return range(self._messages.chain.emission.shape[1])

    def add(self, value: Any, t: Any) -> TimeToken:
        return self._change(int(t), int(value), 1)

    def remove(self, value: Any, t: Any) -> TimeToken:
        return self._change(int(t), int(value), -1)

    def restore(self, token: TimeToken) -> None:
        time, outcome, by, stamp = token
        self._change(time, outcome, by)
        self._stamp = stamp

    def _change(self, time: int, outcome: int, by: int) -> TimeToken:
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

    def statistics(self) -> dict[tuple[int, int], int]:
        """(time, outcome) -> how often."""
        return {(time, outcome): n for time, here in self._emissions.counts.items() for outcome, n in here.items()}


MAKE_LAZY_HMM = Maker(
    "make_lazy_hmm",
    (
        Argument("initial", PROBABILITY_VECTOR), Argument("transition", STOCHASTIC_MATRIX),
        Argument("emission", STOCHASTIC_MATRIX),
    ),
    "A hidden Markov model: applied to a time 0, 1, 2, ... it emits an outcome 0, 1, ...; the states are summed out; "
    "row i of transition and of emission holds what follows state i. Emissions at one time are independent given its "
    "state.",
    LazyHmmState,
    source="forward-backward recursions (Rabiner 1989, A tutorial on hidden Markov models, section III), scaled",
    applied=(Argument("t", COUNT),), gradient=JointGradient((True, True, True), LazyHmmState.slopes),
)  # fmt: skip

RECORDS = (MAKE_LAZY_HMM,)
