"""Procedures registered from Python: their results are checked, and errors name the procedure."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import pytest

from venture_lite.errors import ArgumentError
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.domains import POSITIVE
from venture_lite.procedures.record import Argument
from venture_lite.procedures.registered.procedures import user_random
from venture_lite.procedures.registered.value_domains import value_domain

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


@pytest.mark.parametrize("result", [math.nan, None, {1}, np.array([1.0, math.nan]), [1, math.nan], object()])
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


# ---------------------------------------------------------------------------------------------- arguments, gradient


@pytest.mark.parametrize(
    "arguments", [["width"], {"width": "positive"}, {"width": (0, 9)}, {"width": float}, [Argument("width", POSITIVE)]]
)
def test_arguments_are_named_in_several_ways(arguments: Any) -> None:
    record = triangular(arguments=arguments)
    assert [argument.name for argument in record.arguments] == ["width"]
    assert check_arguments(record, (3.0,)) == (3.0,)


def test_a_hint_that_names_nothing_here_says_nothing() -> None:
    def log_density(value: Any, width: "Unheard") -> float:  # type: ignore[name-defined]  # noqa: F821, UP037
        return 0.0

    assert check_arguments(triangular(log_density=log_density), ("any",)) == ("any",)


@pytest.mark.parametrize("hint", [float | None, Annotated[float | None, "real"], Any, list[float], Annotated[int, 7]])
def test_hints_of_every_form_are_read(hint: Any) -> None:
    def log_density(value, a):  # type: ignore[no-untyped-def]
        return 0.0

    log_density.__annotations__ = {"a": hint}
    assert triangular(log_density=log_density).arguments[0].domain.contains((1.0,) if hint == list[float] else 1)


def square(value: Any, width: Any) -> Any:
    return -((value / width) ** 2)


def with_gradient(**changed: Any) -> Any:
    given = {
        "log_density": square,
        "gradient": {"value": lambda v, w: -2 * v / w**2, "width": lambda v, w: 2 * v**2 / w**3},
        "gradient_columns": {"width": lambda v, w: 2 * v**2 / w**3},
    }
    return triangular(**{**given, **changed})


def test_a_gradient_is_asked_for_what_is_wanted() -> None:
    gradient = with_gradient().gradient
    assert gradient.exists == (True, True)
    assert gradient.evaluate((False, False), (True, True), 3.0, 2.0) == (-1.5, 2.25)
    assert gradient.evaluate((False, False), (False, True), 3.0, 2.0) == (None, 2.25)
    assert with_gradient(gradient={"value": square}, gradient_columns={}).gradient.exists == (True, False)


def test_a_gradient_over_rows_has_the_shape_of_what_it_is_taken_in() -> None:
    gradient = with_gradient().gradient
    values, widths = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    _, apart = gradient.evaluate((True, True), (False, True), values, widths)
    assert apart.tolist() == (2 * values**2 / widths**3).tolist()
    _, together = gradient.evaluate((True, False), (False, True), values, 2.0)
    assert together == pytest.approx(2 * (values**2).sum() / 8)
    with pytest.raises(RowByRow):
        gradient.evaluate((True, False), (True, False), values, 2.0)


@pytest.mark.parametrize("result", [math.nan, np.zeros(2), "steep", None])
def test_a_gradient_that_is_wrong_names_the_procedure(result: Any) -> None:
    gradient = with_gradient(gradient={"value": lambda v, w: result}, gradient_columns={}).gradient
    with pytest.raises(ArgumentError, match="triangular: its gradient in value returned"):
        gradient.evaluate((False, False), (True, False), 3.0, 2.0)


@pytest.mark.thorough
@pytest.mark.parametrize("given", [{1: 2}.keys(), "ab", {}, iter(int, 1), [[math.nan]]])
def test_a_support_that_is_no_list_of_values_is_an_error(given: Any) -> None:
    with pytest.raises(ArgumentError, match="triangular: its support"):
        triangular(support=lambda width: (x for x in [math.nan]) if given == {1: 2}.keys() else given).support(1.0)


def test_bounds_on_one_side_are_walked_in_the_logarithm_of_the_distance() -> None:
    for domain, inside in (((2.0, math.inf), 3.5), ((-math.inf, 2.0), -3.5)):
        within: Any = value_domain("f", domain)
        transform = within.transform
        for value in (inside, np.array([inside, inside - 1e-3])):
            free = transform.to_free(value, ())
            assert np.allclose(transform.from_free(free, ()), value)
            step = 1e-6
            slope = (transform.from_free(free + step, ()) - transform.from_free(free - step, ())) / (2 * step)
            assert transform.log_jacobian(value, ()) == pytest.approx(float(np.log(np.abs(slope)).sum()), abs=1e-6)
        assert within.contains(transform.from_free(-800.0, ()))
