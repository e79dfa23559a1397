"""`compile` and `compiled_mh` where structure depends on choices: exact, by one reading for both directions.

Comparisons with quadrature allow five standard errors of as many draws as are effective: a false alarm in 10^6.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from tests.posterior.test_compiled_power import read_the_block_where_it_stands
from tests.statistics import autocorrelation_time
from venture_lite import Venture, VentureError
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks.resimulated import Reading
from venture_lite.engines.compiled import rounds, state_reader
from venture_lite.engines.compiled.chains import ChainRun, ChangingChains
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.mixture import CompiledProposal
from venture_lite.engines.compiled.proposer import Proposer
from venture_lite.engines.compiled.standing import StateProposal
from venture_lite.interpreter.selection import Selection
from venture_lite.networks import fitting

Y = [0.3, 0.7, 0.5]
BRANCH = """
    [assume b (tag 'b 0 (flip 0.5))] [assume m (if b 1 (tag 'g 0 (gamma 1 1)))]
    for n in 1...3: [observe (normal m 0.5) {Y[n]}]
"""
MIXTURE = """
    [assume mu (mem (lambda (k) (tag 'mu k (normal 0 5))))]
    [assume z (mem (lambda (n) (tag 'z n (uniform_discrete 0 3))))]
    for n in 1...N: [observe (normal (mu (z n)) 1) {Y[n]}]
"""
ENGINE = "(compiled_mh p default one 4)"


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "LEAST_STEPS", 300)
    monkeypatch.setattr(fitting, "PASSES", 10)


def likelihood(mean: float) -> float:
    return float(np.prod(stats.norm.pdf(Y, mean, 0.5)))


def exact() -> float:
    """The probability of the branch that has no choice of its own."""
    other, _ = integrate.quad(lambda g: math.exp(-g) * likelihood(g), 0, 20)
    return likelihood(1.0) / (likelihood(1.0) + other)


@functools.cache
def trained() -> Proposer:
    venture = Venture(seed=1)
    venture.execute(BRANCH, Y=Y)
    venture.infer("(compile p default one 'worlds 250 'hidden 8)")
    return proposers_of(venture.traces[0])["p"]


def compiled() -> Venture:
    """A session with a proposer that was trained in another."""
    venture = Venture(seed=1)
    venture.execute(BRANCH, Y=Y)
    proposers_of(venture.traces[0])["p"] = replace(trained(), kinds=dict(trained().kinds))
    return venture


def share_of_branch(venture: Venture, draws: int, engine: str = ENGINE) -> tuple[float, float]:
    """Estimated, with its standard error."""
    b = np.asarray(venture.infer(f"(repeat {draws} (do {engine} (collect b)))")["b"], dtype=float).reshape(draws)
    return float(b.mean()), math.sqrt(b.var() * autocorrelation_time(b) / draws)


@pytest.mark.thorough
@pytest.mark.slow
def test_a_branch_with_a_choice_of_its_own_is_learned() -> None:
    venture = compiled()
    assert {kind.reading for kind in proposers_of(venture.traces[0])["p"].kinds.values()} == {"points", "modes"}
    share, error = share_of_branch(venture, 1200)
    assert abs(share - exact()) < 5.0 * error
    assert error < 0.02


def where_it_stands(block: Sequence[int], frame: Any, at_points: bool) -> list[Reading]:
    """Each reading at the present value, under the name of another."""
    broken = readings(block, frame, at_points)
    trace = STATE[0].trace
    return [Reading(lambda node, operator, arguments: trace.value(node), each.name) for each in broken]


readings = state_reader.readings
STATE: list[Any] = []


@pytest.mark.thorough
def test_features_of_the_state_that_is_left_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read where it stands, the block shows the network what it is: the way back has other features."""
    venture = Venture(seed=1)
    venture.execute("""
        [assume mu (mem (lambda (k) (tag 'mu k (normal 0 1))))] [predict (mu 0)] [predict (mu 1)]
        [assume b (tag 'z 0 (uniform_discrete 0 2))] [observe (normal (mu b) 0.5) 1]
        [force (mu 0) 1.6] [force (mu 1) 0.2]
    """)
    venture.infer("(compile p z one 'worlds 600 'hidden 8)")
    weights = stats.norm.pdf(1.0, [1.6, 0.2], 0.5)
    expected = float(weights[1] / weights.sum())
    share, error = share_of_branch(venture, 900, "(compiled_mh p z one 1)")
    assert abs(share - expected) < 5.0 * error
    STATE[:] = venture.traces
    monkeypatch.setattr(state_reader, "readings", where_it_stands)
    share, error = share_of_branch(venture, 900, "(compiled_mh p z one 1)")
    assert abs(share - expected) > 5.0 * error


# whether x has a number beside it depends on b; x itself has a gradient in either state
BESIDE = """
    [assume b (tag 'b 0 (flip 0.5))] [assume x (tag 'x 0 (gamma 3 1))]
    [assume m (if b x (+ x (tag 'g 0 (normal 0 2))))]
    [observe (normal m 1) 1.5] [observe (normal x 0.6) 1]
"""


def beside() -> tuple[Venture, float]:
    """With the mean of x by quadrature."""
    venture = Venture(seed=1)
    venture.execute(BESIDE)
    grid = np.linspace(1e-4, 25.0, 20_001)
    of_m = stats.norm.pdf(1.5, grid, 1.0) + stats.norm.pdf(1.5, grid, math.hypot(1.0, 2.0))
    each = stats.gamma.pdf(grid, 3.0) * stats.norm.pdf(1.0, grid, 0.6) * of_m
    return venture, float((each * grid).sum() / each.sum())


def mean_of_x(venture: Venture, draws: int) -> tuple[float, float]:
    """With its standard error."""
    engine = "(do (compiled_mh p x one 'defensive 0.1 3) (mh b one 1) (mh g one 'drift 1 1))"
    x = np.asarray(venture.infer(f"(repeat {draws} (do {engine} (collect x)))")["x"]).reshape(draws)
    return float(x.mean()), math.sqrt(x.var() * autocorrelation_time(x) / draws)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
def test_a_block_on_which_no_structure_depends_has_the_frame_of_its_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    venture, expected = beside()
    report = venture.compile("p", "x", "one", worlds=400, hidden=8, frame="newton")
    assert [kind.frame for kind in report] == ["newton"]
    (kind,) = proposers_of(venture.traces[0])["p"].kinds.values()
    assert kind.reading == "modes"
    mean, error = mean_of_x(venture, 1500)
    assert abs(mean - expected) < 5.0 * error < 0.2
    # steps that start where the block is, and end half way
    read_the_block_where_it_stands(monkeypatch)
    mean, error = mean_of_x(venture, 4000)
    assert abs(mean - expected) > 5.0 * error


def test_the_frame_of_a_mode_is_refused_where_structure_depends_on_the_block() -> None:
    with pytest.raises(VentureError, match="what exists around the block"):
        beside()[0].infer("(compile p b one 'worlds 200 'hidden 4 'frame newton)")


@pytest.mark.slow
def test_a_forgotten_number_of_blocks_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    venture = compiled()
    monkeypatch.setattr(Selection, "drawn_from", lambda self: 1)
    share, error = share_of_branch(venture, 700)
    assert abs(share - exact()) > 5.0 * error


@pytest.mark.thorough
@pytest.mark.slow
def test_a_mixture_is_learned_by_its_assignments_and_its_means() -> None:
    data = np.random.default_rng(3).normal(np.repeat([-6.0, 0.0, 6.0], 4), 1.0)
    venture = Venture(seed=1)
    venture.execute(MIXTURE, N=12, Y=data)
    venture.infer("(do (compile p z each 'worlds 250 'hidden 8) (compile q mu each 'worlds 250 'hidden 8))")
    venture.infer("(repeat 20 (do (compiled_mh p z each 1) (compiled_mh q mu each 1)))")
    found = venture.infer("(repeat 25 (do (compiled_mh p z each 1) (compiled_mh q mu each 1)))")
    learned = [each.details["acceptance of learned proposals"] for each in found.statistics]
    assert learned[0] > 0.6
    assert learned[1] > 0.3
    # five sds of a datum
    assert all(abs(venture.sample(f"(mu (z {n + 1}))") - data[n]) < 5.0 for n in range(12))


@pytest.mark.thorough
def test_a_refused_transition_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    venture = compiled()
    before = snapshot(venture.traces[0])
    monkeypatch.setattr("venture_lite.engines.compiled.moves.Metropolis.__call__", lambda self, weight: False)
    venture.infer("(compiled_mh p default one 40)")
    assert snapshot(venture.traces[0]) == before


@pytest.mark.thorough
def test_compiling_leaves_the_trace_and_its_generator_as_they_were() -> None:
    venture = Venture(seed=1)
    venture.execute(BRANCH, Y=Y)
    model = venture.traces[0]
    before, state = snapshot(model), model.trace.rng.bit_generator.state
    venture.infer("(compile p default one 'worlds 100 'hidden 2)")
    assert snapshot(model) == before
    assert model.trace.rng.bit_generator.state == state


@pytest.mark.thorough
@pytest.mark.parametrize("point", [5, 300])
def test_an_interrupted_training_leaves_no_proposer(point: int) -> None:
    venture = Venture(seed=1)
    venture.execute(BRANCH, Y=Y)
    model = venture.traces[0]
    before = snapshot(model)
    model.interrupt_after = point
    with pytest.raises(KeyboardInterrupt):
        venture.infer("(compile p default one 'worlds 400)")
    model.interrupt_after = None
    assert snapshot(model) == before
    assert "p" not in proposers_of(model)


@pytest.mark.thorough
def test_an_interrupted_transition_leaves_the_last_whole_one() -> None:
    venture = compiled()
    model = venture.traces[0]
    model.machine.poll_every = 3
    for point in range(1, 12):
        model.interrupt_after = point
        with pytest.raises(KeyboardInterrupt):
            venture.infer("(compiled_mh p default one 50)")
        model.interrupt_after = None
        before = snapshot(model)
        venture.infer("(compiled_mh p default one 0)")
        assert snapshot(model) == before
        assert not model.trace.journal.entries


@pytest.mark.thorough
def test_what_was_learned_goes_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    first = compiled()
    first.infer(f'(save_proposers "{path}")')
    second = Venture(seed=1)
    second.execute(BRANCH, Y=Y)
    second.infer(f'(load_proposers "{path}")')
    drawn = [venture.infer(f"(repeat 60 (do {ENGINE} (collect m)))")["m"] for venture in (first, second)]
    assert drawn[0].tobytes() == drawn[1].tobytes()


@pytest.mark.thorough
def test_blocks_of_which_nothing_was_learned_come_from_the_prior() -> None:
    venture = compiled()
    proposer = proposers_of(venture.traces[0])["p"]
    (gamma,) = [sites for sites in proposer.kinds if "gamma" in sites[0]]
    del proposer.kinds[gamma]
    proposer.rare = gamma
    share, error = share_of_branch(venture, 500)
    assert abs(share - exact()) < 5.0 * error


@pytest.mark.thorough
def test_a_state_that_cannot_be_read_is_left_by_the_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    venture = compiled()
    monkeypatch.setattr("venture_lite.engines.compiled.mixture.read_block", lambda *given: None)
    share, error = share_of_branch(venture, 500)
    assert abs(share - exact()) < 5.0 * error


def learned_share(venture: Venture) -> float:
    """The probability of the branch without a choice that is proposed in this state."""
    model = venture.traces[0]
    proposal = CompiledProposal(model, 0.05)
    proposal.proposer = proposers_of(model)["p"]
    proposal.block = model.trace.scopes["b"].everything()
    standing = proposal.standing()
    assert isinstance(standing, StateProposal)
    (position,) = standing.kind.frame.positions
    return math.exp(standing.log_densities([float(list(position.values).index(True))])[0])


@pytest.mark.slow
def test_a_round_counts_the_data_once_where_structure_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is fitted has 0.345 within 0.02; of data counted twice it would have 0.22, and 0.51 by states after moves of
    blocks that are drawn: where there are few each is drawn more often."""
    monkeypatch.setattr(rounds, "TRANSITIONS", 800)
    monkeypatch.setattr(rounds, "TRIED", 100)
    # it is kept, however little it gains
    monkeypatch.setattr(rounds, "GAIN", 0.0)
    venture = Venture(seed=1)
    venture.execute(BRANCH, Y=Y)
    model = venture.traces[0]
    before, state = snapshot(model), model.trace.rng.bit_generator.state
    report = venture.compile("p", "default", "one", worlds=300, hidden=8, rounds=1)
    assert snapshot(model) == before
    assert model.trace.rng.bit_generator.state == state
    assert [kind.rounds_kept for kind in report] == [1, 1]
    assert "for these data alone" in report.kinds[0].rounds[0]
    assert abs(learned_share(venture) - exact()) < 0.07
    share, error = share_of_branch(venture, 800)
    assert abs(share - exact()) < 5.0 * error


@pytest.mark.thorough
@pytest.mark.slow
def test_a_round_of_choices_that_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a recursion whose depth is drawn."""
    monkeypatch.setattr(rounds, "TRANSITIONS", 300)
    monkeypatch.setattr(rounds, "TRIED", 100)
    monkeypatch.setattr(rounds, "MIXED", math.inf)
    monkeypatch.setattr(rounds, "GAIN", 0.0)
    runs: list[ChainRun] = []
    run_of = ChangingChains.run

    def noted(self: ChangingChains, *given: Any) -> ChainRun:
        runs.append(run_of(self, *given))
        return runs[-1]

    monkeypatch.setattr(ChangingChains, "run", noted)
    venture = Venture(seed=2)
    venture.execute("""
        [assume walk (lambda (n) (if (tag 'd n (flip 0.4)) (+ (tag 'c n (normal 1 1)) (walk (+ n 1))) 0))]
        [assume total (walk 0)] [observe (normal total 1) 2.5]
    """)
    before = snapshot(venture.traces[0])
    venture.compile("p", "d", "each", worlds=200, hidden=4, rounds=1)
    assert snapshot(venture.traces[0]) == before
    first, *trials = runs
    # of the flip that is always there the value and its square, of all flips how many and their sums; the density
    assert first.quantities.shape == (4, 100, 6)
    flips = first.quantities[:, :, 2]
    assert flips.min() >= 1.0
    assert flips.max() >= 3.0
    assert len(trials) == 1
    assert sum(map(len, first.numbers.values())) > 600


@pytest.mark.parametrize(
    ("program", "action", "message"),
    [
        (
            "[assume c (make_crp 1)] [assume z (tag 'x 0 (c))] [assume y (flip (if (= z 1) 0.2 0.6))]",
            "(compile p x one 'worlds 100)",
            "a proposal for a draw of make_crp cannot be learned",
        ),
        (
            BRANCH.replace("'g 0", "'b 0").replace("{Y[n]}", "1"),
            "(compile p b 0 'worlds 100)",
            "what choices the block has depends on itself",
        ),
        (BRANCH.replace("{Y[n]}", "1"), "(compile p b one 'worlds 100 'frame newton)", "depends? on"),
        (
            "[assume x (tag 'x 0 (poisson 1))] [assume y (if (< x 2) (normal 0 1) (sqrt (- 1 x)))]"
            " [observe (normal y 1) 1] [force x 0]",
            "(compile p x one 'worlds 200)",
            "sqrt",
        ),
    ],
)
def test_bad_input_is_refused(program: str, action: str, message: str) -> None:
    venture = Venture(seed=1)
    venture.execute("[assume start 1] " + program)
    before = snapshot(venture.traces[0])
    with pytest.raises(VentureError, match=message):
        venture.infer(action)
    assert snapshot(venture.traces[0]) == before


@pytest.mark.thorough
def test_a_proposer_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.npz"
    compiled().infer(f'(save_proposers "{path}")')
    venture = Venture(seed=1)
    venture.execute(BRANCH.replace("flip 0.5", "flip 0.6").replace("gamma 1 1", "expon 1"), Y=Y)
    venture.infer(f'(load_proposers "{path}")')
    with pytest.raises(VentureError, match="compiled for another program"):
        venture.infer(ENGINE)
