"""The programs that model data, each against its exact answer by conjugacy, quadrature or enumeration.

Each mean is within six Monte Carlo standard errors of the exact one, the error from the exact sd and the effective
sample size: a false alarm is rarer than 1e-6 for each number (two-sided normal: 2e-9).
"""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from venture_lite import Venture
from venture_lite.draws import diagnostics
from venture_lite.draws.draws import Draws

PROGRAMS = Path(__file__).parents[2] / "programs"
STANDARD_ERRORS = 6.0


def draws_of(name: str, chains: int = 2, **parameters: Any) -> Draws:
    result = Venture(seed=1, chains=chains).run_file(PROGRAMS / f"{name}.vnt", **parameters)[-1]
    assert isinstance(result, Draws)
    return result


def check(values: Any, mean: float, sd: float) -> None:
    """The mean of draws (chains, draws) is the exact one, and so, loosely, is their sd."""
    drawn = np.asarray(values, dtype=np.float64)
    effective = diagnostics.ess_bulk(drawn)
    assert effective > 100
    assert abs(drawn.mean() - mean) < STANDARD_ERRORS * sd / math.sqrt(effective)
    # an sd from n effective draws is off by about sd / sqrt(2 n), more where tails are heavy
    assert abs(drawn.std() / sd - 1) < 12 / math.sqrt(2 * effective)


def check_coin(values: Any, probability: float) -> None:
    check(values, probability, math.sqrt(probability * (1 - probability)))


def moments(grid: np.ndarray, log_weight: np.ndarray) -> tuple[float, float]:
    """Mean and sd under weights on a grid of one dimension."""
    weight = np.exp(log_weight - logsumexp(log_weight))
    mean = float(weight @ grid)
    return mean, math.sqrt(float(weight @ (grid - mean) ** 2))


def test_eight_schools() -> None:
    """Given tau all is normal: mu is integrated out, tau by quadrature over its log."""
    y = np.array([28, 8, -3, 7, -1, 1, 18, 12.0])
    error = np.array([15, 10, 16, 11, 9, 11, 10, 18.0])
    draws = draws_of("eight_schools")
    log_tau = np.linspace(-9, 9, 4001)
    tau = np.exp(log_tau)
    precision = 1 / (error**2 + tau[:, None] ** 2)
    total = 1 / 20**2 + precision.sum(axis=1)
    centre = (precision * y).sum(axis=1) / total
    log_evidence = 0.5 * (np.log(precision).sum(axis=1) - np.log(total) - (precision * y**2).sum(axis=1))
    log_weight = log_evidence + 0.5 * total * centre**2 + stats.halfcauchy.logpdf(tau, scale=10) + log_tau
    check(draws["tau"], *moments(tau, log_weight))

    weight = np.exp(log_weight - logsumexp(log_weight))
    mean = weight @ centre
    check(draws["mu"], mean, math.sqrt(weight @ (1 / total + (centre - mean) ** 2)))
    for school in (0, 2):
        # given tau and mu the effect is the precision-weighted mean of mu and y
        pull = error[school] ** 2 / (error[school] ** 2 + tau**2)
        here = pull * centre + (1 - pull) * y[school]
        variance = (1 - pull) * error[school] ** 2 + pull**2 / total
        mean = weight @ here
        check(draws[f"(effect {school + 1})"], mean, math.sqrt(weight @ (variance + (here - mean) ** 2)))


def test_linear_regression() -> None:
    """Given the noise the line is normal; the noise by quadrature."""
    x = np.column_stack([np.ones(10), np.arange(1, 11)])
    y = np.array([2.1, 2.9, 5.2, 4.8, 7.3, 7.4, 9.9, 9.6, 11.2, 13.1])
    prior = np.diag([10.0**2, 3.0**2])
    noise = np.linspace(0.2, 6, 600)
    log_weight = stats.gamma.logpdf(noise, 2, scale=0.5)
    lines = []
    for at, sd in enumerate(noise):
        log_weight[at] += stats.multivariate_normal.logpdf(y, np.zeros(10), x @ prior @ x.T + sd**2 * np.eye(10))
        covariance = np.linalg.inv(np.linalg.inv(prior) + x.T @ x / sd**2)
        lines.append((covariance @ x.T @ y / sd**2, covariance))
    weight = np.exp(log_weight - logsumexp(log_weight))
    draws = draws_of("linear_regression")
    check(draws["noise"], *moments(noise, log_weight))

    def check_seen_along(name: str, direction: np.ndarray, noisy: bool) -> None:
        means = np.array([direction @ line for line, _ in lines])
        variances = np.array([direction @ covariance @ direction for _, covariance in lines]) + noisy * noise**2
        mean = float(weight @ means)
        check(draws[name], mean, math.sqrt(weight @ (variances + (means - mean) ** 2)))

    check_seen_along("intercept", np.array([1.0, 0.0]), noisy=False)
    check_seen_along("slope", np.array([0.0, 1.0]), noisy=False)
    check_seen_along("next", np.array([1.0, 12.0]), noisy=True)


@pytest.mark.slow
def test_change_point() -> None:
    """Given the change both rates are gamma and integrate out; the change by enumeration."""
    with (PROGRAMS / "coal.csv").open() as file:
        count = np.array([int(row["disasters"]) for row in csv.DictReader(file)])
    change = np.arange(2, 111)

    def posterior(counts: np.ndarray) -> tuple[float, float]:
        return 2.0 + counts.sum(), 1.0 + len(counts)

    def log_evidence(counts: np.ndarray) -> float:
        shape, rate = posterior(counts)
        return float(gammaln(shape) - shape * math.log(rate))

    halves = [(count[: at - 1], count[at - 1 :]) for at in change]
    log_weight = np.array([log_evidence(before) + log_evidence(after) for before, after in halves])
    weight = np.exp(log_weight - logsumexp(log_weight))
    draws = draws_of("change_point", count=count, N=111)
    check(draws["change"], *moments(change.astype(float), log_weight))
    for name, side in (("early", 0), ("late", 1)):
        shape, rate = np.array([posterior(half[side]) for half in halves]).T
        mean = weight @ (shape / rate)
        check(draws[name], mean, math.sqrt(weight @ (shape / rate**2 + (shape / rate - mean) ** 2)))


def rising(start: float, counts: np.ndarray) -> float:
    """log of the probability of counts under a symmetric Dirichlet with this weight a component."""
    total = start * len(counts)
    joint = (gammaln(start + counts) - gammaln(start)).sum()
    return float(joint - gammaln(total + counts.sum()) + gammaln(total))


@pytest.mark.slow
def test_topics() -> None:
    """All 2^11 assignments."""
    texts = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
    words = np.array([0, 1, 2, 0, 3, 4, 5, 4, 3, 5, 2])
    assignments = np.array(list(itertools.product((0, 1), repeat=len(words))))
    log_weight = np.array(
        [
            sum(rising(0.5, np.bincount(topics[texts == text], minlength=2)) for text in range(3))
            + sum(rising(0.3, np.bincount(words[topics == topic], minlength=6)) for topic in range(2))
            for topics in assignments
        ]
    )
    weight = np.exp(log_weight - logsumexp(log_weight))
    draws = draws_of("topics")
    for name, one, other in (
        ("same_text", 0, 1),
        ("across_texts", 0, 4),
        ("mixed_text", 8, 10),
        ("sampler", 2, 10),
    ):
        check_coin(draws[name], float(weight @ (assignments[:, one] == assignments[:, other])))


@pytest.mark.slow
def test_stochastic_volatility() -> None:
    """Phi, sigma and every h on grids: forward and backward sums over h for each pair of the others."""
    returns = np.array([0.3, -0.5, 0.2, 1.1, -2.4, 1.9, -3.1, 2.2, -0.9, 0.4, 0.1, -0.3])
    phi = (np.arange(25) + 0.5) / 25
    sigma = np.exp(np.linspace(math.log(0.03), math.log(3.5), 32))
    h = np.linspace(-7, 7, 161)
    likelihood = stats.norm.pdf(returns[:, None], 0, np.exp(h / 2))
    weight = np.zeros((len(phi), len(sigma)))
    state = {1: np.zeros((*weight.shape, 2)), 7: np.zeros((*weight.shape, 2)), 12: np.zeros((*weight.shape, 2))}
    for (i, persistence), (j, scale) in itertools.product(enumerate(phi), enumerate(sigma)):
        moved = np.exp(-0.5 * ((h - persistence * h[:, None]) / scale) ** 2)
        moved /= np.maximum(moved.sum(axis=1, keepdims=True), 1e-300)
        forward = [stats.norm.pdf(h) * (h[1] - h[0]) * likelihood[0]]
        for seen in likelihood[1:]:
            forward.append((forward[-1] @ moved) * seen)
        backward = [np.ones_like(h)]
        for seen in likelihood[:0:-1]:
            backward.append(moved @ (seen * backward[-1]))
        total = forward[-1].sum()
        # the grid of sigma is even in its log
        prior = stats.beta.pdf(persistence, 8, 2) * stats.gamma.pdf(scale, 4, scale=1 / 8) * scale
        weight[i, j] = prior * total
        for t, (entry) in state.items():
            smoothed = forward[t - 1] * backward[len(returns) - t] / total
            entry[i, j] = smoothed @ h, smoothed @ h**2
    weight /= weight.sum()
    draws = draws_of("stochastic_volatility")
    check(draws["phi"], *moments(phi, np.log(weight.sum(axis=1))))
    check(draws["sigma"], *moments(sigma, np.log(weight.sum(axis=0))))
    for t, entry in state.items():
        mean, square = (float((weight * entry[..., k]).sum()) for k in (0, 1))
        check(draws[f"(h {t})"], mean, math.sqrt(square - mean**2))


@pytest.mark.slow
def test_weather_drawn_and_summed_over() -> None:
    """All 3^8 sequences of states; the two programs agree with them and so with each other."""
    changes = np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.2, 0.4, 0.4]])
    habits = np.array([[0.4, 0.1, 0.5], [0.6, 0.3, 0.1], [0.2, 0.8, 0.0]])
    seen = {0: 2, 1: 0, 3: 1, 4: 1, 6: 0}
    sequences = np.array(list(itertools.product(range(3), repeat=8)))
    weight = np.array([0.5, 0.3, 0.2])[sequences[:, 0]]
    for day in range(1, 8):
        weight = weight * changes[sequences[:, day - 1], sequences[:, day]]
    for day, item in seen.items():
        weight = weight * habits[sequences[:, day], item]
    weight /= weight.sum()
    for name in ("weather", "weather_collapsed"):
        draws = draws_of(name)
        for day in (2, 5, 7):
            for item in range(3):
                exact = float(weight @ habits[sequences[:, day], item])
                check_coin(draws[f"(carried {day})"] == item, exact)


def test_a_wrong_answer_is_noticed() -> None:
    """The check fails where the exact mean is another school's."""
    draws = draws_of("eight_schools")

    def fails(assertion: Callable[[], None]) -> bool:
        try:
            assertion()
        except AssertionError:
            return True
        return False

    assert fails(lambda: check(draws["(effect 1)"], 6.5, 6.6))


def log_evidence(y: np.ndarray, covariance: np.ndarray) -> float:
    return float(stats.multivariate_normal.logpdf(y, np.zeros(len(y)), covariance))


def seen(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Points and values of the observations of `f` in a program."""
    found = re.findall(r"\[observe \(f +([\d.]+)\) +(-?[\d.]+)\]", (PROGRAMS / f"{name}.vnt").read_text())
    return np.array(found, dtype=np.float64).T


@pytest.mark.slow
def test_gp_regression() -> None:
    """The two scales on a grid; given them the prediction is normal. Cases of processes run every day."""
    x, y = seen("gp_regression")
    assert len(x) == 10
    points = np.append(x, [3.4, 9.0])
    amplitude, length = np.exp(np.linspace(-2.5, 2.6, 60)), np.exp(np.linspace(-2.5, 2.2, 60))
    log_weight, mean, variance = np.zeros((60, 60)), np.zeros((60, 60, 2)), np.zeros((60, 60, 2))
    for i, j in itertools.product(range(60), repeat=2):
        apart = points[:, None] - points
        joint = amplitude[i] ** 2 * np.exp(-0.5 * (apart / length[j]) ** 2) + 0.3**2 * np.eye(12)
        gain = np.linalg.solve(joint[:10, :10], joint[:10, 10:])
        prior = stats.gamma.logpdf(amplitude[i], 2) + stats.gamma.logpdf(length[j], 3, scale=0.5)
        # both grids are even in the log
        log_weight[i, j] = prior + math.log(amplitude[i] * length[j]) + log_evidence(y, joint[:10, :10])
        mean[i, j] = gain.T @ y
        variance[i, j] = np.diag(joint[10:, 10:] - gain.T @ joint[:10, 10:])
    draws = draws_of("gp_regression")
    weight = np.exp(log_weight - logsumexp(log_weight))
    check(draws["amplitude"], *moments(amplitude, logsumexp(log_weight, axis=1)))
    check(draws["length"], *moments(length, logsumexp(log_weight, axis=0)))
    for k, name in enumerate(("(f 3.4)", "(f 9)")):
        centre = float((weight * mean[..., k]).sum())
        spread = float((weight * (variance[..., k] + (mean[..., k] - centre) ** 2)).sum())
        check(draws[name], centre, math.sqrt(spread))


Structure = tuple[float, frozenset[int], bool, np.ndarray]
"""Prior probability, kinds of its leaves, whether it is a sum, covariance."""


def structures(x: np.ndarray, depth: int) -> list[Structure]:
    """Every structure that `grow` makes."""
    apart = x[:, None] - x
    leaves = (
        np.outer(x - 3, x - 3),
        np.exp(-2 * np.sin(np.pi * apart / 1.5) ** 2),
        np.exp(-0.5 * apart**2),
    )
    share = 0.5 if depth else 1.0
    found: list[Structure] = [(share / 3, frozenset([kind]), False, leaf) for kind, leaf in enumerate(leaves)]
    for one, other in itertools.product(structures(x, depth - 1), repeat=2) if depth else ():
        probability = 0.25 * one[0] * other[0]
        found.append((probability, one[1] | other[1], True, one[3] + other[3]))
        found.append((probability, one[1] | other[1], False, one[3] * other[3]))
    return found


@pytest.mark.slow
def test_gp_structure() -> None:
    """All 885 structures."""
    x, y = seen("gp_structure")
    assert len(x) == 8
    every = structures(x, 2)
    assert len(every) == 885
    assert math.isclose(sum(structure[0] for structure in every), 1)
    log_weight = np.array([math.log(s[0]) + log_evidence(y, s[3] + 0.25 * np.eye(len(x))) for s in every])
    weight = np.exp(log_weight - logsumexp(log_weight))
    draws = draws_of("gp_structure")
    for kind, name in enumerate(("line", "wave", "curve")):
        check_coin(draws[name], float(weight @ [kind in s[1] for s in every]))
    check_coin(draws["sum"], float(weight @ [s[2] for s in every]))
