"""Weights: log densities of single nodes and of groups of rows, and what is kept of them between transitions.

A log weight is a pair: the number of impossible terms and the sum of the others. Of two states the one with fewer
impossible terms wins whatever the sums are, which is the limit of giving an impossible term probability eps. An
unobserved choice outside its support counts more than all observations together, for kernels move choices within their
supports: evidence that is impossible is never exchanged for one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.errors import InternalError, KernelError, VentureError
from venture_lite.interpreter.ancestry import depends_on_choice
from venture_lite.interpreter.application import admitted
from venture_lite.interpreter.readers import columns_reader
from venture_lite.interpreter.rounding import of_arguments, of_counts
from venture_lite.interpreter.scaffold import UserGroup
from venture_lite.procedures.checks import accepts, is_extreme
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.domains import ANY, REAL, VECTOR
from venture_lite.procedures.record import Random
from venture_lite.program.code import Code, Kind, Ref, SlotRef
from venture_lite.trace.bindings import Derived
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import Column, NotColumnar, length, listed, one_of, part_of
from venture_lite.values import show

if TYPE_CHECKING:
    from venture_lite.interpreter.answers import Answers
    from venture_lite.trace.trace import Trace

CHUNK = 32768
"""Rows evaluated in one call: few enough that the temporaries stay in a core's cache."""

NARROW = 20
"""Groups of at most this many rows are evaluated row by row: below it NumPy's calls cost more than they save."""

HELD, SOME = 100, 60
"""Rows of a group, all of which are held against their evaluation one by one, and how many are of a larger one."""
TOLERANCE = 1e-9
"""What log densities by columns may be off by, relative to themselves."""


OUTSIDE = 1 << 31
"""What the impossible term of an unobserved choice counts, that of an observation being 1."""


ALL = -1


@dataclass(slots=True, eq=False)
class Weight:
    """A log weight; mutable, added to term by term."""

    impossible: int = 0
    total: float = 0.0

    def add(self, term: float, count: int = OUTSIDE) -> None:
        """A term, which where it is impossible counts `count`."""
        if term == -math.inf:
            self.impossible += count
        else:
            self.total += term

    def add_choice(self, trace: Trace, node: int, term: float) -> None:
        """The density of a choice."""
        if term == -math.inf:
            self.impossible += count_if_impossible(trace, node)
        else:
            self.total += term

    def plus(self, other: Weight) -> None:
        self.impossible += other.impossible
        self.total += other.total

    def minus_also(self, other: Weight) -> None:
        self.impossible -= other.impossible
        self.total -= other.total

    def minus(self, other: Weight) -> Weight:
        return Weight(self.impossible - other.impossible, self.total - other.total)

    def value(self) -> float:
        """As one number: -inf where a term is impossible."""
        return -math.inf if self.impossible else self.total


NEVER = 1 << 62
"""Impossible terms of a state that cannot be: more than any other has."""


def count_if_impossible(trace: Trace, node: int) -> int:
    """What the density of a choice counts where it is zero."""
    return 1 if trace.is_observed(node) else OUTSIDE


def log_density(trace: Trace, node: int) -> float:
    """Log density of a choice at its value, given all else (for an exchangeable procedure: its predictive density)."""
    return density_of(trace, node, *trace.choice(node))


def log_likelihood(trace: Trace) -> Weight:
    """Of all observed choices, one by one, given all else. Raises KernelError where one is exchangeable."""
    total = Weight()
    for node in filter(trace.is_observed, trace.choices()):
        operator, arguments, value = trace.choice(node)
        if isinstance(operator, Exchangeable):
            what = "an observed draw of an exchangeable procedure that something else has made has no weight of its own"
            raise KernelError(what, *trace.place(*trace.decode(node))[:1], hint="observe it before it is used")
        total.add(density_of(trace, node, operator, arguments, value), 1)
    return total


def density_of(trace: Trace, node: int, operator: Random | Exchangeable, values: tuple[Any, ...], value: Any) -> float:
    try:
        # nearly all arguments are as they should be
        is_valid = isinstance(operator, Random) and trace.valid[operator](*values)
    except TypeError:
        is_valid = False
    if not is_valid and not admitted(trace, operator, values, node, is_drawn=False):
        return -math.inf
    try:
        if isinstance(operator, Exchangeable):
            term = operator.state.log_predictive(value, *values)
        else:
            term = operator.log_density(value, *values)
    except VentureError as error:
        raise error.at(*trace.place(*trace.decode(node))) from error
    if term != term or term == math.inf:
        raise not_a_density(trace, node, operator, term)
    return term


def not_a_density(trace: Trace, node: int, operator: Random | Exchangeable, term: float) -> VentureError:
    name = operator.name if isinstance(operator, Random) else operator.record.name
    span, chain = trace.place(*trace.decode(node))
    found = "is not a number (NaN)" if term != term else "is infinite"
    return VentureError(f"the log density of {name} at {show(trace.value(node))} {found}", span, None, chain)


class AtLimit(Exception):
    """An argument that all rows share is at the limit of its domain: none of them is possible."""


def _parts(rows: Any, count: int) -> list[Any]:
    """Some rows in parts, each of which is evaluated in one call."""
    size = CHUNK if count > 2 * CHUNK else count
    return [part_of(rows, start, min(start + size, count)) for start in range(0, count, size)]


class Group:
    """The absorbing choices of one site: their summed log density over any group of rows."""

    def __init__(self, trace: Trace, site: int, calls: tuple[int, ...] = (), are_given: bool = False) -> None:
        self.trace = trace
        self.site, self.calls = site, calls
        # of each of the `calls`, the row of the family to which it leads from all rows weighed, or what it gives in
        # each of them (n,); set before they are
        self.families: list[Any] = [-1] * max(1, len(calls))
        self.code: Code = trace.program.site_code[site]
        self.slot = trace.program.site_slot[site]
        item = self.code.slots[self.slot]
        if item.kind is not Kind.RANDOM:
            raise InternalError("a group of choices whose distribution the text does not name")
        assert isinstance(item.record, Random)
        self.record = item.record
        self._read, self.lifted, self._columns = columns_reader(
            trace, self.code, item.arguments, calls, self.families, are_given
        )
        self.values = trace.column(site)
        # positions of the arguments whose domain a density does not check by itself
        domains = [argument.domain.name for argument in self.record.arguments]
        self.checked = [i for i, name in enumerate(domains) if name not in (ANY.name, REAL.name, VECTOR.name)]
        # of these, the arguments that are a column of the rows' own table
        plain = [(position, self._plain_column(ref)) for position, ref in enumerate(item.arguments)]
        self._plain = {position: column for position, column in plain if column is not None}
        # position -> (the column's stamp, how many of its rows were found in the domain as of it; ALL: that all are)
        self._within: dict[int, tuple[int, int]] = {}
        # by whom results by columns are compared with those row by row; who reads in a way of its own has none
        self.answers: Answers | None = None
        # the state of `Column.reshaped` as of which none is to be compared, and whether one was wrong
        self._answered_at, self._is_refuted = -1, False

    def _plain_column(self, ref: Ref) -> Column | None:
        match ref:
            case SlotRef(depth=0, slot=slot) if self.code.slots[slot].stored:
                column = self.trace.tables[self.code.index].columns[slot]
                return column if type(column) is Column else None
        return None

    def columns_read(self) -> list[Column]:
        return [*self._columns, self.values]

    def stamp(self) -> tuple[int, ...]:
        """Equal stamps mean an equal weight over all rows."""
        table = self.trace.tables[self.code.index]
        return (table.shape_stamp, self.values.stamp, *[column.stamp for column in self._columns])

    def weigh(self, rows: Any) -> Weight:
        """Over a slice or an index array of rows."""
        count = length(rows)
        if count > NARROW and self.record.log_density_columns is not None:
            try:
                self._answer(rows)
                return self._weigh_together(rows, count)
            except AtLimit:
                return self.impossible(rows)
            except (NotColumnar, RowByRow):
                pass
        return self._weigh_rows(range(rows.start, rows.stop) if isinstance(rows, slice) else rows.tolist())

    def _answer(self, rows: Any) -> None:
        """Compare what columns give with what single rows do, where that is due; raises as `terms_by_columns`."""
        answers = self.answers
        if answers is None or self._answered_at == Column.reshaped:
            return
        kinds = [column.kind for column in self.columns_read()]
        key = ("rows by columns", self.trace.program.version, self.site, self.calls, *kinds)
        if answers.due(key):
            span = self.code.slots[self.slot].span
            way = f"densities of {self.record.name}{'' if span is None else ' at ' + span.place()} by columns"
            answers.judge(key, way, self._difference(rows))
        self._is_refuted = answers.failed(key)
        if answers.settled(key):
            self._answered_at = Column.reshaped

    def _difference(self, rows: Any) -> str | None:
        """What the log densities of rows by columns differ in from those of single rows; None where they agree. Of rows
        in many parts the first, the last and one between are compared."""
        parts = _parts(rows, length(rows))
        few = dict.fromkeys((0, len(parts) // 2, len(parts) - 1))
        return next(filter(None, (self._difference_in(parts[at]) for at in few)), None)

    def _difference_in(self, rows: Any) -> str | None:
        """The same of rows that are evaluated in one call."""
        count = length(rows)
        at = np.arange(count)
        if count > HELD:
            at = np.unique([0, count - 1, *np.random.default_rng(0).integers(count, size=SOME).tolist()])
        places = [one_of(rows, each) for each in at.tolist()]
        single = [self._weigh_rows((row,)).value() for row in places]
        try:
            terms, weight = np.broadcast_to(self.terms_by_columns(rows), count), self._weigh_chunk(rows)
        except AtLimit:
            terms, weight = np.full(count, -math.inf), self.impossible(rows)
        except (NotColumnar, RowByRow, VentureError):
            raise
        except Exception as error:
            return f"an error, {error!r}"
        for row, one, other in zip(places, single, terms[at].tolist(), strict=True):
            if not self.agrees(row, one, other):
                return f"a log density, {other} in place of {one}"
        possible = terms[terms > -math.inf]
        total, size = float(possible.sum()), float(np.abs(possible).sum())
        if abs(weight.total - total) > TOLERANCE * (size + float(np.sum(of_counts(self.values.gather(rows))))):
            return f"their sum, {weight.total} in place of {total}"
        return None

    def agrees(self, row: int, one: float, other: float) -> bool:
        """True if two log densities of a row differ by rounding alone."""
        size = 1.0 + abs(one) + abs(other)
        if one == other or abs(one - other) <= TOLERANCE * size:
            return True
        if math.isinf(one) or math.isinf(other):
            return False
        given = (self.values.view[row], *self.trace.readers[self.site](row))
        rounding = of_arguments(self.record.log_density, given)
        return abs(one - other) <= TOLERANCE * (size + float(np.sum(of_counts(given[0])))) + rounding

    def terms(self, rows: np.ndarray) -> np.ndarray:
        """The log density of each of some rows, -inf where one is impossible."""
        try:
            if len(rows) > NARROW:
                self._answer(rows)
            return np.broadcast_to(self.terms_by_columns(rows), (len(rows),))
        except AtLimit:
            return np.full(len(rows), -math.inf)
        except (NotColumnar, RowByRow, TypeError):
            single = (self._weigh_rows((row,)) for row in rows.tolist())
            return np.array([weight.value() for weight in single])

    def _weigh_together(self, rows: Any, count: int) -> Weight:
        if count <= 2 * CHUNK:
            return self._weigh_chunk(rows)
        weight = Weight()
        for part in _parts(rows, count):
            weight.plus(self._weigh_chunk(part))
        return weight

    def terms_by_columns(self, rows: Any, values: np.ndarray | None = None) -> np.ndarray:
        """The log densities of some rows, whose values may be at hand, or one for all. Raises RowByRow, NotColumnar,
        TypeError, or AtLimit where no row is possible."""
        columns = self.record.log_density_columns
        if columns is None:
            raise RowByRow
        arguments = self.arguments(rows)
        return columns((True, *self.lifted), self.values_of(rows) if values is None else values, *arguments)

    def values_of(self, rows: Any) -> np.ndarray:
        """The values of some rows; those of a discrete procedure in a type that says whether they are whole."""
        return self.values.gather(rows) if self.record.transform is not None else self.values.gather_narrow(rows)

    def arguments(self, rows: Any) -> tuple[Any, ...]:
        """What the choices of some rows are given, an array where it is not the same in all.

        Raises RowByRow, NotColumnar or AtLimit where that cannot be said for all at once.
        """
        if self._is_refuted:
            raise RowByRow
        try:
            arguments = self._read(rows)
        except (NotColumnar, RowByRow):
            raise
        except Exception:
            raise RowByRow from None  # row by row the call that fails is found
        self.check(rows, self.lifted, arguments)
        return arguments

    def check(self, rows: Any, lifted: tuple[bool, ...], arguments: Sequence[Any]) -> None:
        """Raises AtLimit where an argument that all rows share makes each of them impossible, and RowByRow where some
        argument of some row is outside its domain otherwise."""
        impossible = False
        for position in self.checked:
            argument, value = self.record.arguments[position], arguments[position]
            if self._lie_within(position, value) if lifted[position] else accepts(argument, value):
                continue
            if lifted[position] or not self._is_at_limit(rows, position, value):
                raise RowByRow
            impossible = True
        if impossible:
            raise AtLimit

    def _lie_within(self, position: int, value: np.ndarray) -> bool:
        """Whether an argument is in its domain in these rows. A column is looked at as a whole once as many of its rows
        have been as it has, and not again until it changes."""
        inside = self.record.arguments[position].domain.contains_all
        column = self._plain.get(position)
        if column is None or column.array is None or len(value) <= NARROW:
            return inside(value)
        stamp, found = self._within.get(position, (0, 0))
        if stamp != column.stamp:
            found = 0
        if found == ALL:
            return True
        if not inside(value):
            return False
        found += len(value)
        self._within[position] = (column.stamp, ALL if found > len(column.array) and inside(column.array) else found)
        return True

    def _is_at_limit(self, rows: Any, position: int, value: Any) -> bool:
        """Whether one argument, the same in all rows, is at the limit of its domain."""
        ref = self.code.slots[self.slot].arguments[position]
        domain = self.record.arguments[position].domain
        return is_extreme(domain, value) and depends_on_choice(self.trace, self.code, one_of(rows, 0), [ref])

    def impossible(self, rows: Any, where: np.ndarray | None = None) -> Weight:
        """The weight of some rows, a slice or an index array, of which none is possible, or none at `where`."""
        places = listed(rows)
        if where is not None:
            places = places[np.broadcast_to(where, len(places))]
        flags = self.trace.tables[self.code.index].observed.get(self.slot)
        observed = 0 if flags is None else int(np.count_nonzero(np.frombuffer(flags, np.uint8)[places]))
        return Weight(observed + OUTSIDE * (len(places) - observed))

    def _weigh_chunk(self, rows: Any) -> Weight:
        arguments = self.arguments(rows)
        values = self.values_of(rows)
        if self.record.log_density_total is not None:
            total = self.record.log_density_total((True, *self.lifted), values, *arguments)
            if math.isfinite(total):
                return Weight(0, total)
        columns = self.record.log_density_columns
        assert columns is not None
        return self.summed(rows, columns((True, *self.lifted), values, *arguments))

    def summed(self, rows: Any, terms: np.ndarray) -> Weight:
        """The weight of some rows, from the log density of each, or one that all of them have."""
        if not terms.ndim:
            terms = np.full(length(rows), terms)
        total = float(terms.sum())
        if math.isfinite(total):
            return Weight(0, total)
        impossible = terms == -math.inf
        rest = float(terms[~impossible].sum())
        if not math.isfinite(rest):
            raise RowByRow
        weight = self.impossible(rows, impossible)
        weight.total = rest
        return weight

    def _weigh_rows(self, rows: Any) -> Weight:
        impossible, total = 0, 0.0
        trace, site, record, values = self.trace, self.site, self.record, self.values
        read = trace.readers[site]
        valid, density = trace.valid[record], record.log_density
        view = values.view
        for row in rows:
            try:
                arguments = read(row)
                if valid(*arguments):
                    term = density(view[row], *arguments)
                else:
                    term = density_of(trace, site << 32 | row, record, arguments, view[row])
            except VentureError as error:
                raise error.at(*trace.place(self.code, self.slot, row)) from error
            except Exception:
                trace.read(site, row)  # raises the located error, if the arguments failed
                raise
            if term == -math.inf:
                impossible += count_if_impossible(trace, site << 32 | row)
            elif term - term == 0.0:
                total += term
            else:
                raise not_a_density(trace, site << 32 | row, record, term)
        return Weight(impossible, total)


class KeptWeights:
    """Weights of whole groups at the current state, each valid while nothing that it read has changed."""

    def __init__(self, trace: Trace, answers: Answers | None = None) -> None:
        self.trace = trace

        def group(site: int, *calls: int) -> Group:
            made = Group(trace, site, calls)
            made.answers = answers
            return made

        self.groups: Derived[int, Group] = Derived(group)
        # (site, slot of a call) -> its choices as users of one family
        self._by_call: Derived[tuple[int, int], Group] = Derived(lambda place: group(*place))
        # site -> (stamp, weight) of the last two states weighed, the latest used first: the current state and the
        # proposed one
        self._kept: dict[int, list[tuple[tuple[int, ...], Weight]]] = {}
        # as of which version of the trace what gives the weights of some sites, or these, by position
        self._offered: tuple[int, Mapping[int, int], Callable[[], Sequence[float]] | tuple[float, ...]] = -1, {}, ()
        trace.derived.extend((self.groups, self._by_call, self._kept))

    def users(self, users: UserGroup) -> Group:
        """The group of a site for the users of one family, until it is asked for those of another."""
        found = self._by_call[users.site, users.call]
        found.families[0] = users.family
        return found

    def all_users(self, users: UserGroup) -> Weight:
        """The weight of the users of one family."""
        return self.users(users).weigh(users.rows.array())

    def all_rows(self, site: int) -> Weight:
        """The weight of all live rows of a site."""
        group = self.groups[site]
        stamp = group.stamp()
        kept = self._kept.get(site, ())
        if kept and kept[0][0] == stamp:
            return kept[0][1]
        if len(kept) > 1 and kept[1][0] == stamp:
            self._kept[site] = [kept[1], kept[0]]
            return kept[1][1]
        sites, totals = self._totals()
        if site in sites:
            weight = Weight(0, totals[sites[site]])
        else:
            weight = group.weigh(self.trace.tables[group.code.index].rows())
        self.keep(site, weight)
        return weight

    def offer(self, sites: Mapping[int, int], totals: Callable[[], Sequence[float]]) -> None:
        """What gives the weights of these sites, by their positions, at the state that was just made final; it is
        asked where they are."""
        self._offered = self.trace.journal.version, sites, totals

    def _totals(self) -> tuple[Mapping[int, int], Sequence[float]]:
        """Weights that were offered of the present state, by the positions of their sites."""
        version, sites, totals = self._offered
        journal = self.trace.journal
        if version != journal.version or journal.entries:
            return {}, ()
        if not isinstance(totals, tuple):
            totals = tuple(totals())
            self._offered = version, sites, totals
        return sites, totals

    def keep(self, site: int, weight: Weight) -> None:
        """A weight that was computed at what is now the current state."""
        self._kept[site] = [(self.groups[site].stamp(), weight), *self._kept.get(site, ())[:1]]

    def log_score(self) -> Weight:
        """Log joint density of all live choices."""
        weight, trace = Weight(), self.trace
        sites, totals = self._totals()
        for table in trace.tables:
            for slot in table.positions if table.dead < table.count else ():
                site = table.code.first_site + slot
                if site in sites:
                    weight.total += totals[sites[site]]
                    continue
                if table.code.slots[slot].kind is Kind.RANDOM:
                    weight.plus(self.all_rows(site))
                    continue
                for row in table.rows_that_draw(slot):
                    weight.add_choice(trace, site << 32 | row, log_density(trace, site << 32 | row))
        # in the order of their nodes: rejection does not restore that of a dictionary, and a sum depends on it
        for _, maker in sorted(trace.statistics.makers.items()):
            weight.add(maker.state.log_joint())
        return weight

    def check(self) -> list[str]:
        """For the invariants: kept weights that differ from a recomputation."""
        wrong = []
        for site, (stamp, weight) in [(site, entry) for site, kept in self._kept.items() for entry in kept]:
            group = self.groups[site]
            if stamp == group.stamp():
                fresh = group.weigh(self.trace.tables[group.code.index].rows())
                if fresh.impossible != weight.impossible or not np.isclose(fresh.total, weight.total, 1e-9, 1e-9):
                    wrong.append(f"kept weight of {group.code} {weight} is {fresh}")
        return wrong
