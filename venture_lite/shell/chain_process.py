"""One chain of a program in a process of its own: what the process does, and what it tells its parent.

The thread that runs the program only puts messages into a queue; another one sends them, so that a signal tears no
message. The other thread also sends, every few seconds, the draws that the inference under way has added: whatever
becomes of the process, the parent has them.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, Protocol

import numpy as np

from venture_lite.draws.draws import Draws, DrawsBuilder, column_array
from venture_lite.inference.progress import Snapshot
from venture_lite.inference.signals import Stop, unblock
from venture_lite.shell.report import RunReport, portable
from venture_lite.shell.streams import told

# how long draws may stand in a process that its parent does not know of
SECONDS_BETWEEN_PIECES = 5.0
# messages that may wait for a parent that writes to a slow terminal
MESSAGES_WAITING = 1000
_SECONDS_TO_LOOK_AGAIN = 0.001


class Listener(Protocol):
    """Who hears what a program gives while it runs."""

    def report(self, report: RunReport) -> None:
        """A directive's value, joined over the chains."""

    def drawn(self, draws: Draws) -> None:
        """What `auto` drew, which is reported once there is no more to say of it."""

    def warn(self, text: str) -> None:
        """A warning."""

    def printed(self, line: str) -> None:
        """A line that the program itself prints."""

    def progressed(self, chain: int, snapshot: Snapshot | None) -> None:
        """How far a chain is; None where it is done with an inference."""


@dataclass(frozen=True, slots=True)
class Heard:
    """A call of one of a listener's methods, but `report`."""

    method: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """Draws that the inference under way has added."""

    # how many reports came before this inference's
    position: int
    columns: Mapping[str, np.ndarray]
    # by variable, how many of its first draws are warm-up
    adapting: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChainFailed:
    """The program ended with an error."""

    text: str
    # the draws of the inference that it ended, if one did
    unfinished: RunReport | None


@dataclass(frozen=True, slots=True)
class Stopped:
    """A signal ended the program."""

    number: int
    unfinished: RunReport | None


Message = RunReport | Heard | Piece | ChainFailed | Stopped

# runs one chain, and tells the listener; the last argument is called with the way to the draws under way
RunChain = Callable[[Listener, Callable[[Callable[[], DrawsBuilder | None]], None]], None]


def work(run_chain: RunChain, messages: Connection) -> None:
    """Run a chain in this process, which exists for it; its parent started it with all signals waiting."""
    if hasattr(os, "setpgrp"):
        # a terminal's Ctrl-C then reaches the parent alone, which passes it on once
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # the parent passes Ctrl-C on, also where it ignores it itself as a job in the background does
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sender = Sender(messages)
    with Stop().listening() as stop:
        ending: Message | None = None
        try:
            unblock()
            run_chain(sender, sender.look_at)
        except KeyboardInterrupt as interrupt:
            ending = Stopped(stop.number or signal.SIGINT, RunReport.unfinished(interrupt))
        except Exception as error:
            ending = ChainFailed(told(error), RunReport.unfinished(error))
        with stop.instead(lambda: None):
            sender.finish(ending)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class Sender:
    """Hears a chain in its own process, and passes on what it hears to the parent. Mutable."""

    def __init__(self, messages: Connection) -> None:
        self._messages = messages
        self._waiting: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        # what the inference under way adds its draws to, if one is
        self._collecting: Callable[[], DrawsBuilder | None] = lambda: None
        # reports so far
        self._told = 0
        # the inference whose draws are sent piece by piece, and how many of each variable are
        self._builder: DrawsBuilder | None = None
        self._sent: dict[str, int] = {}
        self._thread = threading.Thread(target=self._send_all, daemon=True)
        self._thread.start()

    def look_at(self, collecting: Callable[[], DrawsBuilder | None]) -> None:
        """Where the draws of the inference under way are found."""
        self._collecting = collecting

    def report(self, report: RunReport) -> None:
        self._put(report)
        self._told += 1

    def drawn(self, draws: Draws) -> None:
        """Chains apart have draws of their own, which are pictured when they are joined."""

    def warn(self, text: str) -> None:
        self._put(Heard("warn", (text,)))

    def printed(self, line: str) -> None:
        self._put(Heard("printed", (line,)))

    def progressed(self, chain: int, snapshot: Snapshot | None) -> None:
        self._put(Heard("progressed", (chain, snapshot)))

    def finish(self, ending: Message | None) -> None:
        """Send what waits, and how the program ended."""
        if ending is not None:
            self._waiting.put(ending)
        self._waiting.put(None)
        self._thread.join()
        self._messages.close()

    def _put(self, message: Message) -> None:
        while self._waiting.qsize() > MESSAGES_WAITING and self._thread.is_alive():
            time.sleep(_SECONDS_TO_LOOK_AGAIN)
        self._waiting.put(message)

    # ------------------------------------------------------------------------------------- the thread that sends

    def _send_all(self) -> None:
        next_piece = time.monotonic() + SECONDS_BETWEEN_PIECES
        while True:
            message: Message | None
            if (now := time.monotonic()) >= next_piece:
                next_piece = now + SECONDS_BETWEEN_PIECES
                if (message := self._piece()) is None:
                    continue
            else:
                try:
                    message = self._waiting.get(timeout=next_piece - now)
                except queue.Empty:
                    continue
                if message is None:
                    return
            try:
                self._messages.send(message)
            except OSError:
                # the parent is gone, and this process goes with it
                return

    def _piece(self) -> Piece | None:
        """What the inference under way has added since the last piece, if anything."""
        position, builder = self._told, self._collecting()
        # a report between the two readings: the inference is another one now
        if builder is None or position != self._told:
            return None
        if builder is not self._builder:
            self._builder, self._sent = builder, {}
        while (news := builder.news(self._sent)) is None:
            time.sleep(_SECONDS_TO_LOOK_AGAIN)
        if not news:
            return None
        for name, values in news.items():
            self._sent[name] = self._sent.get(name, 0) + len(values)
        columns = Draws([{name: column_array(values) for name, values in news.items()}])
        columns = columns.converted(portable)
        return Piece(position, {name: columns.by_chain(name)[0] for name in news}, dict(builder.adapting))
