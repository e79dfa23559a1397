"""What draws rest on that no kernel moved: a choice that nobody moves counts as if its value had been given.

A variable's draws are judged by the kernels that ran between its first and its last draw; those of one loop's passes
together. Watching costs a few assignments a draw and nothing a transition; what the program left unmoved is found out
at its end, and whether anything rests on it only where there is something. A choice is moved if a kernel may select a
block that it lies in, or if it came in the meantime, as what was drawn anew with a branch or a family did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import islice
from typing import Any

import numpy as np

from venture_lite.errors import VentureError
from venture_lite.interpreter.ancestry import (
    Sources,
    decided_by,
    is_unobserved,
    memoized_family,
    name_of_choice,
    read_by_density,
    read_by_other_ways,
    ways_to,
)
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder, Scaffold, is_maker_application
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.procedures.record import Random
from venture_lite.program.code import Code
from venture_lite.trace.nodes import node_at, site_of
from venture_lite.trace.runtime import Exchangeable, Memo
from venture_lite.trace.trace import Trace
from venture_lite.values import equal, show

MOST = 10_000
"""Choices of one name that are looked at one by one; if draws rest on all of these, the rest is counted with them."""

ROWS = 1000
"""Rows of a site that are looked at for one that depends on something that moved."""

READINGS = 1000
"""Passes of a loop whose expressions of one variable are kept for a look at the end."""


@dataclass(slots=True, eq=False)
class Use:
    """What the kernels of one scope and selector may select, and when they ran: counts of collects, -1 for never."""

    watch: Watch
    scope: Any
    selector: Selector
    # what it moves of what it selects, and besides; None for all of that and nothing more
    moves: Callable[[Selection], list[int]] | None = None
    first: int = -1
    last: int = -1

    def ran(self) -> None:
        self.last = self.watch.now
        if self.first < 0:
            self.first = self.last


@dataclass(slots=True, eq=False)
class WatchedVariable:
    """One name under which draws were collected. Counts of collects say when."""

    # the choices that came in this epoch or later did not stand all the time
    epoch: int = -1
    # the collects with its first draw and its last, which is known at the end
    first: int = -1
    last: int = -1
    # what its expressions read, one for each expression and pass
    readings: dict[Any, Callable[[], Sources]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class WatchedCollect:
    """One action that adds a draw to each of some variables, which are many: it counts for all of them."""

    watch: Watch
    variables: tuple[WatchedVariable, ...]
    runs: int = 0
    last: int = -1

    def begin(self) -> None:
        """Draws are about to be made."""
        if not self.runs:
            self.watch.begin(self.variables)

    def ran(self) -> None:
        """They are made."""
        self.runs += 1
        self.last = self.watch.now
        self.watch.now += 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person is to know: how many choices of each name are moved by no kernel, and what `force` holds."""

    unmoved: dict[str, int]
    held: tuple[str, ...]


def unmoved_line(name: str, count: int) -> str:
    """What is said of choices that no kernel moves; `count` is 0 where nobody counts them."""
    if count == 1:
        return f"{name}: 1 choice is moved by no kernel: the draws take its value as given"
    many = f"{count:,} choices are" if count else "its choices are"
    return f"{name}: {many} moved by no kernel: the draws take their values as given"


class Watch:
    """The draws of one inference program, or of all passes of a loop, in one chain. Mutable."""

    def __init__(self, model: Model, in_loop: bool = False) -> None:
        self.model = model
        # the kernels of a loop go round: those before the first draw come before the next one, too
        self.in_loop = in_loop
        # how many collects have run
        self.now = 0
        self.variables: dict[str, WatchedVariable] = {}
        self._uses: dict[Any, Use] = {}
        # by the variables
        self._collects: dict[tuple[int, ...], WatchedCollect] = {}
        self._births: dict[int, int] = {}

    # ----------------------------------------------------------------------------------------- while it runs

    def use(self, scope: Any, selector: Selector, moves: Callable[[Selection], list[int]] | None = None) -> Use:
        """The entry of a kernel, which notes there when it runs; `moves` says which choices, where these are others
        than those that are selected."""
        try:
            key: Any = (scope, selector, moves)
            hash(key)
        except TypeError:
            key = len(self._uses)
        return self._uses.setdefault(key, Use(self, scope, selector, moves))

    def variable(self, name: str, reading: Callable[[], Sources], key: Any) -> WatchedVariable:
        """The entry of a name that a collect adds draws to; `key` tells its expressions and passes apart."""
        found = self.variables.setdefault(name, WatchedVariable())
        if len(found.readings) < READINGS:
            found.readings[key] = reading
        return found

    def collect(self, variables: Iterable[WatchedVariable]) -> WatchedCollect:
        """The entry of the actions that add draws to just them: those of all passes of a loop have one."""
        variables = tuple(variables)
        return self._collects.setdefault(tuple(map(id, variables)), WatchedCollect(self, variables))

    def begin(self, variables: Iterable[WatchedVariable]) -> None:
        """The first draw of some variables is about to be made."""
        default = self.model.trace.default
        new = [variable for variable in variables if variable.first < 0]
        if new:
            default.births = self._births
            default.epoch += 1
        for variable in new:
            variable.first, variable.epoch = self.now, default.epoch

    # ------------------------------------------------------------------------------------------- at the end

    def finish(self) -> Verdict:
        """Judge the draws of a watch that is closed. The trace is as it was."""
        unmoved: dict[str, int] = {}
        held: dict[str, None] = {}
        for (epoch, *uses), variables in self._windows().items():
            for name, nodes in self._unmoved(uses, epoch, variables).items():
                self._tell(name, nodes, unmoved, held)
        self._forget_forced()
        return Verdict(unmoved, tuple(held))

    def close(self) -> None:
        """Nothing is watched any more."""
        self.model.trace.default.births = None

    def _windows(self) -> dict[tuple[Any, ...], list[WatchedVariable]]:
        """By epoch and kernels the variables that these stand behind."""
        found: dict[tuple[Any, ...], list[WatchedVariable]] = {}
        draws = Counter[int]()
        for collect in self._collects.values():
            for variable in collect.variables:
                draws[id(variable)] += collect.runs
                variable.last = max(variable.last, collect.last)
        for variable in self.variables.values():
            if draws[id(variable)] > 1:
                ran = (use for use in self._uses.values() if self._counts(use, variable))
                found.setdefault((variable.epoch, *ran), []).append(variable)
        return found

    def _counts(self, use: Use, variable: WatchedVariable) -> bool:
        """Whether a kernel ran between the first draw of a variable and the last."""
        if self.in_loop:
            return use.first >= 0
        within = any(variable.first < at <= variable.last for at in (use.first, use.last))
        return within or (0 <= use.first <= variable.first and variable.last < use.last)

    def _unmoved(self, uses: list[Use], epoch: int, variables: list[WatchedVariable]) -> dict[str, list[int]]:
        """By name the choices that nothing moved and that the variables rest on."""
        unmoved = [node for node in _not_selected(self.model, uses) if self._births.get(node, -1) < epoch]
        if not unmoved:
            return {}
        readings = [reading() for variable in variables for reading in variable.readings.values()]
        sources = frozenset[int]().union(*(reading.nodes for reading in readings))
        rests = _Rests(self.model, frozenset(unmoved), sources)
        found: dict[str, list[int]] = {}
        for name, nodes in _by_name(self.model.trace, unmoved).items():
            first = [node for node in nodes[:MOST] if rests.on(node)]
            if first:
                found[name] = nodes if len(first) == MOST else first
        return found

    def _tell(self, name: str, nodes: list[int], unmoved: dict[str, int], held: dict[str, None]) -> None:
        trace = self.model.trace
        forced = trace.default.forced
        count = 0
        for node in nodes:
            if node in forced and equal(forced[node], trace.value(node)):
                held[f"{name}: held at {show(forced[node])}"] = None
            elif len(nodes) > MOST or not _is_certain(self.model, node):
                count += 1
        if count:
            unmoved[name] = max(count, unmoved.get(name, 0))

    def _forget_forced(self) -> None:
        """What a kernel may have moved is no longer as it was forced."""
        forced = self.model.trace.default.forced
        if forced:
            left = set(_not_selected(self.model, [use for use in self._uses.values() if use.first >= 0]))
            for node in [node for node in forced if node not in left]:
                del forced[node]


def _not_selected(model: Model, uses: list[Use]) -> list[int]:
    """The unobserved choices that lie in no block that the kernels may select."""
    scopes = model.trace.scopes
    chosen = [np.zeros(0, np.int64)]
    for use in uses:
        if use.moves is not None:
            chosen.append(np.array(use.moves(Selection(model, use.scope, use.selector)), np.int64))
        elif use.selector.kind not in ("key", "range"):
            if use.scope == "default":
                return []
            if use.scope in scopes:
                chosen.append(scopes[use.scope].array())
        elif use.scope != "default":
            chosen += [np.array(nodes, np.int64) for nodes in Selection(model, use.scope, use.selector).in_order()]
    nodes: list[int] = np.setdiff1d(model.trace.default.array(), np.concatenate(chosen)).tolist()
    return nodes


def _by_name(trace: Trace, nodes: list[int]) -> dict[str, list[int]]:
    """Choices by what a person knows them by; a site of very many goes by the name of one."""
    sites: dict[int, list[int]] = {}
    for node in nodes:
        sites.setdefault(site_of(node), []).append(node)
    found: dict[str, list[int]] = {}
    for alike in sites.values():
        shared = name_of_choice(trace, alike[0]) if len(alike) > MOST else None
        for node in alike:
            found.setdefault(shared or name_of_choice(trace, node), []).append(node)
    return found


def _is_certain(model: Model, node: int) -> bool:
    """Whether a choice has one possible value, given what its distribution reads."""
    try:
        operator, arguments = model.trace.application(node)
        if not isinstance(operator, Random) or operator.support is None:
            return False
        possible = (
            value for value in operator.support(*arguments) if operator.log_density(value, *arguments) > -np.inf
        )
        return len(list(islice(possible, 2))) < 2
    except (VentureError, ArithmeticError, ValueError):
        return False


class _Rests:
    """Whether anything rests on a choice that nothing moved: a collected value, a choice that moved, or one that shares
    evidence with those."""

    def __init__(self, model: Model, unmoved: frozenset[int], sources: frozenset[int]) -> None:
        self.model = model
        self.trace = model.trace
        self.unmoved = unmoved
        self.sources = sources
        # asked again and again
        self._is_touched = cache(self._reads_touched)
        self._is_site_touched = cache(self._has_touched_row)
        self._is_called_by_touched = cache(self._has_touched_key)

    def on(self, node: int) -> bool:
        if not self.sources.isdisjoint((node, self._procedure(node))):
            return True
        if self._is_touched(node) or self._is_selected(node):
            return True
        seen = {node}
        todo = [node]
        while todo:
            unmoved = todo.pop()
            scaffold = self._below(unmoved)
            if scaffold is None:
                continue
            if self._moves_any(scaffold) or self._is_read_elsewhere(unmoved):
                return True
            # what is unmoved below is evidence that nobody gave, and so is what lies below that
            todo.extend(child for child in scaffold.absorbing if child in self.unmoved and child not in seen)
            seen.update(scaffold.absorbing)
        return False

    def _is_selected(self, node: int) -> bool:
        """Whether a choice lies in a memoized family that calls whose key moved may lead to."""
        family = memoized_family(self.trace, node)
        return family is not None and self._is_called_by_touched(family[0], self._memo(*family))

    def _has_touched_key(self, code: Code, memo: Memo) -> bool:
        """Whether a key with which a memoized procedure is called depends on something that moved."""
        trace = self.trace
        rows = [row for row in range(trace.table(code).count) if self._memo(code, row) is memo][:ROWS]
        users = [user for row in rows for user in trace.users.nodes(code, row)[:ROWS]]
        return any(self._is_read_touched(read) for user in users[:ROWS] for read in read_by_density(trace, user))

    def _memo(self, code: Code, row: int) -> Memo:
        memos = self.trace.table(code).memos
        assert memos is not None
        found: Memo = memos[row]
        return found

    def _is_read_elsewhere(self, node: int) -> bool:
        """Whether a choice is read where something that moved may lead: in a branch that is not taken now, or in a
        procedure's body for another key."""
        return bool(self._elsewhere) and not self._elsewhere.isdisjoint((node, self._procedure(node)))

    def _procedure(self, node: int) -> int:
        """The node of the memoized procedure in one of whose families a choice lies, or -1."""
        family = memoized_family(self.trace, node)
        return -1 if family is None else self._memo(*family).node

    @cached_property
    def _elsewhere(self) -> frozenset[int]:
        """What is read there, unmoved choices and procedures in whose families some lie."""
        found: set[int] = set()
        some = set(self.unmoved).union(map(self._procedure, islice(self.unmoved, MOST)))
        for code, table in zip(self.trace.program.codes, self.trace.tables, strict=False):
            ways = [code.first_site + slot for slot in table.edges]
            for row in range(min(table.count, ROWS) if ways else 0):
                if table.live[row]:
                    found.update(*(self._read_by_other_ways(node_at(way, row), some) for way in ways))
        return frozenset(found)

    def _read_by_other_ways(self, node: int, some: set[int]) -> set[int]:
        """What the ways read that an `if` or a call does not take, if what moved decides which it takes and its value
        weighs something."""
        trace = self.trace
        found = read_by_other_ways(trace, node) & some
        if not found or not self._is_decided(node):
            return set()
        code, slot, row = trace.decode(node)
        scaffold = self._below(node)
        is_evidence = trace.tables[code.index].is_observed(slot, row)
        return found if is_evidence or (scaffold is not None and self._moves_any(scaffold)) else set()

    def _below(self, node: int) -> Scaffold | None:
        try:
            return Builder(self.trace).build([node])
        except VentureError:
            return None

    def _moves_any(self, scaffold: Scaffold) -> bool:
        """Whether a choice that reads the principal moved, or depends on one that did."""
        return (
            any(self._moved(child) or self._is_touched(child) for child in scaffold.absorbing)
            or any(map(self._is_site_touched, scaffold.groups))
            or any(maker in self._makers or self._is_touched(maker) for maker in scaffold.makers)
            or any(map(self._moved, self.model.regenerator.choices_that_go(scaffold)))
        )

    def _moved(self, node: int) -> bool:
        return node not in self.unmoved and is_unobserved(self.trace, node)

    def _reads_touched(self, node: int) -> bool:
        """Whether a choice's density depends on one that moved, or its being there does, if it is observed."""
        return any(map(self._is_read_touched, read_by_density(self.trace, node))) or (
            not is_unobserved(self.trace, node) and any(map(self._is_decided, ways_to(self.trace, node)))
        )

    def _is_decided(self, node: int) -> bool:
        """Whether something that moved decides which way an `if` or a call takes."""
        return any(map(self._is_read_touched, decided_by(self.trace, node)))

    def _is_read_touched(self, node: int) -> bool:
        return self._moved(node) or node in self._makers

    def _has_touched_row(self, site: int) -> bool:
        table = self.trace.table(self.trace.program.site_code[site])
        nodes = (node_at(site, row) for row in range(min(table.count, ROWS)) if table.live[row])
        return any(self._moved(node) or self._is_touched(node) for node in nodes)

    @cached_property
    def _makers(self) -> set[int]:
        """Makers one of whose draws moved."""
        trace = self.trace
        moved = (node for node in trace.default.array().tolist() if node not in self.unmoved)
        operators = (trace.application(node)[0] for node in moved if is_maker_application(trace, node))
        return {operator.node for operator in operators if isinstance(operator, Exchangeable)}
