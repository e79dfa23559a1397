"""`compiled_mh` finds exact posteriors, whatever its network learned.

Where a case is refused, since structure depends on its choices or it draws from exchangeable procedures, that is said;
the cases here are all others, each with a joint block, and with single choices where these can reach every state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.posterior.case import Case
from tests.posterior.cases import CASES
from tests.statistics import assert_chain_agrees
from venture_lite import Venture, VentureError
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.proposer import Proposer
from venture_lite.networks import fitting

BLOCKS = {"one": 8, "all": 6}
"""Transitions between two draws."""

CANNOT_REACH = {"exclusive_or": "single choices are stuck: one flip makes the observation impossible"}
CANNOT_READ = {
    "places_in_a_row": "single choices at the centre give a negative number to sqrt",
    "root_of_a_distance": "single choices at the centre give a negative number to sqrt",
}

EVERYDAY = ("direction", "sprinkler")


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


def agrees(venture: Venture, case: Case, block: str, draws: int) -> None:
    assert_chain_agrees(chain(venture, case, block), case.exact(), draws=draws, what=f"{block} of {case.name}")


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "LEAST_STEPS", 1500)
    monkeypatch.setattr(fitting, "PASSES", 10)


@pytest.mark.parametrize("name", EVERYDAY)
def test_some_cases(name: str) -> None:
    (case,) = [case for case in CASES if case.name == name]
    venture = trained(case, "all", crc32(name.encode()), 400)
    assert venture is not None
    agrees(venture, case, "all", 600)


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CASES])
def test_every_case_that_is_not_refused(case: Case, block: str) -> None:
    if block == "one" and case.name in CANNOT_REACH | CANNOT_READ:
        return
    venture = trained(case, block, crc32(f"{case.name} {block}".encode()), 600)
    if venture is not None:
        agrees(venture, case, block, 4000)


@pytest.mark.parametrize("frame", ["prior", "newton"])
def test_a_network_trained_on_other_data_is_slow_and_right(frame: str) -> None:
    """It is put in place past all that `compile` looks at."""
    program = "[assume x (tag 'x 0 (normal 0 2))] [observe (normal x {SD}) 1.5]"
    other, venture = Venture(seed=1), Venture(seed=1)
    other.execute(program, SD=20.0)
    venture.execute(program, SD=0.5)
    other.infer(f"(compile p x one 'worlds 1000 'frame {frame})")
    proposers_of(venture.traces[0])["p"] = Proposer("p", "x", "x one", proposers_of(other.traces[0])["p"].kinds)
    draws = venture.infer("(repeat 4000 (do (compiled_mh p x one 'defensive 0.5 2) (collect x)))")
    x = np.asarray(draws["x"])
    mean, sd = 6.0 / 4.25, (1.0 / 4.25) ** 0.5
    # six standard errors at a tenth of independent draws
    assert abs(x.mean() - mean) < 6.0 * sd / 20.0
    assert abs(x.std() / sd - 1.0) < 0.2
