"""Gradients of densities against central differences, for every record of the registry."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.procedures.differences import agree, derivative, is_sharp
from tests.procedures.examples import CORRELATED, RANDOM, vector
from tests.procedures.test_deterministic import column
from tests.procedures.test_random import draws, record_of
from venture_lite.errors import InternalError
from venture_lite.procedures import derivatives
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.density import random
from venture_lite.procedures.domains import POSITIVE, REAL
from venture_lite.procedures.numeric import COLUMNS, OF_SIMULATORS, inf, log, sqrt, where
from venture_lite.procedures.record import Argument, Random
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.values import freeze

RECORDS = [record for record in PROCEDURES.values() if isinstance(record, Random)]
CALLS = [(name, args) for name, example in RANDOM.items() for args in example.arguments]
NO_DERIVATIVE = {
    ("weighted_categorical", "values"): "a list of values of any kind, compared and never computed with",
    ("draw", "distribution"): "what a query found, which has no derivatives",
    ("uniform_draw", "items"): "a list of values of any kind, compared and never computed with",
    ("categorical", "values"): "a list of values of any kind, compared and never computed with",
}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_derivative_exists_with_respect_to_all_that_is_continuous(record: Random) -> None:
    continuous = (
        record.transform is not None,
        *(not a.domain.discrete and (record.name, a.name) not in NO_DERIVATIVE for a in record.arguments),
    )
    assert (record.gradient is not None) == any(continuous)
    assert record.gradient is None or record.gradient.exists == continuous


def single(record: Random, *inputs: Any) -> tuple[Any, ...]:
    assert record.gradient is not None
    everything = (True,) * len(inputs)
    return record.gradient.evaluate((False,) * len(inputs), everything, *inputs)


def directions(rng: np.random.Generator, x: Any, kind: str) -> Any:
    """A displacement of an input within its kind: probabilities keep their sum, matrices their symmetry."""
    if kind == "number":
        return abs(x) if x else 1.0
    array = np.asarray(x, dtype=np.float64)
    if kind == "matrix":
        lower = np.linalg.cholesky(array)
        way = rng.normal(size=array.shape)
        return lower @ (way + way.T) @ lower.T
    way = rng.normal(size=array.shape)
    if kind == "factor":
        # rows stay of length 1
        way = np.tril(way)
        return (way - array * (way * array).sum(axis=1, keepdims=True)) * array.diagonal()[:, None]
    if kind == "triangle":
        return np.tril(way)
    if kind != "simplex":
        return way
    # about as far as the smallest coordinate that is not 0 allows; what is 0 stays
    inside = array > 0.0
    way = np.where(inside, way * array, 0.0)
    return np.where(inside, way - array * way.sum(), 0.0)


def kind_of(record: Random, position: int, x: Any) -> str:
    if np.ndim(np.asarray(x, dtype=object)) == 0 or isinstance(x, (int, float)):
        return "number"
    if np.ndim(x) == 2:
        return {"lkj_cholesky": "factor", "multivariate_normal_cholesky": "triangle"}.get(record.name, "matrix")
    names = ["value", *[argument.name for argument in record.arguments]]
    on_simplex = names[position] == "probs" or (position == 0 and record.name.endswith("dirichlet"))
    return "simplex" if on_simplex else "vector"


def check(record: Random, rng: np.random.Generator, inputs: tuple[Any, ...], position: int) -> bool | None:
    """Whether the comparison was a sharp one; None where the point lies too near to a boundary for one."""
    x = inputs[position]
    way = directions(rng, x, kind_of(record, position, x))

    def along(step: float) -> float:
        shifted = x + step * way if isinstance(x, (int, float)) else freeze(np.asarray(x, dtype=float) + step * way)
        if record.name == "lkj_cholesky" and position == 0:
            shifted = freeze(shifted / np.linalg.norm(shifted, axis=1, keepdims=True))
        return record.log_density(*(shifted if i == position else other for i, other in enumerate(inputs)))

    expected = derivative(along)
    edges = [along(step) for step in (-(2.0**-13), 2.0**-13)]
    if not all(map(math.isfinite, edges)):
        return None
    found = single(record, *inputs)[position]
    total = float(np.sum(np.multiply(found, way)))
    assert agree(total, expected), (record.name, inputs, position, total, expected)
    return is_sharp(expected)


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.thorough
def test_the_gradient_agrees_with_central_differences(name: str) -> None:
    record, rng = record_of(name), np.random.default_rng(len(name))
    if record.gradient is None:
        return
    sharp = dict.fromkeys(range(len(record.arguments) + 1), 0)
    for args in RANDOM[name].arguments:
        for value in draws(name, args, 12):
            for position, exists in enumerate(record.gradient.exists):
                if exists:
                    sharp[position] += check(record, rng, (value, *args), position) is True
    for position, exists in enumerate(record.gradient.exists):
        assert not exists or sharp[position] >= 3, (position, sharp)


@pytest.mark.thorough
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", RANDOM)
def test_columns_agree_with_rows(name: str) -> None:
    """Lifted inputs have the rows' derivatives, uniform ones their sum."""
    record, example = record_of(name), RANDOM[name]
    if record.gradient is None:
        return
    answered = 0
    for kept in (example.arguments, *[[args] for args in example.arguments]):
        calls = [(value, *args) for args in kept for value in draws(name, args, 4)]
        for lifted in itertools.product((True, False), repeat=len(calls[0])):
            if not any(lifted):
                continue
            rows = [
                tuple(x if up else calls[0][i] for i, (x, up) in enumerate(zip(c, lifted, strict=True))) for c in calls
            ]
            columns = [column(r[i] for r in rows) if lifted[i] else rows[0][i] for i in range(len(lifted))]
            try:
                found = record.gradient.evaluate(lifted, (True,) * len(lifted), *columns)
            except RowByRow:
                continue
            answered += 1
            singles = [single(record, *row) for row in rows]
            for position, exists in enumerate(record.gradient.exists):
                if not exists:
                    assert found[position] is None
                    continue
                parts = np.array([part[position] for part in singles])
                expected = parts if lifted[position] else parts.sum(axis=0)
                assert np.shape(found[position]) == np.shape(expected)
                # one unit in the last place of each term that is summed
                error = 1e-13 * np.abs(parts).sum(axis=0)
                assert np.all(np.abs(found[position] - expected) <= error + 1e-300), (lifted, found, expected)
    assert answered or name in ("wishart", "inv_wishart", "lkj_cholesky")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", RANDOM)
def test_where_the_density_is_0_so_are_its_derivatives(name: str) -> None:
    record = record_of(name)
    if record.gradient is None:
        return
    for args in RANDOM[name].arguments:
        for value in RANDOM[name].outside:
            for part in single(record, value, *args):
                assert part is None or not np.any(part), (value, args, part)


@pytest.mark.parametrize("name", RANDOM)
def test_only_what_is_wanted_is_given(name: str) -> None:
    record = record_of(name)
    if record.gradient is None:
        return
    args = RANDOM[name].arguments[0]
    inputs = (draws(name, args, 1)[0], *args)
    whole = single(record, *inputs)
    for wanted in itertools.product((True, False), repeat=len(inputs)):
        found = record.gradient.evaluate((False,) * len(inputs), wanted, *inputs)
        for part, complete, want in zip(found, whole, wanted, strict=True):
            assert (part is None) == (not want or complete is None)
            assert part is None or np.array_equal(part, complete)


def test_every_name_of_the_namespace_has_its_derivative() -> None:
    known = {*derivatives.SLOPES, *derivatives.STEPS, *derivatives.CHOICES}
    assert known == COLUMNS.keys() - OF_SIMULATORS


def _half_line(value: float, rate: float) -> float:
    # what stands in the branch not taken has no value, and a derivative that is infinite or not a number
    return where(value >= 0, log(rate) - rate * sqrt(value) - log(sqrt(value)), -inf)


def test_the_branch_not_taken_does_not_leak() -> None:
    record = random(
        "half_line", (Argument("rate", POSITIVE),), "", lambda rng, rate: 1.0, _half_line,
        transform=record_of("normal").transform,
    )  # fmt: skip
    assert single(record, -1.0, 2.0) == (0.0, 0.0)
    assert record.gradient is not None
    by_value, by_rate = record.gradient.evaluate((True, False), (True, True), np.array([-1.0, 0.25]), 2.0)
    assert by_value.tolist() == [0.0, -4.0]
    assert by_rate == 0.0


def test_a_new_density_has_its_gradient_for_nothing() -> None:
    def squared(value: float, center: float) -> float:
        return -((value - center) * (value - center))

    record = random("squared", (Argument("center", REAL),), "", lambda rng, center: center, squared)
    assert single(record, 3.0, 1.0) == (None, 4.0)


def test_beyond_the_floats_a_derivative_has_its_limit() -> None:
    """z^2 overflows, the derivative does not."""
    assert single(record_of("student_t"), 1e200, 4.0, 0.0, 1.0)[0] == pytest.approx(-5e-200)
    assert single(record_of("cauchy"), -1e250, 0.0, 1.0)[0] == pytest.approx(2e-250)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("gamma", (1e-4, 1e300)), ("gamma", (1e12, 3.0)), ("inv_gamma", (1e-4, 1.0)), ("beta", (1e-5, 1e-5)),
        ("beta", (1e8, 1e8)), ("expon", (1e308,)), ("expon", (1e-308,)), ("cauchy", (0, 1e300)),
        ("student_t", (1e-3, 0.0, 1.0)), ("normal", (1e300, 1e300)), ("poisson", (1e-300,)), ("poisson", (1e17,)),
        ("geometric", (1e-15,)), ("bernoulli_logit", (-1e308,)), ("bernoulli_logit", (1e308,)), ("weibull", (1e-2, 1)),
        ("pareto", (1e-2, 1.0)), ("lognormal", (0, 100.0)), ("von_mises", (0, 1e6)), ("chi_sq", (1e-3,)),
        ("neg_binomial", (1e6, 0.5)), ("logistic_dist", (0, 1e-300)), ("symmetric_dirichlet", (1e-6, 4)),
        ("softmax_categorical", (vector(-1e308, 0.0, 1e308),)), ("binomial", (10**9, 0.3)), *CALLS,
    ],
)  # fmt: skip
@pytest.mark.thorough
def test_at_its_own_draws_a_gradient_is_never_nan(name: str, args: tuple[Any, ...]) -> None:
    """It may be infinite: (shape - 1) / x is, at the smallest float."""
    record = record_of(name)
    for value in draws(name, args, 50) if record.gradient is not None else ():
        for part in single(record, value, *args):
            assert part is None or not np.isnan(part).any(), (value, part)


def test_a_density_with_an_if_is_refused() -> None:
    record = random(
        "with_if", (Argument("rate", POSITIVE),), "", lambda rng, rate: 1.0,
        lambda value, rate: -rate * value if value > 0 else -inf, transform=record_of("normal").transform,
    )  # fmt: skip
    with pytest.raises(InternalError, match="a density has no `if`"):
        single(record, 1.0, 2.0)


def test_rows_share_a_covariance() -> None:
    record, rng = record_of("multivariate_normal"), np.random.default_rng(2)
    points, mean = rng.normal(size=(40, 2)), vector(0.5, -1.0)
    assert record.gradient is not None
    by_value, by_mean, by_cov = record.gradient.evaluate((True, False, False), (True,) * 3, points, mean, CORRELATED)
    rows = [single(record, point, mean, CORRELATED) for point in points]
    assert np.allclose(by_value, [row[0] for row in rows], 1e-12, 1e-12)
    assert np.allclose(by_mean, sum(row[1] for row in rows), 1e-12, 1e-12)
    assert np.allclose(by_cov, sum(row[2] for row in rows), 1e-12, 1e-12)


def in_one_call(name: str) -> bool:
    gradient = record_of(name).gradient
    return gradient is not None and gradient.of_numbers is not None


@pytest.mark.parametrize(("name", "args"), [(name, args) for name, args in CALLS if in_one_call(name)])
def test_one_row_gives_its_density_and_derivatives_in_one_call(name: str, args: tuple[Any, ...]) -> None:
    """As apart, of draws and of what has no density. Seen to fail where the derivative of a place was left out."""
    record = record_of(name)
    assert record.gradient is not None
    assert record.gradient.of_numbers is not None
    none = (False,) * (1 + len(record.arguments))
    arguments = (*args, *(each.default for each in record.arguments[len(args) :]))
    exists = [at for at, there in enumerate(record.gradient.exists) if there]
    asked = [frozenset(each) for size in (1, 2, 3) for each in itertools.combinations(exists, size)]
    # a function of numbers is asked of numbers alone
    outside = () if record.definition is not None else RANDOM[name].outside
    for value in (*draws(name, args, 3), *outside):
        for places in asked:
            wanted = tuple(at in places for at in range(len(none)))
            with np.errstate(all="ignore"):
                total, *parts = record.gradient.of_numbers(wanted)(value, *arguments)
                apart = record.gradient.evaluate(none, wanted, value, *arguments)
            assert total == pytest.approx(record.log_density(value, *arguments), rel=1e-12, nan_ok=True)
            if total > -math.inf:
                for part, other in zip(
                    parts, [each for each, want in zip(apart, wanted, strict=True) if want], strict=True
                ):
                    np.testing.assert_allclose(part, other, rtol=1e-12)
