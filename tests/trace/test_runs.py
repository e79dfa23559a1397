"""Runs: the nodes of a block, parents first, those that are computed alike together."""

from __future__ import annotations

import pytest

from tests.generator.directives import random_program
from tests.generator.session import infer, load
from venture_lite import Venture
from venture_lite.errors import KernelError
from venture_lite.interpreter.runs import Run, lent, operator_of, reads_of, runs_of
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.shape import text_of_site
from venture_lite.interpreter.sources import parents_of
from venture_lite.trace.trace import Trace


def everything_of(text: str) -> tuple[Trace, list[Run]]:
    """The runs of all choices together, and of what is computed from them."""
    venture = Venture(seed=1)
    venture.execute(text)
    trace = venture.traces[0].trace
    scaffold = Builder(trace, by_family=True).build(trace.default.everything())
    return trace, runs_of(trace, [*scaffold.principals, *scaffold.pending])


def told(text: str) -> list[tuple[str, int]]:
    trace, runs = everything_of(text)
    return [(text_of_site(trace.program, run.site), len(run.rows)) for run in runs]


def test_memoized_choices_are_one_run() -> None:
    found = told("""
        [assume m (normal 0 1)] [assume s (gamma 2 2)] [assume a (mem (lambda (j) (normal m s)))]
        for n in 1...12: [observe (normal (a (mod {n} 4)) 1) 0]
    """)
    assert found == [("(normal 0 1)", 1), ("(gamma 2 2)", 1), ("(normal m s)", 4)]


def test_what_is_computed_from_a_run_is_a_run_after_it() -> None:
    found = told("""
        [assume m (normal 0 1)] [assume f (mem (lambda (i) (* i (exp m))))] [assume g (exp m)]
        for n in 1...3: [observe (normal (+ g (f {n})) 1) 0]
    """)
    assert found == [("(normal 0 1)", 1), ("(f {n})", 3), ("(exp m)", 1)]


def test_a_recursion_is_as_many_runs_as_it_has_steps() -> None:
    found = told("""
        [assume x (mem (lambda (t) (if (= t 0) (normal 0 1) (normal (x (- t 1)) 1))))]
        for t in 1...5: [observe (normal (x {t}) 1) 0]
    """)
    assert [count for _, count in found] == [1] * len(found)
    assert [text for text, _ in found if text == "(normal (x (- t 1)) 1)"] == ["(normal (x (- t 1)) 1)"] * 5


@pytest.mark.thorough
def test_every_node_is_in_one_run_after_all_that_it_reads() -> None:
    """The same references, too, and none of a run reads another."""
    compared = 0
    for seed in range(20):
        venture = load(random_program(seed), seed)
        infer(venture, "(mh default one 5)")
        trace = venture.traces[0].trace
        try:
            scaffold = Builder(trace, by_family=True).build(trace.default.everything())
        except KernelError:
            continue
        nodes = {lent(trace, node) for node in (*scaffold.principals, *scaffold.pending)}
        done: set[int] = set()
        for run in runs_of(trace, [*scaffold.principals, *scaffold.pending]):
            for node, row in zip(run.nodes, run.at.tolist(), strict=True):
                source = reads_of(trace, node)
                assert source._replace(row=run.source.row) == run.source
                assert source.row == row
                assert run.operator is (operator_of(trace, node) if source.is_applied else None)
                assert {lent(trace, parent) for parent in parents_of(trace, node)} & nodes <= done
                compared += 1
            assert not done & set(run.nodes)
            done |= set(run.nodes)
        assert done == nodes
    assert compared > 300
