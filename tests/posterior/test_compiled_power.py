"""The comparisons with exact answers fail on learned proposals that are broken in one place.

A chain that is right passes them (`test_compiled.py`); each mutation is of one line of the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from tests.posterior.cases import CASES
from tests.posterior.test_compiled import chain, trained
from tests.statistics import CONFIRM, compare_all
from venture_lite.blocks.worlds import Blanket
from venture_lite.engines.compiled.frame import Position
from venture_lite.engines.compiled.proposer import CompiledProposal
from venture_lite.trace.trace import Trace

BY_NAME = {case.name: case for case in CASES}

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def count_parts_as(*logs: float) -> Mutation:
    """Proposals weighed as if the prior, the wide normals and the network were drawn from with these probabilities."""
    init = CompiledProposal.__init__

    def mutation(patch: Patch) -> None:
        def without(self: CompiledProposal, *given: Any) -> None:
            init(self, *given)
            self._logs = logs

        patch.setattr(CompiledProposal, "__init__", without)

    return mutation


the_network_alone = count_parts_as(-math.inf, -math.inf, 0.0)


def forget_the_jacobian(patch: Patch) -> None:
    patch.setattr(Position, "log_jacobian", lambda self, record, value, arguments: 0.0)


def read_the_block_where_it_stands(patch: Patch) -> None:
    """The centre of the frame is the present value: the way back has another."""
    read = Blanket.read

    def at_present(self: Blanket, centre: Any, worlds: Any = None) -> Any:
        def values(reader: Any, arguments: list[Any]) -> np.ndarray:
            return np.array([self.model.trace.value(node) for node in reader.run.nodes])

        return read(self, centre if worlds is not None else values, worlds)

    patch.setattr(Blanket, "read", at_present)


def go_on_learning(patch: Patch) -> None:
    """The frame follows the chain: the density of what stands is that of another proposal than was made there."""
    prepare = CompiledProposal.prepare

    def learning(self: CompiledProposal, trace: Trace, principals: Iterable[int]) -> None:
        _, kind = self._read_by()
        for node, position in zip(self.block, kind.frame.positions, strict=True):
            record, arguments = trace.application(node)
            numbers = position.numbers(record, trace.value(node), arguments)
            # a part of the way to the present state, in place
            position.centre[:] += 0.3 * position.scale * np.array(numbers)
        prepare(self, trace, principals)

    patch.setattr(CompiledProposal, "prepare", learning)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mutation", "name", "block", "draws"),
    [
        (the_network_alone, "gamma_poisson", "one", 400),
        (forget_the_jacobian, "gamma_poisson", "all", 1500),
        (read_the_block_where_it_stands, "correlated_pair", "one", 1500),
        pytest.param(go_on_learning, "gamma_poisson", "one", 1500, marks=pytest.mark.slow),
        pytest.param(the_network_alone, "beta_flips", "all", 1500, marks=pytest.mark.slow),
        pytest.param(forget_the_jacobian, "gamma_poisson", "one", 3000, marks=pytest.mark.slow),
        pytest.param(go_on_learning, "normal_mean", "all", 1500, marks=pytest.mark.slow),
    ],
)
def test_a_wrong_weight_misses_the_posterior(
    mutation: Mutation, name: str, block: str, draws: int, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("venture_lite.networks.fitting.LEAST_STEPS", 200)
    case = BY_NAME[name]
    venture = trained(case, block, 7, 400)
    assert venture is not None
    mutation(monkeypatch)
    comparisons = compare_all(chain(venture, case, block)(draws), case.exact())
    assert max(abs(c.z) for cs in comparisons.values() for c in cs) > CONFIRM
