"""Vectors of independent values: every distribution of numbers against itself, item by item.

Each statistical test is seeded and rejects a correct sampler with probability 1e-6 in all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.procedures.examples import RANDOM
from venture_lite.errors import ArgumentError
from venture_lite.procedures.checks import check_arguments, record_valid
from venture_lite.procedures.record import Random
from venture_lite.procedures.registry import PROCEDURES

RECORDS = [record for record in PROCEDURES.values() if isinstance(record, Random) and record.item_log_densities]
SINGLE = (False,) * 9


def calls(record: Random) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
    """The arguments of three items, and the call of all of them: all vectors but the last, where that is shared."""
    items = [(*args,) for args in (RANDOM[record.name].arguments * 3)[:3]]
    if len(record.arguments) > 1:
        items = [(*args[:-1], items[0][-1]) for args in items]
        items = [args for args in items if is_drawable(record, args)]
    vectors = [np.array(values, dtype=np.float64) for values in zip(*items, strict=True)]
    return items, (*vectors[:-1], items[0][-1] if len(vectors) > 1 else vectors[-1])


def is_drawable(record: Random, args: tuple[Any, ...]) -> bool:
    try:
        record.simulate(np.random.default_rng(0), *args)
    except ArgumentError:
        return False
    return True


def test_all_scalar_distributions_but_the_categorical_take_vectors() -> None:
    assert {record.name for record in RECORDS} == {
        "flip", "bernoulli", "bernoulli_logit", "binomial", "beta_binomial", "poisson", "geometric", "neg_binomial",
        "neg_binomial_mean",
        "uniform_discrete", "normal", "uniform_continuous", "truncated_normal", "beta", "student_t", "laplace",
        "cauchy", "logistic_dist", "von_mises", "gamma", "inv_gamma", "expon", "chi_sq", "inv_chi_sq", "half_normal",
        "half_cauchy", "half_student_t", "lognormal", "weibull", "pareto",
    }  # fmt: skip


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_a_vector_is_its_items(record: Random) -> None:
    items, args = calls(record)
    drawn = record.simulate(np.random.default_rng(1), *args)
    assert drawn.shape == (len(items),)
    assert not drawn.flags.writeable
    terms = [record.log_density(float(x), *item) for x, item in zip(drawn, items, strict=True)]
    assert record.item_log_densities is not None
    assert np.allclose(record.item_log_densities(drawn, *args), terms, rtol=1e-12)
    assert math.isclose(record.log_density(drawn, *args), math.fsum(terms), rel_tol=1e-12)
    # a list stands for a vector, of the value and of arguments
    as_lists = [tuple(x.tolist()) if isinstance(x, np.ndarray) else x for x in (drawn, *args)]
    assert math.isclose(record.log_density(*as_lists), math.fsum(terms), rel_tol=1e-12)
    assert record_valid(record)(*args)
    assert record.log_density(drawn[:-1], *args) == record.log_density(drawn, *items[0]) == -math.inf
    assert record.log_density(float(drawn[0]), *args) == -math.inf


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_rows_of_vectors_are_vectors(record: Random) -> None:
    _, args = calls(record)
    rng = np.random.default_rng(2)
    values = np.array([record.simulate(rng, *args) for _ in range(4)])
    count = len(args)
    assert record.log_density_columns is not None
    rows = [record.log_density(x, *args) for x in values]
    assert np.allclose(record.log_density_columns((True, *(False,) * count), values, *args), rows, rtol=1e-12)
    lifted = [np.repeat(np.asarray(x)[None], 4, axis=0) for x in args]
    assert np.allclose(record.log_density_columns((True,) * (1 + count), values, *lifted), rows, rtol=1e-12)
    if record.gradient is None:
        return
    flags, wanted = SINGLE[: 1 + count], record.gradient.exists
    single = [record.gradient.evaluate(flags, wanted, x, *args) for x in values]
    apart = record.gradient.evaluate((True,) * (1 + count), wanted, values, *lifted)
    shared = record.gradient.evaluate((True, *(False,) * count), wanted, values, *args)
    for at, exists in enumerate(wanted):
        if exists:
            parts = np.array([row[at] for row in single])
            assert np.allclose(apart[at], parts, rtol=1e-9, atol=1e-12)
            assert np.allclose(shared[at], parts if at == 0 else parts.sum(axis=0), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "record", [record for record in RECORDS if record.gradient is not None], ids=lambda record: record.name
)
def test_derivatives_of_a_vector_are_those_of_its_items(record: Random) -> None:
    items, args = calls(record)
    drawn = record.simulate(np.random.default_rng(3), *args)
    assert record.gradient is not None
    flags, exists = SINGLE[: 1 + len(args)], record.gradient.exists
    together = record.gradient.evaluate(flags, exists, drawn, *args)
    alone = [record.gradient.evaluate(flags, exists, float(x), *item) for x, item in zip(drawn, items, strict=True)]
    for at, there in enumerate(exists):
        if there:
            parts = np.array([each[at] for each in alone])
            expected = parts if at == 0 or np.ndim(args[at - 1]) else parts.sum()
            assert np.shape(together[at]) == np.shape(expected)
            assert np.allclose(together[at], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_items_are_drawn_as_numbers_are(record: Random) -> None:
    items, args = calls(record)
    rng = np.random.default_rng([len(record.name), 4])
    size = 400
    long = [np.tile(x, size) if np.ndim(x) else x for x in args]
    together = record.simulate(rng, *long).reshape(size, len(items))
    alone = np.array([[float(record.simulate(rng, *item)) for item in items] for _ in range(size)])
    for at in range(len(items)):
        assert stats.ks_2samp(together[:, at], alone[:, at], method="asymp").pvalue > 1e-6 / (len(RECORDS) * len(items))
    # independent: no two items of a vector are one draw
    if record.transform is not None:
        assert len(np.unique(together)) == together.size


def test_more_items_than_are_evaluated_together_are_all_weighed() -> None:
    record = PROCEDURES["normal"]
    assert isinstance(record, Random)
    rng = np.random.default_rng(5)
    mean, value = rng.normal(size=(2, 10_001))
    assert math.isclose(record.log_density(value, mean, 2.0), stats.norm.logpdf(value, mean, 2.0).sum(), rel_tol=1e-12)
    assert record.gradient is not None
    by_value, by_mean, by_sd = record.gradient.evaluate(SINGLE[:3], (True,) * 3, value, mean, 2.0)
    assert np.allclose(by_value, (mean - value) / 4.0)
    assert np.allclose(by_mean, -by_value)
    assert math.isclose(by_sd, (((value - mean) ** 2).sum() / 4.0 - 10_001) / 2.0, rel_tol=1e-9)
    empty = np.zeros(0)
    assert record.log_density(empty, empty, 1.0) == 0.0
    assert record.gradient.evaluate(SINGLE[:3], (False, False, True), empty, empty, 1.0) == (None, None, 0.0)


def test_supports_are_products() -> None:
    record = PROCEDURES["binomial"]
    assert isinstance(record, Random)
    assert record.support is not None
    found = record.support(np.array([1.0, 2.0, 0.0]), 0.4)
    assert found is not None
    assert [x.tolist() for x in found] == [[a, b, 0.0] for a in (0.0, 1.0) for b in (0.0, 1.0, 2.0)]
    assert math.isclose(math.fsum(math.exp(record.log_density(x, (1, 2, 0), 0.4)) for x in found), 1.0)
    assert len(record.support(np.full(500, 3.0), 0.4)) > 1e18


def test_what_is_wrong_is_named() -> None:
    record = PROCEDURES["normal"]
    with pytest.raises(ArgumentError, match="normal: sd must be a positive number, got -1 as item 1 of a vector"):
        check_arguments(record, (0.0, np.array([1.0, -1.0])))
    with pytest.raises(ArgumentError, match="mean has 2 items, sd has 3"):
        record.simulate(np.random.default_rng(1), np.zeros(2), np.ones(3))
    with pytest.raises(ArgumentError, match="lo must be less than hi, got 3 and 2, as item 1 of vectors"):
        PROCEDURES["uniform_continuous"].simulate(np.random.default_rng(1), np.array([1.0, 3.0]), 2.0)
