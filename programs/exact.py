"""Exact answers, beside which the pictures set the draws: small models by forward and backward sums or enumeration."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


def smoothed(start: Array, changes: Array, likelihood: Array) -> Array:
    """The probability of each state at each time given every observation, by forward and backward sums.

    Args:
        start: (states,), the first state's probabilities.
        changes: (states, states), a row for each state left.
        likelihood: (times, states), of what was seen at each time; ones where nothing was.
    """
    forward, backward = [start * likelihood[0]], [np.ones(len(start))]
    for seen in likelihood[1:]:
        forward.append((forward[-1] @ changes) * seen)
    for seen in likelihood[:0:-1]:
        backward.append(changes @ (seen * backward[-1]))
    joint: Array = np.array(forward) * np.array(backward[::-1])
    joint /= joint.sum(axis=1, keepdims=True)
    return joint


def change_probability(count: Array) -> Array:
    """The probability of each first place of the second of two gamma(2, 1) rates of Poisson counts.

    The places are those of `change_point.vnt`: from the second count to the last but one.
    """

    def log_evidence(part: Array) -> float:
        total = float(part.sum())
        return math.lgamma(2 + total) - (2 + total) * math.log(1 + len(part))

    return normalized([log_evidence(count[:place]) + log_evidence(count[place:]) for place in range(1, len(count) - 1)])


@dataclass(frozen=True, slots=True)
class Structure:
    """A covariance that `gp_structure.vnt` can grow."""

    # its prior probability
    probability: float
    # the leaves in it: 0 a line, 1 a wave, 2 a smooth curve
    kinds: frozenset[int]
    is_sum: bool
    # over the observed points: (points, points)
    covariance: Array


def structures(x: Array, depth: int = 2) -> list[Structure]:
    """Every structure of at most this depth."""
    apart = x[:, None] - x
    leaves = np.outer(x - 3, x - 3), np.exp(-2 * np.sin(np.pi * apart / 1.5) ** 2), np.exp(-0.5 * apart**2)
    share = 0.5 if depth else 1.0
    found = [Structure(share / 3, frozenset([kind]), False, leaf) for kind, leaf in enumerate(leaves)]
    for one, other in itertools.product(structures(x, depth - 1), repeat=2) if depth else ():
        probability, kinds = 0.25 * one.probability * other.probability, one.kinds | other.kinds
        found.append(Structure(probability, kinds, True, one.covariance + other.covariance))
        found.append(Structure(probability, kinds, False, one.covariance * other.covariance))
    return found


def structure_probability(every: list[Structure], y: Array, noise: float) -> Array:
    """The posterior probability of each structure, given values seen with this sd of noise."""
    joint = np.array([structure.covariance for structure in every]) + noise**2 * np.eye(len(y))
    misfit = (y * np.linalg.solve(joint, y[:, None])[..., 0]).sum(axis=1)
    log_prior = np.log([structure.probability for structure in every])
    return normalized(log_prior - 0.5 * (misfit + np.linalg.slogdet(joint).logabsdet))


def normalized(log_weight: Array | list[float]) -> Array:
    weight: Array = np.exp(np.asarray(log_weight) - np.max(log_weight))
    weight /= weight.sum()
    return weight


def smooth_function(
    amplitude: float, length: float, x: Array, y: Array, points: Array, rng: np.random.Generator
) -> Array:
    """A draw, at points, of the noiseless function of `gp_regression.vnt`, given data and the two scales."""
    every = np.concatenate((x, points))
    prior = amplitude**2 * np.exp(-0.5 * ((every[:, None] - every) / length) ** 2)
    gain = np.linalg.solve(prior[: len(x), : len(x)] + 0.3**2 * np.eye(len(x)), prior[: len(x), len(x) :])
    covariance = prior[len(x) :, len(x) :] - gain.T @ prior[: len(x), len(x) :]
    return rng.multivariate_normal(gain.T @ y, covariance, method="eigh")


def normal_density(value: Any, mean: Any, sd: float) -> Array:
    density: Array = np.exp(-0.5 * ((value - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
    return density
