"""What stops a program that never ends, what a user's own procedure may do wrong, and what is only a warning."""

from __future__ import annotations

import math
import warnings
from typing import Any

import pytest

from venture_lite import Venture, VentureWarning
from venture_lite.errors import ArgumentError, KernelError, LimitError, VentureError


def test_a_recursion_far_deeper_than_the_host_allows_ends() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume (count n) (if (= n 0) 0 (+ 1 (count (- n 1))))]")
    assert venture.sample("(count 50000)") == 50000


def test_unbounded_recursion_within_inference_leaves_the_trace_as_it_was() -> None:
    venture = Venture(seed=1, nested_calls=2000)
    venture.execute("""
        [assume z (flip 0.001)] [assume (h i) (if z (h i) 3)] [assume q (+ 1 (h 1))]
        [observe (normal (if z 100 0) 1) 100]""")
    before = venture.log_score()
    with pytest.raises(LimitError, match="2,000 nested calls") as caught:
        venture.infer("(mh default all 100000)")
    assert "in (mh default all 100000)" in str(caught.value)
    assert venture.log_score() == before
    assert venture.report("q") == 4


def test_memory_is_bounded_by_an_option() -> None:
    venture = Venture(seed=1, memory_mb=1)
    venture.execute("[assume (h i) (pair i (h (+ i 1)))]")
    with pytest.raises(LimitError, match="memory_mb"):
        venture.execute("[predict (h 1)]")
    assert len(venture.list_directives()) == 1


@pytest.mark.parametrize(
    ("density", "says"),
    [
        (lambda value, x: math.nan, "nan"),
        (lambda value, x: "high", "'high'"),
        (lambda value, x: math.inf, "inf"),
        (lambda value, x: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_density_that_is_no_number_is_an_error_of_the_call(density: Any, says: str) -> None:
    venture = Venture(seed=1)
    venture.register("mine", simulate=lambda rng, x: 1.0, log_density=density)
    venture.execute("[assume a (mine 1)]")
    with pytest.raises(ArgumentError, match="mine: its log_density") as caught:
        venture.execute("[observe (mine 2) 1.0]")
    assert says in str(caught.value)
    assert str(caught.value).startswith("<input>:1:10")
    assert len(venture.list_directives()) == 1


def test_a_simulation_that_is_no_value_is_an_error_of_the_call() -> None:
    venture = Venture(seed=1)
    venture.register("mine", simulate=lambda rng: {1, 2}, log_density=lambda value: 0.0)
    with pytest.raises(ArgumentError, match="mine: its simulate"):
        venture.execute("[assume a (mine)]")
    assert venture.list_directives() == []


def test_a_procedure_of_the_language_is_not_registered_anew() -> None:
    with pytest.raises(ArgumentError, match="normal"):
        Venture(seed=1).register("normal", simulate=lambda rng: 1.0, log_density=lambda value: 0.0)


def test_a_procedure_registered_again_is_the_new_one_in_text_that_follows() -> None:
    venture = Venture(seed=1)
    for value in (1.0, 2.0):
        venture.register("mine", simulate=lambda rng, value=value: value, log_density=lambda value: 0.0)
        assert venture.sample("(mine)") == value


# -------------------------------------------------------------------------------------------- probability zero


def test_a_value_impossible_in_the_present_state_alone_loads_and_is_warned_of() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume s (uniform_continuous 0 1)] [force s 0.5]")
    (density,) = venture.execute("[observe (uniform_continuous 0 s) 0.9]")
    assert density == -math.inf
    with pytest.warns(
        VentureWarning, match=r"probability zero: <input>:1:10: \(uniform_continuous 0 s\) cannot be 0.9"
    ):
        venture.infer("(mh default all 0)")
    with warnings.catch_warnings():
        warnings.simplefilter("error", VentureWarning)
        venture.infer("(mh default all 500)")
    assert venture.report("s") > 0.9


# --------------------------------------------------------------------------------- scopes and blocks that are empty


@pytest.mark.parametrize(
    "action",
    [
        "(mh nothing one 3)",
        "(mh nothing each 3)",
        "(mh nothing 'red 3)",
        "(mh s 7 3)",
        "(mh default red 3)",
        "(mh default (ordered_range 1 2) 3)",
        "(gibbs nothing all 3)",
        "(gibbs s 7 3)",
        "(mh nothing all 'drift 1 3)",
        "(mh default red 'drift 1 3)",
        "(repeat 5 (do (mh nothing all 2) (mh default one 1)))",
    ],
)
@pytest.mark.parametrize("chains", [1, 2])
def test_an_empty_scope_or_a_missing_block_is_one_warning(action: str, chains: int) -> None:
    venture = Venture(seed=1, chains=chains)
    venture.execute("[assume x (scope_include 's 1 (flip))]")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        venture.infer(action)
    assert len(told) == 1
    assert "nothing is moved" in str(told[0].message)


def test_a_choice_that_a_kernel_cannot_move_ends_it_when_it_appears() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume z (flip)] [force z false] [assume x (if z (scope_include 'r 1 (flip)) 0)]")
    venture.execute("[assume y (scope_include 'r 2 (normal 0 1))]")
    with pytest.raises(KernelError, match="drift"):
        venture.infer("(repeat 100 (do (mh r each 'drift 1 1) (mh default one 1)))")
    assert venture.report("x") in (0, True, False)


def test_draws_made_before_an_error_are_kept() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume x (normal 0 1)]")
    with pytest.raises(VentureError) as caught:
        venture.infer("(repeat 3 (do (mh default one 1) (collect x) (collect (normal 0 (- 0 1)))))")
    assert caught.value.draws["x"].shape == (1, 1)  # type: ignore[attr-defined]
