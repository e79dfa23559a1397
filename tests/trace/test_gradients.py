"""Gradients through the scaffold against central differences of the log joint density, which is summed over all choices
of the trace by `log_score` and knows nothing of scaffolds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from tests.generator.directives import random_program
from tests.generator.session import infer, load
from tests.posterior.cases import CASES
from tests.procedures.differences import agree, derivative, is_sharp
from venture_lite import Venture
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.distributions import transform_of
from venture_lite.blocks.moving import RowKind
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import NARROW


def log_joint(model: Model, block: Sequence[int]) -> float:
    """Of the whole trace, with the Jacobians of the block's transforms; -inf where a choice is impossible."""
    trace = model.trace
    weight = model.log_score()
    for node in block:
        operator, arguments = trace.application(node)
        transform = transform_of(operator)
        assert transform is not None
        weight.total += transform.log_jacobian(trace.value(node), arguments)
    return weight.value()


def compare(model: Model, block: Sequence[int], rng: np.random.Generator) -> int:
    """Compare the gradient in two random directions; how many of the comparisons could have told."""
    density = BlockDensity(model, block)
    before, mark = snapshot(model), model.trace.journal.mark()
    free = density.present()
    weight, gradient = density.evaluate()
    told = 0
    for _ in range(2 if not weight.impossible else 0):
        way = rng.normal(size=len(free))

        def along(step: float, way: np.ndarray = way) -> float:
            density.put(free + step * way)
            return log_joint(model, block)

        expected = derivative(along)
        assert agree(float(gradient @ way), expected)
        assert weight.total - density.evaluate()[0].total == pytest.approx(
            log_joint_change(model, block, density, free), rel=1e-6, abs=1e-9
        )
        told += is_sharp(expected)
    model.trace.journal.rollback(mark)
    assert snapshot(model) == before
    return told


def log_joint_change(model: Model, block: Sequence[int], density: BlockDensity, free: np.ndarray) -> float:
    """From the present state back to `free`, where it leaves the block."""
    there = log_joint(model, block)
    density.put(free)
    return log_joint(model, block) - there


def blocks(model: Model) -> Iterator[list[int]]:
    """All choices together if they have a density with a gradient, else one by one those that do."""
    nodes = model.trace.default.everything()
    for block in (nodes, *([node] for node in nodes)):
        try:
            BlockDensity(model, block)
        except KernelError:
            continue
        yield block
        if len(block) == len(nodes):
            return


@pytest.mark.parametrize(("step", "least"), [(2, 50), pytest.param(1, 100, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_programs_with_exact_posteriors(step: int, least: int) -> None:
    rng = np.random.default_rng(0)
    told = 0
    for case in CASES[::step]:
        venture = Venture(seed=1)
        parameters: dict[str, Any] = dict(case.parameters)
        venture.execute(case.program, **parameters)
        model = venture.traces[0]
        told += sum(compare(model, block, rng) for block in blocks(model))
    assert told > least


@pytest.mark.parametrize(("seeds", "least"), [(14, 35), pytest.param(40, 100, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_random_programs(seeds: int, least: int) -> None:
    rng = np.random.default_rng(1)
    told = 0
    for seed in range(seeds):
        venture = load(random_program(seed), seed)
        infer(venture, "(mh default one 20)")
        model = venture.traces[0]
        told += sum(compare(model, block, rng) for block in blocks(model))
    assert told > least


WIDE = {
    "a vector of weights": (
        "[assume w (multivariate_normal (vector 0 0) (matrix (list 1 0) (list 0 1)))]",
        "[observe (bernoulli (linear_logistic w {X[n]})) {B[n]}]",
    ),
    "weights, an offset and a scale": (
        """[assume w (multivariate_normal (vector 0 0) (matrix (list 1 0) (list 0 1)))] [assume b (normal 0 1)]
           [assume s (gamma 2 2)] [assume f (lambda (x) (normal (+ b (* 0.5 (dot w x))) (+ 0.1 s)))]""",
        "[observe (f {X[n]}) {Y[n]}]",
    ),
    "a matrix": (
        "[assume rows (matrix (list 1 0 0) (list 0 1 0) (list 0 0 1))] [assume v (wishart 5 rows)]",
        "[observe (multivariate_normal (vector 0 0 0) v) {Z[n]}]",
    ),
    "latent values in the same block as what they share": (
        "[assume m (normal 0 1)] [assume x (mem (lambda (i) (normal m 1)))]",
        "[observe (normal (+ m (x {n})) 0.5) {Y[n]}]",
    ),
    "some of the latent values in the block": (
        "[assume m (normal 0 1)] [assume x (mem (lambda (i) (normal m 1)))]",
        "[observe (normal (x {n}) 0.5) {Y[n]}] [observe (x (+ {n} 1000)) {Y[n]}]",
    ),
    "a choice of the body around": (
        "[assume f (let ((m (normal 0 1)) (s (gamma 2 2))) (mem (lambda (i) (normal (* m (+ 1 (* 0.1 i))) s))))]",
        "[observe (f {n}) {Y[n]}]",
    ),
    "one of several vectors by row": (
        """[assume c (mem (lambda (k) (multivariate_normal (vector 0 0) (matrix (list 1 0) (list 0 1)))))]""",
        "[observe (student_t 4 (dot (c (mod {n} 3)) {X[n]}) 0.5) {Y[n]}]",
    ),
    "one of two numbers, by what the row says": (
        "[assume a (normal 0 1)] [assume b (normal 0 1)] [assume c (normal 0 1)]",
        "[observe (normal (+ (if {B[n]} a b) (* {Y[n]} (if {B[n]} 0.5 c))) 1) {Y[n]}]",
    ),
    "one of two vectors, by a name": (
        """[assume rows (matrix (list 1 0) (list 0 1))] [assume a (multivariate_normal (vector 0 0) rows)]
           [assume b (multivariate_normal (vector 0 0) rows)] [assume which (< 0 1)]""",
        "[observe (normal (dot (if which a b) {X[n]}) 1) {Y[n]}]",
    ),
    "memoized weights of a line": (
        "[assume w (mem (lambda (k) (normal 0 1)))] [assume u (mem (lambda (k) (normal 0 1)))]",
        "[observe (bernoulli (logistic (+ (w 0) (* (w 1) {Y[n]}) (u (mod {n} 3))))) {B[n]}]",
    ),
    "what a list and a function of the row say": (
        """[assume sizes (list 0.5 1 -2)] [assume a (normal 0 1)] [assume c (normal 0 1)] [assume d (gamma 2 2)]
           [assume f (lambda (k x)
             (+ (* a (lookup sizes k)) (* c (/ x 2)) (/ x (+ d k)) (- (exp (* 0.1 d)))))]""",
        "[observe (normal (f {K[n]} {Y[n]}) (sqrt (+ 1 (* d {K[n]})))) {Y[n]}]",
    ),
    "what is computed from scales and constants": (
        """[assume s (gamma 2 2)] [assume m (normal 0 1)] [assume x (mem (lambda (i) (normal m (/ 1 s))))]
           [assume v (mem (lambda (k) (multivariate_normal (zeros 2) (eye 2))))]""",
        "[observe (normal (+ (x {n}) (dot (v 1) {X[n]}) (dot (ones 2) {X[n]})) (+ s 1)) {Y[n]}]",
    ),
    "texts and values of several kinds beside a vector": (
        """[assume w (multivariate_normal (zeros 2) (eye 2))] [assume names (list "a" "b" "ab")]
           [assume offsets (dict "a" 1 "b" 0.5 "ab" 2)]""",
        """[observe (normal (+ (dot w {X[n]}) (lookup offsets (lookup names {K[n]}))
             (if (= (lookup names {K[n]}) "b") {Y[n]} (size (lookup names {K[n]})))) 1) {Y[n]}]""",
    ),
    "parts of a point of the simplex": (
        "[assume p (dirichlet (vector 2 2 2))]",
        "[observe (normal (lookup p {K[n]}) (+ 0.2 (lookup p 0))) {Y[n]}]",
    ),
}


def many_rows(name: str) -> Model:
    rng = np.random.default_rng(2)
    count = 4 * NARROW
    data = {"X": rng.normal(size=(count, 2)), "Y": rng.normal(size=count), "Z": rng.normal(size=(count, 3))}
    data |= {"B": rng.random(count) < 0.5, "K": rng.integers(0, 3, count)}
    venture = Venture(seed=3)
    assumed, observed = WIDE[name]
    given = {key: value for key, value in data.items() if f"{{{key}[" in observed}
    venture.execute(f"{assumed} for n in 1...{count}: {observed}", **given)
    return venture.traces[0]


@pytest.mark.thorough
@pytest.mark.parametrize("name", WIDE)
def test_many_rows_at_once(name: str) -> None:
    model = many_rows(name)
    assert compare(model, model.trace.default.everything(), np.random.default_rng(2))


@pytest.mark.parametrize("name", WIDE)
def test_columns_and_single_rows_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where values are possible, and where they are not."""
    model = many_rows(name)
    block = model.trace.default.everything()
    together, apart = BlockDensity(model, block), BlockDensity(model, block)
    together.evaluate()
    monkeypatch.setattr("venture_lite.blocks.density.NARROW", 10**9)
    apart.evaluate()
    assert len(together._weighing + together._backward) < len(apart._weighing + apart._backward)
    here, rng, journal = together.present(), np.random.default_rng(0), model.trace.journal
    for away in (0.0, 0.1, 1.0, 30.0):
        found = []
        free = here + away * rng.normal(size=len(here))
        for density in (together, apart):
            mark = journal.mark()
            density.put(free)
            found.append(density.evaluate())
            journal.rollback(mark)
        (weight, gradient), (expected, by_rows) = found
        assert weight.impossible == expected.impossible
        assert weight.total == pytest.approx(expected.total, rel=1e-9)
        assert np.allclose(gradient, by_rows, 1e-9, 1e-9 * np.abs(by_rows).max(initial=1.0), equal_nan=True)


@pytest.mark.parametrize("name", WIDE)
def test_wide_rows_never_go_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor in halves, as they do where one of them has no value."""
    model = many_rows(name)
    density = BlockDensity(model, model.trace.default.everything())
    density.evaluate()
    monkeypatch.setattr(RowKind, "weighing", lambda *given: pytest.fail("rows are weighed in parts"))
    monkeypatch.setattr("venture_lite.blocks.moving._halves", lambda *given: pytest.fail("rows go in halves"))
    density.put(density.present())
    density.evaluate()


@pytest.mark.thorough
@pytest.mark.parametrize("name", WIDE)
def test_what_does_not_depend_on_the_block_is_looked_at_again(name: str) -> None:
    """Each half of the choices stands still for the other half. Fails (9 programs) where nothing is forgotten."""
    model = many_rows(name)
    nodes, rng = model.trace.default.everything(), np.random.default_rng(4)
    halves = [BlockDensity(model, half) for half in (nodes[::2], nodes[1::2]) if half]
    for _ in range(3):
        for density in halves:
            density.put(density.present() + 0.1 * rng.normal(size=density.size))
            for kept in halves:
                weight, gradient = kept.evaluate()
                fresh = BlockDensity(model, nodes[halves.index(kept) :: 2])
                expected, by_fresh = fresh.evaluate()
                assert (weight.impossible, weight.total) == (expected.impossible, expected.total)
                np.testing.assert_array_equal(gradient, by_fresh)


def test_what_is_put_over_is_taken_back_to_each_mark() -> None:
    model = many_rows("latent values in the same block as what they share")
    density, journal = BlockDensity(model, model.trace.default.everything()), model.trace.journal
    before, here = snapshot(model), density.present()
    marks, places = [], []
    for step in (0.1, 0.2, 0.3):
        marks.append(journal.mark())
        density.put(here + step)
        density.put(here - step)
        places.append(density.present())
    entered = len(journal.entries)
    density.put(here + 1.0)
    # the rows since the last mark are entered already
    assert len(journal.entries) == entered
    for mark, there in zip(reversed(marks), (*reversed(places[:-1]), here), strict=True):
        journal.rollback(mark)
        np.testing.assert_array_equal(density.present(), there)
    assert snapshot(model) == before


def test_a_site_is_one_term() -> None:
    """Also where its rows read the block in two ways, by a global and by a value of their own."""
    venture = Venture(seed=3)
    assumed, observed = WIDE["latent values in the same block as what they share"]
    venture.execute(f"{assumed} for n in 1...60: {observed}", Y=np.zeros(60))
    density = BlockDensity(venture.traces[0], venture.traces[0].trace.default.everything())
    assert [kind.count for kind in density.terms] == [60]
    assert density.rows == 61 + 60


def test_more_rows_than_one_call_takes() -> None:
    rng = np.random.default_rng(4)
    venture = Venture(seed=3)
    count = 70_000
    text = "[assume w (normal 0 1)] for n in 1...N: [observe (normal (* w {X[n]}) 2) {Y[n]}]"
    x, y = rng.normal(size=count), rng.normal(size=count)
    venture.execute(text, X=x, Y=y, N=count)
    density = BlockDensity(venture.traces[0], venture.traces[0].trace.default.everything())
    free = density.present()
    _, gradient = density.evaluate()
    assert gradient[0] == pytest.approx(float(x @ (y - free[0] * x)) / 4 - free[0], rel=1e-9)


RECURSIONS = {
    "a mean and a variance of a filter": """
        [assume phi (normal 0.9 0.1)] [assume q (gamma 2 2)] [assume r (gamma 2 2)]
        [assume moments (mem (lambda (t) (if (= t 0) (list 0 1)
            (let ((before (moments (- t 1))) (m (* phi (first before))) (v (+ (* phi phi (second before)) q))
                  (gain (/ v (+ v r))))
              (list (+ m (* gain (- (sin t) m))) (* (- 1 gain) v))))))]
        for t in 1...T: [observe (normal (first (moments {t})) (sqrt (+ (second (moments {t})) r))) {Y[t]}]
    """,
    "a recursion that is not memoized": """
        [assume phi (normal 0.9 0.1)] [assume s (gamma 2 2)]
        [assume level (lambda (t) (if (= t 0) 0 (+ (* phi (level (- t 1))) (sin t))))]
        for t in 1...T: [observe (normal (level (mod {t} 7)) s) {Y[t]}]
    """,
    "the forward recursion of a hidden Markov chain": """
        [assume p (beta 2 2)] [assume m (normal 0 1)]
        [assume weights (mem (lambda (t) (if (= t 0) (vector 0.5 0.5)
            (let ((w (weights (- t 1))) (a (lookup w 0)) (b (lookup w 1))
                  (x (* (+ (* a p) (* b (- 1 p))) (exp (- m))))
                  (y (+ (* a (- 1 p)) (* b p))))
              (vector (/ x (+ x y)) (/ y (+ x y)))))))]
        for t in 1...T: [observe (normal (* m (lookup (weights {t}) 0)) 1) {Y[t]}]
    """,
    "a recursion whose steps draw": """
        [assume a (normal 0 0.5)] [assume s (gamma 2 2)]
        [assume h (mem (lambda (t) (if (= t 0) s (+ (* a (h (- t 1))) (normal (* 0.5 (h (- t 1))) s)))))]
        for t in 1...T: [observe (normal (h {t}) s) {Y[t]}]
    """,
    "a chain of choices": """
        [assume phi (normal 0.9 0.1)] [assume s (gamma 2 2)]
        [assume x (mem (lambda (t) (if (= t 0) (normal 0 1) (normal (* phi (x (- t 1))) s))))]
        for t in 1...T: [observe (normal (x {t}) 0.5) {Y[t]}]
    """,
}


@pytest.mark.parametrize("name", RECURSIONS)
def test_recursions(name: str) -> None:
    rng = np.random.default_rng(6)
    venture = Venture(seed=3)
    venture.execute(RECURSIONS[name], Y=rng.normal(size=30), T=30)
    model = venture.traces[0]
    assert compare(model, model.trace.default.everything(), rng)


def test_a_value_of_another_type_than_its_column() -> None:
    """A whole number that was forced, and numbers computed from it, until the block moves."""
    venture = Venture(seed=3)
    venture.execute("[assume x (normal 0 1)] [assume y (* 2 x)] [observe (normal y 1) 1] [force x 3]")
    model = venture.traces[0]
    assert compare(model, model.trace.default.everything(), np.random.default_rng(0))
    assert model.trace.value(model.trace.default.everything()[0]) == 3


def test_rows_in_which_many_are_impossible() -> None:
    """They are counted, and the others pull."""
    venture = Venture(seed=3)
    venture.execute(
        """[assume a (mem (lambda (i) (gamma 2 2)))]
           for n in 1...N: [observe (uniform_continuous 0 (a (mod {n} 30))) {Y[n]}]""",
        Y=np.linspace(0.1, 3.0, 60),
        N=60,
    )
    model = venture.traces[0]
    density = BlockDensity(model, model.trace.default.everything())
    density.put(np.zeros(30))
    weight, gradient = density.evaluate()
    inside = np.linspace(0.1, 3.0, 60) < 1.0
    assert weight.impossible == np.count_nonzero(~inside)
    # of the density of a gamma, its transform, and minus log a for each observation inside
    expected = np.array([2 - 2.0 - np.count_nonzero(inside[np.arange(60) % 30 == (i + 1) % 30]) for i in range(30)])
    assert sorted(gradient) == pytest.approx(sorted(expected))


@pytest.mark.parametrize(("text", "impossible"), [
    # a rate that is 0 by rounding makes a count impossible
    ("[observe (poisson (exp (* b {X[n]}))) {Y[n]}]", 3),
    ("[observe (poisson (exp (* b (- 1 {X[n]})))) {Y[n]}]", 2997),
    # and so does one that is infinite; a path ends where a scale is negative
    ("[observe (poisson (exp (- (* b {X[n]})))) {Y[n]}]", 3),
        ("[observe (normal 0 (+ 0.5 (/ (* b {X[n]}) 800))) {Y[n]}]", None),
])  # fmt: skip
def test_where_some_rows_fail_few_go_one_by_one(
    text: str, impossible: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noticed: halves that overlap, or leave out a row, and rows that fail and go on with all."""
    x = np.linspace(0.0, 0.01, 3000)
    x[[5, 1234, 2999]] = 1.0
    venture = Venture(seed=3)
    venture.execute(f"[assume b (normal 0 1)] for n in 1...N: {text}", X=x, Y=[2] * 3000, N=3000)
    model, free = venture.traces[0], np.array([-800.0])
    density = BlockDensity(model, model.trace.default.everything())
    rows, found = [0], list[Any]()
    singly = RowKind._singly

    def counted(kind: RowKind, which: int, places: Sequence[int], *more: Any) -> Any:
        rows[0] += len(places)
        return singly(kind, which, places, *more)

    monkeypatch.setattr(RowKind, "_singly", counted)
    for is_whole in (True, False):
        if not is_whole:
            monkeypatch.setattr(RowKind, "_at_limit", lambda kind, start, stop: np.zeros(stop - start, bool))
            monkeypatch.setattr(
                "venture_lite.blocks.moving._halves", lambda start, stop: [(n, n + 1) for n in range(start, stop)]
            )
        rows[0] = 0
        density.put(free)
        try:
            weight, gradient = density.evaluate()
            found.append((weight.impossible, weight.total, gradient[0]))
        except VentureError as error:
            found.append(str(error))
        assert rows[0] < 100 or not is_whole
    if impossible is None:
        assert found[0] == found[1]
    else:
        assert found[0][0] == impossible
        assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_a_sum_beyond_the_floats() -> None:
    """Of densities that are each a number. Noticed: the density of one row in its place."""
    venture = Venture(seed=3)
    text = "[assume b (normal 0 1)] for n in 1...N: [observe (poisson (exp b)) {Y[n]}]"
    venture.execute(
        f"{text} for n in 1...N: [observe (poisson (exp (* b {{X[n]}}))) {{Y[n]}}]", X=np.ones(99), Y=[2] * 99, N=99
    )
    model = venture.traces[0]
    density = BlockDensity(model, model.trace.default.everything())
    density.put(np.array([709.0]))
    weight, _ = density.evaluate()
    assert not weight.impossible
    assert -math.inf < weight.total < -1e299


LISTS = {
    "a sum": "[assume s (fold + 0 xs)]",
    "a sum of squares of some": "[assume s (fold (lambda (a x) (+ a (* x x))) 0 (map (lambda (x) (+ x 1)) (rest xs)))]",
    "a size": "[assume n (size xs)] [assume s (if (and (= n 5) (is_number (first xs))) (* n (first xs)) 0)]",
    "a size as the key of a memoized call": "[assume f (mem (lambda (n) (normal n 1)))] [assume s (+ (f (size xs)) 1)]",
    "positions": "[assume s (+ (lookup xs 1) (* (last xs) (lookup xs (- (size xs) 1))))]",
    "those that a key chooses": """
        [assume s (fold + 0 (map (lambda (i) (exp (lookup xs i))) (filter (lambda (i) (< i 3)) (range (size xs)))))]""",
    "through procedures that are values": """
        [assume on (lambda (f g) (if (f xs) 0 (g xs)))]
        [assume s (+ (on is_empty first) (on is_empty (lambda (x) 1)))]""",
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_latents(name: str) -> None:
    """Predicates and keys that ask for a size do not change with the numbers."""
    venture = Venture(seed=3)
    latents = "[assume xs (map (lambda (i) (normal 0 1)) (range 5))]"
    venture.execute(f"{latents} {LISTS[name]} [observe (normal s 1) 2]")
    model = venture.traces[0]
    assert compare(model, model.trace.default.everything(), np.random.default_rng(0))


@pytest.mark.parametrize(
    "text",
    [
        "(fold + 0 (filter (lambda (x) (< x 1)) xs))",
        "(size (unique (map floor xs)))",
        "(if (= (size (unique xs)) 5) 1 2)",
        "(if (is_empty (range (floor (exp (first xs))))) 1 (normal 0 1))",
        "((mem (lambda (x) (normal x 1))) (first xs))",
    ],
)
def test_what_is_decided_by_numbers_of_a_list_is_refused(text: str) -> None:
    venture = Venture(seed=3)
    latents = "[assume xs (map (lambda (i) (tag 'xs 0 (normal 0 1))) (range 5))]"
    venture.execute(f"{latents} [assume s {text}] [observe (normal s 1) 2]")
    with pytest.raises(KernelError):
        venture.infer("(hmc xs all 0.1 5 1)")


SCALES = "[assume a (gamma 3 2)] [assume l (gamma 3 2)] [assume m (normal 0 1)] [assume s (gamma 2 4)]"
MAKERS = {
    "make_beta_bernoulli": ("[assume f (make_beta_bernoulli a (+ l 1))]", "[observe (f) (< {X[n]} 0)]"),
    "make_sym_dir_mult": ("[assume f (make_sym_dir_mult a 4)]", "[observe (f) {K[n]}]"),
    "make_dir_mult": ("[assume f (make_dir_mult (vector a l 1 s))]", "[observe (f) {K[n]}]"),
    "make_gamma_poisson": ("[assume f (make_gamma_poisson a l)]", "[observe (f) {K[n]}]"),
    "make_crp": ("[assume f (make_crp a (logistic m))]", "[observe (f) (+ 1 {K[n]})]"),
    "make_normal_inv_chi_sq": ("[assume f (make_normal_inv_chi_sq m a l s)]", "[observe (f) {Y[n]}]"),
    "make_collapsed_multivariate_normal": (
        """[assume f (make_collapsed_multivariate_normal (vector m 0) a (+ 2 l)
                      (matrix (list (+ s 1) 0.2) (list 0.2 a)))]""",
        "[observe (f) (vector {X[n]} {Y[n]})]",
    ),
    "make_lazy_hmm": (
        """[assume p (dirichlet (vector 1 2))] [assume q (dirichlet (vector 1 1))]
           [assume r (dirichlet (vector 2 1 2 1))]
           [assume f (make_lazy_hmm p (matrix (list q (vector 0.3 0.7)))
                                    (matrix (list r (vector 0.1 0.2 0.3 0.4))))]""",
        # times without emissions, and with two
        "[observe (f (* 3 {n})) {K[n]}] [observe (f (+ 7 {n})) {K[n]}]",
    ),
    "one for each key, some without draws": (
        "[assume f (mem (lambda (k) (make_normal_inv_chi_sq m a 3 (* k s))))] [assume g (f 9)]",
        "[observe ((f (+ 1 {K[n]}))) {Y[n]}]",
    ),
}
COVARIANCES = {
    "a squared exponential and noise": "(gp_sum (gp_squared_exponential a l) (gp_noise s))",
    "Matern 1/2": "(gp_sum (gp_matern a l 0.5) (gp_noise s))",
    "Matern 3/2": "(gp_sum (gp_matern a l 1.5) (gp_noise s))",
    "Matern 5/2": "(gp_sum (gp_matern a l 2.5) (gp_noise s))",
    "a rational quadratic": "(gp_sum (gp_rational_quadratic a l s) (gp_noise 0.3))",
    "a periodic one times a line": "(gp_sum (gp_product (gp_periodic a l s) (gp_linear l m)) (gp_noise 0.3))",
    "noise as a factor": "(gp_product (gp_sum (gp_constant a) (gp_noise s)) (gp_sum (gp_matern 1 l 2.5) (gp_noise a)))",
    "noise below its floor": "(gp_sum (gp_matern a l 0.5) (gp_noise (* 1e-7 s)))",
    "no noise": "(gp_squared_exponential a (* 0.2 l))",
    "a name": "kernel",
}
MEANS = {
    "a number": "m",
    "a line": "(gp_sum (gp_linear_mean m s) a)",
    "a product": "(gp_product (gp_linear_mean m) a 2)",
}


def made(assumed: str, observed: str, count: int) -> Model:
    rng = np.random.default_rng(7)
    venture = Venture(seed=3)
    data = {"X": rng.normal(size=count), "Y": rng.normal(size=count), "K": rng.integers(0, 4, count)}
    given = {key: value for key, value in data.items() if f"{{{key}[" in observed}
    venture.execute(f"{SCALES} {assumed} for n in 1...{count}: {observed}", **given)
    return venture.traces[0]


@pytest.mark.parametrize("name", MAKERS)
def test_parameters_of_exchangeable_procedures(name: str) -> None:
    """The joint density of the statistics, whatever the number of draws."""
    model = made(*MAKERS[name], count=12)
    assert compare(model, model.trace.default.everything(), np.random.default_rng(0))


@pytest.mark.parametrize("name", COVARIANCES)
def test_parameters_of_covariances(name: str) -> None:
    kernel = "[assume kernel (gp_sum (gp_squared_exponential a l) (gp_matern l 1 1.5) (gp_noise s))]"
    assumed = f"{kernel if name == 'a name' else ''} [assume f (make_gp 0 {COVARIANCES[name]})]"
    model = made(assumed, "[observe (f {X[n]}) {Y[n]}]", 8)
    assert compare(model, model.trace.default.everything(), np.random.default_rng(0))


@pytest.mark.parametrize("name", MEANS)
def test_parameters_of_means(name: str) -> None:
    assumed = f"[assume f (make_gp {MEANS[name]} (gp_sum (gp_squared_exponential a l) (gp_noise s)))]"
    model = made(assumed, "[observe (f {X[n]}) {Y[n]}]", 8)
    assert compare(model, model.trace.default.everything(), np.random.default_rng(0))


def test_a_length_for_each_coordinate() -> None:
    """Also where applications come twice at a point."""
    kernel = "(gp_sum (gp_squared_exponential a (vector l s)) (gp_linear s (vector m a)) (gp_noise s))"
    observed = "[observe (f (vector {X[n]} {K[n]})) {Y[n]}] [observe (f (vector {X[n]} {K[n]})) (+ 0.1 {Y[n]})]"
    model = made(f"[assume f (make_gp (gp_linear_mean (vector m s)) {kernel})]", observed, 6)
    assert compare(model, model.trace.default.everything(), np.random.default_rng(0))


WALKS = {
    # numbers, numbers above 0, steps that read two before; with a sum that reads two of them
    "volatility": "(if (= t 1) (normal m s) (normal (+ m (* 0.9 (- (h (- t 1)) m))) s))",
    "positive": "(if (= t 1) (gamma 2 1) (gamma (+ 1 (h (- t 1))) s))",
    "two back": "(if (< t 3) (student_t 4 0 1) (student_t 4 (- (h (- t 1)) (* 0.5 (h (- t 2)))) s))",
    # what support depends on the step before moves with it
    "bounded": "(if (< t 3) (normal 0 1) (uniform_continuous (- (h (- t 1)) 1) (+ 2 (h (- t 1)))))",
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", WALKS)
def test_walks_are_weighed_in_one_go_as_step_by_step(name: str) -> None:
    """Numbers of which each depends on the one before: what weighs them does not wait for what moves them. Seen to fail
    where the derivative of a step's own density is left out, and where its Jacobian is."""
    steps, rng = NARROW + 5, np.random.default_rng(1)
    v = Venture(seed=2)
    v.execute(
        f"[assume m (normal 0 3)] [assume s (gamma 4 4)] [assume h (mem (lambda (t) {WALKS[name]}))]"
        "[assume c (+ (h 7) (h 3))] for t in 1...N: [observe (normal (+ (h t) c) 1) 0.3]",
        N=steps,
    )
    (model,) = v.traces
    nodes = model.trace.default.everything()
    apart, whole = BlockDensity(model, nodes), BlockDensity(model, nodes, whole=True)
    found = apart.present()
    for scale in (0.0, 0.3, 1000.0):
        free = found + scale * rng.normal(size=len(found))
        weighed = []
        for density in (apart, whole):
            density.put(free)
            weighed.append(density.evaluate())
        (weight, gradient), (expected, its_gradient) = weighed
        assert bool(weight.impossible) == bool(expected.impossible)
        if not weight.impossible:
            assert weight.total == pytest.approx(expected.total, rel=1e-12)
            np.testing.assert_allclose(gradient, its_gradient, rtol=1e-9, atol=1e-12 * np.abs(its_gradient).max())
    assert apart.rows == whole.rows
    kinds = {id(kind) for kind, _, _ in apart.passes()[1]}
    assert len(kinds) == len({id(kind) for kind, _, _ in whole.passes()[1]})
    assert (sum(stop - start > NARROW for _, start, stop in apart._moved) > 0) == (name != "bounded")
    apart.put(found)
    curvature = apart.hessian()
    whole.put(found)
    expected_curvature = whole.hessian()
    assert (curvature is None) == (expected_curvature is None)
    if curvature is not None and expected_curvature is not None:
        np.testing.assert_allclose(curvature, expected_curvature, rtol=1e-9)
