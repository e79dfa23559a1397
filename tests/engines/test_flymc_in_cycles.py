"""`flymc` beside kernels that move the block, the likelihood's scale and the prior's: its posterior, and what it costs.

A robust regression of three unknowns, whose exact posterior is by quadrature. Each kernel beside `flymc` takes one of
the three ways by which its state is kept: the brightness is drawn anew, the bounds are made anew, nothing is.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from tests.posterior.cases_predictors import marginals
from tests.posterior.derive import Grid
from tests.statistics import THRESHOLD, Expected, assert_chain_agrees
from venture_lite import Venture
from venture_lite.audit.invariants import check
from venture_lite.blocks.sections import Sections
from venture_lite.engines.firefly.firefly import Firefly, FireflySettings

FEATURES = np.array([-1.5, -0.7, -0.2, 0.3, 0.6, 1.1, 1.6, 2.0])
TARGETS = np.array([-1.9, -0.2, 0.4, 0.1, 3.5, 1.2, 1.0, 2.9])
MODEL = """
[assume b (scope_include 'b 0 (gamma 3 4))]
[assume s (scope_include 's 0 (gamma 3 3))]
[assume w (scope_include 'w 0 (laplace 0 b))]
for n in 1...N: [observe (student_t 4 (* w {X[n]}) s) {Y[n]}]
"""
BESIDE = {"w": "(mh w one 'drift 0.5 1)", "s": "(mh s one 'drift 0.8 1)", "b": "(mh b one 'drift 0.9 1)"}
FIREFLY = ("'untuned 0.4 'drift 0.7", "'map 0.3 'slice 1", "'map 0.4 'mala 0.8 'precondition 'explicit 0.5")


def venture(seed: int = 1) -> Venture:
    v = Venture(seed=seed)
    v.execute(MODEL, X=FEATURES, Y=TARGETS, N=len(TARGETS))
    return v


def exact() -> Mapping[str, Expected]:
    sides = {"b": Grid(1e-3, 6.0, 120), "s": Grid(1e-3, 6.0, 120), "w": Grid(-5.0, 6.0, 221)}
    b, s, w = np.meshgrid(*(side.points for side in sides.values()), indexing="ij", sparse=True)
    log_density = stats.gamma.logpdf(b, 3, scale=1 / 4) + stats.gamma.logpdf(s, 3, scale=1 / 3)
    log_density = log_density - np.abs(w) / b - np.log(b)
    for x, y in zip(FEATURES, TARGETS, strict=True):
        log_density = log_density - np.log(s) - 2.5 * np.log1p(((y - w * x) / s) ** 2 / 4)
    return marginals(sides, log_density)


def assert_cycle_agrees(options: str, draws: int) -> None:
    """False alarms: 15 statistics in the two stages of tests/statistics.py, below 1e-6."""
    v = venture()
    kernel = f"(cycle ((flymc w all auto {options} 1) {' '.join(BESIDE.values())}) 5)"

    def more(n: int) -> dict[str, np.ndarray]:
        found = v.infer(f"(repeat {n} (do {kernel} (collect b s w)))")
        return {name: np.asarray(found[name])[0] for name in "bsw"}

    more(50)
    assert_chain_agrees(more, exact(), draws, kernel)


@pytest.mark.thorough
def test_the_cycle_has_its_exact_posterior() -> None:
    assert_cycle_agrees(FIREFLY[0], 250)


@pytest.mark.slow
@pytest.mark.parametrize("options", FIREFLY)
def test_the_cycle_has_its_exact_posterior_with_many_draws(options: str) -> None:
    assert_cycle_agrees(options, 8000)


def assert_rows_are_bright_as_they_should() -> None:
    """A brightness that were kept would hardly show in the posterior: here it is compared row by row with 1 - B / L,
    for three states in turn (24 normal statistics at 5.5 sds, 9e-7; draws are independent)."""
    v, times = venture(), 200
    model = v.traces[0]
    settings = FireflySettings("gaussian_tangent", False, 0.3, None, False)
    firefly = Firefly(model, model.trace.scopes["w"].everything(), settings, lambda text: None)
    states = ((-1.0, 0.5), (2.0, 0.5), (2.0, 2.0))
    counts = np.zeros((len(states), len(TARGETS)))
    for _ in range(times):
        for (w, s), count in zip(states, counts, strict=True):
            v.force("w", w)
            v.force("s", s)
            firefly.refresh()
            count[firefly.brightness.bright] += 1
    for (w, s), count in zip(states, counts, strict=True):
        z, touching = (TARGETS - w * FEATURES) / s, TARGETS / s
        log_bound = -2.5 * np.log1p(touching**2 / 4) - 2.5 * (z**2 - touching**2) / (4 + touching**2)
        bright = -np.expm1(log_bound + 2.5 * np.log1p(z**2 / 4))
        error = np.sqrt(bright * (1 - bright) / times)
        assert (np.abs(count / times - bright) <= THRESHOLD * error + 1e-9).all()


@pytest.mark.thorough
def test_rows_are_bright_as_often_as_the_block_and_the_scale_now_say() -> None:
    assert_rows_are_bright_as_they_should()


@pytest.mark.thorough
def test_bounds_that_are_kept_when_the_scale_has_moved_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Firefly, "_reread", lambda self, sections: None)
    with pytest.raises(AssertionError):
        assert_rows_are_bright_as_they_should()


@pytest.mark.parametrize("beside", BESIDE)
def test_a_kernel_beside_costs_what_it_has_changed(beside: str) -> None:
    """The block itself: all brightness. The likelihood's scale: bounds and brightness. The prior's: nothing."""
    v, count, times = venture(), len(TARGETS), 60
    draws = v.infer(f"(cycle ({BESIDE[beside]} (flymc w all auto 'untuned 0.2 'drift 0.6 1)) {times})")
    moved, details = draws.statistics[0].accepted, draws.statistics[1].details
    assert 10 < moved < times
    brightness, set_up = details.get("queries of other kernels' moves", 0), details["queries of set-up"]
    # a move before the state is made costs nothing more
    if beside == "w":
        assert brightness in (count * moved, count * (moved - 1))
        assert set_up == 2 * count
    else:
        made = moved if beside == "s" else 0
        assert brightness == 0
        assert set_up in (2 * count * (made + 1), 2 * count * max(made, 1))


def test_what_a_block_beside_moves_does_not_make_the_rows_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slopes of one memoized procedure stand in one column; each is read by rows of its own."""
    read: list[Firefly] = []
    reread = Firefly._reread

    def counted(self: Firefly, sections: Sections) -> None:
        read.append(self)
        reread(self, sections)

    monkeypatch.setattr(Firefly, "_reread", counted)
    text = """[assume w (mem (lambda (g) (scope_include 'w g (normal 0 1))))]
for n in 1...N: [observe (bernoulli (logistic (* (w {G[n]}) {X[n]}))) {Y[n]}]"""
    rng = np.random.default_rng(0)
    data = {"G": [0, 1] * 50, "X": rng.standard_normal(100), "Y": rng.random(100) < 0.5, "N": 100}
    v = Venture(seed=1)
    v.execute(text, **data)
    draws = v.infer("(cycle ((flymc w each auto 'untuned 0.1 'drift 0.5 1) (mh w one 1)) 30)")
    assert min(row.accepted for row in draws.statistics) > 5
    assert not read
    check(v.traces[0])
