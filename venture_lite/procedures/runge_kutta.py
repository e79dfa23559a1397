"""Dormand and Prince's method of orders 5 and 4, printed for one system of equations (Dormand and Prince 1980; Hairer,
Norsett and Wanner 1993, Solving ordinary differential equations I, sections II.4 to II.6), with the coefficients,
the step control and the interpolation of scipy's RK45.

Of few equations an evaluation is a few operations, and calls of NumPy cost ten times as much. So the loop is text,
every number a local variable. Derivatives are those of the steps that were made, their sizes taken as given: a second
loop goes back over them (Sandu 2006, On the properties of Runge-Kutta discrete adjoints), and costs about
what the first one does, however many numbers the equations read.

Where equations are stiff such a method makes steps that only its stability bounds: an estimate of the step times the
largest eigenvalue of the Jacobian, which costs next to nothing, stays at the edge of the region of stability (Hairer
and Wanner 1996, Solving ordinary differential equations II, section IV.2). That is told, not sat through.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

Print = Callable[[str, Sequence[str], Sequence[str]], list[str]]
"""`(time, states, derivatives)`, names all -> lines that compute the derivatives of the states at the time."""

MOST_STEPS = 100_000
"""Steps, those refused included, after which a solver gives up."""

FREE_STEPS = 200
"""Steps that are made before anything is asked of stiffness: so many take less than what another solver begins with."""
EDGE = 3.25
"""Where the region of stability ends on the negative real axis (Hairer and Wanner 1996, section IV.2)."""
AT_THE_EDGE, AWAY = 15, 6
"""Steps in all after which equations count as stiff, and steps in a row away from the edge that undo them (there)."""


class NoSolution(enum.Enum):
    """Why a solver gave no solution, and what to try."""

    STIFF = "stiff equations; 'stiff"
    SINGULAR = "no step was small enough; priors that keep off solutions without end"
    LONG = "too many steps were needed; a larger 'rtol, or priors that keep off such solutions"
    UNDEFINED = "infinite arguments, or no derivative at the start; priors that keep off these"


Pull = Callable[[str, Sequence[str], Sequence[str], Sequence[str]], list[str]]
"""`(time, states, cotangents, results)`, names all -> lines that compute the cotangents of the states from those of
their derivatives there, and add those of the numbers that are asked for."""

Path = list[tuple[float, ...]]
"""The steps of a solution: of each how many times were behind, when it begins, its size, the state at its beginning, at
its five stages, and at its end."""

Solver = Callable[..., list[tuple[float, ...]] | NoSolution]
"""`(path, t0, times, rtol, atol, *states, *parameters)` -> the states at each time; the steps are added to the path,
unless that is None."""
Back = Callable[..., tuple[float, ...]]
"""`(path, times, cotangents, *parameters)` -> the cotangents of the initial states, then of the numbers asked for, from
a tuple of those of the states at each time."""

STAGES = 6
"""After the first, which is the last one of the step before."""


def printed(derivatives: Print, states: int, parameters: Sequence[str]) -> str:
    """The text of a `Solver` of so many states."""
    z, new = _names("z", states), _names(f"x{STAGES}_", states)
    points = [name for stage in range(1, STAGES + 1) for name in _names(f"x{stage}_", states)]
    lines = [
        f"def solve(path, t, times, rtol, atol, {', '.join([*z, *parameters])}):",
        "    found, at, count = [], 0, len(times)",
        "    while at < count and times[at] == t:",
        f"        found.append({_tuple(z)})",
        "        at += 1",
        "    if at == count:",
        "        return found",
        "    bound = times[-1]",
        "    try:",
        *_indented(derivatives("t", z, _names("k0_", states)), 2),
        "    except ERRORS:",
        "        return UNDEFINED",
        "    try:",
        *_indented(_first_step(derivatives, states), 2),
        "    except ERRORS:",
        "        h = 1e-6",
        "    steps = at_edge = away = 0",
        "    while True:",
        "        least = 10.0 * (nextafter(t, inf) - t)",
        "        if not h >= least:",
        "            h = least",
        "        was_refused = False",
        "        while True:",
        "            steps += 1",
        f"            if h < least or steps > {MOST_STEPS}:",
        "                return SINGULAR if h < least else LONG",
        "            after = t + h",
        "            if after > bound:",
        "                after = bound",
        "            h = after - t",
        "            try:",
        *_indented(_stages(derivatives, states), 4),
        *_indented(_error(states), 4),
        "            except ERRORS:",
        "                error = nan",
        "            if error < 1.0:",
        "                break",
        "            factor = 0.9 * error ** -0.2",
        "            h *= factor if factor > 0.2 else 0.2",
        "            was_refused = True",
        "        factor = 10.0 if error == 0.0 else min(10.0, 0.9 * error ** -0.2)",
        "        if was_refused and factor > 1.0:",
        "            factor = 1.0",
        "        if path is not None:",
        f"            path.append((at, t, h, {', '.join([*z, *points])}))",
        "        while at < count and times[at] <= after:",
        *_indented(_between(states), 3),
        "            at += 1",
        "        if at == count:",
        "            return found",
        f"        if steps > {FREE_STEPS}:",
        *_indented(_stiffness(states), 3),
        *_indented([f"{one} = {other}" for one, other in zip(z, new, strict=True)], 2),
        *_indented([f"k0_{i} = k6_{i}" for i in range(states)], 2),
        "        t, h = after, h * factor",
    ]
    return "\n".join(lines) + "\n"


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)},)"


def _indented(lines: Sequence[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


def _sum(coefficients: Sequence[float], names: Sequence[str]) -> str:
    """A linear combination, terms of coefficient 0 left out."""
    return " + ".join(f"{float(each)!r} * {name}" for each, name in zip(coefficients, names, strict=True) if each)


def _norm(terms: Sequence[str]) -> str:
    """The root of the mean square."""
    return f"sqrt(({' + '.join(f'({term}) ** 2' for term in terms)}) / {float(len(terms))!r})"


def _first_step(derivatives: Print, states: int) -> list[str]:
    """The step `h` to begin with (Hairer, Norsett and Wanner, section II.4, starting step size)."""
    some = range(states)
    trial = [f"x1_{i} = z{i} + h * k0_{i}" for i in some]
    return [
        *(f"w{i} = atol + abs(z{i}) * rtol" for i in some),
        f"size, slope = {_norm([f'z{i} / w{i}' for i in some])}, {_norm([f'k0_{i} / w{i}' for i in some])}",
        "h = 1e-6 if size < 1e-5 or slope < 1e-5 else 0.01 * size / slope",
        "h = min(h, bound - t)",
        "u = t + h",
        *trial,
        *derivatives("u", _names("x1_", states), _names("k1_", states)),
        f"bend = {_norm([f'(k1_{i} - k0_{i}) / w{i}' for i in some])} / h",
        "far = max(1e-6, h * 1e-3) if slope <= 1e-15 and bend <= 1e-15 else (0.01 / max(slope, bend)) ** 0.2",
        "h = min(100.0 * h, far, bound - t)",
    ]


def _weights() -> list[list[float]]:
    """Of each stage after the first the shares that the derivatives before it have in where it is; where the last one
    is the step ends."""
    from scipy.integrate import RK45

    return [*(RK45.A[stage, :stage].tolist() for stage in range(1, STAGES)), RK45.B.tolist()]


def _time_of(stage: int) -> str:
    """When a stage is: part of the way, and at the end of the step from the fifth on."""
    from scipy.integrate import RK45

    return "t + h" if stage >= STAGES - 1 else f"t + {float(RK45.C[stage])!r} * h"


def _stages(derivatives: Print, states: int) -> list[str]:
    """Lines that compute where the stages of a step from t are, x1 ... x6, and the derivatives there, k1 ... k6."""
    lines = []
    for stage, row in enumerate(_weights(), 1):
        lines.append(f"u = {_time_of(stage)}")
        for i in range(states):
            lines.append(f"x{stage}_{i} = z{i} + h * ({_sum(row, [f'k{k}_{i}' for k in range(stage)])})")
        lines += derivatives("u", _names(f"x{stage}_", states), _names(f"k{stage}_", states))
    return lines


def _stiffness(states: int) -> list[str]:
    """Lines that count steps at the edge of stability, by how the derivative changes between two points near by."""
    pairs = (("k6_", "k5_"), ("x6_", "x5_"))
    change, apart = ([f"({one}{i} - {other}{i})" for i in range(states)] for one, other in pairs)
    squares = [" + ".join(f"{each} * {each}" for each in some) for some in (change, apart)]
    return [
        f"if h * h * ({squares[0]}) > {EDGE * EDGE!r} * ({squares[1]}):",
        "    at_edge, away = at_edge + 1, 0",
        f"    if at_edge == {AT_THE_EDGE}:",
        "        return STIFF",
        "else:",
        "    away += 1",
        f"    if away == {AWAY}:",
        "        at_edge = 0",
    ]


def _error(states: int) -> list[str]:
    """The line that computes the error of a step, 1 being what is allowed."""
    from scipy.integrate import RK45

    terms = [
        f"h * ({_sum(RK45.E, [f'k{k}_{i}' for k in range(7)])}) / (atol + rtol * max(abs(z{i}), abs(x6_{i})))"
        for i in range(states)
    ]
    return [f"error = {_norm(terms)}"]


def _interpolation() -> dict[int, str]:
    """What the derivatives of a step are taken by, which the state in its midst is made of, at s from 0 to 1."""
    from scipy.integrate import RK45

    return {
        k: f"h * s * ({first!r} + s * ({second!r} + s * ({third!r} + s * {fourth!r})))"
        for k, (first, second, third, fourth) in enumerate(RK45.P.tolist())
        if first or second or third or fourth
    }


def _between(states: int) -> list[str]:
    """Lines that add the states at a time inside the step, by its interpolation of order 4."""
    shares = _interpolation()
    found = [f"z{i} + {' + '.join(f'b{k} * k{k}_{i}' for k in shares)}" for i in range(states)]
    lines = ["s = (times[at] - t) / h", *(f"b{k} = {share}" for k, share in shares.items())]
    return [*lines, f"found.append(({', '.join(found)},))"]


# ------------------------------------------------------------------------------------------------------ back again


def printed_back(pull: Pull, states: int, parameters: Sequence[str], asked: Sequence[str]) -> str:
    """The text of `Back`; `asked` are the names to which the lines of `pull` add cotangents."""
    z, after = _names("z", states), _names("l", states)
    points = [name for stage in range(1, STAGES + 1) for name in _names(f"x{stage}_", states)]
    carried = _names("q", states)
    # what states in the midst of a step add to the cotangents of its derivatives and of its beginning
    inside = [*(f"i{k}_{i}" for k in range(STAGES) for i in range(states)), *_names("e", states)]
    lines = [
        f"def solve(path, times, cotangents, {', '.join(parameters)}):",
        # of the state at the end of a step; of the derivative there, which is the first one of the next step
        f"    {' = '.join([*after, *carried, *asked])} = 0.0",
        "    at = len(times)",
        f"    for first, t, h, {', '.join([*z, *points])} in reversed(path):",
        f"        {' = '.join(inside)} = 0.0",
        *(f"        c{STAGES}_{i} = q{i}" for i in range(states)),
        "        while at > first:",
        "            at -= 1",
        *_indented(_back_between(states), 3),
        *_indented(_back_stages(pull, states), 2),
        "    while at:",
        "        at -= 1",
        f"        {_tuple(_names('y', states))} = cotangents[at]",
        *(f"        l{i} += y{i}" for i in range(states)),
        "    if path:",
        *_indented(pull("t", z, carried, _names("m", states)), 2),
        *(f"        l{i} += m{i}" for i in range(states)),
        f"    return {_tuple([*after, *asked])}",
    ]
    return "\n".join(lines) + "\n"


def _back_between(states: int) -> list[str]:
    """Lines that add to the cotangents of a step's derivatives and of its beginning, from those of a state in its
    midst."""
    shares = _interpolation()
    lines = [f"{_tuple(_names('y', states))} = cotangents[at]", "s = (times[at] - t) / h"]
    lines += [f"b{k} = {share}" for k, share in shares.items()]
    lines += [f"e{i} += y{i}" for i in range(states)]
    to = {k: "c" if k == STAGES else "i" for k in shares}
    return [*lines, *(f"{to[k]}{k}_{i} += b{k} * y{i}" for k in shares for i in range(states))]


def _back_stages(pull: Pull, states: int) -> list[str]:
    """Lines that take the cotangents of where a step ends, and of the derivative there, to where it begins."""
    weights, lines = _weights(), []
    for stage in range(STAGES, 0, -1):
        cotangents = _names(f"c{stage}_", states)
        lines.append(f"u = {_time_of(stage)}")
        lines += pull("u", _names(f"x{stage}_", states), cotangents, _names(f"m{stage}_", states))
        if stage == STAGES:
            lines += [f"m{stage}_{i} += l{i}" for i in range(states)]
        # what the stages from here on have taken of the derivative before this one
        takers = [(later, weights[later - 1][stage - 1]) for later in range(stage, STAGES + 1)]
        to = f"c{stage - 1}_" if stage > 1 else "q"
        for i in range(states):
            total = _sum([share for _, share in takers], [f"m{later}_{i}" for later, _ in takers])
            lines.append(f"{to}{i} = i{stage - 1}_{i} + h * ({total or '0.0'})")
    return [
        *lines,
        *(f"l{i} = e{i} + {' + '.join(f'm{stage}_{i}' for stage in range(1, STAGES + 1))}" for i in range(states)),
    ]


@functools.lru_cache(100)
def executed(text: str, names: tuple[tuple[str, object], ...]) -> Callable[..., Any]:
    """The function that a text defines, with what it calls."""
    namespace: dict[str, object] = {
        **dict(names), "inf": math.inf, "nan": math.nan, "nextafter": math.nextafter, "sqrt": math.sqrt,
        "ERRORS": (ArithmeticError, ValueError), **NoSolution.__members__,
    }  # fmt: skip
    exec(text, namespace)
    function: Callable[..., Any] = namespace["solve"]  # type: ignore[assignment]
    return function
