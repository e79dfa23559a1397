"""`pgibbs` on models: exact against enumeration for few particles, by columns and on the trace; what it refuses; the
trace as it was after an error or an interruption."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from tests.engines.particle_models import (
    BRANCHES,
    CHAIN,
    MODELS,
    OTHER,
    PLAIN,
    WITHOUT_DATA,
    Model,
    code,
    exact,
    normal,
    persistence,
)
from tests.statistics import assert_chain_agrees, assert_chain_misses
from venture_lite import Venture, VentureError, VentureWarning
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.engines.pgibbs import particle_columns, particle_tree
from venture_lite.engines.pgibbs.pgibbs import ParticleGibbs
from venture_lite.interpreter.schedule import Schedule
from venture_lite.interpreter.selection import Selection, Selector


def draws_of(text: str, query: str, kernel: str, seed: int, kernels: str) -> Callable[[int], Mapping[str, np.ndarray]]:
    v = Venture(seed=seed, kernels=kernels)
    v.execute(text)

    def more(count: int) -> dict[str, np.ndarray]:
        found = v.infer(f"(repeat {count} (do {kernel} (collect (labelled {query} state))))")
        check(v.traces[0])
        return {"state": np.asarray(found["state"], dtype=float).reshape(count)}

    return more


def agrees(model: Model, kernel: str, draws: int, seed: int = 3, kernels: str = "compiled") -> None:
    text, query, answer = model
    assert_chain_agrees(draws_of(text, query, kernel, seed, kernels), answer(), draws, f"{kernel} on {text}")


@pytest.mark.parametrize("name", ["panel", "maker"])
@pytest.mark.thorough
def test_a_sweep_keeps_the_posterior(name: str) -> None:
    agrees(MODELS[name], "(pgibbs x ordered 3 2)", 250)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("particles", [2, 3, 5])
def test_a_sweep_keeps_the_posterior_with_many_draws(name: str, particles: int) -> None:
    """To a standard error of 0.014 in the models whose sweeps are quick, of 0.024 in the others."""
    quick = name in ("chain", "long memory", "backward", "pairs")
    agrees(MODELS[name], f"(pgibbs x ordered {particles} 1)", 12_000 if quick else 3_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("option", ["", "'ancestor"])
def test_on_the_trace_a_sweep_keeps_the_posterior_too(name: str, option: str) -> None:
    agrees(PLAIN[name], f"(pgibbs x ordered 3 {option} 1)", 3_000, kernels="interpreted")


@pytest.mark.thorough
def test_what_goes_by_columns_gives_the_same_on_the_trace() -> None:
    agrees(PLAIN["long memory"], "(pgibbs x ordered 3 2)", 250, kernels="interpreted")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in ("panel", "pairs"))) for name in PLAIN]
)
@pytest.mark.thorough
def test_ancestor_sampling_keeps_the_posterior(name: str) -> None:
    agrees(PLAIN[name], "(pgibbs x ordered 3 'ancestor 2)", 250)


@pytest.mark.thorough
def test_ancestor_sampling_on_the_trace() -> None:
    agrees(PLAIN["long memory"], "(pgibbs x ordered 3 'ancestor 2)", 250, kernels="interpreted")


@pytest.mark.parametrize("option", [pytest.param("", marks=pytest.mark.slow), "'ancestor"])
@pytest.mark.thorough
def test_ranges_carry_what_later_blocks_say_of_them(option: str) -> None:
    """Blocks 3 and 4 stay while 1 and 2 move: block 2 has to be weighed by state 3."""
    kernel = f"(cycle ((pgibbs x (ordered_range 1 2) 3 {option} 1) (pgibbs x (ordered_range 2 4) 3 {option} 1)) 2)"
    agrees(PLAIN["chain"], kernel, 250)


@pytest.mark.thorough
def test_particle_gibbs_cycles_with_other_engines() -> None:
    agrees(MODELS["tables"], "(cycle ((pgibbs x ordered 3 1) (mh x one 2) (gibbs x one 1) (mh default one 1)) 1)", 250)


@pytest.mark.parametrize("kernels", ["compiled", pytest.param("interpreted", marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_states_and_data_redrawn_in_turn_keep_their_prior(kernels: str) -> None:
    """Geweke's test (2004), with the exact prior of the states."""
    agrees(WITHOUT_DATA, "(pgibbs x ordered 3 1) (mh y each 1)", 1200, kernels=kernels)


@pytest.mark.slow
def test_weights_counted_twice_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    count_weights_twice(monkeypatch)
    with pytest.raises(AssertionError, match="effective draws"):
        agrees(WITHOUT_DATA, "(pgibbs x ordered 3 1) (mh y each 1)", 1200)


def uniformly(rng: np.random.Generator, share: np.ndarray) -> np.ndarray:
    return rng.integers(share.shape[1], size=len(share))


@pytest.mark.parametrize("name", ["chain", "tables"])
@pytest.mark.slow
def test_a_forgotten_weight_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The same test with an engine that is wrong: the last weights are not looked at."""
    forget_weights(monkeypatch)
    text, query, answer = MODELS[name]
    assert_chain_misses(draws_of(text, query, "(pgibbs x ordered 3 2)", 3, "compiled"), answer(), 12_000)


def forget_weights(patch: pytest.MonkeyPatch) -> None:
    for module in (particle_columns, particle_tree):
        patch.setattr(module, "draw_particles", uniformly)


def count_weights_twice(patch: pytest.MonkeyPatch) -> None:
    right = particle_columns.shares
    patch.setattr(particle_columns, "shares", lambda impossible, total: right(impossible, 2 * total))


# one sweep a draw: what a single sweep makes wrong is not mended by the next
FEW_DRAWS = "(pgibbs x ordered 3 1)", 600


@pytest.mark.thorough
def test_few_draws_of_a_long_memory_agree() -> None:
    agrees(MODELS["long memory"], *FEW_DRAWS)


@pytest.mark.thorough
@pytest.mark.parametrize("wrong", [forget_weights, count_weights_twice])
def test_few_draws_of_a_long_memory_notice(
    wrong: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong(monkeypatch)
    text, query, answer = MODELS["long memory"]
    kernel, draws = FEW_DRAWS
    assert_chain_misses(draws_of(text, query, kernel, 3, "compiled"), answer(), draws)


# ------------------------------------------------------------------------------------------------- state and cost

VOLATILITY = """
[assume h (mem (lambda (t) (scope_include 'h t (if (= t 1) (normal 0 1) (normal (* 0.9 (h (- t 1))) 0.5)))))]
for t in 1...N: [observe (normal 0 (exp (/ (h t) 2))) {Y[t]}]
"""


def volatility(length: int = 12) -> Venture:
    v = Venture(seed=2)
    v.execute(VOLATILITY, N=length, Y=np.random.default_rng(0).normal(size=length))
    return v


def scheduled(v: Venture, scope: str = "x") -> Schedule:
    return Schedule(v.traces[0].trace, Selection(v.traces[0], scope, Selector("ordered")).in_order())


def sweep(v: Venture) -> bool:
    """One sweep of three particles; whether the state changed."""
    return ParticleGibbs(v.traces[0], 3, False).sweep(Selection(v.traces[0], "x", Selector("ordered")))


@pytest.mark.parametrize("name", ["chain", "branches", "tables", "maker"])
def test_an_interruption_leaves_the_trace_as_it_was(name: str) -> None:
    v = Venture(seed=4)
    v.execute(MODELS[name][0])
    model = v.traces[0]
    sweep(v)
    for at in range(1, 60):
        before = snapshot(model)
        model.interrupt_after = at
        try:
            sweep(v)
        except KeyboardInterrupt:
            assert snapshot(model) == before
            check(model)
            continue
        model.interrupt_after = None
        break
    else:
        pytest.fail("every sweep was interrupted")
    assert at > 3


@pytest.mark.parametrize("name", MODELS)
def test_a_sweep_that_ends_at_the_retained_state_changes_nothing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for module in (particle_columns, particle_tree):
        monkeypatch.setattr(module, "draw_particles", lambda rng, share: np.zeros(len(share), int))
    v = Venture(seed=4)
    v.execute(MODELS[name][0])
    before = snapshot(v.traces[0])
    assert not sweep(v)
    assert snapshot(v.traces[0]) == before


@pytest.mark.parametrize(("kernels", "particles"), [("compiled", 5000), ("interpreted", 2000)])
def test_an_error_in_a_particle_is_located_and_leaves_the_trace_as_it_was(kernels: str, particles: int) -> None:
    v = Venture(seed=1, kernels=kernels)
    v.execute("""[assume s (mem (lambda (t) (scope_include 's t (normal 3 1))))]
[assume y (lambda (t) (normal 0 (sqrt (s t))))]
[observe (y 1) 0.5]
[observe (y 2) 0.5]""")
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError, match="sqrt") as caught:
        v.infer(f"(pgibbs s ordered {particles} 1)")
    assert caught.value.span is not None
    assert caught.value.span.place() == "<input>:2:33"
    assert snapshot(v.traces[0]) == before


def test_a_markov_chain_weighs_one_later_term_for_an_ancestor() -> None:
    details = volatility().infer("(pgibbs h ordered 10 'ancestor 5)").statistics[0].details
    assert details["mean later terms weighed for an ancestor"] == 1.0
    assert details["mean fraction of blocks moved"] > 0.5


def test_only_what_later_steps_read_is_carried() -> None:
    """P particles over T blocks cost O(P T): a chain carries one state from block to block, whatever its length."""
    v = volatility(40)
    (bundle,) = particle_columns.ColumnSweep(v.traces[0], scheduled(v, "h"), 5, False)._bundles
    assert max(map(len, bundle._kept_after)) <= 3


SWITCHES = """
[assume z (mem (lambda (t) (scope_include 'x t (flip (if (= t 1) 0.5 (if (z (- t 1)) 0.9 0.1))))))]
[assume e (mem (lambda (t) (if (z t) (normal 2 1) (normal 0 (if (flip 0.5) 1 2)))))]
for t in 1...N: [observe (normal (e t) 0.5) {Y[t]}]
"""
CLUSTERS = """
[assume c (make_crp 1.3)]
[assume z (mem (lambda (t) (scope_include 'x t (c))))]
[assume mean (mem (lambda (k) (normal 0 3)))]
for t in 1...N: [observe (normal (mean (z t)) 1) {Y[t]}]
"""


def swept(text: str, length: int, option: str = "") -> dict[str, float]:
    v = Venture(seed=2)
    v.execute(text, N=length, Y=np.random.default_rng(0).normal(size=length))
    return v.infer(f"(pgibbs x ordered 10 {option} 3)").statistics[0].details


@pytest.mark.thorough
@pytest.mark.parametrize("length", [8, 24])
def test_with_brush_in_every_block_no_step_of_the_past_is_played_again(length: int) -> None:
    """P particles over T blocks cost O(P T), on the trace as well: what a step needs of its past is recalled."""
    assert "mean steps played again for a particle's" not in swept(SWITCHES, length)


@pytest.mark.thorough
def test_only_steps_that_open_a_table_are_played_again() -> None:
    """All else that they leave behind are counts."""
    played = swept(CLUSTERS, 40)["mean steps played again for a particle's"]
    assert 0 < played < 2


@pytest.mark.parametrize("length", [8, 24])
@pytest.mark.thorough
def test_with_brush_in_every_block_a_chain_weighs_few_later_terms(length: int) -> None:
    """The next state, and what its step says of it; not all of the states to come."""
    assert swept(SWITCHES, length, "'ancestor")["mean later terms weighed for an ancestor"] < 4.5


def test_independent_series_are_drawn_side_by_side() -> None:
    """The two of one length in one call, each by weights of its own; the longer one apart."""
    v = Venture(seed=1)
    v.execute(PLAIN["panel"][0])
    bundles = particle_columns.ColumnSweep(v.traces[0], scheduled(v), 3, True)._bundles
    assert [(found.bundle.count, len(found.bundle.steps)) for found in bundles] == [(2, 2), (1, 3)]


def test_series_of_unlike_procedures_are_drawn_one_after_the_other() -> None:
    v = Venture(seed=1)
    v.execute("""[assume f (lambda (s) (if (= s 1) exp sqrt))]
[assume x (mem (lambda (s) (scope_include 'x s (gamma 2 1))))]
[assume y (lambda (s) (normal ((f s) (x s)) 1))]
[observe (y 1) 2]
[observe (y 2) 2]""")
    bundles = particle_columns.ColumnSweep(v.traces[0], scheduled(v), 3, False)._bundles
    assert [found.bundle.count for found in bundles] == [1, 1]
    v.infer("(pgibbs x ordered 5 20)")
    check(v.traces[0])


# ----------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("kernel", "message", "place"),
    [
        ("(pgibbs x ordered 1 5)", "P must be a whole number, 2 or more, got 1", "<input>:1:19"),
        ("(pgibbs x one 5 5)", "in order", "<input>:1:11"),
        ("(pgibbs x 3 5 5)", "in order", "<input>:1:11"),
        ("(pgibbs x ordered 5)", "is written", "<input>:1:1"),
        ("(pgibbs x ordered 5 'ancestors 5)", "no such option", "<input>:1:21"),
        ("(pgibbs x ordered 2.5 5)", "whole number", "<input>:1:19"),
    ],
)
def test_what_is_written_wrongly_is_refused_at_its_place(kernel: str, message: str, place: str) -> None:
    v = Venture(seed=1)
    v.execute(CHAIN)
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError, match=message) as caught:
        v.infer(kernel)
    assert caught.value.span is not None
    assert caught.value.span.place() == place
    assert snapshot(v.traces[0]) == before


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ("(pgibbs nobody ordered 5 2)", "the scope nobody is empty"),
        ("(pgibbs x (ordered_range 7 9) 5 2)", "no block in .ordered_range 7 9."),
        ("(pgibbs x (ordered_range 3 2) 5 2)", "no block in .ordered_range 3 2."),
        ("(pgibbs default (ordered_range 1 2) 5 2)", "blocks have no keys"),
    ],
)
def test_where_there_is_no_block_a_warning_says_so(kernel: str, message: str) -> None:
    v = Venture(seed=1)
    v.execute(CHAIN)
    before = snapshot(v.traces[0])
    with pytest.warns(VentureWarning, match=message) as caught:
        v.infer(kernel)
    assert len(caught) == 1
    assert snapshot(v.traces[0]) == before


@pytest.mark.thorough
@pytest.mark.slow
def test_only_histories_that_the_retained_brush_fits_are_ancestors() -> None:
    agrees(MODELS["rows"], "(pgibbs x ordered 5 'ancestor 1)", 400)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHER)
def test_only_histories_that_the_retained_brush_fits_are_ancestors_with_many_draws(name: str) -> None:
    """The next block's state may have come with one before, a predicate reads the block before, a table's coin and a
    state's row come with the first that asks for them."""
    agrees(MODELS[name], "(pgibbs x ordered 3 'ancestor 1)", 4_000)


@pytest.mark.thorough
def test_how_many_may_be_ancestors_is_told() -> None:
    v = Venture(seed=3)
    v.execute(MODELS["rows"][0])
    details = v.infer("(pgibbs x ordered 5 'ancestor 40)").statistics[0].details
    assert 0.2 < details["mean fraction of particles that may be an ancestor"] < 0.95


@pytest.mark.thorough
@pytest.mark.slow
def test_ancestors_are_drawn_where_brush_depends_on_its_own_block() -> None:
    text = BRANCHES.replace("(if (if (= t 1) true (z (- t 1))) 1 (flip 0.5))", "1")
    weights: dict[float, float] = {}
    for z in itertools.product((0, 1), repeat=3):
        weight = persistence(z, 0.4, 0.7, 0.2)
        for state, y in zip(z, (1, 1.6, 0.4), strict=True):
            weight *= 0.3 * normal(y, 2, 0.8) + 0.7 * normal(y, 0, 0.8) if state else normal(y, 1, 0.8)
        weights[code(*z)] = weight
    agrees((text, OTHER["branches"][1], lambda: exact(weights)), "(pgibbs x ordered 3 'ancestor 2)", 500)


@pytest.mark.parametrize(
    ("values", "number", "option"),
    [
        ("(list 1 0.5)", "y", ""),
        ("(list (list 1 0) (list 0.5 0))", "(first y)", "'ancestor"),
        ("(list 1 (vector 0.5 0))", "(if (is_number y) y 0.5)", ""),
        pytest.param("(list 1 (vector 0.5 0))", "(if (is_number y) y 0.5)", "'ancestor", marks=pytest.mark.slow),
    ],
)
@pytest.mark.thorough
def test_particles_may_hold_values_of_several_types(values: str, number: str, option: str) -> None:
    text = f"""[assume r (flip 0.4)] [assume y (lookup {values} (if r 0 1))] [assume s (flip (if r 0.3 0.8))]
[observe (flip (* {number} (if s 0.9 0.5))) true]"""
    weights = {
        code(r, s): (0.4 if r else 0.6) * (up if s else 1 - up) * (1 if r else 0.5) * (0.9 if s else 0.5)
        for r, up in ((1, 0.3), (0, 0.8))
        for s in (0, 1)
    }
    agrees((text, "(+ r (* 2 s))", lambda: exact(weights)), f"(pgibbs default ordered 3 {option} 1)", 600)


def test_impossible_states_are_left_for_possible_ones() -> None:
    v = Venture(seed=5)
    v.execute("""[assume x (mem (lambda (t) (scope_include 'x t (uniform_discrete 0 3))))]
[observe (uniform_continuous (x 1) (+ (x 1) 1)) 1.5]
[observe (uniform_continuous (x 2) (+ (x 2) (* 2 (x 1)))) 2.5]""")
    v.infer("(pgibbs x ordered 20 5)")
    assert v.sample("(x 1)") == 1
    assert v.sample("(x 2)") in (1, 2)


def test_vectors_strings_and_pairs_go_by_columns_too() -> None:
    v = Venture(seed=6)
    v.execute(
        """[assume u (mem (lambda (t) (scope_include 'x t
    (if (= t 1) (multivariate_normal (vector 0 0) (matrix (list 1 0) (list 0 1)))
                (multivariate_normal (u (- t 1)) (matrix (list 1 0.5) (list 0.5 1)))))))]
[assume name (mem (lambda (t) (scope_include 'x (+ t 0.5) (categorical (list 0.5 0.5) (list 'low 'high)))))]
for t in 1...4: [observe (normal (+ (dot (vector 1 2) (u t)) (if (= (name t) 'low) 0 1)) 1) {Y[t]}]""",
        Y=[1, 2, 0, 1],
    )
    assert v.infer("(pgibbs x ordered 6 30)").statistics[0].accepted > 0
    check(v.traces[0])


def values(found: Any) -> np.ndarray:
    return np.asarray(found, dtype=float)[0]


@pytest.mark.slow
def test_a_gaussian_chain_has_the_moments_of_its_smoother() -> None:
    """Against the exact posterior of a linear Gaussian chain: standardised means and variances of 12 states, each
    within 5.5 standard errors at the effective sizes found, a false alarm with probability below 24 * 4e-8 = 1e-6."""
    from venture_lite.draws import diagnostics

    length = 12
    data = np.random.default_rng(1).normal(size=length)
    v = Venture(seed=9)
    v.execute(VOLATILITY.replace("(normal 0 (exp (/ (h t) 2)))", "(normal (h t) 0.7)"), N=length, Y=data)
    transition = np.eye(length) - np.diag(np.full(length - 1, 0.9), -1)
    noise = np.diag([1.0, *[4.0] * (length - 1)])
    covariance = np.linalg.inv(transition.T @ noise @ transition + np.eye(length) / 0.49)
    mean = covariance @ (data / 0.49)
    names = " ".join(f"(h {t})" for t in range(1, length + 1))
    draws = v.infer(f"(repeat 4000 (do (pgibbs h ordered 10 'ancestor 1) (collect {names})))")
    for t in range(length):
        z = (values(draws[f"(h {t + 1})"]) - mean[t]) / math.sqrt(covariance[t, t])
        assert abs(z.mean()) < 5.5 / math.sqrt(diagnostics.ess_bulk(z[None]))
        assert abs((z * z).mean() - 1) < 5.5 * math.sqrt(2 / diagnostics.ess_bulk((z * z)[None]))
