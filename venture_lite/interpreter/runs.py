"""Runs: the nodes of a block cut into rows that are computed alike, so that what is made for one serves all of them.

A *run* is some rows of one site that read by the same references and do not depend on one another: eighty effects of a
hierarchy are one run, a recursion is as many as it has steps. Runs come parents first. A run of many rows is computed
by columns, one of few rows row by row, by the same operations.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.interpreter.sources import ALL, ValueSource, computed_from, parents_first, parents_of
from venture_lite.program.code import Ref
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.nodes import node_at, row_of, site_of
from venture_lite.trace.table import listed

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Rows of one site, and the references by which they read: a value's source, or the arguments of a choice."""

    site: int
    # (N,)
    rows: np.ndarray
    # what the first row reads: its Code and its references are those of all rows
    source: ValueSource
    # the procedure that is applied to what is read; None where a value is handed on
    operator: Any
    # (N,) the rows that read: the rows themselves, the callers' of an argument, the family's of a result
    at: np.ndarray

    @property
    def nodes(self) -> list[int]:
        return [node_at(self.site, row) for row in self.rows.tolist()]

    @property
    def refs(self) -> tuple[Ref, ...]:
        return self.source.refs


class Places:
    """A number for each node of some runs, which is its place in what is held by node."""

    def __init__(self, runs: Iterable[Run]) -> None:
        # site -> its rows, sorted, and their places
        self._sites: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        # that of every node which is in no run
        self.nowhere = 0
        for run in runs:
            rows, places = self._sites.get(run.site, (np.zeros(0, int), np.zeros(0, int)))
            rows, places = np.append(rows, run.rows), np.append(places, self.nowhere + np.arange(len(run.rows)))
            order = np.argsort(rows)
            self._sites[run.site] = rows[order], places[order]
            self.nowhere += len(run.rows)

    def of(self, site: int, rows: Any) -> Any:
        """Of one row, of many, or one place for all where no row of the site is in a run."""
        if site not in self._sites:
            return self.nowhere
        known, places = self._sites[site]
        rows = listed(rows)
        at = np.minimum(np.searchsorted(known, rows), len(known) - 1)
        return np.where(known[at] == rows, places[at], self.nowhere)[()]

    def rows(self) -> Iterator[tuple[int, np.ndarray]]:
        """The rows of each site."""
        return ((site, rows) for site, (rows, _) in self._sites.items())


def runs_of(trace: Trace, nodes: Iterable[int], free: Container[int] = ()) -> list[Run]:
    """Principal and renewed nodes as runs, each of which reads what stays and runs before it; those that are `free`
    read nothing.

    A call that borrows its family's value has none to compute, and is in no run.
    """
    levels: list[list[int]] = []
    for node, level in _levels(trace, {lent(trace, node): None for node in nodes}, free):
        if level == len(levels):
            levels.append([])
        levels[level].append(node)
    return [run for alike in levels for run in runs_alike(trace, alike)]


def runs_alike(trace: Trace, nodes: Iterable[int]) -> list[Run]:
    """Nodes that do not depend on one another as runs."""
    found: dict[tuple[Any, ...], list[tuple[int, ValueSource]]] = {}
    for node in nodes:
        source = reads_of(trace, node)
        operator = operator_of(trace, node) if source.is_applied else None
        kind = (site_of(node), source.code, source.slot, source.position, operator)
        found.setdefault(kind, []).append((node, source))
    return [_run(alike, kind[-1]) for kind, alike in found.items()]


def run_of(trace: Trace, node: int) -> Run:
    """One node as a run."""
    (run,) = runs_alike(trace, [node])
    return run


def reads_of(trace: Trace, node: int) -> ValueSource:
    """What gives a node its value; of a choice, what its distribution is applied to."""
    code, slot, row = trace.decode(node)
    return computed_from(trace, node) or ValueSource(code, row, slot, ALL)


def operator_of(trace: Trace, node: int) -> Any:
    """The procedure that a node's slot applies."""
    code, slot, row = trace.decode(node)
    item = code.slots[slot]
    return item.record if item.operator is None else trace.read(site_of(node), row)[0]


def _run(alike: list[tuple[int, ValueSource]], operator: Any) -> Run:
    rows = np.array([row_of(node) for node, _ in alike])
    return Run(site_of(alike[0][0]), rows, alike[0][1], operator, np.array([source.row for _, source in alike]))


def lent(trace: Trace, node: int) -> int:
    """The node whose value a node has: that of the family where a call borrows it."""
    while isinstance(column := trace.column(site_of(node)), BorrowedColumn):
        node = node_at(column.site, row_of(column.edges.view[row_of(node)]))
    return node


def _levels(trace: Trace, nodes: Iterable[int], free: Container[int]) -> Iterable[tuple[int, int]]:
    """Each node with the number of nodes on the longest way to it, parents first."""
    waiting = dict.fromkeys(nodes)
    parents: dict[int, list[int]] = {}
    levels: dict[int, int] = {}

    def read(node: int) -> Iterable[int]:
        if node in free:
            parents[node] = []
            return ()
        parents[node] = [parent for read in parents_of(trace, node) if (parent := lent(trace, read)) in waiting]
        return reversed(parents[node])

    for node in parents_first(waiting, read, levels):
        levels[node] = 1 + max((levels[parent] for parent in parents[node]), default=-1)
    return levels.items()
