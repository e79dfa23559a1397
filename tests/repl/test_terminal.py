"""`venture repl` at a real pseudo-terminal, key by key."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyte", reason="a screen for the pseudo-terminal")
pytest.importorskip("fcntl", reason="pseudo-terminals are Unix's")

from tests.repl.screen import Terminal, repl


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    with repl(tmp_path_factory.mktemp("session")) as found:
        yield found


@pytest.fixture
def terminal(session: Terminal) -> Terminal:
    """The module's session with an empty model, an empty line and an empty screen."""
    session.press("ctrl-c")
    session.enter("[clear]")
    session.wait_for("cleared")
    session.wait_for_prompt()
    session.press("ctrl-l")
    session.wait_for_no("cleared")
    return session


def test_an_entry_goes_over_lines_until_its_brackets_balance(terminal: Terminal) -> None:
    terminal.enter("[assume f (lambda (x) ; )))")
    terminal.wait_for(".. ")
    terminal.enter('(if (= "(" x) 1 (* 2 x)))]')
    terminal.wait_for("f = <procedure f>")
    terminal.enter("(f 21)")
    terminal.wait_for("42")


def test_a_loop_is_indented_and_an_empty_line_ends_it(terminal: Terminal) -> None:
    terminal.enter("for n in 1...3:")
    terminal.enter("[observe (normal 0 1) n]")
    terminal.wait_for("..   [observe (normal 0 1) n]")
    terminal.press("enter")
    terminal.wait_for("3 passes")
    terminal.wait_for_prompt()
    terminal.press("up")
    shown = terminal.wait_for("for n in 1...3:", times=2)
    assert re.search(
        r"\d> for n in 1...3:\n\.\.   +\[observe \(normal 0 1\) n\]\n", terminal.wait_for("normal", times=2)
    ), shown


def test_an_error_shows_its_place_and_the_session_goes_on(terminal: Terminal) -> None:
    terminal.enter("[assume mu (normal 0 1)]")
    terminal.enter("[sample (nomal mu 1)]")
    shown = terminal.wait_for("did you mean normal?")
    assert re.search(r"<\d+>:1:10: unknown name nomal\n    \[sample \(nomal mu 1\)\]\n {13}\^{5}\n", shown)
    terminal.enter("[sample (= mu mu)]")
    terminal.wait_for("true")


def test_ctrl_c_stops_inference_and_keeps_the_trace(terminal: Terminal) -> None:
    terminal.enter("[assume mu (normal 0 1)]")
    terminal.enter("(repeat 100000000 (do (mh default one 5) (collect mu)))")
    terminal.wait_for("of 100,000,000 (0%)")
    terminal.press("ctrl-c")
    shown = terminal.wait_for("interrupted; the trace is kept")
    assert "of 100,000,000" not in shown
    assert re.search(r"1 chain of \d+ draws", shown)
    assert re.search(r"\(mh default one 5\): [\d,]+ transitions, \d+% accepted", shown)
    terminal.enter("[list_directives]")
    terminal.wait_for("[assume mu (normal 0 1)]", times=2)
    terminal.enter(":save interrupted.vnt")
    terminal.wait_for("warning: an inference was interrupted")


def test_ctrl_c_clears_the_line(terminal: Terminal) -> None:
    terminal.type("[assume nonsense")
    terminal.wait_for("nonsense")
    terminal.press("ctrl-c")
    terminal.wait_for_prompt()
    terminal.enter("(+ 20 22)")
    terminal.wait_for("42")


def test_tab_completes_with_signatures(terminal: Terminal) -> None:
    terminal.type("[assume centre (student")
    terminal.press("tab")
    terminal.wait_for("(student_t df [loc] [scale])")
    terminal.enter(" 3)]")
    terminal.wait_for("centre = ")
    terminal.wait_for_prompt()
    terminal.type("(mh de")
    terminal.press("tab")
    terminal.type(" o")
    terminal.press("tab")
    terminal.wait_for("(mh default o")
    assert "ordered" in terminal.wait_for("a block drawn at random")


def test_the_matching_bracket_is_marked(terminal: Terminal) -> None:
    entry = '(f "(" (g))'
    terminal.type(entry)
    terminal.wait_for(entry)
    number, line = next((n, line) for n, line in enumerate(terminal.shown.splitlines()) if line.endswith(entry))
    start = line.index(entry)
    terminal.settle(lambda: terminal.is_bold(number, start))
    assert terminal.is_bold(number, start + len(entry) - 1)
    assert not any(terminal.is_bold(number, start + column) for column in (4, 7, 9))


def test_what_is_pasted_keeps_its_lines(terminal: Terminal) -> None:
    terminal.paste("[assume mu (normal 0 1)]\n[assume two\n  (+ 1 1)]\n[sample two]")
    terminal.press("enter")
    assert "mu = " in terminal.wait_for("two = 2", times=2)


def test_what_a_paste_has_left_is_offered_again(terminal: Terminal) -> None:
    terminal.paste("[assume mu (normal 0 1)]\n[assume two (+ 1 i)]\n[sample (* two 21)]")
    terminal.press("enter")
    terminal.wait_for("unknown name i")
    shown = terminal.settle(lambda: terminal.shown.count("[sample (* two 21)]") == 2)
    assert re.search(r"> \[assume two \(\+ 1 i\)\]\n *\.\. \[sample \(\* two 21\)\]$", shown, re.MULTILINE)
    # the cursor stands at the end: what was wrong is mended as in any entry
    terminal.press("up")
    terminal.type("\x05" + "\x08" * 3 + "1)]")
    terminal.press("enter")
    terminal.press("enter")
    assert "\ntwo = 2\n" in terminal.wait_for("(* two 21) = 42")


@pytest.mark.slow
def test_a_signal_ends_the_session_and_writes_its_draws(tmp_path: Path) -> None:
    with repl(tmp_path) as terminal:
        terminal.enter("[assume x (normal 0 1)]")
        terminal.enter("(repeat 5 (do (mh default one 1) (collect x)))")
        terminal.wait_for("1 chain of 5 draws")
        terminal.wait_for_prompt()
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.wait_for_end() == 128 + signal.SIGTERM
        assert "terminated" in terminal.shown
    (file,) = tmp_path.glob("venture-*-1.npz")
    with np.load(file) as saved:
        assert saved["x"].shape == (1, 5)
    with repl(tmp_path) as terminal:
        terminal.enter("[assume x (normal 0 1)]")
        terminal.enter("(repeat 100000000 (do (mh default one 5) (collect x)))")
        terminal.wait_for("of 100,000,000 (0%)")
        terminal.process.send_signal(signal.SIGHUP)
        assert terminal.wait_for_end() == 128 + signal.SIGHUP
    assert len(list(tmp_path.glob("venture-*-1.npz"))) == 2


def test_a_plot_is_drawn_and_its_picture_named(terminal: Terminal) -> None:
    pytest.importorskip("matplotlib")
    terminal.enter("[assume mu (normal 0 1)]")
    terminal.enter("(repeat 50 (do (mh default one 1) (plot mu)))")
    shown = terminal.wait_for(".png")
    assert "mu: 50 draws, mean" in shown
    assert "█" in shown
    path = re.search(r"picture: (\S+\.png)", shown)
    assert path is not None
    assert Path(path[1]).read_bytes().startswith(b"\x89PNG")


def test_a_saved_session_gives_the_same_trace(tmp_path: Path) -> None:
    with repl(tmp_path, environment={"VENTURE_HISTORY": str(tmp_path / "file" / "history")}) as terminal:
        for entry in (
            "[assume mu (normal 0 1)]",
            "[sample (nomal 0 1)]",
            "[observe (normal mu 1) 2]",
            "(mh default one 20)",
        ):
            terminal.enter(entry)
        terminal.wait_for("accepted")
        terminal.enter("[get_logscore]")
        score = re.findall(r"^-\d+\.\d+$", terminal.wait_for("6> "), re.MULTILINE)[-1]
        terminal.enter(":save session.vnt")
        terminal.wait_for("3 directives written to session.vnt")
        terminal.wait_for_prompt()
        terminal.press("ctrl-d")
        assert terminal.wait_for_end() == 0
        assert b"Traceback" not in terminal.received
    text = (tmp_path / "session.vnt").read_text()
    command = re.search(r"^; +venture (run .*)$", text, re.MULTILINE)
    assert command is not None
    (tmp_path / "session.vnt").write_text(text + "[get_logscore]\n")
    done = subprocess.run(
        [sys.executable, "-m", "venture_lite", *command[1].split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == f"get logscore = {score}"


def test_two_sessions_share_a_history_and_a_third_finds_it_damaged(tmp_path: Path) -> None:
    file = tmp_path / "history"
    with repl(tmp_path) as one, repl(tmp_path) as other:
        for number in range(5):
            one.enter(f"(+ 100 {number})")
            other.enter(f"(+ 200 {number})")
        one.wait_for("6> ")
        other.wait_for("6> ")
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    assert sorted(entries) == sorted(f"(+ {base} {number})" for base in (100, 200) for number in range(5))
    with file.open("ab") as damaged:
        damaged.write(b'\xff\xfe\x00{"\n[1]\n"(+ 2 3)"\n"unfinis')
    with repl(tmp_path) as third:
        third.press("up")
        third.wait_for("1> (+ 2 3)")
        third.press("up")
        third.wait_for(f"1> {entries[-1]}")
        third.press("enter")
        third.wait_for("2> ")
    assert json.loads(file.read_bytes().split(b"\n")[-2]) == entries[-1]


def test_a_history_that_cannot_be_written_is_a_warning_and_ctrl_d_leaves_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with repl(tmp_path, environment={"VENTURE_HISTORY": str(tmp_path / "file" / "history")}) as terminal:
        assert "warning: history is not kept: cannot write" in terminal.shown
        terminal.press("ctrl-d")
        assert terminal.wait_for_end() == 0
        assert b"Traceback" not in terminal.received


def test_a_terminal_that_cannot_move_its_cursor_has_plain_prompts(tmp_path: Path) -> None:
    with repl(tmp_path, environment={"TERM": "dumb"}) as terminal:
        terminal.enter("[assume f")
        terminal.wait_for(".. ")
        terminal.press("ctrl-c")
        terminal.wait_for("1> ", times=2)
        terminal.enter("(+ 20 22)")
        terminal.wait_for("42")
        terminal.press("ctrl-d")
        assert terminal.wait_for_end() == 0
        assert b"\x1b" not in terminal.received
