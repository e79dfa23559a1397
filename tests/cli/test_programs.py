"""The programs in `programs/`, each against its exact answer.

Every bound is stated in standard errors: chains are long enough for 6 of them, so a false alarm is rarer than 1e-6
(two-sided normal: 2e-9 for each number), and the effective sample size stands for the number of draws.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.draws import diagnostics
from venture_lite.draws.draws import Draws

PROGRAMS = Path(__file__).parents[2] / "programs"
STANDARD_ERRORS = 6.0


def draws_of(name: str, seed: int = 1, fewer: tuple[int, int] | None = None, **parameters: Any) -> Draws:
    """What the last inference of a program draws; `fewer` repetitions (in place of the first number the second)."""
    text = (PROGRAMS / f"{name}.vnt").read_text("utf-8")
    if fewer is not None:
        whole, fewer_of_them = (f"(repeat {count} (do" for count in fewer)
        assert text.count(whole) == 1
        text = text.replace(whole, fewer_of_them)
    result = Venture(seed=seed, chains=2).execute(text, **parameters)[-1]
    assert isinstance(result, Draws)
    return result


def check_mean(values: np.ndarray, expected: float, sd: float | None = None) -> None:
    """The mean of (chains, draws) is the expected one; `sd` is the exact posterior sd, a coin's by default."""
    sd = math.sqrt(expected * (1 - expected)) if sd is None else sd
    effective = diagnostics.ess_bulk(values.astype(np.float64))
    assert effective > 100
    assert abs(values.mean() - expected) < STANDARD_ERRORS * sd / math.sqrt(effective)


def normal_density(value: float, mean: float, sd: float) -> float:
    return math.exp(-0.5 * ((value - mean) / sd) ** 2) / (sd * math.sqrt(2 * math.pi))


def test_figure_1() -> None:
    """b true has likelihood normal(10; 1, 0.1) = exp(-4050); given b false, exp(-mu) normal(10; mu, 0.1) is normal
    with mean 10 - 0.1^2 and sd 0.1, its mass below 0 nothing."""
    draws = draws_of("fig1")
    assert not draws["b"].any()
    check_mean(draws["mu"], 9.99, 0.1)
    assert draws["mu"].std() == pytest.approx(0.1, rel=0.25)


def test_geometric_recursion() -> None:
    weights = np.array([0.3 * 0.7**n * normal_density(3, n, 1) for n in range(60)])
    weights /= weights.sum()
    mean = float(weights @ np.arange(60))
    draws = draws_of("geometric", fewer=(1000, 300))
    check_mean(draws["n"], mean, math.sqrt(float(weights @ (np.arange(60) - mean) ** 2)))
    for n in range(1, 5):
        check_mean(draws["n"] == n, float(weights[n]))


def test_hidden_markov_model() -> None:
    """All 2^6 paths of five states with a signal and one more without."""
    signals = (0.9, 0.3, -0.2, -1.4, -0.8)
    paths = list(itertools.product((False, True), repeat=6))
    weights = np.empty(len(paths))
    for row, path in enumerate(paths):
        weight = 0.5
        for before, after in itertools.pairwise(path):
            weight *= 0.8 if before == after else 0.2
        for state, signal in zip(path, signals, strict=False):
            weight *= normal_density(signal, 1 if state else -1, 1)
        weights[row] = weight
    exact = weights @ np.array(paths) / weights.sum()
    draws = draws_of("hmm")
    for step in range(5):
        check_mean(draws[f"(state {step + 1})"], float(exact[step]))
    check_mean(draws["next"], float(exact[5]))


def test_dirichlet_process_mixture() -> None:
    """All 52 partitions of five data, each cluster's centre integrated out."""
    values = np.array([-2.6, -2.1, -0.2, 1.9, 2.4])
    partitions = list(_partitions(len(values)))
    weights = np.array([_partition_weight(labels, values) for labels in partitions])
    weights /= weights.sum()

    def together(left: int, right: int) -> float:
        return float(sum(w for w, labels in zip(weights, partitions, strict=True) if labels[left] == labels[right]))

    draws = draws_of("dpm", fewer=(1500, 400))
    check_mean(draws["same_12"], together(0, 1))
    check_mean(draws["same_23"], together(1, 2))
    check_mean(draws["same_34"], together(2, 3))
    check_mean(draws["same_15"], together(0, 4))
    mean, square = 0.0, 0.0
    for weight, labels in zip(weights, partitions, strict=True):
        members = values[np.array(labels) == labels[0]]
        precision = 1 / 9 + len(members)
        centre = members.sum() / precision
        mean += weight * centre
        square += weight * (centre**2 + 1 / precision)
    check_mean(draws["centre_1"], mean, math.sqrt(square - mean**2))


def _partitions(count: int) -> list[tuple[int, ...]]:
    """Restricted growth strings: each datum joins an earlier cluster or opens the next."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(count):
        found = [(*labels, label) for labels in found for label in range(max(labels, default=-1) + 2)]
    return found


def _partition_weight(labels: tuple[int, ...], values: np.ndarray) -> float:
    """CRP prior with concentration 1, times each cluster's marginal density: centre ~ normal(0, 3), noise sd 1."""
    weight = 1.0
    for label in range(max(labels) + 1):
        members = values[np.array(labels) == label]
        covariance = np.eye(len(members)) + 9.0
        density = math.exp(-0.5 * members @ np.linalg.solve(covariance, members))
        weight *= math.factorial(len(members) - 1) * density / math.sqrt(np.linalg.det(2 * math.pi * covariance))
    return weight


def test_logistic_regression() -> None:
    """Two weights; the posterior mean by quadrature on a grid."""
    rng = np.random.default_rng(3)
    rows = np.column_stack((rng.normal(size=60), np.ones(60)))
    classes = (rng.random(60) < 1 / (1 + np.exp(-rows @ [1.0, -0.5]))).astype(np.int64)
    axis = np.linspace(-3, 3, 301)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    log_weight = -0.5 * (grid**2).sum(axis=1) / 0.5
    log_weight -= np.logaddexp(0.0, np.where(classes, -1.0, 1.0) * (grid @ rows.T)).sum(axis=1)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ grid
    spread = np.sqrt(weight @ (grid - mean) ** 2)
    draws = draws_of(
        "bayes_lr", X=rows, Y=classes, N=60, mu=np.zeros(2), Sig=0.5 * np.eye(2), sig=0.5, burn=500, T=5, draws=1000
    )
    for place in range(2):
        check_mean(draws["w"][:, :, place], float(mean[place]), float(spread[place]))
