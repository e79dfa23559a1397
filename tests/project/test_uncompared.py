"""The ways that a checked session does not compare are in one list."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.interpreter.model import UNCOMPARED

ROOT = Path(__file__).parents[2]
OWNER = "interpreter/model.py"
STATES = """[assume x (mem (lambda (t) (tag 'x t (if (= t 0) 0 (normal (x (- t 1)) 1)))))]
    for t in 1...5: [observe (normal (x t) 1) {y[t]}]"""
RUNS = {
    "pgibbs": "(repeat 5 (do (pgibbs x ordered 4 1) (collect (x 1) (x 5))))",
    "evidence": "(pgibbs x ordered 4 'evidence 3 1)",
    "smc": "(smc 5 (mh x one 'drift 0.5 2) (collect (x 1) (x 5)))",
}


def test_no_other_code_asks_whether_a_session_is_checked() -> None:
    package = ROOT / "venture_lite"
    asks = re.compile(r"""kernels\b.{0,12}["']compiled["']|["']compiled["'].{0,12}\bkernels\b""")
    lines = {
        (str(path.relative_to(package)), line.strip())
        for path in package.rglob("*.py")
        for line in path.read_text().splitlines()
        if asks.search(line)
    }
    assert lines == {
        (OWNER, 'kernels: str = "compiled",'),
        (OWNER, 'return self.kernels == "compiled"'),
        ("session/venture.py", 'kernels: str = "compiled",'),
        ("shell/workers.py", 'kernels: str = "compiled"'),
    }


def test_all_of_them_are_used_and_told() -> None:
    sources = "\n".join(path.read_text() for path in (ROOT / "venture_lite").rglob("*.py"))
    page = (ROOT / "docs" / "design" / "answers.md").read_text()
    assert set(re.findall(r'may_take\("(\w+)"\)', sources)) == set(UNCOMPARED) == set(RUNS)
    assert all(f"- {what}\n" in page for what in UNCOMPARED.values())


@pytest.mark.parametrize("way", UNCOMPARED)
def test_the_interpreter_makes_them_in_a_checked_session(way: str) -> None:
    """There the draws, and the evidence, are those of an interpreted session."""
    found = {}
    for kernels in ("compiled", "interpreted", "checked"):
        v = Venture(seed=3, kernels=kernels)
        v.execute(STATES, y=[0.3, 1.2, -0.4, 2.0, 0.7])
        draws = v.infer(RUNS[way])
        evidence = None if draws.evidence is None else draws.evidence.log
        found[kernels] = {name: np.asarray(draws[name]).tolist() for name in draws}, evidence
    assert found["checked"] == found["interpreted"]
    # of normals the passes happen to be the same
    assert way == "evidence" or found["compiled"] != found["interpreted"]
