"""The progress line: late, rare, and gone at the end."""

from __future__ import annotations

import io

import pytest

from venture_lite.progress import Silent, TerminalLine, describe, for_terminal


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def test_nothing_shows_within_the_first_second(stream: io.StringIO, clock: Clock) -> None:
    line = TerminalLine(stream, clock)
    line.begin("infer", 10)
    clock.now = 0.9
    line.advance(5)
    line.end()
    assert stream.getvalue() == ""


def test_the_line_is_rewritten_five_times_a_second_at_most_and_erased(stream: io.StringIO, clock: Clock) -> None:
    line = TerminalLine(stream, clock)
    line.begin("infer", 1000)
    for step in range(1000):
        clock.now = step / 100
        line.advance(step)
    line.end()
    updates = stream.getvalue().split("\r")
    assert 40 <= len(updates) <= 50
    assert "infer  100 of 1,000 (10%)  0:01, about 0:09 left" in updates[1]
    assert updates[-2].strip() == ""
    assert updates[-1] == ""


def test_the_outermost_task_with_a_known_end_is_shown(stream: io.StringIO, clock: Clock) -> None:
    line = TerminalLine(stream, clock)
    line.begin("infer", None)
    line.begin("repeat", 4)
    line.begin("mh", 100)
    clock.now = 2.0
    line.advance(50)
    assert "repeat  0 of 4" in stream.getvalue()


def test_a_closed_terminal_does_not_end_inference(clock: Clock, stream: io.StringIO) -> None:
    line = TerminalLine(stream, clock)
    line.begin("infer", 10)
    stream.close()
    clock.now = 5.0
    line.advance(1)
    line.end()


def test_only_a_terminal_gets_a_line() -> None:
    assert isinstance(for_terminal(io.StringIO()), Silent)
    assert isinstance(for_terminal(io.StringIO(), forced=True), TerminalLine)


def test_a_task_of_unknown_length_counts_up() -> None:
    assert describe("load", 1234, None, 3700) == "load  1,234  1:01:40"
