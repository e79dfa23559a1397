"""`Code`: what the analysis makes of one body of program text, once, before anything runs.

A body is a directive, a `lambda` or a branch of an `if`. Its *slots* are numbered in evaluation order; each evaluation
of the body is one row of the Code's table in the trace, and a node of the probabilistic execution trace is (Code, slot,
row). What a slot reads is a `Ref`, known before anything runs. A deterministic slot is *fused*: never stored, computed
from its row when something reads it, unless code of another body reads it (`Slot.stored`).

A *site* is a global number for (Code, slot); a node is packed into one integer `site << 32 | row`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from venture_lite.errors import CallSite, InternalError, Span
from venture_lite.procedures.pullbacks import LOCALLY_CONSTANT
from venture_lite.procedures.record import Deterministic, Maker, Random


class Kind(enum.IntEnum):
    """What a slot does."""

    ARGUMENT = 0  # the row came with it
    DETERMINISTIC = 1  # a primitive function of its arguments
    LAMBDA = 2  # a closure over the row
    RANDOM = 3  # a random choice of a distribution known from the text
    CALL = 4  # an application whose operator is a value
    IF = 5  # a choice between two inner Codes
    MEM = 6  # a memo table around a procedure
    MAKER = 7  # an exchangeable procedure with its statistics

    @property
    def may_draw(self) -> bool:
        """Whether what the slot holds may be a random choice, or what makes them."""
        return self.name in ("RANDOM", "CALL", "MAKER")

    @property
    def may_choose(self) -> bool:
        """Whether the slot may make a random choice, or lead to one."""
        return self.name in ("RANDOM", "CALL", "IF")


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any


@dataclass(frozen=True, slots=True)
class SlotRef:
    """A slot of this row (`depth` 0) or of the row `depth` environments up."""

    depth: int
    slot: int


@dataclass(slots=True, eq=False)
class Global:
    """A name that an `assume` binds. `code` and `row` are set when its directive is loaded."""

    name: str
    # order of definition: a body sees the globals that existed when it was written
    order: int
    span: Span | None = None
    code: Code | None = None
    row: int = -1
    # the lambda's text, where the value is one and can be inlined
    lambda_form: Any = None
    # (code, slot, role) of every slot that reads it
    readers: list[tuple[Code, int, int]] = field(default_factory=list)
    # whether text named it before it was bound; then `hint` says what may have been meant
    awaited: bool = False
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class GlobalRef:
    target: Global


Ref = Constant | SlotRef | GlobalRef


def named(target: Global) -> Global:
    """The name that a name for a name stands for; itself where it is none."""
    while target.code is not None and isinstance(target.code.result, GlobalRef):
        target = target.code.result.target
    return target


def origin(target: Global) -> tuple[Code, int] | None:
    """The row that computes what a name stands for; None for a name that is not bound."""
    meant = named(target)
    return None if meant.code is None else (meant.code, meant.row)


@dataclass(frozen=True, slots=True)
class Region:
    """A `scope_include` around a slot: the scope's name and where the block's key is found."""

    scope: Any
    block: Ref
    span: Span | None
    # whether the text alone shows that the key depends on no random choice
    fixed: bool = True


# Roles: what a change of the value read means to the reader. Arguments of a CALL are ARGUMENT_0 + position.
RESULT = -3  # the row's result: its users change
KEY = -2  # a block key: must not change
OPERATOR = -1  # operator or predicate: structure may change
ARGUMENT_0 = 0


@dataclass(slots=True)
class Slot:
    kind: Kind
    span: Span | None = None
    # DETERMINISTIC, RANDOM, MAKER: the procedure
    record: Deterministic | Random | Maker | None = None
    # CALL: the procedure; IF: the predicate; MEM: the procedure
    operator: Ref | None = None
    arguments: tuple[Ref, ...] = ()
    # IF: consequent and alternative
    branches: tuple[Code, ...] = ()
    # LAMBDA
    body: Code | None = None
    # LAMBDA: its text, and the lexical scope that the text stands in, for queries, which analyse it anew
    text: Any = None
    # enclosing scope_includes of this body, outermost first
    regions: tuple[Region, ...] = ()
    # the calls that were inlined around it, innermost first, for messages
    inlined: tuple[CallSite, ...] = ()
    stored: bool = False

    @property
    def refs(self) -> tuple[Ref, ...]:
        """What it is applied to; before that, where it is a value, what is applied."""
        return self.arguments if self.operator is None else (self.operator, *self.arguments)


@dataclass(slots=True, eq=False, repr=False)
class Code:
    """One analysed body; mutable only while the analysis builds it."""

    # 'directive', 'lambda' or 'branch'
    kind: str
    name: str
    parent: Code | None
    arity: int
    span: Span | None
    slots: list[Slot] = field(default_factory=list)
    result: Ref = Constant(None)
    # the IF slot of the parent, for a branch
    if_slot: int = -1
    inner: list[Code] = field(default_factory=list)
    # for a directive: every global that its text refers to
    uses: frozenset[Global] = frozenset()
    # all below is set by `finish`
    index: int = -1
    first_site: int = -1
    # how many sites are its own, of which the first ones are its slots'
    room: int = 0
    # the result's slot, where the result is a stored slot of this row, else -1
    result_slot: int = -1
    # stored slots that are evaluated, in order (arguments come with the row)
    steps: list[int] = field(default_factory=list)
    # slot -> [(slot of this Code or -1 for the result, role)]
    readers: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    # slot -> [(path of inner Codes down to the reader, slot, role)]
    env_readers: dict[int, list[tuple[tuple[Code, ...], int, int]]] = field(default_factory=dict)
    # whether rows of this Code must be found from the row of their environment
    rooted: bool = False

    def add(self, slot: Slot) -> SlotRef:
        self.slots.append(slot)
        return SlotRef(0, len(self.slots) - 1)

    def ancestor(self, depth: int) -> Code:
        code: Code = self
        for _ in range(depth):
            if code.parent is None:
                raise InternalError(f"no environment {depth} levels above {self.name}")
            code = code.parent
        return code

    def __repr__(self) -> str:
        return f"<Code {self.index} {self.kind} {self.name}>"


VACANT = Code("vacant", "vacant", None, 0, None)
"""What stands in `Program.codes` and `Program.site_code` at the numbers of Codes that were let go of."""


Extent = tuple[int, int, tuple[int, ...]]
"""How many numbers Codes and sites have had, and which of the Codes' are free."""


class Program:
    """All Codes of a trace, with their sites and who reads what.

    A Code that is let go of leaves its numbers to Codes without lasting rows: those of directives grow for ever, so
    that the order of blocks is the order of the directives.
    """

    def __init__(self) -> None:
        self.codes: list[Code] = []
        self.site_code: list[Code] = []
        self.site_slot: list[int] = []
        # grows whenever a Code comes or goes, so that whatever was derived from readers can be derived again
        self.version = 0
        # numbers of Codes that went, the last ones to be used again first; and room, a power of two -> first sites of
        # runs with that room
        self._vacant: list[int] = []
        self._vacant_sites: dict[int, list[int]] = {}

    def finish(self, code: Code, passing: bool = False) -> None:
        """Number a Code whose inner Codes are finished, and enter it with those whose slots it reads; one that is
        `passing`, of which no row lasts, has the numbers of one that went."""
        self._number(code, passing)
        match code.result:
            case SlotRef(depth=0, slot=slot) if code.slots[slot].stored:
                code.result_slot = slot
        code.steps = [i for i, slot in enumerate(code.slots) if slot.stored and slot.kind is not Kind.ARGUMENT]
        for index, item in enumerate(code.slots):
            if item.stored:
                self.enter_readers(code, index)
        self._enter(code, -1, RESULT, code.result)
        self.version += 1

    def _number(self, code: Code, passing: bool) -> None:
        if passing and self._vacant:
            code.index = self._vacant.pop()
            self.codes[code.index] = code
        else:
            code.index = len(self.codes)
            self.codes.append(code)
        count = len(code.slots)
        room = 1 << max(count - 1, 0).bit_length() if passing else count
        if passing and self._vacant_sites.get(room):
            code.first_site = self._vacant_sites[room].pop()
        else:
            code.first_site = len(self.site_code)
            self.site_code.extend([VACANT] * room)
            self.site_slot.extend([-1] * room)
        code.room = room
        for slot in range(count):
            self.site_code[code.first_site + slot] = code
            self.site_slot[code.first_site + slot] = slot

    def let_go(self, tree: list[Code]) -> None:
        """Take out a directive's Code with all inside it, the outer one first. None of them has rows, and nothing
        outside the tree reads them."""
        gone = set(tree)
        for target in tree[0].uses:
            target.readers[:] = [reader for reader in target.readers if reader[0] not in gone]
        self._vacate(tree)

    def _vacate(self, gone: list[Code]) -> None:
        for code in gone:
            self.codes[code.index] = VACANT
            for site in range(code.first_site, code.first_site + len(code.slots)):
                self.site_code[site] = VACANT
            if code.room:
                # of a run that is longer than a power of two the rest stays empty
                self._vacant_sites.setdefault(1 << code.room.bit_length() - 1, []).append(code.first_site)
        self._vacant.extend(sorted((code.index for code in gone), reverse=True))
        self.version += bool(gone)

    def extent(self) -> Extent:
        """The numbers that are in use now."""
        return len(self.codes), len(self.site_code), tuple(self._vacant)

    def truncate(self, extent: Extent) -> list[Code]:
        """Take out the Codes that got a number since `extent` was given; they are given back, the latest first."""
        codes, sites, vacant = extent
        again = (self.codes[index] for index in vacant)
        made = dict.fromkeys((*self.codes[codes:], *self.site_code[sites:], *again))
        gone = sorted((code for code in made if code is not VACANT), key=lambda code: -code.index)
        for target in {target for code in gone for target in code.uses}:
            target.readers[:] = [reader for reader in target.readers if reader[0] not in made]
        self._vacate(gone)
        del self.codes[codes:], self.site_code[sites:], self.site_slot[sites:]
        self._vacant[:] = [index for index in self._vacant if index < codes]
        for free in self._vacant_sites.values():
            free[:] = [site for site in free if site < sites]
        return gone

    def leave_readers(self, code: Code, index: int) -> None:
        """A stored slot will read something else: it is no reader of what it reads now."""
        for ref in code.slots[index].refs:
            for source in sources(code, ref):
                match source:
                    case GlobalRef(target=target):
                        target.readers[:] = [reader for reader in target.readers if reader[:2] != (code, index)]
                    case SlotRef(depth=0, slot=read):
                        code.readers[read] = [reader for reader in code.readers.get(read, []) if reader[0] != index]
                    case SlotRef(depth=depth, slot=read):
                        known = code.ancestor(depth).env_readers
                        known[read] = [
                            reader for reader in known.get(read, []) if (reader[0][-1], reader[1]) != (code, index)
                        ]
        self.version += 1

    def enter_readers(self, code: Code, index: int) -> None:
        """Enter a stored slot among the readers of what it reads."""
        slot = code.slots[index]
        if slot.operator is not None:
            self._enter(code, index, OPERATOR, slot.operator)
        for position, ref in enumerate(slot.arguments):
            self._enter(code, index, ARGUMENT_0 + position, ref)
        for region in slot.regions:
            self._enter(code, index, KEY, region.block)

    def _enter(self, code: Code, slot: int, role: int, ref: Ref) -> None:
        for source in sources(code, ref):
            match source:
                case GlobalRef(target=target):
                    target.readers.append((code, slot, role))
                case SlotRef(depth=0, slot=read):
                    if not (role == RESULT and slot == -1 and read == code.result_slot):
                        code.readers.setdefault(read, []).append((slot, role))
                case SlotRef(depth=depth, slot=read):
                    path = [code]
                    for _ in range(depth - 1):
                        path.append(path[-1].parent)  # type: ignore[arg-type]
                    for inner in path:
                        inner.rooted = True
                    ancestor = code.ancestor(depth)
                    ancestor.env_readers.setdefault(read, []).append((tuple(reversed(path)), slot, role))


def read_in_role(code: Code, slot: int, role: int) -> tuple[Ref, ...]:
    """What a slot, or the result, reads in a role."""
    if role == RESULT:
        return (code.result,)
    item = code.slots[slot]
    if role == KEY:
        return tuple(region.block for region in item.regions)
    if role == OPERATOR:
        return () if item.operator is None else (item.operator,)
    return item.arguments[role : role + 1]


def read_by_value(code: Code, slot: int, role: int) -> frozenset[Ref]:
    """The `sources` with whose numbers what a slot, or the result, reads in a role may change its own. Of what is asked
    for its type or its size the numbers do not matter, unless the size comes of them, as that of `(unique xs)` does."""
    by_value = slot < 0 or not is_constant_in_numbers(code.slots[slot].record)
    found: set[Ref] = set()
    seen: set[tuple[int, Ref, bool]] = set()
    todo: list[tuple[int, Ref, bool]] = [(0, ref, by_value) for ref in read_in_role(code, slot, role)]
    while todo:
        base, ref, by_value = todo.pop()
        if isinstance(ref, Constant) or (base, ref, by_value) in seen:
            continue
        seen.add((base, ref, by_value))
        if isinstance(ref, GlobalRef):
            found |= {ref} if by_value else set()
            continue
        level = base + ref.depth
        item = code.ancestor(level).slots[ref.slot]
        if item.stored:
            found |= {SlotRef(level, ref.slot)} if by_value else set()
        else:
            jumps = isinstance(item.record, Deterministic) and item.record.pullback is None
            passes = jumps or (by_value and not is_constant_in_numbers(item.record))
            todo.extend((level, argument, passes) for argument in item.refs)
    return frozenset(found)


def is_constant_in_numbers(record: Any) -> bool:
    """Whether a procedure gives the same for other numbers of the same types in lists of the same sizes."""
    return isinstance(record, Deterministic) and record.pullback is LOCALLY_CONSTANT


def sources(code: Code, ref: Ref) -> list[Ref]:
    """The stored slots and globals that `ref` reads, through fused slots, each once; depths are as seen from `code`."""
    found: dict[Ref, None] = {}
    seen: set[tuple[int, int]] = set()
    todo: list[tuple[int, Ref]] = [(0, ref)]
    while todo:
        base, item = todo.pop()
        match item:
            case GlobalRef():
                found[item] = None
            case SlotRef(depth=depth, slot=index):
                level = base + depth
                if (level, index) in seen:
                    continue
                seen.add((level, index))
                slot = code.ancestor(level).slots[index]
                if slot.stored:
                    found[SlotRef(level, index)] = None
                else:
                    todo.extend((level, argument) for argument in slot.refs)
    return list(found)
