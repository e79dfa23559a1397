"""Tails of the gamma and the beta distribution where their probabilities have no digits left, below 1e-307.

Far out in a tail the density falls like an exponential: what lies beyond x is the density at x times the integral over
v from 0 on of exp(-slope v + rest(v)), by quadrature (Gauss and Laguerre). Each function here gives the logarithm of
that integral, of arrays, for the log density at x to be added to; NaN where there is no fall, as on the other side of
the mode.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def above_of_gamma(a: Any, x: Any) -> Any:
    """Of a gamma of shape a and rate 1, above x."""
    m, each = a - 1.0, x[..., None]
    return _log_fall(1.0 - m / x, lambda t: m[..., None] * _log1p_less(t / each))


def below_of_gamma(a: Any, x: Any) -> Any:
    """The same below x."""
    # at x e^-v
    return np.log(x) + _log_fall(a - x, lambda v: x[..., None] * _less_fall(v))


def below_of_beta(a: Any, b: Any, x: Any) -> Any:
    """Of a beta of a and b, below x."""
    return np.log(x) + _beta_fall(a, b, x / (1.0 - x))


def above_of_beta(a: Any, b: Any, x: Any) -> Any:
    """The same above x."""
    return np.log1p(-x) + _beta_fall(b, a, (1.0 - x) / x)


def _beta_fall(a: Any, b: Any, odds: Any) -> Any:
    m, each = (b - 1.0)[..., None], odds[..., None]

    def rest(v: Any) -> Any:
        # at x e^-v
        return m * (_log1p_less(each * -np.expm1(-v)) + each * _less_fall(v))

    return _log_fall(a - (b - 1.0) * odds, rest)


@functools.cache
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the integral of e^-u f(u) from 0 on (Gauss and Laguerre)."""
    nodes, weights = np.polynomial.laguerre.laggauss(40)
    return nodes, weights


def _log_fall(slope: Any, rest: Callable[[Any], Any]) -> Any:
    """log of the integral of exp(-slope v + rest(v)) from 0 on, `rest` flat at 0: far out in a tail, 36 standard
    deviations and more, it is below u^2 / 2600 of u = slope v, of which the quadrature loses no digit. NaN where there
    is no fall."""
    nodes, weights = _nodes()
    falling = np.where(slope > 0.0, slope, np.nan)
    return np.log(np.exp(rest(nodes / falling[..., None])) @ weights) - np.log(falling)


def _log1p_less(y: Any) -> Any:
    """log(1 + y) - y."""
    series = y * y * (-1.0 / 2.0 + y * (1.0 / 3.0 - y * (1.0 / 4.0 - y * (1.0 / 5.0 - y * (1.0 / 6.0 - y / 7.0)))))
    return np.where(np.abs(y) < 1e-3, series, np.log1p(y) - y)


def _less_fall(v: Any) -> Any:
    """1 - e^-v - v."""
    series = v * v * (-1.0 / 2.0 + v * (1.0 / 6.0 - v * (1.0 / 24.0 - v * (1.0 / 120.0 - v / 720.0))))
    return np.where(v < 1e-3, series, -np.expm1(-v) - v)
