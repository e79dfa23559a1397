"""The brightness table against sets, the jumps over dark rows, and the numbers that decide who is bright."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.statistics import THRESHOLD
from venture_lite.engines.firefly.brightness import Brightness, chosen
from venture_lite.engines.firefly.firefly_bounds import bright_probability, log_excess


def test_the_table_keeps_two_sets() -> None:
    rng = np.random.default_rng(0)
    bright = set(np.flatnonzero(rng.random(40) < 0.3).tolist())
    table = Brightness(np.isin(np.arange(40), list(bright)))
    for _ in range(300):
        lit = rng.choice(table.dark, rng.integers(0, len(table.dark) + 1), replace=False)
        table.brighten(lit)
        bright |= set(lit.tolist())
        assert set(table.bright.tolist()) == bright
        put_out = rng.choice(table.bright, rng.integers(0, len(table.bright) + 1), replace=False)
        table.darken(put_out)
        bright -= set(put_out.tolist())
        assert set(table.bright.tolist()) == bright
        assert set(table.dark.tolist()) == set(range(40)) - bright
        assert set(np.flatnonzero(table.is_bright(np.arange(40))).tolist()) == bright


@pytest.mark.thorough
@pytest.mark.parametrize("probability", [0.003, 0.4, 1.0])
def test_jumps_are_independent_coins(probability: float) -> None:
    """Each position's frequency and the number's variance (false alarms: 12 normal statistics at 5.5 sds, 5e-7)."""
    rng, count, times = np.random.default_rng(1), 500, 4000
    found = [chosen(rng, count, probability) for _ in range(times)]
    assert all((np.diff(positions) > 0).all() for positions in found)
    frequencies = np.bincount(np.concatenate(found), minlength=count).reshape(10, 50).mean(axis=1) / times
    sd = math.sqrt(probability * (1 - probability) / (50 * times))
    assert np.abs(frequencies - probability).max() <= THRESHOLD * sd
    sizes = np.array([len(positions) for positions in found])
    variance = count * probability * (1 - probability)
    # the variance of a sample variance is nearly 2 / times, a little more for small means
    assert abs(sizes.var() - variance) <= THRESHOLD * variance * math.sqrt(2.8 / times)


def test_no_positions_no_jumps() -> None:
    assert len(chosen(np.random.default_rng(0), 0, 0.5)) == 0


@pytest.mark.parametrize("gap", [1e-13, 1e-9, 1e-3, 1.0, 40.0, 1e4])
def test_small_and_large_gaps_keep_their_digits(gap: float) -> None:
    """Against log(expm1(gap)) = gap + log1p(-exp(-gap)) = log(gap) + gap / 2 + gap^2 / 24 - ..."""
    expected = gap + math.log1p(-math.exp(-gap)) if gap > 0.1 else math.log(gap) + gap / 2 + gap * gap / 24
    assert log_excess(np.array([gap]))[0] == pytest.approx(expected, rel=1e-14, abs=1e-14)
    assert bright_probability(log_excess(np.array([gap])))[0] == pytest.approx(-math.expm1(-gap), rel=2e-14)


def test_rounding_is_dark() -> None:
    gaps = np.array([-1e-10, -1e-17, 0.0, 1e-15])
    assert (log_excess(gaps) == -math.inf).all()
    assert (bright_probability(log_excess(gaps)) == 0.0).all()
