"""How much of the package one everyday transition runs: Python calls, and modules that they are in."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import venture_lite
from venture_lite import Venture
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.tally import Tally

ROOT = str(Path(venture_lite.__file__).parent)
TIMES = 1000

MEAN = "[assume mu (normal 0 10)] for n in 1...10: [observe (normal mu 1) {y[n]}]"
BRANCH = """
    [assume b (bernoulli 0.5)]
    [assume mu (if b 1 (gamma 1 1))]
    [observe (normal mu 1) 1.1]
    [observe (normal (+ mu 0.5) 1) 1.4]
    [observe (normal (+ mu 1) 1) 2.1]"""


class Counted:
    """Calls, and the files of the functions called, of each transition."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.files: list[int] = []
        self._calls = 0
        self._files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        # functions that were generated stand in no file
        if event != "call" or not (code.co_filename.startswith(ROOT) or code.co_filename == "<string>"):
            return
        self._calls += 1
        self._files.add(code.co_filename)
        if code is Tally.count.__code__:
            self.calls.append(self._calls)
            self.files.append(len(self._files))
            self._calls = 0
            self._files.clear()


def counted(program: str) -> Counted:
    """Of resimulation of one choice after the other, once all is met that is prepared."""
    v = Venture(seed=1)
    v.execute(program, y=[0.1 * n for n in range(10)])
    v.infer(f"(mh default one {TIMES})")
    found = Counted()
    sys.setprofile(found)
    try:
        v.infer(f"(mh default one {TIMES})")
    finally:
        sys.setprofile(None)
    assert len(found.calls) == TIMES
    return found


def check(program: str, calls: int, files: int) -> None:
    found = counted(program)
    assert statistics.fmean(found.calls[1:]) <= calls
    assert statistics.median(found.files) <= files


def test_a_mean_is_moved_in_ten_calls() -> None:
    check(MEAN, calls=10, files=10)


@pytest.mark.thorough
def test_a_branch_is_changed_in_two_hundred_calls_of_twenty_five_modules() -> None:
    check(BRANCH, calls=200, files=25)


@pytest.mark.thorough
def test_a_transition_that_calls_more_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Model.poll

    def looks_around(self: Model) -> None:
        for _ in range(20):
            self.trace.structure_stamp()
        original(self)

    monkeypatch.setattr(Model, "poll", looks_around)
    with pytest.raises(AssertionError):
        check(BRANCH, calls=200, files=25)
