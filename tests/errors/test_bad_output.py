"""Output that cannot be written: closed pipes, full disks, closed streams. One message at most, no traceback, no half
file."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_draws import one_chain
from venture_lite.draws import files as export
from venture_lite.draws.draws import Draws
from venture_lite.errors import VentureError
from venture_lite.shell.cli import main

resource = pytest.importorskip("resource")
pytestmark = pytest.mark.skipif(os.name != "posix", reason="as on Unix")

VENTURE = f"{sys.executable} -m venture_lite"
PROGRAM = "".join("[predict (normal 0 1)]\n" for _ in range(2000))
COLLECTING = "[assume x (normal 0 1)]\n[infer (repeat 3000 (do (mh default one 1) (collect x)))]\n[predict 1]"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.vnt"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize(
    "options", ["", "--chains 2 --json", *(pytest.param(o, marks=pytest.mark.slow) for o in ("--json", "--chains 2"))]
)
def test_a_closed_pipe_ends_the_program_without_a_word(program: Path, options: str) -> None:
    done = shell(f"{VENTURE} run {program} --seed 1 {options} | head -1; exit ${{PIPESTATUS[0]}}")
    assert done.returncode == 1
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize("command", ["check", "check --json"])
def test_a_closed_pipe_ends_a_check_without_a_word(tmp_path: Path, command: str) -> None:
    path = tmp_path / "p.vnt"
    path.write_text("".join(f"[predict (list unknown_{i} {'1 ' * 100})]\n" for i in range(300)))
    done = shell(f"{VENTURE} {command} {path} | head -1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize("chains", ["", "--chains 2"])
def test_a_pipe_closed_while_the_program_prints_ends_it_without_a_word(tmp_path: Path, chains: str) -> None:
    path = tmp_path / "p.vnt"
    path.write_text("[assume x (normal 0 1)]\n[infer (repeat 20000 (print x))]")
    done = shell(f"{VENTURE} run {path} --seed 1 {chains} | head -1; exit ${{PIPESTATUS[0]}}")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("x = ")


@pytest.mark.parametrize("options", ["run {}", "run {} --json", "check {}", "run {} --chains 2"])
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_standard_output_is_one_message(program: Path, options: str) -> None:
    done = shell(f"{VENTURE} {options.format(program)} > /dev/full")
    assert done.returncode == 1
    assert "error: cannot write to standard output: No space left on device" in done.stderr.splitlines()


def test_a_closed_standard_output_is_one_message(program: Path) -> None:
    done = shell(f"{VENTURE} run {program} --seed 1 >&-")
    assert done.returncode == 1
    assert done.stderr == "error: cannot write to standard output: it is closed\n"


def test_a_closed_standard_error_is_no_reason_to_fail(tmp_path: Path) -> None:
    path = tmp_path / "p.vnt"
    path.write_text("[predict 1]\n[infer (mh nothing one 1)]")
    done = shell(f"{VENTURE} run {path} 2>&-")
    assert (done.returncode, done.stdout) == (0, "1 = 1\n")


def test_what_a_program_prints_goes_to_a_person_where_a_machine_reads_the_values(tmp_path: Path) -> None:
    path = tmp_path / "p.vnt"
    path.write_text("[assume x 3]\n[infer (print x)]\n[predict x]")
    for chains in (1, 2):
        done = shell(f"{VENTURE} run {path} --seed 1 --json --chains {chains}")
        assert done.stderr == "x = 3\n" * chains
        assert [json.loads(line)["directive"] for line in done.stdout.splitlines()][-1] == "predict"


# --------------------------------------------------------------------------------------- a full disk behind the draws


def limited() -> None:
    """No file may grow beyond 10 kB: writing more fails as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))


@pytest.mark.parametrize(
    ("chains", "suffix"),
    [
        ("1", ".csv"),
        ("2", ".npz"),
        *(pytest.param("1", suffix, marks=pytest.mark.slow) for suffix in (".nc", ".npz", ".parquet")),
    ],
)
def test_draws_that_do_not_fit_are_shown_and_leave_no_file(tmp_path: Path, suffix: str, chains: str) -> None:
    if suffix == ".nc":
        pytest.importorskip("h5netcdf")
    (tmp_path / "p.vnt").write_text(COLLECTING)
    out = tmp_path / "out"
    out.mkdir()
    old = out / f"x{suffix}"
    old.write_text("what was there")
    command = [sys.executable, "-m", "venture_lite", "run", str(tmp_path / "p.vnt"), "--seed", "1", "--chains", chains]
    done = subprocess.run(
        [*command, "--out", str(old)], capture_output=True, text=True, check=False, preexec_fn=limited
    )
    assert done.returncode == 1
    assert done.stdout.startswith("variable")
    assert [line for line in done.stderr.splitlines() if not line.startswith("warning")] == [
        f"error: cannot write {old}: File too large"
    ]
    assert old.read_text() == "what was there"
    assert list(out.iterdir()) == [old]


class Full:
    """A disk that is full at some byte."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("_save_npz", "_save_csv"):
            monkeypatch.setattr(export, name, self.write)

    def write(self, draws: Draws, path: Path) -> None:
        path.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("name", ["x.npz", "x.csv"])
def test_a_session_goes_on_after_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    draws = one_chain(mu=[1.0, 2.0])
    with monkeypatch.context() as context:
        Full(context)
        with pytest.raises(VentureError, match="No space left on device"):
            draws.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    draws.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["x.npz", "x.csv"])
def test_draws_that_do_not_fit_are_written_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    program, out, elsewhere = tmp_path / "p.vnt", tmp_path / "out", tmp_path / "elsewhere"
    program.write_text("[assume x (normal 0 1)]\n[infer (repeat 9 (do (mh default one 1) (collect x)))]")
    out.mkdir()
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    whole = export.save

    def save(draws: Draws, path: Path) -> None:
        """The disk of `--out` is full."""
        if path.parent == out:
            raise VentureError(f"cannot write {path}: No space left on device")
        whole(draws, path)

    monkeypatch.setattr(export, "save", save)
    assert main(["run", str(program), "--seed", "1", "--out", str(out / name)]) == 1
    (file,) = elsewhere.glob(f"venture-draws-*/{name}")
    assert file.stat().st_size
    told = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("warning")]
    assert told == [f"draws written to {file}", f"error: cannot write {out / name}: No space left on device"]


def test_draws_written_through_a_link_replace_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "real.npz").touch()
    (tmp_path / "link.npz").symlink_to(tmp_path / "real.npz")
    one_chain(mu=[1.0]).save(tmp_path / "link.npz")
    assert (tmp_path / "link.npz").is_symlink()
    with np.load(tmp_path / "real.npz") as file:
        assert file["mu"].tolist() == [[1.0]]


def test_what_is_no_ordinary_file_is_written_itself(tmp_path: Path) -> None:
    pipe = tmp_path / "x.csv"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        one_chain(mu=[1.5]).save(pipe)
        shown, _ = reader.communicate(timeout=60)
    assert shown.splitlines() == ["chain,draw,mu", "0,0,1.5"]
    assert pipe.is_fifo()
