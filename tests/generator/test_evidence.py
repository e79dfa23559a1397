"""The evidence of finite programs, by particles, is the sum over their worlds.

Estimates of passes and of runs are unbiased whatever the number of particles, so that few of these do, and their mean
is compared with the enumeration. It sees what no chain of a kernel shows: each density is weighed once, whatever
structure its choices have, and wherever factors stand between them.

False alarms: a comparison beyond SUSPECT standard errors is made again from another seed with MORE times as many
estimates, which decide; of a normal statistic 2e-9 are beyond CONFIRM, and skewed ones are nearly normal by then.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.generator.comparison import finite_program, told
from tests.generator.session import check, infer, load
from tests.generator.worlds import worlds
from venture_lite import VentureError

PASSES = "(pgibbs default ordered 5 'evidence {} 1)"
RUNS = "(smc 5 'runs {} (mh default one 2))"
TEMPERED = "(smc 5 'tempered 'runs {} (gibbs (choices 'finite) each 1))"
FEW, MORE = {PASSES: 100, RUNS: 40, TEMPERED: 40}, 15
SUSPECT, CONFIRM = 3.5, 6.0


def errors_off(seed: int, kernel: str, estimates: int, another: int = 0) -> float | None:
    """How many standard errors the mean estimate is off; None where the kernel is refused."""
    program = finite_program(seed)
    found = np.array([world.log_weight for world in worlds(program.directives, ["0"], {})])
    log_evidence = found.max() + math.log(np.exp(found - found.max()).sum())
    venture = load(program, seed + another)
    try:
        draws = infer(venture, kernel.format(estimates))
    except VentureError:
        return None
    check(venture)
    ratios = np.exp(np.array(draws.statistics[-1].evidence) - log_evidence)
    error = float(ratios.std(ddof=1)) / math.sqrt(len(ratios))
    return (float(ratios.mean()) - 1.0) / max(error, 1e-9)


def judge(seeds: range, kernel: str) -> int:
    """How many programs the kernel was not refused for; each must have the evidence of its worlds."""
    judged = 0
    for seed in seeds:
        off = errors_off(seed, kernel, FEW[kernel])
        judged += off is not None
        if off is not None and abs(off) > SUSPECT:
            off = errors_off(seed, kernel, MORE * FEW[kernel], 1_000_003)
            assert off is not None
            assert abs(off) < CONFIRM, told(finite_program(seed), f"seed {seed}, {kernel}: {off:.1f} errors off")
    return judged


@pytest.mark.thorough
def test_evidence_is_that_of_the_worlds() -> None:
    """Seen to fail where passes leave out what depends on no block."""
    assert judge(range(6), PASSES) == 6


@pytest.mark.slow
@pytest.mark.parametrize("first", range(20, 50, 10))
@pytest.mark.parametrize("kernel", FEW)
def test_evidence_of_many_programs_is_that_of_their_worlds(kernel: str, first: int) -> None:
    assert judge(range(first, first + 10), kernel) >= 3
