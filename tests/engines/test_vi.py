"""`vi`: the best normals of posteriors that are known, minibatches, what is said of a fit, and what is refused."""

from __future__ import annotations

import math
import re
import warnings

import numpy as np
import pytest
from scipy import stats

from venture_lite import Draws, Venture, VentureError
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.gradients import Densities
from venture_lite.blocks.minibatch import Minibatches
from venture_lite.blocks.pathfinder import PathNormal
from venture_lite.blocks.variational import FullRank, MeanField, fit, judge

REGRESSION = """
    [assume w (mem (lambda (i) (normal 0 5)))]
    for n in 1...24: [observe (normal (+ (w 0) (* (w 1) {a[n]}) (* (w 2) {b[n]})) 0.5) {y[n]}]
"""
WEIGHTS = ("(w 0)", "(w 1)", "(w 2)")


@pytest.fixture(autouse=True)
def _few_draws_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.engines.vi.JUDGED", 400)


def regression() -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, float]:
    """Data, the posterior's mean and precision, and the log evidence; two features depend on one another strongly."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal(24)
    b = 0.9 * a + 0.4 * rng.standard_normal(24)
    design = np.c_[np.ones(24), a, b]
    y = design @ [1.0, 2.0, -1.0] + 0.5 * rng.standard_normal(24)
    precision = design.T @ design / 0.25 + np.eye(3) / 25.0
    evidence = stats.multivariate_normal(np.zeros(24), 0.25 * np.eye(24) + 25.0 * design @ design.T).logpdf(y)
    return {"a": a, "b": b, "y": y}, np.linalg.solve(precision, design.T @ y / 0.25), precision, float(evidence)


def fitted(options: str, draws: int = 1) -> Draws:
    v = Venture(seed=1)
    v.execute(REGRESSION, **regression()[0])
    return v.infer(f"(repeat {draws} (do (vi default all {options}) (collect {' '.join(WEIGHTS)})))")


def normal_of(program: str, options: str, seed: int = 1, **data: object) -> tuple[FullRank | MeanField, Draws]:
    """What was fitted, and draws."""
    v = Venture(seed=seed)
    v.execute(program, **data)
    found = {}
    from venture_lite.engines.vi import Variational

    fitting = Variational._fitted

    def kept(self: Variational, nodes: list[int]) -> object:
        found["fit"] = fitting(self, nodes)
        return found["fit"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Variational, "_fitted", kept)
        draws = v.infer(f"(vi default all {options})")
    return found["fit"].normal, draws


# ------------------------------------------------------------------------------------------------ exact answers


@pytest.mark.thorough
@pytest.mark.parametrize(("options", "within"), [("'full 250", 1e-4), ("'full 'minibatch 6 800", 0.04)])
def test_the_full_normal_is_a_normal_posterior(options: str, within: float) -> None:
    """Its mean and covariance in posterior sds, and the evidence lower bound is the log evidence. Noticed: gradients
    without the entropy, a path's normal in place of the fit's (with minibatches), N / B left out, priors that count
    N / B."""
    data, mean, precision, evidence = regression()
    normal, draws = normal_of(REGRESSION, options, **data)
    off = normal.mean - mean
    assert math.sqrt(off @ precision @ off) < within
    root = np.linalg.cholesky(precision)
    np.testing.assert_allclose(root.T @ normal.covariance() @ root, np.eye(3), atol=5 * within)
    (row,) = draws.statistics
    assert row.details["ELBO"] == pytest.approx(evidence, abs=within)
    assert row.details["Pareto k"] < 0.5
    assert row.details["largest slope"] < 0.1


@pytest.mark.thorough
@pytest.mark.parametrize(
    "options",
    ["1000", pytest.param("'minibatch 6 3000", marks=pytest.mark.slow), pytest.param("10000", marks=pytest.mark.slow)],
)
def test_independent_normals_have_the_inverse_of_the_diagonal_of_the_precision(options: str) -> None:
    """Which is not the diagonal of the covariance: here two variances are a fifth of it. Within a tenth; the bound is
    below the log evidence by half the logarithm of the ratio of determinants. Noticed: gradients without the entropy,
    sds of the posterior, N / B left out."""
    data, mean, precision, evidence = regression()
    normal, draws = normal_of(REGRESSION, options, **data)
    off = normal.mean - mean
    assert math.sqrt(off @ precision @ off) < 0.05
    np.testing.assert_allclose(np.diag(normal.covariance()) * np.diag(precision), 1.0, atol=0.1)
    assert np.any(np.diag(np.linalg.inv(precision)) * np.diag(precision) > 4.0)
    loss = 0.5 * float(np.sum(np.log(np.diag(precision))) - np.linalg.slogdet(precision)[1])
    (row,) = draws.statistics
    assert abs(row.details["ELBO"] - (evidence - loss)) < 0.02 + 5.0 * row.details["error of the ELBO"]


def test_a_positive_choice_is_normal_in_its_logarithm() -> None:
    """A log-normal prior of mean 1 and sd 0.5, and a datum of log s with sd 0.5: mean 1.5 and variance 1 / 8. Noticed:
    densities without the Jacobian."""
    normal, draws = normal_of("[assume s (lognormal 1 0.5)] [observe (normal (log s) 0.5) 2]", "'full 100")
    assert normal.mean[0] == pytest.approx(1.5, abs=1e-3)
    assert normal.covariance()[0, 0] == pytest.approx(0.125, rel=1e-3)
    expected = stats.norm(1.0, math.sqrt(0.5)).logpdf(2.0)
    assert draws.statistics[0].details["ELBO"] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("program", "mean", "variance"),
    [
        ("[assume m (normal 0 1)] [assume g (* 2 m)] [factor g]", 2.0, 1.0),
        (
            """[assume m (normal 0 1)] [observe (normal (* m (+ 1 (if (= "t" "t") 3 0))) 1) 2]""",
            8.0 / 17.0,
            1.0 / 17.0,
        ),
    ],
)
def test_a_constant_slope_and_a_text_are_part_of_the_fit(program: str, mean: float, variance: float) -> None:
    """Noticed: a derivative that is a plain number taken for 0, and a comparison of texts for false."""
    normal, _ = normal_of(program, "'full 100")
    assert normal.mean[0] == pytest.approx(mean, abs=1e-2)
    assert normal.covariance()[0, 0] == pytest.approx(variance, rel=1e-2)


@pytest.mark.thorough
def test_runs_are_independent_draws_of_the_fit() -> None:
    """Three means and all squares of 1,000 draws, each with 10^-7, and correlations of one draw with the next."""
    _, mean, precision, _ = regression()
    draws = fitted("'full 200", 1000)
    found = (np.array([draws[name][0] for name in WEIGHTS]).T - mean) @ np.linalg.cholesky(precision)
    assert np.all(abs(found.mean(axis=0)) < 5.4 / math.sqrt(1000.0))
    low, high = stats.chi2(3000).ppf([5e-8, 1 - 5e-8])
    assert low < float(np.sum(found**2)) < high
    assert np.all(abs(np.mean(found[1:] * found[:-1], axis=0)) < 5.4 / math.sqrt(1000.0))


# ------------------------------------------------------------------------------------------------ steps


@pytest.mark.thorough
@pytest.mark.parametrize("size", [1, 5, 20])
def test_a_fit_finds_a_normal_from_far_away(size: int) -> None:
    """From a standard normal to one of condition 100, whose mean is sds away."""
    rng = np.random.default_rng(2)
    factor = np.linalg.qr(rng.standard_normal((size, size)))[0] * np.geomspace(0.3, 3.0, size)
    mean, precision = 2.0 * rng.standard_normal(size), np.linalg.inv(factor @ factor.T)
    normal = FullRank(PathNormal(np.zeros(size), np.ones(size), np.zeros((size, 0)), np.zeros((0, 0))))
    assert fit(normal, lambda *pair: tuple([precision @ (mean - each) for each in pair]), 3000, rng)
    np.testing.assert_allclose(np.linalg.solve(factor, normal.mean - mean), 0.0, atol=1e-3)
    np.testing.assert_allclose(precision @ normal.covariance(), np.eye(size), atol=1e-2)


def test_a_fit_is_given_up_where_there_is_no_density() -> None:
    normal = MeanField(PathNormal(np.zeros(2), np.ones(2), np.zeros((2, 0)), np.zeros((0, 0))))
    seen: list[int] = []
    assert not fit(normal, lambda there, opposite: None, 1000, np.random.default_rng(0), seen.append)
    assert len(seen) == 100


def test_a_fit_that_has_not_settled_has_a_slope() -> None:
    normal = MeanField(PathNormal(np.array([1.0]), np.ones(1), np.zeros((1, 0)), np.zeros((0, 0))))
    found = judge(normal, lambda x: (-0.5 * float(x @ x), -x), np.random.default_rng(1), 2000)
    assert found.slope == pytest.approx(1.0, abs=0.1)
    assert found.elbo == pytest.approx(0.5 * math.log(2.0 * math.pi) - 0.5, abs=5.0 * found.error)


# ------------------------------------------------------------------------------------------------ minibatches

HIERARCHY = """
    [assume level (normal 0 3)] [assume effect (mem (lambda (j) (normal level 1)))] [assume s (gamma 2 2)]
    [assume free (normal level 2)]
    for n in 1...60: [observe (normal (effect {g[n]}) s) {y[n]}]
    for n in 1...12: [observe (poisson (exp level)) {k[n]}]
    [observe (normal s 1) 0.5]
    [factor (* -0.5 (* level level))]
"""


def test_the_minibatches_of_a_pass_make_all_observations() -> None:
    """The mean of their gradients and log densities is that of all rows, to rounding; each observation comes once.
    Noticed: N / B left out, priors or a single factor that count N / B, an unobserved choice that is left out."""
    rng = np.random.default_rng(3)
    v = Venture(seed=4)
    v.execute(HIERARCHY, g=rng.integers(0, 7, 60), y=rng.standard_normal(60), k=rng.poisson(1, 12))
    (model,) = v._runner.chains.models
    densities = Densities(model, "vi", warnings.warn)
    nodes = [node for node in model.trace.default.everything() if not _is_named(model, node, "free")]
    density = densities.of(nodes)
    batches = Minibatches(density.terms, 0, rng)
    assert batches.count == 73
    free = density.present() + 0.1
    whole = densities.evaluate(density, free)
    for size, times in ((73, 1), (1, 73)):
        found = [batches.next(size) for _ in range(times)]
        there = [densities.evaluate(density, free, some) for some in found]
        assert np.mean([value for value, _ in there]) == pytest.approx(whole[0], rel=1e-9)
        np.testing.assert_allclose(np.mean([slope for _, slope in there], axis=0), whole[1], rtol=1e-9, atol=1e-9)
    some = batches.next(50)
    rows = [(kind.site, at) for kind, chosen in some.observations for at in chosen.tolist()]
    assert len(set(rows)) == 50
    assert some.weight == 73 / 50


def _is_named(model: object, node: int, name: str) -> bool:
    from venture_lite.interpreter.ancestry import name_of_choice

    return name_of_choice(model.trace, node) == name


@pytest.mark.thorough
def test_minibatches_of_more_than_there_is_are_all_rows() -> None:
    *_, evidence = regression()
    (row,) = fitted("'full 'minibatch 1000 150").statistics
    assert row.details["ELBO"] == pytest.approx(evidence, abs=1e-4)


# ------------------------------------------------------------------------------------------------ what is said


def test_draws_are_marked_and_the_summary_and_the_tree_say_so() -> None:
    draws = fitted("'full 100", 20)
    assert draws.approximate == ("(vi default all 'full 100)",)
    text = str(draws.summary())
    assert "20 transitions, 100% accepted, Pareto k" in text
    assert "(vi default all 'full 100) leaves what is not quite the posterior: its draws are approximate" in text
    tree = draws.to_datatree()
    assert tree.attrs["approximate"] == tree["posterior"].attrs["approximate"] == "(vi default all 'full 100)"
    assert "Pareto k" in tree["kernel_stats"]
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)]")
    assert v.infer("(repeat 5 (do (mh default one 1) (collect x)))").approximate == ()


@pytest.mark.thorough
def test_a_funnel_is_not_to_be_trusted() -> None:
    v = Venture(seed=1)
    v.execute(
        "[assume v (normal 0 3)] [assume x (mem (lambda (i) (normal 0 (exp (/ v 2)))))] for i in 1...9: [predict (x i)]"
    )
    draws = v.infer("(repeat 10 (do (vi default all 300) (collect v)))")
    assert draws.statistics[0].details["Pareto k"] > 0.7
    assert re.search(
        r"is not to be trusted: its Pareto k of [\d.]+ is above 0.7: .*'full, or nuts", str(draws.summary())
    )


def test_the_shape_of_weights_that_are_alike_is_not_held_against_a_fit() -> None:
    """Counts of thousands make a logarithm all but normal: the weights differ by a hundredth."""
    v = Venture(seed=1)
    v.execute("[assume r (gamma 1 1)] for n in 1...3: [observe (poisson (* 3000 r)) {y[n]}]", y=[3000, 3010, 2950])
    draws = v.infer("(vi default all 'full 100)")
    assert draws.statistics[0].details["efficiency of weights"] > 0.99
    assert "weights that are alike" in str(draws.summary())
    assert "trusted" not in str(draws.summary())


def test_too_few_steps_are_told() -> None:
    draws = fitted("'full 'minibatch 5 3", 1)
    assert draws.statistics[0].details["largest slope"] > 0.1
    assert "had not settled when its steps were over: its normal is not the best one; more steps" in str(
        draws.summary()
    )


def test_a_fit_that_others_have_overtaken_is_told() -> None:
    program = "[assume a (tag 'a 0 (normal 0 1))] [assume b (tag 'b 0 (normal {} 1))]"
    for mean, is_told in (("a", True), ("0", False)):
        v = Venture(seed=1)
        v.execute(program.format(mean))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            v.infer("(repeat 3 (do (vi a 0 50) (mh b 0 5) (collect a)))")
        found = [str(each.message) for each in caught]
        assert any("what the block depends on has moved since the fit" in text for text in found) == is_told, found


def test_choices_that_are_not_there_yet_have_a_fit_of_their_own() -> None:
    v = Venture(seed=1)
    v.execute(
        "[assume k (tag 'k 0 (flip))] [assume x (mem (lambda (i) (tag 'x i (normal 3 0.1))))]"
        "[assume y (if k (x 1) (x 2))]"
    )
    draws = v.infer("(repeat 40 (do (mh k 0 1) (vi x all 50) (collect y)))")
    assert draws.statistics[1].details["fits"] == 2.0
    assert np.all(abs(draws["y"] - 3.0) < 1.0)


def test_a_choice_without_free_coordinates_is_drawn() -> None:
    v = Venture(seed=1)
    v.execute("[assume p (dirichlet (vector 2))]")
    draws = v.infer("(repeat 3 (do (vi default all 'full 10) (collect p)))")
    assert draws["p"].tolist() == [[[1.0]] * 3]


# ------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("program", "action", "message", "place"),
    [
        ("[assume b (flip)]", "(vi default all 10)", "vi moves continuous choices; flip is discrete", "(flip)"),
        (
            "[assume x (normal 0 1)] [observe (normal (if (< x 0) 1 2) 1) 1]", "(vi default all 10)",
            "< is applied to what depends on the block and has no derivative", "(< x 0)",
        ),
        (
            "[assume m (normal 0 1)] [observe (normal (* m (ones 3)) 1) (vector 1 2 3)]",
            "(vi default all 'minibatch 2 9)", "the 3 values of one normal are a single choice",
            "(normal (* m (ones 3)) 1)",
        ),
        (
            "[assume m (normal 0 1)] [predict (normal m 1)]", "(vi default all 'minibatch 2 9)",
            "no observation depends on the block", "(vi default all 'minibatch 2 9)",
        ),
        (
            "[assume m (gamma 2 1)] [assume g (make_normal_inv_chi_sq 0 1 1 m)] [observe (g) 2]",
            "(vi default all 'minibatch 2 9)", "the observations of make_normal_inv_chi_sq weigh together",
            "(make_normal_inv_chi_sq 0 1 1 m)",
        ),
        (
            "[assume b (normal 0 1)] [observe (uniform_continuous 0 (exp b)) 1]", "(vi default all 50)",
            "no normal is found at whose draws the density is positive", "(vi default all 50)",
        ),
        ("[assume x (normal 0 1)]", "(vi default all 0)", "T must be 1 or more", "0"),
        ("[assume x (normal 0 1)]", "(vi default all 'minibatch 0 9)", "B must be 1 or more", "0"),
        ("[assume x (normal 0 1)]", "(vi default all 'minibatch 2.5 9)", "B must be a whole number, 0 or more", "2.5"),
        ("[assume x (normal 0 1)]", "(vi default all 'dense 9)", "vi knows no such option", "'dense"),
        ("[assume x (normal 0 1)]", "(vi default all 'minibatch 9)", "vi is written", "(vi default all 'minibatch 9)"),
    ],
)  # fmt: skip
def test_what_cannot_be_fitted_is_refused_and_nothing_is_lost(
    program: str, action: str, message: str, place: str
) -> None:
    v = Venture(seed=1)
    v.execute(program)
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError) as caught:
        v.infer(action)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.text == place
    assert snapshot(v.traces[0]) == before


def test_a_full_covariance_of_very_many_coordinates_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.engines.vi.MOST_FULL", 2)
    with pytest.raises(VentureError, match="the covariance of 3 coordinates is too large"):
        fitted("'full 10")
    assert fitted("10").statistics[0].transitions == 1
