"""`venture run`: what it prints, where, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from venture_lite.shell.cli import main

COIN = """
[assume p (beta 1 1)]
[observe (flip p) true]
flips: [predict (flip p)]
[infer (repeat 50 (do (mh default one 5) (collect p)))]
[report flips]
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "coin.vnt"
    path.write_text(COIN)
    return path


def write(folder: Path, text: str) -> str:
    path = folder / "program.vnt"
    path.write_text(text)
    return str(path)


def test_kernels_of_each_way_make_the_same_draws(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from venture_lite.interpreter.model import WAYS
    from venture_lite.shell.cli import KERNELS

    told = []
    for way in WAYS:
        assert main(["run", str(program), "--seed", "1", "--kernels", way]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] == told[2]
    assert WAYS == KERNELS


def test_kernels_of_no_way_are_wrong_usage(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(program), "--kernels", "fast"]) == 2
    said = capsys.readouterr().err
    assert all(way in said for way in ("compiled", "interpreted", "checked"))


def test_values_go_to_standard_output(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(program), "--seed", "1"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] in ("flips = true", "flips = false")
    assert "1 chain of 50 draws" in out
    assert "nan" not in out


def test_assume_and_observe_print_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write(tmp_path, "[assume x (normal 0 1)] [observe (normal x 1) 2]"), "--seed", "1"]) == 0
    assert capsys.readouterr() == ("", "")


def test_a_program_comes_from_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO("[sample (+ 1 2)]"))
    assert main(["run", "-", "--seed", "1"]) == 0
    assert capsys.readouterr().out == "(+ 1 2) = 3\n"


def test_without_a_seed_the_seed_used_is_told_and_repeats_the_run(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", str(program)]) == 0
    first = capsys.readouterr()
    seed = next(line for line in first.err.splitlines() if line.startswith("seed: ")).removeprefix("seed: ")
    assert main(["run", str(program), "--seed", seed]) == 0
    assert capsys.readouterr().out == first.out


def test_json_is_one_object_a_line(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "draws.npz"
    assert main(["run", str(program), "--seed", "1", "--json", "--out", str(out)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    predict = next(line for line in lines if line["directive"] == "predict")
    assert predict["label"] == "flips"
    assert predict["expression"] == "(flip p)"
    assert predict["line"] == 4
    assert isinstance(predict["value"], bool)
    infer = next(line for line in lines if line["directive"] == "infer")
    assert infer["file"] == str(out)
    assert set(infer["summary"]["p"]) == {"mean", "sd", "q5", "q95", "ess_bulk", "ess_tail", "r_hat"}


def test_later_draws_are_written_beside_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "[assume x (normal 0 1)]\n" + "[infer (repeat 5 (do (mh default one 1) (collect x)))]\n" * 3
    assert main(["run", write(tmp_path, text), "--seed", "1", "--out", str(tmp_path / "x.npz")]) == 0
    assert sorted(path.name for path in tmp_path.glob("*.npz")) == ["x-2.npz", "x-3.npz", "x.npz"]
    with np.load(tmp_path / "x.npz") as first, np.load(tmp_path / "x-2.npz") as second:
        assert first["x"].shape == (1, 5)
        assert first["x"].tolist() != second["x"].tolist()


def test_files_of_an_earlier_run_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    infer = "[infer (repeat 5 (do (mh default one 1) (collect x)))]\n"
    out = tmp_path / "x.npz"
    for count, told in ((3, []), (3, []), (1, ["x-2.npz", "x-3.npz"])):
        program = write(tmp_path, "[assume x (normal 0 1)]\n" + infer * count)
        assert main(["run", program, "--seed", "1", "--out", str(out)]) == 0
        lines = [line for line in capsys.readouterr().err.splitlines() if "earlier run" in line]
        assert [Path(name).name for line in lines for name in line.split(": ")[-1].split(", ")] == told


def test_parameters_reach_the_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "data.npz", X=np.array([1.5, 2.5]), N=np.array(2))
    program = write(tmp_path, "[sample (+ {X[N]} {shift})]")
    assert main(["run", program, "--seed", "1", "-p", "shift=10", "-d", str(tmp_path / "data.npz")]) == 0
    assert capsys.readouterr().out.strip().endswith("= 12.5")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[assume x (normal 0 1)", "program.vnt:1:1"),
        ("[sample (+ 1 2)]\n[sample (nromal 0 1)]", "program.vnt:2:10"),
        ("[assume f (lambda (s) (normal 0 s))]\n[sample (f -1)]", "program.vnt:1:23"),
        ("[sample {missing}]", "program.vnt:1:"),
    ],
)
def test_an_error_is_one_message_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, place: str
) -> None:
    assert main(["run", write(tmp_path, text), "--seed", "1"]) == 1
    err = capsys.readouterr().err
    assert place in err.splitlines()[0]
    assert "^" in err
    assert "Traceback" not in err


def test_values_before_an_error_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", write(tmp_path, "[sample (+ 1 2)] [sample (+ 1 y)]"), "--seed", "1"]) == 1
    assert capsys.readouterr().out == "(+ 1 2) = 3\n"


@pytest.mark.parametrize("content", [None, "", "  \n"])
def test_a_missing_or_empty_program_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    path = tmp_path / "p.vnt"
    if content is not None:
        path.write_text(content)
    assert main(["run", str(path)]) == 1
    (message,) = capsys.readouterr().err.splitlines()
    assert "p.vnt" in message


@pytest.mark.parametrize(
    "arguments",
    [
        ["walk"],
        ["run"],
        ["run", "x.vnt", "--seed", "-1"],
        ["run", "x.vnt", "--chains", "0"],
        ["run", "{}", "-p", "x"],
        ["run", "{}", "-p", "x=1", "-p", "x=2"],
        ["run", "{}", "-d", "x=file.txt"],
    ],
)
def test_wrong_usage_ends_with_2(program: Path, arguments: list[str]) -> None:
    assert main([argument.format(program) for argument in arguments]) == 2


@pytest.mark.parametrize("arguments", [["-d", "x=no.csv"], ["--out", "draws.txt"], ["--out", "no/draws.npz"]])
def test_files_are_checked_before_anything_runs(
    program: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(["run", str(program), *arguments]) == 1
    assert capsys.readouterr().out == ""


def test_an_empty_scope_is_warned_of_once_and_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = write(tmp_path, "[assume x (normal 0 1)] [infer (repeat 5 (mh nothing all 1))]")
    assert main(["run", program, "--seed", "1"]) == 0
    (warning,) = capsys.readouterr().err.splitlines()
    assert warning.startswith("warning: ")
    assert "nothing" in warning


def test_a_reader_that_goes_away_ends_the_run_quietly(tmp_path: Path) -> None:
    program = write(tmp_path, "[sample (+ 1 2)]\n" * 2000)
    command = f"'{sys.executable}' -m venture_lite run '{program}' --seed 1 | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout == "(+ 1 2) = 3\n"
    assert done.stderr == ""


def _heed_ctrl_c() -> None:
    """A shell that starts the tests in the background has its children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on Unix")
@pytest.mark.parametrize("chains", ["1", "2"])
def test_ctrl_c_keeps_the_draws(tmp_path: Path, chains: str) -> None:
    program = write(
        tmp_path, "[assume x (normal 0 1)] [predict 1] [infer (repeat 100000000 (do (mh default one 1) (collect x)))]"
    )
    out = tmp_path / "x.npz"
    command = [sys.executable, "-m", "venture_lite", "run", program, "--chains", chains, "--out", str(out)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_heed_ctrl_c
    ) as running:
        try:
            assert running.stdout is not None
            # all chains have come as far as the inference
            assert running.stdout.readline().startswith("1 = ")
            time.sleep(1.0)
            running.send_signal(signal.SIGINT)
            shown, said = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
    assert shown.startswith("variable")
    with np.load(out) as file:
        assert 1 <= file["x"].shape[0] <= int(chains)


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("venture 0")


def test_a_program_without_an_inference_runs_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On as many chains as are asked for; a program that has an inference keeps it."""
    path = write(tmp_path, "[assume mu (normal 0 10)]\n[observe (normal mu 1) 2.9]\n")
    assert main(["run", path, "--auto", "--draws", "20", "--seed", "1", "--chains", "1"]) == 0
    said = capsys.readouterr()
    assert "1 chain of" in said.out
    assert "(nuts (choices mu 'smooth) all 'dense 'adapt 1000 1)" in said.out
    assert main(["run", write(tmp_path, COIN), "--auto"]) == 1
    assert "the program has an inference of its own" in capsys.readouterr().err
    assert main(["run", path, "--draws", "20"]) == 2
