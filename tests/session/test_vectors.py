"""Vectors of independent values as choices and as observations: in all engines, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venture_lite import KernelError, Venture, VentureError

MODEL = """
[assume m (scope_include 'm 0 (normal (vector 0 1 2) 2))]
[assume s (scope_include 's 0 (gamma (vector 2 3 2) 1))]
[assume u (scope_include 'u 0 (uniform_continuous -1 (+ 1 s)))]
[assume k (scope_include 'k 0 (bernoulli (vector 0.3 0.5 0.9)))]
[assume n (scope_include 'n 0 (poisson (vector 1 2 3)))]
[observe (normal (+ (* m s) u k) (+ 1 n)) {Y}]"""
KERNELS = (
    "(mh default one 40)", "(mh default each 4)", "(mh default all 10)", "(mh n one 10)", "(mh k one 10)",
    "(gibbs k one 4)",
    *[
        form.format(scope)
        for scope in "msu"
        for form in ("(mh {} one 'drift 0.5 20)", "(slice {} one 1 5 2)", "(hmc {} all 0.1 3 2)", "(mala {} all 0.1 3)")
    ],
    "(nuts m all 'step 0.2 2)", "(mh m one 'drift 0.5 'precondition 4)", "(pgibbs default ordered 3 1)",
)  # fmt: skip


def session(text: str, kernels: str = "compiled", **data: Any) -> Venture:
    venture = Venture(seed=3, kernels=kernels)
    venture.execute(text, **data)
    return venture


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_engine_moves_vectors_both_ways_alike(kernel: str) -> None:
    venture = session(MODEL, "checked", Y=[1.0, 2.0, 3.0])
    before = venture.sample("(list m s u k n)")
    venture.infer(kernel)
    assert any(not np.array_equal(a, b) for a, b in zip(before, venture.sample("(list m s u k n)"), strict=True))


def test_a_vector_of_observations_is_a_loop_of_them() -> None:
    x, y = np.arange(12.0).reshape(6, 2) / 10, np.array([0, 1, 1, 0, 1, 1])
    model = "[assume b (normal (zeros 2) 2)] [force b (vector 0.3 -1)] "
    vector = session(model + "[observe (bernoulli (logistic (dot {X} b))) {Y}]", X=x, Y=y)
    loop = session(model + "for i in 1...6: [observe (bernoulli (logistic (dot {X[i]} b))) {Y[i]}]", X=x, Y=y)
    assert np.allclose(vector.log_score(), loop.log_score(), rtol=1e-12)


def test_lists_are_observed_as_vectors() -> None:
    venture = session("[assume z (normal (zeros 2) 1)] [observe z {Y}] [predict (+ z 1)]", Y=[0.5, 2])
    assert venture.report(3).tolist() == [1.5, 3.0]


REFUSED = {
    "[observe (normal mu 1) (vector 1 2)]": "try: a parameter for each item, as in (normal (* mean (ones 2)) sd)",
    "[observe (normal (* mu (ones 3)) 1) (vector 1 2)]": "normal is a vector of 3 here, and 2 values were observed",
    "[observe (normal (* mu (ones 3)) 1) 2]": "normal is a vector of 3 here, and 2 was observed",
    "[observe (poisson (* (exp mu) (ones 3))) (vector 1 2.5 0)]": "2.5, item 1 of a vector, is impossible for poisson",
    "[observe (poisson (* (exp mu) (ones 2))) '(1 a)]": "is impossible for poisson",
    "[assume z (normal (vector 0 1) (vector 1 0))]": "sd must be a positive number, got 0 as item 1 of a vector",
    "[assume z (normal (vector 0 1) (vector 1 2 3))]": "mean has 2 items, sd has 3",
    "[observe (normal (* mu (ones 2)) 1) {Y}]": "is missing (NaN)",
    "[assume z (normal (ones 2) 1)] [force z 3]": "normal is a vector of 2 here, and 3 was observed",
}


@pytest.mark.parametrize("directive", REFUSED)
def test_what_does_not_fit_is_refused(directive: str) -> None:
    with pytest.raises(VentureError) as caught:
        session(f"[assume mu (normal 0 1)] {directive}", **({"Y": [1.0, np.nan]} if "{Y}" in directive else {}))
    assert REFUSED[directive] in str(caught.value)


@pytest.mark.parametrize(
    "kernel", ["(subsampled_mh mu one 10 0.1 'drift 0.1 1)", "(flymc mu all auto map 0.1 'drift 0.1 1)"]
)
def test_engines_of_rows_ask_for_a_loop(kernel: str) -> None:
    venture = session(
        "[assume mu (scope_include 'mu 0 (normal 0 1))] [observe (normal (* mu (ones 30)) 1) {Y}]", Y=np.zeros(30)
    )
    with pytest.raises(KernelError, match="a loop: for i in 1"):
        venture.infer(kernel)


def test_too_many_vectors_are_not_enumerated() -> None:
    venture = session("[assume k (flip (* 0.5 (ones 40)))] [observe (normal (sum k) 1) 20]")
    with pytest.raises(KernelError, match="more than 100,000 candidates"):
        venture.infer("(gibbs default one 1)")
