"""Linear predictors as they are read off the text: what they say a likelihood changes by is what the trace says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venture_lite import Venture, VentureError
from venture_lite.blocks import linear_block
from venture_lite.blocks.linear_block import LinearBlock
from venture_lite.blocks.sections import Sections
from venture_lite.errors import Disagreement, InternalError
from venture_lite.interpreter.answers import interpreted_weights
from venture_lite.interpreter.model import GivenValues
from venture_lite.procedures.predictor import LinearPredictor

SIZE = 4
BEFORE = """
[assume w (multivariate_normal {m} {S})]
[assume c (gamma 4 2)]
[assume scaled (* c w)]
[assume stretched (* w {t})]
[assume smaller (/ stretched c)]
"""


def session(text: str, count: int) -> Venture:
    rng = np.random.default_rng(count)
    v = Venture(seed=1)
    v.execute(
        text, N=count, X=rng.standard_normal((count, SIZE)), Y=rng.random(count) < 0.5, s=rng.random(count),
        g=rng.integers(0, SIZE, count), t=np.arange(1.0, SIZE + 1), m=np.zeros(SIZE), S=np.eye(SIZE),
    )  # fmt: skip
    return v


def block_of(v: Venture, name: str) -> LinearBlock:
    model = v.traces[0]
    target = model.trace.analyzer.globals[name]
    assert target.code is not None
    node = model.trace.result_node(target.code, target.row)
    return LinearBlock(model, Sections.of(model, [node]), [node])


def agrees(v: Venture, name: str) -> None:
    rng = np.random.default_rng(1)
    block = block_of(v, name)
    at, before = block.present(), v.log_score()
    for _ in range(2):
        theta = at + rng.standard_normal(block.size)
        v.force(name, block.values(theta)[0])
        after = v.log_score()
        assert after - before == pytest.approx(block.log_density(theta) - block.log_density(at), abs=1e-9)
        at, before = theta, after


# as many rows as features too: vectors and numbers for each row are told apart all the same
@pytest.mark.parametrize("count", [SIZE, 7])
@pytest.mark.parametrize(
    "predictor",
    [
        "(dot w {X[n]})",
        "(dot w {t})",
        "(dot (* c w) {X[n]})",
        "(dot {X[n]} (* w 3 c))",
        "(dot (* w {s[n]}) {X[n]})",
        "(dot (* w {t}) {X[n]})",
        "(dot (* {s[n]} (* w {t})) {X[n]})",
        "(dot (* {t} (* {s[n]} w)) {X[n]})",
        "(dot (/ w {t}) {X[n]})",
        "(dot (- w) {X[n]})",
        "(dot (* w {X[n]}) {t})",
        "(dot (* w {X[n]}) {X[n]})",
        "(dot scaled {X[n]})",
        "(dot stretched {X[n]})",
        "(dot smaller {X[n]})",
        "(dot (* {s[n]} smaller) {t})",
        "(+ {s[n]} (* {s[n]} (dot (* {s[n]} w) {t})))",
        "(lookup w 2)",
        "(lookup w {g[n]})",
        "(+ (lookup scaled 0) (* {s[n]} (lookup stretched {g[n]})))",
    ],
)
@pytest.mark.thorough
def test_a_predictor_says_by_what_the_log_score_changes(predictor: str, count: int) -> None:
    agrees(session(f"{BEFORE} for n in 1...N: [observe (bernoulli (logistic {predictor})) {{Y[n]}}]", count), "w")


@pytest.mark.parametrize("count", [SIZE, 25])
@pytest.mark.parametrize(
    "predictor",
    [
        "(dot (* {X[n]} {s[n]} w) {t})",
        "(dot (* {s[n]} {t} w) {X[n]})",
        "(dot (/ (* {s[n]} w) {X[n]}) {t})",
        "(+ true {Y[n]} (lookup w 1))",
        "(+ {Y[n]} {Y[n]} (lookup w {g[n]} 0.5))",
        "(* {big} {big} (lookup w 1) 1e-30)",
        "(+ (lookup w 1) (if (= c {f}) 1 2))",
    ],
)
def test_numbers_beside_the_block_are_added_and_multiplied_as_the_interpreter_does(predictor: str, count: int) -> None:
    predictor = predictor.replace("{big}", str(2**40)).replace("{f}", "normal")
    agrees(session(f"{BEFORE} for n in 1...N: [observe (bernoulli (logistic {predictor})) {{Y[n]}}]", count), "w")


@pytest.mark.parametrize("count", [2, 3, SIZE])
@pytest.mark.parametrize(
    "scores",
    [
        "(matmul W {X[n]})",
        "(matmul (* c W) {X[n]})",
        "(* {s[n]} (matmul (/ W c) {X[n]}))",
        "(+ (vector 1 2 3) (* 2 (matmul W {t})))",
        "(+ {s[n]} (matmul W {X[n]}))",
    ],
)
def test_scores_say_by_what_the_log_score_changes(scores: str, count: int) -> None:
    text = f"""
    [assume c (gamma 4 2)]
    [assume W (matrix_normal 1)]
    for n in 1...N: [observe (softmax_categorical {scores}) {{g[n]}}]
    """
    rng = np.random.default_rng(count)
    v = Venture(seed=1)
    v.register(
        "matrix_normal",
        simulate=lambda rng, sd: sd * rng.standard_normal((3, SIZE)),
        log_density=lambda value, sd: -0.5 * float(np.square(value).sum()) / sd**2,
        arguments=["sd"],
        domain="real",
        gradient={"value": lambda value, sd: -np.asarray(value) / sd**2},
    )
    v.execute(
        text, N=count, X=rng.standard_normal((count, SIZE)), s=rng.random(count), g=rng.integers(0, 3, count),
        t=np.arange(1.0, SIZE + 1),
    )  # fmt: skip
    agrees(v, "W")


@pytest.mark.parametrize(
    ("predictor", "message"),
    [
        ("(dot (* w w) {X[n]})", "two parts of the block are multiplied"),
        ("(dot (exp w) {X[n]})", "exp of it is not linear"),
        ("(lookup (exp w) 1)", "exp of it is not linear"),
        ("(dot w (* w {X[n]}))", "dot of it is not linear"),
    ],
)
def test_what_is_not_linear_is_refused(predictor: str, message: str) -> None:
    v = session(f"{BEFORE} for n in 1...N: [observe (bernoulli (logistic {predictor})) {{Y[n]}}]", 5)
    with pytest.raises(VentureError, match=message):
        block_of(v, "w")


@pytest.mark.parametrize("count", [7, 50])
def test_memoized_weights_are_coefficients(count: int) -> None:
    """Whatever the number of rows: those that call several weights are one group from 9 on."""
    line = "(+ (w 0) (* (w 1) {X[n, 1]}) (* (w 2) {X[n, 2]}))"
    text = f"""[assume w (mem (lambda (i) (tag 'w i (normal 0 1))))]
        for n in 1...N: [observe (bernoulli (logistic {line})) {{Y[n]}}]"""
    rng = np.random.default_rng(count)
    x = rng.standard_normal((count, 2))
    v = Venture(seed=1)
    v.execute(text, N=count, X=x, Y=rng.random(count) < 0.5)
    model = v.traces[0]
    weights = [node for key in range(3) for node in model.trace.scopes["w"].members(key)]
    block = LinearBlock(model, Sections.of(model, weights), weights)
    (kind,) = block.kinds
    expected = np.column_stack([np.ones(count), x])
    assert np.array_equal(kind.features[kind.features[:, 1].argsort()], expected[x[:, 0].argsort()])
    before, at = v.log_score(), block.present()
    v.infer("(flymc w all auto 'untuned 0.5 'drift 0.5 5)")
    v.infer("(subsampled_mh w all 5 0.1 'drift 0.5 'proxy 5)")
    assert not np.array_equal(block.present(), at)
    assert v.log_score() - before == pytest.approx(block.log_density(block.present()) - block.log_density(at), abs=1e-9)


GROUPS = """[assume w (mem (lambda (k) (tag 'w k (normal 0 1))))] [assume b (tag 'b 0 (normal 0 1))]
    [assume effect (lambda (g) (* b g))] [assume twice (mem (lambda (k) (* 2 (w k))))]"""


def change_of_log_score(v: Venture, nodes: list[int]) -> tuple[float, float]:
    """By a predictor read off the text, and by the trace."""
    model = v.traces[0]
    block = LinearBlock(model, Sections.of(model, nodes), nodes)
    at = block.present()
    theta = at + np.random.default_rng(1).standard_normal(block.size)
    old, new = interpreted_weights(model, nodes, GivenValues(dict(zip(nodes, block.values(theta), strict=True))))
    return block.log_density(theta) - block.log_density(at), new.total - old.total


@pytest.mark.parametrize("count", [2, 3, 9, 20, 25, 42])
@pytest.mark.parametrize("odd", [0, 1, -1])
@pytest.mark.parametrize("key", [1, 2])
def test_every_row_is_asked_what_it_reads(count: int, odd: int, key: int) -> None:
    """Rows of one text, one of which calls another weight than the others."""
    v = Venture(seed=1)
    keys = [1] * count
    keys[odd] = 2
    line = "(+ (w 1) (w 2) (* {X[n]} (w {J[n]})))"
    v.execute(
        f"{GROUPS} for n in 1...N: [observe (normal {line} 1) {{X[n]}}]", N=count, J=keys, X=list(range(1, 1 + count))
    )
    by_text, by_trace = change_of_log_score(v, v.traces[0].trace.scopes["w"].members(key))
    assert by_text == pytest.approx(by_trace, rel=1e-9)


@pytest.mark.parametrize("odd", [0, 1, -1])
@pytest.mark.parametrize(
    "line", ["(+ b (if {B[n]} (effect 1) 0))", "(+ b (if {B[n]} 0 (effect 1)))", "(+ (w 1) (twice {J[n]}))"]
)
def test_rows_that_read_a_block_through_different_text_are_refused(line: str, odd: int) -> None:
    v = Venture(seed=1)
    are_odd, keys = [False] * 10, [1] * 10
    are_odd[odd], keys[odd] = True, 2
    v.execute(f"{GROUPS} for n in 1...10: [observe (bernoulli (logistic {line})) true]", B=are_odd, J=keys)
    scope, key = ("b", 0) if "b" in line else ("w", 1)
    with pytest.raises(VentureError, match="does not read the block linearly"):
        change_of_log_score(v, v.traces[0].trace.scopes[scope].members(key))


@pytest.mark.parametrize(
    ("predictor", "message"),
    [
        ("(lookup w {far[n]} 0.5)", "some positions have no element"),
        ('(+ (lookup w 1) (if {no[n]} "a text" 1))', "no columns of numbers"),
        ("(+ (lookup w 1) (if (= size (lambda (x) x)) 1 2))", "no columns of numbers"),
        ("(+ (lookup w 1) (* {far[n]} (= (lambda (x) {far[n]}) size)))", "no columns of numbers"),
    ],
)
def test_what_columns_cannot_hold_is_refused_with_a_reason(predictor: str, message: str) -> None:
    v = Venture(seed=1)
    text = f"{BEFORE} for n in 1...5: [observe (bernoulli (logistic {predictor})) true]"
    v.execute(text, t=np.arange(1.0, SIZE + 1), m=np.zeros(SIZE), S=np.eye(SIZE), far=[7, 1, 1, 1, 1], no=[False] * 5)
    with pytest.raises(VentureError, match=message):
        block_of(v, "w")
    v.infer("(mh default one 'drift 0.1 'precondition 2)")


def test_a_vector_that_all_rows_share_is_none_of_rows_numbers() -> None:
    """A likelihood's argument that has as many numbers as there are rows."""
    v = Venture(seed=1)

    def taylor(value: Any, mean: Any, prices: Any) -> tuple[Any, Any, Any]:
        away, precision = value - mean, np.sum(prices)
        return -0.5 * precision * away**2, precision * away, np.full(np.shape(away), -precision)

    v.register(
        "priced",
        simulate=lambda rng, mean, prices: rng.normal(mean, 1.0),
        log_density=lambda value, mean, prices: float(-0.5 * np.sum(prices) * (value - mean) ** 2),
        arguments=["mean", "prices"],
        predictor=LinearPredictor(0, taylor, lambda *given: 1.0, lambda *given: (np.inf, 0.0), is_quadratic=True),
    )
    text = "[assume w (normal 0 1)] for n in 1...3: [observe (priced (* {x[n]} w) {p}) 1]"
    v.execute(text, x=[1.0, 2.0, 3.0], p=np.arange(1.0, 4.0))
    block = block_of(v, "w")
    (kind,) = block.kinds
    rows = np.array([0, 2])
    assert np.allclose(block.terms(np.ones(1), kind, rows)[0], np.array(block.terms(np.ones(1), kind)[0])[rows])


@pytest.mark.parametrize(
    "engine",
    [
        "(flymc default all auto 'map 0.2 'drift 1 'adapt 50 5)",
        "(flymc default all auto 'untuned 0.2 'mala 1 'precondition 5)",
        "(subsampled_mh default all 3 0.1 'drift 1 'proxy 5)",
        "(mh default all 'drift 1 'precondition 5)",
    ],
)
@pytest.mark.parametrize("kernels", ["compiled", "checked"])
def test_an_error_of_a_reading_is_a_difference(engine: str, kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> None:
        raise TypeError("a defect")

    monkeypatch.setattr(linear_block, "linear_predictor", fails)
    v = Venture(seed=1, kernels=kernels)
    v.execute("[assume m (normal 0 1)] for n in 1...5: [observe (normal (* n m) 1) n]")
    if kernels == "checked":
        with pytest.raises(InternalError, match="a defect"):
            v.infer(engine)
        return
    with pytest.warns(Disagreement, match="linear predictors of m.*a defect.*report"):
        v.infer(engine)
    before = v.sample("m")
    v.infer(engine)
    assert v.sample("m") != before
