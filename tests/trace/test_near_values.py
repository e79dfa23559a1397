"""Which values that are computed in two ways are the same but for rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from venture_lite.interpreter.answers import is_near
from venture_lite.procedures.functions.covariances import Covariance, Mean
from venture_lite.values import Dictionary, Distribution, Symbol

MADE: dict[str, Callable[[float], Any]] = {
    "number": lambda x: x,
    "list": lambda x: (1, (x, "a")),
    "vector": lambda x: np.array([0.0, x]),
    "value of a dictionary": lambda x: Dictionary([("a", x), ("b", 1)]),
    "key of a dictionary": lambda x: Dictionary([(x, 1)]),
    "probabilities": lambda x: Distribution([(True, 0.0), (False, x)]),
    "values of a distribution": lambda x: Distribution([(x, 0.0)]),
    "covariance": lambda x: Covariance(
        "gp_sum", (Covariance("gp_periodic", (0.9, 1.0, x)), Covariance("gp_noise", (1,)))
    ),
    "mean": lambda x: Mean("gp_linear_mean", ((x, 1.0), 0.0)),
}


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in MADE.items()])
def test_what_values_are_made_of_may_be_rounded(make: Callable[[float], Any]) -> None:
    x = 2.4825777280150003
    assert is_near(make(x), make(x * (1 + 1e-15)))
    assert not is_near(make(x), make(x * (1 + 1e-3)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1.0, 2.0), np.array([1.0, 2.0])),
        (True, 1),
        (Symbol("red"), Symbol("blue")),
        (Dictionary([("a", 1.0)]), Dictionary([("a", 1.0), ("b", 2.0)])),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (Covariance("gp_se", (1.0, 2.0)), Covariance("gp_matern", (1.0, 2.0))),
    ],
)  # fmt: skip
def test_others_are_not_the_same(one: Any, other: Any) -> None:
    assert not is_near(one, other)
    assert not is_near(other, one)
