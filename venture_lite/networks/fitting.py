"""Training: the weights under which the values of examples have the highest mean log density.

Minimising the mean of -log q(value | inputs) over draws of (inputs, value) minimises the divergence of the true
conditional from q, averaged over the inputs (Le, Baydin and Wood 2017, Inference compilation and universal
probabilistic programming). The steps are those of Adam (Kingma and Ba 2015, algorithm 1) at a rate that falls along a
cosine to 0 (Loshchilov and Hutter 2017, SGDR, equation 5, without restarts); part of the examples is held out, and
decides which weights are kept.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from venture_lite.errors import KernelError
from venture_lite.networks.adam import Adam
from venture_lite.networks.conditional import Conditional, PreparedExamples
from venture_lite.networks.pooled import Examples

RATE = 3e-3
MINIBATCH = 256
HELD_OUT = 0.1
CHUNK = 1024
"""Held-out examples weighed at once: activations of all their rows are in memory."""
MOST_NORM = 5.0
"""Gradients that are longer are cut to it: rare values far in a tail have gradients without bound."""
PASSES, LEAST_STEPS, MOST_STEPS = 40, 6_000, 30_000
CHECKS, PATIENCE = 25, 10
"""Checks in all of a training, and how many without gain end it. These are far apart: while the rate is high the loss
wanders, and most of the gain comes as the rate falls."""


@dataclass(frozen=True, slots=True, eq=False)
class FitReport:
    """What a training came to."""

    steps: int
    # of CPU time
    seconds: float
    # mean of -log density of the held-out values, in nats: with the weights kept, and with the first
    loss: float
    first_loss: float
    parameters: int
    # of Adam, at the first step: RATE, or a third of it after a restart
    rate: float
    # how many numbers of the inputs were clipped
    clipped: int
    # positions of the examples that were held out
    held_out: np.ndarray


class Diverged(Exception):
    """The loss, or its gradient, is not finite."""


def fit(
    initial: Conditional,
    examples: Examples,
    values: np.ndarray,
    rng: np.random.Generator,
    poll: Callable[[], None] = lambda: None,
    steps: int | None = None,
    targets: np.ndarray | None = None,
) -> tuple[Conditional, FitReport]:
    """A trained copy, in float64, for values (N, D), and its report; `initial` stays as it is, also where `poll`,
    called before each of at most `steps` steps, raises. `targets` (N,) are the values' log densities, but for a
    constant, where these are known.

    A loss that is not finite leads to one restart, in float64 at a third of the rate. Raises KernelError where that
    fails too, ParameterError for an input that is not a number.
    """
    start = time.process_time()
    order = rng.permutation(len(values))
    for dtype, rate in ((np.float32, RATE), (np.float64, RATE / 3.0)):
        try:
            with np.errstate(all="ignore"):
                prepared, clipped = initial.prepared(examples, values, dtype, targets)
                training = Training(initial, prepared, order, rate, steps)
                training.run(rng, poll)
        except Diverged:
            continue
        seconds = time.process_time() - start
        losses = training.least_loss, training.first_loss
        held_out = np.setdiff1d(order, training.trained_on)
        return training.kept(), FitReport(training.step, seconds, *losses, initial.parameters, rate, clipped, held_out)
    raise KernelError(f"training does not converge: {_suspect(initial, examples, values)}")


class Training:
    """One training, on a flat copy of the weights."""

    def __init__(
        self, initial: Conditional, prepared: PreparedExamples, order: np.ndarray, rate: float, steps: int | None
    ) -> None:
        """`order` (N,) is a permutation of the examples; those that it has first are held out."""
        held = max(1, round(HELD_OUT * len(order)))
        self.initial = initial
        self.prepared = prepared
        self.trained_on = order[held:]
        self.held_out = [prepared.take(order[at : min(at + CHUNK, held)]) for at in range(0, held, CHUNK)]
        self.rate = rate
        passes = -(-len(self.trained_on) // MINIBATCH)
        self.steps = min(max(PASSES * passes, LEAST_STEPS), MOST_STEPS) if steps is None else steps
        self.step = 0
        self.weights = np.concatenate([layer.ravel() for layer in initial.weights]).astype(prepared.values.dtype)
        self.network = self._over(self.weights)
        self.adam = Adam(self.weights)
        self.best = self.weights.copy()
        self.first_loss = self.least_loss = self.held_out_loss()

    def _over(self, weights: np.ndarray) -> Conditional:
        """The network whose arrays are parts of a flat one."""
        layers = self.initial.weights
        parts = np.split(weights, np.cumsum([layer.size for layer in layers])[:-1])
        return self.initial.with_weights(part.reshape(layer.shape) for part, layer in zip(parts, layers, strict=True))

    def kept(self) -> Conditional:
        return self._over(self.best.astype(np.float64))

    def held_out_loss(self) -> float:
        """Raises Diverged where it is not finite."""
        losses = [chunk.loss(self.network.log_density(chunk))[0] * len(chunk) for chunk in self.held_out]
        return _finite(sum(losses) / sum(map(len, self.held_out)))

    def run(self, rng: np.random.Generator, poll: Callable[[], None]) -> None:
        """All steps, or as many as bring gain."""
        interval = max(1, self.steps // CHECKS)
        order, without_gain = self.trained_on, 0
        size, reached = min(MINIBATCH, len(order)), len(order)
        while self.step < self.steps and without_gain < PATIENCE:
            poll()
            if reached + size > len(order):
                order, reached = rng.permutation(order), 0
            self.take_step(self.prepared.take(order[reached : reached + size]))
            reached += size
            if self.step % interval == 0 or self.step == self.steps:
                without_gain = 0 if self.check() else without_gain + 1

    def take_step(self, minibatch: PreparedExamples) -> None:
        loss, by_weights = self.network.loss(minibatch)
        _finite(loss)
        gradient = np.concatenate([part.ravel() for part in by_weights])
        norm = math.sqrt(_finite(float(gradient.dot(gradient))))
        if norm > MOST_NORM:
            gradient *= MOST_NORM / norm
        self.weights -= self.adam.step(gradient, self.rate * 0.5 * (1.0 + math.cos(math.pi * self.step / self.steps)))
        self.step += 1

    def check(self) -> bool:
        """Keep the weights if no others had a lower loss."""
        loss = self.held_out_loss()
        if loss >= self.least_loss:
            return False
        self.least_loss = loss
        self.best[:] = self.weights
        return True


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise Diverged
    return number


def _suspect(network: Conditional, examples: Examples, values: np.ndarray) -> str:
    """Which numbers are not finite, or else the largest."""
    names = network.layout.names
    columns = [*zip((name for name, _ in network.layout.coordinates), values.T, strict=True)]
    columns += zip(names.fixed, examples.fixed.T, strict=True)
    for of_port, rows in zip(names.of_rows(), examples.ports, strict=True):
        columns += zip(of_port, rows.values.T, strict=True)
    sizes = [(float(np.max(np.abs(column), initial=0.0)), name) for name, column in columns]
    for size, name in sizes:
        if not math.isfinite(size):
            return f"values of {name} are not finite"
    size, name = max(sizes)
    return f"the largest values are those of {name}, up to {size:.3g}"
