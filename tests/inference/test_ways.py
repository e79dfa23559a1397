"""The way that `explain` names is the one that at least 95% of a kernel's transitions go.

What the interpreter makes is counted where scaffolds are taken out (`Regenerator.regenerations`), whatever a kernel
says of itself.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture, VentureError, VentureWarning
from venture_lite.errors import Source
from venture_lite.inference.actions import ACTIONS
from venture_lite.interpreter import answers
from venture_lite.interpreter.kernel import COLUMNS, ROWS
from venture_lite.interpreter.tally import Tally
from venture_lite.kernels import formed
from venture_lite.language.parse import parse_expression
from venture_lite.networks import fitting
from venture_lite.program.supplied import Parameters
from venture_lite.session import queries
from venture_lite.session.chains import Given

pytestmark = pytest.mark.thorough
N = 60
"""Rows."""
MODELS = {
    "levels": """[assume slope (normal 0 1)] [assume spread (gamma 2 1)]
        [assume level (mem (lambda (c) (tag 'level c (normal 0 spread))))]
        for n in 1...60: [observe (normal (+ (level (floor (/ n 20))) (* slope {x[n]})) 0.5) {y[n]}]""",
    "classes that come and go": """[assume table (make_crp 0.05)] [assume z (mem (lambda (n) (table)))]
        [assume m (mem (lambda (k) (normal 0 3)))] for n in 1...60: [observe (normal (m (z n)) 1) {y[n]}]""",
    "collapsed classes": """[assume table (make_crp 0.05)] [assume z (mem (lambda (n) (table)))]
        [assume c (mem (lambda (k) (make_normal_inv_chi_sq 0 1 1 1)))] for n in 1...60: [observe ((c (z n))) {y[n]}]""",
    "classes": """[assume w (dirichlet (vector 1 1 1))] [assume z (mem (lambda (n) (categorical w)))]
        [assume m (mem (lambda (k) (normal 0 3)))] for n in 1...60: [observe (normal (m (z n)) 1) {y[n]}]""",
    "branch": """[assume b (flip 0.4)] [assume m (if b 1 (gamma 1 1))]
        for n in 1...60: [observe (normal m 1) {y[n]}]""",
    "states": """[assume z (mem (lambda (t) (tag 'z t (if (= t 0) 0 (flip (if (z (- t 1)) 0.9 0.2))))))]
        for t in 1...60: [observe (normal (if (z t) 1 0) 1) {y[t]}]""",
    "rows": "[assume w (tag 'w 0 (normal 0 1))] for n in 1...60: [observe (flip (logistic (* w {x[n]}))) {k[n]}]",
}
SMOOTH, FINITE = "(choices 'smooth)", "(choices 'finite)"
KERNELS = (
    f"(mh {SMOOTH} one N)", f"(mh {FINITE} each 3)", "(mh default all N)", f"(mh {SMOOTH} one 'drift 0.5 N)",
    f"(mh {SMOOTH} all 'drift 0.5 'precondition N)", f"(mh {SMOOTH} all 'drift 0.5 'adapt 50 N)",
    "(mh (choices slope level) one (lambda (x) (normal x 1)) N)", f"(gibbs {FINITE} each 3)",
    "(gibbs (choices b) all N)",
    f"(gibbs {FINITE} all 'forward N)", f"(gibbs {FINITE} all 'weights N)", f"(slice {SMOOTH} each 1 5 N)",
    "(slice default all 1 5 'weights N)", f"(hmc {SMOOTH} all 0.1 3 N)", f"(nuts {SMOOTH} all 'step 0.2 N)",
    f"(mala {SMOOTH} all 0.2 N)", f"(vi {SMOOTH} all 20)", "(rejection z (ordered_range 2 6) 20)",
    f"(split_merge {FINITE} N)",
    "(subsampled_mh w one 3 0.05 N)", "(flymc w all auto 'untuned 0.3 'drift 0.5 N)", "(pgibbs z ordered 3 20)",
    "(pgibbs (choices b m) ordered 3 N)", "(anneal z constant 1)",
    f"(do (compile p {SMOOTH} one 'worlds 100) (compiled_mh p {SMOOTH} one N))",
    f"(do (compile p {SMOOTH} all 'worlds 100) (compiled_mh p {SMOOTH} all N))",
)  # fmt: skip
NO_KERNELS = {
    "begin a chain, or take it elsewhere": ("initialize", "optimize", "pathfinder", "smc", "auto"),
    "run others": ("cycle", "mixture", "repeat", "do"),
    "give, show or keep values": ("collect", "labelled", "print", "plot", "save_proposers", "load_proposers"),
    "move as another does": ("subsampled_mh_report",),
}
"""Actions that move no blocks by a course of their own."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forms are made at the first use, nothing is compared, and little is learned."""
    monkeypatch.setattr(answers, "ANSWERS", 0)
    monkeypatch.setattr(formed, "USES", 1)
    monkeypatch.setattr(fitting, "LEAST_STEPS", 50)
    monkeypatch.setattr(fitting, "PASSES", 1)


def session(program: str, **parameters: Any) -> Venture:
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=N), "y": rng.normal(size=N) + 4 * (np.arange(N) > 30), "k": rng.random(N) < 0.5}
    v = Venture(seed=1)
    v.execute(program, **(parameters or data))
    v.infer("(mh default one 200)")
    return v


def tallies(v: Venture, kernel: str) -> list[Tally]:
    expression, given = parse_expression(Source("<ways>", kernel)), Given(Parameters({}))
    with queries.chain_runs(v._runner.chains, expression, given, v._runner.directory) as runs:
        runs.more()
        return list(runs._runs[0].program.tallies)


def ways_of(v: Venture, kernel: str) -> set[str]:
    return {kind.course.way for part in v.explain(kernel).parts for kind in part.kinds or ()}


@pytest.mark.parametrize("kernel", [kernel.replace("N)", "150)") for kernel in KERNELS])
def test_what_is_said_happens(kernel: str) -> None:
    """Where all blocks of a kernel go one way; where they do not, or none can be moved, nothing is said of it."""
    judged, learned = 0, kernel.startswith("(do (compile")
    moves = kernel[kernel.index("(compiled_mh") : -1] if learned else kernel
    for program in MODELS.values():
        v = session(program)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VentureWarning)
            try:
                if learned:
                    v.infer(kernel)
                ways = ways_of(v, moves)
                if ways not in ({COLUMNS}, {ROWS}):
                    continue
                tally = tallies(v, moves)[-1]
            except VentureError:
                continue
        share = tally.by_rows / tally.transitions
        assert (share <= 0.05) if ways == {COLUMNS} else (share >= 0.95), f"{kernel} on {program}: {ways}, {share}"
        judged += 1
    assert judged


def test_every_action_is_looked_at() -> None:
    seen = {word for kernel in KERNELS for word in kernel.replace("(", " ").split()}
    others = {name for names in NO_KERNELS.values() for name in names}
    assert set(ACTIONS) <= seen | others
