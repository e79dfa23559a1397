"""Subsample annealing of two urns: assignments over the statistics alone against assignments by the interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from tests.benchmarks.measure import Row, compare
from venture_lite import Venture
from venture_lite.engines.anneal.deferred import Deferred
from venture_lite.kernels.preview import Unplanned
from venture_lite.kernels.single_gibbs import SingleGibbs

PROGRAM = (Path(__file__).parents[2] / "programs" / "papers" / "urns.vnt").read_text(encoding="utf-8")
INFERENCE = "(anneal left linear 9)"
BALLS = 500
BAR = 10


def rows() -> list[Row]:
    model = Venture(seed=1)
    model.execute(PROGRAM.split(INFERENCE)[0], N=BALLS, red=np.arange(BALLS) < 2 * BALLS // 5)
    found = compare(lambda: model.infer(INFERENCE), lambda: interpreted(model), repetitions=3)
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


def interpreted(model: Venture) -> None:
    def refuse(*_: Any) -> bool:
        raise Unplanned

    with (
        patch.object(Deferred, "remove", refuse),
        patch.object(Deferred, "assign", refuse),
        patch.object(SingleGibbs, "step", lambda *_: None),
    ):
        model.infer(INFERENCE)
