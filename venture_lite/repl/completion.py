"""What could stand where the cursor is, and what is being called there; knows nothing of terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from venture_lite.inference.actions import ACTIONS
from venture_lite.repl.commands import COMMANDS
from venture_lite.repl.lexer import Call, open_calls, tokens
from venture_lite.repl.names import BLOCKS, DEFAULT_SCOPE, DIRECTIVES, NameEntry, scopes

if TYPE_CHECKING:
    from venture_lite.repl.conversation import Conversation

WORD = re.compile(r"[^\s()\[\]{}'\"`;#:,]*$")
_COMMAND = re.compile(r"\s*:(?P<begun>[\w-]*)$")
_HELP = re.compile(r"\s*(?:\?|:?help\s)\s*(?P<begun>\S*)$")
_FILE = re.compile(
    r"""(?:\s*:(?:load|save|save-draws|data\s+\w+=|data)\s*|.*\[\s*load\s+")(?P<begun>[^"]*)$""",
    re.DOTALL | re.IGNORECASE,
)
REFERRING = ("forget", "freeze", "report")
# directives whose inside is inference
INFERRING = ("infer", "define")
MODEL_KINDS = ("special form", "assumed", "random procedure", "procedure")
INFERENCE_KINDS = ("inference action", "inference measure", "defined", "procedure")


@dataclass(frozen=True, slots=True)
class Candidate:
    """What may replace the last `replaced` characters."""

    text: str
    replaced: int
    # how it is shown, and what is said of it
    shown: str
    meta: str


def candidates(text: str, conversation: Conversation) -> list[Candidate]:
    """Everything that could go on from a text that ends at the cursor, in the order in which it is offered."""
    if match := _HELP.match(text):
        return _of_entries(match["begun"], [found[0] for found in conversation.known().values()])
    if match := _COMMAND.match(text):
        return _starting(match["begun"], ((command.name, command.usage, command.summary) for command in COMMANDS))
    if match := _FILE.match(text):
        return list(_paths(match["begun"]))
    begun = WORD.search(text)[0]  # type: ignore[index]
    before = text[: len(text) - len(begun)]
    if _in_text(before):
        return []
    return _in_program(begun, before, conversation)


def _in_program(begun: str, before: str, conversation: Conversation) -> list[Candidate]:
    session = conversation.session
    calls = open_calls(before)
    if calls and calls[-1].opener.text == "{":
        values = conversation.record.parameters.values
        return _starting(begun, ((name, name, "parameter") for name in values))
    known = conversation.known()
    if len(calls) == 1 and calls[0].opener.text == "[" and not calls[0].parts:
        return _of_entries(begun, [known[name][0] for name in DIRECTIVES])
    inferring = _is_inference(calls)
    words: list[Candidate] = []
    if calls and calls[-1].head:
        if calls[-1].head.lower() in REFERRING:
            labels = [entry for found in known.values() for entry in found if entry.kind in ("label", "assumed")]
            return _of_entries(begun, labels)
        words = _arguments(begun, calls[-1], scopes(session), before.endswith("'"))
        if _is_scope(calls[-1]):
            return words
    kinds = (*INFERENCE_KINDS, *MODEL_KINDS) if inferring else MODEL_KINDS
    chosen = [entry for found in known.values() for entry in found[:1] if entry.kind.startswith(kinds)]
    # the session's own names first, the signs of arithmetic last
    chosen.sort(key=lambda entry: (entry.kind not in ("assumed", "defined"), not entry.name[0].isalpha(), entry.name))
    return words if words and not begun else words + _of_entries(begun, chosen)


def _is_inference(calls: list[Call]) -> bool:
    """Whether the innermost bracket stands in an inference program: a bare expression, or `[infer ...]`."""
    if not calls:
        return False
    return calls[0].opener.text == "(" or (calls[0].head or "").lower() in INFERRING


def _is_scope(call: Call) -> bool:
    """Whether a scope's name stands at this place, whatever the way to write the action: never a variable."""
    action = ACTIONS.get(call.head or "")
    usages = action.usage if action is not None and call.parts in (1, 2) else ()
    return bool(usages) and all(usage.strip("()").split()[call.parts : call.parts + 1] == ["SCOPE"] for usage in usages)


def _arguments(begun: str, call: Call, scope_names: list[str], quoted: bool) -> list[Candidate]:
    """What an action takes at this place: scopes, blocks, and the words of its usage."""
    action = ACTIONS.get(call.head or "")
    if action is None:
        return []
    found: dict[str, str] = {}
    for usage in action.usage:
        words = usage.strip("()").split()
        word = words[call.parts] if call.parts < len(words) else ""
        if word == "SCOPE":
            found |= {name: "scope" if name != DEFAULT_SCOPE[0] else DEFAULT_SCOPE[1] for name in scope_names}
        elif word in ("BLOCK", "BLOCKS"):
            found |= BLOCKS
        elif word.strip("[").startswith("'"):
            found[word.strip("[]")] = usage
    if quoted:
        found = {name: meta for name, meta in found.items() if name not in BLOCKS}
    sign = "'" if quoted else ""
    return _starting(begun, ((name.removeprefix(sign), name, meta) for name, meta in found.items()))


def _of_entries(begun: str, found: Iterable[NameEntry]) -> list[Candidate]:
    return _starting(begun, ((entry.name, entry.usage[0], entry.summary or entry.kind) for entry in found))


def _starting(begun: str, found: Iterable[tuple[str, str, str]]) -> list[Candidate]:
    """Those of some texts, given with how they are shown and what is said of them, that go on from what is there."""
    return [Candidate(text, len(begun), shown, meta) for text, shown, meta in found if text.startswith(begun)]


def _paths(begun: str) -> Iterator[Candidate]:
    """Files and folders whose path starts so."""
    folder, _, name = begun.rpartition("/")
    place = Path(f"{folder}/" if folder or begun.startswith("/") else ".").expanduser()
    try:
        found = sorted(place.iterdir())
    except OSError:
        return
    for path in found:
        if path.name.startswith(name) and (name or not path.name.startswith(".")):
            text = path.name + "/" * path.is_dir()
            yield Candidate(text, len(name), text, "folder" if path.is_dir() else "")


def _in_text(before: str) -> bool:
    """Whether the cursor stands in a string that is open, or in a comment."""
    *_, last = (None, *tokens(before))
    if last is None or last.end < len(before):
        return False
    return last.kind == "comment" or (last.kind == "string" and (len(last.text) < 2 or not last.text.endswith('"')))


def signature(text: str, conversation: Conversation) -> tuple[str, str] | None:
    """Usage and summary of the innermost call that is known, for a text that ends at the cursor."""
    known = conversation.known()
    for depth, call in reversed(list(enumerate(open_calls(text)))):
        for entry in known.get(call.head or "", ()) or known.get((call.head or "").lower(), ()):
            directive = depth == 0 and call.opener.text == "["
            if (entry.kind == "directive") == directive:
                return "  or  ".join(entry.usage), entry.summary if len(entry.usage) == 1 else ""
    return None
