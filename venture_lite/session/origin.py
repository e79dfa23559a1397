"""What draws remember of the session that made them: seed, program, observed numbers."""

from __future__ import annotations

import numpy as np

from venture_lite.draws.draws import Origin, column_array, joined_column
from venture_lite.interpreter.model import Model
from venture_lite.language.syntax import Directive, IndexName, IndexOf, Observe, Parameter
from venture_lite.session.live import Directory, LoopPart
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


def data_names(directory: Directory) -> dict[str, list[LoopPart]]:
    """The observes by what their data go by: labels, of their own or of their loop, and parameters that hold them."""
    known: dict[str, list[LoopPart]] = {}
    for live in directory:
        for part in live.parts:
            if part.evidence is not None:
                name = name_of_data(part.directive) or live.label
                if name is not None:
                    known.setdefault(name, []).append(part)
    return known


def _observed(directory: Directory) -> dict[str, np.ndarray]:
    """The observed numbers by name; those of all observes of a name, and passes left of them, joined."""
    model = directory.chains.models[0]
    joined = {
        name: joined_column([_values(model, part) for part in parts]) for name, parts in data_names(directory).items()
    }
    return {name: freeze(values) for name, values in joined.items() if values.dtype != object}


def _values(model: Model, part: LoopPart) -> np.ndarray:
    """The observed values of the passes that are left; of lists the items, one after the other."""
    rows, left = part.rows[0], part.left()
    if left and model.lists(rows.code, int(rows.rows[left[0]])):
        nodes = (node for at in left for node in model.evidence_nodes(rows.code, int(rows.rows[at])))
        return column_array([model.trace.value(node) for node in nodes])
    values = column_array(part.evidence)
    return values[left] if part.forgotten else values
