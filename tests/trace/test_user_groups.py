"""Values of memoized calls are read where they are kept, and the choices that read one are weighed as one group."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.posterior.derive import gaussian_posterior, normal_mixture
from tests.statistics import assert_chain_agrees
from tests.trace.test_gradients import compare
from venture_lite import KernelError, Venture
from venture_lite.audit.invariants import check
from venture_lite.blocks.sections import Sections
from venture_lite.engines.walk import Drift
from venture_lite.interpreter import scaffold
from venture_lite.interpreter.kernel import Move
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.interpreter.shape import NoShape, shape_of
from venture_lite.interpreter.weights import NARROW, Weight, log_density
from venture_lite.kernels.compiled import kernel
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.nodes import node_at

ROWS = 70
EXPERTS = """
[assume z (mem (lambda (i) (tag 'z i (uniform_discrete 0 2))))]
[assume w (mem (lambda (k) (tag 'w k (multivariate_normal (vector 0 0) (diagonal (vector 2 2))))))]
"""
PROGRAMS = {
    "one call": EXPERTS
    + """
[assume y (lambda (i x) (bernoulli (linear_logistic (w (z i)) (vector x 1))))]
for i in 1...N: [observe (y i (- i 10)) (> i 9)]
""",
    # some rows read one family by both calls
    "two calls of one memo": EXPERTS
    + "for i in 1...N: [observe (normal (dot (+ (w (z i)) (w 0)) (vector i 1)) 1) 0.3]",
    "a line of memoized weights": """
[assume w (mem (lambda (k) (tag 'w k (normal 0 1))))]
for i in 1...N: [observe (normal (+ (w 0) (* (w 1) i) (w (+ 2 (mod i 3)))) 1) 0.3]
""",
    "levels and slopes": """
[assume w (mem (lambda (k) (tag 'w k (normal 0 1))))]
[assume v (mem (lambda (k) (tag 'w k (normal 0 1))))]
for i in 1...N: [observe (normal (+ (w (mod i 3)) (* (v (mod i 3)) i)) 1) 0.3]
""",
    # in the block there is one of each, whose rows are partly the same
    "levels and slopes of other rows": """
[assume w (mem (lambda (k) (if (= k 1) (tag 'w 1 (normal 0 1)) (normal 0 1))))]
[assume v (mem (lambda (k) (if (= k 1) (tag 'w 2 (normal 0 1)) (normal 0 1))))]
for i in 1...N: [observe (normal (+ (w (mod i 2)) (* (v (if (< i 30) 1 0)) i)) 1) 0.3]
""",
    "two sites": EXPERTS
    + """
for i in 1...N: [observe (normal (dot (w (z i)) (vector i 1)) 1) 0.3]
for i in 1...N: [observe (normal (lookup (w (z i)) 0) (exp (lookup (w (z i)) 1))) 0.1]
""",
    "a memo of a memo": """
[assume w (mem (lambda (k) (tag 'w k (normal 0 1))))]
[assume v (mem (lambda (k) (tag 'v k (normal (w 0) 1))))]
for i in 1...N: [observe (normal (v (mod i 3)) 1) 0.3]
""",
    "a fixed key": """
[assume w (mem (lambda (k) (tag 'w k (normal 0 1))))]
[assume s (tag 'w 'scale (gamma 2 2))]
for i in 1...N: [observe (normal (* i (w 'slope)) s) 0.3]
""",
    "a deterministic body between": """
[assume w (mem (lambda (k) (tag 'w k (normal 0 1))))]
[assume square (mem (lambda (k) (let ((v (w k))) (* v v))))]
for i in 1...N: [observe (normal (square (mod i 2)) 1) 0.3]
""",
}


def loaded(name: str, seed: int = 1) -> Venture:
    v = Venture(seed=seed)
    v.execute(PROGRAMS[name], N=ROWS)
    return v


def every_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two users of a family be a group already."""
    monkeypatch.setattr(scaffold, "WIDE", 1)
    monkeypatch.setattr("venture_lite.trace.users.FEW", 1)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.thorough
def test_a_transition_weighs_the_change_of_the_score(name: str, grouped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if grouped:
        every_user(monkeypatch)
    v = loaded(name)
    model = v.traces[0]
    weights: list[float] = []

    def accept(weight: Weight) -> bool:
        weights.append(weight.value())
        return True

    moves = kernel(model, Move(Drift(model.trace.rng, 0.3), accept))
    at = Selection(model, "w", Selector("all"))
    members = list(model.trace.scopes["w"].everything())  # type: ignore[union-attr]
    for block in [[node] for node in members] + [members]:
        before = v.log_score()
        moves.step(block, at)
        # the drift of a positive value has a Jacobian; all others are symmetric
        if not any("gamma" in str(model.trace.application(node)[0]) for node in block):
            assert weights[-1] == pytest.approx(v.log_score() - before, abs=1e-9)
        check(model)


@pytest.mark.parametrize("name", PROGRAMS)
def test_groups_hold_each_choice_that_reads_the_block_once(name: str) -> None:
    trace = loaded(name).traces[0].trace
    members = list(trace.scopes["w"].everything())  # type: ignore[union-attr]
    for block in [[node] for node in members] + [members]:
        grouped = scaffold.Builder(trace, by_family=True).build(block)
        users = [node_at(users.site, row) for users in grouped.users for row in users.rows.array().tolist()]
        found = users + scaffold.absorbing_rows(trace, grouped)
        assert sorted(found) == sorted(scaffold.absorbing_rows(trace, scaffold.Builder(trace).build(block)))


def test_what_reads_an_expert_is_one_group() -> None:
    v = loaded("one call")
    model = v.traces[0]
    found = shape_of(model.trace, model.trace.scopes["w"].everything()[:1])  # type: ignore[union-attr]
    assert not isinstance(found, NoShape)
    shape, binding = found
    assert len(shape.order) == 1
    assert not shape.absorbing
    (group,) = binding.users
    assert group.rows.count > NARROW


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.thorough
def test_a_gradient_is_taken_through_the_family(name: str) -> None:
    """Against central differences of the log joint density."""
    v = loaded(name)
    model = v.traces[0]
    members = list(model.trace.scopes["w"].everything())  # type: ignore[union-attr]
    assert sum(compare(model, block, np.random.default_rng(1)) for block in [[node] for node in members] + [members])


def test_sections_of_two_experts_are_told_apart() -> None:
    v = loaded("one call")
    model = v.traces[0]
    both = [Sections.of(model, [node]) for node in model.trace.scopes["w"].everything()]  # type: ignore[union-attr]
    for sections in both:
        (kind,) = sections.kinds
        terms = kind.terms(np.arange(kind.count))
        singly = [log_density(model.trace, node_at(kind.group.site, int(row))) for row in kind.all_rows()]
        assert terms == pytest.approx(singly, abs=1e-12)
        assert kind.weigh_all().value() == pytest.approx(sum(singly), abs=1e-9)


def test_a_memoized_value_is_stored_once() -> None:
    v = loaded("one call")
    columns = [column for table in v.traces[0].trace.tables for column in table.columns]
    borrowed = [column for column in columns if isinstance(column, BorrowedColumn)]
    assert borrowed
    assert not sum(column.bytes_used() for column in borrowed)


NORMAL = """
[assume z (mem (lambda (i) (tag 'z i (flip 0.4))))]
[assume w (mem (lambda (k) (tag 'w k (normal 0 2))))]
for i in 1...N: [observe (normal (+ (w (z i)) (* (if (<= i 10) 1 0) (w 'all))) 1) {data[i]}]
"""
DATA = (1.2, -0.7, 2.0, 0.4, 1.1, -1.5, 0.9, 0.2, 1.7, 0.6, -0.4, 1.3)
FIXED = 9
"""Of so many rows z is given, so that every state of the others can be looked at."""


def exact() -> dict[str, object]:
    weights, means, sds = [], [], []
    for rest in itertools.product((0, 1), repeat=len(DATA) - FIXED):
        z = [i % 2 for i in range(FIXED)] + list(rest)
        rows = np.zeros((len(DATA), 3))
        rows[np.arange(len(DATA)), z] = 1
        rows[:10, 2] = 1
        mean, cov, evidence = gaussian_posterior(np.zeros(3), 4 * np.eye(3), rows, np.ones(len(DATA)), np.array(DATA))
        weights.append(np.exp(evidence) * np.prod([0.4 if zi else 0.6 for zi in rest]))
        means.append(mean[1])
        sds.append(float(np.sqrt(cov[1, 1])))
    return {"w": normal_mixture(weights, means, sds)}


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        "(do (mh w all 'drift 0.7 6) (mh z one 2))",
        "(do (subsampled_mh w each 2 0 'drift 1 2) (gibbs z one 2))",
        "(do (hmc w all 0.3 4 1) (gibbs z one 2))",
    ],
)
def test_the_posterior_is_exact(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every_user(monkeypatch)
    v = Venture(seed=3)
    v.execute(NORMAL, N=len(DATA), data=list(DATA))
    for i in range(FIXED):
        v.observe(f"(z {1 + i})", bool(i % 2))

    def more(n: int) -> dict[str, np.ndarray]:
        draws = v.infer(f"(repeat {n} (do {engine} (labelled (w true) w)))")
        return {"w": np.asarray(draws["w"], dtype=float).reshape(n)}

    assert_chain_agrees(more, exact(), draws=1000, what=engine)  # type: ignore[arg-type]
    check(v.traces[0])


SLOPES = """
[assume w (mem (lambda (k) (tag 'w k (normal 0 2))))]
for i in 1...N: [observe (normal (* (w (mod i 2)) {x[i]}) 1) {data[i]}]
"""


@pytest.mark.thorough
def test_control_variates_of_an_expert_are_exact() -> None:
    """Delayed acceptance on the rows that read one family, with expansions of their own for each family."""
    x = np.linspace(-1, 1, len(DATA))
    v = Venture(seed=4)
    v.execute(SLOPES, N=len(DATA), data=list(DATA), x=x)

    def more(n: int) -> dict[str, np.ndarray]:
        draws = v.infer(f"(repeat {n} (do (subsampled_mh w each 2 0 'drift 1.5 'proxy 2) (labelled (w 1) w)))")
        return {"w": np.asarray(draws["w"], dtype=float).reshape(n)}

    # the first row, and every second one after it, reads (w 1)
    mean, cov, _ = gaussian_posterior(np.zeros(1), 4 * np.eye(1), x[::2, None], np.ones(6), np.array(DATA[::2]))
    expected = {"w": normal_mixture([1.0], [mean[0]], [float(np.sqrt(cov[0, 0]))])}
    assert_chain_agrees(more, expected, draws=1000, what="'proxy on an expert")


SIZES = """
[assume crp (make_crp 1)]
[assume z (mem (lambda (i) (tag 'z i (crp))))]
[assume w (mem (lambda (k) (tag 'w k (normal 0 1))))]
for i in 1...N: [observe (normal (w (z i)) 1) {y[i]}]
"""


def test_an_expert_of_a_single_row_is_moved_exactly() -> None:
    """How many rows an expert has is random: a lonely one is no error. A global without a border is."""
    v = Venture(seed=1)
    v.execute(SIZES, N=30, y=[-5.0] * 29 + [9.0])
    v.infer("(cycle ((gibbs z one 30) (subsampled_mh w one 5 0.1 'drift 0.5 20)) 5)")
    check(v.traces[0])
    lonely = Venture(seed=1)
    lonely.execute("[assume m (tag 'm 0 (normal 0 1))] [observe (normal m 1) 2]")
    with pytest.raises(KernelError, match="no border"):
        lonely.infer("(subsampled_mh m all 5 0.1 'drift 0.5 20)")
