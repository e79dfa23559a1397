"""Nodes that read a few finite choices, evaluated for many values of these at once.

A *cone* is a node with the choices that it reads, and what lies between. Cones that differ in nothing but their rows
are evaluated together, as strands of particles are (`population.py`): a lane is one cone with one value for each of its
choices, the lanes of a cone stand side by side. So the emissions of a chain of states are one function call, whatever
the length of the chain and the number of candidates. A call of a memoized procedure whose key moves finds the family of
each candidate; one that does not exist yet is drawn, once (`FoundFamilies`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.answered_columns import FAILED, value_at
from venture_lite.interpreter.cones import READS_STATES, Cone, MovingNodes, Refuse, read_by_family
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.runs import operator_of, reads_of
from venture_lite.interpreter.scaffold import going
from venture_lite.interpreter.schedule import Bundle
from venture_lite.interpreter.sources import nodes_read
from venture_lite.interpreter.steps import fill
from venture_lite.kernels.population import ColumnChoice, Failures, Population, Unalike, Writer
from venture_lite.program.code import Code
from venture_lite.trace.keys import memo_key
from venture_lite.trace.runtime import Memo
from venture_lite.trace.table import ROW_MASK, NotColumnar, column_of
from venture_lite.trace.trace import Trace

MOST_LANES = 1 << 18
"""Evaluated by one function call, which bounds the memory of what it computes on its way."""


class FoundFamilies:
    """The families of memoized procedures that the candidates of some choices lead to. Those that do not exist are
    drawn from their distributions and stand without users until `let_go`; to be used within a transaction."""

    def __init__(self, model: Model, moving: MovingNodes, refuse: Refuse) -> None:
        self._model, self._trace, self._moving, self._refuse = model, model.trace, moving, refuse
        self._fresh: list[tuple[Code, int]] = []

    def row(self, memo: Any, values: tuple[Any, ...], node: int) -> int:
        """The row of a family. Raises KernelError where its value depends on the choices; the family's own error."""
        if not isinstance(memo, Memo):
            raise self._refuse(node, "the procedure that a state is the key of is no longer a memoized one", None)
        code = memo.procedure.code
        row = memo.entries.get(memo_key(values))
        if row is None:
            with self._model.transaction() as change:
                fill(self._model.machine, memo, values)
                change.keep()
            row = memo.entries[memo_key(values)]
            self._fresh.append((code, row))
            self._refuse_readers(read_by_family(self._trace, code, row), node)
        self._refuse_readers(nodes_read(self._trace, code, row, (code.result,)), node)
        return row

    def _refuse_readers(self, read: Iterable[int], node: int) -> None:
        if any(each in self._moving.every for each in read):
            raise self._refuse(node, READS_STATES, None)

    def let_go(self, left: Iterable[tuple[Code, int]] = ()) -> None:
        """The families that nobody uses go: of those that were drawn here, and of those that were `left`."""
        trace = self._trace
        for code, row in dict.fromkeys((*self._fresh, *left)):
            unused = trace.tables[code.index].live[row] and not trace.users.count(code, row)
            if unused and not trace.constants.stays(code, row):
                self._model.regenerator.detach(going(trace, (code, row)), counts=False)
        self._fresh.clear()


# ------------------------------------------------------------------------------------------------------- operations


@dataclass(frozen=True)
class _LookUp(ColumnChoice):
    """A call of a memoized procedure whose key differs between lanes: its values, and the packed rows that it finds."""

    families: FoundFamilies | None = None
    # keys that were looked for last, each once, and which of them belongs to each lane
    last: list[Any] = field(default_factory=list)

    def __call__(self, lanes: int, memo: Any, *keys: Any) -> tuple[np.ndarray, np.ndarray]:
        if len(keys) == 1 and not self.lifted[0] and keys[0].ndim == 1 and keys[0].dtype.kind in "ib":
            if not self.last or self.last[0] is not keys[0]:
                self.last[:] = keys[0], *np.unique(keys[0], return_inverse=True)
            distinct, of = self.last[1:]
            each = [(memo, value) for value in distinct.tolist()]
        else:
            each, of = self._distinct(lanes, (memo, *keys))
        first = np.zeros(len(each), np.int64)
        first[of[::-1]] = np.arange(lanes)[::-1]
        found = [self._found(int(at), *asked) for at, asked in zip(first, each, strict=True)]
        for place, row in enumerate(found):
            if row is None:
                error = self.failures[int(first[place])]
                for lane in np.flatnonzero(of == place).tolist():
                    self.failures.setdefault(lane, error)
        return self._results(found)[of], np.array([-1 if row is None else row for row in found])[of]

    def _distinct(self, lanes: int, arguments: tuple[Any, ...]) -> tuple[list[tuple[Any, ...]], np.ndarray]:
        """What is asked for, each once, and which of it by each lane."""
        columns = [
            [value_at(x, lane) for lane in range(lanes)] if up else [x] * lanes
            for x, up in zip(arguments, self.lifted, strict=True)
        ]
        places: dict[Any, int] = {}
        asked: list[tuple[Any, ...]] = []
        of = np.empty(lanes, np.int64)
        for lane, (memo, *values) in enumerate(zip(*columns, strict=True)):
            failed = any(value is FAILED for value in values)
            key = (FAILED, lane) if failed else (id(memo), memo_key(tuple(values)))
            if key not in places:
                places[key] = len(asked)
                asked.append((FAILED,) if failed else (memo, *values))
            of[lane] = places[key]
        return asked, of

    def _found(self, lane: int, memo: Any, *values: Any) -> int | None:
        """The packed row of a family; None where it could not be had."""
        if memo is FAILED:
            return None
        try:
            assert self.families is not None
            # where lanes of several strands ask for the same there is no telling which one a family is for
            row = self.families.row(memo, values, self.nodes[0])
        except KernelError:
            raise
        except VentureError as error:
            self.failures.setdefault(lane, error)
            return None
        packed: int = memo.procedure.code.index << 32 | row
        return packed

    def _results(self, found: list[int | None]) -> np.ndarray:
        """The results of families."""
        trace, rows = self.trace, [packed for packed in found if packed is not None]
        codes = {packed >> 32 for packed in rows}
        if len(rows) == len(found) and len(codes) == 1:
            code = trace.program.codes[codes.pop()]
            if code.result_slot >= 0:
                try:
                    column = trace.column(code.first_site + code.result_slot)
                    return column.gather(np.array([packed & ROW_MASK for packed in rows]))
                except NotColumnar:
                    pass
        codes_of = trace.program.codes
        return column_of([FAILED if x is None else trace.result(codes_of[x >> 32], x & ROW_MASK) for x in found])


class _LaneWriter(Writer):
    """Writes the function of some cones that are alike."""

    def look_up(self, node: int, families: FoundFamilies) -> None:
        """Find the family that a keyed call leads to."""
        code, slot, _ = self.trace.decode(node)
        item, at = code.slots[slot], self._row(self.bundle.rows[node])
        assert item.operator is not None
        values = [self._references.read(code, at, ref) for ref in (item.operator, *item.arguments)]
        texts = list(map(self.value, values))
        lifted = tuple(map(self.is_lifted, values))
        operation = _LookUp(self.trace, self._likes(node), None, lifted, self.failures, False, families=families)
        found = f"{self._bind(operation)}(n, {', '.join(texts)})"
        self.lines.append(f"v[{self._bind(node)}], v[{self._bind(rows_of(node))}] = {found}")
        self.set.append(node)
        self._move(node)


def rows_of(node: int) -> int:
    """Where in a population the packed rows stand that a keyed call finds."""
    return ~node


# ------------------------------------------------------------------------------------------------------------ cones


def alike(trace: Trace, cones: Iterable[Cone], moving: MovingNodes, sizes: dict[int, int]) -> list[list[Cone]]:
    """Cones that read in the same way, and whose choices have as many candidates (`sizes`), together."""
    groups: dict[Any, list[Cone]] = {}
    for cone in cones:
        number = {node: place for place, node in enumerate((*cone.choices, *cone.between, cone.node))}
        computed = dict.fromkeys((*cone.between, cone.node))
        reads = tuple(_reads(trace, node, moving, number) for node in computed)
        kind = tuple((node >> 32, sizes.get(node)) for node in cone.choices), cone.node in moving.every, reads
        groups.setdefault(kind, []).append(cone)
    return list(groups.values())


def _reads(trace: Trace, node: int, moving: MovingNodes, number: dict[int, int]) -> tuple[Any, ...]:
    """How a node reads: equal for nodes that one function can compute."""
    parents = tuple(number[parent] for parent in moving.parents[node])
    if node in moving.keyed:
        return node >> 32, parents
    source = reads_of(trace, node)
    operator = id(operator_of(trace, node)) if source.is_applied else None
    return node >> 32, parents, source.code.index, source.slot, source.position, operator


class LaneGroup:
    """Cones that are alike, evaluated for any values of their choices."""

    def __init__(self, model: Model, cones: list[Cone], moving: MovingNodes, families: FoundFamilies) -> None:
        """Raises Unalike where they cannot be evaluated together."""
        self.model, self.trace, self.cones = model, model.trace, cones
        # lanes whose node could not be had, with the first error on the way to it
        self.failures: Failures = {}
        first = cones[0]
        nodes = dict.fromkeys((*first.choices, *first.between, first.node))
        like = [tuple(dict.fromkeys((*cone.choices, *cone.between, cone.node))) for cone in cones]
        rows = {node: np.array([each[at] & ROW_MASK for each in like]) for at, node in enumerate(nodes)}
        bundle = Bundle([], len(cones), {node: int(x[0]) if len(cones) == 1 else x for node, x in rows.items()})
        writer = _LaneWriter(model, bundle, first.choices, self.failures, retains=False)
        for node in first.between:
            if node in moving.keyed:
                writer.look_up(node, families)
            elif node not in first.choices:
                writer.renew(node)
        if first.node in first.choices or first.node not in moving.every:
            writer.weigh(first.node)
        self._step = writer.step()
        self.counts = writer.counts
        # what weighs the node, where it is one of the choices
        self.weighed = writer.choices[first.node] if first.node in first.choices else None
        self.observed = model.trace.is_observed(first.node)
        # of the nodes
        self.rows = np.array([cone.node & ROW_MASK for cone in cones])

    def run(self, values: Sequence[np.ndarray], lanes: int) -> tuple[list[np.ndarray], Population]:
        """The terms of what is weighed, each (lanes,), and what was computed, for values (lanes,) of each choice."""
        self.failures.clear()
        population: Population = dict(zip(self.cones[0].choices, values, strict=True))
        return self._step(population, lanes), population


def groups_of(
    model: Model, cones: Iterable[Cone], moving: MovingNodes, families: FoundFamilies, sizes: dict[int, int]
) -> list[LaneGroup]:
    """Cones in groups of no more than MOST_LANES lanes."""
    found = []
    for like in alike(model.trace, cones, moving, sizes):
        lanes = int(np.prod([sizes.get(node, 1) for node in like[0].choices], dtype=np.int64))
        most = max(MOST_LANES // lanes, 1)
        for at in range(0, len(like), most):
            part = like[at : at + most]
            try:
                found.append(LaneGroup(model, part, moving, families))
            except Unalike:
                found.extend(LaneGroup(model, [cone], moving, families) for cone in part)
    return found


# ---------------------------------------------------------------------------------------------------------- writing


def write_choices(trace: Trace, nodes: Sequence[int], values: Sequence[Any]) -> None:
    """Give choices their new values."""
    sites: dict[int, list[int]] = {}
    for place, node in enumerate(nodes):
        sites.setdefault(node >> 32, []).append(place)
    for site, places in sites.items():
        rows = np.array([nodes[place] & ROW_MASK for place in places])
        _put(trace, site, rows, column_of([values[place] for place in places]))


def write_computed(
    trace: Trace, group: LaneGroup, population: Population, keyed: Container[int], moves: np.ndarray
) -> list[tuple[Code, int]]:
    """Give the nodes that some cones compute the values of a run with one lane each, of those that move (N,); the
    families that lost a user."""
    first, left = group.cones[0].node, list[int]()
    rows = group.rows[moves]
    if first in keyed:
        left = trace.users.lead(first >> 32, rows, population[rows_of(first)][moves])
    if first in population and not trace.is_borrowed(first):
        _put(trace, first >> 32, rows, population[first][moves])
    return [(trace.program.codes[packed >> 32], packed & ROW_MASK) for packed in left]


def _put(trace: Trace, site: int, rows: np.ndarray, values: np.ndarray) -> None:
    if not trace.put_rows(site, rows, values):
        for place, row in enumerate(rows.tolist()):
            trace.put(site << 32 | row, value_at(values, place))
