"""`gibbs` by forms: the interpreter's draws, weight for weight; candidates that are impossible; and exact answers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.errors import InternalError
from venture_lite.interpreter.selection import Selection
from venture_lite.kernels.candidates import FormedGibbs, GivenValue

DATA = {"y": [0.3, 2.9, 1.1, -0.4, 2.2, 1.8, 0.1, 0.9]}
MODELS = {
    "states of a chain": """
        [assume m (list -1 1 3)] [assume s (gamma 3 3)]
        [assume z (mem (lambda (t) (if (= t 0) 0
          (categorical (lookup (list (list 0.6 0.2 0.2) (list 0.3 0.4 0.3) (list 0.1 0.1 0.8)) (z (- t 1)))))))]
        for t in 1...8: [observe (normal (lookup m (z t)) s) {y[t]}]""",
    "states that cannot follow one another": """
        [assume z (mem (lambda (t) (if (= t 0) 0
          (categorical (lookup (list (list 0.5 0.5 0) (list 0 0.5 0.5) (list 0.5 0 0.5)) (z (- t 1)))))))]
        for t in 1...8: [observe (normal (z t) 1) {y[t]}]""",
    "whole numbers": """
        [assume a (uniform_discrete 0 4)] [assume b (mem (lambda (i) (binomial 4 (/ (+ 1 a) 6))))]
        for t in 1...8: [observe (normal (+ a (b t)) 2) {y[t]}]""",
}


@pytest.fixture
def formed(monkeypatch: pytest.MonkeyPatch) -> list[bool | None]:
    """What each step said: None where there was no form."""
    step, answers = FormedGibbs.step, list[bool | None]()

    def noting(self: FormedGibbs, nodes: list[int], at: Selection) -> bool | None:
        answers.append(step(self, nodes, at))
        return answers[-1]

    monkeypatch.setattr(FormedGibbs, "step", noting)
    return answers


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", ["(gibbs (choices 'finite) each 12)", "(gibbs (choices 'finite) one 90)"])
@pytest.mark.parametrize("name", MODELS)
def test_forms_draw_what_the_interpreter_draws(name: str, kernel: str, formed: list[bool | None]) -> None:
    """Each transition is made twice from one state; most of them have forms."""
    v = Venture(seed=2, kernels="checked")
    v.execute(MODELS[name], **DATA)
    v.infer(kernel)
    assert sum(answer is not None for answer in formed) > 40
    assert True in formed
    assert "columns" in str(v.explain(kernel))


def test_a_candidate_without_its_own_density_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GivenValue, "counts", False)
    v = Venture(seed=2, kernels="checked")
    v.execute(MODELS["states of a chain"], **DATA)
    with pytest.raises(InternalError, match="differ in log weights"):
        v.infer("(gibbs (choices 'finite) each 12)")


@pytest.mark.thorough
def test_states_are_drawn_from_their_posterior(formed: list[bool | None]) -> None:
    """Marginals of a chain of eight states against forward filtering. Of 1,500 sweeps at least 100 count as independent
    draws, of which 6 standard errors are 1e-9."""
    rows = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    likelihoods = np.exp(-0.5 * (np.array(DATA["y"])[:, None] - np.arange(3)) ** 2)
    ahead, back = np.zeros((8, 3)), np.ones((8, 3))
    before = np.array([1.0, 0.0, 0.0])
    for t in range(8):
        ahead[t] = (before @ rows) * likelihoods[t]
        before = ahead[t] = ahead[t] / ahead[t].sum()
    for t in reversed(range(7)):
        back[t] = rows @ (likelihoods[t + 1] * back[t + 1])
        back[t] /= back[t].sum()
    exact = ahead * back / (ahead * back).sum(axis=1, keepdims=True)
    v = Venture(seed=1)
    v.execute(MODELS["states that cannot follow one another"], **DATA)
    calls = " ".join(f"(z {t})" for t in range(1, 9))
    draws = v.infer(f"(repeat 1500 (do (gibbs default each 1) (collect {calls})))")
    assert sum(answer is not None for answer in formed) > 11_000
    for t in range(8):
        found = [float((draws[f"(z {t + 1})"] == k).mean()) for k in range(3)]
        assert found == pytest.approx(exact[t], abs=6 * 0.5 / math.sqrt(100))
