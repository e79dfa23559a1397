"""Exchangeable makers: predictive densities, joint densities, and updates that are undone bit for bit.

Each statistical test is seeded and rejects a correct sampler with probability 1e-6.
"""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.procedures.examples import CORRELATED, MAKERS, POINTS, vector
from tests.procedures.integrals import COUNTS, line, volume
from tests.procedures.test_random import FALSE_ALARM, chi_squared
from venture_lite import Venture
from venture_lite.errors import ArgumentError, VentureError
from venture_lite.procedures.exchangeable.crp import CrpState
from venture_lite.procedures.exchangeable.moments import ArrayAlgebra, PlainAlgebra
from venture_lite.procedures.numeric import log_rising
from venture_lite.procedures.record import Maker, MakerState
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.values import equal, key_of

CALLS = [(name, args) for name, example in MAKERS.items() for args in example.arguments]


def made(name: str, args: tuple[Any, ...], values: Any = ()) -> MakerState:
    record = PROCEDURES[name]
    assert isinstance(record, Maker)
    state = record.make(*args)
    for value in values:
        state.add(value)
    return state


def close(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return set(left) == set(right) and all(close(left[key], right[key]) for key in left)
    return bool(np.allclose(left, right, 1e-9, 1e-9))


@pytest.mark.parametrize(("name", "args"), CALLS)
@pytest.mark.thorough
def test_the_predictive_density_is_normalised(name: str, args: tuple[Any, ...]) -> None:
    record = PROCEDURES[name]
    assert isinstance(record, Maker)
    for values in ([], MAKERS[name].values[:3]):
        state = made(name, args, values)
        if record.transform is None:
            total = math.fsum(math.exp(state.log_predictive(x)) for x in state.support() or COUNTS)
            assert math.isclose(total, 1.0, rel_tol=1e-9)
        elif np.ndim(MAKERS[name].values[0]):
            assert math.isclose(volume(state.log_predictive, record.transform, ()), 1.0, rel_tol=1e-4)
        else:
            assert math.isclose(line(state.log_predictive, record.transform, ())[1][-1], 1.0, rel_tol=1e-6)


@pytest.mark.parametrize(("name", "args"), CALLS)
@pytest.mark.thorough
def test_simulation_agrees_with_the_predictive_density(name: str, args: tuple[Any, ...]) -> None:
    record = PROCEDURES[name]
    assert isinstance(record, Maker)
    rng = np.random.default_rng(1)
    for values in ([], MAKERS[name].values):
        state = made(name, args, values)
        before = pickle.dumps(state.statistics())
        drawn = [state.simulate(rng) for _ in range(4000)]
        assert pickle.dumps(state.statistics()) == before
        if record.transform is None:
            masses = [(key_of(x), math.exp(state.log_predictive(x))) for x in state.support() or COUNTS]
            assert chi_squared(list(map(key_of, drawn)), masses) > FALSE_ALARM
        elif not np.ndim(MAKERS[name].values[0]):
            grid, cumulative = line(state.log_predictive, record.transform, ())
            p = stats.kstest(drawn, lambda x, g=grid, c=cumulative: np.interp(x, g, c)).pvalue
            assert p > FALSE_ALARM


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_the_joint_density_is_the_sum_of_predictive_densities_in_any_order(name: str, args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(2)
    values = MAKERS[name].values
    for _ in range(5):
        state = made(name, args)
        total = 0.0
        for position in rng.permutation(len(values)):
            total += state.log_predictive(values[position])
            state.add(values[position])
            assert math.isclose(state.log_joint(), total, rel_tol=1e-9, abs_tol=1e-9)


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_restore_is_exact_bit_for_bit(name: str, args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(3)
    state, values = made(name, args, MAKERS[name].values), list(MAKERS[name].values)
    before = snapshot(state)
    probe = [state.log_predictive(value) for value in values], state.log_joint(), state.support()
    for _ in range(20):
        tokens, present = [], list(values)
        for _ in range(10):
            if present and rng.random() < 0.5:
                tokens.append(state.remove(present.pop(rng.integers(len(present)))))
            else:
                value = values[rng.integers(len(values))]
                tokens.append(state.add(value))
                present.append(value)
            state.log_predictive(values[0])
        for token in reversed(tokens):
            state.restore(token)
        assert snapshot(state) == before
        assert ([state.log_predictive(value) for value in values], state.log_joint(), state.support()) == probe


def snapshot(state: MakerState) -> bytes:
    statistics = state.statistics()
    return pickle.dumps((state.count, sorted(statistics.items())))


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_statistics_equal_a_recount(name: str, args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(4)
    values, present = MAKERS[name].values, []
    state = made(name, args)
    for _ in range(500):
        if present and rng.random() < 0.5:
            state.remove(present.pop(rng.integers(len(present))))
        else:
            present.append(values[rng.integers(len(values))])
            state.add(present[-1])
    other = made(name, args)
    other.recount([(value,) for value in present])
    assert state.count == other.count == len(present)
    assert close(state.statistics(), other.statistics())
    assert math.isclose(state.log_joint(), other.log_joint(), rel_tol=1e-9, abs_tol=1e-9)
    for value in present:
        state.remove(value)
    assert snapshot(state) == snapshot(made(name, args))
    assert state.log_joint() == 0.0


@pytest.mark.parametrize(("name", "args"), CALLS)
def test_new_arguments_keep_the_statistics(name: str, args: tuple[Any, ...]) -> None:
    values = MAKERS[name].values
    for other in MAKERS[name].arguments:
        state = made(name, args, values)
        state.log_predictive(values[0])
        state.set_arguments(other)
        fresh = made(name, other, values)
        assert state.arguments == fresh.arguments == other
        assert math.isclose(state.log_joint(), fresh.log_joint(), rel_tol=1e-12)
        assert math.isclose(state.log_predictive(values[0]), fresh.log_predictive(values[0]), rel_tol=1e-12)


@pytest.mark.parametrize("name", MAKERS)
def test_values_outside_the_support_are_impossible(name: str) -> None:
    state = made(name, MAKERS[name].arguments[0], MAKERS[name].values)
    for value in MAKERS[name].outside:
        assert state.log_predictive(value) == -math.inf, value


def test_a_fresh_table_takes_the_smallest_unused_label() -> None:
    state = CrpState(1.0)
    for label, fresh in [(1, 2), (2, 3), (5, 3), (3, 4), (4, 6)]:
        state.add(label)
        assert state.fresh() == fresh
    state.remove(2)
    assert state.support() == [1, 3, 4, 5, 2]


def test_any_unused_label_carries_the_whole_fresh_mass() -> None:
    state = CrpState(2.0, 0.25)
    state.add(1)
    state.add(9)
    assert math.isclose(state.log_predictive(2), math.log((2.0 + 2 * 0.25) / 4.0))
    assert state.log_predictive(2) == state.log_predictive(10**6) == state.log_predictive(3.0)


def test_log_rising_is_exact_across_its_two_forms() -> None:
    for start in (0.01, 1.0, 9999.0, 10001.0, 1e9):
        for count in (0, 1, 7, 300):
            exact = math.fsum(math.log(start + i) for i in range(count))
            assert math.isclose(log_rising(start, count), exact, rel_tol=1e-11, abs_tol=1e-10)


def test_the_normal_predictive_is_the_student_t_of_the_textbook() -> None:
    values = [0.5, -1.5, 3, 0.25]
    mean, kappa, nu, var = 1.0, 0.5, 3.0, 2.0
    n, average = len(values), sum(values) / len(values)
    kn, vn = kappa + n, nu + n
    squares = nu * var + sum((x - average) ** 2 for x in values) + kappa * n / kn * (average - mean) ** 2
    t = stats.t(vn, (kappa * mean + n * average) / kn, math.sqrt(squares / vn * (1 + kn) / kn))
    state = made("make_normal_inv_chi_sq", (mean, kappa, nu, var), values)
    for x in (-2.0, 0.0, 5.5):
        assert math.isclose(state.log_predictive(x), t.logpdf(x), rel_tol=1e-11)


def textbook_t(m0: Any, k0: float, v0: float, s0: Any, points: np.ndarray) -> Any:
    n, size = points.shape
    average = points.mean(axis=0)
    away = points - average
    kn, vn = k0 + n, v0 + n
    sn = s0 + away.T @ away + k0 * n / kn * np.outer(average - m0, average - m0)
    degrees = vn - size + 1
    return stats.multivariate_t((k0 * np.asarray(m0) + n * average) / kn, sn * (kn + 1) / (kn * degrees), degrees)


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 12])
def test_the_multivariate_predictive_is_the_t_of_the_textbook(size: int) -> None:
    rng = np.random.default_rng(5)
    root = rng.normal(size=(size, size))
    s0, m0, points = root @ root.T + np.eye(size), rng.normal(size=size), rng.normal(size=(9, size))
    state = made("make_collapsed_multivariate_normal", (m0, 0.3, size + 1.5, s0), points)
    t = textbook_t(m0, 0.3, size + 1.5, s0, points)
    for point in rng.normal(size=(5, size)) * 3:
        assert math.isclose(state.log_predictive(point), t.logpdf(point), rel_tol=1e-10)
    total, again = 0.0, made("make_collapsed_multivariate_normal", (m0, 0.3, size + 1.5, s0))
    for point in points:
        total += again.log_predictive(point)
        again.add(point)
    assert math.isclose(state.log_joint(), total, rel_tol=1e-9)


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.thorough
def test_simulated_vectors_agree_with_the_marginals_of_the_t(size: int) -> None:
    rng = np.random.default_rng(6)
    points = rng.normal(size=(4, size))
    args = (np.ones(size), 0.5, size + 2.0, np.eye(size))
    state = made("make_collapsed_multivariate_normal", args, points)
    t = textbook_t(*args, points)
    drawn = np.array([state.simulate(rng) for _ in range(4000)])
    for direction in (np.eye(size)[0], np.ones(size), np.arange(size) - 1.0):
        scale = math.sqrt(direction @ t.shape @ direction)
        assert stats.kstest(drawn @ direction, stats.t(t.df, t.loc @ direction, scale).cdf).pvalue > FALSE_ALARM


def test_plain_and_array_algebra_agree() -> None:
    rng = np.random.default_rng(7)
    for size in (2, 4):
        plain, arrays = PlainAlgebra(size), ArrayAlgebra(size)
        small, large = plain.empty(), arrays.empty()
        points = rng.normal(size=(6, size))
        for point in points:
            small, large = plain.moved(small, plain.point(point), 1), arrays.moved(large, arrays.point(point), 1)
        small, large = plain.moved(small, plain.point(points[2]), -1), arrays.moved(large, points[2], -1)
        assert np.allclose(small.mean, large.mean, 1e-12)
        assert np.allclose(small.scatter, plain.matrix(large.scatter), 1e-11)
        base, mean = np.eye(size), rng.normal(size=size)
        one = plain.factor(plain.matrix(base), small, plain.point(mean), 0.7)
        other = arrays.factor(base, large, mean, 0.7)
        assert np.allclose(one[0], plain.matrix(other[0]), 1e-11)
        assert math.isclose(one[1], other[1], rel_tol=1e-11)


def test_a_large_common_offset_costs_no_digits() -> None:
    rng = np.random.default_rng(8)
    points = [x + 1e6 for x in rng.normal(size=200).tolist()]
    state = made("make_normal_inv_chi_sq", (1e6, 1.0, 3.0, 1.0), points)
    other = made("make_normal_inv_chi_sq", (1e6, 1.0, 3.0, 1.0))
    other.recount([(point,) for point in points])
    assert close(state.statistics(), other.statistics())


def test_sizes_and_degrees_of_freedom_are_checked() -> None:
    with pytest.raises(ArgumentError, match=r"v0 must be above 1 in 2 dimensions, got 0\.5"):
        made("make_collapsed_multivariate_normal", (vector(0, 0), 1.0, 0.5, CORRELATED))
    with pytest.raises(ArgumentError, match="m0 has 3 entries, but S0 is 2 by 2"):
        made("make_collapsed_multivariate_normal", (vector(0, 0, 0), 1.0, 5.0, CORRELATED))


def test_a_list_of_numbers_counts_as_a_vector() -> None:
    args = (vector(0, 0), 1.0, 5.0, CORRELATED)
    one, other = (made("make_collapsed_multivariate_normal", args, values) for values in (POINTS, map(tuple, POINTS)))
    assert equal(one.statistics()["mean"], other.statistics()["mean"])
    assert one.log_joint() == other.log_joint()


@pytest.mark.parametrize(
    ("maker", "smaller"),
    [
        ("make_normal_inv_chi_sq 0 1 1e300 1e300", "make_normal_inv_chi_sq 0 1 1e300 1e7"),
        ("make_sym_dir_mult 1e300 9007199254740993", "make_sym_dir_mult 1e290 9007199254740993"),
        ("make_dir_mult (vector 1e308 1e308)", "make_dir_mult (vector 1e307 1e308)"),
        ("make_beta_bernoulli 1e308 1e308", "make_beta_bernoulli 1e307 1e308"),
    ],
)
def test_parameters_whose_total_is_beyond_the_floats_are_refused(maker: str, smaller: str) -> None:
    """Densities would be no numbers, or those of another distribution."""
    venture = Venture(seed=1)
    with pytest.raises(VentureError, match=r"must be below 1\.8e308") as caught:
        venture.execute(f"[assume x (({maker}))]")
    assert caught.value.span is not None
    assert venture.list_directives() == []
    venture.execute(f"[assume x (({smaller}))]")
    assert np.isfinite(venture.log_score())
