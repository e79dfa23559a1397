"""Which choices of a model are states in a row: each read by the density of the next one, in the order of keys.

Labels of a finite mixture are rows of one state each. One after the other the interpreter moves them, since a label
that changes finds other families: 0.25 ms each. Drawn side by side they are a few calls of functions over all labels
and candidates, twenty times as fast for 200. That holds while nothing else changes which families there are, since
what is known of the rows is found anew then.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from venture_lite.blocks.chains import StateChains, chain_paths
from venture_lite.errors import KernelError
from venture_lite.interpreter.addresses import address, address_order
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.schedule import Schedule

LEAST = 3
"""States of a chain."""


def is_finite_chain(model: Model, nodes: Sequence[int], decides_alone: bool = False) -> bool:
    """Whether choices of finite support are chains that are best drawn as a whole; `decides_alone`, whether they, and
    no others, decide which other choices there are."""
    try:
        return max(map(len, StateChains(model, nodes).paths)) >= (1 if decides_alone else LEAST)
    except KernelError:
        return False


def is_ordered_chain(model: Model, nodes: Sequence[int]) -> bool:
    """Whether choices of any support are chains in the order of their keys, whose states change nothing but values."""
    try:
        paths = chain_paths(model, nodes)
    except KernelError:
        return False
    if max(map(len, paths)) < LEAST or not Schedule(model.trace, [[node] for node in nodes]).is_plain():
        return False
    places = {node: address_order(address(model.trace, node)) for node in nodes}
    return all(len({places[one] < places[other] for one, other in pairwise(path)}) <= 1 for path in paths)
