"""Distributions made of distributions, as programs write them: in all engines, in the checker, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from venture_lite import Venture, VentureError, check

MODEL = """
[assume low (scope_include 'low 0 (truncated (normal 0 2) -1 none))]
[assume p (scope_include 'p 0 (truncated (beta 2 2) 0.1 0.9))]
[assume mu (scope_include 'mu 0 (increasing (normal (zeros 2) 3)))]
[assume x (scope_include 'x 0 (finite_mixture (vector p (- 1 p)) (normal mu 1)))]
[assume k (scope_include 'k 0 (zero_inflated p (truncated (binomial 4 0.5) 1 3)))]
[observe (zero_inflated p (poisson (exp (* 0.1 x)))) 0]
[observe (normal (+ x k) 1) 2.5]"""
KERNELS = (
    "(mh default one 60)", "(mh default each 5)", "(gibbs k one 4)", "(mh p one 'drift 0.5 20)",
    *[
        form.format(scope)
        for scope in ("low", "mu", "x")
        for form in ("(mh {} one 'drift 0.5 20)", "(slice {} one 1 5 2)", "(hmc {} all 0.1 3 2)")
    ],
)  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_engine_moves_them_both_ways_alike(kernel: str) -> None:
    venture = Venture(seed=3, kernels="checked")
    venture.execute(MODEL)
    before = venture.sample("(list low p mu x k)")
    venture.infer(kernel)
    assert any(not np.array_equal(a, b) for a, b in zip(before, venture.sample("(list low p mu x k)"), strict=True))


def test_a_bound_may_be_random() -> None:
    venture = Venture(seed=4, kernels="checked")
    venture.execute("""[assume low (gamma 2 2)] [assume x (truncated (normal 0 2) low none)]
        [assume y (truncated (gamma 2 1) (- low 1) (+ low 3))] [observe (normal (+ x y) 0.5) 4]""")
    for kernel in ("(mh default one 40)", "(mh default all 'drift 0.3 40)", "(hmc default all 0.1 4 10)"):
        venture.infer(kernel)


def test_observations_weigh_what_the_definition_says() -> None:
    venture = Venture(seed=1)
    venture.execute("[observe (finite_mixture (vector 0.3 0.7) (normal 0 1) (cauchy 2 1)) 0.5]")
    expected = math.log(0.3 * stats.norm.pdf(0.5) + 0.7 * stats.cauchy.pdf(0.5, 2, 1))
    assert math.isclose(np.ravel(venture.log_score())[0], expected, rel_tol=1e-12)


@pytest.mark.thorough
def test_registered_densities_are_inflated_and_mixed() -> None:
    venture = Venture(seed=1)
    venture.register(
        "counts", simulate=lambda rng, rate: int(rng.poisson(rate)),
        log_density=lambda k, rate: float(stats.poisson.logpmf(k, rate)),
        gradient={"rate": lambda k, rate: k / rate - 1},
    )  # fmt: skip
    venture.execute(
        """[assume p (beta 1 1)] [assume rate (gamma 2 1)]
        for i in 1...6: [observe (zero_inflated p (counts rate)) {k[i]}]
        [observe (finite_mixture (vector p (- 1 p)) (counts rate) (poisson 1)) 2]""",
        k=[0, 0, 3, 2, 0, 4],
    )
    venture.infer("(do (hmc default all 0.1 5 20) (mh default one 'drift 0.5 20))")
    p, rate = venture.sample("(list p rate)")
    zero = math.log(p + (1 - p) * math.exp(-rate))
    seen = sum(math.log(1 - p) + stats.poisson.logpmf(k, rate) for k in (3, 2, 4))
    mixed = math.log(p * stats.poisson.pmf(2, rate) + (1 - p) * stats.poisson.pmf(2, 1))
    prior = stats.beta.logpdf(p, 1, 1) + stats.gamma.logpdf(rate, 2)
    assert math.isclose(np.ravel(venture.log_score())[0], 3 * zero + seen + mixed + prior, rel_tol=1e-9)


def test_a_program_may_bind_the_words() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume (truncated a) (* 2 a)] [assume none 3]")
    assert venture.sample("(truncated none)") == 6
    assert venture.sample("(let ((increasing (lambda (a) (+ a 1)))) (increasing 1))") == 2


REFUSED = {
    "(truncated normal 0 1)": "truncated takes a distribution written out, which is not applied",
    "(truncated (if true (normal 0 1) (normal 1 1)) 0 1)": "if is no distribution of numbers that truncated could take",
    "(truncated (f 0) 0 1)": "f is no distribution of numbers",
    "(truncated ((lambda (a) (normal a 1)) 0) 0 1)": "truncated takes a distribution written out",
    "(truncated (von_mises 0 1) 0 1)": "von_mises has no distribution function",
    "(truncated (normal 0 1) 2 1)": "lo must be less than hi, got 2 and 1",
    "(truncated (poisson 2) 0.5 none)": "lo must be an integer, got 0.5",
    "(truncated (normal 0 1) 2)": "truncated is written (truncated DIST LO HI)",
    "(truncated (normal 0 -1) 2 3)": "sd must be a positive number, got -1",
    "(truncated (normal 0) 2 3)": "normal takes 2 arguments (mean sd), got 1",
    "(zero_inflated 1.5 (poisson 2))": "p must be a number between 0 and 1, got 1.5",
    "(zero_inflated 0.5 (dirichlet (ones 3)))": "dirichlet is no distribution of numbers",
    "(finite_mixture (vector 0.5 0.6) (normal 0 1) (normal 1 1))": "weights must be a vector of probabilities",
    "(finite_mixture (vector 0.5 0.5) (normal 0 1) (poisson 1))": "partly discrete and partly continuous",
    "(finite_mixture (vector 0.5 0.5) (normal (ones 3) 1))": "2 weights for 3 components",
    "(increasing (normal (vector 0 m) 1))": "parameters that are not constants",
    "(increasing (normal 0 1))": "normal is one number here",
    "truncated": "truncated is a special form, not a value",
}


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_wrong_is_named(form: str) -> None:
    venture = Venture(seed=1)
    venture.execute("[assume m (normal 5 1)] [assume (f a) (normal a 1)]")
    with pytest.raises(VentureError) as caught:
        venture.execute(f"[assume x {form}]")
    assert REFUSED[form] in str(caught.value)
    assert caught.value.span is not None


def test_the_checker_knows_them() -> None:
    assert check(MODEL + " [infer (mh default one 10)]").ok
    found = str(check("[assume x (truncated normal 0 1)] [assume y (zero_inflated 2 (poisson 1))]"))
    assert "truncated takes a distribution written out" in found
    assert "p must be a number between 0 and 1, got 2" in found
    assert check("[assume x (zero_inflated 0.5 (mine 1))]", registered=["mine"]).ok
