"""Ordinary differential equations: values and sensitivities of one solve, from equations that are printed.

The right-hand side comes as text of the language, read into a function of recorded numbers (`program/equations.py`). It
is recorded once for each size of the state and of the parameters; its derivatives are a pass over the record
(`derivatives.py`), and with them the sensitivities are further equations: d/dt S = J S + df/dp (Dickinson and Gelinas
1976, Sensitivity analysis of ordinary differential equation systems). A state in which no solver gets to the end has
infinite values, under which nothing that is observed of them has a density.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
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
"""Solves in a row of which nobody asked for sensitivities, after which they are no longer solved for."""

Side = Callable[[Any, Any, Sequence[Any]], Any]
"""`(t, y, free) -> derivatives`: the right-hand side over recorded numbers. y and the derivatives are tuples of them,
each of `free` is one or nested tuples. Raises ArgumentError where the sizes do not fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What one solve found."""

    # (times, states); infinite where the solver failed
    values: np.ndarray
    # (times, states, directions): by some of the initial state and of all free numbers
    sensitivities: np.ndarray
    # which these are, by their positions among all
    directions: tuple[int, ...]
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
        self._solvers: dict[Any, Any] = {}

    @property
    def directions(self) -> tuple[int, ...]:
        """All of which there are sensitivities: the initial state's, then those of the free numbers."""
        return tuple(range(self.size + self._count))

    # ------------------------------------------------------------------------------------------------- printing

    def _derivatives(
        self, directions: tuple[int, ...], time: str, states: Sequence[str], derivatives: Sequence[str]
    ) -> list[str]:
        """As `runge_kutta.Print`: of the state, and of its sensitivities in some directions, row by row."""
        size = self.size
        names = [time, *states[:size], *self.parameters]

        def name(x: Any) -> str:
            if x.__class__ is not Node:
                return f"({float(x)!r})"
            return names[x.operands[0]] if x.operation == "input" else f"t{x.place}"

        asked = {*range(1, 1 + size), *(1 + direction for direction in directions)} if directions else ()
        parts = [{at: part for at, part in row.items() if at in asked} for row in self._partials]
        wanted = [*self._slopes, *(part for row in parts for part in row.values())]
        lines = [f"t{node.place} = {text_of(node, name, False)}" for node in needed(wanted)]
        lines += [f"{to} = {name(slope)}" for to, slope in zip(derivatives, self._slopes, strict=False)]
        width = len(directions)
        for i, partials in enumerate(parts):
            for at, direction in enumerate(directions):
                through = [
                    f"{name(partials[1 + j])} * {states[size + j * width + at]}"
                    for j in range(size)
                    if 1 + j in partials
                ]
                own = partials.get(1 + direction) if direction >= size else None
                through += [] if own is None else [name(own)]
                lines.append(f"{derivatives[size + i * width + at]} = {' + '.join(through) or '0.0'}")
        return lines

    def _solver(self, directions: tuple[int, ...]) -> Any:
        if directions not in self._solvers:
            states, derivatives = self.size * (1 + len(directions)), partial(self._derivatives, directions)
            text = runge_kutta.printed(derivatives, self.size, states, self.parameters)
            self._solvers[directions] = runge_kutta.executed(text, tuple(SCALAR_NAMES.items()))
        return self._solvers[directions]

    def _stiff_solver(self) -> Any:
        if "stiff" not in self._solvers:
            states, derivatives = self.size * (1 + len(self.directions)), partial(self._derivatives, self.directions)
            self._solvers["stiff"] = _Stiff(derivatives, states, self.parameters)
        return self._solvers["stiff"]

    def slopes(self, time: float, state: Sequence[float], free: Sequence[float]) -> list[float]:
        """The right-hand side (states,)."""
        solver = self._solvers.setdefault("side", _Side(partial(self._derivatives, ()), self.size, self.parameters))
        return list(solver(time, *state, *free))

    # ------------------------------------------------------------------------------------------------- solving

    def solve(
        self, state: Sequence[float], time: float, times: list[float], free: Sequence[float], rtol: float, atol: float,
        directions: tuple[int, ...],
    ) -> Solution:  # fmt: skip
        """With sensitivities in some directions; steps of LSODA depend on their errors as well, so that it has them in
        all, and its values are the same whoever asks. It solves what turns out to be stiff, from the beginning."""
        if not all(map(math.isfinite, (*state, *free))):
            return self._failed(len(times), NoSolution.UNDEFINED)
        found: Any = NoSolution.STIFF
        if not self.is_stiff:
            found = self._run(self._solver(directions), directions, state, time, times, free, rtol, atol)
        if found is NoSolution.STIFF:
            directions = self.directions
            found = self._run(self._stiff_solver(), directions, state, time, times, free, rtol, atol)
        if isinstance(found, NoSolution):
            return self._failed(len(times), found)
        rows = np.array(found, dtype=np.float64).reshape(len(times), self.size * (1 + len(directions)))
        if not np.isfinite(rows[:, : self.size]).all():
            return self._failed(len(times), NoSolution.SINGULAR)
        sensitivities = rows[:, self.size :].reshape(len(times), self.size, len(directions))
        return Solution(freeze(rows[:, : self.size].copy()), sensitivities, directions)

    def _run(
        self, solver: Any, directions: tuple[int, ...], state: Sequence[float], time: float, times: list[float],
        free: Sequence[float], rtol: float, atol: float,
    ) -> list[tuple[float, ...]] | NoSolution:  # fmt: skip
        first = list(state)
        for i in range(self.size):
            first += [float(i == direction) for direction in directions]
        found: list[tuple[float, ...]] | NoSolution = solver(time, times, rtol, atol, *first, *free)
        return found

    def _failed(self, times: int, failure: NoSolution) -> Solution:
        values = np.full((times, self.size), math.inf)
        sensitivities = np.zeros((times, self.size, len(self.directions)))
        return Solution(freeze(values), sensitivities, self.directions, failure if times else None)


def _nested(nodes: Sequence[Any], shape: tuple[int, ...]) -> Any:
    if not shape:
        return nodes[0]
    step = math.prod(shape[1:])
    return tuple([_nested(nodes[i * step : (i + 1) * step], shape[1:]) for i in range(shape[0])])


class _Side:
    """The right-hand side alone, of numbers."""

    def __init__(self, derivatives: runge_kutta.Print, size: int, parameters: Sequence[str]) -> None:
        states, slopes = [f"z{i}" for i in range(size)], [f"k{i}" for i in range(size)]
        lines = [f"def solve({', '.join(['t', *states, *parameters])}):", *derivatives("t", states, slopes)]
        text = "\n    ".join([*lines, f"return ({', '.join(slopes)},)"]) + "\n"
        self._function: Any = runge_kutta.executed(text, tuple(SCALAR_NAMES.items()))

    def __call__(self, *given: float) -> Any:
        return self._function(*given)


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
    # in which directions sensitivities were asked for, and how many solves ago
    _asked: tuple[int, ...] = ()
    _unasked: int = 0

    def values(self, y0: Any, t0: Any, ts: Any, rtol: Any, atol: Any, *free: Any) -> np.ndarray:
        """(times, states)."""
        given = self._read(y0, t0, ts, rtol, atol, free)
        found = self._solutions.get(given.key)
        if found is None:
            self._unasked += 1
            found = self._solved(given, self._asked if self._unasked <= COLD else ())
        return found.values

    def _solved(self, given: _Given, directions: tuple[int, ...]) -> Solution:
        state, time, times, rtol, atol, numbers = given.numbers
        found = given.system.solve(state, time, times, numbers, rtol, atol, directions)
        if found.failure is not None:
            self.failures[found.failure.value] += 1
        self._solutions.pop(given.key, None)
        if len(self._solutions) >= KEPT:
            self._solutions.pop(next(iter(self._solutions)))
        self._solutions[given.key] = found
        return found

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
        asked, size = given.asked(wanted), given.system.size
        if found is None or not set(asked) <= set(found.directions):
            self._asked = asked
            found = self._solved(given, asked)
        self._unasked = 0
        cotangent = np.asarray(cotangent, dtype=np.float64)
        shares = np.zeros(len(given.system.directions))
        shares[list(found.directions)] = np.tensordot(cotangent, found.sensitivities, 2)
        parts: list[Any] = [shares[:size] if wanted[0] else None, None, None, None, None]
        state, time, times, _, _, numbers = given.numbers
        if wanted[1]:
            # to begin later is to begin elsewhere
            parts[1] = -float(shares[:size] @ given.system.slopes(time, state, numbers))
        if wanted[2]:
            slopes = [given.system.slopes(t, y, numbers) for t, y in zip(times, found.values.tolist(), strict=True)]
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
        """The directions of the sensitivities that the cotangents wanted are made from."""
        size = self.system.size
        found = list(range(size)) if wanted[0] or wanted[1] else []
        for shape, want in zip(self.shapes, wanted[5:], strict=True):
            found += range(size, size + math.prod(shape)) if want else ()
            size += math.prod(shape)
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
