"""Densities that networks' outputs become. Each statistical test raises a false alarm with probability 1e-6."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from tests.networks.examples import assert_gradient
from venture_lite.networks.heads import MOST_LOG_SD, Categories, Head, NormalMixture, Normals

RATE = 1e-6
HEADS: list[Head] = [Normals(1), Normals(5), Categories(2), Categories(6)]


def outputs_of(head: Head, rng: np.random.Generator, count: int, spread: float = 1.5) -> np.ndarray:
    return spread * rng.standard_normal((count, head.width))


def values_of(head: Head, rng: np.random.Generator, count: int) -> np.ndarray:
    if isinstance(head, Categories):
        return rng.integers(0, head.size, size=count).astype(float)
    return 2.0 * rng.standard_normal(count)


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_gradients_agree_with_differences(head: Head, spread: float) -> None:
    rng = np.random.default_rng(1)
    values = values_of(head, rng, 1)
    for outputs in outputs_of(head, rng, 20, spread):
        gradient = head.log_density(outputs[None], values)[1][0]
        assert_gradient(lambda at: float(head.log_density(at[0][None], values)[0][0]), [outputs], [gradient], rng)


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_a_row_is_a_row_of_the_batch(head: Head) -> None:
    rng = np.random.default_rng(2)
    outputs, values = outputs_of(head, rng, 50), values_of(head, rng, 50)
    rows = [head.at(row).log_density(float(value)) for row, value in zip(outputs, values, strict=True)]
    assert np.allclose(rows, head.log_density(outputs, values)[0], rtol=1e-12, atol=1e-12)


@pytest.mark.thorough
@pytest.mark.parametrize("head", HEADS, ids=str)
def test_densities_have_mass_1(head: Head) -> None:
    rng = np.random.default_rng(3)
    for outputs in outputs_of(head, rng, 5):
        if isinstance(head, Categories):
            density = head.at(outputs)
            mass = math.fsum(math.exp(density.log_density(value)) for value in range(head.size))
        else:
            # in z = sinh(s) the narrowest and the widest of the normals are both smooth
            s, step = np.linspace(-12.0, 12.0, 40_001, retstep=True)
            densities = head.log_density(np.tile(outputs, (len(s), 1)), np.sinh(s))[0]
            mass = float(np.sum(np.exp(densities) * np.cosh(s)) * step)
        assert mass == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("components", [1, 4])
def test_draws_of_normals_are_of_their_density(components: int) -> None:
    rng = np.random.default_rng(4)
    outputs = outputs_of(Normals(components), rng, 1)[0]
    # no component is rare, or hidden behind the others
    outputs[:components] *= 0.2
    outputs[components : 2 * components] = 5.0 * np.arange(components)
    outputs[2 * components :] *= 0.2
    density = Normals(components).at(outputs)
    grid = np.sinh(np.linspace(-8.0, 8.0, 20_001))
    mass = np.exp([density.log_density(at) for at in grid.tolist()])
    reached = np.concatenate(([0.0], np.cumsum(0.5 * (mass[1:] + mass[:-1]) * np.diff(grid))))
    draws = [density.draw(rng) for _ in range(10_000)]
    assert stats.kstest(draws, lambda x: np.interp(x, grid, reached)).pvalue > RATE


@pytest.mark.parametrize("size", [2, 6])
def test_draws_of_categories_are_of_their_density(size: int) -> None:
    rng = np.random.default_rng(5)
    density = Categories(size).at(outputs_of(Categories(size), rng, 1, 1.0)[0])
    counts = np.bincount([int(density.draw(rng)) for _ in range(10_000)], minlength=size)
    expected = 10_000 * np.exp([density.log_density(value) for value in range(size)])
    assert expected.min() > 20
    assert stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > RATE


@pytest.mark.parametrize("outcome", [-1.0, 3.0, 0.5, math.inf, math.nan])
def test_what_is_no_category_is_impossible(outcome: float) -> None:
    assert Categories(3).at(np.zeros(3)).log_density(outcome) == -math.inf


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e3, -1e3])
def test_outputs_of_any_size_give_a_density(size: float) -> None:
    rng = np.random.default_rng(6)
    density = Normals(2).at(np.full(6, size))
    assert np.isfinite(density.draw(rng))
    assert np.isfinite(density.log_density(size))
    width = math.exp(math.copysign(MOST_LOG_SD, size))
    assert density.log_density(size) == pytest.approx(stats.norm.logpdf(0.0, scale=width))
    assert density.log_density(1e300) == -math.inf
    assert Categories(2).at(np.array([size, 0.0])).log_density(0) == pytest.approx(min(size, 0.0))


def test_the_first_outputs_are_about_the_values_own_density() -> None:
    rng = np.random.default_rng(7)
    values = 3.0 + 10.0 * rng.standard_normal(5000)
    for head in (Normals(1), Normals(5)):
        start = np.tile(head.start(values), (len(values), 1))
        loss = -head.log_density(start, values)[0].mean()
        assert loss == pytest.approx(0.5 * math.log(2.0 * math.pi * math.e * 100.0), abs=0.1)
    start = Categories(3).start(np.array([0.0] * 60 + [1.0] * 40))
    assert np.exp(start) == pytest.approx([60.5 / 101.5, 40.5 / 101.5, 0.5 / 101.5])


@pytest.mark.filterwarnings("error")
def test_values_that_are_all_one_have_a_first_density() -> None:
    assert np.isfinite(Normals(5).start(np.full(10, 2.0))).all()


def test_later_networks_read_numbers_in_order_and_kinds_apart() -> None:
    values = np.array([[0.0], [2.0]])
    assert Normals(2).columns(values).tolist() == [[0.0], [2.0]]
    assert Categories(3, ordered=True).columns(values).tolist() == [[0.0], [2.0]]
    assert Categories(3).columns(values).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert Categories(3).columns(values[0]).tolist() == [1.0, 0.0, 0.0]


def of_log_scale(count: int, rms: float) -> tuple[float, float]:
    """Mean and sd of the log scale of so many normals of a root mean square, whose prior is flat: half a log chi
    squared."""
    half = 0.5 * count
    return math.log(rms) + 0.5 * (math.log(half) - float(special.digamma(half))), 0.5 * special.polygamma(
        1, half
    ) ** 0.5


@pytest.mark.parametrize("share", [0.25, 0.5, 2.0])
def test_the_density_of_a_scale_of_other_numbers_is_near_that_of_these(share: float) -> None:
    mean, sd = of_log_scale(12, 2.0)
    density = NormalMixture([0.0, mean, math.log(sd)]).of_more(math.log(2.0), share, 24.0**-0.5)
    exact_mean, exact_sd = of_log_scale(int(12 / share), 2.0)
    assert density.means[0] == pytest.approx(exact_mean, abs=0.03 * exact_sd)
    assert math.exp(density.log_sds[0]) == pytest.approx(exact_sd, rel=0.06)


def test_a_normal_that_the_prior_left_wide_stays_where_there_are_other_numbers() -> None:
    before = NormalMixture([0.0, 0.0, -3.0, 1.0, 3.0, -2.0])
    after = before.of_more(0.0, 0.5, math.exp(-2.0))
    assert after.means == pytest.approx([-3.0, 0.5], rel=1e-3)
    assert after.log_sds == pytest.approx([before.log_sds[0], before.log_sds[1] - 0.5 * math.log(2.0)], abs=1e-3)
