"""Bad input on the command line: status 1, one message with its place, no traceback; warnings leave the status 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from venture_lite.shell.cli import main

BAD = {
    "bracket": ("[assume x (normal 0 1)", "p.vnt:1:1: "),
    "name": ("[assume x 1]\n[predict (+ y 1)]", "p.vnt:2:13: unknown name y"),
    "domain": ("[assume (f s) (normal 0 s)]\n[assume (g s) (f s)]\n[predict (g -1)]", "p.vnt:1:15: normal: sd must be"),
    "parameter": ("[predict {sigma}]", "p.vnt:1:11: the program needs a parameter sigma"),
    "lengths": ("for n in 1...10: [observe (normal {X[n]} 1) {Y[n]}]", "Y has 9 rows, counted from 1 (n = 10)"),
    "missing": ("for n in 1...9: [observe (normal 0 1) {Z[n]}]", "the value of Z in row 3 is missing (NaN) (n = 3)"),
    "kernel": ("[assume x (normal 0 1)]\n[infer (gibbs x all 1)]\n[infer (gibbs default all 1)]", "gibbs enumerates"),
    "recursion": ("[assume (f n) (+ 1 (f n))]\n[predict (f 1)]", "more than 3,000 nested calls"),
    "load": ('[load "other.vnt"]', "p.vnt:1:1: cannot read"),
}


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "data.npz"
    missing = np.ones(9)
    missing[2] = np.nan
    np.savez(path, X=np.ones(10), Y=np.ones(9), Z=missing)
    return str(path)


@pytest.mark.parametrize("name", BAD)
def test_an_error_is_one_message_and_status_1(
    name: str, tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, says = BAD[name]
    path = tmp_path / "p.vnt"
    path.write_text(text)
    assert main(["run", str(path), "--seed", "1", "--nested-calls", "3000", "-d", data]) == 1
    said = capsys.readouterr().err
    assert says in said
    assert "Traceback" not in said
    assert said.count("^") >= 1
    assert sum("p.vnt:" in line and not line.startswith((" ", "warning")) for line in said.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[assume (f n) (pair n (f (+ n 1)))]\n[predict (f 1)]",
        "for n in 1...9000: [predict (+ n 1)]",
        "for n in 1...9000: [observe (normal n 1) n]",
        "for n in 1...9000:\n  [predict (+ n 1)]\n  [predict (+ n 2)]",
    ],
)
def test_memory_is_bounded_by_an_option(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    path = tmp_path / "p.vnt"
    path.write_text(text)
    assert main(["run", str(path), "--seed", "1", "--memory-mb", "10"]) == 1
    assert "more than the limit of 10 MB" in capsys.readouterr().err


def test_a_limit_reaches_every_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.vnt"
    path.write_text("[assume (f n) (+ 1 (f n))]\n[predict (f 1)]")
    assert main(["run", str(path), "--seed", "1", "--chains", "2", "--nested-calls", "2000"]) == 1
    said = capsys.readouterr().err
    assert said.count("more than 2,000 nested calls") == 1
    assert "Traceback" not in said


@pytest.mark.parametrize("flag", ["--nested-calls", "--memory-mb"])
def test_a_limit_is_a_whole_number(flag: str, tmp_path: Path) -> None:
    path = tmp_path / "p.vnt"
    path.write_text("[predict 1]")
    assert main(["run", str(path), flag, "0"]) == 2


def test_parameters_and_data_reach_the_program(tmp_path: Path, data: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.vnt"
    path.write_text("""
        [assume mu (normal 0 {sd})]
        for n in 1...9: [observe (normal mu 1) {Y[n]}]
        [infer (repeat 20 (do (mh default one 2) (collect mu)))]
        [predict {sd}]""")
    assert main(["run", str(path), "--seed", "1", "-p", "sd=2.5", "-d", data]) == 0
    shown, said = capsys.readouterr()
    assert shown.splitlines()[-1].endswith("= 2.5")
    assert "mu" in shown
    assert "Traceback" not in said
