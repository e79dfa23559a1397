"""`compiled_mh` finds exact posteriors, whatever its network learned: the program, nothing, or what is wrong.

The cases are all that are not refused, each with a joint block, and with single choices where these can reach every
state; refused are blocks that take away choices of their own, and draws from exchangeable procedures. Exact answers are
enumerations, quadratures and conjugate posteriors (`case.py`); the false-alarm rate of each comparison is below 1e-6
(`tests/statistics.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pytest

from tests.posterior.bad_networks import Bad, keep_networks, mirrored, put_past_the_signature, untrained
from tests.posterior.case import Case
from tests.posterior.cases import CASES
from tests.posterior.hierarchy import HIERARCHY
from tests.statistics import assert_chain_agrees
from venture_lite import Venture, VentureError
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.networks import fitting

BLOCKS = {"one": 8, "all": 6, "each": 3}
"""Transitions between two draws, or sweeps."""

CANNOT_REACH = {"exclusive_or": "single choices are stuck: one flip makes the observation impossible"}
CANNOT_READ = {
    "places_in_a_row": "single choices at the centre give a negative number to sqrt",
    "places_in_a_row_memoized": "single choices at the centre give a negative number to sqrt",
    "root_of_a_distance": "single choices at the centre give a negative number to sqrt",
}
BY_NAME = {case.name: case for case in (*CASES, HIERARCHY)}


def trained(
    case: Case, block: str, seed: int, worlds: int, options: str = "", kernels: str = "compiled"
) -> Venture | None:
    """None where the case is refused."""
    venture = Venture(seed=seed, kernels=kernels)
    parameters: dict[str, Any] = dict(case.parameters)
    venture.execute(case.program, **parameters)
    try:
        venture.infer(f"(compile q default {block} 'worlds {worlds} 'hidden 8 {options})")
    except VentureError as error:
        is_told = any(reason in error.message for reason in ("depend", "cannot be learned"))
        return None if is_told or case.name in CANNOT_READ else pytest.fail(str(error))
    return venture


def chain(venture: Venture, case: Case, block: str, safe: float = 0.3) -> Callable[[int], Mapping[str, np.ndarray]]:
    """What moves the chain on and returns its next draws."""
    kernel = f"(compiled_mh q default {block} 'defensive {safe} {BLOCKS[block]})"
    venture.infer(f"(repeat 50 {kernel})")
    collected = " ".join(f"(labelled {expression} {name})" for name, expression in case.query.items())

    def more(n: int) -> Mapping[str, np.ndarray]:
        found = venture.infer(f"(repeat {n} (do {kernel} {collected}))")
        return {name: np.asarray(found[name], dtype=float).reshape(n) for name in case.query}

    return more


def agrees(venture: Venture, case: Case, block: str, draws: int, safe: float = 0.3) -> None:
    assert_chain_agrees(chain(venture, case, block, safe), case.exact(), draws, f"{block} of {case.name}")


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "LEAST_STEPS", 1500)
    monkeypatch.setattr(fitting, "PASSES", 10)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "block"),
    [pytest.param(case, tuple(BLOCKS)[at % len(BLOCKS)], id=case.name) for at, case in enumerate(CASES)],
)
def test_every_case_that_is_not_refused(case: Case, block: str) -> None:
    if block != "all" and case.name in CANNOT_REACH | CANNOT_READ:
        return
    venture = trained(case, block, crc32(f"{case.name} {block}".encode()), 300)
    if venture is not None:
        agrees(venture, case, block, 300)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
@pytest.mark.parametrize(
    ("case", "block", "network"),
    [
        pytest.param(case, ("one", "all")[at % 2], (untrained, mirrored)[at // 2 % 2], id=case.name)
        for at, case in enumerate((*CASES, HIERARCHY))
    ],
)
def test_every_case_with_a_network_that_knows_nothing_or_the_wrong(
    case: Case, block: str, network: Bad, monkeypatch: pytest.MonkeyPatch
) -> None:
    if block != "all" and case.name in CANNOT_REACH | CANNOT_READ:
        return
    network(monkeypatch)
    monkeypatch.setattr(fitting, "LEAST_STEPS", 300)
    venture = trained(case, block, crc32(f"{case.name} {block} {network.__name__}".encode()), 300)
    if venture is not None:
        # a scale, given its effects, moves by short steps
        agrees(venture, case, block, 2500 if case is HIERARCHY else 300, 0.5)


class Varied(NamedTuple):
    """A program of some kind; a network of another has `other` where the program has `own`."""

    block: str
    own: str
    other: str


VARIED = {
    # of a discrete choice with finite support
    "sprinkler": Varied("all", "0.1 0.5", "0.9 0.2"),
    # counts
    "poisson_thinning": Varied("one", "(poisson 3)", "(poisson 9)"),
    # one continuous choice
    "gamma_poisson": Varied("one", "(gamma 2 1)", "(gamma 9 9)"),
    # a block
    "correlated_pair": Varied("all", "(normal (+ a b) 0.7)", "(normal (+ a b) 7)"),
    # heads and a body
    "scale_of_effects": Varied("all", "(normal (x i) 3)", "(normal (x i) 0.3)"),
    # structure that changes
    "choice_in_branch": Varied("one", "(normal 3 2)", "(normal -2 1)"),
    # a vector
    "dirichlet_categorical": Varied("each", "(vector 1 2 3)", "(vector 9 1 1)"),
    # several kinds of blocks
    "binomial_then_normal": Varied("each", "(normal k 1)", "(normal k 0.2)"),
}  # fmt: skip


def with_a_bad_network(name: str, is_foreign: bool, patch: pytest.MonkeyPatch, kernels: str = "compiled") -> Venture:
    case, (block, own, other) = BY_NAME[name], VARIED[name]
    patch.setattr(fitting, "LEAST_STEPS", 200)
    patch.setattr(fitting, "PASSES", 1)
    (keep_networks if is_foreign else untrained)(patch)
    options = "'frame newton" if case is HIERARCHY else "'frame prior"
    program = case.program.replace(own, other) if is_foreign else case.program
    found = trained(replace(case, program=program), block, 3, 300, options, kernels)
    assert found is not None
    assert any(kind.network is not None for kind in proposers_of(found.traces[0])["q"].kinds.values())
    if not is_foreign:
        return found
    assert program != case.program
    venture = Venture(seed=4, kernels=kernels)
    parameters: dict[str, Any] = dict(case.parameters)
    venture.execute(case.program, **parameters)
    put_past_the_signature(found, venture, other, own)
    return venture


LONG = {(name, False) for name in ("dirichlet_categorical", "scale_of_effects", "choice_in_branch", "correlated_pair")}
LONG |= {(name, True) for name in ("dirichlet_categorical", "scale_of_effects", "sprinkler", "correlated_pair")}
LONG |= {("binomial_then_normal", False), ("poisson_thinning", True), ("gamma_poisson", False)}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
@pytest.mark.parametrize(
    ("name", "is_foreign"),
    [
        pytest.param(name, is_foreign, marks=pytest.mark.slow if (name, is_foreign) in LONG else ())
        for name in VARIED
        for is_foreign in (False, True)
    ],
)
def test_a_bad_network_is_slow_and_right(name: str, is_foreign: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrained one, and one that was trained on draws of another program."""
    agrees(with_a_bad_network(name, is_foreign, monkeypatch), BY_NAME[name], VARIED[name].block, 300, 0.5)
