"""All worlds of a finite program, with their exact probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.generator.interpreter import FREE, Impossible, Interpreter, Place
from tests.generator.interpreter_functions import key_of
from tests.generator.interpreter_procedures import FiniteRandom
from tests.generator.programs import PARAMETERS, Step

MOST = 400
"""Programs with more worlds are passed over."""
MOST_RUNS = 3000


class TooManyWorlds(Exception):
    """The program is not to be enumerated."""


@dataclass(frozen=True, slots=True)
class World:
    """One assignment of all choices that are not observed."""

    # Joint log density of everything in it, observed or not.
    log_weight: float
    choices: Mapping[Place, Any]
    # Values of the queries, as numbers.
    values: tuple[float, ...]


@dataclass(slots=True)
class Odometer:
    """Takes a program through its worlds: the last choice that has another value takes it."""

    tape: list[list[int]] = field(default_factory=list)
    at: int = 0
    log_weight: float = 0.0
    choices: dict[Place, Any] = field(default_factory=dict)

    def choose(self, procedure: FiniteRandom, arguments: Sequence[Any], path: Place) -> Any:
        assert procedure.support is not None, "a choice without a finite support"
        support = procedure.support(*arguments)
        if self.at == len(self.tape):
            self.tape.append([0, len(support)])
        value = support[self.tape[self.at][0]]
        self.at += 1
        assert path not in self.choices, f"two choices at {path}"
        self.choices[path] = key_of(value)
        weight = procedure.log_density(value, *arguments)
        if weight == -math.inf:
            raise Impossible
        self.log_weight += weight
        return value

    def advance(self) -> bool:
        """On to the next world, if there is one."""
        del self.tape[self.at :]
        while self.tape and self.tape[-1][0] + 1 == self.tape[-1][1]:
            self.tape.pop()
        if self.tape:
            self.tape[-1][0] += 1
        self.at, self.log_weight, self.choices = 0, 0.0, {}
        return bool(self.tape)


def worlds(
    steps: Sequence[Step],
    queries: Sequence[str],
    frozen: Mapping[str, Any],
    parameters: Mapping[str, Any] = PARAMETERS,
) -> list[World]:
    """Every world of a program's directives. Raises TooManyWorlds."""
    interpreter = Interpreter(steps, frozen, parameters)
    asked = [interpreter.compiled(query) for query in queries]
    odometer, found, runs = Odometer(), [], 0
    while True:
        runs += 1
        try:
            interpreter.run(odometer)
            choices, log_prior = odometer.choices, odometer.log_weight
            odometer.choices = dict(choices)
            values = tuple(float(run([None], ("query", i), FREE)) for i, run in enumerate(asked))
            assert len(odometer.choices) == len(choices), "a query that draws"
            found.append(World(log_prior + interpreter.log_weight, choices, values))
        except Impossible:
            pass
        if len(found) > MOST or runs > MOST_RUNS:
            raise TooManyWorlds
        if not odometer.advance():
            return found


@dataclass(frozen=True, slots=True)
class Answer:
    """The posterior of a program's queries."""

    worlds: list[World]
    probabilities: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, found: list[World]) -> Answer:
        log_weights = np.array([world.log_weight for world in found])
        weights = np.exp(log_weights - log_weights.max())
        return cls(found, weights / weights.sum())

    def joint(self) -> dict[tuple[float, ...], float]:
        """Probability of each tuple of the queries' values."""
        table: dict[tuple[float, ...], float] = {}
        for world, p in zip(self.worlds, self.probabilities, strict=True):
            table[world.values] = table.get(world.values, 0.0) + float(p)
        return table

    def scores(self) -> dict[tuple[float, ...], list[float]]:
        """The joint log densities that a state with these values may have."""
        table: dict[tuple[float, ...], list[float]] = {}
        for world in self.worlds:
            table.setdefault(world.values, []).append(world.log_weight)
        return table

    def relaxation(self) -> float:
        """Sweeps that a chain takes to forget its state if it changes one choice at a time, with what follows from it;
        infinite where it cannot get everywhere."""
        n = len(self.worlds)
        if n == 1:
            return 0.0
        p, flow = self.probabilities, np.zeros((n, n))
        for i, one in enumerate(self.worlds):
            for j in range(i):
                flow[i, j] = flow[j, i] = neighbours(one.choices, self.worlds[j].choices) * p[i] * p[j] / (p[i] + p[j])
        # Barker's rates, a unit for each sweep; the chain made reversible has the same eigenvalues.
        rate = flow.sum(axis=1) / p
        symmetric = flow / np.sqrt(np.outer(p, p)) - np.diag(rate)
        gap = -float(np.linalg.eigvalsh(symmetric)[-2])
        return 1 / gap if gap > 1e-9 else math.inf


def neighbours(one: Mapping[Place, Any], other: Mapping[Place, Any]) -> bool:
    """Whether at most one of the choices that both have differs."""
    return sum(one[path] != value for path, value in other.items() if path in one) <= 1
