"""The prompt at a terminal: lines edited with prompt_toolkit.

Only what the first key needs is imported before the prompt is shown; a thread loads the language while the person
begins to type, and a key that needs it (Enter, Tab) waits for that.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterable
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from venture_lite import __version__
from venture_lite.repl import lexer
from venture_lite.repl.conversation import Conversation
from venture_lite.repl.history import HistoryFile, default_path

# used by many programs, and slow to import: loaded while nobody waits
LATER = ("scipy.special", "scipy.linalg", "threadpoolctl", "venture_lite.draws.summary", "venture_lite.repl.completion")
# a longer entry was pasted: colours and signatures would cost more at each key than they bring
LONGEST_COLOURED = 50_000
SWITCH_SECONDS = 0.0005
HINT = "? tour   help NAME   Tab completes   Ctrl-D leaves"
STYLE = Style.from_dict(
    {
        "keyword": "bold ansiblue",
        "head": "ansiblue",
        "constant": "ansimagenta",
        "number": "ansimagenta",
        "string": "ansigreen",
        "parameter": "ansicyan",
        "label": "ansicyan",
        "comment": "ansibrightblack italic",
        "bracket.matching": "bold underline",
        "bracket.alone": "ansired bold",
        "prompt": "bold",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)


def converse(conversation: Conversation) -> int:
    """Entries from the person at the terminal until Ctrl-D or `:quit`."""
    file = HistoryFile(default_path())
    file.check()
    conversation.print(f"venture {__version__}, seed {conversation.settings.seed}; ? for a tour")
    if file.problem:
        conversation.say(f"warning: {file.problem}")
    prompt = _prompt(conversation, file)
    _load_after_first_render(prompt, conversation)
    while not conversation.ended:
        try:
            # Ctrl-C is a key here, but a signal may come from elsewhere
            with conversation.stop.instead(lambda: _leave(prompt)):
                rest, conversation.rest = conversation.rest, ""
                text = prompt.prompt(f"{conversation.number + 1}> ", default=rest, handle_sigint=False)
        except KeyboardInterrupt:
            conversation.is_stopped()
            continue
        except EOFError:
            break
        conversation.enter(text)
    return 0


def _leave(prompt: PromptSession[str]) -> None:
    """End the prompt as its own keys do, so that the terminal is left as it was."""
    loop = prompt.app.loop
    if loop is None or not prompt.app.is_running:
        raise KeyboardInterrupt
    loop.call_soon_threadsafe(lambda: prompt.app.exit(exception=KeyboardInterrupt()))


def _prompt(conversation: Conversation, file: HistoryFile) -> PromptSession[str]:
    return PromptSession(
        multiline=True,
        history=file,
        lexer=_Colours(),
        completer=_Completions(conversation),
        complete_while_typing=False,
        enable_history_search=True,
        input_processors=[_MatchingBracket()],
        key_bindings=_keys(conversation),
        prompt_continuation=lambda width, *_: ".. ".rjust(width),
        bottom_toolbar=lambda: _line_below(conversation),
        style=STYLE,
    )


def _load_after_first_render(prompt: PromptSession[str], conversation: Conversation) -> None:
    def load() -> None:
        # keys come first: the thread gives way to them more often than threads do
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        try:
            conversation.load()
            for name in LATER:
                importlib.import_module(name)
        finally:
            sys.setswitchinterval(interval)

    def rendered(_: Any) -> None:
        prompt.app.after_render -= rendered
        threading.Thread(target=load, daemon=True).start()

    prompt.app.after_render += rendered


# ------------------------------------------------------------------------------------------------------------- keys


def _keys(conversation: Conversation) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def _enter(event: KeyPressEvent) -> None:
        """Run the entry if it is complete, else go on in a new line."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion is not None:
            buffer.complete_state = None
        elif conversation.is_complete(buffer.text):
            # the empty line that ended a loop is no part of it
            buffer.text = buffer.text.rstrip()
            buffer.validate_and_handle()
        else:
            _new_line(event)

    @keys.add("escape", "enter")
    def _new_line(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        buffer.insert_text("\n" + " " * lexer.indentation(buffer.document.text_before_cursor))

    @keys.add("tab")
    def _tab(event: KeyPressEvent) -> None:
        """Indent an empty line, else complete."""
        buffer = event.current_buffer
        if buffer.complete_state is not None:
            buffer.complete_next()
        elif buffer.document.on_first_line or buffer.document.current_line_before_cursor.strip():
            _complete(buffer)
        else:
            buffer.insert_text("  ")

    return keys


def _complete(buffer: Buffer) -> None:
    """Insert what all candidates have in common, at once: keys typed ahead find it; a menu where they differ."""
    assert buffer.completer is not None
    found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
    common = get_common_complete_suffix(buffer.document, found)
    if common:
        buffer.insert_text(common)
    elif len(found) > 1:
        buffer.start_completion()


# ------------------------------------------------------------------------------------------------------ what is seen


class _Colours(Lexer):
    """Colours a line by its tokens."""

    def lex_document(self, document: Document) -> Any:
        lines = document.lines
        if len(document.text) > LONGEST_COLOURED:
            return lambda number: [("", lines[number])] if number < len(lines) else []
        states = [lexer.State()]

        def fragments(number: int) -> StyleAndTextTuples:
            if number >= len(lines):
                return []
            while len(states) <= number:
                states.append(lexer.tokens_of_line(lines[len(states) - 1], states[-1])[1])
            line, end = lines[number], 0
            found: StyleAndTextTuples = []
            for token in lexer.tokens_of_line(line, states[number])[0]:
                found += [("", line[end : token.start]), (f"class:{token.kind}", token.text)]
                end = token.end
            return [*found, ("", line[end:])]

        return fragments


class _MatchingBracket(Processor):
    """Marks the bracket at the cursor and its other half; one that has none is marked as wrong."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        document = transformation_input.document
        places = [] if get_app().is_done else self._places(document)
        if not places:
            return Transformation(transformation_input.fragments)
        fragments = explode_text_fragments(transformation_input.fragments)
        for place, style in places:
            row, column = document.translate_index_to_position(place)
            at = transformation_input.source_to_display(column)
            if row == transformation_input.lineno and at < len(fragments):
                fragments[at] = (f"{fragments[at][0]} {style}", fragments[at][1])
        return Transformation(fragments)

    def _places(self, document: Document) -> list[tuple[int, str]]:
        """The bracket under the cursor or just before it, and the one that belongs to it."""
        text, cursor = document.text, document.cursor_position
        if len(text) > LONGEST_COLOURED:
            return []
        near = [place for place in (cursor - 1, cursor) if 0 <= place < len(text) and text[place] in "()[]{}"]
        pairs = lexer.pairs(text) if near else {}
        for place in near:
            other = pairs.get(place)
            if other is not None:
                return [(place, "class:bracket.matching"), (other, "class:bracket.matching")]
            if place in pairs and text[place] in lexer.OPENER:
                return [(place, "class:bracket.alone")]
        return []


class _Completions(Completer):
    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        self.conversation.load()
        from venture_lite.repl.completion import candidates

        for found in candidates(document.text_before_cursor, self.conversation):
            yield Completion(found.text, -found.replaced, display=found.shown, display_meta=found.meta)


def _line_below(conversation: Conversation) -> StyleAndTextTuples:
    """The signature of what is being called, once the language is there."""
    text = get_app().current_buffer.document.text_before_cursor
    if not conversation.is_loaded or len(text) > LONGEST_COLOURED:
        return [("", HINT)]
    from venture_lite.repl.completion import signature

    found = signature(text, conversation)
    return [("", HINT)] if found is None else [("bold", found[0]), ("", f"   {found[1]}")]
