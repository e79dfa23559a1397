"""The exact answers, against likelihood weighting by the reference interpreter: two derivations of everything."""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from tests.posterior.case import Case
from tests.posterior.cases import CASES
from tests.posterior.reference import likelihood_weighting
from tests.posterior.test_posterior import exact
from tests.statistics import THRESHOLD, statistics

TOO_FEW = "too few effective runs to tell"


def disagreements(case: Case, runs: int, least: int = 60) -> list[str]:
    """Comparisons of the weighted means, with the error of a ratio estimator (delta method), that are too far off;
    fewer effective runs than `least` cannot tell."""
    program = case.forward or case.program
    draws, log_weights = likelihood_weighting(program, case.query, case.parameters, runs, np.random.default_rng(5))
    weights = np.exp(log_weights - log_weights.max())
    # A weighted mean is a mean of about this many draws, and its tails are those of fewer.
    if weights.sum() ** 2 / (weights**2).sum() < least:
        return [TOO_FEW]
    found = []
    for name, expected in exact(case).items():
        for statistic in statistics(expected):
            terms = weights * (statistic.of(draws[name]) - statistic.mean)
            error = np.sqrt((terms**2).sum()) + 1e-9 * weights.sum()
            if abs(terms.sum()) > THRESHOLD * error:
                got = statistic.mean + terms.sum() / weights.sum()
                found.append(f"{name}, {statistic.name}: exact {statistic.mean:.5g}, weighted {got:.5g}")
    return found


LONG = (
    "covariance_matrix",
    "crp_of_normals",
    "crp_with_random_concentration",
    "dirichlet_process",
    "finite_mixture",
    "gamma_poisson_maker",
    "hmm_persistence_uncollapsed",
    "lognormal_median",
    "normal_inv_chi_sq",
    "pitman_yor_process",
    "robust_line",
    "three_likelihoods",
    "truncated_around_a_mean",
    "truncated_far_out",
)
"""Cases of which a thousand runs take a second: left to the slow ones."""
EVERYDAY = [case for case in CASES if case.name not in LONG and crc32(case.name.encode()) % 3 == 0]
"""A wrong answer is missed by the engines, too."""


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in EVERYDAY])
def test_exact_answer_agrees_with_likelihood_weighting(case: Case) -> None:
    found = disagreements(case, 1_000, least=200)
    assert (disagreements(case, 2_000) if found == [TOO_FEW] else found) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_exact_answer_agrees_with_much_likelihood_weighting(case: Case) -> None:
    assert disagreements(case, 6_000) == []
