"""Mixtures: CRP and finite, collapsed and not, against all partitions of a few data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from scipy import special, stats

from tests.posterior.case import Case
from tests.posterior.derive import (
    Grid,
    groups,
    iid_normal_evidence,
    log_crp,
    mixture_cdf,
    partition_code,
    partition_expression,
    partitions,
    pushforward,
    table,
)
from tests.statistics import Expected

FOUR = partition_expression(["(z 1)", "(z 2)", "(z 3)", "(z 4)"])
REALS = (-1.0, -0.4, 1.3, 1.9)


def posterior_over_partitions(
    data: Sequence[float],
    log_prior: Callable[[tuple[int, ...]], float],
    log_evidence: Callable[[list[float]], float],
) -> dict[float, float]:
    """Weight of each partition's code when each part's data have this marginal likelihood."""
    return {
        partition_code(p): math.exp(log_prior(p) + math.fsum(map(log_evidence, groups(p, data))))
        for p in partitions(len(data))
    }


def beta_evidence(part: list[float]) -> float:
    heads = sum(part)
    return float(special.betaln(0.5 + heads, 0.5 + len(part) - heads) - special.betaln(0.5, 0.5))


def coins() -> Mapping[str, Expected]:
    return {"z": table(posterior_over_partitions((1, 1, 0, 1), lambda p: log_crp(p, 1.0), beta_evidence))}


def normals() -> Mapping[str, Expected]:
    weights = posterior_over_partitions(
        REALS, lambda p: log_crp(p, 1.0), lambda part: iid_normal_evidence(part, 0.0, 2.0, 0.8)
    )
    return {"z": table(weights)}


def atoms(alpha: float, discount: float) -> Mapping[str, Expected]:
    """Partitions of the data by their atoms, and the first one's atom."""
    weights, firsts = {}, []
    for p in partitions(len(REALS)):
        parts = groups(p, REALS)
        log_p = log_crp(p, alpha, discount) + math.fsum(iid_normal_evidence(part, 0.5, 2.0, 0.8) for part in parts)
        weights[partition_code(p)] = math.exp(log_p)
        precision = 1 / 4 + len(parts[0]) / 0.64
        firsts.append(stats.norm((0.5 / 4 + sum(parts[0]) / 0.64) / precision, precision**-0.5))
    return {"z": table(weights), "first": mixture_cdf(list(weights.values()), firsts)}


ATOMS = partition_expression(["(x 1)", "(x 2)", "(x 3)", "(x 4)"])


def process(name: str, maker: str, alpha: float, discount: float) -> Case:
    return Case(
        name=name,
        program=f"""
            [assume g ({maker} (lambda () (normal 0.5 2)))]
            [assume x (mem (lambda (i) (g)))]
            [observe (normal (x 1) 0.8) -1] [observe (normal (x 2) 0.8) -0.4]
            [observe (normal (x 3) 0.8) 1.3] [observe (normal (x 4) 0.8) 1.9]""",
        query={"z": ATOMS, "first": "(x 1)"},
        exact=lambda: atoms(alpha, discount),
        engines=(
            "(mh default each 6)",
            "(cycle ((gibbs (choices x) each 1) (mh (choices g) each 'drift 0.8 2)) 2)",
            "(cycle ((mh (choices x) one 6) (mh (choices g) all 'drift 0.5 2)) 3)",
        ),
        derivation="All 15 partitions by their probability in a Chinese restaurant, normal marginal likelihoods.",
    )


def student_evidence(part: list[float]) -> float:
    """Normal-inverse-chi-squared(0, 0.5, 3, 1): product of Student t predictives."""
    mean, kappa, nu, var, total = 0.0, 0.5, 3.0, 1.0, 0.0
    for x in part:
        total += float(stats.t.logpdf(x, nu, mean, math.sqrt(var * (kappa + 1) / kappa)))
        var = (nu * var + kappa / (kappa + 1) * (x - mean) ** 2) / (nu + 1)
        mean = (kappa * mean + x) / (kappa + 1)
        kappa, nu = kappa + 1, nu + 1
    return total


def random_concentration() -> Mapping[str, Expected]:
    grid = Grid(1e-4, 50.0, 50_001)
    alpha = grid.points
    base = np.log(alpha) - alpha - sum(np.log(alpha + k) for k in range(len(REALS)))
    weights, joint = {}, []
    for p in partitions(len(REALS)):
        log_p = base + len(set(p)) * np.log(alpha) + sum(math.lgamma(p.count(k)) for k in set(p))
        log_p = log_p + math.fsum(map(student_evidence, groups(p, REALS)))
        weights[partition_code(p)] = grid.mass(log_p)
        joint.append(log_p)
    return {"z": table(weights), "alpha": grid.cdf(np.logaddexp.reduce(joint))}


def log_finite(partition: tuple[int, ...]) -> float:
    """Log probability of a partition under two labels with symmetric Dirichlet(1) weights."""
    if len(set(partition)) > 2:
        return -math.inf
    n, first = len(partition), partition.count(0)
    labelings = 2.0
    return math.log(labelings) + math.lgamma(first + 1) + math.lgamma(n - first + 1) - math.lgamma(n + 2)


def finite_mixture() -> Mapping[str, Expected]:
    weights = posterior_over_partitions(REALS, log_finite, lambda part: iid_normal_evidence(part, 0.0, 2.0, 0.8))
    return {"z": table({code: w for code, w in weights.items() if w > 0})}


def categories() -> Mapping[str, Expected]:
    def evidence(part: list[float]) -> float:
        counts = [part.count(k) for k in range(3)]
        return (
            math.fsum(math.lgamma(0.5 + c) - math.lgamma(0.5) for c in counts)
            + math.lgamma(1.5)
            - math.lgamma(1.5 + len(part))
        )

    return {"z": table(posterior_over_partitions((0, 0, 2, 1), lambda p: log_crp(p, 0.8, 0.3), evidence))}


def seatings(groups_of: Sequence[int], alpha: float, top_alpha: float) -> Iterator[tuple[tuple[int, ...], float]]:
    """Dishes of customers in a Chinese restaurant franchise (Teh et al. 2006) with their probabilities.

    A state is (dish of each customer, tables of each restaurant as (dish, customers), tables of each dish).
    """
    states: list[tuple[tuple[int, ...], dict[int, tuple[tuple[int, int], ...]], tuple[int, ...], float]]
    states = [((), {}, (), 1.0)]
    for restaurant in groups_of:
        following = []
        for dishes, tables, menu, p in states:
            here = tables.get(restaurant, ())
            seated = sum(n for _, n in here)
            for k, (dish, n) in enumerate(here):
                grown = (*here[:k], (dish, n + 1), *here[k + 1 :])
                following.append(((*dishes, dish), {**tables, restaurant: grown}, menu, p * n / (seated + alpha)))
            for dish in range(len(menu) + 1):
                weight = menu[dish] if dish < len(menu) else top_alpha
                q = p * alpha / (seated + alpha) * weight / (sum(menu) + top_alpha)
                ordered = (*menu[:dish], weight + 1, *menu[dish + 1 :]) if dish < len(menu) else (*menu, 1)
                following.append(((*dishes, dish), {**tables, restaurant: (*here, (dish, 1))}, tuple(ordered), q))
        states = following
    for dishes, _, _, p in states:
        yield dishes, p


def franchise() -> Mapping[str, Expected]:
    data, weights = (1, 1, 0, 1), {}
    for dishes, p in seatings((0, 0, 1, 1), 1.0, 1.5):
        evidence = math.fsum(map(beta_evidence, groups(dishes, data)))
        code = partition_code(dishes)
        weights[code] = weights.get(code, 0.0) + p * math.exp(evidence)
    return {"dishes": table(weights)}


def two_features() -> Mapping[str, Expected]:
    first, second = (1, 1, 0, 0), (1, 0, 0, 0)
    weights = {
        partition_code(p): math.exp(
            log_crp(p, 1.0)
            + math.fsum(map(beta_evidence, groups(p, first)))
            + math.fsum(map(beta_evidence, groups(p, second)))
        )
        for p in partitions(4)
    }
    return {"z": table(weights)}


def three_components() -> Mapping[str, Expected]:
    # Labels 0, 1, 2 with known weights; component means N(k - 1, 1).
    weights = {}
    for z in np.ndindex(3, 3, 3):
        prior = math.prod((0.5, 0.3, 0.2)[k] for k in z)
        evidence = math.fsum(
            iid_normal_evidence([x for x, k in zip((-1.0, 0.2, 1.5), z, strict=True) if k == c], c - 1.0, 1.0, 0.7)
            for c in set(z)
        )
        weights[tuple(z)] = prior * math.exp(evidence)
    return {"z": pushforward(weights, lambda a, b, c: a + 3 * b + 9 * c)}


CASES = (
    Case(
        name="crp_of_coins",
        program="""
            [assume crp (make_crp 1)]
            [assume z (mem (lambda (i) (scope_include 'z i (crp))))]
            [assume coin (mem (lambda (t) (make_beta_bernoulli 0.5 0.5)))]
            [observe ((coin (z 1))) true] [observe ((coin (z 2))) true]
            [observe ((coin (z 3))) false] [observe ((coin (z 4))) true]""",
        query={"z": FOUR},
        exact=coins,
        engines=(
            "(mh default one 7)",
            "(mh z each 2)",
            "(mh z ordered 4)",
            "(mh default all 6)",
            "(gibbs z one 6)",
            "(gibbs z each 2)",
            "(gibbs z all 1)",
            "(cycle ((gibbs z (ordered_range 1 2) 1) (mh z one 3)) 3)",
        ),
        derivation="All 15 partitions, beta-binomial within a part.",
    ),
    Case(
        name="crp_of_normals",
        program="""
            [assume crp (make_crp 1)]
            [assume z (mem (lambda (i) (scope_include 'z i (crp))))]
            [assume mean (mem (lambda (t) (scope_include 'means t (normal 0 2))))]
            [observe (normal (mean (z 1)) 0.8) -1] [observe (normal (mean (z 2)) 0.8) -0.4]
            [observe (normal (mean (z 3)) 0.8) 1.3] [observe (normal (mean (z 4)) 0.8) 1.9]""",
        query={"z": FOUR},
        exact=normals,
        engines=(
            "(mh default one 40)",
            "(mh default each 8)",
            "(cycle ((gibbs z one 4) (mh means each 2)) 2)",
            "(cycle ((gibbs z each 1) (mh means each 'drift 0.8 2)) 2)",
            "(cycle ((mh z each 2) (mh means one 3)) 3)",
            "(cycle ((gibbs z ordered 1) (mh means each 1)) 3)",
            "(mixture (0.6 (gibbs z one 1) 0.4 (mh means one 1)) 14)",
        ),
        derivation="All 15 partitions, normal marginal likelihood within a part; tables bring means into being.",
    ),
    Case(
        name="crp_with_random_concentration",
        program="""
            [assume alpha (scope_include 'alpha 0 (gamma 2 1))] [assume crp (make_crp alpha)]
            [assume z (mem (lambda (i) (scope_include 'z i (crp))))]
            [assume part (mem (lambda (t) (make_normal_inv_chi_sq 0 0.5 3 1)))]
            [observe ((part (z 1))) -1] [observe ((part (z 2))) -0.4]
            [observe ((part (z 3))) 1.3] [observe ((part (z 4))) 1.9]""",
        query={"z": FOUR, "alpha": "alpha"},
        exact=random_concentration,
        engines=(
            "(mh default one 20)",
            "(mh default each 5)",
            "(cycle ((gibbs z one 4) (mh alpha one 2)) 2)",
            "(cycle ((gibbs z each 1) (mh alpha one 'drift 1.0 2)) 2)",
            "(cycle ((mh z each 2) (mh alpha all 2)) 3)",
        ),
        derivation="All 15 partitions, Student t predictives within a part; quadrature over alpha.",
    ),
    Case(
        name="finite_mixture",
        program="""
            [assume weights (scope_include 'weights 0 (symmetric_dirichlet 1 2))]
            [assume z (mem (lambda (i) (scope_include 'z i (categorical weights))))]
            [assume mean (mem (lambda (k) (scope_include 'means k (normal 0 2))))]
            [observe (normal (mean (z 1)) 0.8) -1] [observe (normal (mean (z 2)) 0.8) -0.4]
            [observe (normal (mean (z 3)) 0.8) 1.3] [observe (normal (mean (z 4)) 0.8) 1.9]""",
        query={"z": FOUR},
        exact=finite_mixture,
        engines=(
            "(mh default one 50)",
            "(mh default each 10)",
            "(cycle ((gibbs z one 4) (mh means each 2) (mh weights one 2)) 3)",
            "(cycle ((gibbs z all 1) (mh means each 'drift 0.8 2) (mh weights all 2)) 3)",
        ),
        derivation="All partitions into at most two parts: Dirichlet-multinomial prior, normal marginal likelihoods.",
    ),
    Case(
        name="pitman_yor_of_categories",
        program="""
            [assume crp (make_crp 0.8 0.3)]
            [assume z (mem (lambda (i) (crp)))]
            [assume part (mem (lambda (t) (make_sym_dir_mult 0.5 3)))]
            [observe ((part (z 1))) 0] [observe ((part (z 2))) 0]
            [observe ((part (z 3))) 2] [observe ((part (z 4))) 1]""",
        query={"z": FOUR},
        exact=categories,
        engines=(
            "(mh default one 7)",
            "(mh default each 4)",
            "(mh default all 8)",
            "(gibbs default one 6)",
            "(gibbs default each 2)",
            "(gibbs default all 1)",
        ),
        derivation="All 15 partitions under a discount of 0.3, Dirichlet-multinomial within a part.",
    ),
    Case(
        name="franchise",
        program="""
            [assume top (make_crp 1.5)]
            [assume restaurant (mem (lambda (g) (make_crp 1)))]
            [assume dish (mem (lambda (g t) (top)))]
            [assume table (mem (lambda (i) ((restaurant (if (< i 3) 0 1)))))]
            [assume z (mem (lambda (i) (dish (if (< i 3) 0 1) (table i))))]
            [assume coin (mem (lambda (d) (make_beta_bernoulli 0.5 0.5)))]
            [observe ((coin (z 1))) true] [observe ((coin (z 2))) true]
            [observe ((coin (z 3))) false] [observe ((coin (z 4))) true]""",
        query={"dishes": FOUR},
        exact=franchise,
        engines=(
            "(mh default one 8)",
            "(mh default each 5)",
            "(mh default all 8)",
            "(gibbs default one 10)",
            "(gibbs default each 2)",
        ),
        derivation="All seatings of a Chinese restaurant franchise, counted one customer after the other.",
    ),
    Case(
        name="two_features",
        program="""
            [assume crp (make_crp 1)]
            [assume z (mem (lambda (i) (scope_include 'pair (if (< i 3) 0 1) (crp))))]
            [assume coin (mem (lambda (t f) (make_beta_bernoulli 0.5 0.5)))]
            [observe ((coin (z 1) 1)) true] [observe ((coin (z 2) 1)) true]
            [observe ((coin (z 3) 1)) false] [observe ((coin (z 4) 1)) false]
            [observe ((coin (z 1) 2)) true] [observe ((coin (z 2) 2)) false]
            [observe ((coin (z 3) 2)) false] [observe ((coin (z 4) 2)) false]""",
        query={"z": FOUR},
        exact=two_features,
        engines=(
            "(mh default one 8)",
            "(mh pair one 12)",
            "(mh pair each 6)",
            "(gibbs pair one 2)",
            "(gibbs pair each 1)",
            "(gibbs pair all 1)",
            "(gibbs default one 6)",
            "(cycle ((gibbs pair 0 1) (mh pair 1 4)) 3)",
        ),
        derivation="All 15 partitions; a block holds the tables of two data, enumerated jointly.",
    ),
    Case(
        name="three_components",
        program="""
            [assume z (mem (lambda (i) (scope_include 'z i (categorical (vector 0.5 0.3 0.2)))))]
            [assume mean (mem (lambda (k) (scope_include 'means k (normal (- k 1) 1))))]
            [observe (normal (mean (z 1)) 0.7) -1] [observe (normal (mean (z 2)) 0.7) 0.2]
            [observe (normal (mean (z 3)) 0.7) 1.5]""",
        query={"z": "(+ (z 1) (* 3 (z 2)) (* 9 (z 3)))"},
        exact=three_components,
        engines=(
            "(mh default one 24)",
            "(mh default each 6)",
            "(cycle ((gibbs z one 3) (mh means each 2)) 2)",
            "(cycle ((gibbs z all 1) (mh means one 'drift 0.8 3)) 2)",
            "(cycle ((gibbs z each 1) (mh means each 1)) 3)",
        ),
        derivation="Enumeration of 27 assignments; the means of unused components do not exist.",
    ),
    process("dirichlet_process", "make_dp 1.3", 1.3, 0.0),
    process("pitman_yor_process", "make_pitman_yor 0.8 0.4", 0.8, 0.4),
)
