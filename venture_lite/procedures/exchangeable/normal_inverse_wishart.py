"""Multivariate normal draws with unknown mean and covariance, both integrated out."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import transforms
from venture_lite.procedures.domains import POSITIVE, POSITIVE_DEFINITE, VECTOR
from venture_lite.procedures.exchangeable import joint_gradients
from venture_lite.procedures.exchangeable.moments import Moments, algebra_of
from venture_lite.procedures.numeric import lgamma
from venture_lite.procedures.record import Argument, Maker
from venture_lite.values import freeze, show


class NormalInverseWishartState:
    """The predictive distribution is a multivariate t; its factor is kept until a statistic or an argument changes."""

    __slots__ = (
        "_algebra", "_base", "_k0", "_log_base", "_m0", "_moments", "_predictive", "_size", "_v0", "arguments", "count",
    )  # fmt: skip

    def __init__(self, m0: Any, k0: float, v0: float, S0: Any) -> None:
        self._size = len(m0)
        self._algebra = algebra_of(self._size)
        self.count = 0
        self._moments = self._algebra.empty()
        self.set_arguments((m0, k0, v0, S0))

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        m0, k0, v0, base = arguments
        size, algebra = self._size, self._algebra
        if len(m0) != size or len(base) != size:
            raise ArgumentError(
                f"make_collapsed_multivariate_normal: m0 has {len(m0)} entries, but S0 is {len(base)} by {len(base)}"
            )
        if not v0 > size - 1:
            raise ArgumentError(
                f"make_collapsed_multivariate_normal: v0 must be above {size - 1} in {size} dimensions, got {show(v0)}"
            )
        self.arguments = arguments
        self._m0, self._k0, self._v0 = algebra.point(m0), float(k0), float(v0)
        self._base = algebra.matrix(base)
        self._log_base = algebra.factor(self._base, algebra.empty(), (0.0,) * size, 0.0)[1]
        self._predictive: tuple[Any, Any, float, float, float, float] | None = None

    def _prepared(self) -> tuple[Any, Any, float, float, float, float]:
        """Center, factor of S_n, log determinant of S_n, constant, exponent and spread of the predictive density,
        which is constant - exponent log(1 + d / spread) at squared distance d (Murphy 2007, section 8)."""
        if self._predictive is not None:
            return self._predictive
        n, k0, size = self.count, self._k0, self._size
        kn = k0 + n
        center = self._algebra.between(self._m0, self._moments, n / kn) if n else self._m0
        mean = self._m0 if n else self._moments.mean
        factor, log_determinant = self._algebra.factor(self._base, self._moments, mean, k0 * n / kn)
        degrees = self._v0 + n - size + 1.0
        # degrees times the factor between S_n and the t's scale matrix
        spread = (kn + 1.0) / kn
        exponent = 0.5 * (degrees + size)
        constant = lgamma(exponent) - lgamma(0.5 * degrees)
        constant -= 0.5 * (size * math.log(math.pi * spread) + log_determinant)
        self._predictive = (center, factor, log_determinant, constant, exponent, spread)
        return self._predictive

    def simulate(self, rng: np.random.Generator) -> np.ndarray:
        center, factor, _, _, _, spread = self._prepared()
        size = self._size
        lower = np.zeros((size, size))
        lower[np.tril_indices(size)] = factor if not isinstance(factor, np.ndarray) else factor[np.tril_indices(size)]
        z = lower @ rng.standard_normal(size)
        drawn = np.asarray(center) + z * math.sqrt(spread / rng.chisquare(self._v0 + self.count - size + 1.0))
        return freeze(np.clip(drawn, -transforms.LARGEST, transforms.LARGEST))

    def log_predictive(self, value: Any) -> float:
        point = self._algebra.point(value)
        if point is None:
            return -math.inf
        center, factor, _, constant, exponent, spread = self._predictive or self._prepared()
        distance = self._algebra.squared_distance(factor, center, point)
        return constant - exponent * math.log1p(distance / spread) if distance == distance else -math.inf

    def log_joint(self) -> float:
        n, size = self.count, self._size
        if not n:
            return 0.0
        log_determinant = self._prepared()[2]
        v0, vn = self._v0, self._v0 + n
        joint = 0.5 * size * (math.log(self._k0 / (self._k0 + n)) - n * math.log(math.pi))
        joint += 0.5 * (v0 * self._log_base - vn * log_determinant)
        return joint + math.fsum(lgamma(0.5 * (vn - i)) - lgamma(0.5 * (v0 - i)) for i in range(size))

    def support(self) -> None:
        return None

    def add(self, value: Any) -> Moments:
        return self._move(value, 1)

    def remove(self, value: Any) -> Moments:
        return self._move(value, -1)

    def _move(self, value: Any, sign: int) -> Moments:
        before = self._moments
        self.restore(self._algebra.moved(before, self._algebra.point(value), sign))
        return before

    def restore(self, token: Moments) -> None:
        self._moments = token
        self.count = token.count
        self._predictive = None

    def recount(self, applications: Iterable[tuple[Any, ...]]) -> None:
        points = np.array([np.asarray(value, dtype=np.float64) for (value,) in applications]).reshape(-1, self._size)
        if not len(points):
            self.restore(self._algebra.empty())
            return
        away = points - points.mean(axis=0)
        mean = self._algebra.point(points.mean(axis=0))
        self.restore(Moments(len(points), mean, self._algebra.matrix(away.T @ away)))

    def statistics(self) -> dict[str, Any]:
        moments = self._moments
        return {"count": moments.count, "mean": np.array(moments.mean), "scatter": np.array(moments.scatter)}


MAKE_COLLAPSED_MULTIVARIATE_NORMAL = Maker(
    "make_collapsed_multivariate_normal",
    (
        Argument("m0", VECTOR), Argument("k0", POSITIVE), Argument("v0", POSITIVE), Argument("S0", POSITIVE_DEFINITE),
    ),
    "Multivariate normal draws with unknown covariance C, inv_wishart(v0, S0), and unknown mean, "
    "multivariate_normal(m0, C / k0), both integrated out.",
    NormalInverseWishartState, transform=transforms.REAL,
    source="multivariate t with v_n - D + 1 degrees of freedom, location m_n, scale S_n (k_n + 1) / (k_n "
    "(v_n - D + 1)) (Murphy 2007, Conjugate Bayesian analysis of the Gaussian distribution, section 8)",
    gradient=joint_gradients.NORMAL_INVERSE_WISHART,
)  # fmt: skip

RECORDS = (MAKE_COLLAPSED_MULTIVARIATE_NORMAL,)
