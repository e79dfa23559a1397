"""Faults of fast ways that were mended: the answers are exact in every way of making transitions."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import pytest

from tests.posterior import faults_columns, faults_gradients, faults_labels, faults_predictors, faults_transitions
from tests.posterior.case import Case
from tests.posterior.derive import normal_pdf
from tests.posterior.fault import Fault
from tests.posterior.test_posterior import chain
from tests.statistics import assert_chain_agrees
from venture_lite import Venture
from venture_lite.blocks import summed_splits
from venture_lite.errors import Disagreement

FAULTS: tuple[Fault, ...] = (
    *faults_transitions.FAULTS,
    *faults_columns.FAULTS,
    *faults_labels.FAULTS,
    *faults_gradients.FAULTS,
    *faults_predictors.FAULTS,
)
KERNELS = ("compiled", "interpreted", "checked")


def runs(fault: Fault) -> Iterator[Any]:
    """Every case under each of its engines and each way of making transitions; every day in the one that was wrong."""
    for case in (*fault.cases, *fault.siblings):
        for engine, kernels in itertools.product(case.engines, KERNELS):
            is_everyday = kernels == "compiled" and case in fault.cases
            marks = [] if is_everyday and not fault.is_long else [pytest.mark.slow]
            yield pytest.param(case, engine, kernels, id=f"{case.name}:{engine}:{kernels}", marks=marks)


DRAWS = 400
"""Of a compiled session; a checked one draws the same, but where sweeps take other random numbers."""
FEWER = 200
"""Of the other ways."""


@pytest.mark.parametrize(("case", "engine", "kernels"), [run for fault in FAULTS for run in runs(fault)])
def test_the_posterior_is_exact_in_every_way(case: Case, engine: str, kernels: str) -> None:
    more = chain(case, engine, seed=crc32(f"{case.name} {engine}".encode()), kernels=kernels)
    assert_chain_agrees(
        more, case.exact(), DRAWS if kernels == "compiled" else FEWER, what=f"{engine} on{case.program}"
    )


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


@pytest.mark.filterwarnings("default::venture_lite.errors.Disagreement")
@pytest.mark.parametrize("is_broken", [False, True])
def test_the_evidence_is_exact_where_values_are_of_several_kinds(
    is_broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean of 40 independent estimates, within 5.8 of its standard errors: beyond these with probability 1e-6."""
    fault = faults_columns.TRUTH_BESIDE_NUMBERS
    if is_broken:
        fault.broken(monkeypatch)
    for way in ("", "'tempered "):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            venture = Venture(seed=4)
            venture.execute(fault.cases[0].program)
            evidence = venture.infer(f"(smc 10 {way}'runs 40 (mh default one 1))").evidence
        assert evidence is not None
        assert evidence.error < 0.05
        assert abs(evidence.log - math.log((normal_pdf(1.5, 0, 1) + normal_pdf(1.5, 1, 1)) / 2)) < 5.8 * evidence.error
        assert is_broken == any(issubclass(each.category, Disagreement) for each in said)


@pytest.mark.slow
@pytest.mark.parametrize("labels_seen", [1, 2])
def test_splits_are_exact_however_few_labels_propose_them(labels_seen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summed_splits, "SEEN", labels_seen)
    (case,) = (c for c in faults_labels.PARAMETERS_OF_LABELS.siblings if c.name == "the_last_label_reads_another_mean")
    more = chain(case, faults_labels.SPLITTING, seed=5)
    assert_chain_agrees(more, case.exact(), DRAWS, what=case.program)
