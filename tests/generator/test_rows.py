"""Programs of rows, of as many rows as thresholds lie between: all that a session says of them is what the evaluator,
an enumeration or an integral says.

A program found wrong prints itself, ready to be run.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.generator.comparison import Fault as Found
from tests.generator.row_answers import FINITE_KERNELS, LABEL_KERNELS, compare_evidence, judge
from tests.generator.row_comparison import compare
from tests.generator.rows import PLACES, SIZES, THEMES, finite, labels, row_program
from tests.posterior.fault import Fault
from tests.posterior.test_faults import FAULTS
from venture_lite.interpreter import answers

# 300 programs every day, each of another structure, and 10,000 with the slow tests, each structure at every size.
CHUNK = 30
FAST = [pytest.param(first, id=f"{first}..{first + CHUNK - 1}") for first in range(0, 300, CHUNK)]
SLOW_CHUNK = len(SIZES) * 10
SLOW = [pytest.param(first, id=f"{first}..{first + SLOW_CHUNK - 1}") for first in range(0, 10_070, SLOW_CHUNK)]
MOST = 600
"""Programs in which a fault is found."""
UNSEEN = "labels summed out that differ in which parameters of a class they read"
"""The fault that they do not show: each state is weighed as it should be, and the law of what moves is wrong. Exact
posteriors tell (`tests/posterior/faults_labels.py`)."""
WAYS = ("compiled", "checked")
"""Of making transitions."""

Patch = pytest.MonkeyPatch


def size_of(seed: int) -> int:
    """Of the program of a seed, where each has a structure of its own; themes and sizes come in all combinations."""
    return SIZES[seed * 7 % len(SIZES)]


def compare_seed(seed: int, engines: int, whole: bool) -> None:
    """Compare a structure at one size. Raises Fault."""
    rows, odd = size_of(seed), PLACES[seed % len(PLACES)]
    name = f"structure {seed}, {rows} rows, the {odd} one odd"
    compare(row_program(seed, rows, odd), seed, WAYS[seed % 2], engines, name, whole)


def compare_all(seeds: Iterable[int]) -> None:
    """Raises Fault."""
    for seed in seeds:
        compare_seed(seed, 1, True)


@pytest.mark.parametrize("first", FAST)
def test_programs_of_rows_are_as_the_evaluator_says(first: int) -> None:
    for seed in range(first, first + CHUNK):
        compare_seed(seed, int(seed % 5 == 0), False)


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW)
def test_ten_thousand_programs_of_rows_are_as_the_evaluator_says(first: int) -> None:
    for number in range(first, first + SLOW_CHUNK):
        structure, size = divmod(number, len(SIZES))
        rows, odd = SIZES[size], PLACES[number % len(PLACES)]
        name = f"structure {structure}, {rows} rows, the {odd} one odd"
        compare(row_program(structure, rows, odd), number, WAYS[number % 2], 1, name, whole=not number % 4)


def judge_seed(seed: int, count: int) -> int:
    """Hold as many kernels against the exact answer of a program of few rows; how many could be judged. Raises
    Fault."""
    theme = THEMES[seed % len(THEMES)]
    if theme not in (finite, labels):
        return 0
    is_finite, odd = theme is finite, PLACES[seed % len(PLACES)]
    rows = (1, 2, 3, 9, 20)[seed % 5] if is_finite else 2 + seed % 2
    program, kernels = row_program(seed, rows, odd), FINITE_KERNELS if is_finite else LABEL_KERNELS
    judged = compare_evidence(program, seed) if is_finite else 0
    return judged + sum(judge(program, seed, kernels[(seed + 3 * i) % len(kernels)], is_finite) for i in range(count))


@pytest.mark.parametrize("seed", [3, 6, 13, 25])
def test_engines_find_the_answers_of_programs_of_few_rows(seed: int) -> None:
    judge_seed(seed, 1)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 560, 14))
def test_engines_find_the_answers_of_many_programs_of_few_rows(first: int) -> None:
    assert sum(judge_seed(seed, 3) for seed in range(first, first + 14)) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("fault", [pytest.param(fault, id=fault.name) for fault in FAULTS if fault.name != UNSEEN])
def test_a_fault_is_found_where_its_mend_is_taken_out(fault: Fault, monkeypatch: Patch) -> None:
    """Without the comparisons of a session."""
    monkeypatch.setattr(answers, "ANSWERS", 0)
    fault.broken(monkeypatch)
    with pytest.raises(Found):
        compare_all(range(MOST))
