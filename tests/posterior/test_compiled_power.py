"""The comparisons with exact answers fail on learned proposals that are broken in one place.

A chain that is right passes them (`test_compiled.py`); each mutation is of one line of the weight.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.posterior.bad_networks import keep_networks
from tests.posterior.hierarchy import HIERARCHY
from tests.posterior.test_compiled import BY_NAME, VARIED, chain, trained, with_a_bad_network
from tests.statistics import assert_chain_misses
from venture_lite.blocks.conditionals import Normal
from venture_lite.blocks.worlds import Blanket
from venture_lite.engines.compiled import alone, reading
from venture_lite.engines.compiled.frame import BlockFrame, Position
from venture_lite.engines.compiled.mixture import CompiledProposal
from venture_lite.engines.compiled.reading import BlockReader
from venture_lite.engines.compiled.standing import StateProposal
from venture_lite.procedures.record import Random
from venture_lite.trace.trace import Trace

Patch = pytest.MonkeyPatch
Mutation = Callable[[Patch], None]


def count_parts_as(*logs: float) -> Mutation:
    """Proposals weighed as if the prior, the wide normals and the network were drawn from with these probabilities."""
    init = CompiledProposal.__init__

    def mutation(patch: Patch) -> None:
        def without(self: CompiledProposal, *given: Any) -> None:
            init(self, *given)
            self._logs = self._discrete_logs = logs

        patch.setattr(CompiledProposal, "__init__", without)

    return mutation


the_network_alone = count_parts_as(-math.inf, -math.inf, 0.0)


def forget_the_jacobian(patch: Patch) -> None:
    patch.setattr(Position, "log_jacobian", lambda self, record, value, arguments: 0.0)


def read_the_block_where_it_stands(patch: Patch) -> None:
    """What is read, and the start of the steps to the mode, are where the block is: on the way back they are elsewhere.
    Steps that reached the mode would forget their start."""
    read, at_modes, mode_of_single = BlockReader.read, reading.at_modes, reading.mode_of_single

    def at_present(self: BlockReader, worlds: Any = None, keys: Any = None, inputs: bool = True) -> Any:
        trace, its = self.blanket.model.trace, self.frame
        if worlds is None:
            found = []
            for node, position in zip(self.blanket.block, its.positions, strict=True):
                record, arguments, value = trace.choice(node)
                assert isinstance(record, Random)
                found.append(replace(position, reference=np.array(position.of_value(record, value, arguments))))
            self.frame = BlockFrame(found)
            self.frame.start = np.array([found[at].reference[0] for at in its.body])
        features = read(self, worlds, keys, inputs)
        self.frame = its
        return features

    def half_way(derivatives: Any, start: np.ndarray, scale: np.ndarray) -> Any:
        normal, there = at_modes(derivatives, start, scale)
        return replace(normal, centre=0.5 * (normal.centre + start)) if len(start) == 1 else normal, there

    def half_way_alone(given: Any, start: float, scale: float) -> Any:
        normal, there = mode_of_single(given, start, scale)
        return replace(normal, centre=0.5 * (normal.centre + start)), there

    patch.setattr(BlockReader, "read", at_present)
    patch.setattr(reading, "at_modes", half_way)
    patch.setattr(reading, "mode_of_single", half_way_alone)
    # nothing is kept
    stamps = itertools.count()
    patch.setattr(Blanket, "stamps", lambda self: (next(stamps),))


def let_what_is_read_follow_the_block(patch: Patch) -> None:
    """Inputs move with the block: on the way back they would be others than the forward ones, which weigh both."""
    standing = CompiledProposal.standing

    def following(self: CompiledProposal) -> Any:
        found = standing(self)
        if isinstance(found, StateProposal) and found.kind.network is not None:
            where, features = sum(self.present()), found.reading.features
            ports = {key: rows + where for key, rows in features.ports.items()}
            found = copy.copy(found)
            found.given, found._weighed = found.kind.given(replace(features, ports=ports)), {}
            self._standing = found
        return found

    patch.setattr(CompiledProposal, "standing", following)


def go_on_learning(patch: Patch) -> None:
    """The frame follows the chain: the density of what stands is that of another proposal than was made there."""
    prepare = CompiledProposal.prepare

    def learning(self: CompiledProposal, trace: Trace, principals: Iterable[int]) -> None:
        for node, position in zip(self.block, self.standing().kind.frame.positions, strict=True):
            record, arguments, value = trace.choice(node)
            assert isinstance(record, Random)
            # a part of the way to the present state, in place
            position.centre[:] += 0.3 * (np.array(position.of_value(record, value, arguments)) - position.centre)
        self._kept.clear()
        prepare(self, trace, principals)

    patch.setattr(CompiledProposal, "prepare", learning)


def forget_the_volume_of_the_bodys_frame(patch: Patch) -> None:
    patch.setattr(Normal, "log_volume", lambda self: np.zeros(len(self.centre)))


def take_the_frame_of_the_proposed_heads_for_both(patch: Patch) -> None:
    """The body's frame at the heads that are proposed also weighs the body that stands."""
    drawn, log_mixture = CompiledProposal.drawn, CompiledProposal.log_mixture
    body_of_state, stood = BlockReader.body_of_state, [([0.0], 0.0)]
    error = [0.0]

    def remembering(self: CompiledProposal, coordinates: list[float], prior: float) -> float:
        found = log_mixture(self, coordinates, prior) - error[0]
        stood[0], error[0] = (coordinates, prior), 0.0
        return found

    def with_error(self: CompiledProposal, of_prior: bool = True) -> list[float]:
        free, reader = drawn(self, of_prior), self._standing.reader
        heads = [free[at] for at in self._standing._heads]
        wrong = body_of_state(reader, self._standing.reading, heads)
        with patch.context() as meanwhile:
            meanwhile.setattr(BlockReader, "body_of_state", lambda *given: wrong)
            self._standing._weighed.clear()
            error[0] = log_mixture(self, *stood[0])
        self._standing._weighed.clear()
        error[0] -= log_mixture(self, *stood[0])
        return free

    patch.setattr(CompiledProposal, "log_mixture", remembering)
    patch.setattr(CompiledProposal, "drawn", with_error)


def forget_the_jacobian_of_numbers(patch: Patch) -> None:
    """Those that move alone."""
    weighing = alone.weighing

    def without(record: Random, count: int) -> Any:
        weigh = weighing(record, count)
        assert weigh is not None

        def wrong(*given: Any) -> tuple[float, float, float]:
            free, _, prior = weigh(*given)
            return free, 0.0, prior

        return wrong

    patch.setattr(alone, "weighing", without)


def slow(*values: Any) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("mutation", "name", "block", "frame", "draws"),
    [
        (the_network_alone, "gamma_poisson", "one", "prior", 400),
        (the_network_alone, "gamma_poisson", "one", "newton", 400),
        slow(forget_the_jacobian, "gamma_poisson", "one", "prior", 1500),
        (forget_the_jacobian_of_numbers, "gamma_poisson", "one", "prior", 1500),
        slow(read_the_block_where_it_stands, "correlated_pair", "one", "prior", 1500),
        slow(read_the_block_where_it_stands, "gamma_poisson", "one", "newton", 1500),
        slow(go_on_learning, "gamma_poisson", "one", "prior", 1500),
        slow(forget_the_volume_of_the_bodys_frame, "scale_of_effects", "all", "newton", 1500),
        slow(take_the_frame_of_the_proposed_heads_for_both, "scale_of_effects", "all", "newton", 4000),
    ],
)
def test_a_wrong_weight_misses_the_posterior(
    mutation: Mutation, name: str, block: str, frame: str, draws: int, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("venture_lite.networks.fitting.LEAST_STEPS", 200)
    keep_networks(monkeypatch)
    case = BY_NAME[name]
    # what is broken in the general way is not seen where forms go straight
    kernels = "interpreted" if mutation in (forget_the_jacobian, go_on_learning) else "compiled"
    venture = trained(case, block, 7, 400, f"'frame {frame}", kernels)
    assert venture is not None
    mutation(monkeypatch)
    # the check at run time would have the interpreter go on
    monkeypatch.setattr("venture_lite.interpreter.answers.ANSWERS", 0)
    # little of the proposals is right in spite of the frame
    safe = 0.02 if case is HIERARCHY else 0.3
    assert_chain_misses(chain(venture, case, block, safe), case.exact(), draws)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::venture_lite.VentureWarning")
@pytest.mark.parametrize(
    ("mutation", "name"),
    [
        # a block is left so seldom that what is wrong takes many more draws to show
        *((the_network_alone, name) for name in VARIED if name != "correlated_pair"),
        (let_what_is_read_follow_the_block, "choice_in_branch"),
    ],
)
def test_a_wrong_weight_of_a_bad_network_misses_the_posterior(
    mutation: Mutation, name: str, monkeypatch: Patch
) -> None:
    """What a network has learned hides a weight that is wrong; one that knows nothing hides least."""
    venture = with_a_bad_network(name, False, monkeypatch, "interpreted")
    mutation(monkeypatch)
    assert_chain_misses(chain(venture, BY_NAME[name], VARIED[name].block, 0.1), BY_NAME[name].exact(), 5000)
