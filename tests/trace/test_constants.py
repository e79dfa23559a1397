"""Memoized families that make no choice and read none stay when nobody uses them; nothing else does."""

from __future__ import annotations

import numpy as np
import pytest

from tests.generator.session import check, infer, state
from tests.rejecting import propose_and_reject
from tests.trace.speaker import called, listed
from venture_lite import Venture
from venture_lite.interpreter import constants
from venture_lite.interpreter.model import Model
from venture_lite.program.code import Code
from venture_lite.trace.scopes import Scope


def body(model: Model, name: str) -> Code:
    """The body of an assumed procedure."""
    return next(code for code in model.trace.program.codes if code.kind == "lambda" and code.name == name)


def families(model: Model, name: str) -> list[int]:
    """Rows of the body of an assumed procedure."""
    table = model.trace.table(body(model, name))
    return [row for row in range(table.count) if table.live[row]]


def without_users(model: Model, name: str) -> int:
    return sum(not model.trace.users.count(body(model, name), row) for row in families(model, name))


@pytest.mark.parametrize("kernel", ["(mh default one 2)", "(gibbs default one 1)", "(mh default each 1)"])
@pytest.mark.thorough
def test_a_called_table_gives_the_draws_of_a_listed_one(kernel: str) -> None:
    """World 2 is never accepted with the evidence: its utterance is false."""
    draws = []
    for text in (called(0, 1), listed(0, 1)):
        venture = Venture(seed=3)
        venture.execute(text)
        draws.append(np.asarray(venture.infer(f"(repeat 60 (do {kernel} (collect world)))")["world"]))
        check(venture)
        assert len(families(venture.traces[0], "speaker")) == 3
    assert (draws[0] == draws[1]).all()


def test_a_table_is_filled_once() -> None:
    venture = Venture(seed=1)
    venture.execute(called(0, 1))
    infer(venture, "(mh default one 60)")
    (model,) = venture.traces
    rows = {table.code.index: table.count for table in model.trace.tables}
    infer(venture, "(mh default one 60)")
    infer(venture, "(gibbs default one 10)")
    assert rows == {table.code.index: table.count for table in model.trace.tables}
    check(venture)


@pytest.mark.thorough
def test_a_rejected_proposal_leaves_the_state_as_it_was() -> None:
    venture = Venture(seed=1)
    venture.execute(called(0, 1))
    (model,) = venture.traces
    before = state(venture)
    for _ in range(20):
        propose_and_reject(model, "default", "one", None)
        assert state(venture) == before
        check(venture)
    assert len(families(model, "speaker")) == 3


READING = {
    "makes a choice": "(mem (lambda (k) (begin (flip) k)))",
    "makes a choice in a branch": "(mem (lambda (k) (if (< k 9) (begin (flip) k) 0)))",
    "reads a choice": "(mem (lambda (k) (+ k x)))",
    "reads what depends on a choice": "(mem (lambda (k) (+ k y)))",
    "reads a choice in a call": "(mem (lambda (k) (lookup (map (lambda (i) (+ i k y)) (list 1 2)) 0)))",
    "calls what makes a choice": "(mem (lambda (k) (begin (coin k) k)))",
    "makes a memoized procedure": "(mem (lambda (k) (begin (mem (lambda (j) (normal 0 1))) k)))",
    "makes an urn": "(mem (lambda (k) (begin (make_crp k) k)))",
    "applies a random procedure": "(mem (lambda (k) (begin ((if (< k 9) flip exp)) k)))",
    "has a procedure for a key": "(mem (lambda (k) (+ 1 (k))))",
}


@pytest.mark.parametrize("procedure", READING.values(), ids=READING.keys())
@pytest.mark.thorough
def test_what_is_no_constant_goes_with_its_last_user(procedure: str) -> None:
    venture = Venture(seed=2)
    venture.execute(f"""
        [assume x (tag 'x 0 (normal 0 1))] [assume y (* 2 x)] [assume coin (mem (lambda (k) (flip)))]
        [assume f {procedure}] [assume k (uniform_discrete 1 4)]""")
    key = "(let ((g (lambda () k))) g)" if "(k)" in procedure.replace("(lambda (k)", "") else "k"
    venture.execute(f"[predict (f {key})]")
    for _ in range(12):
        infer(venture, "(mh default each 1)")
        check(venture)
        assert len(families(venture.traces[0], "f")) == 1


KEYED = """
    [assume f (mem (lambda (k) (lookup (map (lambda (i) (* i k)) (list 1 2 3)) 2)))]
    [assume k (uniform_discrete 1 40)]
    use: [predict (f k)]"""


@pytest.mark.thorough
def test_the_oldest_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "MOST_KEPT", 5)
    venture = Venture(seed=4)
    venture.execute(KEYED)
    (model,) = venture.traces
    seen: list[int] = []
    for _ in range(60):
        infer(venture, "(mh default one 1)")
        check(venture)
        key = venture.report("k")
        seen = [key, *(other for other in seen if other != key)]
        assert without_users(model, "f") <= 5
    found = {model.trace.memo_key(body(model, "f"), row) for row in families(model, "f")}
    assert len(found) >= 5
    assert seen[0] in found


@pytest.mark.thorough
def test_they_go_with_their_procedure() -> None:
    venture = Venture(seed=4)
    venture.execute(KEYED)
    infer(venture, "(mh default one 50)")
    (model,) = venture.traces
    assert without_users(model, "f") > 5
    venture.forget("use")
    check(venture)
    assert without_users(model, "f") == len(families(model, "f")) > 5
    table = model.trace.table(body(model, "f"))
    venture.forget("f")
    check(venture)
    assert table.count == table.dead


@pytest.mark.thorough
def test_they_go_with_a_procedure_that_a_choice_replaces() -> None:
    venture = Venture(seed=4)
    venture.execute("""
        [assume c (tag 'c 0 (flip))] [assume k (tag 'k 0 (uniform_discrete 1 20))]
        [assume made (mem (lambda (c) (mem (lambda (k) (lookup (map (lambda (i) (* i k)) (list 1 2 3)) 2)))))]
        [assume f (if c (mem (lambda (k) (lookup (map (lambda (i) (* i k)) (list 1 2 3)) 2))) (made 0))]
        [predict (f k)]""")
    (model,) = venture.traces
    for _ in range(10):
        infer(venture, "(mh k 0 15)")
        check(venture)
        before = state(venture)
        for _ in range(3):
            propose_and_reject(model, "c", 0, None)
            assert state(venture) == before
        infer(venture, "(mh c 0 1)")
        check(venture)


def test_a_sweep_does_not_see_them() -> None:
    venture = Venture(seed=4)
    venture.execute(KEYED)
    (statistics,) = venture.infer("(mh default each 50)").statistics
    assert statistics.transitions == 50
    assert not any(isinstance(scope, Scope) for scope in venture.traces[0].trace.scopes.values())
