"""Parameters moved with labels summed out: exact posteriors, and the same moves over columns.

Comparisons with exact answers raise a false alarm with probability below 1e-6. They fail where
parameters move by their own density alone, and without it (`BROKEN`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.engines.test_label_columns import NUMBERS
from tests.engines.test_split_merge import BY_NAME, OBSERVED, chain
from tests.posterior.case import Case
from tests.posterior.cases_mixtures import FOUR, REALS, posterior_over_partitions
from tests.posterior.derive import (
    Grid,
    groups,
    iid_normal_evidence,
    log_crp,
    partition_code,
    partition_expression,
    partitions,
    table,
)
from tests.posterior.faults_labels import of_present_labels
from tests.statistics import CONFIRM, Expected, Mean, assert_chain_agrees, assert_chain_misses, compare_all
from venture_lite import Venture
from venture_lite.blocks import slices, summed_columns, summed_splits, weighted_columns
from venture_lite.blocks.slices import drawn_from_slice
from venture_lite.engines.summed_labels import SummedSlices
from venture_lite.errors import KernelError

SCALE = """[assume crp (make_crp 1)] [assume z (mem (lambda (i) (crp)))] [assume mean (mem (lambda (k) (normal 0 2)))]
[assume sd (gamma 2 2)]"""


def with_scale() -> Mapping[str, Expected]:
    """By quadrature over the sd, for each partition."""
    grid = Grid(0.02, 12.0, 500)
    log_prior = np.log(grid.points) - 2.0 * grid.points
    densities = {
        partition_code(p): log_prior
        + log_crp(p, 1.0)
        + np.array([sum(iid_normal_evidence(part, 0.0, 2.0, sd) for part in groups(p, REALS)) for sd in grid.points])
        for p in partitions(len(REALS))
    }
    by_partition = table({code: grid.mass(density) for code, density in densities.items()})
    return {"z": by_partition, "sd": grid.cdf(np.logaddexp.reduce(list(densities.values())))}


SHARED = Case(
    name="crp_of_normals_of_one_sd",
    program=SCALE + " ".join(f"[observe (normal (mean (z {n})) sd) {y}]" for n, y in enumerate(REALS, 1)),
    query={"z": FOUR, "sd": "sd"},
    exact=with_scale,
    engines=(),
    derivation="Quadrature over the sd, the sum over partitions for each.",
)
CASES: tuple[tuple[Case, str], ...] = (
    (BY_NAME["crp_of_normals"], "(slice default all 2 20 'weights 1)"),
    (SHARED, "(slice default all 2 20 'weights 1)"),
    (SHARED, "(do (slice (choices z sd) all 2 20 'weights 1) (slice (choices mean) each 1 20 1))"),
    (BY_NAME["crp_of_normals"], "(slice default all 2 20 'weights 'splits 6 1)"),
    (SHARED, "(slice default all 2 20 'weights 'splits 6 1)"),
)
SPLITTING = CASES[3]


@pytest.mark.thorough
@pytest.mark.parametrize(("case", "seen"), [(0, 256), (3, 2), pytest.param(3, 256, marks=pytest.mark.slow)])
def test_partitions_have_their_probabilities(case: int, seen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_splits, "SEEN", seen)
    model, kernel = CASES[case]
    assert_chain_agrees(chain(model, kernel), model.exact(), 250, kernel)


@pytest.mark.slow
@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize(("kernels", "draws"), [("interpreted", 60), ("compiled", 800)])
def test_partitions_have_their_probabilities_with_many_draws(case: int, kernels: str, draws: int) -> None:
    model, kernel = CASES[case]
    assert_chain_agrees(chain(model, kernel, kernels=kernels), model.exact(), draws, kernel)


@pytest.mark.slow
@pytest.mark.parametrize("seen", [1, 2, 3])
def test_proposals_may_be_drawn_by_some_labels(seen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_splits, "SEEN", seen)
    model, kernel = CASES[4]
    assert_chain_agrees(chain(model, kernel), model.exact(), 1500, kernel)


@pytest.mark.slow
@pytest.mark.parametrize("splits", ["", " 'splits 6"])
def test_observed_labels_stay(splits: str) -> None:
    kernel = f"(do (slice default all 2 20 'weights{splits} 1) (slice means each 1 20 1))"
    assert_chain_agrees(chain(OBSERVED, kernel), OBSERVED.exact(), 400, kernel)


def without_prior(rng: Any, record: Any, *rest: Any) -> Any:
    return drawn_from_slice(rng, SimpleNamespace(transform=record.transform, log_density=lambda *_: 0.0), *rest)


BROKEN: dict[str, tuple[Any, str, Callable[..., Any], int]] = {
    "what labels have": (summed_columns.SummedClasses, "_summed", lambda self, shares, *_: [0.0] * len(shares), 4000),
    "the prior": (summed_columns, "drawn_from_slice", without_prior, 1500),
}


def break_moves(patch: pytest.MonkeyPatch, what: str) -> None:
    owner, method, other, _ = BROKEN[what]
    patch.setattr(owner, method, other)
    patch.setattr(slices, "transform_of", lambda record: record.transform)


@pytest.mark.slow
@pytest.mark.parametrize("what", BROKEN)
def test_that_a_part_is_left_out_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_moves(monkeypatch, what)
    comparisons = compare_all(chain(*CASES[1])(BROKEN[what][3]), SHARED.exact())
    assert max(abs(c.z) for cs in comparisons.values() for c in cs) > CONFIRM


TWO = (1.5, 2.0)


def two_with_a_mean() -> Mapping[str, Expected]:
    """Whether two values share a class of normal(0, 1), and the mean of the first one's class."""
    weights = {p: math.exp(log_crp(p, 1.0)) for p in partitions(2)}
    for p in weights:
        weights[p] *= math.exp(math.fsum(iid_normal_evidence(part, 0.0, 1.0, 1.0) for part in groups(p, TWO)))
    of_first = {p: groups(p, TWO)[0] for p in weights}
    mean = sum(w * sum(of_first[p]) / (1 + len(of_first[p])) for p, w in weights.items()) / sum(weights.values())
    return {"z": table({partition_code(p): w for p, w in weights.items()}), "mean": Mean(mean)}


# the prior draws both towards 0, and what labels have away from there: the mean tells where either is left out
TWO_LABELS = Case(
    name="two_normals_with_a_mean",
    program="""[assume crp (make_crp 1)] [assume z (mem (lambda (i) (crp)))]
        [assume mean (mem (lambda (k) (normal 0 1)))]
        [observe (normal (mean (z 1)) 1) 1.5] [observe (normal (mean (z 2)) 1) 2]""",
    query={"z": partition_expression(["(z 1)", "(z 2)"]), "mean": "(mean (z 1))"},
    exact=two_with_a_mean,
    engines=(),
    derivation="Two partitions, a normal posterior of the mean in each.",
)
FEW_DRAWS = "(slice default all 2 20 'weights 1)", 300


@pytest.mark.thorough
def test_few_draws_of_two_labels_agree() -> None:
    kernel, draws = FEW_DRAWS
    assert_chain_agrees(chain(TWO_LABELS, kernel), TWO_LABELS.exact(), draws, kernel)


@pytest.mark.thorough
@pytest.mark.parametrize("what", BROKEN)
def test_few_draws_of_two_labels_notice(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_moves(monkeypatch, what)
    kernel, draws = FEW_DRAWS
    assert_chain_misses(chain(TWO_LABELS, kernel), TWO_LABELS.exact(), draws)


def without_division(self: Any) -> float:
    return 0.0


def without_concentration(self: Any, whole: Any, parts: Any) -> float:
    return sum(each.log_prior for each in parts) - whole.log_prior - 1.5


def without_parents(self: Any, whole: Any, parts: Any) -> float:
    return sum(each.log_prior for each in parts)


def accepted_by_prior(self: Any, total: np.ndarray, log_ratio: float) -> bool:
    return math.isfinite(log_ratio) and -self._rng.standard_exponential() < log_ratio


BROKEN_SPLITS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "how a class is divided": (summed_splits.Division, "log_density", without_division),
    "the concentration": (summed_splits.SummedSplits, "_log_measure", without_concentration),
    "how a pair is drawn": (summed_splits, "_count", lambda pairs: 1.0),
    "the prior of what was one": (summed_splits.SummedSplits, "_log_measure", without_parents),
    "what labels have": (summed_splits.SummedSplits, "_accepts", accepted_by_prior),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BROKEN_SPLITS)
def test_that_a_part_of_a_split_is_left_out_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, method, other = BROKEN_SPLITS[what]
    monkeypatch.setattr(owner, method, other)
    model, kernel = SPLITTING
    comparisons = compare_all(chain(model, kernel.replace("'splits 6", "'splits 30"))(2000), model.exact())
    assert max(abs(c.z) for cs in comparisons.values() for c in cs) > CONFIRM


VAGUE = (-1.0, 1.0, 2.0)


def vague_partitions() -> Mapping[str, Expected]:
    weights = posterior_over_partitions(
        VAGUE, lambda p: log_crp(p, 1.0), lambda part: iid_normal_evidence(part, 0.0, 4.0, 6.0)
    )
    return {"z": table(weights)}


# a datum tells little of the mean of a class: the unit of a split's distance is far above 1
THREE_VAGUE = Case(
    name="three_vague_normals",
    program="""[assume crp (make_crp 1)] [assume z (mem (lambda (i) (crp)))]
        [assume mean (mem (lambda (k) (normal 0 4)))]"""
    + " ".join(f"[observe (normal (mean (z {n})) 6) {y}]" for n, y in enumerate(VAGUE, 1)),
    query={"z": partition_expression(["(z 1)", "(z 2)", "(z 3)"])},
    exact=vague_partitions,
    engines=(),
    derivation="All 5 partitions.",
)
FEW_SPLITS = "(slice default all 2 20 'weights 'splits 12 1)", 300


@pytest.mark.slow
def test_few_splits_of_vague_classes_agree() -> None:
    kernel, draws = FEW_SPLITS
    assert_chain_agrees(chain(THREE_VAGUE, kernel), THREE_VAGUE.exact(), draws, kernel)


@pytest.mark.thorough
def test_that_units_are_left_out_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    log_density = summed_splits.Division.log_density

    def without_units(self: summed_splits.Division) -> float:
        return log_density(self) + float(np.log(self.units).sum())

    monkeypatch.setattr(summed_splits.Division, "log_density", without_units)
    kernel, draws = FEW_SPLITS
    assert_chain_misses(chain(THREE_VAGUE, kernel), THREE_VAGUE.exact(), draws)


# ------------------------------------------------------------------------------------------------------- by columns

LABELS = "[assume crp (make_crp 1)] [assume z (mem (lambda (i) (crp)))]"
PROGRAMS = {
    "a shared scale": f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))] [assume s (gamma 2 2)]
        [assume first (m (z 1))]
        for n in 1...10: [observe (normal (m (z n)) s) {{y[n]}}]""",
    "two parameters": f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))] [assume s (mem (lambda (k) (gamma 2 2)))]
        for n in 1...10: [observe (normal (+ 1 (m (z n))) (s (z n))) {{y[n]}}]""",
    "rows that are impossible in most classes": f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))]
        [assume s (gamma 2 0.5)]
        for n in 1...10: [observe (uniform_continuous (- (m (z n)) s) (+ (m (z n)) s)) {{y[n]}}]""",
}
KERNELS = ("interpreted", "compiled")
DRAWN = 4
MOVED = [(name, scope, "") for name in PROGRAMS for scope in ("z m s", "z m", "z s")]
MOVED += [(name, "z m s", " 'splits 8") for name in PROGRAMS]


def run(program: str, scope: str, splits: str, kernels: str) -> tuple[Any, float, float]:
    """Labels drawn, the log score at the end, and the generator's next number."""
    v = Venture(seed=3, kernels=kernels)
    v.execute(program, y=NUMBERS)
    draws = v.infer(
        f"(repeat {DRAWN} (do (slice (choices {scope}) all 2 20 'weights{splits} 1) (collect (map z (range 1 11)))))"
    )
    (model,) = v._runner.chains.models
    return draws[draws.names[0]].tolist(), v.log_score(), model.trace.rng.random()


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.errors.VentureWarning")
@pytest.mark.parametrize(("name", "scope", "splits"), MOVED)
def test_columns_move_as_the_interpreter_does(
    name: str, scope: str, splits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, score, after = run(PROGRAMS[name], scope, splits, "interpreted")
    made: list[bool] = []
    draw = weighted_columns.WeightedColumns.draw

    def noted(self: Any, nodes: Any) -> bool | None:
        moved = draw(self, nodes)
        made.append(moved is not None)
        return moved

    monkeypatch.setattr(weighted_columns.WeightedColumns, "draw", noted)
    found, its_score, its_after = run(PROGRAMS[name], scope, splits, "compiled")
    assert made == [True] * DRAWN
    assert found == labels
    assert its_score == pytest.approx(score, rel=1e-9)
    assert its_after == after


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.errors.VentureWarning")
def test_a_choice_that_one_label_decides_on_and_others_read_moves_as_the_interpreter_moves_it() -> None:
    """Over columns its density in the class of its label would count beside the one in all classes."""
    program = f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))] [assume x (normal (m (z 1)) 1)]
        for n in 2...10: [observe (normal (+ (m (z n)) x) 1) {{y[n]}}]"""
    found = [run(program, "z m x", splits, kernels) for splits in (" 'splits 4",) for kernels in KERNELS]
    for one, other in zip(found[::2], found[1::2], strict=True):
        assert one[0] == other[0]
        assert one[1] == pytest.approx(other[1], rel=1e-9)
        assert one[2] == other[2]


# ---------------------------------------------------------------------------------- labels that read other parameters

OTHERS = f"""{LABELS} [assume m (mem (lambda (k) (normal 0 1)))] [assume t (mem (lambda (k) (normal 0 1)))]
    [observe (normal (m (z 1)) 1) 0.5] [observe (normal (t (z 2)) 1) 2.5] [observe (normal (t (z 3)) 1) 1]"""


def of_wide_classes(patch: pytest.MonkeyPatch) -> list[set[int]]:
    """For each class whose parameters move, in some transitions, how many of them do."""
    found: list[set[int]] = []
    move_classes = SummedSlices.move_classes

    def noted(self: Any, block: Any) -> None:
        wide = filter(self._measure.is_wide, self._measure.weights)
        found.append({len(self._known.parameters(label, block.sites)) for label in wide})
        move_classes(self, block)

    patch.setattr(SummedSlices, "move_classes", noted)
    v = Venture(seed=1)
    v.execute(OTHERS)
    v.infer("(repeat 8 (slice default all 2 1 'weights 'splits 2 1))")
    return found


def test_all_parameters_move_that_some_label_would_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is in a class, its parameters are the same: who is there is summed out."""
    found = of_wide_classes(monkeypatch)
    assert {2} in found
    assert all(counts in ({2}, set()) for counts in found)


def test_that_only_present_labels_are_asked_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    of_present_labels(monkeypatch)
    assert not all(counts in ({2}, set()) for counts in of_wide_classes(monkeypatch))


# ---------------------------------------------------------------------------------------------------------- refused

DATA = "[observe (normal (m (z 1)) 1) 0] [observe (normal (m (z 2)) 1) 1]"
NORMALS = f"{LABELS} [assume m (mem (lambda (k) (normal 0 3)))]"
REFUSED = {
    "no labels": (f"{LABELS} [assume m (mem (lambda (k) (normal 0 3)))] {DATA}", "m", "sums out the labels of one"),
    "the concentration": (
        f"""[assume a (gamma 1 1)] [assume crp (make_crp a)] [assume z (mem (lambda (i) (crp)))]
        [assume m (mem (lambda (k) (normal 0 3)))] {DATA}""",
        "z m a",
        "the weights of classes",
    ),
    "a scale of parameters": (
        f"{LABELS} [assume s (gamma 2 2)] [assume m (mem (lambda (k) (normal 0 s)))] {DATA}",
        "z m s",
        "parameters of classes depend on it",
    ),
    "a parameter that stays": (PROGRAMS["two parameters"], "z m", "all parameters of classes"),
    "data of two labels": (
        f"{NORMALS} {DATA} [observe (normal (+ (m (z 1)) (m (z 2))) 1) 4]",
        "z m",
        "several of them",
    ),
    "collapsed data": (
        f"{NORMALS} [assume c (mem (lambda (k) (make_beta_bernoulli 1 1)))] {DATA} [observe ((c (z 1))) true]",
        "z m",
        "several of them",
    ),
    "a support that a label decides": (
        f"""{NORMALS} [assume x (uniform_continuous (m (z 1)) (+ 9 (m (z 1))))] {DATA}
        [observe (normal (+ x (m (z 2))) 1) 4]""",
        "z m x",
        "depends on a label here",
    ),
    "one label that is a number": (
        f"{NORMALS} [observe (normal (z 1) 1) 2] {DATA} [predict (z 3)]",
        "z m",
        "read otherwise",
    ),
    "a discrete choice": (
        f"""{LABELS} [assume c (poisson 3)] [assume m (mem (lambda (k) (normal 0 3)))] {DATA}
        [observe (normal (+ c (m (z 3))) 1) 2]""",
        "z m c",
        "is discrete",
    ),
}


@pytest.mark.filterwarnings("ignore::venture_lite.errors.VentureWarning")
@pytest.mark.parametrize("what", REFUSED)
def test_what_it_cannot_move_is_refused(what: str) -> None:
    program, scope, reason = REFUSED[what]
    v = Venture(seed=1)
    v.execute(program, y=NUMBERS)
    before = v.log_score()
    with pytest.raises(KernelError, match=reason):
        v.infer(f"(repeat 5 (slice (choices {scope}) all 2 20 'weights 'splits 3 1))")
    assert v.log_score() == before
