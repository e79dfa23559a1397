"""The parameters of the peers' distributions, as the pages for those who come from them translate them.

Each density is written out as the peer documents it: Stan in its Functions Reference 2, PyMC 5 in the docstrings of
`pymc.distributions`, NumPyro in those of `numpyro.distributions`, WebPPL 0.9.15 in `src/dists`. Of PyMC and NumPyro
what they computed stands beside (`PEERS`); Stan and WebPPL were not run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

from tests.docs.blocks import ROOT
from venture_lite import Venture

log, gammaln, betaln = np.log, special.gammaln, special.betaln


def log_choose(n: float, k: float) -> float:
    return float(gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1))


def stan_neg_binomial(n: int, alpha: float, beta: float) -> float:
    """C(n + alpha - 1, alpha - 1) (beta / (beta + 1))^alpha (1 / (beta + 1))^n, mean alpha / beta."""
    return log_choose(n + alpha - 1, alpha - 1) + alpha * log(beta / (beta + 1)) - n * log(beta + 1)


def stan_neg_binomial_2(n: int, mu: float, phi: float) -> float:
    """C(n + phi - 1, n) (mu / (mu + phi))^n (phi / (mu + phi))^phi, mean mu."""
    return log_choose(n + phi - 1, n) + n * log(mu / (mu + phi)) + phi * log(phi / (mu + phi))


def pymc_neg_binomial(x: int, n: float, p: float) -> float:
    """C(x + n - 1, x) p^n (1 - p)^x, mean n (1 - p) / p."""
    return log_choose(x + n - 1, x) + n * log(p) + x * log(1 - p)


def numpyro_neg_binomial(x: int, n: float, q: float) -> float:
    """A Poisson count whose rate is gamma of shape n and rate (1 - q) / q, mean n q / (1 - q)."""
    return log_choose(x + n - 1, x) + n * log(1 - q) + x * log(q)


def stan_gamma(y: float, alpha: float, beta: float) -> float:
    """beta^alpha / Gamma(alpha) y^(alpha - 1) exp(-beta y)."""
    return alpha * log(beta) - gammaln(alpha) + (alpha - 1) * log(y) - beta * y


def stan_inv_gamma(y: float, alpha: float, beta: float) -> float:
    """beta^alpha / Gamma(alpha) y^-(alpha + 1) exp(-beta / y)."""
    return alpha * log(beta) - gammaln(alpha) - (alpha + 1) * log(y) - beta / y


def stan_weibull(y: float, alpha: float, sigma: float) -> float:
    """alpha / sigma (y / sigma)^(alpha - 1) exp(-(y / sigma)^alpha)."""
    return log(alpha / sigma) + (alpha - 1) * log(y / sigma) - (y / sigma) ** alpha


def stan_pareto(y: float, alpha: float, y_min: float) -> float:
    """alpha y_min^alpha / y^(alpha + 1)."""
    return log(alpha) + alpha * log(y_min) - (alpha + 1) * log(y)


def stan_student_t(y: float, nu: float, mu: float, sigma: float) -> float:
    """Gamma((nu + 1) / 2) / Gamma(nu / 2) 1 / (sqrt(nu pi) sigma) (1 + ((y - mu) / sigma)^2 / nu)^-((nu + 1) / 2)."""
    z = (y - mu) / sigma
    scale = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * log(nu * np.pi) - log(sigma)
    return scale - (nu + 1) / 2 * np.log1p(z * z / nu)


def stan_von_mises(y: float, mu: float, kappa: float) -> float:
    """exp(kappa cos(mu - y)) / (2 pi I0(kappa))."""
    return kappa * np.cos(mu - y) - log(2 * np.pi * special.i0(kappa))


def stan_beta_binomial(k: int, n: int, alpha: float, beta: float) -> float:
    """C(N, n) B(n + alpha, N - n + beta) / B(alpha, beta)."""
    return log_choose(n, k) + betaln(k + alpha, n - k + beta) - betaln(alpha, beta)


def stan_ordered_logistic(k: int, eta: float, c: Any) -> float:
    """Categories from 1: 1 - logit^-1(eta - c_1), logit^-1(eta - c_(k-1)) - logit^-1(eta - c_k), logit^-1(eta - c_K-1);
    PyMC's are the same from 0."""
    above = np.concatenate(([1.0], special.expit(eta - np.asarray(c)), [0.0]))
    return float(log(above[k - 1] - above[k]))


def stan_lkj_corr_cholesky(lower: Any, eta: float) -> float:
    """prod_k L_kk^(K - k + 2 eta - 2), up to a constant; for K = 2 it is that of r = L_21 = 2 B - 1, B beta of eta and
    eta, where L_22 = sqrt(1 - r^2)."""
    return float((2 * eta - 2) * log(lower[1][1]) - (2 * eta - 1) * log(2) - betaln(eta, eta))


def stan_wishart(w: Any, nu: float, s: Any) -> float:
    """1 / (2^(nu K / 2) Gamma_K(nu / 2)) |S|^(-nu / 2) |W|^((nu - K - 1) / 2) exp(-tr(S^-1 W) / 2)."""
    w, s = np.asarray(w), np.asarray(s)
    k = len(w)
    scale = nu * k / 2 * log(2) + special.multigammaln(nu / 2, k) + nu / 2 * log(np.linalg.det(s))
    return float((nu - k - 1) / 2 * log(np.linalg.det(w)) - np.trace(np.linalg.solve(s, w)) / 2 - scale)


def stan_inv_wishart(w: Any, nu: float, s: Any) -> float:
    """1 / (2^(nu K / 2) Gamma_K(nu / 2)) |S|^(nu / 2) |W|^(-(nu + K + 1) / 2) exp(-tr(S W^-1) / 2)."""
    w, s = np.asarray(w), np.asarray(s)
    k = len(w)
    scale = nu * k / 2 * log(2) + special.multigammaln(nu / 2, k) - nu / 2 * log(np.linalg.det(s))
    return float(-(nu + k + 1) / 2 * log(np.linalg.det(w)) - np.trace(s @ np.linalg.inv(w)) / 2 - scale)


L = "(matrix (list 1 0) (list 0.6 0.8))"
W, S = ((2.0, 0.3), (0.3, 1.5)), ((1.0, 0.2), (0.2, 0.5))
W_TEXT, S_TEXT = "(matrix (list 2 0.3) (list 0.3 1.5))", "(matrix (list 1 0.2) (list 0.2 0.5))"

# as the page writes it, its names with their values, a value of the distribution, and its log density by the peer
Row = tuple[str, dict[str, Any], Any, Callable[[], float]]
STAN: list[Row] = [
    (
        "(neg_binomial alpha (/ beta (+ beta 1)))", {"alpha": 2.5, "beta": 0.7}, 3,
        lambda: stan_neg_binomial(3, 2.5, 0.7),
    ),
    ("(neg_binomial phi (/ phi (+ phi mu)))", {"mu": 4.0, "phi": 1.5}, 6, lambda: stan_neg_binomial_2(6, 4.0, 1.5)),
    # pm.NegativeBinomial(mu, alpha): Gamma(x + alpha) / (x! Gamma(alpha)) (alpha / (mu + alpha))^alpha ...
    ("(neg_binomial phi (/ phi (+ phi mu)))", {"mu": 4.0, "phi": 1.5}, 6, lambda: pymc_neg_binomial(6, 1.5, 1.5 / 5.5)),
    ("(neg_binomial n p)", {"n": 5, "p": 0.3}, 9, lambda: pymc_neg_binomial(9, 5, 0.3)),
    ("(neg_binomial n (- 1 q))", {"n": 5, "q": 0.7}, 9, lambda: numpyro_neg_binomial(9, 5, 0.7)),
    ("(gamma alpha beta)", {"alpha": 2.0, "beta": 3.0}, 0.4, lambda: stan_gamma(0.4, 2.0, 3.0)),
    ("(inv_gamma alpha beta)", {"alpha": 2.0, "beta": 3.0}, 0.4, lambda: stan_inv_gamma(0.4, 2.0, 3.0)),
    ("(expon beta)", {"beta": 3.0}, 0.4, lambda: log(3.0) - 3.0 * 0.4),
    ("(weibull alpha sigma)", {"alpha": 1.7, "sigma": 2.0}, 0.4, lambda: stan_weibull(0.4, 1.7, 2.0)),
    ("(pareto alpha y_min)", {"alpha": 3.0, "y_min": 2.0}, 5.0, lambda: stan_pareto(5.0, 3.0, 2.0)),
    ("(student_t nu mu sigma)", {"nu": 4.0, "mu": 1.0, "sigma": 2.0}, 3.0, lambda: stan_student_t(3.0, 4.0, 1.0, 2.0)),
    ("(von_mises mu kappa)", {"mu": 0.5, "kappa": 2.0}, -1.0, lambda: stan_von_mises(-1.0, 0.5, 2.0)),
    (
        "(beta_binomial n alpha beta)", {"n": 7, "alpha": 2.0, "beta": 3.0}, 4,
        lambda: stan_beta_binomial(4, 7, 2.0, 3.0),
    ),
    # pm.Geometric: p (1 - p)^(x - 1) for x = 1, 2, ...
    ("(geometric p)", {"p": 0.3}, 4, lambda: log(0.3) + 4 * log(0.7)),
    ("(categorical theta)", {"theta": (0.2, 0.5, 0.3)}, 2, lambda: log(0.3)),
    ("(ordered_logistic eta c)", {"eta": 0.4, "c": (-1.0, 0.5)}, 0, lambda: stan_ordered_logistic(1, 0.4, (-1.0, 0.5))),
    ("(ordered_logistic eta c)", {"eta": 0.4, "c": (-1.0, 0.5)}, 2, lambda: stan_ordered_logistic(3, 0.4, (-1.0, 0.5))),
    (
        "(lkj_cholesky n eta)", {"n": 2, "eta": 1.5}, L,
        lambda: stan_lkj_corr_cholesky(((1, 0), (0.6, 0.8)), 1.5),
    ),
    ("(wishart nu S)", {"nu": 4.0, "S": S_TEXT}, W_TEXT, lambda: stan_wishart(W, 4.0, S)),
    ("(inv_wishart nu S)", {"nu": 4.0, "S": S_TEXT}, W_TEXT, lambda: stan_inv_wishart(W, 4.0, S)),
]  # fmt: skip
CHURCH: list[Row] = [
    # (shape - 1) log x - x / scale - log Gamma(shape) - shape log scale
    (
        "(gamma shape (/ 1 scale))", {"shape": 2.0, "scale": 3.0}, 0.4,
        lambda: log(0.4) - 0.4 / 3.0 - gammaln(2.0) - 2.0 * log(3.0),
    ),
    ("(expon rate)", {"rate": 3.0}, 0.4, lambda: log(3.0) - 1.2),
    ("(uniform_discrete 0 n)", {"n": 6}, 5, lambda: -log(6)),
    ("(uniform_continuous a b)", {"a": 1.0, "b": 3.0}, 2.5, lambda: -log(2.0)),
    ("(binomial n p)", {"n": 7, "p": 0.3}, 2, lambda: stats.binom.logpmf(2, 7, 0.3)),
    ("(student_t df m s)", {"df": 4.0, "m": 1.0, "s": 2.0}, 3.0, lambda: stan_student_t(3.0, 4.0, 1.0, 2.0)),
    ("(categorical ps)", {"ps": (0.2, 0.5, 0.3)}, 2, lambda: log(0.3)),
]  # fmt: skip
# what NumPyro 0.22.0 (in 64 bits) and PyMC 6.4.0 (of numpy.float64) gave under Python 3.12: the formula here, the
# value, and their log densities; None where one has no such distribution
PEERS: list[tuple[str, Any, float | None, float | None]] = [
    # NegativeBinomial2(4, 1.5); NegativeBinomial(mu=4, alpha=1.5)
    ("(neg_binomial phi (/ phi (+ phi mu)))", 6, -2.783751600522719, -2.783751600522721),
    # NegativeBinomial(n=5, p=0.3)
    ("(neg_binomial n p)", 9, None, -2.657655974384266),
    # NegativeBinomialProbs(5, probs=0.7), of which it computes seven digits
    ("(neg_binomial n (- 1 q))", 9, -2.657656588754666, None),
    ("(gamma alpha beta)", 0.4, 0.08093384546206428, 0.08093384546206439),
    ("(inv_gamma alpha beta)", 0.4, -2.5539032270413156, -2.553903227041315),
    ("(expon beta)", 0.4, -0.1013877113318904, -0.1013877113318904),
    # Weibull(scale=2, concentration=1.7); Weibull(alpha=1.7, beta=2)
    ("(weibull alpha sigma)", 0.4, -1.3539517320693557, -1.3539517320693557),
    # Pareto(scale=2, alpha=3); Pareto(alpha=3, m=2)
    ("(pareto alpha y_min)", 5.0, -3.259697819388456, -3.259697819388456),
    ("(student_t nu mu sigma)", 3.0, -2.2318353118571954, -2.231835311857196),
    ("(von_mises mu kappa)", -1.0, -2.520396204556896, -2.5203962045568957),
    ("(beta_binomial n alpha beta)", 4, -1.8870696490323762, -1.8870696490323797),
    # GeometricProbs(0.3) at 4; Geometric(0.3), which counts from 1, at 5
    ("(geometric p)", 4, -2.6306725800808657, -2.6306725800808657),
    ("(categorical theta)", 2, -1.2039728043259361, -1.2039728043259361),
    ("(ordered_logistic eta c)", 0, -1.620417409918451, -1.620417409918451),
    ("(ordered_logistic eta c)", 2, -0.7443966600735707, -0.7443966600735707),
    ("(lkj_cholesky n eta)", L, -0.6747262566036648, None),
    ("(wishart nu S)", W_TEXT, -3.7239938296786725, -3.72399383729729),
]
PAGES = [(page, *row) for page, rows in (("stan", STAN), ("church", CHURCH)) for row in rows]


def text_of(value: Any) -> str:
    return f"(vector {' '.join(map(str, value))})" if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize(("page", "here", "names", "value", "density"), PAGES)
def test_parameters_mean_what_the_page_says(
    page: str, here: str, names: dict[str, Any], value: Any, density: Callable[[], float]
) -> None:
    assert f"`{here}`" in (ROOT / "docs" / "use" / f"{page}.md").read_text(encoding="utf-8")
    bound = " ".join(f"({name} {text_of(given)})" for name, given in names.items())
    found = Venture(seed=1).sample(f"(let ({bound}) (log_density {here} {value}))")
    assert found == pytest.approx(float(density()), rel=1e-10)


@pytest.mark.parametrize(("here", "value", "numpyro", "pymc"), PEERS)
def test_the_peers_compute_what_they_document(here: str, value: Any, numpyro: float | None, pymc: float | None) -> None:
    (density,) = {row[3]() for row in STAN if row[0] == here and row[2] == value}
    for found in (numpyro, pymc):
        assert found is None or found == pytest.approx(float(density), rel=1e-6 if "(- 1 q)" in here else 1e-8)


def test_every_translated_distribution_is_tested() -> None:
    """Of the tables of parameters, each row's last column."""
    for page, rows in (("stan", STAN), ("church", CHURCH)):
        text = (ROOT / "docs" / "use" / f"{page}.md").read_text(encoding="utf-8")
        table = text[text.index("Where parameters differ, or might:") :].split("\n\n")[1].splitlines()[2:]
        assert table
        for line in table:
            assert any(f"`{here}`" in line.rsplit(" | ", 1)[1] for here, *_ in rows), line


def test_a_factor_with_standard_deviations_is_pymcs() -> None:
    """The covariance of `pm.LKJCholeskyCov`'s factor is the product with the standard deviations in it."""
    text = f"(let ((sds (vector 2 3)) (L {L})) (dot (diagonal sds) L))"
    factor = np.asarray(Venture(seed=1).sample(text))
    correlation = np.array([[1.0, 0.6], [0.6, 1.0]])
    assert np.allclose(factor @ factor.T, correlation * np.outer([2, 3], [2, 3]))


def test_folds_and_variances_are_translated_as_they_are() -> None:
    v = Venture(seed=1)
    # reduce(f, start, xs) of WebPPL is f(xs[0], f(xs[1], ... f(xs[n - 1], start)))
    text = "(let ((f (lambda (x sum) (- x sum))) (start 10) (xs (list 1 2 3))) {})"
    here = "(fold (lambda (sum x) (f x sum)) start (reverse xs))"
    assert f"`{here}`" in (ROOT / "docs" / "use" / "church.md").read_text(encoding="utf-8")
    assert v.sample(text.format(here)) == 1 - (2 - (3 - 10))
    assert v.sample("(variance (list 1 2 3 6))") == pytest.approx(np.var([1, 2, 3, 6], ddof=1))
