"""The machine: an explicit stack of frames, worked off in the order in which values are needed.

A frame works through the steps of one row. A new family is a new frame on top; a node that waits to be renewed and that
somebody needs first is a frame of one step. So nothing recurses, however deep the model, and evaluation can stop
between any two steps. What a step does is in `steps.py`; which nodes wait and what values choices take, a `Handler`
says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from venture_lite.errors import LimitError, VentureError
from venture_lite.interpreter.evidence import NO_EVIDENCE, Carrier, deterministic_evidence, item_refs
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.sources import nodes_read
from venture_lite.program.code import Code, GlobalRef, Kind, Ref, Slot, SlotRef, sources
from venture_lite.trace.bindings import Derived
from venture_lite.trace.table import NONE, ROW_MASK
from venture_lite.trace.trace import Trace


@dataclass(slots=True, eq=False)
class Frame:
    """One row being evaluated, or one existing node being renewed (`renews`). Mutable: it moves from step to step."""

    code: Code
    row: int
    steps: Sequence[int]
    # the value that the row's result must take
    evidence: Any = NO_EVIDENCE
    # the pending node, or NONE for a new row
    renews: int = NONE
    position: int = 0
    # slot -> the value that it must take, where the result lists it
    items: dict[int, Any] | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """What stops a program that would never end."""

    nested_calls: int = 400_000
    memory_mb: float | None = None


Step = Callable[["Machine", Frame, int, Slot], None]
"""(machine, frame, index of the slot, slot): works on the frame's row."""


class Machine:
    """Evaluates on behalf of one trace. Mutates the trace through its operations, and its own stack."""

    def __init__(
        self, trace: Trace, steps: Mapping[Kind, Step], poll: Callable[[], None], limits: Limits | None = None
    ) -> None:
        self.trace = trace
        # asked between steps now and then: raises to stop
        self.poll = poll
        self.steps = steps
        self.limits = limits or Limits()
        self.stack: list[Frame] = []
        self.handler = Handler(trace)
        # rows of memoized procedures being evaluated
        self.unfinished: set[tuple[int, int]] = set()
        # (choice, value, nodes on the way) for evidence that leads to a choice that exists already
        self.to_constrain: list[tuple[int, Any, list[int]]] = []
        # steps between two polls
        self.poll_every = 1024
        self._ticks = self.poll_every
        # site, or Code of a result -> what it reads: fixed nodes, or (tables of environments to climb, site)
        self._parents: Derived[int, list[Any]] = Derived(self._parents_of)
        self._result_parents: Derived[Code, list[Any]] = Derived(lambda code: self._resolve(code, [code.result]))
        trace.derived.extend((self._parents, self._result_parents))
        self.carrier = Carrier(trace, self.to_constrain)

    # ------------------------------------------------------------------------------------------------- running

    def handled_by(self, handler: Handler) -> Handler:
        """`with machine.handled_by(handler):` evaluation asks this handler, and afterwards the one before again."""
        handler.asked_by, handler.before, self.handler = self, self.handler, handler
        return handler

    def reset(self) -> None:
        """Forget what was begun; the journal takes back what was done."""
        self.stack.clear()
        self.unfinished.clear()
        self.handler.constrained.clear()
        self.to_constrain.clear()

    def run(self) -> None:
        """Work until the stack is empty."""
        stack, steps, pending = self.stack, self.steps, self.handler.pending
        self._ticks = min(self._ticks, self.poll_every)
        while stack:
            frame = stack[-1]
            if frame.position == len(frame.steps):
                if pending and frame.renews == NONE and self.blocked_result(frame.code, frame.row):
                    continue
                stack.pop()
                self._finish(frame)
                continue
            self._ticks -= 1
            if self._ticks <= 0:
                self._tick()
            index = frame.steps[frame.position]
            code = frame.code
            if pending:
                parents = self._parents[code.first_site + index]
                if parents and self.blocked_by(parents, frame.row, frame.renews):
                    continue
            frame.position += 1
            slot = code.slots[index]
            steps[slot.kind](self, frame, index, slot)

    def _tick(self) -> None:
        self._ticks = self.poll_every
        self.poll()
        self.refuse_excess()

    def refuse_excess(self, more_mb: float = 0.0) -> None:
        """Raises LimitError when the process holds more memory than the limit, where there is one, or would hold more
        with `more_mb` besides."""
        if self.limits.memory_mb is not None:
            refuse_excess_memory(self.limits.memory_mb, more_mb)

    def push(self, frame: Frame) -> None:
        if len(self.stack) >= self.limits.nested_calls:
            code = frame.code
            raise LimitError(
                f"more than {self.limits.nested_calls:,} nested calls: does the recursion end?",
                code.span,
                "give the recursion a base case, or raise the limit (nested_calls)",
                self.trace.call_chain(code, -1, frame.row, 8),
            )
        self.stack.append(frame)

    def evaluate(self, code: Code, row: int, evidence: Any = NO_EVIDENCE) -> None:
        """Evaluate a row that has its arguments."""
        self.push(Frame(code, row, code.steps, evidence))
        self.run()

    def renew(self, node: int) -> None:
        """Renew a node, if it still waits, after all that it needs."""
        if node in self.handler.pending:
            self._push_node(node)
            self.run()

    # -------------------------------------------------------------------------------------- order on demand

    def _push_node(self, node: int) -> None:
        program, site = self.trace.program, node >> 32
        self.push(Frame(program.site_code[site], node & ROW_MASK, (program.site_slot[site],), renews=node))

    def blocked(self, site: int, row: int) -> bool:
        """Whether a value that the slot reads is pending; if so, its frame is now on top."""
        return self.blocked_by(self._parents[site], row, NONE)

    def blocked_result(self, code: Code, row: int) -> bool:
        parents = self._result_parents[code]
        return bool(parents) and self.blocked_by(parents, row, NONE)

    def _parents_of(self, site: int) -> list[Any]:
        code = self.trace.program.site_code[site]
        item = code.slots[self.trace.program.site_slot[site]]
        refs = [*item.arguments, *(region.block for region in item.regions)]
        return self._resolve(code, [*refs, item.operator] if item.operator else refs)

    def _resolve(self, code: Code, refs: list[Ref]) -> list[Any]:
        found: list[Any] = []
        for ref in refs:
            for source in sources(code, ref):
                if isinstance(source, GlobalRef):
                    found.extend(nodes_read(self.trace, code, NONE, (source,)))
                elif isinstance(source, SlotRef):
                    climb = [self.trace.tables[code.ancestor(d).index] for d in range(source.depth)]
                    found.append((climb, code.ancestor(source.depth).first_site + source.slot))
        return found

    def blocked_by(self, parents: list[Any], row: int, renews: int) -> bool:
        handler = self.handler
        pending = handler.pending
        for parent in parents:
            if isinstance(parent, int):
                node = parent
            else:
                climb, site = parent
                at = row
                for table in climb:
                    at = table.environment.view[at]
                node = site << 32 | at
            if node in pending and node != renews:
                if handler.recall(node):
                    continue
                if any(frame.renews == node for frame in self.stack):
                    code, slot, at = self.trace.decode(node)
                    raise self.needs_itself(code, slot, at)
                self._push_node(node)
                return True
        return False

    def needs_itself(self, code: Code, slot: int, row: int) -> VentureError:
        error = LimitError("the value is needed to compute itself", hint="give the recursion a base case")
        return error.at(*self.trace.place(code, slot, row, 8))

    # ------------------------------------------------------------------------------------------ storing values

    def store(self, frame: Frame, index: int, value: Any) -> None:
        column = self.trace.tables[frame.code.index].columns[index]
        assert column is not None
        if frame.renews == NONE:
            column.fill(frame.row, value)
        else:
            self.trace.journal.put(column, frame.row, value)

    def _finish(self, frame: Frame) -> None:
        if frame.renews != NONE:
            self.handler.pending.discard(frame.renews)
            self.handler.structural.discard(frame.renews)
            return
        code, row = frame.code, frame.row
        trace = self.trace
        if frame.evidence is not NO_EVIDENCE:
            if code.result_slot < 0 or item_refs(code) is not None:
                self.carrier.leave(code, row, frame.evidence)
            elif code.slots[code.result_slot].kind not in (Kind.RANDOM, Kind.CALL, Kind.IF):
                raise deterministic_evidence(trace, code, code.result_slot, row)
        if code.kind == "directive":
            return
        if code.kind == "branch":
            user = trace.if_of(code, row)
        else:
            user = trace.tables[code.index].user.view[row]
            self.unfinished.discard((code.index, row))
            if user == NONE:
                return
        site, user_row = user >> 32, user & ROW_MASK
        below = self.stack[-1] if self.stack else None
        is_evaluated = below is not None and below.renews == NONE and below.row == user_row
        fresh = is_evaluated and below.code is trace.program.site_code[site]  # type: ignore[union-attr]
        self.copy_result(code, row, site, user_row, fresh)

    def copy_result(self, code: Code, row: int, site: int, user_row: int, fresh: bool = False) -> None:
        """Give the user of a family its result; the cells of a fresh row need no journal."""
        value, column = self.trace.result(code, row), self.trace.column(site)
        if fresh:
            column.fill(user_row, value)
        else:
            self.trace.journal.put(column, user_row, value)


def refuse_excess_memory(limit_mb: float, more_mb: float = 0.0) -> None:
    """Raises LimitError when the process holds more memory than the limit, or would hold it with `more_mb` besides."""
    import resource
    import sys

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
    if used + more_mb > limit_mb and not math.isinf(limit_mb):
        more = f" and would take {more_mb:,.0f} MB more" if more_mb else ""
        raise LimitError(
            f"the process uses {used:,.0f} MB{more}, more than the limit of {limit_mb:,.0f} MB (memory_mb)"
        )
