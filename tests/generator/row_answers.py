"""Exact answers to programs of few rows: of choices of few values, and of labels whose classes have normal parameters.

What engines of particles and of labels draw is compared with them in two stages, as in `comparison.py`.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.generator.comparison import CONFIRM, ENOUGH, SUSPECT, Exact, Fault, Interrupted
from tests.generator.interpreter import FREE, Impossible, Interpreter, Place
from tests.generator.interpreter_procedures import FiniteRandom
from tests.generator.programs import Program, Step
from tests.generator.row_comparison import loaded, ready
from tests.generator.worlds import MOST, MOST_RUNS, Odometer, TooManyWorlds, World, worlds
from venture_lite.errors import VentureError

FINITE_KERNELS = (
    "(pgibbs default ordered 4 1)",
    "(pgibbs default ordered 3 'ancestor 1)",
    "(gibbs default each 1)",
    "(gibbs default all 1)",
    "(gibbs default all 'forward 1)",
    "(mh default one 4)",
    "(cycle ((pgibbs default ordered 3 1) (gibbs default each 1)) 1)",
)
MOVE = "(slice default each 2 20 1)"
LABEL_KERNELS = (
    "(do (gibbs z each 1) PARAMETERS)",
    "(do (gibbs z one 3) PARAMETERS)",
    "(do (gibbs z all 'weights 1) PARAMETERS)",
    "(slice default all 2 20 'weights 1)",
    "(slice default all 2 20 'weights 'splits 3 1)",
    "(do (split_merge z 3) (gibbs z one 1) PARAMETERS)",
)
"""PARAMETERS stands for a sweep over what the classes have."""

MORE = 8
"""How many times as many draws decide on a suspect."""


class NotNormal(Exception):
    """A log density is no quadratic function of its continuous choices."""


@dataclass(slots=True)
class MixedOdometer(Odometer):
    """Takes a program through the values of its discrete choices; continuous ones have given values."""

    given: Mapping[Place, Any] = field(default_factory=dict)
    # those met, in their order
    continuous: list[Place] = field(default_factory=list)

    def choose(self, procedure: FiniteRandom, arguments: Sequence[Any], path: Place) -> Any:
        if procedure.support is not None:
            # `super()` finds no class in one with slots
            return Odometer.choose(self, procedure, arguments, path)
        self.continuous.append(path)
        value = self.given.get(path, 0.0)
        self.log_weight += procedure.log_density(value, *arguments)
        return value

    def again(self, given: Mapping[Place, Any]) -> None:
        """Begin the same world anew, with other values of its continuous choices."""
        self.given, self.continuous = given, []
        self.at, self.log_weight, self.choices = 0, 0.0, {}


def normal_worlds(
    steps: Sequence[Step], queries: Sequence[str], frozen: Mapping[str, Any], parameters: Mapping[str, Any]
) -> list[World]:
    """The worlds of a program's discrete choices, its continuous ones integrated out: the log density is quadratic in
    them. Raises TooManyWorlds, NotNormal."""
    interpreter = Interpreter(steps, frozen, parameters)
    asked = [interpreter.compiled(query) for query in queries]
    odometer, found, runs = MixedOdometer(), list[World](), 0
    while True:
        runs += 1
        if len(found) > MOST or runs > MOST_RUNS:
            raise TooManyWorlds

        def log_density(places: Sequence[Place], at: np.ndarray) -> float:
            odometer.again(dict(zip(places, at.tolist(), strict=True)))
            interpreter.run(odometer)
            return odometer.log_weight + interpreter.log_weight

        try:
            odometer.again({})
            interpreter.run(odometer)
            places, choices = list(odometer.continuous), dict(odometer.choices)
            values = tuple(float(run([None], ("query", i), FREE)) for i, run in enumerate(asked))
            weight = log_integral(lambda at, places=places: log_density(places, at), len(places))
            found.append(World(weight, choices, values))
        except Impossible:
            pass
        except (ArithmeticError, ValueError):
            # a number of another support is 0
            raise NotNormal from None
        if not odometer.advance():
            return found


def log_integral(log_density: Callable[[np.ndarray], float], size: int) -> float:
    """Of the exponential of a quadratic function of so many numbers. Raises NotNormal."""
    unit, start = np.eye(size), log_density(np.zeros(size))
    ahead = np.array([log_density(way) for way in unit])
    behind = np.array([log_density(-way) for way in unit])
    if not np.isfinite([start, *ahead, *behind]).all():
        raise NotNormal
    slope, curve = 0.5 * (ahead - behind), np.diag(ahead + behind - 2.0 * start)
    for i in range(size):
        for j in range(i):
            curve[i, j] = curve[j, i] = log_density(unit[i] + unit[j]) - ahead[i] - ahead[j] + start
    probe = 0.5 + np.arange(size)
    if not math.isclose(log_density(probe), start + slope @ probe + 0.5 * probe @ curve @ probe, rel_tol=1e-8):
        raise NotNormal
    solved = np.linalg.solve(-curve, slope) if size else slope
    _, log_determinant = np.linalg.slogdet(-curve) if size else (1.0, 0.0)
    return float(start + 0.5 * slope @ solved + 0.5 * size * math.log(2.0 * math.pi) - 0.5 * log_determinant)


def judge(program: Program, seed: int, kernel: str, is_finite: bool, draws: int = ENOUGH) -> bool:
    """Compare the draws of a kernel with the exact answer in two stages; whether it could be judged. Raises Fault."""
    enumeration = worlds if is_finite else normal_worlds
    text = " ".join(step.text for step in program.directives)
    if not is_finite and (names_of(program, "out") or re.search(r"\(= \(z\d+ ", text)):
        # a query of a label that a world has not would draw it; and which number a label has is of no world, but of
        # the order in which classes were opened
        return False
    kernel = kernel.replace("PARAMETERS", f"(slice (choices {' '.join(names_of(program, 'm'))}) each 2 20 1)")
    try:
        first = Exact(program, seed, enumeration)
        if len(first.joint) < 2 or not first.suspicious(kernel, draws, SUSPECT):
            return len(first.joint) > 1
        suspicion = Exact(program, seed + 1_000_003, enumeration).suspicious(kernel, MORE * draws, CONFIRM)
    except (TooManyWorlds, NotNormal, Interrupted):
        return False
    except (Fault, VentureError):
        raise
    except Exception as error:
        what = f"seed {seed}: {type(error).__name__}: {error}"
        raise Fault(f"{what}\n{ready(program, seed, 'compiled', kernel)}") from error
    if suspicion:
        raise Fault(f"seed {seed}, {kernel}: {suspicion}\n{ready(program, seed, 'compiled', kernel)}")
    return True


def names_of(program: Program, kind: str) -> list[str]:
    """The names of families of a kind: `m` of numbers, `out` of what decides whether a label is read."""
    made = re.compile(rf"\[assume ({kind}\d+)")
    return [found.group(1) for step in program.directives if (found := made.match(step.text))]


def compare_evidence(program: Program, seed: int) -> bool:
    """The log evidence by particles with that of the enumeration; whether there is one. Raises Fault."""
    try:
        found = worlds(program.directives, [], {}, program.parameters)
    except TooManyWorlds:
        return False
    exact = float(np.logaddexp.reduce([world.log_weight for world in found]))
    told = ""
    for stage, runs in enumerate((12, 100)):
        engine = f"(smc 20 'runs {runs} (mh default one 2))"
        venture = loaded(program, seed + stage, "compiled")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                evidence = venture.infer(engine).evidence
        except VentureError:
            return False
        except Exception as error:
            what = f"seed {seed}: {type(error).__name__}: {error}"
            raise Fault(f"{what}\n{ready(program, seed, 'compiled', engine)}") from error
        if abs(evidence.log - exact) <= CONFIRM * evidence.error + 1e-6:
            return True
        told = f"seed {seed}: log evidence {evidence.log} +- {evidence.error}, by the enumeration {exact}"
    raise Fault(f"{told}\n{ready(program, seed, 'compiled', engine)}")
