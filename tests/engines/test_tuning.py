"""Walks and slices that tune themselves: what they find, whole numbers, blocks, draws that do not count."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tests.posterior.derive import cdf
from tests.statistics import Cdf, Table, assert_chain_agrees
from venture_lite import Venture, VentureError
from venture_lite.audit.snapshot import snapshot
from venture_lite.engines.adaptation import Widths
from venture_lite.trace.nodes import node_at

UNLIKE = """
    [assume a (normal 0 100)] [assume b (normal 0 0.1)] [observe (normal a 10) 30] [observe (normal b 0.01) 0.02]
"""
COUNTS = """
    [assume k (poisson 400)] [assume j (geometric 0.3)] [assume x (gamma 2 1)]
    [observe (poisson (* 2 (+ k 1))) 900] [observe (poisson (+ j 0.5)) 3] [observe (poisson x) 2]
"""


def exact() -> dict[str, Table | Cdf]:
    k, j = np.arange(300, 560), np.arange(80)
    weights = {
        "k": stats.poisson(400).logpmf(k) + stats.poisson(2 * (k + 1)).logpmf(900),
        "j": j * math.log(0.7) + stats.poisson(j + 0.5).logpmf(3),
    }
    shares = {name: np.exp(log - np.logaddexp.reduce(log)) for name, log in weights.items()}
    tables = {name: Table(dict(zip(map(float, at), shares[name], strict=True))) for name, at in (("k", k), ("j", j))}
    return {**tables, "x": cdf(stats.gamma(4, scale=0.5))}


def tuned(v: Venture, kernel: str, names: str, draws: int, burn: int = 300) -> dict[str, np.ndarray]:
    """Draws of the first chain that count."""
    found = v.infer(f"(repeat {burn + draws} (do {kernel} (collect {names})))")
    assert found.adapting == (dict.fromkeys(names.split(), burn),)
    return {name: found[name][0, burn:] for name in names.split()}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "kernel",
    [
        "(mh default each 'drift 1 'adapt 900 3)",
        pytest.param("(mh default all 'drift 1 'adapt 2400 8)", marks=pytest.mark.slow),
    ],
)
def test_whole_numbers_walk_to_their_posterior(kernel: str) -> None:
    """Beside a continuous choice, alone and in one block. Noticed: steps that are rounded up, so that the way back is
    another."""
    v = Venture(seed=1)
    v.execute(COUNTS)
    v.infer("(initialize k 450 j 20)")

    def more(count: int) -> dict[str, np.ndarray]:
        return tuned(v, kernel, "k j x", count)

    assert_chain_agrees(more, exact(), draws=1500, what=kernel)


@pytest.mark.thorough
def test_a_vector_of_counts_walks_as_one_choice() -> None:
    """Means of 100 and 3 items; six standard errors of a twentieth as many draws."""
    v = Venture(seed=1)
    v.execute("[assume c (poisson (vector 100 3))]")
    found = tuned(v, "(mh default all 'drift 1 'adapt 900 3)", "c", 800)["c"]
    assert np.all(found == np.round(found))
    assert np.all(abs(found.mean(axis=0) - [100, 3]) < 6.0 * np.sqrt([100 / 40, 3 / 40]))


@pytest.mark.parametrize("block", ["each", "all"])
def test_forms_walk_as_the_interpreter_does(block: str) -> None:
    """A checked session raises where they differ."""
    v = Venture(seed=1, kernels="checked")
    v.execute(COUNTS)
    tuned(v, f"(mh default {block} 'drift 1 'adapt 50 1)", "k j x", 50, 50)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("kernel", "low", "high"),
    [
        ("(mh default one 'drift 1e-4 'adapt 1500 1)", 0.3, 0.6),
        ("(mh default each 'drift 1e3 'adapt 1500 1)", 0.3, 0.6),
        ("(mh default all 'drift 1 'adapt 1500 1)", 0.12, 0.4),
        ("(mh default all 'drift 50 'precondition 'adapt 1500 1)", 0.12, 0.4),
    ],
)
def test_walks_find_the_acceptance_that_is_best(kernel: str, low: float, high: float) -> None:
    """Of coordinates whose sds are 9.95 and 0.00995, from steps that are far off; means within six standard errors of a
    tenth as many draws."""
    v = Venture(seed=1)
    v.execute(UNLIKE)
    draws = v.infer(f"(repeat 4500 (do {kernel} (collect a b)))")
    assert draws.adapting == ({"a": 1500, "b": 1500},)
    accepted = np.mean(np.diff(draws["a"][0, 1500:]) != 0.0)
    # one moves half as often
    assert low < accepted * (2.0 if " one " in kernel else 1.0) < high
    for name, mean, sd in (("a", 29.7, 9.95), ("b", 0.0198, 0.00995)):
        assert abs(np.mean(draws[name][0, 1500:]) - mean) < 6.0 * sd / math.sqrt(300.0)
        assert np.std(draws[name][0, 1500:]) == pytest.approx(sd, rel=0.3)


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "most", "burn"), [("1e-3", 20, 300), ("1e5", 20, 300)])
def test_slices_find_their_widths(width: str, most: int, burn: int) -> None:
    """A slice of a normal is 3.2 sds long on average, of which the width is 4/3. The posterior is found, within six
    standard errors of half as many draws; few candidates are weighed."""
    v = Venture(seed=1)
    v.execute(UNLIKE)
    draws = v.infer(f"(repeat {burn + 600} (do (slice default all {width} {most} 'adapt {burn} 1) (collect a b)))")
    assert draws.adapting == ({"a": burn, "b": burn},)
    assert abs(np.mean(draws["a"][0, burn:]) - 29.7) < 6.0 * 9.95 / math.sqrt(300.0)
    assert np.std(draws["b"][0, burn:]) == pytest.approx(0.00995, rel=0.2)
    assert draws.statistics[0].details["width"] == pytest.approx(4.2 * math.sqrt(9.95 * 0.00995), rel=0.35)


def test_a_coordinate_that_comes_after_the_warm_up_has_its_sites_width() -> None:
    widths = Widths(1.0)
    here, late, other = node_at(3, 0), node_at(3, 1), node_at(4, 0)
    for _ in range(300):
        widths.learn(here, 0, 5.0)
    assert widths.of(late, 0, is_learning=True) == 1.0
    assert widths.of(late, 0, is_learning=False) == pytest.approx(20.0, rel=0.05)
    assert widths.of(other, 0, is_learning=False) == 1.0


@pytest.mark.thorough
@pytest.mark.parametrize("kernel", ["mh x each 'drift 1 'adapt 50 2", "slice x each 1 10 'adapt 50 2"])
def test_choices_may_come_and_go_between_transitions(kernel: str) -> None:
    """Normal of mean 1.6 and variance 0.8: six standard errors of a third as many draws."""
    v = Venture(seed=1)
    v.execute(
        "[assume k (tag 'k 0 (uniform_discrete 1 6))] [assume x (mem (lambda (i) (tag 'x i (normal 0 2))))]"
        "[observe (normal (x k) 1) 2]"
    )
    draws = v.infer(f"(repeat 1000 (do (mh k one 3) ({kernel}) (collect (labelled (x k) at))))")
    # two sweeps for each draw
    assert draws.adapting == ({"at": 25},)
    assert abs(np.mean(draws["at"]) - 1.6) < 6.0 * math.sqrt(0.8 / 333.0)
    assert np.std(draws["at"]) == pytest.approx(math.sqrt(0.8), rel=0.25)


@pytest.mark.thorough
def test_a_walk_that_opens_a_branch_is_tuned_too() -> None:
    """The block decides which choices exist, and one of its choices goes with another."""
    v = Venture(seed=1)
    v.execute(
        "[assume s (tag 'b 0 (normal 0 1))] [assume t (if (< s 0) (tag 'b 1 (normal 5 1)) (tag 'b 2 (normal 0 9)))]"
    )
    found = tuned(v, "(mh b one 'drift 1 'adapt 1000 10)", "s", 500, 100)
    assert abs(np.mean(found["s"])) < 6.0 / math.sqrt(50.0)


def test_nothing_is_learned_without_adapt() -> None:
    v = Venture(seed=1)
    v.execute(UNLIKE)
    draws = v.infer("(repeat 50 (do (slice default all 1 10 1) (mh default one 'drift 1 1) (collect a)))")
    assert draws.adapting == ({},)
    assert all("width" not in row.details and "step" not in row.details for row in draws.statistics)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ("(mh x all 'drift 1 'adapt 10 5)", "BURN must be a whole number, 20 or more, got 10"),
        ("(slice x all 1 5 'adapt 19 5)", "BURN must be a whole number, 20 or more, got 19"),
        ("(mh x all 'adapt 50 5)", "mh takes 'adapt with 'drift only"),
        ("(mh f all 'drift 1 'adapt 50 5)", "'drift walks on numbers; flip draws none that have an order"),
        (
            "(mh z all 'drift 1 'adapt 50 5)",
            "'drift walks on numbers; a draw of make_crp draws none that have an order",
        ),
        ("(mh c all 'drift 1 5)", "'drift moves continuous choices; poisson is discrete"),
        ("(slice c all 1 5 'adapt 50 5)", "slice moves continuous choices; poisson is discrete"),
        (
            "(mh c all 'drift 1 'precondition 'adapt 50 5)",
            "'precondition moves continuous choices; poisson is discrete",
        ),
    ],
)
def test_bad_input_is_refused(action: str, message: str) -> None:
    v = Venture(seed=1)
    v.execute(
        "[assume x (tag 'x 0 (normal 0 1))] [assume f (tag 'f 0 (flip))] [assume c (tag 'c 0 (poisson 2))]"
        "[assume crp (make_crp 1)] [assume z (tag 'z 0 (crp))]"
    )
    before = snapshot(v.traces[0])
    with pytest.raises(VentureError) as caught:
        v.infer(action)
    assert message in str(caught.value)
    assert snapshot(v.traces[0]) == before
