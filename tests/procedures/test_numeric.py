"""A function written over the numeric names is bound to others; what only looks like one of them is left alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from venture_lite.procedures.numeric import exp, log, on_columns, rebound


class Register:
    log = "an attribute"

    def exp(self) -> str:
        return "a method"


def spread(register: Any, x: Any) -> Any:
    return register.log, register.exp(), exp(x)


def attributes_alone(register: Any) -> Any:
    return register.log, register.exp()


def plain(x: Any) -> Any:
    return log(exp(x))


def test_a_global_name_is_bound_anew() -> None:
    assert plain(2.0) == 2.0
    assert np.array_equal(on_columns(plain)(np.array([1.0, 2.0])), [1.0, 2.0])


def test_an_attribute_of_the_same_name_is_not() -> None:
    bound = rebound(spread, {"exp": math.floor, "log": None})
    assert bound(Register(), 2.5) == ("an attribute", "a method", 2)
    assert "log" not in bound.__globals__ or bound.__globals__["log"] is log
    assert rebound(attributes_alone, {"exp": None, "log": None}).__globals__["exp"] is exp
