"""Labels of exchangeable procedures drawn by columns: what each class gives is computed once for many data.

While nothing but labels moves, the families that a class leads to stay as they are. So the log densities of a whole
chunk of data under one class are a column, and a draw of a label reads one number of each class; of collapsed
components the statistics are asked. Candidates, fresh draws and decisions are those of the interpreter, in the same
order. Rows move one label at a time, so that the trace is settled after each draw; what opens or closes a class, and
what has no columns, is left to the plans of single choices.

A label has columns if what depends on it are rows of its own, which call memoized procedures with it and let choices
absorb what these give. No row then depends on two labels, and a column stays right when another label moves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.errors import VentureError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.followers import Finder, Mover, Weigher, restore
from venture_lite.kernels.label_rows import (
    FreshClass,
    LabelReader,
    LabelRows,
    NotByColumns,
    ReadLabel,
    group_terms,
    predicted,
)
from venture_lite.kernels.preview import Added, Drawable, Drawn, Unplanned
from venture_lite.kernels.reassign import plans_of
from venture_lite.procedures.exchangeable.crp import CrpState
from venture_lite.program.code import Code
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import ROW_MASK

CHUNK = 1024
"""Rows of labels whose columns are made together."""
WAIT = 4
"""Draws in a row before columns are made: where other kernels move between them, columns would serve one draw each."""
MOST_CLASSES = 2000
"""Of one maker; the columns of a chunk take 32 kB a class."""


Layout = list[tuple[LabelReader, np.ndarray, np.ndarray]]
"""For each way to read labels which of a chunk are read so (n,), and in which rows (n,)."""


@dataclass(frozen=True, slots=True)
class LabelDraw:
    """A label that was drawn, out of the classes that there are and a fresh one."""

    label: ReadLabel
    old: Any
    value: Any
    # for the families of a fresh class, if that was drawn
    drawn: Drawn | None
    # where the old value is among the classes; what each has of the prior, and of the log density
    own: int
    masses: list[float]
    terms: list[float]

    def weights(self) -> list[Weight]:
        """Of the candidates, the old value first."""
        found = [
            Weight(0, math.log(mass) + term) if term > -math.inf else Weight(1)
            for mass, term in zip(self.masses, self.terms, strict=True)
        ]
        return [found[self.own], *found[: self.own], *found[self.own + 1 :]]


class SiteColumns:
    """The labels of one site: draws of one maker, each the value of a memoized family. Mutable."""

    def __init__(self, model: Model, code: Code, slot: int) -> None:
        """Raises NotByColumns where the labels of the site have none."""
        self._model, self._trace, self._plans = model, model.trace, plans_of(model)
        self._code, self._slot = code, slot
        self._values = model.trace.column(code.first_site + slot)
        self._rows = LabelRows(model, code, slot, self._forget)
        self._layouts: dict[int, Layout] = {}
        self._mover = Mover(model)
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of classes."""
        # label of a class -> for each way to read it what the calls lead to: rows of families, and results
        self._classes: dict[Any, dict[LabelReader, tuple[list[int], dict[int, Any]]]] = {}
        # (chunk, label of a class) -> the log density of each label's rows
        self._columns: dict[tuple[int, Any], list[float]] = {}
        # the chunk at hand with its columns in the order of the classes
        self._at_hand: tuple[int, list[list[float]]] | None = None
        self._maker: Exchangeable | None = None
        self._prior: FreshClass | None = None
        self._version = -1
        self._wait = WAIT

    # -------------------------------------------------------------------------------------------- one draw

    def draw(self, node: int, draws: Drawable) -> LabelDraw:
        """A label from its conditional distribution; nothing moves yet. Raises NotByColumns, with a generator that
        may have moved."""
        journal, row = self._trace.journal, node & ROW_MASK
        if journal.version != self._version:
            self._begin()
            self._version = journal.version
        label = self._rows.of(row, draws)
        if label is None or self._wait:
            self._wait = max(0, self._wait - 1)
            raise NotByColumns
        state, old = self._found_maker(node).state, self._values.view[row]
        assert isinstance(state, CrpState)
        if state.counts[old] == 1 or len(state.tables) > MOST_CLASSES:
            raise NotByColumns
        own, fresh = state.tables.index(old), state.fresh()
        terms = self._terms(label, row, state.tables, draws)
        if not all(term < math.inf for term in terms) or terms[own] == -math.inf:
            # the interpreter finds the call that an error belongs to, and knows what to do in an impossible state
            raise NotByColumns
        new, drawn = self._fresh(label, fresh, draws)
        terms.append(new)
        best = max(terms)
        masses = state.masses_without(own)
        shares = [mass * math.exp(term - best) for mass, term in zip(masses, terms, strict=True)]
        chosen = _drawn(shares, own, self._trace.rng.random())
        value = fresh if chosen == len(state.tables) else state.tables[chosen]
        return LabelDraw(label, old, value, drawn if value == fresh else None, own, masses, terms)

    def move(self, node: int, drawn: LabelDraw, draws: Drawable) -> None:
        """Give a label the value that was drawn for it."""
        if drawn.drawn is None and not self._is_last_reader(drawn):
            self._redirect(node & ROW_MASK, drawn)
            self._version = self._trace.journal.version
        else:
            self._plans.plan(node, draws).apply(drawn.value, drawn.drawn)
            self.moved()

    def moved(self) -> None:
        """The label that was asked about last was given another value; classes may have come or gone."""
        if not self._rows.is_private:
            # other labels' rows may depend on it
            self._version = -1
            return
        self._version = self._trace.journal.version
        if self._maker is not None:
            self._at_hand = None
            if self._prior is not None:
                self._prior.missing = None
            tables = self._maker.state.statistics()
            self._classes = {
                table: known for table, known in self._classes.items() if table in tables and self._stands(table, known)
            }
            self._columns = {key: column for key, column in self._columns.items() if key[1] in self._classes}

    def _stands(self, table: Any, known: Mapping[LabelReader, tuple[list[int], Any]]) -> bool:
        """Whether the families of a class, which observed labels may keep, still exist."""
        try:
            return all(self._rows.led_to(reader, table)[0] == families for reader, (families, _) in known.items())
        except NotByColumns:
            return False

    def _is_last_reader(self, drawn: LabelDraw) -> bool:
        """Whether families of a label's class have no other users: those go, and the class may stay."""
        calls = Counter[tuple[Code, int]]()
        for reader, _ in drawn.label.readers:
            families, _ = self._class(drawn.old)[reader]
            calls.update((memo.procedure.code, row) for (_, memo, _), row in zip(reader.calls, families, strict=True))
        count = self._trace.users.count
        return any(count(*family) <= its_calls for family, its_calls in calls.items())

    def _redirect(self, row: int, drawn: LabelDraw) -> None:
        """Lead the rows of a label to another class that exists."""
        statistics, maker, mover = self._trace.statistics, self._maker, self._mover
        assert maker is not None
        assert self._rows.own_shape is not None
        with self._model.transaction() as change:
            statistics.unincorporate(maker, drawn.old, ())
            for operator, value in self._applied(drawn.label, drawn.old) if drawn.label.is_applied else ():
                statistics.unincorporate(operator, value, ())
            statistics.incorporate(maker, drawn.value, ())
            self._rows.own_shape.move(mover, row, drawn.value)
            for reader, its_row in drawn.label.readers:
                reader.shape.move(mover, its_row, drawn.value)
            change.keep()

    def _found_maker(self, node: int) -> Exchangeable:
        """Raises NotByColumns where it is none of labels."""
        if self._maker is None:
            operator, _ = self._trace.application(node)
            if not isinstance(operator, Exchangeable) or not isinstance(operator.state, CrpState):
                raise NotByColumns
            self._maker = operator
        return self._maker

    def _terms(self, label: ReadLabel, row: int, tables: list[int], draws: Drawable) -> list[float]:
        """The log density of what reads a label under each class."""
        chunk = row // CHUNK
        if self._at_hand is None or self._at_hand[0] != chunk:
            layout = self._layouts.get(chunk)
            if layout is None:
                layout = self._laid_out(chunk, draws)
                self._rows.of(row, draws)
                self._layouts[chunk] = layout
            self._at_hand = chunk, [self._column(chunk, table, layout) for table in tables]
        at = row % CHUNK
        terms = [column[at] for column in self._at_hand[1]]
        if label.is_applied:
            for place, term in enumerate(self._applications(label, self._values.view[row], tables)):
                terms[place] += term
        return terms

    def _applications(self, label: ReadLabel, old: Any, tables: list[int]) -> list[float]:
        """The log density of what is applied in a label's rows under each class, the rest of its draws given."""
        out: Added = []
        for operator, value in self._applied(label, old):
            out.append((operator, operator.state.remove(value)))
        try:
            return [predicted(self._applied(label, table)) for table in tables]
        finally:
            restore(out)

    def _applied(self, label: ReadLabel, table: Any) -> list[tuple[Exchangeable, Any]]:
        """(procedure, value) of the applications in a label's rows, if it had a class."""
        known = self._class(table)
        return [
            (known[reader][1][call], values.view[row]) for reader, row in label.readers for values, call in reader.made
        ]

    def _fresh(self, label: ReadLabel, fresh: int, draws: Drawable) -> tuple[float, Drawn]:
        """The log density of what reads a label under a class that does not exist yet, and what is drawn for that."""
        if self._prior is None:
            self._prior = FreshClass(self._plans, self._rows.readers, draws)
        if self._prior.is_simple and self._prior.is_missing(fresh):
            return self._prior.weighed(label, fresh)
        finder = Finder(self._plans, draws)
        finder.begin()
        weigher = Weigher(self._model, finder)
        weight = weigher.begin()
        try:
            for reader, row in label.readers:
                reader.shape.weigh(weigher, row, fresh)
            weigher.end()
        except (Unplanned, VentureError):
            raise NotByColumns from None
        finally:
            weigher.take_back()
        if finder.preview is None:
            # its families exist
            raise NotByColumns
        return (-math.inf if weight.impossible else weight.total), finder.preview.drawn

    # --------------------------------------------------------------------------------------------- columns

    def _forget(self, row: int) -> None:
        """A label is read otherwise than before: the columns of its chunk were made without it."""
        chunk = row // CHUNK
        self._layouts.pop(chunk, None)
        self._columns = {key: column for key, column in self._columns.items() if key[0] != chunk}
        self._at_hand = None

    def _laid_out(self, chunk: int, draws: Drawable) -> Layout:
        """Who reads the labels of a chunk."""
        first, places = chunk * CHUNK, dict[LabelReader, tuple[list[int], list[int]]]()
        live, count = self._trace.tables[self._code.index].live, self._trace.tables[self._code.index].count
        for row in range(first, min(first + CHUNK, count)):
            label = self._rows.of(row, draws) if live[row] else None
            for reader, its_row in () if label is None else label.readers:
                at, rows = places.setdefault(reader, ([], []))
                at.append(row - first)
                rows.append(its_row)
        return [(reader, np.array(at), np.array(rows)) for reader, (at, rows) in places.items()]

    def _column(self, chunk: int, table: Any, layout: Layout) -> list[float]:
        """Raises NotByColumns."""
        found = self._columns.get((chunk, table))
        if found is None:
            total = np.zeros(CHUNK)
            for reader, at, rows in layout:
                families = self._class(table)[reader][0]
                for group in reader.groups:
                    group.families[:] = families
                    # a label may be read in several rows
                    np.add.at(total, at, group_terms(group, rows))
            found = self._columns[chunk, table] = total.tolist()
        return found

    def _class(self, table: Any) -> dict[LabelReader, tuple[list[int], dict[int, Any]]]:
        """What the calls of each reader lead to in a class. Raises NotByColumns where its families do not exist."""
        known = self._classes.setdefault(table, {})
        for reader in self._rows.readers:
            if reader not in known:
                known[reader] = self._rows.led_to(reader, table)
        return known


def _drawn(shares: list[float], own: int, u: float) -> int:
    """An index drawn in proportion to the shares: the one of the present value is looked at first."""
    target = u * math.fsum(shares) - shares[own]
    if target < 0.0:
        return own
    for index, share in enumerate(shares):
        if index != own:
            target -= share
            if target < 0.0:
                return index
    return max((index for index, share in enumerate(shares) if share > 0.0 and index != own), default=own)


class LabelColumns:
    """`gibbs` of labels that have columns, of one kernel. Mutable."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._generator = model.trace.rng.bit_generator
        self._sites: dict[int, SiteColumns | None] = {}
        # absorbing choices weighed
        self.rows = 0
        # what was drawn last
        self._drawn: LabelDraw | None = None

    def step(self, node: int, draws: Drawable) -> bool | None:
        """Whether the label changed; None where it has no columns, and nothing was done."""
        model = self._model
        site = node >> 32
        if site not in self._sites:
            self._sites[site] = self._made(node)
        columns = self._sites[site]
        self._drawn = None
        if columns is None or model.transactions or model.trace.journal.entries or model.regenerator.power != 1.0:
            return None
        before = self._generator.state
        try:
            drawn = columns.draw(node, draws)
        except NotByColumns:
            self._generator.state = before
            return None
        self._drawn = drawn
        self.rows += len(drawn.terms) * drawn.label.terms
        if drawn.value == drawn.old:
            return False
        columns.move(node, drawn, draws)
        return True

    def _made(self, node: int) -> SiteColumns | None:
        code, slot, _ = self._model.trace.decode(node)
        try:
            return SiteColumns(self._model, code, slot)
        except NotByColumns:
            return None

    def moved(self, node: int) -> None:
        """A label for which there were no columns was moved otherwise."""
        columns = self._sites.get(node >> 32)
        if columns is not None:
            columns.moved()

    @property
    def restructured(self) -> bool:
        """Whether the last step opened a class."""
        return self._drawn is not None and self._drawn.drawn is not None

    def weights(self) -> list[Weight]:
        """Of the candidates of the last step."""
        return [] if self._drawn is None else self._drawn.weights()
