"""Beyond which inputs data are told to be rare. Each statistical test raises a false alarm with probability 1e-6."""

from __future__ import annotations

import math

import numpy as np
import pytest

from venture_lite.engines.compiled.ranges import RARE, ranges_of
from venture_lite.networks.pooled import Examples, PortRows

COUNT = 20_000


def shares_outside(examples: Examples) -> float:
    """Of examples that have some input beyond the ranges."""
    outside = np.zeros(len(examples), bool)
    owners = [np.arange(len(examples)), *[np.repeat(np.arange(len(p.counts)), p.counts) for p in examples.ports]]
    inputs = [examples.fixed, *[port.values for port in examples.ports]]
    for owner, values, (low, high) in zip(owners, inputs, ranges_of(examples), strict=True):
        outside[owner[((values < low) | (values > high)).any(axis=1)]] = True
    return float(outside.mean())


@pytest.mark.parametrize("rows", [0, 1, 30])
def test_as_many_worlds_as_are_rare_have_an_input_outside(rows: int) -> None:
    rng = np.random.default_rng(rows)
    counts = rng.integers(0, rows + 1, COUNT)
    port = PortRows(np.column_stack((rng.standard_cauchy(counts.sum()), np.full(counts.sum(), 0.1))), counts)
    examples = Examples(np.column_stack((rng.normal(3.0, 2.0, COUNT), rng.gamma(2.0, size=COUNT))), (port,))
    assert shares_outside(examples) == pytest.approx(RARE, abs=2.0 / COUNT)


def test_one_normal_input_has_bounds_where_its_tails_are_rare() -> None:
    """The bounds are 2.54 sds away with an error of 0.04: six of these."""
    ((low, high),) = ranges_of(Examples(np.random.default_rng(1).normal(0.0, 2.0, (COUNT, 1))))
    assert [-low[0] / 2.0, high[0] / 2.0] == pytest.approx([2.54, 2.54], abs=0.24)


def test_inputs_that_seldom_vary_have_the_bounds_of_all_their_values() -> None:
    rng = np.random.default_rng(2)
    seldom, rounded = rng.random(COUNT) < 0.01, math.pi * (1.0 + 1e-15 * rng.integers(0, 2, COUNT))
    ((low, high),) = ranges_of(Examples(np.column_stack((np.full(COUNT, 7.0), seldom, rounded))))
    assert low.tolist() == [7.0, 0.0, rounded.min()]
    assert high.tolist() == [7.0, 1.0, rounded.max()]


def test_a_port_without_rows_has_no_bounds() -> None:
    nothing = PortRows(np.zeros((0, 2)), np.zeros(COUNT, np.intp))
    _, (low, high) = ranges_of(Examples(np.zeros((COUNT, 0)), (nothing,)))
    assert low.tolist() == [-math.inf] * 2
    assert high.tolist() == [math.inf] * 2
