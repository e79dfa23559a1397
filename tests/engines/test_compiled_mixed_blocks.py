"""Blocks of discrete choices and numbers: discrete choices come from the prior in both halves of what is safe, numbers
after them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from tests.statistics import CONFIRM, Table, assert_chain_agrees, compare_all
from venture_lite import Venture
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.mixture import CompiledProposal
from venture_lite.engines.compiled.standing import StateProposal
from venture_lite.interpreter.selection import in_order
from venture_lite.networks import fitting
from venture_lite.networks.heads import log_sum

# the number before and after a discrete choice that depends on it
PROGRAM = """
    [assume x (tag 'x 0 (normal 0 1))] [assume k (tag 'x 1 (binomial 3 (logistic x)))]
    [assume y (tag 'x 2 (normal k 1))] [observe (normal (+ x y) 1) 2]
"""
# a discrete choice above which a later one stands
LATE = """
    [assume p (mem (lambda (i) (tag 'x i (if (= i 1) (binomial 3 (logistic (p 2))) (normal 0 1)))))]
    [assume k (p 1)] [assume x (p 2)] [assume y (tag 'x 3 (normal k 1))] [observe (normal (+ x y) 1) 2]
"""
Patch = pytest.MonkeyPatch


def posterior() -> Table:
    """Of k, by quadrature over x; y is integrated out."""
    x = np.linspace(-8.0, 8.0, 4001)
    weights = [
        float(
            (stats.norm.pdf(x) * stats.binom.pmf(k, 3, 1 / (1 + np.exp(-x))) * stats.norm.pdf(2 - x, k, 2**0.5)).sum()
        )
        for k in range(4)
    ]
    return Table({k: weight / sum(weights) for k, weight in enumerate(weights)})


def learned(patch: Patch, kernels: str = "compiled", program: str = PROGRAM) -> Venture:
    patch.setattr(fitting, "LEAST_STEPS", 300)
    patch.setattr(fitting, "PASSES", 1)
    venture = Venture(seed=1, kernels=kernels)
    venture.execute(program)
    venture.infer("(compile q x all 'worlds 300 'hidden 4 'components 2)")
    return venture


def blind(patch: Patch) -> None:
    """From here on the network proposes one value of k alone."""
    patch.setattr(
        "venture_lite.networks.heads._log_softmax", lambda outputs: np.array([0.0] + [-800.0] * (len(outputs) - 1))
    )


def draws(venture: Venture, count: int, safe: float = 0.6) -> dict[str, np.ndarray]:
    found = venture.infer(f"(repeat {count} (do (compiled_mh q x all 'defensive {safe} 2) (collect k)))")
    return {"k": np.asarray(found["k"], dtype=float).reshape(count)}


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
def test_discrete_choices_come_from_the_prior_beside_numbers_that_are_wide(monkeypatch: Patch) -> None:
    venture, proposed = learned(monkeypatch), Counter[float]()
    propose = CompiledProposal.propose
    blind(monkeypatch)

    def noting(self: CompiledProposal, node: int, operator: object, *given: object) -> tuple[object, float]:
        value, ratio = propose(self, node, operator, *given)
        if self.part == 1 and getattr(operator, "name", "") == "binomial":
            proposed[float(value)] += 1
        return value, ratio

    monkeypatch.setattr(CompiledProposal, "propose", noting)
    assert_chain_agrees(lambda n: draws(venture, n), {"k": posterior()}, 700, "a block of discrete choices and numbers")
    # all four values are seen there; by the network there would be one
    assert len(proposed) == 4


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
def test_all_kernels_make_the_same_draws(monkeypatch: Patch) -> None:
    ventures = [learned(monkeypatch, each) for each in ("compiled", "interpreted", "checked")]
    blind(monkeypatch)
    first, *others = (draws(venture, 40)["k"] for venture in ventures)
    assert all(other.tobytes() == first.tobytes() for other in others)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
def test_the_density_of_what_is_wide_without_the_priors_of_discrete_choices_is_noticed(monkeypatch: Patch) -> None:
    venture = learned(monkeypatch)
    blind(monkeypatch)

    def without(self: CompiledProposal, coordinates: list[float], prior: float) -> float:
        assert isinstance(self._standing, StateProposal)
        learned, wide = self._standing.log_densities(coordinates)
        return log_sum([log + term for log, term in zip(self._logs, (prior, wide, learned), strict=True)])

    monkeypatch.setattr(CompiledProposal, "log_mixture", without)
    (found,) = compare_all(draws(venture, 6000, 0.95), {"k": posterior()}).values()
    assert max(abs(each.z) for each in found) > CONFIRM


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
def test_a_discrete_choice_above_which_later_ones_stand_comes_from_the_network(monkeypatch: Patch) -> None:
    """A choice is drawn where all before it are known, so that its own prior may not wait for later ones."""
    venture = learned(monkeypatch, program=LATE)
    engine = CompiledProposal(venture.traces[0], 0.5)
    engine.proposer = proposers_of(venture.traces[0])["q"]
    engine.block = in_order(venture.traces[0], venture.traces[0].trace.scopes["x"].everything())
    assert not engine.reader()[0].discrete_by_prior
    assert_chain_agrees(lambda n: draws(venture, n), {"k": posterior()}, 400, "a choice above a later one")
