"""Rows taken out and put back the short way: the same trace as with the evaluator."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.interpreter import withdrawal
from venture_lite.session.loop_data import LoopData

MODELS = {
    "cells": """
    [assume crp (make_crp 1)]
    [assume k (mem (lambda (n) (tag 'k n (crp))))]
    [assume cell (mem (lambda (f) (mem (lambda (k) (make_normal_inv_chi_sq f 1 1 1)))))]
    [assume cell_1 (cell 1)]
    for n in 1...8:
      [observe ((cell_1 (k n))) (* 0.3 n)]
      [observe ((cell_1 (k n))) (* -0.2 n)]
      [observe (((cell 2) (k n))) n]
    """,
    "means": """
    [assume crp (make_crp 1)]
    [assume k (mem (lambda (n) (crp)))]
    [assume mean (mem (lambda (k) (normal 0 3)))]
    for n in 1...8:
      [observe (normal (mean (k n)) 1) (* 0.5 n)]
      [observe (normal (+ (mean (k n)) (mean (k n))) 1) n]
    """,
    "with branches, tags and predictions": """
    [assume crp (make_crp 1)]
    [assume k (mem (lambda (n) (crp)))]
    [assume coin (mem (lambda (k) (make_beta_bernoulli 1 1)))]
    for n in 1...8:
      [observe (if (= (k n) 1) ((coin 1)) ((coin 2))) true]
      [observe (tag 'seen n ((coin (k n)))) false]
      [observe ((coin (k n))) true]
      [predict ((coin (k n)))]
    """,
}


def session(text: str, kernels: str = "compiled") -> tuple[Venture, LoopData]:
    v = Venture(seed=2, kernels=kernels)
    v.execute(text)
    return v, LoopData(v._runner.directory, 0)


def visit(text: str, kernels: str) -> list[Any]:
    """The trace after each of some removals and additions."""
    v, data = session(text, kernels)
    model = v.traces[0]
    found = []
    for step, datum in [("remove", 3), ("remove", 0), ("add", 3), ("remove", 7), ("add", 0), ("add", 7), ("remove", 4)]:
        getattr(data, step)(datum)
        check(model)
        found.append(copy.deepcopy(snapshot(model)))
    return found


@pytest.mark.parametrize("name", MODELS)
def test_the_short_way_leaves_what_the_evaluator_leaves(name: str) -> None:
    assert visit(MODELS[name], "compiled") == visit(MODELS[name], "interpreted")


def test_cells_go_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for the rows on which a family depends."""
    done: dict[str, list[Any]] = {"take_out": [], "put_in": []}
    for name, answers in done.items():
        original = getattr(withdrawal, name)
        monkeypatch.setattr(
            withdrawal,
            name,
            lambda *given, original=original, answers=answers: answers.append(original(*given)) or answers[-1],
        )
    _, data = session(MODELS["cells"])
    for step in (data.remove, data.add):
        for datum in range(8):
            step(datum)
    took = [[answer is not None and answer is not False for answer in answers] for answers in done.values()]
    assert all(sum(answers) >= 8 for answers in took)
    assert all(False in answers for answers in took)


DICE = """
[assume k (mem (lambda (n) (uniform_discrete 1 3)))]
[assume coin (mem (lambda (k) (make_beta_bernoulli 1 1)))]
[assume die (mem (lambda (k) (make_sym_dir_mult 1 k)))]
for n in 1...4:
  [observe ((coin (k n))) true]
  [observe ((die 2)) 1]
  [observe ((die (k n))) 0]
"""


def refused(kernels: str) -> tuple[str, Any]:
    """What is said of a row that is put back where it is impossible, and the trace after it."""
    v, data = session(DICE, kernels)
    for datum in range(4):
        data.remove(datum)
    data._observed[1][2] = 2
    data.add(0)
    with pytest.raises(VentureError) as raised:
        data.add(1)
    check(v.traces[0])
    return raised.value.message, copy.deepcopy(snapshot(v.traces[0]))


def test_what_is_impossible_is_refused_as_the_evaluator_does() -> None:
    assert refused("compiled") == refused("interpreted")
