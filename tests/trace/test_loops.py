"""Recursions computed in one loop give the values and derivatives of their steps one by one, whatever they read, and
leave to these what fails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.recursions import FEWEST, Recursion, Turns, turns_in
from venture_lite.errors import VentureError
from venture_lite.interpreter.model import Model

STEPS = FEWEST + 6
SHARED = """[assume m (normal 0 1)] [assume a (normal 0.4 0.1)] [assume s (gamma 4 8)]
[assume z (mem (lambda (t) (normal 0 1)))] [assume d (lambda (t) (lookup {D} t))]"""
LOOPS = {
    "a walk": "[assume h (mem (lambda (t) (if (= t 0) m (+ m (* a (- (h (- t 1)) m)) (* s (z t))))))]",
    "errors of data": "[assume h (mem (lambda (t) (if (= t 0) m (+ m (* a (- (d t) (h (- t 1))))))))]",
    "roots, powers and quotients": """[assume h (mem (lambda (t) (if (= t 0) s
        (sqrt (+ (* s s) (/ (pow (- (d t) m) 2) (+ 1 (* s s))) (* a a (pow (h (- t 1)) 2)))))))]""",
    "two and three steps back": """[assume h (mem (lambda (t) (if (< t 3) (* t s)
        (+ (* a (h (- t 2))) (* 0.2 (h (- t 3))) (* s (z t)) (tan (* 0.1 (h (- t 1))))))))]""",
    "sums of the step before and of one three before": """[assume h (mem (lambda (t) (if (< t 3) (* (+ t 1) s)
        (- (* s (z t)) (/ (- (h (- t 1)) (* 0.2 (h (- t 3)))) (+ 2 a))))))]""",
    "products of steps": """[assume h (mem (lambda (t) (if (= t 0) m
        (+ (* 0.1 (h (- t 1)) (h (- t 1))) (z t)))))]""",
    "a quotient by a step": "[assume h (mem (lambda (t) (if (= t 0) m (+ (z t) (/ s (+ 20 (h (- t 1))))))))]",
    "two that read each other": """
        [assume v (mem (lambda (t) (if (= t 0) s (+ (* 0.9 (v (- t 1))) (* -0.1 (h (- t 1))) (* 0.1 (z t))))))]
        [assume h (mem (lambda (t) (if (= t 0) m (+ (h (- t 1)) (* a (v t))))))]""",
    "one that another sums": """
        [assume g (mem (lambda (t) (if (= t 0) m (exp (* a (sin (g (- t 1))))))))]
        [assume h (mem (lambda (t) (if (= t 0) (g 0) (+ (* 0.5 (h (- t 1))) (g t) (d t)))))]""",
    "one that another holds a step later": """
        [assume g (mem (lambda (t) (if (= t 0) m (+ (* a (g (- t 1))) (* s (z t))))))]
        [assume h (mem (lambda (t) (if (= t 0) s (g (- t 1)))))]""",
    "no other value": "[assume h (mem (lambda (t) (if (= t 0) (* m s) (h (- t 1)))))]",
    "a step that is read often": """[assume h (mem (lambda (t) (if (= t 0) m
        (let ((x (+ (* a (h (- t 1))) (* 0.1 (z t))))) (- x (* 0.1 x x) (* s (sin x)))))))]""",
    "steps that are not memoized between": """[assume next (lambda (x t) (+ (* a x) (log (+ 2 (pow x 2))) (z t)))]
        [assume h (mem (lambda (t) (if (= t 0) m (next (h (- t 1)) t))))]""",
}
"""Of each `h` is observed."""


def loaded(name: str, seed: int = 1) -> Model:
    rng = np.random.default_rng(seed)
    v = Venture(seed=seed)
    data = rng.normal(size=STEPS)
    text = f"{SHARED} {LOOPS[name]} for t in 1...T: [observe (normal (h (- t 1)) 0.7) {{Y[t]}}]"
    used = {"D": data} if "(d " in LOOPS[name] else {}
    if not used:
        text = text.replace(" [assume d (lambda (t) (lookup {D} t))]", "")
    v.execute(text, Y=data, T=STEPS, **used)
    return v.traces[0]


def is_in_a_loop(density: BlockDensity) -> bool:
    return any(isinstance(getattr(step[0], "__self__", None), Recursion) for step in density._forward)


def evaluated(density: BlockDensity, free: np.ndarray) -> tuple[float, int, np.ndarray]:
    density.put(free)
    weight, gradient = density.evaluate()
    return weight.total, weight.impossible, gradient


def both(model: Model, block: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> tuple[BlockDensity, BlockDensity]:
    """One with loops, and one without."""
    together, apart = BlockDensity(model, block), BlockDensity(model, block)
    together.evaluate()
    with monkeypatch.context() as patched:
        patched.setattr("venture_lite.blocks.density.turns_in", iter)
        apart.evaluate()
    assert not is_in_a_loop(apart)
    return together, apart


@pytest.mark.thorough
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_and_its_steps_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the steps differ by the size of what they read. Seen to fail where what is read before the first step
    gets no cotangent, where a lag is taken for another, where sums over steps are left out, where a slope stands in
    another diagonal of the band, where an affine recursion begins at 0, or reads another row than that many before its
    first, and where what multiplies or divides by a step is taken for affine."""
    model = loaded(name)
    together, apart = both(model, model.trace.default.everything(), monkeypatch)
    assert is_in_a_loop(together)
    here, rng = together.present(), np.random.default_rng(0)
    for away in (0.0, 0.1, 0.5):
        free = here + away * rng.normal(size=len(here))
        total, impossible, gradient = evaluated(together, free)
        expected, its_impossible, by_steps = evaluated(apart, free)
        assert impossible == its_impossible
        assert total == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, by_steps, rtol=1e-9, atol=1e-11 * np.abs(by_steps).max())


@pytest.mark.thorough
@pytest.mark.parametrize("name", LOOPS)
def test_what_a_loop_takes_for_still_is_looked_at_again(name: str) -> None:
    """Each half of the choices stands still for the other. Seen to fail where nothing is forgotten."""
    model = loaded(name)
    nodes, rng = model.trace.default.everything(), np.random.default_rng(4)
    halves = [BlockDensity(model, half) for half in (nodes[::2], nodes[1::2])]
    for _ in range(3):
        for density in halves:
            density.put(density.present() + 0.1 * rng.normal(size=density.size))
            for kept, half in zip(halves, (nodes[::2], nodes[1::2]), strict=True):
                weight, gradient = kept.evaluate()
                expected, by_fresh = BlockDensity(model, half).evaluate()
                assert weight.total == expected.total
                np.testing.assert_array_equal(gradient, by_fresh)


FAILING = {
    # what it adds to 0.1 m, the m that it fails at, and what is said
    "a root": ("(sqrt (+ (h (- t 1)) m))", -100.0, "sqrt"),
    "a quotient": ("(/ (h (- t 1)) (- m 2))", 2.0, "division|/"),
    "no number": ("(- (exp (* 100 m)) (* (h (- t 1)) (exp (* 100 m))))", 10.0, "not a number"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", FAILING)
def test_a_step_that_fails_is_told_with_its_place(name: str) -> None:
    step, where, said = FAILING[name]
    v = Venture(seed=1)
    v.execute(
        f"[assume m (normal 1 0.1)] [assume h (mem (lambda (t) (if (= t 0) 1 (+ (* 0.1 m) {step}))))]"
        "[force m 0.5] for t in 1...T: [observe (normal (h t) 1) 0.5]",
        T=STEPS,
    )
    density = BlockDensity(v.traces[0], v.traces[0].trace.default.everything())
    density.evaluate()
    assert is_in_a_loop(density)
    with pytest.raises(VentureError, match=said) as raised:
        density.put(np.array([where]))
    assert raised.value.span is not None


def test_rows_that_take_turns() -> None:
    """Kinds are told apart by what they are, not by what they are like."""

    class Kind:
        pass

    one, two, three = Kind(), Kind(), Kind()
    before = [(three, 0, 5)]
    turns = [row for step in range(FEWEST) for row in ((one, step + 2, step + 3), (two, step, step + 1))]
    found = list(turns_in([*before, *turns, (one, 40, 41)]))  # type: ignore[list-item]
    assert found == [before[0], Turns((one, two), (2, 0), FEWEST), (one, 40, 41)]  # type: ignore[arg-type, comparison-overlap]
    assert list(found[1].rows()) == turns  # type: ignore[union-attr, comparison-overlap]
    assert list(turns_in(turns[:-2])) == turns[:-2]  # type: ignore[arg-type, comparison-overlap]
