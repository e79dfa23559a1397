"""The joint mixture of logistic experts: its predictions are those of the model, and its chains run."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from venture_lite import Venture

ROOT = Path(__file__).parents[2]


@pytest.fixture
def jointdpm(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "programs" / "papers")
    return importlib.import_module("jointdpm")


def test_the_density_of_a_test_point_is_the_engines(jointdpm: ModuleType) -> None:
    points = np.random.default_rng(0).normal(size=(5, 2))
    v = Venture(seed=1)
    v.execute(
        "[assume c (make_collapsed_multivariate_normal {m0} {k0} {v0} {S0})]",
        m0=jointdpm.M0, k0=jointdpm.K0, v0=jointdpm.V0, S0=jointdpm.S0,
    )  # fmt: skip
    for known, point in enumerate(points):
        before = v.log_score()
        v.observe("(c)", point)
        found = jointdpm.log_density_of(points[:known], point[None])
        assert v.log_score() - before == pytest.approx(float(found), abs=1e-9)


@pytest.mark.slow
def test_exact_and_subsampled_chains_learn_the_classes(jointdpm: ModuleType) -> None:
    learnt, tested = jointdpm.generated(400, seed=1)
    options = argparse.Namespace(snapshots=3, cycles=6, step_z=20, step_w=20, batch=20, sigma=0.3)
    runs = [jointdpm.run(learnt, tested, tolerance, 1, options) for tolerance in jointdpm.TOLERANCES]
    # the same number of transitions, from fewer sections; half of the test points would be right by chance
    assert runs[1].sections[-1] < runs[0].sections[-1]
    for run in runs:
        assert run.accuracy[-1] > 0.7
        assert len(run.state.cluster) == 400
