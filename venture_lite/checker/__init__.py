"""What is wrong with a program, found without running it.

`program.py` goes through the directives, `expressions.py` through what the model evaluates, `inference.py` through what
`infer` runs; `known.py` says what can be known of a value, `names.py` and `labels.py` what the text binds,
`parameters.py` what it asks for. Nothing is evaluated but constants, and one
mistake does not hide the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from venture_lite.checker.findings import Checked, Diagnostic, Findings
from venture_lite.checker.names import Names
from venture_lite.checker.parameters import NeededParameters
from venture_lite.checker.program import ProgramCheck
from venture_lite.errors import Source, Span, VentureError
from venture_lite.language.source_files import read_source

__all__ = ["Checked", "Diagnostic", "check", "check_file", "check_source"]


def check(text: str, /, *, registered: Iterable[str] = (), **parameters: Any) -> Checked:
    """Finds what is wrong with a program's text without running it.

    `registered` names the procedures that are registered from Python. Where parameters are given, their use is checked
    too, and those that are missing are errors; without any they are listed.
    """
    return check_source(Source("<input>", text), parameters or None, registered)


def check_file(path: str | PathLike[str], /, *, registered: Iterable[str] = (), **parameters: Any) -> Checked:
    """As `check`, for a file and those that it loads. Raises VentureError for a file that cannot be read."""
    return check_source(read_source(Path(path), None), parameters or None, registered)


def check_source(source: Source, parameters: Mapping[str, Any] | None, registered: Iterable[str] = ()) -> Checked:
    """As `check`; `parameters` is None where none are known."""
    findings = Findings()
    program = ProgramCheck(findings, Names(frozenset(registered)), NeededParameters(findings, parameters))
    try:
        program.source(source)
    except VentureError as error:
        findings.error(error, Span(source, 0, 0))
    return findings.result()
