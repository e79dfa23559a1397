"""Subsample annealing of two urns: assignments over the statistics alone against assignments by the interpreter."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.benchmarks.measure import Row, compare
from venture_lite import Venture

PROGRAM = (Path(__file__).parents[2] / "programs" / "papers" / "urns.vnt").read_text(encoding="utf-8")
INFERENCE = "(anneal left linear 9)"
BALLS = 500
BAR = 10


def rows() -> list[Row]:
    model, interpreted = Venture(seed=1), Venture(seed=1, kernels="interpreted")
    for one in (model, interpreted):
        one.execute(PROGRAM.split(INFERENCE)[0], N=BALLS, red=np.arange(BALLS) < 2 * BALLS // 5)
    found = compare(lambda: model.infer(INFERENCE), lambda: interpreted.infer(INFERENCE), repetitions=3)
    assignments = 10 * BALLS
    return [
        Row(
            f"two urns of {BALLS} balls, annealed",
            f"{assignments / found.ours:,.0f} assignments/s",
            f"at least {BAR} times",
            f"each by the interpreter, {assignments / found.theirs:,.0f}/s",
            found.ratio,
            found.ratio >= BAR,
        )
    ]
