"""`nuts` and what it learns in a warm-up: trajectories, windows, scales by site, refusals, draws that do not count."""

from __future__ import annotations

import math
import warnings
from functools import partial

import numpy as np
import pytest

from venture_lite import Venture, VentureError
from venture_lite.audit.snapshot import snapshot
from venture_lite.engines.adaptation import DualAveraging, FirstScales, Scales, Tuner, Windows, shrunk
from venture_lite.engines.nuts.trajectory import MOST_DEPTH, Trajectory
from venture_lite.engines.nuts.vectors import MOST_NUMBERS, Vector, vectors_of
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.trace.nodes import node_at

SCHOOLS = """
    [assume level (normal 0 5)] [assume scale (half_cauchy 5)] [assume effect (mem (lambda (j) (normal 0 1)))]
    for j in 1...8: [observe (normal (+ level (* scale (effect j))) {sd[j]}) {y[j]}]
"""
DATA = {"y": [28.0, 8, -3, 7, -1, 1, 18, 12], "sd": [15.0, 10, 16, 11, 9, 11, 10, 18]}


def normal(sds: np.ndarray, free: Vector) -> tuple[float, Vector]:
    """Independent normals."""
    found = -0.5 * float(np.sum((np.asarray(free) / sds) ** 2)), -np.asarray(free) / sds**2
    return found if isinstance(free, np.ndarray) else (found[0], tuple(found[1].tolist()))


def trajectory(
    sds: np.ndarray, step: float, rng: np.random.Generator, root: np.ndarray | None = None, free: Vector | None = None
) -> Trajectory:
    """Over arrays, or numbers where it begins at these."""
    free = np.zeros(len(sds)) if free is None else free
    vectors = vectors_of(np.ones(len(sds)) if root is None else root, isinstance(free, tuple))
    return Trajectory(partial(normal, sds), vectors, free, normal(sds, free), step, rng)


def test_a_trajectory_stops_at_half_a_turn() -> None:
    """Of a standard normal a turn is 2 pi long: it is seen when the path is longer than half of that, and before it has
    doubled once more."""
    lengths = []
    for seed in range(100):
        path = trajectory(np.ones(20), 0.1, np.random.default_rng(seed))
        path.draw()
        lengths.append(0.1 * path.steps)
    assert min(lengths) > 1.5
    assert max(lengths) < 2.0 * math.pi


def test_a_trajectory_is_no_longer_than_its_depth_allows() -> None:
    path = trajectory(np.ones(2), 1e-5, np.random.default_rng(1))
    path.draw()
    assert path.depth == MOST_DEPTH
    assert path.steps == 2**MOST_DEPTH - 1


def test_an_energy_that_leaves_is_a_divergence() -> None:
    path = trajectory(np.array([1e-3]), 1.0, np.random.default_rng(1))
    end = path.draw()
    assert path.diverged is not None
    assert end is path.start


def test_a_metric_makes_scales_alike() -> None:
    """The same draws come of the same numbers, stretched."""
    sds = np.array([1e-3, 1.0, 1e3])
    expected = trajectory(np.ones(3), 0.3, np.random.default_rng(5)).draw().free
    for root in (sds, np.diag(sds)):
        found = trajectory(sds, 0.3, np.random.default_rng(5), root).draw()
        np.testing.assert_allclose(found.free / sds, expected)


@pytest.mark.parametrize("size", [1, 3, MOST_NUMBERS])
@pytest.mark.parametrize("is_dense", [False, True])
def test_trajectories_over_numbers_are_those_over_arrays(size: int, is_dense: bool) -> None:
    """Of as many states, and ending at the same one. Noticed: a root that is not transposed for slopes, a half step
    too many, ends of subtrees that are exchanged."""
    rng = np.random.default_rng(size)
    sds = np.exp(rng.normal(size=size))
    root = np.tril(rng.normal(size=(size, size)) * 0.2) + np.diag(sds) if is_dense else sds
    for seed in range(60):
        free = rng.normal(size=size)
        arrays, numbers = (
            trajectory(sds, 0.4, np.random.default_rng(seed), root, given) for given in (free, tuple(free.tolist()))
        )
        one, other = arrays.draw(), numbers.draw()
        assert (arrays.steps, arrays.depth) == (numbers.steps, numbers.depth)
        np.testing.assert_allclose(other.free, one.free, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(other.momentum, one.momentum, rtol=1e-9, atol=1e-12)
        assert numbers.acceptance == pytest.approx(arrays.acceptance, rel=1e-9)


@pytest.mark.thorough
def test_states_are_drawn_by_their_weights() -> None:
    """Steps of 1.6 in a normal of sds 1 and 8: paths are long, and their energies differ by nats. Within five standard
    errors of batches of 100 draws of a chain, four of them: one false alarm in 4 * 10^5. Noticed: a state of a subtree
    that is drawn whatever its weight, a half that is always taken, an energy without momenta."""
    sds, rng = np.array([1.0, 8.0]), np.random.default_rng(1)
    here, draws = np.zeros(2), []
    for _ in range(4000):
        here = trajectory(sds, 1.6, rng, free=here).draw().free
        draws.append(here / sds)
    found = np.concatenate((np.array(draws) ** 2, np.array(draws) ** 4), axis=1)
    batches = found.reshape(40, 100, 4).mean(axis=1)
    assert np.all(abs(found.mean(axis=0) - [1, 1, 3, 3]) < 5.0 * batches.std(axis=0, ddof=1) / math.sqrt(40.0))


def test_windows_are_those_of_stan() -> None:
    windows = Windows(1000)
    assert (windows.start, windows.stop) == (75, 950)
    assert sorted(windows.ends) == [100, 150, 250, 450, 950]
    few = Windows(100)
    assert (few.start, few.stop, few.ends) == (15, 90, {90})


def test_windows_begin_soon_where_a_path_knows_few_of_the_scales() -> None:
    """The path is followed after the kernel was compiled. Seen to fail where it is asked for before, and where the
    covariance of a path is not looked at."""
    assert sorted(Windows(1000, soon=True).ends) == [25, 55, 115, 235, 850]
    (model,) = Venture(seed=1).traces
    for is_joint, end in ((False, 25), (True, 100)):
        first = FirstScales()
        tuner = Tuner(0.0, 0.8, 1000, finds=True, first=first)
        first.variances[node_at(0, 0)] = np.ones(1)
        if is_joint:
            first.joint.append(({node_at(0, 0): slice(0, 1)}, np.ones((1, 1))))
        at, where = Selection(model, "default", Selector("all")), {node_at(0, 0): slice(0, 1)}
        learned: list[int] = []
        for at.runs in range(1, 151):
            tuning = tuner.begin([node_at(0, 0)], at)
            tuner.learn(tuning, 0.8, where, np.array([float(at.runs % 2)]))
            learned += [at.runs] * (tuning.closed > len(learned))
        assert learned[0] == end + 1


def test_steps_find_the_acceptance_that_is_asked_for() -> None:
    """Where acceptance falls as exp(-step) the step for 0.8 is -log 0.8."""
    step = DualAveraging(1.0, 0.8)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        step.learn(min(1.0, math.exp(-step.now) * rng.uniform(0.9, 1.1)))
    step.settle()
    assert step.now == pytest.approx(-math.log(0.8), rel=0.05)


def test_a_covariance_is_shrunk_towards_its_own_variances() -> None:
    found = np.array([[4.0, 2.0], [2.0, 1e6]])
    np.testing.assert_allclose(shrunk(found, 5), [[2.0 + 0.002, 1.0], [1.0, 0.5e6 + 500.0]])


def test_choices_that_come_and_go_take_the_scale_of_their_site() -> None:
    rng = np.random.default_rng(0)
    here, there, late, other = node_at(3, 0), node_at(3, 1), node_at(3, 2), node_at(4, 0)
    for is_dense in (False, True):
        scales = Scales(is_dense, {})
        both = {here: slice(0, 1), there: slice(1, 2)}
        for _ in range(300):
            scales.note(both, 2.0 * rng.standard_normal(2))
        scales.close()
        where = {here: slice(0, 1), late: slice(1, 2), other: slice(2, 3)}
        root = scales.root(where, 3)
        sds = np.sqrt(np.diag(root @ root.T)) if is_dense else root
        assert sds[0] == pytest.approx(2.0, rel=0.2)
        assert sds[1] == pytest.approx(2.0, rel=0.2)
        assert sds[2] == 1.0
        if is_dense:
            assert not np.any(np.tril(root, -1)[1:])


def test_a_covariance_is_learned_from_enough_states() -> None:
    """Among 30 states of 40 coordinates some directions do not vary; among 80 all do."""
    rng, where = np.random.default_rng(0), {node_at(3, 0): slice(0, 40)}
    scales = Scales(True, {})
    for count, least in ((30, 0.5), (80, 0.02)):
        for _ in range(count):
            scales.note(where, rng.standard_normal(40))
        scales.close()
        smallest = np.linalg.svd(scales.root(where, 40), compute_uv=False)[-1]
        assert smallest > least
    assert np.any(np.tril(scales.root(where, 40), -1))


@pytest.mark.parametrize("apart", [True, False])
def test_one_site_has_scales_that_differ_by_orders_of_magnitude(apart: bool) -> None:
    """As choices of their own, and as coordinates of one; a coordinate that never moved takes the site's."""
    rng, sds = np.random.default_rng(0), np.array([1e3, 1.0, 1e-3, 0.0])
    scales = Scales(False, {})
    where = {node_at(3, at): slice(at, at + 1) for at in range(4)} if apart else {node_at(3, 0): slice(0, 4)}
    for _ in range(100):
        scales.note(where, sds * rng.standard_normal(4))
    scales.close()
    root = scales.root(where, 4)
    np.testing.assert_allclose(root[:3] / sds[:3], np.ones(3), rtol=0.5)
    assert 0.5 < root[3] < 2.0


@pytest.mark.thorough
def test_a_hierarchy_is_found_from_the_prior() -> None:
    """Eight schools: a level of 4.4 and a scale of 3.6 (Gelman et al. 2013, Bayesian data analysis, section 5.5, with
    these priors), within six standard errors of 400 effective draws."""
    v = Venture(seed=1, chains=2)
    v.execute(SCHOOLS, **DATA)
    draws = v.infer("(repeat 1000 (do (nuts default all 'adapt 300 1) (collect level scale)))")
    assert draws.adapting == ({"level": 300, "scale": 300},) * 2
    assert abs(np.mean(draws["level"][:, 300:]) - 4.4) < 6.0 * 3.3 / 20.0
    assert abs(np.mean(draws["scale"][:, 300:]) - 3.6) < 6.0 * 3.2 / 20.0
    details = draws.statistics[0].details
    assert 0.7 < details["mean acceptance probability"] < 0.95
    assert details["divergences"] <= 5.0
    assert details["energy fraction"] > 0.3
    assert "not counted: 300 warm-up draws a chain" in str(draws.summary())


@pytest.mark.thorough
def test_energies_that_other_kernels_change_are_no_tail() -> None:
    """A normal level of sixty data, half of which have a shift: where `gibbs` draws the shifts the energy varies by
    them, and no fraction is told; where they stay it is about 1, as where it draws one of them now and then."""
    v = Venture(seed=2)
    v.execute("""[assume level (normal 0 1)] [assume shifted (mem (lambda (i) (flip 0.5)))]
        for i in 1...60: [observe (normal (+ level (if (shifted i) 1 0)) 1) 0.5]""")
    found = {}
    for kernel in ("(gibbs (choices shifted) all 'forward 1)", "(gibbs (choices shifted) one 1)", ""):
        draws = v.infer(f"(repeat 400 (do (nuts (choices level) all 'adapt 100 1) {kernel} (collect level)))")
        found[kernel] = draws.statistics[0].details.get("energy fraction")
    of_all, of_one, alone = found.values()
    assert of_all is None
    assert 0.6 < of_one < 1.7
    assert 0.6 < alone < 1.7


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", ["(hmc default all 1 5 'adapt 300 1)", "(mala default each 1 'adapt 300 1)"])
def test_paths_of_a_chosen_length_find_their_step_and_scales(kernel: str) -> None:
    """Coordinates whose sds are 9.95 and 0.00995 of one step; means of 29.7 and 0.0198, within six standard errors of a
    fifth as many draws."""
    v = Venture(seed=1)
    v.execute(
        "[assume a (normal 0 100)] [assume b (normal 0 0.1)] [observe (normal a 10) 30] [observe (normal b 0.01) 0.02]"
    )
    draws = v.infer(f"(repeat 1300 (do {kernel} (collect a b)))")
    assert draws.adapting == ({"a": 300, "b": 300},)
    counted = {name: draws[name].ravel()[300:] for name in ("a", "b")}
    for name, mean, sd in (("a", 29.7, 9.95), ("b", 0.0198, 0.00995)):
        assert abs(np.mean(counted[name]) - mean) < 6.0 * sd / math.sqrt(200.0)
        assert np.std(counted[name]) == pytest.approx(sd, rel=0.3)
    details = draws.statistics[0].details
    assert details["mean move in sds"] > 0.3
    target = 0.8 if "hmc" in kernel else 0.57
    assert details["mean acceptance probability"] == pytest.approx(target, abs=0.2)


@pytest.mark.thorough
def test_a_later_infer_adapts_anew() -> None:
    v = Venture(seed=1)
    v.execute(SCHOOLS, **DATA)
    for _ in range(2):
        draws = v.infer("(repeat 60 (do (nuts default all 'adapt 40 1) (collect level)))")
        assert draws.adapting == ({"level": 40},)


def test_a_rejection_restores_the_trace() -> None:
    v = Venture(seed=1)
    v.execute(SCHOOLS, **DATA)
    v.infer("(mh default one 100)")
    before = snapshot(v.traces[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = v.infer("(nuts default all 'step 1000 20)")
    assert draws.statistics[0].accepted == 0
    assert draws.statistics[0].details["divergences"] == 20
    assert snapshot(v.traces[0]) == before


@pytest.mark.thorough
def test_choices_may_come_and_go_between_transitions() -> None:
    """The number of levels that are read changes by other transitions; blocks that were not there in warm-up move."""
    v = Venture(seed=1)
    v.execute(
        "[assume k (tag 'k 0 (uniform_discrete 1 6))] [assume x (mem (lambda (i) (tag 'x i (normal 0 2))))]"
        "[observe (normal (x k) 1) 2]"
    )
    for block in ("all", "each"):
        draws = v.infer(f"(repeat 300 (do (mh k one 3) (nuts x {block} 'adapt 100 2) (collect (labelled (x k) at))))")
        # normal of mean 1.6 and variance 0.8: six standard errors of a third as many draws
        assert abs(np.mean(draws["at"]) - 1.6) < 6.0 * math.sqrt(0.8 / 65.0)
        assert np.std(draws["at"]) == pytest.approx(math.sqrt(0.8), rel=0.25)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("(nuts default all 5)", "nuts is written (nuts SCOPE BLOCK 'step STEP"),
        ("(nuts default all 'adapt 10 5)", "BURN must be a whole number, 20 or more, got 10"),
        ("(nuts default all 'step -1 5)", "STEP must be a positive number, got -1"),
        ("(nuts k all 'step 1 5)", "is discrete"),
        ("(nuts j all 'step 1 5)", "< is applied to what depends on the block and has no derivative"),
    ],
)
def test_bad_input_is_refused(action: str, message: str) -> None:
    v = Venture(seed=1)
    v.execute(
        "[assume k (tag 'k 0 (flip))] [assume j (tag 'j 0 (normal 0 1))] [observe (normal (if (< j 0) 1 2) 1) 1]"
        "[assume x (normal 0 1)]"
    )
    with pytest.raises(VentureError) as caught:
        v.infer(action)
    assert message in str(caught.value)


@pytest.mark.thorough
def test_a_funnel_is_named() -> None:
    """Steps diverge where the scale is small, which is named; a narrow valley has no such side. Of eight seeds, all; of
    one chain half of them do."""
    v = Venture(seed=3, chains=8)
    v.execute(
        "[assume tau (half_cauchy 5)] [assume x (mem (lambda (i) (normal 0 tau)))]"
        "for i in 1...6: [observe (normal (x i) 10) {y[i]}]",
        y=[1, 2, -8, 4, 9, 3],
    )
    draws = v.infer("(do (initialize) (repeat 500 (do (nuts default all 'adapt 150 'target 0.6 1) (collect tau))))")
    assert "most of them where tau is small: a funnel" in str(draws.summary())
