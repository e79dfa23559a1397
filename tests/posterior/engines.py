"""Engines that find cases of other modules' themes: slice sampling, rejection, and proposals of the user's own."""

from __future__ import annotations

# One coordinate at a time; the cases have no discrete choice in the scope.
SLICE: dict[str, tuple[str, ...]] = {
    "normal_mean": ("(slice default one 1.5 6 2)", "(slice default one 0.3 1 60)"),
    "beta_flips": ("(slice default one 1.5 6 2)", "(slice default all 0.5 3 6)"),
    "gamma_poisson": ("(slice default one 0.4 20 2)",),
    "correlated_pair": ("(slice default one 1.5 6 5)", "(slice default all 1.5 6 3)"),
    "normal_inv_gamma": ("(slice default each 1.5 6 3)",),
    "regression": ("(slice default one 1.5 6 3)",),
    "nested_uniforms": ("(slice default each 2 4 4)",),
    "heavy_tails": ("(slice default one 3 6 4)",),
    "dirichlet_categorical": ("(slice default each 1.5 6 2)",),
    "exponential_rate": ("(slice default one 1.5 6 2)",),
    "binomial_then_normal": ("(cycle ((slice x one 1.5 6 1) (gibbs k one 1)) 4)",),
    "scale_of_normals": ("(slice default one 1.5 6 2)",),
    "above_a_random_bound": ("(slice default each 1.5 6 4)",),
    "direction": ("(slice default one 2 3 2)",),
    "covariance_matrix": ("(slice default one 1 6 2)",),
    "branch_chooses_density": ("(cycle ((slice mu one 1.5 6 1) (mh default one 3)) 4)",),
    "evidence_through_calls": ("(cycle ((slice m one 1.5 6 1) (gibbs k one 1)) 4)",),
    "continuous_predicate": ("(slice default one 2 5 2)",),
    "coin_mixture": ("(cycle ((slice weight each 1 5 1) (gibbs z each 1)) 4)",),
    "memo_of_memo": ("(slice default each 1.5 6 3)",),
    "existing_choice": ("(slice default one 1.5 6 4)",),
    "dependent_block": ("(slice s one 1.5 6 6)", "(slice s all 1.5 6 3)"),
    "nested_tags": ("(slice s each 1.5 6 4)",),
    "normal_inv_chi_sq": ("(slice default each 1.5 6 4)",),
    "sym_dir_mult": ("(cycle ((slice a one 1.5 6 1) (gibbs w one 1)) 3)",),
    "crp_concentration": ("(cycle ((slice alpha one 1.5 6 1) (gibbs w one 1)) 3)",),
    "crp_of_normals": ("(cycle ((slice means each 1.5 6 1) (gibbs z each 1)) 4)",),
    "gp_regression": ("(slice default each 1.5 6 2)",),
}

# A proposal by a lambda may be computed (a coin turned over), read the model, or make choices on the way to its value.
PROPOSAL: dict[str, tuple[str, ...]] = {
    "normal_mean": (
        "(mh default one (lambda (x) (normal x 1)) 8)",
        "(mh default one (lambda (x) (if (flip (logistic x)) (normal (- x 1) 0.5) (normal (+ x 1) 0.5))) 8)",
        "(mh default one (lambda (x) (let ((s (gamma 2 (+ 1 (* x x))))) (normal x s))) 24)",
        "(mh default one (lambda (x) (if (flip 0.2) x (normal (* 0.5 x) 1))) 10)",
    ),
    "beta_flips": (
        "(mh default one (lambda (p) (beta (+ 1 (* 4 p)) (+ 1 (* 4 (- 1 p))))) 7)",
        "(mh default one (lambda (p) (normal p 0.4)) 10)",
        "(mh default one (lambda (p) (uniform_continuous (* 0.5 p) 1)) 12)",
    ),
    "gamma_poisson": ("(mh default one (lambda (r) (gamma 4 (/ 4 r))) 10)",),
    "correlated_pair": (
        "(mh default all (lambda (a b) (list (normal (- 1 b) 0.7) (normal b 0.7))) 20)",
        "(mh default all (lambda (a b) (multivariate_normal (vector a b) (list (list 1 -0.5) (list -0.5 1)))) 16)",
        "(mh default all (lambda (a b) (let ((s (gamma 2 (+ 1 (* b b))))) (vector (normal a s) (normal b s)))) 40)",
        "(mh default one (lambda (v) (normal (* 0.5 (+ a b)) 1)) 14)",
        "(cycle ((mh default all (lambda (a b) (list a (normal (- a) 1))) 4) (mh default one 4)) 4)",
    ),
    "normal_inv_gamma": ("(mh default all (lambda (s m) (list (gamma 3 (/ 3 s)) (normal m (sqrt s)))) 24)",),
    "exponential_rate": ("(mh default one (lambda (r) (normal r 0.8)) 10)",),
    "poisson_thinning": (
        "(mh default one (lambda (n) (if (flip (/ 1 (+ 1 n))) (+ n 1) (- n 1))) 30)",
        "(mh default one (lambda (n) (+ n (uniform_discrete -2 4))) 16)",
        "(mh default one (lambda (n) (poisson (+ n 0.5))) 16)",
    ),
    "binomial_then_normal": (
        "(cycle ((mh k one (lambda (j) (+ j (uniform_discrete -1 2))) 2) "
        "(mh x one (lambda (v) (normal (* 0.5 (+ x k)) 1)) 3)) 5)",
        "(mh default all (lambda (j v) (list (uniform_discrete 0 5) (normal (* 0.5 (+ v k)) 1))) 24)",
    ),
    "sprinkler": (
        "(mh default one (lambda (z) (not z)) 12)",
        "(cycle ((mh default all (lambda (a b c) (list c b a)) 2) (mh default one 3)) 4)",
    ),
    "choice_in_branch": ("(mh default one (lambda (v) (if (is_boolean v) (not v) (normal v 1))) 5)",),
    "counts_differ": ("(mh default one (lambda (v) (if (is_boolean v) (flip 0.7) (normal v 1))) 16)",),
    "nested_flips": ("(mh default one (lambda (v) (not v)) 14)",),
    "geometric": ("(mh default one (lambda (v) (not v)) 16)", "(mh default one (lambda (v) (flip (/ 1 (+ 2 n)))) 16)"),
    "tree_size": ("(mh default one (lambda (v) (flip (if v 0.3 0.9))) 20)",),
    "shared_walk": ("(mh default one (lambda (v) (not v)) 14)",),
    "two_keys": ("(cycle ((mh keys one (lambda (v) (not v)) 3) (mh f one 2)) 6)",),
    "hidden_chain": ("(mh s one (lambda (v) (flip (if v 0.3 0.6))) 14)", "(mh s one (lambda (v) (not v)) 12)"),
    "latent_draws": ("(mh default one (lambda (v) (not v)) 8)",),
    "maker_in_branch": ("(mh default one (lambda (v) (flip (if v 0.2 0.6))) 10)",),
    "coins_by_key": ("(mh default one (lambda (v) (not v)) 14)",),
    "three_components": ("(cycle ((mh z one (lambda (k) (mod (+ k 1 (flip)) 3)) 4) (mh means one 4)) 6)",),
}

# With bounds of whatever the block changes; `all` where the data are few.
REJECTION: dict[str, tuple[str, ...]] = {
    "normal_mean": ("(rejection default one 1)",),
    "beta_flips": ("(rejection default one 1)",),
    "gamma_poisson": ("(rejection default one 1)",),
    "correlated_pair": ("(rejection default one 4)", "(rejection default all 1)"),
    "normal_inv_gamma": ("(rejection default each 2)",),
    "regression": ("(rejection default one 1)",),
    "nested_uniforms": ("(rejection default each 2)", "(rejection default all 1)"),
    "heavy_tails": ("(rejection default one 1)",),
    "dirichlet_categorical": ("(rejection default each 1)",),
    "exponential_rate": ("(rejection default one 1)",),
    "sprinkler": ("(rejection default each 2)", "(rejection default all 1)"),
    "scale_of_normals": ("(rejection default one 1)",),
    "lognormal_median": ("(rejection default each 2)",),
    "above_a_random_bound": ("(rejection default all 1)",),
    "direction": ("(rejection default one 1)",),
    "latent_counts": ("(rejection default one 1)",),
    "choice_in_branch": ("(rejection default one 4)",),
    "counts_differ": ("(rejection default one 3)", "(rejection default all 1)"),
    "three_families": ("(rejection default one 3)",),
    "exclusive_or": ("(rejection default all 1)",),
    "one_way_out": ("(rejection default each 1)",),
    "operator_by_branch": ("(rejection default one 4)",),
    "random_procedure_or_lambda": ("(rejection default all 1)",),
    "geometric": ("(rejection default one 5)", "(rejection default all 1)"),
    "random_list": ("(rejection default one 4)",),
    "random_key": ("(rejection default one 4)",),
    "two_keys": ("(rejection keys all 1)", "(rejection default each 1)"),
    "memo_of_memo": ("(rejection default each 2)",),
    "existing_choice": ("(rejection default each 1)",),
    "hidden_chain": ("(rejection s ordered 2)", "(rejection s all 1)"),
    "block_gains_a_choice": ("(rejection s one 4)",),
    "choices_come_and_go": ("(rejection s one 6)",),
    "conditional_members": ("(rejection s one 5)",),
    "count_within_a_block": ("(rejection s one 3)",),
    "beta_bernoulli": ("(rejection default each 2)",),
    "crp_concentration": ("(rejection default each 1)",),
    "seating_plan": ("(rejection default each 2)",),
    "number_of_tables": ("(rejection default each 2)",),
    "hmm_emissions": ("(rejection default each 2)",),
}

# Bounds touch at the mode or where nothing is known, brightness is drawn one way or the other, each move moves; blocks
# are moved by other kernels too, and the likelihood's scale and the prior's, by which bounds are made anew or kept. A
# normal likelihood is its own bound.
FIREFLY: dict[str, tuple[str, ...]] = {
    "logistic_slope": (
        "(flymc w all auto 'untuned 0.3 'drift 1.5 4)",
        "(flymc w all 'jaakkola_jordan 'map 0.1 'mala 1.2 'precondition 4)",
        "(flymc w 0 auto 'untuned 0.5 'slice 2 'explicit 0.5 4)",
        "(cycle ((flymc w all auto 'map 0.2 'drift 1.5 'explicit 0.3 2) (mh w one 1)) 3)",
    ),
    "robust_line": (
        "(cycle ((flymc w 0 auto 'map 0.3 'drift 0.7 5) (mh s 0 'drift 0.9 3)) 2)",
        "(cycle ((flymc w 0 gaussian_tangent 'untuned 0.3 'mala 0.7 3) (mh w 0 'drift 0.7 1) (mh s 0 'drift 0.9 2)) 1)",
        "(cycle ((flymc w 0 auto 'untuned 0.5 'slice 1.5 3) (mh s one 'drift 0.9 3)) 2)",
    ),
    "slope_of_unknown_scale": (
        "(cycle ((flymc w all auto 'untuned 0.3 'drift 1.2 3) (mh tau one 'drift 0.9 2)) 1)",
        "(cycle ((flymc w all auto 'map 0.3 'mala 0.8 4) (mh tau one 'drift 0.9 3)) 2)",
        "(cycle ((flymc w all auto 'map 0.3 'drift 1 'precondition 4) (mh default one 4)) 2)",
    ),
    "three_likelihoods": ("(flymc w all auto 'untuned 0.5 'mala 0.6 3)", "(flymc w one auto 'map 0.2 'drift 0.8 5)"),
    "regression": ("(flymc default one auto 'map 0.5 'drift 1 8)", "(flymc default all auto 'map 0.5 'slice 2 6)"),
    "normal_mean": ("(flymc default one auto 'map 0.5 'mala 1.2 'precondition 3)",),
}

# Steps so long that a tenth to a half of the proposals is refused: a test left out, or a gradient that is wrong, shows.
GRADIENT: dict[str, tuple[str, ...]] = {
    "normal_mean": ("(mala default one 1.2 3)", "(hmc default one 0.9 3 2)", "(nuts default one 'step 1.2 2)"),
    "beta_flips": ("(mala default one 0.9 4)", "(hmc default all 1.3 2 'precondition 2)"),
    "gamma_poisson": ("(mala default one 0.7 4)", "(mh default one 'drift 2 'precondition 8)"),
    "correlated_pair": (
        "(hmc default all 0.6 3 2)",
        "(mala default all 0.9 4)",
        "(mala default one 1.2 12)",
        "(mh default all 'drift 1.5 'precondition 10)",
        "(hmc default all 1.2 2 'precondition 2)",
        "(nuts default all 'step 1.1 2)",
    ),
    "normal_inv_gamma": ("(hmc default all 0.5 4 2)", "(mala default all 1.1 'precondition 4)"),
    "regression": (
        "(hmc default one 0.4 4 3)",
        "(mala default all 1.2 'precondition 3)",
        "(nuts default one 'step 0.6 3)",
    ),
    "nested_uniforms": ("(hmc default all 0.9 3 3)", "(mala default each 1.3 5)", "(nuts default all 'step 0.9 2)"),
    "heavy_tails": ("(hmc default one 1 4 4)",),
    "dirichlet_categorical": (
        "(mala default each 0.8 4)",
        "(hmc default all 0.5 4 2)",
        "(nuts default each 'step 1 1)",
    ),
    "exponential_rate": ("(hmc default one 0.6 3 2)",),
    "binomial_then_normal": ("(cycle ((mala x one 0.9 3) (gibbs k one 1)) 4)",),
    "scale_of_normals": (
        "(mala default one 0.6 5)",
        "(hmc default one 0.9 3 'precondition 2)",
        "(nuts default one 'step 0.9 3)",
    ),
    "lognormal_median": ("(cycle ((mh default one 1) (hmc default all 0.4 5 3)) 1)", "(mala default each 0.5 6)"),
    "above_a_random_bound": ("(hmc default all 0.3 6 4)", "(mala default all 0.4 20)"),
    "direction": ("(mala default one 0.8 5)", "(hmc default one 0.5 4 2)", "(nuts default one 'step 0.8 2)"),
    "covariance_matrix": (
        "(hmc default one 0.1 8 3)",
        "(mala default one 0.9 'precondition 4)",
        "(nuts default one 'step 0.1 2)",
    ),
    "coin_mixture": ("(cycle ((mala weight each 0.8 3) (gibbs z each 1)) 4)",),
    "evidence_through_calls": ("(cycle ((hmc m one 0.5 4 1) (gibbs k one 1)) 4)",),
    "normal_inv_chi_sq": ("(cycle ((hmc m 0 1.1 4 2) (mh default one 3)) 1)",),
    "hmm_persistence": ("(cycle ((hmc stay 0 1.1 2 1) (gibbs w one 1)) 1)",),
    "gp_regression": ("(cycle ((hmc length 0 0.9 2 1) (mh default one 2)) 1)",),
    "memo_of_memo": ("(hmc default all 0.8 3 2)", "(nuts default all 'step 0.8 2)"),
    "existing_choice": ("(mala default one 0.9 8)",),
    "dependent_block": ("(hmc s all 0.5 4 3)", "(mala s one 0.8 16)"),
    "nested_tags": ("(hmc s all 0.5 4 3)",),
    "crp_of_normals": ("(cycle ((mala means each 0.9 3) (gibbs z each 1)) 4)",),
}

# Over `default` the blocks come in the order of addresses, whatever depends on what.
PARTICLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "normal_mean", "beta_flips", "correlated_pair", "normal_inv_gamma", "binomial_then_normal",
            "poisson_thinning", "dirichlet_categorical", "sprinkler", "nested_flips", "counts_differ", "three_families",
            "exclusive_or", "operator_by_branch", "random_procedure_or_lambda", "choice_in_branch", "random_key",
            "two_keys", "memo_of_memo", "coin_mixture", "latent_counts", "beta_bernoulli", "crp_concentration",
            "latent_draws", "maker_in_branch",
            "crp_of_normals",
        ),
        ("(pgibbs default ordered 3 2)",),
    ),
    "hidden_chain": ("(pgibbs s ordered 3 2)", "(pgibbs s ordered 2 'ancestor 2)"),
    "dependent_block": ("(pgibbs s ordered 5 2)",),
    "block_gains_a_choice": ("(pgibbs s ordered 4 2)",),
}  # fmt: skip

FURTHER: tuple[dict[str, tuple[str, ...]], ...] = (SLICE, PROPOSAL, PARTICLES, REJECTION, FIREFLY, GRADIENT)

# The pairs of the everyday suite, which between them meet every kind of case.
EVERYDAY: tuple[tuple[str, str], ...] = (
    ("correlated_pair", SLICE["correlated_pair"][1]),
    ("nested_uniforms", SLICE["nested_uniforms"][0]),
    ("normal_mean", PROPOSAL["normal_mean"][1]),
    ("beta_flips", PROPOSAL["beta_flips"][0]),
    ("correlated_pair", PROPOSAL["correlated_pair"][3]),
    ("choice_in_branch", PROPOSAL["choice_in_branch"][0]),
    ("latent_draws", PROPOSAL["latent_draws"][0]),
    ("correlated_pair", REJECTION["correlated_pair"][0]),
    ("block_gains_a_choice", REJECTION["block_gains_a_choice"][0]),
    ("crp_concentration", REJECTION["crp_concentration"][0]),
    ("one_way_out", REJECTION["one_way_out"][0]),
    ("hidden_chain", PARTICLES["hidden_chain"][0]),
    ("counts_differ", PARTICLES["counts_differ"][0]),
    ("logistic_slope", FIREFLY["logistic_slope"][0]),
    ("logistic_slope", FIREFLY["logistic_slope"][1]),
    ("robust_line", FIREFLY["robust_line"][1]),
    ("three_likelihoods", FIREFLY["three_likelihoods"][0]),
    ("normal_mean", GRADIENT["normal_mean"][0]),
    ("correlated_pair", GRADIENT["correlated_pair"][0]),
    ("correlated_pair", GRADIENT["correlated_pair"][3]),
    ("correlated_pair", GRADIENT["correlated_pair"][5]),
    ("normal_inv_gamma", GRADIENT["normal_inv_gamma"][1]),
    ("nested_uniforms", GRADIENT["nested_uniforms"][0]),
)


def further(name: str) -> tuple[str, ...]:
    """The engines of this module that find a case."""
    return tuple(engine for engines in FURTHER for engine in engines.get(name, ()))
