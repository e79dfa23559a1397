"""`'precondition` moves a chain to where its scale holds, once; what has no mode that describes it is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engines.data_and_sessions import classes, node_of, venture
from venture_lite import KernelError, Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.gradients import Densities
from venture_lite.blocks.mode_search import search
from venture_lite.blocks.precondition import MOVED, Preconditioner
from venture_lite.draws.draws import Draws

CLASSES = """
[assume w (tag 'w 0 (multivariate_normal (zeros {D}) {S}))]
for n in 1...N: [observe (bernoulli (linear_logistic w {X[n]})) {Y[n]}]
"""
SCHOOLS = """
[assume mu (tag 'p 0 (normal 0 5))] [assume tau (tag 'p 1 (half_cauchy 5))]
[assume theta (mem (lambda (j) (tag 'p (+ j 2) (normal mu tau))))]
for j in 1...8: [observe (normal (theta j) {sd[j]}) {y[j]}]
"""
NON_CENTRED = """
[assume mu (tag 'p 0 (normal 0 5))] [assume tau (tag 'p 1 (half_cauchy 5))]
[assume eta (mem (lambda (j) (tag 'p (+ j 2) (normal 0 1))))]
for j in 1...8: [observe (normal (+ mu (* tau (eta j))) {sd[j]}) {y[j]}]
"""
EFFECTS = {"y": [28, 8, -3, 7, -1, 1, 18, 12], "sd": [15, 10, 16, 11, 9, 11, 10, 18]}
FAR = "[assume mu (tag 'mu 0 (normal 0 1000))] for n in 1...50: [observe (normal mu 1) {Y[n]}]"
KERNELS = ("mala w all 0.9", "hmc w all 0.7 3", "flymc w all auto 'map 0.5 'mala 0.9", "mh w all 'drift 1.2",
           "subsampled_mh w all 20 0 'drift 1.2")  # fmt: skip


def regression(count: int = 400, dimensions: int = 3) -> dict[str, object]:
    """From a draw of this prior to the mode it is some 40 posterior sds."""
    rng = np.random.default_rng(3)
    features = rng.standard_normal((count, dimensions))
    outcomes = rng.random(count) < 1 / (1 + np.exp(-features @ rng.standard_normal(dimensions)))
    return {"X": features, "Y": outcomes, "N": count, "D": dimensions, "S": 25.0 * np.eye(dimensions)}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.thorough
def test_a_chain_far_from_the_mode_is_moved_to_a_draw_of_the_normal_there(kernel: str) -> None:
    """Each chain its own. A normal at the mode of 5.5 sds in each coordinate, 1e-7."""
    v = Venture(seed=2, chains=2)
    v.execute(CLASSES, **regression())
    draws = v.infer(f"(repeat 150 (do ({kernel} 'precondition 1) (collect w)))")
    assert all(row.details[MOVED] == 1 for row in draws.statistics)
    mode = draws["w"].mean(axis=(0, 1))
    near = draws["w"][:, 0] - mode
    assert (np.abs(near) < 5.5 * draws["w"].std(axis=(0, 1)) + 0.5).all()
    assert not np.array_equal(near[0], near[1])
    # it goes on from there
    assert min(row.accepted for row in draws.statistics) > 5
    for model in v.traces:
        check(model)


def test_a_chain_that_is_where_its_scale_holds_stays() -> None:
    data = regression()
    drawn, v = venture(CLASSES, **data), venture(CLASSES, **data)
    drawn.infer("(mala w all 0.9 'precondition 200)")
    v.force("w", drawn.report("w"))
    (row,) = v.infer("(mala w all 0.9 'precondition 1)").statistics
    assert MOVED not in row.details


def test_what_was_drawn_before_counts_as_adaptation() -> None:
    v = venture(FAR, Y=np.linspace(-1, 1, 50))
    kernel = "(mala mu all 1 'precondition 1)"
    draws = v.infer(
        f"(do (repeat 3 (do (mh mu all 'drift 0.1 1) (collect mu))) (repeat 20 (do {kernel} (collect mu))))"
    )
    assert draws.adapting == ({"mu": 3},)
    assert draws.without_adaptation()["mu"].shape == (1, 20)
    assert np.abs(draws["mu"][0, :3]).min() > 10 > np.abs(draws["mu"][0, 3:]).max()


def test_a_block_is_moved_once_for_an_action() -> None:
    """Another kernel takes it away after each transition; the second action finds the scale made."""
    v = venture(FAR, Y=np.linspace(-1, 1, 50))
    draws = v.infer(
        "(repeat 5 (do (mala mu all 1 'precondition 1) (mh mu all 'drift 900 1) (hmc mu all 1 2 'precondition 1)))"
    )
    assert isinstance(draws, Draws)
    mala, _, hmc = draws.statistics
    assert mala.details[MOVED] == mala.details["set-ups made"] == 1
    assert MOVED not in hmc.details
    assert hmc.details["set-ups kept"] == 1


@pytest.mark.parametrize("stood", [True, False])
def test_a_block_that_appears_later_is_not_moved(stood: bool) -> None:
    v = venture(FAR, Y=np.linspace(-1, 1, 50))
    model, node = v.traces[0], node_of(v.traces[0], "mu")
    preconditioner = Preconditioner(Densities(model, "mala", print))
    preconditioner.begin([node] if stood else [])
    before = v.report("mu")
    preconditioner.settle([node])
    assert (v.report("mu") != before) == stood
    assert (MOVED in preconditioner.details()) == stood


@pytest.mark.thorough
def test_a_choice_that_comes_and_goes_has_a_scale_when_it_comes() -> None:
    v = venture(
        """[assume c (tag 'c 0 (flip))] [assume a (tag 's 1 (normal 0 1000))] [force c false]
        [assume x (if c (tag 's 2 (normal 0 1000)) 0)] [observe (normal a 1) 0]"""
    )
    (row, *_) = v.infer("(repeat 40 (do (mala s each 1 'precondition 1) (mh c all 1)))").statistics
    assert row.details["set-ups made"] >= 2
    assert row.details[MOVED] == 1


@pytest.mark.parametrize("kernel", ["hmc p all 0.5 5", "mala p all 0.8", "mh p all 'drift 0.7"])
@pytest.mark.thorough
def test_a_density_that_grows_without_end_has_no_mode(kernel: str) -> None:
    """As tau goes to 0 with all theta at mu."""
    v = venture(SCHOOLS, **EFFECTS)
    before = snapshot(v.traces[0])
    with pytest.raises(KernelError, match=r"left for the edge of the free coordinates.* still growing") as caught:
        v.infer(f"({kernel} 'precondition 1)")
    assert caught.value.span is not None
    assert caught.value.span.text == "(half_cauchy 5)"
    assert "no 'precondition" in (caught.value.hint or "")
    assert snapshot(v.traces[0]) == before


def test_the_same_model_with_a_mode_is_moved() -> None:
    v = venture(NON_CENTRED, **EFFECTS)
    (row,) = v.infer("(mala p all 0.7 'precondition 50)").statistics
    assert 10 < row.accepted < 50


def test_a_series_observed_with_noise_of_unknown_scale_is_refused() -> None:
    v = venture(
        """[assume r (tag 'p 0 (gamma 2 2))]
        [assume x (mem (lambda (t) (tag 'p t (if (= t 1) (normal 0 1) (normal (* 0.8 (x (- t 1))) 0.5)))))]
        for t in 1...4: [observe (normal (x t) r) {y[t]}]""",
        y=[0.3, 0.5, -0.2, 0.1],
    )
    with pytest.raises(VentureError, match="left for the edge") as caught:
        v.infer("(hmc p all 0.5 5 'precondition 1)")
    assert caught.value.span is not None
    assert caught.value.span.text == "(gamma 2 2)"


def test_a_normal_that_does_not_describe_the_density_is_refused() -> None:
    """The log density falls by the eighth power: near the mode it is flat, and no normal is."""
    program = "[assume x (tag 'x 0 (normal 0 1000))] [assume y (* x x x x)] [observe (normal y 1e-3) 0]"
    with pytest.raises(KernelError, match="the normal at the block's mode does not describe") as caught:
        venture(program).infer("(mala x all 0.5 'precondition 1)")
    assert caught.value.hint


def test_a_search_leaves_a_saddle() -> None:
    """Two modes at -1 and 1, the gradient at 0 being 0."""

    def evaluate(free: np.ndarray) -> tuple[float, np.ndarray]:
        x, y = free
        return float(-((x * x - 1) ** 2) - y * y), np.array([-4 * x * (x * x - 1), -2 * y])

    peak = search(evaluate, np.zeros(2))
    assert peak.is_maximum
    assert np.abs(peak.at) == pytest.approx([1.0, 0.0], abs=1e-4)
    assert peak.curvature == pytest.approx(np.diag([8.0, 2.0]), abs=1e-3)


def test_a_search_ends_at_a_kink_and_on_a_plateau() -> None:
    def kink(free: np.ndarray) -> tuple[float, np.ndarray]:
        return float(-np.abs(free).sum() - free @ free), -np.sign(free) - 2 * free

    def plateau(free: np.ndarray) -> tuple[float, np.ndarray]:
        x, _ = free
        return -float(x * x), np.array([-2 * x, 0.0])

    assert search(kink, np.array([0.7, -0.4])).is_maximum
    assert search(plateau, np.array([3.0, 1.0])).is_maximum


def test_the_same_scale_serves_one_infer_after_another() -> None:
    data = classes(400)
    v = venture(CLASSES, **data, D=2, S=np.eye(2))
    first, second = (v.infer("(mala w all 0.9 'precondition 20)").statistics[0] for _ in "ab")
    assert first.details["set-ups made"] == 1
    assert second.details["set-ups kept"] == 1
    # 20 points and the one before; the search's evaluations are in the first alone
    assert second.rows == 21 * 401 < first.rows - 20 * 400
