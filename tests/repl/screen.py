"""A person at a terminal: a process behind a real pseudo-terminal, its screen, and keys to press.

The screen is pyte's, which also answers where its cursor is, as terminals do.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyte

COLUMNS, LINES = 100, 40
# far more than anything takes: a machine may be busy, and a test that fails waits so long
PATIENCE_SECONDS = 30.0

KEYS = {"up": "\x1b[A", "tab": "\t", "enter": "\r", "ctrl-c": "\x03", "ctrl-d": "\x04", "ctrl-l": "\x0c"}


class _Screen(pyte.Screen):
    """Answers the questions of the process."""

    answer: Callable[[bytes], object]

    def write_process_input(self, data: str) -> None:
        self.answer(data.encode())


class Terminal:
    """A running process. Mutable: the screen changes with every `wait_for` and `settle`."""

    def __init__(self, command: list[str], environment: Mapping[str, str], folder: Path) -> None:
        self.master, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))

        def becomes_foreground() -> None:
            os.setsid()
            fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        self.process = subprocess.Popen(
            command, stdin=follower, stdout=follower, stderr=follower, cwd=folder, close_fds=True,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "", "LINES": "", **environment},
            preexec_fn=becomes_foreground,
        )  # fmt: skip
        os.close(follower)
        self._screen = _Screen(COLUMNS, LINES)
        self._screen.answer = self._write
        self._stream = pyte.ByteStream(self._screen)
        self.received = b""

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self.master, data) :]

    def type(self, text: str) -> None:
        self._write(text.encode())

    def press(self, *keys: str) -> None:
        for key in keys:
            self.type(KEYS[key])

    def enter(self, text: str) -> None:
        self.type(text + KEYS["enter"])

    def paste(self, text: str) -> None:
        """As terminals send what is pasted: bracketed."""
        self.type(f"\x1b[200~{text}\x1b[201~")

    def read(self, seconds: float) -> bool:
        """Take in what the process writes within some time; False when it has closed the terminal."""
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.received += data
        self._stream.feed(data)
        return bool(data)

    @property
    def shown(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def is_bold(self, line: int, column: int) -> bool:
        return bool(self._screen.buffer[line][column].bold)

    def settle(self, holds: Callable[[], bool], what: str = "what was expected") -> str:
        """Read until something holds of the screen; returns the screen."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            if time.monotonic() > ends or not self.read(0.05):
                raise AssertionError(f"{what} did not appear; the screen is\n{self.shown}")
        return self.shown

    def wait_for(self, text: str, times: int = 1) -> str:
        """Read until a text stands on the screen so many times, blanks at its end aside."""
        text = text.rstrip()
        return self.settle(lambda: self.shown.count(text) >= times, repr(text))

    def wait_for_no(self, text: str) -> str:
        return self.settle(lambda: text not in self.shown, f"a screen without {text!r}")

    def wait_for_prompt(self) -> str:
        """Read until the process waits for an entry."""
        return self.settle(lambda: re.search(r"^\d+>$", self.shown, re.MULTILINE) is not None, "a prompt")

    def wait_for_end(self) -> int:
        """The exit status, once the process has ended."""
        ends = time.monotonic() + PATIENCE_SECONDS
        while self.read(0.05) and self.process.poll() is None and time.monotonic() < ends:
            pass
        return self.process.wait(1.0)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


@contextlib.contextmanager
def repl(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """`venture repl` at a terminal, its first prompt shown."""
    settings = {"VENTURE_HISTORY": str(folder / "history"), "OMP_NUM_THREADS": "1", **(environment or {})}
    command = [sys.executable, "-m", "venture_lite", "repl", "--seed", "1", *arguments]
    terminal = Terminal(command, settings, folder)
    try:
        terminal.wait_for("1> ")
        yield terminal
    finally:
        terminal.close()
