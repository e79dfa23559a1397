"""Procedures registered from Python are procedures like any other: in the language, and under engines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.session.registered import agrees, gauss, gauss_columns, with_gauss
from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.errors import ArgumentError

# --------------------------------------------------------------------------------------------------- random ones


def test_it_is_sampled_observed_memoized_and_passed_as_a_value() -> None:
    venture = with_gauss()
    venture.execute(
        """
        [assume twice (lambda (f x) (+ (f x 1) (f x 1)))]
        [assume at (mem (lambda (i) (gauss i 1)))]
        [assume chosen (if (flip) gauss normal)]
        [predict (twice gauss 3)] [predict (at 2)] [predict (chosen 0 1)]
        [observe (at 1) 2.5] [observe (gauss 0 2) 1]
        """
    )
    assert venture.sample("(at 2)") == venture.sample("(at 2)")
    assert venture.observe("(gauss 1 2)", 2.0) == pytest.approx(stats.norm.logpdf(2, 1, 2))
    check(venture.traces[0])


@pytest.mark.parametrize("columns", [None, gauss_columns])
@pytest.mark.parametrize("kernel", ["(mh default all 'drift 0.4 3)", "(mh default one 3)"])
@pytest.mark.thorough
def test_its_posterior_is_that_of_the_procedure_it_copies(kernel: str, columns: Any) -> None:
    venture = with_gauss(**({"log_density_columns": columns} if columns else {}))
    y = np.random.default_rng(0).normal(1.0, 3.0, 25)
    venture.execute("[assume mu (gauss 0 1)] for n in 1...25: [observe (gauss mu 3) {y[n]}]", y=y)
    draws = venture.infer(f"(repeat 500 (do {kernel} (collect mu)))")
    (row,) = draws.summary().rows
    assert agrees(draws["mu"], y.sum() / 9 / (1 + 25 / 9), row.ess_bulk)
    check(venture.traces[0])


@pytest.mark.parametrize(
    "kernel",
    ["(slice default one 2 20 1)", "(rejection default one 1)", "(mh default one (lambda (x) (normal x 0.5)) 3)"],
)
@pytest.mark.thorough
def test_engines_work_on_it_that_its_fields_allow(kernel: str) -> None:
    def log_bound(value: float, mean: float | None, sd: float | None) -> float:
        return math.inf if sd is None else -math.log(sd) - 0.5 * math.log(2 * math.pi)

    venture = with_gauss(log_bound=log_bound)
    venture.execute("[assume mu (gauss 0 1)] [observe (gauss mu 0.5) 1] [observe (gauss mu 2) -1]")
    draws = venture.infer(f"(repeat 800 (do {kernel} (collect mu)))")
    (row,) = draws.summary().rows
    assert agrees(draws["mu"], (1 / 0.25 - 1 / 4) / (1 + 1 / 0.25 + 1 / 4), row.ess_bulk)


def test_what_has_no_bound_is_refused_by_rejection() -> None:
    venture = with_gauss()
    venture.execute("[assume mu (gauss 0 1)] [observe (gauss mu 0.5) 1]")
    with pytest.raises(VentureError, match="gauss"):
        venture.infer("(rejection default one 1)")
    venture = with_gauss(log_bound=0.0)
    venture.execute("[assume mu (gauss 0 1)] [observe (gauss mu 0.5) 1]")
    venture.infer("(rejection default one 1)")


@pytest.mark.thorough
def test_a_support_is_enumerated() -> None:
    venture = Venture(seed=1)
    weights = {"red": 1, "green": 2, "blue": 5}
    venture.register(
        "colour",
        simulate=lambda rng: rng.choice(list(weights), p=np.array(list(weights.values())) / 8),
        log_density=lambda value: math.log(weights[value] / 8) if value in weights else -math.inf,
        support=lambda: list(weights),
    )
    venture.execute('[assume c (colour)] [observe (flip (if (= c "blue") 0.1 0.5)) true]')
    draws = venture.infer("(repeat 2000 (do (gibbs default one 1) (collect c)))")["c"][0]
    assert stats.binomtest(int((draws == "blue").sum()), 2000, 0.5 / 2.0).pvalue > 1e-6


@pytest.mark.parametrize(
    ("domain", "values", "outside"),
    [
        ("count", [0, 3, 1, 7], -1),
        ("integer", [-2, 0, 5, 1], 0.5),
        ("positive integer", [1, 2, 9, 3], 0),
        ("boolean", [True, False, True, True], 2),
        ("positive", [0.5, 2.0, 1.0, 7.0], -1.0),
    ],
)
def test_columns_know_the_domain_of_the_values(domain: str, values: list[Any], outside: Any) -> None:
    """Rows of NumPy's numbers are in it as the language's own are."""
    v = Venture(seed=1)
    v.register(
        "odd",
        simulate=lambda rng, rate: values[0],
        log_density=lambda value, rate: -rate * (1.0 + value),
        log_density_columns=lambda value, rate: -rate * (1.0 + value),
        arguments={"rate": "positive"},
        domain=domain,
    )
    rows = 10 * values
    v.execute("[assume r (gamma 2 2)] for n in 1...40: [observe (odd r) {y[n]}]", y=rows)
    rate = v.report("r")
    expected = 2.0 * math.log(2.0) + math.log(rate) - 2.0 * rate - rate * sum(1.0 + value for value in rows)
    assert v.log_score() == pytest.approx(expected, rel=1e-12)
    with pytest.raises(VentureError, match="impossible for odd, whatever its parameters are"):
        v.execute("for n in 1...40: [observe (odd r) {y[n]}]", y=[*rows[:-1], outside])


@pytest.mark.thorough
def test_a_domain_says_how_drift_moves_and_where_the_density_is_zero() -> None:
    venture = Venture(seed=1)
    venture.register(
        "half", simulate=lambda rng: rng.exponential(), log_density=lambda value: -value, domain="positive"
    )
    with pytest.raises(VentureError, match="half"):
        venture.observe("(half)", -1)
    venture.execute("[assume x (half)]")
    draws = venture.infer("(repeat 4000 (do (mh default one 'drift 1.5 2) (collect x)))")
    assert draws["x"].min() > 0
    (row,) = draws.summary().rows
    assert agrees(draws["x"], 1.0, row.ess_bulk)


@pytest.mark.parametrize(
    ("domain", "low", "high"),
    [((2, 5), 2, 5), ((2, math.inf), 2, math.inf), ((-math.inf, 2), -math.inf, 2), ("unit", 0, 1), ("angle", -4, 4)],
)
def test_drift_stays_within_the_bounds(domain: Any, low: float, high: float) -> None:
    venture = Venture(seed=1)
    start = {"unit": 0.5, "angle": 0.5, (-math.inf, 2): 1.5}.get(domain, 2.5)
    venture.register("wedge", simulate=lambda rng: start, log_density=lambda value: -abs(value), domain=domain)
    draws = venture.execute("[assume x (wedge)] (repeat 200 (do (mh default one 'drift 3 1) (collect x)))")[-1]["x"]
    assert low < draws.min()
    assert draws.max() < high
    assert draws.std() > 0


def test_what_is_not_continuous_is_refused_by_drift_and_what_has_no_support_by_gibbs() -> None:
    venture = with_gauss(domain=None)
    venture.execute("[assume x (gauss 0 1)]")
    with pytest.raises(VentureError, match="gauss is discrete"):
        venture.infer("(mh default one 'drift 1 1)")
    with pytest.raises(VentureError, match="gauss has none"):
        venture.infer("(gibbs default one 1)")


# --------------------------------------------------------------------------------------------- deterministic ones


def test_a_function_is_applied_wherever_procedures_are() -> None:
    venture = with_gauss()
    venture.register("hypotenuse", function=lambda a, b=1.0: math.hypot(a, b))
    venture.register("total", function=lambda *numbers: sum(numbers), columns=lambda *numbers: sum(numbers))
    assert venture.sample("(hypotenuse 3 4)") == 5
    assert venture.sample("(hypotenuse 0)") == 1
    assert venture.sample("(total 1 2 3)") == 6
    assert venture.sample("(map hypotenuse (list 0 0))") == [1, 1]
    venture.execute("[assume mu (gauss 0 1)] for n in 1...40: [observe (gauss (total mu n) 1) {y[n]}]", y=np.ones(40))
    assert venture.log_score() == pytest.approx(
        stats.norm.logpdf(m := venture.report("mu")) + stats.norm.logpdf(1.0, m + np.arange(1, 41)).sum()
    )
    check(venture.traces[0])


def test_a_function_is_applied_in_inference_expressions() -> None:
    venture = with_gauss()
    venture.register("steps", function=lambda n: 2 * n)
    venture.execute("[assume x (gauss 0 1)] [define n (steps 3)]")
    assert venture.infer("(mh default one (steps n))").statistics[0].transitions == 12


def test_the_argument_count_is_read_from_the_signature() -> None:
    venture = Venture(seed=1)
    venture.register("f", function=lambda a, b=1: a)
    with pytest.raises(ArgumentError, match=r"f takes 1 to 2 arguments \(a \[b\]\), got 3"):
        venture.sample("(f 1 2 3)")


def test_what_a_function_gives_to_python_is_not_a_view_of_the_trace() -> None:
    venture = with_gauss()
    seen: list[Any] = []

    def columns(value: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
        seen.append(value)
        return gauss_columns(value, mean, sd)

    venture.register("g", simulate=lambda rng, mean, sd: 0.0, log_density=gauss, log_density_columns=columns)
    venture.execute("for n in 1...30: [observe (g 0 1) {y[n]}]", y=np.ones(30))
    with pytest.raises(ValueError, match="read-only"):
        seen[0][:] = 7.0


# ------------------------------------------------------------------------------------------------- their session


def test_a_registration_belongs_to_its_session_alone_and_outlives_clear() -> None:
    venture = Venture(seed=1)
    venture.register("f", function=lambda x: x + 1)
    venture.clear()
    assert venture.sample("(f 1)") == 2
    with pytest.raises(VentureError, match="unknown name f"):
        Venture(seed=1).sample("(f 1)")


def test_a_procedure_cannot_use_the_session_that_calls_it() -> None:
    venture = Venture(seed=1)
    venture.register("f", function=lambda x: venture.sample("(normal 0 1)"))
    with pytest.raises(VentureError, match="running a directive already"):
        venture.execute("[assume x (f 1)]")
    assert venture.sample("(+ 1 1)") == 2
