"""Draws as small plots in text: a histogram and a trace for each number, bars for what has few values.

For a person at a terminal, over any connection. The same draws as a picture are in `pictures.py`. A histogram's bins
follow Freedman and Diaconis (1981); a trace is a cloud of dots, two by four in a character (Braille), where the output
can show them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.draws.diagnostics import moments
from venture_lite.draws.presentation import counted, cut, number, present
from venture_lite.draws.summary import coordinates
from venture_lite.values import object_array

if TYPE_CHECKING:
    from venture_lite.draws.draws import Draws

WIDTH = 80
HEIGHT = 6
# of each coordinate of a vector
HEIGHT_OF_MANY = 3
COORDINATES_SHOWN = 6
BARS_SHOWN = 20
# whole numbers with more distinct values than this are drawn as a histogram
FEW_VALUES = 20
# a single draw of a longer vector is drawn over its positions
LONG_VECTOR = 8
DIGITS = 4

EIGHTHS = " ▁▂▃▄▅▆▇█"
SIDEWAYS = "▏▎▍▌▋▊▉█"
# the dot at column 0 or 1 and row 0 to 3 of a Braille character (Unicode, chapter 21)
BRAILLE = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


@dataclass(frozen=True, slots=True)
class PlottedVariable:
    """One scalar quantity, or one of values of other kinds."""

    name: str
    # one array (draws,) for each chain
    chains: tuple[np.ndarray, ...]

    @property
    def values(self) -> np.ndarray:
        return np.concatenate(self.chains)

    def is_discrete(self) -> bool:
        """Whether bars say more than a histogram: truth values, a few whole numbers, and what is no number."""
        values = self.values
        if values.dtype.kind in "bO":
            return True
        kinds = np.unique(values)
        return len(kinds) <= FEW_VALUES and len(kinds) < len(values) and bool((kinds == np.round(kinds)).all())

    def counts(self) -> list[tuple[str, int]]:
        """Each value as it is shown, with how often it was drawn: numbers in order, others by frequency."""
        values = self.values
        if values.dtype != object:
            kinds, counts = np.unique(values, return_counts=True)
            return [(number(kind), int(count)) for kind, count in zip(kinds, counts, strict=True)]
        return Counter(cut(present(value).replace("\n", " "), WIDTH // 2) for value in values).most_common()


def variables_of(draws: Draws) -> tuple[list[PlottedVariable], list[str]]:
    """What is drawn of some draws, coordinates of a vector apart, and a note on each vector that is cut."""
    found: list[PlottedVariable] = []
    notes: list[str] = []
    for name in draws.names:
        chains = [chain for chain in draws.by_chain(name) if len(chain)]
        shapes = {chain.shape[1:] for chain in chains}
        if len(shapes) > 1:
            chains, shapes = [object_array(chain) for chain in chains], {()}
        if not shapes:
            continue
        places = list(coordinates(name, shapes.pop()))
        for label, index in places[:COORDINATES_SHOWN]:
            place: Any = (slice(None), *index)
            found.append(PlottedVariable(label, tuple(chain[place] for chain in chains)))
        if len(places) > COORDINATES_SHOWN:
            notes.append(f"{name}: {counted(len(places) - COORDINATES_SHOWN, 'more coordinate')} not shown")
    return found, notes


def needs_plain(encoding: str | None) -> bool:
    """Whether an output of this encoding cannot show the signs of which plots are made."""
    try:
        (EIGHTHS + SIDEWAYS + chr(0x28FF)).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False


def text(draws: Draws, width: int = WIDTH, plain: bool = False) -> str:
    """Every variable of the draws, in lines of at most `width` columns; `plain` takes ASCII signs alone."""
    vectors = [name for name in draws.names if _lone_vector(draws, name) is not None]
    variables, notes = variables_of(draws)
    plots = [_profile(name, _lone_vector(draws, name), width, plain) for name in vectors]
    plots += [
        _plot(variable, width, plain, HEIGHT if variable.name in draws.names else HEIGHT_OF_MANY)
        for variable in variables
        if variable.name.partition("[")[0] not in vectors
    ]
    plots += [note for note in notes if note.partition(":")[0] not in vectors]
    return "\n".join(plots)


def _lone_vector(draws: Draws, name: str) -> Any:
    """The vector that is a variable's only draw, if it is long enough to be drawn over its positions."""
    chains = draws.by_chain(name)
    if len(chains) != 1 or len(chains[0]) != 1 or chains[0].ndim != 2 or chains[0].shape[1] <= LONG_VECTOR:
        return None
    return chains[0][0].astype(np.float64)


def _plot(variable: PlottedVariable, width: int, plain: bool, height: int) -> str:
    values = variable.values
    if len(values) == 1:
        return f"{variable.name} = {present(values[0], width)} (one draw)"
    if variable.is_discrete():
        body = _bars(variable.counts(), len(values), width, plain)
        return "\n".join([cut(f"{variable.name}: {_size(variable)}", width), *body])
    return _continuous(variable, width, plain, height)


def _size(variable: PlottedVariable) -> str:
    lengths = {len(chain) for chain in variable.chains}
    if len(variable.chains) == 1 or len(lengths) > 1:
        return counted(len(variable.values), "draw")
    return f"{len(variable.chains)} chains of {counted(lengths.pop(), 'draw')}"


def _continuous(variable: PlottedVariable, width: int, plain: bool, height: int) -> str:
    chains = [chain[np.isfinite(chain)].astype(np.float64) for chain in variable.chains]
    values = np.concatenate(chains)
    title = f"{variable.name}: {_size(variable)}"
    if lost := len(variable.values) - len(values):
        title += f", {lost:,} not finite"
    if not len(values):
        return title
    low, high = float(values.min()), float(values.max())
    if low == high:
        return f"{title}, all {number(low)}"
    mean, sd = moments(values)
    title += f", mean {number(mean, DIGITS)}, sd {number(sd, DIGITS)}"
    labels = _labels(low, high, height)
    columns = max(8, (width - len(labels[0]) - 6) // 2)
    first, last = number(low, DIGITS), number(high, DIGITS)
    values, *chains = in_floats(values, *chains)
    low, high = float(values.min()), float(values.max())
    left = _histogram(values, low, high, columns, height, plain)
    right = _trace(chains, low, high, columns, height, plain)
    longest = max(map(len, chains))
    left.append(_axis(first, last, columns))
    right.append(_axis("1", str(longest), columns))
    lines = [f"  {one}  {label} {other}".rstrip() for one, label, other in zip(left, labels, right, strict=True)]
    return "\n".join([cut(title, width), *lines])


def _labels(low: float, high: float, height: int) -> list[str]:
    """What stands beside the lines of a plot and its axis: the ends of the values."""
    texts = [number(high, DIGITS), *[""] * (height - 2), number(low, DIGITS), ""]
    return [text.rjust(max(map(len, texts))) for text in texts]


def _axis(first: str, last: str, columns: int) -> str:
    """Both ends of an axis, or the first alone where there is no room for two."""
    room = columns - len(first)
    return first + (last.rjust(room) if len(last) < room else "")


def in_floats(*arrays: np.ndarray) -> list[np.ndarray]:
    """Finite values, a quarter of them where differences of those in the first array are beyond the floats."""
    first = arrays[0]
    far = 0.5 * float(first.max()) - 0.5 * float(first.min()) > 0.25 * np.finfo(float).max
    return [0.25 * each for each in arrays] if far else list(arrays)


def bin_count(values: np.ndarray, most: int) -> int:
    """How many bins show a sample's shape (Freedman and Diaconis, 1981), 5 or more."""
    low, first, third, high = np.quantile(values, (0.0, 0.25, 0.75, 1.0))
    width = 2.0 * (third - first) / len(values) ** (1 / 3)
    return int(min(most, max(5, np.ceil((high - low) / width)))) if width > 0 else most


def _histogram(values: np.ndarray, low: float, high: float, columns: int, height: int, plain: bool) -> list[str]:
    bins = bin_count(values, columns)
    counts, _ = np.histogram(values, bins=bins, range=(low, high))
    signs = " .:#" if plain else EIGHTHS
    steps = len(signs) - 1
    # the smallest sign for whatever is not empty
    levels = np.ceil(counts / counts.max() * height * steps).astype(int)[np.arange(columns) * bins // columns]
    return [
        "".join(signs[min(max(level - row * steps, 0), steps)] for level in levels) for row in reversed(range(height))
    ]


def _trace(chains: list[np.ndarray], low: float, high: float, columns: int, height: int, plain: bool) -> list[str]:
    """Each draw as a dot, from the first at the left to the last at the right; all chains over each other."""
    across, down = (1, 1) if plain else (2, 4)
    dots = np.zeros((height * down, columns * across), dtype=bool)
    for chain in chains:
        place = np.arange(len(chain)) * dots.shape[1] // max(1, len(chain))
        level = ((high - chain) / (high - low) * (len(dots) - 1)).round().astype(int)
        dots[level, place] = True
    if plain:
        return ["".join("*" if dot else " " for dot in row) for row in dots]
    cells = dots.reshape(height, 4, columns, 2).transpose(0, 2, 1, 3)
    codes = (cells * np.array(BRAILLE)).sum(axis=(2, 3))
    return ["".join(chr(0x2800 + code) if code else " " for code in row) for row in codes]


def _bars(counts: list[tuple[str, int]], total: int, width: int, plain: bool) -> list[str]:
    shown = counts[:BARS_SHOWN]
    margin = max(len(name) for name, _ in shown)
    room = max(8, width - margin - 12)
    largest = max(count for _, count in shown)
    lines = [
        f"  {name.rjust(margin)}  {_bar(count / largest * room, plain).ljust(room)}  {100 * count / total:5.1f}%"
        for name, count in shown
    ]
    if len(counts) > len(shown):
        lines.append(f"  and {counted(len(counts) - len(shown), 'other value')}")
    return lines


def _bar(length: float, plain: bool) -> str:
    if plain:
        return "#" * max(1, round(length))
    eighths = max(1, round(8 * length))
    return SIDEWAYS[-1] * (eighths // 8) + (SIDEWAYS[eighths % 8 - 1] if eighths % 8 else "")


def _profile(name: str, vector: np.ndarray, width: int, plain: bool) -> str:
    """One draw of a long vector, over its positions."""
    title = f"{name}: one draw of {counted(len(vector), 'number')}, by position"
    finite = vector[np.isfinite(vector)]
    if not len(finite) or finite.min() == finite.max():
        return f"{title}: {present(vector, width)}"
    low, high = float(finite.min()), float(finite.max())
    labels = _labels(low, high, HEIGHT)
    columns = max(8, width - len(labels[0]) - 3)
    (finite,) = in_floats(finite)
    low, high = float(finite.min()), float(finite.max())
    lines = [*_trace([finite], low, high, columns, HEIGHT, plain), _axis("0", str(len(vector) - 1), columns)]
    return "\n".join([title, *(f"  {label} {line}".rstrip() for label, line in zip(labels, lines, strict=True))])
