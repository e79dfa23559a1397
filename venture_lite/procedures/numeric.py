"""The numeric namespace in which a density is written once.

A density is a plain function over `exp`, `log`, `where`, ... imported from here, where they take and return single
floats. `on_columns` gives the same function over NumPy arrays. Both branches of `where` are always evaluated, so
nothing here raises but `demanded` and `apart_from_ends`: the logarithm of 0 is -inf, that of a negative number NaN, as
in NumPy. A density has no `if`, `and` or `or`; conditions are joined by `&` and `|`. A simulator is written over the
same names and the methods of a generator (`simulation.py`).
"""

from __future__ import annotations

import dis
import functools
import math
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError, CountTooLarge, KernelError
from venture_lite.procedures import far_tails
from venture_lite.procedures.columns import RowByRow
from venture_lite.values import show

inf = math.inf
nan = math.nan
pi = math.pi
LOG_PI = math.log(math.pi)
SQRT_HALF = math.sqrt(0.5)
SQRT_HALF_PI = math.sqrt(0.5 * math.pi)
LOG_TWO = math.log(2.0)
LOG_TWO_PI = math.log(2.0 * math.pi)
SMALLEST = math.ulp(0.0)
"""The smallest positive float."""
BELOW_ONE = math.nextafter(1.0, 0.0)
NO_LOGIT = (
    "{} stands for all that is nearer to {} than any other float: its logit, in which the choice moves, is not known"
)
NOT_BY_LOGIT = "mh without 'drift, which draws the choice from its distribution"


def _tamed(function: Callable[[float], float], error: type[Exception], value: float) -> Callable[[float], float]:
    """A function of the math module, with a value where that raises an error."""

    @functools.wraps(function)
    def apply(x: float) -> float:
        try:
            return function(x)
        except error:
            return value

    return apply


exp = _tamed(math.exp, OverflowError, inf)
expm1 = _tamed(math.expm1, OverflowError, inf)
sqrt = _tamed(math.sqrt, ValueError, nan)
sin = _tamed(math.sin, ValueError, nan)
cos = _tamed(math.cos, ValueError, nan)


def log(x: float) -> float:
    try:
        return math.log(x)
    except ValueError:
        return -inf if x == 0 else nan


def log1p(x: float) -> float:
    try:
        return math.log1p(x)
    except ValueError:
        return -inf if x == -1 else nan


def _first_lgamma(x: float) -> float:
    """The logarithm of the gamma function as columns have it, to the last bit; imported by the first program that
    needs it."""
    global _gammaln
    from scipy.special.cython_special import gammaln

    _gammaln = gammaln
    return float(gammaln(x))


_gammaln: Callable[[float], float] = _first_lgamma


_OF_FEW = {float(x): math.log(math.factorial(x - 1)) for x in range(1, 13)}
"""The logarithm of the gamma function of whole numbers, to the last bit, too: it is that of a product there."""


def lgamma(x: float) -> float:
    known = _OF_FEW.get(x)
    return _gammaln(x) if known is None else known


def floor(x: float) -> float:
    try:
        return float(math.floor(x))
    except (ValueError, OverflowError):
        return x


def i0e(x: float) -> float:
    """exp(-|x|) times the modified Bessel function of order 0, which alone overflows at 714."""
    return float(_special("i0e")(x))


def divide(x: float, y: float) -> float:
    """x / y with a divisor that may be 0 (in a branch of `where` that is not taken)."""
    try:
        return x / y
    except ZeroDivisionError:
        return nan if x == 0 or x != x else math.copysign(inf, x)


def where(condition: bool, then: float, otherwise: float) -> float:
    return then if condition else otherwise


def maximum(x: float, y: float) -> float:
    return x if x >= y else y


def minimum(x: float, y: float) -> float:
    return x if x <= y else y


def clip(x: float, lo: float, hi: float) -> float:
    """The number between lo and hi that is nearest to x."""
    return min(max(x, lo), hi)


absolute = abs
nextafter = math.nextafter
arctan2 = math.atan2

remainder = math.remainder
"""What is left of x when the nearest multiple of y is taken away."""

whole = int
"""A whole number as an integer."""

MOST_RATE = 1e15
"""Of a rate much above this NumPy's generators draw no count."""
LARGEST_COUNT = 2**62
"""Simulated counts are below this, within the range of the generator's integers."""


def of_large_rate(count: int, rate: float) -> int:
    """A Poisson count of the rate, made of one of the rate or of MOST_RATE, whichever is less: that of a rate so large
    is normal to more digits than a float holds, and stands for another as far from the mean in standard deviations."""
    return count if rate < MOST_RATE else int(clip(_stretched(count, rate), 0.0, LARGEST_COUNT))


def _stretched(count: Any, rate: Any) -> Any:
    return rate + (rate / MOST_RATE) ** 0.5 * (count - MOST_RATE)


def demanded(x: float, condition: bool, what: str, *shown: float) -> float:
    """x, where the condition holds; else an error that says what must be, with the numbers shown."""
    if not condition:
        raise ArgumentError(what.format(*map(show, shown)))
    return x


def apart_from_ends(x: float, low: float, high: float) -> float:
    """x, where floats tell it from an end at 0 or 1: near these some densities have no bound. Else an error."""
    if (high == 1.0 and x >= BELOW_ONE) or (low == 0.0 and x <= SMALLEST):
        raise KernelError(NO_LOGIT.format(show(x, 17), int(x > 0.5)), None, NOT_BY_LOGIT)
    return x


def drawn_count(count: float, what: str, *shown: float) -> int:
    """A count that was drawn, as an integer; of one that is not below LARGEST_COUNT an error with the numbers shown."""
    if not count < LARGEST_COUNT:
        raise CountTooLarge(f"{what.format(*map(show, shown))} is a count beyond 2^62")
    return int(count)


def is_integral(x: float) -> bool:
    """Whether x is a whole number; false for NaN and the infinities."""
    return x % 1 == 0


def times(x: float, y: float) -> float:
    """x y, and 0 where x is 0 whatever y is."""
    return 0.0 if x == 0 else x * y


def xlogy(x: float, y: float) -> float:
    """x log y, and 0 where x is 0 whatever y is."""
    return 0.0 if x == 0 else x * log(y)


def xlog1py(x: float, y: float) -> float:
    """x log(1 + y), and 0 where x is 0 whatever y is."""
    return 0.0 if x == 0 else x * log1p(y)


def log_ratio(x: float, y: float) -> float:
    """log(x / y) for y above 0, also where the quotient is beyond the floats, or so near to 1 that rounding it would
    cost digits of its logarithm."""
    quotient = x / y
    if 0.5 < quotient < 2.0:
        return log1p((x - y) / y)
    return log(quotient) if 1e-300 < quotient < inf else log(x) - log(y)


def turned(angle: float) -> float:
    """The angle, less whole turns if it is more than about half a one away from 0: sine and cosine of a large angle
    lose no digits, a difference from it does."""
    return angle if -4.0 < angle < 4.0 else math.atan2(sin(angle), cos(angle))


FEW = 1000.0
"""Up to here the logarithms of factorials are small enough that their differences keep 11 digits after the point."""


def log_split(k: float, m: float, p: float, q: float) -> float:
    """log of Gamma(k + m + 1) / (Gamma(k + 1) Gamma(m + 1)) p^k q^m, for p + q = 1 and k and m not negative, whole or
    not: the binomial probability of k among k + m.

    For large counts the terms cancel; there what is left of the factorials and the deviances of k and m from their
    shares have no large terms (Loader 2000, Fast and accurate computation of binomial probabilities, section 3).
    """
    if k < FEW and m < FEW:
        return lgamma(k + m + 1.0) - lgamma(k + 1.0) - lgamma(m + 1.0) + xlogy(k, p) + xlogy(m, q)
    n = k + m
    rests = stirling_rest(n) - stirling_rest(k) - stirling_rest(m)
    return rests - _deviance(k, n, p) - _deviance(m, n, q)


def log_beta_density(x: float, a: float, b: float) -> float:
    """(a - 1) log x + (b - 1) log(1 - x) less the log of the beta function, for x between 0 and 1."""
    if a < FEW and b < FEW:
        return (a - 1.0) * log(x) + (b - 1.0) * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)
    return log_split(a, b, x, 1.0 - x) + log(a) + log_ratio(b, a + b) - log(x) - log1p(-x)


def stirling_rest(m: float) -> float:
    """lgamma(m + 1) - m log m + m; from 16 on by Stirling's series, whose next term, 1 / (1188 m^9), is below 2e-14."""
    return _stirling(m, log(m)) if m > 16.0 else lgamma(m + 1.0) - xlogy(m, m) + m


def _stirling(m: Any, log_m: Any) -> Any:
    inverse = 1.0 / m
    square = inverse * inverse
    tail = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square * (1.0 / 1260.0 - square / 1680.0)))
    return 0.5 * (LOG_TWO_PI + log_m) + tail


def _deviance(k: float, n: float, p: float) -> float:
    """k log(k / (n p)) + n p - k; infinite where p is 0 and k is not."""
    if not p > 0.0:
        return inf if k > 0.0 else 0.0
    share = n * p
    away = divide(k - share, share)
    if -0.01 < away < 0.01:
        return float(_small_deviance(share, away))
    ratio = log_ratio(k, share) if share > 1e-300 else log(k) - log(n) - log(p)
    return times(k, ratio) + (share - k)


def _small_deviance(share: Any, away: Any) -> Any:
    """By its power series in the relative distance, whose next term is away^8 / 56."""
    square = away * away
    series = 0.5 - away / 6.0 + square * (1.0 / 12.0 - away / 20.0 + square * (1.0 / 30.0 - away / 42.0))
    return share * square * series


def deviance_at(k: float, share: float, away: float, excess: float) -> float:
    """k log(k / share) + share - k, of which the relative distance k / share - 1 and k - share are known to all
    digits."""
    ratio = where(away > -0.5, log1p(away), log_ratio(k, where(away > -0.5, 1.0, share)))
    small = absolute(away) < 0.01
    return where(small, _small_deviance(share, where(small, away, 0.0)), k * ratio - excess)


def log_rising(start: float, count: float) -> float:
    """log of Gamma(start + count) / Gamma(start): of start (start + 1) ... (start + count - 1) for a whole count, of no
    factors 0 whatever the start.

    From 1e4 on the difference of two lgamma loses digits, and Stirling's series, cut after 1 / (12 x), loses none: its
    next term, 1 / (360 x^3), is below 3e-15.
    """
    large = start >= 1e4
    s = where(large, start, 1e4)
    end = s + count
    series = (1.0 / end - 1.0 / s) / 12.0
    stirling = count * log(end) + (s - 0.5) * log1p(count / s) - count + series
    none = count == 0
    return where(large, stirling, where(none, 0.0, lgamma(start + count) - lgamma(where(none, 1.0, start))))


def log_gamma_density(shape: float, x: float, log_x: float) -> float:
    """(shape - 1) log x - x - lgamma(shape): the log density at x of a gamma of rate 1.

    `log_x` is given as well, for an x that is beyond the floats. For a large shape the three terms cancel; there the
    formula of Loader (2000, Fast and accurate computation of binomial probabilities, section 3) has no large terms: the
    deviance of x from m = shape - 1, and Stirling's series, whose next term, 1 / (1260 m^5), is below 1e-18. Away from
    m the logarithm of x / m is taken from `log_x`: x - m holds nothing of an x that is far smaller than m.
    """
    large = shape > 1000.0
    m = where(large, shape - 1.0, 1000.0)
    log_m = log(m)
    away = (x - m) / m
    near = absolute(away) < 0.5
    ratio = where(near, log1p(where(near, away, 0.0)), log_x - log_m)
    series = (1.0 - 1.0 / (30.0 * m * m)) / (12.0 * m)
    saddle = m * (ratio - away) - 0.5 * (LOG_TWO_PI + log_m) - series
    power = times(shape - 1.0, log_x)
    return where(large, saddle, power - x - lgamma(shape))


def log1p_square(z: float) -> float:
    """log(1 + z^2), also where z^2 is beyond the floats."""
    size = absolute(z)
    return where(size < 1e100, log1p(z * z), 2.0 * log(size))


def log_cauchy(distance: float, scale: float) -> float:
    """log of scale / (pi (scale^2 + distance^2)), where neither the squares nor their quotient overflow."""
    # one condition for both, so that where they are equal each has its own derivative; a distance that is NaN comes
    # through
    wide = scale >= distance
    large = where(wide, scale, distance)
    small = where(wide, distance, scale)
    quotient = small / large
    return log(scale) - LOG_PI - 2.0 * log(large) - log1p(quotient * quotient)


NARROW = 0.03
"""Of an interval this wide, in units of the distance in which a normal density changes, two terms of a series about its
middle have all digits: the next is below 1e-15."""


def log_normal_mass(a: float, b: float) -> float:
    """log of the integral over a <= z <= b of exp(-(z^2 - c^2) / 2), c the z that is nearest to 0: also where the
    interval lies so far out, or is so narrow, that both ends have one distribution function. NaN unless a < b."""
    return float(_log_normal_mass(a, b))


def _log_normal_mass(a: Any, b: Any) -> Any:
    erfcx, erf = _special("erfcx"), _special("erf")
    with np.errstate(all="ignore"):
        # what lies below 0 is turned over
        near = np.where(np.greater(a, 0.0), a, np.where(np.less(b, 0.0), np.negative(b), 0.0))
        far, width = np.maximum(np.abs(a), np.abs(b)), np.subtract(b, a)
        fall = np.exp(-0.5 * width * (near + far))
        tail = SQRT_HALF_PI * (erfcx(SQRT_HALF * near) - fall * erfcx(SQRT_HALF * far))
        across = SQRT_HALF_PI * (erf(np.multiply(SQRT_HALF, b)) - erf(np.multiply(SQRT_HALF, a)))
        middle = near + 0.5 * width
        square, steep = width * width, middle * middle
        terms = (steep - 1.0) * square / 24.0 + (steep * steep - 6.0 * steep + 3.0) * square * square / 1920.0
        narrow = np.log(width) - 0.25 * width * (2.0 * near + 0.5 * width) + np.log1p(terms)
        found = np.where(near > 0.0, np.log(tail), np.log(across))
        is_narrow = (width * np.maximum(1.0, far) < NARROW) & ((near > 0.0) | (np.minimum(np.negative(a), b) < 0.0))
        return np.where(is_narrow, narrow, found)


def normal_between(share: float, a: float, b: float) -> float:
    """The z, less the one nearest to 0, below which this share lies of the mass of a standard normal between a and
    b."""
    return float(_normal_between(share, a, b))


def _normal_between(share: Any, a: Any, b: Any) -> Any:
    log_ndtr, quantile = _special("log_ndtr"), _special("ndtri_exp")
    with np.errstate(all="ignore"):
        # the tail that is small is the lower one, whose logarithm keeps its digits
        over = np.greater(np.add(a, b), 0.0)
        low, high = np.where(over, np.negative(b), a), np.where(over, np.negative(a), b)
        part = np.where(over, 1.0 - share, share)
        near = np.minimum(high, 0.0)
        top = log_ndtr(high)
        away = quantile(top + np.log1p((1.0 - part) * np.expm1(log_ndtr(low) - top))) - near
        # far out the tail is exponential but for z^-2 of itself, and a narrow interval of even density
        drop = -np.log1p((1.0 - part) * np.expm1(-0.5 * (high - low) * (-high - low)))
        far = -2.0 * drop / (np.sqrt(near * near + 2.0 * drop) - near)
        even = np.where(near < 0.0, (part - 1.0) * (high - low), low + part * (high - low))
        away = np.where(near < -1e4, far, away)
        away = np.where((high - low) * np.maximum(1.0, -low) < 1e-7, even, away)
        return np.where(over, -away, away)


def log_ndtr(z: float) -> float:
    """The logarithm of the probability that a standard normal is below z."""
    return float(_special("log_ndtr")(z))


def log_gammainc(a: float, x: float) -> float:
    """The logarithm of the probability that a gamma of shape a and rate 1 is below x."""
    return float(_log_gammainc(a, x))


def log_gammaincc(a: float, x: float) -> float:
    """The same of above x."""
    return float(_log_gammaincc(a, x))


def log_betainc(a: float, b: float, x: float) -> float:
    """The logarithm of the probability that a beta of a and b is below x."""
    return float(_log_betainc(a, b, x))


def log_betaincc(a: float, b: float, x: float) -> float:
    """The same of above x."""
    return float(_log_betaincc(a, b, x))


NORMAL_NUMBER = 1e-307
"""Probabilities from here on have all their digits."""


def _log_of_scipy(name: str, far_out: Callable[..., Any]) -> Callable[..., Any]:
    """The logarithm of a probability that scipy knows; `far_out` gives that of arrays where it has no digits left."""

    def apply(*numbers: Any) -> Any:
        with np.errstate(all="ignore"):
            share = _special(name)(*numbers)
            logs = np.log(share)
            if np.all(share >= NORMAL_NUMBER):
                return logs
            at = share < NORMAL_NUMBER
            given = np.broadcast_arrays(*(np.asarray(number, dtype=np.float64) for number in numbers))
            logs = np.array(logs)
            found = far_out(*(each[at] for each in given))
            logs[at] = np.where(np.isnan(found), logs[at], found)
            return logs[()]

    return apply


def _far_of_gamma(fall: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, x: on_columns(log_gamma_density)(a, x, np.log(x)) + fall(a, x)


def _far_of_beta(fall: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b, x: _log_beta_density_of_columns(x, a, b) + fall(a, b, x)


_log_gammainc = _log_of_scipy("gammainc", _far_of_gamma(far_tails.below_of_gamma))
_log_gammaincc = _log_of_scipy("gammaincc", _far_of_gamma(far_tails.above_of_gamma))
_log_betainc = _log_of_scipy("betainc", _far_of_beta(far_tails.below_of_beta))
_log_betaincc = _log_of_scipy("betaincc", _far_of_beta(far_tails.above_of_beta))


def of_scipy(name: str) -> Callable[[Any], Any]:
    """A function of scipy.special, which the first program that needs one imports."""
    return lambda x: _special(name)(x)


@functools.cache
def _special(name: str) -> Callable[[Any], Any]:
    from scipy import special

    function: Callable[[Any], Any] = getattr(special, name)
    return function


_lgamma_of_columns = of_scipy("gammaln")


def _clip_of_columns(x: Any, lo: Any, hi: Any) -> Any:
    # of ten numbers faster than np.clip
    return np.minimum(np.maximum(x, lo), hi)


def _remainder_of_columns(x: Any, y: Any) -> Any:
    left = np.fmod(x, y)
    return left - y * np.round(left / y)


def _of_large_rate_of_columns(count: Any, rate: Any) -> Any:
    large = np.asarray(np.clip(_stretched(count, rate), 0.0, LARGEST_COUNT), np.int64)
    return np.where(np.less(rate, MOST_RATE), count, large)


def _demanded_of_columns(x: Any, condition: Any, what: str, *shown: Any) -> Any:
    if not np.all(condition):
        # row by row the one that is refused is found
        raise RowByRow
    return x


def _apart_from_ends_of_columns(x: Any, low: Any, high: Any) -> Any:
    is_at_end = (np.equal(high, 1.0) & np.greater_equal(x, BELOW_ONE)) | (
        np.equal(low, 0.0) & np.less_equal(x, SMALLEST)
    )
    if np.any(is_at_end):
        at = int(np.argmax(is_at_end))
        apart_from_ends(*[float(np.broadcast_to(each, is_at_end.shape).flat[at]) for each in (x, low, high)])
    return x


def _drawn_count_of_columns(count: Any, what: str, *shown: Any) -> Any:
    if not np.all(np.less(count, LARGEST_COUNT)):
        raise RowByRow
    return np.asarray(count, np.int64)


def _is_integral_columns(x: Any) -> Any:
    return True if getattr(x, "dtype", np.dtype(float)).kind in "bi" else np.mod(x, 1) == 0


def _times_of_columns(x: Any, y: Any) -> Any:
    return np.where(x == 0, 0.0, x * y)


def _xlogy_of_columns(x: Any, y: Any) -> Any:
    return np.where(x == 0, 0.0, x * np.log(y))


def _xlog1py_of_columns(x: Any, y: Any) -> Any:
    return np.where(x == 0, 0.0, x * np.log1p(y))


def _log1p_square_of_columns(z: Any) -> Any:
    size = np.abs(z)
    is_small = np.less(size, 1e100)
    found = np.log1p(np.multiply(z, z))
    # squares beyond the floats are rare: branches are chosen from only where there is one
    return found if np.all(is_small) else np.where(is_small, found, 2.0 * np.log(size))


def _log_ratio_of_columns(x: Any, y: Any) -> Any:
    quotient = np.divide(x, y)
    near = (quotient > 0.5) & (quotient < 2.0)
    found = np.log(quotient)
    if np.any(near):
        found = np.where(near, np.log1p((x - y) / y), found)
    beyond = ~((quotient > 1e-300) & (quotient < inf))
    return np.where(beyond, np.log(x) - np.log(y), found) if np.any(beyond) else found


def _turned_of_columns(angle: Any) -> Any:
    small = np.abs(angle) < 4.0
    return angle if np.all(small) else np.where(small, angle, np.arctan2(np.sin(angle), np.cos(angle)))


def _log_split_of_columns(k: Any, m: Any, p: Any, q: Any) -> Any:
    n = np.add(k, m, dtype=np.float64)
    if np.max(n, initial=0.0) < FEW:
        factorials = _lgamma_of_columns(n + 1.0) - _lgamma_of_columns(k + 1.0) - _lgamma_of_columns(m + 1.0)
        return factorials + _xlogy_of_columns(k, p) + _xlogy_of_columns(m, q)
    rests = _rest_of_columns(n) - _rest_of_columns(k) - _rest_of_columns(m)
    return rests - _deviance_of_columns(k, n, p) - _deviance_of_columns(m, n, q)


def _log_beta_density_of_columns(x: Any, a: Any, b: Any) -> Any:
    if np.max(a, initial=0.0) < FEW and np.max(b, initial=0.0) < FEW:
        constant = _lgamma_of_columns(np.add(a, b)) - _lgamma_of_columns(a) - _lgamma_of_columns(b)
        return (a - 1.0) * np.log(x) + (b - 1.0) * np.log1p(-x) + constant
    mean = np.log(a) + _log_ratio_of_columns(b, a + b)
    return _log_split_of_columns(a, b, x, 1.0 - x) + mean - np.log(x) - np.log1p(-x)


def _rest_of_columns(m: Any) -> Any:
    large = np.maximum(m, 16.0)
    small = np.minimum(m, 16.0)
    below = _lgamma_of_columns(small + 1.0) - _xlogy_of_columns(small, small) + small
    return np.where(np.greater(m, 16.0), _stirling(large, np.log(large)), below)


def _deviance_of_columns(k: Any, n: Any, p: Any) -> Any:
    share = n * p
    away = (k - share) / share
    ratio = np.where(share > 1e-300, _log_ratio_of_columns(k, share), np.log(k) - np.log(n) - np.log(p))
    far = _times_of_columns(k, ratio) + (share - k)
    found = np.where(np.abs(away) < 0.01, _small_deviance(share, away), far)
    return np.where(np.greater(p, 0.0), found, np.where(np.greater(k, 0.0), inf, 0.0))


_OF_NUMPY = (exp, expm1, log, log1p, sqrt, floor, sin, cos, divide, where, maximum, minimum, nextafter)
"""Functions that NumPy has by the same names."""

COLUMNS: dict[str, Any] = {
    **{function.__name__: getattr(np, function.__name__) for function in _OF_NUMPY},
    "lgamma": _lgamma_of_columns,
    "i0e": of_scipy("i0e"),
    "absolute": np.absolute,
    "is_integral": _is_integral_columns,
    "clip": _clip_of_columns,
    "arctan2": np.arctan2,
    "remainder": _remainder_of_columns,
    "whole": lambda x: np.asarray(x, np.int64),
    "demanded": _demanded_of_columns,
    "apart_from_ends": _apart_from_ends_of_columns,
    "drawn_count": _drawn_count_of_columns,
    "of_large_rate": _of_large_rate_of_columns,
    "times": _times_of_columns,
    "xlogy": _xlogy_of_columns,
    "xlog1py": _xlog1py_of_columns,
    "log1p_square": _log1p_square_of_columns,
    "log_ratio": _log_ratio_of_columns,
    "log_split": _log_split_of_columns,
    "log_beta_density": _log_beta_density_of_columns,
    "stirling_rest": _rest_of_columns,
    "turned": _turned_of_columns,
    "log_normal_mass": _log_normal_mass,
    "normal_between": _normal_between,
    "log_ndtr": of_scipy("log_ndtr"),
    "log_gammainc": _log_gammainc,
    "log_gammaincc": _log_gammaincc,
    "log_betainc": _log_betainc,
    "log_betaincc": _log_betaincc,
}
"""The same names over arrays."""

OF_SIMULATORS = frozenset(
    (
        "apart_from_ends",
        "clip",
        "nextafter",
        "remainder",
        "whole",
        "demanded",
        "drawn_count",
        "of_large_rate",
        "normal_between",
    )
)
"""Names that no density uses, only draws and transforms, which are not differentiated by these tables."""


def on_columns(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its numeric names, and those of the functions of this package that it calls, bound to NumPy."""
    return rebound(function, COLUMNS)


_ATTRIBUTES = {code for name, code in dis.opmap.items() if name.endswith(("_ATTR", "_METHOD", "_SUPER_ATTR"))}
"""Opcodes whose names are attributes, not globals."""


def _global_names(code: CodeType) -> Iterable[str]:
    """The global names that a function reads; `co_names` holds those of attributes as well."""
    if _ATTRIBUTES.isdisjoint(code.co_code[::2]):
        return code.co_names
    return {found.argval for found in dis.get_instructions(code) if found.opname in ("LOAD_GLOBAL", "LOAD_NAME")}


def rebound(function: Callable[..., Any], names: dict[str, Any]) -> Callable[..., Any]:
    """The function with these names, also in the functions of this package that it calls, bound anew."""
    assert isinstance(function, FunctionType)
    bound = dict(function.__globals__)
    for name in _global_names(function.__code__):
        if name in names:
            bound[name] = names[name]
        else:
            called = bound.get(name)
            if isinstance(called, FunctionType) and called.__module__.startswith("venture_lite.procedures"):
                bound[name] = rebound(called, names)
    return FunctionType(function.__code__, bound, function.__name__, function.__defaults__, function.__closure__)
