"""Training. What it reaches is compared with the entropy of the conditional that the examples were drawn from, on
examples of its own: margins in nats."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.networks.examples import random_examples, random_network, random_values
from venture_lite.errors import KernelError, ParameterError
from venture_lite.networks import fitting
from venture_lite.networks.conditional import Conditional, Layout, PreparedExamples
from venture_lite.networks.fitting import MINIBATCH, MOST_NORM, RATE, Adam, FitReport, Training, fit
from venture_lite.networks.heads import Categories, Normals
from venture_lite.networks.pooled import Examples, InputNames, PortRows

Problem = Callable[[np.random.Generator, int], tuple[Examples, np.ndarray]]
NORMAL = 0.5 * math.log(2.0 * math.pi * math.e)
"""The entropy of a standard normal."""


def two_modes(rng: np.random.Generator, count: int) -> tuple[Examples, np.ndarray]:
    """y = +-(2 + x) with noise of sd 0.2; one input says nothing."""
    x = rng.standard_normal((count, 2)).clip(-1.5, 1.5)
    y = rng.choice([-1.0, 1.0], size=count) * (2.0 + x[:, 0]) + 0.2 * rng.standard_normal(count)
    return Examples(x), y[:, None]


def mean_of_normals(rng: np.random.Generator, count: int) -> tuple[Examples, np.ndarray]:
    """The mean, standard normal itself, of 0 to 10 standard normals."""
    mean, counts = rng.standard_normal(count), rng.integers(0, 11, size=count)
    rows = np.repeat(mean, counts) + rng.standard_normal(counts.sum())
    return Examples(np.empty((count, 0)), (PortRows(rows[:, None], counts),)), mean[:, None]


def kind_and_place(rng: np.random.Generator, count: int) -> tuple[Examples, np.ndarray]:
    """A kind of three, by logits (0, x, -x), then a place of sd 0.5 around its square."""
    x = rng.standard_normal(count)
    kind = np.argmax(np.column_stack((0.0 * x, x, -x)) + rng.gumbel(size=(count, 3)), axis=1)
    return Examples(x[:, None]), np.column_stack((kind, kind**2 + 0.5 * rng.standard_normal(count)))


def entropy_of_kinds() -> float:
    """Of the kind given x, over standard normal x, by quadrature."""
    x, step = np.linspace(-10.0, 10.0, 2001, retstep=True)
    logits = np.column_stack((0.0 * x, x, -x))
    p = np.exp(logits - np.logaddexp.reduce(logits, axis=1)[:, None])
    return float(np.sum(-(p * np.log(p)).sum(axis=1) * np.exp(-0.5 * x * x)) * step / math.sqrt(2.0 * math.pi))


TWO_MODES = Layout(InputNames(("x", "nothing")), (("y", Normals(3)),))
MEAN = Layout(InputNames((), (("data", ("value",)),)), (("mean", Normals(2)),))
KIND = Layout(InputNames(("x",)), (("kind", Categories(3)), ("place", Normals(2))))


def trained(layout: Layout, problem: Problem, count: int, steps: int, seed: int = 1) -> tuple[Conditional, FitReport]:
    rng = np.random.default_rng(seed)
    examples, values = problem(rng, count)
    return fit(Conditional.drawn(rng, layout, examples, values), examples, values, rng, steps=steps)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("layout", "problem", "entropy", "steps"),
    [
        # the modes lie 1 apart or more: 2.5 sds
        (TWO_MODES, two_modes, math.log(2.0) + NORMAL + math.log(0.2), 2500),
        (MEAN, mean_of_normals, NORMAL - 0.5 * float(np.log(np.arange(1, 12)).mean()), 1200),
        (KIND, kind_and_place, entropy_of_kinds() + NORMAL + math.log(0.5), 1200),
    ],
    ids=["two modes", "a mean of normals", "a kind and a place"],
)
def test_training_reaches_the_entropy(layout: Layout, problem: Problem, entropy: float, steps: int) -> None:
    network, report = trained(layout, problem, 10_000, steps)
    fresh, _ = network.prepared(*problem(np.random.default_rng(2), 20_000), np.float64)
    loss = -float(network.log_density(fresh).mean())
    # below the entropy only by the spread of 20,000 terms
    assert entropy - 0.03 < loss < entropy + 0.05
    assert report.loss == pytest.approx(loss, abs=0.1)
    assert report.first_loss > loss + 0.3


def test_the_report_says_what_there_was() -> None:
    network, report = trained(TWO_MODES, two_modes, 500, 50)
    assert (report.steps, report.rate, report.clipped) == (50, RATE, 0)
    assert report.parameters == sum(layer.size for layer in network.weights) == 3 * 32 + 33 * 32 + 33 * 9
    assert 0.0 < report.seconds < 60.0
    assert {layer.dtype for layer in network.weights} == {np.dtype(np.float64)}


def training(count: int, steps: int, seed: int = 1) -> tuple[Training, np.random.Generator]:
    rng = np.random.default_rng(seed)
    examples, values = two_modes(rng, count)
    network = Conditional.drawn(rng, TWO_MODES, examples, values, hidden=50)
    prepared, _ = network.prepared(examples, values, np.float32)
    return Training(network, prepared, rng.permutation(count), RATE, steps), rng


@pytest.mark.thorough
def test_training_stops_early_and_keeps_the_best() -> None:
    """A hundred examples are learned by heart soon, which the ten held out do not like."""
    made, rng = training(100, 4000)
    made.run(rng, lambda: None)
    assert made.step < 4000
    assert made.held_out_loss() > made.least_loss + 0.1
    losses = [-float(made.kept().log_density(chunk).mean()) for chunk in made.held_out]
    assert losses == pytest.approx([made.least_loss], abs=1e-4)


def test_held_out_examples_are_not_trained_on() -> None:
    made, _ = training(2500, 10)
    assert [len(chunk) for chunk in made.held_out] == [250]
    assert len(made.trained_on) == 2250
    seen = np.concatenate([made.prepared.values[made.trained_on], *(chunk.values for chunk in made.held_out)])
    assert (np.sort(seen, axis=0) == np.sort(made.prepared.values, axis=0)).all()


def test_a_pass_takes_each_example_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those that are left when no minibatch is full any more."""
    made, rng = training(2500, 8)
    seen: list[np.ndarray] = []

    def take_step(self: Training, minibatch: PreparedExamples) -> None:
        seen.append(minibatch.values[:, 0])
        self.step += 1

    monkeypatch.setattr(Training, "take_step", take_step)
    made.run(rng, lambda: None)
    assert [len(values) for values in seen] == [MINIBATCH] * 8
    assert len(np.unique(np.concatenate(seen))) == 8 * MINIBATCH


def test_long_gradients_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = training(500, 10)
    made.prepared.values[:] *= 1e4
    norms = []

    def step(self: Adam, gradient: np.ndarray, rate: float) -> np.ndarray:
        norms.append(float(np.linalg.norm(gradient)))
        return np.zeros_like(gradient)

    monkeypatch.setattr(fitting.Adam, "step", step)
    made.take_step(made.prepared.take(made.trained_on))
    assert norms == pytest.approx([MOST_NORM], rel=1e-5)


def test_steps_of_adam_are_those_of_its_paper() -> None:
    adam, gradients = Adam(np.zeros(2)), np.array([[1.0, -2.0], [3.0, 0.5], [0.0, 1.0]])
    for t, gradient in enumerate(gradients, 1):
        taken = adam.step(gradient, 0.1)
        ages = np.arange(t)[::-1, None]
        mean = (0.1 * 0.9**ages * gradients[:t]).sum(axis=0) / (1.0 - 0.9**t)
        square = (0.001 * 0.999**ages * gradients[:t] ** 2).sum(axis=0) / (1.0 - 0.999**t)
        assert taken == pytest.approx(0.1 * mean / (np.sqrt(square) + 1e-8))


@pytest.mark.filterwarnings("error")
def test_a_loss_that_is_not_finite_restarts_in_float64() -> None:
    rng = np.random.default_rng(1)
    examples, values = two_modes(rng, 300)
    values[7] = 1e25
    network, report = fit(Conditional.drawn(rng, TWO_MODES, examples, values), examples, values, rng, steps=20)
    assert report.rate == RATE / 3.0
    assert math.isfinite(report.loss)
    assert math.isfinite(network.given(examples.fixed[0]).log_density([0.0]))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("bad", "message"),
    [(1e200, "largest values are those of y, up to 1e\\+200"), (math.nan, "of y are not finite"), (math.inf, "of y")],
)
def test_a_loss_that_stays_so_is_an_error_that_names_the_input(bad: float, message: str) -> None:
    rng = np.random.default_rng(1)
    examples, values = two_modes(rng, 300)
    network = Conditional.drawn(rng, TWO_MODES, examples, values)
    values[:] = bad
    with pytest.raises(KernelError, match=message):
        fit(network, examples, values, rng, steps=20)


def test_an_input_that_is_no_number_is_named() -> None:
    rng = np.random.default_rng(1)
    examples = random_examples(rng)
    examples.ports[0].values[3, 1] = math.nan
    with pytest.raises(ParameterError, match="input sd of data is not a number"):
        fit(random_network(rng), examples, random_values(rng), rng)


def test_an_interruption_leaves_the_network_as_it_was() -> None:
    rng = np.random.default_rng(1)
    network, examples, values = random_network(rng), random_examples(rng), random_values(rng)
    before, polls = network.arrays(), iter(range(5))

    def poll() -> None:
        if next(polls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(network, examples, values, rng, poll)
    assert next(polls, None) is None
    assert all((array == old).all() for array, old in zip(network.arrays(), before, strict=True))


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("layout", "problem"), [(TWO_MODES, two_modes), (MEAN, mean_of_normals), (KIND, kind_and_place)]
)
def test_a_seed_gives_one_network(layout: Layout, problem: Problem) -> None:
    def weights(seed: int) -> np.ndarray:
        network, report = trained(layout, problem, 600, 60, seed)
        assert report.loss < report.first_loss
        return np.concatenate([layer.ravel() for layer in network.weights])

    assert (weights(1) == weights(1)).all()
    assert (weights(1) != weights(2)).any()


@pytest.mark.thorough
@pytest.mark.parametrize("are_known", [False, True])
def test_known_densities_are_fitted_beyond_what_the_draws_look_like(are_known: bool) -> None:
    """By likelihood alone 300 draws leave 14 free numbers some 14 / 600 nats, an sd of 0.2: seven times the bar."""
    rng = np.random.default_rng(5)
    values, nothing = rng.standard_normal((300, 1)), Examples(np.empty((300, 0)))
    layout = Layout(InputNames(()), (("x", Normals(5)),))
    initial = Conditional.drawn(rng, layout, nothing, values, hidden=8)
    targets = 1e6 - 0.5 * values[:, 0] ** 2 if are_known else None
    found, _ = fit(initial, nothing, values, rng, steps=1500, targets=targets)
    at = np.linspace(-2.0, 2.0, 41)
    prepared, _ = found.prepared(Examples(np.empty((41, 0))), at[:, None], np.float64)
    off = found.log_density(prepared) + 0.5 * at * at
    assert (float(off.std()) < 0.03) is are_known
