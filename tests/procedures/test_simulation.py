"""Columns of draws have the distribution of single draws, and a recorded draw is the draw.

Samples are compared by Kolmogorov-Smirnov for each distribution and each argument, 120 times at 5e-9: a false alarm has
probability below 1e-6. A scale that is wrong by a fifth is found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.numeric import rebound
from venture_lite.procedures.record import Random
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.procedures.simulation import RecordingGenerator
from venture_lite.procedures.straight_line import SCALAR_NAMES, Recording, compiled, recordable, recorded

COUNT = 4000
ARGUMENTS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    "normal": ((0.0, 1.0), (2.0, 0.5)),
    "student_t": ((4.0, 0.0, 1.0), (2.0, 1.0, 0.3)),
    "laplace": ((0.0, 1.0), (1.0, 2.0)),
    "cauchy": ((0.0, 1.0), (1.0, 2.0)),
    "logistic_dist": ((0.0, 1.0), (1.0, 2.0)),
    "gamma": ((2.0, 1.0), (0.5, 3.0)),
    "inv_gamma": ((2.0, 1.0), (3.0, 2.0)),
    "expon": ((1.0,), (3.0,)),
    "half_normal": ((1.0,), (3.0,)),
    "lognormal": ((0.0, 1.0), (1.0, 0.3)),
    "uniform_continuous": ((0.0, 1.0), (-2.0, 5.0)),
    "beta": ((1.0, 2.0), (0.5, 0.5)),
    "categorical": (((0.2, 0.3, 0.5), None), ((0.6, 0.0, 0.4), None)),
    "uniform_discrete": ((0, 4), (-2, 9)),
    "binomial": ((6, 0.3), (10, 0.8)),
    "poisson": ((1.5,), (7.0,)),
    "bernoulli": ((0.3,), (0.8,)),
    "flip": ((0.3,), (0.8,)),
    "bernoulli_logit": ((-1.0,), (2.0,)),
    "geometric": ((0.3,), (0.8,)),
    "neg_binomial": ((2.5, 0.4), (1.0, 0.7)),
    "neg_binomial_mean": ((2.5, 0.4), (1.0, 7.0)),
    "von_mises": ((0.5, 2.0), (-1.0, 0.5)),
    "chi_sq": ((3.0,), (5.5,)),
    "inv_chi_sq": ((3.0,), (5.5,)),
    "half_cauchy": ((1.0,), (3.0,)),
    "half_student_t": ((3.0, 1.0), (7.0, 3.0)),
    "truncated_normal": ((0.0, 1.0, -1.0, 2.0), (5.0, 2.0, -9.0, 3.0)),
    "beta_binomial": ((6, 2.0, 1.0), (10, 0.5, 0.7)),
    "weibull": ((1.5, 1.0), (0.8, 2.0)),
    "pareto": ((1.5, 1.0), (3.0, 2.0)),
}
RANDOM = [record for record in PROCEDURES.values() if isinstance(record, Random) and record.start is None]
TOGETHER = [record for record in RANDOM if record.simulate_columns is not None]
# Lists, vectors and matrices are no numbers: their densities are not recorded, but written for arrays. No further
# distribution may join them.
WITHOUT_DEFINITION = {
    "categorical",
    "softmax_categorical",
    "multivariate_normal",
    "dirichlet",
    "symmetric_dirichlet",
    "multinomial",
    "wishart",
    "inv_wishart",
    "weighted_categorical",
    "uniform_draw",
    "draw",
    "ordered_logistic",
    "multivariate_normal_cholesky",
    "lkj_cholesky",
}
DEFINED = [record for record in RANDOM if record.name not in WITHOUT_DEFINITION]


def together(record: Random, rng: np.random.Generator, count: int, *arguments: Any) -> np.ndarray:
    assert record.simulate_columns is not None
    return record.simulate_columns(rng, count, *arguments)


def lifted(pair: tuple[tuple[Any, ...], tuple[Any, ...]]) -> list[Any]:
    """Arguments that alternate between the two, as columns."""
    return [
        None if first is None else np.array([first, second] * (COUNT // 2)) for first, second in zip(*pair, strict=True)
    ]


@pytest.mark.parametrize("record", TOGETHER, ids=lambda record: record.name)
@pytest.mark.thorough
def test_a_column_has_the_distribution_of_single_draws(record: Random) -> None:
    from scipy import stats

    rng = np.random.default_rng(7)
    pair = ARGUMENTS[record.name]
    mixed = together(record, rng, COUNT, *lifted(pair))
    assert mixed.shape == (COUNT,)
    for at, arguments in enumerate(pair):
        single = np.array([record.simulate(rng, *arguments) for _ in range(COUNT)], dtype=float)
        alike = together(record, rng, COUNT, *arguments).astype(float)
        assert stats.ks_2samp(single, alike).pvalue > 5e-9
        assert stats.ks_2samp(single, mixed[at::2].astype(float)).pvalue > 5e-9


def test_what_a_column_cannot_do_goes_row_by_row() -> None:
    rng = np.random.default_rng(0)
    for name, arguments in {"uniform_continuous": (1.0, 1.0), "binomial": (2.0**63, 0.5)}.items():
        record = PROCEDURES[name]
        assert isinstance(record, Random)
        with pytest.raises(RowByRow):
            together(record, rng, 4, *arguments)


def test_every_distribution_of_numbers_has_a_definition() -> None:
    assert {record.name for record in RANDOM if record.definition is None} == WITHOUT_DEFINITION
    assert {record.name for record in TOGETHER} == set(ARGUMENTS)


@pytest.mark.parametrize("record", DEFINED, ids=lambda record: record.name)
def test_a_recorded_draw_is_the_draw(record: Random) -> None:
    """To the last bit, with the generator left in the same state."""
    for arguments in ARGUMENTS[record.name]:
        recording = Recording()
        inputs = [recording.input(position) for position in range(len(arguments))]
        node = recordable(record.sampler)(RecordingGenerator(recording), *inputs)
        line = compiled([node], len(arguments), columns=False, draws=True)
        one, other = np.random.default_rng(3), np.random.default_rng(3)
        for _ in range(50):
            assert line(one, *arguments)[0] == record.simulate(other, *arguments)
        assert one.bit_generator.state == other.bit_generator.state


@pytest.mark.parametrize("record", DEFINED, ids=lambda record: record.name)
def test_a_recorded_density_is_the_density(record: Random) -> None:
    rng = np.random.default_rng(4)
    assert record.definition is not None
    for arguments in ARGUMENTS[record.name]:
        recording = Recording()
        inputs = [recording.input(position) for position in range(len(arguments) + 1)]
        node = rebound(record.definition, {name: recorded(name) for name in SCALAR_NAMES})(*inputs)
        line = compiled([node], len(inputs), columns=False)
        for _ in range(50):
            value = record.simulate(rng, *arguments)
            assert line(value, *arguments)[0] == record.log_density(value, *arguments)


def test_a_count_of_a_rate_beyond_the_generator_has_its_mean_and_spread() -> None:
    """A mean of 4,000 counts is within 6 standard errors of the rate, their variance within a fifth of it."""
    record = PROCEDURES["poisson"]
    assert isinstance(record, Random)
    rate = 1e17
    for draws in (
        np.array([record.simulate(np.random.default_rng(seed), rate) for seed in range(COUNT)], dtype=float),
        together(record, np.random.default_rng(0), COUNT, rate).astype(float),
    ):
        away = (draws - rate) / rate**0.5
        assert abs(away.mean()) < 6 / COUNT**0.5
        assert 0.8 < away.var() < 1.2
