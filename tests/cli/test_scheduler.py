"""`venture run --scheduler`: the chains of a program on a cluster, for which threads stand in here."""

from __future__ import annotations

import sys
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.shell import cluster
from venture_lite.shell.cli import main

MODEL = """
[assume x (normal 0 1)]
[observe (normal x 1) 1]
[infer (repeat 20 (do (mh default one 5) (collect x)))]
[report x]
"""


class Client:
    """A cluster's, as far as the command uses it."""

    def __init__(self, address: str, timeout: float, set_as_default: bool) -> None:
        if address != "tcp://here:1":
            raise OSError(f"Timed out trying to connect to {address} after {timeout:.0f} s\nand more")
        self._pool = ThreadPoolExecutor(2)

    def get_executor(self) -> Executor:
        return self._pool

    def close(self) -> None:
        self._pool.shutdown()


@pytest.fixture
def dask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=Client))  # type: ignore[arg-type]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "model.vnt"
    path.write_text(MODEL)
    return str(path)


def run(*arguments: Any) -> int:
    return main(["run", *map(str, arguments), "--seed", "1"])


def test_draws_and_values_are_those_of_a_local_run(
    dask: None, program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = tmp_path / "there.npz"
    assert run(program, "--chains", 3, "--out", there, "--scheduler", "here:1") == 0
    v = Venture(seed=1, chains=3)
    *_, draws, values = v.run_file(program)
    assert np.array_equal(np.load(there)["x"], draws["x"])
    assert (
        f"report = {', '.join(f'{value:.6g}' for value in values)} (a value for each chain)" in capsys.readouterr().out
    )


@pytest.mark.slow
def test_auto_runs_there_too(dask: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.vnt"
    path.write_text("[assume x (normal 0 1)] [observe (normal x 1) 1] [infer (auto 20)]")
    assert run(path, "--chains", 2, "--scheduler", "here:1") == 0
    assert "2 chains of" in capsys.readouterr().out


def test_an_error_in_one_chain_leaves_the_draws_of_all(
    dask: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.vnt"
    path.write_text(
        "[assume x (poisson 0.05)] [infer (repeat 99999 (do (mh default one 1) (collect (lookup '(5 6) x))))]"
    )
    assert run(path, "--chains", 2, "--scheduler", "here:1") == 1
    said = capsys.readouterr().err
    assert "partial draws (ended with an error)" in said


def test_a_scheduler_that_does_not_answer_is_named(
    dask: None, program: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(program, "--chains", 2, "--scheduler", "10.1.2.3:8786") == 1
    said = capsys.readouterr().err
    assert "no scheduler answers at 10.1.2.3:8786 within 10 s (Timed out" in said
    assert "and more" not in said
    assert "dask scheduler" in said


def test_dask_is_asked_for_where_it_is_missing(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert run(program, "--chains", 2, "--scheduler", "here:1") == 1
    assert "pip install 'venture-lite[dask]'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--chains", 2, "--scheduler", "here"), "the address is HOST:PORT"),
        (("--scheduler", "here:1"), "say how many, --chains K"),
    ],
)
def test_wrong_usage(
    dask: None, program: str, arguments: tuple[Any, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(program, *arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_dask_itself_says_that_nobody_answers(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="dask is not installed: pip install 'venture-lite[dask]'")
    monkeypatch.setattr(cluster, "SECONDS", 0.5)
    assert run(program, "--chains", 2, "--scheduler", "127.0.0.1:9") == 1
    assert "no scheduler answers at 127.0.0.1:9 within" in capsys.readouterr().err
