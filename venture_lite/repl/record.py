"""What a session did, as a program that gives the same trace.

The record holds each directive that changed the model, the names of inference, or the random numbers, in order. With
the session's seed those directives draw the same numbers again, so their text is all that a file needs. What a failed
directive drew is given back to the generators, and an inference that was interrupted stands in the
file with a remark: it would run to its end there.
"""

from __future__ import annotations

import json
import shlex
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from venture_lite.draws.whole_files import replacing
from venture_lite.errors import VentureError
from venture_lite.language import syntax
from venture_lite.language.parse import parse_program
from venture_lite.language.syntax import Directive
from venture_lite.repl.entry import LOOKS, is_bare
from venture_lite.repl.lexer import tokens
from venture_lite.session import DirectiveResult, read_source


@dataclass(frozen=True, slots=True)
class _Option:
    """One value of a parameter, as a command line gives it."""

    # what the saved file calls it
    saved: str
    # "-p" or "-d", and the text behind `NAME=`
    option: str
    text: str


class RecordedParameters:
    """The values for `{NAME}`, and how a command line would give them. Mutable.

    A name may be given another value. What was entered before keeps the old one in the saved file, where the later
    value goes by a name of its own (`N_2`): a program has one value for each parameter.
    """

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self._present: dict[str, _Option] = {}
        # by the saved file's name: what recorded directives use
        self.used: dict[str, _Option] = {}

    def set(self, name: str, value: Any, option: str, text: str) -> None:
        """`option` and `text` as on a command line: "-p" with JSON, or "-d" with a path."""
        before = self._present.get(name)
        self.values[name] = value
        if before is not None and (option, text) == (before.option, before.text):
            return
        saved = before.saved if before is not None else name
        number = 2
        while saved in self.used or (saved != name and saved in self.values):
            saved, number = f"{name}_{number}", number + 1
        self._present[name] = _Option(saved, option, text)

    def set_all(self, values: Mapping[str, Any], option: str, text: str) -> None:
        """What one option gives, `NAME=...` or all of a file, each value with the option that gives it alone."""
        own, _, rest = text.partition("=")
        for name, value in values.items():
            self.set(name, value, option, rest if name == own else f"{text}:{name}")

    def set_json(self, name: str, value: Any) -> None:
        self.set(name, value, "-p", json.dumps(value))

    def applied(self, text: str) -> str:
        """A directive's text with the names that the saved file has for its parameters; these are in use from now."""
        loops: set[str] = set()
        parts: list[str] = []
        end = 0
        previous = ""
        for token in tokens(text):
            if previous == "for":
                loops.add(token.text)
            given = self._present.get(token.text) if token.kind == "parameter" and token.text not in loops else None
            if given is not None:
                self.used[given.saved] = given
                parts += [text[end : token.start], given.saved]
                end = token.end
            previous = token.text.lower() if token.kind == "keyword" else ""
        return "".join([*parts, text[end:]])

    def arguments(self) -> list[str]:
        """The options of `venture run` that give the values in use."""
        return [word for given in self.used.values() for word in (given.option, f"{given.saved}={given.text}")]

    def forget_uses(self) -> None:
        """After `clear` nothing that is recorded uses a value."""
        self.used.clear()
        self._present = {name: replace(given, saved=name) for name, given in self._present.items()}


@dataclass(slots=True)
class SessionRecord:
    """The directives of a session, as text. Mutable."""

    parameters: RecordedParameters
    steps: list[str] = field(default_factory=list)
    # whether something happened that no program can repeat
    inexact: bool = False

    def add(self, result: DirectiveResult, drew: bool) -> None:
        """A directive that succeeded; `drew`: whether it took random numbers."""
        directive = result.directive
        if isinstance(directive, syntax.Clear):
            self.steps.clear()
            self.inexact = False
            self.parameters.forget_uses()
        elif isinstance(directive, syntax.Load):
            self._add_file(Path(directive.span.source.name).parent / directive.path)
        elif drew or not isinstance(directive, LOOKS):
            self.steps.append(self.parameters.applied(text_of(directive)))

    def add_unfinished(self, directive: Directive, why: str) -> None:
        """A directive that ended before its end and left its traces in the model."""
        self.inexact = True
        remark = (
            f"; The next directive {why} in the session; here it runs to its end, and the trace differs from then on."
        )
        self.steps.append(f"{remark}\n{self.parameters.applied(text_of(directive))}")

    def memory(self) -> Callable[[], None]:
        """A function that puts back what is recorded now."""
        before = list(self.steps), self.inexact, dict(self.parameters.used)

        def restore() -> None:
            self.steps, self.inexact, self.parameters.used = before

        return restore

    def _add_file(self, path: Path) -> None:
        """The directives of a file that was loaded: the file may change, and lie elsewhere."""
        for directive in parse_program(read_source(path, None)):
            if isinstance(directive, syntax.Load):
                self._add_file(path.parent / directive.path)
            else:
                self.steps.append(self.parameters.applied(text_of(directive)))

    def program(self, file: str, seed: int, chains: int) -> str:
        """The text of the program, with the command that gives the same trace at its head."""
        command = ["venture", "run", file, "--seed", str(seed)]
        if chains > 1:
            command += ["--chains", str(chains)]
        command += self.parameters.arguments()
        head = f"; A session of the prompt. The same trace comes from\n;   {shlex.join(command)}\n"
        return "\n".join([head, *self.steps]) + "\n"


def text_of(directive: Directive) -> str:
    """A directive as it was written, from the margin, with its label."""
    span = directive.span
    column = span.source.line_and_column(span.start)[1] - 1
    before = span.source.text[span.start - column : span.start]
    text = span.text if before.strip() else textwrap.dedent(before + span.text)
    if isinstance(directive, syntax.Sample) and is_bare(directive):
        text = f"[sample {text}]"
    return f"{directive.label}: {text}" if directive.label else text


def write_new(path: Path, text: str, replace: bool) -> None:
    """Write a file as a whole or not at all. Raises VentureError where one exists that may not be replaced."""
    if path.exists() and not replace:
        raise VentureError(f"{path} exists", hint=f":save {path} replace")
    try:
        with replacing(path) as beside:
            beside.write_text(text, encoding="utf-8")
    except OSError as error:
        raise VentureError(f"cannot write {path}: {error.strerror or error}") from error
