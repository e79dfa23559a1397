"""The likelihoods of generalised linear models in their linear predictor eta: Taylor terms, Fisher information, bounds.

Three families:

- *Logistic.* `successes` log logistic(eta) + `failures` log logistic(-eta) + a constant: bernoulli, binomial, geometric
  and neg_binomial differ only in what they count.
- *Location.* A function of z = (value - eta) / scale: normal, lognormal, student_t, cauchy.
- *Softmax.* One score for each outcome.

And poisson and neg_binomial_mean with the logarithm as their link.

All is written on columns; `predictor.py` says what is given and given back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures import numeric
from venture_lite.procedures.array_gradients import indicators, shared, softmax
from venture_lite.procedures.columns import Flags, single_numbers
from venture_lite.procedures.domains import BOOLEAN_LIKE
from venture_lite.procedures.numeric import on_columns
from venture_lite.procedures.predictor import Bound, LinearPredictor, Terms, tangent
from venture_lite.procedures.record import Gradient

LOG_TWO = math.log(2.0)

LARGEST_ETA = 709.0
"""exp of it is a float."""

LOGISTIC_THIRD = 1.0 / (6.0 * math.sqrt(3.0))
"""The largest |p (1 - p) (1 - 2 p)|, the third cumulant of a Bernoulli: at p = (1 - 1/sqrt(3)) / 2. A variable of range
1 has none larger, so it also bounds that of the softmax."""

STUDENT_THIRD = (3.0 + 2.0 * math.sqrt(2.0)) / 4.0
"""The largest |2 t (t^2 - 3) / (1 + t^2)^3|: with t = tan(u) it is 2 cos(u)^3 sin(3 u), largest at u = pi / 8."""

LikelihoodDensity = Callable[..., Any]


def logistic_predictor(
    density: LikelihoodDensity,
    counts: Callable[..., tuple[Any, Any]],
    argument: int = 0,
    inverse_link: str | None = "logistic",
    trials: Callable[..., Any] | None = None,
    quickly: Callable[..., tuple[Any, Any]] | None = None,
) -> LinearPredictor:
    """`density` takes the probability in the predictor's place, `counts(value, *arguments)` gives successes and
    failures, `trials(p, *arguments)` the expectation of their sum where it depends on the probability.

    The Jaakkola-Jordan bound: log logistic(eta) - eta / 2 is convex in eta^2 and lies above its tangent there.
    """

    on_arrays = on_columns(density)

    def at_probability(p: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        return (*arguments[:argument], p, *arguments[argument + 1 :])

    def taylor(value: Any, *arguments: Any) -> Terms:
        with np.errstate(all="ignore"):
            eta, (successes, failures) = arguments[argument], counts(value, *arguments)
            p, q, log_p, log_q = _logistic(eta)
            # the constant, or -inf, is what the density has at 1/2 beside its powers of 1/2
            constant = on_arrays(value, *at_probability(0.5, arguments)) + (successes + failures) * LOG_TWO
            log_density = constant + successes * log_p + failures * log_q
            return log_density, successes * q - failures * p, -(successes + failures) * (p * q)

    def information(value: Any, *arguments: Any) -> Any:
        p, q, _, _ = _logistic(arguments[argument])
        return (sum(counts(value, *arguments)) if trials is None else trials(p, *arguments)) * (p * q)

    def curvature(value: Any, *arguments: Any) -> Any:
        # its limit at 0, -1/4 for each trial, is reached to all digits before 1e-8
        size = np.maximum(np.abs(arguments[argument]), 1e-8)
        return -sum(counts(value, *arguments)) * (np.tanh(0.5 * size) / (2.0 * size))

    def limits(value: Any, *arguments: Any) -> tuple[Any, Any]:
        successes, failures = counts(value, *arguments)
        return np.maximum(successes, failures), (successes + failures) * LOGISTIC_THIRD

    bound = Bound(
        "jaakkola_jordan", tangent(taylor, argument, curvature),
        "Jaakkola and Jordan (1997): log logistic(xi) + (s - xi) / 2 - tanh(xi / 2) / (4 xi) (s^2 - xi^2), s the "
        "predictor with the sign of the outcome; touches at xi and at -xi",
        # Maclaurin and Adams (2014), section 3.1
        untuned=1.5,
    )  # fmt: skip
    return LinearPredictor(argument, taylor, information, limits, inverse_link, bounds=(bound,), quickly=quickly)


def _logistic(eta: Any) -> tuple[Any, Any, Any, Any]:
    """p, 1 - p and their logarithms, each with all its digits."""
    shrunk = np.exp(-np.abs(eta))
    larger = 1.0 / (1.0 + shrunk)
    smaller, tail = shrunk * larger, np.log1p(shrunk)
    positive = np.greater_equal(eta, 0.0)
    p, q = np.where(positive, larger, smaller), np.where(positive, smaller, larger)
    return p, q, np.minimum(eta, 0.0) - tail, -np.maximum(eta, 0.0) - tail


def binary_counts(value: Any, *_: Any) -> tuple[Any, Any]:
    return np.equal(value, 1).astype(np.float64), np.equal(value, 0).astype(np.float64)


def binary_first_order(value: Any, eta: Any) -> tuple[Any, Any]:
    """Of a bernoulli: log logistic of the predictor with the outcome's sign. The hottest loop of Firefly."""
    sign = np.where(np.equal(value, 1), 1.0, np.where(np.equal(value, 0), -1.0, -np.inf))
    with np.errstate(all="ignore"):
        signed = sign * eta
        shrunk = np.exp(-np.abs(signed))
        first = sign * np.where(signed < 0.0, 1.0, shrunk) / (1.0 + shrunk)
        return np.minimum(signed, 0.0) - np.log1p(shrunk), first


def bernoulli_logit_gradient(lifted: Flags, wanted: Flags, value: Any, logit: Any) -> tuple[Any, ...]:
    """value - logistic(logit): the hottest loop of the gradients of logistic regressions."""
    if not wanted[1]:
        return (None, None)
    if True not in lifted:
        p = 1.0 / (1.0 + numeric.exp(-logit))
        return (None, 1.0 - p if value == 1 else -p if value == 0 else 0.0)
    value, logit = single_numbers(lifted, (value, logit))
    with np.errstate(all="ignore"):
        slope = value - 1.0 / (1.0 + np.exp(-logit))
    if not (BOOLEAN_LIKE.contains_all(value) if lifted[0] else BOOLEAN_LIKE.contains(value)):
        slope = np.where(np.equal(value, 1) | np.equal(value, 0), slope, 0.0)
    return (None, shared(slope, lifted, 1))


BERNOULLI_LOGIT_GRADIENT = Gradient((False, True), bernoulli_logit_gradient)


def poisson_predictor(density: LikelihoodDensity) -> LinearPredictor:
    """With the log link. No parabola lies below: exp(eta) outgrows every one."""

    on_arrays = on_columns(density)

    def taylor(value: Any, eta: Any) -> Terms:
        with np.errstate(all="ignore"):
            rate = np.exp(eta)
            # at rate 1 the density is exp(-1) / value!, or 0
            return on_arrays(value, 1.0) + 1.0 + value * eta - rate, value - rate, -rate

    return LinearPredictor(
        0,
        taylor,
        information=lambda value, eta: np.exp(eta),
        limits=lambda value, eta: (math.inf, math.inf),
        inverse_link="exp",
    )


def neg_binomial_predictor(density: LikelihoodDensity) -> LinearPredictor:
    """Of a count by its mean and size, with the log link: logistic in eta - log size, of k successes and `size`
    failures."""

    on_arrays = on_columns(density)

    def taylor(value: Any, eta: Any, size: Any) -> Terms:
        with np.errstate(all="ignore"):
            p, q, _, _ = _logistic(eta - np.log(size))
            mean = np.exp(np.minimum(eta, LARGEST_ETA))
            return on_arrays(value, mean, size), value * q - size * p, -(value + size) * (p * q)

    return LinearPredictor(
        0,
        taylor,
        information=lambda value, eta, size: size * _logistic(eta - np.log(size))[0],
        limits=lambda value, eta, size: (np.maximum(value, size), (value + size) * LOGISTIC_THIRD),
        inverse_link="exp",
    )


def normal_predictor(density: LikelihoodDensity, scaled: Callable[[Any], Any] = lambda value: value) -> LinearPredictor:
    """In the mean; `scaled` is the function of the value that is normal."""

    on_arrays = on_columns(density)

    def taylor(value: Any, mean: Any, sd: Any) -> Terms:
        with np.errstate(all="ignore"):
            log_density = on_arrays(value, mean, sd)
            return log_density, (scaled(value) - mean) / sd / sd, -1.0 / sd / sd

    return LinearPredictor(
        0,
        taylor,
        information=lambda value, mean, sd: 1.0 / sd / sd,
        # no largest slope, no third derivative
        limits=lambda value, mean, sd: (math.inf, 0.0),
        is_quadratic=True,
    )


def student_t_predictor(density: LikelihoodDensity, argument: int, df: float | None = None) -> LinearPredictor:
    """In the location; `df` for a density without that argument. The Gaussian tangent: log(1 + z^2 / df) is concave in
    z^2, so its negative lies above its tangent there (as Maclaurin and Adams 2014, section 4.3)."""

    on_arrays = on_columns(density)

    def standardised(value: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any, Any, Any]:
        """df, scale, z, and 1 / (df + z^2)."""
        freedom, (loc, scale) = (arguments[0] if df is None else df), arguments[-2:]
        z = (value - loc) / scale
        return freedom, scale, z, 1.0 / (freedom + z * z)

    def taylor(value: Any, *arguments: Any) -> Terms:
        with np.errstate(all="ignore"):
            freedom, scale, z, weight = standardised(value, arguments)
            first = (freedom + 1.0) * z * weight / scale
            second = (freedom + 1.0) * weight * (1.0 - 2.0 * freedom * weight) / scale / scale
            return on_arrays(value, *arguments), first, second

    def information(value: Any, *arguments: Any) -> Any:
        freedom, scale, _, _ = standardised(value, arguments)
        return (freedom + 1.0) / (freedom + 3.0) / scale / scale

    def curvature(value: Any, *arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            freedom, scale, _, weight = standardised(value, arguments)
            return -(freedom + 1.0) * weight / scale / scale

    def limits(value: Any, *arguments: Any) -> tuple[Any, Any]:
        freedom, scale, _, _ = standardised(value, arguments)
        root = np.sqrt(freedom)
        third = STUDENT_THIRD * (freedom + 1.0) / (freedom * root) / scale**3
        return (freedom + 1.0) / (2.0 * root) / scale, third

    bound = Bound(
        "gaussian_tangent", tangent(taylor, argument, curvature),
        "the tangent in z^2 at z0^2 = ((value - touching) / scale)^2, of slope -(df + 1) / (2 (df + z0^2)); touches "
        "at z0 and at -z0",
    )  # fmt: skip
    return LinearPredictor(argument, taylor, information, limits, bounds=(bound,))


def _softmax_first_order(value: Any, scores: Any) -> tuple[Any, Any]:
    with np.errstate(all="ignore"):
        scores = np.asarray(scores, dtype=np.float64)
        taken = indicators(value, scores.shape[-1])
        top = scores.max(axis=-1)
        grown = np.exp(scores - top[..., None])
        total = grown.sum(axis=-1)
        inside = taken.any(axis=-1)
        chosen = np.where(taken > 0.0, scores, 0.0).sum(axis=-1)
        log_density = np.where(inside, chosen - (top + np.log(total)), -np.inf)
        return log_density, taken - grown / total[..., None]


def _softmax_taylor(value: Any, scores: Any) -> Terms:
    with np.errstate(all="ignore"):
        log_density, first = _softmax_first_order(value, scores)
        return log_density, first, -_covariance(softmax(np.asarray(scores, dtype=np.float64)))


def _covariance(p: Any) -> Any:
    """Of the indicators of one draw from the probabilities (..., K): (..., K, K)."""
    return np.eye(p.shape[-1]) * p[..., None] - p[..., None] * p[..., None, :]


def _boehning(value: Any, scores: Any) -> Any:
    size = np.shape(scores)[-1]
    return (1.0 / size - np.eye(size)) / 2.0


SOFTMAX = LinearPredictor(
    0,
    _softmax_taylor,
    information=lambda value, scores: _covariance(softmax(np.asarray(scores, dtype=np.float64))),
    # the derivative is the taken score's direction less a mean of directions: at most their range
    limits=lambda value, scores: (1.0, LOGISTIC_THIRD),
    is_vector=True,
    quickly=_softmax_first_order,
    bounds=(
        Bound(
            "boehning",
            tangent(_softmax_taylor, 0, _boehning),
            "Boehning (1992, Multinomial logistic regression algorithm): the covariance of the outcome's indicators "
            "is never larger than (I - 11'/K) / 2",
        ),
    ),
)
