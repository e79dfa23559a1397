"""Columns of draws have the distribution of single draws.

Samples are compared by Kolmogorov-Smirnov for each distribution and each argument, 76 times at 1e-8: a false alarm has
probability below 1e-6. A scale that is wrong by a fifth is found.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Random
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.procedures.simulation import DRAWS

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
}


def lifted(pair: tuple[tuple[Any, ...], tuple[Any, ...]]) -> list[Any]:
    """Arguments that alternate between the two, as columns."""
    return [
        None if first is None else np.array([first, second] * (COUNT // 2)) for first, second in zip(*pair, strict=True)
    ]


@pytest.mark.parametrize("record", DRAWS, ids=lambda record: record.name)
@pytest.mark.thorough
def test_a_column_has_the_distribution_of_single_draws(record: Random) -> None:
    from scipy import stats

    rng = np.random.default_rng(7)
    pair = ARGUMENTS[record.name]
    together = DRAWS[record](rng, COUNT, *lifted(pair))
    assert together.shape == (COUNT,)
    for at, arguments in enumerate(pair):
        single = np.array([record.simulate(rng, *arguments) for _ in range(COUNT)], dtype=float)
        alike = DRAWS[record](rng, COUNT, *arguments).astype(float)
        assert stats.ks_2samp(single, alike).pvalue > 1e-8
        assert stats.ks_2samp(single, together[at::2].astype(float)).pvalue > 1e-8


def test_what_a_column_cannot_do_goes_row_by_row() -> None:
    rng = np.random.default_rng(0)
    for name, arguments in {"uniform_continuous": (1.0, 1.0), "poisson": (1e16,), "binomial": (2.0**63, 0.5)}.items():
        record = PROCEDURES[name]
        assert isinstance(record, Random)
        with pytest.raises(RowByRow):
            DRAWS[record](rng, 4, *arguments)
