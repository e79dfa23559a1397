"""Small programs with what they give beside the line.

`; expect: 3` says how the value of the directive on its line is shown; a directive over several lines has it on its
first. For a loop, values stand as a list. `; error: part` says that the program ends with an error on that line whose
message holds the part. `; warning: part` says that the directive warns.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest

from venture_lite import Draws, Venture, VentureError, VentureWarning
from venture_lite.errors import Source
from venture_lite.values import from_python, show

PROGRAMS = sorted(Path(__file__).parent.glob("*.vnt"))
NOTE = re.compile(r";\s*(expect|error|warning):\s*(.*\S)")
PARAMETERS: dict[str, Any] = {
    "N": 3,
    "x": [1.0, 2.0, 3.0],
    "X": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    "words": ["red", "green"],
    "flag": True,
}


def shown(value: Any) -> str:
    if isinstance(value, Draws):
        return " ".join(f"{name}: {show(from_python(value[name][0]))}" for name in value)
    if isinstance(value, list):
        return "(" + " ".join(show(item) if isinstance(item, str) else shown(item) for item in value) + ")"
    return show(value).strip('"')


def notes(text: str) -> dict[int, tuple[str, str]]:
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        match = NOTE.search(line)
        if match:
            found[number] = match[1], match[2]
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_gives_what_stands_beside_its_lines(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    wanted = notes(text)
    assert wanted, "a program without an expectation tests nothing"
    given: dict[int, tuple[str, str]] = {}

    def on_value(result: Any) -> None:
        if warned:
            given[result.line] = "warning", str(warned[-1].message)
            warned.clear()
        elif wanted.get(result.line, ("",))[0] == "expect":
            given[result.line] = "expect", shown(result.value)

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", VentureWarning)
        try:
            Venture(seed=1).run_source(Source(str(path), text), PARAMETERS, on_value)
        except VentureError as error:
            given[error.span.line if error.span else 0] = "error", error.message
    assert given.keys() == wanted.keys(), given
    for line, (kind, part) in wanted.items():
        assert given[line][0] == kind, (line, given[line])
        if kind == "expect":
            assert given[line][1] == part, f"line {line}"
        else:
            assert part in given[line][1], f"line {line}"


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 40
