"""Every engine that applies finds every case's exact posterior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.posterior import engines
from tests.posterior.case import Case
from tests.posterior.cases import CASES
from tests.posterior.engines import further
from tests.statistics import Expected, assert_chain_agrees

PAIRS = [
    pytest.param(case, engine, id=f"{case.name}:{engine}")
    for case in CASES
    for engine in (*case.engines, *further(case.name))
]


def kind(engine: str) -> str:
    """What sets an engine apart: how it proposes, and whether it draws a block or sweeps."""
    if "cycle" in engine or "mixture" in engine:
        return "composed"
    for name in ("slice", "rejection", "(lambda"):
        if name in engine:
            return name
    proposal = "gibbs" if engine.startswith("(gibbs") else "drift" if "'drift" in engine else "resimulation"
    return proposal if proposal != "resimulation" or " one " in engine else "resimulation of other blocks"


LONG = (
    "choices_come_and_go",
    "chosen_procedure",
    "coin_mixture",
    "conditional_members",
    "correlation_of_pairs",
    "counts_differ",
    "crp_of_normals",
    "depth_as_argument",
    "dirichlet_process",
    "evidence_at_depth",
    "evidence_in_branch",
    "evidence_through_calls",
    "finite_mixture",
    "franchise",
    "geometric",
    "gp_at_a_random_place",
    "gp_kinds",
    "hierarchical_states",
    "hmm_of_normals",
    "hmm_persistence",
    "hmm_persistence_uncollapsed",
    "keys_alike",
    "lazy_or",
    "list_keys",
    "memory_of_a_choice",
    "mutual_recursion",
    "nested_flips",
    "operator_by_branch",
    "pitman_yor_of_categories",
    "pitman_yor_process",
    "places_in_a_row_memoized",
    "precision_matrix",
    "random_graph",
    "random_list",
    "random_sum",
    "shared_walk",
    "structure_in_rows",
    "three_families",
    "tree_size",
    "two_features",
    "vector_of_effects",
)
"""Cases of which a thousand draws take seconds; every other one is left to the slow ones."""
DRAWS = 250
"""Of the everyday suite; a chain that cannot tell yet goes on."""


def every_day(case: Case) -> list[str]:
    """The engines of the everyday suite: of every other case the first, and of each case that is not long one of
    another kind, which falls differently for each case; the others run with the slow ones."""
    kinds: dict[str, str] = {}
    for engine in case.engines:
        kinds.setdefault(kind(engine), engine)
    first, *others = kinds.values()
    turn = crc32(case.name.encode())
    if case.name in LONG or not others:
        return [first]
    return [first] * (turn % 2) + [others[turn % len(others)]]


EVERYDAY = [
    pytest.param(case, e, id=f"{case.name}:{e}")
    for case in CASES
    if case.name not in LONG or crc32(case.name.encode()) % 2
    for e in every_day(case)
] + [
    pytest.param(case, e, id=f"{case.name}:{e}") for case in CASES for name, e in engines.EVERYDAY if name == case.name
]
WARM_UP = 50


KNOWN: dict[str, Mapping[str, Expected]] = {}


def exact(case: Case) -> Mapping[str, Expected]:
    """The exact answer, which is computed once for all tests of a case."""
    if case.name not in KNOWN:
        KNOWN[case.name] = case.exact()
    return KNOWN[case.name]


def chain(case: Case, engine: str, seed: int, kernels: str = "compiled") -> Callable[[int], Mapping[str, np.ndarray]]:
    """A function that moves a fresh chain on by n draws and returns them."""
    from venture_lite import Venture

    venture = Venture(seed=seed, kernels=kernels)
    parameters: dict[str, Any] = dict(case.parameters)
    venture.execute(case.program, **parameters)
    venture.infer(f"(repeat {WARM_UP} {engine})")
    collected = " ".join(f"(labelled {expression} {name})" for name, expression in case.query.items())

    def more(n: int) -> dict[str, np.ndarray]:
        draws = venture.infer(f"(repeat {n} (do {engine} {collected}))")
        return {name: np.asarray(draws[name], dtype=float).reshape(n) for name in case.query}

    return more


@pytest.mark.parametrize(("case", "engine"), EVERYDAY)
def test_engine_finds_the_exact_posterior(case: Case, engine: str) -> None:
    more = chain(case, engine, seed=crc32(f"{case.name} {engine}".encode()))
    assert_chain_agrees(more, exact(case), DRAWS, what=f"{engine} on{case.program}")


@pytest.mark.slow
@pytest.mark.parametrize(("case", "engine"), PAIRS)
def test_engine_finds_the_exact_posterior_with_many_draws(case: Case, engine: str) -> None:
    more = chain(case, engine, seed=1 + crc32(f"{case.name} {engine}".encode()))
    assert_chain_agrees(more, case.exact(), draws=400, what=f"{engine} on{case.program}")


def test_names_of_cases_are_distinct() -> None:
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_a_case_is_complete(case: Case) -> None:
    assert set(exact(case)) == set(case.query)
    assert len(case.engines) >= 2
    assert case.derivation
