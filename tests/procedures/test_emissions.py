"""Hidden Markov models that emit values of distributions: against the sum over all paths, and by differences.

Each statistical test is seeded and rejects a correct sampler with probability 1e-6.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.procedures.differences import agree, derivative
from tests.procedures.test_random import FALSE_ALARM
from venture_lite import Venture, VentureError
from venture_lite.errors import ArgumentError
from venture_lite.procedures.exchangeable.hidden_markov import LazyHmmState, emitting
from venture_lite.procedures.record import Random
from venture_lite.procedures.registry import PROCEDURES

START, ROWS = np.array([0.6, 0.3, 0.1]), np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.0, 0.7]])
EMITTED = [(0.5, 1), (-1.0, 3), (0.25, 3), (2.0, 4), (0.5, 9)]
COUNTED = [(1, 1), (4, 3), (4, 3), (0, 4), (2, 9)]
SEEN = [(1, 0), (0, 2), (1, 2), (1, 5)]
EXAMPLES: dict[str, tuple[tuple[Any, ...], list[tuple[Any, int]]]] = {
    "normal": ((np.array([-1.0, 0.5, 2.0]), 0.7), EMITTED),
    "student_t": ((4.0, np.array([-1.0, 0.5, 2.0]), np.array([0.5, 1.0, 2.0])), EMITTED),
    "poisson": ((np.array([0.5, 2.0, 6.0]),), COUNTED),
    "flip": ((np.array([0.1, 0.5, 0.8]),), SEEN),
}


def family(name: str) -> Random:
    record = PROCEDURES[name]
    assert isinstance(record, Random)
    return record


def state_of(name: str, arguments: tuple[Any, ...], emitted: list[tuple[Any, int]]) -> LazyHmmState:
    state: Any = emitting(family(name)).make(START, ROWS, *arguments)
    for value, t in emitted:
        state.add(value, t)
    found: LazyHmmState = state
    return found


def by_paths(name: str, arguments: tuple[Any, ...], emitted: list[tuple[Any, int]]) -> float:
    """Log density of the emissions, summed over all paths of states."""
    own = [[each[k] if np.ndim(each) else each for each in arguments] for k in range(3)]
    dense = [[math.exp(family(name).log_density(value, *given)) for given in own] for value, _ in emitted]
    total = 0.0
    for path in itertools.product(range(3), repeat=1 + max((t for _, t in emitted), default=0)):
        weight = START[path[0]] * math.prod(ROWS[a, b] for a, b in itertools.pairwise(path))
        total += weight * math.prod(at[path[t]] for at, (_, t) in zip(dense, emitted, strict=True))
    return math.log(total)


@pytest.mark.parametrize("name", EXAMPLES)
def test_emissions_have_the_density_of_all_paths(name: str) -> None:
    arguments, emitted = EXAMPLES[name]
    emitted = [(value, min(t, 6)) for value, t in emitted]
    state = state_of(name, arguments, [])
    for count, (value, t) in enumerate(emitted):
        expected = by_paths(name, arguments, emitted[: count + 1]) - by_paths(name, arguments, emitted[:count])
        assert math.isclose(state.log_predictive(value, t), expected, rel_tol=1e-9)
        state.add(value, t)
    assert math.isclose(state.log_joint(), by_paths(name, arguments, emitted), rel_tol=1e-9)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_gradient_agrees_with_central_differences(name: str) -> None:
    """Fails where a state's share is left out, or where the items of a parameter that all states share are not added
    up."""
    arguments, emitted = EXAMPLES[name]
    state, rng = state_of(name, arguments, emitted), np.random.default_rng(1)
    found = state.slopes()
    by_parameter = found[2:]
    gradient = family(name).gradient
    assert gradient is not None
    for position, exists in enumerate(gradient.exists[1:]):
        assert exists
        given = arguments[position]
        assert np.shape(by_parameter[position]) == np.shape(given)
        way = rng.normal(size=np.shape(given)) * 0.1

        def along(step: float, position: int = position, way: Any = way) -> float:
            moved = (*arguments[:position], arguments[position] + step * way, *arguments[position + 1 :])
            return state_of(name, moved, emitted).log_joint()

        assert agree(float(np.sum(by_parameter[position] * way)), derivative(along))


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_taken_back_leaves_the_same_bits(name: str) -> None:
    arguments, emitted = EXAMPLES[name]
    state = state_of(name, arguments, emitted[:3])
    before = state.log_joint(), [state.log_predictive(value, t) for value, t in emitted], state.statistics()
    tokens = [state.add(*emitted[3]), state.remove(*emitted[1]), state.add(*emitted[0])]
    state.log_joint()
    for token in reversed(tokens):
        state.restore(token)
    assert (state.log_joint(), [state.log_predictive(value, t) for value, t in emitted], state.statistics()) == before
    again = state_of(name, arguments, [])
    again.recount(emitted[:3])
    assert again.log_joint() == before[0]
    state.set_arguments((START, ROWS, *(0.5 * each for each in arguments)))
    state.log_joint()
    state.set_arguments((START, ROWS, *arguments))
    assert state.log_joint() == before[0]


def test_drawn_emissions_follow_the_predictive_density() -> None:
    arguments, emitted = EXAMPLES["normal"]
    state, rng = state_of("normal", arguments, emitted), np.random.default_rng(2)
    grid = np.linspace(-8.0, 9.0, 20_001)
    density = np.exp([state.log_predictive(float(x), 2) for x in grid[::10]])
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)]) * (grid[10] - grid[0])
    assert math.isclose(cumulative[-1], 1.0, rel_tol=1e-6)
    drawn = [state.simulate(rng, 2) for _ in range(2000)]
    assert stats.kstest(drawn, lambda x: np.interp(x, grid[::10], cumulative)).pvalue > FALSE_ALARM


def test_finite_emissions_have_a_support_and_others_have_none() -> None:
    assert list(state_of("flip", *EXAMPLES["flip"]).support(1) or ()) == [False, True]
    assert state_of("normal", *EXAMPLES["normal"]).support(1) is None
    assert emitting(family("flip")).finite
    assert not emitting(family("poisson")).finite


def test_sizes_must_match() -> None:
    with pytest.raises(ArgumentError, match="initial has 3 entries, but normal has vectors of 2"):
        emitting(family("normal")).make(START, ROWS, np.zeros(2), 1.0)
    with pytest.raises(ArgumentError, match="initial has 3 entries, but normal has no vector"):
        emitting(family("normal")).make(START, ROWS, 0.0, 1.0)


HMM = "(make_lazy_hmm (vector 0.5 0.5) (matrix (list 0.9 0.1) (list 0.2 0.8)) {})"
BAD = {
    "an item too many": ("(normal (vector -1 1 2) 0.5)", "initial has 2 entries, but normal has vectors of 3"),
    "no item": ("(normal 0 1)", "initial has 2 entries, but normal has no vector"),
    "an argument too few": ("(normal (vector 0 1))", "normal takes 2 arguments (mean sd), got 1"),
    "out of the domain": ("(normal (vector 0 1) -1)", "sd must be a positive number"),
    "a mixture": ("(finite_mixture (vector 0.5 0.5) (normal (vector 0 1) 1))", "has no vectors among its arguments"),
    "no distribution": ("(vector 0 1)", "emission must be a matrix of probabilities"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_said_at_its_place(what: str) -> None:
    text, message = BAD[what]
    v = Venture(seed=1)
    with pytest.raises(VentureError) as caught:
        v.execute(f"[assume h {HMM.format(text)}]")
    assert message in caught.value.message
    assert caught.value.span is not None
    assert not v.list_directives()


def test_a_value_that_no_state_emits_is_refused() -> None:
    v = Venture(seed=1)
    v.execute(f"[assume h {HMM.format('(poisson (vector 1 9))')}]")
    for value in (-1, 0.5, "'a"):
        with pytest.raises(VentureError, match="is impossible for make_lazy_hmm poisson"):
            v.execute(f"[observe (h 0) {value}]")


def test_a_bound_name_keeps_its_meaning() -> None:
    v = Venture(seed=1)
    v.execute("[assume normal (lambda (a b) (matrix (list 0.5 0.5) (list 0 1)))]")
    assert v.execute(f"[assume h {HMM.format('(normal 0 1)')}] [predict (h 0)]")[-1] in (0, 1)
