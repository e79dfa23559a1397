"""What can go wrong, said so that a person can mend it.

A mistake of the user's is a `VentureError`: it knows the place in the text, what is wrong and what to try, and it
renders itself with the source line and a caret. A broken invariant of this system is an `InternalError`. Here is also
what keeps a text from doing more on a terminal than to be read (`escaped`): every message goes through it.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import re
import sys
import threading
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from types import FrameType, TracebackType

Made = TypeVar("Made")

# what moves a terminal's cursor, changes its settings, or shows a text in another order than it has: C0 but for tabs
# and line breaks, DEL, C1, marks and embeddings of direction, separators of lines
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


@dataclass(frozen=True, slots=True)
class Source:
    """One text that was given to the parser, and the name by which a person knows it (a path, `<input>`)."""

    name: str
    # left out of the representation: every node of a tree refers to its source
    text: str = field(default="", repr=False)
    # whether messages may show lines of it: not of a file that lies outside of the folder of who loads it
    quotable: bool = True

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Line and column, both counted from 1, of a character offset."""
        offset = min(max(offset, 0), len(self.text))
        starts = _line_starts(self.text)
        line = bisect.bisect_right(starts, offset)
        return line, offset - starts[line - 1] + 1

    def line_at(self, offset: int) -> str:
        """The whole line around a character offset, without its line break."""
        start = self.text.rfind("\n", 0, offset) + 1
        end = self.text.find("\n", start)
        return (self.text[start:] if end < 0 else self.text[start:end]).rstrip("\r")


@functools.lru_cache(maxsize=8)
def _line_starts(text: str) -> list[int]:
    """Where each line starts; kept, for a long program asks for the line of each of its directives."""
    return [0, *(match.end() for match in re.finditer("\n", text))]


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters `[start, end)` in a source."""

    source: Source
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.source.line_and_column(self.start)[0]

    def place(self) -> str:
        """`file:line:column`, as editors read it."""
        line, column = self.source.line_and_column(self.start)
        return f"{self.source.name}:{line}:{column}"

    def underlined(self, width: int = 100) -> str:
        """The source line with a caret under the range; a long line is cut around the caret."""
        line = self.source.line_at(self.start)
        column = self.source.line_and_column(self.start)[1] - 1
        length = max(1, min(self.end - self.start, len(line) - column))
        first = max(0, column - width // 2) if len(line) > width else 0
        shown = "".join(character if character.isprintable() else " " for character in line[first : first + width])
        before, marked = shown[: column - first], shown[column - first : column - first + length]
        return f"    {shown}\n    {' ' * _columns(before)}{'^' * max(1, _columns(marked))}"


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes: two for a wide character, none for an accent of its own."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


@dataclass(frozen=True, slots=True)
class CallSite:
    """One step of the chain of model calls that led to an error."""

    name: str
    span: Span | None


class VentureError(Exception):
    """A mistake in the user's program, data or call.

    `message` says what is wrong, `span` where, `hint` what to try, and `chain` the calls that led there.
    """

    def __init__(
        self, message: str, span: Span | None = None, hint: str | None = None, chain: Iterable[CallSite] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint
        self.chain = tuple(chain)
        # which of the passes loaded together met it, and the loop variables then, once they are named
        self.position: int | None = None
        self.passes: str | None = None
        # the frames of the package through which it came, once it has left it
        self.frames: TracebackType | None = None

    def in_pass(self, passes: str) -> None:
        """Name the pass of a loop, once."""
        if self.passes is None:
            self.passes = passes
            self.message += f" ({passes})"

    def at(self, span: Span | None, chain: Iterable[CallSite] = ()) -> Self:
        """This error, located if it was not yet."""
        if self.span is None:
            self.span = span
        if not self.chain:
            self.chain = tuple(chain)
        return self

    def _render_traceback_(self) -> list[str]:
        """What IPython shows, which asks an exception for this, in place of the package's frames."""
        return shown_in_notebook(self)

    def __str__(self) -> str:
        parts = [self.message if self.span is None else f"{self.span.place()}: {self.message}"]
        if self.span is not None and self.span.source.text and self.span.source.quotable:
            parts.append(self.span.underlined())
        if self.hint:
            parts.append(f"  try: {self.hint}")
        parts.extend(_chain_lines(self.chain))
        return escaped("\n".join(parts))


def in_passes(evaluate: Callable[[int], Made], positions: Iterable[int]) -> list[Made]:
    """What is made in each of the passes loaded together; an error notes the one in which it was met."""
    made = []
    for position in positions:
        try:
            made.append(evaluate(position))
        except VentureError as error:
            error.position = position
            raise
    return made


def shown_in_notebook(error: VentureError, called: bool = True) -> list[str]:
    """The message; with `called`, the lines of the user's own Python that led there; and where a registered function
    raised the error that this one began with."""
    import traceback

    lines = str(error).split("\n")
    if called:
        lines += [f"  called at {place}" for place in _own_places(error.__traceback__)]
    cause = python_cause(error)
    if cause is not None:
        *_, frame = traceback.extract_tb(cause.__traceback__)
        lines.append(f"  raised by {frame.name}, {frame.filename}:{frame.lineno}: {frame.line}")
    return lines


def _own_places(reached: TracebackType | None) -> Iterator[str]:
    """The lines of Python through which the package was called, the notebook's machinery left out."""
    import traceback

    while reached is not None:
        package = str(reached.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package == "venture_lite":
            return
        if package not in ("IPython", "ipykernel"):
            (frame,) = traceback.extract_tb(reached, limit=1)
            in_cell = frame.filename.startswith("<") or "ipykernel" in frame.filename
            yield f"{'line ' if in_cell else f'{frame.filename}:'}{frame.lineno}: {frame.line}"
        reached = reached.tb_next


def python_cause(error: VentureError) -> BaseException | None:
    """The exception of a registered function that the error began with, if it did."""
    cause = error.__cause__
    seen: list[BaseException] = [error]
    while isinstance(cause, VentureError) and cause not in seen:
        seen.append(cause)
        cause = cause.__cause__
    return None if cause is None or isinstance(cause, VentureError) or cause.__traceback__ is None else cause


def _chain_lines(chain: tuple[CallSite, ...], shown: int = 8) -> list[str]:
    """The innermost calls, one a line; a long chain is cut in its middle."""

    def line(site: CallSite) -> str:
        return f"  in {site.name}" + (f" at {site.span.place()}" if site.span else "")

    if len(chain) <= shown:
        return [line(site) for site in chain]
    left_out = len(chain) - shown
    head, tail = chain[: shown // 2], chain[-(shown // 2) :]
    return [*map(line, head), f"  ... {left_out} more calls ...", *map(line, tail)]


class UsageError(VentureError):
    """An option on the command line that is not of the form asked for."""


class ParseError(VentureError):
    """The text is not a program."""


class NameUnknown(VentureError):
    """A name that nothing binds."""


class ArgumentError(VentureError):
    """A call with the wrong count, type or domain of arguments."""


class Undrawable(ArgumentError):
    """Arguments that rounding took to 0 or infinity, where a value would have to be drawn: a transition that meets them
    is rejected."""


class CountTooLarge(ArgumentError):
    """A count that was drawn is beyond 2^62."""


class ImpossibleState(VentureError):
    """An error in a state that has probability zero: a transition that would lead there is rejected."""


class ParameterError(VentureError):
    """A `{parameter}` that is missing, out of range, or of the wrong shape; data with NaN or missing values."""


class EvidenceError(VentureError):
    """An observation that cannot be carried to one random choice, or that is impossible."""


class ObservedAlready(EvidenceError):
    """A second observation of one random choice; `model` is the trace, `node` the choice in it."""

    def __init__(self, model: object, node: int, span: Span | None) -> None:
        super().__init__("this random choice is observed already", span, "one choice takes one observation")
        self.model = model
        self.node = node

    def name_first(self, place: str) -> None:
        """Say where the first observation is."""
        self.message += f", at {place}"
        self.hint = "one choice takes one observation; [forget LABEL] takes the first one back"


class KernelError(VentureError):
    """An inference action that does not apply to the choices that it was asked to move."""


class LimitError(VentureError):
    """A limit on nested calls or on memory was reached."""


class InternalError(Exception):
    """A broken invariant: a defect of this system, never of the user's program."""


class VentureWarning(UserWarning):
    """Something that a person should know, after which the program goes on."""


class Disagreement(VentureWarning):
    """A fast way gave another result than the interpreter, which goes on in its place: a defect of this system."""


_HEARD: dict[int, list[tuple[str, type[Warning]]]] = {}
"""By thread, what was warned of there, where somebody keeps it."""


@contextlib.contextmanager
def heard_here() -> Iterator[list[tuple[str, type[Warning]]]]:
    """What this thread warns of in the block is kept in a list, each with its kind, and not shown. Python's own way to
    keep warnings is one for all threads."""
    thread = threading.get_ident()
    heard: list[tuple[str, type[Warning]]] = []
    _HEARD[thread] = heard
    try:
        yield heard
    finally:
        del _HEARD[thread]


def warn(text: str, kind: type[VentureWarning] = VentureWarning) -> None:
    """Raise a warning that points at the line which called the package, however deep it is met."""
    if (heard := _HEARD.get(threading.get_ident())) is not None:
        heard.append((text, kind))
        return
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _is_inside(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)


def _is_inside(frame: FrameType) -> bool:
    """Whether the frame is the package's, or of a context manager that it uses."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] in ("venture_lite", "contextlib")


def nearest(name: str, known: Iterable[str], written: Mapping[str, str] | None = None) -> str | None:
    """A hint that names the closest known spelling, or None; `written` says how some of them are written."""
    found = nearest_name(name, known)
    return None if found is None else f"did you mean {(written or {}).get(found, found)}?"


# no typo of a word, but a text; the edits between two of them would take long to find
_LONGEST_NAME = 80


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that the fewest edits lead to, at most a third of the letters; of several such, the one whose
    letters are most alike, then the one that begins alike, then the first. Where there is none, one that is shortened
    or has an addition (`neg_binomial`, `normal_dist`). None where nothing is near."""
    if len(name) > _LONGEST_NAME:
        return None
    known = list(known)
    limit = max(1, len(name) // 3)
    found: tuple[int, int, bool] | None = None
    best = None
    for other in known:
        count = _edits(name.lower(), other.lower(), limit)
        if count <= limit:
            unlike = _unlike(name.lower(), other.lower())
            # one letter for another leaves nothing of a name of one letter, and little of one of two
            if (found is None or (count, unlike, name[:1] != other[:1]) < found) and (len(name) > 2 or unlike < 2):
                found, best = (count, unlike, name[:1] != other[:1]), other
    return best or min(
        (other for other in known if _is_shortened(name, other) or _is_shortened(other, name)),
        key=lambda other: abs(len(other) - len(name)),
        default=None,
    )


def _edits(a: str, b: str, limit: int) -> int:
    """Letters to insert, delete, replace or swap with their neighbour between two words (optimal string alignment); a
    number above `limit` where they are more."""
    if abs(len(a) - len(b)) > limit:
        return limit + 1
    before, row = list[int](), list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, other in enumerate(b, 1):
            count = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != other))
            if i > 1 and j > 1 and (letter, other) == (b[j - 2], a[i - 2]):
                count = min(count, last[j - 2] + 1)
            row.append(count)
        if min(row) > limit:
            return limit + 1
    return row[-1]


def _unlike(a: str, b: str) -> int:
    """How many letters one of the words has more of than the other."""
    return sum(abs(a.count(letter) - b.count(letter)) for letter in {*a, *b})


def _is_shortened(short: str, long: str) -> bool:
    """Whether a word is another with letters left out: not the first, and at most half."""
    letters = iter(long)
    return (
        4 <= len(short) <= len(long) <= 2 * len(short)
        and short[0] == long[0]
        and all(each in letters for each in short)
    )
