"""Memoized families that are constant: they make no random choice and read none.

Such a family is a table of numbers that was costly to fill. It stays when its last user goes, for the next call with
its key, until its procedure goes or MOST_KEPT others of the procedure were left after it. One that a rejected proposal
filled is filled once more, for good. What stays has no say in anything: no choice lies in it and no density depends on
it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from venture_lite.interpreter.addresses import procedures_in
from venture_lite.interpreter.sources import depends_on, nodes_read, reached
from venture_lite.program.code import Code, Kind, Ref
from venture_lite.trace.keys import memo_key
from venture_lite.trace.runtime import Memo
from venture_lite.trace.table import MAKER_EDGE, RANDOM_EDGE, ROW_MASK

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

MOST_KEPT = 100_000
"""Families without users that one memoized procedure keeps."""

MOST_FRESH = 1000
"""New families that are looked at when one proposal is taken back."""

MOST_MISSES = 32
"""A body of which so many more families were not constant than were is not looked at again for that."""

Family = tuple[Code, int]

MAKING = frozenset((Kind.RANDOM, Kind.MAKER, Kind.MEM))
"""Slots that are, or lead to, choices of the family's own."""


class Constants:
    """Which families of a trace stay without users. What is remembered here and in `Memo.unused` only makes things
    fast: the trace is the same without it."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        # memoized families made since the last commit that may be constant, as (procedure, row)
        self.fresh: list[tuple[Memo, int]] = []
        # of those that were taken back although they are: (procedure, key) -> arguments
        self.lost: dict[tuple[Memo, Hashable], tuple[Any, ...]] = {}
        # bodies -> how many more of their fresh families were not constant than were
        self._misses: dict[Code, int] = {}
        # procedures that have more families without users than they may keep
        self.crowded: dict[Memo, None] = {}

    def stays(self, code: Code, row: int) -> bool:
        """Whether a family that loses its last user stays."""
        table = self.trace.tables[code.index]
        memo = table.memo_of(row)
        if memo is None:
            return False
        constant = table.constant.get(row)
        if constant is None:
            constant = table.constant[row] = may_be_constant(code) and is_constant(self.trace, code, row)
        if constant and row not in memo.unused:
            memo.unused[row] = None
            if len(memo.unused) > MOST_KEPT:
                self.crowded[memo] = None
        return constant

    def made(self, memo: Memo, row: int) -> None:
        """A family is about to be filled."""
        code = memo.procedure.code
        misses = self._misses.get(code)
        if misses is None:
            misses = self._misses[code] = 0 if may_be_constant(code) else MOST_MISSES
        if misses < MOST_MISSES and len(self.fresh) < MOST_FRESH:
            self.fresh.append((memo, row))

    def keep_fresh(self) -> None:
        """Before a proposal is taken back: remember the constant families that were filled for it."""
        for memo, row in self.fresh:
            code = memo.procedure.code
            table = self.trace.tables[code.index]
            if not table.live[row] or table.memo_of(row) is not memo:
                # taken back before
                continue
            constant = is_constant(self.trace, code, row)
            self._misses[code] = max(0, self._misses[code] + (-1 if constant else 1))
            if constant:
                values = tuple(column.view[row] for column in table.columns[: code.arity] if column is not None)
                self.lost[memo, memo_key(values)] = values
        self.fresh.clear()

    def forget_fresh(self) -> None:
        """After an error or an interruption: what was begun is of no use."""
        self.fresh.clear()
        self.lost.clear()

    def is_alive(self, memo: Memo) -> bool:
        """Whether a memoized procedure is still where it was made."""
        code, _, row = self.trace.decode(memo.node)
        return bool(self.trace.tables[code.index].live[row]) and self.trace.value(memo.node) is memo

    def surplus(self) -> list[Family]:
        """The families that crowded procedures have kept for longest, and may keep no longer."""
        found = []
        for memo in self.crowded:
            code = memo.procedure.code
            table = self.trace.tables[code.index]
            while len(memo.unused) > MOST_KEPT:
                row = next(iter(memo.unused))
                del memo.unused[row]
                # a row that is used again, or another family's by now, is only struck from the list
                if table.live[row] and table.memo_of(row) is memo and not self.trace.users.count(code, row):
                    found.append((code, row))
        self.crowded.clear()
        return found


def families_of_memo(memo: Memo) -> Iterator[Family]:
    """All families of a memoized procedure."""
    return ((memo.procedure.code, row) for _, row in memo.entries.items())


def may_be_constant(code: Code) -> bool:
    """False where the text alone shows that every family of a body makes choices, or what makes some."""
    return code.kind != "directive" and not any(code.slots[step].kind in MAKING for step in code.steps)


# ------------------------------------------------------------------------------------------------- the definition


def is_constant(trace: Trace, code: Code, row: int) -> bool:
    """Whether a memoized family, with all families that it calls, makes no choice and reads nothing that depends on
    one; what is computed from a key is fixed as long as the family lives.

    A key that holds a procedure does not count: the procedure may go while the key stays.
    """
    families: set[Family] = set()
    for family in reached([(code, row)], partial(_families_called, trace)):
        makes_choices = not {RANDOM_EDGE, MAKER_EDGE}.isdisjoint(_edges(trace, family))
        if makes_choices or not may_be_constant(family[0]) or _is_found_by_procedures(trace, family):
            return False
        families.add(family)

    def outside(found: Iterable[int]) -> list[int]:
        return [node for node in found if trace.decode(node)[::2] not in families]

    read = [node for family in families for node in nodes_read(trace, *family, _refs(family[0]))]
    return not any(
        _is_random(trace, node) for node in reached(outside(read), lambda at: outside(depends_on(trace, at)))
    )


def _edges(trace: Trace, family: Family) -> list[int]:
    return [edges.view[family[1]] for edges in trace.tables[family[0].index].edges.values()]


def _families_called(trace: Trace, family: Family) -> list[Family]:
    return [(trace.program.codes[edge >> 32], edge & ROW_MASK) for edge in _edges(trace, family) if edge >= 0]


def _is_found_by_procedures(trace: Trace, family: Family) -> bool:
    return trace.is_memoized(*family) and bool(procedures_in(trace.memo_key(*family)))


def _refs(code: Code) -> list[Ref | None]:
    """All that a body reads."""
    stored = [slot for slot in code.slots if slot.stored]
    read = [ref for slot in stored for ref in (slot.operator, *slot.arguments, *(key.block for key in slot.regions))]
    return [*read, code.result]


def _is_random(trace: Trace, node: int) -> bool:
    """Whether a node is a choice or a maker."""
    return trace.kind(node) is Kind.MAKER or trace.is_choice(*trace.decode(node))
