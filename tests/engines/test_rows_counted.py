"""The statistics count every row that a kernel weighs, also where the scaffold holds whole sites."""

from __future__ import annotations

import pytest

from venture_lite import Venture

FEW_AND_MANY = (8, 9, 40)


def rows(program: str, kernel: str, count: int) -> float:
    venture = Venture(seed=2)
    venture.execute(f"{program} for n in 1...{count}: [observe (normal mu 1) 0.1]")
    (row,) = venture.infer(kernel).statistics
    return row.rows


@pytest.mark.parametrize("count", FEW_AND_MANY)
def test_rejection_counts_the_rows_of_every_try(count: int) -> None:
    found = rows("[assume mu (normal 0 0.3)]", "(rejection default one 3)", count)
    assert found >= 3 * count
    assert found % count == 0


@pytest.mark.parametrize("kernel", ["(mh default one 5)", "(mh default all 5)"])
@pytest.mark.parametrize("count", FEW_AND_MANY)
def test_a_transition_that_may_change_structure_counts_its_rows(kernel: str, count: int) -> None:
    program = "[assume z (flip)] [assume mu (if z (normal 0 1) (normal 1 1))]"
    assert rows(program, kernel, count) == 5 * count


@pytest.mark.parametrize("count", FEW_AND_MANY)
def test_gibbs_counts_the_rows_of_every_candidate(count: int) -> None:
    assert rows("[assume z (flip)] [assume mu (if z 0.5 (- 1))]", "(gibbs default one 2)", count) == 2 * 2 * count


def test_two_actions_count_what_one_of_two_transitions_does() -> None:
    """The gradient at the present state is known from the path that ended there."""

    def counted(kernel: str) -> float:
        venture = Venture(seed=2)
        venture.execute("[assume mu (normal 0 1)] for n in 1...20: [observe (normal mu 1) 0.1]")
        return sum(row.rows for row in venture.infer(kernel).statistics)

    once = "(hmc default one 0.1 3 'fixed {})"
    assert counted(f"(do {once.format(1)} {once.format(1)})") == counted(once.format(2)) == 7 * 21
    moved = f"(do {once.format(1)} (mh default one 'drift 5 1) {once.format(1)})"
    assert counted(moved) >= 7 * 21


def test_slices_that_go_by_turns_count_each_its_own() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume a (normal 0 1)] [assume b (normal 0 1)] [observe (normal a 1) 1] [observe (normal b 1) 2]")
    text = "(repeat 20 (cycle ((slice {a} all 1 10 1) (slice {b} all 1 10 1)) 1))"
    venture.execute("[predict (tag 'x 0 (normal 0 1))]")
    together = venture.infer(text.format(a="default", b="x")).statistics
    assert together[0].rows > 2 * together[1].rows
