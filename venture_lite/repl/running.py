"""A text of directives at the prompt: run, shown, recorded, and taken back."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from venture_lite.draws import pictures
from venture_lite.draws.draws import Draws
from venture_lite.errors import NameUnknown, Source
from venture_lite.language.parse import parse_program
from venture_lite.language.syntax import Directive
from venture_lite.repl.draws import Kept
from venture_lite.repl.entry import as_samples, changes_model, may_stop_halfway, with_actions
from venture_lite.repl.reply import reply
from venture_lite.session import DirectiveResult
from venture_lite.shell.report import RunReport

if TYPE_CHECKING:
    from venture_lite.repl.conversation import Conversation


def run(conversation: Conversation, source: Source, plain_names: bool = True) -> None:
    """Run a text; with `plain_names` a bare expression that is no inference is looked at, as `sample` does."""
    session = conversation.session
    program = parse_program(source)
    if plain_names:
        program = as_samples(program, session.traces[0].trace.analyzer.defined)
    before = conversation.undoing
    if any(map(changes_model, program)):
        # this entry, and not the one before, is what `:undo` takes back
        conversation.undoing = session.undo(), conversation.record.memory()
    running = _Run(conversation, program)
    try:
        values = conversation.record.parameters.values
        session.run_source(source, values, running.on_value, program, lambda part: running.show(part, alone=False))
    except (Exception, KeyboardInterrupt) as error:
        running.after_failure(isinstance(error, KeyboardInterrupt))
        unfinished: DirectiveResult | None = getattr(error, "unfinished", None)
        if unfinished is not None:
            running.keep(unfinished)
            conversation.print_draws(unfinished.value)
        if plain_names and isinstance(error, NameUnknown):
            with_actions(error, program, session)
        if running.changed_nothing():
            conversation.undoing = before
        if plain_names:
            conversation.rest = running.left(source, isinstance(error, KeyboardInterrupt))
        raise


class _Run:
    """One text under way: which directive is next, and how the session was before it."""

    def __init__(self, conversation: Conversation, program: tuple[Directive, ...]) -> None:
        self.conversation = conversation
        self.program = program
        self.done = 0
        self.generators = self._generators()
        self.in_force = self._in_force()

    def changed_nothing(self) -> bool:
        """Whether the model is as it was before the text."""
        failed = self.program[self.done : self.done + 1]
        return not any(map(changes_model, self.program[: self.done])) and not any(map(may_stop_halfway, failed))

    def left(self, source: Source, interrupted: bool) -> str:
        """What was not run of a text with several directives; one that failed is among it, to be mended."""
        first = self.done + interrupted
        return source.text[self.program[first].span.start :] if 1 < len(self.program) > first else ""

    def on_value(self, result: DirectiveResult) -> None:
        now = self._generators()
        self.conversation.record.add(result, drew=now != self.generators)
        self.done += 1
        self.generators, self.in_force = now, self._in_force()
        self.show(result, alone=len(self.program) == 1)

    def _generators(self) -> list[Any]:
        return [model.trace.rng.bit_generator.state for model in self.conversation.session.traces]

    def _in_force(self) -> list[int]:
        """The directives in force, where the next one may change that before it fails."""
        if self.done == len(self.program) or not may_stop_halfway(self.program[self.done]):
            return []
        return [entry["id"] for entry in self.conversation.session.list_directives()]

    def after_failure(self, interrupted: bool) -> None:
        """Record a directive that left something."""
        if self.done == len(self.program):
            return
        directive = self.program[self.done]
        if may_stop_halfway(directive) and (self._generators(), self._in_force()) != (self.generators, self.in_force):
            self.conversation.record.add_unfinished(directive, "was interrupted" if interrupted else "failed")

    def show(self, result: DirectiveResult, alone: bool) -> None:
        """What a person wants to see of a directive; `alone`: its text stands right above."""
        conversation = self.conversation
        report = RunReport.of(result, conversation.settings.chains)
        for line in reply(report, result.directive, alone, conversation.width(), sys.stdout.encoding):
            conversation.print(line)
        if isinstance(result.value, Draws):
            self.keep(result)
            # importing what makes pictures takes a second: of draws that nobody plotted only where a folder is named
            shown = result.value.plotted if conversation.settings.plots is None else result.value.pictured
            if shown is not None:
                self._draw(shown)

    def keep(self, result: DirectiveResult) -> None:
        """Keep the draws of an inference for `:draws` and `:save-draws`."""
        kept = self.conversation.kept
        if result.value.names:
            kept.append(Kept(len(kept) + 1, result.expression or "", result.value))

    def _draw(self, plotted: Draws) -> None:
        """Write what was plotted to a picture, where pictures can be made and are wanted."""
        conversation, settings = self.conversation, self.conversation.settings
        if settings.plots is None and not (settings.interactive and pictures.is_available()):
            return
        if conversation.pictures_folder is None:
            conversation.pictures_folder = settings.plots or Path(tempfile.mkdtemp(prefix="venture-plots-"))
        conversation.pictures += 1
        path = conversation.pictures_folder / f"plot-{conversation.pictures}.png"
        pictures.write(pictures.png(plotted), path)
        conversation.say(f"picture: {path}")
