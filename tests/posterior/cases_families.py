"""One program for each further family of distributions: counts, positive numbers, angles, scores, matrices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy import special, stats

from tests.posterior.case import Case
from tests.posterior.cases_makers import normal_inv_chi_sq
from tests.posterior.derive import Grid, cdf, normal_pdf, pushforward, table
from tests.statistics import Cdf, Expected, Mean

PRIOR = "(mh default one 8)"


def failures_before_successes() -> Mapping[str, Expected]:
    return {"p": cdf(stats.beta(2 + 3 + 2.5, 1.5 + 4 + 1))}


def spread() -> Mapping[str, Expected]:
    grid = Grid(1e-4, 30.0)
    sd = grid.points
    square = 0.4**2 + 1.1**2 + 2.0**2
    return {"sd": grid.cdf(-(sd**2) / (2 * 1.5**2) - 3 * np.log(sd) - square / (2 * sd**2))}


def scale_with_heavy_tail() -> Mapping[str, Expected]:
    grid = Grid(1e-4, 60.0)
    s = grid.points
    square = 0.4**2 + 1.1**2 + 2.0**2
    return {"s": grid.cdf(stats.t.logpdf(s, 3, 0, 1.5) - 3 * np.log(s) - square / (2 * s**2))}


def truncated_far_out() -> Mapping[str, Expected]:
    # 40 sds beyond the mean: exp(-40 x - x^2 / 2), times the likelihood of the datum
    grid = Grid(0.0, 1.0)
    x = grid.points
    return {"x": grid.cdf(-40.0 * x - 0.5 * x**2 - 0.5 * ((0.06 - x) / 0.03) ** 2)}


def truncated_around_a_mean() -> Mapping[str, Expected]:
    grid = Grid(-6.0, 6.0, 4001)
    m = grid.points
    x = np.linspace(0.0, 2.0, 2001)
    mass = stats.norm.cdf(2.0 - m) - stats.norm.cdf(-m)
    joint = stats.norm.pdf(m)[:, None] * stats.norm.pdf(x - m[:, None]) / mass[:, None] * stats.norm.pdf(1.7, x, 0.5)
    points = np.array([0.4, 0.9, 1.2, 1.5, 1.8])
    weights = joint.sum(axis=0)
    weights[[0, -1]] /= 2
    reached = (np.cumsum(weights) - weights / 2) / weights.sum()
    return {
        "m": grid.cdf(np.log(np.trapezoid(joint, x, axis=1))),
        "x": Cdf(points, np.interp(points, x, reached)),
    }


def overdispersed_successes() -> Mapping[str, Expected]:
    # k of 6 with a probability that is beta(2, 3), then each success seen with probability 0.5: 2 were
    weights = {k: math.comb(6, k) * special.beta(2 + k, 9 - k) * math.comb(k, 2) * 0.5**k for k in range(2, 7)}
    return {"k": table(weights)}


def ordered_score() -> Mapping[str, Expected]:
    grid = Grid(-10.0, 10.0)
    s = grid.points
    low, high = special.expit(-1 - s), special.expit(0.5 - s)
    return {"s": grid.cdf(-0.5 * s**2 + np.log(1 - high) + np.log(high - low) + np.log(1 - high))}


def weighted_words() -> Mapping[str, Expected]:
    # k is 0, 1, 2 with weights 1, 3, 6; x is drawn from a list in which k + 1 of four places hold a 1; seen 1 and 1
    return {"k": table({k: w * ((k + 1) / 4) ** 2 for k, w in enumerate((1, 3, 6))})}


def correlation_of_pairs() -> Mapping[str, Expected]:
    grid = Grid(-1 + 1e-6, 1 - 1e-6)
    r = grid.points
    log_density = 0.5 * np.log1p(-(r**2))
    for x, y in ((1.0, 0.5), (-0.8, -1.2), (0.3, 0.9)):
        log_density = log_density - 0.5 * np.log1p(-(r**2)) - (x * x - 2 * r * x * y + y * y) / (2 * (1 - r**2))
    return {"r": grid.cdf(log_density)}


def lognormal_median() -> Mapping[str, Expected]:
    # log s is normal with mean m, itself normal(0, 1); both given log 2 and log 5 with spread 0.5, and s seen as 1.5
    grid = Grid(-6.0, 7.0, 40_001)
    m = grid.points
    seen = sum(stats.norm.logpdf(math.log(x), m, 0.5) for x in (2.0, 5.0))
    log_s = np.linspace(-6.0, 3.0, 4001)
    likelihood = stats.norm.pdf(1.5, np.exp(log_s), 0.5)
    precision = 1 / (1 / 1.0 + 2 / 0.25)
    mean = precision * (math.log(2.0) + math.log(5.0)) / 0.25
    weights = stats.norm.pdf(log_s, mean, math.sqrt(precision + 0.7**2)) * likelihood
    points = np.array([0.6, 1.0, 1.4, 1.8, 2.2])
    s_cdf = [weights[np.exp(log_s) <= x].sum() / weights.sum() for x in points]
    given_s = np.array([np.dot(stats.norm.pdf(log_s, x, 0.7), likelihood) for x in m[::20]])
    return {
        "m": grid.cdf(-0.5 * m**2 + seen + np.log(np.interp(m, m[::20], given_s))),
        "s": Cdf(points, np.array(s_cdf)),
    }


def variance_of_normals() -> Mapping[str, Expected]:
    return {"v": cdf(stats.invgamma((3 + 3) / 2, scale=0.5 * (1 + 0.4**2 + 1.1**2 + 2.0**2)))}


def waiting_time() -> Mapping[str, Expected]:
    grid = Grid(1e-3, 40.0)
    scale = grid.points
    log_density = np.log(scale) - scale
    for x in (0.8, 2.5, 1.7):
        log_density = log_density + stats.weibull_min.logpdf(x, 1.5, scale=scale)
    return {"scale": grid.cdf(log_density)}


def above_a_random_bound() -> Mapping[str, Expected]:
    # p(x) = integral over low up to x of gamma(low; 3, 2) 3 low^3 / x^4, an incomplete gamma function
    x = np.linspace(0.005, 12.0, 24_000)
    marginal = x**-4 * special.gammainc(6, 2 * x) * stats.norm.pdf(2.5, x, 0.5)
    points = np.array([1.4, 1.8, 2.1, 2.4, 2.9])
    x_cdf = np.array([marginal[x <= point].sum() for point in points]) / marginal.sum()
    # given x, low has density low^5 exp(-2 low) up to x
    at = np.array([0.9, 1.3, 1.6, 1.9, 2.3])
    low_cdf = [(marginal / special.gammainc(6, 2 * x) * special.gammainc(6, 2 * np.minimum(x, p))).sum() for p in at]
    return {"x": Cdf(points, x_cdf), "low": Cdf(at, np.array(low_cdf) / marginal.sum())}


def direction() -> Mapping[str, Expected]:
    # exponents add as vectors: von Mises again, around a mean near the seam
    terms = [(0.7, 2.5), (2.0, 3.1), (1.5, -2.9)]
    x, y = (sum(k * of(m) for k, m in terms) for of in (math.cos, math.sin))
    posterior = stats.vonmises(math.hypot(x, y), loc=math.atan2(y, x))
    grid = Grid(-math.pi, math.pi)
    cosine = np.exp(posterior.logpdf(grid.points)) * np.cos(grid.points)
    return {
        "theta": grid.cdf(posterior.logpdf(grid.points)),
        "cosine": Mean(float(np.trapezoid(cosine, grid.points))),
    }


def compositions(n: int) -> list[tuple[int, int, int]]:
    return [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]


def latent_counts() -> Mapping[str, Expected]:
    weights = {}
    for k in compositions(3):
        prior = float(np.exp(stats.multinomial.logpmf(k, 3, [0.2, 0.5, 0.3])))
        weights[k] = prior * normal_pdf(4.0, k[1] + 2 * k[2], 1.0)
    return {"k": pushforward(weights, lambda a, b, c: a + 4 * b)}


def observed_counts() -> Mapping[str, Expected]:
    return {"p0": cdf(stats.beta(1.5 + 4, 4.0 + 2)), "p2": cdf(stats.beta(2.5 + 2, 3.0 + 4))}


def scores() -> Mapping[str, Expected]:
    grid = Grid(-8.0, 8.0)
    a = grid.points
    given = special.log_softmax(np.stack([np.zeros_like(a), a, -a]), axis=0)
    joint = [-0.5 * a**2 + given[0] + given[k] + math.log(normal_pdf(1.6, k, 0.7)) for k in range(3)]
    return {"a": grid.cdf(np.logaddexp.reduce(joint)), "k": grid.table(joint)}


SCALE = np.array([[1.0, 0.3], [0.3, 0.5]])
SEEN = np.array([[2.5, -0.4], [-0.4, 1.5]])


def precision_matrix() -> Mapping[str, Expected]:
    # the likelihood of X as the scale of an inverse Wishart is |X|^(3.5/2) exp(-tr(X Y^-1) / 2)
    df, scale = 4.5 + 3.5, np.linalg.inv(np.linalg.inv(SCALE) + np.linalg.inv(SEEN))
    total = np.ones(2)
    return {
        "x00": cdf(stats.chi2(df, scale=scale[0, 0])),
        "sum": cdf(stats.chi2(df, scale=total @ scale @ total)),
        "x01": Mean(df * scale[0, 1]),
    }


POINTS = np.array([[0.7, 0.3], [-0.6, 0.2], [0.3, -0.5]])
SUM_OF_OTHERS = np.array([[1.6, 0.2], [0.2, 0.7]])


def covariance_matrix() -> Mapping[str, Expected]:
    df, scale = 6 + 3 + 3, SCALE + POINTS.T @ POINTS + SUM_OF_OTHERS
    return {
        "c00": cdf(stats.invgamma((df - 1) / 2, scale=scale[0, 0] / 2)),
        "c11": cdf(stats.invgamma((df - 1) / 2, scale=scale[1, 1] / 2)),
        "c01": Mean(scale[0, 1] / (df - 3)),
    }


def dirichlet_alphas() -> Mapping[str, Expected]:
    weights = {}
    for a, w in itertools.product((1, 2, 3), range(3)):
        alphas, counts = np.array([a, 2.0, 0.5]), np.array([2, 0, 1]) + (np.arange(3) == w)
        rising = special.gammaln(alphas + counts) - special.gammaln(alphas)
        total = special.gammaln(alphas.sum()) - special.gammaln(alphas.sum() + 4)
        weights[a, w] = math.exp(float(rising.sum() + total))
    return {"aw": pushforward(weights, lambda a, w: 3 * a + w)}


def vector_of_effects() -> Mapping[str, Expected]:
    # m, z0 and z1 given their noisy values: normal, the precisions adding up
    prior = np.linalg.inv([[1.0, 1.0, 2.0], [1.0, 2.0, 2.0], [2.0, 2.0, 5.0]])
    cov = np.linalg.inv(prior + np.diag([0.0, 4.0, 4.0]))
    mean = cov @ [0.0, 4 * 1.5, 4 * 0.9]
    return {name: cdf(stats.norm(mean[i], math.sqrt(cov[i, i]))) for i, name in enumerate(("m", "z0", "z1"))}


def vector_of_switches() -> Mapping[str, Expected]:
    weights = {}
    for k in itertools.product((0, 1), repeat=3):
        prior = math.prod(p if on else 1 - p for on, p in zip(k, (0.3, 0.6, 0.8), strict=True))
        weights[k] = prior * normal_pdf(2.4, k[0] + 1.5 * k[1] + 0.5 * k[2], 1.0)
    return {"k": pushforward(weights, lambda a, b, c: a + 2 * b + 4 * c)}


def case(
    name: str,
    program: str,
    query: Mapping[str, str],
    exact: Callable[[], Mapping[str, Expected]],
    engines: tuple[str, ...],
    derivation: str,
    **parameters: np.ndarray,
) -> Case:
    return Case(name, program, query, exact, engines, derivation, parameters)


CASES = (
    case(
        "vector_of_effects",
        """
            [assume m (normal 0 1)] [assume z (normal (* m (vector 1 2)) 1)]
            [observe (normal (+ z (vector 0 0.1)) 0.5) {Y}]""",
        {"m": "m", "z0": "(lookup z 0)", "z1": "(lookup z 1)"},
        vector_of_effects,
        ("(mh default one 'drift 0.7 8)", "(hmc default all 0.3 5 3)", "(slice default one 1.5 4 2)"),
        "Linear and normal: precisions add.",
        Y=np.array([1.5, 1.0]),
    ),
    case(
        "vector_of_switches",
        """
            [assume k (flip (vector 0.3 0.6 0.8))]
            [observe (normal (dot k (vector 1 1.5 0.5)) 1) 2.4]""",
        {"k": "(dot k (vector 1 2 4))"},
        vector_of_switches,
        ("(gibbs default one 1)", PRIOR),
        "Enumeration of the eight vectors.",
    ),
    case(
        "failures_before_successes",
        """
            [assume p (beta 2 1.5)]
            [observe (neg_binomial 3 p) 4] [observe (neg_binomial 2.5 p) 1]""",
        {"p": "p"},
        failures_before_successes,
        (PRIOR, "(mh default one 'drift 1.0 6)"),
        "Beta prior: successes r and failures add.",
    ),
    case(
        "scale_half_student_t",
        """
            [assume s (half_student_t 3 1.5)]
            [observe (normal 0 s) 0.4] [observe (normal 0 s) 1.1] [observe (normal 0 s) 2]""",
        {"s": "s"},
        scale_with_heavy_tail,
        (PRIOR, "(mh default one 'drift 1.0 6)", "(slice default one 1.0 4 4)"),
        "One-dimensional quadrature.",
    ),
    case(
        "truncated_far_out",
        "[assume x (truncated_normal -40 1 0 1)] [observe (normal x 0.03) 0.06]",
        {"x": "x"},
        truncated_far_out,
        (PRIOR, "(mh default one 'drift 1.0 8)", "(hmc default all 0.3 4 4)"),
        "One-dimensional quadrature of exp(-40 x - x^2 / 2) times the likelihood.",
    ),
    case(
        "truncated_around_a_mean",
        """
            [assume m (normal 0 1)] [assume x (truncated_normal m 1 0 2)] [observe (normal x 0.5) 1.7]""",
        {"m": "m", "x": "x"},
        truncated_around_a_mean,
        ("(mh default one 12)", "(mh default one 'drift 1.0 16)", "(hmc default all 0.4 5 4)"),
        "Two-dimensional quadrature; the mass between the bounds depends on the mean.",
    ),
    case(
        "overdispersed_successes",
        "[assume k (beta_binomial 6 2 3)] [observe (binomial k 0.5) 2]",
        {"k": "k"},
        overdispersed_successes,
        (PRIOR, "(gibbs default one 1)"),
        "Enumeration of k, whose probability is a ratio of beta functions.",
    ),
    case(
        "ordered_score",
        """
            [assume s (normal 0 1)] [assume cuts (vector -1 0.5)]
            [observe (ordered_logistic s cuts) 2] [observe (ordered_logistic s cuts) 1]
            [observe (ordered_logistic s cuts) 2]""",
        {"s": "s"},
        ordered_score,
        (PRIOR, "(mh default one 'drift 1.0 6)", "(hmc default all 0.5 4 4)"),
        "One-dimensional quadrature.",
    ),
    case(
        "weighted_words",
        """
            [assume k (categorical (list 1 3 6) 'unnormalized)]
            [assume word (lambda () (uniform_draw (list 1 (if (> k 0) 1 0) (if (> k 1) 1 0) 0)))]
            [observe (word) 1] [observe (word) 1]""",
        {"k": "k"},
        weighted_words,
        (PRIOR, "(gibbs default one 1)"),
        "Enumeration of k; equal items of the list add up.",
    ),
    case(
        "correlation_of_pairs",
        """
            [assume L (lkj_cholesky 2 1.5)]
            [observe (multivariate_normal_cholesky (vector 0 0) L) (vector 1 0.5)]
            [observe (multivariate_normal_cholesky (vector 0 0) L) (vector -0.8 -1.2)]
            [observe (multivariate_normal_cholesky (vector 0 0) L) (vector 0.3 0.9)]""",
        {"r": "(lookup (lookup L 1) 0)"},
        correlation_of_pairs,
        (PRIOR, "(mh default one 'drift 1.0 6)", "(hmc default all 0.4 4 1)", "(slice default one 1.0 4 4)"),
        "One-dimensional quadrature over the correlation, whose density is (1 - r^2)^(1/2).",
    ),
    case(
        "spread_half_normal",
        """
            [assume sd (half_normal 1.5)]
            [observe (normal 0 sd) 0.4] [observe (normal 0 sd) -1.1] [observe (normal 0 sd) 2]""",
        {"sd": "sd"},
        spread,
        ("(mh default one 'drift 0.7 8)", "(mh default one 8)"),
        "Quadrature: a half-normal prior of the standard deviation.",
    ),
    case(
        "lognormal_median",
        """
            [assume m (normal 0 1)] [assume s (lognormal m 0.7)]
            [observe (lognormal m 0.5) 2] [observe (lognormal m 0.5) 5] [observe (normal s 0.5) 1.5]""",
        {"m": "m", "s": "s"},
        lognormal_median,
        ("(mh default one 'drift 0.8 12)", "(mh default all 'drift 0.5 14)"),
        "m is normal given the two logarithms; the log of s is normal around it, weighted by what is seen of s.",
    ),
    case(
        "variance_inv_chi_sq",
        """
            [assume v (inv_chi_sq 3)]
            [observe (normal 0 (sqrt v)) 0.4] [observe (normal 0 (sqrt v)) -1.1] [observe (normal 0 (sqrt v)) 2]""",
        {"v": "v"},
        variance_of_normals,
        ("(mh default one 'drift 0.8 8)", "(mh default one 12)"),
        "An inverse gamma of shape 3/2 and scale 1/2: half the number and half the squares add.",
    ),
    case(
        "waiting_time",
        """
            [assume scale (gamma 2 1)]
            [observe (weibull 1.5 scale) 0.8] [observe (weibull 1.5 scale) 2.5] [observe (weibull 1.5 scale) 1.7]""",
        {"scale": "scale"},
        waiting_time,
        ("(mh default one 'drift 0.6 6)", PRIOR),
        "Quadrature over the scale.",
    ),
    case(
        "above_a_random_bound",
        """
            [assume low (gamma 3 2)] [assume x (pareto 3 low)]
            [observe (normal x 0.5) 2.5]""",
        {"low": "low", "x": "x"},
        above_a_random_bound,
        (
            "(mh default all 'drift 0.8 14)",
            "(mh default one 14)",
            "(mh default one 'drift 0.8 16)",
            "(cycle ((mh default all 'drift 0.5 2) (mh default one 1)) 6)",
        ),
        "low integrated out by an incomplete gamma function; a drift of both moves x between two bounds.",
    ),
    case(
        "direction",
        """
            [assume theta (von_mises 2.5 0.7)]
            [observe (von_mises theta 2) 3.1] [observe (von_mises theta 1.5) -2.9]""",
        {"theta": "theta", "cosine": "(cos theta)"},
        direction,
        ("(mh default one 'drift 0.9 6)", PRIOR),
        "Von Mises prior and likelihoods: concentrations add as vectors; the posterior lies across the seam at pi.",
    ),
    case(
        "latent_counts",
        """
            [assume k (multinomial 3 (vector 0.2 0.5 0.3))]
            [observe (normal (dot k (vector 0 1 2)) 1) 4]""",
        {"k": "(+ (lookup k 0) (* 4 (lookup k 1)))"},
        latent_counts,
        ("(gibbs default one 1)", PRIOR, "(gibbs default all 1)"),
        "Enumeration of the ten compositions of 3.",
    ),
    case(
        "observed_counts",
        """
            [assume p (dirichlet (vector 1.5 1.5 2.5))]
            [observe (multinomial 6 p) {N}]""",
        {"p0": "(lookup p 0)", "p2": "(lookup p 2)"},
        observed_counts,
        ("(mh default one 10)", "(mh default one 'drift 0.8 8)"),
        "Dirichlet prior: counts add; marginals of a Dirichlet are beta.",
        N=np.array([4.0, 0.0, 2.0]),
    ),
    case(
        "scores",
        """
            [assume a (scope_include 'a 0 (normal 0 1))]
            [assume k (scope_include 'k 0 (softmax_categorical (vector 0 a (- a))))]
            [observe (softmax_categorical (vector 0 a (- a))) 0] [observe (normal k 0.7) 1.6]""",
        {"a": "a", "k": "k"},
        scores,
        (
            "(cycle ((gibbs k one 1) (mh a one 'drift 1.5 2)) 2)",
            "(cycle ((gibbs k all 1) (mh a one 2)) 4)",
            "(mh default one 12)",
        ),
        "Quadrature over a for each of the three k.",
    ),
    case(
        "precision_matrix",
        "[assume x (wishart 4.5 {S})] [observe (inv_wishart 3.5 x) {Y}]",
        {
            "x00": "(lookup (lookup x 0) 0)",
            "sum": "(+ (dot (lookup x 0) (vector 1 1)) (dot (lookup x 1) (vector 1 1)))",
            "x01": "(lookup (lookup x 0) 1)",
        },
        precision_matrix,
        ("(mh default one 'drift 0.5 10)", "(mh default one 12)"),
        "Wishart prior of an inverse Wishart's scale: degrees of freedom and inverse scales add.",
        S=SCALE,
        Y=SEEN,
    ),
    case(
        "covariance_matrix",
        """
            [assume c (inv_wishart 6 {S})]
            [observe (multivariate_normal (vector 0 0) c) {X[1]}]
            [observe (multivariate_normal (vector 0 0) c) {X[2]}]
            [observe (multivariate_normal (vector 0 0) c) {X[3]}]
            [observe (wishart 3 c) {Y}]""",
        {"c00": "(lookup (lookup c 0) 0)", "c11": "(lookup (lookup c 1) 1)", "c01": "(lookup (lookup c 1) 0)"},
        covariance_matrix,
        ("(mh default one 'drift 0.4 8)", "(mh default all 'drift 0.5 12)"),
        "Inverse Wishart prior: the number and the outer products of the normal vectors, and the Wishart's, add.",
        S=SCALE,
        X=POINTS,
        Y=SUM_OF_OTHERS,
    ),
    *(
        case(
            name,
            f"""
                [assume a (scope_include 'a 0 (uniform_discrete 1 4))] [assume f ({maker} (vector a 2 0.5))]
                [observe (f) 0] [observe (f) 2] [observe (f) 0] [assume w (scope_include 'w 0 (f))]""",
            {"aw": "(+ (* 3 a) w)"},
            dirichlet_alphas,
            engines,
            "Dirichlet-multinomial marginal likelihood for each a, with w as a fourth application.",
        )
        for name, maker, engines in (
            (
                "dir_mult",
                "make_dir_mult",
                ("(gibbs default one 4)", PRIOR, "(gibbs default all 1)"),
            ),
            (
                "uncollapsed_dir_mult",
                "make_uc_dir_mult",
                (
                    "(cycle ((gibbs a one 1) (gibbs w one 1) (mh default each 1)) 2)",
                    "(cycle ((gibbs a all 1) (mh default one 3)) 4)",
                ),
            ),
        )
    ),
    case(
        "uncollapsed_normal_inv_chi_sq",
        """
            [assume m (normal 0 2)] [assume f (make_uc_normal_inv_chi_sq m 1 3 2)]
            [observe (f) 1] [observe (f) 2.5] [assume w (f)]""",
        {"m": "m", "w": "w"},
        normal_inv_chi_sq,
        ("(mh default one 24)", "(mh default each 4)"),
        "As make_normal_inv_chi_sq, whose mean and variance are integrated out.",
    ),
)
