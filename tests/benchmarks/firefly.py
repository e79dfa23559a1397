"""Firefly Monte Carlo against regular Metropolis-Hastings on MNIST, 7 against 9 (Maclaurin and Adams 2014, Table 1).

Both walk isotropically, their steps tuned to the same acceptance; what is compared is effective draws a query, which
does not depend on the machine. What is run is `programs/papers/firefly_logistic.py`. Skipped where the data are not at
hand (`VENTURE_DATA` names their folder).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from tests.benchmarks.measure import Row

sys.path.insert(0, str(Path(__file__).parents[2] / "programs" / "papers"))
from firefly import Measured, agreement
from firefly_logistic import firefly_langevin, firefly_walk, gain, regular_langevin, regular_walk
from logistic import Data, seven_nine

DATA = Path(os.environ.get("VENTURE_DATA", Path(__file__).parents[3] / "shared" / "data")) / "mnist_7v9.npz"
REGULAR = 260_000
WALKS = {0.01: 800_000, 0.003: 1_000_000}
"""Transitions of the regular walk, and of Firefly's by the probability of a proposal to brighten: they give the median
coordinate more than 400 effective draws."""
REGULAR_LANGEVIN = 40_000
LANGEVIN = 240_000
QUERIES = 207
"""The paper's, an iteration."""
BARS = {0.01: 12.0, 0.003: 22.0}
"""Effective draws a query, in those of the regular walk."""


def rows() -> list[Row]:
    if not DATA.exists():
        return [Row("flymc, MNIST 7 against 9", "no data", "-", "-", None, True)]
    data = seven_nine(DATA)
    regular = regular_walk(data, REGULAR)
    walks = {q: firefly_walk(data, "map", q, transitions) for q, transitions in WALKS.items()}
    queries = walks[0.01].queries
    first = f"{queries:.0f} queries a transition", f"at most {QUERIES}", "the paper's"
    return [
        Row("flymc 'map, plain walk, MNIST, q = 0.01", *first, queries / QUERIES, queries <= QUERIES),
        *(speedup(f"  the same, q = {q}", walk, regular, BARS[q]) for q, walk in walks.items()),
        *langevin(data, walks[0.01]),
    ]


def speedup(name: str, walk: Measured, regular: Measured, bar: float) -> Row:
    """Of the median coordinate, where it has effective draws enough and both walks are tuned."""
    found = walk.speedup(regular, np.median)
    enough = min(np.median(walk.ess), np.median(regular.ess)) >= 400
    tuned = all(0.22 <= each.accepted <= 0.25 for each in (walk, regular))
    return Row(
        name,
        f"{walk.queries:.0f} queries, {effective(walk)}",
        f"at least {bar:g} times",
        f"regular walk's draws a query: {effective(regular)}",
        found,
        bool(found >= bar and enough and tuned),
    )


def effective(walk: Measured) -> str:
    return f"ESS {np.median(walk.ess):.0f} (least {walk.ess.min():.0f}), acceptance {walk.accepted:.3f}"


def langevin(data: Data, walk: Measured) -> list[Row]:
    """With preconditioned steps along the gradient."""
    found = firefly_langevin(data, 0.01, LANGEVIN)
    times, apart = gain(found, walk), agreement(found, regular_langevin(data, REGULAR_LANGEVIN))
    measured = f"least ESS {found.ess.min():.0f} in {LANGEVIN:,}, acceptance {found.accepted:.2f}"
    met = times >= 20.0 and 0.5 <= found.accepted <= 0.65
    same = apart.means <= 4.0 and -0.05 <= apart.lowest_sd <= apart.highest_sd <= 0.05
    return [
        Row("  preconditioned MALA, q = 0.01", measured, "at least 20 times", "the walk's a transition", times, met),
        Row("  its posterior", str(apart), "4 standard errors, 5%", "regular MALA", None, same),
    ]
