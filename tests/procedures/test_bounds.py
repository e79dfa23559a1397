"""The upper bound of a density lies above it whatever the unknown arguments are, and no higher than it need be."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.procedures.examples import RANDOM
from venture_lite.procedures.bounds import log_bound
from venture_lite.procedures.record import UNKNOWN, Random
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.values import freeze

MEAN_VECTORS = ("multivariate_normal", "multivariate_normal_cholesky")
# (procedure, which arguments are known) with a finite bound of a density
BOUNDED = {
    *(("normal", known) for known in ((0,), (1,))),
    *(("laplace", known) for known in ((0,), (1,))),
    *(("cauchy", known) for known in ((0,), (1,))),
    *(("logistic_dist", known) for known in ((0,), (1,))),
    *(("lognormal", known) for known in ((0,), (1,))),
    *(("student_t", known) for known in ((0, 1), (0, 2))),
    *(("uniform_continuous", known) for known in ((0,), (1,))),
    *(("beta", known) for known in ((0,), (1,))),
    *(("gamma", known) for known in ((0,), (1,))),
    *(("inv_gamma", known) for known in ((0,), (1,))),
    *(("pareto", known) for known in ((0,), (1,))),
    *((name, ()) for name in ("expon", "chi_sq", "inv_chi_sq", "half_normal", "half_cauchy")),
    *((name, (0,)) for name in ("weibull", "half_student_t", "wishart", "inv_wishart")),
    *((name, (1,)) for name in ("von_mises", *MEAN_VECTORS)),
}
TRIALS = 40


def moved(argument: Any, rng: np.random.Generator, positive: bool) -> Any:
    """Another value that an argument of this kind may have."""
    if isinstance(argument, tuple):
        argument = np.array(argument, dtype=np.float64)
    if isinstance(argument, np.ndarray) and argument.ndim == 2:
        mix = np.eye(len(argument)) * math.exp(rng.normal()) + 0.5 * rng.normal(size=argument.shape)
        return freeze(mix @ argument @ mix.T)
    if isinstance(argument, np.ndarray):
        return freeze(argument + rng.normal(size=argument.shape))
    return argument * math.exp(2 * rng.normal()) if positive else argument + 3 * rng.normal()


def cases() -> list[Any]:
    found = []
    for name, example in RANDOM.items():
        record = PROCEDURES[name]
        assert isinstance(record, Random)
        positions = range(len(record.arguments))
        for count in range(len(record.arguments)):
            for known in itertools.combinations(positions, count):
                found.extend(
                    pytest.param(record, arguments, known, id=f"{name}{arguments}-{known}")
                    for arguments in example.arguments
                )
    return found


@pytest.mark.parametrize(("record", "arguments", "known"), cases())
@pytest.mark.thorough
def test_a_bound_lies_above_the_density(record: Random, arguments: tuple[Any, ...], known: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    given = tuple(value if i in known else UNKNOWN for i, value in enumerate(arguments))
    for _ in range(3):
        value = record.simulate(rng, *arguments)
        bound = log_bound(record, value, given)
        assert (bound < math.inf) == (record.transform is None or (record.name, known) in BOUNDED)
        if bound == math.inf or not all(isinstance(a, (int, float, tuple, np.ndarray)) for a in arguments):
            continue
        assert bound >= record.log_density(value, *arguments) - 1e-9
        for _ in range(TRIALS if record.transform is not None else 0):
            other = tuple(
                argument if i in known else moved(argument, rng, record.arguments[i].domain.name == "positive")
                for i, argument in enumerate(arguments)
            )
            if all(a.domain.contains(o) for a, o in zip(record.arguments, other, strict=True)):
                assert bound >= record.log_density(value, *other) - 1e-9


@pytest.mark.parametrize(
    ("name", "known"),
    sorted(BOUNDED - {("wishart", (0,)), ("inv_wishart", (0,)), *((name, (1,)) for name in MEAN_VECTORS)}),
)
@pytest.mark.thorough
def test_a_bound_is_reached(name: str, known: tuple[int, ...]) -> None:
    """The search is over one number: the density's maximum, found by search, is the bound."""
    record, arguments = PROCEDURES[name], RANDOM[name].arguments[-1]
    assert isinstance(record, Random)
    (unknown,) = (i for i in range(len(arguments)) if i not in known)
    value = record.simulate(np.random.default_rng(6), *arguments)
    given = tuple(UNKNOWN if i == unknown else argument for i, argument in enumerate(arguments))
    positive = record.arguments[unknown].domain.name == "positive"

    def density(x: float) -> float:
        tried = math.exp(x) if positive else x
        return record.log_density(value, *(tried if i == unknown else a for i, a in enumerate(arguments)))

    # a positive number is searched for by its logarithm; the best mean of a lognormal is that of the value
    center = 0.0 if positive else math.log(value) if name == "lognormal" else float(value)
    best = max(np.linspace(center - 8, center + 8, 4001), key=density)
    largest = max(map(density, np.linspace(best - 0.005, best + 0.005, 2001)))
    assert largest == pytest.approx(log_bound(record, value, given), abs=1e-4)
