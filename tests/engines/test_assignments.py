"""Plans for single assignments: the interpreter's draws and states; which models have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.inference.single_gibbs import SingleGibbs
from venture_lite.trace.invariants import check

CRP = """
[assume alpha (tag 'h 0 (gamma 2 1))]
[assume crp (make_crp alpha)]
[assume z (mem (lambda (n) (tag 'z n (crp))))]
"""
MODELS = {
    "counted": CRP
    + """
    [assume coin (mem (lambda (k) (make_beta_bernoulli 0.5 0.5)))]
    for n in 1...N: [observe ((coin (z n))) {b[n]}]
    """,
    "counted, and predicted": CRP
    + """
    [assume coin (mem (lambda (k) (make_beta_bernoulli 0.5 0.5)))]
    for n in 1...N:
      [observe ((coin (z n))) {b[n]}]
      [predict (+ (z n) 1)]
    [predict ((coin (z 1)))]
    """,
    "several features": CRP
    + """
    [assume cell (mem (lambda (k f) (if (= f 1) (make_normal_inv_chi_sq 0 1 1 1) (make_normal_inv_chi_sq 1 1 1 1))))]
    [assume coin (mem (lambda (k) (make_beta_bernoulli 0.5 0.5)))]
    for n in 1...N:
      [observe ((coin (z n))) {b[n]}]
      [observe ((coin (z n))) {c[n]}]
      [observe ((cell (z n) 2)) {x[n]}]
    """,
    "features with their own hyperparameters": CRP
    + """
    [assume mean (mem (lambda (f) (tag 'h f (normal 0 1))))]
    [assume cell (mem (lambda (k f) (make_normal_inv_chi_sq (mean f) 1 1 1)))]
    for n in 1...N:
      [observe ((cell (z n) 1)) {x[n]}]
      [observe ((cell (z n) 2)) {y[n]}]
    """,
    "parameters of their own": CRP
    + """
    [assume mean (mem (lambda (k) (tag 'm k (normal 0 2))))]
    [assume sd (mem (lambda (k) (tag 'm (+ k 100) (gamma 2 2))))]
    for n in 1...N: [observe (let ((k (z n))) (normal (mean k) (sd k))) {x[n]}]
    """,
    "two urns": """
    [assume urn (mem (lambda (left) (make_beta_bernoulli 0.5 0.5)))]
    [assume z (mem (lambda (n) (tag 'z n (flip 0.45))))]
    for n in 1...N: [observe ((urn (z n))) {b[n]}]
    """,
    "a finite mixture": """
    [assume weights (tag 'h 0 (symmetric_dirichlet 1 3))]
    [assume z (mem (lambda (n) (tag 'z n (categorical weights))))]
    [assume mean (mem (lambda (k) (tag 'm k (normal 0 2))))]
    for n in 1...N: [observe (normal (+ (mean (z n)) (* 0.1 (z n))) 1) {x[n]}]
    """,
}
RNG = np.random.default_rng(4)
DATA = {
    "b": RNG.random(12) < 0.4,
    "c": RNG.random(12) < 0.7,
    "x": RNG.normal(size=12) * 2,
    "y": RNG.normal(size=12),
}


def venture(text: str, seed: int = 3, n: int = 12) -> Venture:
    v = Venture(seed=seed)
    v.execute(text, N=n, **{name: values[:n] for name, values in DATA.items()})
    return v


# all of whose transitions have plans: no body branches, and no free choice would be made anew
PLANNED = set(MODELS) - {"counted, and predicted", "several features"}
SELECTORS = {"one": "(gibbs z one 40)", "each": "(gibbs z each 4)", "a block": "(gibbs z 3 20)"}


@pytest.mark.parametrize("kernel", SELECTORS.values(), ids=SELECTORS)
@pytest.mark.parametrize("name", MODELS)
def test_plans_draw_what_the_interpreter_draws(name: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same values in the same rows, the same statistics, the generator in the same state."""
    planned = venture(MODELS[name])
    planned.infer(kernel)
    check(planned.traces[0])
    interpreted = venture(MODELS[name])
    with monkeypatch.context() as patch:
        patch.setattr(SingleGibbs, "step", lambda *_: None)
        interpreted.infer(kernel)
    assert values(planned) == values(interpreted)
    assert planned.log_score() == pytest.approx(interpreted.log_score(), abs=1e-9)
    left, right = (v.traces[0].trace.rng.bit_generator.state for v in (planned, interpreted))
    assert left == right


def values(v: Venture) -> list[Any]:
    return [v.sample(f"(z {n})") for n in range(1, 13)]


@pytest.mark.parametrize("name", MODELS)
def test_which_models_have_plans(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    step, answers = SingleGibbs.step, []

    def noted(self: SingleGibbs, *arguments: Any) -> bool | None:
        answers.append(step(self, *arguments))
        return answers[-1]

    monkeypatch.setattr(SingleGibbs, "step", noted)
    venture(MODELS[name]).infer("(gibbs z each 2)")
    assert len(answers) == 24
    assert (None not in answers) == (name in PLANNED)
