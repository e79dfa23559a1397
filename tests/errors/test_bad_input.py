"""What a user can get wrong: each is one located error, after which the session is as it was before."""

# ruff: noqa: E501 - one case a line

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.errors import (
    ArgumentError,
    EvidenceError,
    KernelError,
    LimitError,
    NameUnknown,
    ParameterError,
    ParseError,
    VentureError,
)

WITH_NAN = np.array([[1.0, 2.0], [3.0, math.nan], [5.0, 6.0]])


@dataclass(frozen=True)
class Bad:
    """A directive that is refused after a program that is not."""

    name: str
    text: str
    error: type[VentureError]
    # parts of the message, in any order
    says: tuple[str, ...]
    before: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


MODEL = """
[assume x (normal 0 1)] [assume z (flip)] [assume y (normal 0 1)]
[assume k (scope_include 's 1 (uniform_discrete 0 3))] [assume f (mem (lambda (i) (normal i 1)))]
here: [observe (normal x 1) 2] [predict (f k)]
"""
DEEP = """
[assume inner (lambda (sd) (normal 0 sd))]
[assume middle (lambda (sd) (inner (- sd 1)))]
[assume outer (lambda (sd) (middle (- sd 1)))]
"""
NOT_INLINED = """
[assume inner (lambda (n sd) (if (= n 0) (normal 0 sd) (inner (- n 1) sd)))]
[assume outer (lambda (sd) (inner 2 (- sd 1)))]
"""

CASES = [
    Bad("an open bracket", "[assume a (normal 0 1)", ParseError, (":1:1", "not closed")),
    Bad("a stray bracket", "[assume a (normal 0 1))]", ParseError, (":1:23", "`)`")),
    Bad("an unknown procedure", "[assume a (nromal 0 1)]", NameUnknown, (":1:12", "nromal", "did you mean normal?")),
    Bad("a directive misspelt in round brackets", "(asume a 1)", NameUnknown, (":1:2", "asume", "did you mean [assume ")),
    Bad("an unknown variable", "[predict (+ xx 1)]", NameUnknown, (":1:13", "xx"), MODEL),
    Bad("an unknown name in a body", "[assume g (lambda (a) (foldd a))]", NameUnknown, (":1:24", "fold")),
    Bad("an unknown action", "[infer (mhh default one 1)]", NameUnknown, ("mhh", "did you mean mh?"), MODEL),
    Bad("another system's name", "[assume a (uniform 0 1)]", NameUnknown, (":1:12", "(uniform_continuous LO HI)")),
    Bad("a directive in the model", "[predict (condition z)]", ArgumentError, (":1:10", "[condition EXPR] as a directive")),
    Bad("another system's kernel", "[infer (metropolis w)]", NameUnknown, (":1:9", "(mh SCOPE BLOCK T)")),
    Bad("an action in the model", "[predict (repeat 3 flip)]", NameUnknown, (":1:11", "(map (lambda (i) (flip))")),
    Bad("a name of the model for a value", "[observe (normal 0 1) (+ x 1)]", ArgumentError, (":1:26", "name of the model"),
        MODEL),
    Bad("a draw for a value", "[force x (normal 5 1)]", ArgumentError,
        (":1:11", "VALUE is a constant; draw it first with [sample ...]"), MODEL),
    Bad("an argument in braces", "[assume g (lambda (n) (normal {y[n]} 1))]", ParameterError,
        (":1:34", "neither the variable of a loop nor a parameter", "(lookup {DATA} (- n 1))"), "", {"y": [1.0, 2.0]}),
    Bad("map without a list", "[predict (map +)]", ArgumentError, ("map takes 2", "got 1")),
    Bad("too few for a procedure of the prelude", "[predict (fold + 1)]", ArgumentError, ("fold takes 3", "got 2")),
    Bad("a defined name in the model", "[predict (+ n 1)]", NameUnknown, ("inference expressions only",), "[define n 3]"),
    Bad("its own value", "[assume a (+ a 1)]", VentureError, (":1:14", "before it has a value")),
    Bad("too few arguments", "[assume a (normal 0)]", ArgumentError, (":1:11", "2 arguments (mean sd)", "got 1")),
    Bad("too many for a lambda", "[predict (g 1 2)]", ArgumentError, ("g takes 1 argument", "got 2"), "[assume (g a) a]"),
    Bad("too many, not inlined", "[predict (g 1 2)]", ArgumentError, ("g takes 1", "got 2"), "[assume g (mem (lambda (a) a))]"),
    Bad("a wrong type", "[assume a (normal 'red 1)]", ArgumentError, (":1:11", "mean must be", "red")),
    Bad("no procedure", "[predict (3 4)]", ArgumentError, ("3 is not a procedure",)),
    Bad("a predicate that is a number", "[predict (if 2 1 (normal 0 1))]", ArgumentError, ("true, false, 0 or 1",)),
    Bad("a domain error three calls deep", "[predict (outer 1)]", ArgumentError, ("sd must be a positive number, got -1", "in inner", "in middle", "in outer"), DEEP),
    Bad("the same in calls that are not inlined", "[predict (outer 0)]", ArgumentError, ("got -1", "in inner", "in outer at"), NOT_INLINED),
    Bad("a fused computation that fails", "[predict (+ 1 (log (- 0 1)))]", VentureError, (":1:15", "log")),
    Bad("a missing parameter", "[assume a {b}]", ParameterError, (":1:12", "parameter b", "-p b=")),
    Bad("a parameter misspelt", "[assume a {sigm}]", ParameterError, ("did you mean sigma?",), parameters={"sigma": 1}),
    Bad("an index out of range", "[assume a {X[4]}]", ParameterError, ("index 4", "X has 3 rows"), parameters={"X": [1, 2, 3]}),
    Bad("index zero", "[assume a {X[0]}]", ParameterError, ("index 0", "counted from 1"), parameters={"X": [1, 2, 3]}),
    Bad("unequal lengths", "for n in 1...10: [observe (normal {X[n]} 1) {Y[n]}]", ParameterError, ("Y has 9 rows", "(n = 10)"), parameters={"X": np.ones(10), "Y": np.ones(9)}),
    Bad("unequal lengths in nested loops", "for i in 1...2: for j in 1...3: [observe (normal 0 1) {Y[i, j]}]", ParameterError, ("(i = 1, j = 3)",), parameters={"Y": np.ones((2, 2))}),
    Bad("NaN in a matrix", "for n in 1...3: [observe (normal 0 1) (lookup {X[n]} 0)]", ParameterError, ("X", "row 2, column 2", "drop the row", "predict"), parameters={"X": WITH_NAN}),
    Bad("NaN in a row that stands alone", "[predict {X[2]}]", ParameterError, ("X",), parameters={"X": WITH_NAN}),
    Bad("NaN further down", "for n in 2...3: [observe (normal 0 1) {X[n, 2]}]", ParameterError, ("row 2, column 2", "(n = 2)"), parameters={"X": WITH_NAN}),
    Bad("None in a list", "for n in 1...3: [observe (normal 0 1) {y[n]}]", ParameterError, ("y", "row 2"), parameters={"y": [1.0, None, 2.0]}),
    Bad("an error in one pass", "for n in 1...4: [predict (normal 0 (- 3 n))]", ArgumentError, ("(n = 3)",)),
    Bad("an error in a pass of a loop that infers", "for n in 1...4:\n  [infer (mh default one {n - 2})]", ArgumentError, ("(n = 1)",), MODEL),
    Bad("a bound that is no whole number", "for n in 1...N: [predict n]", ParameterError, ("whole number", "1.5"), parameters={"N": 1.5}),
    Bad("a file that is not there", '[load "no.vnt"]', VentureError, (":1:1", "no.vnt")),
    Bad("a sum observed", "[observe (+ x 1) 2]", EvidenceError, (":1:10", "deterministic"), MODEL),
    Bad("a number observed", "[observe 3 3]", EvidenceError, ("deterministic",), MODEL),
    Bad("an argument observed", "[observe (g 2 (normal 0 1)) 3]", EvidenceError, ("deterministic",), "[assume (g n a) (if (= n 0) a (g (- n 1) a))]"),
    Bad("two observations of one choice", "[observe (f 7) 3]", EvidenceError, (":1:10", "observed already, at <input>:5:1", "[forget LABEL]"), MODEL + "[observe (f 7) 2]"),
    Bad("two observations in one loop", "for n in 1...2: [observe (f 7) n]", EvidenceError, (":1:26", "observed already (n = 2)"), MODEL),
    Bad("a second observation in a loop", "for n in 6...7: [observe (f n) 2]", EvidenceError, (":1:26", "(n = 7), at <input>:5:1 (i = 7)"), MODEL + "for i in 7...8: [observe (f i) 2]"),
    Bad("a random key on the way", "[observe (f k) 1]", EvidenceError, ("could move",), MODEL),
    Bad("a block's key that a random key decides", "[assume v (tag 'v (m (list z)) (normal 0 1))]", ArgumentError, ("a block's key may not depend",), MODEL + "[assume m (mem (lambda (i) 3))]"),
    Bad("a random predicate to choices elsewhere", "[observe (if z x y) 1]", EvidenceError, ("could move",), MODEL),
    Bad("a random predicate to a memoized choice", "[observe (if z (f 1) (normal 0 1)) 1]", EvidenceError, ("made elsewhere",), MODEL),
    Bad("the other way round", "[observe (if z (normal 0 1) (f 1)) 1]", EvidenceError, ("made elsewhere",), MODEL),
    Bad("to a choice by another name", "[observe (if z (normal 0 1) x2) 1]", EvidenceError, ("made elsewhere",), MODEL + "[assume x2 x]"),
    Bad("and where a name is observed", "[observe w 1]", EvidenceError, ("made elsewhere",), MODEL + "[assume w (if z (normal 0 1) (f 1))]"),
    Bad("a value that no parameter could give", "[observe (flip 0.3) 7]", EvidenceError, ("7 is impossible for flip",)),
    Bad("one of many", "for n in 1...3: [observe (poisson 2) {y[n]}]", EvidenceError, ("poisson", "(n = 2)"), parameters={"y": [1, -1, 1]}),
    Bad("an unknown label", "[forget slope]", VentureError, (":1:9", "slope"), MODEL),
    Bad("an unknown label that is nearly one", "[report her]", VentureError, ("did you mean here?",), MODEL),
    Bad("an unknown number", "[report 77]", VentureError, ("77",), MODEL),
    Bad("a pass that is not there", "[forget data 9]", VentureError, ("no pass 9",), "data: for n in 1...3: [predict n]"),
    Bad("gibbs on a continuous choice", "[infer (gibbs default all 1)]", KernelError, ("gibbs", "normal", "try: mh"), MODEL),
    Bad("drift on a discrete choice", "[infer (mh s all 'drift 0.1 1)]", KernelError, ("'drift", "uniform_discrete", "try: gibbs"), MODEL),
    Bad("a negative number of transitions", "[infer (mh default one -1)]", ArgumentError, ("0 or more",), MODEL),
    Bad("an action written wrong", "[infer (mh default one)]", ArgumentError, ("(mh SCOPE BLOCK T)",), MODEL),
    Bad("a range of one end", "[infer (mh default (ordered_range 1) 1)]", ArgumentError, ("(ordered_range LO HI)",), MODEL),
    Bad("recursion without an end", "[predict (g 1)]", LimitError, ("5,000 nested calls", "in g"), "[assume (g n) (+ 1 (g n))]"),
    Bad("a memoized call that needs its own result", "[predict (g 1)]", LimitError, ("needed to compute itself", "in g"), "[assume g (mem (lambda (n) (+ 1 (g n))))]"),
    Bad("a NaN key", "[predict (f (- {inf} {inf}))]", VentureError, (), MODEL, {"inf": math.inf}),
    Bad("assume in a loop", "for n in 1...2: [assume a n]", VentureError, (":1:17", "mem"), ""),
    Bad("assume in a loop that infers", "for n in 1...2:\n  [infer (mh default one 1)]\n  [assume a n]", VentureError, (":3:3",), MODEL),
    Bad("a label taken", "here: [predict 1]", VentureError, ("here is taken",), MODEL),
    Bad("a name rebound", "[assume x 3]", VentureError, ("already assumed",), MODEL),
    Bad("a special form rebound", "[assume if 3]", VentureError, ("special form",), MODEL),
    Bad("forget of what is used", "[forget x]", VentureError, ("x is used by", "forget that"), MODEL),
    Bad("force of an observed choice", "[force (f 7) 3]", EvidenceError, (":1:8", "observed"), MODEL + "[observe (f 7) 2]"),
    Bad("force to probability zero", "[force z 7]", EvidenceError, ("probability zero",), MODEL),
    Bad("a random block key", "[assume a (scope_include 's z (normal 0 1))]", ArgumentError, ("key",), MODEL),
    Bad("a random block key by a call", "[predict (g 2 z)]", ArgumentError, ("key", "in g"), MODEL + "[assume (g n b) (if (= n 0) (scope_include 's b (normal 0 1)) (g (- n 1) b))]"),
    Bad("a scope that is no constant", "[assume a (scope_include (list 1) 2 (flip))]", ArgumentError, ("scope's name",), ""),
    Bad("a nested quote without datum", "[predict (quote)]", ArgumentError, ("(quote datum)",)),
    Bad("an empty call", "[predict ()]", ArgumentError, ("empty",)),
    Bad("a parameter named twice", "[assume g (lambda (a a) a)]", ArgumentError, ("named twice",)),
    Bad("outside a vector", "[predict (lookup (vector 1 2) 5)]", VentureError, ("lookup",)),
    Bad("probabilities that sum to 2", "[predict (categorical (vector 1 1))]", ArgumentError, ("categorical", "sum")),
]  # fmt: skip


def state(venture: Venture) -> tuple[Any, ...]:
    reports = [venture.report(entry["id"]) for entry in venture.list_directives() if entry["directive"] == "predict"]
    return venture.list_directives(), venture.log_score(), reports


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_error_is_located_and_the_session_goes_on(case: Bad) -> None:
    venture = Venture(seed=3, nested_calls=5000)
    venture.execute(case.before, **case.parameters)
    before = state(venture)
    with pytest.raises(case.error) as caught:
        venture.execute(case.text, **case.parameters)
    message = str(caught.value)
    assert message.startswith("<input>:"), message
    assert "^" in message
    for part in case.says:
        assert part in message, message
    assert state(venture) == before
    venture.execute("[assume afterwards (normal 0 1)] [observe (normal afterwards 1) 1]")
    venture.infer("(mh default one 5)")


def test_a_name_that_is_handed_to_a_procedure_before_it_has_a_value() -> None:
    venture = Venture(seed=1)
    venture.assume("f", "(lambda (x) x)")
    with pytest.raises(VentureError, match="y is used before it has a value"):
        venture.assume("y", "(f y)")
