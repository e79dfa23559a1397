"""Columns of labels, assignments over statistics, and particles, lanes and worlds in columns are held against the
interpreter where they are first used. Each test of something broken was seen to fail without that."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from tests.engines.test_anneal import CASES, FACES, URNS, chain
from tests.generator.session import check
from tests.statistics import Mean, assert_chain_agrees
from venture_lite import Venture
from venture_lite.blocks import restricted_columns, summed_columns, weighted_columns, worlds
from venture_lite.errors import ArgumentError, Disagreement, InternalError
from venture_lite.kernels import class_columns, class_terms, followers, population
from venture_lite.kernels.deferred import Deferred

pytestmark = pytest.mark.thorough
Patch = pytest.MonkeyPatch
Broken = Callable[[Patch], None]

LABELS = """[assume crp (make_crp 1)] [assume z (mem (lambda (i) (crp)))] [assume m (mem (lambda (k) (normal 0 3)))]
for n in 1...{N}: [observe (normal (m (z n)) 1) {y[n]}]"""
FEW, MANY = 8, 34
WEIGHTS = "(gibbs (choices z 'finite) all 'weights 1)"
SPLITS = "(slice default all 2 20 'weights 'splits 4 1)"
SPLIT_MERGE = "(split_merge default 3)"
KERNELS = (WEIGHTS, SPLITS, SPLIT_MERGE)


def changed(patch: Patch, owner: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Something is called as before, and gives something else."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *given, **named: change(original(*given, **named)))


def session(program: str, kernels: str, **parameters: Any) -> Venture:
    venture = Venture(seed=1, kernels=kernels)
    venture.execute(program, **parameters)
    return venture


def labels(kernel: str, count: int, kernels: str = "compiled", times: int = 2) -> list[np.ndarray]:
    """Draws of the labels and of a parameter."""
    y = np.where(np.arange(count) % 2, -2.0, 2.0) + np.linspace(0, 1, count)
    venture = session(LABELS, kernels, N=count, y=y)
    draws = venture.infer(f"(repeat {times} (do {kernel} (collect (map z (range 1 {count + 1})) (m (z 1)))))")
    check(venture)
    return [np.asarray(draws[name], float) for name in draws.names]


def are_equal(found: list[np.ndarray], expected: list[np.ndarray]) -> bool:
    return all(map(np.array_equal, found, expected))


def half_the_terms(patch: Patch) -> None:
    """What rows absorb in a class."""
    changed(patch, class_terms, "group_terms", lambda terms: 0.5 * terms)


def other_evaluations(patch: Patch) -> None:
    """Of parameters that are numbers."""
    for name in ("terms_of_lists", "terms_of_pairs"):
        changed(patch, class_terms.ClassAtHand, name, lambda terms: 0.5 * terms)


def a_bare_error(patch: Patch) -> None:
    def members(*given: Any) -> Any:
        raise IndexError("index 3 is out of bounds")

    patch.setattr(class_columns, "Members", members)


@pytest.mark.parametrize("broken", [half_the_terms, other_evaluations, a_bare_error])
@pytest.mark.parametrize("kernel", KERNELS)
def test_where_classes_are_weighed_wrongly_the_interpreter_draws_labels(
    kernel: str, broken: Broken, monkeypatch: Patch
) -> None:
    assert_interpreted(kernel, broken, FEW, monkeypatch)


@pytest.mark.parametrize("kernel", [WEIGHTS, SPLIT_MERGE, pytest.param(SPLITS, marks=pytest.mark.slow)])
def test_where_classes_of_many_labels_are_weighed_wrongly_the_interpreter_draws_them(
    kernel: str, monkeypatch: Patch
) -> None:
    assert_interpreted(kernel, half_the_terms, MANY, monkeypatch)


def assert_interpreted(kernel: str, broken: Broken, count: int, patch: Patch) -> None:
    expected = labels(kernel, count, "interpreted")
    broken(patch)
    with pytest.warns(Disagreement, match="classes of labels in columns: a fast way differs"):
        assert are_equal(labels(kernel, count), expected)
    with pytest.raises(InternalError, match="interpreted and compiled results differ"):
        labels(kernel, count, "checked", times=8)


def the_first_place(patch: Patch) -> None:
    """Labels are drawn, and all go to one class."""
    changed(patch, weighted_columns, "drawn_places", lambda found: 0 * found)


def the_labels_forgotten(patch: Patch) -> None:
    patch.setattr(summed_columns.SummedClasses, "_summed", lambda self, shares, *_: [0.0] * len(shares))


def the_pair_forgotten(patch: Patch) -> None:
    patch.setattr(restricted_columns.ColumnProposals, "_log_first", lambda self, move: 1.0)


@pytest.mark.parametrize(
    ("kernel", "broken"),
    [(WEIGHTS, the_first_place), (SPLITS, the_labels_forgotten), (SPLIT_MERGE, the_pair_forgotten)],
)
def test_where_labels_are_drawn_wrongly_a_checked_session_raises(
    kernel: str, broken: Broken, monkeypatch: Patch
) -> None:
    """Whole transitions are compared there."""
    broken(monkeypatch)
    with pytest.raises(InternalError, match=r"transitions of .*: interpreted and compiled results differ"):
        labels(kernel, FEW, "checked", times=8)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_a_checked_session_draws_the_same_labels(kernel: str, count: int) -> None:
    expected = labels(kernel, count)
    found = labels(kernel, count, "checked")
    assert are_equal(found[:1], expected[:1])
    assert found[1] == pytest.approx(expected[1], rel=1e-6)


# ------------------------------------------------------------------------------------------------ over statistics


def assigned(kernels: str) -> list[Any]:
    venture = session(URNS, kernels, x=FACES * 3, N=12)
    draws = venture.infer("(repeat 10 (do (anneal left constant 2) (collect (map left (range 1 13)))))")
    check(venture)
    return [draws[name].tolist() for name in draws.names]


def half_of_what_absorbs(patch: Patch) -> None:
    changed(patch, followers, "density_of", lambda term: 0.5 * term)
    patch.setattr(followers.Weigher, "made", lambda *given: None)


def another_prior(patch: Patch) -> None:
    changed(patch, Deferred, "_prior", lambda found: (found[0], [-float(at) for at, _ in enumerate(found[1])]))


@pytest.mark.parametrize(
    ("case", "broken"),
    [("two urns", half_of_what_absorbs), ("two urns", another_prior), ("collapsed", half_of_what_absorbs)],
)
def test_where_assignments_are_weighed_wrongly_the_trace_makes_them(
    case: str, broken: Broken, monkeypatch: Patch
) -> None:
    broken(monkeypatch)
    with pytest.warns(Disagreement, match="a fast way differs") as warned:
        assert_chain_agrees(chain(case, seed=5), CASES[case][3](), draws=200, what=case)
    assert str(warned[0].message).startswith("assignments of data:")
    with pytest.raises(InternalError, match="assignments of data: interpreted and compiled results differ"):
        assigned("checked")


def test_a_checked_session_makes_the_same_assignments() -> None:
    assert assigned("checked") == assigned("compiled")


# ----------------------------------------------------------------------------------------- particles, lanes, worlds

Y = (0.5, 2.5, 1.0)
WALK = "[assume x (mem (lambda (t) (if (= t 0) 0 (normal (* 0.5 (x (- t 1))) 1))))]"
STATES = "[assume x (mem (lambda (t) (if (= t 0) 0 (categorical (lookup {P} (x (- t 1)))))))]"
HEARD = "for t in 1...3: [observe (normal (* 2 (x t)) 1) {y[t]}]"
P = ((0.7, 0.3), (0.2, 0.8))


def of_walk() -> tuple[float, float]:
    """The mean of the last value, and the log evidence."""
    draws = np.array([[1, 0, 0], [0.5, 1, 0], [0.25, 0.5, 1]])
    covariance = draws @ draws.T
    of_heard = 4 * covariance + np.eye(3)
    mean = 2 * covariance @ np.linalg.solve(of_heard, Y)
    return float(mean[2]), float(multivariate_normal(np.zeros(3), of_heard).logpdf(Y))


def of_states() -> float:
    weights = {
        path: np.prod([P[a][b] for a, b in itertools.pairwise((0, *path))])
        * np.exp(-0.5 * sum((y - 2 * x) ** 2 for x, y in zip(path, Y, strict=True)))
        for path in itertools.product((0, 1), repeat=3)
    }
    return float(sum(w for path, w in weights.items() if path[2]) / sum(weights.values()))


def half_of_weighed(patch: Patch) -> None:
    changed(patch, population.Weigh, "__call__", lambda terms: 0.5 * terms)


def other_values(patch: Patch) -> None:
    """Of what is computed from a column."""
    changed(patch, population._Apply, "__call__", lambda found: found + 0.5)


def no_number(patch: Patch) -> None:
    """A located error that the interpreter does not meet."""

    def refused(self: Any, particles: int, *arguments: Any) -> Any:
        raise ArgumentError("this is no number")

    patch.setattr(population._Apply, "__call__", refused)


WRONG = "values of particles in columns: a fast way differs"


@pytest.mark.parametrize("broken", [half_of_weighed, other_values, no_number])
@pytest.mark.parametrize(
    ("program", "kernel"), [(WALK, "(pgibbs default ordered 5 1)"), (STATES, "(gibbs (choices x) all 'forward 1)")]
)
def test_where_particles_and_lanes_are_wrong_the_trace_is_moved(
    program: str, kernel: str, broken: Broken, monkeypatch: Patch
) -> None:
    broken(monkeypatch)
    venture = session(program + HEARD, "compiled", y=Y, P=P)

    def more(n: int) -> dict[str, np.ndarray]:
        draws = venture.infer(f"(repeat {n} (do {kernel} (collect (labelled (x 3) x))))")
        return {"x": np.asarray(draws["x"], float).ravel()}

    mean = of_walk()[0] if program == WALK else of_states()
    with pytest.warns(Disagreement, match=WRONG):
        assert_chain_agrees(more, {"x": Mean(mean)}, 300, kernel)
    if "forward" in kernel:
        with pytest.raises(InternalError, match="values of particles in columns: interpreted and compiled results"):
            session(program + HEARD, "checked", y=Y, P=P).infer(kernel)


@pytest.mark.parametrize("broken", [half_of_weighed, pytest.param(other_values, marks=pytest.mark.slow)])
def test_where_particles_of_smc_are_wrong_each_is_moved_on_a_trace(broken: Broken, monkeypatch: Patch) -> None:
    broken(monkeypatch)
    with pytest.warns(Disagreement, match=WRONG):
        draws = session(WALK + HEARD, "compiled", y=Y).infer("(smc 40 'runs 20)")
    assert draws.evidence is not None
    # a seeded run, off by less than five of its standard errors
    assert abs(draws.evidence.log - of_walk()[1]) < 5 * draws.evidence.error < 1
    with pytest.raises(InternalError, match="values of particles in columns: interpreted and compiled results"):
        session(WALK + HEARD, "checked", y=Y).infer("(smc 10)")


def test_where_worlds_are_wrong_it_is_said(monkeypatch: Patch) -> None:
    """Proposals that are learned from them are right all the same."""
    monkeypatch.setattr("venture_lite.networks.fitting.LEAST_STEPS", 20)
    monkeypatch.setattr("venture_lite.networks.fitting.PASSES", 1)
    changed(monkeypatch, worlds, "together", lambda found: found if found is None else found + 0.5)
    program = "[assume x (tag 'x 1 (normal 0 1))] [assume z (* 2 x)] [observe (normal (+ z 1) 1) 2]"
    with pytest.warns(Disagreement, match="worlds of the prior: a fast way differs"):
        session(program, "compiled").infer("(compile p x one 'worlds 100)")
    with pytest.raises(InternalError, match="worlds of the prior: interpreted and compiled results differ"):
        session(program, "checked").infer("(compile p x one 'worlds 100)")
