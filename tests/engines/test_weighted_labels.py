"""Labels drawn given the weights of their classes: exact posteriors over partitions, and the same draws over columns.

Comparisons with exact answers raise a false alarm with probability below 1e-6. They fail where labels choose by the
likelihood alone (`MeasureDraw.log_odds`), and where no class is broken off what is left (`BROKEN`). Over columns seen
to fail where classes that only the last members of others enter have no member meanwhile (`ClassColumns._lent`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.engines.test_label_columns import NUMBERS, PROGRAMS, SUBJECTS
from tests.engines.test_split_merge import BY_NAME, OBSERVED, chain
from tests.statistics import CONFIRM, assert_chain_agrees, compare_all
from venture_lite import Venture
from venture_lite.blocks import label_weights
from venture_lite.blocks.weighted_columns import WeightedColumns
from venture_lite.errors import KernelError

WEIGHTS = "(gibbs z all 'weights 1)"
EXACT = (
    ("crp_of_coins", "(gibbs default all 'weights 1)"),
    ("crp_of_normals", f"(do {WEIGHTS} (mh means each 'drift 0.8 1))"),
    ("crp_with_random_concentration", f"(do {WEIGHTS} (mh alpha one 2))"),
)
"""Cases of `tests/posterior`, and what moves their choices."""


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "kernel"), EXACT)
def test_partitions_have_their_probabilities(name: str, kernel: str) -> None:
    assert_chain_agrees(chain(BY_NAME[name], kernel), BY_NAME[name].exact(), 250, kernel)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kernel"), EXACT)
@pytest.mark.parametrize("kernels", ["interpreted", "compiled"])
def test_partitions_have_their_probabilities_with_many_draws(name: str, kernel: str, kernels: str) -> None:
    assert_chain_agrees(chain(BY_NAME[name], kernel, kernels=kernels), BY_NAME[name].exact(), 4000, kernel)


@pytest.mark.slow
def test_observed_labels_stay() -> None:
    kernel = f"(do {WEIGHTS} (mh means each 'drift 1 2))"
    assert_chain_agrees(chain(OBSERVED, kernel), OBSERVED.exact(), 1500, kernel)


BROKEN: dict[str, tuple[str, Callable[..., Any]]] = {
    "the weights": ("log_odds", lambda self, label: 0.0),
    "new classes": ("broken", lambda self, level: iter(())),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BROKEN)
def test_that_a_part_is_left_out_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method, other = BROKEN[what]
    monkeypatch.setattr(label_weights.MeasureDraw, method, other)
    case = BY_NAME["crp_of_normals"]
    comparisons = compare_all(chain(case, f"(do {WEIGHTS} (mh means each 'drift 0.8 1))")(2500), case.exact())
    assert max(abs(c.z) for cs in comparisons.values() for c in cs) > CONFIRM


# ------------------------------------------------------------------------------------------------------- by columns


def drawn(name: str, kernels: str, times: int) -> tuple[list[Any], float, float]:
    """The labels, the log score at the end, and the generator's next number."""
    program = PROGRAMS[name][0]
    v = Venture(seed=3, kernels=kernels)
    v.execute(program, y=NUMBERS, **({"subject": SUBJECTS} if "subject" in program else {}))
    count = 11 if "subject" in program else 31
    kernel = f"(gibbs (choices z 'finite) all 'weights 1) (collect (map z (range 1 {count})))"
    draws = v.infer(f"(repeat {times} (do {kernel}))")
    (model,) = v._runner.chains.models
    return draws[draws.names[0]].tolist(), v.log_score(), model.trace.rng.random()


COLUMNS = ("parameters", "two_parameters", "several_rows_of_a_label", "impossible_under_some_classes")
OTHERS = ("two_observations", "classes_that_observed_labels_keep", "hierarchical_parameters", "other_readers")


@pytest.fixture
def by_columns(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each draw was made over columns."""
    found: list[bool] = []
    draw = WeightedColumns.draw

    def noted(self: WeightedColumns, nodes: Any) -> bool | None:
        moved = draw(self, nodes)
        found.append(moved is not None)
        return moved

    monkeypatch.setattr(WeightedColumns, "draw", noted)
    return found


@pytest.mark.filterwarnings("ignore::venture_lite.errors.VentureWarning")
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.thorough
def test_columns_draw_what_the_interpreter_does(name: str, by_columns: list[bool]) -> None:
    times = 40 if name == "several_rows_of_a_label" else 10
    labels, score, after = drawn(name, "interpreted", times)
    assert not by_columns
    found, its_score, its_after = drawn(name, "compiled", times)
    assert sum(by_columns) > times // 2
    assert found == labels
    assert its_score == pytest.approx(score, rel=1e-9)
    assert its_after == after


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.errors.VentureWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_labels_that_have_no_columns_are_drawn_by_the_interpreter(name: str, by_columns: list[bool]) -> None:
    labels, score, after = drawn(name, "interpreted", 5)
    assert drawn(name, "compiled", 5) == (labels, pytest.approx(score, rel=1e-9), after)
    assert not any(by_columns)


# ---------------------------------------------------------------------------------------------------------- refused

LABELS = "[assume z (mem (lambda (i) (crp)))] [assume m (mem (lambda (k) (normal 0 3)))]"
REFUSED = {
    "with a discount": (f"[assume crp (make_crp 1 0.2)] {LABELS} [observe (normal (m (z 1)) 1) 0]", "a discount"),
    "no label": ("[assume z (flip 0.5)] [observe (normal (if z 1 2) 1) 0]", "this is none"),
    "a density reads one": (f"[assume crp (make_crp 1)] {LABELS} [observe (normal (z 1) 1) 0]", "read otherwise"),
    "the first of several is a number": (
        f"[assume crp (make_crp 1)] {LABELS} [observe (normal (z 1) 1) 0] [observe (normal (m (z 2)) 1) 0]",
        "read otherwise",
    ),
    "a parameter depends on one": (
        """[assume crp (make_crp 1)] [assume z (mem (lambda (i) (crp)))] [assume base (mem (lambda (k) (normal 0 3)))]
        [assume m (mem (lambda (k) (normal (base (z 1)) 1)))]
        [observe (normal (m (z 2)) 1) 0] [observe (normal (base (z 1)) 1) 0]""",
        "one depends on a label",
    ),
    "a parameter is a label": (
        """[assume crp (make_crp 1)] [assume kinds (make_crp 1)] [assume z (mem (lambda (i) (crp)))]
        [assume kind (mem (lambda (k) (kinds)))] [assume m (mem (lambda (k) (normal 0 3)))]
        [observe (normal (m (kind (z 1))) 1) 0]""",
        "depend on each other",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_it_cannot_draw_is_refused(what: str) -> None:
    program, reason = REFUSED[what]
    v = Venture(seed=1)
    v.execute(program)
    before = v.log_score()
    with pytest.raises(KernelError, match=reason):
        v.infer("(repeat 20 (gibbs (choices z) all 'weights 1))")
    assert v.log_score() == before


def test_blocks_are_drawn_at_once() -> None:
    v = Venture(seed=1)
    v.execute(PROGRAMS["parameters"][0], y=NUMBERS)
    with pytest.raises(Exception, match="all labels of a block at once"):
        v.infer("(gibbs (choices z) one 'weights 1)")


@pytest.mark.thorough
def test_a_measure_has_weights_that_sum_to_one() -> None:
    rng, found = np.random.default_rng(1), []
    for _ in range(2000):
        state = label_weights.CrpState(2.0)
        for label in (1, 1, 1, 4):
            state.add(label)
        measure = label_weights.MeasureDraw(rng, state)
        opened = [new.label for new in measure.broken(1e-9)]
        assert sum(measure.weights.values()) == pytest.approx(1.0, abs=1e-8)
        assert set(opened) == set(measure.weights) - {1, 4}
        found.append((measure.weights[1], measure.weights[4]))
    # Dirichlet(3, 1, 2): means within 5 standard errors
    errors = np.std(found, axis=0) / 2000**0.5
    assert (np.abs(np.mean(found, axis=0) - [0.5, 1 / 6]) < 5 * errors).all()
