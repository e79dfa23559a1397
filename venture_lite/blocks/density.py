"""The log density of a block given all else, and its gradient, by reverse accumulation through the scaffold.

The block's choices are principal, what is computed from them is renewed, and what reads either absorbs, as in every
transition. Forward, parents first, each gets its value; backward, cotangents go from the densities that absorb, through
fused and stored slots, results of calls and arguments, to the principals, whose own densities and transforms join in.
Coordinates are unconstrained: the density is that of the free coordinates, with the Jacobians of the transforms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from venture_lite.blocks.tape import Tape, carries_derivatives
from venture_lite.blocks.term_gradients import SingleTerm, SiteTerms, TermCotangents, add_to, refuse_without_gradient
from venture_lite.errors import KernelError, Span
from venture_lite.interpreter.application import check
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder, Scaffold, is_maker_application
from venture_lite.interpreter.sources import Source, computed_from, primitive
from venture_lite.interpreter.weights import NARROW, Weight, density_of
from venture_lite.procedures.pullbacks import accumulated
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.transforms import Transform
from venture_lite.program.code import Code, Kind, Ref
from venture_lite.trace.nodes import node_at, row_of, site_of

MANY = 1 << 16
"""More renewed nodes than this are not walked one by one for each gradient."""


class _Part:
    """A node that moves: what it reads, through a tape, and its values along the tape as they were last."""

    def __init__(self, block: BlockDensity, node: int, code: Code, refs: tuple[Ref, ...], at: int, slot: int) -> None:
        self.node = node
        self.site, self.row = site_of(node), row_of(node)
        self.column = block.model.trace.column(self.site)
        self.tape = block.tape(code, refs)
        # the row and the slot that read, which for an argument are the caller's and for a result the callee's
        self.at, self.slot = at, slot
        self.parents = [self.tape.node(leaf, at) for leaf in self.tape.leaves]
        self.wanted: list[bool] = []
        self.values: list[Any] = []

    def mark_wanted(self, moving: set[int]) -> None:
        self.wanted = self.tape.wanted([parent in moving for parent in self.parents])

    def read(self) -> tuple[Any, ...]:
        self.values = self.tape.forward(self.at, self.slot)
        return tuple([self.values[place] for place in self.tape.outputs])

    def arguments(self) -> tuple[Any, ...]:
        return tuple([self.values[place] for place in self.tape.outputs])

    def asked(self) -> tuple[bool, ...]:
        return tuple([self.wanted[place] for place in self.tape.outputs])

    def pass_on(self, parts: Sequence[Any], cotangents: TermCotangents) -> None:
        """Cotangents of what was read, to the nodes that it is computed from."""
        found = self.tape.backward(self.values, list(parts), self.wanted, together=False)
        for leaf, parent, part in zip(self.tape.leaves, self.parents, found, strict=True):
            if part is not None and self.wanted[leaf.place]:
                add_to(cotangents, parent, part)


class _Computed(_Part):
    """A stored value that is renewed: of a primitive procedure, or handed on from an argument or a result."""

    def __init__(
        self, block: BlockDensity, node: int, source: Source, record: Deterministic | None, span: Span | None
    ) -> None:
        super().__init__(block, node, source.code, source.refs, source.row, source.slot)
        self.record = record
        self.span = span
        self.trace = block.model.trace

    def refuse(self) -> None:
        """Raise KernelError where the value may jump."""
        if self.record is not None:
            carries_derivatives(self.record, self.span)

    def renew(self, block: BlockDensity) -> None:
        arguments = self.read()
        if self.record is None:
            value = arguments[0]
        else:
            try:
                value = self.record.scalar(*arguments)
            except Exception:
                code, slot, row = self.trace.decode(self.node)
                value = primitive(self.trace, code, slot, row)
        self.trace.journal.put(self.column, self.row, value)

    def pull_back(self, cotangents: TermCotangents) -> None:
        cotangent = cotangents.pop(self.node, None)
        if cotangent is None:
            return
        if self.record is None:
            self.pass_on((cotangent,), cotangents)
            return
        arguments, asked = self.arguments(), self.asked()
        assert self.record.pullback is not None
        lifted = (False,) * len(arguments)
        found = self.record.pullback(lifted, asked, cotangent, self.column.view[self.row], *arguments)
        self.pass_on(found, cotangents)


class _Principal(_Part):
    """A choice of the block, with its place among the free coordinates."""

    def __init__(self, block: BlockDensity, node: int, record: Random, refs: tuple[Ref, ...], start: int) -> None:
        trace = block.model.trace
        code, slot, row = trace.decode(node)
        super().__init__(block, node, code, refs, row, slot)
        self.trace = trace
        self.record = record
        assert record.transform is not None
        self.transform: Transform = record.transform
        _, arguments = trace.application(node)
        self.defaults = arguments[len(refs) :]
        value = self.column.view[row]
        self.is_possible = True
        self.is_one = not isinstance(value, (np.ndarray, tuple))
        # a number outside its support has no free coordinate, but as many as any other
        self.shape = () if self.is_one else np.shape(self.transform.to_free(value, arguments))
        self.coordinates = slice(start, start + math.prod(self.shape))

    def read(self) -> tuple[Any, ...]:
        return super().read() + self.defaults

    def free(self) -> np.ndarray:
        return np.ravel(self.transform.to_free(self.column.view[self.row], self.arguments() + self.defaults))

    def refuse(self) -> None:
        """Raise KernelError where the density or the transform has no derivative."""
        refuse_without_gradient(self.record, (True, *self.asked()), self.trace, self.node)
        if not hasattr(self.transform, "free_gradient"):
            raise KernelError(
                f"the transform of {self.record.name} has no free_gradient", hint="mh with 'drift, or slice"
            )

    def put(self, block: BlockDensity, free: np.ndarray) -> None:
        arguments = self.read()
        check(self.trace, self.record, arguments, self.node, is_drawn=False)
        taken = free[self.coordinates]
        given = float(taken[0]) if self.is_one else taken.reshape(self.shape)
        self.trace.journal.put(self.column, self.row, self.transform.from_free(given, arguments))

    def weigh(self, weight: Weight) -> None:
        arguments = self.arguments() + self.defaults
        value = self.column.view[self.row]
        term = density_of(self.trace, self.node, self.record, arguments, value)
        self.is_possible = term > -math.inf
        weight.add(term)
        if not self.is_possible:
            return
        weight.total += self.transform.log_jacobian(value, arguments)

    def pull_back(self, cotangents: TermCotangents, gradient: np.ndarray) -> None:
        if not self.is_possible:
            # where the density is 0 there is no way to follow
            cotangents.pop(self.node, None)
            return
        arguments = self.arguments() + self.defaults
        value = self.column.view[self.row]
        asked = self.asked() + (False,) * len(self.defaults)
        assert self.record.gradient is not None
        flat = (False,) * (1 + len(arguments))
        own, *by_arguments = self.record.gradient.evaluate(flat, (True, *asked), value, *arguments)
        total = accumulated(cotangents.pop(self.node, None), own)
        free = self.transform.free_gradient(value, arguments, dense(total, value))
        gradient[self.coordinates] = np.ravel(free)
        if any(asked):
            if self.transform.reads_arguments:
                moved = self.transform.argument_gradient(value, arguments, dense(total, value))
                by_arguments = [accumulated(*pair) for pair in zip(by_arguments, moved, strict=True)]
            self.pass_on(by_arguments[: len(self.tape.outputs)], cotangents)


def dense(cotangent: Any, value: Any) -> Any:
    """A cotangent as a number, or as an array of the value's shape."""
    if isinstance(cotangent, tuple):
        filled = [np.zeros(np.shape(item)) if part is None else part for part, item in zip(cotangent, value)]  # noqa: B905
        return np.array(filled, dtype=np.float64)
    return cotangent


class BlockDensity:
    """One block's log density in free coordinates, good while rows, edges and readers stay as they are.

    Moves the trace: what the journal holds since takes it back.
    """

    def __init__(self, model: Model, block: Sequence[int]) -> None:
        self.model = model
        self._stamp = model.trace.structure_stamp()
        self._tapes: dict[Any, Tape] = {}
        scaffold = Builder(model.trace, by_family=True).build(block)
        self._refuse(scaffold, block)
        self.size = 0
        self._principals: list[_Principal] = []
        for node in scaffold.principals:
            part = self._principal(node, self.size)
            self._principals.append(part)
            self.size = part.coordinates.stop
        moving = {part.node: part for part in self._principals} | {
            node: self._computed(node) for node in scaffold.pending if not self._is_fixed(node)
        }
        # principals and renewed nodes, parents first
        self._parts: list[_Principal | _Computed] = parents_first(moving)
        nodes = set(moving)
        for mover in self._parts:
            mover.mark_wanted(nodes)
            mover.refuse()
        self._terms = self._absorbing(scaffold, nodes)
        # rows whose densities one evaluation takes
        self.rows = len(self._principals) + sum(term.count for term in self._terms)

    def is_valid(self) -> bool:
        return self._stamp == self.model.trace.structure_stamp()

    def coordinates_of(self, node: int) -> slice:
        """The free coordinates of one choice of the block."""
        return next(part.coordinates for part in self._principals if part.node == node)

    # ------------------------------------------------------------------------------------------------- making

    def _refuse(self, scaffold: Scaffold, block: Sequence[int]) -> None:
        """Raise KernelError, with the reason, where the density jumps or has no derivative."""
        model, trace = self.model, self.model.trace
        code, slot, _ = trace.decode(block[0])
        span, instead = code.slots[slot].span, "mh with 'drift, or slice"
        if scaffold.structural or scaffold.brush:
            node = next(iter(scaffold.structural), block[0])
            code, slot, row = trace.decode(node)
            reason = "the density may jump: a branch, a call or a memoized procedure depends on the block"
            raise KernelError(reason, code.slots[slot].span, instead, trace.call_chain(code, slot, row))
        if scaffold.makers or any(is_maker_application(trace, node) for node in scaffold.absorbing):
            raise KernelError("the parameters of an exchangeable procedure depend on the block", span, instead)
        for node in scaffold.principals:
            operator, _ = model.trace.application(node)
            if not isinstance(operator, Random):
                raise KernelError(f"a draw of {operator.record.name} has no density of its own", span, instead)
            if operator.transform is None:
                code, slot, _ = trace.decode(node)
                raise KernelError(f"{operator.name} is discrete", code.slots[slot].span, "gibbs, or mh")
        if len(scaffold.pending) > MANY:
            raise KernelError("what is computed from the block is stored in too many rows", span, instead)

    def _is_fixed(self, node: int) -> bool:
        """Whether evidence fixes a renewed value, so that nothing moves beyond it."""
        code, slot, row = self.model.trace.decode(node)
        return self.model.trace.tables[code.index].is_observed(slot, row)

    def tape(self, code: Code, refs: tuple[Ref, ...]) -> Tape:
        """One tape for each body's references."""
        key = (code.index, *[id(ref) for ref in refs])
        found = self._tapes.get(key)
        if found is None:
            found = self._tapes[key] = Tape(self.model.trace, code, refs)
        return found

    def _principal(self, node: int, start: int) -> _Principal:
        code, slot, _ = self.model.trace.decode(node)
        operator, _ = self.model.trace.application(node)
        assert isinstance(operator, Random)
        return _Principal(self, node, operator, code.slots[slot].arguments, start)

    def _computed(self, node: int) -> _Computed:
        trace = self.model.trace
        code, slot, _ = trace.decode(node)
        item = code.slots[slot]
        source = computed_from(trace, node)
        assert source is not None
        record = item.record
        if source.is_applied and item.operator is not None:
            record = trace.read(site_of(node), row_of(node))[0]
        assert isinstance(record, Deterministic | None)
        return _Computed(self, node, source, record, item.span)

    def _absorbing(self, scaffold: Scaffold, moving: set[int]) -> list[SiteTerms | SingleTerm]:
        model, trace = self.model, self.model.trace
        terms: list[SiteTerms | SingleTerm] = []
        by_site: dict[int, list[int]] = {}
        for site in scaffold.groups:
            moved = {row_of(node) for node in scaffold.principals if site_of(node) == site}
            if not moved:
                terms.append(SiteTerms(model, site, None, moving))
                continue
            # the block holds some of the choices that read the rest of it
            table = trace.tables[trace.program.site_code[site].index]
            rows = np.arange(table.count)[table.rows()]
            by_site[site] = [node_at(site, row) for row in rows.tolist() if row not in moved]
        for node in scaffold.absorbing:
            if site_of(node) not in scaffold.groups:
                by_site.setdefault(site_of(node), []).append(node)
        for users in scaffold.users:
            rows = users.rows.array()
            family = users.result(trace)
            result = trace.result_node(family.code, family.row)
            terms.append(SiteTerms(model, users.site, rows, moving, users.call, result))
        for site, nodes in by_site.items():
            code = trace.program.site_code[site]
            slot = code.slots[trace.program.site_slot[site]]
            if slot.kind is Kind.RANDOM and len(nodes) > NARROW:
                terms.append(SiteTerms(model, site, np.array([row_of(node) for node in nodes]), moving))
            else:
                tape = self.tape(code, slot.arguments)
                terms.extend(SingleTerm(trace, node, tape, moving) for node in nodes)
        return terms

    # ------------------------------------------------------------------------------------------------- moving

    def present(self) -> np.ndarray:
        """The block's free coordinates (D,) as it stands in the trace."""
        for part in self._parts:
            part.read()
        return np.concatenate([part.free() for part in self._principals]).astype(np.float64)

    def put(self, free: np.ndarray) -> None:
        """Move the block to other free coordinates, and renew what is computed from it."""
        for part in self._parts:
            if isinstance(part, _Principal):
                part.put(self, free)
            else:
                part.renew(self)

    def evaluate(self) -> tuple[Weight, np.ndarray]:
        """The log density and its gradient (D,), both in free coordinates, at the state that `present` or `put` left.

        Raises VentureError where arguments are outside their domains.
        """
        weight, cotangents = Weight(), TermCotangents()
        gradient = np.zeros(self.size)
        with np.errstate(all="ignore"):
            for term in self._terms:
                weight.plus(term.evaluate(cotangents))
            for part in reversed(self._parts):
                if isinstance(part, _Principal):
                    part.weigh(weight)
                    part.pull_back(cotangents, gradient)
                else:
                    part.pull_back(cotangents)
        return weight, gradient


def parents_first(parts: dict[int, Any]) -> list[Any]:
    """Parts in an order in which each comes after those that it reads."""
    order: list[Any] = []
    waiting = dict(parts)
    for first in parts:
        stack = [first]
        while stack:
            part = waiting.get(stack[-1])
            if part is None:
                stack.pop()
                continue
            before = [parent for parent in part.parents if parent in waiting]
            if before:
                stack.extend(before)
            else:
                order.append(part)
                del waiting[stack.pop()]
    return order
