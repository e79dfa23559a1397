"""What Codes compute, as Python closures over lists: evaluation without a trace.

Each Code becomes a list of steps, each slot a function of a frame, which is a list with a cell for each slot and the
frame around it at its end. Where choices take their values is for a subclass to say. Whatever is not plain (a maker, a
wrong count of arguments) raises NotPlain; other errors come as they are, without a place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.program.code import Code, Constant, Global, GlobalRef, Kind, Ref, Slot, SlotRef, named
from venture_lite.program.selects import truth
from venture_lite.values import key_of

Frame = list[Any]
Read = Callable[[Frame], Any]


class NotPlain(Exception):
    """What has to be evaluated on a trace."""


class PlainClosure:
    """A lambda and the frame in which it was made."""

    __slots__ = ("body", "frame")

    def __init__(self, body: Code, frame: Frame) -> None:
        self.body = body
        self.frame = frame

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlainClosure) and self.body is other.body and self.frame is other.frame

    def __hash__(self) -> int:
        return hash((id(self.body), id(self.frame)))


class PlainMemo:
    """A memoized procedure with the values that it has."""

    __slots__ = ("lasting", "procedure", "values")

    def __init__(self, procedure: PlainClosure, lasting: bool) -> None:
        self.procedure = procedure
        # whether it was made before any choice, so that its values are the same whatever is chosen
        self.lasting = lasting
        self.values: dict[Hashable, Any] = {}


class PlainBody:
    """One Code: what its steps do, and what it gives."""

    __slots__ = ("result", "size", "steps")

    def __init__(self, size: int) -> None:
        self.size = size
        self.steps: list[tuple[int, Read]] = []
        self.result: Read


class PlainEvaluation:
    """The closures of one program. Mutable: bodies are made when they are first called."""

    def __init__(self) -> None:
        self._bodies: dict[Code, PlainBody] = {}
        # what names stand for, in cells of one
        self.cells: dict[Global, list[Any]] = {}
        # memoized procedures that were made before any choice
        self.lasting: list[PlainMemo] = []
        # whether what is evaluated may make choices
        self.may_choose = False

    def choose(self, record: Random, values: tuple[Any, ...]) -> Any:
        """The value of a random choice. Raises NotPlain."""
        raise NotPlain

    def run(self, body: PlainBody, around: Frame, arguments: tuple[Any, ...]) -> Any:
        frame: Frame = [None] * body.size
        frame[: len(arguments)] = arguments
        frame[-1] = around
        for index, step in body.steps:
            frame[index] = step(frame)
        return body.result(frame)

    # ----------------------------------------------------------------------------------------------- references

    def body(self, code: Code) -> PlainBody:
        found = self._bodies.get(code)
        if found is None:
            found = PlainBody(len(code.slots) + 1)
            for index in code.steps:
                found.steps.append((index, self._step(code, code.slots[index])))
            found.result = self._ref(code, code.result)
            self._bodies[code] = found
        return found

    def _ref(self, code: Code, ref: Ref) -> Read:
        match ref:
            case Constant(value=value):
                return lambda frame: value
            case GlobalRef(target=target):
                return self._global(named(target))
            case SlotRef(depth=depth, slot=index):
                owner = code.ancestor(depth)
                return _climbing(depth, self._slot(owner, index, owner.slots[index]))

    def _slot(self, code: Code, index: int, slot: Slot) -> Read:
        if slot.stored:
            return lambda frame: frame[index]
        if slot.kind is Kind.LAMBDA:
            return self._step(code, slot)
        assert isinstance(slot.record, Deterministic)
        return self._call_of(slot.record.scalar, [self._ref(code, argument) for argument in slot.arguments])

    def _global(self, target: Global) -> Read:
        cell = self.cells.get(target)
        if cell is None:
            if target.code is None:
                raise NotPlain
            may_choose, self.may_choose = self.may_choose, False
            cell = [self.run(self.body(target.code), [], ())]
            self.cells[target], self.may_choose = cell, may_choose
        return lambda frame: cell[0]

    def _call_of(self, function: Callable[..., Any], arguments: list[Read]) -> Read:
        match arguments:
            case [one]:
                return lambda frame: function(one(frame))
            case [one, two]:
                return lambda frame: function(one(frame), two(frame))
            case [one, two, three]:
                return lambda frame: function(one(frame), two(frame), three(frame))
        return lambda frame: function(*[argument(frame) for argument in arguments])

    # ---------------------------------------------------------------------------------------------------- steps

    def _step(self, code: Code, slot: Slot) -> Read:
        arguments = [self._ref(code, argument) for argument in slot.arguments]
        match slot.kind:
            case Kind.DETERMINISTIC:
                assert isinstance(slot.record, Deterministic)
                return self._call_of(slot.record.scalar, arguments)
            case Kind.LAMBDA:
                assert slot.body is not None
                inner = slot.body
                return lambda frame: PlainClosure(inner, frame)
            case Kind.RANDOM:
                assert isinstance(slot.record, Random)
                return self._random(slot.record, arguments)
            case Kind.IF:
                assert slot.operator is not None
                return self._if(self._ref(code, slot.operator), slot.branches)
            case Kind.CALL:
                assert slot.operator is not None
                operator = self._ref(code, slot.operator)
                apply = self._apply
                return lambda frame: apply(operator(frame), tuple([argument(frame) for argument in arguments]))
            case Kind.MEM:
                assert slot.operator is not None
                operator = self._ref(code, slot.operator)
                memoized = self._memoized
                return lambda frame: memoized(operator(frame))
        raise NotPlain

    def _random(self, record: Random, arguments: list[Read]) -> Read:
        choose = self.choose
        return lambda frame: choose(record, tuple([argument(frame) for argument in arguments]))

    def _if(self, predicate: Read, branches: tuple[Code, ...]) -> Read:
        one, other = (self.body(branch) for branch in branches)
        run = self.run
        return lambda frame: run(one if truth(predicate(frame)) else other, frame, ())

    def _memoized(self, procedure: Any) -> PlainMemo:
        if not isinstance(procedure, PlainClosure):
            raise NotPlain
        made = PlainMemo(procedure, not self.may_choose)
        if made.lasting:
            self.lasting.append(made)
        return made

    def _apply(self, operator: Any, values: tuple[Any, ...]) -> Any:
        if operator.__class__ is PlainClosure:
            body = operator.body
            if len(values) != body.arity:
                raise NotPlain
            return self.run(self.body(body), operator.frame, values)
        if operator.__class__ is PlainMemo:
            return self._apply_memoized(operator, values)
        if isinstance(operator, Random):
            return self.choose(operator, check_arguments(operator, values))
        if isinstance(operator, Deterministic):
            return operator.scalar(*check_arguments(operator, values))
        raise NotPlain

    def _apply_memoized(self, memo: PlainMemo, values: tuple[Any, ...]) -> Any:
        key = tuple(map(key_of, values))
        if key not in memo.values:
            may_choose = self.may_choose
            # what was made before any choice makes none now
            self.may_choose = may_choose and not memo.lasting
            memo.values[key] = self._apply(memo.procedure, values)
            self.may_choose = may_choose
        return memo.values[key]


def _climbing(depth: int, read: Read) -> Read:
    """A reader of a frame that lies so many around the one at hand."""
    if depth == 0:
        return read
    if depth == 1:
        return lambda frame: read(frame[-1])

    def climb(frame: Frame) -> Any:
        for _ in range(depth):
            frame = frame[-1]
        return read(frame)

    return climb
