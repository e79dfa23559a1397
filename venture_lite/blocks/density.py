"""The log density of a block given all else, and its gradient, by reverse accumulation through the scaffold.

The block's choices are principal, what is computed from them is renewed, and what reads either absorbs, as in every
transition. All three are cut into runs (`interpreter/runs.py`). Forward, parents first, each run gets its values;
backward, cotangents go from the densities that absorb, through what is renewed, to the principals, whose own densities
and transforms join in. Coordinates are unconstrained: the density is that of the free coordinates, with the Jacobians
of the transforms.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from venture_lite.blocks import second
from venture_lite.blocks.block_function import MOST_ROWS, BlockFunction, DensityFunction, is_small
from venture_lite.blocks.block_values import NotOneFunction
from venture_lite.blocks.distributions import name_of, transform_of
from venture_lite.blocks.loops import NotInOneLoop
from venture_lite.blocks.minibatch import Minibatch
from venture_lite.blocks.moving import BlockState, PassStep, RowKind, advance, weighed
from venture_lite.blocks.recursions import Recursion, Stretch, Turns, turns_in
from venture_lite.blocks.tape import INSTEAD
from venture_lite.errors import KernelError
from venture_lite.interpreter.ancestry import name_of_choice
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.runs import Run, run_of, runs_alike, runs_of
from venture_lite.interpreter.scaffold import Builder, Scaffold, is_maker_application
from venture_lite.interpreter.sources import application_nodes, computed_from, depends_on, reached
from venture_lite.interpreter.weights import CHUNK, NARROW, Weight
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import REAL, UNIT
from venture_lite.trace.borrowed import BorrowedColumn
from venture_lite.trace.nodes import node_at, row_of, site_of
from venture_lite.trace.table import Column, one_of

MANY = 1 << 16
"""More renewed nodes than this are not walked one by one for each gradient."""

LEAST_LOGIT = 36.0
"""Below this floats tell values between 0 and 1 apart from both."""


class BlockDensity:
    """One block's log density in free coordinates, good while rows, edges and readers stay as they are.

    Moves the trace: what the journal holds since takes it back.
    """

    def __init__(self, model: Model, block: Sequence[int], whole: bool = False) -> None:
        """`whole` says that no choice is to be moved apart from what weighs it."""
        self.model, self._block = model, tuple(block)
        trace = model.trace
        self._stamp = trace.structure_stamp()
        scaffold = Builder(trace, by_family=True, by_value=True).build(block)
        self._refuse(scaffold, block)
        self._coordinates = dict(self._placed(scaffold.principals))
        self.size = max((taken.stop for taken, _ in self._coordinates.values()), default=0)
        # the free coordinates of each choice of the block
        self.places = {node: self._coordinates[node][0] for node in block}
        renewed = [node for node in scaffold.pending if node not in scaffold.makers and not self._is_fixed(node)]
        runs = runs_of(trace, [*scaffold.principals, *renewed])
        # choices that are moved apart from what weighs them: in one go, though each depends on the one before
        self._apart = dict.fromkeys(() if whole else self._in_chains(runs))
        if self._apart:
            runs = runs_of(trace, [*scaffold.principals, *renewed], self._apart)
        self._state = BlockState(model, runs, self.size)
        # parents first
        self._moved = self._moving(runs)
        # the same, where rows that take turns are recursions
        self._turns: list[Stretch | Recursion] = []
        # a recursion has a stretch for each step, and few kinds
        self._kinds = tuple(dict.fromkeys(kind for kind, _, _ in self._moved))
        # those of the block itself
        self._choices = [kind for kind in self._kinds if kind.coordinates]
        logits = [kind.coordinates or [] for kind in self._choices if kind.operator.transform is UNIT]
        places = [np.arange(taken.start, taken.stop) for coordinates in logits for taken, _ in coordinates]
        self._logits = np.concatenate([np.zeros(0, int), *places])
        # the rows that weigh the change, by kind
        self.terms = list(self._absorbing(scaffold))
        # their sites
        self.readers = frozenset(kind.site for kind in self.terms)
        # rows whose densities one evaluation takes
        self.rows = len(scaffold.principals) + sum(kind.count for kind in self.terms)
        self.terms += [
            RowKind(self._state, run, run.rows, run.at, is_apart=True) for run in runs_alike(trace, self._apart)
        ]
        self._forward: list[PassStep] = []
        # of what weighs the change, and then of what moves
        self._weighing: list[PassStep] = []
        self._backward: list[PassStep] = []
        # the memory that the functions were printed for; none before they are asked for
        self._views: list[tuple[Column, Any]] = []
        # the state of `Column.reshaped` up to which it is known to be theirs
        self._seen = -1
        # those that keep what does not depend on the block
        self._keeping: list[RowKind] = []
        # whether its rows are few enough to go one by one, and how often it was moved by paths
        self.is_small, self.moves = is_small(self._moved, self.terms), 0
        # the whole as one function, once it was asked for; None where there is none
        self._whole: BlockFunction | None = None
        self._has_whole = False
        # by what is printed: whether it agrees with the interpreter; and how often that could not be said
        self.answered, self.unanswered = dict[str, bool](), 0

    def kind(self) -> tuple[Hashable, ...]:
        """Equal in blocks that read alike: sites, types of columns, and how many rows there are, up to MOST_ROWS."""
        kinds = (*self._kinds, *self.terms)
        return tuple(
            [(kind.site, min(kind.count, MOST_ROWS + 1), *[column.kind for column in kind.columns()]) for kind in kinds]
        )

    def is_valid(self) -> bool:
        return self._stamp == self.model.trace.structure_stamp()

    def furthest(self, way: np.ndarray) -> int:
        """The choice that a way in free coordinates (D,) takes furthest, one whose support has an edge if there is one:
        where a density grows without end, what is scaled follows its scale."""
        moved = {node: float(np.abs(way[taken]).max(initial=0.0)) for node, (taken, _) in self._coordinates.items()}
        least = 1e-3 * max(moved.values())
        far = [node for node in moved if moved[node] >= least]
        bounded = [node for node in far if transform_of(self.model.trace.application(node)[0]) is not REAL]
        return max(bounded or far, key=lambda node: moved[node])

    # ------------------------------------------------------------------------------------------------- making

    def _refuse(self, scaffold: Scaffold, block: Sequence[int]) -> None:
        """Raise KernelError, with the reason, where the density jumps or has no derivative."""
        trace = self.model.trace
        if scaffold.structural or scaffold.brush:
            node = next(iter(scaffold.structural), block[0])
            raise self.refused(
                node, f"the density may jump: {self._decided(node)} depends on {self._named(node, block)}"
            )
        for node in scaffold.absorbing:
            if is_maker_application(trace, node):
                name = name_of(trace.application(node)[0])
                raise self.refused(node, f"what {name} is given depends on {self._named(node, block)}")
        for node in scaffold.principals:
            operator, _ = trace.application(node)
            if not isinstance(operator, Random):
                raise self.refused(node, f"{name_of(operator)} has no density of its own")
            if operator.transform is None:
                raise self.refused(node, f"{operator.name} is discrete", "gibbs, or mh")
        if len(scaffold.pending) > MANY:
            raise self.refused(block[0], "what is computed from the block is stored in too many rows")

    def _decided(self, node: int) -> str:
        """What a node's predicate, operator or key decides."""
        trace = self.model.trace
        code, slot, _ = trace.decode(node)
        if code.slots[slot].branches:
            return "which branch is taken"
        source = computed_from(trace, node)
        if source is not None and source.is_result and trace.is_memoized(source.code, source.row):
            return "which value of a memoized procedure is read"
        return "which procedure is called"

    def _named(self, node: int, block: Sequence[int]) -> str:
        """The choice of the block that a node reads, as a person knows it."""
        trace, held = self.model.trace, set(block)
        above = reached(application_nodes(trace, node), lambda each: depends_on(trace, each))
        found = next((each for each in islice(above, MANY) if each in held), None)
        return "the block" if found is None else name_of_choice(trace, found)

    def refused(self, node: int, reason: str, instead: str | None = INSTEAD) -> KernelError:
        code, slot, row = self.model.trace.decode(node)
        return KernelError(reason, code.slots[slot].span, instead, self.model.trace.call_chain(code, slot, row))

    def _is_fixed(self, node: int) -> bool:
        """Whether evidence fixes a renewed value, so that nothing moves beyond it."""
        code, slot, row = self.model.trace.decode(node)
        return self.model.trace.tables[code.index].is_observed(slot, row)

    def _placed(self, principals: dict[int, None]) -> Iterator[tuple[int, tuple[slice, Any]]]:
        """Of each choice its coordinates, and the shape in which its transform takes them, None for a number."""
        size = 0
        for node in principals:
            operator, arguments = self.model.trace.application(node)
            value = self.model.trace.value(node)
            # a number outside its support has no free coordinate, but as many as any other
            is_one = not isinstance(value, (np.ndarray, tuple))
            assert isinstance(operator, Random)
            assert operator.transform is not None
            shape = None if is_one else np.shape(operator.transform.to_free(value, arguments))
            taken = slice(size, size + math.prod(shape or ()))
            yield node, (taken, shape)
            size = taken.stop

    def _in_chains(self, runs: list[Run]) -> Iterator[int]:
        """Numbers whose coordinates mean the same whatever they depend on, of kinds of which each depends on others: a
        random walk is as many runs as it has steps."""
        chains: dict[Any, list[Run]] = {}
        for run in runs:
            if run.nodes[0] in self._coordinates and not run.operator.transform.reads_arguments:
                chains.setdefault((run.site, run.source._replace(row=0), run.operator), []).append(run)
        for steps in chains.values():
            nodes = [node for run in steps for node in run.nodes]
            if len(steps) > NARROW and all(self._coordinates[node][1] is None for node in nodes):
                yield from nodes

    def _moving(self, runs: list[Run]) -> list[Stretch]:
        """What moves: runs of one kind follow one another as rows of that kind."""
        alike: dict[Any, list[Run]] = {}
        for run in runs:
            key = (run.site, run.source._replace(row=0), run.operator, self._role(run.nodes[0]))
            alike.setdefault(key, []).append(run)
        where: dict[int, Stretch] = {}
        for same in alike.values():
            rows, at = (np.concatenate([getattr(run, name) for run in same]) for name in ("rows", "at"))
            nodes = [node for run in same for node in run.nodes]
            coordinates = [self._coordinates[node] for node in nodes] if nodes[0] in self._coordinates else None
            kind = RowKind(self._state, same[0], rows, at, coordinates, is_apart=nodes[0] in self._apart)
            stop = 0
            for run in same:
                start, stop = stop, stop + len(run.rows)
                where[id(run)] = kind, start, stop
        return [where[id(run)] for run in runs]

    def _role(self, node: int) -> tuple[bool, bool]:
        return node in self._coordinates, node in self._apart

    def _absorbing(self, scaffold: Scaffold) -> Iterator[RowKind]:
        """What weighs the change: makers, whole sites, users of one family, and single choices."""
        trace, state = self.model.trace, self._state
        single = [node for node in scaffold.absorbing if site_of(node) not in scaffold.groups]
        for site in scaffold.groups:
            table = trace.tables[trace.program.site_code[site].index]
            rows = table.rows()
            moved = {row_of(node) for node in scaffold.principals if site_of(node) == site}
            if moved:
                # the block holds some of the choices that read the rest of it
                every = np.arange(table.count)[rows].tolist()
                single += [node_at(site, row) for row in every if row not in moved]
            else:
                first = one_of(rows, 0)
                yield RowKind(state, run_of(trace, node_at(site, first)), rows, rows, lent=self._lent(site, rows))
        for users in scaffold.users:
            rows = users.rows.array().copy()
            run = run_of(trace, node_at(users.site, int(rows[0])))
            yield RowKind(state, run, rows, rows, lent=self._lent(users.site, rows))
        for run in runs_alike(trace, [*scaffold.makers, *single]):
            yield RowKind(state, run, run.rows, run.at)

    def _lent(self, site: int, rows: slice | np.ndarray) -> dict[int, int]:
        """The calls beside a choice by which all of some rows borrow from one family, with the node of its result."""
        trace, found = self.model.trace, dict[int, int]()
        for slot, column in enumerate(trace.tables[trace.program.site_code[site].index].columns):
            if not isinstance(column, BorrowedColumn):
                continue
            families = column.edges.gather(rows)
            if (families == families[0]).all():
                found[slot] = node_at(column.site, row_of(int(families[0])))
        return found

    # ------------------------------------------------------------------------------------------------ printing

    def _bind(self) -> None:
        """Print what is called for the columns as they stand."""
        self.answered.clear()
        parts = [*self._moved, *((kind, 0, kind.count) for kind in self.terms)]
        kinds = dict.fromkeys(kind for kind, _, _ in parts)
        wide = {kind for kind, start, stop in parts if stop - start > NARROW}
        for kind in kinds:
            kind.bind(kind in wide)
        self._views = [(column, column.view) for kind in kinds for column in kind.columns()]
        self._forward, self._weighing, self._backward = [], [], []
        self._turns = [each for moved in turns_in(self._moved) for each in self._recursions(moved)]
        for turns in self._turns:
            forward, backward = self._steps(turns)
            self._forward += forward
            self._backward[:0] = backward
        for kind in self.terms:
            if kind.is_maker:
                self._forward += kind.steps(0, kind.count, False)[0]
            size = CHUNK if kind.count > 2 * CHUNK else kind.count
            for start in range(0, kind.count, size):
                self._weighing += kind.steps(start, min(start + size, kind.count), kind.count > NARROW)[1]
        self._keeping = [kind for kind in kinds if kind.keeps]

    def _recursions(self, moved: Turns | Stretch) -> Iterable[Stretch | Recursion]:
        """Rows that take turns as a recursion, if they are one."""
        if not isinstance(moved, Turns):
            return [moved]
        try:
            return [Recursion(self._state, moved)]
        except NotInOneLoop:
            return moved.rows()

    def _steps(self, moved: Stretch | Recursion) -> tuple[list[PassStep], list[PassStep]]:
        """Both passes over some of what moves."""
        if isinstance(moved, Recursion):
            return moved.steps()
        kind, start, stop = moved
        return kind.steps(start, stop, stop - start > NARROW)

    # ------------------------------------------------------------------------------------------------- moving

    def present(self) -> np.ndarray:
        """The block's free coordinates (D,) as it stands in the trace."""
        free = np.zeros(self.size)
        for kind in self._choices:
            kind.present(free)
        return free

    def put(self, free: np.ndarray) -> None:
        """Move the block to other free coordinates, and renew what is computed from it."""
        self._state.free[:] = free
        reshaped = -1
        while reshaped != Column.reshaped:
            # a value of another type gives its column another memory; then all is done again
            reshaped = Column.reshaped
            self._look()
            self._state.keep()
            with np.errstate(all="ignore"):
                advance(self._forward)

    def refuse_ends(self, free: np.ndarray) -> None:
        """Refuse to stand where a logit is beyond those that floats tell apart. Raises KernelError."""
        if self._logits.size and np.abs(free[self._logits]).max() > LEAST_LOGIT:
            UNIT.to_free(UNIT.from_free(free[self._logits], ()), ())

    def evaluate(self, minibatch: Minibatch | None = None) -> tuple[Weight, np.ndarray]:
        """The log density and its gradient (D,), both in free coordinates, at the state that `present` or `put` left;
        with a minibatch estimates of them.

        Raises VentureError where arguments are outside their domains.
        """
        self._look()
        self._state.begin()
        with np.errstate(all="ignore"):
            if minibatch is None:
                total = weighed(self._weighing)
            else:
                total = minibatch.weight * weighed(minibatch.steps())
                self._state.weigh(minibatch.weight)
                total = weighed(minibatch.other_steps(), total)
            total = weighed(self._backward, total)
        return Weight(self._state.impossible, float(total)), self._state.gradient.copy()

    def function(self) -> DensityFunction | None:
        """The log density and its gradient as a function of free coordinates that moves nothing, as all else stands
        now; None where there is none of this block, or of this state."""
        self._look()
        if not self._has_whole:
            self._has_whole = True
            with contextlib.suppress(NotOneFunction):
                self._whole = BlockFunction(self._state, self._moved, self._turns, self.terms, self.size)
        return None if self._whole is None else self._whole.now()

    def sums(self, free: np.ndarray) -> dict[int, float]:
        """The weights of sites that follow from `function` at free coordinates."""
        whole = self._whole
        if whole is None or whole.sums is None or not whole.sites:
            return {}
        found = whole.sums(*free.tolist())
        return {site: found[position] for site, position in whole.sites.items()}

    def offer(self, free: Sequence[float]) -> None:
        """The block was left at these coordinates, which `function` knows: weights of its sites follow from them."""
        whole = self._whole
        if whole is not None and whole.sums is not None and whole.sites:
            self.model.weights.offer(whole.sites, partial(whole.sums, *map(float, free)))

    def hessian(self) -> np.ndarray | None:
        """The second derivatives (D, D) of the log density in free coordinates, at the state that `present` or `put`
        left; None where they do not go through all that depends on the block."""
        if self._apart:
            return BlockDensity(self.model, self._block, whole=True).hessian()
        self._look()
        return second.hessian(self._state, self.size, self._moved, self.terms)

    @property
    def is_put_over(self) -> bool:
        """Whether putting it leaves nothing of where it was put before: all that moves are numbers."""
        return not any(kind.is_maker for kind in self.terms) and all(kind.column.kind is float for kind in self._kinds)

    def passes(self) -> tuple[int, list[Stretch], list[RowKind]]:
        """How many places move, the rows that do, parents first, and those that weigh the change.

        Raises KernelError where a joint density weighs it, which is one of no rows.
        """
        if self._apart:
            return BlockDensity(self.model, self._block, whole=True).passes()
        for kind in self.terms:
            if kind.is_maker:
                raise self.refused(kind.node(0), f"the parameters of {kind.operator.name} depend on the block")
        return self._state.nowhere, self._moved, self.terms

    def _look(self) -> None:
        if self._seen != Column.reshaped:
            if not self._views or any(column.view is not view for column, view in self._views):
                self._bind()
                self._whole, self._has_whole = None, False
            self._seen = Column.reshaped
        for kind in self._keeping:
            kind.look()
