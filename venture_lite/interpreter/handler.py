"""What evaluation asks: which nodes wait, what value a choice takes.

The machine has one handler at a time, put in place by `with machine.handled_by(handler)`; whatever ends the block, the
one before is there again, so that nothing has to be reset. What a handler has no answer to, it may ask the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from venture_lite.errors import InternalError
from venture_lite.interpreter.application import simulate
from venture_lite.interpreter.evidence import NO_EVIDENCE
from venture_lite.procedures.record import Random
from venture_lite.trace.trace import Trace

if TYPE_CHECKING:
    from venture_lite.interpreter.machine import Machine


class Handler:
    """Draws fresh choices, and renews nothing."""

    def __init__(self, trace: Trace, pending: Iterable[int] = (), structural: Iterable[int] = ()) -> None:
        self.trace = trace
        # nodes that wait to be renewed, and those of them whose edges are made anew; evaluation takes out what is done
        self.pending = set(pending)
        self.structural = set(structural)
        # choices that evaluation constrained, whose densities are still to be counted
        self.constrained: list[int] = []
        # while this one is in place: the machine that asks it, and the handler before
        self.asked_by: Machine | None = None
        self.before: Handler | None = None

    def __enter__(self) -> None:
        """The machine has put the handler in place."""

    def __exit__(self, *error: object) -> None:
        assert self.asked_by is not None
        assert self.before is not None
        self.asked_by.handler, self.asked_by, self.before = self.before, None, None

    def renew(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        """The new value of a choice that waits; of a maker, whose arguments are new, the value that it has."""
        raise InternalError("a choice was renewed for which nobody has a value")

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        """The value of a fresh choice."""
        return simulate(self.trace, node, operator, arguments)

    def constrain(self, node: int, operator: Any, arguments: tuple[Any, ...], evidence: Any) -> Any:
        """The value of a choice that evidence fixes."""
        self.constrained.append(node)
        return evidence

    def recall(self, node: int) -> bool:
        """Put the value of a node that waits in place, if it is known already; whether it was."""
        return False


class Starting(Handler):
    """Fresh choices of improper densities take their start; the handler before has the others."""

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        if isinstance(operator, Random) and operator.start is not None:
            return operator.start(self.trace.rng, *arguments)
        assert self.before is not None
        return self.before.choose(node, operator, arguments)


class KnownChoices(Handler):
    """Fresh choices whose value is known take it; the handler before has the others."""

    def __init__(self, trace: Trace, value_of: Callable[[int], Any]) -> None:
        super().__init__(trace)
        # node -> value, or NO_EVIDENCE
        self._value_of = value_of

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        value = self._value_of(node)
        if value is NO_EVIDENCE:
            assert self.before is not None
            return self.before.choose(node, operator, arguments)
        return value
