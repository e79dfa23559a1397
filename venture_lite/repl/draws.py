"""Draws that a session at the prompt has made: kept, listed, shown again, and written to files.

Sets are numbered from 1. What an interruption left is kept as well; chains that differ in length
are written as `venture run` does, the even part and the rest beside it.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from venture_lite.draws.files import save_parts
from venture_lite.draws.presentation import counted, cut, table
from venture_lite.errors import VentureError

if TYPE_CHECKING:
    from venture_lite.draws.draws import Draws
    from venture_lite.repl.conversation import Conversation


@dataclass(slots=True)
class Kept:
    """One set of draws. Mutable: it notes where it was written."""

    number: int
    inference: str
    draws: Draws
    file: Path | None = None


def listed(kept: list[Kept], width: int) -> str:
    """A line for each set."""
    if not kept:
        return "no draws yet: an inference that collects, (repeat 100 (do ... (collect x))), makes some"
    lines = [(str(item.number), _size(item.draws), ", ".join(item.draws.names), item.inference) for item in kept]
    text = table(("set", "draws", "variables", "inference"), lines, right=lambda column: column == 0)
    return "\n".join(cut(line, width) for line in text.split("\n"))


def _size(draws: Draws) -> str:
    counts = sorted(set(draws.lengths().values()))
    chains = counted(draws.chain_count, "chain")
    return f"{chains} of {counts[0]:,}" + (f" to {counts[-1]:,}" if len(counts) > 1 else "")


def find(kept: list[Kept], number: str) -> Kept:
    """The set with a number, the latest where none is named. Raises VentureError where there is none."""
    if not kept:
        raise VentureError("there are no draws yet", hint="(repeat 100 (do ... (collect x))) makes some")
    if not number:
        return kept[-1]
    if number.isascii() and number.isdigit() and 1 <= int(number) <= len(kept):
        return kept[int(number) - 1]
    raise VentureError(f"there is no set {number} of draws", hint=f"there are {len(kept)}; :draws lists them")


def save(conversation: Conversation, item: Kept, path: Path) -> None:
    """Write a set by the file's suffix, and say so."""
    save_parts(*item.draws.evened(), path, conversation.say)
    item.file = path


def rescue(conversation: Conversation) -> None:
    """Write what was kept and not written when a signal ends the session: nobody can be asked any more."""
    unwritten = [item for item in conversation.kept if item.file is None]
    if not unwritten:
        return
    folder = Path() if os.access(".", os.W_OK) else Path(tempfile.mkdtemp(prefix="venture-draws-"))
    for item in unwritten:
        try:
            save(conversation, item, folder / f"venture-{os.getpid()}-{item.number}.npz")
        except (VentureError, OSError) as error:
            conversation.say(f"error: {error}")
