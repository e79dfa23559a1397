"""A procedure of the user's, applied to values in the state at hand, choice by choice; nothing of it stays.

Whoever applies it gives every random choice on the way its value. Which of them make up the procedure's value is known
before they are made: a choice does if it is the result of the body that makes it, or an entry of the `list` or `vector`
that is, and that body's result in turn is its caller's, up to the procedure itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from venture_lite.inference.lambdas import closed
from venture_lite.inference.program import InferenceProgram
from venture_lite.interpreter.handler import Handler
from venture_lite.language.syntax import Expression, Form, Name, Parameter
from venture_lite.program.code import Code, Kind, SlotRef
from venture_lite.program.lift import ARGUMENT_PREFIX, Lifter, shape
from venture_lite.program.parameters import constant_index
from venture_lite.trace.trace import Trace

Choose = Callable[[int, Any, tuple[Any, ...]], Any]
"""(node, distribution, arguments) -> the value of a random choice."""

WHOLE: tuple[int, ...] = (-1,)
"""The positions of a choice that is the whole value."""


class Chosen(Handler):
    """Every fresh choice takes the value that a function gives it."""

    def __init__(self, trace: Trace, choose: Choose) -> None:
        super().__init__(trace)
        self._choose = choose

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        return self._choose(node, operator, arguments)


class ReplayedProcedure:
    """An inference expression that denotes a procedure, as one model evaluates it."""

    def __init__(self, program: InferenceProgram, item: Expression) -> None:
        self.model = program.model
        self.span = item.span
        passes = program.passes
        names = {name: value for name, value in program.names.items() if name not in passes}
        lifted = Lifter(tuple(passes), program.parameters, lift_literals=False).lift(closed(item, names))
        self._expression = lifted.expression
        self._fixed = tuple(
            constant_index(argument.index, program.parameters, passes)
            for argument in lifted.arguments
            if isinstance(argument, Parameter)
        )
        # by number of values
        self._code = cache(self._code_of)
        # what of a body's result its slots are
        self._result_of = cache(_results)
        # how many values it takes, where the text says so
        self.count: int | None = None
        match self._expression:
            case Form(items=(Name(name="lambda"), Form(items=variables), *_)):
                self.count = len(variables)
                # what is wrong with the text is said before anything moves
                self._code(self.count)

    def _code_of(self, count: int) -> Code:
        """The Code of the procedure's call with `count` values; one for all programs that hold this very text."""
        first, analyzer = len(self._fixed), self.model.trace.analyzer
        values = (Name(f"{ARGUMENT_PREFIX}{first + i}", self.span) for i in range(count))
        call = Form((self._expression, *values), self.span)
        key = ("procedure", shape(call), self.span, analyzer.meaning(call))
        found = self.model.codes.get(key)
        if found is None:
            found = analyzer.directive("procedure", call, first + count, stored_result=False)
            self.model.codes[key] = found
            self.model.trace.grow_with_program()
        return found

    def __call__(self, values: tuple[Any, ...], choose: Choose) -> Any:
        """The procedure's value; the trace is left as it was, in the middle of a transition too."""
        model, journal = self.model, self.model.trace.journal
        code, restructured = self._code(len(values)), journal.restructured
        try:
            with model.aside(), model.machine.handled_by(Chosen(model.trace, choose)):
                return model.trace.result(code, model.apply(code, (*self._fixed, *values)))
        finally:
            # rows that came and went again are no reason to prepare transitions anew
            journal.restructured = restructured

    def positions(self, node: int) -> tuple[int, ...]:
        """Where in the procedure's value a choice stands: WHOLE, positions in a list, or nowhere."""
        trace = self.model.trace
        code, slot, row = trace.decode(node)
        found = WHOLE
        while True:
            here = self._result_of(code).get(slot, ())
            if not here or (found is not WHOLE and here is not WHOLE):
                return ()
            found = here if found is WHOLE else found
            if code.kind == "directive":
                return found
            caller = trace.caller(code, row)
            assert caller is not None
            code, slot, row = trace.decode(caller)


def _results(code: Code) -> dict[int, tuple[int, ...]]:
    match code.result:
        case SlotRef(depth=0, slot=index):
            slot = code.slots[index]
            if slot.kind is not Kind.DETERMINISTIC or slot.record is None or slot.record.name not in ("list", "vector"):
                return {index: WHOLE}
            found: dict[int, tuple[int, ...]] = {}
            for position, ref in enumerate(slot.arguments):
                if isinstance(ref, SlotRef) and ref.depth == 0:
                    found[ref.slot] = (*found.get(ref.slot, ()), position)
            return found
    return {}
