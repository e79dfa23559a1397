"""Densities and data drawn anew: by `collect`, by `predictive`, and in the tree that ArviZ reads."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests import arviz
from tests.generator.session import standing
from tests.statistics import assert_same_mean
from venture_lite import Venture
from venture_lite.audit.snapshot import snapshot
from venture_lite.draws.draws import Draws
from venture_lite.errors import VentureError, VentureWarning
from venture_lite.session import predictive
from venture_lite.shell.cli import main

Y = np.random.default_rng(0).normal(1.0, 1.0, 30)
MODEL = """
[assume mu (normal 0 10)]
[assume log_sd (normal 0 0.5)]
[assume sd (exp log_sd)]
[assume effect (mem (lambda (g) (normal mu sd)))]
for i in 1...30: [observe (normal (effect (mod i 2)) sd) {y[i]}]
"""
LATENTS = "mu log_sd (effect 0) (effect 1)"


def model(chains: int = 2) -> Venture:
    v = Venture(seed=1, chains=chains)
    v.execute(MODEL, y=Y)
    return v


def sample(v: Venture, collected: str, count: int = 20) -> Draws:
    draws = v.infer(f"(repeat {count} (do (mh default one 5) (collect {collected})))")
    assert isinstance(draws, Draws)
    return draws


# ---------------------------------------------------------------------------------------------------- densities


def test_densities_are_those_of_the_state() -> None:
    draws = sample(model(), f"{LATENTS} sd (log_score) (log_density (normal mu 2) 0.5) (log_density mu 3) "
                   "(log_likelihood y)")  # fmt: skip
    mu, sd = draws["mu"], draws["sd"]
    effects = np.stack([draws[f"(effect {i % 2})"] for i in range(1, 31)], axis=-1)
    terms = stats.norm.logpdf(Y, effects, sd[..., None])
    assert np.allclose(draws["(log_likelihood y)"], terms)
    assert np.allclose(draws["(log_density (normal mu 2) 0.5)"], stats.norm.logpdf(0.5, mu, 2))
    assert np.allclose(draws["(log_density mu 3)"], stats.norm.logpdf(3, 0, 10))
    prior = stats.norm.logpdf(mu, 0, 10) + stats.norm.logpdf(draws["log_sd"], 0, 0.5)
    prior += sum(stats.norm.logpdf(draws[f"(effect {g})"], mu, sd) for g in (0, 1))
    assert np.allclose(draws["(log_score)"], prior + terms.sum(axis=-1))


@pytest.mark.thorough
def test_vectors_have_a_density_for_each_item() -> None:
    v = Venture(seed=1)
    v.execute("[assume m (normal 0 1)]\ny: [observe (normal (vector m 0 1) 2) (vector 1 2 3)]")
    draws = sample(v, "m (log_likelihood y) (replicate y) (log_score)")
    m = draws["m"][..., None]
    terms = stats.norm.logpdf([1, 2, 3], np.concatenate([m, 0 * m, 0 * m + 1], axis=-1), 2)
    assert np.allclose(draws["(log_likelihood y)"][:, :, 0], terms)
    assert draws["(replicate y)"].shape == (1, 20, 1, 3)
    tree = draws.to_datatree()
    assert tree["observed_data"]["y"].shape == (1, 3)


@pytest.mark.thorough
def test_a_density_takes_no_random_numbers_and_leaves_nothing() -> None:
    plain, measured = model(), model()
    without = sample(plain, "mu")["mu"]
    with_it = sample(measured, "mu (log_density (effect 7) 1) (log_likelihood y)")["mu"]
    assert with_it.tolist() == without.tolist()
    assert [snapshot(each)["scopes"] for each in plain.traces] == [snapshot(each)["scopes"] for each in measured.traces]


def test_the_density_of_what_cannot_be_is_minus_infinity() -> None:
    v = model(1)
    drawn = v.infer("(collect (log_density (gamma 1 1) -1) (log_density (bernoulli 1) false))")
    assert [float(drawn[name][0, 0]) for name in drawn] == [-math.inf] * 2


def test_an_exchangeable_draw_has_a_predictive_density_and_no_likelihood() -> None:
    v = Venture(seed=1)
    v.execute(
        "[assume coin (make_beta_bernoulli 1 1)]\nfor i in 1...5: [observe (coin) {z[i]}]", z=[True] * 4 + [False]
    )
    assert v.infer("(collect (log_density (coin) true))")["(log_density (coin) true)"][0, 0] == pytest.approx(
        math.log(5 / 7)
    )
    with pytest.raises(VentureError, match="draws of an exchangeable procedure from make_beta_bernoulli"):
        v.infer("(collect (log_likelihood z))")


def test_a_name_of_the_program_keeps_its_meaning() -> None:
    v = Venture(seed=1)
    v.execute("[assume replicate (lambda (x) (+ x 1))]")
    assert v.infer("(collect (replicate 3))")["(replicate 3)"].tolist() == [[4]]


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("(log_score 1)", "log_score is written (log_score)"),
        ("(log_density mu)", "log_density is written (log_density EXPR VALUE)"),
        ("(log_density 3 1)", "log_density is of a random choice"),
        ("(replicate q)", "nothing is observed as q"),
        ("(replicate yy)", "did you mean y?"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(form: str, told: str) -> None:
    with pytest.raises(VentureError) as caught:
        model(1).infer(f"(collect {form})")
    assert told in str(caught.value)
    assert "^" in str(caught.value)


# --------------------------------------------------------------------------------------------------- replicates


@pytest.mark.parametrize("count", [4, 60])
def test_replicates_have_the_distribution_of_the_data(count: int) -> None:
    """Row by row, and by columns. Each comparison fails by chance in 1 of 10^6 runs."""
    v = Venture(seed=3)
    v.execute(f"[assume m 2]\nfor i in 1...{count}: [observe (poisson m) {{k[i]}}]", k=[1] * count)
    drawn = v.infer(f"(repeat {4000 // count} (collect (replicate k)))")["(replicate k)"].ravel()
    independent = np.random.default_rng(1).poisson(2, 100_000)
    assert_same_mean(drawn, independent, "mean")
    assert_same_mean((drawn - 2.0) ** 2, (independent - 2.0) ** 2, "variance")


def test_a_makers_replicate_is_of_its_other_applications() -> None:
    """One of two draws of a Beta(1, 1) coin, given the other: heads with probability 2/3. 1 in 10^6 by chance."""
    v = Venture(seed=1)
    v.execute("[assume coin (make_beta_bernoulli 1 1)]\nfor i in 1...2: [observe (coin) true]")
    v.execute("data: for i in 1...1: [observe (coin) true]\n[forget data]")
    v.execute("z: [observe (coin) true]")
    before = snapshot(v.traces[0])
    heads = v.infer("(repeat 3000 (collect (replicate z)))")["(replicate z)"].mean()
    # two others that came up heads: 3/4
    assert abs(heads - 0.75) < 4.9 * math.sqrt(0.75 * 0.25 / 3000)
    assert snapshot(v.traces[0]) == before


# --------------------------------------------------------------------------------------------------- predictive


@pytest.mark.thorough
def test_predictive_of_draws_is_what_collect_gives() -> None:
    v = model()
    draws = sample(v, f"{LATENTS} (log_likelihood y) (replicate y)")
    before = [snapshot(each) for each in v.traces]
    again = v.predictive(draws, log_likelihood=True)
    assert np.allclose(again["(log_likelihood y)"], draws["(log_likelihood y)"])
    assert again["(replicate y)"].shape == (2, 20, 30)
    assert [snapshot(each) for each in v.traces] == before
    residuals = again["(replicate y)"] - np.stack([draws[f"(effect {i % 2})"] for i in range(1, 31)], axis=-1)
    # 1,200 standard normals: 1 in 10^6
    scaled = residuals / np.exp(draws["log_sd"])[..., None]
    assert abs(scaled.mean()) < 4.9 / math.sqrt(1200)
    assert abs((scaled**2).mean() - 1) < 4.9 * math.sqrt(2 / 1200)


def test_predictive_names_what_is_missing() -> None:
    v = model()
    with pytest.raises(VentureError, match="the data depend on effect, of which there are no draws"):
        v.predictive(sample(v, "mu log_sd (effect 0)", 3))
    with pytest.raises(VentureError, match="how many of the prior"):
        v.predictive(0)
    with pytest.raises(VentureError, match="nothing is observed as z"):
        v.predictive(10, "z")


@pytest.mark.thorough
def test_predictive_of_a_number_is_of_the_prior() -> None:
    """1 in 10^6 by chance for each comparison."""
    v = model()
    before = [snapshot(each) for each in v.traces]
    prior = v.predictive(300)
    assert [snapshot(each) for each in v.traces] == before
    assert prior["(replicate y)"].shape == (2, 300, 30)
    assert np.allclose(prior["sd"], np.exp(prior["log_sd"]))
    mu, log_sd = prior["mu"].ravel(), prior["log_sd"].ravel()
    assert abs(mu.mean()) < 4.9 * 10 / math.sqrt(600)
    assert abs((log_sd**2).mean() - 0.25) < 4.9 * 0.25 * math.sqrt(2 / 600)
    one = prior["(replicate y)"][..., 0].ravel()
    scaled = (one - mu) / (np.sqrt(2) * prior["sd"].ravel())
    assert abs((scaled**2).mean() - 1) < 4.9 * math.sqrt(2 / 600)


# what the conditions leave, and the probability that `a` holds under them
CONDITIONED = {
    "[assume t1 (uniform_continuous 0 1)] [assume t2 (uniform_continuous 0 1)] [condition (<= t1 t2)]"
    " [assume a (< t1 0.5)] [observe (binomial 500 t1) 250]": 0.75,
    "[assume f (mem (lambda (i) (flip 0.5)))] [condition (or (f 1) (f 2))] [assume a (f 1)]": 2 / 3,
    "[assume c (flip 0.2)] [condition (if c (flip 0.5) true)] [assume a c] [observe (flip (if c 0.9 0.1)) true]": 1 / 9,
    "[assume z (make_crp 1)] [assume same (= (z) (z))] [assume third (z)] [condition (not same)] [assume a same]": 0.0,
    "[assume p (beta 1 1)] [assume a (flip p)] [condition (> p 0.5)] [condition a]": 1.0,
}


@pytest.mark.parametrize("text", CONDITIONED)
def test_conditions_of_the_model_hold_in_its_prior(text: str) -> None:
    """1 in 10^6 by chance for each, by the exact binomial test."""
    v = Venture(seed=1, chains=2)
    v.execute(text)
    before = [snapshot(each) for each in v.traces]
    found = v.predictive(300)["a"].astype(bool)
    assert [snapshot(each) for each in v.traces] == before
    assert found.shape == (2, 300)
    assert stats.binomtest(int(found.sum()), 600, CONDITIONED[text]).pvalue > 1e-6


def test_conditions_and_factors_of_data_are_left_out_of_the_prior_and_named() -> None:
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)]")
    v.execute("[condition (> x {low})] for i in 1...2: [factor (* i x)] for i in 1...2: [condition (> x i)]", low=2)
    with pytest.warns(VentureWarning) as told:
        draws = v.predictive(200)
    (warning,) = told
    for text in ("[condition (> x {low})]", "[factor (* i x)]", "[condition (> x i)]"):
        assert str(warning.message).count(text) == 1
    # 1 in 10^6 by chance
    assert abs(draws["x"].mean()) < 4.9 / math.sqrt(200)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[factor (- 0 (* x x))]", "is not drawn from directly"),
        ("[factor 0] [observe (normal x 1) 1]", "is not drawn from directly"),
        ("[condition (> x 100)]", "in 100 draws of the prior .* did not hold"),
        ("[condition (> x 0)] [condition (< x 0)]", "did not hold"),
    ],
)
def test_a_prior_that_rejection_does_not_give_is_refused(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictive, "MOST_TRIES", 100)
    v = Venture(seed=1)
    v.execute(f"[assume x (normal 0 1)] {text}")
    before = standing(v)
    with pytest.raises(VentureError, match=said) as met:
        v.predictive(5)
    assert met.value.hint == "forget the data and infer: the draws are then those of the prior"
    assert standing(v) == before


# -------------------------------------------------------------------------------------------------------- ArviZ


TUNED = "(nuts default all 'adapt 150 1)"


def gradient_draws(
    density: str = "(normal mu sd)", kernel: str = "(nuts default all 'adapt 40 1)", count: int = 100
) -> Draws:
    v = Venture(seed=2, chains=2)
    v.execute(f"[assume mu (normal 0 10)] [assume sd (gamma 2 1)]\nfor i in 1...30: [observe {density} {{y[i]}}]", y=Y)
    found = v.infer(f"(repeat {count} (do {kernel} (collect mu sd (replicate y) (log_likelihood y))))")
    assert isinstance(found, Draws)
    return found


@pytest.mark.thorough
def test_loo_and_compare_take_the_tree_as_it_is() -> None:
    import arviz_stats

    draws = gradient_draws(kernel=TUNED, count=250)
    tree = draws.to_datatree()
    found = arviz_stats.loo(tree)
    pointwise = draws["(log_likelihood y)"][:, 150:].reshape(-1, 30)
    # the harmonic mean of each datum's likelihoods is what importance sampling without smoothing gives
    harmonic = -(np.logaddexp.reduce(-pointwise, axis=0) - math.log(len(pointwise)))
    assert float(found.elpd) == pytest.approx(harmonic.sum(), abs=0.3)
    other = gradient_draws("(student_t 3 mu sd)", TUNED, 250).to_datatree()
    table = arviz_stats.compare({"normal": tree, "student": other})
    assert sorted(table.index) == ["normal", "student"]


# programs whose data of one name stand in more than one directive; and the names
SEVERAL_OF_A_NAME = {
    "for i in 1...2: [observe (normal x 1) {y[i]}]\nfor i in 3...5: [observe (normal x 2) {y[i]}]": ["y"],
    "for i in 1...3: [observe (normal x 1) {y[i]}]\n[observe (normal x 1) {y[4]}] [observe (flip 0.5) {c}]": ["y", "c"],
    "both: for i in 1...2: [observe (normal x 1) 0.5] [observe (poisson 3) i]": ["both"],
    "for i in 1...2: ys: [observe (normal x 1) {y[i]}]\nfor i in 3...5: [observe (normal x 2) {y[i]}]": ["ys", "y"],
    "for t in 1...2: [observe (normal x 1) {y[t]}] [infer (mh default one 1)]": ["y"],
    "for i in 1...2: [observe (normal x 1) {y[i]}]\na: for i in 1...2: [observe (poisson 3) i]\n[forget a 1]": [
        "y",
        "a",
    ],
}


@pytest.mark.parametrize("text", SEVERAL_OF_A_NAME)
def test_data_have_one_name_and_one_length_in_all_groups(text: str) -> None:
    v = Venture(seed=1)
    given = {"y": [0.1, 0.2, 0.3, 0.4, 0.5], "c": True}
    v.execute("[assume x (normal 0 1)]")
    v.execute(text, **{name: value for name, value in given.items() if f"{{{name}" in text})
    tree = v.predictive(v.infer("(repeat 5 (do (mh default one 1) (collect x)))"), log_likelihood=True).to_datatree(
        prior=v.predictive(5)
    )
    sizes = {name: int(tree["observed_data"][name].size) for name in SEVERAL_OF_A_NAME[text]}
    for group in ("observed_data", "posterior_predictive", "log_likelihood", "prior_predictive"):
        each = tree[group].to_dataset()
        drawn = 1 if group == "observed_data" else 5
        assert {name: values.size // drawn for name, values in each.data_vars.items()} == sizes


@pytest.mark.thorough
def test_leave_one_out_takes_data_of_two_loops() -> None:
    import arviz_stats

    v = Venture(seed=1, chains=2)
    text = "for i in 1...15: [observe (normal x 1) {y[i]}]\nfor i in 16...30: [observe (normal x 2) {y[i]}]"
    v.execute(f"[assume x (normal 0 1)] {text}", y=Y)
    tree = v.predictive(v.infer("(repeat 200 (do (mh default one 2) (collect x)))"), log_likelihood=True).to_datatree()
    assert arviz_stats.loo_pit(tree)["y"].notnull().all()


@pytest.mark.thorough
def test_the_tree_has_statistics_of_each_transition() -> None:
    draws = gradient_draws()
    tree = draws.to_datatree(warmup=True, prior=None)
    names = {"diverging", "energy", "lp", "tree_depth", "n_steps", "acceptance_rate", "step_size"}
    sampled = tree["sample_stats"]
    assert set(sampled.data_vars) == names
    assert sampled["energy"].dims == ("chain", "draw")
    assert sampled["energy"].shape == tree["posterior"]["mu"].shape == (2, 60)
    assert tree["warmup_sample_stats"]["energy"].shape == (2, 40)
    mu, sd = draws["mu"][:, 40:], draws["sd"][:, 40:]
    density = stats.norm.logpdf(mu, 0, 10) + stats.gamma.logpdf(sd, 2) + np.log(sd)
    density += draws["(log_likelihood y)"][:, 40:].sum(axis=-1)
    assert np.allclose(sampled["lp"], density)
    assert (sampled["energy"].values > -density).all()
    assert (sampled["n_steps"].values >= sampled["tree_depth"].values).all()
    assert len(np.unique(sampled["step_size"].values)) == 2
    # plots select by it
    assert sampled["diverging"].dtype == tree["warmup_sample_stats"]["diverging"].dtype == bool


@pytest.mark.thorough
def test_hmc_says_the_same_and_several_gradient_kernels_nothing() -> None:
    one = gradient_draws(kernel="(hmc default all 0.1 5 1)").to_datatree()["sample_stats"]
    assert set(one.data_vars) == {"diverging", "energy", "lp", "n_steps", "acceptance_rate", "step_size"}
    assert (one["step_size"].values == 0.1).all()
    assert one["diverging"].dtype == bool
    two = gradient_draws(kernel="(hmc default all 0.1 5 1) (hmc default all 0.1 5 1)").to_datatree()
    assert "sample_stats" not in two.children


def test_groups_go_by_the_names_of_their_data_and_the_summary_has_parameters_alone() -> None:
    v = model()
    draws = sample(v, f"{LATENTS} (replicate y) (log_likelihood y)")
    tree = draws.to_datatree(prior=v.predictive(10))
    assert set(tree.children) == {
        "posterior", "posterior_predictive", "log_likelihood", "prior", "prior_predictive", "observed_data",
        "kernel_stats",
    }  # fmt: skip
    for group in ("posterior_predictive", "prior_predictive", "log_likelihood"):
        assert list(tree[group].data_vars) == ["y"]
        assert tree[group]["y"].dims == ("chain", "draw", "y_dim_0")
    assert tree["observed_data"]["y"].dims == ("y_dim_0",)
    assert [row.name for row in draws.summary().rows] == ["mu", "log_sd", "(effect 0)", "(effect 1)"]


@pytest.mark.slow
@pytest.mark.parametrize("plot", ["plot_ppc_dist", "plot_energy", "plot_trace"])
def test_arviz_plots_take_the_tree_as_it_is(plot: str) -> None:
    arviz.plot(plot, gradient_draws().to_datatree())


# -------------------------------------------------------------------------------------------------------- files


def test_a_run_writes_parquet(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    program = tmp_path / "p.vnt"
    program.write_text("[assume x (normal 0 1)] [infer (repeat 5 (do (mh default one 1) (collect x (> x 0))))]")
    assert main(["run", str(program), "--seed", "1", "--out", str(tmp_path / "x.parquet")]) == 0
    table = polars.read_parquet(tmp_path / "x.parquet")
    assert table.columns == ["chain", "draw", "x", "(> x 0)"]
    assert table["chain"].to_list() == [0] * 5
    assert table["(> x 0)"].dtype == polars.Boolean
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)]")
    drawn: Any = v.infer("(repeat 5 (do (mh default one 1) (collect x)))")
    assert table["x"].to_list() == drawn["x"].ravel().tolist()


def test_without_polars_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(VentureError, match=r"polars, which is not installed(.|\n)*venture-lite\[parquet\]"):
        sample(model(1), "mu", 2).save(tmp_path / "x.parquet")


def test_classes_of_a_maker_are_counted() -> None:
    v = Venture(seed=1)
    v.execute(
        "[assume crp (make_crp 1)] [assume z (mem (lambda (i) (crp)))] [assume of (mem (lambda (g) (make_crp g)))]"
        "[assume mu 3] [predict (list (z 1) (z 2) (z 3) ((of 2)) ((of 2)))]"
    )
    draws = v.infer(
        "(repeat 20 (do (gibbs default each 1) (collect (classes crp) (classes (of 2)) (z 1) (z 2) (z 3))))"
    )
    labels = [draws[f"(z {i})"] for i in (1, 2, 3)]
    expected = [len({label[0, n] for label in labels}) for n in range(20)]
    assert draws["(classes crp)"][0].tolist() == expected
    assert set(draws["(classes (of 2))"].ravel()) <= {1, 2}
    with pytest.raises(VentureError, match="classes are those of a maker of labels, got 3"):
        v.infer("(collect (classes mu))")


COUNTS = """[assume r (lognormal 0 0.01)]
    y: [observe (poisson (* r 1e19)) 3]
    for n in 1...3: z: [observe (poisson (* r {E[n]})) 2]
    w: [observe (neg_binomial (vector (* r 2) (* r 3)) 1e-22) (vector 1 2)]"""


def test_a_count_that_is_too_large_is_nan_and_told() -> None:
    v = Venture(seed=1)
    v.execute(COUNTS, E=[1.0, 1e20, 2.0])
    with pytest.warns(VentureWarning) as told:
        predicted = v.predictive(4)
    assert np.isnan(predicted["(replicate y)"]).all()
    assert np.isnan(predicted["(replicate z)"]).reshape(-1, 3).all(axis=0).tolist() == [False, True, False]
    assert predicted["(replicate w)"].shape == (1, 4, 1, 2)
    said = [str(warning.message) for warning in told]
    assert any(line.startswith("(replicate y): 4 draws of data NaN: poisson: a draw of rate ") for line in said)
    assert any(line.startswith("(replicate z): 4 draws") for line in said)
    with pytest.warns(VentureWarning, match=r"\(replicate z\): 5 draws of data NaN"):
        draws = v.infer("(repeat 5 (do (mh default one 'drift 0.01 1) (collect r (replicate z))))")
    assert np.isnan(draws["(replicate z)"]).sum() == 5
    with pytest.warns(VentureWarning, match=r"\(replicate z\): 5 draws of data NaN"):
        v.predictive(draws, "z")
