"""Log densities of a program at given values of its choices, by the generator's interpreter.

A choice has the name of the directive that makes it, and the keys of the memoized calls around it. Derivatives are
differences. Nothing here is shared with the package but values, and the transforms between them and free coordinates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.generator.interpreter import FREE, Impossible, Interpreter, Place
from tests.generator.interpreter_procedures import FiniteRandom
from tests.generator.programs import Program, Step
from tests.procedures.differences import ROUNDING, STEP
from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.model import Model

Label = tuple[str, Any]
"""The name that a choice is assumed by, and the key of the memoized call that made it; None for none."""


class Missing(Exception):
    """A choice has no value."""


class Evaluator:
    """The log joint density of a program's directives as a function of its choices. Mutable: keeps the terms of the
    last evaluation."""

    def __init__(self, program: Program, steps: Sequence[Step] | None = None) -> None:
        self._interpreter = Interpreter(program.directives if steps is None else steps, {}, program.parameters)
        self._labels: dict[Place, Label] = {}
        self._values: Mapping[Label, Any] = {}
        # of each choice its log density, and what it was drawn from
        self.terms: dict[Label, float] = {}
        self.drawn: dict[Label, tuple[FiniteRandom, tuple[Any, ...]]] = {}

    def log_joint(self, values: Mapping[Label, Any]) -> float:
        """-inf where it is impossible. Raises Missing."""
        self._values, self.terms, self.drawn = values, {}, {}
        try:
            self._interpreter.run(self)
        except Impossible:
            return -math.inf
        return self._interpreter.log_weight + math.fsum(self.terms.values())

    def rounding(self) -> float:
        """What rounding may make of the log densities that were found since this was last asked."""
        found, self._interpreter.rounding = self._interpreter.rounding, 0.0
        return found

    def choose(self, procedure: FiniteRandom, arguments: Sequence[Any], path: Place) -> Any:
        label = self._labels.get(path)
        if label is None:
            label = self._labels[path] = self._named(path)
        if label not in self._values:
            raise Missing(label)
        assert label not in self.terms, f"two choices of {label}"
        value = self._values[label]
        self.terms[label] = procedure.log_density(value, *arguments)
        self.drawn[label] = procedure, tuple(arguments)
        if self.terms[label] == -math.inf:
            raise Impossible
        return value

    def value(self, text: str, values: Mapping[Label, Any]) -> Any:
        """Of an expression."""
        run = self._interpreter.compiled(text)
        self.log_joint(values)
        return run([None], ("query",), FREE)

    def _named(self, path: Any) -> Label:
        """By the directive, and the innermost keys."""
        key = None
        while len(path) > 1:
            path, part = path
            if key is None and isinstance(part, tuple):
                key = part[0] if len(part) == 1 else part
        return self._interpreter.program[path[0]].name, key


def label_of(model: Model, node: int) -> Label:
    """The label of a choice of a trace; no name where it is made by no name's directive."""
    segments = address(model.trace, node)
    bound = model.trace.bindings.by_row.get(segments[-1][:2])
    return "" if bound is None else bound.name, segments[0][0] if len(segments) > 1 else None


def values_of(model: Model) -> dict[Label, Any]:
    """The values of a trace's choices that names stand for, observed or not."""
    return {label_of(model, node): model.trace.value(node) for node in model.trace.choices()}


def derivative(along: Callable[[float], float], at: float) -> tuple[float, float]:
    """The derivative at 0 of a function whose value there is `at`, and its possible error: central differences with
    two steps, as in `tests.procedures.differences`. It is infinite at a kink, as the mode of a Laplace distribution is:
    there the slopes to both sides differ by as much with either step."""
    step = STEP
    (ahead, behind), (further, back) = [(along(h), along(-h)) for h in (step, 2.0 * step)]
    near, far = (ahead - behind) / (2.0 * step), (further - back) / (4.0 * step)
    bend, wider = (ahead - 2.0 * at + behind) / step, (further - 2.0 * at + back) / (2.0 * step)
    rounding = ROUNDING * max(abs(at), abs(ahead), abs(behind), 10.0) / step
    if abs(wider - 2.0 * bend) > 0.3 * abs(bend) + 16.0 * rounding:
        return near, math.inf
    return near + (near - far) / 3.0, abs(near - far) + rounding


def second_derivative(along: Callable[[float], float], at: float) -> tuple[float, float]:
    """The second derivative at 0 of a function whose value there is `at`, and its possible error, infinite near a kink:
    central differences with two steps, the error of truncation taken out."""
    step = 2.0**-9
    near, far = [(along(h) - 2.0 * at + along(-h)) / h**2 for h in (step, 2.0 * step)]
    if abs(near - far) > 0.05 * (1.0 + abs(near)):
        return near, math.inf
    return near + (near - far) / 3.0, abs(near - far) + 8.0 * ROUNDING * max(abs(at), 10.0) / step**2
