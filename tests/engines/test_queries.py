"""Posteriors of models with queries inside, against tables and quadrature made by hand.

Chains are compared at a rate of false alarms below 1e-6 (`tests/statistics.py`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from tests.engines.data_and_sessions import venture
from tests.statistics import Mean, Table, assert_chain_agrees
from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.interpreter.queries import Query, WorldTape
from venture_lite.values import SymbolName

SPEAKER = """
[assume states (list 0 1 2 3)]
[assume words (list 'none 'some 'all)]
[assume means (lambda (u s) (cond ((= u 'none) (= s 0)) ((= u 'some) (> s 0)) (else (= s 3))))]
[assume listener (mem (lambda (u) (enumerate (lambda ()
  (let ((s (uniform_draw states))) (condition (means u s)) s)))))]
[assume speaker SPEAKER]
[assume s (uniform_draw states)]
[observe (draw (speaker s)) 'some]
for n in 1...6: [observe (draw (speaker {S[n]})) {U[n]}]
"""
OF_STATE = """(lambda (s) (enumerate (lambda ()
  (let ((u (uniform_draw words))) (factor (* alpha (log_density (listener u) s))) u))))"""
S = [1, 3, 3, 2, 3, 0]
U = ["some", "all", "some", "some", "all", "none"]
GRID = (0.25, 0.5, 1.0, 2.0, 4.0)
WORDS = ["none", "some", "all"]


def speaker_table(alpha: float) -> np.ndarray:
    """Probabilities of words (columns) in states (rows)."""
    literal = np.array([[1, 0, 0, 0], [0, 1 / 3, 1 / 3, 1 / 3], [0, 0, 0, 1]])
    found = literal.T**alpha
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def likelihood(alpha: float) -> np.ndarray:
    """Of all observations, by the state that is not known (4,)."""
    table = speaker_table(alpha)
    known = math.prod(table[s, WORDS.index(u)] for s, u in zip(S, U, strict=True))
    return np.asarray(known * table[:, 1])


def session(prior: str, memoized: bool, kernels: str = "compiled") -> Venture:
    speaker = f"(mem {OF_STATE})" if memoized else OF_STATE
    text = f"[assume alpha {prior}]" + SPEAKER.replace("SPEAKER", speaker)
    return venture(text, kernels=kernels, S=S, U=[SymbolName(u) for u in U])


def finite_session(memoized: bool = True, kernels: str = "compiled") -> Venture:
    return session(f"(uniform_draw (list {' '.join(map(str, GRID))}))", memoized, kernels)


def compare(v: Venture, kernel: str, draws: int = 400) -> None:
    joint = np.array([likelihood(alpha) for alpha in GRID])
    joint /= joint.sum()
    exact = {
        "alpha": Table(dict(zip(GRID, joint.sum(axis=1).tolist(), strict=True))),
        "s": Table({s: p for s, p in enumerate(joint.sum(axis=0).tolist()) if p > 0}),
        "(* alpha s)": Mean(float(sum(joint[i, s] * GRID[i] * s for i in range(len(GRID)) for s in range(4)))),
    }

    def more(n: int) -> dict[str, np.ndarray]:
        found = v.infer(f"(repeat {n} (do {kernel} (collect {' '.join(exact)})))")
        return {name: np.asarray(found[name], dtype=float).reshape(n) for name in exact}

    assert_chain_agrees(more, exact, draws=draws, what=kernel)
    check(v.traces[0])


@pytest.mark.thorough
@pytest.mark.parametrize("memoized", [True, False])
@pytest.mark.parametrize("kernel", ["(mh default one 6)", "(gibbs default each 1)"])
def test_the_speakers_rationality_is_inferred(kernel: str, memoized: bool) -> None:
    compare(finite_session(memoized), kernel)


@pytest.mark.slow
@pytest.mark.parametrize("memoized", [True, False])
@pytest.mark.parametrize(
    "kernel",
    [
        "(mh default all 4)", "(mh default each 2)", "(gibbs default all 1)", "(pgibbs default ordered 6 1)",
        "(pgibbs default ordered 4 'ancestor 1)", "(rejection default each 1)", "(subsampled_mh default one 2 0 6)",
    ],
)  # fmt: skip
def test_every_kernel_of_finite_choices_infers_it(kernel: str, memoized: bool) -> None:
    if "subsampled" in kernel and memoized:
        pytest.skip("the state's scaffold is structural")
    compare(finite_session(memoized), kernel)


@pytest.mark.thorough
@pytest.mark.parametrize("memoized", [True, False])
def test_fast_transitions_are_the_interpreters(memoized: bool) -> None:
    v = finite_session(memoized, kernels="checked")
    v.infer("(repeat 60 (do (mh default one 3) (gibbs default each 1)))")
    check(v.traces[0])


@pytest.mark.thorough
def test_impossible_words_are_rejected_by_the_form_as_by_the_interpreter() -> None:
    """In state 0 nobody says `some`: a density of zero that a form meets is a rejection. The same draws."""
    found = [finite_session(False, kernels) for kernels in ("compiled", "interpreted")]
    draws = [v.infer("(repeat 300 (do (mh default one 2) (collect s alpha)))") for v in found]
    for name in ("s", "alpha"):
        assert draws[0][name].tolist() == draws[1][name].tolist()
    one, other = (v.traces[0].trace.rng.bit_generator.state for v in found)
    assert one == other


def weights_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = WorldTape.weigh

    def weigh(self: WorldTape, *weight: Any) -> Any:
        before = self.log_weight
        value = plain(self, *weight)
        self.log_weight = before
        return value

    monkeypatch.setattr(WorldTape, "weigh", weigh)


def values_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Query._key
    monkeypatch.setattr(Query, "_key", lambda self, values: plain(self, tuple(x for x in values if x not in GRID)))


@pytest.mark.slow
@pytest.mark.parametrize("broken", [weights_ignored, values_forgotten])
def test_a_broken_query_is_noticed(broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Factors that do not count, and distributions that are kept by some of what they read."""
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        compare(finite_session(False), "(mh default one 6)")


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["(mh default one 'drift 0.8 4)", "(slice default 0 1 8 2)"])
def test_a_continuous_rationality_is_inferred(kernel: str) -> None:
    """Against quadrature."""
    v = session("(tag 'a 0 (gamma 2 1))", memoized=True)

    def of(f: Any) -> float:
        return float(integrate.quad(lambda a: f(a) * stats.gamma(2).pdf(a) * likelihood(a).sum(), 0, 40, limit=200)[0])

    exact = {"alpha": Mean(of(lambda a: a) / of(lambda a: 1.0))}
    kernel = kernel.replace("default one", "a one").replace("default 0", "a 0")

    def more(n: int) -> dict[str, np.ndarray]:
        found = v.infer(f"(repeat {n} (do {kernel} (gibbs (choices s) each 1) (collect alpha)))")
        return {"alpha": np.asarray(found["alpha"]).reshape(n)}

    assert_chain_agrees(more, exact, draws=300, what=kernel)


GUESS = """
[assume k (uniform_discrete 0 4)]
[force k 0]
[assume d (enumerate (lambda () (let ((x (uniform_discrete 0 3))) (condition (>= x k)) (factor (* 0.3 x)) x)))]
[assume y (draw d)]
[observe (normal y 1.2) 1.4]
"""


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", ["(mh default one 4)", "(gibbs default each 1)", "(gibbs default all 1)"])
def test_a_draw_of_a_query_is_a_choice_and_a_query_without_a_world_an_impossible_state(kernel: str) -> None:
    """Where k is 3 no world is possible, and nothing can be drawn: a proposal that leads there is rejected."""
    joint = {}
    for k in range(3):
        weights = {x: math.exp(0.3 * x) for x in range(k, 3)}
        for x, weight in weights.items():
            joint[k, x] = weight / sum(weights.values()) * stats.norm(x, 1.2).pdf(1.4)
    total = sum(joint.values())
    exact = {
        "k": Table({k: sum(p for (at, _), p in joint.items() if at == k) / total for k in range(3)}),
        "y": Table({y: sum(p for (_, at), p in joint.items() if at == y) / total for y in range(3)}),
    }
    v = venture(GUESS)

    def more(n: int) -> dict[str, np.ndarray]:
        found = v.infer(f"(repeat {n} (do {kernel} (collect k y)))")
        return {name: np.asarray(found[name], dtype=float).reshape(n) for name in exact}

    assert_chain_agrees(more, exact, draws=400, what=kernel)
    check(v.traces[0])


REFUSED = {
    "(hmc a all 0.1 3 1)": "enumerate is applied to what depends on the block and has no derivative",
    "(nuts a all 'step 0.1 1)": "enumerate is applied to what depends on the block and has no derivative",
    "(mala a all 0.1 1)": "enumerate is applied to what depends on the block and has no derivative",
    "(flymc a all auto 'untuned 0.1 'drift 0.3 3)": "gamma is none",
    "(gibbs a all 1)": "gibbs enumerates finite supports; gamma has none",
}


@pytest.mark.parametrize("kernel", REFUSED)
def test_kernels_that_cannot_say_so_at_their_place(kernel: str) -> None:
    v = session("(tag 'a 0 (gamma 2 1))", memoized=True)
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError) as refused:
        v.infer(kernel)
    assert REFUSED[kernel] in refused.value.message
    assert refused.value.span is not None
    assert snapshot(v.traces[0]) == before


@pytest.mark.slow
def test_auto_finds_kernels_for_what_reads_a_query() -> None:
    """A rationality has no gradient."""
    v = session("(gamma 2 1)", memoized=True)
    draws = v.auto(draws=20, chains=1, target_ess=20, warmup=40)
    assert "(slice (choices 'rough)" in str(draws.program)
