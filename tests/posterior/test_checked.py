"""Every fast way makes the interpreter's transitions, in each case by each engine; one that is broken is noticed."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.generator.session import check, state
from tests.posterior.case import Case
from tests.posterior.cases import CASES
from tests.posterior.engines import further
from venture_lite import ArgumentError, Venture
from venture_lite.errors import Disagreement, InternalError, KernelError
from venture_lite.interpreter import scaffold, weights
from venture_lite.interpreter.comparison import Check
from venture_lite.interpreter.kernel import Metropolis, Move, Resimulation
from venture_lite.interpreter.shape import Binding
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels import formed, lower, single_choices
from venture_lite.kernels.compiled import Compiled, kernel
from venture_lite.kernels.lower import Lowering
from venture_lite.kernels.reassign import Reassignment
from venture_lite.trace import users

# rows enough to be weighed together
MANY = Case(
    "many rows",
    "[assume mu (normal 0 1)] [assume s (gamma 2 2)] for n in 1...40: [observe (normal (* 2 mu) s) {Y[n]}]",
    {"mu": "mu"},
    dict,
    ("(mh default one 5)",),
    "",
    {"Y": np.linspace(-1.0, 2.0, 40)},
)
BY_NAME = {case.name: case for case in (*CASES, MANY)}
WAYS = ("compiled", "interpreted", "checked")
PAIRS = [
    pytest.param(case, engine, id=f"{case.name}:{engine}")
    for case in CASES
    for engine in (*case.engines, *further(case.name))
]
Patch = pytest.MonkeyPatch


def run(case: Case, engine: str, times: int, kernels: str = "checked") -> Venture:
    v = Venture(seed=3, kernels=kernels)
    v.execute(case.program, **case.parameters)
    v.infer(f"(repeat {times} {engine})")
    return v


@pytest.mark.parametrize("case", BY_NAME.values(), ids=lambda case: case.name)
def test_fast_ways_make_the_interpreters_transitions(case: Case) -> None:
    run(case, case.engines[0], 2)


def weigh_all_by_columns(patch: Patch) -> list[bool]:
    """Rows that read one name are a group, whatever their number, and no form has a loop; which forms were wide."""
    patch.setattr(scaffold, "WIDE", 0)
    patch.setattr(users, "FEW", 1)
    patch.setattr(weights, "NARROW", 0)
    patch.setattr(lower, "MOST_ROWS", 0)
    wide: list[bool] = []
    original = formed.Formed.bound

    def bound(self: formed.Formed, binding: Binding) -> formed.BlockForm:
        wide.append(self.form.wide)
        return original(self, binding)

    patch.setattr(formed.Formed, "bound", bound)
    return wide


COLUMN_ENGINES = ("(mh default one 20)", "(mh default all 5)", "(mh default one 'drift 0.5 15)")


@pytest.mark.parametrize("engine", COLUMN_ENGINES)
def test_rows_that_columns_weigh_come_to_what_the_interpreter_says(engine: str, monkeypatch: Patch) -> None:
    wide = weigh_all_by_columns(monkeypatch)
    # each case under one of them
    for case in CASES[COLUMN_ENGINES.index(engine) :: len(COLUMN_ENGINES)]:
        with contextlib.suppress(KernelError):  # a walk moves no discrete choice
            run(case, engine, 2)
    assert sum(wide) > 5


@pytest.mark.slow
@pytest.mark.parametrize(("case", "engine"), PAIRS)
def test_fast_ways_of_every_engine_make_the_interpreters_transitions(case: Case, engine: str) -> None:
    run(case, engine, 100)


@pytest.mark.parametrize("name", ["regression", "crp_of_normals", "geometric"])
def test_a_seed_gives_the_same_draws_in_each_way(name: str) -> None:
    case = BY_NAME[name]
    states = [run(case, case.engines[0], 20, way).traces[0].trace.rng.bit_generator.state for way in WAYS]
    assert states[0] == states[1] == states[2]


def test_a_way_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ArgumentError, match="kernels are 'compiled', 'interpreted' or 'checked', got 'fast'"):
        Venture(kernels="fast")


def test_weights_may_differ_by_the_rounding_of_their_terms() -> None:
    """A billionth of the sum of the magnitudes of some twenty terms, though these may cancel; no more."""
    model = run(MANY, "(mh default one 1)", 1).traces[0]
    checked = kernel(model, Move(Resimulation(model), Metropolis(model)))
    assert isinstance(checked, Compiled)
    nodes = model.trace.default.everything()[:1]
    assert checked._check._agree(Weight(0, 0.0), Weight(0, 5e-9), nodes)
    assert not checked._check._agree(Weight(0, 0.0), Weight(0, 1e-6), nodes)
    assert not checked._check._agree(Weight(0, 0.0), Weight(1, 0.0), nodes)


# ------------------------------------------------------------------------------------------- what is broken is noticed


def forget_what_absorbs(patch: Patch) -> None:
    original = Lowering._side
    patch.setattr(Lowering, "_side", lambda self, state, wide: replace(original(self, state, wide), terms=()))


def forget_groups(patch: Patch) -> None:
    patch.setattr(formed, "_summed", lambda weighs: 0.0)


def leave_old_values(patch: Patch) -> None:
    """What is computed from a principal is not renewed."""
    patch.setattr(Lowering, "_renewed", lambda self, node: self._known({}, node >> 32, self._row_of(node)))


def stay_at_the_present_candidate(patch: Patch) -> None:
    original = single_choices.draw_candidate
    patch.setattr(single_choices, "draw_candidate", lambda weights, u: original(weights, u) and 0)


def weigh_the_present_as_nothing(patch: Patch) -> None:
    patch.setattr(Reassignment, "present", property(lambda self: Weight()))


MUTATIONS = [
    (forget_what_absorbs, "gamma_poisson", "(mh default one 5)"),
    (forget_groups, "many rows", "(mh default one 5)"),
    (leave_old_values, "choice_in_branch", "(mh default one 5)"),
    (stay_at_the_present_candidate, "crp_of_normals", "(gibbs z each 3)"),
    (weigh_the_present_as_nothing, "crp_of_normals", "(mh z each 3)"),
]


@pytest.mark.parametrize(("mutation", "name", "engine"), MUTATIONS)
def test_a_broken_fast_way_is_noticed(mutation: Any, name: str, engine: str, monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    with pytest.raises(InternalError, match="interpreted and compiled results differ in"):
        run(BY_NAME[name], engine, 5)


@pytest.mark.parametrize(("mutation", "name", "engine"), MUTATIONS)
def test_where_a_fast_way_is_broken_the_interpreter_goes_on(
    mutation: Any, name: str, engine: str, monkeypatch: Patch
) -> None:
    """From the state and the random numbers that it would have without the fast way, after one warning."""
    expected = run(BY_NAME[name], engine, 20, "interpreted")
    mutation(monkeypatch)
    with pytest.warns(Disagreement, match="differs from the interpreter in .*; the interpreter goes on") as warned:
        found = run(BY_NAME[name], engine, 20, "compiled")
    # one for each kind of block
    assert 1 <= len(warned) <= 2
    assert state(found) == state(expected)
    check(found)


def test_forms_are_compared_twice_and_then_believed(monkeypatch: Patch) -> None:
    compared: list[Any] = []
    step = Check.step

    def noting(self: Check, key: Any, *others: Any) -> bool:
        compared.append(key)
        return step(self, key, *others)

    monkeypatch.setattr(Check, "step", noting)
    v = run(MANY, "(mh default one 5)", 20, "compiled")
    # mu alone and s alone
    assert len(compared) == 4
    v.infer("(mh default one 50)")
    assert len(compared) == 4
