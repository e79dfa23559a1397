"""Statistics are recomputed from their applications at fixed intervals, so that rounding cannot pile up."""

from __future__ import annotations

import pytest

from tests.generator.directives import random_program
from tests.generator.session import check, infer, load, state
from venture_lite import Venture
from venture_lite.interpreter import model as directives

MIXTURE = """
    [assume z (mem (lambda (i) (flip 0.5)))]
    [assume component (mem (lambda (k) (make_normal_inv_chi_sq 0 1 3 1)))]
    for i in 1...6: [observe ((component (z i))) (/ i 7)]"""


def mixture() -> Venture:
    venture = Venture(seed=1)
    venture.execute(MIXTURE)
    infer(venture, "(mh default one 20)")
    return venture


def test_what_rounding_left_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directives, "RECOUNT_EVERY", 50)
    venture = mixture()
    (model,) = venture.traces
    for maker in model.trace.statistics.makers.values():
        maker.state.restore((maker.state.count, maker.state._mean + 1e-7, maker.state._scatter + 1e-7))
    with pytest.raises(Exception, match="statistics"):
        check(venture)
    infer(venture, "(mh default one 200)")
    check(venture)
    assert model.trace.statistics.updates < 60


def test_statistics_are_not_recounted_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    venture = mixture()
    (model,) = venture.traces
    recounts = 0

    def recount() -> None:
        nonlocal recounts
        recounts += 1

    monkeypatch.setattr(model.trace, "recount", recount)
    infer(venture, "(mh default one 200)")
    assert 100 < model.trace.statistics.updates < directives.RECOUNT_EVERY
    assert not recounts


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 100), marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_a_recount_finds_what_is_there(seeds: range) -> None:
    for seed in seeds:
        venture = load(random_program(seed), seed)
        infer(venture, "(mh default one 20)")
        for model in venture.traces:
            model.trace.recount()
        check(venture)


@pytest.mark.thorough
def test_counts_are_exact_without_a_recount() -> None:
    venture = Venture(seed=2)
    venture.execute("""
        [assume crp (make_crp 1)] [assume coin (mem (lambda (t) (make_beta_bernoulli 1 1)))]
        [assume z (mem (lambda (i) (crp)))]
        for i in 1...8: [observe ((coin (z i))) (< i 4)]""")
    infer(venture, "(repeat 50 (do (mh default one 5) (gibbs default one 5)))")
    before = state(venture)
    (model,) = venture.traces
    model.trace.recount()
    assert state(venture) == before
