"""What a blanket reads of random programs is what the block's conditional depends on, no more and no less."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
import pytest

from tests.generator.directives import random_program
from tests.generator.session import load
from venture_lite.blocks.worlds import Blanket, Features
from venture_lite.engines.compiled.frame import BlockFrame, Position
from venture_lite.errors import VentureError
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.sources import application_nodes, depends_on, reached
from venture_lite.networks.conditional import Conditional, ExampleDensity, Layout
from venture_lite.networks.heads import Normals
from venture_lite.networks.pooled import Examples, InputNames, PortRows
from venture_lite.procedures.record import Random
from venture_lite.trace.trace import Trace

CHUNK = 20
SLOW_CHUNK = 100
SLOW = [pytest.param(first, id=f"{first}..{first + SLOW_CHUNK - 1}") for first in range(0, 1000, SLOW_CHUNK)]
MOST = 8
"""Blocks of a program that are looked at, and choices that are changed around each."""


@dataclass(slots=True)
class Seen:
    """What the programs of a test had. Mutable."""

    blocks: int = 0
    outside: int = 0
    inside: int = 0
    rows_permuted: int = 0


def parents(trace: Trace, choice: int) -> set[int]:
    """The choices that the distribution of one is computed from."""

    def above(node: int) -> list[int]:
        return [] if trace.is_choice(*trace.decode(node)) else depends_on(trace, node)

    return {node for node in reached(application_nodes(trace, choice), above) if trace.is_choice(*trace.decode(node))}


class Surroundings:
    """One choice as a block, its blanket, and the roles of the choices around it."""

    def __init__(self, model: Model, node: int) -> None:
        trace = model.trace
        self.model, self.node, self.blanket = model, node, Blanket(model, [node])
        record, arguments, value = trace.choice(node)
        assert isinstance(record, Random)
        transform, none = record.transform, np.zeros(0)
        if transform is None:
            position = Position("", record.name, none, none, np.array([value]), reference=np.zeros(1))
        else:
            centre = np.zeros(np.size(transform.to_free(value, arguments)))
            scale = np.ones(len(centre))
            position = Position("", record.name, centre, scale, none, np.ndim(value) == 0, reference=centre)
        self.position = position
        self.centre = BlockFrame([position]).put([node], 1)
        self.parents = parents(trace, node)
        # each child's port and row there, and the choices that its distribution reads
        self.children = {
            child: (port.key, row) for port in self.blanket.ports for row, child in enumerate(port.reader.run.nodes)
        }
        self.parents_of = {child: parents(trace, child) for child in self.children}

    def read(self) -> Features:
        return self.blanket.read(self.centre)

    def middle(self) -> list[float]:
        """Where the block is put: parents may bound it."""
        record, arguments = self.model.trace.application(self.node)
        return np.ravel(self.position.value(record, np.zeros(self.position.width), arguments)).tolist()

    def others(self, node: int) -> list[str]:
        """The values around the block, but for that of one choice."""
        near = self.parents.union(self.children, *self.parents_of.values()) - {node}
        return [repr(self.model.trace.value(each)) for each in near]

    def is_there(self) -> bool:
        """Whether what children read is what they read before: a branch that was taken anew has choices of its own."""
        return all(parents(self.model.trace, child) == its for child, its in self.parents_of.items())

    def is_outside(self, node: int) -> bool:
        of_children = (node in its for its in self.parents_of.values())
        return node == self.node or not (node in self.parents or node in self.children or any(of_children))

    def assert_read_by_its_port(self, node: int, before: Features, after: Features, has_moved: bool) -> None:
        """A choice that changed shows where it is read, and nowhere else; so does the middle where that has moved."""
        if node not in self.parents or node == self.node:
            assert same(before.fixed, after.fixed)
        for child, (key, row) in self.children.items():
            old, new = before.ports[key][0, row], after.ports[key][0, row]
            if len(old) != len(new):
                # A draw among symbols and numbers is now the one, now the other.
                assert child == node
                continue
            value = self.model.trace.value(child)
            own = np.size(value) if isinstance(value, (float, int, tuple, np.ndarray)) else len(old)
            if child == node:
                assert own == len(old) or new[:own].tolist() == np.ravel(value).tolist()
            else:
                assert same(old[:own], new[:own])
            if not has_moved and (node == self.node or node not in self.parents_of[child]):
                assert same(old[own:], new[own:])


def same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.tobytes() == other.tobytes()


def equal(one: Features, other: Features) -> bool:
    pairs = ((rows, other.ports[key]) for key, rows in one.ports.items())
    return same(one.fixed, other.fixed) and all(same(*pair) for pair in pairs)


def surroundings_of(model: Model, node: int) -> Surroundings | None:
    """None where no proposal for the choice can be learned, or it cannot be put at the centre."""
    record, _, value = model.trace.choice(node)
    if not isinstance(record, Random) or (record.transform is None and not isinstance(value, (int, float))):
        return None
    try:
        found = Surroundings(model, node)
        found.read()
    except VentureError:
        return None
    return found


def assert_blankets_are_what_matters(seed: int, seen: Seen) -> None:
    rng = np.random.default_rng(seed)
    try:
        (model,) = load(random_program(seed), seed).traces
    except VentureError:
        # its own error: the variance of one number, for one
        return
    trace, every = model.trace, list(model.trace.choices())
    read = {node: parents(trace, node) for node in every}
    for node in rng.permutation(trace.default.everything())[:MOST].tolist():
        around = surroundings_of(model, node)
        if around is None:
            continue
        seen.blocks += 1
        assert around.children.keys() == {child for child, its in read.items() if node in its}
        near = [*around.parents, *around.children, *set().union(*around.parents_of.values())]
        for other in [node, *rng.permutation(near)[:MOST].tolist(), *rng.permutation(every)[:MOST].tolist()]:
            change(around, int(other), seen)
        permute(around.read(), rng, seen)


def change(around: Surroundings, node: int, seen: Seen) -> None:
    """Give a choice another value, and take it back."""
    model, before, middle, others = around.model, around.read(), around.middle(), around.others(node)
    stamps = around.blanket.stamps()
    with contextlib.suppress(VentureError), model.transaction():
        record, arguments, _ = model.trace.choice(node)
        model.put_value(node, simulate_anew(model.trace, node, record, arguments))
        if not around.blanket.holds() or not around.is_there() or around.others(node) != others:
            # something exists no more, or was drawn anew
            return
        after = around.read()
        # what is kept while these are the same is still right
        assert around.blanket.stamps() != stamps or equal(before, after)
        is_outside = around.is_outside(node)
        seen.outside += is_outside
        seen.inside += not is_outside
        around.assert_read_by_its_port(node, before, after, around.middle() != middle)


def permute(features: Features, rng: np.random.Generator, seen: Seen) -> None:
    """The order of a port's rows, and of more that are like them, changes no density beyond rounding."""
    rows = [np.concatenate([port[0], port[0] - 0.5, port[0] * 1.1]) for port in features.ports.values()]
    if not all(np.isfinite(part).all() for part in (*rows, features.fixed)):
        return
    names = tuple((key, ("",) * port.shape[2]) for key, port in features.ports.items())
    layout = Layout(InputNames(("",) * features.fixed.shape[1], names), (("x", Normals(2)),))
    repeated = [PortRows(np.concatenate([part, part + 1.0]), np.array([len(part)] * 2)) for part in rows]
    examples = Examples(np.concatenate([features.fixed, features.fixed + 1.0]), tuple(repeated))
    network = Conditional.drawn(rng, layout, examples, np.array([[-1.0], [1.0]]), 8, 8)
    network.bodies[0].weights[-1][:] = rng.normal(size=network.bodies[0].weights[-1].shape)
    before = density(network.given(features.fixed[0], rows))
    after = density(network.given(features.fixed[0], [rng.permutation(part) for part in rows]))
    assert after == pytest.approx(before, rel=1e-12, abs=1e-12)
    seen.rows_permuted += sum(len(part) for part in rows if len(part) > 1)


def density(given: ExampleDensity) -> list[float]:
    return [given.log_density([at]) for at in (-1.0, 0.3, 2.0)]


@pytest.mark.thorough
def test_features_are_the_blankets_and_no_others() -> None:
    seen = Seen()
    for seed in range(CHUNK):
        assert_blankets_are_what_matters(seed, seen)
    assert min(seen.blocks, seen.outside, seen.inside, seen.rows_permuted) > CHUNK, seen


def test_truth_values_beside_numbers_are_inputs_as_numbers_are() -> None:
    """What this program sees of coins is 1 here and true there."""
    assert_blankets_are_what_matters(176, Seen())


@pytest.mark.slow
@pytest.mark.parametrize("first", SLOW)
def test_features_of_many_programs_are_the_blankets_and_no_others(first: int) -> None:
    for seed in range(first, first + SLOW_CHUNK):
        assert_blankets_are_what_matters(seed, Seen())
