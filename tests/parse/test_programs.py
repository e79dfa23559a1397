"""Whole programs: directives, labels, loops and their bodies."""

from __future__ import annotations

from pathlib import Path

import pytest

from venture_lite.errors import ParseError, Source
from venture_lite.language import syntax
from venture_lite.language.parse import parse_expression, parse_program
from venture_lite.language.syntax import Form, Index, Literal, Loop, Name, Parameter, Quote

BRANCHING = """
[assume b (bernoulli 0.5)]
[assume mu (if b 1 (gamma 1 1))]
[assume y (normal mu 0.1)]
[observe y 10.0]
"""

LOGISTIC_REGRESSION = """
[assume w (scope_include 'w 0
     (multivariate_normal {mu} {Sig}))]
[assume y_x (lambda (x) (bernoulli (linear_logistic w x)))]

for n in 1...N: #load data
   # features X[n] = [x0_n x1_n ...], class Y[n]
   [observe (y_x {X[n]}) {Y[n]}]

# do T iterations of subsampled MH with a Gaussian drift
# proposal of bandwidth sig
[infer (subsampled_mh w all {nbatch} {eps} 'drift {sig} {T})]
[infer (mh w all {T})] #standard MH provided for reference
"""

JOINT_MIXTURE = """
# fixed: dimensionality D, hypers mu_w sig_w m0 k0 v0 S0
[assume alpha (scope_include 'hypers 0 (gamma 1 1))]
[assume crp (make_crp alpha)]
[assume z (mem (lambda (i) (scope_include 'z i (crp))))]
[assume w (mem (lambda (z) (scope_include 'w z
     (multivariate_normal mu_w sig_w))))]
[assume c (mem (lambda (z)
     (make_collapsed_multivariate_normal m0 k0 v0 S0)))]
[assume x (lambda (i) ((c (z i))))]
[assume y (lambda (i x)
     (bernoulli (linear_logistic (w (z i)) x)))]
for i in 1..N: # load data
    [observe (x i) {X[i]}] #X[i] is ith feature vector
    [observe (y i {X[i]}) {Y[i]}] #Y[i] is ith class label

[infer (cycle ((mh hypers all 1)
               (gibbs z one step_z)
               (subsampled_mh w one {Nbatch} {eps}
                   'drift {sigma} 1)) {T})]
"""

STOCHASTIC_VOLATILITY = """
[assume sig (scope_include 'sig 0 (sqrt (inv_gamma 5 0.05)))]
[assume phi (scope_include 'phi 0 (beta 5 1))]
[assume h (mem (lambda (t) (scope_include 'h t
  (if (<= t 0) 0
    (normal (* phi (h (- t 1))) sig)))))]
[assume x (lambda (t) (normal 0 (exp (/ (h t) 2))))]
for t in 1..T:
    [observe (x t) {X[t]}] #X[t] is the observation at time t

for n in 1..N-L:
    [infer (pgibbs h (ordered_range {n} {n+L}) P 1)]
[infer (cycle ((subsampled_mh sig 0 {Nbatch} {eps} 1)
               (subsampled_mh phi 0 {Nbatch} {eps} 1)) 1)]
"""


def program(text: str) -> tuple[syntax.Directive, ...]:
    return parse_program(Source("test.vnt", text))


def kinds(text: str) -> list[object]:
    """The kinds of the directives, a loop as its variable and its body's kinds."""

    def kind(directive: syntax.Directive) -> object:
        if isinstance(directive, Loop):
            return (directive.variable, [kind(inner) for inner in directive.body])
        return type(directive).__name__

    return [kind(directive) for directive in program(text)]


def plain(node: object) -> object:
    """An expression as nested lists, for comparing."""
    match node:
        case Form(items):
            return [plain(item) for item in items]
        case Name(name):
            return name
        case Literal(value) | Quote(value):
            return ("'", value)
        case Parameter(index):
            return "{" + written(index) + "}"
    raise AssertionError(node)


def written(index: Index) -> str:
    match index:
        case syntax.IndexNumber(value):
            return str(value)
        case syntax.IndexName(name):
            return name
        case syntax.IndexOf(base, positions):
            return f"{written(base)}[{','.join(map(written, positions))}]"
        case syntax.IndexArithmetic(operator, left, right):
            return f"({written(left)}{operator}{written(right)})"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BRANCHING, ["Assume", "Assume", "Assume", "Observe"]),
        (LOGISTIC_REGRESSION, ["Assume", "Assume", ("n", ["Observe"]), "Infer", "Infer"]),
        (JOINT_MIXTURE, ["Assume"] * 7 + [("i", ["Observe", "Observe"]), "Infer"]),
        (STOCHASTIC_VOLATILITY, ["Assume"] * 4 + [("t", ["Observe"]), ("n", ["Infer"]), "Infer"]),
    ],
)
def test_the_papers_programs_parse(text: str, expected: list[object]) -> None:
    assert kinds(text) == expected


def test_a_loop_of_the_paper_keeps_its_bounds_and_parameters() -> None:
    loop = program(STOCHASTIC_VOLATILITY)[5]
    assert isinstance(loop, Loop)
    assert (written(loop.first), written(loop.last)) == ("1", "(N-L)")
    (infer,) = loop.body
    assert isinstance(infer, syntax.Infer)
    assert plain(infer.expression) == ["pgibbs", "h", ["ordered_range", "{n}", "{(n+L)}"], "P", ("'", 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[assume x 1]", "Assume"),
        ("(ASSUME x 1)", "Assume"),
        ("[Observe x 1]", "Observe"),
        ("[predict x]", "Predict"),
        ("(infer (mh default one 1))", "Infer"),
        ("(mh default one 1)", "Infer"),
        ("incorporate", "Infer"),
        ("[sample x]", "Sample"),
        ("[force x 1]", "Force"),
        ("[forget 4]", "Forget"),
        ("[freeze slope]", "Freeze"),
        ("[report slope]", "Report"),
        ("[define n 3]", "Define"),
        ("[list_directives]", "ListDirectives"),
        ("[clear]", "Clear"),
        ("[get_logscore]", "GetLogScore"),
        ('[load "a b.vnt"]', "Load"),
    ],
)
def test_each_directive_is_recognised(text: str, expected: str) -> None:
    assert kinds(text) == [expected]


def test_an_empty_text_and_one_of_comments_are_empty_programs() -> None:
    assert program("") == ()
    assert program("\ufeff ; nothing\n# here [assume") == ()


def test_comments_end_with_the_line_and_do_not_start_in_strings() -> None:
    (load,) = program('[load "a;b#c.vnt"] ; [clear\n# (((')
    assert isinstance(load, syntax.Load)
    assert load.path == "a;b#c.vnt"


def test_sugar_for_a_procedure_is_a_lambda() -> None:
    (assume,) = program("[assume (f x y) (+ x y)]")
    assert isinstance(assume, syntax.Assume)
    assert assume.name == "f"
    assert plain(assume.expression) == ["lambda", ["x", "y"], ["+", "x", "y"]]
    assert assume.expression.span.text == "(f x y) (+ x y)"


def test_references_name_a_label_or_a_number_and_positions() -> None:
    references = [directive.reference for directive in program("[forget data 3 17][forget 4][report 'slope]")]  # type: ignore[union-attr]
    assert [(reference.target, reference.positions) for reference in references] == [
        ("data", (3, 17)),
        (4, ()),
        ("slope", ()),
    ]


def test_labels_belong_to_what_follows_them() -> None:
    first, loop, run = program("slope: [assume w 1]\ndata:\nfor n in 1...3: each: [observe w 1]\nrun : (mh w all 1)")
    assert first.label == "slope"
    assert isinstance(loop, Loop)
    assert (loop.label, loop.body[0].label) == ("data", "each")
    assert run.label == "run"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for n in 1...3: [clear] [clear]\n[clear]", [("n", ["Clear", "Clear"]), "Clear"]),
        ("for n in 1...3:\n  [clear]\n  [clear]\n[clear]", [("n", ["Clear", "Clear"]), "Clear"]),
        ("for n in 1...3: [clear]\n                [clear]", [("n", ["Clear", "Clear"])]),
        ("for i in 1...3: for j in 1...2: [clear]", [("i", [("j", ["Clear"])])]),
        ("for i in 1...3: for j in 1...2:\n  [clear]", [("i", [("j", ["Clear"])])]),
        (
            "for i in 1...3:\n  for j in 1...2:\n    [clear]\n  [clear]\n[clear]",
            [("i", [("j", ["Clear"]), "Clear"]), "Clear"],
        ),
        ("for i in 1...3:\n\tfor j in 1...2:\n\t\t[clear]\n        [clear]", [("i", [("j", ["Clear"]), "Clear"])]),
        ("  for n in 1...3:\n    [clear]\n  [clear]", [("n", ["Clear"]), "Clear"]),
        ("for n in 1...3:\n  [assume x\n1\n] [clear]\n\n# note\n  [clear]", [("n", ["Assume", "Clear", "Clear"])]),
        ("for n in 1...3:\r\n  [clear]\r\n[clear]\r\n", [("n", ["Clear"]), "Clear"]),
        ("   [clear]\n [clear]\n     [clear]", ["Clear", "Clear", "Clear"]),
        ("FOR n IN 1...3: [clear]", [("n", ["Clear"])]),
    ],
)
def test_a_loop_takes_the_rest_of_its_line_and_what_is_indented_below(text: str, expected: list[object]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("1...N", ("1", "N")),
        ("1..N", ("1", "N")),
        ("1 … N", ("1", "N")),
        ("1...{N}", ("1", "N")),
        ("{a}...{N}-{L}", ("a", "(N-L)")),
        ("-2...2*(N - L)+M[1]", ("-2", "((2*(N-L))+M[1])")),
    ],
)
def test_bounds_are_index_expressions_with_or_without_braces(bounds: str, expected: tuple[str, str]) -> None:
    (loop,) = program(f"for n in {bounds}: [clear]")
    assert isinstance(loop, Loop)
    assert (written(loop.first), written(loop.last)) == expected


def test_spans_point_at_the_text_of_each_node() -> None:
    text = "; é\nslope: [assume w (f 'a {X[t-1]})]\ndata: for n in 1...N:\n  [observe (w n) {Y[n]}]\n"
    assume, loop = program(text)
    assert isinstance(assume, syntax.Assume)
    assert isinstance(assume.expression, Form)
    assert isinstance(loop, Loop)
    assert assume.span.text == "[assume w (f 'a {X[t-1]})]"
    assert [item.span.text for item in assume.expression.items] == ["f", "'a", "{X[t-1]}"]
    assert loop.span.text == "for n in 1...N:\n  [observe (w n) {Y[n]}]"
    assert loop.body[0].span.text == "[observe (w n) {Y[n]}]"
    assert loop.body[0].span.place() == "test.vnt:4:3"


@pytest.mark.thorough
def test_a_very_deep_expression_meets_no_recursion_limit() -> None:
    depth = 20_000
    for text in ("(f " * depth + ")" * depth, "'" + "(f " * depth + ")" * depth, "'" * depth + "x"):
        assert parse_expression(Source("deep", text)).span.end == len(text)
    with pytest.raises(ParseError):
        parse_expression(Source("deep", "(f " * depth))


@pytest.mark.thorough
def test_many_loops_nest() -> None:
    (loop,) = program("for n in 1...2: " * 5_000 + "[clear]")
    assert isinstance(loop, Loop)
    assert loop.span.end == 5_000 * 16 + 7


def test_the_grammar_is_found_in_the_checkout() -> None:
    assert (Path(__file__).parents[2] / "grammar" / "venture.lark").is_file()
