"""Strings: taking apart, joining, and to and from other values. Lists lend them size, lookup, append and contains."""

from __future__ import annotations

import math
from typing import Any

from venture_lite.errors import ArgumentError
from venture_lite.procedures.domains import ANY, COUNT, LIST, STRING, SYMBOL_OR_STRING
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.values import Symbol, show, written


def substring(text: Any, start: Any, stop: Any = None) -> str:
    given: str = STRING.checked("substring", "text", text)
    size = len(given)
    stop = size if stop is None else stop
    if not (COUNT.contains(start) and COUNT.contains(stop) and start <= stop <= size):
        raise ArgumentError(
            f"substring: from {show(start)} up to {show(stop)} is no part of a string of {size} characters"
        )
    return given[int(start) : int(stop)]


def split(text: Any, separator: Any = None) -> tuple[str, ...]:
    if separator is not None and not STRING.checked("split", "separator", separator):
        raise ArgumentError("split: separator must not be empty; to_list gives the characters")
    return tuple(STRING.checked("split", "text", text).split(separator))


def join(texts: Any, separator: Any = "") -> str:
    if not (isinstance(texts, tuple) and all(map(STRING.contains, texts))):
        raise ArgumentError(f"join: texts must be a list of strings, got {show(texts)}")
    between: str = STRING.checked("join", "separator", separator)
    return between.join(texts)


def to_string(value: Any) -> str:
    if isinstance(value, Symbol):
        return value.name
    return value if isinstance(value, str) else written(value)


def to_number(text: Any) -> float:
    given = STRING.checked("to_number", "text", text).strip()
    for kind in (int, float):
        try:
            number = kind(given)
        except ValueError:
            continue
        if not math.isnan(number) and "_" not in given:
            return number if isinstance(number, float) or -(2**63) <= number < 2**63 else float(number)
    raise ArgumentError(f"to_number: {show(text)} is not a number")


def to_symbol(text: Any) -> Symbol:
    return text if isinstance(text, Symbol) else Symbol(STRING.checked("to_symbol", "text", text))


_TEXT = Argument("text", STRING)

RECORDS = (
    Deterministic("substring", (_TEXT, Argument("start", COUNT), Argument("stop", COUNT, None)),
                  "The characters from start up to, not including, stop; to the end without one.", substring),
    Deterministic("split", (_TEXT, Argument("separator", STRING, None)),
                  "The parts of a string between the separators, or between white space, as a list.", split),
    Deterministic("join", (Argument("texts", LIST), Argument("separator", STRING, "")),
                  "A list of strings as one, with the separator between them.", join),
    Deterministic("to_string", (Argument("value", ANY),),
                  "A string as it is, a symbol's name, and any other value as it is written in a program.", to_string),
    Deterministic("to_number", (_TEXT,), "The number that a string is, white space around it aside.", to_number),
    Deterministic("to_symbol", (Argument("text", SYMBOL_OR_STRING),), "The symbol of a name.", to_symbol),
)  # fmt: skip
