"""Every case once more with an alias in the place of each of its names: the same draws, the same decisions."""

from __future__ import annotations

import re
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.posterior.case import Case
from tests.posterior.cases import CASES

DRAWS = 8
ASSUME = re.compile(r"\[assume\s+\(?\s*([^\s()\[\]]+)")


def end_of(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "[(") - (text[at] in ")]")
        if depth == 0:
            return at + 1
    raise AssertionError("brackets do not match")


def renamed(text: str, names: list[str]) -> str:
    for name in names:
        text = re.sub(rf"(?<![^\s()\[\]]){re.escape(name)}(?![^\s()\[\]])", f"{name}_alias", text)
    return text


def with_aliases(program: str) -> tuple[str, list[str]]:
    """The program with `[assume x_alias x]` behind each assume of x and the alias wherever x is read later."""
    made, names, at = [], [], 0
    for match in ASSUME.finditer(program):
        end, name = end_of(program, match.start()), match.group(1)
        made.append(renamed(program[at : match.start()], names))
        head, body = program[match.start() : match.end()], program[match.end() : end]
        made.append(head + renamed(body, [known for known in names if known not in bound_by(head, body)]))
        made.append(f" [assume {name}_alias {name}]")
        names.append(name)
        at = end
    return "".join([*made, renamed(program[at:], names)]), names


def bound_by(head: str, body: str) -> set[str]:
    """Names that a directive's own text binds, and so does not read from before."""
    text = head + body
    inner = re.findall(r"\(lambda\s+\(([^()]*)\)", text)
    sugar = [body[: body.find(")")]] if "(" in head else []
    lets = re.findall(r"\(\s*let(?:rec)?\s+\(\(([^\s()]+)", text)
    return {name for group in (*inner, *sugar) for name in group.split()} | set(lets)


def draws(case: Case, program: str, names: list[str], engine: str) -> dict[str, Any]:
    from venture_lite import Venture

    venture = Venture(seed=crc32(case.name.encode()))
    parameters: dict[str, Any] = dict(case.parameters)
    venture.execute(program, **parameters)
    collected = " ".join(f"(labelled {renamed(text, names)} q{i})" for i, text in enumerate(case.query.values()))
    found = venture.infer(f"(repeat {DRAWS} (do {engine} (collect {collected})))")
    drawn = {f"q{i}": np.asarray(found[f"q{i}"], dtype=float) for i in range(len(case.query))}
    return {**drawn, "accepted": [(row.transitions, row.accepted) for row in found.statistics]}


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_an_alias_changes_nothing(case: Case) -> None:
    program, names = with_aliases(case.program)
    assert names
    engine = case.engines[crc32(case.name.encode()) % len(case.engines)]
    plain = draws(case, case.program, [], engine)
    aliased = draws(case, program, names, engine)
    assert aliased.pop("accepted") == plain.pop("accepted"), program
    for name, values in plain.items():
        assert np.allclose(aliased[name], values, rtol=1e-12, atol=1e-12), f"{name} in {program}"


@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_an_alias_changes_nothing_for_any_engine(case: Case) -> None:
    program, names = with_aliases(case.program)
    for engine in case.engines:
        plain, aliased = draws(case, case.program, [], engine), draws(case, program, names, engine)
        assert aliased.pop("accepted") == plain.pop("accepted"), f"{engine} on {program}"
        assert all(np.allclose(aliased[name], plain[name], rtol=1e-12, atol=1e-12) for name in plain), program
