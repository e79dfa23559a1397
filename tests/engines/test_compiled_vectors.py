"""`compile` and `compiled_mh` of choices that are vectors: in the frame of the mode where they have a gradient."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.engines.test_compiled import assert_density_is_of_draws, compiled
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.procedures.array_gradients import MULTIVARIATE_NORMAL, MULTIVARIATE_NORMAL_CHOLESKY
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Gradient


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.networks.fitting.LEAST_STEPS", 200)
    monkeypatch.setattr("venture_lite.networks.fitting.PASSES", 2)


def regression() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(30, 3))
    return {"X": features, "Y": features @ np.array([1.0, 2.0, -1.0]) + rng.normal(size=30)}


DATA = " for n in 1...30: [observe (normal (dot w {X[n]}) 1) {Y[n]}]"
DIAGONAL = "(matrix (list 9 0 0) (list 0 9 0) (list 0 0 9))"


@pytest.mark.parametrize(
    "choice",
    [
        f"(multivariate_normal (vector 0 0 0) {DIAGONAL})",
        f"(multivariate_normal_cholesky (vector 0 0 0) {DIAGONAL.replace('9', '3')})",
        "(normal (vector 0 0 0) 3)",
    ],
)
@pytest.mark.thorough
def test_a_vector_of_weights_is_proposed_around_its_mode(choice: str) -> None:
    """In the prior's frame 0.01 of the proposals were accepted; the mean is off by five standard errors, at a fifth of
    independent draws, once in a million times."""
    given = regression()
    venture = compiled(f"[assume w (tag 'x 0 {choice})]" + DATA, "(compile p x all 'worlds 300)", **given)
    (kind,) = proposers_of(venture.traces[0])["p"].kinds.values()
    assert [(position.is_head, position.width) for position in kind.frame.positions] == [(False, 3)]
    found = venture.infer("(repeat 500 (do (compiled_mh p x all 1) (collect w)))")
    assert found.statistics[0].details["acceptance of learned proposals"] > 0.6
    covariance = np.linalg.inv(given["X"].T @ given["X"] + np.eye(3) / 9.0)
    off = found["w"].reshape(500, 3).mean(axis=0) - covariance @ given["X"].T @ given["Y"]
    assert (np.abs(off) < 5.0 * np.sqrt(np.diagonal(covariance) / 100)).all()


@pytest.mark.parametrize(
    ("program", "heads"),
    [
        ("[assume w (tag 'x 1 (normal (vector 0 0 0) s))]" + DATA, 1),
        ("[assume w (mem (lambda (i) (tag 'x i (normal (vector 0 0 0) s))))]" + DATA.replace("dot w", "dot (w 1)"), 1),
        ("[assume w (tag 'x 1 (normal (vector 0 0 0) 3))] [observe (normal (matmul {X} w) s) {Y}]", 1),
        (f"[assume w (tag 'x 1 (multivariate_normal (vector s s s) {DIAGONAL}))]" + DATA, 0),
    ],
)
@pytest.mark.slow
def test_a_scale_is_proposed_before_the_vectors_that_it_scales(program: str, heads: int) -> None:
    """And one that is in the location of a vector with it."""
    head = "(half_cauchy 2)" if heads else "(normal 0 1)"
    venture = compiled(f"[assume s (tag 'x 0 {head})] " + program, "(compile p x all 'worlds 300)", **regression())
    (kind,) = proposers_of(venture.traces[0])["p"].kinds.values()
    assert len(kind.frame.heads) == heads
    assert kind.frame.size == 4 - heads
    assert_density_is_of_draws(venture, 1500)
    found = venture.infer("(repeat 100 (do (compiled_mh p x all 1) (collect s)))")
    assert found.statistics[0].details["acceptance of learned proposals"] > 0.3


@pytest.mark.parametrize("gradient", [MULTIVARIATE_NORMAL, MULTIVARIATE_NORMAL_CHOLESKY])
def test_a_matrix_that_is_given_for_each_row_is_that_of_all(gradient: Gradient) -> None:
    rng = np.random.default_rng(2)
    values, mean, matrix = rng.normal(size=(4, 2)), np.zeros(2), np.array([[2.0, 0.0], [0.5, 1.0]])
    matrix = matrix if gradient is MULTIVARIATE_NORMAL_CHOLESKY else matrix @ matrix.T
    wanted = (True, False, False)
    shared = gradient.evaluate((True, False, False), wanted, values, mean, matrix)[0]
    each = gradient.evaluate((True, False, True), wanted, values, mean, np.stack([matrix] * 4))[0]
    assert np.array_equal(shared, each)
    with pytest.raises(RowByRow):
        gradient.evaluate((True, False, True), wanted, values, mean, np.stack([matrix] * 3 + [2.0 * matrix]))
    assert math.isfinite(each.sum())
