"""`venture repl` behind a pipe: values on standard output, messages on standard error, no escape sequences."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from venture_lite.repl import Conversation, PromptSettings, plain
from venture_lite.shell.cli import main


def piped(text: str, capsys: pytest.CaptureFixture[str], **settings: object) -> tuple[int, str, str]:
    conversation = Conversation(PromptSettings(seed=1, interactive=False, **settings))  # type: ignore[arg-type]
    status = plain.converse(conversation, io.StringIO(text))
    return status, *capsys.readouterr()


def test_values_come_alone_and_names_where_several_stand_in_one_entry(capsys: pytest.CaptureFixture[str]) -> None:
    status, shown, said = piped("[sample (+ 1 2)]\n(list 1 2)\n[sample 1] [sample 2]\n", capsys)
    assert (status, said) == (0, "")
    assert shown == "3\n(1 2)\n1 = 1\n2 = 2\n"


def test_each_directive_has_its_answer(capsys: pytest.CaptureFixture[str]) -> None:
    entries = """\
[assume x (if true 2 3)]
[assume f (lambda (y) y)]
[define steps 100]
[observe (normal x 1) 2]
for n in 1...2: [observe (normal x 1) n]
w: [predict (vector x x)]
[report w]
[force x 2]
[forget w]
(+ steps 1)
x
[list_directives]
[clear]
"""
    status, shown, said = piped(entries.replace("[force x 2]\n", ""), capsys)
    assert (status, said) == (0, "")
    assert shown.splitlines() == [
        "x = 2", "f = <procedure f>", "steps = 100", "log density = -0.918939", "2 passes", "[2 2]", "[2 2]",
        "forgotten", "101", "2", "id  directive  text", " 1  assume     [assume x (if true 2 3)]",
        " 2  assume     [assume f (lambda (y) y)]", " 3  observe    [observe (normal x 1) 2]",
        " 4  loop       for n in 1...2: [observe (normal x 1) n]", "cleared",
    ]  # fmt: skip


def test_inference_shows_the_table_the_kernels_and_the_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown, _ = piped("[assume mu (normal 0 1)]\n(repeat 20 (do (mh default one 1) (collect mu)))\n", capsys)
    lines = shown.splitlines()
    assert lines[1].split()[:3] == ["variable", "mean", "sd"]
    assert lines[3] == "1 chain of 20 draws"
    assert lines[4].startswith("(mh default one 1): 20 transitions, 100% accepted, ")
    assert lines[5].startswith("warning: ")


def test_the_session_goes_on_after_an_error_and_the_status_tells(capsys: pytest.CaptureFixture[str]) -> None:
    status, shown, said = piped("[assume x 1]\n[assume x 2]\n[sample (foo 1)]\n]\nx\n", capsys)
    assert status == 1
    assert shown == "x = 1\n1\n"
    assert "<2>:1:1: x is already assumed" in said
    assert "<3>:1:10: unknown name foo" in said
    assert "<4>:1:1: `]` closes nothing" in said


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("[sample (+ 1 ; (\n  2)]\n(+ 2 2)\n", "3\n4\n"),
        ('[sample (size "[")]\n(+ 2 2)', None),
        ("for n in 1...2:\n  [observe (normal 0 1) n]\n\n(+ 2 2)\n", "2 passes\n4\n"),
        ("for n in 1...2: [observe (normal 0 1) n]\n(+ 2 2)\n", "2 passes\n4\n"),
        ("for n in 1...2:\n  [observe (normal 0 1) n]", "2 passes\n"),
        ("(+ 1\n\n\n 2)\n", "3\n"),
        ("\n\n; nothing\n(+ 1 2)\n", "3\n"),
        ("(+ 1 2)\r\n(+ 1 3)\r\n", "3\n4\n"),
    ],
)
def test_entries_end_where_a_person_would_say(
    text: str, answers: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    _, shown, _ = piped(text, capsys)
    assert shown == answers if answers is not None else shown.endswith("4\n")


def test_an_entry_that_never_ends_is_an_error_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, said = piped("[assume x (+ 1\n[sample 2]\n", capsys)
    assert status == 1
    assert "opened here and not closed" in said


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("(+ " * 5_000, "opened here and not closed"),
        ("(+ 1 " * 20_000 + ")" * 20_000, "nested"),
        pytest.param("(+ " * 100_000, "opened here and not closed", marks=pytest.mark.slow),
        pytest.param("(+ 1 " * 100_000 + ")" * 100_000, "nested", marks=pytest.mark.slow),
        ("[sample " + "x" * 1_000_000 + "]", "unknown name"),
        ("[sample \x00]", "U+0000"),
        ('[load "/"]', "/"),
        (":load", ":load FILE"),
        (":load nowhere.vnt", "cannot read nowhere.vnt"),
        (":save", ":save FILE"),
        (":save /nowhere/at/all.vnt", "cannot write"),
        (":set N", "N"),
        (":set N nothing", "not a number"),
        (":set N nothing", ':set N="nothing" for a string'),
        (":set N 1,2", ":set xs=[1, 2.5, 3]"),
        (":set 1x 2", "NAME=VALUE"),
        (":data", ":data NAME=PATH"),
        (":data X=nowhere.csv", "there is no file nowhere.csv"),
        (":seed -1", "whole number"),
        (":nonsense", "no command :nonsense"),
        (":directives now", "is written :directives"),
        (":explain", "is written :explain PROGRAM"),
        ("help nrmal", "did you mean normal?"),
        ("[freeze nothing]", ""),
        ("[sample (normal 0 -1)]", "sd must be"),
        ("[infer (gibbs default all)]", "is written"),
        ("[sample (if 2 1 0)]", "predicate"),
        ("[assume (f n) (+ 1 (f n))] [predict (f 1)]", "nested calls"),
    ],
)
def test_bad_input_leaves_the_session_as_it_was(entry: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"[assume mu (normal 0 1)]\nmu\n{entry}\nmu\n"
    if "(" in entry and entry.count("(") > entry.count(")"):
        text = f"[assume mu (normal 0 1)]\nmu\n{entry}"
    status, shown, said = piped(text, capsys, nested_calls=2000)
    assert status == 1
    assert says in said
    assert "Traceback" not in said
    values = [line for line in shown.splitlines() if line[:1] in "-0123456789"]
    assert len(set(values)) == 1


def test_parameters_come_from_the_command_line_and_the_prompt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.csv").write_text("a,b\n1,2\n3,4\n")
    entries = f"{{N}}\n:set N 4\n{{N}}\n:data X={tmp_path}/d.csv:b\n(+ {{X[2]}} {{N}})\n:set\n"
    status, shown, _ = piped(entries, capsys, values=("N=3",))
    assert status == 0
    assert shown.splitlines() == ["3", "4", "X = [2 4]", "8", "N = 4", "X = [2 4]"]


def test_a_parameter_that_is_not_there_is_asked_for_in_the_words_of_the_prompt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    entries = (
        "for i in 1...2: [observe (normal 0 1) {y[i]}]\n:set y=[1, 2]\nfor i in 1...2: [observe (normal 0 1) {y[i]}]\n"
    )
    status, shown, said = piped(entries, capsys)
    assert status == 1
    assert "try: give it a value: :set y=VALUE or :data y=FILE\n" in said
    assert "2 passes" in shown


def test_a_file_is_run_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.vnt").write_text("[assume x 2]\n[predict (* x x)]")
    monkeypatch.setattr(sys, "stdin", io.StringIO("(+ x 40)\n"))
    assert main(["repl", str(tmp_path / "p.vnt"), "--seed", "1"]) == 0
    assert capsys.readouterr().out == "x = 2\n(* x x) = 4\n42\n"


def test_several_chains_give_a_value_each(capsys: pytest.CaptureFixture[str]) -> None:
    _, shown, _ = piped("[assume x (normal 0 1)]\n(repeat 10 (do (mh default one 1) (collect x)))\n", capsys, chains=2)
    assert "(a value for each chain)" in shown.splitlines()[0]
    assert "2 chains of 10 draws" in shown


def test_wrong_options_end_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["repl", "-p", "nonsense"]) == 2
    assert "NAME=VALUE" in capsys.readouterr().err


def test_a_real_pipe_has_no_prompts_and_no_escape_sequences() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "venture_lite", "repl", "--seed", "1"],
        input=b"[assume mu (normal 0 1)]\n(+ 20 22)\n\xff\n",
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[1:] == [b"42"]
    assert b"<3>:1:1: the character U+DCFF" in done.stderr
    assert b"\x1b" not in done.stdout + done.stderr


def test_no_command_is_a_prompt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("[assume x 2]\n(+ x 40)\n"))
    assert main([]) == 0
    assert capsys.readouterr().out == "x = 2\n42\n"


def test_a_closed_pipe_ends_it_quietly() -> None:
    command = f"yes '(+ 20 22)' | '{sys.executable}' -m venture_lite repl --seed 1 | head -2"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout == "42\n42\n"
    assert "Traceback" not in done.stderr


DRAWING = """\
[assume x (normal 0 1)]
(repeat 20 (do (mh default one 1) (collect x)))
for i in 1...2: [infer (repeat 30 (do (mh default one 1) (collect i x)))]
"""


def test_draws_are_kept_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.npz"
    entries = f"{DRAWING}\n:draws\n:draws 1\n:save-draws {file} 1\n:save-draws {file}\n:save-draws {tmp_path}/a.txt\n"
    status, shown, said = piped(f":draws\n:save-draws {file}\n{entries}:draws 4\n", capsys)
    lines = shown.splitlines()
    assert lines[0].startswith("no draws yet")
    at = lines.index("set  draws          variables  inference")
    assert [line.split()[0] for line in lines[at + 1 : at + 4]] == ["1", "2", "3"]
    assert lines[at + 3].split()[1:7] == ["1", "chain", "of", "30", "i,", "x"]
    assert lines[at + 4].startswith("variable")
    assert said.count(f"draws written to {file}") == 2
    assert "there are no draws yet" in said
    assert "cannot tell the format" in said
    assert "there is no set 4 of draws" in said
    with np.load(file) as saved:
        assert saved["i"].tolist() == [[2] * 30]
    assert status == 1


def test_draws_are_not_written_over_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.npz").write_text("something else")
    _, _, said = piped(f"{DRAWING}\n:save-draws {tmp_path}/x.npz\n", capsys)
    assert "x.npz exists" in said
    assert (tmp_path / "x.npz").read_text() == "something else"


def test_draws_before_an_error_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = "[assume x (normal 0 1)]\n(repeat 500 (do (mh default one 1) (collect (sqrt (- 3 (abs x))))))\n:draws\n"
    status, shown, _ = piped(entries, capsys)
    assert status == 1
    assert shown.splitlines()[-1].startswith("  1  1 chain of ")


def test_a_typo_in_an_action_is_told_and_nothing_of_the_kernels_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    """These did nothing: a program is read as a whole before it runs."""
    entries = "[assume x (normal 0 1)]\n[infer (do (mh default one 100) (colect x))]\n:draws\n"
    status, shown, said = piped(entries, capsys)
    assert status == 1
    assert "unknown inference action colect" in said
    assert "transitions" not in shown + said
    assert shown.splitlines()[1].startswith("no draws yet")


def test_warnings_are_broken_between_words_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    text = "warning: " + "a-long-word and " * 12
    Conversation(PromptSettings(seed=1)).say(text)
    Conversation(PromptSettings(seed=1, interactive=False)).say(text)
    *lines, last = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 50
    assert all(line.startswith("  ") for line in lines[1:])
    assert " ".join(map(str.strip, lines)) == last.strip()


def test_draws_of_auto_are_pictured_where_a_folder_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    entries = "[assume x (normal 0 1)]\n[observe (normal x 1) 2]\n[infer (auto 20)]\n(plot x)\n"
    _, _, said = piped(entries, capsys, plots=tmp_path)
    assert f"picture: {tmp_path / 'plot-1.png'}\n" in said
    assert f"picture: {tmp_path / 'plot-2.png'}\n" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plot-1.png", "plot-2.png"]
