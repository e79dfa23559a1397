"""Chains of finite choices: all terms of their density as numbers, and a draw of the whole block.

Two choices of a block are neighbours where a density reads both: a state's own, which reads the state before, or that
of what absorbs. Where no density reads three, nobody has more than two neighbours and nothing goes round, the block is
so many chains, of which those of one choice are the simplest. What reads the choices is found in the trace
(`interpreter/cones.py`); each kind of term is one function call over all states and candidates (`kernels/lanes.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.distributions import name_of
from venture_lite.blocks.filtering import ChainTerms, drawn_paths, on_possible_paths
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.answered_columns import FAILED
from venture_lite.interpreter.candidates import MOST_CANDIDATES
from venture_lite.interpreter.cones import Cone, Cones
from venture_lite.interpreter.impossible import REJECTING
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.sources import computed_from, source_value
from venture_lite.kernels.lanes import FoundFamilies, LaneGroup, groups_of, write_choices, write_computed
from venture_lite.kernels.population import ColumnChoice
from venture_lite.procedures.record import Random
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import column_of
from venture_lite.values import equal, key_of

HINT = "gibbs without 'forward, or pgibbs over ordered blocks"
POSITIONS = frozenset(("categorical", "weighted_categorical", "softmax_categorical"))
"""Distributions over positions from 0, of which the first parameter has one number each; the second, where there is
one, is the values that stand for positions."""
BINARY = frozenset(("bernoulli", "flip"))


@dataclass(slots=True)
class _Length:
    """Chains of about one length, side by side. Mutable while terms are added."""

    # the choices of each
    paths: list[list[int]]
    terms: ChainTerms


@dataclass(slots=True)
class _Placed:
    """Cones that are evaluated together, with where their terms belong. Mutable: it remembers what it saw last."""

    group: LaneGroup
    # of each choice of the cones: the candidates, lane by lane
    columns: list[np.ndarray]
    lanes: int
    # which chains of one length, which of them (N,), and the position of the first choice of each cone (N,)
    length: int
    chains: np.ndarray
    at: np.ndarray
    # the shape of a term: one candidate, or one of each of two choices; whether the later one comes first
    shape: tuple[int, ...]
    is_reversed: bool
    are_distinct: bool
    # the arguments for which supports were looked at last
    seen: list[Any] = field(default_factory=list)


_Failed = tuple[_Placed, dict[int, VentureError]]
"""Cones, and the first error of each lane that met one."""


def chain_paths(model: Model, nodes: Sequence[int]) -> list[list[int]]:
    """The chains that choices of any support are, each from one end to the other.

    Raises KernelError where the block is none, with the place where that shows.
    """
    return _paths(model, Cones(model.trace, nodes, partial(refused, model)), nodes)


def refused(model: Model, node: int, reason: str, hint: str | None = None) -> KernelError:
    found = KernelError(f"'forward draws chains of finite states, and {reason}", hint=hint or HINT)
    return found.at(*model.trace.place(*model.trace.decode(node)))


def _refuse_distributions(model: Model, nodes: Sequence[int]) -> None:
    for node in nodes:
        operator, _ = model.trace.application(node)
        if isinstance(operator, Exchangeable):
            raise refused(model, node, f"draws of {name_of(operator)} depend on one another")
        if operator.support is None:
            raise refused(model, node, f"{name_of(operator)} has no finite support", "mh, or nuts")


def _paths(model: Model, cones: Cones, nodes: Sequence[int]) -> list[list[int]]:
    """The chains, each from one end to the other, in the order of the choices."""
    neighbours: dict[int, dict[int, None]] = {node: {} for node in nodes}
    for cone in cones.weighed:
        for one in cone.choices:
            neighbours[one].update((other, None) for other in cone.choices if other != one)
            if len(neighbours[one]) > 2:
                raise refused(model, cone.node, "this makes a state the neighbour of more than two others")
    found, seen = [], set[int]()
    for end in (node for node in nodes if len(neighbours[node]) < 2):
        path = [] if end in seen else [end]
        while path and (onward := [node for node in neighbours[path[-1]] if path[-2:-1] != [node]]):
            path += onward
        seen.update(path)
        found += [path] if path else []
    if len(seen) < len(neighbours):
        raise refused(model, next(node for node in nodes if node not in seen), "these go round in a circle")
    return found


class StateChains:
    """The chains that a block is made of, as of a state of the trace's structure.

    Raises KernelError where the block is none, with the place where that shows.
    """

    def __init__(self, model: Model, nodes: Sequence[int]) -> None:
        self.model = model
        self._nodes = list(nodes)
        _refuse_distributions(model, nodes)
        self._cones = cones = Cones(model.trace, nodes, self._refused)
        self.paths = _paths(model, cones, nodes)
        self._families = FoundFamilies(model, cones.moving, self._refused)
        # what is computed from the choices, one lane for each cone, and which of the choices each reads (N, n)
        self._writes: list[tuple[LaneGroup, np.ndarray]] = []
        self._candidates: dict[int, list[Any]] = {}
        self._placed: list[_Placed] = []
        self._lengths: list[_Length] = []
        # densities weighed in one draw
        self.rows = 0

    def _refused(self, node: int, reason: str, hint: str | None = None) -> KernelError:
        return refused(self.model, node, reason, hint)

    # --------------------------------------------------------------------------------------------- candidates

    def _prepare(self) -> None:
        """Find the candidates of each choice, and what evaluates all terms for them."""
        own = [cone for cone in self._cones.weighed if cone.node in self._cones.moving.every]
        if not self._candidates:
            self._candidates = {cone.node: self._present_support(cone.node) for cone in own}
        placed: list[_Placed] = []
        grows = True
        while grows:
            self._refuse_many()
            self._lengths = self._padded()
            placed = self._place(own)
            for each in placed:
                each.group.run(each.columns, each.lanes)
            grows = self._grow(placed)
        others = [cone for cone in self._cones.weighed if cone.node not in self._cones.moving.every]
        self._placed = [*placed, *self._place(others)]
        self.rows = sum(each.lanes for each in self._placed)
        writes = groups_of(self.model, self._cones.computed, self._cones.moving, self._families, {})
        number = {node: place for place, node in enumerate(self._nodes)}
        self._writes = [
            (group, np.array([[number[node] for node in cone.choices] for cone in group.cones])) for group in writes
        ]

    def _present_support(self, node: int) -> list[Any]:
        operator, arguments = self.model.trace.application(node)
        assert isinstance(operator, Random)
        return _support(operator, arguments)

    def _refuse_many(self) -> None:
        sizes = {node: len(values) for node, values in self._candidates.items()}
        for cone in self._cones.weighed:
            if np.prod([sizes[node] for node in cone.choices], dtype=float) > MOST_CANDIDATES:
                raise self._refused(cone.node, f"this has more than {MOST_CANDIDATES:,} candidates", "pgibbs")

    def _padded(self) -> list[_Length]:
        """Chains by length, those together of which none is more than twice as long as another."""
        by_length: dict[int, list[list[int]]] = {}
        for path in self.paths:
            by_length.setdefault(len(path).bit_length() if len(path) > 1 else 0, []).append(path)
        return [_Length(paths, self._empty(paths)) for paths in by_length.values()]

    def _empty(self, paths: list[list[int]]) -> ChainTerms:
        lengths = np.array([len(path) for path in paths])
        sizes = np.ones((len(paths), lengths.max()), np.int64)
        for chain, path in enumerate(paths):
            sizes[chain, : len(path)] = [len(self._candidates[node]) for node in path]
        return ChainTerms.of(lengths, sizes)

    def _place(self, cones: Iterable[Cone]) -> list[_Placed]:
        """Cones in groups, with the candidates of their choices and where their terms belong."""
        place = {
            node: (length, chain, at)
            for length, part in enumerate(self._lengths)
            for chain, path in enumerate(part.paths)
            for at, node in enumerate(path)
        }
        sizes = {node: len(values) for node, values in self._candidates.items()}
        by_length: dict[tuple[int, bool], list[Cone]] = {}
        for cone in cones:
            ats = [place[node][2] for node in cone.choices]
            by_length.setdefault((place[cone.choices[0]][0], ats != sorted(ats)), []).append(cone)
        found = []
        for (length, is_reversed), like in by_length.items():
            for group in groups_of(self.model, like, self._cones.moving, self._families, sizes):
                firsts = [min(place[node][1:] for node in cone.choices) for cone in group.cones]
                shape = tuple(sizes[node] for node in group.cones[0].choices)
                columns = [self._column(group, which, shape) for which in range(len(shape))]
                chains, at = np.array(firsts).T
                lanes = len(group.cones) * int(np.prod(shape))
                are_distinct = len(set(firsts)) == len(firsts)
                found.append(_Placed(group, columns, lanes, length, chains, at, shape, is_reversed, are_distinct))
        return found

    def _column(self, group: LaneGroup, which: int, shape: tuple[int, ...]) -> np.ndarray:
        """The candidates of one choice of each cone, lane by lane."""
        inner, outer = int(np.prod(shape[which + 1 :])), int(np.prod(shape[:which]))
        values = [
            value
            for cone in group.cones
            for value in outer * [value for value in self._candidates[cone.choices[which]] for _ in range(inner)]
        ]
        return column_of(values)

    def _grow(self, placed: Iterable[_Placed]) -> bool:
        """Take in the values that choices can have given what others could be; whether there are new ones."""
        grows = False
        for each in placed:
            weighed = each.group.weighed
            assert weighed is not None
            if _is_same(each.seen, weighed.seen):
                continue
            each.seen = list(weighed.seen)
            for cone, values in zip(each.group.cones, _supports(weighed, len(each.group.cones)), strict=True):
                known = self._candidates[cone.node]
                if not equal(tuple(values), tuple(known)):
                    keys = set(map(key_of, known))
                    new = [value for value in values if key_of(value) not in keys]
                    known.extend(new)
                    grows = grows or bool(new)
        return grows

    # ------------------------------------------------------------------------------------------------ drawing

    def draw(self) -> bool:
        """Draw all choices from their joint conditional distribution, within a transaction; whether any changed."""
        if not self._placed:
            self._prepare()
        failed = self.weigh()
        if failed is None:
            # what choices could be has changed with what their distributions read
            self._candidates.clear()
            self._prepare()
            failed = self.weigh() or []
        self.model.poll()
        rng, trace = self.model.trace.rng, self.model.trace
        self._leave_out(failed)
        drawn: dict[int, Any] = {}
        for length in self._lengths:
            paths = drawn_paths(length.terms, rng.random(length.terms.single.shape[:2]))
            for nodes, path in zip(length.paths, paths.tolist(), strict=True):
                drawn.update((node, self._candidates[node][place]) for node, place in zip(nodes, path, strict=False))
        values = [drawn[node] for node in self._nodes]
        pairs = zip(values, map(trace.value, self._nodes), strict=True)
        changed = np.array([value is not old and not equal(value, old) for value, old in pairs])
        self._write(values, changed)
        return bool(changed.any())

    def weigh(self) -> list[_Failed] | None:
        """Evaluate all terms; the lanes that met errors. None where a choice could be what is no candidate."""
        for length in self._lengths:
            length.terms.clear()
        own = [each for each in self._placed if each.group.weighed is not None]
        failed: list[_Failed] = []
        for each in own:
            self._add(each, failed)
        if self._grow(own):
            return None
        for each in self._placed:
            if each.group.weighed is None:
                self._add(each, failed)
        return failed

    def _add(self, each: _Placed, failed: list[_Failed]) -> None:
        """Evaluate some terms, and add them."""
        group, terms = each.group, self._lengths[each.length].terms
        found, _ = group.run(each.columns, each.lanes)
        for values, count in zip(found, group.counts, strict=True):
            impossible = values == -np.inf
            if group.observed:
                values = values * self.model.regenerator.power
            counts = np.where(impossible, float(count), 0.0) if impossible.any() else None
            values = values if counts is None else np.where(impossible, 0.0, values)
            self._put(terms, each, values, counts)
        if group.failures:
            failed.append((each, dict(group.failures)))

    @staticmethod
    def _put(terms: ChainTerms, each: _Placed, values: np.ndarray, counts: np.ndarray | None) -> None:
        """Add terms that stand lane by lane."""

        def shaped(lanes: np.ndarray) -> np.ndarray:
            found = lanes.reshape(len(each.chains), *each.shape)
            return found.swapaxes(-1, -2) if each.is_reversed else found

        terms.add(each.chains, each.at, shaped(values), None if counts is None else shaped(counts), each.are_distinct)

    def _leave_out(self, failed: list[_Failed]) -> None:
        """Leave out lanes that met errors. Raises the error of one that nothing else makes impossible: then the program
        is wrong there, as it is for a candidate of `gibbs`."""
        marks = []
        for each, errors in failed:
            terms = self._lengths[each.length].terms
            single, double = on_possible_paths(terms)
            possible = (single if len(each.shape) == 1 else double)[each.chains, each.at]
            possible = possible[(slice(None), *map(slice, each.shape[:: -1 if each.is_reversed else 1]))]
            lanes = (possible.swapaxes(-1, -2) if each.is_reversed else possible).ravel()
            for lane, error in errors.items():
                if lanes[lane] and not isinstance(error, REJECTING):
                    raise error
            marks.append(np.zeros(each.lanes))
            marks[-1][list(errors)] = np.inf
        for (each, _), counts in zip(failed, marks, strict=True):
            self._put(self._lengths[each.length].terms, each, np.zeros(each.lanes), counts)

    # ------------------------------------------------------------------------------------------------ writing

    def _write(self, values: list[Any], changed: np.ndarray) -> None:
        """Give the trace the choices that changed, and what is computed from them."""
        trace = self.model.trace
        left: list[Any] = []
        if changed.any():
            places = np.flatnonzero(changed).tolist()
            write_choices(trace, [self._nodes[place] for place in places], [values[place] for place in places])
            for group, reads in self._writes:
                moves = changed[reads].any(axis=1)
                if moves.any():
                    left += self._write_group(group, [values_at.tolist() for values_at in reads.T], values, moves)
            for node in self._cones.late:
                source = computed_from(trace, node)
                if source is not None and not trace.is_borrowed(node):
                    trace.put(node, source_value(trace, source))
        self._families.let_go(left)

    def _write_group(self, group: LaneGroup, reads: list[list[int]], values: list[Any], moves: np.ndarray) -> list[Any]:
        """Give the nodes of like cones their values; the families that lost a user."""
        columns = [column_of([values[place] for place in places]) for places in reads]
        _, population = group.run(columns, len(group.cones))
        for lane, error in group.failures.items():
            if moves[lane]:
                raise error
        return write_computed(self.model.trace, group, population, self._cones.moving.keyed, moves)


def _is_same(before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Whether arguments are the ones that were looked at."""
    return len(before) == len(now) and all(
        one is other or (type(one) is type(other) and np.array_equal(one, other))
        for one, other in zip(before, now, strict=True)
    )


def _support(operator: Random, arguments: Sequence[Any]) -> list[Any]:
    """What a choice could be, given arguments; impossible values among them where it then depends on less."""
    if operator.name in POSITIONS and all(x is None for x in arguments[1:]):
        return list(range(len(arguments[0])))
    if operator.name in BINARY and not isinstance(arguments[0], np.ndarray):
        return [False, True]
    assert operator.support is not None
    return list(operator.support(*arguments))


def _supports(weighed: ColumnChoice, count: int) -> list[list[Any]]:
    """What each of `count` choices could be, given the arguments that it has in any lane."""
    record, arguments, lifted = weighed.record, weighed.seen, weighed.lifted_arguments
    if not any(lifted):
        return [_support(record, arguments)] * count
    first = arguments[0]
    if lifted[0] and not any(lifted[1:]) and first.dtype != object:
        if record.name in POSITIONS and first.ndim == 2 and all(x is None for x in arguments[1:]):
            return [list(range(first.shape[1]))] * count
        if record.name in BINARY and first.ndim == 1:
            return [[False, True]] * count
    known: dict[Any, list[Any]] = {}
    found = []
    lanes = next(len(x) for x, up in zip(arguments, lifted, strict=True) if up)
    for of_choice in np.array_split(np.arange(lanes), count):
        values: dict[Any, Any] = {}
        for lane in of_choice.tolist():
            given = weighed.arguments_at(lane)
            key = () if any(x is FAILED for x in given) else tuple(map(key_of, given))
            if key not in known:
                known[key] = _support(record, given) if key and weighed.trace.valid[record](*given) else []
            values.update((key_of(value), value) for value in known[key])
        found.append(list(values.values()))
    return found
