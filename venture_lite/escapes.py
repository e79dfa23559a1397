"""What must not reach a terminal as it is: control characters, which move its cursor and change its settings, and codes
for the direction of writing, which show a text in another order than it has."""

from __future__ import annotations

import re

# C0 but for tabs and line breaks, DEL, C1, marks and embeddings of direction, separators of lines
HARMFUL = "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_HARMFUL = re.compile(f"[{HARMFUL}]")


def escape(character: str) -> str:
    """A character as a program's string writes it: `\\x1b`, `\\u202e`."""
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def escaped(text: str) -> str:
    """The text with every such character escaped; tabs and line breaks stay."""
    if text.isascii() and text.isprintable():
        return text
    return _HARMFUL.sub(lambda found: escape(found[0]), text)
