"""Normal draws with unknown mean and variance, both integrated out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import transforms
from venture_lite.procedures.domains import POSITIVE, REAL
from venture_lite.procedures.exchangeable import joint_gradients
from venture_lite.procedures.numeric import lgamma, log1p_square
from venture_lite.procedures.record import Argument, Maker
from venture_lite.values import show

NormalMoments = tuple[int, float, float]

SMALLEST = 2.3e-308
"""Where nu times var is smaller, it has no logarithm to be added to others."""

NEAR_ENOUGH = 1e100
"""A number whose square is no float's limit."""


class NormalInvChiSqState:
    """Statistics are the number, the mean and the centred scatter of the draws (Welford's updates); the predictive
    distribution is a Student t, kept until a statistic or an argument changes."""

    __slots__ = ("_mean", "_predictive", "_scatter", "arguments", "count")

    def __init__(self, mean: float, kappa: float, nu: float, var: float) -> None:
        self.count = 0
        self._mean = 0.0
        self._scatter = 0.0
        self.set_arguments((mean, kappa, nu, var))

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        _, _, nu, var = arguments
        if not nu * var < math.inf:
            raise ArgumentError(
                f"make_normal_inv_chi_sq: nu times var must be below 1.8e308, got {show(nu)} and {show(var)}"
            )
        self.arguments = arguments
        self._predictive: tuple[float, float, float, float] | None = None

    def _posterior(self) -> tuple[float, float, float, float]:
        """Mean, kappa, nu, and nu times var, after the draws (Murphy 2007, section 5)."""
        mean, kappa, nu, var = self.arguments
        n = self.count
        prior = max(nu * var, SMALLEST)
        if not n:
            return mean, kappa, nu, prior
        away = self._mean - mean
        kappa_n = kappa + n
        squares = prior + self._scatter + kappa * n / kappa_n * away * away
        return mean + n / kappa_n * away, kappa_n, nu + n, squares

    def simulate(self, rng: np.random.Generator) -> float:
        mean, kappa, nu, squares = self._posterior()
        scale = math.sqrt(squares / nu * (1.0 + kappa) / kappa)
        return float(min(max(mean + scale * rng.standard_t(nu), -transforms.LARGEST), transforms.LARGEST))

    def log_predictive(self, value: Any) -> float:
        if not (isinstance(value, (int, float)) and -math.inf < value < math.inf):
            return -math.inf
        if self._predictive is None:
            mean, kappa, nu, squares = self._posterior()
            # nu times the squared scale of the t
            spread = squares * (1.0 + kappa) / kappa
            half = 0.5 * (nu + 1.0)
            constant = lgamma(half) - lgamma(0.5 * nu) - 0.5 * math.log(math.pi * spread)
            self._predictive = (mean, math.sqrt(spread), half, constant)
        mean, scale, half, constant = self._predictive
        z = (value - mean) / scale
        # a sweep of labels asks each class for each datum
        log_square = math.log1p(z * z) if -NEAR_ENOUGH < z < NEAR_ENOUGH else log1p_square(z)
        return float(constant - half * log_square)

    def log_joint(self) -> float:
        if not self.count:
            return 0.0
        _, kappa, nu, var = self.arguments
        _, kappa_n, nu_n, squares_n = self._posterior()
        joint = lgamma(0.5 * nu_n) - lgamma(0.5 * nu) + 0.5 * math.log(kappa / kappa_n)
        joint += 0.5 * nu * math.log(max(nu * var, SMALLEST)) - 0.5 * nu_n * math.log(squares_n)
        return float(joint - 0.5 * self.count * math.log(math.pi))

    def support(self) -> None:
        return None

    def add(self, value: Any) -> NormalMoments:
        return self._move(float(value), 1)

    def remove(self, value: Any) -> NormalMoments:
        return self._move(float(value), -1)

    def _move(self, value: float, sign: int) -> NormalMoments:
        before = (self.count, self._mean, self._scatter)
        count = self.count + sign
        if not count:
            self.restore((0, 0.0, 0.0))
            return before
        away = value - self._mean
        mean = self._mean + away / (sign * count)
        self.restore((count, mean, max(self._scatter + sign * away * (value - mean), 0.0)))
        return before

    def restore(self, token: NormalMoments) -> None:
        self.count, self._mean, self._scatter = token
        self._predictive = None

    def recount(self, applications: Iterable[tuple[Any, ...]]) -> None:
        drawn = [float(value) for (value,) in applications]
        mean = math.fsum(drawn) / len(drawn) if drawn else 0.0
        self.restore((len(drawn), mean, math.fsum((value - mean) ** 2 for value in drawn)))

    def statistics(self) -> dict[str, float]:
        return {"count": self.count, "mean": self._mean, "scatter": self._scatter}


MAKE_NORMAL_INV_CHI_SQ = Maker(
    "make_normal_inv_chi_sq",
    (Argument("mean", REAL), Argument("kappa", POSITIVE), Argument("nu", POSITIVE), Argument("var", POSITIVE)),
    "Normal draws with unknown variance v, scaled-inverse-chi-squared(nu, var), and unknown mean, normal(mean, "
    "sqrt(v / kappa)), both integrated out.",
    NormalInvChiSqState, transform=transforms.REAL,
    source="Student t with nu_n degrees of freedom, location mean_n, scale^2 var_n (1 + kappa_n) / kappa_n "
    "(Murphy 2007, Conjugate Bayesian analysis of the Gaussian distribution, section 5)",
    gradient=joint_gradients.NORMAL_INV_CHI_SQ,
)  # fmt: skip

RECORDS = (MAKE_NORMAL_INV_CHI_SQ,)
