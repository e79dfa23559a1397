"""What a random program is: steps that can be carried out one by one, in two spellings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.generator.twins import Twin

# What generated programs refer to in braces, and as bounds of loops.
PARAMETERS: Mapping[str, Any] = {
    "B": np.array([0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1]),
    "C": np.array([0, 1, 0, 2, 0, 1, 0, 1, 2, 2, 1, 2]),
    "D": np.array([0.3, -0.2, 0.8, 0.1, 1.7, 1.2, 2.0, 1.4, 2.8, 2.2, 0.4, 1.9]),
    "H": np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0]),
    "K": np.array([0, 1, 2, 0, 1, 1, 1, 1, 1, 1, 1, 1]),
    "P": np.arange(24.0).reshape(12, 2) / 4,
    "COV": np.array([[1.0, 0.3], [0.3, 0.8]]),
    "G": np.array([0, 1, 2, 0, 3, 2, 1, 0]),
    "M": np.array([[0.5, -0.4], [1.2, 0.1]]),
    "N": 2,
    "X": np.array([0.2, 0.7, 0.4]),
    "W": np.array([2.0, 0.5, 1.5, 0.5, -2.0, -0.5, 1.0, 1.0]),
    "Y": np.array([1.0, 0.0, 1.0]),
}


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on a model; `label` names its directive."""

    # The directive's keyword; of a loop `observe`.
    kind: str
    label: str
    # The directive, without its label.
    text: str
    # The same without names for names and wrappers: no directive, or one, or several.
    plain: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """Directives, then operations that come between transitions."""

    directives: tuple[Step, ...]
    operations: tuple[Step, ...]
    # Expressions that no transition changes the meaning of, to compare draws by.
    queries: tuple[Twin, ...]
    # Whether names are wrapped into calls and branches, too.
    heavy: bool = False
    # What stands in braces.
    parameters: Mapping[str, Any] = field(default_factory=lambda: PARAMETERS)

    @property
    def text(self) -> str:
        return "\n".join(step.text for step in self.directives)

    @property
    def plain(self) -> Program:
        """The same program in the plain spelling."""
        return Program(
            tuple(plainly(self.directives)),
            tuple(plainly(self.operations)),
            tuple(Twin(query.plain, query.plain) for query in self.queries),
            parameters=self.parameters,
        )


def plainly(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        for number, text in enumerate(step.plain):
            yield Step(step.kind, plain_label(step, number), text, (text,))


def plain_label(step: Step, number: int) -> str:
    """The label of the `number`-th of a step's plain directives."""
    return step.label if number == 0 else f"{step.label}_{number}"


@dataclass(frozen=True, slots=True)
class Call:
    """An application; the types of its arguments stand in its places."""

    spelling: Twin
    arguments: tuple[str, ...] = ()
    # Choices that each application makes.
    cost: float = 0.0
    # The operator is the first word of both spellings, so that it may be wrapped.
    named: bool = True
    # A name may stand for the call: it has one value.
    memoized: bool = False


@dataclass(slots=True)
class Names:
    """What earlier steps bound, by type."""

    values: dict[str, list[Twin]] = field(default_factory=dict)
    calls: dict[str, list[Call]] = field(default_factory=dict)
    # Applications that can be observed, with their possible values.
    observable: list[tuple[Twin, tuple[str, ...]]] = field(default_factory=list)
    # Names bound directly to a random choice, with a value to force.
    forceable: list[tuple[Twin, str]] = field(default_factory=list)
    # Names of makers' products and of other procedures without arguments.
    products: list[Twin] = field(default_factory=list)

    def copy(self) -> Names:
        return Names(
            {kind: list(names) for kind, names in self.values.items()},
            {kind: list(calls) for kind, calls in self.calls.items()},
            list(self.observable),
            list(self.forceable),
            list(self.products),
        )

    def bind(self, kind: str, name: Twin) -> None:
        self.values.setdefault(kind, []).append(name)

    def offer(self, kind: str, call: Call) -> None:
        self.calls.setdefault(kind, []).append(call)
