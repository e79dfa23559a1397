"""Discrete laws at the ends of their parameters, where they are certain: densities, slopes, draws, and programs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.procedures.examples import vector
from tests.procedures.test_makers import made
from tests.procedures.test_random import record_of
from tests.statistics import Cdf, Table, assert_chain_agrees
from venture_lite import ArgumentError, Venture
from venture_lite.procedures.record import Maker
from venture_lite.procedures.registry import PROCEDURES

CERTAIN: list[tuple[str, tuple[Any, ...], int, int]] = [
    ("poisson", (0.0,), 0, 0),
    ("neg_binomial", (0.0, 0.3), 0, 0),
    ("neg_binomial", (0.0, 1.0), 0, 0),
    ("neg_binomial_mean", (0.0, 2.5), 0, 0),
    ("beta_binomial", (7, 0.0, 2.5), 1, 0),
    ("beta_binomial", (7, 2.5, 0.0), 2, 7),
    ("beta_binomial", (5000, 0.0, 2000.0), 1, 0),
]
"""(name, arguments, the place of that which is 0, the one value)"""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "args", "zero", "certain"), CERTAIN)
def test_a_discrete_law_takes_its_limit(name: str, args: tuple[Any, ...], zero: int, certain: int) -> None:
    record, rng = record_of(name), np.random.default_rng(1)
    assert record.log_density_columns is not None
    assert record.gradient is not None
    near = (*args[:zero], 1e-13, *args[zero + 1 :])
    for value in (0, 1, 3, 7, 4000, certain):
        expected = 0.0 if value == certain else -math.inf
        assert record.log_density(value, *args) == expected
        assert math.isclose(record.log_density(certain, *near), 0.0, abs_tol=1e-11)
        for lifted in itertools.product((True, False), repeat=1 + len(args)):
            if any(lifted):
                given = [np.array([x, x]) if up else x for x, up in zip((value, *args), lifted, strict=True)]
                assert record.log_density_columns(lifted, *given).tolist() == [expected] * 2
    assert {record.simulate(rng, *args) for _ in range(9)} == {certain}
    if record.support is not None:
        assert list(record.support(*args)) == [certain]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("name", "args", "zero", "certain"), CERTAIN)
def test_the_slope_at_the_limit(name: str, args: tuple[Any, ...], zero: int, certain: int) -> None:
    record = record_of(name)
    assert record.gradient is not None
    exists = record.gradient.exists
    step = 1e-6
    ahead = [record.log_density(certain, *args[:zero], i * step, *args[zero + 1 :]) for i in (1, 2)]
    expected = (4.0 * ahead[0] - ahead[1]) / (2.0 * step)
    inputs = (certain, *args)
    single = record.gradient.evaluate((False,) * len(inputs), exists, *inputs)
    columns = [np.array([x] * 2, dtype=np.float64) for x in inputs]
    together = record.gradient.evaluate((True,) * len(inputs), exists, *columns)
    for found in (single, [None if x is None else x[0] for x in together]):
        for place, there in enumerate(exists):
            if there:
                right = expected if place == zero + 1 else 0.0
                assert found[place] == pytest.approx(right, rel=1e-5, abs=1e-12)


MAKERS: list[tuple[str, tuple[Any, ...], list[Any], list[Any]]] = [
    ("make_crp", (0.0, 0.0), [4, 4, 4], [1, 2]),
    ("make_gamma_poisson", (0.0, 2.5), [0, 0, 0], [0, 1]),
    ("make_beta_bernoulli", (0.0, 2.0), [False] * 3, [False, True]),
    ("make_beta_bernoulli", (2.0, 0.0), [True] * 3, [True, False]),
    ("make_dir_mult", (vector(0.0, 1.5, 0.0),), [1, 1, 1], [1, 2]),
]
"""(name, arguments, what is certain, what is impossible)"""


@pytest.mark.parametrize(("name", "args", "certain", "impossible"), MAKERS)
def test_makers_take_their_limits(name: str, args: tuple[Any, ...], certain: list[Any], impossible: list[Any]) -> None:
    record, rng = PROCEDURES[name], np.random.default_rng(1)
    assert isinstance(record, Maker)
    assert record.gradient is not None
    near = tuple(np.maximum(x, 1e-13) if isinstance(x, np.ndarray) else x or 1e-13 for x in args)
    if name == "make_crp":
        near = (1e-13, 0.0)
    for values, joint in (([], 0.0), (certain, 0.0), (impossible, -math.inf)):
        state = made(name, args, values)
        assert state.log_joint() == joint
        slopes, beside = record.gradient.evaluate(state), record.gradient.evaluate(made(name, near, values))
        for found, other in zip(slopes, beside, strict=True):
            assert np.isfinite(found).all()
            if joint == 0.0:
                assert np.allclose(found, other, 1e-9, 1e-9)
    state = made(name, args, [])
    for value in certain:
        assert state.log_predictive(value) == 0.0
        drawn = state.simulate(rng)
        assert drawn == (value if state.count or name != "make_crp" else 1)
        state.add(value)
    assert state.log_predictive(impossible[1]) == -math.inf


def test_without_one_limit_there_is_none() -> None:
    with pytest.raises(ArgumentError, match="a and b must not both be 0"):
        Venture(seed=1).execute("[assume x (beta_binomial 3 0 0)]")
    with pytest.raises(ArgumentError, match="a and b must not both be 0"):
        Venture(seed=1).execute("[assume c (make_beta_bernoulli 0 0)] [sample (c)]")
    for call in ("(gamma 0 1)", "(normal 0 0)", "(beta 0 1)", "(weibull 0 1)", "(symmetric_dirichlet 0 3)"):
        with pytest.raises(ArgumentError, match="must be a positive number, got 0"):
            Venture(seed=1).sample(call)


def table(weights: dict[float, float]) -> Table:
    total = math.fsum(weights.values())
    return Table({value: weight / total for value, weight in weights.items()})


PRIOR = range(10)
PROGRAMS: dict[str, tuple[str, str, Table]] = {
    "a rate": (
        "[assume x (uniform_discrete 0 10)] [observe (poisson x) 0]", "x", table({x: math.exp(-x) for x in PRIOR})
    ),
    "a rate of what is cut": (
        "[assume x (uniform_discrete 0 10)] [observe (truncated (poisson x) none 1) 0]",
        "x", table({x: 1.0 / (1.0 + x) for x in PRIOR}),
    ),
    "failures that are cut": (
        "[assume x (uniform_discrete 0 10)] [observe (truncated (neg_binomial x 0.4) none 1) 0]",
        "x", table({x: 1.0 / (1.0 + 0.6 * x) for x in PRIOR}),
    ),
    "an occupied site": (
        """[assume x (flip 0.6)] [observe (poisson (if x 1.5 0)) 0] [observe (poisson (if x 0.5 0)) 0]""",
        "x", table({1: 0.6 * math.exp(-2.0), 0: 0.4}),
    ),
    "an extinct line": (
        """[assume n (mem (lambda (t) (if (= t 0) 1 (poisson (* 0.8 (n (- t 1)))))))] [observe (n 2) 0]
        [assume x (min (n 1) 3)]""",
        "x",
        table({
            **{k: math.exp(-0.8 - 0.8 * k) * 0.8**k / math.factorial(k) for k in range(3)},
            3: math.exp(-0.8 + 0.8 * math.exp(-0.8))
            - sum(math.exp(-0.8 - 0.8 * k) * 0.8**k / math.factorial(k) for k in range(3)),
        }),
    ),
    "failures before no success": (
        "[assume x (uniform_discrete 0 10)] [observe (neg_binomial x 0.4) 0]", "x", table({x: 0.4**x for x in PRIOR})
    ),
    "no successes": (
        "[assume x (uniform_discrete 0 10)] [observe (beta_binomial 3 x 2) 0]",
        "x", table({x: math.prod((2 + i) / (x + 2 + i) for i in range(3)) for x in PRIOR}),
    ),
    "a concentration": (
        """[assume x (uniform_discrete 0 10)] [assume z (make_crp x)]
        [observe (z) 1] [observe (z) 1] [observe (z) 1]""",
        "x", table({x: 2.0 / ((x + 1) * (x + 2)) for x in PRIOR}),
    ),
    "a shape": (
        "[assume x (uniform_discrete 0 10)] [assume c (make_gamma_poisson x 2)] [observe (c) 0] [observe (c) 0]",
        "x", table({x: (2.0 / 4.0) ** x for x in PRIOR}),
    ),
}  # fmt: skip


WAYS = ["compiled", *(pytest.param(way, marks=pytest.mark.slow) for way in ("interpreted", "checked"))]


@pytest.mark.thorough
@pytest.mark.parametrize("kernels", WAYS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_whose_choices_reach_the_limit(name: str, kernels: Any) -> None:
    """False alarms: below 1e-6 each."""
    text, variable, expected = PROGRAMS[name]
    v = Venture(seed=1, kernels=kernels)
    v.execute(text)
    kernel = "mh" if name == "an extinct line" else "gibbs"

    def more(n: int) -> dict[str, Any]:
        draws = v.infer(f"(repeat {n} (do ({kernel} default one 2) (collect {variable})))")
        return {"x": np.ravel(draws[variable])}

    assert_chain_agrees(more, {"x": expected}, 400, name)


@pytest.mark.thorough
@pytest.mark.parametrize("kernels", WAYS)
@pytest.mark.parametrize("counts", ["(poisson (* {E[n]} (exp b)))", "(neg_binomial_mean (* {E[n]} (exp b)) 5)"])
def test_rows_without_exposure_run_under_nuts(counts: str, kernels: Any) -> None:
    """Rows of exposure 0 and count 0 say nothing: the posterior is that of the others. False alarms: below 1e-6."""
    v = Venture(seed=1, kernels=kernels)
    v.execute(
        f"[assume b (normal 0 1)] for n in 1...4: [observe {counts} {{Y[n]}}]", E=[0.0, 1.5, 0.0, 1.0], Y=[0, 2, 0, 3]
    )
    grid = np.linspace(-6.0, 6.0, 4001)
    density, rows = -0.5 * grid**2, ((1.5, 2), (1.0, 3))
    for exposure, count in rows:
        name, rest = ("poisson", ()) if counts.startswith("(poisson") else ("neg_binomial_mean", (5.0,))
        density += [record_of(name).log_density(count, exposure * math.exp(b), *rest) for b in grid]
    mass = np.cumsum(np.exp(density - density.max()))
    points = np.array([-0.5, 0.0, 0.5, 1.0])
    expected = Cdf(points, np.interp(points, grid, mass / mass[-1]))
    v.infer("(nuts default all 'adapt 100 100)")

    def more(n: int) -> dict[str, Any]:
        draws = v.infer(f"(repeat {n} (do (nuts default all 'step 0.5 1) (collect b)))")
        return {"b": np.ravel(draws["b"])}

    assert_chain_agrees(more, {"b": expected}, 250, counts)


SEATED = """[assume a (uniform_discrete 0 2)] [assume crp (make_crp a)] [assume z (mem (lambda (i) (crp)))]
    [assume m (mem (lambda (k) (normal 0 3)))] for i in 1...5: [observe (normal (m (z i)) 1) {Y[i]}]"""


@pytest.mark.parametrize(
    "kernel",
    [
        "(gibbs (choices z) each 1)", "(gibbs (choices z) all 'weights 1)", "(split_merge (choices z) 2)",
        *(
            pytest.param(f"(slice (choices z m) all 2 5 'weights {splits}1)", marks=pytest.mark.slow)
            for splits in ("", "'splits 1 ")
        ),
    ],
)  # fmt: skip
@pytest.mark.thorough
def test_one_table_under_the_kernels_of_labels(kernel: str) -> None:
    """All ways agree, and at a concentration of 0 all sit at one table."""
    found = []
    for kernels in ("interpreted", "compiled", "checked"):
        v = Venture(seed=2, kernels=kernels)  # type: ignore[arg-type]
        v.execute(SEATED, Y=[1.0, 2.0, 1.5, 3.0, -1.0])
        sweep = f"(do {kernel} (mh (choices m) each 'drift 0.5 2) (gibbs (choices a) one 1)"
        draws = v.infer(f"(repeat 20 {sweep} (collect a (labelled (size (unique (map z (range 1 6)))) c))))")
        found.append((np.ravel(draws["a"]).tolist(), np.ravel(draws["c"]).tolist()))
    assert found[0] == found[1] == found[2]
    assert {0.0, 1.0} == set(found[0][0])
    assert {c for a, c in zip(*found[0], strict=True) if a == 0.0} == {1.0}
