"""What draws remember of the session that made them: seed, program, observed numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from typing import Any

import numpy as np

from venture_lite.draws.draws import Origin, column_array, joined_column
from venture_lite.interpreter.model import Model
from venture_lite.language.syntax import Directive, IndexName, IndexOf, Observe, Parameter
from venture_lite.session.live import Directory, Live, LoopPart
from venture_lite.values import freeze


class Origins:
    """Makes the origin of draws; keeps what it made while the directives stay the same."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._known: tuple[Directory, int, str, dict[str, np.ndarray]] | None = None

    def of(self, directory: Directory, inference: str) -> Origin:
        if self._known is None or self._known[:2] != (directory, directory.revision):
            self._known = (directory, directory.revision, _program(directory), _observed(directory))
        *_, program, observed = self._known
        return Origin(self.seed, program, inference, observed)


def name_of_data(directive: Directive) -> str | None:
    """What the observed values of a directive go by: its label, or the parameter that holds them."""
    match directive:
        case Observe(value=Parameter(index=IndexOf(base=IndexName(name=name)) | IndexName(name=name)), label=None):
            return name
    return directive.label


def _program(directory: Directory) -> str:
    """The text of every directive in force; the passes of a loop share theirs."""
    seen: set[tuple[int, int]] = set()
    lines = []
    for live in directory:
        place = (id(live.run), live.span.start)
        if live.run is None or place not in seen:
            seen.add(place)
            lines.append(f"{live.label}: {live.span.text}" if live.label is not None else live.span.text)
    return "\n".join(lines)


def _observed(directory: Directory) -> dict[str, np.ndarray]:
    """The observed numbers by name; passes of one loop, and those left of it, joined."""
    found: dict[tuple[str, int], list[np.ndarray]] = {}
    for live in directory:
        for name, part in _named_parts(live):
            values = _values(directory.chains.models[0], part)
            found.setdefault((name, id(live.run or live)), []).append(values)
    observed: dict[str, np.ndarray] = {}
    for (name, _), parts in found.items():
        values = joined_column(parts)
        if values.dtype != object:
            observed[_unused(name, observed)] = freeze(values)
    return observed


def _values(model: Model, part: LoopPart) -> np.ndarray:
    """The observed values of the passes that are left; of lists the items, one after the other."""
    rows, left = part.rows[0], part.left()
    if left and model.lists(rows.code, int(rows.rows[left[0]])):
        nodes = (node for at in left for node in model.evidence_nodes(rows.code, int(rows.rows[at])))
        return column_array([model.trace.value(node) for node in nodes])
    values = column_array(part.evidence)
    return values[left] if part.forgotten else values


def _named_parts(live: Live) -> Iterator[tuple[str, LoopPart]]:
    """The observing parts of a directive; a loop that observes once may lend its label."""
    observing = [part for part in live.parts if part.evidence is not None]
    for part in observing:
        name = name_of_data(part.directive) or (live.label if len(observing) == 1 else None)
        if name is not None:
            yield name, part


def _unused(name: str, taken: dict[str, Any]) -> str:
    candidates = chain([name], (f"{name}_{number}" for number in count(2)))
    return next(candidate for candidate in candidates if candidate not in taken)
