"""The prompt at a pseudo-terminal: from the command to a prompt that takes a key, and from a key to its echo."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from tests.benchmarks.measure import Row, seconds

PROMPT_BAR = 0.4
ECHO_BAR = 0.030
STARTS = 9
HISTORY = 10_000
KEYS = 100
PAUSE = 0.03
# keys of a name that nothing else on the screen holds
LETTERS = "zqj"
LOADED = 3.0

_CURSOR_QUESTION = b"\x1b[6n"
_CURSOR_ANSWER = b"\x1b[1;1R"
_SEQUENCE = re.compile(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")


class Prompt:
    """A `venture repl` behind a pseudo-terminal. Mutable: what it wrote is read piece by piece."""

    def __init__(self, history: Path) -> None:
        self.master, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "venture_lite", "repl", "--seed", "1"],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**os.environ, "TERM": "xterm", "VENTURE_HISTORY": str(history)},
            start_new_session=True,
        )
        os.close(follower)
        self.wait_for(b"1>")

    def wait_for(self, text: bytes, patience: float = 60.0) -> float:
        """The moment at which a text has been written, escape sequences aside."""
        written = b""
        ends = time.perf_counter() + patience
        while text not in _SEQUENCE.sub(b"", written):
            if not select.select([self.master], [], [], max(0.0, ends - time.perf_counter()))[0]:
                raise TimeoutError(f"{text!r} was not written; there is {written!r}")
            written += os.read(self.master, 65536)
            if _CURSOR_QUESTION in written:
                written = written.replace(_CURSOR_QUESTION, b"")
                os.write(self.master, _CURSOR_ANSWER)
        return time.perf_counter()

    def echo(self, key: str) -> float:
        """Seconds from a key to its echo."""
        pressed = time.perf_counter()
        os.write(self.master, key.encode())
        return self.wait_for(key.encode()) - pressed

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        history = Path(folder, "history")
        history.write_text("".join(json.dumps(f"[assume x{n} (normal {n} 1)]") + "\n" for n in range(HISTORY)))
        starts = [_start(history) for _ in range(STARTS)]
        loading, loaded = _echoes(history)
    bare = statistics.median(seconds(_bare) for _ in range(STARTS))
    start, echo = statistics.median(starts), statistics.quantiles(loaded, n=20)[-1]
    return [
        Row(
            "venture repl, to a prompt that echoed a key",
            f"{start:.3f} s",
            f"at most {PROMPT_BAR} s",
            f"bare Python, {bare:.3f} s",
            start / bare,
            start <= PROMPT_BAR,
        ),
        Row(
            f"a key's echo, {HISTORY:,} entries of history",
            f"{1e3 * echo:.1f} ms (95% of keys; worst {1e3 * max(loaded):.1f})",
            f"at most {1e3 * ECHO_BAR:.0f} ms",
            f"while the language loads {1e3 * max(loading):.1f} ms at worst",
            None,
            echo <= ECHO_BAR,
        ),
    ]


def _bare() -> None:
    subprocess.run([sys.executable, "-c", "pass"], check=True)


def _start(history: Path) -> float:
    prompt = Prompt(history)
    prompt.echo(LETTERS[0])
    took = time.perf_counter() - prompt.started
    prompt.close()
    return took


def _echoes(history: Path) -> tuple[list[float], list[float]]:
    """Echoes in the first seconds, and after them."""
    prompt = Prompt(history)
    begun = time.perf_counter()
    early: list[float] = []
    while time.perf_counter() - begun < LOADED:
        early.append(_echo_of_next(prompt, len(early)))
    late = [_echo_of_next(prompt, number) for number in range(KEYS)]
    prompt.close()
    return early, late


def _echo_of_next(prompt: Prompt, number: int) -> float:
    time.sleep(PAUSE)
    return prompt.echo(LETTERS[number % len(LETTERS)])
