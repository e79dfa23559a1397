"""Where an observation's evidence went, and what no parameters could have given."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.code import Code
from venture_lite.errors import EvidenceError, VentureError
from venture_lite.procedures.record import Random
from venture_lite.trace.carry import deterministic_evidence
from venture_lite.trace.dependence import depends_on_choice, named_node
from venture_lite.trace.limits import within
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import NONE, ROW_MASK
from venture_lite.trace.weights import log_density
from venture_lite.values import show

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


def evidence_path(trace: Trace, code: Code, row: int) -> list[int]:
    """The nodes that an observe row's evidence passes, from its result to the choice that takes it."""
    path: list[int] = []
    while True:
        node = named_node(trace, code, row)
        if node < 0:
            raise deterministic_evidence(trace, code, -1, row)
        path.append(node)
        code, slot, row = trace.decode(node)
        if trace.is_choice(code, slot, row):
            return path
        edge = trace.tables[code.index].edges.get(slot)
        packed = edge.view[row] if edge is not None else NONE
        if packed < 0:
            raise deterministic_evidence(trace, code, slot, row)
        code, row = trace.program.codes[packed >> 32], packed & ROW_MASK


def refuse_impossible(trace: Trace, code: Code, row: int) -> None:
    """An observed value outside the support whatever the parameters are is an error of the directive."""
    node = evidence_path(trace, code, row)[-1]
    site, at = node >> 32, node & ROW_MASK
    operator, arguments = trace.application(site, at)
    value = trace.value(node)
    if log_density(trace, site, at) != -np.inf:
        return
    if never_possible(operator, arguments, value, _moving(trace, node, len(arguments))):
        raise _impossible(trace, node, operator, value)


def _impossible(trace: Trace, node: int, operator: Random | Exchangeable, value: Any) -> EvidenceError:
    name = operator.name if isinstance(operator, Random) else operator.record.name
    where = trace.decode(node)
    return EvidenceError(
        f"{show(value)} is impossible for {name}, whatever its parameters are",
        where[0].slots[where[1]].span,
        None,
        trace.call_chain(*where),
    )


def take_in(
    trace: Trace, node: int, operator: Exchangeable, value: Any, arguments: tuple[Any, ...], term: float
) -> None:
    """Enter an application, whose log density is `term`, into the statistics of its maker.

    Raises EvidenceError for a value that is impossible whatever the parameters are: statistics know no such value.
    """
    if term == -np.inf and never_possible(operator, arguments, value):
        raise _impossible(trace, node, operator, value)
    trace.statistics.incorporate(operator, value, arguments)


PROBES: dict[str, tuple[Any, ...]] = {
    "real": (0.0,),
    "positive": (1.0,),
    "non-negative": (1.0,),
    "probability": (0.5,),
    "positive probability": (0.5,),
    "integer": (0, 1),
    "count": (1, 2**31),
    "positive integer": (1, 2**31),
}
"""Arguments to try, by domain, where a value is impossible for the arguments at hand."""


def _moving(trace: Trace, node: int, count: int) -> tuple[bool, ...]:
    """Which arguments of a choice depend on random choices."""
    code, slot, row = trace.decode(node)
    given = [depends_on_choice(trace, code, row, [ref]) for ref in code.slots[slot].arguments]
    return (*given, *[False] * (count - len(given)))


def _elsewhere(domain: str, given: Any, value: Any) -> tuple[Any, ...]:
    """What an argument that moves may be in another state in which the value is possible, where no number is."""
    if domain == "list":
        return ((value,) * len(given),)
    if domain == "count":
        return (int(np.sum(value)),) if isinstance(value, np.ndarray) else ()
    size = value + 1 if isinstance(value, int) and 0 <= value < MOST_OUTCOMES else np.size(value)
    sizes = {len(given), size} if domain in ("probability vector", "positive vector", "scores") else ()
    return tuple(np.full(size, 1.0 / size) for size in sizes if size)


MOST_OUTCOMES = 2**20
"""A position beyond this is not taken for one of a longer vector of probabilities."""


def never_possible(
    operator: Random | Exchangeable, arguments: tuple[Any, ...], value: Any, moving: tuple[bool, ...] = ()
) -> bool:
    """Whether no parameters give the value positive density: it has none for any of a few typical ones.

    `moving` says which of the arguments depend on random choices: their lists and vectors may be others, too.
    """
    if isinstance(operator, Exchangeable):
        fresh = operator.record.make(*operator.state.arguments)
        return bool(fresh.log_predictive(value, *arguments) == -np.inf)
    choices: list[tuple[Any, ...]] = []
    for given, argument, moves in zip(arguments, operator.arguments, moving or (False,) * len(arguments), strict=True):
        domain = argument.domain.name
        if moves and domain == "any":
            return False
        given = within(argument.domain, given)
        choices.append((given, *PROBES.get(domain, ()), *(_elsewhere(domain, given, value) if moves else ())))
    if isinstance(value, (int, float)):
        # bounds: supports that are an interval between arguments
        around = (value - 1, value + 1)
        choices = [(*tried, *around) if len(tried) > 1 else tried for tried in choices]
    for tried in itertools.islice(itertools.product(*choices), 200):
        try:
            if operator.log_density(value, *tried) > -np.inf:
                return False
        except (VentureError, ArithmeticError, LookupError, TypeError, ValueError):
            continue
    return True
