"""A number that moves alone goes straight: as `CompiledProposal` draws and weighs it, with the same random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.blocks.worlds import Blanket
from venture_lite.engines.compiled import alone
from venture_lite.engines.compiled.alone import StraightProposal
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.mixture import CompiledProposal
from venture_lite.engines.compiled.number import InFrame, LearnedInFrame, NumberProposal
from venture_lite.engines.compiled.reading import BlockReader
from venture_lite.engines.compiled.standing import StateProposal
from venture_lite.errors import InternalError, ParameterError
from venture_lite.kernels.formed import USES
from venture_lite.procedures.record import Random
from venture_lite.procedures.registry import PROCEDURES

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")

NORMAL = "[assume x (tag 'x 0 (normal 0 2))] [observe (normal x 0.5) 1.3]"
# bounded, on half the line, discrete, and in an interval that a parent moves
MIXED = """
    [assume b (tag 'x 0 (flip 0.3))] [assume s (tag 'x 1 (gamma 2 2))] [assume k (tag 'x 2 (poisson 2))]
    [assume u (tag 'x 3 (uniform_continuous 0 (+ 1 s)))] [assume p (tag 'x 4 (beta 2 3))]
    [observe (normal (+ (if b 2 0) (* k u)) (+ 0.5 s)) 3] [observe (binomial 5 p) 2]
"""
SCALES = """
    [assume s (tag 'x 99 (half_cauchy 2))] [assume x (mem (lambda (i) (tag 'x i (student_t 4 0 s))))]
    for i in 1...3: [observe (normal (+ (x i) (x 1)) 0.5) (* i 0.7)]
"""
ROWS = """
    [assume m (tag 'x 0 (normal 0 3))] [assume s (tag 'x 1 (gamma 2 1))]
    for i in 1...25: [observe (normal m s) (* i 0.1)]
"""
BRANCH = """
    [assume b (tag 'x 0 (flip 0.5))] [assume m (if b (tag 'y 0 (normal 0 1)) 0)] [observe (normal m 1) 0.5]
"""


@pytest.fixture(autouse=True)
def short_training(monkeypatch: Patch) -> None:
    monkeypatch.setattr("venture_lite.networks.fitting.LEAST_STEPS", 60)
    monkeypatch.setattr("venture_lite.networks.fitting.PASSES", 1)


def learned(program: str, options: str = "'frame newton", kernels: str = "compiled") -> Venture:
    venture = Venture(seed=3, kernels=kernels)
    venture.execute(program)
    venture.infer(f"(compile p x one 'worlds 200 'hidden 4 'components 2 {options})")
    return venture


def state(venture: Venture) -> tuple[list[Any], Any]:
    trace = venture.traces[0].trace
    return [trace.value(node) for node in trace.scopes["x"].everything()], trace.rng.bit_generator.state


def keep_all_that_is_learned(patch: Patch) -> None:
    """Networks, however little they know beside the t in the frame."""
    patch.setattr("venture_lite.engines.compiled.training.log_t_of", lambda numbers: np.full(len(numbers), -np.inf))


def count(patch: Patch, owner: type, name: str) -> list[None]:
    calls, original = list[None](), getattr(owner, name)

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(None)
        return original(*given, **named)

    patch.setattr(owner, name, counted)
    return calls


SLOW = pytest.mark.slow


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("program", "frame", "kept"),
    [
        (NORMAL, "newton", False),
        (NORMAL, "newton", True),
        (MIXED, "prior", True),
        (ROWS, "newton", False),
        pytest.param(NORMAL, "prior", True, marks=SLOW),
        pytest.param(ROWS, "newton", True, marks=SLOW),
        pytest.param(SCALES, "newton", False, marks=SLOW),
        pytest.param(SCALES, "newton", True, marks=SLOW),
        pytest.param(SCALES, "prior", True, marks=SLOW),
    ],
)
def test_it_makes_the_transitions_of_the_general_way(program: str, frame: str, kept: bool, monkeypatch: Patch) -> None:
    """A way broken in one line is noticed below."""
    if kept:
        keep_all_that_is_learned(monkeypatch)
    straight, states = count(monkeypatch, NumberProposal, "log_mixture"), []
    for kernels in ("interpreted", "compiled", "checked"):
        straight.clear()
        venture = learned(program, f"'frame {frame}", kernels)
        venture.infer("(repeat 20 (compiled_mh p x each 'defensive 0.4 1))")
        states.append(state(venture))
        assert bool(straight) == (kernels != "interpreted")
    # no sum in another order is on the way
    assert states[0] == states[1] == states[2]


def test_a_correction_by_a_round_goes_straight() -> None:
    venture = learned(NORMAL, "'frame newton", "checked")
    proposer = proposers_of(venture.traces[0])["p"]
    (kind,) = proposer.kinds.values()
    proposer.kinds = {key: kind.corrected(np.array([0.3]), np.array([[1.4]])) for key in proposer.kinds}
    venture.infer("(compiled_mh p x one 'defensive 0.4 60)")


def forget_the_jacobian(patch: Patch) -> None:
    weighing = alone.weighing

    def without(record: Any, count: int) -> Any:
        weigh = weighing(record, count)
        return weigh and (lambda *given: (weigh(*given)[0], 0.0, weigh(*given)[2]))

    patch.setattr(alone, "weighing", without)


def weigh_the_network_alone(patch: Patch) -> None:
    patch.setattr(
        NumberProposal, "log_mixture", lambda self, logs, coordinate, prior: self.log_densities(coordinate)[0]
    )


def go_on_with_an_old_reading(patch: Patch) -> None:
    number = StraightProposal._number
    patch.setattr(
        StraightProposal,
        "_number",
        lambda self, node: self._numbers[node][2] if node in self._numbers else number(self, node),
    )


def weigh_what_stood_first(patch: Patch) -> None:
    """The density of a value that stood earlier is taken for that of the one that stands."""
    stands = StraightProposal._stands

    def ever(self: StraightProposal, number: NumberProposal, *given: Any) -> bool:
        return number.at is not None or stands(self, number, *given)

    patch.setattr(StraightProposal, "_stands", ever)


def draw_twice(patch: Patch) -> None:
    number = StraightProposal._number

    def drawing(self: StraightProposal, node: int) -> Any:
        self.model.trace.rng.random()
        return number(self, node)

    patch.setattr(StraightProposal, "_number", drawing)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mutation", "program"),
    [
        (forget_the_jacobian, ROWS),
        (weigh_the_network_alone, NORMAL),
        (go_on_with_an_old_reading, ROWS),
        (weigh_what_stood_first, NORMAL),
        (draw_twice, NORMAL),
    ],
)
def test_a_broken_way_is_noticed(mutation: Callable[[Patch], None], program: str, monkeypatch: Patch) -> None:
    venture = learned(program, kernels="checked")
    mutation(monkeypatch)
    with pytest.raises(InternalError, match="differ in"):
        venture.infer("(repeat 40 (compiled_mh p x each 'defensive 0.4 1))")


@pytest.mark.thorough
def test_where_structure_changes_the_general_way_is_taken(monkeypatch: Patch) -> None:
    venture = learned(BRANCH, "")
    straight = count(monkeypatch, StraightProposal, "_moved")
    assert set(np.ravel(venture.infer("(repeat 60 (do (compiled_mh p x one 1) (collect b)))")["b"])) == {0, 1}
    assert not straight


def test_a_state_that_cannot_be_read_goes_the_general_way(monkeypatch: Patch) -> None:
    venture = learned(NORMAL, "'frame prior", "checked")

    def unreadable(*given: Any) -> Any:
        raise ParameterError("nothing stands at the centre")

    monkeypatch.setattr(BlockReader, "read", unreadable)
    drawn = count(monkeypatch, CompiledProposal, "drawn")
    venture.infer("(compiled_mh p x one 60)")
    # those that are compared are drawn twice
    assert 60 <= len(drawn) <= 120


def test_a_number_at_the_end_of_the_floats_is_refused(monkeypatch: Patch) -> None:
    """exp(800) stands at the largest float, whose coordinate is 709.8."""
    venture = learned("[assume x (tag 'x 0 (gamma 2 1))] [observe (poisson x) 3]")
    before = state(venture)[0]

    def begun(self: StraightProposal, model: Any, safe: float) -> None:
        CompiledProposal.__init__(self, model, safe)
        # never from the prior
        self._numbers, self._shares = {}, (0.0, 0.0)

    monkeypatch.setattr(StraightProposal, "__init__", begun)
    for each in (InFrame, LearnedInFrame):
        monkeypatch.setattr(each, "drawn", lambda self, rng, is_wide: 800.0)
    monkeypatch.setattr(StateProposal, "drawn", lambda self, rng, is_wide: [800.0])
    told = count(monkeypatch, StraightProposal, "_told_apart")
    venture.infer(f"(compiled_mh p x one {USES + 20})")
    assert len(told) >= 20
    assert state(venture)[0] == before


@pytest.mark.thorough
def test_what_is_learned_again_is_read_again() -> None:
    venture = learned(NORMAL, kernels="checked")
    venture.infer("(repeat 3 (do (compiled_mh p x one 12) (compile p x one 'worlds 150 'frame prior)))")


def test_what_reads_blocks_stays_for_the_next_action(monkeypatch: Patch) -> None:
    venture = learned(NORMAL)
    venture.infer("(compiled_mh p x each 1)")
    made = count(monkeypatch, Blanket, "__init__")
    venture.infer("(compiled_mh p x each 1)")
    assert not made
    venture.infer("(do (compile p x one 'worlds 200 'hidden 4) (compiled_mh p x each 1))")
    assert made


def test_a_choice_weighs_a_value_of_its_own() -> None:
    """Of a gamma's value v the coordinate is log v, and |d v / d log v| is v."""
    gamma, dirichlet = PROCEDURES["gamma"], PROCEDURES["dirichlet"]
    assert isinstance(gamma, Random)
    assert isinstance(dirichlet, Random)
    weigh = alone.weighing(gamma, 2)
    assert weigh is not None
    coordinate, jacobian, prior = weigh(3.0, 2.0, 1.0)
    assert (coordinate, jacobian) == (math.log(3.0), math.log(3.0))
    assert prior == pytest.approx(math.log(3.0) - 3.0)
    assert alone.weighing(dirichlet, 1) is None
