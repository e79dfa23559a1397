"""What a fast way found of many values or states at once, of which a few are compared with the interpreter's.

A column has the values of one node in many states: particles, lanes, worlds. A few of the states that differ are put
into the trace, a few nodes of each, and the interpreter computes these anew: values, what choices are applied to, and
log densities. Log weights of a choice's values are compared with `interpreted_weights`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from venture_lite.errors import VentureError
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.answers import NEAR, interpreted_weights, is_near, places
from venture_lite.interpreter.model import GivenValues, Model
from venture_lite.interpreter.runs import lent
from venture_lite.interpreter.shape import text_of_site
from venture_lite.interpreter.sources import application_nodes, computed_from, source_nodes, source_value
from venture_lite.interpreter.weights import density_of
from venture_lite.trace.keys import memo_key
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.trace import Trace
from venture_lite.values import equal, freeze

MOST_COMPARED, MOST_NODES = 5, 12
"""States, and nodes of each, that are compared at once."""

ABSENT = object()
"""In place of a value that a fast way leaves as it is in the trace."""

FAILED = object()
"""In place of a value that could not be had in a state, and of all that is computed from it."""


def value_at(column: np.ndarray, state: int) -> Any:
    """The value in one state as the trace stores it."""
    if column.ndim > 1:
        return freeze(column[state].copy())
    value = column[state]
    return value.item() if isinstance(value, np.generic) else value


def difference_of_weights(
    model: Model, found: Iterable[tuple[int, Sequence[Any], Sequence[Sequence[float]]]], counts: bool
) -> str | None:
    """What the interpreter makes otherwise of log weights: for each of some choices with a few of its values, these as
    they were found in one way or several, with the choice's own density where it `counts`. Only their differences mean
    anything. None where nothing differs; nothing changes."""
    for node, values, several in found:
        expected = []
        for value in values:
            old, new = interpreted_weights(model, [node], GivenValues({node: value}, counts))
            # families that the present value alone leads to would be drawn anew
            expected.append((old if equal(value, model.trace.value(node)) else new).value())
        for weights in several:
            # what is impossible in both has no difference
            pairs = [pair for pair in zip(expected, weights, strict=True) if max(pair) > -math.inf]
            if not all(is_near(one - pairs[0][0], other - pairs[0][1], NEAR) for one, other in pairs):
                return f"the log weights of {values} for {name_of_choice(model.trace, node)}, {expected} and {weights}"
    return None


@dataclass(frozen=True)
class FoundColumns:
    """What a fast way found of `count` states. Of strands, whose states stand side by side, the nodes are those of the
    first; `own` gives the node of another."""

    model: Model
    count: int
    # by node, and by ~node the packed rows that a call finds, where these may be others than in the trace
    columns: Mapping[int, np.ndarray]
    # nodes that are computed; choices, with what gives their arguments in a state; log densities of choices
    computed: Sequence[int]
    arguments: Mapping[int, Callable[[int], Iterable[Any]]]
    terms: Mapping[int, np.ndarray] = field(default_factory=dict)
    # states that met an error are not compared
    failed: Container[int] = ()
    strands: int = 1
    own: Callable[[int, int], int] = lambda strand, node: node

    def difference(self) -> str | None:
        """What the interpreter makes otherwise; None where nothing. Nothing changes."""
        computed, choices = _spread(self.computed), _spread(self.arguments)
        objects = [column.tolist() for column in self.columns.values() if column.dtype == object]
        states = [at for at in self._states_that_differ() if not any(each[at] is FAILED for each in objects)]
        told = (self._difference_at(at, computed, choices) for at in states if at not in self.failed)
        return next(filter(None, told), None)

    def _states_that_differ(self) -> list[int]:
        """A few states in which values lie far apart or are of several kinds, and those of several strands."""
        found: dict[int, None] = {}
        for node in _spread(self.columns):
            column = self.columns[node]
            if column.dtype == object:
                found |= dict.fromkeys({type(value): at for at, value in enumerate(column.tolist())}.values())
            elif column.ndim == 1:
                found |= dict.fromkeys((int(column.argmin()), int(column.argmax())))
        most = MOST_COMPARED if self.strands == 1 else MOST_COMPARED // 2
        both = *list(found)[:most], *places(self.count, min(self.strands, most) + 1)
        return list(dict.fromkeys(both))[:MOST_COMPARED]

    def _difference_at(self, at: int, computed: Sequence[int], choices: Sequence[int]) -> str | None:
        """The same of some nodes in one state."""
        own = partial(self.own, at * self.strands // self.count)
        columns = {own(node) if node >= 0 else ~own(~node): column for node, column in self.columns.items()}
        state = _State(self.model.trace, lambda node: value_at(columns[node], at) if node in columns else ABSENT)
        with self.model.aside():
            try:
                told = [state.difference_of_value(own(node)) for node in computed]
                for node in choices:
                    term = float(self.terms[node][at]) if node in self.terms else math.nan
                    told.append(state.difference_of_choice(own(node), tuple(self.arguments[node](at)), term))
            except VentureError as error:
                return f"an error, {error.message}"
        return next(filter(None, told), None)


@dataclass(frozen=True)
class _State:
    """One state, of which the trace takes on what is looked at."""

    trace: Trace
    # the value of a node, ABSENT where it is the trace's, and that of ~node likewise
    value_of: Callable[[int], Any]

    def difference_of_value(self, node: int) -> str | None:
        found, value = self.value_of(node), self._interpreted_value(node)
        return None if found is ABSENT or is_near(value, found) else self._told("the value of", node, value, found)

    def difference_of_choice(self, node: int, arguments: tuple[Any, ...], term: float) -> str | None:
        """Of what a choice is applied to, where that was noted, and of its log density where that is a number."""
        self._put(application_nodes(self.trace, node))
        operator, values = self.trace.application(node)
        if arguments and not is_near(tuple(values), arguments):
            return self._told("what is read by", node, values, arguments)
        if math.isnan(term):
            return None
        self._put([node])
        expected = density_of(self.trace, node, operator, values, self.trace.value(node))
        return None if is_near(expected, term, NEAR) else self._told("the log density of", node, expected, term)

    def _told(self, what: str, node: int, expected: Any, found: Any) -> str:
        return f"{what} {text_of_site(self.trace.program, node >> 32)}, {expected!r} and {found!r}"

    def _interpreted_value(self, node: int) -> Any:
        """The value that a node is computed to have; of a call whose family may be another, that of the family."""
        trace = self.trace
        source = computed_from(trace, node)
        if self.value_of(~node) is not ABSENT:
            self._put(application_nodes(trace, node))
            memo, *values = trace.read(node >> 32, node & ROW_MASK)
            code = memo.procedure.code
            row = memo.entries.get(memo_key(tuple(values)))
            if row is None or code.index << 32 | row != self.value_of(~node):
                raise VentureError(f"no family of {memo} has the key")
            return trace.result(code, row)
        assert source is not None
        self._put(source_nodes(trace, source))
        return source_value(trace, source)

    def _put(self, nodes: Iterable[int]) -> None:
        """Let the trace have the values that some nodes have in the state."""
        trace = self.trace
        for node in nodes:
            packed = self.value_of(~node)
            if packed is not ABSENT:
                trace.users.lead(node >> 32, np.array([node & ROW_MASK]), np.array([packed]))
                if trace.is_borrowed(node):
                    continue
            value, lender = self.value_of(node), lent(trace, node)
            value = self.value_of(lender) if value is ABSENT else value
            if value is not ABSENT:
                trace.put(lender, value)


def _spread(nodes: Iterable[int]) -> list[int]:
    """A few nodes, the first and the last of each site among them."""
    sites: dict[int, list[int]] = {}
    for node in nodes:
        sites.setdefault(node >> 32, []).append(node)
    most = max(2, MOST_NODES // max(len(sites), 1))
    return [each[at] for each in sites.values() for at in places(len(each), most)]
