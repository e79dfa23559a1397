"""Every density against its textbook formula with 60 digits, at the corners of its arguments and around its mode.

The bar is 1e-9 of max(1, |log p|), for single calls and for columns; for a derivative, times its argument, 1e-7 of the
largest of that, of |log p| and of 1. A derivative sees how a product of two arguments is rounded: 1e-15 of the largest.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from mpmath import mp, mpf

from tests.procedures.far_tails import EXACT, VECTORS
from tests.procedures.test_random import record_of
from venture_lite import Venture
from venture_lite.errors import CountTooLarge
from venture_lite.procedures.record import Random
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.values import freeze

POSITIVE = (1e-12, 1e-6, 1e-3, 1.0, 2.0, 1e3, 1e6, 1e9, 1e12)
REAL = (0.0, *POSITIVE, *(-x for x in POSITIVE))
PROBABILITY = (1e-12, 1e-6, 0.3, 0.5, 1 - 1e-6, 1 - 1e-12)
COUNT = (0, 1, 2, 16, 17, 999, 1000, 1001, 10**6, 10**9, 10**12)
INTEGER = (-(10**12), -3, 0, 5, 10**6, 10**12)
CORNERS: dict[str, tuple[Any, ...]] = {
    "real": REAL, "positive": POSITIVE, "non-negative": (0.0, *POSITIVE), "probability": PROBABILITY,
    "positive probability": PROBABILITY, "integer": INTEGER, "count": COUNT,
}  # fmt: skip
TRUNCATED: list[tuple[Any, ...]] = [
    (0.0, 1.0, -1.0, 2.0), (0.0, 1.0, 40.0, 41.0), (0.0, 1.0, -1e3, -40.0), (-1e4, 1.0, 0.0, 5.0),
    (0.0, 1.0, 1.0, 1.001),
    (0.0, 1.0, 0.0, 1e-4), (3.0, 0.1, 2.9, 1e6), (0.0, 1.0, 30.0, 30.001), (0.0, 1.0, -1e9, 1e9), (1e6, 1e-3, 0.0, 2e6),
]  # fmt: skip
"""Intervals far out, narrow, wide: beyond 1e5 standard deviations 60 digits do not hold their masses."""
MOST = 60
"""Combinations of arguments for each record, every record's extreme ones among them."""


def combinations(record: Random) -> list[tuple[Any, ...]]:
    if record.name == "truncated_normal":
        return TRUNCATED
    everything = itertools.product(*(CORNERS[argument.domain.name] for argument in record.arguments))
    found = [args for args in everything if not record.name.startswith("uniform") or args[0] < args[1]]
    if record.name == "beta_binomial":
        found = [args for args in found if args[1:] != (0.0, 0.0)]
    if len(found) <= MOST:
        return found
    chosen = np.random.default_rng(1).choice(len(found), MOST, replace=False)
    return [found[0], found[-1], *(found[i] for i in chosen)]


def values(record: Random, args: tuple[Any, ...], rng: np.random.Generator) -> Iterator[Any]:
    """Corners inside the support, and draws, where large terms cancel."""
    discrete = record.transform is None
    corners: tuple[Any, ...] = COUNT if discrete else (*REAL, *PROBABILITY)
    if record.name.startswith("bernoulli"):
        corners = (False, True)
    for value in corners if discrete else rng.choice(corners, 6).tolist():
        if math.isfinite(record.log_density(value, *args)):
            yield value
    # near the mode of a narrow lognormal the last bit of log x is what counts
    if record.name != "lognormal":
        drawn = []
        with contextlib.suppress(CountTooLarge):
            drawn = [record.simulate(rng, *args) for _ in range(2)]
        yield from (value for value in drawn if abs(value) < 1e15 and (abs(value) > 1e-15 or discrete))


def exactly(x: Any) -> Any:
    return x if isinstance(x, bool) else mpf(x)


def points(name: str) -> Iterator[tuple[Any, tuple[Any, ...], Any]]:
    """(value, arguments, log density with 60 digits)"""
    record, rng = record_of(name), np.random.default_rng(2)
    for args in combinations(record):
        for value in values(record, args, rng):
            yield value, args, EXACT[name](exactly(value), *map(exactly, args))


def test_every_scalar_distribution_has_its_formula() -> None:
    scalar = {
        record.name
        for record in PROCEDURES.values()
        if isinstance(record, Random) and all(argument.domain.name in CORNERS for argument in record.arguments)
    }
    assert scalar - {"flip", "flat"} == set(EXACT)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * (at % 3 > 0)) for at, n in enumerate(EXACT)]
)
@pytest.mark.thorough
def test_scalar_densities_at_the_corners(name: str) -> None:
    record = record_of(name)
    assert record.log_density_columns is not None
    for value, args, exact in points(name):
        bar = 1e-9 * max(1.0, abs(float(exact)))
        single = record.log_density(value, *args)
        assert abs(float(mpf(single) - exact)) <= bar, (value, args, single, float(exact))
        for lifted in ((True, *(False for _ in args)), (True, *(True for _ in args))):
            given = (np.array([x] * 2) if up else x for x, up in zip((value, *args), lifted, strict=True))
            together = record.log_density_columns(lifted, *given)[1]
            assert abs(float(mpf(together) - exact)) <= bar, (value, args, together, float(exact))


@pytest.mark.parametrize("name", [name for name in EXACT if record_of(name).gradient is not None])
@pytest.mark.thorough
def test_gradients_at_the_corners(name: str) -> None:
    record = record_of(name)
    assert record.gradient is not None
    exists = record.gradient.exists
    for value, args, exact in itertools.islice(points(name), 60):
        inputs = (value, *args)
        if not value:
            # at the edge of a support a density may have no derivative
            continue
        single = record.gradient.evaluate((False,) * len(inputs), exists, *inputs)
        columns = [np.array([x] * 2, dtype=np.float64) for x in inputs]
        together = record.gradient.evaluate((True,) * len(inputs), exists, *columns)
        for position in (i for i, there in enumerate(exists) if there and inputs[i]):
            expected = inputs[position] * derivative(name, inputs, position)
            bar = 1e-7 * max(1.0, abs(float(expected)), abs(float(exact))) + 1e-15 * max(map(abs, inputs))
            for found in (single[position], together[position][0]):
                assert abs(float(inputs[position] * mpf(float(found)) - expected)) <= bar, (inputs, position, found)


def derivative(name: str, inputs: tuple[Any, ...], position: int) -> Any:
    """By a central difference so narrow that 60 digits hold 20 of it."""
    width = abs(mpf(inputs[position])) * mpf(10) ** -30
    above, below = ([*map(exactly, inputs)] for _ in range(2))
    above[position] += width
    below[position] -= width
    return (EXACT[name](*above) - EXACT[name](*below)) / (2 * width)


@pytest.mark.parametrize("name", VECTORS)
def test_vector_densities_at_the_corners(name: str) -> None:
    record, rng = record_of(name), np.random.default_rng(3)
    formula, arguments = VECTORS[name]
    for args in arguments(rng):
        given = tuple(freeze(np.asarray(x, dtype=np.float64)) if np.ndim(x) else x for x in args)
        value = record.simulate(rng, *given)
        if not math.isfinite(single := record.log_density(value, *given)):
            continue
        exact = formula(value, *given)
        bar = 1e-9 * max(1.0, abs(float(exact)))
        assert abs(float(mpf(single) - exact)) <= bar, (value, args, single, float(exact))
        if record.log_density_columns is not None:
            lifted = (True, *(False for _ in args))
            together = record.log_density_columns(lifted, np.array([value, value]), *given)[1]
            assert abs(float(mpf(float(together)) - exact)) <= bar, (value, args, together, float(exact))


def test_counts_far_beyond_what_is_expected_find_their_rate() -> None:
    """A deviance of -inf, where the density is finite, would not tell the two rates apart."""
    poisson = record_of("poisson").log_density
    assert math.isclose(poisson(2000, 1.0005e-10) - poisson(2000, 1e-10), 2000 * math.log(1.0005), rel_tol=1e-6)
    assert mp.dps >= 60


@pytest.mark.thorough
def test_counts_in_far_tails_choose_between_rates() -> None:
    """P(b) is 1 / (1 + 1.0005^2000 exp(-5e-11)); of 4,000 exact draws 5 standard errors are 0.035: 6e-7."""
    v = Venture(seed=1)
    v.execute("[assume b (flip 0.5)] [observe (poisson (if b 1e-10 1.0005e-10)) 2000]")
    draws = v.infer("(repeat 4000 (do (gibbs default one 1) (collect b)))")
    assert abs(np.mean(draws["b"]) - 1 / (1 + 1.0005**2000)) < 0.035


def test_a_rate_far_below_its_count_finds_its_posterior() -> None:
    """The log rate given 1,000 events and a prior around -60 has mean 6.838 and sd 0.033, by quadrature."""
    v = Venture(seed=1)
    v.execute("[assume w (normal -60 1)] [observe (poisson (exp w)) 1000]")
    v.infer("(slice default one 1 20 30)")
    draws = v.infer("(repeat 500 (do (slice default one 0.1 20 1) (collect w)))")
    assert abs(np.mean(draws["w"]) - 6.838) < 0.02
