"""What networks read of inputs of any magnitude."""

from __future__ import annotations

import numpy as np
import pytest

from venture_lite.errors import ParameterError
from venture_lite.networks.standardisation import CLIP, Standardisation


def cauchy(count: int) -> np.ndarray:
    return np.random.default_rng(1).standard_cauchy((count, 3))


def test_training_inputs_have_mean_0_and_sd_1() -> None:
    inputs = np.random.default_rng(1).standard_normal((2000, 3)) + 7.0
    read, clipped = Standardisation.of(("a", "b", "c"), inputs)(inputs)
    assert clipped == 0
    assert np.allclose(read.mean(axis=0), 0.0, atol=1e-12)
    assert np.allclose(read.std(axis=0), 1.0)


def test_constant_inputs_are_dropped_and_known() -> None:
    inputs = cauchy(100)
    inputs[:, 1] = 0.1
    standard = Standardisation.of(("a", "b", "c"), inputs)
    assert standard.dropped == ("b",)
    assert standard.width == 2
    expected = Standardisation.of(("a", "c"), inputs[:, [0, 2]])(inputs[:, [0, 2]])[0]
    assert np.allclose(standard(inputs)[0], expected)


def test_without_rows_all_inputs_are_dropped() -> None:
    assert Standardisation.of(("a", "b"), np.empty((0, 2))).dropped == ("a", "b")


def test_there_may_be_no_inputs() -> None:
    assert Standardisation.of((), np.empty((5, 0)))(np.empty((2, 0)))[0].shape == (2, 0)


def test_what_lies_far_out_is_clipped_and_counted() -> None:
    standard = Standardisation.of(("a", "b", "c"), cauchy(100))
    read, clipped = standard(np.array([1e300, 0.0, -1e300]))
    assert clipped == 2
    assert (read[0], read[2]) == (CLIP, -CLIP)
    # many inputs, all inside
    assert standard(cauchy(50))[1] == 0


@pytest.mark.filterwarnings("error")
def test_an_input_that_is_no_number_is_refused_by_name() -> None:
    inputs = cauchy(100)
    standard = Standardisation.of(("a", "b", "c"), inputs)
    inputs[3, 1] = np.nan
    for refuses in (standard, lambda rows: standard(rows[3]), lambda rows: Standardisation.of(("a", "b", "c"), rows)):
        with pytest.raises(ParameterError, match="input b is not a number"):
            refuses(inputs)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("far", [np.inf, -np.inf])
def test_an_infinite_input_is_clipped(far: float) -> None:
    inputs = cauchy(100)
    standard = Standardisation.of(("a", "b", "c"), inputs)
    inputs[3, 1] = far
    read, clipped = standard(inputs[3])
    assert (abs(read[1]), clipped) == (CLIP, 1)
    learned = Standardisation.of(("a", "b", "c"), inputs)
    assert np.isfinite(learned.mean).all()
    assert standard(inputs)[1] == 1


def test_a_dropped_input_may_be_anything() -> None:
    inputs = cauchy(100)
    inputs[:, 1] = 0.1
    standard = Standardisation.of(("a", "b", "c"), inputs)
    assert standard(np.array([1.0, np.nan, 1.0]))[1] == 0
    with pytest.raises(ParameterError, match="input c "):
        standard(np.array([1.0, np.nan, np.nan]))


def test_arrays_give_it_back() -> None:
    inputs = cauchy(100)
    standard = Standardisation.of(("a", "b", "c"), inputs)
    again = Standardisation.from_arrays(standard.names, *standard.arrays())
    assert (again(inputs)[0] == standard(inputs)[0]).all()
    kept, mean, sd = standard.arrays()
    for broken in ((kept + 1, mean, sd), (kept, mean[1:], sd), (kept, mean, 0.0 * sd), (mean, mean, sd)):
        with pytest.raises(ValueError, match="standardisation"):
            Standardisation.from_arrays(standard.names, *broken)
