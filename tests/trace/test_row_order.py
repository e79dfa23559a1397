"""The random order of a table's rows: uniform while rows come and go, renewed at the cost of what changed, and drawn
from without replacement."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from venture_lite import Venture
from venture_lite.trace.row_order import LooseSampler, RowOrder, Sampler, order_of

FALSE_ALARM = 1e-6


def sampler_of(count: int, rng: np.random.Generator) -> Sampler:
    found = Sampler(RowOrder(np.arange(count), rng))
    found.begin()
    return found


@pytest.mark.parametrize("count", [7, 1000, 20_011])
@pytest.mark.parametrize("is_loose", [False, True])
def test_rows_are_drawn_without_replacement(count: int, is_loose: bool) -> None:
    rng = np.random.default_rng(1)
    sampler = LooseSampler(count) if is_loose else sampler_of(count, rng)
    for _ in range(3):
        sampler.begin()
        drawn: list[int] = []
        while len(drawn) < count:
            drawn.extend(sampler.take(100, rng).tolist())
        assert sorted(drawn) == list(range(count))
        assert not len(sampler.take(100, rng))


@pytest.mark.parametrize("count", [40, 12_000])
@pytest.mark.parametrize("is_loose", [False, True])
def test_every_row_is_drawn_equally_often(count: int, is_loose: bool) -> None:
    """The number of draws of a row in 2,000 rounds is binomial; chi-squared over 40 classes of rows."""
    rng = np.random.default_rng(2)
    times = np.zeros(40)
    rounds = 2000 if count == 40 else 300
    for _ in range(rounds):
        # a fresh order each time: the blocks of one order are drawn together
        sampler = LooseSampler(count) if is_loose else sampler_of(count, rng)
        drawn = sampler.take(20, rng)
        np.add.at(times, drawn * 40 // count, 1)
    assert stats.chisquare(times).pvalue > FALSE_ALARM


def test_the_cost_of_a_round_is_the_number_drawn() -> None:
    rng = np.random.default_rng(1)
    sampler = sampler_of(10**6, rng)
    assert len(sampler.take(100, rng)) == 100
    assert sampler._taken == 5


@pytest.mark.thorough
def test_every_order_is_as_likely_after_rows_came_and_went() -> None:
    """Of four rows two remain and two that came; 24 orders, 4,800 times."""
    rng = np.random.default_rng(3)
    seen: Counter[tuple[int, ...]] = Counter()
    for _ in range(4800):
        order = RowOrder(np.arange(4), rng)
        live = bytearray(b"\1\1\1\1\1\1\0\0")
        for changed, flag in (((4, 5), 1), ((0, 2, 5), 0), ((7,), 1)):
            for row in changed:
                live[row] = flag
            order.touched.update(changed)
            order.renew(live, 8, rng)
        seen[tuple(order.rows.tolist())] += 1
    assert set(seen) == set(itertools.permutations((1, 3, 4, 7)))
    assert stats.chisquare(list(seen.values())).pvalue > FALSE_ALARM


def test_rounds_follow_rows_that_come_and_go() -> None:
    """Blocks that lost all their rows are passed over, and new ones are drawn like the others."""
    rng = np.random.default_rng(4)
    order = RowOrder(np.arange(20_000), rng)
    sampler, live = order.sampler(0), bytearray(b"\1" * 20_000)
    for gone, come in ((range(8000), ()), (range(8000, 19_000), range(2000)), ((), range(2000, 18_000))):
        for rows, flag in ((gone, 0), (come, 1)):
            for row in rows:
                live[row] = flag
            order.touched.update(rows)
        order.renew(live, len(live), rng)
        expected = np.flatnonzero(np.frombuffer(live, np.uint8))
        sampler.begin()
        assert sampler.count == len(expected)
        assert len(sampler.take(50, rng)) >= 50
        sampler.begin()
        assert sorted(sampler.take(len(live), rng).tolist()) == expected.tolist()


def test_positions_are_told_among_the_rows_that_live() -> None:
    rng = np.random.default_rng(5)
    rows = np.array([2, 3, 7, 11])
    sampler = Sampler(RowOrder(rows, rng))
    sampler.among = rows
    sampler.begin()
    assert sorted(sampler.take(4, rng).tolist()) == [0, 1, 2, 3]


def test_the_order_follows_the_table() -> None:
    """Families come and go with the memo's arguments; each change moves two rows at the most."""
    v = Venture(seed=1)
    text = """
[assume w (scope_include 'w 0 (normal 0 1))]
[assume y (mem (lambda (i) (normal w 1)))]
for n in 1...N: [observe (y n) {Y[n]}]
extra: [predict (y 1000)]
more: [predict (y 1001)]
"""
    v.execute(text, N=50, Y=np.arange(50.0))
    v.infer("(subsampled_mh w all 10 0.1 'drift 0.5 3)")
    (table,) = (table for table in v.traces[0].trace.tables if table.order is not None)
    order = table.order
    before = order.rows.copy()
    for change in ("[forget extra]", "[predict (y 2000)]", "[forget more]"):
        v.execute(change)
        v.infer("(subsampled_mh w all 10 0.1 'drift 0.5 3)")
        assert table.order is order
        live = [row for row in range(table.count) if table.live[row]]
        assert sorted(order.rows.tolist()) == live
        both = min(len(before), order.count)
        assert (before[:both] != order.rows[:both]).sum() <= 2
        assert order_of(table, np.random.default_rng(0)) is order
        before = order.rows.copy()
