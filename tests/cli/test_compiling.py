"""`venture compile` and `--proposers`: training is once, and its result is the same wherever it was made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.networks import fitting
from venture_lite.shell.cli import main

PROGRAM = """
[assume x (tag 'x 0 (normal 0 2))]
for n in 1...2: [observe (normal x 0.5) {y[n]}]
[infer (do (compile p x one 'worlds 100) (repeat 20 (do (compiled_mh p x one 1) (collect x))))]
"""


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "LEAST_STEPS", 200)
    monkeypatch.setattr(fitting, "PASSES", 2)


@pytest.fixture
def program(tmp_path: Path) -> str:
    return write(tmp_path, PROGRAM)


def write(folder: Path, text: str) -> str:
    path = folder / "p.vnt"
    path.write_text(text)
    return str(path)


def run(program: str, folder: Path, *options: str) -> np.ndarray:
    assert main(["run", program, "-p", "y=[1, 2]", "--seed", "3", "--out", str(folder / "x.npz"), *options]) == 0
    with np.load(folder / "x.npz") as file:
        return np.array(file["x"])


def compiled(program: str, folder: Path) -> str:
    path = folder / "p.npz"
    assert main(["compile", program, "-p", "y=[1, 2]", "--seed", "3", "-o", str(path)]) == 0
    return str(path)


def test_a_file_serves_in_place_of_the_training(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = compiled(program, tmp_path)
    shown, said = capsys.readouterr()
    assert shown.startswith("proposer p: 1 x x: (normal 0 2); 100 worlds")
    assert "proposers written to" in said
    trained = run(program, tmp_path)
    capsys.readouterr()
    loaded = run(program, tmp_path, "--proposers", path)
    assert "proposer p: loaded, 3,823 parameters\n" in capsys.readouterr().out
    assert loaded.tobytes() == trained.tobytes()


def test_chains_share_one_training(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In one process and in several, with a file and without one; the first chain is the only chain of one."""
    path = compiled(program, tmp_path)
    capsys.readouterr()
    together = Venture(seed=3, chains=2).run_file(program, y=[1, 2])[-1]["x"]
    assert capsys.readouterr().out.count("proposer p: 1 x") == 1
    loaded = run(program, tmp_path, "--proposers", path, "--chains", "2")
    assert capsys.readouterr().out.count("loaded, 3,823") == 1
    assert loaded.tobytes() == together.tobytes()
    assert loaded[:1].tobytes() == run(program, tmp_path).tobytes()


@pytest.mark.thorough
def test_processes_share_one_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    program = write(tmp_path, PROGRAM)
    found = run(program, tmp_path, "--chains", "3")
    assert capsys.readouterr().out.count("proposer p: 1 x") == 1
    assert found.tobytes() == Venture(seed=3, chains=3).run_file(program, y=[1, 2])[-1]["x"].tobytes()


def test_a_name_that_is_not_in_the_file_is_trained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = compiled(write(tmp_path, PROGRAM), tmp_path)
    other = write(
        tmp_path, PROGRAM.replace("(compile p x one 'worlds 100)", "(compile p x one) (compile q x all 'worlds 100)")
    )
    capsys.readouterr()
    run(other, tmp_path, "--proposers", path)
    shown = capsys.readouterr().out
    assert "proposer p: loaded" in shown
    assert "proposer q: 1 x x: (normal 0 2); 100 worlds" in shown


def test_nothing_is_drawn_after_the_last_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = PROGRAM + "[sample (normal 0 -1)]"
    compiled(write(tmp_path, more), tmp_path)
    in_a_loop = more.replace("[infer", "for i in 1...2: [infer").replace("(repeat 20", "(repeat 2")
    compiled(write(tmp_path, in_a_loop), tmp_path)
    (tmp_path / "inner.vnt").write_text(more)
    compiled(write(tmp_path, '[load "inner.vnt"] [sample (normal 0 -1)]'), tmp_path)
    assert "collect" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "text", "status", "said"),
    [
        ([], PROGRAM, 2, "the following arguments are required: -o"),
        (["-o", "{folder}/none/p.npz"], PROGRAM, 1, "there is no folder"),
        (["-o", "{folder}"], PROGRAM, 1, "is a folder, so no proposers can be written to it"),
        (
            ["-o", "{folder}/q.npz"],
            "[assume x (normal 0 1)]",
            1,
            "p.vnt compiles nothing: there is no compile in it\n  try:",
        ),
        (["-o", "{folder}/q.npz"], "[infer (compile p x one)]", 1, "p.vnt:1:8: nothing was compiled"),
        (["-o", "{folder}/q.npz"], PROGRAM.replace("normal x 0.5", "normal x -1"), 1, "p.vnt:3:"),
    ],
)
def test_what_cannot_be_compiled_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], text: str, status: int, said: str
) -> None:
    program = write(tmp_path, text)
    given = [option.format(folder=tmp_path) for option in options]
    assert main(["compile", program, "-p", "y=[1, 2]", "--seed", "1", *given]) == status
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["p.vnt"]


def test_a_file_that_is_none_ends_a_run_before_it_begins(
    program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", program, "-p", "y=[1, 2]", "--seed", "1", "--proposers", program]) == 1
    assert capsys.readouterr() == ("", f"error: {program}: no file of proposers, or a damaged one\n")
    assert main(["run", program, "--proposers", str(tmp_path / "none.npz")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_a_file_of_other_blocks_is_refused(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = compiled(program, tmp_path)
    other = write(tmp_path, PROGRAM.replace("p x one", "p x all"))
    assert main(["run", other, "-p", "y=[1, 2]", "--seed", "1", "--proposers", path]) == 1
    said = capsys.readouterr().err
    assert "p.vnt:4:23: proposer p was compiled for x one" in said
    assert "try: (compile p x one)" in said


def test_ctrl_c_in_a_training_writes_nothing(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(compiled(program, tmp_path))
    before = path.read_bytes()

    def step(self: fitting.Training, minibatch: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting.Training, "take_step", step)
    assert main(["compile", program, "-p", "y=[1, 2]", "--seed", "4", "-o", str(path)]) == 130
    assert capsys.readouterr().err.endswith("interrupted\n")
    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["p.npz", "p.vnt"]


LATENT = "[assume x (tag 'x 0 (normal {mean} 1))] [observe (normal x 1) 1]\n"


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("[infer (compiled_mh p x one 1)]", 1, "p.vnt:2:21: there is no proposer p"),
        (
            "[infer (do (compile p x one 'worlds 100) (compiled_mh p x all 1))]",
            1,
            "2:57: proposer p was compiled for x one",
        ),
        ("[infer (do (compile p y one) (compiled_mh p y one 1))]", 0, "the scope y is empty, nothing is moved"),
        ("[infer (compile p x one 'worlds 99)]", 1, "2:33: N must be a whole number, 100 or more, got 99"),
        ("[infer (compile p x one 'components 0)]", 1, "2:37: K must be a whole number, 1 or more, got 0"),
        ("[infer (compile p x one 'frame newtonian)]", 1, "2:32: FRAME must be prior or newton"),
        ("[infer (compile p x one 'depth 3)]", 1, "2:25: compile knows no such option"),
        (
            "[infer (do (compile p x one 'worlds 100) (compiled_mh p x one 'defensive 0 1))]",
            1,
            "2:74: EPS must be above 0",
        ),
        ("[infer (compile p x one 'worlds 2000000000)]", 1, "2:8: training reads"),
        ('[infer (load_proposers "p.vnt")]', 1, "p.vnt: no file of proposers, or a damaged one"),
        ("[observe (normal (sqrt x) 1) 1] [infer (compile p x one)]", 1, "2:18: sqrt: x must be a number that is not"),
    ],
)
def test_what_is_told_and_how_a_run_ends(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    status: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    program = write(tmp_path, LATENT.format(mean=2) + text)
    assert main(["run", program, "--seed", "1", "--memory-mb", "100000"]) == status
    assert said in capsys.readouterr().err


@pytest.mark.thorough
def test_an_error_of_a_training_is_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    choice = "(categorical (list 0.5 0.5) (list 'red 'green))"
    program = write(tmp_path, f"[assume x (tag 'x 0 {choice})]\n[infer (compile p x one)]")
    assert main(["run", program, "--seed", "1", "--chains", "2"]) == 1
    said = capsys.readouterr().err
    assert said.count("a proposal for categorical cannot be learned") == 1
    assert said.startswith("p.vnt") or "p.vnt:1:21" in said
