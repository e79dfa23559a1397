"""Geweke's test of an engine: parameters and data, redrawn in turn, keep their joint prior distribution.

The successive-conditional simulator alternates the engine on the parameters given the data with an exact draw of the
data given the parameters. Means of functions of both are compared with those of independent forward simulations
(Geweke 2004, Getting it right: joint distribution tests of posterior simulators).
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.geweke.models import MODELS, Model
from tests.posterior.reference import Faults, likelihood_weighting, single_site_mh
from tests.statistics import Floats, assert_same_mean

# A proposal for booleans and small numbers alike.
TURN = "(lambda (v) (if (is_boolean v) (not v) (+ v (uniform_discrete -1 2))))"
# Each moves every parameter; the engine under test is named first.
ENGINES = {
    "resimulation of one": "(mh default one 10)",
    "resimulation of each": "(mh c each 1) (mh d each 1)",
    "resimulation of all": "(mh c all 2) (mh d all 2) (mh d one 1)",
    "drift of one": "(mh c one 'drift 0.8 8) (mh c one 1) (mh d one 2)",
    "drift of each": "(mh c each 'drift 0.8 2) (mh c one 1) (mh d one 2)",
    "drift of all": "(mh c all 'drift 0.4 5) (mh c one 2) (mh d one 2)",
    "gibbs of one": "(gibbs d one 4) (mh c each 1)",
    "gibbs of each": "(gibbs d each 1) (mh c each 1)",
    "gibbs of all": "(gibbs d all 1) (mh c each 1)",
    "slice of one": "(slice c one 1.5 5 4) (mh d one 2)",
    "slice of each": "(slice c each 1 4 1) (mh d one 2)",
    "slice of all": "(slice c all 2 3 1) (mh d one 2)",
    "own proposal for numbers": "(mh c one (lambda (v) (normal v 1)) 8) (mh c one 1) (mh d one 2)",
    "own proposal on the way": "(mh c one (lambda (v) (let ((s (expon (+ 1 (* v v))))) (normal v s))) 8) (mh d one 2)",
    "own proposal for all": f"(mh d one {TURN} 3) (mh c one (lambda (v) (if (flip 0.3) (gamma 2 1) (normal v 1))) 6)",
    "particles, discrete first": "(pgibbs d ordered 4 1) (pgibbs c ordered 8 2)",
    "particles over everything": "(pgibbs default ordered 8 2)",
    "rejection of one": "(rejection c one 2) (mh d one 2)",
    "rejection of each": "(rejection c each 1) (mh d one 2)",
    "mala of one": "(mala c one 0.9 8) (mh d one 2)",
    "mala of each": "(mala c each 1.2 'precondition 2) (mh d one 2)",
    "hmc of one": "(hmc c one 0.7 3 4) (mh d one 2)",
    "hmc of all": "(hmc c all 0.4 3 2) (mh d one 2)",
    "nuts of all": "(nuts c all 'step 0.5 1) (mh d one 2)",
    "preconditioned drift": "(mh c all 'drift 1.2 'precondition 6) (mh c one 2) (mh d one 2)",
}
# Labels of tables have no density to propose by, and seatings no derivative by the concentration.
REFUSED = {("tables", "own proposal for all")} | {
    ("tables", title) for title, engine in ENGINES.items() if re.search(r"mala|hmc|nuts|'precondition", engine)
}
PAIRS = [
    pytest.param(model, engine, id=f"{name}:{title}")
    for name, model in MODELS.items()
    for title, engine in ENGINES.items()
    if (name, title) not in REFUSED
]
# Enough draws for MIN_EFFECTIVE effective ones, of pairs that between them meet every kind of engine and model.
FAST = [
    pytest.param(MODELS[name], ENGINES[title] + mixing, draws, id=f"{name}:{title}")
    for name, title, mixing, draws in (
        ("branch", "resimulation of one", "", 2000),
        ("tables", "gibbs of all", "", 1500),
        ("branch", "slice of each", " (mh c one 3)", 2500),
    )
]
FORWARD = 200_000


def successive_conditional(model: Model, engine: str, draws: int, before: str = "(do)") -> dict[str, Floats]:
    """Draws by an engine and what makes it ready."""
    from venture_lite import Venture

    venture = Venture(seed=21)
    venture.execute(model.program)
    venture.infer(before)
    collected = " ".join(f"(labelled {expression} {name})" for name, expression in model.functions.items())
    found = venture.infer(f"(repeat {draws} (do {engine} (mh data each 1) {collected}))")
    return {name: np.asarray(found[name], dtype=float).reshape(draws) for name in model.functions}


def assert_joint_distribution_is_kept(model: Model, draws: dict[str, Floats], what: str) -> None:
    forward = model.simulate(np.random.default_rng(22), FORWARD)
    for name, expression in model.functions.items():
        assert_same_mean(draws[name], forward[name], f"E[{expression}] under {what}")


@pytest.mark.parametrize(("model", "engine", "draws"), FAST)
def test_engine_keeps_the_joint_distribution(model: Model, engine: str, draws: int) -> None:
    assert_joint_distribution_is_kept(model, successive_conditional(model, engine, draws), engine)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "engine"), PAIRS)
def test_engine_keeps_the_joint_distribution_over_many_draws(model: Model, engine: str) -> None:
    assert_joint_distribution_is_kept(model, successive_conditional(model, engine, 4_000), engine)


@pytest.mark.parametrize("model", [pytest.param(model, id=name) for name, model in MODELS.items()])
def test_forward_simulation_is_the_programs(model: Model) -> None:
    draws, log_weights = likelihood_weighting(model.program, model.functions, {}, 1500, np.random.default_rng(23))
    assert (log_weights == 0).all()
    assert_joint_distribution_is_kept(model, draws, "the reference interpreter")


@pytest.mark.slow
def test_an_engine_that_forgets_the_density_of_its_proposal_fails() -> None:
    model = MODELS["branch"]
    rng = np.random.default_rng(24)
    draws = single_site_mh(model.program, model.functions, {}, 6000, 8, rng, faults=Faults(ignore_fresh_choices=True))
    with pytest.raises(AssertionError, match="standard errors"):
        assert_joint_distribution_is_kept(model, draws, "a broken chain")
