"""Faults of fast ways that were mended: the answers are exact in every way of making transitions."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest

from tests.posterior import faults_gradients, faults_labels, faults_predictors, faults_transitions
from tests.posterior.case import Case
from tests.posterior.fault import Fault
from tests.posterior.test_posterior import chain
from tests.statistics import assert_chain_agrees
from venture_lite.errors import Disagreement

FAULTS: tuple[Fault, ...] = (
    *faults_transitions.FAULTS,
    *faults_labels.FAULTS,
    *faults_gradients.FAULTS,
    *faults_predictors.FAULTS,
)
KERNELS = ("compiled", "interpreted", "checked")


def runs(fault: Fault) -> Iterator[Any]:
    """Every case under each of its engines and each way of making transitions; every day the program that showed the
    fault in each way, and the others in the one that was wrong."""
    for case in (*fault.cases, *fault.siblings):
        for engine, kernels in itertools.product(case.engines, KERNELS):
            is_everyday = case is fault.cases[0] or (case in fault.cases and kernels == "compiled")
            marks = [] if is_everyday and not fault.is_long else [pytest.mark.slow]
            yield pytest.param(case, engine, kernels, id=f"{case.name}:{engine}:{kernels}", marks=marks)


DRAWS = 400


@pytest.mark.parametrize(("case", "engine", "kernels"), [run for fault in FAULTS for run in runs(fault)])
def test_the_posterior_is_exact_in_every_way(case: Case, engine: str, kernels: str) -> None:
    more = chain(case, engine, seed=crc32(f"{case.name} {engine}".encode()), kernels=kernels)
    assert_chain_agrees(more, case.exact(), DRAWS, what=f"{engine} on{case.program}")


def test_names_of_cases_are_distinct() -> None:
    names = [case.name for fault in FAULTS for case in (*fault.cases, *fault.siblings)]
    assert len(set(names)) == len(names)


@pytest.mark.filterwarnings("default::venture_lite.errors.Disagreement")
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if not fault.is_long], ids=lambda fault: fault.name)
def test_a_fault_is_caught_at_run_time(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its mend taken out: the posterior is right all the same, and a warning names the way that fails."""
    case = fault.cases[0]
    fault.broken(monkeypatch)
    for engine in case.engines:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            more = chain(case, engine, seed=crc32(f"{case.name} {engine} broken".encode()))
            assert_chain_agrees(more, case.exact(), DRAWS, what=f"{engine} on{case.program}, broken")
        assert any(issubclass(each.category, Disagreement) for each in said)
