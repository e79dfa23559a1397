"""Where chains begin: random starts, modes, draws of the best normal along a path."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from venture_lite import Venture, VentureError
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.mode_search import climb
from venture_lite.blocks.pathfinder import HISTORY, normals, pathfinder
from venture_lite.checker import check

MANY = """
    [assume x (mem (lambda (i) (gamma 2 1)))] [assume u (mem (lambda (i) (uniform_continuous 3 5)))]
    [assume k (mem (lambda (i) (poisson 3)))]
    [assume v (multivariate_normal (vector 1 2) (matrix (list 1 0) (list 0 4)))]
    for i in 1...400: [predict (list (x i) (u i) (k i))]
"""
SCHOOLS = """
    [assume level (normal 0 5)] [assume scale (half_cauchy 5)] [assume effect (mem (lambda (j) {effect}))]
    for j in 1...8: [observe (normal {mean} {{sd[j]}}) {{y[j]}}]
"""
DATA = {"y": [28.0, 8, -3, 7, -1, 1, 18, 12], "sd": [15.0, 10, 16, 11, 9, 11, 10, 18]}
STANDARD = SCHOOLS.format(effect="(normal 0 1)", mean="(+ level (* scale (effect j)))")
CENTRED = SCHOOLS.format(effect="(normal level scale)", mean="(effect j)")


def collected(v: Venture, expression: str) -> np.ndarray:
    """Of each chain."""
    return np.asarray([draws[0] for draws in v.infer(f"(collect {expression})")[expression]])


def quadratic(size: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A mean (D,) and a covariance (D, D)."""
    rng = np.random.default_rng(seed)
    factor = rng.standard_normal((size, size))
    return 3.0 * rng.standard_normal(size), factor @ factor.T + 0.5 * np.eye(size)


# ------------------------------------------------------------------------------------------------ initialize


@pytest.mark.thorough
def test_a_random_start_is_uniform_in_free_coordinates_and_of_the_prior_where_there_are_none() -> None:
    """Tests of Kolmogorov and of Pearson, each with 10^-6. Noticed: starts that are standard normal, and starts in the
    coordinates of the value."""
    v = Venture(seed=1)
    v.execute(MANY)
    v.infer("(initialize)")
    found = {name: np.array(v.sample(f"(map {name} (range 1 401))")) for name in ("x", "u", "k")}
    start = stats.uniform(-2, 4).cdf
    assert np.all(np.abs(np.log(found["x"])) < 2.0)
    assert stats.kstest(np.log(found["x"]), start).pvalue > 1e-6
    assert stats.kstest(np.log((found["u"] - 3.0) / (5.0 - found["u"])), start).pvalue > 1e-6
    assert np.all(np.abs(v.sample("v")) < 2.0)
    counts = [np.sum(found["k"] == i) for i in range(6)]
    expected = 400.0 * np.append(stats.poisson(3).pmf(range(6)), stats.poisson(3).sf(5))
    assert stats.chisquare([*counts, 400 - sum(counts)], expected).pvalue > 1e-6


def test_chains_begin_apart_and_at_what_is_given() -> None:
    v = Venture(seed=1, chains=3)
    v.execute("[assume a (normal 0 1)] [assume b (mem (lambda (i) (normal a 1)))] [observe (normal (b 2) 1) 0]")
    draws = v.infer("(do (initialize (b 2) 7 a (+ 1 2)) (collect a (b 2)))")
    assert draws["a"].ravel().tolist() == [3.0] * 3
    assert draws["(b 2)"].ravel().tolist() == [7.0] * 3
    draws = v.infer("(do (initialize a 3) (collect a (b 2)))")
    assert len(set(draws["(b 2)"].ravel().tolist())) == 3


def test_a_start_of_probability_zero_is_drawn_again() -> None:
    """One of five or so starts of b makes the observation possible."""
    v = Venture(seed=3, chains=8)
    v.execute("[assume b (normal 0 1)] [observe (uniform_continuous 0 (exp b)) 3]")
    draws = v.infer("(do (initialize) (collect b))")
    assert np.all(draws["b"] > math.log(3.0))
    assert max(row.details["tries"] for row in draws.statistics) > 1.0


def test_where_no_start_is_possible_the_chain_stays_and_a_note_says_so() -> None:
    v = Venture(seed=1)
    v.execute("[assume b (normal 0 1)] [force b 4] [observe (uniform_continuous 0 (exp b)) 20]")
    before = snapshot(v.traces[0])
    with pytest.warns(UserWarning, match="stays where it was: the density is zero at each of 100 random starts"):
        draws = v.infer("(initialize)")
    assert snapshot(v.traces[0]) == before
    assert "(initialize): stays where it was" in str(draws.summary())


def test_choices_that_come_with_others_have_random_starts_too() -> None:
    """The branch that opens has a choice far from its prior."""
    for seed in range(10):
        v = Venture(seed=seed)
        v.execute("[assume k (flip)] [assume x (if k (normal 50 1) (normal -50 1))]")
        v.infer("(initialize)")
        assert abs(v.sample("x")) < 2.0


def test_what_has_no_draws_has_a_start() -> None:
    """Improper densities, also where a choice comes with another."""
    for seed in range(6):
        v = Venture(seed=seed)
        v.execute("[assume k (flip)] [assume a (flat)] [assume s (flat 3)] [assume x (if k (flat none 1) 0)]")
        draws = v.infer("(do (initialize s 4) (collect a s x))")
        assert abs(draws["a"][0, 0]) < 2.0
        assert draws["s"][0, 0] == 4.0
        assert draws["x"][0, 0] == 0.0 or -math.exp(2.0) < draws["x"][0, 0] - 1.0 < -math.exp(-2.0)


# ------------------------------------------------------------------------------------------------ paths uphill


@pytest.mark.thorough
def test_the_normals_of_a_path_are_those_of_bfgs() -> None:
    """The compact form is the recursion of Nocedal and Wright (2006), equation 7.16, begun with the same diagonal; its
    draws have the mean, and its densities are those, of that normal."""
    mean, covariance = quadratic(12, 1)
    precision = np.linalg.inv(covariance)
    path = climb(lambda x: (-0.5 * float((x - mean) @ precision @ (x - mean)), -precision @ (x - mean)), np.zeros(12))
    pairs = [(b[0] - a[0], a[2] - b[2]) for a, b in zip(path.steps, path.steps[1:], strict=False)]
    found = list(normals(path))
    assert [step for step, _ in found] == list(range(1, len(path.steps)))
    for step, normal in found:
        inverse = np.diag(normal.root**2)
        for move, loss in pairs[max(0, step - HISTORY) : step]:
            rho = 1.0 / float(move @ loss)
            back = np.eye(12) - rho * np.outer(loss, move)
            inverse = back.T @ inverse @ back + rho * np.outer(move, move)
        free, _, gradient = path.steps[step]
        np.testing.assert_allclose(normal.mean, free + inverse @ gradient, rtol=1e-6, atol=1e-6)
        here, log_density = normal.draw(np.zeros(12))
        steps = np.array([normal.draw(row)[0] - here for row in np.eye(12)]).T
        np.testing.assert_allclose(steps @ steps.T, inverse, rtol=1e-6, atol=1e-6)
        assert log_density == pytest.approx(float(stats.multivariate_normal(normal.mean, inverse).logpdf(here)))


@pytest.mark.thorough
@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_best_normal_of_a_normal_is_that_normal(size: int) -> None:
    """100 draws' mean and covariance, by chi-square of the standardised sum and spread, each with 10^-6; a normal that
    is a tenth too wide is let through. Noticed: the worst normal in place of the best."""
    mean, covariance = quadratic(size, 2)
    precision = np.linalg.inv(covariance)
    rng = np.random.default_rng(3)

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        return -0.5 * float((x - mean) @ precision @ (x - mean)), -precision @ (x - mean)

    with threadpool_limits(1, user_api="blas"):
        ends = [pathfinder(evaluate, rng.uniform(-2, 2, size), rng) for _ in range(100)]
    away = np.array([end.free - mean for end in ends if end is not None])
    assert len(away) == 100
    total = away.sum(axis=0)
    assert total @ precision @ total / 100.0 < 1.2 * stats.chi2(size).isf(1e-6)
    spread = float(np.einsum("ni,ij,nj->", away, precision, away))
    low, high = stats.chi2(100 * size).ppf([1e-6, 1 - 1e-6])
    assert 0.8 * low < spread < 1.2 * high
    evidence = 0.5 * float(np.linalg.slogdet(2.0 * math.pi * covariance)[1])
    assert np.median([end.elbo for end in ends if end is not None]) == pytest.approx(evidence, abs=0.3)


def test_a_path_to_where_there_is_no_density_takes_the_next_best() -> None:
    """Uphill leads to an edge, beyond which there is nothing."""
    rng = np.random.default_rng(1)

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray] | None:
        return None if x[0] > 1.0 else (3.0 * float(x[0]) - 0.1 * float(x[0] ** 2), 3.0 - 0.2 * x)

    ends = [pathfinder(evaluate, np.array([-6.0]), rng) for _ in range(20)]
    assert all(end is None or end.free[0] <= 1.0 for end in ends)
    assert pathfinder(lambda x: None, np.zeros(2), rng) is None


def test_a_path_comes_up_to_a_wall_and_stops_where_slopes_lead_nowhere() -> None:
    """A mode a tenth before an edge; and slopes that do not fit the density, from where no way is looked for. Noticed:
    1e100 in place of OUTSIDE, by which a search step that overshoots the edge is followed by none; no MOST_OUTSIDE."""

    def steep(x: np.ndarray) -> tuple[float, np.ndarray] | None:
        return None if x[0] > 1.0 else (-1e3 * float((x[0] - 0.9) ** 2), -2e3 * (x - 0.9))

    for start in (-20.0, -3.0, 0.0):
        assert climb(steep, np.array([start])).end == pytest.approx([0.9], abs=1e-4)
    asked: list[float] = []

    def walled(x: np.ndarray) -> tuple[float, np.ndarray] | None:
        asked.append(float(x[0]))
        return None if x[0] > 0.0 else (float(x[0]), np.array([1e8]))

    path = climb(walled, np.array([0.0]))
    assert path.is_stuck
    assert path.end == pytest.approx([0.0])
    assert len(asked) < 20
    assert not climb(steep, np.array([0.0])).is_stuck


@pytest.mark.thorough
@pytest.mark.parametrize(("depth", "ends"), [(50.0, -1.5), (3.0, 1.5)])
def test_of_several_paths_the_first_is_taken_that_is_not_hopeless(depth: float, ends: float) -> None:
    """From a given start at 1.4, by a mode so many nats below the one at -1.5. All of 20 random starts lead to the
    former with probability 2^-20. Noticed: the first path whatever its depth, and the best path whatever its order."""
    v = Venture(seed=1)
    v.execute("[assume x (flat)] [factor (logsumexp (* -50 (pow (+ x 1.5) 2)) (- (* -50 (pow (- x 1.5) 2)) {depth}))]",
              depth=depth)  # fmt: skip
    one = v.infer("(do (initialize x 1.4) (pathfinder default all) (collect x))")
    several = v.infer("(do (initialize x 1.4) (pathfinder default all 'paths 21) (collect x))")
    assert one["x"].ravel() == pytest.approx([1.5], abs=0.6)
    assert several["x"].ravel() == pytest.approx([ends], abs=0.6)
    assert ("of 21 paths ended far below" in str(several.summary())) == (depth == 50.0)


@pytest.mark.thorough
def test_paths_from_random_starts_end_at_draws_of_a_normal_posterior() -> None:
    """Of mean 8/9 and variance 5/9, from 30 starts: the mean within 5 standard errors, the sd within half."""
    v = Venture(seed=1)
    v.execute("[assume a (normal 0 1)] [assume b (normal a 1)] [observe (normal b 0.5) 2]")
    draws = [v.infer("(do (initialize) (pathfinder default all) (collect a))")["a"][0, 0] for _ in range(30)]
    assert abs(np.mean(draws) - 8 / 9) < 5.0 * math.sqrt(5 / 9 / 30)
    assert np.std(draws) == pytest.approx(math.sqrt(5 / 9), rel=0.5)


@pytest.mark.thorough
def test_a_mode_is_found_in_free_coordinates_and_a_density_without_one_is_named() -> None:
    v = Venture(seed=1)
    v.execute("[assume s (gamma 3 2)] [assume x (normal 1 2)]")
    draws = v.infer("(do (optimize default all) (collect s x))")
    # the density of log s is s^3 exp(-2 s)
    assert draws["s"].ravel() == pytest.approx([1.5], rel=1e-4)
    assert draws["x"].ravel() == pytest.approx([1.0], abs=1e-4)
    assert "(optimize default all): stands at a maximum, log density" in str(draws.summary())
    assert "5 of 5 starts led there" in str(draws.summary())
    v = Venture(seed=1)
    v.execute(CENTRED, **DATA)
    with pytest.warns(UserWarning, match="stands at no maximum.*the density still grows, most along scale"):
        v.infer("(do (initialize) (optimize default all))")
    draws = v.infer("(do (initialize) (pathfinder default all) (collect scale))")
    assert "the density still grows, most along scale" in str(draws.summary())
    assert draws["scale"].ravel()[0] > 0.001


SLOPES = {
    "a factor of a computed value": ("[assume m (normal 0 1)] [assume g (* 2 m)] [factor g]", 2.0),
    "factors of many computed values": (
        """[assume m (normal 0 1)] [assume g (mem (lambda (n) (* 0.04 m)))] for n in 1...50: [factor (g n)]""",
        2.0,
    ),
    "a factor at the end of a recursion": (
        """[assume m (normal 0 1)] [assume h (mem (lambda (t) (if (= t 0) m (+ m (* 0.5 (h (- t 1)))))))]
           [factor (h 30)]""",
        2.0,
    ),
    "a factor of a sine": ("[assume m (normal 0 1)] [factor (* 2 (sin m))]", 1.0298665),
    "a text in a row": (
        """[assume m (normal 0 1)] [observe (normal (* m (+ 1 (if (= "t" "t") 3 0))) 1) 2]""",
        8.0 / 17.0,
    ),
}
"""Programs with the mode of m, which are those of normals but for that of the sine: the root of 2 cos(m) - m."""


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("action", ["optimize default all", "pathfinder default all"])
def test_slopes_that_are_constant_lead_to_the_mode(name: str, action: str) -> None:
    """`pathfinder` draws from a normal about the mode, of a sd of 1 at most: 40 draws within six standard errors.
    Noticed: a derivative that is a plain number taken for 0, and a comparison of texts for false."""
    program, mode = SLOPES[name]
    v = Venture(seed=1)
    v.execute(program)
    times, within = (1, 1e-3) if action.startswith("optimize") else (40, 6.0 / math.sqrt(40))
    found = [v.infer(f"(do (initialize) ({action}) (collect m))")["m"].item() for _ in range(times)]
    assert np.mean(found) == pytest.approx(mode, abs=within)


@pytest.mark.thorough
@pytest.mark.parametrize("is_centred", [True, False])
def test_a_path_of_many_coordinates_that_has_no_mode_is_not_followed(is_centred: bool) -> None:
    """The scale of 150 effects goes to 0 with them, unless it is no part of their density: then there is a mode, or at
    least no flight. Noticed: the best normal whatever the path, by which a scale of 1 begins below 0.05."""
    rng = np.random.default_rng(2)
    effect = "(normal 0 scale)" if is_centred else "(* scale (z j))"
    v = Venture(seed=1)
    v.execute(
        "[assume scale (half_cauchy 1)] [assume z (mem (lambda (j) (normal 0 1)))]"
        f"[assume effect (mem (lambda (j) {effect}))] for j in 1...150: [observe (normal (effect j) 2) {{Y[j]}}]",
        Y=rng.normal(scale=2.2, size=150),
    )
    draws = v.infer("(do (initialize scale 1) (pathfinder default all) (collect scale))")
    assert ("stays where it was: uphill there is no mode" in str(draws.summary())) == is_centred
    assert "the density still grows, most along scale" in str(draws.summary()) or not is_centred
    assert (draws["scale"].ravel()[0] == 1.0) == is_centred


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("[assume s (flat 0)] [assume a (flat)] [observe (normal a 1) 2]", "no maximum.*still grows, most along s"),
        ("[assume a (flat)] [assume b (flat)] [observe (normal (- b a) 1) 2]", "a maximum.*does not change along"),
        ("[assume a (flat)] [assume s (gamma 2 1)]", "a maximum.*does not change along a"),
    ],
)
def test_what_makes_a_posterior_improper_is_named(program: str, told: str) -> None:
    v = Venture(seed=1)
    v.execute(program)
    with pytest.warns(UserWarning, match=told):
        v.infer("(do (initialize) (optimize default all))")
    draws = v.infer("(do (initialize) (pathfinder default all))")
    assert draws.statistics[1].details["still growing"] == float("grows" in told)


def test_points_without_a_density_are_told_where_a_search_finds_nothing() -> None:
    def said(program: str, inference: str) -> str:
        v = Venture(seed=1)
        v.execute(program)
        with warnings.catch_warnings(record=True) as met:
            warnings.simplefilter("always")
            v.infer(inference)
        return "\n".join(str(each.message) for each in met)

    # random starts above log 2 have none
    edge = "[assume x (normal 0 1)] [observe (normal (log (- 2 (exp x))) 0.1) -0.5]"
    for search in ("(pathfinder default all 'paths 8)", "(optimize default all)"):
        assert not said(edge, search)
    assert "no value: factor: EXPR must be a number or -inf, got inf" in said(
        "[assume x (flat)] [factor (log (exp x))]", "(optimize default all)"
    )


def test_the_higher_of_two_modes_is_found() -> None:
    """At 2 and at -2, the prior of mean 0.5 makes the former the higher one."""
    for seed in range(5):
        v = Venture(seed=seed)
        v.execute("[assume x (normal 0.5 3)] [observe (normal (* x x) 0.3) 4]")
        v.infer("(do (initialize) (optimize default all))")
        assert v.sample("x") == pytest.approx(2.0, abs=0.05)


def test_each_block_goes_its_own_way() -> None:
    v = Venture(seed=1)
    v.execute("[assume a (normal 1 1)] [assume b (mem (lambda (i) (normal 2 1)))] [predict (+ (b 1) (b 2))]")
    draws = v.infer("(do (optimize default each) (collect a (b 1) (b 2)))")
    assert [float(draws[name][0, 0]) for name in ("a", "(b 1)", "(b 2)")] == pytest.approx([1, 2, 2], abs=1e-4)
    assert "(the first of 3 blocks)" in str(draws.summary())


def test_draws_after_a_start_count() -> None:
    v = Venture(seed=1)
    v.execute(STANDARD, **DATA)
    draws = v.infer("(do (initialize) (pathfinder default all) (repeat 20 (do (mh default one 1) (collect level))))")
    assert draws.adapting == ({},)
    assert draws.summary().sizes == {"level": (1, 20)}


def test_a_start_that_nothing_moves_is_told_to_be_taken_as_given() -> None:
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)] [assume y (normal x 1)]")
    with pytest.warns(UserWarning, match="y: 1 choice is moved by no kernel"):
        v.infer("(do (initialize x 3) (optimize default all) (repeat 5 (collect y)))")


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("(repeat 3 (initialize))", "initialize cannot stand inside repeat"),
        ("(cycle ((optimize default all)) 3)", "optimize cannot stand inside cycle"),
        ("(mixture (1 (pathfinder default all)) 3)", "pathfinder cannot stand inside mixture"),
        ("(do (collect x) (do (initialize)))", "initialize cannot stand after something was collected"),
        ("(do (repeat 2 (plot x)) (optimize default all))", "optimize cannot stand after something was collected"),
        ("(initialize x)", "initialize is written (initialize [EXPR VALUE] ...)"),
        ("(initialize x y)", "VALUE is a constant; y is a name of the model"),
        ("(optimize default all 5)", "optimize is written (optimize SCOPE BLOCK)"),
        ("(pathfinder default all 'path 3)", "pathfinder knows no such option"),
    ],
)
def test_what_is_written_wrong_is_refused_by_a_check_and_a_run_alike(action: str, message: str) -> None:
    program = "[assume x (normal 0 1)] [assume y (normal 0 1)]"
    v = Venture(seed=1)
    v.execute(program)
    with pytest.raises(VentureError) as caught:
        v.infer(action)
    assert message in str(caught.value)
    found = [each for each in check(f"{program}\n[infer {action}]").diagnostics if each.severity == "error"]
    assert [each.message for each in found] == [caught.value.message]


def test_there_is_one_path_or_more() -> None:
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)]")
    with pytest.raises(VentureError, match=r"<input>:1:32: K must be a whole number, 1 or more, got 0"):
        v.infer("(pathfinder default all 'paths 0)")


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("(initialize x 1 x 2)", "x is given twice"),
        ("(initialize s -1)", "-1 is impossible for gamma"),
        ("(initialize (+ x 1) 1)", "(+ x 1) is no unobserved choice that stands"),
        ("(initialize (f 2) 1)", "(f 2) is no unobserved choice that stands"),
        ("(initialize o 1)", "o is no unobserved choice that stands"),
        ("(optimize default all)", "optimize moves continuous choices; flip is discrete"),
        ("(pathfinder k all)", "pathfinder moves continuous choices; flip is discrete"),
        ("(pathfinder j all)", "< is applied to what depends on the block and has no derivative"),
    ],
)
def test_what_cannot_be_moved_is_refused_and_nothing_is_lost(action: str, message: str) -> None:
    v = Venture(seed=1)
    v.execute(
        "[assume x (normal 0 1)] [assume s (gamma 1 1)] [assume f (mem (lambda (i) (normal 0 1)))] [predict (f 1)]"
        "[assume k (tag 'k 0 (flip))] [assume j (tag 'j 0 (normal 0 1))] [observe (normal (if (< j 0) 1 2) 1) 1]"
        "[assume o (normal 0 1)] [observe o 2]"
    )
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError) as caught:
        v.infer(action)
    assert message in str(caught.value)
    assert f"in {action} at" in str(caught.value)
    assert snapshot(v.traces[0]) == before


def test_an_empty_scope_is_told() -> None:
    v = Venture(seed=1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        v.infer("(do (optimize nothing all) (initialize))")
    assert "the scope nothing is empty, nothing is moved" in str(told[0].message)


@pytest.mark.thorough
def test_a_path_ends_in_the_normal_of_its_mode_where_scales_differ() -> None:
    """Sds from 1 to 10^4 in twelve turned coordinates: L-BFGS alone does not know all of them. What a path knows of
    scales is what paths of nuts begin with, so that none of them is long."""
    rng = np.random.default_rng(1)
    axes = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    precision = axes @ np.diag(10.0 ** np.linspace(-8, 0, 12)) @ axes.T
    mean, covariance = rng.normal(size=12) * 1e3, np.linalg.inv(precision)

    def evaluate(free: np.ndarray) -> tuple[float, np.ndarray]:
        return -0.5 * float((free - mean) @ precision @ (free - mean)), -precision @ (free - mean)

    found, alone = (pathfinder(evaluate, np.ones(12), rng, hessian) for hessian in (lambda free: -precision, None))
    assert found is not None
    assert alone is not None
    assert found.elbo > alone.elbo
    np.testing.assert_allclose(found.normal.covariance(), covariance, rtol=1e-4, atol=1.0)
    np.testing.assert_allclose(found.normal.variances(), np.diag(covariance), rtol=1e-4)
    # a normal that is a correction of low rank
    np.testing.assert_allclose(np.diag(alone.normal.covariance()), alone.normal.variances(), rtol=1e-6)

    v = Venture(seed=1)
    v.execute("[assume a (normal 30000 10000)] [assume b (normal (+ -5 (* 0.0001 a)) 0.1)]")
    lengths = []
    for start in ("", "(initialize) (pathfinder default all) "):
        draws = v.infer(f"(do {start}(repeat 20 (do (nuts default all 'dense 'adapt 20 1) (collect a))))")
        lengths.append(next(row.rows for row in draws.statistics if row.kernel.startswith("(nuts")))
    assert lengths[1] < 0.2 * lengths[0]
