"""The prompt's own commands: one record each, from which help and completion follow.

A command starts with a colon. `help`, `?`, `quit` and `exit` may be written without one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from venture_lite.errors import Source, VentureError, nearest
from venture_lite.repl.draws import find, listed, save
from venture_lite.repl.help import about, overview
from venture_lite.repl.record import write_new
from venture_lite.repl.reply import of_parameter
from venture_lite.repl.running import run as run_text
from venture_lite.repl.tour import tour
from venture_lite.session import read_source
from venture_lite.shell.data import load_data, parse_parameter
from venture_lite.shell.report import directive_table

if TYPE_CHECKING:
    from venture_lite.repl.conversation import Conversation

_COMMAND = re.compile(
    r"\s*(?::\s*(?P<name>[A-Za-z-]*)|(?P<word>\?|(?:help|quit|exit)(?=\s|$)))[ \t]*(?P<rest>[^\n]*)\s*"
)

_COMMAND_LINE = " on the command line"


@dataclass(frozen=True, slots=True)
class Command:
    """`run` takes the session and what stands behind the name."""

    name: str
    usage: str
    summary: str
    run: Callable[[Conversation, str], None]
    # whether something must stand behind the name, or must not; None where it may
    takes: bool | None = None


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
    if command.takes not in (None, bool(rest)):
        raise VentureError(f"the command is written {command.usage}")
    command.run(conversation, rest)
    return True


def _tour(conversation: Conversation, rest: str) -> None:
    conversation.print(tour(conversation.width()))


def _help(conversation: Conversation, rest: str) -> None:
    commands = ((command.usage, command.summary) for command in COMMANDS)
    width = conversation.width()
    conversation.print(about(rest, conversation.session, width) if rest else overview(commands, width))


def _load(conversation: Conversation, rest: str) -> None:
    path = _path(rest)
    run_text(conversation, Source(str(path), read_source(path, None).text), plain_names=False)


def _save(conversation: Conversation, rest: str) -> None:
    if not rest:
        raise VentureError("the command is written :save FILE, or :save FILE replace")
    path = _path(rest.removesuffix(" replace"))
    settings, record = conversation.settings, conversation.record
    may_replace = rest.endswith(" replace") or path.resolve() in conversation.saved
    write_new(path, record.program(str(path), settings.seed, settings.chains), may_replace)
    conversation.saved.add(path.resolve())
    count = len(record.steps)
    conversation.say(f"{count} directive{'' if count == 1 else 's'} written to {path}")
    if record.inexact:
        conversation.say(
            "warning: an inference was interrupted; the program runs it to its end, and gives another trace"
        )


@contextmanager
def in_commands(only_named: bool = False) -> Iterator[None]:
    """Hints that are written for the command line, or only those that name it, name the prompt's commands."""
    try:
        yield
    except VentureError as error:
        if error.hint and (not only_named or _COMMAND_LINE in error.hint):
            hint = re.sub(r"\S+ from Python, ", "", error.hint.replace(_COMMAND_LINE, ""))
            error.hint = re.sub(r"-p (?:'([^']*)'|(\S+))", r":set \1\2", hint).replace("-d ", ":data ")
        raise


def _set(conversation: Conversation, rest: str) -> None:
    parameters = conversation.record.parameters
    if not rest:
        _print_parameters(conversation, parameters.values)
        if not parameters.values:
            conversation.print("no parameters; :set NAME VALUE gives {NAME} a value")
        return
    name, _, value = (part.strip() for part in rest.replace("=", " ", 1).partition(" "))
    with in_commands():
        parameters.set(*parse_parameter(f"{name}={value}"), "-p", value)


def _print_parameters(conversation: Conversation, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        conversation.print(of_parameter(name, value, conversation.width()))


def _data(conversation: Conversation, rest: str) -> None:
    if not rest:
        raise VentureError("the command is written :data NAME=PATH[:KEY], or :data FILE")
    with in_commands():
        file = load_data(rest)
    parameters = conversation.record.parameters
    parameters.set_all(file.values, "-d", rest)
    if file.rows is not None and "N" not in parameters.values:
        parameters.set_json("N", file.rows)
    elif file.rows is not None and "N" not in file.values and parameters.values["N"] != file.rows:
        conversation.say(f"note: N is {parameters.values['N']}, and {rest} has {file.rows} rows")
    _print_parameters(conversation, file.values)
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
    conversation.print(directive_table(conversation.session.list_directives(), conversation.width()))


def _explain(conversation: Conversation, rest: str) -> None:
    if not rest:
        raise VentureError("the command is written :explain PROGRAM", hint=":explain (mh default one 10)")
    conversation.print(str(conversation.session.explain(rest, **conversation.record.parameters.values)))


def _undo(conversation: Conversation, rest: str) -> None:
    conversation.undo()
    conversation.print("taken back")


def _draws(conversation: Conversation, rest: str) -> None:
    if rest:
        conversation.print_draws(find(conversation.kept, rest).draws)
    else:
        conversation.print(listed(conversation.kept, conversation.width()))


def _save_draws(conversation: Conversation, rest: str) -> None:
    if not rest:
        raise VentureError("the command is written :save-draws FILE, or :save-draws FILE SET")
    name, blank, last = rest.rpartition(" ")
    number = last if blank and last.isascii() and last.isdigit() else ""
    path = _path(name.strip() if number else rest)
    item = find(conversation.kept, number)
    if path.exists() and path.resolve() not in conversation.saved:
        raise VentureError(f"{path} exists", hint="choose another name: draws are not written over")
    save(conversation, item, path)
    conversation.saved.add(path.resolve())


def _quit(conversation: Conversation, rest: str) -> None:
    conversation.ended = True


def _path(text: str) -> Path:
    """A file's name, which may stand in quotation marks."""
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return Path(text[1:-1] if quoted else text).expanduser()


COMMANDS: tuple[Command, ...] = (
    Command("tour", "?", "a tour of the language", _tour, takes=False),
    Command("help", "help [NAME]", "what a name means; alone, all names", _help),
    Command("load", ":load FILE", "run a program", _load, takes=True),
    Command("save", ":save FILE", "write the session as a program that gives the same trace", _save),
    Command("set", ":set NAME VALUE", "give the parameter {NAME} a value, in JSON; alone, show all", _set),
    Command("data", ":data [NAME=]PATH[:KEY]", "parameters from a .npy, .npz, .csv, .tsv or .parquet file", _data),
    Command("seed", ":seed [N]", "show the seed of the random numbers, or begin with another", _seed),
    Command("directives", ":directives", "every directive of the model", _directives, takes=False),
    Command("explain", ":explain PROGRAM", "what an inference would do, without running it", _explain),
    Command("undo", ":undo", "take back the last entry that changed the model; an inference stays", _undo, takes=False),
    Command("draws", ":draws [SET]", "the draws made so far; with a set's number, its summary", _draws),
    Command(
        "save-draws",
        ":save-draws FILE [SET]",
        "write draws, the latest, to a .npz, .csv, .parquet or .nc file",
        _save_draws,
    ),
    Command("quit", ":quit", "leave, as Ctrl-D does", _quit, takes=False),
)
_BY_NAME = {command.name: command for command in COMMANDS}
