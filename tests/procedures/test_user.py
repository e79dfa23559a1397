"""Procedures registered from Python: their results are checked, and errors name the procedure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from venture_lite.errors import ArgumentError
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.domains import POSITIVE
from venture_lite.procedures.record import Argument
from venture_lite.procedures.user import user_random

RNG = np.random.default_rng(1)


def triangular(**changed: Any) -> Any:
    given: dict[str, Any] = {
        "simulate": lambda rng, width: np.float64(width * (rng.random() + rng.random() - 1.0)),
        "log_density": lambda value, width: math.log(1 - abs(value) / width) if abs(value) < width else -math.inf,
    }
    return user_random("triangular", **{**given, **changed})


def test_a_registered_procedure_is_a_record_like_any_other() -> None:
    record = triangular(arguments=[Argument("width", POSITIVE)])
    assert type(record.simulate(RNG, 2.0)) is float
    assert record.log_density(0, 2.0) == 0.0
    with pytest.raises(ArgumentError, match="triangular: width must be a positive number, got -1"):
        check_arguments(record, (-1,))


def test_arguments_are_read_from_the_density() -> None:
    record = triangular(log_density=lambda value, width, shift=0.5: 0.0)
    assert [argument.name for argument in record.arguments] == ["width", "shift"]
    assert check_arguments(record, (3,)) == (3, 0.5)


@pytest.mark.parametrize("result", [math.nan, math.inf, "text", None, np.zeros(2), True, np.nan])
def test_a_density_that_is_no_number_is_an_error(result: Any) -> None:
    with pytest.raises(ArgumentError, match="triangular: its log_density returned"):
        triangular(log_density=lambda value, width: result).log_density(0.0, 1.0)


@pytest.mark.parametrize("result", [0, -1.5, np.float64(2.0), np.zeros(()), -math.inf])
def test_numbers_of_any_kind_are_densities(result: Any) -> None:
    assert triangular(log_density=lambda value, width: result).log_density(0.0, 1.0) == float(result)


@pytest.mark.parametrize("result", [math.nan, None, {}, np.array([1.0, math.nan]), [1, math.nan], object()])
def test_a_draw_that_is_no_value_is_an_error(result: Any) -> None:
    with pytest.raises(ArgumentError, match="triangular: its simulate returned"):
        triangular(simulate=lambda rng, width: result).simulate(RNG, 1.0)


def test_an_exception_is_named_and_kept_as_the_cause() -> None:
    with pytest.raises(ArgumentError, match="triangular: its log_density raised ZeroDivisionError") as caught:
        triangular(log_density=lambda value, width: 1 / 0).log_density(0.0, 1.0)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_arrays_are_copied_and_frozen() -> None:
    shared = np.zeros(2)
    drawn = triangular(simulate=lambda rng, width: shared).simulate(RNG, 1.0)
    shared[0] = 1.0
    assert drawn[0] == 0.0
    assert not drawn.flags.writeable


def test_a_support_is_a_list_of_values() -> None:
    assert triangular(support=lambda width: np.arange(3)).support(1.0) == (0, 1, 2)
    with pytest.raises(ArgumentError, match="its support returned 3, not a list"):
        triangular(support=lambda width: 3).support(1.0)
