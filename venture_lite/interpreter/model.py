"""Directives on a live trace: assume, observe, predict, force, forget, each undone exactly if it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from venture_lite.errors import EvidenceError, ImpossibleState, InternalError, ObservedAlready, Span, VentureError
from venture_lite.interpreter.ancestry import refuse_random_keys
from venture_lite.interpreter.answers import Answers
from venture_lite.interpreter.constants import Constants
from venture_lite.interpreter.evidence import (
    NO_EVIDENCE,
    evidence_nodes,
    evidence_path,
    refuse_impossible,
    refuse_other_shape,
)
from venture_lite.interpreter.explain import explain
from venture_lite.interpreter.handler import Handler, Starting
from venture_lite.interpreter.machine import Limits, Machine
from venture_lite.interpreter.queries import Direct, Query, Scratch
from venture_lite.interpreter.readers import reader
from venture_lite.interpreter.regenerate import Regenerator
from venture_lite.interpreter.scaffold import Builder, going
from venture_lite.interpreter.steps import STEPS, fill
from venture_lite.interpreter.weights import KeptWeights, Weight, log_density
from venture_lite.program.code import Code, Global, Kind
from venture_lite.trace.kept import InCommon, SetUps
from venture_lite.trace.table import Table
from venture_lite.trace.trace import Trace
from venture_lite.values import freeze, show

RECOUNT_EVERY = 100_000
"""Changes of statistics after which they are recomputed: a rank-one step leaves about 1e-16 of what it moves, so that
this many leave less than 1e-9."""


@dataclass(slots=True)
class Rows:
    """The rows that one directive made in one Code: `first`, `first + 1`, ... or a list of them."""

    code: Code
    # row of each pass; NONE for a forgotten one
    rows: Any
    # observations have evidence
    observed: bool
    bound: Global | None = None
    # whether evidence was put on nodes outside the rows
    elsewhere: bool = False


POLL_EVERY = 1024
"""Rows between two points at which an interruption can come; evaluation has points of its own, but not every row needs
an evaluation."""

LONG_LOAD = 1000
"""From this many rows on, statistics are saved once for a load and not at every step."""


@dataclass(slots=True)
class FixedValue:
    """A proposal that puts one given value in place."""

    value: Any
    # false where the value was drawn from the choice's own distribution
    counts: bool = True

    def prepare(self, trace: Trace, principals: Iterable[int]) -> None:
        """Nothing depends on the old state."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        return self.value, 0.0


class GivenValues(FixedValue):
    """A proposal of given values, by choice."""

    def propose(self, node: int, operator: Any, arguments: tuple[Any, ...], old: Any) -> tuple[Any, float]:
        return self.value[node], 0.0


class Transaction:
    """`with model.transaction() as change:` changes of a trace that are kept together, or taken back together.

    What a transaction changed stands from `keep` on; what was not kept when its block ends, whatever ends it, the
    journal takes back, and every table, bag and statistic is as it was, bit for bit. A transaction inside another keeps
    into the outer one; the outermost makes final what it keeps. Mutates the journal, and the number of transactions
    that are open.
    """

    __slots__ = ("_mark", "_model")

    def __init__(self, model: Model) -> None:
        self._model = model
        self._mark = model.trace.journal.mark()
        model.transactions += 1

    def __enter__(self) -> Transaction:
        return self

    def keep(self) -> None:
        """What was changed until now stands."""
        model = self._model
        if model.transactions == 1:
            model.commit_transition()
        self._mark = model.trace.journal.mark()

    def back(self) -> None:
        """Take back what was changed since the block began or last kept, and whatever evaluation was in the middle
        of."""
        self._model.rollback(self._mark)

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        model = self._model
        model.transactions -= 1
        if kind is not None:
            model.rollback(self._mark)
            return
        trace = model.trace
        if len(trace.journal.entries) > self._mark:
            if trace.constants.fresh:
                # a proposal's constant families, which the next one would fill anew
                trace.constants.keep_fresh()
            trace.journal.rollback(self._mark)
        if trace.constants.lost and not model.transactions:
            model.fill_again()


WAYS = ("compiled", "interpreted", "checked")
"""How kernels make transitions: by a fast way where there is one, never so, or both ways and compared."""
UNCOMPARED = {
    "pgibbs": "sweeps of `pgibbs` over columns of particles",
    "evidence": "passes of `pgibbs` over columns, which estimate the evidence",
    "smc": "kernels of `smc` over columns of particles",
}
"""The fast ways whose transitions are not compared, since they take their random numbers in another order than the
interpreter, which makes these transitions in a checked session. What they compute is compared in a compiled one."""


class Model:
    """A trace with the machinery that changes it; what directives and inference call. `kernels` is one of `WAYS`."""

    def __init__(
        self,
        rng: np.random.Generator,
        library: Any = None,
        limits: Limits | None = None,
        kernels: str = "compiled",
    ) -> None:
        self.kernels = kernels
        # which fast ways were compared with the interpreter
        self.answers = Answers(always=kernels == "checked")
        self.trace = Trace(rng, library)
        self.trace.reader, self.trace.explain = reader, explain
        self.trace.constants = Constants(self.trace)
        self.trace.analyzer.make_query = partial(Query, self)
        if library is not None:
            library.model = self
        self.machine = Machine(self.trace, STEPS, self.poll, limits)
        self.weights = KeptWeights(self.trace, self.answers)
        self.regenerator = Regenerator(self.trace, self.machine, self.weights)

        # how many tables of what was derived are the trace's own, and not of what kernels learned
        self._derived = len(self.trace.derived)
        # transactions that are open, one inside another
        self.transactions = 0
        # Codes of directives, by the shape of their expression
        self.codes: dict[Any, Any] = {}
        # asked between transitions and now and then within: whether to stop
        self.interrupted: Callable[[], bool] = lambda: False
        # for tests: an interruption at the n-th point from now at which one can come
        self.interrupt_after: int | None = None
        # from the scratch model of a query to a fast way through its worlds
        self.direct: Callable[[Scratch], Direct] | None = None
        # how many queries this one is a scratch model inside of
        self.query_depth = 0
        # whether some observation had probability zero when it was loaded
        self.maybe_impossible = False
        # the observation that made it so
        self.impossible_since: Span | None = None
        # what was made ready once, for engines and for fast ways
        self.kept = SetUps(self.trace.bytes_used)
        # what it shares with the other chains of its session
        self.in_common = InCommon()

    def may_take(self, way: str) -> bool:
        """Whether a way of `UNCOMPARED` may be taken."""
        assert way in UNCOMPARED
        return self.kernels == "compiled"

    def scratch(self) -> Model:
        """An empty model with the same procedures and limits, which is interrupted as this one is."""
        library = self.trace.analyzer.library
        made = Model(self.trace.rng, None if library is None else library.anew(), self.machine.limits, self.kernels)
        made.direct = self.direct
        made.trace.analyzer.registered = self.trace.analyzer.registered
        made.machine.poll = self.poll
        return made

    def poll(self) -> None:
        """A point at which an interruption can come: raises KeyboardInterrupt if one has."""
        if self.interrupt_after is not None:
            self.interrupt_after -= 1
            if self.interrupt_after <= 0:
                self.interrupt_after = None
                raise KeyboardInterrupt
        if self.interrupted():
            raise KeyboardInterrupt

    # -------------------------------------------------------------------------------------------- bookkeeping

    def commit(self) -> None:
        self.trace.statistics.loading = None
        self.trace.journal.commit()
        self._thin_out()

    def commit_transition(self) -> None:
        """Make a transition final; now and then statistics are recomputed from their applications."""
        trace = self.trace
        trace.journal.commit()
        if trace.constants.fresh or trace.constants.crowded:
            self._thin_out()
        if trace.statistics.updates >= RECOUNT_EVERY:
            trace.recount()

    def _thin_out(self) -> None:
        """Let go of constant families of which a procedure keeps too many."""
        constants = self.trace.constants
        constants.fresh.clear()
        if constants.crowded:
            self.regenerator.detach(going(self.trace, *constants.surplus()), counts=False)
            self.trace.journal.commit()

    def let_go(self) -> None:
        """Let go of what was made ready for kernels, which is made again where it is asked for."""
        self.kept.let_go()
        derived = self.trace.derived
        del derived[self._derived :]
        for table in derived:
            table.clear()

    def derive_anew(self) -> None:
        """The text means something else from now on: what was derived from it goes, also where kernels hold it."""
        self.kept.clear()
        for table in self.trace.derived:
            table.clear()
        self.trace.program.version += 1
        self.trace.journal.version += 1

    def transaction(self) -> Transaction:
        """What is changed in a `with` block and not kept by its end is taken back."""
        return Transaction(self)

    @contextmanager
    def on_probation(self) -> Iterator[Callable[[], None]]:
        """`with model.on_probation() as keep:` whole transitions are made and committed; without a call of `keep` they
        are taken back at the end. Nothing is uncommitted where the block begins, and at its end."""
        journal, is_kept = self.trace.journal, []
        journal.is_held = True
        try:
            yield lambda: is_kept.append(True)
        finally:
            journal.is_held = False
            if is_kept:
                journal.release()
            else:
                self.rollback()
                # what was derived from the state in between is none of the present one
                journal.version += 1
                journal.structure += 1

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is evaluated in the block leaves nothing behind."""
        with Transaction(self) as change:
            try:
                yield
            finally:
                change.back()

    def fill_again(self) -> None:
        """Fill the constant families that went when a proposal was taken back: the next one would fill them anew."""
        constants = self.trace.constants
        with Transaction(self) as change:
            while constants.lost and not self.trace.journal.entries:
                (memo, key), values = constants.lost.popitem()
                if constants.is_alive(memo):
                    fill(self.machine, memo, values)
                    constants.stays(memo.procedure.code, memo.entries[key])
                    change.keep()

    def rollback(self, mark: int = 0) -> None:
        """Take back what the journal holds since the mark, and whatever evaluation was in the middle of."""
        self.machine.reset()
        self.trace.constants.forget_fresh()
        if mark == 0:
            self.trace.statistics.loading = None
        self.trace.journal.rollback(mark)

    # ----------------------------------------------------------------------------------------------- evaluating

    def load(self, code: Code, columns: list[Any], count: int, evidence: Any, bound: Global | None = None) -> Rows:
        """Evaluate `count` rows of a directive's Code, one argument column each, with evidence or without.

        `evidence` is NO_EVIDENCE or one value a row.
        """
        if evidence is not NO_EVIDENCE and count > 1 and self.is_flat(code):
            made = self._load_together(code, columns, count, evidence)
            self.machine.refuse_excess()
            return made
        made = self.begin_load(code, columns, count, evidence, bound)
        for position in self.polled(range(count), grows=True):
            self.load_one(made, evidence, position)
        return made

    def polled(self, positions: Iterable[int], grows: bool = False) -> Iterator[int]:
        """Positions of rows, with a look now and then whether to stop; where the trace `grows`, for want of memory
        too."""
        for position in positions:
            yield position
            if position % POLL_EVERY == POLL_EVERY - 1:
                self.poll()
                if grows:
                    self.machine.refuse_excess()

    def begin_load(
        self, code: Code, columns: list[Any], count: int, evidence: Any, bound: Global | None = None
    ) -> Rows:
        """Rows with their arguments, not evaluated yet."""
        trace = self.trace
        table = trace.table(code)
        if trace.statistics.loading is None and count >= LONG_LOAD and not trace.journal.entries:
            trace.statistics.loading = set()
        observed = evidence is not NO_EVIDENCE
        if count == 1:
            rows: Any = np.array([trace.new_row(table, [_plain(column[0]) for column in columns])])
        else:
            first = self._new_block(table, columns, count, live=False)
            rows = range(first, first + count)
            if observed and code.result_slot >= 0 and isinstance(evidence, np.ndarray) and evidence.ndim > 1:
                # vectors stand in one matrix; each row is written again when its choice is constrained
                table.columns[code.result_slot].adopt(first, evidence)  # type: ignore[union-attr]
            table.reserve_cells()
        return Rows(code, rows, observed, bound)

    def _new_block(self, table: Table, columns: list[Any], count: int, live: bool) -> int:
        first = table.allocate_block(count, live)
        self.trace.journal.restructured = True
        self.trace.journal.note(Table.truncate, table, first)
        for index, column in enumerate(columns):
            table.columns[index].adopt(first, column)  # type: ignore[union-attr]
        return first

    def load_one(self, made: Rows, evidence: Any, position: int) -> Weight:
        """Evaluate one of the rows of a directive; the weight of its evidence."""
        wanted = NO_EVIDENCE if evidence is NO_EVIDENCE else _plain(evidence[position])
        try:
            return self._load_row(made, int(made.rows[position]), wanted)
        except VentureError as error:
            error.position = position
            if isinstance(error, ImpossibleState) and evidence is not NO_EVIDENCE and made.code.span is not None:
                error.message += f", since the observation at {made.code.span.place()}: {made.code.span.text}"
            raise

    def starting(self) -> Handler:
        """`with model.starting():` what is loaded may bring improper choices into being, each at its start."""
        return self.machine.handled_by(Starting(self.trace))

    def sample(self, code: Code, values: tuple[Any, ...] = ()) -> Any:
        """Evaluate a Code against the trace with these arguments, and keep nothing."""
        with self.aside():
            return self.trace.result(code, self.apply(code, values))

    def apply(self, code: Code, values: tuple[Any, ...]) -> int:
        """Evaluate a new row of a Code with these arguments; returns the row."""
        row = self.trace.new_row(self.trace.table(code), values)
        self.machine.evaluate(code, row)
        return row

    def _load_row(self, made: Rows, row: int, evidence: Any) -> Weight:
        trace, code = self.trace, made.code
        trace.table(code).awake(row)
        trace.table(code).set_context(row, 0)
        if made.bound is not None:
            # the name is bound before its value is there, so that a procedure can call itself
            trace.bindings.bind(made.bound, code, row)
        self.machine.evaluate(code, row, evidence)
        weight = Weight()
        self.regenerator.weigh_constrained(weight)
        if evidence is not NO_EVIDENCE:
            self._settle_evidence(made, row, weight)
        return weight

    def _settle_evidence(self, made: Rows, row: int, weight: Weight) -> None:
        """Constrain the choices, made earlier, that the evidence leads to; refuse what no parameter could explain."""
        code, waiting = made.code, list(self.machine.to_constrain)
        self.machine.to_constrain.clear()
        for node, value, path in waiting:
            weight.plus(self.constrain(node, value, path, code.span))
            made.elsewhere = True
        if weight.impossible or waiting:
            refuse_impossible(self.trace, code, row)
        if weight.impossible > 0:
            self.note_impossible(code.span)

    def note_impossible(self, span: Span | None) -> None:
        """The state has probability zero, at the latest from an observation on."""
        if not self.maybe_impossible:
            self.maybe_impossible, self.impossible_since = True, span

    def constrain(self, node: int, value: Any, path: list[int], span: Span | None) -> Weight:
        """Fix an existing choice to a value: it leaves its scopes, what depends on it follows. Returns the change of
        the log weight.

        Raises ObservedAlready at `span`, the place that asks for it.
        """
        trace = self.trace
        if trace.is_observed(node):
            raise ObservedAlready(self, node, span)
        change = self.put_value(node, value)
        trace.unregister(*trace.decode(node))
        for step in path:
            trace.set_observed(*trace.decode(step), True)
        return change

    def put_value(self, node: int, value: Any) -> Weight:
        """Give a choice a value and bring what depends on it up to date; returns the change of the log weight."""
        scaffold = Builder(self.trace).build([node])
        if node not in scaffold.principals:
            raise InternalError("a choice cannot lie in its own brush")
        before = self.regenerator.detach(scaffold, counts=True)
        after = self.regenerator.regenerate(scaffold, FixedValue(_alike(value, self.trace.value(node))))
        return after.minus(before)

    def is_flat(self, code: Code) -> bool:
        """Whether a row is nothing but its arguments and one random choice that takes the evidence."""
        stored = [slot for slot in code.slots if slot.stored and slot.kind is not Kind.ARGUMENT]
        return len(stored) == 1 and stored[0].kind is Kind.RANDOM and code.result_slot >= 0

    def _load_together(self, code: Code, columns: list[Any], count: int, evidence: Any) -> Rows:
        trace = self.trace
        table = trace.table(code)
        first = self._new_block(table, columns, count, live=True)
        table.columns[code.result_slot].adopt(first, evidence)  # type: ignore[union-attr]
        flags = table.observed.setdefault(code.result_slot, bytearray())
        flags.extend(bytes(len(table.live) - len(flags)))
        flags[first : first + count] = b"\x01" * count
        site = code.first_site + code.result_slot
        group = self.weights.groups[site]
        try:
            weight = group.weigh(slice(first, first + count))
        except VentureError:
            self._one_by_one(first, count, lambda row: group.weigh(slice(row, row + 1)))
            raise
        if weight.impossible:
            self.note_impossible(code.span)
            self._one_by_one(first, count, lambda row: refuse_impossible(trace, code, row))
        if first == 0 and table.dead == 0:
            self.weights.keep(site, weight)
        return Rows(code, range(first, first + count), True)

    def _one_by_one(self, first: int, count: int, refuse: Callable[[int], object]) -> None:
        """Look at rows that were loaded together; an error says which of them met it."""
        for position in self.polled(range(count)):
            try:
                refuse(first + position)
            except VentureError as error:
                error.position = position
                raise

    def evidence_node(self, code: Code, row: int) -> int:
        """The choice that a row's result is. Raises EvidenceError where it is none, or a list of them."""
        if self.lists(code, row):
            raise EvidenceError("a list of choices is not one choice", code.span, "one after the other")
        return evidence_nodes(self.trace, code, row)[0]

    def lists(self, code: Code, row: int) -> bool:
        """Whether a row's result is a list of choices, not one."""
        if not isinstance(self.trace.result(code, row), tuple):
            return False
        nodes = evidence_nodes(self.trace, code, row)
        return len(nodes) != 1 or not isinstance(self.trace.value(nodes[0]), tuple)

    def evidence_nodes(self, code: Code, row: int) -> list[int]:
        """The choices that an observe row's evidence fixes: one, or those of a list."""
        return evidence_nodes(self.trace, code, row)

    # -------------------------------------------------------------------------------------------------- forget

    def remove_row(self, made: Rows, position: int) -> None:
        """Undo one row of a directive."""
        if made.observed:
            self._unconstrain(made.code, int(made.rows[position]))
        self.regenerator.detach(going(self.trace, (made.code, int(made.rows[position]))), counts=False)
        if made.bound is not None:
            self.trace.bindings.unbind(made.bound)

    def _unconstrain(self, code: Code, row: int) -> None:
        """Evidence goes; a choice that is still used elsewhere stays with its value, back in its scopes."""
        trace = self.trace
        for node in evidence_path(trace, code, row):
            trace.set_observed(*trace.decode(node), False)
        for node in self.evidence_nodes(code, row):
            place = trace.decode(node)
            # rows that were loaded together have no place for their positions in scopes
            trace.tables[place[0].index].reserve_cells()
            refuse_random_keys(trace, *place)
            trace.register(*place)

    # --------------------------------------------------------------------------------------------------- force

    def force(self, code: Code, row: int, value: Any) -> None:
        """Set the choice that a row's result is, without constraining it."""
        node = self.evidence_node(code, row)
        if self.trace.is_observed(node):
            raise EvidenceError("an observed choice cannot be forced", code.span)
        if self.put_value(node, value).impossible > 0:
            self.note_impossible(None)
        if log_density(self.trace, node) == -np.inf:
            at, slot, _ = self.trace.decode(node)
            operator, arguments = self.trace.application(node)
            refuse_other_shape(operator, arguments, value)
            raise EvidenceError(f"{show(value)} has probability zero here", at.slots[slot].span)
        self.trace.journal.set_item(self.trace.default.forced, node, value)

    def log_score(self) -> Weight:
        """Log joint density of all live choices."""
        return self.weights.log_score()


def _alike(value: Any, present: Any) -> Any:
    """A list of numbers as an array, where the choice that takes it holds one: kernels go on from there."""
    if not isinstance(present, np.ndarray) or not isinstance(value, tuple):
        return value
    try:
        return freeze(np.array(value, dtype=np.float64))
    except (TypeError, ValueError):
        return value


def _plain(value: Any) -> Any:
    """A column's entry as a value: NumPy scalars become Python numbers."""
    return value.item() if isinstance(value, np.generic) else value
