"""Ordinary differential equations: values of one solve and their derivatives, from equations that are printed.

The right-hand side comes as text of the language, read into a function of recorded numbers (`program/equations.py`). It
is recorded once for each size of the state and of the parameters; its derivatives are a pass over the record
(`derivatives.py`). With them a second loop goes back over the steps of the first one (`runge_kutta.py`); for LSODA,
which tells nothing of its steps, the sensitivities are further equations: d/dt S = J S + df/dp (Dickinson and Gelinas
1976, Sensitivity analysis of ordinary differential equation systems). A state in which no solver gets to the end has
infinite values, under which nothing that is observed of them has a density.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from venture_lite.errors import ArgumentError
from venture_lite.procedures import runge_kutta
from venture_lite.procedures.columns import Flags, RowByRow
from venture_lite.procedures.derivatives import partials_of
from venture_lite.procedures.domains import ANY, REAL, SEVERAL, vector_of
from venture_lite.procedures.record import Argument, Deterministic
from venture_lite.procedures.runge_kutta import NoSolution
from venture_lite.procedures.straight_line import SCALAR_NAMES, Node, Recording, needed, text_of
from venture_lite.values import freeze, show

TOLERANCE = 1e-6
"""Where the program gives none: of the error of a step, relative and absolute."""
KEPT = 8
"""Solutions that are kept: a state, the one proposed, and what reads them row by row."""
COLD = 4
"""Solves in a row of which nobody asked for derivatives, after which their steps are no longer kept."""
LONGEST = 10_000
"""Steps that are kept of one solution; of one with more they are made again where derivatives are asked for."""

Side = Callable[[Any, Any, Sequence[Any]], Any]
"""`(t, y, free) -> derivatives`: the right-hand side over recorded numbers. y and the derivatives are tuples of them,
each of `free` is one or nested tuples. Raises ArgumentError where the sizes do not fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What one solve found."""

    # (times, states); infinite where the solver failed
    values: np.ndarray
    # of LSODA (times, states, directions): by the initial state and by all free numbers
    sensitivities: np.ndarray | None = None
    # the steps of the other method; None where they were not kept
    path: runge_kutta.Path | None = None
    # why there are no values, if there are none
    failure: NoSolution | None = None


class System:
    """The equations for one size of the state and shapes of what is free, printed."""

    def __init__(self, side: Side, size: int, shapes: tuple[tuple[int, ...], ...], is_stiff: bool) -> None:
        self.size = size
        self.is_stiff = is_stiff
        recording = Recording()
        # inputs: the time, the state, the free numbers
        self._count = count = sum(math.prod(shape) for shape in shapes)
        inputs = [recording.input(position) for position in range(1 + size + count)]
        free, start = [], 1 + size
        for shape in shapes:
            stop = start + math.prod(shape)
            free.append(_nested(inputs[start:stop], shape))
            start = stop
        found = side(inputs[0], tuple(inputs[1 : 1 + size]), free)
        if not isinstance(found, tuple) or len(found) != size or any(isinstance(each, tuple) for each in found):
            shown = f"a vector of {len(found)}" if isinstance(found, tuple) else "a number"
            raise ArgumentError(f"ode: F must give a vector of {size}, as Y0 is, not {shown}")
        self._slopes = list(found)
        asked = (False, *(True,) * (size + count))
        self._partials = [partials_of(slope, asked) if slope.__class__ is Node else {} for slope in self._slopes]
        self.parameters = [f"p{i}" for i in range(count)]
        # of the initial state, and of the free numbers
        self.directions = size + count
        # by the free numbers whose cotangents they give
        self._backs: dict[tuple[int, ...], runge_kutta.Back] = {}

    # ------------------------------------------------------------------------------------------------- printing

    def _named(self, time: str, states: Sequence[str], wanted: list[Any]) -> tuple[Callable[[Any], str], list[str]]:
        """What gives the name of a recorded number, and the lines that compute those wanted."""
        names = [time, *states, *self.parameters]

        def name(x: Any) -> str:
            if x.__class__ is not Node:
                return f"({float(x)!r})"
            return names[x.operands[0]] if x.operation == "input" else f"t{x.place}"

        return name, [f"t{node.place} = {text_of(node, name, False)}" for node in needed(wanted)]

    def _derivatives(self, time: str, states: Sequence[str], derivatives: Sequence[str]) -> list[str]:
        """As `runge_kutta.Print`: of the state."""
        name, lines = self._named(time, states, self._slopes)
        return lines + [f"{to} = {name(slope)}" for to, slope in zip(derivatives, self._slopes, strict=True)]

    def _with_sensitivities(self, time: str, states: Sequence[str], derivatives: Sequence[str]) -> list[str]:
        """The same of the state and of its sensitivities in all directions, row by row."""
        size, width = self.size, self.directions
        wanted = [*self._slopes, *(part for row in self._partials for part in row.values())]
        name, lines = self._named(time, states[:size], wanted)
        lines += [f"{to} = {name(slope)}" for to, slope in zip(derivatives, self._slopes, strict=False)]
        for i, partials in enumerate(self._partials):
            for at in range(width):
                through = [
                    f"{name(partials[1 + j])} * {states[size + j * width + at]}"
                    for j in range(size)
                    if 1 + j in partials
                ]
                own = partials.get(1 + at) if at >= size else None
                through += [] if own is None else [name(own)]
                lines.append(f"{derivatives[size + i * width + at]} = {' + '.join(through) or '0.0'}")
        return lines

    def _pull(
        self, asked: Sequence[int], time: str, states: Sequence[str], cotangents: Sequence[str], results: Sequence[str]
    ) -> list[str]:
        """As `runge_kutta.Pull`, with the cotangents of some free numbers."""
        to = {1 + j: f"{result} = " for j, result in enumerate(results)}
        to |= {1 + self.size + number: f"g{number} += " for number in asked}
        name, lines = self._named(time, states, [row[at] for row in self._partials for at in row if at in to])
        for at, before in to.items():
            through = [
                f"{cotangent} * {name(partials[at])}"
                for cotangent, partials in zip(cotangents, self._partials, strict=True)
                if at in partials
            ]
            if through or at <= self.size:
                lines.append(before + (" + ".join(through) or "0.0"))
        return lines

    @cached_property
    def _solver(self) -> runge_kutta.Solver:
        text = runge_kutta.printed(self._derivatives, self.size, self.parameters)
        return runge_kutta.executed(text, tuple(SCALAR_NAMES.items()))

    @cached_property
    def _stiff_solver(self) -> _Stiff:
        return _Stiff(self._with_sensitivities, self.size * (1 + self.directions), self.parameters)

    @cached_property
    def slopes(self) -> Callable[..., tuple[float, ...]]:
        """`(time, *state, *free)` -> the right-hand side (states,)."""
        states, slopes = [f"z{i}" for i in range(self.size)], [f"k{i}" for i in range(self.size)]
        lines = [f"def solve({', '.join(['t', *states, *self.parameters])}):"]
        lines += [*self._derivatives("t", states, slopes), f"return ({', '.join(slopes)},)"]
        return runge_kutta.executed("\n    ".join(lines) + "\n", tuple(SCALAR_NAMES.items()))

    def _back(self, asked: tuple[int, ...]) -> runge_kutta.Back:
        if asked not in self._backs:
            names = [f"g{number}" for number in asked]
            text = runge_kutta.printed_back(partial(self._pull, asked), self.size, self.parameters, names)
            self._backs[asked] = runge_kutta.executed(text, tuple(SCALAR_NAMES.items()))
        return self._backs[asked]

    # ------------------------------------------------------------------------------------------------- solving

    def solve(
        self, state: Sequence[float], time: float, times: list[float], free: Sequence[float], rtol: float, atol: float,
        keeps: bool,
    ) -> Solution:  # fmt: skip
        """The steps of LSODA depend on the errors of sensitivities as well, so that it always has them, and its values
        are the same whoever asks. It solves what turns out to be stiff, from the beginning. With `keeps` the steps of
        the other method are kept for derivatives."""
        if not all(map(math.isfinite, (*state, *free))):
            return self._failed(len(times), NoSolution.UNDEFINED)
        path: runge_kutta.Path | None = [] if keeps else None
        found: Any = NoSolution.STIFF
        if not self.is_stiff:
            found = self._solver(path, time, times, rtol, atol, *state, *free)
        width, is_stiff = 0, found is NoSolution.STIFF
        if is_stiff:
            width, start = self.directions, list(state)
            for i in range(self.size):
                start += [float(i == direction) for direction in range(width)]
            found = self._stiff_solver(time, times, rtol, atol, *start, *free)
        if isinstance(found, NoSolution):
            return self._failed(len(times), found)
        rows = np.array(found, dtype=np.float64).reshape(len(times), self.size * (1 + width))
        values = freeze(rows[:, : self.size].copy())
        if not np.isfinite(values).all():
            return self._failed(len(times), NoSolution.SINGULAR)
        if is_stiff:
            return Solution(values, rows[:, self.size :].reshape(len(times), self.size, width))
        return Solution(values, path=path)

    def _failed(self, times: int, failure: NoSolution) -> Solution:
        """No derivative leads away from there."""
        values, none = np.full((times, self.size), math.inf), np.zeros((times, self.size, self.directions))
        return Solution(freeze(values), none, failure=failure if times else None)

    def pulled(
        self, found: Solution, cotangent: np.ndarray, times: Sequence[float], free: Sequence[float],
        asked: tuple[int, ...],
    ) -> np.ndarray:  # fmt: skip
        """The cotangents of the initial state and of all free numbers (directions,), from those of the states at the
        times (times, states); right for the free numbers at the positions `asked`. NaN where a derivative has no
        value. The solution has sensitivities or its steps."""
        if found.sensitivities is not None:
            return np.tensordot(cotangent, found.sensitivities, 2)
        shares = np.zeros(self.directions)
        try:
            parts = self._back(asked)(found.path, times, cotangent.tolist(), *free)
        except (ArithmeticError, ValueError):
            return np.full(self.directions, math.nan)
        shares[: self.size] = parts[: self.size]
        shares[[self.size + number for number in asked]] = parts[self.size :]
        return shares


def _nested(nodes: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return nodes[0]
    step = math.prod(shape[1:])
    return tuple([_nested(nodes[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])])


class _Stiff:
    """LSODA (Petzold 1983), of which scipy's `odeint` runs the whole loop: a `runge_kutta.Solver`."""

    def __init__(self, derivatives: runge_kutta.Print, states: int, parameters: Sequence[str]) -> None:
        names, slopes = [f"z{i}" for i in range(states)], [f"k{i}" for i in range(states)]
        lines = [
            f"def solve({', '.join(['t', 'z', *parameters])}):",
            f"{', '.join(names)}, = z.tolist()",
            "try:",
            *(f"    {line}" for line in derivatives("t", names, slopes)),
            "except ERRORS:",
            f"    return [nan] * {states}",
            f"return [{', '.join(slopes)}]",
        ]
        self._function: Any = runge_kutta.executed("\n    ".join(lines) + "\n", tuple(SCALAR_NAMES.items()))
        self._states = states

    def __call__(
        self, time: float, times: list[float], rtol: float, atol: float, *given: float
    ) -> list[tuple[float, ...]] | NoSolution:
        from scipy.integrate import ODEintWarning, odeint

        # each time once, the first being where it begins
        asked = sorted({time, *times})
        if len(asked) == 1:
            return [given[: self._states]] * len(times)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            # what it warns of is told as well
            warnings.simplefilter("ignore", ODEintWarning)
            rows, told = odeint(
                self._function, given[: self._states], asked, args=given[self._states :], tfirst=True, rtol=rtol,
                atol=atol, mxstep=runge_kutta.MOST_STEPS, full_output=True,
            )  # fmt: skip
        if told["message"].startswith("Excess work") or told["nst"].sum() > runge_kutta.MOST_STEPS:
            return NoSolution.LONG
        if not told["message"].startswith("Integration successful"):
            return NoSolution.SINGULAR
        at = {each: tuple(row) for each, row in zip(asked, rows.tolist(), strict=True)}
        return [at[each] for each in times]


@dataclass(slots=True, eq=False)
class Equations:
    """One `ode` of a program: what its calls have in common. Mutable: what was solved last is kept."""

    side: Side
    is_stiff: bool
    # what the free numbers are called
    names: tuple[str, ...]
    # solves without a solution, by reason
    failures: Counter[str] = field(default_factory=Counter)
    _systems: dict[Any, System] = field(default_factory=dict)
    _solutions: dict[Any, Solution] = field(default_factory=dict)
    # how many solves ago somebody asked for derivatives; at first nobody has
    _unasked: int = COLD

    def values(self, y0: Any, t0: Any, ts: Any, rtol: Any, atol: Any, *free: Any) -> np.ndarray:
        """(times, states)."""
        given = self._read(y0, t0, ts, rtol, atol, free)
        found = self._solutions.get(given.key)
        if found is None:
            self._unasked += 1
            found = self._solved(given, keeps=self._unasked <= COLD)
            if found.failure is not None:
                self.failures[found.failure.value] += 1
            self._keep(given, found)
        return found.values

    def _solved(self, given: _Given, keeps: bool) -> Solution:
        state, time, times, rtol, atol, numbers = given.numbers
        return given.system.solve(state, time, times, numbers, rtol, atol, keeps)

    def _keep(self, given: _Given, found: Solution) -> None:
        if found.path is not None and len(found.path) > LONGEST:
            found = replace(found, path=None)
        self._solutions.pop(given.key, None)
        if len(self._solutions) >= KEPT:
            self._solutions.pop(next(iter(self._solutions)))
        self._solutions[given.key] = found

    def _read(self, y0: Any, t0: Any, ts: Any, rtol: float, atol: float, free: Sequence[Any]) -> _Given:
        state, times = _vector("Y0", y0), _vector("TS", ts)
        for name, value in (("R", rtol), ("A", atol)):
            if not 0.0 < value < math.inf:
                raise ArgumentError(f"ode: {name} must be a positive number, got {show(value)}")
        previous = t0
        if not math.isfinite(t0):
            raise ArgumentError(f"ode: T0 must be a finite number, got {show(t0)}")
        for time in times:
            if not previous <= time < math.inf:
                raise ArgumentError(
                    f"ode: TS must not decrease, and begin at T0 or later: {show(time)} is after {show(previous)}"
                )
            previous = time
        if not state:
            raise ArgumentError("ode: Y0 is empty")
        arrays = [_numbers(name, value) for name, value in zip(self.names, free, strict=True)]
        shapes = tuple([array.shape for array in arrays])
        system = self._systems.get((len(state), shapes))
        if system is None:
            system = self._systems[len(state), shapes] = System(self.side, len(state), shapes, self.is_stiff)
        numbers = [number for array in arrays for number in array.ravel().tolist()]
        every = (state, float(t0), times, float(rtol), float(atol), numbers)
        key = (len(state), shapes, tuple(state), float(t0), tuple(times), rtol, atol, tuple(numbers))
        return _Given(system, every, key, shapes)

    def pull(
        self, lifted: Flags, wanted: Flags, cotangent: Any, result: Any, y0: Any, t0: Any, ts: Any, rtol: Any,
        atol: Any, *free: Any,
    ) -> tuple[Any, ...]:  # fmt: skip
        """As `record.Pullback`, of single calls."""
        if True in lifted:
            raise RowByRow
        given = self._read(y0, t0, ts, rtol, atol, free)
        found = self._solutions.get(given.key)
        if found is None or (found.sensitivities is None and found.path is None):
            found = self._solved(given, keeps=True)
            self._keep(given, found)
        self._unasked, size = 0, given.system.size
        cotangent = np.asarray(cotangent, dtype=np.float64)
        shares = given.system.pulled(found, cotangent, given.numbers[2], given.numbers[5], given.asked(wanted))
        parts: list[Any] = [shares[:size] if wanted[0] else None, None, None, None, None]
        state, time, times, _, _, numbers = given.numbers
        if wanted[1]:
            # to begin later is to begin elsewhere
            parts[1] = -float(shares[:size] @ given.system.slopes(time, *state, *numbers))
        if wanted[2]:
            slopes = [given.system.slopes(t, *y, *numbers) for t, y in zip(times, found.values.tolist(), strict=True)]
            parts[2] = np.einsum("ti,ti->t", cotangent, np.array(slopes).reshape(cotangent.shape))
        start = size
        for shape, want in zip(given.shapes, wanted[5:], strict=True):
            stop = start + math.prod(shape)
            part = shares[start:stop].reshape(shape)
            parts.append((part if shape else float(part)) if want else None)
            start = stop
        return tuple(parts)


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """The arguments of one call."""

    system: System
    numbers: tuple[Any, ...]
    key: Any
    shapes: tuple[tuple[int, ...], ...]

    def asked(self, wanted: Flags) -> tuple[int, ...]:
        """The positions of the free numbers whose cotangents are wanted."""
        found: list[int] = []
        start = 0
        for shape, want in zip(self.shapes, wanted[5:], strict=True):
            stop = start + math.prod(shape)
            found += range(start, stop) if want else ()
            start = stop
        return tuple(found)


def _vector(name: str, value: Any) -> list[float]:
    vector = vector_of(value) if isinstance(value, SEVERAL) else None
    if vector is None:
        raise ArgumentError(f"ode: {name} must be a vector of numbers, got {show(value)}")
    found: list[float] = vector.tolist()
    if any(number != number for number in found):
        raise ArgumentError(f"ode: {name} must be numbers, got NaN as item {[n != n for n in found].index(True)}")
    return found


def _numbers(name: str, value: Any) -> np.ndarray:
    """A number, or an array or nested lists of numbers of one shape."""
    try:
        found = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"ode: {name}, which F reads, must be numbers, got {show(value)}") from None
    if np.isnan(found).any():
        raise ArgumentError(f"ode: {name}, which F reads, is not a number (NaN)")
    return found


def ode(side: Side, is_stiff: bool, names: tuple[str, ...]) -> Deterministic:
    """The record of one `ode` of a program: of Y0, T0, TS, R, A and what is free in F."""
    equations = Equations(side, is_stiff, names)
    arguments = (("y0", ANY), ("t0", REAL), ("ts", ANY), ("rtol", REAL), ("atol", REAL))
    return Deterministic(
        name="ode",
        arguments=(*(Argument(*each) for each in arguments), *(Argument(name, ANY) for name in names)),
        summary="The states at each of some times of a system of differential equations, a matrix.",
        scalar=equations.values,
        pullback=equations.pull,
        failures=equations.failures,
    )
