"""Distribution functions, and the distributions made of distributions: against SciPy, their own sums and draws.

Each statistical test is seeded and rejects a correct sampler with probability 1e-6.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.procedures.examples import RANDOM
from tests.procedures.integrals import line, volume
from tests.procedures.test_gradients import check
from tests.statistics import Table, assert_chain_agrees
from venture_lite import Venture
from venture_lite.errors import ArgumentError
from venture_lite.procedures.compounds import finite_mixture, increasing, truncated, zero_inflated
from venture_lite.procedures.derivatives import slopes_of
from venture_lite.procedures.distributions.tails import TAILS, log_between
from venture_lite.procedures.numeric import on_columns
from venture_lite.procedures.orders import log_probability_of_increase
from venture_lite.procedures.record import Random
from venture_lite.procedures.registered.procedures import user_random
from venture_lite.procedures.registry import PROCEDURES

FALSE_ALARM = 1e-6


def built_in(name: str) -> Random:
    record = PROCEDURES[name]
    assert isinstance(record, Random)
    return record


def registered_poisson(name: str = "counts", columns: Any = None) -> Random:
    return user_random(
        name, lambda rng, rate: int(rng.poisson(rate)), lambda k, rate: float(stats.poisson.logpmf(k, rate)),
        gradient={"rate": lambda k, rate: k / rate - 1.0}, log_density_columns=columns,
        gradient_columns={"rate": lambda k, rate: k / rate - 1.0} if columns else {},
    )  # fmt: skip


NORMAL, GAMMA, BETA, POISSON = map(built_in, ("normal", "gamma", "beta", "poisson"))
COMPOUNDS: list[tuple[Random, tuple[Any, ...]]] = [
    (truncated(NORMAL, True, False), (1.0, 2.0, 0.5)),
    (truncated(NORMAL, True, False), (0.0, 1.0, 9.0)),
    (truncated(NORMAL, True, True), (0.0, 1.0, -1.0, 0.5)),
    (truncated(GAMMA, False, True), (2.5, 1.5, 1.0)),
    (truncated(GAMMA, True, True), (2.5, 1.5, 6.0, 9.0)),
    (truncated(BETA, True, False), (0.8, 2.0, 0.9)),
    (truncated(built_in("student_t"), False, True), (3.0, 0.5, 2.0, -4.0)),
    (truncated(built_in("student_t"), True, False), (3.0, 0.5, 2.0, 0.5)),
    (truncated(GAMMA, True, False), (1.0, 1.5, -1.0)),
    (truncated(GAMMA, True, True), (2.0, 1.5, -1.0, 3.0)),
    (truncated(BETA, True, True), (2.0, 1.5, -1.0, 3.0)),
    (truncated(built_in("lognormal"), True, True), (0.2, 0.5, -1.0, 3.0)),
    (truncated(built_in("weibull"), True, False), (1.5, 2.0, -1.0)),
    (truncated(built_in("half_student_t"), True, True), (3.0, 2.0, -1.0, 4.0)),
    (truncated(built_in("cauchy"), False, True), (0.0, 1.0, -50.0)),
    (truncated(built_in("uniform_continuous"), True, False), (-1.0, 2.0, 0.5)),
    (truncated(built_in("uniform_continuous"), False, True), (-1.0, 2.0, 1.5)),
    (truncated(built_in("uniform_continuous"), True, True), (-1.0, 2.0, -3.0, 1.5)),
    (truncated(built_in("pareto"), True, False), (2.0, 1.5, 3.0)),
    (truncated(built_in("pareto"), False, True), (2.0, 1.5, 1.6)),
    (truncated(built_in("uniform_discrete"), True, False), (0, 8, 6)),
    (truncated(POISSON, True, False), (2.0, 6)),
    (truncated(POISSON, True, True), (2.0, 1, 4)),
    (truncated(built_in("binomial"), False, True), (6, 0.4, 3)),
    (truncated(built_in("neg_binomial"), True, False), (2.5, 0.4, 2)),
    (truncated(GAMMA, True, False), (2.0, 1.0, 800.0)),
    (truncated(GAMMA, False, True), (400.0, 1.0, 10.0)),
    (truncated(BETA, True, False), (2.0, 900.0, 0.9)),
    (truncated(BETA, False, True), (400.0, 2.0, 0.1)),
    (truncated(built_in("inv_gamma"), False, True), (2.0, 1000.0, 1.0)),
    (truncated(built_in("chi_sq"), True, True), (3.0, 1600.0, 1601.0)),
    (truncated(built_in("student_t"), True, False), (200.0, 0.0, 1.0, 9.0)),
    (truncated(built_in("half_student_t"), True, False), (300.0, 1.0, 40.0)),
    (truncated(POISSON, True, False), (0.5, 170)),
    (truncated(built_in("binomial"), True, False), (180, 0.001, 150)),
    (truncated(built_in("binomial"), False, True), (180, 0.99, 10)),
    (truncated(built_in("neg_binomial"), True, False), (2.5, 1.0 - 1e-4, 90)),
    (zero_inflated(POISSON), (0.3, 2.5)),
    (zero_inflated(truncated(POISSON, True, False)), (0.3, 1.0, 1)),
    (zero_inflated(registered_poisson()), (0.3, 2.5)),
    (zero_inflated(registered_poisson("tallies", stats.poisson.logpmf)), (0.3, 0.7)),
    (finite_mixture(NORMAL, built_in("student_t")), ((0.3, 0.7), -1.0, 0.5, 4.0, 2.0, 1.0)),
    (finite_mixture(NORMAL), (np.array([0.2, 0.5, 0.3]), np.array([-2.0, 0.0, 4.0]), 0.7)),
    (finite_mixture(GAMMA, built_in("lognormal")), ((0.6, 0.4), 2.0, 1.0, 1.0, 0.5)),
    (finite_mixture(POISSON), ((0.4, 0.6), (1.0, 6.0))),
    (finite_mixture(registered_poisson(), built_in("geometric")), ((0.4, 0.6), 3.0, 0.5)),
]
NAMES = [f"{record.name} {args}" for record, args in COMPOUNDS]


@pytest.mark.parametrize("name", TAILS)
def test_tails_are_integrals_of_the_density(name: str) -> None:
    record, tails = built_in(name), TAILS[name]
    rng = np.random.default_rng(len(name))
    for args in RANDOM[name].arguments:
        for x in (float(record.simulate(rng, *args)) for _ in range(2)):
            below, above = tails.below(x, *args), tails.above(x, *args)
            assert math.isclose(math.exp(below) + math.exp(above), 1.0, rel_tol=1e-9)
            if record.transform is None:
                total = math.fsum(math.exp(record.log_density(k, *args)) for k in range(-5, int(x) + 1))
                assert math.isclose(math.exp(below), total, rel_tol=1e-9)
            else:
                asked = (True, *(False,) * len(args))
                density = math.exp(record.log_density(x, *args))
                for tail, sign in ((below, 1.0), (above, -1.0)):
                    function = tails.below if sign > 0 else tails.above
                    _, slope = slopes_of(function, asked, False)(x, *args)
                    assert math.isclose(slope * math.exp(tail), sign * density, rel_tol=1e-8)


def test_what_lies_far_out_keeps_its_digits() -> None:
    tails = TAILS["normal"]
    low, high = ((tails.below(x, 0.0, 1.0), tails.above(x, 0.0, 1.0)) for x in (20.0, 20.5))
    assert math.isclose(log_between(*low, *high), stats.norm.logsf(20) + math.log1p(-3.95e-5), rel_tol=1e-6)


FAR_TAILS: list[tuple[str, bool, float, tuple[Any, ...], float]] = [
    ("gamma", True, 800.0, (2.0, 1.0), -793.31413905293165),
    ("gamma", True, 2e5, (1e5, 1.0), -30691.957366103659),
    ("gamma", False, 100.0, (1000.0, 1.0), -1406.8527552662526),
    ("poisson", True, 400.0, (2.0,), -1730.5376525265303),
    ("beta", False, 0.1, (1000.0, 1000.0), -1026.1478995158182),
    ("beta", True, 0.9, (2.0, 500.0), -1145.1810791575203),
    ("binomial", True, 900.0, (1000, 0.01), -3830.5372592144610),
    ("student_t", True, 9.0, (200.0, 0.0, 1.0), -36.962999153677868),
    ("student_t", True, 10.0, (300.0, 0.0, 1.0), -46.240526877338880),
    ("student_t", True, 40.0, (300.0, 0.0, 1.0), -280.56036145634719),
    ("student_t", False, -1000.0, (1e5, 0.0, 1.0), -119901.39138959429),
]
"""Name, above or below, the point, arguments, and the log probability with 60 digits."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "above", "x", "args", "expected"), FAR_TAILS)
def test_tails_below_the_smallest_float_keep_their_digits(
    name: str, above: bool, x: float, args: tuple[Any, ...], expected: float
) -> None:
    tails = TAILS[name]
    function = tails.above if above else tails.below
    assert function(x, *args) == pytest.approx(expected, rel=1e-14, abs=1e-13)
    column = on_columns(function)(np.array([x, x, x]), *args)
    assert np.allclose(column, expected, 1e-14, 1e-13)
    if TAILS[name] is TAILS["student_t"]:
        return
    # by the position the slope is the density's share of the tail
    asked = (True, *(False,) * len(args))
    if built_in(name).transform is not None:
        _, slope = slopes_of(function, asked, False)(x, *args)
        share = math.exp(built_in(name).log_density(x, *args) - expected)
        assert slope == pytest.approx(-share if above else share, rel=1e-9)


@pytest.mark.parametrize("kernels", ["interpreted", "compiled", "checked"])
def test_what_is_truncated_far_out_has_its_density(kernels: Any) -> None:
    v = Venture(seed=1, kernels=kernels)
    for text, value, expected in (
        ("(truncated (gamma 2 1) 800 none)", 801.0, -1.0),
        ("(truncated (student_t 200) 9 none)", 9.01, 1.80466934),
        ("(truncated (student_t 300) 10 none)", 10.01, 1.94933431),
        ("(truncated (poisson 2) 400 none)", 401, -5.30581419),
    ):
        assert v.observe(text, value) == pytest.approx(expected, abs=1e-7)
        assert v.sample(text) >= value - 2.0


FAR_OUT = 80.0
"""A bound or parameter of a truncated number beyond which its integral takes seconds."""


def is_far_out(record: Random, args: tuple[Any, ...]) -> bool:
    return record.transform is not None and any(isinstance(each, float) and each >= FAR_OUT for each in args)


@pytest.mark.parametrize(
    ("record", "args"),
    [
        pytest.param(*each, marks=[pytest.mark.slow] * (at % 2 or is_far_out(*each)), id=name)
        for at, (each, name) in enumerate(zip(COMPOUNDS, NAMES, strict=True))
    ],
)
@pytest.mark.thorough
def test_compounds_are_normalised_and_drawn_as_they_weigh(record: Random, args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(len(record.name))
    drawn = [record.simulate(rng, *args) for _ in range(500)]
    if record.transform is not None:
        values, cumulative = line(lambda x: record.log_density(x, *args), record.transform, args, 4001)
        assert math.isclose(cumulative[-1], 1.0, rel_tol=1e-4)
        order = np.argsort(values)
        reached = cumulative[order] if values[0] < values[-1] else cumulative[-1] - cumulative[order]
        assert stats.kstest(drawn, lambda x: np.interp(x, values[order], reached)).pvalue > FALSE_ALARM
        return
    masses = np.array([math.exp(record.log_density(k, *args)) for k in range(200)])
    assert math.isclose(masses.sum(), 1.0, rel_tol=1e-9)
    if record.support is not None:
        assert sorted(record.support(*args)) == np.flatnonzero(masses).tolist()
    counts, often = np.bincount(drawn, minlength=200), masses * len(drawn) > 10
    rest: tuple[list[Any], list[Any]] = [len(drawn) - counts[often].sum()], [len(drawn) * (1.0 - masses[often].sum())]
    if rest[1][0] < 1e-6:
        assert not rest[0][0]
        rest = [], []
    observed, expected = (
        np.append(a, b) for a, b in zip((counts[often], masses[often] * len(drawn)), rest, strict=True)
    )
    assert stats.chisquare(observed, expected, sum_check=False).pvalue > FALSE_ALARM


@pytest.mark.thorough
@pytest.mark.parametrize(("record", "args"), COMPOUNDS, ids=NAMES)
def test_gradients_and_columns_of_compounds_agree_with_single_values(record: Random, args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(3)
    values = [record.simulate(rng, *args) for _ in range(6)]
    if record.gradient is None:
        assert "uniform_discrete" in record.name
        return
    sharp = [
        check(record, rng, (value, *args), position)
        for value in values
        for position, exists in enumerate(record.gradient.exists)
        if exists and not (position == 1 and record.name.startswith("finite"))
    ]
    assert any(sharp)
    if record.log_density_columns is None or "counts" in record.name:
        return
    flags = (True, *(False,) * len(args))
    single = [record.log_density(value, *args) for value in values]
    assert np.allclose(record.log_density_columns(flags, np.array(values), *args), single, rtol=1e-9)
    exists = record.gradient.exists
    parts = [record.gradient.evaluate((False,) * len(flags), exists, value, *args) for value in values]
    together = record.gradient.evaluate(flags, exists, np.array(values), *args)
    for at, there in enumerate(exists):
        rows = np.array([part[at] for part in parts]) if there else None
        assert not there or np.allclose(together[at], rows if at == 0 else np.sum(rows, axis=0), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("record", "args"),
    [pair for pair in COMPOUNDS if pair[0].transform is not None and pair[0].transform.reads_arguments],
    ids=lambda item: getattr(item, "name", None) or str(item),
)
def test_moving_bounds_move_the_value(record: Random, args: tuple[Any, ...]) -> None:
    value, transform, step = record.simulate(np.random.default_rng(7), *args), record.transform, 1e-5
    assert transform is not None
    assert record.gradient is not None
    free = transform.to_free(value, args)

    def log_density(at: int, by: float) -> float:
        moved = tuple(x + by if i == at else x for i, x in enumerate(args))
        there = transform.from_free(free, moved)
        return record.log_density(there, *moved) + transform.log_jacobian(there, moved)

    own, *parts = record.gradient.evaluate((False,) * (1 + len(args)), record.gradient.exists, value, *args)
    shifts = transform.argument_gradient(value, args, own)
    for at, (part, shift) in enumerate(zip(parts, shifts, strict=True)):
        expected = (log_density(at, step) - log_density(at, -step)) / (2 * step)
        assert math.isclose(part + (shift or 0.0), expected, rel_tol=1e-4, abs_tol=1e-4), (at, expected)


def test_a_value_far_out_has_a_derivative_by_the_share() -> None:
    """Its density is the least positive float or less, and one over that is infinite."""
    gradient = zero_inflated(registered_poisson()).gradient
    assert gradient is not None
    by_share = gradient.evaluate((False,) * 3, (False, True, True), 400, 0.3, 0.01)[1]
    assert math.isclose(by_share, -1 / 0.7, rel_tol=1e-9)


def test_weights_have_the_derivative_of_what_sums_to_one() -> None:
    record, args = COMPOUNDS[
        NAMES.index(next(name for name in NAMES if name.startswith("finite_mixture normal student")))
    ]
    assert record.gradient is not None
    slope = record.gradient.evaluate((False,) * 7, (False, True, *(False,) * 5), 0.4, *args)[1]
    step = 1e-6
    moved = [record.log_density(0.4, (0.3 + s, 0.7 - s), *args[1:]) for s in (step, -step)]
    assert math.isclose(slope[0] - slope[1], (moved[0] - moved[1]) / (2 * step), rel_tol=1e-6)


@pytest.mark.thorough
def test_increasing_vectors_are_sorted_ones() -> None:
    record, args = increasing(NORMAL, False), (np.array([1.0, 1.0]), 2.0)
    assert record.transform is not None
    total = volume(lambda x: record.log_density(x, *args), record.transform, args, 2)
    assert math.isclose(total, 1.0, rel_tol=1e-5)
    rng = np.random.default_rng(5)
    drawn = np.array([record.simulate(rng, *args) for _ in range(2000)])
    for at, beta in enumerate(((1, 2), (2, 1))):
        assert stats.kstest(stats.norm(1, 2).cdf(drawn[:, at]), stats.beta(*beta).cdf).pvalue > FALSE_ALARM
    assert record.log_density(np.array([2.0, 1.0]), *args) == -math.inf


RATES = [0.1, 3.0, 0.7, 2.5, 0.2, 1.0, 5.0]
SHARES = math.fsum(math.log(rate / math.fsum(RATES[at:])) for at, rate in enumerate(RATES))
ORDERS: list[tuple[str, list[tuple[float, ...]], float]] = [
    ("normal", [(0.0, 1.0), (1.0, 1.0)], float(stats.norm.logcdf(math.sqrt(0.5)))),
    ("normal", [(3.0, 1.0), (0.0, 1.0)], float(stats.norm.logcdf(-3.0 / math.sqrt(2.0)))),
    ("normal", [(30.0, 1.0), (0.0, 1.0)], float(stats.norm.logcdf(-30.0 / math.sqrt(2.0)))),
    ("normal", [(0.0, 1e-3), (500.0, 1e-3), (1e4, 0.1)], 0.0),
    ("normal", [(0.0, 2.0)] * 50, -math.lgamma(51.0)),
    ("gamma", [(0.7, 2.0)] * 10, -math.lgamma(11.0)),
    ("gamma", [(0.05, 2.0)] * 3, -math.lgamma(4.0)),
    ("gamma", [(1e6, 1.0), (1e6, 1.0)], -math.log(2.0)),
    ("beta", [(0.6, 0.8)] * 10, -math.lgamma(11.0)),
    ("cauchy", [(1.0, 2.0)] * 5, -math.lgamma(6.0)),
    ("laplace", [(0.0, 1.0)] * 10, -math.lgamma(11.0)),
    ("student_t", [(1.5, 0.0, 1.0)] * 3, -math.lgamma(4.0)),
    ("expon", [(rate,) for rate in RATES], SHARES),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "items", "expected"), ORDERS)
def test_the_probability_that_items_increase(name: str, items: list[tuple[float, ...]], expected: float) -> None:
    """Of two normals, of items that are alike, and of waiting times: the next is the one that is first by its share of
    the rates."""
    assert log_probability_of_increase(built_in(name), tuple(items)) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_items_with_mass_beyond_the_floats_are_refused() -> None:
    with pytest.raises(ArgumentError, match="items of beta have mass beyond the floats"):
        log_probability_of_increase(BETA, ((0.1, 0.2), (0.1, 0.3)))
    with pytest.raises(ArgumentError, match="the probability that the items of gamma increase is below the floats"):
        increasing(GAMMA, True).log_density(np.array([1.0, 2.0]), np.array([1e6, 1.0]), 1.0)


def test_increasing_vectors_of_items_that_differ_are_normalised() -> None:
    record, args = increasing(NORMAL, True), (np.array([1.0, 0.0]), np.array([2.0, 0.5]))
    assert record.transform is not None
    total = volume(lambda x: record.log_density(x, *args), record.transform, args, 2)
    assert math.isclose(total, 1.0, rel_tol=1e-5)


BRANCHES = """[assume m (flip 0.5)]
    [observe (if m (increasing (normal (vector 0 1) 1)) (increasing (normal (vector 3 0) 1))) (vector 1 1.5)]"""


@pytest.mark.parametrize("kernels", ["interpreted", "compiled", "checked"])
def test_branches_with_items_that_differ_are_compared(kernels: Any) -> None:
    """0.2136 and -2.18877, by the normal distribution function; False alarms: below
    1e-6."""
    v = Venture(seed=1, kernels=kernels)
    assert v.observe("(increasing (normal (vector 0 1) 1))", [1.0, 1.5]) == pytest.approx(-2.18876903, abs=1e-8)
    v = Venture(seed=1, kernels=kernels)
    v.execute(BRANCHES)
    logs = [
        stats.norm.logpdf([1.0, 1.5], means).sum() - stats.norm.logcdf((means[1] - means[0]) / math.sqrt(2.0))
        for means in ([0.0, 1.0], [3.0, 0.0])
    ]
    p = 1.0 / (1.0 + math.exp(logs[1] - logs[0]))
    assert p == pytest.approx(0.2136, abs=1e-4)

    def more(n: int) -> dict[str, Any]:
        return {"m": np.ravel(v.infer(f"(repeat {n} (do (mh default one 2) (collect m)))")["m"]).astype(float)}

    assert_chain_agrees(more, {"m": Table({0: 1.0 - p, 1: p})}, 600, "branches")


@pytest.mark.parametrize("inner", [NORMAL, GAMMA, BETA], ids=lambda record: record.name)
def test_increasing_vectors_have_free_coordinates(inner: Random) -> None:
    record, rng = increasing(inner, False), np.random.default_rng(6)
    args = (np.full(3, 1.5), 2.0)
    value, transform = record.simulate(rng, *args), record.transform
    assert transform is not None
    free = transform.to_free(value, args)
    assert np.allclose(transform.from_free(free, args), value, rtol=1e-9)
    step, eye = 1e-6, np.eye(3)
    slopes = [
        (transform.from_free(free + step * e, args) - transform.from_free(free - step * e, args)) / 2e-6 for e in eye
    ]
    assert math.isclose(transform.log_jacobian(value, args), math.log(np.linalg.det(slopes)), abs_tol=1e-6)
    assert record.gradient is not None
    gradient = record.gradient.evaluate((False,) * 3, (True, False, False), value, *args)[0]
    found = transform.free_gradient(value, args, gradient)

    def log_density(at: np.ndarray) -> float:
        there = transform.from_free(at, args)
        return record.log_density(there, *args) + transform.log_jacobian(there, args)

    assert np.allclose(
        found, [(log_density(free + step * e) - log_density(free - step * e)) / 2e-6 for e in eye], atol=1e-5
    )


def test_what_cannot_be_made_is_refused() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(ArgumentError, match="von_mises has no distribution function"):
        truncated(built_in("von_mises"), True, False)
    with pytest.raises(ArgumentError, match="partly discrete and partly continuous"):
        finite_mixture(NORMAL, POISSON)
    with pytest.raises(ArgumentError, match="partly discrete and partly continuous"):
        finite_mixture(NORMAL, zero_inflated(GAMMA))
    with pytest.raises(ArgumentError, match="2 weights for 3 components"):
        finite_mixture(NORMAL).simulate(rng, (0.5, 0.5), np.zeros(3), 1.0)
    with pytest.raises(ArgumentError, match="normal is one number here"):
        increasing(NORMAL, True).simulate(rng, 0.0, 1.0)
    with pytest.raises(ArgumentError, match="parameters that are not constants"):
        increasing(NORMAL, False).simulate(rng, np.array([0.0, 1.0]), 1.0)
    with pytest.raises(ArgumentError, match="no probability between 50 and 60"):
        truncated(BETA, True, True).simulate(rng, 2.0, 2.0, 50.0, 60.0)
