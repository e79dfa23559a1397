"""The measures of one chain (`inference/measures.py`): functions that give their present values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from venture_lite.draws.draws import column_array
from venture_lite.draws.presentation import counted
from venture_lite.errors import ArgumentError, CountTooLarge, EvidenceError, Span, VentureError, nearest
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import NARROW, AtLimit, density_of, log_density
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.exchangeable.counted import Counted
from venture_lite.procedures.record import Random
from venture_lite.program.code import Kind
from venture_lite.session.live import Directory, LoopPart
from venture_lite.session.origin import data_names
from venture_lite.trace.nodes import row_of, site_of
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import NotColumnar

Apply = Callable[[], int]
"""Evaluates an expression in the trace; the choice that its value is, or -1."""


def density_at(model: Model, apply: Apply, value: Callable[[], Any], span: Span) -> float:
    """The log density of a value for the choice that an expression makes or denotes; nothing is left of it, nor of the
    random numbers that it took."""
    trace = model.trace
    generator = trace.rng.bit_generator
    state = generator.state
    try:
        with model.aside():
            node = apply()
            if node < 0:
                hint = "(log_density (normal 0 1) 0.3), or of a name that stands for a random choice"
                raise EvidenceError("log_density is of a random choice", span, hint)
            operator, arguments, drawn = trace.choice(node)
            if isinstance(operator, Exchangeable):
                trace.statistics.unincorporate(operator, drawn, arguments)
            return float(density_of(trace, node, operator, arguments, value()))
    finally:
        generator.state = state


class ObservedData:
    """The data of one label in one chain: the choices that evidence fixes, in the order of the passes, and of the
    items of lists."""

    def __init__(self, model: Model, directory: Directory, chain: int, label: str) -> None:
        """Raises ArgumentError where nothing goes by the label."""
        self._model, self._chain = model, chain
        self._parts = _observing(directory, label)
        self._label = label
        # how many data were drawn that are beyond all counts, and what was said of the first
        self._beyond = 0
        self._why = ""
        # as of a state of the trace's structure
        self._nodes: tuple[Any, list[int]] = (None, [])

    def nodes(self) -> list[int]:
        stamp = self._model.trace.structure_stamp()
        if self._nodes[0] != stamp:
            found = []
            for part in self._parts:
                rows = part.rows[self._chain]
                for at in part.left():
                    found += self._model.evidence_nodes(rows.code, int(rows.rows[at]))
            self._nodes = stamp, found
        return self._nodes[1]

    def log_likelihood(self) -> np.ndarray:
        """(data,): the log density of each; of data that are vectors of independent values, all as long, (data, items)
        of each item, else of all items after one another.

        Raises VentureError for draws of exchangeable procedures.
        """
        trace, nodes = self._model.trace, self.nodes()
        if any(self._has_items(node) for node in nodes):
            return _joined([self._terms(node) for node in nodes])
        found = np.empty(len(nodes))
        for site, places in _by_site(nodes).items():
            if trace.kind(nodes[places[0]]) is Kind.RANDOM:
                rows = np.array([row_of(nodes[place]) for place in places])
                found[places] = self._model.weights.groups[site].terms(rows)
            else:
                found[places] = [self._density(nodes[place]) for place in places]
        return found

    def _has_items(self, node: int) -> bool:
        trace = self._model.trace
        operator = trace.application(node)[0] if isinstance(trace.value(node), np.ndarray) else None
        return isinstance(operator, Random) and operator.item_log_densities is not None

    def _terms(self, node: int) -> np.ndarray:
        """The log density of each item of a datum."""
        if not self._has_items(node):
            return np.array([self._density(node)])
        operator, arguments, value = self._model.trace.choice(node)
        return operator.item_log_densities(value, *arguments)  # type: ignore[union-attr, misc]

    def _density(self, node: int) -> float:
        trace = self._model.trace
        operator, _ = trace.application(node)
        if isinstance(operator, Exchangeable):
            raise VentureError(
                f"the data are draws of an exchangeable procedure from {operator.record.name}, which have no "
                "likelihood of their own: each one's density is predictive, given the others",
                hint="write its parameters out as random choices, and observe draws that depend on these alone",
            )
        return float(log_density(trace, node))

    def replicate(self) -> Any:
        """Each datum drawn anew with its arguments as they stand, those of exchangeable procedures given all other
        applications: an array (data, ...) of numbers, else a list. NaN stands for a count that is too large."""
        nodes = self.nodes()
        drawn: list[Any] = [None] * len(nodes)
        for site, places in _by_site(nodes).items():
            together = self._together(site, [nodes[place] for place in places])
            for position, place in enumerate(places):
                drawn[place] = self._anew(nodes[place]) if together is None else together[position]
        array = column_array(drawn)
        return array if array.dtype != object else drawn

    def _together(self, site: int, nodes: list[int]) -> list[Any] | None:
        """Draws for many choices of one distribution; None where they are made one by one."""
        trace = self._model.trace
        if len(nodes) <= NARROW or trace.kind(nodes[0]) is not Kind.RANDOM:
            return None
        group = self._model.weights.groups[site]
        if group.record.simulate_columns is None:
            return None
        try:
            arguments = group.arguments(np.array([row_of(node) for node in nodes]))
            drawn: list[Any] = group.record.simulate_columns(trace.rng, len(nodes), *arguments).tolist()
        except (NotColumnar, RowByRow, AtLimit, TypeError):
            return None
        return drawn

    def _anew(self, node: int) -> Any:
        trace = self._model.trace
        operator, arguments, value = trace.choice(node)
        with self._model.aside():
            if isinstance(operator, Exchangeable):
                trace.statistics.unincorporate(operator, value, arguments)
            try:
                return simulate_anew(trace, node, operator, arguments)
            except CountTooLarge as error:
                self._beyond += 1
                self._why = self._why or error.message
                return np.full(value.shape, np.nan) if isinstance(value, np.ndarray) else np.nan

    def note(self) -> str:
        """What to know of the data drawn so far, if anything is."""
        if not self._beyond:
            return ""
        return f"(replicate {self._label}): {counted(self._beyond, 'draw')} of data NaN: {self._why}"


def _joined(terms: list[np.ndarray]) -> np.ndarray:
    return np.stack(terms) if len({len(each) for each in terms}) == 1 else np.concatenate(terms)


def _by_site(nodes: list[int]) -> dict[int, list[int]]:
    """Places of nodes by their site."""
    found: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        found.setdefault(site_of(node), []).append(place)
    return found


def _observing(directory: Directory, label: str) -> list[LoopPart]:
    known = data_names(directory)
    found = [part for live in directory if live.label == label for part in live.parts if part.evidence is not None]
    if label not in known and not found:
        hint = nearest(label, known) or f"there are {', '.join(known) or 'none'}; label: [observe ...] names one"
        raise ArgumentError(f"nothing is observed as {label}", hint=hint)
    return known.get(label) or found


def class_count(value: Any) -> int | None:
    """How many labels the draws of a maker have; None for what is no maker of labels."""
    if not isinstance(value, Exchangeable) or not value.record.labels or not isinstance(value.state, Counted):
        return None
    return len(value.state.counts)
