"""`gibbs` with 'forward: whole chains of finite states against enumeration, and against forward filtering."""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2, multivariate_normal

from tests.statistics import Table, assert_chain_agrees
from venture_lite import Venture
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.chains import StateChains
from venture_lite.blocks.filtering import ChainTerms, _forward, drawn_paths
from venture_lite.blocks.kinds import kinds
from venture_lite.engines.forward import ForwardGibbs
from venture_lite.engines.gibbs import Gibbs
from venture_lite.errors import ImpossibleState, VentureError, VentureWarning
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import Weight
from venture_lite.trace.nodes import site_of
from venture_lite.values import Symbol

INFINITE = 1e9

DATA = {
    "y": [0.3, 2.9, 1.1, -0.4, 2.2],
    "P": [[0.6, 0.2, 0.2], [0.3, 0.4, 0.3], [0.1, 0.1, 0.8]],
    "Q": [
        [[0.6, 0.4], [0.3, 0.7]],
        [[0.5, 0.5], [0.9, 0.1]],
        [[0.2, 0.8], [0.5, 0.5]],
        [[1, 0], [0, 1]],
        [[0.3, 0.7], [0.8, 0.2]],
    ],
}
CHAIN = "[assume z (mem (lambda (t) (if (= t 0) 0 (categorical (lookup {P} (z (- t 1)))))))]"
HELD = "[predict (list (row 0) (row 1) (row 2) (m 0) (m 1) (m 2))]"
MODELS = {
    "rows that stand in a list": CHAIN + "for t in 1...5: [observe (normal (z t) 1.2) {y[t]}]",
    "keys": """
        [assume row (mem (lambda (k) (dirichlet (list 1 1 1))))] [assume m (mem (lambda (k) (normal 0 2)))]
        [assume z (mem (lambda (t) (if (= t 0) 0 (categorical (row (z (- t 1)))))))]
        for t in 1...5: [observe (normal (m (z t)) 1) {y[t]}]
        """
    + HELD,
    "keys and a sum": """
        [assume row (mem (lambda (k) (dirichlet (list 1 1 1))))] [assume m (mem (lambda (k) (normal 0 2)))]
        [assume g (mem (lambda (k l) (+ 1 (* k l))))]
        [assume z (mem (lambda (t) (if (= t 0) 0 (categorical (row (z (- t 1)))))))]
        for t in 1...5: [observe (normal (+ 1 (* 2 (m (z t)))) (g t (z t))) {y[t]}]
        [assume total (+ (z 1) (z 2) (z 3) (z 4) (z 5))] [assume last (m (z 5))]
        """
    + HELD,
    "rows that vary": """
        [assume z (mem (lambda (t) (if (= t 0) 0 (categorical (lookup (lookup {Q} (- t 1)) (z (- t 1)))))))]
        for t in 1...5: [observe (normal (z t) 1) {y[t]}]""",
    "what cannot follow": """
        [assume z (mem (lambda (t) (if (= t 0) 0
          (categorical (lookup (list (list 0.5 0.5 0) (list 0 0.5 0.5) (list 0.5 0 0.5)) (z (- t 1)))))))]
        for t in 1...5: [observe (normal (z t) 1) {y[t]}]""",
    "supports that vary": """
        [assume z (mem (lambda (t) (if (= t 0) 1 (uniform_discrete 0 (+ 1 (min t (+ 1 (z (- t 1)))))))))]
        for t in 1...3: [observe (normal (z t) 1) {y[t]}]""",
    "missing data": CHAIN + "for t in 1...2: [observe (normal (z (* 2 t)) 0.5) {y[t]}]\n[predict (z 5)]",
    "symbols": """
        [assume z (mem (lambda (t) (if (= t 0) 'a (categorical (row (z (- t 1))) (list 'a 'b)))))]
        [assume row (mem (lambda (k) (if (= k 'a) (list 0.8 0.2) (list 0.4 0.6))))]
        for t in 1...5: [observe (normal (if (= (z t) 'a) 0 2) 1) {y[t]}]""",
    "booleans": """
        [assume z (mem (lambda (t) (if (= t 0) true (bernoulli (if (z (- t 1)) 0.8 0.3)))))]
        for t in 1...5: [observe (normal (if (z t) 0 2) 1) {y[t]}]""",
    "emissions of two states": CHAIN + "for t in 1...5: [observe (normal (- (z t) (* 2 (z (- t 1)))) 1.2) {y[t]}]",
    "and the other way round": CHAIN + "for t in 1...5: [observe (normal (- (* 2 (z (- t 1))) (z t)) 1.2) {y[t]}]",
    "a factor before the states": """
        [assume z (mem (lambda (t) (categorical (list 0.2 0.3 0.5))))]
        [factor (* 0.5 (z 3) (- (z 2) 1))] [factor (* (z 1) (- (z 2) 1))]""",
    "a list that is observed": CHAIN + "[observe (map (lambda (t) (normal (z t) 1)) (list 1 2 3 4 5)) {y}]",
    "states in single assumes": """
        [assume a (bernoulli 0.3)] [assume b (bernoulli (if a 0.9 0.2))] [assume c (bernoulli (if b 0.7 0.1))]
        for t in 1...5: [observe (normal (+ a b) 1) {y[t]}] [observe (bernoulli (if c 0.8 0.3)) true]""",
    "labels by themselves": """
        [assume z (mem (lambda (i) (categorical (list 0.2 0.3 0.5))))]
        for t in 1...5: [observe (normal (z t) 1) {y[t]}]""",
    "two chains": """
        [assume z (mem (lambda (i t) (if (= t 0) 0 (categorical (lookup {P} (z i (- t 1)))))))]
        for t in 1...3: [observe (normal (z 1 t) 1) {y[t]}]
        for t in 1...2: [observe (normal (z 2 t) 1) {y[t]}]""",
    "vectors": CHAIN
    + """
        [assume cov (list (list 1 0.3) (list 0.3 2))]
        for t in 1...4: [observe (multivariate_normal (vector (z t) 1) cov) (vector {y[t]} 1)]""",
    "counts and a factor": """
        [assume z (mem (lambda (t) (if (= t 0) 2 (binomial 3 (/ (+ 1 (z (- t 1))) 5)))))]
        for t in 1...3: [observe (poisson (+ 1 (z t))) t]
        [factor (* 0.4 (z 1) (z 2))]""",
}
FORWARD = "(gibbs (choices 'finite) all 'forward 1)"


def loaded(name: str, seed: int = 4) -> tuple[Model, list[int]]:
    """A model in a state that was drawn once, and its states."""
    v = Venture(seed=seed)
    with warnings.catch_warnings():
        # rows of the data that a model does not read
        warnings.simplefilter("ignore", VentureWarning)
        v.execute(MODELS[name], **DATA)
        v.infer(FORWARD)
    return model_of(v), states_of(model_of(v))


def model_of(v: Venture) -> Model:
    return v.traces[0]


def states_of(model: Model) -> list[int]:
    kind = kinds(model)
    return [node for node in model.trace.default.everything() if kind(site_of(node)) == "finite"]


def scored(model: Model, nodes: list[int], values: tuple[Any, ...]) -> float:
    """The log score of the whole trace, up to a constant, with choices put in place by the interpreter."""
    with suppress(ImpossibleState), model.aside():
        weight = Weight()
        for node, value in zip(nodes, values, strict=True):
            weight.plus(model.put_value(node, value))
        return weight.value()
    return -math.inf


def stands(v: Venture) -> dict[str, Any]:
    """All of a trace but its scopes, of which a program that is refused may have named one."""
    return {part: held for part, held in snapshot(model_of(v)).items() if part != "scopes"}


def candidates(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [False, True]
    return [0, 1, 2, 3] if isinstance(value, int) else [Symbol("a"), Symbol("b")]


def summed(chains: StateChains, values: dict[int, Any]) -> float:
    """The terms of one path."""
    total = 0.0
    for length in chains._lengths:
        terms = length.terms
        for number, path in enumerate(length.paths):
            at = [next((k for k, x in enumerate(chains._candidates[n]) if x == values[n]), -1) for n in path]
            if -1 in at:
                return -math.inf
            single = sum(
                terms.single[number, p, k] - INFINITE * terms.single_counts[number, p, k] for p, k in enumerate(at)
            )
            double = sum(
                terms.double[number, p, i, j] - INFINITE * terms.double_counts[number, p, i, j]
                for p, (i, j) in enumerate(itertools.pairwise(at))
            )
            total += single + double
    return total if total > -INFINITE / 2 else -math.inf


@pytest.mark.parametrize("name", MODELS)
def test_terms_of_a_path_are_the_log_score(name: str) -> None:
    """Of each of sixty joint states, up to a constant; leaving out any kind of term, or turning one round, shows."""
    assert_terms_are_scores(*loaded(name))


def test_terms_of_observations_are_tempered() -> None:
    model, nodes = loaded("keys")
    with model.regenerator.tempered(0.3):
        assert_terms_are_scores(model, nodes)


def assert_terms_are_scores(model: Model, nodes: list[int]) -> None:
    chains = StateChains(model, nodes)
    with model.aside():
        chains.draw()
        chains.weigh()
        likely = list(itertools.product(*(chains._candidates[node] for node in nodes)))
        every = list(itertools.product(*(candidates(model.trace.value(node)) for node in nodes)))
        order = np.random.default_rng(1).permutation
        some = [from_[at] for from_ in (likely, every) for at in order(len(from_))[:30]]
        found = [summed(chains, dict(zip(nodes, values, strict=True))) for values in some]
    exact = [scored(model, nodes, values) for values in some]
    possible = [at for at, score in enumerate(exact) if score > -math.inf]
    assert possible == [at for at, total in enumerate(found) if total > -math.inf]
    differences = [found[at] - exact[at] for at in possible]
    assert np.ptp(differences) < 1e-9


@pytest.mark.parametrize("name", MODELS)
def test_a_draw_leaves_a_sound_trace(name: str) -> None:
    """After each draw every table, edge, list of users and kept weight is what a recomputation gives."""
    model, nodes = loaded(name)
    engine, moved = ForwardGibbs(Gibbs(model)), 0
    for _ in range(8):
        moved += engine.step(nodes, None)
        check(model)
    assert moved


@pytest.mark.thorough
def test_paths_are_drawn_in_proportion_to_their_weights() -> None:
    """A chain of 4 states with up to 3 candidates against its 36 paths: 30,000 independent draws, chi-square at 1e-8.
    First all is possible, then one transition is not, then none of the first ones is."""
    rng = np.random.default_rng(5)
    copies, sizes = 30_000, np.array([2, 3, 2, 3])
    terms = ChainTerms.of(np.full(copies, 4), np.tile(sizes, (copies, 1)))
    terms.single[:] = rng.normal(size=terms.single.shape[1:])
    terms.double[:] = rng.normal(size=terms.double.shape[1:])
    for impossible in (0, 1, 2):
        if impossible == 1:
            terms.double_counts[:, 1, 0, 1] = 1.0
        if impossible == 2:
            terms.double_counts[:, 0] += 2.0
            terms.double_counts[:, 2, :, 1] += 1.0
        weights = {}
        for path in itertools.product(*map(range, sizes)):
            pairs = list(itertools.pairwise(path))
            counts = sum(terms.double_counts[0, at, i, j] for at, (i, j) in enumerate(pairs))
            log = sum(terms.single[0, at, k] for at, k in enumerate(path))
            weights[path] = (counts, log + sum(terms.double[0, at, i, j] for at, (i, j) in enumerate(pairs)))
        fewest = min(count for count, _ in weights.values())
        shares = {path: math.exp(log) for path, (count, log) in weights.items() if count == fewest}
        drawn = drawn_paths(terms, rng.random((copies, 4)))
        found, times = np.unique(drawn, axis=0, return_counts=True)
        assert set(map(tuple, found.tolist())) <= set(shares)
        counted = dict(zip(map(tuple, found.tolist()), times.tolist(), strict=True))
        expected = copies * np.array(list(shares.values())) / sum(shares.values())
        observed = np.array([counted.get(path, 0) for path in shares])
        assert chi2.sf(((observed - expected) ** 2 / expected).sum(), len(shares) - 1) > 1e-8


@pytest.mark.parametrize("length", [2, 9, 10, 37, 64])
def test_sums_over_long_chains_are_those_of_single_steps(length: int) -> None:
    """Products of matrices, two steps at a time, against steps one by one."""
    rng = np.random.default_rng(length)
    single, double = rng.normal(size=(1, length, 3)), rng.normal(size=(1, length - 1, 3, 3))
    double[0, :, 0, 1] = -np.inf
    found = _forward(single, double)
    now = single[0, 0]
    for at in range(length - 1):
        now = logsumexp(now[:, None] + double[0, at], axis=0) + single[0, at + 1]
        np.testing.assert_allclose(found[0, at + 1], now, rtol=1e-12)


@pytest.mark.slow
def test_states_and_their_parameters_are_drawn_from_the_posterior() -> None:
    """Rows and means memoized by the state, which come and go with it. With both summed out the density of a path is a
    product of Dirichlet-multinomial and of normal terms, over 16 paths. False alarms as `tests/statistics.py` says."""
    y = [0.4, 0.9, -0.3, 1.0]
    exact = Counter[tuple[int, ...]]()
    for path in itertools.product((0, 1), repeat=4):
        counts = np.zeros((2, 2))
        for i, j in itertools.pairwise((0, *path)):
            counts[i, j] += 1.0
        log = sum(gammaln(2.0) - gammaln(2.0 + row.sum()) + gammaln(1.0 + row).sum() for row in counts)
        for k in (0, 1):
            of = np.array([value for value, state in zip(y, path, strict=True) if state == k])
            cov = np.ones((len(of), len(of))) + 1.0 * np.eye(len(of))
            log += multivariate_normal.logpdf(of, np.zeros(len(of)), cov) if len(of) else 0.0
        exact[path] = math.exp(log)
    total = exact.total()
    v = Venture(seed=9)
    v.execute(
        """[assume row (mem (lambda (k) (dirichlet (list 1 1))))] [assume m (mem (lambda (k) (normal 0 1)))]
        [assume z (mem (lambda (t) (if (= t 0) 0 (categorical (row (z (- t 1)))))))]
        for t in 1...4: [observe (normal (m (z t)) 1) {y[t]}]
        [assume code (+ (z 1) (* 2 (z 2)) (* 4 (z 3)) (* 8 (z 4)))] [assume mean (m (z 1))]""",
        y=y,
    )

    def more(n: int) -> dict[str, Any]:
        kernels = f"{FORWARD} (mh (choices row m) each 3)"
        draws = v.infer(f"(repeat {n} (do {kernels} (collect code)))")
        check(model_of(v))
        return {"code": draws["code"][0]}

    table = Table({float(sum(2**at * k for at, k in enumerate(path))): p / total for path, p in exact.items()})
    assert_chain_agrees(more, {"code": table}, 1500, "forward")


REFUSED = {
    "no finite support": (
        "[assume x (mem (lambda (t) (if (= t 0) 0 (poisson (+ 1 (x (- t 1)))))))] [predict (x 3)]",
        "(gibbs (choices x) all 'forward 1)",
        "poisson has no finite support",
        "(poisson",
    ),
    "a branch": (
        "[assume z (bernoulli 0.5)] [assume m (mem (lambda (k) (normal 0 1)))]"
        "[observe (normal (if z (m 1) (m 2)) 1) 2]",
        "(gibbs (choices z) all 'forward 1)",
        "a branch depends on a state here",
        "(if z (m 1) (m 2))",
    ),
    "which procedure": (
        "[assume z (categorical (list 0.5 0.5))] [observe ((lookup (list normal cauchy) z) 0 1) 2]",
        "(gibbs (choices z) all 'forward 1)",
        "which procedure is applied depends on a state here",
        "((lookup (list normal cauchy) z) 0 1)",
    ),
    "three states": (
        "[assume z (mem (lambda (t) (bernoulli 0.5)))] [observe (normal (+ (z 1) (z 2) (z 3)) 1) 2]",
        "(gibbs (choices z) all 'forward 1)",
        "this density reads more than 2 of them",
        "(normal (+ (z 1) (z 2) (z 3)) 1)",
    ),
    "the state before the last one": (
        "[assume z (mem (lambda (t) (if (< t 1) 1 (bernoulli (/ (+ 1 (z (- t 1)) (z (- t 2))) 4)))))] [predict (z 4)]",
        "(gibbs (choices z) all 'forward 1)",
        "this density reads more than 2 of them",
        "(bernoulli",
    ),
    "a star": (
        "[assume z (bernoulli 0.5)] [assume x (mem (lambda (i) (bernoulli (if z 0.2 0.7))))]"
        "[predict (list (x 1) (x 2) (x 3))]",
        "(gibbs (choices z x) all 'forward 1)",
        "neighbour of more than two others",
        "(bernoulli (if z 0.2 0.7))",
    ),
    "a circle": (
        "[assume z (mem (lambda (t) (bernoulli 0.5)))]"
        "[factor (* (z 1) (z 2))] [factor (* (z 2) (z 3))] [factor (* (z 3) (z 1))]",
        "(gibbs (choices z) all 'forward 1)",
        "these go round in a circle",
        "(bernoulli 0.5)",
    ),
    "labels of tables": (
        "[assume c (make_crp 1)] [assume z (mem (lambda (i) (c)))] [observe (normal (z 1) 1) 1]",
        "(gibbs (choices z) all 'forward 1)",
        "depend on one another",
        "(c)",
    ),
    "statistics that count": (
        "[assume z (bernoulli 0.5)] [assume c (make_beta_bernoulli (+ 1 z) 1)] [observe (c) true]",
        "(gibbs (choices z) all 'forward 1)",
        "the parameters of an exchangeable procedure",
        "(make_beta_bernoulli (+ 1 z) 1)",
    ),
    "a family that reads a state": (
        "[assume z (mem (lambda (t) (bernoulli 0.5)))] [assume m (mem (lambda (k) (normal (z 2) 1)))]"
        "[observe (normal (m (z 1)) 1) 0.5]",
        "(gibbs (choices z) all 'forward 1)",
        "what a state finds, and only a state keeps, reads a state or is one",
        "(z 2)",
    ),
    "a family that is a state": (
        "[assume z (mem (lambda (t) (bernoulli 0.5)))] [observe (normal (z (+ 2 (z 1))) 1) 0.5]"
        "[predict (list (z 2) (z 3))]",
        "(gibbs (choices z) all 'forward 1)",
        "what a call finds by a state reads states itself",
        "(z (+ 2 (z 1)))",
    ),
    "one of several blocks": (
        "[assume z (mem (lambda (t) (bernoulli 0.5)))] [predict (z 1)]",
        "(gibbs (choices z) one 'forward 1)",
        "as a whole",
        "one",
    ),
    "too many": (
        "[assume z (mem (lambda (t) (if (= t 0) 0 (binomial 400 (/ (+ 1 (z (- t 1))) 402)))))] [predict (z 3)]",
        "(gibbs (choices z) all 'forward 1)",
        "more than 100,000 candidates",
        "(binomial",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_chain_is_refused(name: str) -> None:
    """With the reason and the place; the trace is as before."""
    program, kernel, reason, place = REFUSED[name]
    v = Venture(seed=1)
    v.execute(program)
    before = stands(v)
    with pytest.raises(VentureError, match=re.escape(reason)) as caught:
        v.infer(kernel)
    assert caught.value.span is not None
    assert caught.value.span.text.startswith(place)
    assert caught.value.hint
    assert stands(v) == before


SCALES = """[assume z (mem (lambda (t) (categorical {p})))] [assume scales (list 1 2 -1)]
    for t in 1...3: [observe (normal 0 (lookup scales (z t))) {y[t]}]"""


def test_an_error_at_an_impossible_state_is_none() -> None:
    v = Venture(seed=1)
    v.execute(SCALES, p=[0.5, 0.5, 0.0], y=[1, 2, 3])
    v.infer("(gibbs (choices z) all 'forward 20)")
    check(model_of(v))


def test_an_error_at_a_possible_state_is_one() -> None:
    """As it is for a candidate of `gibbs`, with the place."""
    v = Venture(seed=1)
    v.execute(SCALES, p=[0.9, 0.09, 0.01], y=[1, 2, 3])
    before = stands(v)
    with pytest.raises(VentureError, match="normal: sd must be a positive number, got -1") as caught:
        v.infer("(gibbs (choices z) all 'forward 1)")
    assert caught.value.span is not None
    assert caught.value.span.text.startswith("(normal 0")
    assert stands(v) == before


def test_candidates_are_vectors_and_lists() -> None:
    """The predictive probabilities of both are 0.9 and 0.3."""
    v = Venture(seed=1)
    v.execute(
        "[assume x (uniform_draw (list (vector 1 2) (list 1 2)))] [observe (flip (if (is_vector x) 0.9 0.3)) true]"
    )

    def more(count: int) -> dict[str, Any]:
        draws = v.infer(f"(repeat {count} (do (gibbs default all 'forward 1) (collect (is_vector x))))")
        return {"x": np.asarray(next(iter(draws.values())))[0]}

    assert_chain_agrees(more, {"x": Table({True: 0.75, False: 0.25})}, 200, what="'forward")


VECTOR_STATES = {
    "one by one": ("[assume x (mem (lambda (t) (flip (vector 0.3 0.6))))]", 0.3, 0.3),
    "in a row": (
        """[assume x (mem (lambda (t) (if (= t 0) (vector 0 0)
            (flip (vector (if (= (lookup (x (- t 1)) 0) 1) 0.8 0.3) 0.6)))))]""",
        0.3,
        0.8,
    ),
    "of whole numbers": ("[assume x (mem (lambda (t) (binomial (vector 1 1) (vector 0.3 0.6))))]", 0.3, 0.3),
}


@pytest.mark.parametrize("kernels", ["compiled", "interpreted", "checked"])
@pytest.mark.parametrize("name", VECTOR_STATES)
def test_states_may_be_vectors(name: str, kernels: str) -> None:
    """The first entries are a chain of two states; false alarms below 1e-6."""
    program, after_0, after_1 = VECTOR_STATES[name]
    v = Venture(seed=3, kernels=kernels)
    v.execute(f"{program} for t in 1...3: [observe (normal (lookup (x t) 0) 1) 0.9]")
    weights = dict.fromkeys((0, 1), 0.0)
    for path in itertools.product((0, 1), repeat=3):
        weight = math.exp(-0.5 * sum((0.9 - state) ** 2 for state in path))
        for before, state in zip((0, *path), path, strict=False):
            up = after_1 if before else after_0
            weight *= up if state else 1.0 - up
        weights[path[0]] += weight
    exact = {"first": Table({state: weight / sum(weights.values()) for state, weight in weights.items()})}

    def more(count: int) -> dict[str, np.ndarray]:
        found = v.infer(
            f"(repeat {count} (do (gibbs default all 'forward 1) (collect (labelled (lookup (x 1) 0) first))))"
        )
        return {"first": np.asarray(found["first"], dtype=float).reshape(count)}

    assert_chain_agrees(more, exact, 150 if kernels == "checked" else 400, name)
