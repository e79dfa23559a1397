"""Worlds: joint draws of choices and data from the program, in columns, and what is read in them.

What a block depends on and what depends on it is cut into runs (`interpreter/runs.py`), parents first; each run is
drawn or computed for many worlds in one call, the choices with evidence like all others. What stays has the trace's
value in every world. A value of N rows in W worlds is an array of N * W entries, the worlds of the first row first; of
a single state, W is 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from venture_lite.blocks.cut_draws import Interval, drawn_between
from venture_lite.blocks.input_names import apart, argument_name, each_number
from venture_lite.blocks.tape import Tape
from venture_lite.errors import KernelError, VentureError
from venture_lite.interpreter.answered_columns import FoundColumns, value_at
from venture_lite.interpreter.application import simulate_anew
from venture_lite.interpreter.explain import apply_checked
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.runs import Places, Run, runs_alike, runs_of
from venture_lite.interpreter.scaffold import Builder, Scaffold, absorbing_rows, is_maker_application
from venture_lite.interpreter.shape import text_of_site
from venture_lite.interpreter.sources import application_nodes, depends_on, reached
from venture_lite.kernels.population import each_of, together, values_of_rows
from venture_lite.procedures.columns import RowByRow, single_numbers
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.straight_line import Node, needed
from venture_lite.program.code import Code, Kind
from venture_lite.trace.nodes import node_at, site_of
from venture_lite.trace.table import Column, column_of, listed
from venture_lite.trace.trace import Trace
from venture_lite.values import equal

Lifted = tuple[bool, ...]
PortKey = str
Box = Mapping[int, Interval]
"""By choice the interval of its free coordinate to which its distribution is cut."""

CALLS_TOLD = 8
"""Of the chain that leads to an error."""
AT_CENTRE = ", with the block at the centre of its frame"
"""Where what is read has no value."""
NAMELESS = ("expression", "sample")
"""What Codes of directives are called that bind no name."""


class Worlds:
    """The values of what moves: by place, (W,) or (W, K). Mutable."""

    def __init__(self, places: Places, count: int) -> None:
        self.places = places
        self.count = count
        self.values: list[Any] = [None] * places.nowhere
        # worlds in which some choice could not be drawn, or some value not be computed, and the first error
        self.failed = np.zeros(count, bool)
        self.errors: list[VentureError] = []

    def copy(self) -> Worlds:
        """The same, whose values may be put elsewhere; a world that fails there fails here."""
        return self.part(slice(None))

    def part(self, chosen: slice | np.ndarray, only: Container[int] | None = None) -> Worlds:
        """Some of the worlds, whose values may be put elsewhere, at all places or only some; of a slice a world that
        fails there fails here."""
        failed = self.failed[chosen]
        found = Worlds(self.places, len(failed))
        found.failed, found.errors = failed, self.errors
        found.values = [
            None if value is None or (only is not None and at not in only) else value[chosen]
            for at, value in enumerate(self.values)
        ]
        return found

    def put(self, places: Iterable[int], columns: np.ndarray) -> None:
        """The values of as many rows as there are places, (N * W,) or (N * W, K)."""
        parts = columns.reshape(-1, self.count, *columns.shape[1:])
        for place, part in zip(places, parts, strict=True):
            self.values[place] = part

    def fail(self, at: int, error: VentureError) -> None:
        self.failed[at % self.count] = True
        if not self.errors:
            self.errors.append(error)

    def of_rows(self, column: Column, rows: Any, places: Any, each: int) -> Any:
        """What `each` rows read in the worlds, of one row or of as many, that stand at some places."""
        stays = places == self.places.nowhere
        # of one place, a number
        if stays is True or (stays is not False and stays.all()):
            return np.repeat(values_of_rows(column, rows), self.count, axis=0)
        if not np.ndim(places) or (places == places[0]).all():
            value = self.values[int(np.ravel(places)[0])]
            return np.broadcast_to(value, (each, *value.shape)).reshape(-1, *value.shape[1:])
        # each value once, those that stay last, and which of them a row reads
        shared, which = np.unique(places, return_inverse=True)
        still = np.flatnonzero(stays)
        table = [self.values[place] for place in shared[: len(shared) - (len(still) > 0)].tolist()]
        which[still] = len(table) + np.arange(len(still))
        last = values_of_rows(column, listed(rows)[still])
        table.extend(np.repeat(last[at : at + 1], self.count, axis=0) for at in range(len(still)))
        if len({(value.dtype, value.shape) for value in table}) == 1:
            found = np.stack(table)[which]
            return found.reshape(-1, *found.shape[2:])
        # values of several kinds
        return column_of([value_at(table[place], world) for place in which.tolist() for world in range(self.count)])


class RunReader:
    """What one run reads, and from it the values of its rows."""

    def __init__(self, model: Model, places: Places, run: Run) -> None:
        self.model, self.run = model, run
        self.tape = tape = Tape(model.trace, run.source.code, run.refs)
        if tape.closures:
            reason = "a procedure that is made anew in each row leads to what the block reads, or what reads it"
            raise KernelError(reason, run.source.code.slots[max(run.source.slot, 0)].span, "mh or gibbs")
        self.own = places.of(run.site, run.rows)
        self._read = []
        for leaf in tape.leaves:
            rows = tape.rows_of(leaf, run.at)
            self._read.append((leaf, rows, places.of(leaf.site, rows)))
        self._nowhere = places.nowhere
        # places of the tape whose values differ between rows or worlds
        moving = {leaf.node.place for leaf, _, at in self._read if not np.all(at == self._nowhere)}
        self.is_choice = isinstance(run.operator, Random)
        self._lifted: set[int] = set()
        for node in needed(tape.outputs):
            if node.place in moving or tape.is_lifted(node) or any(map(self._is_lifted, node.operands)):
                self._lifted.add(node.place)
        self.lifted: Lifted = tuple(map(self._is_lifted, tape.outputs))

    def _is_lifted(self, value: Any) -> bool:
        return value.__class__ is Node and value.place in self._lifted

    def outputs(self, worlds: Worlds) -> list[Any]:
        """What is read, of all rows in all worlds where `lifted` says so, else one value."""
        read = {leaf.node.place: self._leaf(worlds, leaf, rows, at) for leaf, rows, at in self._read}

        def called(node: Node, record: Deterministic, arguments: list[Any]) -> Any:
            site = self.tape.operations.calls[node.place][1]
            return self._called(worlds, record, site, tuple(map(self._is_lifted, node.operands[1:])), arguments)

        values = self.tape.evaluated(lambda leaf: read[leaf.node.place], called)
        return [values[each.place] if each.__class__ is Node else each for each in self.tape.outputs]

    def _leaf(self, worlds: Worlds, leaf: Any, rows: Any, places: Any) -> Any:
        if not self._is_lifted(leaf.node):
            return leaf.column.view[rows]
        return worlds.of_rows(leaf.column, rows, places, len(self.run.rows))

    def _called(self, worlds: Worlds, record: Deterministic, site: int, lifted: Lifted, arguments: list[Any]) -> Any:
        """What a procedure, as applied at a site, gives of all rows in all worlds."""
        program = self.model.trace.program
        span = program.site_code[site].slots[program.site_slot[site]].span
        if True not in lifted:
            return apply_checked(record, tuple(arguments), span)
        found = together(record.columns, lifted, tuple(arguments))
        if found is not None:
            return found
        return self._row_by_row(worlds, lifted, arguments, lambda at, row: apply_checked(record, row, span))

    def _row_by_row(
        self, worlds: Worlds, lifted: Lifted, arguments: Sequence[Any], one: Callable[[int, tuple[Any, ...]], Any]
    ) -> np.ndarray:
        """`one` of each row in each world; where it fails a value of another world stands in. Raises VentureError where
        it fails in all."""
        size = len(self.run.rows) * worlds.count
        found: list[Any] = []
        failed: list[int] = []
        for at, row in enumerate(each_of(lifted, tuple(arguments), size)):
            try:
                found.append(one(at, row))
            except VentureError as error:
                worlds.fail(at, self._located(error, at // worlds.count))
                failed.append(at)
                found.append(None)
                if len(failed) == size:
                    raise worlds.errors[0] from None
        if failed:
            stand_in = next(value for at, value in enumerate(found) if at not in set(failed))
            for at in failed:
                found[at] = stand_in
        return column_of(found)

    def _located(self, error: VentureError, row: int) -> VentureError:
        """An error met in a row, with the calls that lead to what reads there."""
        source, trace = self.run.source, self.model.trace
        return error.at(*trace.place(source.code, source.slot, int(self.run.at[row]), CALLS_TOLD))

    def outside(self) -> Iterator[Column]:
        """Columns of what is read and does not move, values that are weighed included."""
        if np.any(self.own == self._nowhere):
            yield self.model.trace.column(self.run.site)
        for leaf, _, at in self._read:
            if np.any(at == self._nowhere):
                yield leaf.column

    def set(self, worlds: Worlds, box: Box | None = None) -> None:
        """Draw choices from their distributions, or compute values."""
        if self.is_choice:
            self.draw(worlds, box or {})
        else:
            self.renew(worlds)

    def values(self, worlds: Worlds) -> np.ndarray:
        """Of all rows: those of the worlds, or the trace's where they stay."""
        if np.all(self.own == worlds.places.nowhere):
            return np.repeat(
                values_of_rows(self.model.trace.column(self.run.site), self.run.rows), worlds.count, axis=0
            )
        return np.concatenate([worlds.values[place] for place in self.own.tolist()])

    def draw(self, worlds: Worlds, box: Box) -> None:
        """Choices, from their distributions, some of them cut."""
        record, arguments = self.run.operator, self.outputs(worlds)
        assert isinstance(record, Random)
        size = len(self.run.rows) * worlds.count
        drawn = self._drawn(worlds, record, size, arguments)
        for row, node in enumerate(self.run.nodes):
            if node in box:
                of_row = slice(row * worlds.count, (row + 1) * worlds.count)
                own = [x[of_row] if up else x for x, up in zip(arguments, self.lifted, strict=True)]
                drawn[of_row] = self._cut(worlds, record, row, own, box[node])
        worlds.put(self.own.tolist(), drawn)

    def _cut(self, worlds: Worlds, record: Random, row: int, arguments: list[Any], interval: Interval) -> np.ndarray:
        """The draws of one row; a world where there is no probability in the interval fails."""
        found = drawn_between(self.model.trace.rng, record, worlds.count, arguments, interval)
        failed = np.isnan(found)
        if failed.all():
            raise self._located(VentureError(f"{record.name}: no world has a value in the box"), row)
        for at in np.flatnonzero(failed).tolist():
            worlds.fail(at, self._located(VentureError(f"{record.name}: there is no value in the box"), row))
        found[failed] = found[~failed][0]
        return found

    def _drawn(self, worlds: Worlds, record: Random, size: int, arguments: list[Any]) -> np.ndarray:
        trace = self.model.trace
        if record.simulate_columns is not None and self._fit(record, arguments):
            given = [*arguments, *[each.default for each in record.arguments[len(arguments) :]]]
            try:
                if record.item_log_densities is not None:
                    single_numbers(self.lifted, tuple(arguments))
                return record.simulate_columns(trace.rng, size, *given)
            except RowByRow:
                pass
        nodes = [node_at(self.run.site, row) for row in self.run.rows.tolist()]

        def one(at: int, row: tuple[Any, ...]) -> Any:
            return simulate_anew(trace, nodes[at // worlds.count], record, row)

        return self._row_by_row(worlds, self.lifted, arguments, one)

    def _fit(self, record: Random, arguments: list[Any]) -> bool:
        given = zip(record.arguments, arguments, self.lifted, strict=False)
        return all((each.domain.contains_all if up else each.domain.contains)(x) for each, x, up in given)

    def renew(self, worlds: Worlds) -> None:
        """Computed values; what the worlds do not hold, nothing in them reads."""
        if not np.ndim(self.own):
            return
        outputs = self.outputs(worlds)
        if self.run.operator is None:
            value, lifted = outputs[0], self.lifted[0]
        else:
            value = self._called(worlds, self.run.operator, self.run.site, self.lifted, outputs)
            lifted = True in self.lifted
        if not lifted:
            value = column_of([value] * (len(self.run.rows) * worlds.count))
        worlds.put(self.own.tolist(), value)


class WorldMaker:
    """Draws the choices that some nodes depend on, and these nodes with them."""

    def __init__(self, model: Model, nodes: Iterable[int]) -> None:
        self.model = model
        moving = _moving(model.trace, nodes)
        runs = runs_of(model.trace, moving)
        self.places = Places(runs)
        self._readers = [RunReader(model, self.places, run) for run in runs]
        # of a run
        self.most_rows = max(len(run.rows) for run in runs)
        # what is drawn from its distribution cut to an interval
        self.box: Box = {}

    def draw(self, count: int, rng: np.random.Generator) -> Worlds:
        """So many worlds. Raises VentureError where some choice cannot be drawn in the first of them."""
        trace, worlds = self.model.trace, Worlds(self.places, count)
        before, trace.rng = trace.rng, rng
        try:
            with np.errstate(all="ignore"):
                for reader in self._readers:
                    self.model.poll()
                    reader.set(worlds, self.box)
        finally:
            trace.rng = before
        answers, key = self.model.answers, ("worlds", *dict.fromkeys(reader.run.site for reader in self._readers))
        if answers.due(key):
            # proposals that are learned from worlds are weighed by the interpreter's densities, whatever these are
            answers.judge(key, "worlds of the prior", self._difference(worlds))
        return worlds

    def _difference(self, worlds: Worlds) -> str | None:
        """What the interpreter makes otherwise of a few values in a few worlds."""
        columns: dict[int, np.ndarray] = {}
        computed: list[int] = []
        arguments: dict[int, Callable[[int], list[Any]]] = {}
        for reader in self._readers:
            nodes = reader.run.nodes
            columns.update(zip(nodes, map(worlds.values.__getitem__, reader.own.tolist()), strict=True))
            if not reader.is_choice:
                computed += nodes
                continue
            given = list(zip(reader.outputs(worlds), reader.lifted, strict=True))
            for row, node in enumerate(nodes):
                arguments[node] = partial(_given_at, given, row * worlds.count)
        failed = np.flatnonzero(worlds.failed).tolist()
        return FoundColumns(self.model, worlds.count, columns, computed, arguments, failed=failed).difference()


def _given_at(given: list[tuple[Any, bool]], start: int, world: int) -> list[Any]:
    """The arguments of a row in a world, of those of all rows in all worlds."""
    return [value_at(x, start + world) if up else x for x, up in given]


def all_above(trace: Trace, nodes: Iterable[int]) -> Iterator[int]:
    """Some nodes with all that they depend on."""

    def above(node: int) -> list[int]:
        is_choice = trace.is_choice(*trace.decode(node))
        return application_nodes(trace, node) if is_choice else depends_on(trace, node)

    return reached(nodes, above)


def _moving(trace: Trace, nodes: Iterable[int]) -> list[int]:
    """Some nodes with all above them that differs between worlds: choices, and what is computed from them.

    Raises KernelError where what exists, or which family a call leads to, depends on a choice among them.
    """
    every = list(all_above(trace, nodes))
    choices = [node for node in every if trace.is_choice(*trace.decode(node))]
    scaffold = Builder(trace).build(choices)
    for node in every:
        if node in scaffold.structural or is_maker_application(trace, node):
            code, slot, row = trace.decode(node)
            reason = "what exists around the block, or the statistics that it is drawn from, depends on choices"
            raise KernelError(reason, code.slots[slot].span, "mh or gibbs", trace.call_chain(code, slot, row))
    return [node for node in every if node in scaffold.principals or node in scaffold.pending]


class SiteNames:
    """The sites of a program by the name that is bound to where they stand and their text, with a number behind all but
    the first of these alike: the same in every session that runs the same program, where the sites' own numbers are
    not, and whatever else the program assumes."""

    def __init__(self, model: Model) -> None:
        self._program = model.trace.program
        self._version = -1
        self._names: list[str] = []

    def of(self, site: int) -> str:
        if self._version != self._program.version or site >= len(self._names):
            program, seen = self._program, Counter[tuple[str, Kind | None]]()
            self._names = []
            for each, code in enumerate(program.site_code):
                if program.site_slot[each] < 0:
                    # room for a slot that never came
                    self._names.append("")
                    continue
                # constants have the text of what they stand in
                text, kind = text_of_site(program, each), code.slots[program.site_slot[each]].kind
                text = f"{owner}: {text}" if (owner := _directive_of(code).name) not in NAMELESS else text
                # choices are told apart whether or not the text says which distribution they are of
                role = None if kind.may_draw else kind
                seen[text, role] += 1
                self._names.append(text if seen[text, role] == 1 else f"{text} ({seen[text, role]})")
            self._version = self._program.version
        return self._names[site]


def _directive_of(code: Code) -> Code:
    while code.parent is not None:
        code = code.parent
    return code


def names_of(model: Model, block: Iterable[int]) -> tuple[str, ...]:
    """The sites of a block's choices, by name."""
    names = model.kept.lasting(SiteNames, model)
    return tuple([names.of(site_of(node)) for node in block])


def port_key(name: str, operator: Any) -> PortKey:
    """What a network knows the choices of a site by, whatever their rows."""
    return f"{name}: {operator.name}"


class Port:
    """The choices of one site that read a block, in like ways: each gives one row of inputs."""

    def __init__(self, reader: RunReader) -> None:
        self.reader = reader
        run = reader.run
        (name,) = names_of(reader.model, run.nodes[:1])
        self.key = port_key(name, run.operator)

    def rows(self, worlds: Worlds) -> np.ndarray:
        """(W, N, F): the values of the choices, and their arguments."""
        reader, count = self.reader, worlds.count
        size = len(reader.run.rows)
        inputs = [_numbers(reader, reader.values(worlds))]
        inputs += [x for _, x in _spread(reader.outputs(worlds), reader.lifted, size * count)]
        flat = [np.asarray(x, dtype=np.float64).reshape(size, count, -1) for x in inputs]
        return np.concatenate(flat, axis=2).swapaxes(0, 1)

    def number_names(self, worlds: Worlds) -> tuple[str, ...]:
        """What each of the numbers of a row is."""
        reader = self.reader
        parts = [("value", _numbers(reader, reader.values(worlds)))]
        given = _spread(reader.outputs(worlds), reader.lifted, len(reader.run.rows) * worlds.count)
        parts += [(argument_name(reader.run.operator, at), x) for at, x in given]
        return tuple(each_number([name for name, _ in parts], [_width(x) for _, x in parts]))


def _width(column: np.ndarray) -> int:
    """How many numbers each entry is."""
    return int(np.prod(column.shape[1:]))


def _numbers(reader: RunReader, values: np.ndarray) -> np.ndarray:
    """Values as numbers: of symbols and the like, a column for each value that they can have."""
    if (numbers := _plain_numbers(values)) is not None:
        return numbers
    if isinstance(values[0], tuple):
        # evidence may be written as a list where draws are vectors
        return np.array(values.tolist(), np.float64)
    trace = reader.model.trace
    operator, arguments = trace.application(node_at(reader.run.site, int(reader.run.rows[0])))
    assert isinstance(operator, Random)
    support = operator.support(*arguments) if operator.support is not None else ()
    return np.array([[equal(value, other) for other in support] for value in values], np.float64)


def _plain_numbers(values: np.ndarray) -> np.ndarray | None:
    """Numbers and truth values, also side by side; None where there are others."""
    if values.dtype == object and all(isinstance(value, (int, float)) for value in values.tolist()):
        return values.astype(np.float64)
    return values if values.dtype.kind in "fbiu" else None


def _spread(outputs: Sequence[Any], lifted: Lifted, size: int) -> Iterator[tuple[int, np.ndarray]]:
    """What is read, as numbers, of each row, with its position: lists and names have none."""
    for at, (value, up) in enumerate(zip(outputs, lifted, strict=True)):
        if up and (numbers := _plain_numbers(value)) is not None:
            yield at, numbers
        elif not up and (isinstance(value, (int, float)) or getattr(value, "dtype", None) == np.float64):
            yield at, np.repeat(np.asarray(value, dtype=np.float64)[None], size, axis=0)


@dataclass(frozen=True, slots=True)
class Features:
    """What a network reads of W examples."""

    # (W, I)
    fixed: np.ndarray
    # key of a port -> (W, N, F)
    ports: dict[PortKey, np.ndarray]
    # key of a port -> (W, S), derivatives of its density
    slopes: dict[PortKey, np.ndarray] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many numbers."""
        return self.fixed.size + sum(part.size for part in (*self.ports.values(), *self.slopes.values()))

    def equal(self, other: Features) -> bool:
        """Whether all numbers are the same."""
        mine, its = [[x.fixed, *x.ports.values(), *x.slopes.values()] for x in (self, other)]
        return len(mine) == len(its) and all(map(np.array_equal, mine, its))

    def joined(self, inputs: np.ndarray, slopes: dict[PortKey, np.ndarray]) -> Features:
        """With more fixed inputs (W, J)."""
        return Features(np.concatenate((self.fixed, inputs), axis=1), self.ports, self.slopes | slopes)


Centre = Callable[[RunReader, list[Any]], np.ndarray]
"""(choices, their arguments) -> the values at which they are put, (N * W,) or (N * W, K)."""

Meet = Callable[[RunReader, list[Any]], None]
"""Is told choices, and their arguments."""


class Blanket:
    """What a block's conditional distribution depends on, read with the block at a centre: its own arguments, and
    for each port one row for each choice that reads it (Liang et al. 2021, section 3: the Markov blanket).

    With the places of worlds it is read in these, with none in the state that the trace is in.
    """

    def __init__(self, model: Model, block: Sequence[int], places: Places | None = None) -> None:
        trace = model.trace
        self.model, self.block = model, list(block)
        self.stamp = trace.structure_stamp()
        scaffold = Builder(trace).build(block)
        self._refuse(scaffold)
        runs = runs_of(trace, [*block, *scaffold.pending])
        self.places = Places(runs) if places is None else places
        # parents first
        self._readers = [RunReader(model, self.places, run) for run in runs]
        self.choices = [reader for reader in self._readers if reader.is_choice]
        children = runs_alike(trace, [node for node in absorbing_rows(trace, scaffold) if node not in block])
        self.ports = [Port(RunReader(model, self.places, run)) for run in children]
        self._outside: list[Column] | None = None

    def holds(self) -> bool:
        """Whether edges and readers are as they were."""
        return self.stamp == self.model.trace.structure_stamp()

    def _refuse(self, scaffold: Scaffold) -> None:
        trace = self.model.trace
        odd = (node for node in scaffold.absorbing if is_maker_application(trace, node))
        for node in (*scaffold.structural, *scaffold.makers, *scaffold.brush, *odd):
            place = trace.decode(node) if isinstance(node, int) else trace.decode(self.block[0])
            reason = "what exists, or statistics that are kept, depend on the block"
            raise KernelError(reason, place[0].slots[place[1]].span, "mh or gibbs")

    def placed(self, put: Centre, worlds: Worlds | None = None, meet: Meet | None = None) -> Worlds:
        """Worlds, or the state that the trace is in, with the block elsewhere, and what is computed from it there.
        `meet` is told the choices of the block with what they read."""
        there = Worlds(self.places, 1) if worlds is None else worlds.copy()
        for reader in self._readers:
            if not reader.is_choice:
                reader.renew(there)
                continue
            arguments = reader.outputs(there)
            if meet is not None:
                meet(reader, arguments)
            there.put(reader.own.tolist(), put(reader, arguments))
        return there

    def read(
        self,
        put: Centre,
        worlds: Worlds | None = None,
        choices: Container[int] | None = None,
        keys: Container[PortKey] | None = None,
        also_meet: Meet = lambda reader, arguments: None,
        then: Callable[[Worlds], None] = lambda there: None,
    ) -> Features:
        """In worlds, or as the trace stands, with the block where `put` puts it: the arguments of all of its choices or
        of some, and the rows of all ports or of some. `then` is told the worlds with the block there. Raises
        VentureError where what reads the block has no value at all."""
        fixed: list[np.ndarray] = []

        def meet(reader: RunReader, arguments: list[Any]) -> None:
            also_meet(reader, arguments)
            size = len(reader.run.rows)
            if choices is None or reader.run.nodes[0] in choices:
                given = _spread(arguments, reader.lifted, size * count)
                parts = [x.astype(np.float64).reshape(size, count, -1).swapaxes(0, 1) for _, x in given]
                fixed.extend(part.reshape(count, -1) for part in parts)

        count = 1 if worlds is None else worlds.count
        try:
            there = self.placed(put, worlds, meet)
            rows = self._rows(there, keys)
            then(there)
        except VentureError as error:
            error.message += AT_CENTRE
            raise
        return Features(np.concatenate(fixed, axis=1) if fixed else np.zeros((count, 0)), rows)

    def argument_names(self, put: Centre, worlds: Worlds, choices: Container[int] | None = None) -> list[str]:
        """What the inputs are that `read` has beside the rows of ports."""
        found: list[str] = []

        def meet(reader: RunReader, arguments: list[Any]) -> None:
            if choices is None or reader.run.nodes[0] in choices:
                size = len(reader.run.rows)
                own = apart(names_of(self.model, reader.run.nodes))
                for at, x in _spread(arguments, reader.lifted, size * worlds.count):
                    name = argument_name(reader.run.operator, at)
                    found.extend(each_number([f"{name} of {each}" for each in own], [_width(x)] * size))

        self.placed(put, worlds, meet)
        return found

    def _rows(self, there: Worlds, keys: Container[PortKey] | None) -> dict[PortKey, np.ndarray]:
        """Of all ports or of some: those of procedures with one name at one site together, where they are as long."""
        found: dict[PortKey, np.ndarray] = {}
        for port in self.ports:
            if keys is not None and port.key not in keys:
                continue
            rows = port.rows(there)
            before = found.setdefault(port.key, rows)
            if before is not rows and before.shape[2] == rows.shape[2]:
                found[port.key] = np.concatenate((before, rows), axis=1)
        return found

    def set(self, worlds: Worlds) -> None:
        """Draw the block from the prior, and compute what is computed from it."""
        for reader in self._readers:
            reader.set(worlds)

    def stamps(self) -> tuple[int, ...]:
        """Of what is read outside of the block: equal ones mean that it is the same."""
        if self._outside is None:
            readers = [*self._readers, *(port.reader for port in self.ports)]
            found = {id(column): column for reader in readers for column in reader.outside()}
            self._outside = list(found.values())
        return tuple([column.stamp for column in self._outside])
