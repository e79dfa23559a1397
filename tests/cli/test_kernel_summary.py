"""What is said of kernels that hardly move anything, and of values that never change."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture, VentureWarning
from venture_lite.draws.draws import Draws, DrawsBuilder, KernelStatistics
from venture_lite.shell.report import RunReport, as_text


def statistics(kernel: str, transitions: int, accepted: int, **fields: Any) -> KernelStatistics:
    return KernelStatistics(kernel, transitions, accepted, transitions, 0.1, **fields)


def warnings_of(*rows: KernelStatistics) -> tuple[str, ...]:
    return Draws([{}], rows).summary().warnings


@pytest.mark.parametrize("kernel", ["(mh x all 1)", "(hmc x all 1 2 1)", "(mala x all 1 1)", "(compiled_mh p x all 1)",
    "(flymc x all auto 'map 0.1 'drift 1 1)", "(subsampled_mh x all 9 0.1 'drift 1 1)"])  # fmt: skip
def test_less_than_one_percent_accepted_is_told(kernel: str) -> None:
    (warning,) = warnings_of(statistics(kernel, 1000, 9))
    assert warning.startswith(f"{kernel} accepted 9 of its 1,000 transitions: its block hardly moved; ")
    assert not warnings_of(statistics(kernel, 1000, 11))
    assert not warnings_of(statistics("(gibbs x all 1)", 1000, 9))


def test_refusals_in_a_row_are_told_unless_the_kernel_seldom_accepts() -> None:
    (warning,) = warnings_of(statistics("(mh x all 1)", 1000, 300, refused=250))
    assert "was refused 250 times in a row" in warning
    assert not warnings_of(statistics("(mh x all 1)", 1000, 300, refused=199))
    assert not warnings_of(statistics("(mh x all 1)", 20000, 400, refused=400))


def test_divergences_above_a_tenth_of_a_percent_are_told() -> None:
    (warning,) = warnings_of(statistics("(hmc x all 1 2 1)", 2000, 1500, details={"divergences": 3.0}))
    assert "diverged in 0.15% of its transitions: its draws miss where the density is steep; " in warning
    assert not warnings_of(statistics("(hmc x all 1 2 1)", 2000, 1500, details={"divergences": 2.0}))
    # those that adapted are none of them
    (warning,) = warnings_of(
        statistics(
            "(nuts x all 'adapt 1500 1)", 2500, 2000, details={"divergences": 2.0, "transitions that count": 1000.0}
        )
    )
    assert "diverged in 0.2% of its transitions" in warning


def test_divergences_of_a_few_transitions_are_told() -> None:
    """Twenty draws at a prompt that all diverge. Seen to fail where so few transitions are not looked at."""
    details = {"divergences": 20.0, "transitions that count": 20.0}
    (warning,) = warnings_of(statistics("(nuts x all 'adapt 20 1)", 40, 17, details=details))
    assert "diverged in 100% of its transitions: " in warning
    assert not warnings_of(statistics("(nuts x all 'adapt 20 1)", 40, 17, details=details | {"divergences": 4.0}))


def test_divergences_of_one_chain_are_told_where_they_are_no_chance() -> None:
    """Two of a thousand are as likely as not where there are 0.05% in all. Seen to fail where each chain is looked at
    alone, and where none is."""
    kernel = "(nuts x all 'adapt 500 1)"

    def warned(*counts: float) -> tuple[str, ...]:
        rows = [
            statistics(kernel, 1000, 900, chain=chain, details={"divergences": count})
            for chain, count in enumerate(counts, 1)
        ]
        return Draws([{}] * len(counts), rows).summary().warnings

    assert not warned(2.0, 0.0, 0.0, 0.0)
    assert not warned(4.0, 0.0, 0.0, 0.0)
    assert "diverged in 0.5% of its transitions in chain 1:" in warned(5.0, *[0.0] * 7)[0]
    assert "in chain 1, 3:" in warned(3.0, 1.0, 2.0, 0.0)[0]


def test_the_greatest_depth_and_a_low_energy_fraction_are_told() -> None:
    kernel, deepest = "(nuts x all 'adapt 500 1)", "transitions at the greatest depth"
    (warning,) = warnings_of(statistics(kernel, 1000, 990, details={"transitions that count": 500.0, deepest: 6.0}))
    assert f"{kernel} reached the greatest depth in 1.2% of its transitions: its paths are cut" in warning
    assert not warnings_of(statistics(kernel, 1000, 990, details={"transitions that count": 500.0, deepest: 5.0}))
    (warning,) = warnings_of(
        statistics(kernel, 1000, 990, details={"transitions that count": 500.0, "energy fraction": 0.29})
    )
    assert f"{kernel} has an energy fraction of 0.29: it is slow in the tails" in warning
    for details in ({"transitions that count": 500.0, "energy fraction": 0.31}, {"energy fraction": 0.1}):
        assert not warnings_of(statistics(kernel, 1000, 990, details=details))


@pytest.mark.parametrize("kernel", ["(hmc x all 1 5 'adapt 500 1)", "(mh x all 'drift 1 'adapt 500 1)"])
def test_a_kernel_that_adapts_is_not_told_of_a_smaller_step(kernel: str) -> None:
    (warning,) = warnings_of(statistics(kernel, 1000, 0))
    assert warning.endswith("its block did not move; a longer 'adapt, or a start nearer to the data")
    (warning,) = warnings_of(statistics(kernel, 1000, 600, refused=250))
    assert warning.endswith("its block stood still meanwhile; a longer 'adapt, or a start nearer to the data")


def test_refusals_in_a_row_are_counted() -> None:
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)] [observe (normal x 0.0001) 4]")
    (row,) = v.infer("(repeat 10 (mh default one 30))").statistics
    assert row.accepted < 30
    assert row.refused >= 100
    (row,) = v.infer("(mh default one 0)").statistics
    assert row.refused == 0


NORMAL = "[assume w (tag 'w 0 (multivariate_normal (vector 0 0) (matrix (list 1 0) (list 0 1))))]"


@pytest.mark.parametrize("kernel", ["(mh w all 'drift 0.00001 1)", "(mala w all 0.001 1)", "(hmc w all 0.0001 3 1)"])
def test_a_kernel_that_accepts_all_and_goes_nowhere_is_told(kernel: str) -> None:
    v = Venture(seed=1)
    v.execute(NORMAL)
    (warning, *_) = v.infer(f"(repeat 1100 (do {kernel} (collect w)))").summary().warnings
    assert warning.startswith(f"{kernel} accepts all and moves its block by less than 0.01 of its standard deviation: ")


@pytest.mark.parametrize(
    "kernel", ["(mala w all 0.05 1)", "(hmc w all 0.02 50 1)", "(mh w all 1)", "(rejection w all 1)"]
)
def test_a_kernel_that_accepts_all_and_moves_is_not_told(kernel: str) -> None:
    v = Venture(seed=1)
    v.execute(NORMAL)
    draws = v.infer(f"(repeat 300 (do {kernel} (collect w)))")
    assert draws.statistics[0].accepted >= 299
    assert not any("accepts all" in warning for warning in draws.summary().warnings)


def test_the_kernels_are_shown_below_the_table() -> None:
    v = Venture(seed=1)
    v.execute(NORMAL)
    draws = v.infer("(repeat 20 (do (mh w all 2) (hmc w all 0.1 3 1) (collect w)))")
    shown = [
        "(mh w all 2): 40 transitions, 100% accepted",
        "(hmc w all 0.1 3 1): 20 transitions, 100% accepted, 0 divergences",
    ]
    assert [line for line in str(draws.summary()).splitlines() if line in shown] == shown
    text = as_text(RunReport("infer", None, "x", draws, 1)) or ""
    assert text.splitlines()[-2:] == shown
    assert all(line in draws._repr_html_() for line in shown)
    # an inference that collects nothing is silent, but at the prompt
    draws = v.infer("(mh w all 2)")
    assert as_text(RunReport("infer", None, "x", draws, 1)) is None
    assert (as_text(RunReport("infer", None, "x", draws, 1), at_prompt=True) or "").startswith(
        "(mh w all 2): 2 transitions"
    )


# ------------------------------------------------------------------------------------------- values that never change


def test_a_value_that_could_move_and_does_not_is_asked_about() -> None:
    v = Venture(seed=1)
    v.execute("[assume b (flip 0.5)] [observe (flip (if b 1 1e-12)) true] [assume k 3]")
    draws = v.infer("(repeat 30 (do (gibbs default one 1) (collect b (* 2 b) k (flip 1))))")
    told = draws.summary().warnings
    assert "b, (* 2 b): constant: certain, or never moved?" in told
    assert not any(text.startswith(("k", "(flip 1)")) for text in told)


@pytest.mark.parametrize(
    "begun",
    ["(mh default one 'drift 1 'adapt 40 1)", "(slice default one 1 5 'adapt 40 1)", "(nuts default all 'adapt 40 1)"],
)
def test_what_moved_only_while_a_kernel_adapted_is_asked_about(begun: str) -> None:
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VentureWarning)
        draws = v.infer(f"(do (repeat 40 (do {begun} (collect x (* 2 x)))) (repeat 30 (collect x (* 2 x))))")
    assert len(set(draws["x"][0].tolist())) > 2
    assert "x, (* 2 x): constant: certain, or never moved?" in draws.summary().warnings


def test_chains_that_stand_at_different_values_are_not_told_to_run_longer() -> None:
    values = [np.full((50,), 0.1 + 0.2), np.full((50,), 1 / 3)]
    summary = Draws([{"x": one} for one in values]).summary()
    (row,) = summary.rows
    assert row.r_hat == math.inf
    assert [line.split()[-1] for line in summary.table().splitlines()[1:]] == ["-"]
    (warning,) = summary.warnings
    assert warning.startswith("x never moved, at different values in different chains")
    assert "run longer" not in str(summary)


def test_a_chain_that_stands_while_others_move_is_named() -> None:
    rng = np.random.default_rng(0)
    moving, standing = {"x": rng.normal(size=400)}, {"x": np.full((400,), 0.3)}
    draws = Draws([moving, standing], could_move=[frozenset(), frozenset("x")])
    assert "x: constant in chain 1: certain, or never moved there?" in draws.summary().warnings


@pytest.mark.parametrize("spread", [1e-9, 1.0])
@pytest.mark.parametrize("chains", [2, 3, 4, 7])
def test_r_hat_of_constants_that_differ_is_infinite_whatever_the_rounding(chains: int, spread: float) -> None:
    for draws in (50, 99, 1000):
        values = np.repeat(0.1 + spread * np.arange(chains)[:, None] / 3, draws, axis=1)
        (row,) = Draws([{"x": one} for one in values]).summary().rows
        assert row.r_hat == math.inf


def test_what_never_moves_has_no_spread_whatever_the_rounding() -> None:
    builder = DrawsBuilder()
    for _ in range(500):
        builder.add("x", 0.3)
    (row,) = builder.finish().summary().rows
    assert (row.mean, row.sd) == (0.3, 0.0)


def test_it_is_said_where_the_sd_is_rougher_than_the_mean() -> None:
    rng = np.random.default_rng(1)
    # the sign is drawn anew each time, the distance stays for long
    size = np.exp(np.repeat(rng.normal(size=20), 50))
    swinging = rng.choice([-1.0, 1.0], 1000) * size
    summary = Draws([{"x": swinging, "y": rng.normal(size=1000)}]).summary()
    (line,) = [line for line in summary.made_from() if "effective size of the sd" in line]
    assert "less than half of the mean's for x (" in line
    row = summary.rows[0]
    assert row.ess_sd < 0.2 * row.ess_mean
    assert "effective size of the sd" in str(summary)


def test_particles_are_no_chain() -> None:
    """Halves of a population need not agree, and energies of particles in turn are no path's."""
    v = Venture(seed=1)
    v.execute(
        "[assume mu (normal 0 10)] [assume s (gamma 2 1)] for i in 1...3: [observe (normal mu s) {y[i]}]", y=[1, 2, 4]
    )
    told = v.infer("(smc 20 'tempered (nuts default all 'step 0.3 1) (collect mu s))").summary().warnings
    assert not any("R-hat" in line or "energy fraction" in line or "run longer" in line for line in told)
    assert any("more particles" in line for line in told)
