"""What absorbs a change is weighed once, whichever ways lead to it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from venture_lite import Venture
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder

WIDE = 20
BOTH = f"""
[assume a (normal 0 1)]
[assume x (mem (lambda (t) (normal 0 1)))]
for t in 1...{WIDE}: [observe (normal (+ a (x t)) 1) 0.5]
"""
CHAIN = f"""
[assume phi (scope_include 'phi 0 (beta 2 2))]
[assume x (mem (lambda (t) (scope_include 'x t (if (= t 0) (normal 0 1) (normal (* phi (x (- t 1))) 1)))))]
for t in 1...{WIDE}: [observe (normal (x t) 1) 0.5]
"""


def everything(model: Model) -> list[int]:
    return list(model.trace.default.everything())


@pytest.mark.parametrize("text", [BOTH, CHAIN], ids=["both", "chain"])
def test_detach_and_regenerate_weigh_each_choice_once(text: str) -> None:
    """All choices at once: what absorbs are the observations; with the principals' own densities it is the joint."""
    v = Venture(seed=1)
    v.execute(text)
    model = v.traces[0]
    joint = v.log_score()
    mark = model.trace.journal.mark()
    scaffold = Builder(model.trace).build(everything(model))
    weight = model.regenerator.detach(scaffold, counts=True)
    model.rollback(mark)
    assert weight.value() == pytest.approx(joint, abs=1e-9)


@pytest.mark.parametrize("text", [BOTH, CHAIN], ids=["both", "chain"])
def test_a_principal_is_not_absorbing_too(text: str) -> None:
    v = Venture(seed=1)
    v.execute(text)
    model = v.traces[0]
    for block in (everything(model), everything(model)[:3]):
        scaffold = Builder(model.trace).build(block)
        whole = {
            site << 32 | row
            for site in scaffold.groups
            for row in range(model.trace.tables[model.trace.program.site_code[site].index].count)
        }
        assert not whole & set(scaffold.principals)
        assert not whole & set(scaffold.absorbing)
        assert not set(scaffold.absorbing) & set(scaffold.principals)


@pytest.mark.thorough
def test_a_global_and_what_reads_it_in_one_block_by_drift() -> None:
    """`a` and the 20 `x` moved together, the exact posterior being normal: mean of a within 6 standard errors."""
    from venture_lite.draws import diagnostics

    v = Venture(seed=1)
    v.execute(BOTH)
    v.infer("(mh default all 'drift 0.2 1500)")
    draws = np.asarray(v.infer("(repeat 1100 (do (mh default all 'drift 0.25 10) (collect a)))")["a"])
    # a + x(t) + noise: given a, the mean of the 20 values has variance 2 / 20
    variance = 1 / (1 + WIDE / 2)
    mean = variance * WIDE / 2 * 0.5
    effective = diagnostics.ess_bulk(draws)
    assert effective > 100
    assert abs(draws.mean() - mean) < 6 * np.sqrt(variance / effective)
    assert stats.chi2.sf(effective * draws.var() / variance, effective) > 1e-6
    assert stats.chi2.cdf(effective * draws.var() / variance, effective) > 1e-6
