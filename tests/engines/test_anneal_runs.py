"""What a run of `anneal` does: the numbers of assignments, what stays and what goes, refusals, and the trace after
errors and Ctrl-C."""

from __future__ import annotations

import copy
import itertools
import math
import re
import sys
from typing import Any

import numpy as np
import pytest

from tests.engines.test_anneal import COINS, CRP, FACES, NORMALS, REALS, URNS, beta_evidence, venture
from tests.posterior.derive import groups, log_crp, table
from tests.statistics import assert_chain_agrees
from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.draws.draws import Draws, KernelStatistics
from venture_lite.engines.anneal.assignments import Assignments
from venture_lite.inference.data import Subsample
from venture_lite.session.loop_data import LoopData

# ----------------------------------------------------------------------------------------- what is done, and how often


def small(v: Venture, kernel: str) -> KernelStatistics:
    draws = v.infer(kernel)
    assert isinstance(draws, Draws)
    check(v.traces[0])
    return draws.statistics[0]


@pytest.mark.parametrize(
    ("schedule", "churns", "assignments"),
    [
        ("linear", 3, 32),
        ("sequential", 3, 32),
        ("constant", 3, 32),
        ("sequential", 0, 8),
        ("(lambda (t) (+ 1 (floor (/ (- t 1) 4))))", 3, 32),
        # 16 steps of one assignment each, then 8, of which the first has 3 more to make up
        ("(lambda (t) (if (< t 17) 5 8))", 2, 24 + 2),
    ],
)
def test_a_schedule_makes_as_many_assignments_as_it_says(schedule: str, churns: int, assignments: int) -> None:
    found = small(venture(URNS, [True, False] * 4), f"(anneal left {schedule} {churns})")
    assert found.transitions == found.details["assignments"] == assignments


def test_a_growing_subsample_first_removes_everything_and_constant_nothing() -> None:
    v = venture(URNS, [True])
    # a single datum: every churn draws it again
    assert [small(v, f"(anneal left {name} 4)").details["removals"] for name in ("constant", "linear")] == [0, 0]
    v = venture(URNS, [True, False] * 4)
    assert small(v, "(anneal left sequential 0)").details["removals"] == 8
    assert small(v, "(anneal left constant 5)").details["removals"] == 0


def test_which_datum_goes_and_which_comes_is_uniform() -> None:
    gone, come = [], []
    for k in range(6):
        subsample = Subsample(6)
        gone.append(subsample.take_out((k + 0.5) / 6))
        subsample.take_out(0.99)
        subsample.take_out(0.0)
        out = set(subsample.order[3:])
        come.append({copy.deepcopy(subsample).take_in((j + 0.5) / 3) for j in range(3)} == out)
    assert sorted(gone) == list(range(6))
    assert all(come)


def test_kernels_run_once_for_each_pass_through_the_subsample() -> None:
    """An assignment among n data is an n-th of a pass. Sizes 1, 1, 2, 2, 3, 3, 4, 4: after 1, 2, 4, 8; sizes 1 to 8:
    after 1, 4 (and not again until 11)."""
    for data, churns, passes in [(4, 1, 4), (8, 0, 2)]:
        draws = venture(URNS, [True, False] * (data // 2)).infer(f"(anneal left linear {churns} (collect (left 1)))")
        assert isinstance(draws, Draws)
        assert draws["(left 1)"].shape[1] == draws.statistics[0].details["passes of kernels"] == passes


@pytest.mark.thorough
def test_an_assignment_costs_as_much_among_many_data_as_among_few() -> None:
    """In calls of Python functions, which do not depend on the machine."""

    def calls(count: int) -> float:
        v = venture(URNS, [True, False] * (count // 2))
        v.infer("(anneal left constant 0)")
        made = 0

        def count_call(frame: Any, event: str, argument: Any) -> None:
            nonlocal made
            made += event == "call"

        sys.setprofile(count_call)
        try:
            v.infer("(anneal left linear 1)")
        finally:
            sys.setprofile(None)
        return made / (2 * count)

    assert calls(320) < 1.25 * calls(40)


# ---------------------------------------------------------------------------------------------- the data


def test_all_data_are_there_in_the_end() -> None:
    text = f"""{CRP}
[assume coin (mem (lambda (k) (make_beta_bernoulli 0.5 0.5)))]
data: for n in 1...N:
  told: [observe ((coin (z n))) {{x[n]}}]
  [predict (z n)]
"""
    v = venture(text, FACES)
    v.infer("(anneal z linear 3)")
    check(v.traces[0])
    assert v.report("data") == 4
    assert v.report("told") == FACES
    labels = [v.sample(f"(z {n})") for n in (1, 2, 3, 4)]
    parts = groups(tuple(labels.index(label) for label in labels), FACES)
    expected = log_crp(tuple(labels), 1.5) + sum(map(beta_evidence, parts))
    assert v.log_score() == pytest.approx(expected, abs=1e-9)
    v.forget("data", 3)
    check(v.traces[0])
    assert v.report("told") == [True, True, True]
    v.infer("(anneal z linear 1)")
    assert v.report("data") == 3
    v.forget("data")
    check(v.traces[0])
    assert v.traces[0].trace.default.block_count() == 0


def data_of(v: Venture) -> LoopData:
    return LoopData(v._runner.directory, 0)


def test_latents_that_others_refer_to_stay() -> None:
    v = venture(COINS + "[predict (z 2)]", FACES)
    data, before = data_of(v), v.report(v.list_directives()[-1]["id"])
    scope = v.traces[0].trace.scopes["z"]
    data.remove(0)
    data.remove(1)
    check(v.traces[0])
    assert [scope.has(n) for n in (1, 2, 3, 4)] == [False, True, True, True]
    data.add(1)
    data.add(0)
    check(v.traces[0])
    assert v.sample("(z 2)") == before
    assert v.report(v.list_directives()[-2]["id"]) == 4


@pytest.mark.thorough
def test_a_hidden_chain_loses_the_likelihood_of_what_is_out_and_keeps_its_states() -> None:
    """Against the exact marginals of three states; false alarms below 1e-6."""
    text = """
    [assume s (mem (lambda (t) (tag 's t (flip (if (= t 1) 0.5 (if (s (- t 1)) 0.8 0.2))))))]
    for t in 1...N: [observe (flip (if (s t) 0.9 0.3)) {x[t]}]
    """
    x = [True, False, True]
    weights: dict[float, float] = {}
    for states in itertools.product((0, 1), repeat=3):
        path = 0.5 * math.prod(0.8 if a == b else 0.2 for a, b in itertools.pairwise(states))
        seen = math.prod((0.9 if s else 0.3) if o else (0.1 if s else 0.7) for s, o in zip(states, x, strict=True))
        weights[float(sum(s << i for i, s in enumerate(states)))] = path * seen
    v = venture(text, x)

    def more(n: int) -> dict[str, np.ndarray]:
        code = "(+ (s 1) (* 2 (s 2)) (* 4 (s 3)))"
        draws = v.infer(f"(repeat {n} (do (anneal s constant 0) (collect (labelled {code} s))))")
        assert isinstance(draws, Draws)
        return {"s": np.asarray(draws["s"], dtype=float).reshape(n)}

    assert_chain_agrees(more, {"s": table(weights)}, draws=800, what="a hidden chain")
    data = data_of(v)
    data.remove(1)
    check(v.traces[0])
    assert v.traces[0].trace.scopes["s"].block_count() == 3
    data.add(1)
    check(v.traces[0])


def test_data_of_loops_that_run_pass_by_pass_are_annealed_too() -> None:
    v = Venture(seed=2)
    v.execute(CRP + "[assume coin (mem (lambda (k) (make_beta_bernoulli 0.5 0.5)))]")
    v.execute("for n in 1...3:\n  [observe ((coin (z n))) {x[n]}]\n  [infer (anneal z linear 1)]", x=FACES)
    check(v.traces[0])
    assert data_of(v).count == 3


def test_vectors_come_back_as_they_were() -> None:
    x = np.arange(8.0).reshape(4, 2)
    text = (
        CRP
        + """
    [assume mean (mem (lambda (k) (tag 'mean k (multivariate_normal (vector 0 0) (matrix (list 9 0) (list 0 9))))))]
    [assume row (mem (lambda (n) (multivariate_normal (mean (z n)) (matrix (list 1 0) (list 0 1)))))]
    data: for n in 1...N:
      told: [observe (row n) {x[n]}]
    """
    )
    v = venture(text, x)
    v.infer("(anneal z linear 2 (mh mean one 2))")
    check(v.traces[0])
    assert np.array_equal(np.array(v.report("told")), x)


# ---------------------------------------------------------------------------------------------------- 'energy


def test_energy_is_annealed_with_all_data_in() -> None:
    v = venture(COINS, FACES * 2)
    powers: list[float] = []
    model = v.traces[0]
    assign = Assignments.assign

    def noted(self: Assignments, *arguments: Any, **named: Any) -> bool:
        powers.append(model.regenerator.power)
        return assign(self, *arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Assignments, "assign", noted)
        found = small(v, "(anneal z linear 'energy 2)")
    assert found.details["removals"] == 0
    assert powers == [size / 8 for size in range(1, 9) for _ in range(3)]
    assert model.regenerator.power == 1.0
    before = labels(v, 8)
    model.interrupt_after = 5
    with pytest.raises(KeyboardInterrupt):
        v.infer("(anneal z linear 'energy 2)")
    check(model)
    assert model.regenerator.power == 1.0
    assert labels(v, 8) == before


# ------------------------------------------------------------------------------------------ errors and interruption


def labels(v: Venture, count: int) -> list[Any]:
    return [v.sample(f"(z {n})") for n in range(1, count + 1)]


VIEWS = (
    COINS.split("for n")[0]
    + """
[assume other (make_crp 1)]
[assume w (mem (lambda (n) (tag 'z (+ n 10) (other))))]
for n in 1...N:
  [observe ((coin (z n))) {x[n]}]
  [observe ((coin (+ 100 (w n)))) (= n 2)]
  [predict (w n)]
"""
)
VIEWS_OF_NORMALS = (
    VIEWS.replace("(make_beta_bernoulli 0.5 0.5)", "(normal 0 1)")
    .replace("[observe ((coin (z n)))", "[observe (normal (coin (z n)) 1)")
    .replace("[observe ((coin (+ 100 (w n)))) (= n 2)]", "[observe (normal (coin (+ 100 (w n))) 1) n]")
)
INTERRUPTED = {
    "collapsed": (COINS, "(anneal z linear 1)"),
    "collapsed, with kernels": (COINS.replace("crp 1.5", "crp (gamma 1 1)"), "(anneal z linear 1 (mh default one 1))"),
    "own parameters": (NORMALS, "(anneal z linear 1)"),
    "energy": (COINS, "(anneal z linear 'energy 1)"),
    "two views": (VIEWS, "(anneal z linear 1)"),
    "two views, with parameters": (VIEWS_OF_NORMALS, "(anneal z linear 0)"),
}


def others(v: Venture, text: str) -> list[Any]:
    """The assignments of the second view, if there is one."""
    return [v.sample(f"(w {n})") for n in range(1, 5)] if "[assume w" in text else []


@pytest.mark.parametrize("name", INTERRUPTED)
@pytest.mark.thorough
def test_ctrl_c_at_any_point_puts_the_assignments_back(name: str) -> None:
    text, kernel = INTERRUPTED[name]
    v = venture(text, [True, False, True, True])
    v.infer(kernel)
    (model,) = v.traces
    model.machine.poll_every = 1
    points = 0
    while True:
        before, score = (labels(v, 4), others(v, text)), v.log_score()
        model.interrupt_after = points + 1
        try:
            v.infer(kernel)
        except KeyboardInterrupt:
            points += 1
        else:
            break
        check(model)
        assert (labels(v, 4), others(v, text)) == before
        assert data_of(v).count == 4
        if name in ("collapsed", "energy"):
            assert v.log_score() == pytest.approx(score, abs=1e-9)
    assert points >= 8
    model.interrupt_after = None
    v.infer(kernel)
    check(model)


def test_an_error_in_a_kernel_puts_the_assignments_back() -> None:
    v = venture(NORMALS, REALS)
    v.infer("(anneal z linear 2)")
    before = labels(v, 4)
    with pytest.raises(VentureError, match="gibbs enumerates finite supports"):
        v.infer("(anneal z linear 2 (gibbs mean one 1))")
    check(v.traces[0])
    assert labels(v, 4) == before


@pytest.mark.parametrize(
    ("text", "kernel", "message", "place"),
    [
        (
            COINS,
            "(anneal z (lambda (t) 5) 1)",
            "the 4 data that there are, got 5 in step 1",
            "(lambda (t) 5)",
        ),
        (COINS, "(anneal z (lambda (t) 0) 1)", "got 0 in step 1", "(lambda (t) 0)"),
        (COINS, "(anneal z (lambda (t) 3) 1)", "ends at 3 of 4 data, in step 8", "(lambda (t) 3)"),
        (COINS, "(anneal z (lambda (t n) 4) 1)", "a schedule takes one argument", "(lambda (t n) 4)"),
        (COINS, "(anneal z (lambda (t) (if (flip) 4 3)) 1)", "a schedule must not be random", "(lambda"),
        (COINS, "(anneal z 7 1)", "SCHEDULE must be linear, sequential, constant or a procedure, got 7", "7"),
        (COINS, "(anneal z liner 1)", "unknown name liner", "liner"),
        (
            COINS,
            "(anneal z linear 1 (cycle ((anneal z linear 1)) 2))",
            "cannot run inside another",
            "(anneal z linear 1)",
        ),
        (COINS, "(anneal zz linear 1)", "no datum has a latent assignment in the scope zz", "(anneal"),
        (COINS, "(anneal z linear 'energy 2 (mh z one 1))", "with 'energy no kernels run", "(mh z one 1)"),
        (COINS, "(anneal z linear 'energy)", "anneal is written", "(anneal"),
        (COINS, "(anneal z linear)", "anneal is written", "(anneal"),
        (COINS, "(anneal z linear -1)", "T must be a whole number", "-1"),
        (NORMALS, "(anneal mean linear 1)", "gibbs enumerates finite supports; normal has none", "(normal 0 2)"),
        (CRP + "[predict (z 1)]", "(anneal z linear 1)", "there are no data to anneal", "(anneal"),
        (CRP + "[observe (normal (z 1) 1) 2]", "(anneal z linear 1)", "there are no data to anneal", "(anneal"),
        (
            CRP + "for n in 1...2: for n in 1...2: [observe (normal (z n) 1) 2]",
            "(anneal z linear 1)",
            "two data have the same index (n = 1)",
            "for n in",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_moves(text: str, kernel: str, message: str, place: str) -> None:
    v = venture(text, FACES)
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError, match=re.escape(message)) as caught:
        v.infer(kernel)
    assert caught.value.span is not None
    assert caught.value.span.text.startswith(place)
    assert snapshot(v.traces[0]) == before
