"""Previews: what a memoized procedure would give for a new key, without making its rows.

`gibbs` weighs a component that does not exist yet against those that do. Where the body only draws choices, makes
exchangeable procedures and calls memoized procedures, one generated function gives the result. What it drew is kept,
so that the component, if it is chosen, is made of the same values. Any other body is left to the interpreter.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from venture_lite.errors import InternalError, VentureError
from venture_lite.interpreter.evidence import NO_EVIDENCE
from venture_lite.interpreter.handler import KnownChoices
from venture_lite.interpreter.readers import RowText
from venture_lite.interpreter.references import Operations, References, Value
from venture_lite.procedures.checks import check_arguments, completed
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.procedures.straight_line import Node
from venture_lite.program.code import Code, Kind, Ref
from venture_lite.trace.bindings import Derived
from venture_lite.trace.keys import memo_key
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.trace.table import NONE

if TYPE_CHECKING:
    from venture_lite.interpreter.choices import NamedChoices
    from venture_lite.trace.trace import Trace

PreviewFamily = tuple[Memo, Hashable]
"""Which memoized family: whose, and its key."""

Drawn = dict[tuple[PreviewFamily, int], Any]
"""What choices of families that do not exist were drawn as, by family and slot."""

Added = list[tuple[Exchangeable, Any]]
"""Procedures whose statistics were changed, each with how that is taken back."""

Key = TypeVar("Key")
Made = TypeVar("Made")

MOST_KEPT = 1000
"""Exchangeable procedures without applications that are kept, to stand for those of new components."""


class Unplanned(Exception):
    """The transition is left to the interpreter."""


class Planned(Derived[Key, Made | None]):
    """What is made once for each key, and None where it cannot be planned."""

    def __missing__(self, key: Key) -> Made | None:
        try:
            return super().__missing__(key)
        except Unplanned:
            self[key] = None
            return None

    def found(self, key: Key) -> Made:
        """Raises Unplanned."""
        found = self[key]
        if found is None:
            raise Unplanned
        return found


@dataclass(frozen=True, slots=True)
class Drawable:
    """Which new choices may be drawn, because they can neither belong to the block that moves nor change how many
    blocks there are to choose from: none, or those without a tag of the scope."""

    none: bool
    scope: Any
    # the trace's scopes of choices by name
    named: Mapping[Any, NamedChoices] = field(compare=False)

    def refuse(self, code: Code, slot: int) -> None:
        """Raises Unplanned for a choice that may not."""
        if self.none or any(region.scope == self.scope for region in code.slots[slot].regions):
            raise Unplanned
        named = self.named.get(self.scope)
        if named is not None and named.may_hold(code, slot):
            raise Unplanned


class Previews:
    """The generated functions of one trace, and the procedures that they made."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        # index of a Code -> (preview, family, row of the environment, arguments ...) -> result of the body
        self.functions: Planned[int, Callable[..., Any]] = Planned(
            lambda index: _PreviewText(trace, trace.program.codes[index]).preview()
        )
        self._makers: dict[Any, tuple[Any, Exchangeable]] = {}
        trace.derived.append(self.functions)

    def apart(self) -> Previews:
        """With exchangeable procedures of its own, which may keep what is added to them."""
        found = copy.copy(self)
        found._makers = {}
        return found

    def maker(self, record: Maker, number: int, arguments: tuple[Any, ...]) -> Exchangeable:
        """A procedure without applications, the same one for equal arguments: what is added to it must be taken back.

        The families of one candidate have their own, by number.
        """
        key = (record, number, *(x if isinstance(x, (int, float)) else id(x) for x in arguments))
        found = self._makers.get(key)
        if found is None:
            if len(self._makers) >= MOST_KEPT:
                self._makers.clear()
            try:
                made = Exchangeable(record, record.make(*check_arguments(record, arguments)), NONE)
            except VentureError:
                raise Unplanned from None
            # the arguments are held, so that no other value can take over the identity of one
            found = self._makers[key] = (arguments, made)
        return found[1]


class Preview:
    """The new families of one candidate: each is looked at once."""

    def __init__(self, previews: Previews, draws: Drawable, added: Added | None = None) -> None:
        self._previews = previews
        self._trace = previews.trace
        self._draws = draws
        # where draws of exchangeable procedures are entered, for the caller to restore; without it none are made
        self._added = added
        self._results: dict[PreviewFamily, Any] = {}
        self._made = 0
        # (family, slot) -> value drawn
        self.drawn: dict[tuple[PreviewFamily, int], Any] = {}
        # exchangeable procedures that were drawn from
        self.applied: set[Any] = set()

    def result(self, memo: Memo, key: Hashable, values: tuple[Any, ...]) -> Any:
        """What a memoized procedure gives for a key that it does not have."""
        closure = memo.procedure
        if closure.code.arity != len(values):
            raise Unplanned
        family = (memo, key)
        if family not in self._results:
            # while it is being looked at it has no result, so that one which needs itself is not looked at for ever
            self._results[family] = Unplanned
            self._results[family] = self._previews.functions.found(closure.code.index)(
                self, family, closure.row, *values
            )
        found = self._results[family]
        if found is Unplanned:
            raise Unplanned
        return found

    def call(self, family: PreviewFamily, slot: int, operator: Any, *values: Any) -> Any:
        """A call in the text of a new family."""
        if isinstance(operator, Exchangeable) and not values:
            return self._apply(family, slot, operator)
        return self.found(operator, *values)

    def _apply(self, family: PreviewFamily, slot: int, operator: Exchangeable) -> Any:
        """A draw of an exchangeable procedure, which the next ones are drawn after."""
        if self._added is None:
            raise Unplanned
        self._draws.refuse(family[0].procedure.code, slot)
        try:
            value = operator.state.simulate(self._trace.rng)
        except VentureError:
            raise Unplanned from None
        self._added.append((operator, operator.state.add(value)))
        self.drawn[family, slot] = value
        self.applied.add(operator)
        return value

    def found(self, operator: Any, *values: Any) -> Any:
        """What a memoized procedure gives, whether it has the key or not."""
        if not isinstance(operator, Memo):
            raise Unplanned
        key = memo_key(values)
        row = operator.entries.get(key)
        if row is None:
            return self.result(operator, key, values)
        return self._trace.result(operator.procedure.code, row)

    def draw(self, family: PreviewFamily, slot: int, record: Random, *values: Any) -> Any:
        self._draws.refuse(family[0].procedure.code, slot)
        values = completed(record, values)
        try:
            if not self._trace.valid[record](*values):
                raise Unplanned
            value = record.simulate(self._trace.rng, *values)
        except (TypeError, VentureError):
            raise Unplanned from None
        self.drawn[family, slot] = value
        return value

    def make(self, record: Maker, *values: Any) -> Any:
        self._made += 1
        return self._previews.maker(record, self._made, values)


def drawn_for(preview: Preview | None) -> Drawn | None:
    """What was drawn for families that do not exist, where there are any."""
    return None if preview is None else preview.drawn


def recalled(trace: Trace, values: Mapping[tuple[PreviewFamily, int], Any]) -> KnownChoices:
    """The handler by which choices in the text of memoized families take the values that are given by family and
    slot."""

    def value_of(node: int) -> Any:
        code, slot, row = trace.decode(node)
        memos = trace.tables[code.index].memos
        memo = None if memos is None else memos[row]
        return NO_EVIDENCE if memo is None else values.get(((memo, trace.memo_key(code, row)), slot), NO_EVIDENCE)

    return KnownChoices(trace, value_of)


class BodyText(RowText):
    """Prints a row of a body, some of whose slots stand in variables."""

    def __init__(self, trace: Trace, code: Code) -> None:
        super().__init__(Operations())
        self.trace, self.code = trace, code
        self.own = self.operations.record("row", "r0")
        self._references = References(trace, self.operations, self.known)

    def known(self, site: int, row: Value) -> Value:
        """What a stored slot is read as; None where it is loaded."""
        return self.operations.record("name", f"s{site - self.code.first_site}") if row is self.own else None

    def read(self, ref: Ref) -> str:
        return self.value(self._references.read(self.code, self.own, ref))

    def following(self, refs: Iterable[Ref]) -> str:
        """What follows another argument of a call."""
        return "".join(f", {self.read(ref)}" for ref in refs)


class _PreviewText(BodyText):
    """Prints a body that keeps its slots in variables. The row of its environment, r1, exists, its own does not."""

    def __init__(self, trace: Trace, code: Code) -> None:
        super().__init__(trace, code)
        environment = trace.tables[code.index].environment
        if environment is not None:
            self.names[self.operations.environment(environment, self.own).place] = "r1"

    def text(self, node: Node) -> str:
        if node.operation == "row":
            raise Unplanned
        return super().text(node)

    def preview(self) -> Callable[..., Any]:
        for index in self.code.steps:
            self.lines.append(f"s{index} = {self._step(index)}")
        result = self.read(self.code.result)
        return self.function("p, f, r1" + "".join(f", s{index}" for index in range(self.code.arity)), result)

    def _step(self, index: int) -> str:
        slot = self.code.slots[index]
        arguments = self.following(slot.arguments)
        match slot.kind:
            case Kind.RANDOM:
                return f"p.draw(f, {index}, {self.bound('k', index, slot.record)}{arguments})"
            case Kind.MAKER:
                return f"p.make({self.bound('k', index, slot.record)}{arguments})"
            case Kind.CALL if slot.operator is not None:
                return f"p.call(f, {index}, {self.read(slot.operator)}{arguments})"
            case Kind.DETERMINISTIC if isinstance(slot.record, Deterministic):
                return f"{self.bound('k', index, slot.record.scalar)}({arguments[2:]})"
            case Kind.IF | Kind.MEM:
                raise Unplanned
        raise InternalError("a step of a body that is none")
