"""Values that no program can read, from Python, the command line and files: each is a VentureError that names it."""

from __future__ import annotations

import contextlib
import datetime
import os
import signal
import subprocess
import sys
import zipfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.generator.session import check
from venture_lite import Venture, VentureError
from venture_lite.shell.cli import main

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

NESTED: list[Any] = []
for _ in range(20_000):
    NESTED = [NESTED]

VALUES: dict[str, Any] = {
    "NaT": pandas.NaT,
    "a timestamp": pandas.Timestamp(0),
    "a date": datetime.date(2020, 1, 1),
    "a signalling NaN": Decimal("sNaN"),
    "a huge fraction": Fraction(10**400, 3),
    "a huge integer": 10**400,
    "huge integers": [10**400, 1],
    "an array of huge integers": np.array([10**400, 1], dtype=object),
    "infinity": Decimal("Infinity"),
    "five dimensions": np.zeros((2, 2, 2, 2, 2)),
    "structs": polars.Series([{"a": 1}, {"a": 2}]),
    "nested lists": NESTED,
    "bytes": b"x",
}
USES = (
    "[sample {q}]",
    "[sample {q[1]}]",
    "[observe (normal 0 1) {q}]",
    "for n in 1...2: [observe (normal 0 1) {q[n]}]",
    "for n in 1...40: [observe (normal 0 1) {q}]",
    "for n in 1...{q}: [sample n]",
    "[observe ((make_crp 1)) {q}]",
    "[assume x ((make_normal_inv_chi_sq 0 1 1 1))] [observe x {q[1]}]",
    "[observe (categorical (list 0.5 0.5) (list {q} 1)) {q}] [infer (collect 1)]",
)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_from_python_is_read_or_refused(name: str) -> None:
    for use in USES:
        venture = Venture(seed=1)
        with contextlib.suppress(VentureError):
            venture.execute(use, q=VALUES[name])
        check(venture)
    for text in ("(normal 0 1)", "((make_crp 1))"):
        with pytest.raises(VentureError) as raised:
            Venture(seed=1).observe(text, VALUES[name])
        assert raised.value.span is not None


@pytest.mark.parametrize(("value", "told"), [(10**400, "too large for a float"), (Decimal("sNaN"), "missing")])
def test_a_number_that_is_none_is_told_with_name_and_place(value: Any, told: str) -> None:
    with pytest.raises(VentureError, match=f"the value of q in row 2 is {told}"):
        Venture(seed=1).execute("for n in 1...2: [observe (normal 0 1) {q[n]}]", q=[1, value])


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("x=" + "1" * 400, "the value of x is too large for a float"),
        ("x=[1, -" + "1" * 5000 + "]", "the value of x is too large for a float"),
        ("x=1e999", "the value of x is too large for a float"),
        ("x=" + "[" * 20_000 + "]" * 20_000, "the value of x is nested too deeply"),
    ],
)
def test_a_value_of_the_command_line_is_wrong_usage(
    option: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "program.vnt"
    program.write_text("[sample {x}]")
    assert main(["run", str(program), "-p", option]) == 2
    assert capsys.readouterr().err == f"{told}\n"


@pytest.mark.parametrize("bound", ["1e30", "1e300", "1e18"])
def test_a_loop_of_too_many_passes_is_refused(bound: str) -> None:
    with pytest.raises(VentureError, match="passes, more than"):
        Venture(seed=1).execute("for n in 1...{N}: [observe (normal 0 1) n]", N=float(bound))


@pytest.mark.slow
def test_a_text_nested_too_deeply_is_refused() -> None:
    deep = 20_000
    for text in (
        "[sample " + "(+ 1 " * deep + "1" + ")" * deep + "]",
        "[sample '" + "(" * deep + ")" * deep + "]",
        "[infer " + "(do " * deep + ")" * deep + "]",
        "[sample {" + "x[" * deep + "1" + "]" * deep + "}]",
    ):
        with pytest.raises(VentureError, match="nested too deeply"):
            Venture(seed=1).execute(text, x=[1])


HEADERS = (
    b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (3",
    b"\x93NUMPY\x01\x00\x10\x00{'descr': ((((((",
    b"\x93NUMPY\x09\x00v\x00",
    b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999,), }    \n",
    b"\x93NUMPY\x01\x00\xff\x0f" + b"[" * 4095 + b"\n",
    b"\x93NUMPY\x01\x00\xff\x0f" + b"-" * 4094 + b"1\n",
)


@pytest.mark.parametrize("header", HEADERS)
def test_a_damaged_file_is_named(header: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, data = tmp_path / "program.vnt", tmp_path / "data.npy"
    program.write_text("[sample {x}]")
    data.write_bytes(header + bytes(64))
    assert main(["run", str(program), "-d", f"x={data}"]) == 1
    assert str(data) in capsys.readouterr().err


def test_what_is_no_array_in_an_archive_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, data = tmp_path / "program.vnt", tmp_path / "data.npz"
    program.write_text("[sample {x}]")
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("readme.txt", "hello")
    for option in (f"x={data}", str(data), f"x={data}:readme.txt"):
        assert main(["run", str(program), "-d", option]) == 1
        assert f"readme.txt of {data} is no array" in capsys.readouterr().err


def test_names_of_files_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, long = tmp_path / "program.vnt", "a" * 5000
    program.write_text("[sample 1]")
    assert main(["run", str(program), "-d", f"x={long}.csv"]) == 1
    assert main(["run", str(program), "--out", f"{long}.npz"]) == 1
    for path in (long, "a\\x00b"):
        program.write_text(f'[load "{path}"]')
        assert main(["run", str(program)]) == 1
        assert main(["check", str(program)]) == 1
    assert "Traceback" not in capsys.readouterr().err


STARTING = """
import signal, sys

class AtImport:
    def find_spec(self, name, *others):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)

from venture_lite.__main__ import main
sys.meta_path.insert(0, AtImport())
sys.exit(main())
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as on Unix")
@pytest.mark.parametrize("imported", ["venture_lite.shell.cli", "argparse"])
def test_ctrl_c_while_the_command_starts_is_one_word(imported: str) -> None:
    command = [sys.executable, "-c", STARTING, imported]
    done = subprocess.run(
        command,
        input="[sample 1]",
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert (done.returncode, done.stderr) == (130, "interrupted\n")
