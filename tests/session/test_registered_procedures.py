"""Procedures registered from Python are procedures like any other: in the language, under engines, in their errors."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import pytest
from scipy import stats

from venture_lite import Venture, VentureError
from venture_lite.errors import ArgumentError
from venture_lite.trace.invariants import check

# tests of means: at |z| = 5.5 a right sampler fails with probability 4e-8
THRESHOLD = 5.5


def gauss(value: float, mean: float, sd: Annotated[float, "positive"]) -> float:
    return -0.5 * ((value - mean) / sd) ** 2 - math.log(sd) - 0.5 * math.log(2 * math.pi)


def gauss_columns(value: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> np.ndarray:
    return -0.5 * ((value - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)


def with_gauss(**changed: Any) -> Venture:
    venture = Venture(seed=1)
    fields: dict[str, Any] = {
        "simulate": lambda rng, mean, sd: rng.normal(mean, sd),
        "log_density": gauss,
        "domain": "real",
    }
    venture.register("gauss", **{**fields, **changed})
    return venture


def agrees(draws: np.ndarray, mean: float, ess: float) -> bool:
    return bool(abs(draws.mean() - mean) < THRESHOLD * draws.std() / math.sqrt(ess))


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
def test_its_posterior_is_that_of_the_procedure_it_copies(kernel: str, columns: Any) -> None:
    venture = with_gauss(**({"log_density_columns": columns} if columns else {}))
    y = np.random.default_rng(0).normal(1.0, 3.0, 25)
    venture.execute("[assume mu (gauss 0 1)] for n in 1...25: [observe (gauss mu 3) {y[n]}]", y=y)
    draws = venture.infer(f"(repeat 2500 (do {kernel} (collect mu)))")
    (row,) = draws.summary().rows
    assert agrees(draws["mu"], y.sum() / 9 / (1 + 25 / 9), row.ess_bulk)
    check(venture.traces[0])


@pytest.mark.parametrize(
    "kernel",
    ["(slice default one 2 20 1)", "(rejection default one 1)", "(mh default one (lambda (x) (normal x 0.5)) 3)"],
)
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
    venture.register("flat", simulate=lambda rng: start, log_density=lambda value: -abs(value), domain=domain)
    draws = venture.execute("[assume x (flat)] (repeat 200 (do (mh default one 'drift 3 1) (collect x)))")[-1]["x"]
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


# ------------------------------------------------------------------------------------------------------- makers


class Coin:
    """A beta-Bernoulli written as a user would, without what is optional."""

    def __init__(self, a: Annotated[float, "positive"], b: Annotated[float, "positive"]) -> None:
        self.a, self.b, self.heads, self.tosses = a, b, 0, 0

    def set_arguments(self, arguments: tuple[float, float]) -> None:
        self.a, self.b = arguments

    def chance(self) -> float:
        return (self.a + self.heads) / (self.a + self.b + self.tosses)

    def simulate(self, rng: np.random.Generator) -> bool:
        return bool(rng.random() < self.chance())

    def log_predictive(self, value: Any) -> float:
        return math.log(self.chance() if value else 1 - self.chance())

    def support(self) -> list[bool]:
        return [True, False]

    def add(self, value: Any) -> None:
        self.heads, self.tosses = self.heads + bool(value), self.tosses + 1

    def remove(self, value: Any) -> None:
        self.heads, self.tosses = self.heads - bool(value), self.tosses - 1

    def log_joint(self) -> float:
        def log_beta(a: float, b: float) -> float:
            return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

        return log_beta(self.a + self.heads, self.b + self.tosses - self.heads) - log_beta(self.a, self.b)


class FullCoin(Coin):
    """The same with all that is optional."""

    def add(self, value: Any) -> bool:
        super().add(value)
        return bool(value)

    def remove(self, value: Any) -> bool:
        super().remove(value)
        return not value

    def restore(self, token: Any) -> None:
        raise NotImplementedError

    def recount(self, applications: list[tuple[Any]]) -> None:
        self.heads, self.tosses = sum(bool(value) for (value,) in applications), len(applications)

    def statistics(self) -> dict[str, int]:
        return {"heads": self.heads, "tosses": self.tosses}


class Undoing(FullCoin):
    def add(self, value: Any) -> Any:
        token = self.heads, self.tosses
        super().add(value)
        return token

    def remove(self, value: Any) -> Any:
        token = self.heads, self.tosses
        super().remove(value)
        return token

    def restore(self, token: Any) -> None:
        self.heads, self.tosses = token


@pytest.mark.parametrize("make", [Coin, Undoing])
def test_a_class_that_keeps_statistics_is_an_exchangeable_procedure(make: type) -> None:
    program = """
        [assume a (gamma 1 1)] [assume f (MAKE a 1)] [assume g (mem (lambda (i) (f)))]
        [observe (f) true] [observe (f) true] [observe (g 3) false] [predict (g 1)]"""
    draws, scores = [], []
    for name in ("make_coin", "make_beta_bernoulli"):
        venture = Venture(seed=3)
        venture.register("make_coin", make=make)
        venture.execute(program.replace("MAKE", name))
        venture.execute("[force a 2] [force (g 1) true]")
        scores.append(venture.log_score())
        found = venture.infer("(repeat 1500 (do (mh default one 4) (collect a (g 1))))")
        draws.append(found)
        check(venture.traces[0])
    assert scores[0] == pytest.approx(scores[1])
    rows = [found.summary().rows[0] for found in draws]
    spread = math.hypot(*(row.sd / math.sqrt(row.ess_bulk) for row in rows))
    assert abs(rows[0].mean - rows[1].mean) < THRESHOLD * spread


def test_a_rejected_transition_leaves_the_statistics_as_they_were() -> None:
    venture = Venture(seed=1)
    venture.register("make_coin", make=Coin)
    venture.execute(
        "[assume f (make_coin 1 1)] [assume x (f)] [observe (f) true] [observe (normal (if x 0 50) 1) 0] [force x true]"
    )
    before = venture.traces[0].snapshot()
    venture.infer("(mh default one 20)")
    assert venture.traces[0].snapshot() == before
    check(venture.traces[0])


class Line:
    """Applications with an input: a line through the origin with normal noise, its slope integrated out."""

    def __init__(self, spread: float) -> None:
        self.precision, self.moment, self.known = 1 / spread**2, 0.0, [0.0, 0.0]

    def set_arguments(self, arguments: tuple[float]) -> None:
        self.precision = 1 / arguments[0] ** 2

    def predictive(self, x: float) -> Any:
        precision = self.precision + self.known[0]
        return stats.norm(self.known[1] / precision * x, math.sqrt(1 + x * x / precision))

    def simulate(self, rng: np.random.Generator, x: float) -> float:
        return float(self.predictive(x).rvs(random_state=rng))

    def log_predictive(self, value: float, x: float) -> float:
        return float(self.predictive(x).logpdf(value))

    def add(self, value: float, x: float) -> None:
        self.known = [self.known[0] + x * x, self.known[1] + x * value]

    def remove(self, value: float, x: float) -> None:
        self.known = [self.known[0] - x * x, self.known[1] - x * value]

    def log_joint(self) -> float:
        precision = self.precision + self.known[0]
        return 0.5 * (math.log(self.precision / precision) + self.known[1] ** 2 / precision)


def test_an_application_may_be_given_something() -> None:
    venture = Venture(seed=1)
    venture.register("make_line", make=Line, domain="real")
    venture.execute("[assume f (make_line 2)] [observe (f 1) 2] [observe (f 2) 4.5]")
    precision = 0.25 + 5
    expected = stats.norm.logpdf(3.0, 11 / precision * 1.5, math.sqrt(1 + 1.5**2 / precision))
    assert venture.observe("(f 1.5)", 3.0) == pytest.approx(expected)
    with pytest.raises(VentureError, match="takes 1 argument"):
        venture.sample("(f)")


@pytest.mark.parametrize(
    ("method", "result", "says"),
    [
        ("log_predictive", math.nan, "make_coin: its log_predictive returned nan"),
        ("log_joint", "much", "make_coin: its log_joint returned 'much'"),
        ("simulate", None, "make_coin: its simulate returned None"),
        ("support", "ab", "make_coin: its support returned 'ab'"),
    ],
)
def test_what_a_maker_returns_is_checked(method: str, result: Any, says: str) -> None:
    broken = type("Broken", (Coin,), {method: lambda self, given=None: result})
    venture = Venture(seed=1)
    venture.register("make_coin", make=broken)
    with pytest.raises(ArgumentError, match=says):
        venture.execute(
            "[assume a (gamma 1 1)] [assume f (make_coin a 1)] [observe (f) true]"
            "[assume x (tag 's 0 (f))] (mh default all 1) (gibbs s all 1)"
        )


def test_a_class_that_lacks_a_method_is_refused() -> None:
    with pytest.raises(ArgumentError, match="make_it: what it makes has no set_arguments, remove"):
        Venture(seed=1).register(
            "make_it", make=type("Poor", (), dict.fromkeys(("simulate", "log_predictive", "log_joint", "add"), len))
        )


# ------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("normal", "procedure of the language"),
        ("if", "procedure of the language"),
        ("map", "procedure of the language"),
        ("two words", "no name of the language"),
        ("1st", "no name of the language"),
        ("(f)", "no name of the language"),
        ("", "no name of the language"),
        ("taken", "assumed already"),
        ("later", "waits for an assume of later"),
    ],
)
@pytest.mark.filterwarnings("ignore:waiting refers to later")
def test_a_name_that_cannot_be_taken_is_refused(name: str, says: str) -> None:
    venture = Venture(seed=1)
    venture.assume("taken", "3")
    venture.assume("waiting", "(lambda (x) (later x))")
    before = venture.log_score(), venture.list_directives()
    with pytest.raises(ArgumentError, match=says):
        venture.register(name, function=lambda x: x)
    assert (venture.log_score(), venture.list_directives()) == before
    assert venture.sample("(+ taken 1)") == 4


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({}, "registered with simulate and log_density"),
        ({"simulate": len}, "needs log_density"),
        ({"simulate": len, "log_density": 3}, "its log_density must be a function, got 3"),
        ({"function": len, "make": Coin}, "registered with"),
        ({"function": len, "column": len}, "it takes no field column"),
        ({"function": max}, "the arguments of its function are not known"),
        ({"simulate": len, "log_density": lambda: 0.0}, "log_density takes 0 arguments"),
        ({"simulate": len, "log_density": lambda v, *, a: 0.0}, "log_density takes a by name only"),
        ({"simulate": len, "log_density": lambda v, *a: 0.0}, "takes a fixed number of arguments"),
        ({"function": len, "arguments": "ab"}, "its arguments are a list of names"),
        ({"function": len, "arguments": {"a": "positve"}}, "no domain for its argument a"),
        ({"simulate": len, "log_density": len, "domain": "reel"}, "no domain for its values"),
        ({"simulate": len, "log_density": len, "domain": (3, 1)}, "no domain for its values"),
        ({"simulate": len, "log_density": lambda v, a: 0, "gradient": {"b": len}}, "a gradient in b"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields: dict[str, Any], says: str) -> None:
    venture = Venture(seed=1)
    with pytest.raises(ArgumentError, match=f"mine: .*{says}"):
        venture.register("mine", **fields)
    with pytest.raises(VentureError, match="unknown name mine"):
        venture.sample("(mine 1)")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        (lambda v, m, s: np.nan * v, r"log_density_columns returned nan for the value 1\.0"),
        (lambda v, m, s: 0.0, r"returned an array of shape \(\), not one number for each of 30 rows"),
        (lambda v, m, s: v[:3], r"an array of shape \(3,\)"),
        (lambda v, m, s: "high", "'high', not one number"),
        (lambda v, m, s: gauss_columns(v, m, s) + 1, "its log_density gives .* its log_density_columns"),
        (lambda v, m, s: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_a_density_of_rows_that_is_wrong_names_the_procedure_and_leaves_the_session(columns: Any, says: str) -> None:
    venture = with_gauss(log_density_columns=columns)
    venture.assume("m", "(normal 0 1)")
    before = venture.log_score()
    with pytest.raises(ArgumentError, match=f"gauss: .*{says}") as caught:
        venture.execute("for n in 1...30: [observe (gauss 0 1) {y[n]}]", y=np.ones(30))
    assert "(gauss 0 1)" in str(caught.value)
    assert venture.log_score() == before
    assert len(venture.list_directives()) == 1
    check(venture.traces[0])


@pytest.mark.parametrize("result", [math.nan, None, object(), [1.0, math.nan], np.array([math.nan])])
def test_a_function_that_gives_no_value_names_the_procedure(result: Any) -> None:
    venture = Venture(seed=1)
    venture.register("f", function=lambda x: result)
    with pytest.raises(ArgumentError, match="f: its function returned"):
        venture.execute("[assume x (normal 0 1)] [assume y (f x)]")
    assert [entry["directive"] for entry in venture.list_directives()] == ["assume"]


def test_a_value_outside_the_domain_is_an_error_of_simulate() -> None:
    venture = with_gauss(domain="positive")
    with pytest.raises(ArgumentError, match=r"gauss: its simulate returned -.*, but its values are positive"):
        venture.execute("[assume x (gauss -100 1)]")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("(f 1.5 1 true)", "f: n must be an integer, got 1.5"),
        ("(f 1 -1 true)", "f: sd must be a positive number, got -1"),
        ("(f 1 1 2)", "f: flag must be a boolean, 0 or 1, got 2"),
        ('(f 1 1 true "name" 7)', "f: p must be a number from 0 to 1, got 7"),
        ("(f 1 1 true 3)", "f: label must be a string, got 3"),
    ],
)
def test_type_hints_are_the_domains_of_arguments(call: str, says: str) -> None:
    def f(
        n: int,
        sd: Annotated[float, "positive"],
        flag: bool,
        label: str = "none",
        p: Annotated[float, (0, 1)] = 0.5,
    ) -> int:
        return n

    venture = Venture(seed=1)
    venture.register("f", function=f)
    assert venture.sample("(f 3 0.5 false)") == 3
    with pytest.raises(ArgumentError, match=says):
        venture.sample(call)


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
