"""Labels of exchangeable procedures drawn by columns: what each class gives is computed once for many data.

While nothing but labels moves, the families that a class leads to stay as they are. So the log densities of a whole
chunk of data under one class are a column, and a draw of a label reads one number of each class; of collapsed
components the statistics are asked. Candidates, fresh draws and decisions are those of the interpreter, in the same
order. What opens or closes a class, and what has no columns, is left to the plans of single choices.

In a sweep the labels that follow each other are drawn together, up to the first that opens a class or is the last of
one. Their random numbers are drawn ahead in the order in which they would be one by one; what fresh classes would give,
another to each label, is one evaluation over columns; and then each is drawn given those before it, of which it needs
nothing but how many there are in each class. Their rows move behind the draws.

A label has columns if what depends on it are rows of its own, which call memoized procedures with it and let choices
absorb what these give. No row then depends on two labels, and a column stays right when another label moves.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from operator import mul
from typing import Any

import numpy as np

from venture_lite.errors import VentureError
from venture_lite.interpreter.comparison import Check
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.followers import Finder, Mover, Weigher, restore
from venture_lite.kernels.label_chunks import LabelChunks, first_of
from venture_lite.kernels.label_rows import FreshClass, LabelReader, NotByColumns, ReadLabel, predicted
from venture_lite.kernels.preview import Added, Drawable, Drawn, Unplanned
from venture_lite.kernels.reassign import plans_of
from venture_lite.procedures.exchangeable.crp import CrpState
from venture_lite.procedures.record import MakerState
from venture_lite.program.code import Code
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import ROW_MASK

WAIT = 4
"""Draws in a row before columns are made: where other kernels move between them, columns would serve one draw each."""
MOST_CLASSES = 2000
"""Of one maker; the columns of a chunk take 8 kB a class."""
FEW = 4
"""Labels that are drawn one by one in the time of an evaluation over columns."""


@dataclass(frozen=True, slots=True)
class LabelDraws:
    """Labels that were drawn together: those up to the first that opens a class, or has to be drawn alone."""

    count: int
    # (position, old class, new class) of those that went over to another class, by their places
    moves: list[tuple[int, int, int]]
    # whether the last of them opens a class
    opens: bool


@dataclass(frozen=True, slots=True)
class AppliedLabel:
    """A label that one application reads: in its row the call that gives the maker, and the value."""

    row: int
    label: ReadLabel
    reader: LabelReader
    call: int
    value: Any


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
            Weight(0, math.log(mass) + term) if term > -math.inf and mass > 0.0 else Weight(1)
            for mass, term in zip(self.masses, self.terms, strict=True)
        ]
        return [found[self.own], *found[: self.own], *found[self.own + 1 :]]


class SiteColumns:
    """The labels of one site: draws of one maker, each the value of a memoized family. Mutable."""

    def __init__(self, model: Model, check: Check, code: Code, slot: int) -> None:
        """Raises NotByColumns where the labels of the site have none."""
        self._model, self._trace, self._plans = model, model.trace, plans_of(model)
        self._check = check
        self._code, self._slot = code, slot
        # for those that are compared with the interpreter
        self._site = "label columns", code.first_site + slot
        self._values = model.trace.column(code.first_site + slot)
        self._chunks = LabelChunks(model, code, slot)
        self._rows = self._chunks.rows
        # labels ahead that are drawn one by one, since columns were of no use
        self._alone = 0
        self._mover = Mover(model)
        self._begin()

    def _begin(self) -> None:
        """Nothing is known of classes."""
        self._chunks.begin()
        self._maker: Exchangeable | None = None
        # what a class that does not exist yet would be for labels that are read so
        self._priors: dict[tuple[LabelReader, ...], FreshClass] = {}
        self._version = -1
        self._wait = WAIT

    def has(self, node: int, draws: Drawable) -> bool:
        """Whether columns draw a label, as it stands."""
        return self._rows.of(node & ROW_MASK, draws) is not None

    # -------------------------------------------------------------------------------------------- one draw

    def draw(self, node: int, draws: Drawable) -> LabelDraw:
        """A label from its conditional distribution; nothing moves yet. Raises NotByColumns, with a generator that
        may have moved, or Uncompared."""
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
        if not self._check.believes((self._site, *[reader.shape for reader, _ in label.readers])):
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
            for prior in self._priors.values():
                prior.missing = None
            self._chunks.forget_classes(besides=self._state(self._maker).counts)

    def _is_last_reader(self, drawn: LabelDraw) -> bool:
        """Whether families of a label's class have no other users: those go, and the class may stay."""
        calls = Counter[tuple[Code, int]]()
        for reader, _ in drawn.label.readers:
            families, _ = self._chunks.families(drawn.old)[reader]
            calls.update((memo.procedure.code, row) for (_, memo, _), row in zip(reader.calls, families, strict=True))
        count = self._trace.users.count
        return any(count(*family) <= its_calls for family, its_calls in calls.items())

    def _redirect(self, row: int, drawn: LabelDraw) -> None:
        """Lead the rows of a label to another class that exists."""
        with self._model.transaction() as change:
            self._lead(row, drawn.label, drawn.old, drawn.value)
            change.keep()

    def _lead(self, row: int, label: ReadLabel, old: Any, value: Any) -> None:
        statistics, maker, mover = self._trace.statistics, self._maker, self._mover
        assert maker is not None
        assert self._rows.own_shape is not None
        statistics.unincorporate(maker, old, ())
        for operator, its_value in self._applied(label, old) if label.is_applied else ():
            statistics.unincorporate(operator, its_value, ())
        statistics.incorporate(maker, value, ())
        self._rows.own_shape.move(mover, row, value)
        for reader, its_row in label.readers:
            reader.shape.move(mover, its_row, value)

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
        terms = self._chunks.terms(row, tables, draws)
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
        known = self._chunks.families(table)
        return [
            (known[reader][1][call], values.view[row]) for reader, row in label.readers for values, call in reader.made
        ]

    def _fresh(self, label: ReadLabel, fresh: int, draws: Drawable) -> tuple[float, Drawn]:
        """The log density of what reads a label under a class that does not exist yet, and what is drawn for that."""
        prior = self._prior(label.kinds, draws)
        if prior.is_simple and prior.is_missing(fresh):
            return prior.weighed(label, fresh)
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

    # ------------------------------------------------------------------------------------------ several draws

    def are_steady(self, draws: Drawable) -> bool:
        """Whether all labels of the maker are read by rows that stay, and a class brings nothing but its parameters:
        then other labels are there, whichever moves, and so are the parameters of a class that has members."""
        if self._wait or self._maker is None or self._trace.journal.version != self._version:
            return False
        state = self._state(self._maker)
        try:
            self._fresh_class(state, self._chunks.kinds(state.count, draws), draws)
            return True
        except NotByColumns:
            return False

    def draw_several(self, nodes: list[int], draws: Drawable) -> tuple[list[bool], int]:
        """Draw labels, each of them once and in their order, as `draw` and `move` do one by one: up to one that has to
        be drawn so. Whether each of these changed, and how many log densities were weighed. Raises Uncompared."""
        if self._alone:
            self._alone -= 1
            return [], 0
        if not self.are_steady(draws):
            return [], 0
        rows, journal, key = [node & ROW_MASK for node in nodes], self._trace.journal, (self._site, "together")
        if applied := self._applied_once(rows, draws):
            return self._draw_applied(nodes, applied, draws) if self._check.believes(key) else ([], 0)
        generator = self._trace.rng.bit_generator
        before = generator.state
        try:
            state = self._state(self._maker)
            chunk, places = self._chunks.together(rows, draws)
            if len(places) < FEW or not self._check.believes(key):
                raise NotByColumns
            prior = self._fresh_class(state, self._rows.known(rows[0]).kinds, draws)
            fresh, uniform = prior.drawn_for(len(places))
            columns = [self._chunks.column(chunk, label)[places] for label in state.tables]
            terms = np.array([*columns, prior.terms(chunk.part(places), fresh, len(places))])
            own = np.searchsorted(np.array(state.tables), self._values.gather(np.array(rows[: len(places)])))
            found = one_after_the_other(state, own, terms, uniform)
        except NotByColumns:
            generator.state = before
            self._alone = len(rows) - 1
            return [], 0
        if found.count < len(places):
            # the numbers of the labels that are drawn, and no more
            generator.state = before
            prior.drawn_for(found.count)
        if not found.count:
            return [], 0
        tables, moved = list(state.tables), [False] * found.count
        with self._model.transaction() as change:
            for position, old, new in found.moves:
                moved[position] = True
                self._lead(rows[position], self._rows.known(rows[position]), tables[old], tables[new])
            change.keep()
        self._version = journal.version
        if found.opens:
            last, value = found.count - 1, state.fresh()
            moved[last] = True
            self._plans.plan(nodes[last], draws).apply(value, prior.drawn_of(fresh, last, value))
            self._rows.is_private = True
            self.moved()
        return moved, len(terms) * int(chunk.absorbing[places[: found.count]].sum())

    def _applied_once(self, rows: list[int], draws: Drawable) -> list[AppliedLabel]:
        """The first of some labels of which each is read by one application of what its class gives, and by nothing
        else that weighs or makes choices."""
        found = []
        for row in rows:
            label = self._rows.of(row, draws)
            if label is None or not label.is_applied or label.terms != 1 or not self._rows.is_private:
                break
            if self._prior(label.kinds, draws).choices:
                break
            ((reader, its_row),) = [(reader, its_row) for reader, its_row in label.readers if reader.made]
            ((values, call),) = reader.made
            found.append(AppliedLabel(row, label, reader, call, values.view[its_row]))
        return found

    def _draw_applied(self, nodes: list[int], labels: list[AppliedLabel], draws: Drawable) -> tuple[list[bool], int]:
        """Draw labels that are applied, each given those before it: the statistics of the classes are asked. Up to one
        that opens a class, or is the last of its own."""
        model, trace, state = self._model, self._trace, self._state(self._maker)
        prior = self._fresh_class(state, labels[0].label.kinds, draws)
        tables, moved = list(state.tables), list[bool]()
        places = {table: place for place, table in enumerate(tables)}
        # of each way to be applied the statistics of the classes, with those of a fresh one
        known: dict[tuple[LabelReader, int], list[MakerState]] = {}
        opens = False
        with model.transaction() as change:
            for label in labels:
                old = self._values.view[label.row]
                own = places[old]
                if state.counts[old] == 1:
                    break
                at = label.reader, label.call
                if at not in known:
                    makers = [self._chunks.families(table)[label.reader][1][label.call] for table in tables]
                    known[at] = [maker.state for maker in (*makers, prior.given(*at))]
                states, value = known[at], label.value
                token = states[own].remove(value)
                try:
                    terms = [each.log_predictive(value) for each in states]
                finally:
                    states[own].restore(token)
                if not all(term < math.inf for term in terms) or terms[own] == -math.inf:
                    break
                best, masses = max(terms), state.masses_without(own)
                shares = [mass * math.exp(term - best) for mass, term in zip(masses, terms, strict=True)]
                chosen = _drawn(shares, own, trace.rng.random())
                moved.append(chosen != own)
                if opens := chosen == len(tables):
                    break
                if chosen != own:
                    self._lead(label.row, label.label, old, tables[chosen])
            change.keep()
        self._version = trace.journal.version
        if opens:
            self._plans.plan(nodes[len(moved) - 1], draws).apply(state.fresh(), {})
            self._rows.is_private = True
            self.moved()
        return moved, len(moved) * (len(tables) + 1)

    def _state(self, maker: Exchangeable | None) -> CrpState:
        assert maker is not None
        assert isinstance(maker.state, CrpState)
        return maker.state

    def _fresh_class(self, state: CrpState, readers: tuple[LabelReader, ...], draws: Drawable) -> FreshClass:
        """Raises NotByColumns where it is not known, where its families exist, or where there are too many."""
        prior = self._prior(readers, draws)
        if not prior.is_simple or not prior.is_missing(state.fresh()) or len(state.tables) > MOST_CLASSES:
            raise NotByColumns
        return prior

    def _prior(self, readers: tuple[LabelReader, ...], draws: Drawable) -> FreshClass:
        return self._priors.get(readers) or self._priors.setdefault(readers, FreshClass(self._plans, readers, draws))


def _drawn(shares: list[float], own: int, u: float) -> int:
    """An index drawn in proportion to the shares: the one of the present value is looked at first."""
    target = u * math.fsum(shares) - shares[own]
    return own if target < 0.0 else _beyond(shares, own, target)


def _beyond(shares: list[float], own: int, target: float) -> int:
    """The index at which the shares but that of the present value add up to more than the target."""
    for index, share in enumerate(shares):
        if index != own:
            target -= share
            if target < 0.0:
                return index
    return max((index for index, share in enumerate(shares) if share > 0.0 and index != own), default=own)


def one_after_the_other(state: CrpState, own: np.ndarray, terms: np.ndarray, uniform: list[float]) -> LabelDraws:
    """Labels drawn each given those before it, up to one that opens a class, is the last of its own, or has a log
    density that is none: from their classes (n,) by place, the log densities (K + 1, n), and a number of [0, 1) each.
    """
    is_known = (terms < math.inf).all(axis=0) & (terms[own, np.arange(len(own))] > -math.inf)
    with np.errstate(invalid="ignore"):
        fits = np.exp(terms - terms.max(axis=0)).T.tolist()
    masses, moves = state.masses(), list[tuple[int, int, int]]()
    fresh, alone = len(masses) - 1, 1.5 - state.discount
    for position, old in enumerate(own[: first_of(~is_known)].tolist()):
        if masses[old] < alone:
            return LabelDraws(position, moves, False)
        masses[old] -= 1.0
        shares = list(map(mul, masses, fits[position]))
        target = uniform[position] * sum(shares) - shares[old]
        if target < 0.0:
            masses[old] += 1.0
            continue
        new = _beyond(shares, old, target)
        if new == fresh:
            return LabelDraws(position + 1, moves, True)
        masses[new] += 1.0
        moves.append((position, old, new))
    return LabelDraws(first_of(~is_known), moves, False)


class LabelColumns:
    """`gibbs` of labels that have columns, of one kernel. Mutable."""

    def __init__(self, model: Model, check: Check) -> None:
        self._model, self._check = model, check
        self._generator = model.trace.rng.bit_generator
        self._sites: dict[int, SiteColumns | None] = {}
        # absorbing choices weighed
        self.rows = 0
        # what was drawn last
        self._drawn: LabelDraw | None = None

    def step(self, node: int, draws: Drawable) -> bool | None:
        """Whether the label changed; None where it has no columns, and nothing was done. Raises Uncompared."""
        model = self._model
        columns, self._drawn = self._columns_of(node), None
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

    def has(self, node: int, draws: Drawable) -> bool:
        """Whether a choice is a label that has columns, as it stands."""
        columns = self._columns_of(node)
        return columns is not None and columns.has(node, draws)

    def _columns_of(self, node: int) -> SiteColumns | None:
        site = node >> 32
        if site not in self._sites:
            self._sites[site] = self._made(node)
        return self._sites[site]

    def _made(self, node: int) -> SiteColumns | None:
        code, slot, _ = self._model.trace.decode(node)
        try:
            return SiteColumns(self._model, self._check, code, slot)
        except NotByColumns:
            return None

    def step_several(self, nodes: list[int], draws: Drawable) -> list[bool]:
        """Draw labels of one site, each once and in their order, up to one for which `step` is to be asked: whether
        each of these changed. Raises Uncompared."""
        model = self._model
        columns = self._sites.get(nodes[0] >> 32)
        if columns is None or model.transactions or model.trace.journal.entries or model.regenerator.power != 1.0:
            return []
        moved, weighed = columns.draw_several(nodes, draws)
        self.rows += weighed
        return moved

    def are_steady(self, node: int, draws: Drawable) -> bool:
        """Whether, whichever labels of a site move, the choices of the scope stay the same."""
        columns = self._sites.get(node >> 32)
        return columns is not None and columns.are_steady(draws)

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
