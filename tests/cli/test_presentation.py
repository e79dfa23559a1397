"""Values as a person reads them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from venture_lite.draws.presentation import duration, present
from venture_lite.values import Symbol


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3, "3"),
        (3.0, "3"),
        (-0.0, "0"),
        (1234567.0, "1234567"),
        (1e20, "1e+20"),
        (1 / 3, "0.333333"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (True, "true"),
        (np.float64(0.25), "0.25"),
        (Symbol("red"), "red"),
        ("red", "red"),
        ([], "()"),
        ([1, 0.5, [True, "a"]], "(1 0.5 (true a))"),
        (np.array([1.0, 1 / 3]), "[1 0.3333]"),
        (np.array([]), "[]"),
        (np.zeros((0, 3)), "(0 x 3 numbers)"),
        ({"a": 1, "b": [2]}, "{a: 1, b: (2)}"),
        ([[[[[[[1]]]]]]], "((((((...))))))"),
    ],
)
def test_a_value_is_rounded_and_short(value: Any, shown: str) -> None:
    assert present(value) == shown


def test_what_is_long_is_cut_with_its_size() -> None:
    assert present(list(range(1000))) == "(0 1 2 3 4 5 6 7 ... 997 998 999) (1,000 items)"
    assert present(np.arange(1000.0)) == "[0 1 2 3 4 5 6 7 ... 997 998 999] (1,000 numbers)"
    assert present("x" * 5000).endswith("x... (5,000 characters)")
    assert present({key: key for key in range(50)}).endswith("7: 7, ...} (50 keys)")


@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    rng = np.random.default_rng(1)
    for value in (rng.normal(size=500), rng.normal(size=(40, 40)) * 1e6, rng.normal(size=(3, 500)), list(range(9999))):
        assert max(map(len, present(value, width).splitlines())) <= width + len(" (40 x 40)")


def test_a_matrix_is_aligned() -> None:
    assert present(np.array([[1.0, -0.5], [100.25, 2.0]])) == "[[    1  -0.5]\n [100.2     2]]"


def test_a_large_matrix_keeps_its_corners() -> None:
    lines = present(np.arange(10_000.0).reshape(100, 100)).splitlines()
    assert len(lines) == 12
    assert lines[0].startswith("[[   0     1")
    assert lines[-1].endswith("9999]] (100 x 100)")


def test_a_small_sequence_is_never_cut_in_its_middle() -> None:
    assert present([1] * 11) == "(" + " ".join("1" * 11) + ")"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0123, "0.012 s"), (9.94, "9.9 s"), (9.96, "10 s"), (1249.6, "1,250 s")]
)
def test_durations_have_no_exponents(seconds: float, text: str) -> None:
    assert duration(seconds) == text
