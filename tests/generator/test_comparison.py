"""Every kernel on random programs: draw for draw as in the plain spelling, and as often as the enumeration says."""

from __future__ import annotations

import math
import re

import pytest

from tests.generator.comparison import (
    GENERAL,
    KERNELS,
    Interrupted,
    assert_finds_the_answer,
    compare_spellings,
    finite_program,
    step,
)
from tests.generator.directives import CHAINED, random_program
from tests.generator.session import load
from tests.generator.worlds import Answer, worlds

# 20 programs every day, half of them finite, and 70 with the slow tests; each chunk is one test.
CHUNK = 10
FINITE = [pytest.param(first, id=f"{first}..{first + CHUNK - 1}") for first in range(0, 10, CHUNK)]
OTHERS = [pytest.param(first, id=f"{first}..{first + CHUNK - 1}") for first in range(2000, 2010, CHUNK)]
SLOW_FINITE = [pytest.param(first, id=f"{first}..{first + CHUNK - 1}") for first in range(10, 50, CHUNK)]
SLOW_OTHERS = [pytest.param(first, id=f"{first}..{first + CHUNK - 1}") for first in range(2010, 2040, CHUNK)]
DRAWS = 20


def some(kernels: tuple[str, ...], seed: int, count: int) -> tuple[str, ...]:
    """As many of the kernels, others for each seed, in their order."""
    chosen = {(seed + i * (len(kernels) // count)) % len(kernels) for i in range(count)}
    return tuple(kernel for i, kernel in enumerate(kernels) if i in chosen)


def agree(seeds: range, finite: bool, count: int) -> int:
    """Compare programs with their plain spelling; how many comparisons of kernels were made."""
    made = 0
    for seed in seeds:
        program = finite_program(seed) if finite else random_program(seed)
        kernels = KERNELS if finite else GENERAL
        try:
            made += compare_spellings(program, seed, some(kernels, seed, count), finite, DRAWS)
        except Interrupted:
            continue
    return made


@pytest.mark.parametrize("first", FINITE)
def test_draws_are_those_of_the_plain_spelling(first: int) -> None:
    assert agree(range(first, first + CHUNK), True, 2) >= 8


@pytest.mark.parametrize("first", OTHERS)
def test_draws_are_those_of_the_plain_spelling_in_other_programs(first: int) -> None:
    assert agree(range(first, first + CHUNK), False, 2) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW_FINITE)
def test_draws_of_all_kernels_are_those_of_the_plain_spelling(first: int) -> None:
    assert agree(range(first, first + CHUNK), True, len(KERNELS)) >= 50


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW_OTHERS)
def test_draws_of_all_kernels_are_those_of_the_plain_spelling_in_other_programs(first: int) -> None:
    assert agree(range(first, first + CHUNK), False, len(GENERAL)) >= 50


def judge(seeds: range, count: int) -> int:
    """Compare that many kernels on each program with its enumeration; how many could be judged."""
    return sum(
        assert_finds_the_answer(finite_program(seed), seed, kernel)
        for seed in seeds
        for kernel in some(KERNELS, seed, count)
    )


def judge_chains(seeds: range, kernel: str) -> int:
    """Compare 'forward on each program that it is not refused for with its enumeration; how many could be judged."""
    judged = 0
    for seed in seeds:
        program = finite_program(seed)
        text = " ".join(made.text for made in program.directives)
        names = re.findall(r"\[assume (z\d+) \(mem \(lambda \(k\)", text)
        # of a program whose chain stands in a file, or was undone, none
        name = names[0] if names else "same"
        if not step(load(program, seed), kernel.format(name), [], 1).refused:
            judged += assert_finds_the_answer(program, seed, kernel.format(name))
    return judged


STATES = "(gibbs (choices {}) all 'forward 1)"


def test_chains_find_the_worlds_of_the_enumeration() -> None:
    """A kernel of its own: of most programs the choices are no chain. Without the densities of the states themselves it
    finds too many of some worlds."""
    assert judge_chains(range(18, 28, CHAINED), STATES) == 2


@pytest.mark.slow
def test_chains_of_many_programs_find_the_worlds_of_the_enumeration() -> None:
    assert judge_chains(range(64, 272, CHAINED), STATES) >= 8
    assert judge_chains(range(50), "(gibbs default all 'forward 1)") >= 3


@pytest.mark.parametrize("first", [pytest.param(0, id="0..3"), pytest.param(4, id="4..7", marks=pytest.mark.slow)])
def test_kernels_find_the_worlds_of_the_enumeration(first: int) -> None:
    assert judge(range(first, first + 4), 1) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("first", [*FINITE, *SLOW_FINITE])
def test_kernels_find_the_worlds_of_many_enumerations(first: int) -> None:
    """Three kernels on each program, so that each kernel meets some 9 programs."""
    assert judge(range(first, first + CHUNK), 3) >= 7


@pytest.mark.slow
def test_both_spellings_have_the_same_worlds() -> None:
    for seed in range(40):
        program = finite_program(seed)
        dressed = worlds(program.directives, [query.dressed for query in program.queries], {})
        plain = worlds(program.plain.directives, [query.plain for query in program.queries], {})
        one, other = Answer.of(dressed).joint(), Answer.of(plain).joint()
        assert one.keys() == other.keys(), f"program {seed}"
        assert all(math.isclose(p, other[values], abs_tol=1e-12) for values, p in one.items()), f"program {seed}"
