"""Choices of finite support that hold one another: a move of one alone leaves values that both could have.

A choice whose support another one decides, `(draw (enumerate (lambda () (if (= x 0) 0 2))))`, may leave no other value
to it: where the values of the two fall into parts between which no step of one choice leads, sweeps of single choices
stay in one part for ever. They have to be drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from venture_lite.errors import VentureError
from venture_lite.interpreter.candidates import MOST_CANDIDATES, support_of
from venture_lite.interpreter.model import GivenValues, Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.weights import density_of
from venture_lite.trace.nodes import site_of
from venture_lite.trace.runtime import Exchangeable
from venture_lite.values import key_of

MOST_VALUES = 50
"""Of a choice that is looked at."""
LOOKED_AT = 3
"""Choices of a site."""


def ties(model: Model, nodes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs among some choices of finite support of which neither can change enough while the other stays: some of each
    site are looked at, in the state at hand. Nothing changes but the generator, which is put back."""
    looked: dict[int, int] = {}
    among, generator = set(nodes), model.trace.rng.bit_generator
    before = generator.state
    for node in nodes:
        looked[site_of(node)] = looked.get(site_of(node), 0) + 1
        if looked[site_of(node)] <= LOOKED_AT:
            yield from ((node, other) for other, parts in _read_by(model, node, among) if not _are_joined(parts))
    generator.state = before


def joint_values(model: Model, nodes: Sequence[int]) -> float:
    """How many combinations of values some choices have, at most as far as this state tells."""
    return math.prod(len(support_of(*model.trace.application(node)) or ()) for node in nodes)


def can_be_drawn_together(model: Model, nodes: Sequence[int]) -> bool:
    return joint_values(model, nodes) <= MOST_CANDIDATES


def _read_by(model: Model, node: int, among: set[int]) -> Iterator[tuple[int, list[set[object]]]]:
    """Each of the others whose distribution reads a choice, with the values that it may have for each value of that."""
    operator, arguments = model.trace.application(node)
    support = support_of(operator, arguments) or ()
    scaffold = Builder(model.trace).build([node])
    others = [other for other in scaffold.absorbing if other in among and other != node]
    # labels have a value more than they have tables
    if not others or isinstance(operator, Exchangeable) or len(support) > MOST_VALUES:
        return
    parts: dict[int, list[set[object]]] = {other: [] for other in others}
    for value in support:
        try:
            with model.aside():
                # all that the choice decides is made anew
                moved = Builder(model.trace).build([node])
                model.regenerator.detach(moved, counts=True)
                model.regenerator.regenerate(moved, GivenValues({node: value}))
                for other in list(parts):
                    code, _, row = model.trace.decode(other)
                    if model.trace.tables[code.index].live[row]:
                        parts[other].append(_possible(model, other))
                    else:
                        # what decides whether another exists is no pair with it
                        del parts[other]
        except VentureError:
            continue
    yield from parts.items()


def _possible(model: Model, node: int) -> set[object]:
    operator, arguments = model.trace.application(node)
    values = (support_of(operator, arguments) or ())[:MOST_VALUES]
    return {key_of(value) for value in values if density_of(model.trace, node, operator, arguments, value) > -math.inf}


def _are_joined(parts: Sequence[set[object]]) -> bool:
    """Whether steps of one choice, and of the other, lead from any of the pairs of values to any other: of each value
    of the first the values that the second may have."""
    left = [part for part in parts if part]
    reached: set[object] = set(left.pop()) if left else set()
    while joined := [part for part in left if not part.isdisjoint(reached)]:
        reached.update(*joined)
        left = [part for part in left if part.isdisjoint(reached)]
    return not left
