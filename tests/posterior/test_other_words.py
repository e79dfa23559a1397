"""A program that says the same in other words gives the same draws, and leaves a trace that passes the audit."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.audit.invariants import check

ENGINES = (
    "(mh default one 3)",
    "(mh default all 2)",
    "(gibbs default one 3)",
    "(gibbs default each 1)",
    "(gibbs default all 1)",
    "(rejection default one 1)",
    "(rejection default all 1)",
    "(pgibbs default ordered 3 1)",
    "(pgibbs default ordered 3 'ancestor 1)",
    "(cycle ((mh default one 1) (gibbs default each 1)) 1)",
)

# What depends on the choice through a name is needed before the scaffold would come to it.
NAMED = """
    [assume c (flip 0.5)] [assume d (if c (flip 0.9) (flip 0.1))] [assume x (if d 0.9 0.2)]
    {}
    [assume r (if c (flip {}) (flip 0.5))] [observe (flip (if r 0.9 0.1)) true]"""
OTHER_NAMES = {
    "a name": ("[assume y x]", "y"),
    "a name for a name": ("[assume y x] [assume z y]", "z"),
    "let": ("[assume y (let ((z x)) z)]", "y"),
    "begin": ("[assume y (begin x)]", "y"),
    "tag": ("[assume y (tag 'q 0 x)]", "y"),
    "an identity": ("[assume f (lambda (v) v)] [assume y (f x)]", "y"),
    "a memoized name": ("[assume y x] [assume f (mem (lambda (k) y))] [predict (f 1)]", "(f 1)"),
    "a closure over a name": ("[assume y x] [assume fs (list (lambda () y))]", "((first fs))"),
}

# The maker's parameters move where its application is made: nothing in the operator's text reads them.
MADE = """
    [assume c (flip 0.6)] [assume d (if c (flip 0.2) (flip 0.9))]
    {}
    [observe ({} ) false] [assume y (if c (flip 0.3) ({}))] [assume z (if d ({}) (flip 0.4))]"""
MAKER = "(make_beta_bernoulli (if d 4 1) 1)"
OTHER_WAYS = {
    "in a list": (f"[assume l (list {MAKER})]", "(first l)"),
    "in a dictionary": (f"[assume l (dict 'm {MAKER})]", "(lookup l 'm)"),
    "from map": ("[assume l (map (lambda (a) (make_beta_bernoulli (if d a 1) 1)) (list 4))]", "(first l)"),
    "the value of an if": (f"[assume m {MAKER}] [assume l (if true m flip)]", "l"),
    "an argument": (f"[assume m {MAKER}] [assume f (lambda (g) (lambda () (g)))] [assume l (f m)]", "l"),
    "from a memoized procedure": (f"[assume f (mem (lambda (k) {MAKER}))]", "(f 1)"),
    "in a list by another name": (f"[assume m {MAKER}] [assume l (list m)] [assume k l]", "(first k)"),
}


def draws(program: str, engine: str, names: str, n: int = 12) -> np.ndarray:
    """(n, names), the trace audited after them."""
    venture = Venture(seed=7)
    venture.execute(program)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = venture.infer(f"(repeat {n} (do {engine} (collect {names})))")
    check(venture.traces[0])
    return np.stack([np.asarray(found[name], dtype=float).ravel() for name in names.split()], axis=1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_name_for_a_name_is_that_name(engine: str) -> None:
    plain = draws(NAMED.format("", "x"), engine, "c d r")
    for how, (directives, expression) in OTHER_NAMES.items():
        assert np.array_equal(draws(NAMED.format(directives, expression), engine, "c d r"), plain), how


@pytest.mark.parametrize("engine", ENGINES)
def test_an_application_waits_for_its_maker_however_it_is_reached(engine: str) -> None:
    plain = draws(MADE.format(f"[assume m {MAKER}]", *["m"] * 3), engine, "c d y z")
    for how, (directives, operator) in OTHER_WAYS.items():
        assert np.array_equal(draws(MADE.format(directives, *[operator] * 3), engine, "c d y z"), plain), how


MIXTURE = """
    [assume f (make_crp 1)] [assume z (mem (lambda (i) (tag 'l i (f))))] [assume mu (mem (lambda (k) (normal 1 2)))]
    [assume x (z 1)] {} [assume w (z 2)]
    [observe (normal (mu {}) 1) 0.3] [observe (normal (mu w) 1) 2.5]"""


@pytest.mark.parametrize("engine", ["(gibbs l each 1)", "(mh default one 3)", "(gibbs l one 2)"])
def test_a_component_is_followed_through_a_name_for_its_label(engine: str) -> None:
    plain = draws(MIXTURE.format("", "x"), engine, "x w")
    assert np.array_equal(draws(MIXTURE.format("[assume y x] [assume v y]", "v"), engine, "x w"), plain)


def test_a_block_may_have_an_array_for_its_key() -> None:
    program = """
        [assume h (mem (lambda (v) (tag 's v (if (flip 0.3) (flip 0.2) true))))] [assume a (h (vector 0.1 0.2))]
        [assume b (if a (flip 0.5) (tag 's (vector 1 2) (flip 0.9)))]"""
    draws(program, "(gibbs s each 1)", "a b")


def test_a_name_for_a_procedure_is_inlined_as_the_procedure_is() -> None:
    """So that engines which read the text find the same in it."""
    venture = Venture(seed=1)
    venture.execute("[assume w (normal 0 1)] [assume f (lambda (x) (normal (* w x) 1))] [assume g f]")
    venture.execute("for n in 1...20: [observe (g n) n]")
    venture.infer("(subsampled_mh default all 10 0.05 'drift 0.1 'proxy 2)")
    check(venture.traces[0])
