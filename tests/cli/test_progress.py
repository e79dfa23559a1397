"""The lines that say how far the chains are: late, rare, one for each chain, and gone at the end."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from venture_lite.inference.progress import Display, Silent, Snapshot, Tracker, for_terminal
from venture_lite.shell.printer import Printer


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shown() -> list[Snapshot | None]:
    return []


def test_nothing_shows_within_the_first_second(shown: list[Snapshot | None], clock: Clock) -> None:
    tracker = Tracker(shown.append, clock)
    tracker.begin("infer", 10)
    clock.now = 0.9
    tracker.advance(5)
    tracker.end()
    assert shown == []


def test_five_snapshots_a_second_at_most_and_an_end(shown: list[Snapshot | None], clock: Clock) -> None:
    tracker = Tracker(shown.append, clock)
    tracker.begin("infer", 1000)
    for step in range(1000):
        clock.now = step / 100
        tracker.advance(step)
    tracker.end()
    assert 40 <= len(shown) <= 50
    assert shown[0] == Snapshot("infer", 100, 1000, 1.0)
    assert shown[-1] is None
    assert shown.count(None) == 1


def test_the_outermost_task_with_a_known_end_is_shown(shown: list[Snapshot | None], clock: Clock) -> None:
    tracker = Tracker(shown.append, clock)
    tracker.begin("infer", None)
    tracker.begin("repeat", 4)
    tracker.begin("mh", 100)
    clock.now = 2.0
    tracker.advance(50)
    assert shown == [Snapshot("repeat", 0, 4, 2.0)]


@pytest.mark.parametrize(
    ("snapshot", "told"),
    [
        (Snapshot("x", 1200, 10_000, 14.0), "1,200 of 10,000 (12%)  86/s, about 1:43 left"),
        (Snapshot("x", 3, 10, 30.0), "3 of 10 (30%)  0.1/s, about 1:10 left"),
        (Snapshot("x", 0, 10, 2.0), "0 of 10 (0%)  0:02"),
        (Snapshot("x", 10, 10, 2.0), "10 of 10 (100%)  0:02"),
        (Snapshot("x", 1234, None, 3700), "1,234  0.33/s  1:01:40"),
    ],
)
def test_a_line_tells_the_rate_and_what_is_left(snapshot: Snapshot, told: str) -> None:
    assert snapshot.told() == told


def plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_each_chain_has_a_line() -> None:
    stream = io.StringIO()
    display = Display(stream, chains=2)
    display.update(0, Snapshot("repeat", 1, 10, 2.0))
    display.update(1, Snapshot("repeat", 5, 10, 2.0))
    lines = plain(stream.getvalue()).split("\r")[-1].splitlines()
    assert ["chain 0: repeat" in lines[0], "chain 1: repeat" in lines[1]] == [True, True]
    assert "1 of 10 (10%)" in lines[0]
    assert "5 of 10 (50%)" in lines[1]


def test_what_is_drawn_is_erased_at_the_end_and_for_other_output() -> None:
    stream = io.StringIO()
    display = Display(stream)
    display.update(0, Snapshot("repeat", 1, 10, 2.0))
    display.clear()
    erased = stream.getvalue()
    assert erased.endswith("\x1b[1A\x1b[2K")
    display.clear()
    assert stream.getvalue() == erased
    display.update(0, Snapshot("repeat", 2, 10, 2.0))
    display.update(0, None)
    assert stream.getvalue().endswith("\x1b[1A\x1b[2K")


def test_a_closed_terminal_does_not_end_inference() -> None:
    stream = io.StringIO()
    display = Display(stream)
    stream.close()
    display.update(0, Snapshot("repeat", 1, 10, 2.0))
    display.update(0, None)


def test_only_a_terminal_gets_a_line() -> None:
    assert isinstance(for_terminal(io.StringIO()), Silent)
    assert isinstance(for_terminal(io.StringIO(), forced=True), Tracker)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("as_json", "stream", "watched"), [
    (False, Terminal(), True), (True, Terminal(), False), (False, io.StringIO(), False),
])  # fmt: skip
def test_nothing_is_shown_with_json_or_redirected(
    monkeypatch: pytest.MonkeyPatch, as_json: bool, stream: io.StringIO, watched: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert Printer(as_json, None, None).is_watched is watched


LONG = "[assume x (normal 0 1)] [infer (repeat 200000 (do (mh default one 20) (collect x)))]"


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("arguments", "lines"), [((), ["repeat"]), (("--chains", "2"), ["chain 0: repeat", "chain 1: repeat"])]
)
def test_a_person_at_a_terminal_sees_how_far_the_chains_are(
    tmp_path: Path, arguments: tuple[str, ...], lines: list[str]
) -> None:
    """The program would run for minutes, and is stopped as soon as it shows what is looked for."""
    program = tmp_path / "p.vnt"
    program.write_text(LONG)
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "venture_lite", "run", str(program), "--seed", "1", *arguments]
    environment = os.environ | {"COLUMNS": "100", "TERM": "xterm"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as running:
        os.close(theirs)
        seen = ""
        try:
            while not all(line in seen for line in lines):
                seen = plain(seen + os.read(ours, 4096).decode())
        finally:
            running.terminate()
            os.close(ours)
    assert re.search(r"of 200,000 \(\d+%\)  [\d.,]+/s, about [\d:]+ left", seen)
