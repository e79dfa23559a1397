"""The sum of all bounds, kept as a quadratic: for numbers, and for scores that share one curvature."""

from __future__ import annotations

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.engines.firefly.firefly import Firefly, FireflySettings

SCORES = """
[assume w (mem (lambda (k) (scope_include 'w 0 (multivariate_normal (zeros 2) {cov}))))]
[assume W (matrix (w 0) (w 1) (w 2))]
for n in 1...15: [observe (softmax_categorical (matmul W {X[n]})) {Y[n]}]
"""
NUMBERS = """
[assume w (scope_include 'w 0 (multivariate_normal (zeros 2) {cov}))]
for n in 1...15: [observe (bernoulli (logistic (dot w {X[n]}))) (< {Y[n]} 1)]
"""


@pytest.mark.parametrize(("program", "size"), [(NUMBERS, 2), (SCORES, 6)])
def test_the_sum_of_the_bounds_is_kept(program: str, size: int) -> None:
    """Its value, gradient and second derivatives, against the rows' own bounds."""
    rng = np.random.default_rng(0)
    v = Venture(seed=1)
    v.execute(program, X=rng.standard_normal((15, 2)), Y=rng.integers(0, 3, 15), cov=np.eye(2))
    model = v.traces[0]
    block = model.trace.scopes["w"].everything()
    firefly = Firefly(model, block, FireflySettings(None, True, 0.1, None, False), lambda text: None)
    (rows,) = firefly.rows

    def summed(theta: np.ndarray) -> float:
        assert rows.quadratics is not None
        return float(rows.quadratics.all().at(rows.linear.eta(firefly.linear.coefficients(theta, rows.linear))).sum())

    collapsed = firefly._collapsed
    for theta, other in rng.standard_normal((5, 2, size)):
        change = summed(theta) - summed(other)
        assert collapsed.change(other, theta) == pytest.approx(change, rel=1e-11, abs=1e-11)
        for k, step in enumerate(0.5 * np.eye(size)):
            up, down, middle = summed(theta + step), summed(theta - step), summed(theta)
            assert collapsed.gradient_at(theta)[k] == pytest.approx(up - down, rel=1e-9, abs=1e-9)
            assert collapsed.diagonal()[k] == pytest.approx(4 * (up + down - 2 * middle), rel=1e-9, abs=1e-9)
