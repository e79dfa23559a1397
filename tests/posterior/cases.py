"""All cases, by theme."""

from __future__ import annotations

from tests.posterior import (
    cases_blocks,
    cases_branches,
    cases_conjugate,
    cases_families,
    cases_gates,
    cases_makers,
    cases_memo,
    cases_mixtures,
    cases_names,
    cases_predictors,
    cases_processes,
    cases_recursion,
    cases_supports,
    cases_sweeps,
)
from tests.posterior.case import Case

CASES: tuple[Case, ...] = (
    *cases_conjugate.CASES,
    *cases_families.CASES,
    *cases_branches.CASES,
    *cases_recursion.CASES,
    *cases_memo.CASES,
    *cases_blocks.CASES,
    *cases_gates.CASES,
    *cases_makers.CASES,
    *cases_mixtures.CASES,
    *cases_names.CASES,
    *cases_predictors.CASES,
    *cases_processes.CASES,
    *cases_supports.CASES,
    *cases_sweeps.CASES,
)
