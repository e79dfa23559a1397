"""Texts that are no programs, and programs of extreme size or shape: an error at its place, or success; the session
goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from venture_lite import Venture, VentureError, check
from venture_lite.errors import LimitError
from venture_lite.shell.cli import main

LONG = 1_000_000


def write(folder: Path, content: bytes) -> Path:
    path = folder / "p.vnt"
    path.write_bytes(content)
    return path


def huge(folder: Path) -> Path:
    """100 MB, most of it a hole in the file."""
    path = write(folder, b"[predict 1]\n")
    os.truncate(path, 100 * 2**20)
    return path


BAD_FILES = {
    "not UTF-8": (lambda folder: write(folder, b"[predict 1]\n; caf\xe9\n"), "line 2 holds the byte 0xE9"),
    "UTF-16": (lambda folder: write(folder, "[predict 1]".encode("utf-16")), "line 1 holds the byte 0xFF"),
    "a folder": (lambda folder: folder, "is a folder, not a program"),
    "no file": (lambda folder: folder / "no.vnt", "No such file"),
    "100 MB": (huge, "larger than 16 MB, too large for a program"),
    "a name with a NUL": (lambda folder: Path("a\0b.vnt"), "cannot read"),
}


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize("name", BAD_FILES)
def test_a_file_that_is_no_program_is_one_message(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, says = BAD_FILES[name]
    assert main([command, str(make(tmp_path))]) == 1
    shown, said = capsys.readouterr()
    assert shown == ""
    assert says in said
    assert said.count("error: ") == 1
    assert "Traceback" not in said


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_session_goes_on_after_a_file_that_is_no_program(name: str, tmp_path: Path) -> None:
    make, says = BAD_FILES[name]
    venture = Venture(seed=1)
    venture.execute("[assume x (normal 0 1)]")
    x = venture.report("x")
    path = make(tmp_path)
    with pytest.raises(VentureError, match=says):
        venture.run_file(path)
    if "\0" not in str(path):
        with pytest.raises(VentureError, match=says) as caught:
            venture.execute(f'[predict 1] [load "{path}"]')
        assert caught.value.span is not None
    assert venture.report("x") == x
    assert venture.execute("[predict (+ x 1)]") == [x + 1]


def test_a_byte_order_mark_and_the_line_ends_of_other_systems_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, b"\xef\xbb\xbf[assume x 1]\r\n[predict (+ x 1)]\r[predict x]")
    assert Venture(seed=1).run_file(path) == [1, 2, 1]


def test_a_text_beyond_the_limit_is_refused_from_python_too() -> None:
    with pytest.raises(VentureError, match="16,777,216 characters at most") as caught:
        Venture(seed=1).execute("[predict 1] ;" + "x" * 2**24)
    assert len(str(caught.value)) < 1000


# --------------------------------------------------------------------------------------------- brackets without end


def nested(n: int) -> dict[str, str]:
    """Directives with brackets that nest so deep."""
    return {
        "brackets": "[predict " + "(" * n + "1" + ")" * n + "]",
        "sums": "[predict " + "(+ 1 " * n + "1" + ")" * n + "]",
        "bodies": "[assume y " + "(lambda (a) " * n + "a" + ")" * n + "]",
        "branches": "[predict " + "(if true 1 " * n + "1" + ")" * n + "]",
        "lets": "[predict " + "(let ((a 1)) " * n + "a" + ")" * n + "]",
        "quotes": "[predict " + "'" * n + "a]",
        "quoted lists": "[observe (f '" + "(" * n + ")" * n + ") 1]",
        "a value": "[observe (normal 0 1) " + "(+ 1 " * n + "1" + ")" * n + "]",
        "actions": "[infer " + "(do " * n + "(mh default one 1)" + ")" * n + "]",
        "what is collected": "[infer (collect " + "(+ 1 " * n + "1" + ")" * n + ")]",
        "indices": "[predict {" + "X[" * n + "1" + "]" * n + "}]",
        "a scope": "[predict (tag '" + "(" * n + ")" * n + " 1 (flip))]",
        "a block": "[infer (mh s '" + "(" * n + ")" * n + " 1)]",
        "not closed": "[predict " + "(" * n,
        "closed only": "[predict " + ")" * n,
    }


DEPTHS = [2_000, pytest.param(100_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("name", nested(1))
def test_brackets_nested_deep_meet_no_recursion_limit(name: str, depth: int) -> None:
    text = nested(depth)[name]
    venture = Venture(seed=1)
    venture.execute("[assume f (mem (lambda (k) (normal 0 1)))] [assume z (tag 's 1 (flip))]")
    before = venture.list_directives(), venture.log_score()
    with pytest.raises(VentureError) as caught:
        venture.execute(text, X=[1])
    message = str(caught.value)
    assert message.startswith("<input>:1:")
    assert "recursion" not in message
    assert len(message) < 1000
    assert (venture.list_directives(), venture.log_score()) == before
    found = check("[assume f (mem (lambda (k) (normal 0 1)))] [assume z (tag 's 1 (flip))]\n" + text)
    assert all("recursion" not in str(one) for one in found.diagnostics)
    assert len(found.diagnostics) <= 1


def test_what_nests_too_deep_is_told_with_what_to_try() -> None:
    with pytest.raises(LimitError, match="nested too deeply") as caught:
        Venture(seed=1).execute(nested(1000)["sums"])
    assert caught.value.hint == "give parts of it names by assume or define"


@pytest.mark.parametrize("depth", DEPTHS)
def test_parentheses_in_an_index_nest_as_deep_as_one_likes(depth: int) -> None:
    text = "(" * depth + "N" + ")" * depth
    assert Venture(seed=1).execute(f"[predict {{{text}}}]", N=3) == [3]
    assert list(check(f"[predict {{{text}}}]").parameters) == ["N"]


# ---------------------------------------------------------------------------------------------------------- long lines


def test_a_line_of_a_million_characters_runs() -> None:
    number = f"1.{'0' * 97} "
    line = "[predict (+ " + number * (LONG // len(number)) + ")]"
    assert Venture(seed=1).execute(line) == [LONG // len(number)]
    assert check(line).ok


@pytest.mark.parametrize("line", ["x" * LONG, "[predict " + "x" * LONG + "]", '"' + "x" * LONG, "(" + "1" * LONG])
def test_an_error_in_a_line_of_a_million_characters_is_a_short_message(line: str) -> None:
    with pytest.raises(VentureError) as caught:
        Venture(seed=1).execute(line)
    assert len(caught.value.__str__().splitlines()[1]) < 200
    assert not check(line).ok


# -------------------------------------------------------------------------------------------------- names in any script

NAMES = ["größe", "変数", "σ²", "переменная", "متغير", "x̄", "नाम", "λ", "𝑥", "e\u0301te\u0301", "🎲"]


@pytest.mark.parametrize("name", NAMES)
def test_names_in_any_script(name: str) -> None:
    text = f"[assume {name} (normal 0 1)] l_{name}: [predict (+ {name} 0)] [infer (mh default one 1)]"
    venture = Venture(seed=1)
    assert check(text).ok
    venture.execute(text)
    assert venture.report(f"l_{name}") == venture.sample(name)
    with pytest.raises(VentureError) as caught:
        venture.execute(f"[predict (+ {name} {name}2)]")
    assert caught.value.hint == f"did you mean {unicodedata.normalize('NFKC', name)}?"


# ------------------------------------------------------------------------------------------------------ standard input


@pytest.mark.parametrize("command", ["run", "check"])
@pytest.mark.parametrize(
    ("given", "says"), [("<&-", "standard input is closed"), ("< {}", "0xE9"), ("< /dev/null", "<stdin> is empty")]
)
@pytest.mark.skipif(os.name != "posix", reason="as a shell on Unix redirects")
def test_standard_input_that_holds_no_program_is_one_message(
    tmp_path: Path, command: str, given: str, says: str
) -> None:
    redirected = given.format(write(tmp_path, b"[predict '\xe9]"))
    line = f"{sys.executable} -m venture_lite {command} - {redirected}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert says in done.stderr
    assert done.stderr.count("error: ") == 1
    assert "Traceback" not in done.stderr
