"""Upper bounds of what absorbs the change of a block, from the bounds of the records (`Random.log_bound`).

What a bound may know are the arguments that the block does not change.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from venture_lite.blocks.distributions import name_of, transform_of
from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Scaffold
from venture_lite.interpreter.sources import nodes_read
from venture_lite.procedures.bounds import log_bound
from venture_lite.procedures.record import UNKNOWN
from venture_lite.trace.runtime import Exchangeable

SLACK = 1e-9
"""Added to a bound, and again for each of its terms: rounding may lift a weight above the maximum."""


def weight_bound(model: Model, scaffold: Scaffold) -> float:
    """The largest log weight that any state of the block could have. Raises KernelError where there is none."""
    refuse_unbounded_evidence(model, scaffold)
    for node in scaffold.makers:
        if transform_of(model.trace.value(node)) is not None:
            raise _refusal(model, node, model.trace.value(node))
    terms = [_bound_of(model, node, scaffold) for node in _absorbing(model, scaffold)]
    return math.fsum(terms) + SLACK * (1 + len(terms) + len(scaffold.makers))


def _absorbing(model: Model, scaffold: Scaffold) -> Iterator[int]:
    yield from scaffold.absorbing
    for site in scaffold.groups:
        yield from model.trace.nodes_of(site)


def _bound_of(model: Model, node: int, scaffold: Scaffold) -> float:
    trace = model.trace
    code, slot, row = trace.decode(node)
    operator, arguments = trace.application(node)
    if isinstance(operator, Exchangeable):
        found = 0.0 if transform_of(operator) is None else math.inf
    else:
        refs = code.slots[slot].arguments
        changes = [any(_changes(model, n, scaffold) for n in nodes_read(trace, code, row, (ref,))) for ref in refs]
        known = [UNKNOWN if i < len(refs) and changes[i] else value for i, value in enumerate(arguments)]
        found = log_bound(operator, trace.value(node), tuple(known))
    if not math.isfinite(found):
        raise _refusal(model, node, operator)
    return found


def _changes(model: Model, node: int, scaffold: Scaffold) -> bool:
    """Whether a node's value may be another one after the transition."""
    code, slot, row = model.trace.decode(node)
    moves = node in scaffold.principals or node in scaffold.pending
    return moves and not model.trace.tables[code.index].is_observed(slot, row)


def refuse_unbounded_evidence(model: Model, scaffold: Scaffold) -> None:
    """Evidence inside branches that come and go must be of probability 1 at most, whichever branch takes it."""
    trace = model.trace
    for node in model.regenerator.choices_that_go(scaffold):
        code, slot, row = trace.decode(node)
        if not trace.tables[code.index].is_observed(slot, row):
            continue
        operator, arguments = trace.application(node)
        if isinstance(operator, Exchangeable):
            fits = transform_of(operator) is None
        else:
            fits = log_bound(operator, trace.value(node), (UNKNOWN,) * len(arguments)) <= 0.0
        if not fits:
            raise _refusal(model, node, operator)


def _refusal(model: Model, node: int, operator: Any) -> KernelError:
    code, slot, row = model.trace.decode(node)
    return KernelError(
        f"rejection knows no upper bound for the density of {name_of(operator)} under what the block changes",
        code.slots[slot].span,
        "slice, gibbs or mh",
        model.trace.call_chain(code, slot, row),
    )
