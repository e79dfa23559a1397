"""Labels drawn by columns: the interpreter's draws, for whatever reads the labels.

Seen to fail where columns stay when a component moves (`SiteColumns.draw` not asking for the version), where the
label that moves counts among its class (`masses_without` without the subtraction), where a fresh class comes before
the others in the draw (`_drawn`), where only one of several rows of a label is weighed (`total[at] +=`), where the
parameters of a class that nobody reads stay known (`_is_last_reader`), and where applications are not taken out
before they are weighed (`_applications`). Of labels that are drawn together: where the sizes of classes stay
(`one_after_the_other`), where the numbers of those behind the last are used up, where the last member of a class, or
the last reader of its parameters, goes over with the others (`are_alike`), and where all fresh classes have one
parameter.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.errors import VentureWarning
from venture_lite.interpreter.comparison import Check
from venture_lite.kernels.label_columns import LabelColumns

NUMBERS = np.round(np.random.default_rng(5).normal(np.repeat([-3.0, 0.5, 4.0], 10), 1.0), 3).tolist()

LABELS = "[assume crp (make_crp 2)] [assume z (mem (lambda (i) (crp)))]"
GIBBS = "(gibbs (choices z 'finite) each 1)"

PROGRAMS = {
    "parameters": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))] [assume s (gamma 2 2)]
        for n in 1...30: [observe (normal (m (z n)) s) {{y[n]}}]""",
        f"(do (mh (choices m s) one 3) {GIBBS})",
    ),
    "two_parameters": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))] [assume s (mem (lambda (k) (gamma 2 2)))]
        for n in 1...30: [observe (normal (+ 1 (m (z n))) (s (z n))) {{y[n]}}]""",
        f"(do (mh (choices m s) one 3) {GIBBS})",
    ),
    "collapsed": (
        """[assume alpha (gamma 2 1)] [assume crp (make_crp alpha 0.2)] [assume z (mem (lambda (i) (crp)))]
        [assume c (mem (lambda (k) (make_normal_inv_chi_sq 0 0.1 3 1)))]
        for n in 1...30: [observe ((c (z n))) {y[n]}]""",
        f"(do {GIBBS} (mh (choices alpha) one 1))",
    ),
    "two_observations": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))]
        [assume c (mem (lambda (k) (make_normal_inv_chi_sq 0 0.1 3 1)))]
        for n in 1...30:
          [observe (normal (m (z n)) 1) {{y[n]}}]
          [observe ((c (z n))) {{y[31 - n]}}]
          [observe ((c (z n))) {{y[n]}}]""",
        f"(do (mh (choices m) one 1) {GIBBS})",
    ),
    "several_rows_of_a_label": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))]
        for n in 1...30: [observe (normal (m (z {{subject[n]}})) 1) {{y[n]}}]""",
        f"(do (mh (choices m) one 3) {GIBBS})",
    ),
    "classes_that_observed_labels_keep": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))]
        [observe (z 31) 1] [observe (z 32) 2] [observe (z 33) 3] [observe (z 34) 4] [observe (z 35) 5]
        for n in 1...30: [observe (normal (m (z n)) 1) {{y[n]}}]""",
        f"(do (mh (choices m) one 3) {GIBBS})",
    ),
    "hierarchical_parameters": (
        f"""{LABELS} [assume mu (normal 0 3)] [assume m (mem (lambda (k) (normal mu 2)))]
        [assume t (mem (lambda (k) (normal (m k) 1)))]
        for n in 1...30: [observe (normal (t (z n)) 1) {{y[n]}}]""",
        f"(do (mh (choices mu m t) one 3) {GIBBS})",
    ),
    "a_row_of_two_labels": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))]
        for n in 1...29: [observe (normal (+ (m (z n)) (m (z (+ n 1)))) 1) {{y[n]}}]""",
        f"(do (mh (choices m) one 1) {GIBBS})",
    ),
    "other_readers": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))]
        for n in 1...30: [observe (normal (m (z n)) 1) {{y[n]}}]
        [assume first (m (z 1))] [predict (+ (m (z 2)) (z 3))] [observe (normal (m (z 4)) 1) 0.5] [predict (m 5)]""",
        f"(do (mh (choices m) one 1) {GIBBS})",
    ),
    "a_label_that_a_density_reads": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))]
        for n in 1...30: [observe (normal (+ (z n) (m (z n))) 1) {{y[n]}}]""",
        f"(do (mh (choices m) one 1) {GIBBS})",
    ),
    "labels_that_lack_data": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))] [assume t (mem (lambda (k) (normal 0 3)))]
        for n in 2...30: [observe (normal (m (z n)) 1) {{y[n]}}]
        for n in 3...30: [observe (normal (t (z n)) 1) {{y[31 - n]}}]
        [predict (z 1)]""",
        f"(do (mh (choices m t) one 3) {GIBBS})",
    ),
    "parameters_read_in_two_orders": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))] [assume s (mem (lambda (k) (gamma 2 2)))]
        for n in 1...15: [observe (normal (m (z n)) (s (z n))) {{y[n]}}]
        for n in 16...30: [observe (normal (+ (- (s (z n)) (s (z n))) (m (z n))) 1) {{y[n]}}]""",
        f"(do (mh (choices m s) one 3) {GIBBS})",
    ),
    "a_parameter_that_weighs_nothing": (
        f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))]
        [assume c (mem (lambda (k) (make_normal_inv_chi_sq 0 0.1 3 1)))]
        for n in 1...30:
          [observe ((c (z n))) {{y[n]}}]
          [predict (m (z n))]""",
        f"(do {GIBBS} (mh (choices m) one 1))",
    ),
    "an_operator_that_changes": (
        f"""{LABELS} [assume c (mem (lambda (k) (make_normal_inv_chi_sq 0 0.1 3 1)))] [assume b (flip)]
        [assume d (mem (lambda (k) (make_normal_inv_chi_sq 1 0.1 3 1)))] [assume f (if b c d)]
        for n in 1...30:
          [observe ((f (z n))) {{y[n]}}]
          [observe ((c (z n))) {{y[n]}}]
          [observe ((d (z n))) {{y[n]}}]""",
        f"(do {GIBBS} (mh (choices b) one 3))",
    ),
    "impossible_under_some_classes": (
        f"""{LABELS} [assume m (mem (lambda (k) (uniform_continuous -9 9)))]
        for n in 1...30: [observe (uniform_continuous (m (z n)) (+ 6 (m (z n)))) {{y[n]}}]""",
        f"(do {GIBBS} (mh (choices m) one 3))",
    ),
}
SUBJECTS = [1 + n // 3 for n in range(30)]
WITHOUT_COLUMNS = {"a_row_of_two_labels", "a_label_that_a_density_reads", "an_operator_that_changes"}


def _drawn(name: str, kernels: str, sweeps: int = 5) -> tuple[list[Any], float, list[int]]:
    """The labels, the log score at the end, and how many transitions of each kernel were accepted."""
    program, kernel = PROGRAMS[name]
    v = Venture(seed=3, kernels=kernels)
    given = {"y": NUMBERS} if "{y" in program else {}
    v.execute(program, **given, **({"subject": SUBJECTS} if "subject" in program else {}))
    draws = v.infer(f"(repeat {sweeps} (do {kernel} (collect (map z (range 1 31)))))")
    return draws[draws.names[0]].tolist(), v.log_score(), [kernel.accepted for kernel in draws.statistics]


@pytest.fixture
def drawn_by_columns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    step = LabelColumns.step

    def noted(self: LabelColumns, node: int, draws: Any) -> bool | None:
        moved = step(self, node, draws)
        if moved is not None:
            found.append(node)
        return moved

    several = LabelColumns.step_several

    def noted_together(self: LabelColumns, nodes: list[int], draws: Any) -> list[bool]:
        moved = several(self, nodes, draws)
        found.extend(nodes[: len(moved)])
        return moved

    monkeypatch.setattr(LabelColumns, "step", noted)
    monkeypatch.setattr(LabelColumns, "step_several", noted_together)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("name", PROGRAMS)
def test_columns_draw_what_the_interpreter_does(name: str, drawn_by_columns: list[int]) -> None:
    expected, score, accepted = _drawn(name, "interpreted")
    found, its_score, its_accepted = _drawn(name, "compiled")
    assert (found, its_accepted) == (expected, accepted)
    assert its_score == pytest.approx(score, rel=1e-9)
    if name in WITHOUT_COLUMNS:
        assert not drawn_by_columns
    else:
        assert len(drawn_by_columns) > 30


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.thorough
def test_checked_sessions_weigh_the_same(name: str) -> None:
    _drawn(name, "checked", 1)


@pytest.mark.thorough
def test_columns_of_several_chunks(monkeypatch: pytest.MonkeyPatch, drawn_by_columns: list[int]) -> None:
    monkeypatch.setattr("venture_lite.kernels.label_chunks.CHUNK", 7)
    assert _drawn("parameters", "compiled") == _drawn("parameters", "interpreted")
    assert drawn_by_columns


KINDS = """[assume crp (make_crp 1)] [assume crq (make_crp 1)] [assume y (mem (lambda (i) (tag 'z (list 1 i) (crp))))]
    [assume kind (mem (lambda (k) (tag 'z (list 2 k) (crq))))] [assume m (mem (lambda (k) (normal 0 2)))]
    [observe (normal (m (kind (y 1))) 1) -1] [observe (normal (m (kind (y 2))) 1) 2]
    [observe (normal (m (kind (y 3))) 1) 2] [observe (normal (+ (m (kind (y 4))) (m (kind (y 3)))) 1) -3.3]"""


def test_labels_that_come_to_be_read_together_have_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.kernels.label_columns.WAIT", 0)
    v = Venture(seed=3, kernels="checked")
    v.execute(KINDS)
    v.infer("(repeat 15 (do (mh default one 4) (gibbs z one 3)))")


LATER = f"""{LABELS} [assume m (mem (lambda (k) (normal 0 3)))] [assume t (mem (lambda (k) (normal 0 3)))]
    for n in 1...30: [observe (normal (m (z n)) 1) 0.5]
    for n in 16...30: [observe (normal (t (z n)) 1) 0.5]"""


@pytest.mark.parametrize("seed", [6, 7])
@pytest.mark.thorough
def test_labels_that_come_and_go_may_come_back_as_they_were(seed: int) -> None:
    """A label gets the row and the users of one that went while columns were laid out."""
    v = Venture(seed=seed, kernels="checked")
    v.execute(
        """[assume crp (make_crp 1)] [assume z (mem (lambda (i) (scope_include 'z i (crp))))]
        [assume out (mem (lambda (i) (flip 0.3)))] [assume m (mem (lambda (k) (normal 0 2)))]
        for n in 1...5: [observe (if (out n) (bernoulli 0.5) (bernoulli (logistic (* (m (z n)) {x[n]})))) {y[n]}]""",
        x=[1.0, 1.0, -1.0, -1.0, 2.0],
        y=[1, 0, 1, 0, 1],
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*the scope z is empty", VentureWarning)
        v.infer("(cycle ((gibbs z each 1) (gibbs (choices out) each 1) (mh (choices m) each 1)) 80)")


def test_labels_of_a_later_chunk_may_read_other_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.kernels.label_chunks.CHUNK", 7)
    monkeypatch.setitem(PROGRAMS, "later", (LATER, GIBBS))
    assert _drawn("later", "compiled", 4) == _drawn("later", "interpreted", 4)


def test_labels_that_are_drawn_one_at_a_time() -> None:
    program, _ = PROGRAMS["parameters"]
    scores = []
    for kernels in ("interpreted", "compiled"):
        v = Venture(seed=4, kernels=kernels)
        v.execute(program, y=NUMBERS)
        v.infer("(repeat 5 (do (gibbs (choices z 'finite) one 30) (mh default one 5)))")
        scores.append(v.log_score())
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)


def test_what_is_never_drawn_together_is_not_compared_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two features of a label, each with statistics of its own, are no columns of several labels."""
    compared: list[int] = []
    several = Check.several

    def counted(self: Check, key: Any, blocks: Any, *rest: Any) -> list[bool]:
        compared.append(len(blocks))
        return several(self, key, blocks, *rest)

    monkeypatch.setattr(Check, "several", counted)
    v = Venture(seed=1)
    v.execute(
        """[assume crp (make_crp 1.5)]
        [assume k (mem (lambda (i) (tag 'k i (crp))))]
        [assume m (mem (lambda (c) (make_normal_inv_chi_sq 0 0.1 1 1)))]
        [assume n (mem (lambda (c) (make_gamma_poisson 2 0.3)))]
        for i in 1...12: [observe ((m (k i))) {X[i]}]
        for i in 1...12: [observe ((n (k i))) {N[i]}]""",
        X=[-3.0, 0.1, 2.9] * 4,
        N=[0, 5, 12] * 4,
    )
    v.infer("(gibbs k each 40)")
    assert 0 < len(compared) < 40


@pytest.mark.parametrize("name", ["parameters", "collapsed", "labels_that_lack_data"])
@pytest.mark.parametrize(
    ("threshold", "size"), [("label_chunks.CHUNK", 1), ("label_chunks.CHUNK", 29), ("label_columns.MOST_CLASSES", 3)]
)
def test_thresholds_change_no_draw(name: str, threshold: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the labels of a chunk, and of the classes that columns are made of."""
    before = _drawn(name, "interpreted", 3)
    monkeypatch.setattr(f"venture_lite.kernels.{threshold}", size)
    assert _drawn(name, "compiled", 3) == before
