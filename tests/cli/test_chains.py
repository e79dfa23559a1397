"""Several chains: the same draws from processes as from one model in Python."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.shell.cli import main

PROGRAM = """
[assume x (normal 0 1)]
[observe (normal x 1) 2]
[predict x]
[infer (repeat 20 (do (mh default one 3) (collect x)))]
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "p.vnt"
    path.write_text(PROGRAM)
    return str(path)


def test_processes_give_the_draws_of_one_model(program: str, tmp_path: Path) -> None:
    assert main(["run", program, "--seed", "7", "--chains", "3", "--out", str(tmp_path / "x.npz")]) == 0
    draws = Venture(seed=7, chains=3).run_file(program)[-1]
    with np.load(tmp_path / "x.npz") as file:
        assert file["x"].tolist() == draws["x"].tolist()
    assert len({tuple(chain) for chain in draws["x"].tolist()}) == 3


def test_values_are_one_for_each_chain(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", program, "--seed", "7", "--chains", "2", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    predict = next(line for line in lines if line["directive"] == "predict")
    assert predict["value"] == Venture(seed=7, chains=2).run_file(program)[2]


def test_an_error_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.vnt"
    path.write_text("[sample (+ 1 2)]\n[sample (normal 0 -1)]")
    assert main(["run", str(path), "--seed", "1", "--chains", "2"]) == 1
    shown, said = capsys.readouterr()
    assert shown == "(+ 1 2) = 3, 3 (a value for each chain)\n"
    assert said.count("p.vnt:2:") == 1
    assert "Traceback" not in said


def test_a_warning_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.vnt"
    path.write_text("[assume x (normal 0 1)] [infer (mh nothing all 1)]")
    assert main(["run", str(path), "--seed", "1", "--chains", "3"]) == 0
    assert capsys.readouterr().err.count("warning:") == 1
