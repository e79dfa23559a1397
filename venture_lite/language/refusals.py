"""Why a text is refused, and whether more typing could mend it.

Two views of the same text: `balance_of` looks at brackets and strings alone, and finds the one that is to blame;
`explain` puts what the automaton was waiting for into the words of the language.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from venture_lite.errors import ParseError, Source, Span
from venture_lite.language.directives import DIRECTIVES

_CLOSER = {"(": ")", "[": "]", "{": "}"}
_CONTROL = r"\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ud800-\udfff"
_SIGN = re.compile(
    rf"""
      (?P<control> [{_CONTROL}] )
    | (?P<string> "[^"\\\x00-\x08\x0a-\x1f\x7f]* (?: \\[^\x00-\x1f\x7f] [^"\\\x00-\x08\x0a-\x1f\x7f]* )* )
    | (?P<comment> [;#][^\r\n]* )
    | (?P<directive> ^[ \t]* \[ (?= (?: {"|".join(DIRECTIVES)} ) [\s\]] ) )
    | (?P<opener> [(\[{{] )
    | (?P<closer> [)\]}}] )
    | (?P<line> \n )
    | (?P<other> [^\s] )
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)


class Balance(NamedTuple):
    """What a scan of the brackets found."""

    # the first thing that is wrong, if anything is
    error: ParseError | None = None
    # whether more text could still mend that
    unfinished: bool = False
    # the last sign of the text, blanks and comments left out
    last_sign: str = ""
    # whether a line ended in a colon outside all brackets: a loop whose body is indented below
    indented_loop: bool = False


def balance_of(source: Source, start: int = 0, end: int | None = None) -> Balance:
    """Scans the text, or a part of it, once; linear in its length."""
    last_sign, indented_loop = "", False
    openers: list[int] = []
    # a directive that starts a line inside open brackets: the likely place where one before it was not closed
    suspect: tuple[int, int] | None = None
    text = source.text
    position, end = start, len(text) if end is None else end
    while match := _SIGN.search(text, position, end):
        position = match.end()
        kind, sign = match.lastgroup, match[0][-1]
        if kind == "line":
            indented_loop |= last_sign == ":" and not openers
            continue
        if kind == "comment":
            if any(text[opener] == "{" for opener in openers[-2:]):
                return Balance(_comment_in_braces(source, match.start()))
            continue
        if kind == "control":
            return Balance(_control_character(source, match.start()))
        if kind == "string":
            if not text.startswith('"', position, end):
                return Balance(_open_string(source, match.start(), position), unfinished=position == end)
            position += 1
        elif kind == "directive" or kind == "opener":
            if kind == "directive" and openers and suspect is None:
                suspect = openers[-1], position - 1
            openers.append(position - 1)
        elif kind == "closer":
            if not openers or _CLOSER[text[openers[-1]]] != sign:
                return Balance(_never_closed(source, *suspect) if suspect else _mismatch(source, openers, position - 1))
            openers.pop()
            if not openers:
                suspect = None
        last_sign = sign
    if openers:
        return Balance(_never_closed(source, *(suspect or openers[-1:])), unfinished=True)
    return Balance(None, False, last_sign, indented_loop)


def _place(source: Source, position: int) -> str:
    line, column = source.line_and_column(position)
    return f"line {line}, column {column}"


def _never_closed(source: Source, opener: int, directive: int | None = None) -> ParseError:
    sign = source.text[opener]
    before = "" if directive is None else f" before the directive at {_place(source, directive)}"
    message = f"`{sign}` is opened here and not closed{before}"
    return ParseError(message, Span(source, opener, opener + 1), f"`{_CLOSER[sign]}` where it should end")


def _mismatch(source: Source, openers: list[int], closer: int) -> ParseError:
    """`( ... ]`: the opening bracket is to blame if the closing one fits another that is open."""
    sign = source.text[closer]
    here = Span(source, closer, closer + 1)
    if not openers:
        return ParseError(f"`{sign}` closes nothing: no bracket is open here", here, "leave it out")
    inner = openers[-1]
    opened = source.text[inner]
    if any(_CLOSER[source.text[opener]] == sign for opener in reversed(openers)):
        message = f"`{opened}` is opened here and not closed before the `{sign}` at {_place(source, closer)}"
        return ParseError(message, Span(source, inner, inner + 1), f"`{_CLOSER[opened]}` where it should end")
    message = f"`{sign}` does not close the `{opened}` opened at {_place(source, inner)}"
    return ParseError(message, here, f"`{_CLOSER[opened]}`")


def _open_string(source: Source, start: int, end: int) -> ParseError:
    if source.text[end : end + 1] not in ("", "\n", "\r", "\\"):
        return _control_character(source, end)
    hint = "a quotation mark at its end; a line break inside a string is written \\n"
    return ParseError("this string is not closed on its line", Span(source, start, end), hint)


def _control_character(source: Source, position: int) -> ParseError:
    code = ord(source.text[position])
    message = f"the character U+{code:04X}, which cannot be seen, is not allowed here"
    return ParseError(message, Span(source, position, position + 1), "leave it out; in a string, an escape such as \\t")


def _comment_in_braces(source: Source, position: int) -> ParseError:
    sign = source.text[position]
    return ParseError(f"`{sign}` stands inside the braces of a parameter", Span(source, position, position + 1), "`}`")


# ------------------------------------------------------------------------------------- where the automaton stopped

_WORD = re.compile(r"[^\s()\[\]{}'\";,]+")
_LOOKALIKES = {"‘": "'", "’": "'", "“": '"', "”": '"'} | dict.fromkeys("‐‑‒–—―−", "-")


def bad_parameter(span: Span) -> ParseError:
    return ParseError(
        "braces hold a parameter: names, whole numbers, `+ - *` and positions in square brackets, nothing else",
        span,
        "{N}, {X[n]}, {X[t-1]}, {X[i, 3]} or {N - L}",
    )


def explain(source: Source, waiting: list[tuple[str, int]], refused: str, here: Span) -> ParseError:
    """Why parsing stopped.

    `waiting` holds kind and place of each token that is not yet part of a finished rule, `refused` is the kind of the
    token that did not fit ("end" for the end of the text, "" if none was recognised), `here` its place.
    """
    places = dict(reversed(waiting))
    last, last_place = waiting[-1] if waiting else ("", 0)
    if "FOR" in places and last != "COLON":
        line = source.text[places["FOR"] : here.start if refused == "end" else here.end].partition("\n")[0]
        head = Span(source, places["FOR"], places["FOR"] + len(line))
        return ParseError("this is not the head of a loop", head, "for n in 1...N: and then its directives")
    if "LBRACE" in places:
        start = dict(waiting)["LBRACE"]
        end = source.text.find("}", start)
        return bad_parameter(Span(source, start, end + 1 if end >= 0 else here.end))
    if last == "QUOTE":
        return ParseError("nothing follows this quote", Span(source, last_place, last_place + 1), "'x or '(1 2)")
    if refused in ("", "INTEGER", "COMMA"):
        return _odd_character(source, here.start)
    if last == "COLON" and "FOR" not in places:
        return ParseError("a label stands before a directive", here, "slope: [assume w (normal 0 1)]")
    if refused == "end":
        return ParseError("there is no expression here", here)
    if refused == "COLON":
        return ParseError("a colon follows a label or the head of a loop, nothing else", here)
    if refused in ("RPAR", "RSQB", "RBRACE"):
        return ParseError(f"there is nothing for `{here.text}` to close", here)
    return ParseError(f"one expression was expected; `{here.text}` is more", here)


def _odd_character(source: Source, position: int) -> ParseError:
    """Why no token starts here."""
    character = source.text[position]
    place = Span(source, position, position + 1)
    meant = _LOOKALIKES.get(character) or unicodedata.normalize("NFKC", character)
    word = _WORD.match(source.text, position)
    if word and re.match(r"[+-]?\.?[0-9]", word[0]):
        place = Span(source, position, word.end())
        hint = "numbers are 3, -0.5, 1e-3; arithmetic is (- n 1); a name starts with a letter or a sign"
        return ParseError(f"`{word[0]}` is neither a number nor a name", place, hint)
    if meant != character and meant.isascii() and meant.isprintable():
        return ParseError(f"`{character}` is no sign of the language", place, f"`{meant}`")
    if character == ",":
        return ParseError("a comma stands only between positions, as in {X[i, 3]}", place, "blanks between parts")
    if not character.isprintable():
        return _control_character(source, position)
    return ParseError(f"`{character}` is no sign of the language", place)
