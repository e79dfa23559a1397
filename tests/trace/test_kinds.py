"""What is said of the kinds of sites, whatever the state, against what densities of blocks say of the present one."""

from __future__ import annotations

import pytest

from tests.generator.directives import random_program
from tests.generator.session import infer, load
from tests.posterior.cases import CASES
from venture_lite import Venture
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.distributions import transform_of
from venture_lite.blocks.kinds import MOST_BODIES, kinds
from venture_lite.errors import KernelError
from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.candidates import support_of
from venture_lite.interpreter.model import Model
from venture_lite.trace.nodes import site_of

LATENTS = "[assume xs (map (lambda (i) (normal 0 1)) (range 4))] [assume x (normal 0 1)]"
BOTH = {
    "a branch that is not taken": ("[assume y (if false (if (< x 0) 1 2) 3)]", {"x": "rough", "xs": "smooth"}),
    "a sum": ("[assume y (fold + 0 xs)]", {"x": "smooth", "xs": "smooth"}),
    "one use of fold of two": (
        "[assume y (fold + 0 xs)] [assume z (fold (lambda (n v) (if (> v 0) (+ n 1) n)) 0 (list x 2))]",
        {"x": "rough", "xs": "smooth"},
    ),
    "one use of map of two, in a procedure": (
        """[assume (each f) (map f (list x 1))] [assume y (map floor xs)] [assume z (each exp)]""",
        {"x": "smooth", "xs": "rough"},
    ),
    "numbers that a filter looks at": ("[assume y (filter (lambda (v) (> v 0)) xs)]", {"x": "smooth", "xs": "rough"}),
    "the size of a filtered list": (
        "[assume y (if (is_empty (filter (lambda (i) (> i 2)) (range 4))) x (first xs))]",
        {"x": "smooth", "xs": "smooth"},
    ),
    "a size that numbers make": ("[assume y (size (unique xs))]", {"x": "smooth", "xs": "rough"}),
    "a memoized key": (
        "[assume f (mem (lambda (v) (+ v 1)))] [assume y (if (flip) (f x) (size xs))]",
        {"x": "rough", "xs": "smooth"},
    ),
    "a parameter without a derivative": (
        "[assume y (categorical (vector 0.4 0.6) (list x 2))]",
        {"x": "rough", "xs": "smooth"},
    ),
    "a procedure that a list holds": (
        "[assume fs (list exp (lambda (v) (if (< v 0) 0 v)))] [assume y ((lookup fs (uniform_discrete 0 2)) x)]",
        {"x": "rough", "xs": "smooth"},
    ),
    "a procedure that a memoized one gives": (
        "[assume at (mem (lambda (k) (lambda (v) (if (< v k) 0 v))))] [assume y ((at 1) x)]",
        {"x": "rough", "xs": "smooth"},
    ),
    "a recursion": (
        "[assume walk (lambda (n v) (if (= n 0) v (walk (- n 1) (+ v x))))] [assume y (walk 3 (first xs))]",
        {"x": "smooth", "xs": "smooth"},
    ),
    "two that call each other": (
        """[assume even (lambda (n v) (if (= n 0) v (odd (- n 1) (+ v 1))))]
           [assume odd (lambda (n v) (if (< v n) v (even (- n 1) v)))] [assume y (even 2 x)]""",
        {"x": "rough", "xs": "smooth"},
    ),
    "draws of an exchangeable procedure": (
        "[assume f (make_normal_inv_chi_sq 0 1 1 1)] [assume w (f)] [assume g (make_gamma_poisson 1 1)] [assume n (g)]"
        "[assume c (make_crp 1)] [assume k (c)]",
        {"w": "rough", "n": "counts", "k": "finite", "x": "smooth"},
    ),
}


def kinds_of(venture: Venture, name: str) -> set[str | None]:
    """Of the choices that an assume made."""
    model = venture.traces[0]
    trace, of = model.trace, kinds(model)
    its = model.trace.analyzer.globals[name].code
    assert its is not None
    nodes = trace.default.everything()
    return {of(site_of(node)) for node in nodes if address(trace, node)[-1][0] == its.index}


@pytest.mark.parametrize("name", BOTH)
def test_where_numbers_go_decides(name: str) -> None:
    text, expected = BOTH[name]
    venture = Venture(seed=1)
    venture.execute(f"{LATENTS} {text}")
    assert {each: kinds_of(venture, each) for each in expected} == {each: {kind} for each, kind in expected.items()}


def compare(model: Model) -> int:
    """Continuous choices that are smooth have a gradient, and of others it is not said; how many there are."""
    smooth, of = [], kinds(model)
    for node in model.trace.default.everything():
        operator, arguments = model.trace.application(node)
        kind = of(site_of(node))
        if transform_of(operator) is None:
            assert kind == ("counts" if support_of(operator, arguments) is None else "finite")
        elif kind == "smooth":
            smooth.append(node)
        else:
            assert kind == "rough"
            with pytest.raises(KernelError):
                # so far no case is smooth now and rough elsewhere
                BlockDensity(model, [node])
    if smooth:
        BlockDensity(model, smooth)
    return len(smooth)


@pytest.mark.parametrize(("step", "seeds", "least"), [(3, 8, 35), pytest.param(1, 25, 100, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_what_is_smooth_has_a_gradient(step: int, seeds: int, least: int) -> None:
    told = 0
    for case in CASES[::step]:
        venture = Venture(seed=1)
        venture.execute(case.program, **dict(case.parameters))
        told += compare(venture.traces[0])
    for seed in range(seeds):
        venture = load(random_program(seed), seed)
        infer(venture, "(mh default one 20)")
        told += compare(venture.traces[0])
    assert told > least


def test_a_program_that_grows_is_looked_at_anew() -> None:
    venture = Venture(seed=1)
    venture.execute(f"{LATENTS} [assume y (+ x 1)]")
    model = venture.traces[0]
    before = kinds(model)
    venture.sample("(+ x 1)")
    assert kinds(model) == before
    assert kinds_of(venture, "x") == {"smooth"}
    venture.execute("[assume z (> y 0)]")
    assert kinds_of(venture, "x") == {"rough"}
    assert kinds(model) != before


def test_beyond_a_number_of_bodies_calls_are_not_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_BODIES > 1000
    monkeypatch.setattr("venture_lite.blocks.kinds.MOST_BODIES", 5)
    venture = Venture(seed=1)
    venture.execute(f"{LATENTS} {BOTH['one use of fold of two'][0]}")
    assert kinds_of(venture, "xs") == {"rough"}
