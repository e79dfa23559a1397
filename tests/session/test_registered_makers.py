"""Classes registered from Python make exchangeable procedures: their statistics, inputs, what is checked of them."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
import pytest
from scipy import stats

from tests.session.registered import THRESHOLD
from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.errors import ArgumentError


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
@pytest.mark.thorough
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
        found = venture.infer("(repeat 600 (do (mh default one 4) (collect a (g 1))))")
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
    before = snapshot(venture.traces[0])
    venture.infer("(mh default one 20)")
    assert snapshot(venture.traces[0]) == before
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
