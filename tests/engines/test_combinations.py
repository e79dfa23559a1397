"""Two engines in one `cycle` find the exact posterior: what one moves is an input of what the other keeps.

False alarms: each test compares at most 15 statistics in the two stages of `assert_chain_agrees`, 1e-6.

Power: there are many pairs, so each has few draws, some 250 effective ones: a probability that is wrong by 0.1 is
found. What is finer is left to `tests/posterior/`; that stale state shows is seen on broken engines with more draws.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from zlib import crc32

import pytest

from tests.posterior.case import Case
from tests.posterior.cases_combined import CASES
from tests.posterior.cases_predictors import CASES as PREDICTORS
from tests.posterior.test_exact_answers import disagreements
from tests.posterior.test_posterior import chain
from tests.statistics import CONFIRM, assert_chain_agrees, compare_all
from venture_lite import Venture, VentureWarning
from venture_lite.audit.invariants import check
from venture_lite.blocks.linear_block import LinearBlock
from venture_lite.engines.firefly.firefly import Firefly
from venture_lite.interpreter.model import Model
from venture_lite.kernels.formed import BlockForm
from venture_lite.kernels.python import Left
from venture_lite.trace.journal import Journal

BY_NAME = {case.name: case for case in CASES}
(LOGISTIC_SLOPE,) = (case for case in PREDICTORS if case.name == "logistic_slope")


@dataclass(frozen=True, slots=True)
class Engines:
    """What can move a model: kernels with the parts they move, and for each part one that moves what a pair leaves."""

    rest: Mapping[str, str]
    # (the parts, separated by spaces; the kernel)
    kernels: tuple[tuple[str, str], ...]
    # times that a pair is run between two draws
    repeats: int

    def cycle(self, one: tuple[str, str], other: tuple[str, str]) -> str:
        moved = {*one[0].split(), *other[0].split()}
        further = [kernel for part, kernel in self.rest.items() if part not in moved]
        return f"(cycle ({' '.join([one[1], other[1], *further])}) {self.repeats})"

    def pair(self, one: str, other: str) -> str:
        """The cycle of two kernels, named by a part of their text."""
        first, second = ((next(item for item in self.kernels if part in item[1])) for part in (one, other))
        return self.cycle(first, second)

    def pairs(self) -> list[str]:
        """Every third one, in which each kernel meets some third of the others."""
        every = list(itertools.combinations(self.kernels, 2))
        return [self.cycle(one, other) for one, other in every[::3]]


ENGINES: dict[str, Engines] = {
    "classes_of_bits": Engines(
        rest={"tau": "(slice tau 0 1 5 1)", "b": "(slice b 0 2 5 1)", "w": "(slice w 0 2 5 1)"},
        kernels=(
            ("tau b w", "(mh default one 5)"),
            ("b w", "(mh line 0 (lambda (b w) (list (normal b 0.5) (normal (- w b) 1))) 4)"),
            ("tau b w", "(slice default each 1.5 6 1)"),
            ("tau b w", "(hmc default all 0.4 3 1)"),
            ("b w", "(mala line 0 1.1 'precondition 2)"),
            ("tau b w", "(pgibbs default ordered 6 1)"),
            ("tau", "(rejection tau 0 1)"),
            ("w", "(flymc w all auto 'untuned 0.3 'drift 1.2 3)"),
            ("b w", "(flymc line 0 auto 'map 0.2 'mala 1 'precondition 2)"),
            ("b w", "(flymc line 0 jaakkola_jordan 'untuned 0.5 'slice 2 1)"),
            ("w", "(flymc w 0 auto 'untuned 0.3 'drift 1.2 'explicit 0.4 3)"),
            ("b w", "(subsampled_mh line one 5 0 'drift 0.9 2)"),
            ("b w", "(subsampled_mh line 0 5 0 'drift 0.9 'proxy 2)"),
        ),
        repeats=3,
    ),
    "robust_line_in_a_loop": Engines(
        rest={"w": "(mh w 0 'drift 0.6 2)", "s": "(slice s 0 1 5 1)"},
        kernels=(
            ("w s", "(mh default one 4)"),
            ("s", "(mh s 0 'drift 0.9 2)"),
            ("w", "(mh w all (lambda (a w) (list (normal (* 0.5 a) 0.6) (normal w 0.6))) 3)"),
            ("w s", "(slice default each 1 5 1)"),
            ("w s", "(hmc default all 0.25 4 1)"),
            ("w s", "(pgibbs default ordered 4 1)"),
            ("w", "(flymc w 0 auto 'map 0.3 'drift 0.7 3)"),
            ("w", "(flymc w all gaussian_tangent 'untuned 0.4 'mala 0.6 2)"),
            ("w", "(flymc w 0 auto 'untuned 0.3 'slice 1.5 'explicit 0.5 1)"),
            ("w", "(subsampled_mh w one 2 0 'drift 0.7 3)"),
            ("w", "(subsampled_mh w 0 2 0 'drift 0.7 'proxy 3)"),
        ),
        repeats=3,
    ),
    "states_and_slope": Engines(
        rest={"p": "(slice p 0 1 5 1)", "mu": "(slice mu 0 3 5 1)", "s": "(gibbs s each 1)"},
        kernels=(
            ("p mu s", "(mh default one 8)"),
            ("s", "(gibbs s each 1)"),
            ("s", "(mh s each (lambda (v) (not v)) 1)"),
            ("s", "(pgibbs s ordered 4 1)"),
            ("s", "(pgibbs s ordered 2 'ancestor 1)"),
            ("s", "(cycle ((pgibbs s (ordered_range 2 5) 3 1) (gibbs s 1 1)) 1)"),
            ("s", "(rejection s each 1)"),
            ("mu s", "(anneal s constant 0 (mh mu one 'drift 2 2))"),
            ("p mu", "(cycle ((mala p one 0.8 2) (hmc mu one 0.8 3 1)) 1)"),
            ("mu", "(flymc mu 0 auto 'untuned 0.3 'drift 2.5 3)"),
            ("mu", "(flymc mu one auto 'map 0.3 'mala 1 'precondition 2)"),
            ("mu", "(subsampled_mh mu one 2 0 'drift 2.5 3)"),
            ("mu", "(subsampled_mh mu 0 2 0 'drift 2.5 'proxy 3)"),
        ),
        repeats=3,
    ),
    "sloped_clusters": Engines(
        rest={"z": "(gibbs z each 1)", "wild": "(gibbs wild each 1)", "w": "(mh w each 1)"},
        kernels=(
            ("z wild w", "(mh default one 8)"),
            ("z", "(gibbs z each 1)"),
            ("w", "(slice w each 2 5 1)"),
            ("w", "(cycle ((mala w each 1.5 1) (hmc w all 0.9 2 1)) 1)"),
            ("w", "(mh w one (lambda (w) (normal (* 0.8 w) 2)) 3)"),
            ("z", "(pgibbs z ordered 3 1)"),
            ("wild", "(pgibbs wild ordered 3 1)"),
            ("z wild w", "(rejection default each 1)"),
            ("wild", "(anneal wild constant 0)"),
            ("z", "(anneal z constant 0)"),
            ("w", "(flymc w one auto 'untuned 0.3 'drift 2 3)"),
            ("w", "(flymc w each auto 'map 0.4 'mala 1 1)"),
            ("w", "(subsampled_mh w one 2 0 'drift 2 3)"),
            ("w", "(subsampled_mh w each 2 0 'drift 2 'proxy 1)"),
        ),
        repeats=2,
    ),
    "levels_of_means": Engines(
        rest={"mu": "(slice mu 0 2 5 1)", "s": "(slice s 0 1 5 1)", "theta": "(slice theta each 1.5 5 1)"},
        kernels=(
            ("mu s theta", "(mh default one 8)"),
            ("mu s theta", "(slice default one 1.5 5 4)"),
            ("mu theta", "(cycle ((mala theta all 0.6 2) (mala mu one 1 1)) 1)"),
            ("mu s theta", "(hmc default all 0.3 4 1)"),
            ("theta", "(mh theta all 'drift 1.3 'precondition 3)"),
            ("theta", "(pgibbs theta ordered 6 1)"),
            ("mu", "(rejection mu 0 1)"),
            ("theta", "(mh theta one (lambda (x) (normal (* 0.5 (+ x mu)) 1)) 3)"),
            ("theta", "(flymc theta each auto 'map 0.3 'drift 1 1)"),
            ("mu", "(flymc mu all auto 'untuned 0.3 'mala 1.1 2)"),
            ("theta", "(subsampled_mh theta each 2 0 'drift 1 'proxy 1)"),
            ("s", "(subsampled_mh s 0 3 0 'drift 0.7 2)"),
        ),
        repeats=3,
    ),
}


def assert_cycle_agrees(name: str, engine: str) -> None:
    case = BY_NAME[name]
    with warnings.catch_warnings():
        # clusters of wild rows alone have no slope, and wild rows no cluster
        warnings.filterwarnings("ignore", ".*the scope [zw] is empty", VentureWarning)
        more = chain(case, engine, seed=crc32(f"{name} {engine}".encode()))
        assert_chain_agrees(more, case.exact(), 120, f"{engine} on{case.program}")


# One moves what the other's rows are expanded in; an input of the other's bounds.
EVERYDAY = [
    ("classes_of_bits", ("'slice 2", "'drift 0.9 'proxy")),
    ("robust_line_in_a_loop", ("'mala 0.6", "mh s 0")),
]


@pytest.mark.parametrize(("name", "parts"), EVERYDAY)
@pytest.mark.thorough
def test_two_engines_find_the_exact_posterior(name: str, parts: tuple[str, str]) -> None:
    assert_cycle_agrees(name, ENGINES[name].pair(*parts))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "engine"), [(name, pair) for name, engines in ENGINES.items() for pair in engines.pairs()]
)
def test_pairs_of_engines_find_the_exact_posterior(name: str, engine: str) -> None:
    assert_cycle_agrees(name, engine)


@pytest.mark.slow
@pytest.mark.parametrize("name", BY_NAME)
def test_the_exact_answers_agree_with_likelihood_weighting(name: str) -> None:
    assert disagreements(BY_NAME[name], 8_000) == []


# ------------------------------------------------------------------------------------------------------ interruption


def observed_rows(model: Model) -> int:
    return sum(
        table.live[row] and flags[row]
        for table in model.trace.tables
        for flags in table.observed.values()
        for row in range(table.count)
    )


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.thorough
def test_ctrl_c_in_any_engine_leaves_a_valid_trace_with_all_data(name: str) -> None:
    case = BY_NAME[name]
    venture = Venture(seed=1)
    venture.execute(case.program, **case.parameters)
    (model,) = venture.traces
    model.machine.poll_every = 1
    count = observed_rows(model)
    for _, kernel in ENGINES[name].kernels:
        interrupted = 0
        for points in (1, 3, 9):
            model.interrupt_after = points
            try:
                venture.infer(f"(repeat 2 {kernel})")
            except KeyboardInterrupt:
                interrupted += 1
            check(model)
            assert observed_rows(model) == count, kernel
        assert interrupted, kernel
        model.interrupt_after = None
        venture.infer(kernel)


# ----------------------------------------------------------------------------------------------------- broken engines


def keep_the_brightness(patch: pytest.MonkeyPatch) -> None:
    """Another kernel's move of the block leaves every row as bright as it was."""
    draw_all = Firefly._draw_all

    def stale(self: Firefly, purpose: str = "other kernels' moves") -> None:
        before = None if purpose == "set-up" else self.brightness
        draw_all(self, purpose)
        self.brightness = before or self.brightness

    patch.setattr(Firefly, "_draw_all", stale)


def keep_the_expansion(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LinearBlock, "is_as_read", lambda self: True)


def keep_the_weight(patch: pytest.MonkeyPatch) -> None:
    """What the block weighed last is what it weighs, whatever another kernel has moved."""
    original = BlockForm.transition

    def transition(self: BlockForm, journal: Journal) -> bool | Left:
        if self._kept_at >= 0:
            self._kept_at = journal.version
        return original(self, journal)

    patch.setattr(BlockForm, "transition", transition)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "engine", "broken"),
    [
        (
            LOGISTIC_SLOPE,
            "(cycle ((flymc w all auto 'untuned 0.02 'drift 1.5 2) (mh w one 'drift 3 1)) 3)",
            keep_the_brightness,
        ),
        (
            BY_NAME["levels_of_means"],
            "(cycle ((subsampled_mh theta each 2 0 'drift 1 'proxy 1) (slice mu 0 2 5 1) (slice s 0 1 5 1)) 2)",
            keep_the_expansion,
        ),
        (
            BY_NAME["levels_of_means"],
            "(cycle ((subsampled_mh theta one 2 0 'drift 1 4) (slice mu 0 2 5 1) (slice s 0 1 5 1)) 2)",
            keep_the_weight,
        ),
    ],
)
def test_an_engine_that_keeps_what_is_stale_is_noticed(
    case: Case, engine: str, broken: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    comparisons = compare_all(chain(case, engine, seed=5)(4000), case.exact())
    assert max(abs(c.z) for cs in comparisons.values() for c in cs) > CONFIRM
