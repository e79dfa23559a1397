"""When the control variates and the bounds of `subsampled_mh` are made anew: with what the likelihood reads, and not
with what else changes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.engines.data_and_sessions import LOGISTIC, NORMAL, ROBUST, classes, node_of, venture
from venture_lite.audit.invariants import check
from venture_lite.blocks.linear_block import LinearBlock
from venture_lite.blocks.sections import Sections
from venture_lite.engines.subsampled.control_variates import Expansion
from venture_lite.engines.subsampled.subsampled import Subsampled, SubsampledSettings
from venture_lite.engines.walk import Drift


@pytest.mark.thorough
def test_the_expansion_follows_what_the_likelihood_reads() -> None:
    """Another kernel moves the intercept: the expansion for w is made anew, and the audit finds no difference."""
    text = LOGISTIC.replace("linear_logistic w x", "logistic (+ b (dot w x))").replace(
        "[assume y", "[assume b (scope_include 'b 0 (normal 0 1))] [assume y"
    )
    v = venture(text, **classes(2000))
    kernel = "(subsampled_mh w all 100 0.01 'drift 0.08 'proxy 'audit 1 20)"
    draws = v.infer(f"(cycle ((mh b all 'drift 0.05 3) {kernel}) 10)")
    details = draws.statistics[1].details
    assert details["decisions compared"] == 200
    assert details["share that differs"] < 0.1
    check(v.traces[0])


def test_the_expansion_follows_what_a_value_between_is_computed_from() -> None:
    """The likelihood reads c mu: where another kernel moves c, the expansion in mu is made anew."""
    text = NORMAL.replace("for n", "[assume c (scope_include 'c 0 (gamma 4 4))] [assume v (* c mu)] for n").replace(
        "(normal mu 2)", "(student_t 4 v 1)"
    )
    v = venture(text, Y=np.random.default_rng(0).normal(1.0, 1.0, 2000), N=2000)
    kernel = "(subsampled_mh mu all 100 0.01 'drift 0.05 'proxy 'audit 1 20)"
    draws = v.infer(f"(cycle ((mh c all 'drift 0.3 3) {kernel}) 10)")
    assert draws.statistics[0].accepted > 0
    assert draws.statistics[1].details["share that differs"] < 0.1
    model = v.traces[0]
    node = node_of(model, "mu")
    block = LinearBlock(model, Sections.of(model, [node]), [node])
    assert block.is_as_read()
    v.force("c", 2.5)
    assert not block.is_as_read()


def test_where_an_expansion_is_made_anew_does_not_depend_on_where_the_block_is() -> None:
    """The density has two modes; a transition from one to the other and the way back go by the same expansion."""
    centers = []
    for value in (-6.0, 6.0):
        v = venture(ROBUST, Y=np.array([-6.0, -6.3, -5.8, 6.0, 6.2]), N=5)
        v.force("mu", -6.0)
        v.force("s", 1.0)
        model = v.traces[0]
        engine = Subsampled(model, Drift(model.trace.rng, 1.0), SubsampledSettings(2, 0.0, proxy=True))
        engine.prepare([node_of(model, "mu")])
        v.force("mu", value)
        v.force("s", 0.9)
        prepared = engine.prepare([node_of(model, "mu")])
        assert prepared is not None
        assert prepared.read.expansion is not None
        centers.append(float(prepared.read.expansion.center[0]))
    assert centers[0] == centers[1] < -5.0


def test_the_bounds_of_the_distribution_free_rule_follow_what_the_likelihood_reads() -> None:
    """A student t's slope is in proportion to 1 / scale."""
    v = venture(ROBUST, Y=np.linspace(-1.0, 1.0, 50), N=50)
    model = v.traces[0]
    engine = Subsampled(model, Drift(model.trace.rng, 1.0), SubsampledSettings(10, 0.1, bernstein=True))
    scales, slopes = [], []
    for _ in range(2):
        v.infer("(mh s all 'drift 1 20)")
        scales.append(float(v.report("s")))
        prepared = engine.prepare([node_of(model, "mu")])
        assert prepared is not None
        assert prepared.read.reach is not None
        slopes.append(prepared.read.reach.slope)
    assert scales[0] != scales[1]
    assert slopes[0] * scales[0] == pytest.approx(slopes[1] * scales[1])


def test_what_changes_elsewhere_leaves_the_expansion_as_it_is() -> None:
    """A choice that decides what else exists moves between the transitions; no row reads it. The search for the mode
    reads all rows some twenty times, once. Samples are still asked for their skewness."""
    text = LOGISTIC + "[assume many (lambda (n) (if (< n 1) 0 (+ (normal 0 1) (many (- n 1)))))]"
    v = venture(text + "[assume k (scope_include 'k 0 (poisson 3))] [assume q (many k)]", **classes(2000))
    draws = v.infer("(cycle ((mh k all 1) (subsampled_mh w all 100 0.1 'drift 0.05 'proxy 1)) 40)")
    walk, tested = draws.statistics
    assert walk.accepted > 5
    assert 5 * 2000 < tested.details["rows of expansions"] < 40 * 2000
    assert tested.rows == tested.details["rows of expansions"] + 40 * 2000 * tested.details["mean fraction of rows"]
    assert "skewness of a minibatch's mean" in tested.details
    check(v.traces[0])


def test_an_expansion_is_renewed_where_its_tests_read_much() -> None:
    """More used than a tenth of the rows and five minibatches, over 200 transitions; at most once for N rows read."""
    v = venture(LOGISTIC, **classes(2000))
    model = v.traces[0]
    node = node_of(model, "w")

    def renewals(used: int, batch: int, transitions: int) -> list[int]:
        """The transitions after which an expansion was made anew, of as many that each used `used` rows."""
        expansion = Expansion(LinearBlock(model, Sections.of(model, [node]), [node]))
        found = []
        for transition in range(1, transitions + 1):
            before = expansion.rows
            expansion.watch(used, batch)
            if expansion.rows > before:
                found.append(transition)
        return found

    assert renewals(used=300, batch=50, transitions=450) == [200, 400]
    assert renewals(used=300, batch=100, transitions=450) == []
    assert renewals(used=190, batch=30, transitions=450) == []
