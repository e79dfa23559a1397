"""Ctrl-C: never lost, never in the middle of a change, and no session is locked by it."""

from __future__ import annotations

import contextlib
import itertools
import math
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

from tests.generator.session import check, state
from tests.session.registered import gauss
from venture_lite import Draws, Venture, VentureError
from venture_lite.session import chains, interruption, runner

# whose instructions are entry and exit of a directive
FILES = {module.__file__ for module in (chains, interruption, runner, contextlib)}


class AtInstruction:
    """A trace function that sends SIGINT to the process before the n-th instruction of a directive's entry and exit."""

    def __init__(self, n: int) -> None:
        self.left = n

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in FILES:
            return None
        frame.f_trace_opcodes = True
        return self._instruction

    def _instruction(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)
        return self._instruction


def interrupted_at(n: int, action: Callable[[], object]) -> BaseException | None:
    """What Ctrl-C at the n-th instruction raised; None where the action has fewer."""
    at = AtInstruction(n)
    outside = sys.gettrace()
    try:
        sys.settrace(at)
        try:
            action()
        finally:
            sys.settrace(outside)
    except (KeyboardInterrupt, VentureError) as error:
        return error
    assert at.left > 0, f"Ctrl-C at instruction {n} was lost"
    return None


WAYS_IN = (
    "[predict (normal x 1)]",
    "[sample (no_such_name)]",
    "[sample (normal x 1)]",
    "[observe (normal x 1) 2] [sample x]",
    "[infer (mh default one 2)]",
    "for n in 1...2: [observe (normal x 1) n] [sample n]",
)


@pytest.mark.parametrize("text", WAYS_IN[:2])
@pytest.mark.thorough
def test_ctrl_c_at_an_instruction_of_entry_and_exit_is_raised(text: str) -> None:
    interrupt_every(7, text)


@pytest.mark.slow
@pytest.mark.parametrize("text", WAYS_IN)
def test_ctrl_c_at_any_instruction_of_entry_and_exit_is_raised(text: str) -> None:
    interrupt_every(1, text)


def interrupt_every(step: int, text: str) -> None:
    """Run a text again and again, with Ctrl-C at a later instruction each time, until it has no more of them."""
    venture = Venture(seed=1)
    venture.assume("x", "(normal 0 1)")
    outside = signal.getsignal(signal.SIGINT)
    outcomes: Counter[int] = Counter()
    for n in itertools.count(1, step):
        before, directives = state(venture), venture.list_directives()
        raised = interrupted_at(n, lambda: venture.execute(text))
        if raised is None or (isinstance(raised, VentureError) and "no_such_name" in raised.message):
            break
        assert isinstance(raised, KeyboardInterrupt)
        assert signal.getsignal(signal.SIGINT) is outside
        done = len(venture.list_directives()) - len(directives)
        outcomes[done] += 1
        if not done and "infer" not in text:
            assert state(venture) == before
        check(venture)
        # neither locked nor with a note of it left
        venture.sample("x")
        for entry in venture.list_directives()[len(directives) :]:
            venture.forget(entry["id"])
    assert outcomes[0] > 100 // step
    # one that comes too late leaves the directive done
    assert outcomes[1] > 100 // step or "[predict" not in text


@pytest.mark.thorough
def test_ctrl_c_that_comes_after_an_inference_hands_over_its_draws() -> None:
    venture = Venture(seed=1)
    venture.assume("x", "(normal 0 1)")
    handed_over = 0
    for n in range(1, 4000, 7):
        raised = interrupted_at(n, lambda: venture.infer("(repeat 3 (collect x))"))
        if raised is None:
            break
        drawn = getattr(raised, "draws", None)
        if isinstance(drawn, Draws) and len(drawn.names) and drawn["x"].shape == (1, 3):
            handed_over += 1
    assert raised is None
    assert handed_over > 3


@pytest.mark.thorough
def test_a_loop_that_needs_no_evaluation_stops() -> None:
    venture = Venture(seed=1)
    (trace,) = venture.traces
    for text in ("for n in 1...5000: [predict n]", "for n in 1...5000: [observe (normal 0 1) (+ n 0)]"):
        before = state(venture)
        for after in (1, 2, 4):
            trace.interrupt_after = after
            with pytest.raises(KeyboardInterrupt):
                venture.execute(text)
            assert state(venture) == before
    venture.execute("every: for n in 1...5000: number: [predict n]")
    for text in ("[report number]", "[freeze every]", "[forget every]"):
        before = state(venture)
        trace.interrupt_after = 2
        with pytest.raises(KeyboardInterrupt):
            venture.execute(text)
        assert state(venture) == before
        check(venture)


def test_a_loop_pass_by_pass_stops_between_two_passes() -> None:
    venture = Venture(seed=1)
    (trace,) = venture.traces
    trace.interrupt_after = 8
    with pytest.raises(KeyboardInterrupt):
        venture.execute("for n in 1...20: [observe (normal 0 1) n] [sample (+ n 1)]")
    assert 1 < len(venture.list_directives()) < 20
    check(venture)


# ------------------------------------------------------------------------------------------- registered procedures


class Endless:
    """A function that turns endless at one of its calls, where a person presses Ctrl-C until something happens."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        # the call that does not end, counted from 1; 0 for none
        self.at = 0
        self.pressed = 0

    def __call__(self, *arguments: Any) -> Any:
        self.at -= 1
        while self.at == 0:
            self.pressed += 1
            assert self.pressed < 5, "Ctrl-C does not stop a registered function"
            signal.raise_signal(signal.SIGINT)
        return self.function(*arguments)


def endless(role: str) -> tuple[Venture, Endless]:
    venture = Venture(seed=1)
    functions: dict[str, Any] = {"simulate": lambda rng, mean, sd: rng.normal(mean, sd), "log_density": gauss}
    spinning = functions[role] = Endless(functions[role])
    venture.register("gauss", arguments={"mean": "real", "sd": "positive"}, domain="real", **functions)
    venture.execute(
        "[assume c (tag 'c 0 (flip 0.5))] [assume m (gauss 0 1)] "
        "[assume x (mem (lambda (i) (gauss (if c m (gauss m 1)) 1)))] "
        "[observe (gauss (x 1) 1) 0.3] [observe (gauss (x 2) 1) 0.7] [predict (x 3)]"
    )
    return venture, spinning


@pytest.mark.parametrize("role", ["simulate", "log_density"])
@pytest.mark.parametrize(
    "text", ["[predict (x 4)]", "[observe (gauss (x 4) 2) 1]", "[force m 0.1]", "[sample (gauss (x 7) 1)]"]
)
def test_a_second_ctrl_c_breaks_off_an_endless_function(role: str, text: str) -> None:
    venture, spinning = endless(role)
    before, score = state(venture), venture.log_score()
    for at in range(1, 20):
        spinning.at, spinning.pressed = at, 0
        try:
            venture.execute(text)
        except KeyboardInterrupt:
            assert spinning.pressed == 2
        else:
            break
        spinning.at = 0
        assert state(venture) == before
        assert venture.log_score() == score
        check(venture)
    # a new value of m is weighed, not drawn, and of what is sampled nothing is weighed
    assert at > 1 or (role, text[:6]) in (("simulate", "[force"), ("log_density", "[sampl"), ("log_density", "[predi"))


@pytest.mark.parametrize("role", ["simulate", "log_density"])
@pytest.mark.parametrize("kernel", ["(mh default one 20)", "(mh default all 5)", "(gibbs c 0 5)", "(mh c one 5)"])
@pytest.mark.thorough
def test_a_second_ctrl_c_in_a_transition_takes_it_back(role: str, kernel: str) -> None:
    venture, spinning = endless(role)
    for at in (1, 2, 3, 5, 8, 13):
        spinning.at, spinning.pressed = at, 0
        with contextlib.suppress(KeyboardInterrupt):
            venture.infer(kernel)
        spinning.at = 0
        check(venture)
        assert math.isfinite(venture.log_score())


class Mean:
    """A state that counts. Ctrl-C comes in its `add`, which broken off would leave the sum without its count."""

    presses = 3

    def __init__(self, weight: float) -> None:
        self.weight, self.number, self.total = weight, 0, 0.0

    def set_arguments(self, arguments: tuple[Any, ...]) -> None:
        (self.weight,) = arguments

    def simulate(self, rng: np.random.Generator) -> bool:
        return bool(rng.random() < 0.5)

    def log_predictive(self, value: bool) -> float:
        return math.log(0.5)

    def log_joint(self) -> float:
        return self.number * math.log(0.5)

    def add(self, value: bool) -> None:
        self.total += value
        while self.number == 2 and Mean.presses:
            Mean.presses -= 1
            signal.raise_signal(signal.SIGINT)
        self.number += 1

    def remove(self, value: bool) -> None:
        self.total -= value
        self.number -= 1

    def restore(self, token: Any) -> None:
        raise AssertionError("nothing is taken back")


def test_what_changes_a_makers_state_is_not_broken_off() -> None:
    venture = Venture(seed=1)
    venture.register("make_mean", make=Mean, domain="boolean")
    venture.execute("[assume f (make_mean 1)] [predict (f)] [predict (f)]")
    with pytest.raises(KeyboardInterrupt):
        venture.predict("(f)")
    # it came when the directive was done
    assert len(venture.list_directives()) == 4
    check(venture)


def test_another_thread_is_never_interrupted() -> None:
    venture = Venture(seed=1)
    values: list[float] = []
    thread = threading.Thread(target=lambda: values.append(venture.sample("(normal 0 1)")))
    thread.start()
    thread.join()
    assert len(values) == 1


def test_a_handler_of_ones_own_is_called_once_the_directive_is_done() -> None:
    calls: list[int] = []
    outside = signal.signal(signal.SIGINT, lambda number, frame: calls.append(number))
    try:
        venture = Venture(seed=1)
        venture.register(
            "press", simulate=lambda rng: signal.raise_signal(signal.SIGINT) or 3, log_density=lambda x: 0.0
        )
        assert venture.sample("(press)") == 3
        assert calls == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, outside)
