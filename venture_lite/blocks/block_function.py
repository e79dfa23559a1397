"""A block's log density and its gradient as one function of numbers, where the block and what weighs it are few.

Called row by row, a regression on fourteen data spends most of a gradient between its rows. Here the operations of all
rows, in the order in which both passes make them (`moving.py`, `passes.py`), are recorded together, equal ones once,
and printed as one text. What does not depend on the block is computed before, once for as long as it stands. The
function moves nothing: the trace is where it was. Where a number on the way is not finite, an argument is outside its
domain, or anything fails, it says nothing, and the passes over rows say what is right.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from venture_lite.blocks.moving import BlockState, RowKind
from venture_lite.interpreter.weights import NARROW
from venture_lite.procedures.derivatives import recorded_slopes
from venture_lite.procedures.functions.arithmetic import ADD, DIVIDE, MULTIPLY, SUBTRACT
from venture_lite.procedures.pullbacks import ElementwisePullback
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.straight_line import SCALAR_NAMES, Node, Recording, needed, recordable, text_of
from venture_lite.procedures.transforms import Elementwise
from venture_lite.trace.table import Column, listed, one_of
from venture_lite.trace.trace import Trace

MOST_ROWS = 64
"""Rows that move and rows that weigh them, of which a function is made: about as many are as fast over columns."""
NUMBERS = (float, int, bool)
ANY_NUMBER = "-inf < {x} < inf"
"""The test of a domain that all finite numbers are in."""
ARITHMETIC = (ADD, SUBTRACT, MULTIPLY, DIVIDE)
"""What makes no number of what is none."""

FAILURES = (TypeError, ValueError, ArithmeticError)
"""What a function may raise where it has no value."""

# what has no value is an error here, and left to the passes over rows
NAMES: Final[dict[str, Any]] = SCALAR_NAMES | {
    "exp": math.exp, "log": math.log, "log1p": math.log1p, "sqrt": math.sqrt, "inf": math.inf, "nan": math.nan,
}  # fmt: skip

MOST_NESTED = 20
"""Operations in one another, in the text of one line."""

NumbersFunction = Callable[..., tuple[float, tuple[float, ...]] | None]
"""Free coordinates -> the log density there and its derivatives by them."""
SumsFunction = Callable[..., tuple[float, ...]]
"""Free coordinates -> the sums of log densities there, one for each site of some."""


class NotOneFunction(Exception):
    """A block is left to the passes over its rows."""


class BlockFunction:
    """The function of one block, good while its columns hold numbers of the same kinds. Mutable: keeps what stands."""

    def __init__(
        self, state: BlockState, moved: Sequence[tuple[RowKind, int, int]], terms: Sequence[RowKind], size: int
    ) -> None:
        """`moved` are the rows that move, parents first, `terms` those that weigh them.

        Raises NotOneFunction where there are too many rows, or where not all is numbers.
        """
        # a value that is handed on costs nothing
        computed = sum(stop - start for kind, start, stop in moved if kind.operator is not None)
        if computed + sum(kind.count for kind in terms) > MOST_ROWS:
            raise NotOneFunction
        passes = _BlockPasses(state, moved, terms, size)
        self._read = passes.read
        self._columns = list(dict.fromkeys(column for column, _ in passes.read))
        sums = passes.sums(state.model.trace)
        # the sites of which there are sums, by their position
        self.sites = {site: position for position, site in enumerate(sums)}
        self._make = passes.printed([*sums.values()])
        self._stamps: list[int] | None = None
        self._made: NumbersFunction | None = None
        self.sums: SumsFunction | None = None

    def now(self) -> NumbersFunction | None:
        """As what does not depend on the block stands now; the same object while that is so."""
        stamps = [column.stamp for column in self._columns]
        if stamps != self._stamps:
            try:
                made = self._make(*[column.view[row] for column, row in self._read])
            except Exception:
                # an argument that no function takes, for one: the passes over rows say so
                made = None
            self._made, self.sums = made or (None, None)
            self._stamps = stamps
        return self._made


class _Operations(Recording):
    """Operations of which it is known whether they depend on the block."""

    def __init__(self) -> None:
        super().__init__()
        # the places of those that do
        self.moving: set[int] = set()

    def free(self, number: int) -> Node:
        """A free coordinate."""
        found = self.record("name", f"f{number}")
        self.moving.add(found.place)
        return found

    def record(self, operation: str, *operands: Any) -> Node:
        found = super().record(operation, *operands)
        if any(each.__class__ is Node and each.place in self.moving for each in operands):
            self.moving.add(found.place)
        return found


class _BlockPasses:
    """The operations of both passes over all rows of a block, recorded together."""

    def __init__(
        self, state: BlockState, moved: Sequence[tuple[RowKind, int, int]], terms: Sequence[RowKind], size: int
    ) -> None:
        self._nowhere = state.nowhere
        self._recording = _Operations()
        self._free = [self._recording.free(number) for number in range(size)]
        # what is read, in the order of its names
        self.read: list[tuple[Column, int]] = []
        self._names: dict[tuple[int, int], Node] = {}
        self._objects: dict[int, tuple[str, Any]] = {}
        # numbers that must be finite, and tests with the numbers that must pass them
        self._finite: dict[int, Node] = {}
        self._tests: dict[tuple[str, int], Node] = {}
        # by place of the block
        self._values: dict[int, Any] = {}
        self._cotangents: dict[int, Any] = {}
        self._gradient: list[Any] = [0.0] * size
        self._total: Any = 0.0
        # by site the log densities of its choices, by row
        self._terms: dict[int, dict[int, Any]] = {}
        for kind, start, stop in moved:
            for n in range(start, stop):
                self._values[self._place(kind, n)] = self._value_of(kind, n)
        for kind in terms:
            for n in range(kind.count):
                self._weigh(kind, n)
        for kind, start, stop in reversed(moved):
            for n in range(start, stop):
                if kind.is_apart:
                    self._settle(kind, n)
                elif kind.coordinates is not None:
                    self._weigh(kind, n)
                else:
                    self._pull_back(kind, n)

    def sums(self, trace: Trace) -> dict[int, Any]:
        """The sum of the log densities of all choices of a site, row by row, where the block moves or weighs all."""
        found: dict[int, Any] = {}
        for site, terms in self._terms.items():
            rows = listed(trace.tables[trace.program.site_code[site].index].rows()).tolist()
            if len(rows) <= NARROW and sorted(terms) == rows:
                found[site] = functools.reduce(lambda left, right: left + right, [terms[row] for row in rows])
        return found

    def _place(self, kind: RowKind, n: int) -> int:
        return int(one_of(kind.given[1], n))

    # --------------------------------------------------------------------------------------------------- reading

    def _reads(self, kind: RowKind, n: int) -> dict[int, Any]:
        """The values of a row's tape, by place of the tape."""
        tape = kind.tape
        if tape.closures or kind.column.kind not in NUMBERS:
            raise NotOneFunction
        given = {leaf.node.place: kind.given[3 + 2 * at : 5 + 2 * at] for at, leaf in enumerate(tape.leaves)}

        def leaf_of(leaf: Any) -> Any:
            row, place = (int(one_of(each, n)) for each in given[leaf.node.place])
            return self._values[place] if place != self._nowhere else self._stored(leaf.column, row)

        return tape.evaluated(leaf_of, lambda node, record, operands: self._called(record, operands))

    def _outputs(self, kind: RowKind, values: dict[int, Any]) -> list[Any]:
        return [values[each.place] if each.__class__ is Node else each for each in kind.tape.outputs]

    def _stored(self, column: Column, row: int) -> Node:
        """A number that does not depend on the block."""
        if column.kind not in NUMBERS:
            raise NotOneFunction
        found = self._names.get((id(column), row))
        if found is None:
            found = self._names[id(column), row] = self._recording.record("name", f"s{len(self.read)}")
            self.read.append((column, row))
        return found

    def _is_moving(self, value: Any) -> bool:
        return value.__class__ is Node and value.place in self._recording.moving

    def _apply(self, function: Any, *operands: Any) -> Node:
        name, _ = self._objects.setdefault(id(function), (f"o{len(self._objects)}", function))
        return self._recording.record("apply", name, *operands)

    def _called(self, record: Deterministic, operands: Sequence[Any]) -> Any:
        """The value of a call, written out where it depends on the block."""
        if not all(each.__class__ is Node or each.__class__ in NUMBERS for each in operands):
            raise NotOneFunction
        pullback = record.pullback
        if not any(map(self._is_moving, operands)):
            return self._apply(record.scalar, *operands)
        if not isinstance(pullback, ElementwisePullback):
            raise NotOneFunction
        if record not in ARITHMETIC:
            self._refuse_infinite(operands)
        return self._apply(record.scalar, *operands) if pullback.value is None else pullback.value(*operands)

    def _refuse_infinite(self, values: Iterable[Any]) -> None:
        self._finite.update((value.place, value) for value in values if value.__class__ is Node)

    # --------------------------------------------------------------------------------------------------- moving

    def _value_of(self, kind: RowKind, n: int) -> Any:
        """The value of a row that moves."""
        if kind.column.kind is not float:
            raise NotOneFunction
        if kind.coordinates is not None:
            arguments = () if kind.is_apart else self._arguments(kind, self._reads(kind, n))
            transform, read = self._transform(kind, arguments)
            return recordable(transform.value_of)(self._coordinate(kind, n), *read)
        outputs = self._outputs(kind, self._reads(kind, n))
        return outputs[0] if kind.operator is None else self._called(kind.operator, outputs)

    def _coordinate(self, kind: RowKind, n: int) -> Any:
        assert kind.coordinates is not None
        taken, shape = kind.coordinates[n]
        if shape is not None:
            raise NotOneFunction
        return self._free[taken.start]

    def _transform(self, kind: RowKind, arguments: Sequence[Any]) -> tuple[Elementwise, tuple[Any, ...]]:
        """That of a choice, with the arguments that it reads."""
        transform = kind.operator.transform
        if not isinstance(transform, Elementwise):
            raise NotOneFunction
        return transform, tuple(arguments) if transform.reads_arguments else ()

    def _arguments(self, kind: RowKind, values: dict[int, Any]) -> list[Any]:
        """Those of a choice, which are tested."""
        if not isinstance(kind.operator, Random):
            raise NotOneFunction
        arguments = [*self._outputs(kind, values), *kind.defaults]
        if len(arguments) != len(kind.operator.arguments):
            raise NotOneFunction
        for argument, value in zip(kind.operator.arguments, arguments, strict=True):
            if (value.__class__ is not Node and value.__class__ not in NUMBERS) or argument.domain.test is None:
                raise NotOneFunction
            if argument.domain.test == ANY_NUMBER:
                self._refuse_infinite([value])
            else:
                named = value if value.__class__ is Node else self._apply(float, value)
                self._tests[argument.domain.test, named.place] = named
        return arguments

    # ------------------------------------------------------------------------------------------------- weighing

    def _weigh(self, kind: RowKind, n: int) -> None:
        """Add the log density of a choice, and its derivatives to cotangents."""
        values = self._reads(kind, n)
        arguments = self._arguments(kind, values)
        place, row = self._place(kind, n), int(one_of(kind.rows, n))
        value = self._values[place] if place != self._nowhere else self._stored(kind.column, row)
        term, slopes = self._density(kind, value, arguments)
        self._terms.setdefault(kind.site, {})[row] = term
        following = iter(slopes)
        own, *parts = [next(following) if flag else None for flag in kind.flags]
        if kind.coordinates is not None:
            moved = self._moved(kind, n, value, own, arguments, parts)
            term = term + moved
        self._spread(kind, n, values, parts[: len(kind.asked)])
        if kind.is_apart:
            self._add(place, own)
        self._total = self._total + term

    def _density(self, kind: RowKind, value: Any, arguments: Sequence[Any]) -> tuple[Any, list[Any]]:
        """The log density of a choice and its derivatives by what is asked for."""
        record = kind.operator
        if record.definition is not None and record.gradient is not None and record.gradient.of_numbers is not None:
            term, *slopes = self._again(recorded_slopes(record.definition, kind.flags), [value, *arguments])
            return term, slopes
        whole = self._apply(kind.slopes(), value, *arguments)
        term, *slopes = [self._recording.record("entry", whole, number) for number in range(1 + sum(kind.flags))]
        return term, slopes

    def _again(self, results: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """Operations of another recording, recorded here of other inputs."""
        found: dict[int, Any] = {}

        def of(value: Any) -> Any:
            if value.__class__ is not Node:
                return value
            return inputs[value.operands[0]] if value.operation == "input" else found[value.place]

        for node in needed(list(results)):
            found[node.place] = self._recording.record(node.operation, *map(of, node.operands))
        return list(map(of, results))

    def _moved(self, kind: RowKind, n: int, value: Any, own: Any, arguments: Sequence[Any], parts: list[Any]) -> Any:
        """The log Jacobian of a choice's transform; what it adds to the derivatives is added to the parts."""
        transform, read = self._transform(kind, arguments)
        total = self._cotangents.get(self._place(kind, n), 0.0) + own
        at = kind.coordinates[n][0].start  # type: ignore[index]
        self._gradient[at] = recordable(transform.by_free)(value, total, *read)
        if transform.reads_arguments and any(kind.asked):
            assert transform.by_arguments is not None
            by_arguments = recordable(transform.by_arguments)(value, total, *read)
            for position, part in enumerate(by_arguments[: len(parts)]):
                if part is not None and parts[position] is not None:
                    parts[position] = parts[position] + part
        return recordable(transform.log_slope)(value, *read)

    def _settle(self, kind: RowKind, n: int) -> None:
        """Add the log Jacobian of a choice that is weighed apart."""
        place = self._place(kind, n)
        transform, _ = self._transform(kind, ())
        value, own = self._values[place], self._cotangents.get(place, 0.0)
        at = kind.coordinates[n][0].start  # type: ignore[index]
        self._gradient[at] = recordable(transform.by_free)(value, own)
        self._total = self._total + recordable(transform.log_slope)(value)

    # ------------------------------------------------------------------------------------------------ cotangents

    def _add(self, place: int, part: Any) -> None:
        if place != self._nowhere:
            self._cotangents[place] = self._cotangents.get(place, 0.0) + part

    def _pull_back(self, kind: RowKind, n: int) -> None:
        """Pass the cotangent of a computed value on."""
        cotangent = self._cotangents.get(self._place(kind, n), 0.0)
        if cotangent.__class__ is not Node:
            return
        values, parts = self._reads(kind, n), [cotangent]
        if kind.operator is not None:
            result = self._values[self._place(kind, n)]
            parts = self._pulled(kind.operator, kind.asked, cotangent, result, self._outputs(kind, values))
        self._spread(kind, n, values, parts)

    def _pulled(
        self, record: Deterministic, wanted: tuple[bool, ...], cotangent: Any, result: Any, arguments: Sequence[Any]
    ) -> list[Any]:
        assert isinstance(record.pullback, ElementwisePullback)
        return list(record.pullback.of_numbers(wanted, cotangent, result, *arguments))

    def _spread(self, kind: RowKind, n: int, values: dict[int, Any], cotangents: Sequence[Any]) -> None:
        """From the cotangents of what a row reads to those of its leaves."""
        tape, found = kind.tape, dict[int, Any]()

        def add(value: Any, part: Any) -> None:
            if part is not None and value.__class__ is Node and value.place in kind.wanted:
                found[value.place] = found[value.place] + part if value.place in found else part

        for value, part in zip(tape.outputs, cotangents, strict=True):
            add(value, part)
        for node, record, arguments, _ in reversed(tape.steps):
            if node.place in found and self._is_moving(values[node.place]):
                asked = tuple(each.__class__ is Node and each.place in kind.wanted for each in arguments)
                given = [values[each.place] if each.__class__ is Node else each for each in arguments]
                for value, part in zip(
                    arguments, self._pulled(record, asked, found[node.place], values[node.place], given), strict=True
                ):
                    add(value, part)
        for at, leaf in enumerate(tape.leaves):
            if leaf.node.place in found:
                self._add(int(one_of(kind.given[4 + 2 * at], n)), found[leaf.node.place])

    # ------------------------------------------------------------------------------------------------- printing

    def printed(self, sums: Sequence[Any]) -> Callable[..., tuple[NumbersFunction, SumsFunction] | None]:
        """What makes the functions of the numbers that are read; the second gives the `sums`."""
        moving = self._recording.moving
        results = [self._total, *self._gradient]
        finite = [value for value in self._finite.values() if value.place in moving]
        checked = functools.reduce(lambda left, right: left + right, [*results, *finite])
        given = [value for value in self._finite.values() if value.place not in moving]
        run = _Lines([checked, *results, *self._tests.values()], moving)
        parts = _Lines(sums, moving)
        still = _Lines([*run.read, *parts.read, *given, *self._tests.values()], moving, is_still=True)
        for (test, _), value in self._tests.items():
            line = f"if not ({test.format(x=_name(value))}): return None"
            (run if value.place in moving else still).lines.append(line)
        still.lines += map(_refusing_infinite, given)
        run.lines += [_refusing_infinite(checked), f"return {_name(self._total)}, ({_names(self._gradient)})"]
        parts.lines.append(f"return ({_names(sums)})")
        names = [*(f"s{number}" for number in range(len(self.read))), *(name for name, _ in self._objects.values())]
        free = ", ".join(f"f{number}" for number in range(len(self._free)))
        text = [f"def make({', '.join(names)}):", *(f"    {line}" for line in still.lines)]
        for name, body in (("run", run), ("parts", parts)):
            text += [f"    def {name}({free}):", *(f"        {line}" for line in body.lines)]
        made, objects = _executed("\n".join([*text, "    return run, parts\n"])), self._objects.values()
        return lambda *numbers: made(*numbers, *(found for _, found in objects))


class _Lines:
    """The lines that compute some of the operations that lead to results; what is used once is part of what uses it."""

    def __init__(self, results: Sequence[Any], moving: set[int], is_still: bool = False) -> None:
        """Those are computed whose places are `moving`, or where `is_still`, all others."""
        self._moving = moving
        nodes = [node for node in needed(list(results)) if node.operation != "name"]
        nodes = [node for node in nodes if (node.place in moving) != is_still]
        here = {node.place for node in nodes}
        uses = Counter(each.place for node in nodes for each in node.operands if each.__class__ is Node)
        uses.update(2 * [result.place for result in results if result.__class__ is Node])
        # what is read of what is computed elsewhere
        outside = {each.place: each for node in nodes for each in _computed(node) if each.place not in here}
        outside |= {each.place: each for each in results if each.__class__ is Node and each.place not in here}
        self.read = [*outside.values()]
        self.lines: list[str] = []
        # by place: the text of what is not computed yet, and how deep it is nested
        self._texts: dict[int, tuple[str, int]] = {}
        for node in nodes:
            inside = [self._texts[each.place][1] for each in _computed(node) if each.place in self._texts]
            depth = 1 + max(inside, default=0)
            text = self._text_of(node)
            if uses[node.place] == 1 and depth < MOST_NESTED:
                self._texts[node.place] = text, depth
            else:
                self.lines.append(f"t{node.place} = {text}")

    def _name(self, value: Any) -> str:
        known = self._texts.get(value.place) if value.__class__ is Node else None
        return _name(value) if known is None else f"({known[0]})"

    def _text_of(self, node: Node) -> str:
        match node.operation, node.operands:
            case "apply", (function, *operands):
                return f"{function}({', '.join(map(self._name, operands))})"
            case "entry", (whole, number):
                return f"{self._name(whole)}[{number}]"
            case "divide", (left, right) if right.__class__ is Node and right.place in self._moving:
                # what is 0 once in a while is an error here
                return f"{self._name(left)} / {self._name(right)}"
        return text_of(node, self._name, False)


def _computed(node: Node) -> list[Node]:
    """The operands of an operation that are computed."""
    return [each for each in node.operands if each.__class__ is Node and each.operation != "name"]


def _name(value: Any) -> str:
    if value.__class__ is not Node:
        return f"({value!r})"
    return str(value.operands[0]) if value.operation == "name" else f"t{value.place}"


def _names(values: Iterable[Any]) -> str:
    return "".join(f"{_name(value)}, " for value in values)


def _refusing_infinite(value: Node) -> str:
    return f"if {_name(value)} - {_name(value)} != 0.0: return None"


@functools.lru_cache(1000)
def _executed(text: str) -> Callable[..., Any]:
    """The function that a text defines: chains of one program have one text."""
    namespace = dict(NAMES)
    exec(text, namespace)
    found: Callable[..., Any] = namespace["make"]
    return found
