"""`hmc`, `mala` and `'precondition`: steps that must be corrected, what is refused, what is told, and the trace after
rejections, errors and interruptions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.engines.data_and_sessions import classes, venture
from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.draws.draws import Draws

KERNELS = ("(hmc b all 0.4 5 {n})", "(mala b all 0.4 {n})", "(hmc b all 0.4 5 'precondition {n})",
           "(mala b all 0.7 'precondition {n})", "(mh b all 'drift 0.7 'precondition {n})")  # fmt: skip
LEVELS = """
[assume s (tag 'b 0 (gamma 2 2))]
[assume low (tag 'b 1 (normal 0 s))]
[assume x (tag 'b 2 (uniform_continuous low (+ low 2)))]
[assume p (tag 'b 3 (dirichlet (vector 2 2 2)))]
[observe (normal x (lookup p 0)) 0.8]
"""
CLASSES = """
[assume w (tag 'w 0 (multivariate_normal (vector 0 0) (matrix (list 10 0) (list 0 10))))]
[assume y (lambda (x) (bernoulli (linear_logistic w x)))]
for n in 1...N: [observe (y {X[n]}) {Y[n]}]
"""


def details(v: Venture, kernel: str) -> dict[str, float]:
    draws = v.infer(kernel)
    assert isinstance(draws, Draws)
    return dict(draws.statistics[-1].details)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_rejection_restores_the_trace(kernel: str) -> None:
    """Steps of 300 end where nothing is accepted; the trace is as it was, bit for bit."""
    v = venture(LEVELS)
    before = snapshot(v.traces[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = v.infer(kernel.replace("0.4", "300").replace("0.7", "300").format(n=20))
    assert draws.statistics[0].accepted == 0
    assert snapshot(v.traces[0]) == before


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.thorough
def test_accepted_states_are_valid(kernel: str) -> None:
    v = venture(LEVELS)
    v.infer("(mh b all 300)")
    assert v.infer(kernel.format(n=40)).statistics[0].accepted > 5
    check(v.traces[0])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.thorough
def test_an_interruption_leaves_a_state_of_the_chain(kernel: str) -> None:
    for polls in (1, 2, 5, 21, 55):
        v = venture(LEVELS)
        v.infer(kernel.format(n=2))
        before = snapshot(v.traces[0])
        v.traces[0].interrupt_after = polls
        with pytest.raises(KeyboardInterrupt):
            v.infer(kernel.format(n=1000))
        check(v.traces[0])
        if polls == 1:
            assert snapshot(v.traces[0]) == before


@pytest.mark.filterwarnings("ignore::venture_lite.errors.VentureWarning")
@pytest.mark.thorough
def test_a_seed_gives_one_chain() -> None:
    for kernel in KERNELS:
        one, other = (
            venture(LEVELS, seed=4).infer(f"(repeat 20 (do {kernel.format(n=1)} (collect x p)))") for _ in "ab"
        )
        assert np.array_equal(one["x"], other["x"])


def test_mala_is_a_path_of_one_step() -> None:
    one, other = (
        venture(LEVELS).infer(f"(repeat 50 (do {kernel} (collect x)))")["x"]
        for kernel in ("(mala b all 0.5 2)", "(hmc b all 0.5 1 2)")
    )
    assert np.array_equal(one, other)


@pytest.mark.thorough
def test_a_path_has_1_to_2_leapfrogs_less_1_steps() -> None:
    """All as likely (the mean of 900 numbers at 5.5 sds, 4e-8; none of 150 is one of nine at 2e-7); 'fixed ones are all
    as long, and so is a single one."""
    v = venture("[assume x (tag 'x 0 (normal 0 1))]")
    lengths = {v.infer("(hmc x all 0.1 5 1)").statistics[0].rows - 1 for _ in range(150)}
    assert lengths == set(range(1, 10))
    mean = (v.infer("(hmc x all 0.1 5 900)").statistics[0].rows - 1) / 900
    assert abs(mean - 5) < 5.5 * np.sqrt((81 - 1) / 12 / 900)
    assert v.infer("(hmc x all 0.1 5 'fixed 20)").statistics[0].rows == 1 + 20 * 5
    assert v.infer("(hmc x all 0.1 1 20)").statistics[0].rows == 1 + 20


@pytest.mark.thorough
def test_paths_of_half_a_period_do_not_resonate_by_default() -> None:
    """Ten steps of 0.3 are nearly pi: of a standard normal only the sign of a draw changes."""
    sds = []
    for option in ("'fixed ", ""):
        v = venture("[assume x (tag 'x 0 (normal 0 1))] [force x 2.0]")
        sds.append(np.std(v.infer(f"(repeat 400 (do (hmc x all 0.3 10 {option}1) (collect x)))")["x"]))
    assert sds[0] > 1.3
    assert sds[1] == pytest.approx(1.0, abs=0.15)


def test_energies_that_are_not_finite_are_divergences() -> None:
    """A funnel walked with steps that are too long leaves the floats; the path is refused and counted."""
    v = venture(
        "[assume s (tag 'b 0 (normal 0 3))] [assume x (tag 'b 1 (normal 0 (exp s)))] [observe (normal x 0.01) 5]"
    )
    found = details(v, "(hmc b all 2 20 100)")
    assert 0 < found["divergences"] <= 100
    check(v.traces[0])


def test_a_path_that_ends_where_there_is_no_density_is_told() -> None:
    v = venture("[assume s (tag 'b 0 (normal 3 1))] [observe (normal (log s) 0.1) 1]")
    with pytest.warns(UserWarning, match="a path ended where the density has no value: log: "):
        found = details(v, "(hmc b all 2 20 100)")
    assert 0 < found["divergences"] <= 100
    check(v.traces[0])


@pytest.mark.thorough
def test_short_steps_keep_the_energy() -> None:
    """The leapfrog's error of the energy is of second order: rejections go down by 16 where steps go down by 4."""
    v = venture(LEVELS)
    coarse = 1 - details(v, "(hmc b all 0.2 4 200)")["mean acceptance probability"]
    fine = 1 - details(v, "(hmc b all 0.05 16 100)")["mean acceptance probability"]
    assert 0 < fine < 0.2 * coarse


def test_the_present_points_gradient_is_computed_once() -> None:
    v = venture(CLASSES, **classes(400))
    assert v.infer("(mala w all 0.05 100)").statistics[0].rows == 101 * 401


@pytest.mark.parametrize("kernel", ["mala x all 1.2", "hmc x all 0.5 1"])
def test_the_present_point_is_evaluated_again_where_another_kernel_has_moved(kernel: str) -> None:
    v = venture("[assume y (tag 'y 0 (normal 0 3))] [assume x (tag 'x 0 (normal y 1))] [observe (normal x 1) 0]")
    per_point, times = v.infer(f"({kernel} 1)").statistics[0].rows / 2, 60
    others, paths = v.infer(f"(cycle ((mh y all 1) ({kernel} 1)) {times})").statistics
    assert 10 < others.accepted < times
    # the first point has to be evaluated anyway
    assert paths.rows / per_point - times in (others.accepted, others.accepted + 1)


@pytest.mark.thorough
def test_another_kernel_between_two_transitions_is_noticed() -> None:
    """The posterior of x given y moves with y: x is normal(y / 2, 1/2) a priori, and y is resimulated exactly."""
    v = venture("[assume y (tag 'y 0 (normal 0 3))] [assume x (tag 'x 0 (normal y 1))] [observe (normal x 1) 0]")
    draws = v.infer("(repeat 1500 (do (mh y all 1) (mala x all 1.2 4) (mh y all 'drift 2 3) (collect x y)))")
    x, y = np.asarray(draws["x"])[0], np.asarray(draws["y"])[0]
    # covariance of (y, x) given the observation: precisions 1/9 + 1 and 2, coupled by -1
    exact = np.linalg.inv([[1 / 9 + 1, -1], [-1, 2]])
    assert np.cov(y, x) == pytest.approx(exact, rel=0.35)


@pytest.mark.thorough
def test_a_preconditioner_brings_a_long_valley_into_shape() -> None:
    """Features of scales 1 and 30: a plain step that fits one direction is 30 times off in the other."""
    data = classes(400, scale=30.0)
    acceptance = []
    for option in ("", "'precondition "):
        v = venture(CLASSES, **data)
        v.infer("(mh w all 'drift 0.1 'precondition 300)")
        acceptance.append(details(v, f"(mala w all 0.8 {option}300)")["mean acceptance probability"])
    assert acceptance[0] < 0.05
    assert acceptance[1] > 0.7


@pytest.mark.parametrize(
    ("program", "kernel", "name"),
    [
        (CLASSES, "(mala w all 0.5 'precondition 5)", "the Hessian"),
        (CLASSES, "(mh w all 'drift 0.5 'precondition 5)", "the Hessian"),
        (CLASSES, "(subsampled_mh w all 50 0.1 'drift 0.5 'precondition 5)", "the Hessian"),
        (LEVELS, "(hmc b all 0.3 3 'precondition 5)", "the Hessian"),
        ("[assume w (tag 'w 0 (laplace 0 1))]", "(mala w all 0.5 'precondition 5)", "the magnitudes of the Hessian"),
    ],
)  # fmt: skip
def test_the_statistics_say_which_curvature_scales_the_steps(program: str, kernel: str, name: str) -> None:
    v = venture(program, **(classes(400) if "{X" in program else {}))
    assert details(v, kernel)[f"blocks preconditioned by {name}"] == 1


DISCONTINUOUS = "[assume mu (tag 'b 0 (normal 0 1))] "


@pytest.mark.parametrize("kernel", ["hmc b {} 0.1 3 2", "mala b {} 0.1 2", "mh b {} 'drift 0.1 'precondition 2"])
@pytest.mark.parametrize(
    ("program", "message", "place"),
    [
        (DISCONTINUOUS + "[observe (normal (if (< mu 0) 1 2) 1) 0]", "< is applied to what depends", "(< mu 0)"),
        (DISCONTINUOUS + "[observe (normal (if (< mu 0) (flip) 2) 1) 0]", "taken depends on", "(if (< mu 0) (flip) 2)"),
        (DISCONTINUOUS + "[observe (normal (floor mu) 1) 0]", "floor is applied to what depends", "(floor mu)"),
        (DISCONTINUOUS + "[assume k (round mu)] [observe (normal k 1) 0]", "round is applied to what", "(round mu)"),
        (DISCONTINUOUS + "[observe (bernoulli (< mu 0)) true]", "has no derivative", "(< mu 0)"),
        (DISCONTINUOUS + "[assume f (make_gp 0 (gp_matern 1 1 1.5))] [observe (f mu) 1]", "given depends on", "(f mu)"),
        (DISCONTINUOUS + "[assume f (mem (lambda (i) (normal 0 1)))] [predict (f mu)]", "depends on mu", "(f mu)"),
        ("[assume k (tag 'b 0 (poisson 2))]", "moves continuous choices; poisson is discrete", "(poisson 2)"),
        ("[assume f (make_normal_inv_chi_sq 0 1 1 1)] [assume x (tag 'b 0 (f))]", "has no density of its own", "(f)"),
    ],
)  # fmt: skip
@pytest.mark.thorough
def test_what_jumps_is_refused_before_anything_moves(program: str, message: str, place: str, kernel: str) -> None:
    for block in ("all", "one", "each", "0"):
        v = venture(program)
        before = snapshot(v.traces[0])
        with pytest.raises(VentureError, match=message) as caught:
            v.infer(f"({kernel.format(block)})")
        assert caught.value.span is not None
        assert caught.value.span.text == place
        assert snapshot(v.traces[0]) == before


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("(hmc b all 0 3 1)", "STEP must be a positive number"),
        ("(hmc b all 0.1 0 1)", "LEAPFROGS must be 1 or more"),
        ("(hmc b all 0.1 2.5 1)", "LEAPFROGS must be a whole number"),
        ("(mala b all -1 1)", "STEP must be a positive number"),
        ("(mala b all 0.1)", "mala is written"),
        ("(mala b all 0.1 'scaled 1)", "mala knows no such option"),
        ("(hmc b all 0.1 3 'precondition 'precondition 1)", "hmc is written"),
        ("(mh b all 'drift 0.1 'scaled 1)", "mh knows no such option"),
        ("(subsampled_mh b all 10 0.1 'precondition 1)", "subsampled_mh takes 'precondition with 'drift only"),
    ],
)
def test_what_is_written_wrongly_is_told(kernel: str, message: str) -> None:
    v = venture(LEVELS)
    with pytest.raises(VentureError, match=message) as caught:
        v.infer(kernel)
    assert caught.value.span is not None


@pytest.mark.parametrize(
    "kernel",
    [
        "(hmc default each 0.1 3 5)",
        "(hmc default all 0.1 3 'precondition 5)",
        "(mala default each 0.1 'precondition 5)",
        "(mh default each 'drift 0.1 'precondition 5)",
    ],
)
def test_shares_of_one_entry_have_no_free_coordinate(kernel: str) -> None:
    v = Venture(seed=1)
    v.execute("[assume p (symmetric_dirichlet 2 1)] [observe (normal (lookup p 0) 1) 0.3]")
    v.infer(kernel)
    assert v.report("p").tolist() == [1.0]
