"""What the prompt does with an entry: runs it, and goes on after every error.

Terminal and pipe share this. Nothing of the language is imported before `load`, which a thread calls while the prompt
is shown already.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from venture_lite.errors import Source, VentureError, escaped
from venture_lite.inference.signals import Stop
from venture_lite.shell.streams import told

if TYPE_CHECKING:
    from venture_lite.draws.draws import Draws
    from venture_lite.repl.draws import Kept
    from venture_lite.repl.names import NameEntry
    from venture_lite.repl.record import SessionRecord
    from venture_lite.session import Venture
    from venture_lite.session.undo import Undo

TERMINAL_WIDTH = 100


@dataclass(frozen=True, slots=True)
class PromptSettings:
    """How a session begins."""

    seed: int
    chains: int = 1
    nested_calls: int = 400_000
    memory_mb: float | None = None
    # `NAME=VALUE` and `NAME=PATH[:KEY]`, as on the command line
    values: tuple[str, ...] = ()
    data: tuple[str, ...] = ()
    # where pictures go; None for a folder of the session's own, made for the first one
    plots: Path | None = None
    interactive: bool = True


@dataclass(slots=True)
class Conversation:
    """One session at the prompt. Mutable: the model behind it, what is recorded, and how many entries failed."""

    settings: PromptSettings
    stop: Stop = field(default_factory=Stop)
    # entries so far
    number: int = 0
    failures: int = 0
    ended: bool = False
    _loaded: tuple[Venture, SessionRecord] | None = None
    _loading: threading.Lock = field(default_factory=threading.Lock)
    _known: tuple[int, dict[str, list[NameEntry]]] | None = None
    # files that `:save` wrote
    saved: set[Path] = field(default_factory=set)
    # the draws of every inference that collected some
    kept: list[Kept] = field(default_factory=list)
    # pictures written, and where they go, once there is one
    pictures: int = 0
    pictures_folder: Path | None = None
    # takes back the last entry that changed the model; None where there is none
    undoing: tuple[Undo, Callable[[], None]] | None = None
    # what a paste holds from the directive on that failed: the next entry begins with it
    rest: str = ""

    # ------------------------------------------------------------------------------------------------ beginning

    def load(self) -> tuple[Venture, SessionRecord]:
        """Import the language and make the empty model with its record; a second call gives what the first has made."""
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> tuple[Venture, SessionRecord]:
        from venture_lite.inference import progress
        from venture_lite.language.parse import parse_program
        from venture_lite.repl.record import RecordedParameters, SessionRecord
        from venture_lite.session import Venture
        from venture_lite.shell.data import read_options

        settings = self.settings
        session = Venture(
            settings.seed,
            settings.chains,
            progress=progress.for_terminal() if settings.interactive else progress.Silent(),
            nested_calls=settings.nested_calls,
            memory_mb=settings.memory_mb,
        )
        parse_program(Source("", "[clear]"))
        parameters = RecordedParameters()
        # refuses names that are given twice and tables of different length, as the command does
        options = read_options(settings.values, settings.data)
        for note in options.left_out.values():
            self.say(f"note: {note}")
        for option, names in options.given:
            kind, _, text = option.partition(" ")
            parameters.set_all({name: options.parameters[name] for name in names}, kind, text)
        if "N" in options.parameters and "N" not in parameters.values:
            parameters.set_json("N", options.parameters["N"])
        return session, SessionRecord(parameters)

    @property
    def is_loaded(self) -> bool:
        """Whether the language is there without waiting."""
        return self._loaded is not None

    @property
    def session(self) -> Venture:
        return self.load()[0]

    @property
    def record(self) -> SessionRecord:
        return self.load()[1]

    def known(self) -> dict[str, list[NameEntry]]:
        """Every name with its meanings; found once for each entry, for it is asked for at every key."""
        from venture_lite.repl.names import entries

        if self._known is None or self._known[0] != self.number:
            self._known = self.number, entries(self.session)
        return self._known[1]

    def restart(self, seed: int) -> None:
        """An empty model with another seed; the parameters stay."""
        parameters = self.record.parameters
        self.settings = replace(self.settings, seed=seed, values=(), data=())
        self._loaded = self._load()
        self.undoing = None
        parameters.forget_uses()
        self.record.parameters = parameters

    # ------------------------------------------------------------------------------------------------- entries

    def is_complete(self, text: str) -> bool:
        """Whether an entry waits for no more lines."""
        from venture_lite.language.parse import is_complete
        from venture_lite.repl.commands import is_command

        return is_command(text) or is_complete(text)

    def enter(self, text: str) -> None:
        """Run one entry and show what it gave. Whatever fails in it, the session goes on."""
        if not text.strip():
            return
        self.number += 1
        self.rest = ""
        try:
            self._enter(text)
        except KeyboardInterrupt:
            self._failed("interrupted; the trace is kept")
            self.is_stopped()
        except BrokenPipeError:
            raise
        except OSError as error:
            self._failed(f"error: {error}")
        except Exception as error:
            self._failed(told(error))

    def is_stopped(self) -> bool:
        """After a signal: whether the session ends with it, as it does not with Ctrl-C."""
        if self.stop.is_to_end:
            self.ended = True
        else:
            self.stop.forget()
        return self.ended

    def _enter(self, text: str) -> None:
        from venture_lite.repl import commands, running
        from venture_lite.shell.report import warnings_to

        self.load()
        warned = warnings_to(lambda warning: self.say(f"warning: {warning}"))
        with warned, commands.in_commands(only_named=True):
            if not commands.run(self, text):
                running.run(self, Source(f"<{self.number}>", text))

    def _failed(self, text: str) -> None:
        self.failures += 1
        self.say(text)

    def undo(self) -> None:
        """Take back the last entry that changed the model. Raises VentureError where that cannot be."""
        if self.undoing is None:
            hint = "only the last entry can be taken back, once; [forget LABEL] takes back a directive"
            raise VentureError("there is nothing to take back", hint=hint)
        session, restore_record = self.undoing
        session.take_back()
        restore_record()
        self.undoing = None

    # ---------------------------------------------------------------------------------------------------- output

    def width(self) -> int:
        columns = shutil.get_terminal_size((TERMINAL_WIDTH, 24)).columns
        return max(40, min(columns, 120)) if self.settings.interactive else TERMINAL_WIDTH

    def print(self, text: str) -> None:
        """To standard output; what the output cannot show is escaped."""
        self._write(text, sys.stdout)

    def say(self, text: str) -> None:
        """To standard error, where values do not go."""
        self._write(text, sys.stderr)

    def print_draws(self, draws: Draws) -> None:
        """The table of draws, of chains that differ in length what is even."""
        from venture_lite.repl.reply import of_draws

        for line in of_draws(draws.evened()[0], self.width(), sys.stdout.encoding):
            self.print(line)

    def _write(self, text: str, stream: TextIO) -> None:
        """A warning in lines that a terminal need not break in the middle of a word, other texts as they are."""
        if self.settings.interactive and text.startswith("warning: ") and "\n" not in text:
            text = textwrap.fill(text, self.width(), subsequent_indent="  ", break_on_hyphens=False)
        encoding = stream.encoding or "utf-8"
        print(escaped(text).encode(encoding, "backslashreplace").decode(encoding), file=stream, flush=True)
