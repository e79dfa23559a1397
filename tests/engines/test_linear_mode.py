"""The search for a linear block's mode, and the curvature that scales steps, at kinks and from minibatches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.posterior.derive import Grid
from tests.statistics import Expected, assert_chain_agrees
from venture_lite import Venture
from venture_lite.blocks import linear_mode
from venture_lite.blocks.curvature import hessian_by_differences
from venture_lite.blocks.linear_block import LinearBlock
from venture_lite.blocks.linear_mode import is_near_mode
from venture_lite.blocks.sections import Sections

# the columns of its features are orthogonal, so that a Laplace prior's mode has a closed form
ORTHOGONAL = np.array([[1, 1, 1], [1, -1, 1], [1, 1, -1], [1, -1, -1]], dtype=np.float64)
SPARSE = """
[assume a (scope_include 'w 0 (laplace 0 0.2))] [assume b (scope_include 'w 0 (laplace 0.5 0.2))]
[assume c (scope_include 'w 0 (laplace 0 0.2))]
for n in 1...N: [observe (normal (+ (* a {X[n,1]}) (* b {X[n,2]}) (* c {X[n,3]})) 1) {Y[n]}]
"""
CLASSES = """
[assume w (scope_include 'w 0 (multivariate_normal (vector 0 0 0) (matrix (list 1 0 0) (list 0 1 0) (list 0 0 1))))]
for n in 1...N: [observe (bernoulli (logistic (+ {O[n]} (dot w {X[n]})))) {Y[n]}]
"""
RIDGE = """
[assume w (scope_include 'w 0 (multivariate_normal (vector 1 0) (matrix (list 0.2 0.1) (list 0.1 0.3))))]
for n in 1...N: [observe (normal (+ {O[n]} (dot w {X[n]})) 0.5) {Y[n]}]
"""


def linear(v: Venture, scope: str = "w") -> LinearBlock:
    model = v.traces[0]
    block = model.trace.scopes[scope].everything()
    return LinearBlock(model, Sections.of(model, block), block)


def sparse(target: Any) -> Venture:
    v = Venture(seed=1)
    v.execute(SPARSE, X=ORTHOGONAL, Y=target, N=4)
    return v


def test_a_normal_blocks_mode_is_its_posterior_mean() -> None:
    """Six rows, so that the prior has its say; of a quadratic the search needs few evaluations."""
    rng = np.random.default_rng(3)
    features, offset, target = rng.standard_normal((6, 2)), rng.standard_normal(6), rng.standard_normal(6)
    v = Venture(seed=1)
    v.execute(RIDGE, X=features, O=offset, Y=target, N=6)
    block = linear(v)
    prior = np.linalg.inv([[0.2, 0.1], [0.1, 0.3]])
    precision = prior + features.T @ features / 0.25
    mean = np.linalg.solve(precision, prior @ [1, 0] + features.T @ (target - offset) / 0.25)
    assert block.gradient(np.zeros(2)) == pytest.approx(precision @ mean)
    assert block.hessian(np.zeros(2)) == pytest.approx(-precision, rel=1e-6)
    mode, norm, evaluations = block.mode(start=np.zeros(2))
    assert mode == pytest.approx(mean, abs=1e-6)
    assert norm < 1e-6
    assert evaluations < 9


def test_a_name_of_a_memoized_value_is_read_as_the_call() -> None:
    for eta in ("first", "(e 1)", "(+ first {X[n]})"):
        v = Venture(seed=1)
        v.execute(
            f"""
            [assume e (mem (lambda (i) (scope_include 'w i (normal 0 2))))]
            [assume first (e 1)]
            for n in 1...3: [observe (normal {eta} 1) {{Y[n]}}]
            """,
            X=[0.5, 1.0, 1.5],
            Y=[1.0, 2.0, 3.0],
        )
        (kind,) = linear(v).kinds
        assert kind.features.tolist() == [[1.0], [1.0], [1.0]]


def test_a_laplace_priors_mode_is_on_its_kinks() -> None:
    """Soft thresholds: of 4 rows with features of size 1 the least squares estimate moves by 1 / (0.2 * 4) = 1.25
    towards the prior's location, and no further."""
    v = sparse(ORTHOGONAL @ [2.0, 0.9, -1.0])
    block = linear(v)
    mode, _, evaluations = block.mode()
    assert mode == pytest.approx([0.75, 0.5, 0.0], abs=1e-8)
    assert evaluations < 15
    assert is_near_mode(block, mode, np.full(3, 4.0))
    for i in range(3):
        # a tenth of a sd is 0.05
        assert not is_near_mode(block, mode + 0.06 * np.eye(3)[i], np.full(3, 4.0))
        assert is_near_mode(block, mode + 0.04 * np.eye(3)[i], np.full(3, 4.0))


def test_a_search_from_where_the_likelihood_is_nearly_flat_comes_back() -> None:
    """There a whole step of Newton's method leads much too far. At the mode 20 logistic(w) + 1 / 2 = 12."""
    v = Venture(seed=1)
    v.execute(
        """[assume w (scope_include 'w 0 (laplace 0 2))]
        for n in 1...20: [observe (bernoulli (logistic w)) {Y[n]}]""",
        Y=[0] * 8 + [1] * 12,
    )
    block = linear(v)
    for start in (-8.0, 8.0):
        mode, _, _ = block.mode(start=np.array([start]))
        assert mode == pytest.approx([np.log(11.5 / 8.5)], abs=1e-6)


def test_samples_of_the_rows_add_up_to_all_of_them() -> None:
    rng = np.random.default_rng(4)
    features, offset, target = rng.standard_normal((6, 2)), rng.standard_normal(6), rng.standard_normal(6)
    v = Venture(seed=1)
    v.execute(RIDGE.replace("normal (+", "student_t 4 (+"), X=features, O=offset, Y=target, N=6)
    block, order, at = linear(v), [rng.permutation(6)], np.array([0.3, -0.4])
    halves = [linear_mode._sample(block, order, low, low + 0.5) for low in (0.0, 0.5)]
    for of in (LinearBlock.likelihood_gradient, LinearBlock.likelihood_hessian, LinearBlock.information):
        # each counts its rows twice
        assert of(halves[0], at) + of(halves[1], at) == pytest.approx(2 * of(block, at))


def test_a_kink_is_not_taken_for_curvature() -> None:
    """At the mode the prior's gradient jumps by 10 within a rounding error."""
    v = sparse(ORTHOGONAL @ [2.0, 0.9, -1.0])
    block = linear(v)
    mode, _, _ = block.mode()
    assert block.prior_hessian(mode) == pytest.approx(np.zeros((3, 3)), abs=1e-6)
    factor, name = block.preconditioner(mode)
    assert name == "Hessian"
    assert factor @ factor.T == pytest.approx(np.eye(3) / 4, abs=1e-6)


def test_a_smooth_gradient_has_its_hessian_and_one_that_jumps_the_one_beside() -> None:
    matrix = np.array([[3.0, 1.0], [1.0, 2.0]])
    for at in (np.array([0.0, 0.0]), np.array([0.0, 2.0]), np.array([1e-6, -3.0])):
        smooth = hessian_by_differences(lambda x: matrix @ x, at)
        kinked = hessian_by_differences(lambda x: matrix @ x + np.array([7.0 * np.sign(x[0]), 0.0]), at)
        assert smooth == pytest.approx(matrix, rel=1e-6)
        assert kinked == pytest.approx(matrix, rel=1e-6)
    assert np.isnan(hessian_by_differences(lambda x: None if x[1] > 1 else x, np.array([0.0, 1.0]))).any()


@pytest.mark.parametrize(
    "kernel", ["flymc w all auto 'map 0.3 'mala 0.8 'precondition", "mala w all 0.8 'precondition"]
)
@pytest.mark.thorough
def test_steps_are_scaled_by_fisher_information_and_the_priors_variance(kernel: str) -> None:
    """Fewer rows than weights: a Laplace prior has no curvature to make up for it, but a variance, 2 b^2."""
    v = Venture(seed=1)
    v.execute(
        """[assume a (scope_include 'w 0 (laplace 0 0.2))] [assume b (scope_include 'w 0 (laplace 0 0.2))]
        for n in 1...2: [observe (student_t 4 (+ (* a {X[n]}) (* 2 b {X[n]})) 0.7) {Y[n]}]""",
        X=[1.0, 2.0], Y=[0.3, 4.0],
    )  # fmt: skip
    details = v.infer(f"({kernel} 400)").statistics[0].details
    assert any("Fisher information" in name for name in details)
    accepted = details.get("acceptance", details.get("mean acceptance probability"))
    assert accepted is not None
    assert 0.4 < accepted < 0.98
    block = linear(v)
    factor, _ = block.preconditioner(np.zeros(2))
    # (4 + 1) / (4 + 3) / 0.7^2 for each row
    information = 5 / 7 / 0.49 * 5.0 * np.array([[1, 2], [2, 4]])
    assert np.linalg.inv(factor @ factor.T) == pytest.approx(information + np.eye(2) / 0.08, rel=0.15)


def posterior_of_a_sparse_slope() -> dict[str, Expected]:
    """Quadrature."""
    grid = Grid(-4.0, 4.0, 20_001)
    w = grid.points
    log_density = -np.abs(w) / 0.3
    for x, y in zip((-1.0, 0.5, 2.0), (0.4, 0.3, -0.5), strict=True):
        log_density = log_density - 2.5 * np.log1p((y - x * w) ** 2 / 4)
    return {"w": grid.cdf(log_density)}


@pytest.mark.parametrize(
    "kernel", ["flymc w all auto 'map 0.4 'mala 1.2 'precondition", "mala w all 1.3 'precondition"]
)
@pytest.mark.thorough
def test_a_preconditioned_block_at_a_kink_has_its_exact_posterior(kernel: str) -> None:
    """False alarms below 1e-6, see tests/statistics.py."""
    v = Venture(seed=1)
    v.execute(
        """[assume w (scope_include 'w 0 (laplace 0 0.3))]
        for n in 1...3: [observe (student_t 4 (* w {X[n]}) 1) {Y[n]}]""",
        X=[-1.0, 0.5, 2.0], Y=[0.4, 0.3, -0.5],
    )  # fmt: skip

    def more(n: int) -> dict[str, np.ndarray]:
        return {"w": np.asarray(v.infer(f"(repeat {n} (do ({kernel} 3) (collect w)))")["w"])[0]}

    assert_chain_agrees(more, posterior_of_a_sparse_slope(), draws=400, what=kernel)


@pytest.mark.thorough
def test_a_block_with_a_hierarchy_in_it_is_preconditioned_by_its_joint_density() -> None:
    """m is the mean of w: over both the precision is [[1, -1], [-1, 2]] and the rows add 3 to w's."""
    v = Venture(seed=1)
    v.execute(
        """[assume m (scope_include 'w 0 (normal 0 1))] [assume w (scope_include 'w 0 (normal m 1))]
        for n in 1...3: [observe (normal w 1) {Y[n]}]""",
        Y=[1.0, 2.0, 3.0],
    )
    draws = v.infer("(repeat 3000 (do (mala w all 1.1 'precondition 1) (collect m w)))")
    exact = np.linalg.inv([[2.0, -1.0], [-1.0, 4.0]])
    assert np.cov(draws["m"][0], draws["w"][0]) == pytest.approx(exact, rel=0.3, abs=0.03)
    assert draws.statistics[0].details["mean acceptance probability"] > 0.7


@pytest.mark.thorough
def test_minibatches_find_the_mode_of_many_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    features = rng.standard_normal((30_000, 3)) * [1.0, 3.0, 0.2]
    v = Venture(seed=1)
    offset = rng.standard_normal(30_000)
    rates = 1 / (1 + np.exp(-offset - features @ [1, -0.5, 2]))
    v.execute(CLASSES, X=features, O=offset, Y=rng.random(30_000) < rates, N=30_000)
    block = linear(v)
    exact, _, whole = block.mode()
    monkeypatch.setattr(linear_mode, "MANY_ROWS", 20_000)
    monkeypatch.setattr(linear_mode, "SAMPLE", 2_000)
    state = v.traces[0].trace.rng.bit_generator.state
    mode, norm, evaluations = block.mode()
    assert v.traces[0].trace.rng.bit_generator.state == state
    factor, _ = block.preconditioner(exact)
    assert np.abs(np.linalg.solve(factor, mode - exact)).max() < 0.05
    assert norm == pytest.approx(float(np.linalg.norm(block.gradient(mode))))
    assert evaluations <= whole / 2
    # from afar a Langevin step of this size leads too far
    v.force("w", exact)
    details = v.infer("(flymc w all auto 'map 0.01 'mala 1 'precondition 300)").statistics[0].details
    assert details["mean bright rows"] < 100
