"""Following a value through one row: generated functions for what depends on some of its slots.

The text says which slots depend on others (`Dependents`); what the row's calls lead to decides what that means
(`RowShape`). For each shape two functions are written that keep the slots that move in variables and read all else from
the tables: one asks what a value leads to and has what absorbs weighed, the other redirects edges and makes the value
stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from venture_lite.interpreter.references import Value
from venture_lite.kernels.preview import BodyText, Unplanned
from venture_lite.procedures.record import Deterministic
from venture_lite.program.code import KEY, OPERATOR, RESULT, Code, Global, Kind, origin
from venture_lite.trace.table import MAKER_EDGE, RANDOM_EDGE
from venture_lite.trace.trace import Trace

MEMO_EDGE = 0
"""In a shape: the call leads to a memoized family."""

StartSource = int | Global
Start = tuple[StartSource, ...]
"""What in a row has the value at the start: slots, or one name that its text reads."""

Reads = frozenset[tuple[StartSource, bool]]
"""What a slot reads, each with whether it is the operator."""

Follow = Callable[[Any, int, Any], Any]
"""(weigher or mover, row, value at the start) -> the row's result, if it depends on that."""


@dataclass(frozen=True, slots=True)
class Dependents:
    """What depends on some slots of a row by the text alone."""

    # slots in order, with what among the start and these each reads
    slots: tuple[tuple[int, Reads], ...]
    # those whose edge and evidence decide what happens
    applied: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class RowShape:
    """How a value is followed through a row of one kind."""

    weigh: Follow
    move: Follow
    # slots that apply exchangeable procedures
    made: tuple[int, ...]
    # slots that call memoized procedures
    calls: tuple[int, ...]
    # number of choices that absorb
    terms: int
    # whether the row's result depends on the value
    goes_on: bool


def reach_of(code: Code, start: Start) -> Dependents:
    moved, slots, applied = set(start), [], []
    own = [source for source in start if isinstance(source, int)]
    for slot in sorted({*own, *code.steps}):
        read = [(source, role) for source in moved for reader, role in _readers(code, source) if reader == slot]
        kind = code.slots[slot].kind
        if read:
            fit = kind in (Kind.RANDOM, Kind.DETERMINISTIC, Kind.CALL) and slot not in start
            if not fit or any(role == KEY for _, role in read):
                raise Unplanned
            slots.append((slot, frozenset((source, role == OPERATOR) for source, role in read)))
            if kind is not Kind.DETERMINISTIC:
                applied.append(slot)
            if kind is not Kind.RANDOM:
                moved.add(slot)
        if slot in moved and code.env_readers.get(slot):
            raise Unplanned
    return Dependents(tuple(slots), tuple(applied))


def _readers(code: Code, source: StartSource) -> list[tuple[int, int]]:
    """(slot, role) of what reads a source in a row."""
    if isinstance(source, Global):
        return [(slot, role) for reader, slot, role in source.readers if reader is code]
    return code.readers.get(source, [])


def written_shape(
    trace: Trace, code: Code, start: Start, reach: Dependents, kinds: dict[int, tuple[int, bool]]
) -> RowShape:
    """One shape of row, with its functions. Raises Unplanned."""
    texts = [_FollowText(trace, code, start, moving) for moving in (False, True)]
    for text in texts:
        for slot, reads in reach.slots:
            text.follow(slot, reads, *kinds.get(slot, (MEMO_EDGE, False)))
    weigh, move = (text.written() for text in texts)
    return RowShape(weigh, move, tuple(texts[0].made), tuple(texts[0].calls), texts[0].terms, texts[0].goes_on)


class _FollowText(BodyText):
    """Keeps what depends on the value in variables, and reads all else from the tables."""

    def __init__(self, trace: Trace, code: Code, start: Start, moving: bool) -> None:
        super().__init__(trace, code)
        self.moving = moving
        self.moved: set[StartSource] = set(start)
        origins = [origin(name) for name in start if isinstance(name, Global)]
        self._named = {trace.result_node(*place) for place in origins if place is not None}
        self.made: list[int] = []
        self.calls: list[int] = []
        self.terms = 0
        self.goes_on = False
        for slot in start:
            if isinstance(slot, int):
                self.lines.append(f"s{slot} = x")
                if moving:
                    self._store(slot)

    def known(self, site: int, row: Value) -> Value:
        """The variable in which a slot that moves is kept."""
        if row.__class__ is int:
            return self.operations.record("name", "x") if site << 32 | row in self._named else None
        return super().known(site, row) if site - self.code.first_site in self.moved else None

    def follow(self, slot: int, reads: Reads, kind: int, observed: bool) -> None:
        """One slot that may depend on the value."""
        roles = {is_operator for source, is_operator in reads if source in self.moved}
        if not roles:
            return
        other = True in roles
        item = self.code.slots[slot]
        if item.kind is Kind.DETERMINISTIC:
            assert isinstance(item.record, Deterministic)
            arguments_read = ", ".join(map(self.read, item.arguments))
            self.lines.append(f"s{slot} = {self.bound('f', slot, item.record.scalar)}({arguments_read})")
            self.moved.add(slot)
            if self.moving:
                self._store(slot)
        elif kind in (RANDOM_EDGE, MAKER_EDGE):
            # an operator that moves makes a free choice anew
            if other and not observed:
                raise Unplanned
            self._term(slot, item.record if item.kind is Kind.RANDOM else None, kind, observed)
        elif kind == MEMO_EDGE and not other and not observed:
            self.calls.append(slot)
            self.moved.add(slot)
            assert item.operator is not None
            called = f"{self.code.first_site + slot}, r0, {self.read(item.operator)}{self.following(item.arguments)}"
            self.lines.append(f"s{slot} = p.call({called})")
        else:
            raise Unplanned

    def _term(self, slot: int, record: Any, kind: int, observed: bool) -> None:
        item, site = self.code.slots[slot], self.code.first_site + slot
        self.terms += 1
        operator = self.bound("k", slot, record) if record is not None else self.read(item.operator)  # type: ignore[arg-type]
        value = self.value(self.operations.load(self.trace.column(site), self.own))
        arguments = self.following(item.arguments)
        if kind == MAKER_EDGE:
            self.made.append(slot)
            self.lines.append(f"p.made({site << 32} | r0, {operator}, {value}, {observed}{arguments})")
        elif not self.moving:
            self.lines.append(f"p.absorb({site << 32} | r0, {operator}, {value}, {observed}{arguments})")

    def _store(self, slot: int) -> None:
        column = self.trace.tables[self.code.index].columns[slot]
        self.lines.append(f"p.store({self.bound('w', slot, column)}, r0, s{slot})")

    def written(self) -> Follow:
        result = "None"
        read = {slot for slot, readers in self.code.readers.items() if any(role == RESULT for _, role in readers)}
        if self.moved & (read | {self.code.result_slot}):
            self.goes_on = True
            if self.code.kind != "directive":
                result = self.read(self.code.result)
            elif self.code.result_slot in self.moved:
                result = f"s{self.code.result_slot}"
        return self.function("p, r0, x", result)
