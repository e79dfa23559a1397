"""Kernels that look at some of the rows of a linear predictor, tried on a copy before `auto` takes one of them.

A path along the gradient reads every row at every step. `flymc` reads the few that are far from their bounds, and
decides as if it had read all; `subsampled_mh` decides from some of the rows, with a small error, and is asked for. How
much they gain depends on the likelihood, on the number of coordinates and on the machine: so each makes draws for a
second or two, on a trace with a generator of its own. What is chosen stands in the program's text.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from venture_lite.blocks.linear_block import LinearBlock
from venture_lite.blocks.sections import Sections
from venture_lite.draws.presentation import number
from venture_lite.errors import Source, VentureError, VentureWarning
from venture_lite.interpreter.model import Model
from venture_lite.language.parse import parse_expression
from venture_lite.session.auto.judging import judged

if TYPE_CHECKING:
    from venture_lite.session.auto.running import RunProgram, Runs

MANY_ROWS = 100_000
"""Beyond so many rows of one linear predictor a kernel that looks at some of them is tried."""
SECONDS = 2.0
"""For which a kernel makes draws in a trial, and warms up for at most as long before."""
GAIN = 2.0
"""So many times the effective draws a second that paths could make if every draw were one."""
BURN = 50
"""Draws that tune a kernel in a trial."""
FEWEST = 20
"""Draws of which an effective size says something."""

ROW_KERNELS = {
    "flymc": "(flymc {scope} all auto 'map 0.001 'mala 1 'precondition 'adapt {burn} {times})",
    "subsampled_mh": "(subsampled_mh {scope} all 500 0.01 'drift {step} 'precondition 'proxy {times})",
}
"""What looks at some rows."""
TIMES = 10
"""Transitions a draw, since one costs little."""
APPROXIMATE = "subsampled_mh"


def written_row_kernel(name: str, scope: str, burn: int, size: int) -> str:
    """The text of a kernel for a block of so many coordinates; a walk's best step is 2.4 / sqrt(size) of its scale
    (Roberts, Gelman and Gilks 1997)."""
    # what tunes counts transitions
    return ROW_KERNELS[name].format(scope=scope, burn=TIMES * burn, times=TIMES, step=f"{2.4 / size**0.5:.2g}")


def rows_of_predictor(model: Model, nodes: Sequence[int]) -> int:
    """How many rows read a block through one linear predictor; 0 where some read it otherwise."""
    try:
        sections = Sections.of(model, nodes, fewest=0)
        LinearBlock(model, sections, nodes)
    except VentureError:
        return 0
    return sections.count


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of trying kernels."""

    # that which is taken; None for paths along the gradient
    chosen: str | None
    # for the head of a summary
    told: str


def tried(copy: RunProgram, start: str, paths: str, others: dict[str, str]) -> Trial:
    """Try paths and the kernels beside them on a copy that `start` sets out: programs that end with a draw of what is
    judged, by name.

    A kernel that cannot move the block is passed over.
    """
    with warnings.catch_warnings():
        # nothing that is said of them is of draws
        warnings.simplefilter("ignore", VentureWarning)
        limit = _speed(copy, paths, start, is_limit=True)
        found: dict[str, float] = {}
        for name, program in others.items():
            try:
                found[name] = _speed(copy, program, None)
            except VentureError:
                continue
    told = [f"paths at most {number(limit, 2)}", *(f"{name} {number(speed, 2)}" for name, speed in found.items())]
    best = max(found, key=lambda name: found[name], default=None)
    chosen = best if best is not None and found[best] > GAIN * limit else None
    return Trial(chosen, f"tried on a copy, in effective draws a second: {', '.join(told)}")


def _speed(copy: RunProgram, program: str, start: str | None, is_limit: bool = False) -> float:
    """Effective draws a second after a warm-up, of what has the fewest; or all draws, for a limit."""
    begin = None if start is None else parse_expression(Source("<auto>", start))
    with copy(parse_expression(Source("<auto>", program)), start=begin) as runs:
        warmed, _ = _drawn(runs, BURN)
        made, seconds = _drawn(runs, None)
        draws = runs.more(1).after(warmed)
    if is_limit:
        return made / seconds
    least = judged(draws, 1.0).least
    return 0.0 if least is None or made < FEWEST else least.ess / seconds


def _drawn(runs: Runs, most: int | None) -> tuple[int, float]:
    """Draw until the seconds are over, `most` draws at the most: how many were made, and in how long."""
    began, made = time.monotonic(), 0
    while made != most and (taken := time.monotonic() - began) < SECONDS:
        step = 1 if not made else max(1, min(int(made * (SECONDS - taken) / max(taken, 1e-9)), made))
        step = step if most is None else min(step, most - made)
        runs.more(step)
        made += step
    return made, time.monotonic() - began
