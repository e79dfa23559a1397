"""Which kind of value something is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.procedures.domains import ANY, INTEGER
from venture_lite.procedures.pullbacks import LOCALLY_CONSTANT
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import Dictionary, Symbol, is_number


def is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def is_symbol(value: Any) -> bool:
    return isinstance(value, Symbol)


def is_string(value: Any) -> bool:
    return isinstance(value, str)


def is_list(value: Any) -> bool:
    return isinstance(value, tuple)


def is_vector(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1


def is_matrix(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 2


def is_dict(value: Any) -> bool:
    return isinstance(value, Dictionary)


_VALUE = (Argument("value", ANY),)


def _kind(name: str, summary: str, test: Callable[[Any], bool]) -> Deterministic:
    return Deterministic(name, _VALUE, summary, test, total=True, pullback=LOCALLY_CONSTANT)


RECORDS = (
    _kind("is_number", "Whether it is a number; booleans count as 0 and 1.", is_number),
    _kind("is_boolean", "Whether the value is true or false.", is_boolean),
    _kind("is_symbol", "Whether the value is a symbol.", is_symbol),
    _kind("is_string", "Whether the value is a string.", is_string),
    _kind("is_list", "Whether the value is a list, also an empty one.", is_list),
    _kind("is_vector", "Whether the value is a vector.", is_vector),
    _kind("is_matrix", "Whether the value is a matrix.", is_matrix),
    _kind("is_dict", "Whether the value is a dictionary.", is_dict),
    Deterministic("is_integer", _VALUE, "Whether the value is a whole number; 2.0 is.", INTEGER.contains, total=True),
)
