"""`venture check`: what it prints, for a person and for an editor, and how it ends."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from venture_lite.shell.cli import main

BAD = "[assume x (normal {mu} 1)]\n[predict (+ x y)]\n[predict (normal 0 -1)]\n[observe (uniform_discrete 0 2) 2]\n"


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "p.vnt"
    path.write_text(BAD)
    return str(path)


def test_errors_are_printed_with_their_places_and_the_status_is_1(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", program]) == 1
    shown, said = capsys.readouterr()
    assert said == ""
    lines = shown.splitlines()
    assert [line.removeprefix(program) for line in lines if line.startswith(program)] == [
        ":2:15: unknown name y",
        ":3:20: normal: sd must be a positive number, got -1",
        ":4:33: warning: 2 has probability zero under (uniform_discrete 0 2)",
    ]
    assert lines[-3:] == ["parameters that the program needs:", f"  mu ({program}:1:20)", "2 errors, 1 warning"]


def test_json_is_one_object_a_diagnostic_and_one_for_the_parameters(
    program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", program, "--json"]) == 1
    shown, said = capsys.readouterr()
    assert said == ""
    first, second, third, last = map(json.loads, shown.splitlines())
    assert first == {
        "file": program,
        "line": 2,
        "column": 15,
        "end_line": 2,
        "end_column": 16,
        "severity": "error",
        "message": "unknown name y",
        "hint": None,
    }
    assert (second["line"], second["end_column"], third["severity"]) == (3, 22, "warning")
    assert last == {
        "parameters": [{"name": "mu", "uses": [{"file": program, "line": 1, "column": 20}]}],
        "errors": 2,
        "warnings": 1,
    }


def test_a_program_without_errors_has_status_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.vnt"
    path.write_text("[assume x (normal 0 1)]\n[observe (uniform_discrete 0 2) 2]")
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out.endswith("no errors, 1 warning\n")


def test_parameters_and_data_are_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "d.npz", Y=np.ones(3))
    path = tmp_path / "p.vnt"
    path.write_text("[predict (normal 0 {s})]\nfor n in 1...N: [observe (normal 0 1) {Y[n]}]")
    data = str(tmp_path / "d.npz")
    assert main(["check", str(path), "-p", "s=1", "-p", "N=3", "-d", data]) == 0
    assert main(["check", str(path), "-p", "s=0", "-p", "N=4", "-d", data]) == 1
    shown = capsys.readouterr().out
    assert "got 0" in shown
    assert "Y has 3 rows, counted from 1 (n = 4)" in shown
    assert main(["check", str(path), "-p", "s"]) == 2


def test_a_program_comes_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("[predict y]"))
    assert main(["check", "-"]) == 1
    assert capsys.readouterr().out.startswith("<stdin>:1:10: unknown name y")


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_a_file_that_is_no_program_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    path = tmp_path / "p.vnt"
    if content is not None:
        path.write_bytes(content)
    assert main(["check", str(path)]) == 1
    shown, said = capsys.readouterr()
    assert shown == ""
    assert said.startswith("error: ")
    assert "Traceback" not in said
