"""What Gaussian processes and lazy hidden Markov models both promise: one joint density, undone bit for bit."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.procedures.processes import CALLS, IDS, PROCESSES, Process, kept, probe, state_of


@pytest.mark.parametrize(("process", "args"), CALLS)
def test_the_joint_density_is_the_sum_of_predictive_densities_in_any_order(
    process: Process, args: tuple[Any, ...]
) -> None:
    rng = np.random.default_rng(2)
    joints = []
    for _ in range(6):
        state, total = state_of(process, args), 0.0
        for position in rng.permutation(len(process.applications)):
            value, place = process.applications[position]
            total += state.log_predictive(value, place)
            state.add(value, place)
            assert math.isclose(state.log_joint(), total, rel_tol=1e-9, abs_tol=1e-8)
        joints.append(total)
    assert np.allclose(joints, joints[0], 1e-9, 1e-8)


@pytest.mark.parametrize(("process", "args"), CALLS)
@pytest.mark.thorough
def test_changes_are_undone_bit_for_bit(process: Process, args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(3)
    state = state_of(process, args, process.applications)
    before, probed = kept(state), probe(state, process)
    for _ in range(20):
        undo, present = [], list(process.applications)
        for _ in range(12):
            match rng.integers(5):
                case 0 | 1 if present:
                    undo.append((state.restore, state.remove(*present.pop(rng.integers(len(present))))))
                case 4:
                    undo.append((state.set_arguments, state.arguments))
                    state.set_arguments(process.arguments[rng.integers(len(process.arguments))])
                case _:
                    present.append(process.applications[rng.integers(len(process.applications))])
                    undo.append((state.restore, state.add(*present[-1])))
            if rng.integers(2):
                probe(state, process)
        if sum(take_back.__name__ == "set_arguments" for take_back, _ in undo) < 2:
            for take_back, token in reversed(undo):
                take_back(token)
            assert probe(state, process) == probed
        else:
            # the factor of the first parameters is no longer kept: computed anew, it may differ in the last bits
            for take_back, token in reversed(undo):
                take_back(token)
            assert np.allclose(probe(state, process), probed, 1e-9, 1e-9)
            state.recount(process.applications)
            probed = probe(state, process)
        assert kept(state) == before


@pytest.mark.parametrize(("process", "args"), CALLS)
def test_a_copy_takes_changes_back_as_the_original_would(process: Process, args: tuple[Any, ...]) -> None:
    state = state_of(process, args, process.applications)
    probed = probe(state, process)
    tokens = [state.remove(*process.applications[1]), state.add(*process.applications[2])]
    other = copy.deepcopy(state)
    for one in (state, other):
        for token in reversed(tokens):
            one.restore(token)
        assert probe(one, process) == probed


@pytest.mark.parametrize(("process", "args"), CALLS)
def test_statistics_equal_a_recount_and_are_empty_in_the_end(process: Process, args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(4)
    state, present = state_of(process, args), []
    for _ in range(200):
        if present and rng.random() < 0.45:
            state.remove(*present.pop(rng.integers(len(present))))
        else:
            present.append(process.applications[rng.integers(len(process.applications))])
            state.add(*present[-1])
    other = state_of(process, args)
    other.recount(present)
    assert kept(state) == kept(other)
    assert np.allclose(probe(state, process), probe(other, process), 1e-9, 1e-9)
    for application in present:
        state.remove(*application)
    assert kept(state) == (0, [])
    assert state.log_joint() == 0.0
    assert probe(state, process) == probe(state_of(process, args), process)


@pytest.mark.parametrize("process", PROCESSES, ids=IDS)
def test_new_arguments_keep_the_applications(process: Process) -> None:
    for first, second in itertools.permutations(process.arguments, 2):
        state = state_of(process, first, process.applications)
        state.log_joint()
        state.set_arguments(second)
        fresh = state_of(process, second, process.applications)
        assert state.arguments == second
        assert np.allclose(probe(state, process), probe(fresh, process), 1e-9, 1e-9)


@pytest.mark.parametrize("process", PROCESSES, ids=IDS)
def test_a_rejected_change_of_parameters_finds_all_as_it_was(process: Process) -> None:
    first, second = process.arguments[:2]
    state = state_of(process, first, process.applications)
    token = state.remove(*process.applications[0])
    state.restore(token)
    probed, before = probe(state, process), state.arguments
    state.set_arguments(second)
    token = state.remove(*process.applications[1])
    state.log_joint()
    state.restore(token)
    state.set_arguments(before)
    assert probe(state, process) == probed


@pytest.mark.parametrize("process", PROCESSES, ids=IDS)
def test_what_is_kept_of_earlier_parameters_is_not_taken_for_other_applications(process: Process) -> None:
    state = state_of(process, process.arguments[0], process.applications[:-1])
    state.log_joint()
    first = state.arguments
    state.set_arguments(process.arguments[1])
    state.add(*process.applications[-1])
    state.set_arguments(first)
    fresh = state_of(process, process.arguments[0], process.applications)
    assert np.allclose(probe(state, process), probe(fresh, process), 1e-9, 1e-9)


@pytest.mark.parametrize("process", PROCESSES, ids=IDS)
def test_a_prediction_is_of_the_applications_at_hand(process: Process) -> None:
    value, place = process.applications[0]
    state = state_of(process, process.arguments[0])
    found = [state.log_predictive(value, place)]
    token = state.add(*process.applications[1])
    found.append(state.log_predictive(value, place))
    state.restore(token)
    found.append(state.log_predictive(value, place))
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize("process", PROCESSES, ids=IDS)
def test_values_outside_the_support_are_impossible(process: Process) -> None:
    state = state_of(process, process.arguments[0], process.applications)
    for value in ("text", math.nan, math.inf, (1,), None):
        assert state.log_predictive(value, process.applications[0][1]) == -math.inf
