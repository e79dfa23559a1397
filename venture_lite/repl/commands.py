"""The prompt's own commands: one record each, from which help and completion follow.

A command starts with a colon. `help`, `?`, `quit` and `exit` may be written without one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from venture_lite.errors import Source, VentureError, nearest

if TYPE_CHECKING:
    from venture_lite.repl.conversation import Conversation

_COMMAND = re.compile(
    r"\s*(?::\s*(?P<name>[A-Za-z-]*)|(?P<word>\?|(?:help|quit|exit)(?=\s|$)))[ \t]*(?P<rest>[^\n]*)\s*"
)


@dataclass(frozen=True, slots=True)
class Command:
    """`run` takes the session and what stands behind the name."""

    name: str
    usage: str
    summary: str
    run: Callable[[Conversation, str], None]


def is_command(text: str) -> bool:
    return _COMMAND.fullmatch(text) is not None


def run(conversation: Conversation, text: str) -> bool:
    """Run the text if it is a command; else False.

    Raises:
        VentureError: there is no such command, or it takes something else.
    """
    match = _COMMAND.fullmatch(text)
    if match is None:
        return False
    word, rest = match["word"], match["rest"].strip()
    name = {"?": "help" if rest else "tour", "exit": "quit"}.get(word, word) if word else match["name"].lower()
    if word in ("quit", "exit") and rest:
        return False
    command = _BY_NAME.get("quit" if name in ("exit", "q") else name)
    if command is None:
        known = ", ".join(f":{command.name}" for command in COMMANDS)
        raise VentureError(f"there is no command :{name}", hint=nearest(name, _BY_NAME) or known)
    command.run(conversation, rest)
    return True


def _refuse_rest(rest: str, usage: str) -> None:
    if rest:
        raise VentureError(f"the command is written {usage}")


def _tour(conversation: Conversation, rest: str) -> None:
    from venture_lite.repl.tour import tour

    _refuse_rest(rest, "?")
    conversation.print(tour(conversation.width()))


def _help(conversation: Conversation, rest: str) -> None:
    from venture_lite.repl.help import about, overview

    commands = ((command.usage, command.summary) for command in COMMANDS)
    width = conversation.width()
    conversation.print(about(rest, conversation.session, width) if rest else overview(commands, width))


def _load(conversation: Conversation, rest: str) -> None:
    from venture_lite.session import read_source

    if not rest:
        raise VentureError("the command is written :load FILE")
    source = read_source(_path(rest), None)
    conversation.run(Source(str(_path(rest)), source.text), plain_names=False)


def _save(conversation: Conversation, rest: str) -> None:
    from venture_lite.repl.record import write_new

    name, blank, last = rest.rpartition(" ")
    replace = bool(blank) and last == "replace"
    if not rest:
        raise VentureError("the command is written :save FILE, or :save FILE replace")
    path = _path(name if replace else rest)
    settings, record = conversation.settings, conversation.record
    write_new(
        path, record.program(str(path), settings.seed, settings.chains), replace or path.resolve() in conversation.saved
    )
    conversation.saved.add(path.resolve())
    count = len(record.steps)
    conversation.say(f"{count} directive{'' if count == 1 else 's'} written to {path}")
    if record.inexact:
        conversation.say(
            "warning: an inference was interrupted; the program runs it to its end, and gives another trace"
        )


@contextmanager
def _in_commands() -> Iterator[None]:
    """Hints that are written for the command line name the prompt's commands."""
    try:
        yield
    except VentureError as error:
        if error.hint:
            error.hint = re.sub(r"-p (?:'([^']*)'|(\S+))", r":set \1\2", error.hint).replace("-d ", ":data ")
        raise


def _set(conversation: Conversation, rest: str) -> None:
    from venture_lite.repl.reply import of_parameter
    from venture_lite.shell.data import parse_parameter

    parameters = conversation.record.parameters
    if not rest:
        for name, value in parameters.values.items():
            conversation.print(of_parameter(name, value, conversation.width()))
        if not parameters.values:
            conversation.print("no parameters; :set NAME VALUE gives {NAME} a value")
        return
    name, _, value = (part.strip() for part in rest.replace("=", " ", 1).partition(" "))
    with _in_commands():
        parameters.set(*parse_parameter(f"{name}={value}"), "-p", value)


def _data(conversation: Conversation, rest: str) -> None:
    from venture_lite.repl.reply import of_parameter
    from venture_lite.shell.data import load_data

    if not rest:
        raise VentureError("the command is written :data NAME=PATH[:KEY], or :data FILE")
    with _in_commands():
        file = load_data(rest)
    conversation.add_data(conversation.record.parameters, rest, file)
    for name, value in file.values.items():
        conversation.print(of_parameter(name, value, conversation.width()))
    for note in file.left_out.values():
        conversation.say(f"note: {note}")


def _seed(conversation: Conversation, rest: str) -> None:
    if not rest:
        conversation.print(str(conversation.settings.seed))
        return
    if not (rest.isascii() and rest.isdigit()):
        raise VentureError(f"a seed is a whole number from 0, got {rest}")
    if conversation.session.list_directives() or conversation.record.steps:
        raise VentureError("the model has drawn from its seed already", hint="[clear], then :seed")
    conversation.restart(int(rest))


def _directives(conversation: Conversation, rest: str) -> None:
    from venture_lite.shell.report import directive_table

    _refuse_rest(rest, ":directives")
    conversation.print(directive_table(conversation.session.list_directives(), conversation.width()))


def _explain(conversation: Conversation, rest: str) -> None:
    if not rest:
        raise VentureError("the command is written :explain PROGRAM", hint=":explain (mh default one 10)")
    conversation.print(str(conversation.session.explain(rest, **conversation.record.parameters.values)))


def _undo(conversation: Conversation, rest: str) -> None:
    _refuse_rest(rest, ":undo")
    conversation.undo()
    conversation.print("taken back")


def _draws(conversation: Conversation, rest: str) -> None:
    from venture_lite.repl.draws import find, listed
    from venture_lite.repl.reply import of_draws

    if not rest:
        conversation.print(listed(conversation.kept, conversation.width()))
        return
    for line in of_draws(
        find(conversation.kept, rest).draws.evened()[0], conversation.width(), conversation.needs_plain()
    ):
        conversation.print(line)


def _save_draws(conversation: Conversation, rest: str) -> None:
    from venture_lite.repl.draws import find, save

    name, blank, last = rest.rpartition(" ")
    number = last if blank and last.isascii() and last.isdigit() else ""
    if not rest:
        raise VentureError("the command is written :save-draws FILE, or :save-draws FILE SET")
    path = _path(name.strip() if number else rest)
    item = find(conversation.kept, number)
    if path.exists() and path.resolve() not in conversation.saved:
        raise VentureError(f"{path} exists", hint="choose another name: draws are not written over")
    save(conversation, item, path)
    conversation.saved.add(path.resolve())


def _quit(conversation: Conversation, rest: str) -> None:
    _refuse_rest(rest, ":quit")
    conversation.ended = True


def _path(text: str) -> Path:
    """A file's name, which may stand in quotation marks."""
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return Path(text[1:-1] if quoted else text).expanduser()


COMMANDS: tuple[Command, ...] = (
    Command("tour", "?", "a tour of the language", _tour),
    Command("help", "help [NAME]", "what a name means; alone, all names", _help),
    Command("load", ":load FILE", "run a program", _load),
    Command("save", ":save FILE", "write the session as a program that gives the same trace", _save),
    Command("set", ":set NAME VALUE", "give the parameter {NAME} a value, in JSON; alone, show all", _set),
    Command("data", ":data [NAME=]PATH[:KEY]", "parameters from a .npy, .npz, .csv, .tsv or .parquet file", _data),
    Command("seed", ":seed [N]", "show the seed of the random numbers, or begin with another", _seed),
    Command("directives", ":directives", "every directive of the model", _directives),
    Command("explain", ":explain PROGRAM", "what an inference would do, without running it", _explain),
    Command("undo", ":undo", "take back the last entry that changed the model; an inference stays", _undo),
    Command("draws", ":draws [SET]", "the draws made so far; with a set's number, its summary", _draws),
    Command(
        "save-draws", ":save-draws FILE [SET]", "write draws, the latest, to a .npz, .csv or .nc file", _save_draws
    ),
    Command("quit", ":quit", "leave, as Ctrl-D does", _quit),
)
_BY_NAME = {command.name: command for command in COMMANDS}
