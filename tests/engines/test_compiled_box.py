"""Rounds of `compile` on priors that are cut to a box: right inside for any data, never by data counted twice.

False alarms are below 1e-6: a KS test at 1e-7 for each distribution; what is learned is compared with bars far from
where it lies (within 10% of the right sd, where it is off by 2%; data counted twice have 0.71).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.engines.test_compiled import CONJUGATE, LEVELS, train_for
from venture_lite import Venture, VentureError
from venture_lite.audit.snapshot import snapshot
from venture_lite.blocks import worlds
from venture_lite.blocks.cut_draws import can_be_cut, drawn_between
from venture_lite.engines.compiled import rounds
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.mixture import CompiledProposal
from venture_lite.engines.compiled.rounds import Rounds
from venture_lite.procedures.distributions.tails import TAILS
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.procedures.transforms import free_of_rows

GIVEN: dict[str, tuple[float, ...]] = {
    "normal": (0.5, 2.0), "lognormal": (0.0, 1.0), "half_normal": (1.0,), "logistic_dist": (0.0, 1.0),
    "laplace": (0.0, 1.0), "cauchy": (0.0, 1.0), "half_cauchy": (3.0,), "student_t": (3.0, 0.0, 2.0),
    "half_student_t": (3.0, 1.0), "uniform_continuous": (-1.0, 4.0), "pareto": (2.0, 3.0), "expon": (2.0,),
    "weibull": (2.0, 1.0), "gamma": (2.0, 3.0), "inv_gamma": (2.0, 1.0), "chi_sq": (3.0,), "inv_chi_sq": (3.0,),
    "beta": (2.0, 3.0),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in TAILS if can_be_cut(PROCEDURES[name])])
@pytest.mark.thorough
def test_cut_draws_are_those_draws_that_lie_inside(name: str) -> None:
    """With one argument that differs between draws, as those of a choice with parents do."""
    record, rng, count = PROCEDURES[name], np.random.default_rng(5), 2000
    first, *others = GIVEN[name]
    varied = first + 0.5 * rng.random(count)
    found = drawn_between(rng, record, count, [varied, *others], (-0.6, 1.2))
    plain = np.array([record.simulate(rng, x, *others) for x in varied for _ in range(8)])
    free = free_of_rows(record.transform, plain, [np.repeat(varied, 8), *others])[:, 0]
    inside = (free >= -0.6) & (free <= 1.2)
    # of each argument as many: there the rejected draws are found again
    chosen = np.repeat(np.arange(count), 8)[inside]
    firsts = dict(zip(chosen[::-1].tolist(), plain[inside][::-1].tolist(), strict=True))
    assert len(firsts) > 400
    at = np.array(sorted(firsts))
    assert stats.ks_2samp(found[at], [firsts[each] for each in at.tolist()]).pvalue > 1e-7


def test_where_the_box_has_no_probability_there_is_no_value() -> None:
    found = drawn_between(np.random.default_rng(1), PROCEDURES["normal"], 2, [np.array([0.0, 1e200]), 1.0], (-1.0, 1.0))
    assert abs(found[0]) <= 1.0
    assert np.isnan(found[1])


@pytest.fixture
def short_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    train_for(monkeypatch, 1500)
    monkeypatch.setattr(rounds, "TRANSITIONS", 600)
    monkeypatch.setattr(rounds, "TRIED", 150)
    # it is kept, however little it gains
    monkeypatch.setattr(rounds, "GAIN", 0.0)


def learned_sd(venture: Venture, y: float) -> tuple[float, float]:
    """How far the middle of what is proposed for a datum is from the posterior's, and its width; in sds of that."""
    other = Venture(seed=1)
    other.execute(CONJUGATE, y=y)
    proposal = CompiledProposal(other.traces[0], 0.05)
    proposal.proposer = proposers_of(venture.traces[0])["p"]
    proposal.block = other.traces[0].trace.scopes["x"].everything()
    standing = proposal.standing()
    assert standing is not None
    drawn = np.array([standing.drawn(np.random.default_rng(seed), False)[0] for seed in range(2000)])
    sd = math.sqrt(1.0 / 4.25)
    return abs(np.median(drawn) - 4.0 * y / 4.25) / sd, float(np.subtract(*np.quantile(drawn, (0.75, 0.25)))) / (
        1.349 * sd
    )


def in_a_box(
    program: str = CONJUGATE, action: str = "(compile p x one 'worlds 4000 'frame prior 'rounds 1 'box)"
) -> Any:
    venture = Venture(seed=1)
    venture.execute(program, **({"y": 1.0} if "{y}" in program else {}))
    venture.infer(action)
    return venture


@pytest.mark.thorough
@pytest.mark.usefixtures("short_rounds")
def test_what_is_learned_in_a_box_is_right_there_for_any_data() -> None:
    venture = in_a_box()
    (report,) = proposers_of(venture.traces[0])["p"].reports
    assert report.rounds_kept == 1
    assert "priors cut to a box around their states" in report.rounds[0]
    (kind,) = proposers_of(venture.traces[0])["p"].kinds.values()
    # the frame is that of the box: the prior's scale is 2
    assert kind.frame.positions[0].scale[0] < 1.7
    for y in (1.0, 0.3, 2.0):
        off, width = learned_sd(venture, y)
        assert off < 0.2
        assert abs(width - 1.0) < 0.1


@pytest.mark.slow
@pytest.mark.usefixtures("short_rounds")
def test_data_that_are_counted_twice_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Worlds that begin at states of the posterior, with data drawn from them."""

    def of_posterior(rng: np.random.Generator, record: Any, count: int, *others: Any) -> np.ndarray:
        return rng.normal(4.0 / 4.25, math.sqrt(1.0 / 4.25), count)

    monkeypatch.setattr(worlds, "drawn_between", of_posterior)
    _, width = learned_sd(in_a_box(), 1.0)
    assert width < 0.8


@pytest.mark.parametrize(
    ("program", "block", "cut"),
    [
        (
            "[assume m (tag 'x 0 (normal 0 1))] [assume z (tag 'x 1 (normal m 1))] [observe (normal z 1) {y}]",
            "one",
            [0],
        ),
        ("[assume k (normal 0 1)] [assume m (tag 'x 0 (normal k 1))] [observe (normal m 1) {y}]", "all", [0]),
        (
            "[assume k (tag 'x 0 (poisson 3))] [assume m (tag 'x 1 (normal 0 1))] [observe (normal m (+ 1 k)) {y}]",
            "all",
            [1],
        ),
        ("[assume m (tag 'x 0 (von_mises 0 1))] [observe (normal m 1) {y}]", "all", []),
    ],
)
@pytest.mark.usefixtures("short_rounds")
@pytest.mark.thorough
def test_what_is_cut_has_a_distribution_function_and_no_parents_that_move(
    program: str, block: str, cut: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Any] = []
    box_of = Rounds._box

    def noted(self: Rounds, *given: Any) -> Any:
        found.append((box_of(self, *given), self.blocks))
        return found[-1][0]

    monkeypatch.setattr(Rounds, "_box", noted)
    monkeypatch.setattr(rounds, "MIXED", np.inf)
    monkeypatch.setattr(rounds, "TRANSITIONS", 60)
    monkeypatch.setattr(rounds, "TRIED", 20)
    train_for(monkeypatch, 50, 1)
    in_a_box(program, f"(compile p x {block} 'worlds 100 'hidden 4 'frame prior 'rounds 1 'box)")
    (box, blocks) = found[0]
    nodes = [node for block in blocks for node in block]
    assert sorted(map(nodes.index, box)) == cut


@pytest.mark.slow
@pytest.mark.usefixtures("short_rounds")
def test_a_round_in_a_box_leaves_the_trace_as_it_was_and_is_made_of_the_seed() -> None:
    found = []
    for _ in range(2):
        venture = Venture(seed=1)
        venture.execute(LEVELS, y=1.0)
        model = venture.traces[0]
        before, state = snapshot(model), model.trace.rng.bit_generator.state
        venture.compile("p", "x", "all", worlds=500, hidden=4, rounds=1, box=True)
        assert snapshot(model) == before
        assert model.trace.rng.bit_generator.state == state
        assert proposers_of(model)["p"].reports[0].rounds_kept == 1
        found.append(np.asarray(venture.infer("(repeat 40 (do (compiled_mh p x all 1) (collect s)))")["s"]))
    assert found[0].tobytes() == found[1].tobytes()


def test_a_box_without_rounds_is_refused() -> None:
    venture = Venture(seed=1)
    venture.execute(CONJUGATE, y=1.0)
    with pytest.raises(VentureError, match="'box"):
        venture.infer("(compile p x one 'worlds 100 'box)")
