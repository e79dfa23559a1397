"""Which kind of value something is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures.domains import ANY, INTEGER
from venture_lite.procedures.pullbacks import LOCALLY_CONSTANT
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import Dictionary, Symbol, is_number

_VALUE = (Argument("value", ANY),)


def _of_kind(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kind)


def _of_dimensions(count: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, np.ndarray) and value.ndim == count


def _test(name: str, summary: str, test: Callable[[Any], bool]) -> Deterministic:
    return Deterministic(name, _VALUE, summary, test, total=True, pullback=LOCALLY_CONSTANT)


RECORDS = (
    _test("is_number", "Whether it is a number; booleans count as 0 and 1.", is_number),
    _test("is_boolean", "Whether the value is true or false.", _of_kind(bool)),
    _test("is_symbol", "Whether the value is a symbol.", _of_kind(Symbol)),
    _test("is_string", "Whether the value is a string.", _of_kind(str)),
    _test("is_list", "Whether the value is a list, also an empty one.", _of_kind(tuple)),
    _test("is_vector", "Whether the value is a vector.", _of_dimensions(1)),
    _test("is_matrix", "Whether the value is a matrix.", _of_dimensions(2)),
    _test("is_dict", "Whether the value is a dictionary.", _of_kind(Dictionary)),
    Deterministic("is_integer", _VALUE, "Whether the value is a whole number; 2.0 is.", INTEGER.contains, total=True),
)
