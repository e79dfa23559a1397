"""`anneal`: the posterior where its law is exact, the numbers of assignments, what stays and what goes, refusals, and
the trace after errors and Ctrl-C."""

from __future__ import annotations

import copy
import itertools
import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from scipy import special

from tests.posterior.derive import (
    groups,
    iid_normal_evidence,
    log_crp,
    partition_code,
    partition_expression,
    partitions,
    table,
)
from tests.statistics import Expected, assert_chain_agrees
from venture_lite import Venture, VentureError
from venture_lite.draws import Draws, KernelStatistics
from venture_lite.inference.anneal import Annealing
from venture_lite.inference.data import Data, Subsample
from venture_lite.inference.gibbs import Gibbs
from venture_lite.session.loop_data import LoopData
from venture_lite.trace.invariants import check
from venture_lite.trace.statistics import Statistics

CRP = """
[assume crp (make_crp 1.5)]
[assume z (mem (lambda (n) (tag 'z n (crp))))]
"""
COINS = (
    CRP
    + """
[assume coin (mem (lambda (k) (make_beta_bernoulli 0.5 0.5)))]
for n in 1...N: [observe ((coin (z n))) {x[n]}]
"""
)
NORMALS = (
    CRP
    + """
[assume mean (mem (lambda (k) (tag 'mean k (normal 0 2))))]
for n in 1...N: [observe (normal (mean (z n)) 0.8) {x[n]}]
"""
)
URNS = """
[assume urn (mem (lambda (left) (make_beta_bernoulli 0.5 0.5)))]
[assume left (mem (lambda (n) (tag 'left n (flip 0.45))))]
for n in 1...N: [observe ((urn (left n))) {x[n]}]
"""
FACES = [True, True, False, True]
REALS = [-1.0, -0.4, 1.3, 1.9]


def venture(text: str, x: Any, seed: int = 1, **parameters: Any) -> Venture:
    v = Venture(seed=seed)
    v.execute(text, x=x, N=len(x), **parameters)
    return v


def beta_evidence(part: list[float], a: float = 0.5) -> float:
    heads = sum(part)
    return float(special.betaln(a + heads, a + len(part) - heads) - special.betaln(a, a))


def over_partitions(x: list[Any], evidence: Callable[[list[float]], float]) -> dict[float, float]:
    return {
        partition_code(p): math.exp(log_crp(p, 1.5) + math.fsum(map(evidence, groups(p, x))))
        for p in partitions(len(x))
    }


def of_coins() -> Mapping[str, Expected]:
    return {"z": table(over_partitions(FACES, beta_evidence))}


def of_normals() -> Mapping[str, Expected]:
    return {"z": table(over_partitions(REALS, lambda part: iid_normal_evidence(part, 0.0, 2.0, 0.8)))}


def of_urns() -> Mapping[str, Expected]:
    weights: dict[float, float] = {}
    for sides in itertools.product((0, 1), repeat=len(FACES)):
        weight = math.prod(0.45 if side else 0.55 for side in sides)
        parts = [[x for x, s in zip(FACES, sides, strict=True) if s == side] for side in (0, 1)]
        code = float(sum(side << i for i, side in enumerate(sides)))
        weights[code] = weight * math.exp(sum(map(beta_evidence, parts)))
    return {"z": table(weights)}


PARTITION = partition_expression(["(z 1)", "(z 2)", "(z 3)", "(z 4)"])
SIDES = " ".join(f"(* {2**i} (left {i + 1}))" for i in range(4))
CASES = {
    "collapsed": (COINS, FACES, PARTITION, of_coins, "(anneal z constant 1)"),
    "own parameters": (NORMALS, REALS, PARTITION, of_normals, "(anneal z constant 1 (mh mean one 4))"),
    "two urns": (URNS, FACES, f"(+ {SIDES})", of_urns, "(anneal left constant 1)"),
}


def chain(case: str, seed: int) -> Callable[[int], dict[str, np.ndarray]]:
    text, x, expression, _, kernel = CASES[case]
    v = venture(text, x, seed)

    def more(n: int) -> dict[str, np.ndarray]:
        draws = v.infer(f"(repeat {n} (do {kernel} (collect (labelled {expression} z))))")
        assert isinstance(draws, Draws)
        return {"z": np.asarray(draws["z"], dtype=float).reshape(n)}

    return more


# ------------------------------------------------------------------------------------------------- what is exact


@pytest.mark.parametrize("case", CASES)
def test_churns_at_full_size_keep_the_posterior(case: str) -> None:
    """False alarms below 1e-6, by assert_chain_agrees."""
    assert_chain_agrees(chain(case, seed=5), CASES[case][3](), draws=400, what=case)


def removed_and_added(self: Annealing, data: Data, subsample: Subsample) -> None:
    """Every datum is taken out and put in again, also where it is the same."""
    datum = subsample.take_out(self._draw())
    assert datum == subsample.take_in(0.0)
    self._remove(data, datum)
    data.add(datum)
    self._assign(data, datum, new=True)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["collapsed", "two urns"])
def test_to_remove_and_add_a_datum_is_a_gibbs_step_to_within_0_005(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """40,000 draws: a standard error of 0.0025 at most, were they independent."""
    monkeypatch.setattr(Annealing, "_churn", removed_and_added)
    assert_chain_agrees(chain(case, seed=8), CASES[case][3](), draws=40_000, what=case)


@pytest.mark.parametrize("case", ["collapsed", "two urns"])
def test_to_remove_and_add_a_datum_is_a_gibbs_step(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarms below 1e-6, by assert_chain_agrees."""
    monkeypatch.setattr(Annealing, "_churn", removed_and_added)
    assert_chain_agrees(chain(case, seed=6), CASES[case][3](), draws=400, what=case)


@pytest.mark.slow
def test_statistics_of_a_removed_datum_that_are_left_in_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave_in(self: Annealing, data: Data, datum: int) -> None:
        with monkeypatch.context() as broken:
            broken.setattr(Statistics, "unincorporate", lambda *_: None)
            data.remove(datum)

    monkeypatch.setattr(Annealing, "_churn", removed_and_added)
    monkeypatch.setattr(Annealing, "_remove", leave_in)
    with pytest.raises(AssertionError, match="expected"):
        assert_chain_agrees(chain("collapsed", seed=6), of_coins(), draws=300, what="left in")


def test_sequential_assignment_has_the_law_of_its_orders() -> None:
    """Independent draws against every order and every assignment of three data; false alarms below 1e-6."""
    x = [True, True, False]
    weights = dict.fromkeys(range(8), 0.0)
    for order in itertools.permutations(range(3)):
        for sides in itertools.product((0, 1), repeat=3):
            probability, counts = 1 / 6, {0: [0.5, 0.5], 1: [0.5, 0.5]}
            for n in order:
                shares = [(0.55, 0.45)[s] * counts[s][x[n]] / sum(counts[s]) for s in (0, 1)]
                probability *= shares[sides[n]] / sum(shares)
                counts[sides[n]][x[n]] += 1
            weights[sum(side << n for n, side in enumerate(sides))] += probability
    v = venture(URNS, x)

    def more(n: int) -> dict[str, np.ndarray]:
        code = "(+ (left 1) (* 2 (left 2)) (* 4 (left 3)))"
        draws = v.infer(f"(repeat {n} (do (anneal left sequential 0) (collect (labelled {code} z))))")
        assert isinstance(draws, Draws)
        return {"z": np.asarray(draws["z"], dtype=float).reshape(n)}

    assert_chain_agrees(more, {"z": table({float(k): w for k, w in weights.items()})}, draws=800, what="sequential")


VIEWS = """
[assume crp (mem (lambda (v) (make_crp 1.5)))]
[assume z (mem (lambda (v n) (tag 'z (+ (* 10 v) n) ((crp v)))))]
[assume coin (mem (lambda (v k) (make_beta_bernoulli 0.5 0.5)))]
for n in 1...N:
  [observe ((coin 1 (z 1 n))) {x[n]}]
  [observe ((coin 2 (z 2 n))) {y[n]}]
"""


def test_a_datum_may_have_an_assignment_in_each_of_several_views(monkeypatch: pytest.MonkeyPatch) -> None:
    """False alarms below 1e-6, by assert_chain_agrees."""
    monkeypatch.setattr(Annealing, "_churn", removed_and_added)
    x, y = FACES[:3], FACES[1:]
    v = venture(VIEWS, x, y=y)
    names = {view: partition_expression([f"(z {view} {n})" for n in (1, 2, 3)]) for view in (1, 2)}

    def more(n: int) -> dict[str, np.ndarray]:
        collected = " ".join(f"(labelled {expression} view{view})" for view, expression in names.items())
        draws = v.infer(f"(repeat {n} (do (anneal z constant 0) (collect {collected})))")
        assert isinstance(draws, Draws)
        return {name: np.asarray(draws[name], dtype=float).reshape(n) for name in ("view1", "view2")}

    exact = {f"view{k}": table(over_partitions(values, beta_evidence)) for k, values in ((1, x), (2, y))}
    assert_chain_agrees(more, exact, draws=400, what="two views")


def test_assignments_of_one_block_are_drawn_together() -> None:
    """Data that are independent given nothing: every annealing is an exact draw. False alarms below 1e-6."""
    text = """
    [assume a (mem (lambda (n) (tag 'ab n (flip 0.1))))]
    [assume b (mem (lambda (n) (tag 'ab n (flip 0.9))))]
    for n in 1...N: [observe (flip (if (a n) (if (b n) 0.95 0.05) (if (b n) 0.05 0.95))) {x[n]}]
    """
    v = venture(text, [True, False])
    weights = {
        a + 2.0 * b: (0.1 if a else 0.9) * (0.9 if b else 0.1) * (0.95 if a == b else 0.05)
        for a, b in itertools.product((0, 1), repeat=2)
    }

    def more(n: int) -> dict[str, np.ndarray]:
        draws = v.infer(f"(repeat {n} (do (anneal ab linear 0) (collect (labelled (+ (a 1) (* 2 (b 1))) ab))))")
        assert isinstance(draws, Draws)
        return {"ab": np.asarray(draws["ab"], dtype=float).reshape(n)}

    assert_chain_agrees(more, {"ab": table(weights)}, draws=600, what="together")


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
    """While n are in, each n assignments; sizes 1, 1, 2, 2, 3, 3, 4, 4: after 1, 2, 4, 7 (and not again until 11)."""
    draws = venture(URNS, [True, False] * 2).infer("(anneal left linear 1 (collect (left 1)))")
    assert isinstance(draws, Draws)
    assert draws["(left 1)"].shape[1] == draws.statistics[0].details["passes of kernels"] == 4


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

    assert_chain_agrees(more, {"s": table(weights)}, draws=400, what="a hidden chain")
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


@pytest.mark.parametrize("power", [1.0, 0.4])
def test_a_tempered_likelihood_is_raised_to_its_power(power: float) -> None:
    """At a power that stays, by gibbs; false alarms below 1e-6."""
    v = venture(COINS.replace("0.5 0.5", "0.1 0.1"), FACES)
    v.traces[0].regenerator.power = power

    def more(n: int) -> dict[str, np.ndarray]:
        draws = v.infer(f"(repeat {n} (do (gibbs z one 4) (collect (labelled {PARTITION} z))))")
        assert isinstance(draws, Draws)
        return {"z": np.asarray(draws["z"], dtype=float).reshape(n)}

    weights = over_partitions(FACES, lambda part: power * beta_evidence(part, 0.1))
    assert_chain_agrees(more, {"z": table(weights)}, draws=300, what=f"power {power}")


def test_energy_is_annealed_with_all_data_in() -> None:
    v = venture(COINS, FACES * 2)
    powers: list[float] = []
    model = v.traces[0]
    step = Gibbs.step

    def noted(self: Gibbs, *arguments: Any) -> bool:
        powers.append(model.regenerator.power)
        return step(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Gibbs, "step", noted)
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


@pytest.mark.parametrize("text", [COINS, NORMALS], ids=["collapsed", "own parameters"])
@pytest.mark.parametrize("point", [1, 4, 9, 20, 37, 60])
def test_ctrl_c_puts_the_assignments_back(text: str, point: int) -> None:
    v = venture(text, [True, False] * 4)
    v.infer("(anneal z linear 2)")
    (model,), before, score = v.traces, labels(v, 8), v.log_score()
    model.machine.poll_every = 1
    model.interrupt_after = point
    with pytest.raises(KeyboardInterrupt):
        v.infer("(anneal z linear 2)")
    check(model)
    assert labels(v, 8) == before
    assert data_of(v).count == 8
    if text == COINS:
        assert v.log_score() == pytest.approx(score, abs=1e-9)
    v.infer("(anneal z linear 1)")
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
    before = v.traces[0].snapshot()
    with pytest.raises(VentureError, match=re.escape(message)) as caught:
        v.infer(kernel)
    assert caught.value.span is not None
    assert caught.value.span.text.startswith(place)
    assert v.traces[0].snapshot() == before
