"""Transitions on probation: they see no open transaction, and stand or go as a whole."""

from __future__ import annotations

import pytest

from venture_lite import Venture
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.weighted_columns import WeightedColumns
from venture_lite.engines.gibbs import Gibbs
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.interpreter.weights import KeptWeights

CLASSES = """
    [assume crp (make_crp 1)] [assume z (mem (lambda (n) (tag 'z n (crp))))]
    [assume mu (mem (lambda (k) (normal 0 3)))]
    for n in 1...12: [observe (normal (mu (z {n})) 1) {Y[n]}]
"""


def loaded(seed: int = 1) -> Venture:
    venture = Venture(seed=seed)
    venture.execute(CLASSES, Y=[-2.0, 0.5, 3.0] * 4)
    return venture


def test_what_is_not_kept_goes_back_with_all_of_its_transactions() -> None:
    venture = loaded()
    (model,) = venture.traces
    nodes = model.trace.scopes["z"].everything()
    before = snapshot(model)
    with model.on_probation():
        # columns make no transition where a transaction is open
        assert WeightedColumns(model, nodes[0]).draw(nodes)
        with model.transaction() as change:
            model.put_value(nodes[0], 77)
            change.keep()
        assert snapshot(model) != before
    assert snapshot(model) == before
    check(model)


def test_what_is_kept_is_what_it_would_be_without() -> None:
    held, free = loaded(), loaded()
    for venture in (held, free):
        (model,) = venture.traces
        nodes = model.trace.scopes["z"].everything()
        for _ in range(3):
            if venture is free:
                WeightedColumns(model, nodes[0]).draw(nodes)
                continue
            with model.on_probation() as keep:
                WeightedColumns(model, nodes[0]).draw(nodes)
                keep()
        check(model)
    one, other = (venture.traces[0] for venture in (held, free))
    assert snapshot(one) == snapshot(other)
    assert one.trace.journal.version == other.trace.journal.version


def test_a_weight_of_a_state_that_was_taken_back_is_not_the_present_ones() -> None:
    """Of a class that a proposal opens the family comes after the edges to it, and goes with it."""
    for seed in range(8):
        venture = loaded(seed)
        (model,) = venture.traces
        gibbs, labels = Gibbs(model), Selection(model, "z", Selector("each"))
        for node in model.trace.scopes["z"].everything():
            with model.transaction():
                gibbs.step([node], labels)
                model.log_score()
            assert model.log_score().total == pytest.approx(KeptWeights(model.trace).log_score().total)
            gibbs.step([node], labels)
