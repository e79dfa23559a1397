"""Which kind of value something is."""

from __future__ import annotations

from typing import Any

import numpy as np

from venture_lite.procedures.domains import ANY, INTEGER
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import Symbol, is_number


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


_VALUE = (Argument("value", ANY),)

RECORDS = (
    Deterministic("is_number", _VALUE, "Whether it is a number; booleans count as 0 and 1.", is_number, total=True),
    Deterministic("is_boolean", _VALUE, "Whether the value is true or false.", is_boolean, total=True),
    Deterministic("is_symbol", _VALUE, "Whether the value is a symbol.", is_symbol, total=True),
    Deterministic("is_string", _VALUE, "Whether the value is a string.", is_string, total=True),
    Deterministic("is_list", _VALUE, "Whether the value is a list, also an empty one.", is_list, total=True),
    Deterministic("is_vector", _VALUE, "Whether the value is a vector.", is_vector, total=True),
    Deterministic("is_matrix", _VALUE, "Whether the value is a matrix.", is_matrix, total=True),
    Deterministic("is_integer", _VALUE, "Whether the value is a whole number; 2.0 is.", INTEGER.contains, total=True),
)  # fmt: skip
