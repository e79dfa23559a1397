"""Reads a program's text for the interpreters of the tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

TOKEN = re.compile(r"""[;#][^\n]*|"[^"]*"|['()\[\]]|\{(?:[^{}]|\{[^{}]*\})*\}|[^\s()\[\]'"]+""")


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    text: str


def parse(text: str) -> list[Any]:
    """Directives and expressions as nested lists of names, numbers, booleans, `Text` and lists."""
    stack: list[list[Any]] = [[]]
    quotes: list[int] = []
    for token in TOKEN.findall(text):
        if token[0] in ";#":
            continue
        if token == "'":
            quotes.append(len(stack))
            stack.append(["quote"])
            continue
        if token in "([":
            stack.append([])
            continue
        item = stack.pop() if token in ")]" else atom(token)
        stack[-1].append(item)
        while quotes and quotes[-1] == len(stack) - 1:
            quotes.pop()
            item = stack.pop()
            stack[-1].append(item)
    return stack[0]


def atom(token: str) -> Any:
    if token in ("true", "false"):
        return token == "true"
    if token[0] == '"':
        return Text(token[1:-1])
    for kind in (int, float):
        try:
            return kind(token)
        except ValueError:
            continue
    return token
