"""Densities of several coordinates. Each statistical test raises a false alarm with probability 1e-6."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tests.networks.examples import LAYOUT, NAMES, assert_gradient, random_examples, random_network, random_values
from tests.networks.test_pooled import example
from venture_lite.networks.conditional import Conditional, ExampleDensity, Layout

RATE = 1e-6


def of(*names: str) -> Layout:
    """Some of the coordinates, in this order."""
    coordinates = dict(LAYOUT.coordinates)
    return Layout(NAMES, tuple((name, coordinates[name]) for name in names))


def given(network: Conditional, at: int = 0, seed: int = 1) -> ExampleDensity:
    return network.given(*example(random_examples(np.random.default_rng(seed)), at))


@pytest.mark.parametrize("are_known", [False, True])
def test_gradients_agree_with_differences(are_known: bool) -> None:
    rng = np.random.default_rng(1)
    network = random_network(rng)
    targets = 3.0 * rng.standard_normal(12) if are_known else None
    prepared, _ = network.prepared(random_examples(rng, 12), random_values(rng, 12), np.float64, targets)
    loss, by_weights = network.loss(prepared)
    assert (loss == pytest.approx(-network.log_density(prepared).mean())) is not are_known
    assert_gradient(lambda at: network.with_weights(at).loss(prepared)[0], network.weights, by_weights, rng)


def test_one_example_is_a_row_of_the_batch() -> None:
    rng = np.random.default_rng(2)
    network, examples, values = random_network(rng), random_examples(rng), random_values(rng)
    densities = network.log_density(network.prepared(examples, values, np.float64)[0])
    rows = [network.given(*example(examples, at)).log_density(values[at].tolist()) for at in range(len(examples))]
    assert np.allclose(rows, densities, rtol=1e-11, atol=1e-11)


def test_a_draw_comes_with_its_log_density() -> None:
    rng = np.random.default_rng(3)
    density = given(random_network(rng))
    for _ in range(50):
        values, log_density = density.draw(rng)
        assert density.log_density(values) == pytest.approx(log_density, rel=1e-13)


def test_a_coordinate_reads_only_those_before_it() -> None:
    rng = np.random.default_rng(4)
    density = given(random_network(rng))
    values = [0.3, 2.0, 4.0, -1.0]
    before = density.log_density(values[:3])
    last = density.of_coordinate(3, values).log_density(-1.0)
    assert density.log_density(values) == pytest.approx(before + last, rel=1e-13)
    for position in range(3):
        moved = [*values[:position], 1.0, *values[position + 1 :]]
        density.log_density(moved)
        assert density.of_coordinate(3, moved).log_density(-1.0) != pytest.approx(last, rel=1e-6)


def cells(density: ExampleDensity, order: tuple[str, ...], edges: np.ndarray) -> np.ndarray:
    """Probabilities (4, B) of k and of x between edges (B - 1,), by the trapezoidal rule in x = sinh(s)."""
    s, step = np.linspace(-11.0, 11.0, 1201, retstep=True)
    x, stretch = np.sinh(s), np.cosh(s) * step
    bins = np.searchsorted(edges, x)
    found = np.zeros((4, len(edges) + 1))
    for k in range(4):
        for at, weight, bin in zip(x.tolist(), stretch, bins, strict=True):
            point = {"x": at, "k": float(k)}
            found[k, bin] += math.exp(density.log_density([point[name] for name in order])) * weight
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("order", [("x", "k"), ("k", "x")])
def test_joint_densities_have_mass_1(order: tuple[str, ...]) -> None:
    density = given(random_network(np.random.default_rng(5), of(*order)))
    assert cells(density, order, np.empty(0)).sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.thorough
@pytest.mark.parametrize("order", [("x", "k"), ("k", "x")])
def test_draws_are_of_the_joint_density(order: tuple[str, ...]) -> None:
    rng = np.random.default_rng(6)
    density = given(random_network(rng, of(*order)))
    draws = [dict(zip(order, density.draw(rng)[0], strict=True)) for _ in range(10_000)]
    edges = np.quantile([draw["x"] for draw in draws[:1000]], [0.2, 0.4, 0.6, 0.8])
    counts = np.zeros((4, 5))
    for draw in draws[1000:]:
        counts[int(draw["k"]), np.searchsorted(edges, draw["x"])] += 1
    expected = 9000 * cells(density, order, edges)
    frequent = expected > 10
    assert frequent.sum() > 8
    seen, mean = counts[frequent], expected[frequent]
    seen, mean = np.append(seen, 9000 - seen.sum()), np.append(mean, 9000 - mean.sum())
    assert stats.chisquare(seen + 1e-9, (mean + 1e-9) * (9000 / mean.sum())).pvalue > RATE


def test_the_first_density_reads_nothing() -> None:
    rng = np.random.default_rng(7)
    examples = random_examples(rng)
    network = Conditional.drawn(rng, LAYOUT, examples, random_values(rng))
    densities = [network.given(*example(examples, at)).log_density([1.0, 2.0, 3.0, 4.0]) for at in range(5)]
    assert densities == pytest.approx([densities[0]] * 5, rel=1e-14)


def test_densities_of_two_examples_live_side_by_side() -> None:
    network, values = random_network(np.random.default_rng(8)), [0.3, 2.0, 4.0, -1.0]
    first, second = given(network, 0), given(network, 1)
    alone = given(network, 0).log_density(values)
    assert second.log_density(values) != alone
    assert first.log_density(values) == alone


def test_what_is_no_category_is_impossible() -> None:
    assert given(random_network(np.random.default_rng(9))).log_density([0.0, 4.0, 0.0, 0.0]) == -math.inf


def test_draws_are_the_same_for_the_same_generator() -> None:
    networks = [random_network(np.random.default_rng(10)) for _ in range(2)]
    draws = [[given(network).draw(rng) for _ in range(5)] for network in networks for rng in [np.random.default_rng(1)]]
    assert draws[0] == draws[1]


def test_arrays_give_it_back() -> None:
    network, values = random_network(np.random.default_rng(11)), [0.3, 2.0, 4.0, -1.0]
    arrays = network.arrays()
    again = Conditional.from_arrays(LAYOUT, arrays)
    assert given(again).log_density(values) == given(network).log_density(values)
    # copies, in both directions
    expected = given(network).log_density(values)
    for array in arrays:
        array[...] = 0
    assert given(again).log_density(values) == given(network).log_density(values) == expected


def test_arrays_of_another_layout_are_refused() -> None:
    arrays = random_network(np.random.default_rng(12)).arrays()
    broken: list[list[np.ndarray]] = [arrays[:-1], [*arrays, arrays[-1]], arrays[::-1], []]
    for position, array in enumerate(arrays):
        for other in (array[..., :-1] if array.ndim else array, np.full(array.shape, np.nan), array.astype(object)):
            broken.append([*arrays[:position], other, *arrays[position + 1 :]])
    for found in broken:
        with pytest.raises(ValueError, match=r"a (network|standardisation|layer)"):
            Conditional.from_arrays(LAYOUT, found)
    for layout in (of("x", "k", "n"), of("k", "x", "n", "y")):
        with pytest.raises(ValueError, match=r"a (network|standardisation|layer)"):
            Conditional.from_arrays(layout, arrays)


def test_arrays_in_float32_are_read_as_float64() -> None:
    arrays = random_network(np.random.default_rng(13)).arrays()
    again = Conditional.from_arrays(LAYOUT, [a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays])
    assert np.isfinite(given(again).log_density([0.3, 2.0, 4.0, -1.0]))
