"""Geweke's test of `compiled_mh` where structure depends on choices: branches, a recursion whose length is geometric,
seatings, and one block drawn from a number of blocks that changes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.geweke.models import MODELS, Model, Rng
from tests.geweke.test_joint_distribution import assert_joint_distribution_is_kept
from tests.statistics import Floats
from venture_lite import Venture

RECURSION = """
    [assume walk (lambda (n) (if (scope_include 'd n (flip 0.4))
                                 (+ (scope_include 'c n (normal 1 1)) (walk (+ n 1))) 0))]
    [assume total (walk 0)]
    [assume y (mem (lambda (i) (scope_include 'data i (normal total 1))))] [predict (y 1)]"""


def simulate_recursion(rng: Rng, n: int) -> dict[str, Floats]:
    steps = rng.geometric(0.6, n) - 1
    total = rng.normal(steps, np.sqrt(steps))
    y = rng.normal(total, 1)
    return {"none": (steps == 0) * 1.0, "total": total, "y": y, "total_y": total * y, "capped": np.minimum(total, 2.0)}


MORE = {
    "recursion": Model(
        RECURSION,
        {
            "none": "(= total 0)",
            "total": "total",
            "y": "(y 1)",
            "total_y": "(* total (y 1))",
            "capped": "(min total 2)",
        },
        simulate_recursion,
    )
}
CASES = {
    "branch": (MODELS["branch"], "(compiled_mh p d one 4) (mh c each 1)", ("d one",)),
    "one of a number that changes": (MODELS["branch"], "(compiled_mh p default one 12)", ("default one",)),
    "recursion": (
        MORE["recursion"],
        "(compiled_mh p d one 3) (compiled_mh p d each 1) (compiled_mh q c each 1)",
        ("d one", "c one"),
    ),
    "tables": (MODELS["tables"], "(compiled_mh p c one 8) (gibbs d each 1)", ("c one",)),
}


def chain(model: Model, engine: str, blocks: tuple[str, ...], draws: int) -> dict[str, Floats]:
    venture = Venture(seed=21)
    venture.execute(model.program)
    for name, of in zip("pq", blocks, strict=False):
        venture.infer(f"(compile {name} {of} 'worlds 400 'hidden 8)")
    collected = " ".join(f"(labelled {expression} {name})" for name, expression in model.functions.items())
    found = venture.infer(f"(repeat {draws} (do {engine} (mh data each 1) {collected}))")
    return {name: np.asarray(found[name], dtype=float).reshape(draws) for name in model.functions}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_learned_proposals_keep_the_joint_distribution(case: str) -> None:
    model, engine, blocks = CASES[case]
    assert_joint_distribution_is_kept(model, chain(model, engine, blocks, 2000), engine)
