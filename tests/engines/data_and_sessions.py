"""A session with a program in it, models of one block, and data of two classes, for the tests of engines."""

from __future__ import annotations

from typing import Any

import numpy as np

from venture_lite import Venture
from venture_lite.interpreter.model import Model

LOGISTIC = """
[assume w (scope_include 'w 0 (multivariate_normal (vector 0 0) (matrix (list 10 0) (list 0 10))))]
[assume y (lambda (x) (bernoulli (linear_logistic w x)))]
for n in 1...N: [observe (y {X[n]}) {Y[n]}]
"""
NORMAL = """
[assume mu (scope_include 'mu 0 (normal 0 10))]
for n in 1...N: [observe (normal mu 2) {Y[n]}]
"""
ROBUST = """
[assume mu (scope_include 'mu 0 (normal 0 10))]
[assume s (scope_include 's 0 (gamma 2 2))]
for n in 1...N: [observe (student_t 1 mu s) {Y[n]}]
"""


def node_of(model: Model, name: str) -> int:
    """The choice that a name stands for."""
    target = model.trace.analyzer.globals[name]
    assert target.code is not None
    return model.trace.result_node(target.code, target.row)


def venture(text: str, seed: int = 1, **parameters: Any) -> Venture:
    v = Venture(seed=seed)
    v.execute(text, **parameters)
    return v


def classes(count: int, seed: int = 0, scale: float = 1.0) -> dict[str, Any]:
    """Two normal features, the second of another scale, whose weights are (1, -1) in units of their sds."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((count, 2)) * [1.0, scale]
    return {"X": features, "Y": rng.random(count) < 1 / (1 + np.exp(-features @ [1.0, -1.0 / scale])), "N": count}
