"""Random records: normalisation, simulation against density, columns against rows, scipy as a second opinion.

Each statistical test is seeded and rejects a correct sampler with probability 1e-6.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.procedures.examples import CORRELATED, RANDOM, matrix, vector
from tests.procedures.integrals import COUNTS, line, volume
from tests.procedures.test_deterministic import column
from venture_lite.errors import ArgumentError, CountTooLarge
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Random
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.values import key_of

FALSE_ALARM = 1e-6
CALLS = [(name, args) for name, example in RANDOM.items() for args in example.arguments]
SINGLES = [(name, args) for name, args in CALLS if not RANDOM[name].is_array]
ARRAYS = [(name, args) for name, args in CALLS if RANDOM[name].is_array]


def record_of(name: str) -> Random:
    record = PROCEDURES[name]
    assert isinstance(record, Random)
    return record


def draws(name: str, args: tuple[Any, ...], count: int) -> list[Any]:
    rng = np.random.default_rng([len(name), count])
    return [record_of(name).simulate(rng, *args) for _ in range(count)]


def outcomes(record: Random, args: tuple[Any, ...]) -> Any:
    return COUNTS if record.support is None else record.support(*args)


LINES: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]] = {}


def line_of(name: str, args: tuple[Any, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Values and the cumulative mass up to each, computed once for both tests of a call of SINGLES."""
    record, key = record_of(name), (name, id(args))
    assert record.transform is not None
    if key not in LINES:
        LINES[key] = line(lambda x: record.log_density(x, *args), record.transform, args)
    return LINES[key]


@pytest.mark.parametrize(("name", "args"), SINGLES)
@pytest.mark.thorough
def test_the_density_is_normalised(name: str, args: tuple[Any, ...]) -> None:
    record = record_of(name)
    if record.transform is None:
        total = math.fsum(math.exp(record.log_density(x, *args)) for x in outcomes(record, args))
        assert math.isclose(total, 1.0, rel_tol=1e-9)
    else:
        _, cumulative = line_of(name, args)
        assert math.isclose(cumulative[-1], 1.0, rel_tol=1e-6)


def free_dimensions(name: str, args: tuple[Any, ...]) -> int:
    transform = record_of(name).transform
    assert transform is not None
    return len(transform.to_free(draws(name, args, 1)[0], args))


# matrices of more free coordinates have scipy, the Jacobian's own test and their marginals below
@pytest.mark.parametrize(("name", "args"), [call for call in ARRAYS if free_dimensions(*call) <= 2])
@pytest.mark.thorough
def test_the_density_of_arrays_is_normalised(name: str, args: tuple[Any, ...]) -> None:
    record = record_of(name)
    assert record.transform is not None
    total = volume(lambda x: record.log_density(x, *args), record.transform, args, free_dimensions(name, args))
    assert math.isclose(total, 1.0, rel_tol=1e-5)


@pytest.mark.parametrize(("name", "args"), SINGLES)
@pytest.mark.thorough
def test_simulation_agrees_with_the_density(name: str, args: tuple[Any, ...]) -> None:
    record, drawn = record_of(name), draws(name, args, 4000)
    if record.transform is None:
        keys = list(map(key_of, drawn))
        masses = [(key_of(x), math.exp(record.log_density(x, *args))) for x in outcomes(record, args)]
        assert chi_squared(keys, masses) > FALSE_ALARM
    else:
        values, cumulative = line_of(name, args)
        assert stats.kstest(drawn, lambda x: np.interp(x, values, cumulative)).pvalue > FALSE_ALARM


def chi_squared(keys: list[Any], masses: list[tuple[Any, float]]) -> float:
    """p-value with outcomes of small expectation pooled."""
    counted: dict[Any, int] = {}
    for key in keys:
        counted[key] = counted.get(key, 0) + 1
    observed, expected, rest = [], [], [len(keys), float(len(keys))]
    for key, mass in masses:
        if mass * len(keys) >= 10:
            observed.append(counted.pop(key, 0))
            expected.append(mass * len(keys))
            rest[0] -= observed[-1]
            rest[1] -= expected[-1]
    assert set(counted) <= {key for key, mass in masses if mass > 0.0}
    if rest[1] > 1e-6 or rest[0]:
        observed.append(int(rest[0]))
        expected.append(max(rest[1], 1e-6))
    if len(observed) < 2:
        return 1.0
    scale = sum(observed) / sum(expected)
    return float(stats.chisquare(observed, [x * scale for x in expected]).pvalue)


@pytest.mark.thorough
def test_simulated_vectors_agree_with_their_marginals() -> None:
    points = np.array(draws("multivariate_normal", (vector(1, -2), CORRELATED), 5000))
    for direction in ((1, 0), (0, 1), (1, 1), (1, -1)):
        mean, variance = np.dot(direction, (1, -2)), direction @ CORRELATED @ direction
        assert stats.kstest(points @ direction, stats.norm(mean, math.sqrt(variance)).cdf).pvalue > FALSE_ALARM
    for name, args, alphas in [
        ("dirichlet", ((2.5, 1.5, 4),), (2.5, 1.5, 4)), ("symmetric_dirichlet", (0.01, 3), (0.01, 0.01, 0.01)),
    ]:  # fmt: skip
        points = np.array(draws(name, args, 5000))
        for i, alpha in enumerate(alphas):
            # both tails of a small alpha lie within rounding of 0 and 1, where ties are no news
            marginal = stats.beta(alpha, sum(alphas) - alpha)
            distance = max(abs((points[:, i] <= x).mean() - marginal.cdf(x)) for x in np.linspace(0.01, 0.99, 99))
            assert distance < 0.04  # 2 exp(-2 n d^2) is below 1e-6


@pytest.mark.thorough
def test_simulated_matrices_agree_with_their_marginals() -> None:
    """v' X v / v' S v is chi-squared with df for a wishart, as is v' X^-1 v / v' S^-1 v for an inv_wishart, where
    v' S v / v' X v is chi-squared with df - 1; determinants are products of chi-squareds with df and df - 1."""
    df = 3.5
    drawn, inverse = (np.array(draws(name, (df, CORRELATED), 5000)) for name in ("wishart", "inv_wishart"))
    for direction in np.array([(1, 0), (0, 1), (1, 1), (1, -2)], dtype=float):
        ratio = np.einsum("i,nij,j->n", direction, drawn, direction) / (direction @ CORRELATED @ direction)
        assert stats.kstest(ratio, stats.chi2(df).cdf).pvalue > FALSE_ALARM
        precision = np.einsum("i,nij,j->n", direction, np.linalg.inv(inverse), direction)
        ratio = precision / (direction @ np.linalg.inv(CORRELATED) @ direction)
        assert stats.kstest(ratio, stats.chi2(df).cdf).pvalue > FALSE_ALARM
        ratio = (direction @ CORRELATED @ direction) / np.einsum("i,nij,j->n", direction, inverse, direction)
        assert stats.kstest(ratio, stats.chi2(df - 1).cdf).pvalue > FALSE_ALARM
    rng = np.random.default_rng(1)
    products = rng.chisquare(df, 5000) * rng.chisquare(df - 1, 5000) * np.linalg.det(CORRELATED)
    for determinants in (np.linalg.det(drawn), np.linalg.det(CORRELATED) ** 2 / np.linalg.det(inverse)):
        assert stats.ks_2samp(determinants, products).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("name", "args"), [call for call in CALLS if RANDOM[call[0]].reference is not None])
@pytest.mark.thorough
def test_scipy_agrees(name: str, args: tuple[Any, ...]) -> None:
    reference = RANDOM[name].reference
    assert reference is not None
    for value in draws(name, args, 50):
        mine = record_of(name).log_density(value, *args)
        assert math.isclose(mine, float(reference(value, *args)), rel_tol=1e-10, abs_tol=1e-10), (value, mine)


@pytest.mark.parametrize("name", RANDOM)
def test_values_outside_the_support_are_impossible(name: str) -> None:
    for args in RANDOM[name].arguments:
        for value in RANDOM[name].outside:
            assert record_of(name).log_density(value, *args) == -math.inf, (args, value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "args"), CALLS)
@pytest.mark.thorough
def test_draws_are_values_of_positive_finite_density(name: str, args: tuple[Any, ...]) -> None:
    for value in draws(name, args, 200):
        assert math.isfinite(record_of(name).log_density(value, *args))
        assert not isinstance(value, np.generic)
        assert not isinstance(value, np.ndarray) or not value.flags.writeable


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("gamma", (1e-4, 1.0)), ("gamma", (1e-4, 1e300)), ("inv_gamma", (1e-4, 1.0)), ("beta", (1e-5, 1e-5)),
        ("expon", (1e308,)), ("expon", (1e-308,)), ("cauchy", (0, 1e300)), ("student_t", (1e-3, 0.0, 1.0)),
        ("normal", (1e300, 1e300)), ("uniform_continuous", (1.0, math.nextafter(math.nextafter(1.0, 2.0), 2.0))),
        ("poisson", (1e-300,)), ("poisson", (1e17,)), ("geometric", (1e-15,)), ("bernoulli_logit", (-1e308,)),
        ("symmetric_dirichlet", (1e-6, 4)), ("dirichlet", (vector(1e-6, 1e6),)),
        ("chi_sq", (1e-4,)), ("chi_sq", (1e12,)), ("inv_chi_sq", (1e-4,)), ("half_cauchy", (1e300,)),
        ("half_normal", (1e-308,)), ("lognormal", (0.0, 1e3)), ("lognormal", (900.0, 1.0)), ("weibull", (1e-3, 1.0)),
        ("weibull", (1e6, 1e300)), ("pareto", (1e-3, 1.0)), ("pareto", (1e17, 3.0)), ("pareto", (1.0, 1e308)),
        ("logistic_dist", (0.0, 1e307)), ("von_mises", (3.1415926, 1e6)), ("von_mises", (-1e3, 1e18)),
        ("von_mises", (0.0, 1e-300)), ("von_mises", (0.0, -0.0)), ("neg_binomial", (1e-300, 0.5)),
        ("neg_binomial", (5.0, 1e-15)),
        ("neg_binomial", (1e15, 1e-3)), ("multinomial", (10**15, vector(1 / 3, 0.0, 2 / 3))),
        ("softmax_categorical", (vector(-1e308, 1e308, 0),)),
        ("wishart", (1.0001, CORRELATED)), ("wishart", (1e12, CORRELATED)), ("inv_wishart", (1.0001, CORRELATED)),
        ("wishart", (2.5, matrix((1e200, 0.0, 0.0), (0.0, 1e-200, 0.0), (0.0, 0.0, 1.0)))),
    ],
)  # fmt: skip
@pytest.mark.thorough
def test_extreme_arguments_give_values_inside_the_support(name: str, args: tuple[Any, ...]) -> None:
    for value in draws(name, args, 300):
        density = record_of(name).log_density(value, *args)
        assert -math.inf < density < math.inf, (value, density)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [name for name in RANDOM if record_of(name).log_density_columns is not None])
def test_columns_agree_with_rows(name: str) -> None:
    record, example = record_of(name), RANDOM[name]
    assert record.log_density_columns is not None
    answered = 0
    for kept in (example.arguments, *[[args] for args in example.arguments]):
        calls = [(value, *args) for args in kept for value in some_values(name, args)]
        for lifted in itertools.product((True, False), repeat=len(calls[0])):
            if not any(lifted):
                continue
            rows = [
                tuple(x if up else calls[0][i] for i, (x, up) in enumerate(zip(c, lifted, strict=True))) for c in calls
            ]
            columns = [column(r[i] for r in rows) if lifted[i] else rows[0][i] for i in range(len(lifted))]
            try:
                result = record.log_density_columns(lifted, *columns)
            except RowByRow:
                continue
            answered += 1
            expected = [record.log_density(*row) for row in rows]
            assert result.shape == (len(rows),)
            # log(1 + exp(-x)) and sums of lgamma have absolute errors of a few rounding units of their largest term
            assert np.allclose(result, expected, 1e-12, 1e-14), (lifted, rows, result, expected)
    assert answered


def some_values(name: str, args: tuple[Any, ...]) -> list[Any]:
    drawn = draws(name, args, 5)
    if RANDOM[name].is_array:
        return drawn
    return drawn + [x for x in RANDOM[name].outside if isinstance(x, (int, float))]


def test_the_logit_form_is_the_same_distribution() -> None:
    bernoulli = record_of("bernoulli")
    assert bernoulli.logit_form is record_of("bernoulli_logit")
    for logit in (-5.0, 0.0, 0.3, 20.0):
        p = 1 / (1 + math.exp(-logit))
        for value in (True, False, 0, 1.0):
            exact = bernoulli.log_density(value, p)
            assert math.isclose(bernoulli.logit_form.log_density(value, logit), exact, rel_tol=1e-6)


def test_the_hot_loop_of_logistic_regression_is_exact_on_any_logit() -> None:
    columns = record_of("bernoulli_logit").log_density_columns
    assert columns is not None
    logits = np.array([-1e308, -800.0, -709.0, -40.0, -1e-300, 0.0, 1e-300, 40.0, 800.0, 1e308])
    for kind in (bool, np.int64, np.float64):
        for outcome in (0, 1):
            result = columns((True, True), np.full(len(logits), outcome).astype(kind), logits)
            expected = [record_of("bernoulli_logit").log_density(outcome, x) for x in logits.tolist()]
            assert np.allclose(result, expected, 1e-15, 1e-15)


def test_duplicated_values_of_categorical_add_up() -> None:
    record = record_of("categorical")
    assert math.isclose(record.log_density(1.0, vector(0.5, 0.25, 0.25), (1, True, 2.5)), math.log(0.75))
    assert record.support is not None
    assert record.support(vector(0.5, 0.25, 0.25), (1, True, 2.5)) == (1, 2.5)


@pytest.mark.thorough
def test_compositions_are_listed_where_they_are_few() -> None:
    support = record_of("multinomial").support
    assert support is not None
    listed = support(4, vector(0.25, 0.0, 0.5, 0.25))
    assert len(listed) == math.comb(6, 2) == len(set(map(key_of, listed)))
    assert all(counts.sum() == 4 and counts[1] == 0 for counts in listed)
    assert list(map(key_of, support(0, (0.5, 0.5)))) == [key_of(vector(0, 0))]
    for many in [(4999, (0.5, 0.5)), (10**300, vector(0, 1)), (1, vector(*[0.001] * 1000))]:
        assert support(*many) is not None
    for too_many in [
        (5000, (0.5, 0.5)),
        (40, vector(*[0.1] * 10)),
        (10**300, (0.5, 0.5)),
        (9, vector(*[1e-5] * 10**5)),
    ]:
        assert support(*too_many) is None


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("wishart", (1, CORRELATED), "wishart: df must be above 1 where scale is 2 by 2, got 1"),
        ("inv_wishart", (0.5, ((1, 0), (0, 1))), r"inv_wishart: df must be above 1 where scale is 2 by 2, got 0\.5"),
        ("multinomial", (1e16, (0.5, 0.5)), r"multinomial: n must be at most 2\^53, got 1e\+16"),
        ("uniform_continuous", (1, 0), "uniform_continuous: lo must be less than hi, got 1 and 0"),
        ("uniform_discrete", (1, 1), "uniform_discrete: lo must be less than hi, got 1 and 1"),
        ("uniform_discrete", (0, 1e30), r"uniform_discrete: lo and hi must lie within 2\^62, got 0 and 1e\+30"),
        ("binomial", (1e19, 0.5), r"binomial: n must be at most 2\^62, got 1e\+19"),
        ("categorical", (vector(0.5, 0.5), (1,)), "categorical: 2 probabilities for 1 values"),
        ("multivariate_normal", (vector(0, 0, 0), CORRELATED), "mean has 3 entries, but cov is 2 by 2"),
    ],
)
def test_what_domains_cannot_express(name: str, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        record_of(name).simulate(np.random.default_rng(1), *check_arguments(record_of(name), args))


@pytest.mark.parametrize(("value", "rate"), [(2**45, 2**30), (2**60, 2**50), (2**62, 3), (2**53 + 1, 2)])
def test_products_of_integers_leave_64_bits_as_they_do_in_one_row(value: int, rate: int) -> None:
    record = record_of("expon")
    assert record.log_density_columns is not None
    for lifted, given in (((True, False), rate), ((True, True), np.array([rate, rate]))):
        try:
            found = record.log_density_columns(lifted, np.array([value, value]), given)
        except RowByRow:
            continue
        assert found[0] == pytest.approx(record.log_density(value, rate), rel=1e-14)


@pytest.mark.parametrize("name", ["normal", "cauchy", "laplace", "gamma", "lognormal"])
def test_true_counts_one_for_all_rows(name: str) -> None:
    record = record_of(name)
    assert record.log_density_columns is not None
    found = record.log_density_columns((True, False, False), np.array([0.5, 3.0]), 1, True)
    expected = [record.log_density(0.5, 1, 1), record.log_density(3.0, 1, 1)]
    assert found == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("poisson", (1e19,)), ("neg_binomial", (1e15, 1e-5)), ("geometric", (1e-300,)),
        ("poisson", (vector(1.0, 1e300),)), ("neg_binomial", (5.0, 1e-300)), ("geometric", (vector(0.5, 1e-25),)),
    ],
)  # fmt: skip
def test_counts_beyond_the_largest_are_refused(name: str, args: tuple[Any, ...]) -> None:
    record = record_of(name)
    with pytest.raises(CountTooLarge, match=f"{name}: a draw of .* is a count beyond 2"):
        record.simulate(np.random.default_rng(1), *args)
    if not isinstance(args[0], np.ndarray):
        assert math.isfinite(record.log_density(3, *args))
        assert record.simulate_columns is not None
        with pytest.raises(RowByRow):
            record.simulate_columns(np.random.default_rng(1), 3, *args)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("low", "high"), [(-1e308, 1e308), (-1.7e308, 1.7e308), (-1e308, 1.0)])
def test_a_uniform_between_bounds_far_apart(low: float, high: float) -> None:
    """The mean is within 6 standard errors: false alarm 2e-9."""
    record, width = record_of("uniform_continuous"), 0.5 * high - 0.5 * low
    found = np.array(draws("uniform_continuous", (low, high), 300)) / width
    assert abs(found.mean() - (0.5 * low + 0.5 * high) / width) < 6.0 * 2.0 / math.sqrt(12.0 * 300)
    assert record.log_density(0.0, low, high) == pytest.approx(-math.log(width) - math.log(2.0), rel=1e-15)
    assert record.transform is not None
    for value in (0.0, 0.9 * high, 0.9 * low):
        free = record.transform.to_free(value, (low, high))
        assert record.transform.from_free(free, (low, high)) == pytest.approx(value, rel=1e-12, abs=1e-10 * width)
        step = 1e-4
        around = [record.transform.from_free(free + d, (low, high)) / width for d in (-step, step)]
        slope = math.log((around[1] - around[0]) / (2.0 * step)) + math.log(width)
        assert record.transform.log_jacobian(value, (low, high)) == pytest.approx(slope, rel=1e-9, abs=1e-7)
        assert math.isfinite(record.transform.free_gradient(value, (low, high), 0.0))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "args"), [("symmetric_dirichlet", (1e-310, 3)), ("dirichlet", (vector(1e-310, 2e-310),))]
)
def test_a_dirichlet_of_the_smallest_parameters_is_a_corner(name: str, args: tuple[Any, ...]) -> None:
    """The outcomes have probabilities in proportion to the parameters: within 6 standard errors, false alarm 2e-9."""
    found = np.array(draws(name, args, 600))
    assert (np.sort(found, axis=1)[:, -1] == math.nextafter(1.0, 0.0)).all() or found.max() == 1.0
    expected = 1.0 / 3.0
    assert abs((found[:, 0] > 0.5).mean() - expected) < 6.0 * math.sqrt(expected * (1.0 - expected) / 600)


def test_the_smallest_and_largest_scales_of_laplace() -> None:
    assert record_of("laplace").log_density(1e308, 0.0, 1e308) == pytest.approx(-710.8893558227, rel=1e-12)
    assert record_of("laplace").log_density(0.0, 0.0, 1e-308) == pytest.approx(708.5031, rel=1e-6)
