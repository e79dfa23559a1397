"""The prompt: `venture repl`.

`conversation.py` takes entries: `commands.py` holds the prompt's own commands, and what is no command is run
(`running.py`), shown (`reply.py`) and recorded (`record.py`). `terminal.py` reads entries from a person at a terminal,
`plain.py` from a pipe; `history.py` has what was entered before. `lexer.py`, `completion.py`, `names.py` and `help.py`
know the language as a person types it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from venture_lite.inference.signals import Stop
from venture_lite.repl.conversation import Conversation, PromptSettings

__all__ = ["Conversation", "PromptSettings", "start"]


def start(settings: PromptSettings, file: Path | None, stop: Stop) -> int:
    """Converse until the person leaves or the input ends; `file` is run first. Returns the exit status.

    Raises:
        UsageError, ParameterError: the parameters in the settings cannot be read.
        KeyboardInterrupt: a signal that `stop` heard has ended the session.
    """
    conversation = Conversation(settings, stop)
    if settings.values or settings.data:
        conversation.load()
    if file is not None:
        conversation.enter(f':load "{file}"')
        conversation.number = 0
    with stop.held():
        if settings.interactive:
            from venture_lite.repl.terminal import converse
        else:
            from venture_lite.repl.plain import converse
    status = 0 if conversation.ended else converse(conversation)
    if stop.is_to_end:
        from venture_lite.repl.draws import rescue

        with stop.instead(lambda: None):
            rescue(conversation)
        raise KeyboardInterrupt
    return status


def is_terminal() -> bool:
    """Whether a person sits at a terminal that can move its cursor."""
    try:
        seen = sys.stdin.isatty() and sys.stdout.isatty()
    except (AttributeError, ValueError):
        return False
    return seen and (os.name == "nt" or os.environ.get("TERM", "") not in ("", "dumb", "unknown"))
