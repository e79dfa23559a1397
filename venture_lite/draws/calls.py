"""Variables that are calls, `(theta 3)`, by the names that other systems would give them: `theta(3)`, and `theta` for
those of all keys 1 to n together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

CALL = re.compile(r"([^\s()]+)\((.+)\)")
KEYED = re.compile(r"\((\S+) (\d+)\)")
WRITTEN = re.compile(r"""\(([^\s()]+)((?: (?:-?[\d.][\d.e+-]*|true|false|"[^"]*"|'[^\s()]+))+)\)""")
"""A call whose arguments are constants."""
FEW = 3
"""So many calls of one procedure are named each."""


def as_collected(name: str) -> str:
    """`theta(1, 2)` as a program collects it, `(theta 1 2)`; any other name as it is."""
    found = CALL.fullmatch(name)
    return name if found is None else f"({found[1]} {' '.join(part.strip() for part in found[2].split(','))})"


def calls_of(name: str, names: Sequence[str]) -> list[str]:
    """The variables `(name 1)` to `(name n)`, in this order, where these are all the calls of a name that have one key,
    and there is one at least; else none."""
    keys = {int(found[2]): each for each in names if (found := KEYED.fullmatch(each)) is not None and found[1] == name}
    calls = [each for each in names if each.startswith(f"({name} ")]
    return [keys[key] for key in sorted(keys)] if sorted(keys) == list(range(1, len(calls) + 1)) else []


def procedure_of(name: str) -> str | None:
    """Of a call with constant arguments, as a memoized procedure's are collected, the procedure; else None."""
    found = WRITTEN.fullmatch(name)
    return None if found is None else found[1]


def by_procedure(names: Sequence[str]) -> list[str]:
    """Names for a person: many calls of one procedure as one, `(z 1) ... (z 95) (95 calls of z)`."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(procedure_of(name) or f" {name}", []).append(name)
    found = []
    for procedure, calls in groups.items():
        many = len(calls) > FEW and not procedure.startswith(" ")
        found += [f"{calls[0]} ... {calls[-1]} ({len(calls):,} calls of {procedure})"] if many else calls
    return found
