"""The checker finds what is broken, names it, and leaves a sound trace alone; a snapshot sees every change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.generator.session import check, infer, state
from venture_lite import Venture
from venture_lite.errors import InternalError
from venture_lite.interpreter.model import Model
from venture_lite.program.code import Kind
from venture_lite.trace.table import Table

PROGRAM = """
    [assume mu (scope_include 'm 0 (normal 0 1))]
    [assume twice (* 2 mu)]
    [assume x (mem (lambda (i) (scope_include 'm (+ i 1) (normal twice 1))))]
    [assume either (if (< mu 0.3) (x 1) (+ 1 (x 2)))]
    [assume crp (make_crp 1.0)]
    [assume coin (mem (lambda (t) (make_beta_bernoulli 1 2)))]
    [assume walk (lambda (n) (if (<= n 0) 0 (+ (normal 0 1) (walk (- n 1)))))]
    [predict (walk 3)]
    [predict (+ (x 1) (x 1))]
    [predict (x 1)]
    [observe ((coin (crp))) true]
    [observe ((coin (crp))) false]
    [observe (normal (x 2) 1) 0.4]"""


def session() -> Venture:
    venture = Venture(seed=5)
    venture.execute(PROGRAM)
    infer(venture, "(mh default one 30)")
    check(venture)
    return venture


def first(
    model: Model, kind: Kind, which: Callable[[Table, int, int], bool] = lambda *_: True
) -> tuple[Table, int, int]:
    """(table, slot, row) of the first stored slot of a kind."""
    for table in model.trace.tables:
        for slot, item in enumerate(table.code.slots):
            if item.kind is kind and item.stored:
                for row in range(table.count):
                    if table.live[row] and which(table, slot, row):
                        return table, slot, row
    raise AssertionError(f"the program has no {kind}")


def put(model: Model, kind: Kind, value: Any) -> None:
    table, slot, row = first(model, kind)
    column = table.columns[slot]
    assert column is not None
    column.put(row, value)


def change_an_argument(model: Model) -> None:
    table, slot, row = first(model, Kind.ARGUMENT, lambda table, slot, row: table.code.name == "walk")
    column = table.columns[slot]
    assert column is not None
    column.put(row, 3 - 1e-9)


def lead_elsewhere(model: Model) -> None:
    table, slot, row = first(model, Kind.CALL, lambda table, slot, row: table.edges[slot].view[row] >= 0)
    table.edges[slot].view[row] += 1


def take_the_other_branch(model: Model) -> None:
    table, slot, row = first(model, Kind.IF)
    table.edges[slot].view[row] += 1 << 32


def forget_an_entry(model: Model) -> None:
    table = next(table for table in model.trace.tables if table.memos is not None)
    row = table.live.index(1)
    memo = table.memos[row]
    memo.entries.remove(model.trace.memo_key(table.code, row))


def revive_a_row(model: Model) -> None:
    table = next(table for table in model.trace.tables if table.dead)
    table.live[table.live.index(0)] = 1


def lose_a_choice(model: Model) -> None:
    model.trace.scopes["default"].bag.count -= 1


def swap_two_choices(model: Model) -> None:
    items = model.trace.scopes["default"].bag.items.view
    items[0], items[1] = items[1], items[0]


def rename_a_block(model: Model) -> None:
    model.trace.scopes["m"].names.put(0, 77)


def observe_another_choice(model: Model) -> None:
    table, slot, row = first(model, Kind.RANDOM, lambda table, slot, row: not table.is_observed(slot, row))
    table.set_observed(slot, row, True)


def count_once_more(model: Model) -> None:
    next(iter(model.trace.statistics.makers.values())).state.add(1)


def change_a_parameter(model: Model) -> None:
    maker = next(iter(model.trace.statistics.makers.values()))
    maker.state.set_arguments(tuple(3.5 for _ in maker.state.arguments))


def leave_a_change_in_the_journal(model: Model) -> None:
    model.trace.journal.note(print)


def unbind_a_name(model: Model) -> None:
    model.trace.bindings.by_row.popitem()


BREAKAGES: list[tuple[Callable[[Model], None], str]] = [
    (lambda model: put(model, Kind.DETERMINISTIC, 123.0), "is stored"),
    (lambda model: put(model, Kind.IF, 123.0), "copied 123"),
    (change_an_argument, "argument"),
    (lead_elsewhere, "dead row|the edge is"),
    (take_the_other_branch, "the predicate chooses"),
    (forget_an_entry, "entries"),
    (revive_a_row, "dead"),
    (lose_a_choice, "scope default lacks"),
    (swap_two_choices, "stands at 0, not at 1"),
    (rename_a_block, "scope m"),
    (observe_another_choice, "too much"),
    (count_once_more, "a recount"),
    (change_a_parameter, "arguments"),
    (leave_a_change_in_the_journal, "the journal holds"),
    (unbind_a_name, "stand in rows"),
]


@pytest.mark.parametrize(("breakage", "message"), BREAKAGES)
@pytest.mark.thorough
def test_what_is_broken_is_named(breakage: Callable[[Model], None], message: str) -> None:
    venture = session()
    breakage(venture.traces[0])
    with pytest.raises(InternalError, match=message):
        check(venture)


def test_checking_changes_nothing() -> None:
    venture = session()
    before = state(venture)
    check(venture)
    assert state(venture) == before


@pytest.mark.parametrize(
    "action",
    [
        lambda v: v.force("mu", v.report("mu") + 1e-15),
        lambda v: v.predict("mu"),
        lambda v: v.forget(10),
        lambda v: v.observe("(x 1)", 0.3),
    ],
)
def test_a_snapshot_sees_a_change(action: Callable[[Venture], object]) -> None:
    venture = session()
    before = state(venture)
    action(venture)
    assert state(venture) != before


@pytest.mark.parametrize(
    "text", ["(normal mu 1)", "(x 7)", "((coin (crp)))", "(walk 4)", "(map (lambda (i) (x i)) (list 5 6))"]
)
def test_a_sample_leaves_nothing(text: str) -> None:
    venture = session()
    before = state(venture)
    venture.sample(text)
    assert state(venture) == before
    check(venture)


@pytest.mark.parametrize(
    "text",
    [
        "[assume g (if (flip 0.5) flip bernoulli)] [predict (g)]",
        "[assume h (mem (lambda (i) student_t))] [predict ((h 1) 4)] [observe ((h 2) 3) 0.4]",
        "[assume f (mem (mem (lambda (i) (normal 0 1))))] [predict (f (uniform_discrete 0 2))]",
        "[assume z (flip 0.5)] [assume x (binomial 3 0.5)] [assume v (if (= (if z 0 x) (flip 0.4)) (normal 0 1) 7)]"
        " [predict (if z v v)]",
        "[assume a (gamma 1 1)] [assume c (if (flip 0.4) (make_crp a) (make_crp (* 2 a)))]"
        " [assume s (mem (lambda (i) (c)))] [predict (list (s 1) (s 2))] [observe (normal (s 1) 1) 2]",
        "[assume f (lambda (i) (if (< i 1) 0 (+ (normal 0 1) (f (- i 1)))))] [assume g (mem f)]"
        " [assume k (uniform_discrete 0 3)] [predict (+ (f k) (g k))] [predict (if (flip 0.5) (g k) (f 2))]",
        "[assume f (mem (lambda (g) (normal (g) 1)))] [assume a (lambda () (normal 0 1))]"
        " [predict (f (if (flip 0.5) a (lambda () 3)))]",
        "[assume f (mem (lambda (i) (mem (lambda (j) (normal i 1)))))] [assume z (uniform_discrete 0 3)]"
        " [predict (+ ((f z) 1) ((f z) 2))] [predict ((f 1) z)]",
    ],
)
@pytest.mark.thorough
def test_invariants_hold_where_structure_changes(text: str) -> None:
    venture = Venture(seed=6)
    venture.execute(text)
    for transition in ("(mh default one 1)", "(mh default each 1)", "(mh default all 1)"):
        for _ in range(25):
            infer(venture, transition)
            check(venture)


def test_data_loaded_together_are_forgotten_one_by_one() -> None:
    venture = Venture(seed=7)
    venture.execute("[assume m (normal 0 1)] data: for i in 1...5: [observe (normal m 1) i]")
    for text in ("[forget data 2]", "[forget data 5]", "[forget data]", "for i in 1...5: [observe (normal m 1) i]"):
        venture.execute(text)
        check(venture)
        infer(venture, "(mh default one 20)")
        check(venture)
