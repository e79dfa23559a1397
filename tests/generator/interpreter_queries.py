"""Queries inside the generator's programs: all worlds of an expression, by the interpreter alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.generator.interpreter_functions import key_of
from tests.generator.interpreter_procedures import IMPOSSIBLE, RANDOM, FiniteRandom


@dataclass(frozen=True, slots=True)
class Chances:
    """Values with their probabilities, by what stands for the values."""

    entries: dict[Any, tuple[Any, float]]

    def of(self, value: Any) -> float:
        return self.entries[key_of(value)][1] if key_of(value) in self.entries else 0.0

    def log_of(self, value: Any) -> float:
        return math.log(self.of(value)) if self.of(value) > 0 else IMPOSSIBLE


RANDOM["draw"] = FiniteRandom(
    lambda value, chances: chances.log_of(value), lambda chances: [value for value, _ in chances.entries.values()]
)
ASKED: dict[str, Callable[..., Any]] = {
    "probability": Chances.of,
    "log_density": Chances.log_of,
    "support": lambda chances: tuple(value for value, _ in chances.entries.values()),
    "probabilities": lambda chances: tuple(chance for _, chance in chances.entries.values()),
}


@dataclass(slots=True)
class Paths:
    """The choices of a query, one path after the other."""

    tape: list[list[int]] = field(default_factory=list)
    at: int = 0
    chance: float = 1.0

    def choose(self, procedure: FiniteRandom, arguments: Sequence[Any], path: Any) -> Any:
        assert procedure.support is not None, "a choice without a finite support"
        support = procedure.support(*arguments)
        if self.at == len(self.tape):
            self.tape.append([0, len(support)])
        value = support[self.tape[self.at][0]]
        self.at += 1
        self.chance *= math.exp(procedure.log_density(value, *arguments))
        return value

    def advance(self) -> bool:
        del self.tape[self.at :]
        while self.tape and self.tape[-1][0] + 1 == self.tape[-1][1]:
            self.tape.pop()
        if self.tape:
            self.tape[-1][0] += 1
        self.at, self.chance = 0, 1.0
        return bool(self.tape)


def enumerated(world: Callable[[Paths], tuple[Any, float] | None]) -> Chances:
    """The distribution of a value; `world` gives the one of a path with the weight of its factors, None where it is
    impossible."""
    paths, found = Paths(), {}
    while True:
        made = world(paths)
        if made is not None and made[1] * paths.chance > 0.0:
            value, weight = made
            _, before = found.get(key_of(value), (value, 0.0))
            found[key_of(value)] = value, before + weight * paths.chance
        if not paths.advance():
            break
    total = sum(chance for _, chance in found.values())
    return Chances({key: (value, chance / total) for key, (value, chance) in found.items()})
