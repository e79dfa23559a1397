"""What the prompt does with an entry: runs it, shows what it gave, records it, and goes on after every error.

Terminal and pipe share this. Nothing of the language is imported before `load`, which a thread calls while the prompt
is shown already.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from venture_lite.errors import Source, VentureError, escaped
from venture_lite.inference.signals import Stop
from venture_lite.shell.streams import told

if TYPE_CHECKING:
    from venture_lite.language.syntax import Directive
    from venture_lite.repl.draws import Kept
    from venture_lite.repl.names import NameEntry
    from venture_lite.repl.record import RecordedParameters, SessionRecord
    from venture_lite.session import DirectiveResult, Venture
    from venture_lite.session.undo import Undo
    from venture_lite.shell.data import FileValues

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
    # whether a person sits at a terminal
    interactive: bool = True


@dataclass(slots=True)
class Conversation:
    """One session at the prompt. Mutable: the model behind it, what is recorded, and how many entries failed."""

    settings: PromptSettings
    # what hears the signals
    stop: Stop = field(default_factory=Stop)
    # entries so far
    number: int = 0
    failures: int = 0
    pictures: int = 0
    ended: bool = False
    _session: Venture | None = None
    _record: SessionRecord | None = None
    _loading: threading.Lock = field(default_factory=threading.Lock)
    _pictures_folder: Path | None = None
    _known: tuple[int, dict[str, list[NameEntry]]] | None = None
    # files that `:save` wrote
    saved: set[Path] = field(default_factory=set)
    # the draws of every inference that collected some
    kept: list[Kept] = field(default_factory=list)
    # takes back the last entry that changed the model; None where there is none
    _undo: tuple[Undo, Callable[[], None]] | None = None
    # what a paste holds from the directive on that failed: the next entry begins with it
    rest: str = ""

    # ------------------------------------------------------------------------------------------------ beginning

    def load(self) -> None:
        """Import the language and make the empty model; a second call does nothing."""
        with self._loading:
            if self._session is None:
                self._load()

    def _load(self) -> None:
        from venture_lite.inference import progress
        from venture_lite.language.parse import parse_program
        from venture_lite.repl.record import RecordedParameters, SessionRecord
        from venture_lite.session import Venture
        from venture_lite.shell.data import read_options

        settings = self.settings
        session = Venture(
            settings.seed,
            settings.chains,
            progress=progress.for_terminal() if settings.interactive else None,
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
            for name in names:
                kind, _, text = option.partition(" ")
                alone = text.startswith(f"{name}=")
                found = text.partition("=")[2] if alone else f"{text}:{name}"
                parameters.set(name, options.parameters[name], kind, found)
        if "N" in options.parameters and "N" not in parameters.values:
            parameters.set_json("N", options.parameters["N"])
        self._record = SessionRecord(parameters)
        self._session = session

    @property
    def is_loaded(self) -> bool:
        """Whether the language is there without waiting."""
        return self._session is not None

    def add_data(self, parameters: RecordedParameters, text: str, file: FileValues) -> None:
        """Values that a file gave, each with the option that reads it again; and N, where it is not known."""
        for name, value in file.values.items():
            alone = text.startswith(f"{name}=")
            parameters.set(name, value, "-d", text.partition("=")[2] if alone else f"{text}:{name}")
        if file.rows is None:
            return
        if "N" not in parameters.values:
            parameters.set_json("N", file.rows)
        elif "N" not in file.values and parameters.values["N"] != file.rows:
            self.say(f"note: N is {parameters.values['N']}, and {text} has {file.rows} rows")

    @property
    def session(self) -> Venture:
        self.load()
        assert self._session is not None
        return self._session

    @property
    def record(self) -> SessionRecord:
        self.load()
        assert self._record is not None
        return self._record

    def known(self) -> dict[str, list[NameEntry]]:
        """Every name with its meanings; found once for each entry, for it is asked for at every key."""
        from venture_lite.repl.names import entries

        session = self.session
        if self._known is None or self._known[0] != self.number:
            self._known = self.number, entries(session)
        return self._known[1]

    def restart(self, seed: int) -> None:
        """An empty model with another seed; the parameters stay."""
        from dataclasses import replace

        parameters = self.record.parameters
        self.settings = replace(self.settings, seed=seed, values=(), data=())
        self._load()
        self._undo = None
        assert self._record is not None
        parameters.forget_uses()
        self._record.parameters = parameters

    # ------------------------------------------------------------------------------------------------- entries

    def is_complete(self, text: str) -> bool:
        """Whether an entry waits for no more lines."""
        from venture_lite.repl import commands

        if commands.is_command(text):
            return True
        self.load()
        from venture_lite.language.parse import is_complete

        return is_complete(text)

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
        from venture_lite.repl import commands
        from venture_lite.shell.report import warnings_to

        self.load()
        with warnings_to(lambda warning: self.say(f"warning: {warning}")):
            if not commands.run(self, text):
                self.run(Source(f"<{self.number}>", text))

    def _failed(self, text: str) -> None:
        self.failures += 1
        self.say(text)

    # --------------------------------------------------------------------------------------------------- running

    def run(self, source: Source, plain_names: bool = True) -> None:
        """Run a text; with `plain_names` a bare expression that is no inference is looked at, as `sample` does."""
        from venture_lite.language.parse import parse_program
        from venture_lite.repl.entry import as_samples, changes_model

        program = parse_program(source)
        if plain_names:
            program = as_samples(program, self.session.traces[0].trace.analyzer.defined)
        before = self._undo
        if any(changes_model(directive) for directive in program):
            self.begin_undo()
        running = _Run(self, program)
        try:
            running.go(source)
        except (Exception, KeyboardInterrupt) as error:
            if running.changed_nothing():
                self._undo = before
            if plain_names:
                self.rest = running.left(source, isinstance(error, KeyboardInterrupt))
            raise

    def show(self, result: DirectiveResult, alone: bool) -> None:
        """What a person wants to see of a directive; `alone`: its text stands right above."""
        from venture_lite.repl.reply import reply
        from venture_lite.shell.report import RunReport

        report = RunReport.of(result, self.settings.chains)
        for line in reply(report, result.directive, alone, self.width(), self.needs_plain()):
            self.print(line)
        self.keep(result)
        self.draw(report.value)

    def begin_undo(self) -> None:
        """An entry is about to change the model: it, and not the one before, is what `:undo` takes back."""
        self._undo = self.session.undo(), self.record.memory()

    def undo(self) -> None:
        """Take back the last entry that changed the model. Raises VentureError where that cannot be."""
        if self._undo is None:
            hint = "only the last entry can be taken back, once; [forget LABEL] takes back a directive"
            raise VentureError("there is nothing to take back", hint=hint)
        session, restore_record = self._undo
        session.take_back()
        restore_record()
        self._undo = None

    def keep(self, result: DirectiveResult) -> None:
        """Keep the draws of an inference for `:draws` and `:save-draws`."""
        from venture_lite.draws.draws import Draws
        from venture_lite.repl.draws import Kept

        if isinstance(result.value, Draws) and result.value.names:
            self.kept.append(Kept(len(self.kept) + 1, result.expression or "", result.value))

    def draw(self, value: Any) -> None:
        """Write what was plotted to a picture, where pictures can be made and are wanted."""
        from venture_lite.draws.draws import Draws

        if not isinstance(value, Draws) or value.plotted is None:
            return
        from venture_lite.draws import pictures

        if self.settings.plots is None and not (self.settings.interactive and pictures.is_available()):
            return
        if self._pictures_folder is None:
            self._pictures_folder = self.settings.plots or Path(tempfile.mkdtemp(prefix="venture-plots-"))
        self.pictures += 1
        path = self._pictures_folder / f"plot-{self.pictures}.png"
        pictures.write(value.plotted, path)
        self.say(f"picture: {path}")

    def unfinished(self, result: DirectiveResult) -> None:
        """What an inference had collected until Ctrl-C or an error: of chains that differ in length what is even."""
        from venture_lite.repl.reply import of_draws

        self.keep(result)
        for line in of_draws(result.value.evened()[0], self.width(), self.needs_plain()):
            self.print(line)

    # ---------------------------------------------------------------------------------------------------- output

    def width(self) -> int:
        columns = shutil.get_terminal_size((TERMINAL_WIDTH, 24)).columns
        return max(40, min(columns, 120)) if self.settings.interactive else TERMINAL_WIDTH

    def needs_plain(self) -> bool:
        from venture_lite.draws.plots import needs_plain

        return needs_plain(sys.stdout.encoding)

    def _fitted(self, text: str) -> str:
        """A warning in lines that a terminal need not break in the middle of a word."""
        if not (self.settings.interactive and text.startswith("warning: ") and "\n" not in text):
            return text
        wrapper = textwrap.TextWrapper(self.width(), subsequent_indent="  ", break_on_hyphens=False)
        return wrapper.fill(text)

    def print(self, text: str) -> None:
        """To standard output; what the output cannot show is escaped."""
        text = self._fitted(text)
        encoding = sys.stdout.encoding or "utf-8"
        print(escaped(text).encode(encoding, "backslashreplace").decode(encoding), flush=True)

    def say(self, text: str) -> None:
        """To standard error, where values do not go."""
        text = self._fitted(text)
        encoding = sys.stderr.encoding or "utf-8"
        print(escaped(text).encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr, flush=True)


class _Run:
    """One text under way: which directive is next, and how the session was before it."""

    def __init__(self, conversation: Conversation, program: tuple[Directive, ...]) -> None:
        self.conversation = conversation
        self.program = program
        self.done = 0
        self.generators = self._generators()
        self.in_force = self._in_force()

    def go(self, source: Source) -> None:
        session = self.conversation.session
        try:
            values = self.conversation.record.parameters.values
            session.run_source(source, values, self._on_value, self.program, self._on_part)
        except (Exception, KeyboardInterrupt) as error:
            self._after_failure(isinstance(error, KeyboardInterrupt))
            result = getattr(error, "unfinished", None)
            if result is not None:
                self.conversation.unfinished(result)
            raise

    def changed_nothing(self) -> bool:
        """Whether the model is as it was before the text."""
        from venture_lite.repl.entry import changes_model, may_stop_halfway

        failed = self.program[self.done : self.done + 1]
        return not any(map(changes_model, self.program[: self.done])) and not any(map(may_stop_halfway, failed))

    def left(self, source: Source, interrupted: bool) -> str:
        """What was not run of a text with several directives; one that failed is among it, to be mended."""
        first = self.done + interrupted
        return source.text[self.program[first].span.start :] if 1 < len(self.program) > first else ""

    def _on_value(self, result: DirectiveResult) -> None:
        now = self._generators()
        self.conversation.record.add(result, drew=now != self.generators)
        self.done += 1
        self.generators, self.in_force = now, self._in_force()
        self.conversation.show(result, alone=len(self.program) == 1)

    def _on_part(self, result: DirectiveResult) -> None:
        self.conversation.show(result, alone=False)

    def _generators(self) -> list[Any]:
        return [model.trace.rng.bit_generator.state for model in self.conversation.session.traces]

    def _in_force(self) -> list[int]:
        """The directives in force, where the next one may change that before it fails."""
        from venture_lite.repl.entry import may_stop_halfway

        if self.done == len(self.program) or not may_stop_halfway(self.program[self.done]):
            return []
        return [entry["id"] for entry in self.conversation.session.list_directives()]

    def _after_failure(self, interrupted: bool) -> None:
        """Give back what a directive drew that left nothing; record one that left something."""
        from venture_lite.repl.entry import may_stop_halfway

        if self.done == len(self.program):
            return
        directive = self.program[self.done]
        if not may_stop_halfway(directive):
            for model, state in zip(self.conversation.session.traces, self.generators, strict=True):
                model.trace.rng.bit_generator.state = state
        elif (self._generators(), self._in_force()) != (self.generators, self.in_force):
            self.conversation.record.add_unfinished(directive, "was interrupted" if interrupted else "failed")
