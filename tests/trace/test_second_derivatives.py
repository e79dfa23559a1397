"""Second derivatives of a block's log density against central differences of its gradient, which is tested apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.generator.directives import random_program
from tests.generator.session import infer, load
from tests.posterior.cases import CASES
from tests.procedures.differences import agree, derivative, is_sharp
from tests.procedures.examples import RANDOM
from tests.procedures.test_gradients import directions, kind_of
from tests.procedures.test_random import draws, record_of
from tests.trace.test_gradients import RECURSIONS, WIDE, blocks, many_rows
from venture_lite import Venture
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.second import REFUSALS, density_slopes
from venture_lite.interpreter.model import Model
from venture_lite.procedures.jets import Jet

NOT_COORDINATE_BY_COORDINATE = {
    "dirichlet_categorical",
    "observed_counts",
    "precision_matrix",
    "covariance_matrix",
    "uncollapsed_dir_mult",
    "finite_mixture",
    "correlation_of_pairs",
}
"""Cases with points of the simplex or matrices, whose transforms have no jets: a list that may only get shorter."""

OF_STATISTICS = {
    "crp_concentration",
    "crp_with_random_concentration",
    "gamma_poisson_maker",
    "gp_regression",
    "hmm_of_normals",
    "hmm_persistence",
    "normal_inv_chi_sq",
    "sym_dir_mult",
}
"""Cases with parameters of exchangeable procedures, whose joint densities have first derivatives alone."""

WITHOUT_JETS = {
    *((name, position) for name in ("wishart", "inv_wishart") for position in range(3)),
    ("multivariate_normal", 2),
    ("multivariate_normal_cholesky", 2),
    ("lkj_cholesky", 0),
    ("lkj_cholesky", 2),
    ("categorical", 1),
    ("weighted_categorical", 1),
}
"""Densities, by name and input, whose gradients are made with what takes no jets of that input (matrices; weights of a
list of values): a list that may only get shorter."""


def compare(model: Model, block: Sequence[int], rng: np.random.Generator) -> int | None:
    """Compare the Hessian between random directions; how many of the comparisons could have told. None where the second
    derivatives do not go through the block."""
    density = BlockDensity(model, block)
    before, mark = snapshot(model), model.trace.journal.mark()
    free = density.present()
    weight, _ = density.evaluate()
    found, told = density.hessian(), 0
    for _ in range(3 if found is not None and not weight.impossible else 0):
        assert found is not None
        one, other = rng.normal(size=(2, len(free)))

        def along(step: float, one: np.ndarray = one, other: np.ndarray = other) -> float:
            density.put(free + step * one)
            return float(density.evaluate()[1] @ other)

        expected = derivative(along)
        assert agree(float(other @ found @ one), expected)
        told += is_sharp(expected)
    model.trace.journal.rollback(mark)
    assert snapshot(model) == before
    return None if found is None else told


@pytest.mark.thorough
def test_programs_with_exact_posteriors() -> None:
    rng = np.random.default_rng(0)
    told, refused = 0, set()
    for case in CASES:
        venture = Venture(seed=1)
        parameters: dict[str, Any] = dict(case.parameters)
        venture.execute(case.program, **parameters)
        for block in blocks(venture.traces[0]):
            found = compare(venture.traces[0], block, rng)
            told += found or 0
            if found is None:
                refused.add(case.name)
    assert refused == NOT_COORDINATE_BY_COORDINATE | OF_STATISTICS
    assert told > 90


@pytest.mark.parametrize(("seeds", "least"), [(14, 35), pytest.param(40, 100, marks=pytest.mark.slow)])
@pytest.mark.thorough
def test_random_programs(seeds: int, least: int) -> None:
    rng = np.random.default_rng(1)
    told = 0
    for seed in range(seeds):
        venture = load(random_program(seed), seed)
        infer(venture, "(mh default one 20)")
        told += sum(compare(venture.traces[0], block, rng) or 0 for block in blocks(venture.traces[0]))
    assert told > 90


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(set(WIDE) - {"a matrix", "parts of a point of the simplex"}))
def test_many_rows_at_once(name: str) -> None:
    model = many_rows(name)
    assert compare(model, model.trace.default.everything(), np.random.default_rng(2))


@pytest.mark.thorough
@pytest.mark.parametrize("name", RECURSIONS)
def test_recursions(name: str) -> None:
    rng = np.random.default_rng(6)
    venture = Venture(seed=3)
    venture.execute(RECURSIONS[name], Y=rng.normal(size=30), T=30)
    model = venture.traces[0]
    assert compare(model, model.trace.default.everything(), rng)


@pytest.mark.parametrize("rows", [1, 3, 21, 42])
@pytest.mark.parametrize(
    "factor",
    [
        "(if (is_number m) 3 {X[n]})",
        "(if (is_vector (vector m 1)) {X[n]} 3)",
        "(size (if (is_empty (vector m {X[n]})) (vector 1) (vector 1 2)))",
        "(if (is_number (* {X[n]} m)) {X[n]} 0)",
    ],
)
def test_predicates_are_asked_what_numbers_are(factor: str, rows: int) -> None:
    """Not what a number with its derivatives is."""
    rng = np.random.default_rng(rows)
    venture = Venture(seed=1)
    program = f"[assume m (normal 0 1)] for n in 1...N: [observe (normal (* m m {factor} {{Z[n]}}) 1) 2]"
    venture.execute(program, N=rows, Z=rng.normal(size=rows), **({"X": rng.normal(size=rows)} if "X" in factor else {}))
    model = venture.traces[0]
    assert compare(model, model.trace.default.everything(), rng)


def test_a_hierarchy_is_gone_through_in_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where more rows are read than are gone through at once."""
    rng = np.random.default_rng(5)
    venture = Venture(seed=3)
    venture.execute(
        """[assume m (normal 0 5)] [assume s (half_cauchy 1)] [assume u (mem (lambda (j) (normal m s)))]
           [assume e (half_cauchy 1)]
           for n in 1...N: [observe (normal (+ (u {A[n]}) (* m {X[n]})) e) {Y[n]}]""",
        N=200,
        A=rng.integers(0, 20, 200),
        X=rng.normal(size=200),
        Y=rng.normal(size=200),
    )
    model = venture.traces[0]
    block = model.trace.default.everything()
    assert compare(model, block, rng)
    whole = BlockDensity(model, block).hessian()
    monkeypatch.setattr("venture_lite.blocks.second.MOST", 1000)
    in_parts = BlockDensity(model, block).hessian()
    assert whole is not None
    assert in_parts is not None
    assert np.allclose(whole, in_parts, rtol=1e-12, atol=1e-12 * np.abs(whole).max())


def jet_along(x: Any, way: Any) -> Jet:
    return Jet(np.asarray(x, dtype=np.float64), np.asarray(way, dtype=np.float64)[None])


@pytest.mark.thorough
@pytest.mark.parametrize("name", RANDOM)
def test_every_density(name: str) -> None:
    """The derivatives of each derivative of a density, by its value and arguments."""
    record, rng = record_of(name), np.random.default_rng(len(name))
    if record.gradient is None:
        return
    there = [i for i, exists in enumerate(record.gradient.exists) if exists]
    asked, single = record.gradient.exists, (False,) * len(record.gradient.exists)
    told = 0
    for args in RANDOM[name].arguments:
        if name == "von_mises" and args[1] == 0:
            # at the end of its domain
            continue
        for value in draws(name, args, 4):
            inputs = (value, *args, *[argument.default for argument in record.arguments[len(args) :]])
            for position in there:
                way = directions(rng, inputs[position], kind_of(record, position, inputs[position]))

                def gradient(step: float, inputs: Any = inputs, position: int = position, way: Any = way) -> Any:
                    assert record.gradient is not None
                    x = inputs[position]
                    moved = x + step * way if isinstance(x, (int, float)) else np.asarray(x, dtype=float) + step * way
                    given = [moved if i == position else other for i, other in enumerate(inputs)]
                    return record.gradient.evaluate(single, asked, *given)

                given = [jet_along(x, way) if i == position else x for i, x in enumerate(inputs)]
                for other in there:
                    try:
                        wanted = tuple(i == other for i in range(len(asked)))
                        part = density_slopes(record, single, wanted, given, ())[other]
                    except REFUSALS:
                        assert (name, position) in WITHOUT_JETS
                        continue
                    sums = np.ones(np.shape(inputs[other]))
                    slope = part.tangent[0] if isinstance(part, Jet) else np.zeros(np.shape(part))

                    def along(step: float, other: int = other, sums: Any = sums, gradient: Any = gradient) -> float:
                        return float(np.sum(sums * gradient(step)[other]))

                    expected = derivative(along)
                    if np.isfinite(along(-(2.0**-13))) and np.isfinite(along(2.0**-13)):
                        assert agree(float(np.sum(sums * slope)), expected), (name, inputs, position, other)
                        told += is_sharp(expected)
    assert told or any((name, position) in WITHOUT_JETS for position in there)
