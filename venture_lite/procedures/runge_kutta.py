"""Dormand and Prince's method of orders 5 and 4, printed for one system of equations (Dormand and Prince 1980; Hairer,
Norsett and Wanner 1993, Solving ordinary differential equations I, sections II.4 to II.6), with the coefficients,
the step control and the interpolation of scipy's RK45.

Of few equations an evaluation is a few operations, and calls of NumPy cost ten times as much. So the loop is text,
every number a local variable. The error that decides upon steps is that of the first equations alone: sensitivities
ride along, and the values are the same with and without them.

Where equations are stiff such a method makes steps that only its stability bounds: an estimate of the step times the
largest eigenvalue of the Jacobian, which costs next to nothing, stays at the edge of the region of stability (Hairer
and Wanner 1996, Solving ordinary differential equations II, section IV.2, equation 2.5). That is told, not sat through.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence

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


Solver = Callable[..., list[tuple[float, ...]] | NoSolution]
"""`(t0, times, rtol, atol, *states, *parameters)` -> the states at each time."""


def printed(derivatives: Print, watched: int, states: int, parameters: Sequence[str]) -> str:
    """The text of a `Solver` of so many states, of which the errors of the first `watched` decide upon steps."""
    z, new = _names("z", states), _names("x", states)
    lines = [
        f"def solve(t, times, rtol, atol, {', '.join([*z, *parameters])}):",
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
        *_indented(_first_step(derivatives, watched, states), 2),
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
        *_indented(_stages(derivatives, watched, states), 4),
        *_indented(_error(watched), 4),
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
        "        while at < count and times[at] <= after:",
        *_indented(_between(states), 3),
        "            at += 1",
        "        if at == count:",
        "            return found",
        f"        if steps > {FREE_STEPS}:",
        *_indented(_stiffness(watched), 3),
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


def _first_step(derivatives: Print, watched: int, states: int) -> list[str]:
    """The step `h` to begin with (Hairer, Norsett and Wanner, section II.4, starting step size)."""
    some = range(watched)
    trial = [f"x{i} = z{i} + h * k0_{i}" for i in range(states)]
    return [
        *(f"w{i} = atol + abs(z{i}) * rtol" for i in some),
        f"size, slope = {_norm([f'z{i} / w{i}' for i in some])}, {_norm([f'k0_{i} / w{i}' for i in some])}",
        "h = 1e-6 if size < 1e-5 or slope < 1e-5 else 0.01 * size / slope",
        "h = min(h, bound - t)",
        "u = t + h",
        *trial,
        *derivatives("u", _names("x", states), _names("k1_", states)),
        f"bend = {_norm([f'(k1_{i} - k0_{i}) / w{i}' for i in some])} / h",
        "far = max(1e-6, h * 1e-3) if slope <= 1e-15 and bend <= 1e-15 else (0.01 / max(slope, bend)) ** 0.2",
        "h = min(100.0 * h, far, bound - t)",
    ]


def _stages(derivatives: Print, watched: int, states: int) -> list[str]:
    """Lines that compute the derivatives k0 ... k6 of a step from t to after, and where it ends, x; g is where k5 is
    of, at the same time as k6, which is of x."""
    from scipy.integrate import RK45

    lines = []
    weights = [*(RK45.A[stage, :stage] for stage in range(1, 6)), RK45.B]
    for stage, (row, share) in enumerate(zip(weights, [*RK45.C[1:], 1.0], strict=True), 1):
        lines.append("u = after" if stage > 4 else f"u = t + {float(share)!r} * h")
        for i in range(states):
            lines.append(f"x{i} = z{i} + h * ({_sum(row, [f'k{k}_{i}' for k in range(stage)])})")
        lines += [f"g{i} = x{i}" for i in range(watched)] if stage == 5 else []
        lines += derivatives("u", _names("x", states), _names(f"k{stage}_", states))
    return lines


def _stiffness(watched: int) -> list[str]:
    """Lines that count steps at the edge of stability, by how the derivative changes between two points near by."""
    change, apart = (
        [f"({one}{i} - {other}{i})" for i in range(watched)] for one, other in (("k6_", "k5_"), ("x", "g"))
    )
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


def _error(watched: int) -> list[str]:
    """The line that computes the error of a step, 1 being what is allowed."""
    from scipy.integrate import RK45

    terms = [
        f"h * ({_sum(RK45.E, [f'k{k}_{i}' for k in range(7)])}) / (atol + rtol * max(abs(z{i}), abs(x{i})))"
        for i in range(watched)
    ]
    return [f"error = {_norm(terms)}"]


def _between(states: int) -> list[str]:
    """Lines that add the states at a time inside the step, by its interpolation of order 4."""
    from scipy.integrate import RK45

    lines, terms = ["s = (times[at] - t) / h"], []
    for k, (first, *others) in enumerate(RK45.P.tolist()):
        if first or any(others):
            second, third, fourth = others
            lines.append(f"b{k} = h * s * ({first!r} + s * ({second!r} + s * ({third!r} + s * {fourth!r})))")
            terms.append(k)
    found = [f"z{i} + {' + '.join(f'b{k} * k{k}_{i}' for k in terms)}" for i in range(states)]
    return [*lines, f"found.append(({', '.join(found)},))"]


@functools.lru_cache(100)
def executed(text: str, names: tuple[tuple[str, object], ...]) -> Solver:
    """The function that a text defines, with what it calls."""
    namespace: dict[str, object] = {
        **dict(names), "inf": math.inf, "nan": math.nan, "nextafter": math.nextafter, "sqrt": math.sqrt,
        "ERRORS": (ArithmeticError, ValueError), **NoSolution.__members__,
    }  # fmt: skip
    exec(text, namespace)
    function: Solver = namespace["solve"]  # type: ignore[assignment]
    return function
