"""The two passes over rows that read alike, printed as Python: forward to their values, backward to the cotangents of
what they read.

Each is printed for one row, over the columns' memory, and for many rows, over arrays. A function takes the row (`r`),
the place of its cotangent (`k`), its free coordinates (`i`), and for each leaf of the tape the row that is read (`r0`,
`r1`, ...) and its place (`k0`, ...). Where all is numbers, transforms and elementwise procedures with their derivatives
are part of the text, over columns those of floats; whatever else there is, is called. What does not depend on the block
is computed once and kept in a list (`s`), until the density finds that something it reads has changed.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from venture_lite.kernels.population import applied_to_rows, values_of_rows
from venture_lite.procedures.columns import Flags, RowByRow
from venture_lite.procedures.functions.arithmetic import DIVIDE
from venture_lite.procedures.pullbacks import ElementwisePullback, accumulated, gathered
from venture_lite.procedures.record import Deterministic, Random
from venture_lite.procedures.straight_line import (
    COLUMN_NAMES,
    SCALAR_NAMES,
    Node,
    needed,
    recordable,
    text_of,
)
from venture_lite.procedures.transforms import Elementwise, Transform
from venture_lite.trace.runtime import Closure
from venture_lite.trace.table import memory

if TYPE_CHECKING:
    from venture_lite.blocks.moving import RowKind

NUMBERS = (float, int, bool)
NAMES: Final[dict[str, Any]] = {"inf": math.inf, "nan": math.nan, "isfinite": np.isfinite, "RowByRow": RowByRow}
"""What texts name besides functions of numbers."""


def printed(kind: RowKind, columns: bool) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The passes over one row of a kind, or over `columns`. Raises RowByRow where these have none."""
    if columns and kind.is_maker:
        raise RowByRow
    forward, backward = _Pass(kind, columns), _Pass(kind, columns)
    if kind.is_maker:
        forward.reconsider()
        backward.weigh()
    elif kind.is_apart and kind.coordinates is not None:
        forward.place()
        backward.settle()
    elif isinstance(kind.operator, Random):
        if kind.coordinates is not None:
            forward.move()
        backward.weigh()
    else:
        forward.renew()
        backward.pull_back()
    return forward.function(), backward.function()


class _Called:
    """The functions of a transform of vectors, as those of numbers are."""

    def __init__(self, transform: Transform) -> None:
        self.value_of = lambda free, *arguments: transform.from_free(free, arguments)
        self.log_slope = lambda value, *arguments: transform.log_jacobian(value, arguments)
        self.by_free = lambda value, gradient, *arguments: transform.free_gradient(
            value, arguments, as_array(gradient, value)
        )
        self.by_arguments = lambda value, gradient, *arguments: transform.argument_gradient(
            value, arguments, as_array(gradient, value)
        )


def as_array(cotangent: Any, value: Any) -> Any:
    """A cotangent as a number, or as an array of the value's shape."""
    if not isinstance(cotangent, tuple):
        return cotangent
    filled = [np.zeros(np.shape(item)) if part is None else part for part, item in zip(cotangent, value)]  # noqa: B905
    return np.array(filled, dtype=np.float64)


def or_zero(part: Any) -> Any:
    return 0.0 if part is None else part


def as_floats(values: Any) -> Any:
    """Numbers as floats, where none loses a digit; one number may stay as it is."""
    if not isinstance(values, np.ndarray) or values.dtype.kind == "f":
        return values
    if values.dtype.kind == "O":
        # numbers of several kinds
        return np.array(list(map(as_number, values.tolist())))
    if values.dtype.kind not in "bi" or (values.size and np.abs(values.astype(np.float64)).max() > 2.0**53):
        raise RowByRow
    return values.astype(np.float64)


def as_column(values: Any) -> Any:
    """A column of numbers as floats. Raises RowByRow for anything else."""
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise RowByRow
    return as_floats(values)


def as_number(value: Any) -> float:
    """One number as a float. Raises RowByRow for anything else, and where it would lose a digit."""
    if not isinstance(value, float) and not (isinstance(value, int) and abs(value) <= 2**53):
        raise RowByRow
    return float(value)


def refuse_nan(values: Any) -> None:
    if np.isnan(values).any():
        raise RowByRow


def _total(part: Any) -> float:
    return float(np.add.reduce(part))


def divides_by_constants(record: Deterministic, arguments: Sequence[Any]) -> bool:
    """Whether a call is a quotient of which no divisor is 0."""
    divisors = arguments[1:]
    return record is DIVIDE and bool(divisors) and all(each.__class__ in (float, int) and each for each in divisors)


def pull(pullback: Any, lifted: tuple[bool, ...], wanted: tuple[bool, ...], cotangent: Any, *given: Any) -> Any:
    return (None,) * len(wanted) if cotangent is None else pullback(lifted, wanted, cotangent, *given)


class _Pass:
    """One function as it is printed, with the objects that its text names."""

    def __init__(self, kind: RowKind, columns: bool) -> None:
        self._kind = kind
        self._tape = tape = kind.tape
        self._columns = columns
        if columns and tape.closures:
            raise RowByRow
        self._lines: list[str] = []
        # what is computed is recorded after what is read
        self._recording = tape.operations
        # places of what is printed already; rows are given
        self._told = set(tape.operations.rows)
        self._objects: dict[int, tuple[str, Any]] = {}
        # names of rows that are read, by the places of leaves and closures
        self._rows = {leaf.node.place: f"r{number}" for number, leaf in enumerate(tape.leaves)}
        self._rows |= {node.place: f"e{number}" for number, (node, _) in enumerate(tape.closures)}
        self._leaves = {leaf.node.place: leaf for leaf in tape.leaves}
        # places that hold single numbers, whatever the state
        self._are_numbers = {place for place, leaf in self._leaves.items() if leaf.column.kind in NUMBERS}
        for node, record, arguments, _ in tape.steps:
            if isinstance(record.pullback, ElementwisePullback) and all(map(self._is_a_number, arguments)):
                self._are_numbers.add(node.place)
        self._is_number = kind.column.kind is float
        self._reads_numbers = all(map(self._is_a_number, tape.outputs))
        # places that hold floats, one or a column of them; of calls what the text has for them instead
        self._floats = {place for place, leaf in self._leaves.items() if leaf.column.kind is float}
        self._written: dict[int, Any] = {}
        # what does not depend on the block, by place, and the lines that compute it
        self._stands: dict[int, bool] = {}
        self._still_lines: list[str] = []
        if columns or kind.keeps_rows:
            self._stands = dict.fromkeys(kind.still, True)
        if columns:
            self._write()
        # places of cotangents that are never None
        self._certain: set[int] = set()

    # --------------------------------------------------------------------------------------------------- values

    def _object(self, value: Any) -> str:
        """The name of something that the text names."""
        return self._objects.setdefault(id(value), (f"o{len(self._objects)}", value))[0]

    def _is_a_number(self, value: Any) -> bool:
        return value.__class__ is not Node or value.place in self._are_numbers

    def _is_a_float(self, value: Any) -> bool:
        """A constant is one among floats."""
        return value.place in self._floats if value.__class__ is Node else value.__class__ in (float, int)

    def _is_still(self, value: Any) -> bool:
        """Whether a value does not depend on the block, and is worth keeping."""
        if not (self._columns or self._kind.keeps_rows):
            return False
        found = self._stands.get(value.place)
        if found is None:
            operands = [each for each in value.operands if each.__class__ is Node]
            found = bool(operands) and all(map(self._is_still, operands)) if operands else value.operation == "object"
            self._stands[value.place] = found
        return found

    def _line(self, text: str, is_still: bool) -> None:
        (self._still_lines if is_still else self._lines).append(text)

    def _as_float(self, value: Any) -> Any:
        """A value as floats, where it was numbers. What does not depend on the block is turned into floats once, all
        else whenever it is made: rows are told apart where it is no longer numbers."""
        if value.__class__ is not Node or value.place in self._floats or value.place not in self._kind.numbers:
            return value
        moves = as_column if self._tape.is_lifted(value) else as_number
        found = self._call(as_floats if value.place in self._kind.still else moves, value)
        self._floats.add(found.place)
        return found

    def _write(self) -> None:
        """Find the calls that are arithmetic on floats, whose errors are all NaN."""
        for node, record, arguments, _ in self._tape.steps:
            found = None if node.place in self._kind.still else self._written_out(record, arguments)
            if found is not None:
                self._floats.add(node.place)
                self._written[node.place] = found

    def _written_out(self, record: Deterministic, arguments: Sequence[Any]) -> Any:
        """A call that is arithmetic on floats, as operations; None where it is not."""
        pullback = record.pullback
        if not isinstance(pullback, ElementwisePullback) or pullback.value is None:
            return None
        arguments = list(map(self._as_float, arguments))
        if not any(each.__class__ is Node for each in arguments) or not all(map(self._is_a_float, arguments)):
            return None
        return pullback.value(*arguments) if record.total or divides_by_constants(record, arguments) else None

    def _load(self, column: Any, row: str) -> Node:
        if self._columns:
            found = self._call(column.gather, row)
            if column.kind is float:
                self._floats.add(found.place)
            return found
        return self._recording.record("name", f"{self._object(column.view)}[{row}]")

    def _entry(self, array: np.ndarray, at: str) -> str:
        return f"{self._object(array if self._columns else memory(array))}[{at}]"

    def _call(self, function: Any, *operands: Any) -> Node:
        return self._recording.record("apply", self._object(function), *operands)

    def _items(self, whole: Node, wanted: Sequence[bool]) -> list[Any]:
        """The entries wanted, at their positions; each may be None."""
        return [self._recording.record("item", whole, n) if want else None for n, want in enumerate(wanted)]

    def _applied(self, record: Deterministic, lifted: tuple[bool, ...], arguments: Sequence[str]) -> str:
        """A call of arguments with these names."""
        if not self._columns or True not in lifted:
            return f"{self._object(record.scalar)}({', '.join(arguments)})"
        if record.columns is None:
            raise RowByRow
        return f"{self._object(record.columns)}({', '.join((repr(lifted), *arguments))})"

    # ----------------------------------------------------------------------------------------------- cotangents

    def _pulled(
        self, record: Deterministic, lifted: tuple[bool, ...], wanted: tuple[bool, ...], are_numbers: bool, *given: Any
    ) -> list[Any]:
        """The cotangents of a call's arguments, from (cotangent, value, *arguments); None for those not wanted."""
        if isinstance(record.pullback, ElementwisePullback):
            if are_numbers and not self._columns:
                return list(record.pullback.of_numbers(wanted, *given))
            if self._columns and self._is_certain(given[0]):
                floats = list(map(self._as_float, given))
                if all(map(self._is_a_float, floats[1:])):
                    return self._shares(record.pullback, lifted, wanted, floats)
        flags = lifted if self._columns else (False,) * len(wanted)
        of = (self._object(record.pullback), self._object(flags), self._object(wanted))
        return self._items(self._call(pull, *of, *given), wanted)

    def _is_certain(self, cotangent: Any) -> bool:
        return cotangent.__class__ is not Node or cotangent.place in self._certain

    def _known(self, cotangent: Any) -> Any:
        """A cotangent that is never None."""
        if cotangent.__class__ is Node:
            self._certain.add(cotangent.place)
        return cotangent

    def _shares(self, pullback: ElementwisePullback, lifted: Flags, wanted: Flags, given: Sequence[Any]) -> list[Any]:
        """The same of floats, written out; what rows share is summed over them."""
        parts: list[Any] = []
        for part, up in zip(pullback.of_numbers(wanted, *given), lifted, strict=True):
            if part is not None and True in lifted and not up:
                part = self._call(_total, part)
            parts.append(self._known(part))
        return parts

    def _sum(self, left: Any, right: Any, is_number: bool) -> Any:
        """Of two cotangents of one value; those of single numbers are numbers from here on."""
        if self._columns and left is not None and self._is_certain(left) and self._is_certain(right):
            return self._known(left + right)
        if is_number and not self._columns:
            right = self._call(or_zero, right) if right.operation == "item" else right
            return right if left is None else left + right
        return right if left is None else self._call(accumulated, left, right)

    def _back(self, cotangents: Sequence[Any]) -> None:
        """From the cotangents of what is read, None for 0, to those of the leaves, which are added up."""
        tape, wanted = self._tape, self._kind.wanted
        found: dict[int, Any] = {}

        def add(value: Any, part: Any) -> None:
            if part is not None and value.__class__ is Node and value.place in wanted:
                found[value.place] = self._sum(found.get(value.place), part, value.place in self._are_numbers)

        for value, part in zip(tape.outputs, cotangents, strict=True):
            add(value, part)
        for node, record, arguments, lifted in reversed(tape.steps):
            if node.place in found:
                asked = tuple(value.__class__ is Node and value.place in wanted for value in arguments)
                given = (found[node.place], node, *arguments)
                parts = self._pulled(record, lifted, asked, node.place in self._are_numbers, *given)
                for value, part in zip(arguments, parts, strict=True):
                    add(value, part)
        # nothing is added before all is known
        self._lines += [
            self._added(number, leaf, self._text(found[leaf.node.place]), self._is_certain(found[leaf.node.place]))
            for number, leaf in enumerate(tape.leaves)
            if leaf.node.place in found
        ]

    def _added(self, number: int, leaf: Any, part: str, is_certain: bool) -> str:
        """The line that adds up the cotangent of a leaf."""
        state, is_number = self._kind.state, leaf.column.kind is float
        if self._columns and leaf.is_lifted:
            return f"{self._object(state.scatter if is_number else state.scatter_others)}(k{number}, {part})"
        if is_number:
            part = f"{self._object(or_zero)}({part})" if self._columns and not is_certain else part
            return f"{self._entry(state.cotangents, f'k{number}')} += {part}"
        others = f"{self._object(state.others)}[k{number}]"
        return f"{others} = {self._object(accumulated)}({others}, {part})"

    def _own(self) -> Any:
        """The cotangent of the value itself."""
        if self._is_number:
            return self._known(self._recording.record("name", self._entry(self._kind.state.cotangents, "k")))
        if self._columns:
            raise RowByRow
        return self._call(self._kind.state.others.__getitem__, "k")

    # ---------------------------------------------------------------------------------------------- computed values

    def renew(self) -> None:
        """Lines that compute values."""
        operator, values = self._kind.operator, self._tape.outputs
        if self._columns and operator is not None and (whole := self._written_out(operator, values)) is not None:
            self._store(self._text(whole))
            return
        outputs = [self._text(value) for value in values]
        if operator is not None:
            self._refuse_nan(values)
        self._store(outputs[0] if operator is None else self._applied(operator, self._tape.lifted, outputs))

    def _store(self, value: str) -> None:
        """Values of another type than the column's go through the journal, one by one."""
        name, column = "x", self._kind.column
        self._lines.append(f"x = {value}")
        if self._columns:
            if not self._is_number:
                raise RowByRow
            self._lines.append(f"{self._object(self._kind.store_rows)}(r, {name})")
            return
        store = f"{self._object(self._kind.store)}(r, {name})"
        if self._is_number:
            self._lines.append(f"if {name}.__class__ is float: {self._object(column.view)}[r] = {name}")
            store = f"else: {store}"
        self._lines.append(store)

    def pull_back(self) -> None:
        """Lines that pass the cotangent of a computed value on."""
        kind, cotangent = self._kind, self._own()
        name = self._text(cotangent)
        nothing = f"not {name}.any()" if self._columns else f"{name} == 0.0" if self._is_number else f"{name} is None"
        self._lines.append(f"if {nothing}: return 0.0")
        parts = [cotangent]
        if kind.operator is not None:
            given = (cotangent, self._load(kind.column, "r"), *self._tape.outputs)
            are_numbers = self._is_number and self._reads_numbers
            parts = self._pulled(kind.operator, self._tape.lifted, kind.asked, are_numbers, *given)
        self._back(parts)
        self._lines.append("return 0.0")

    # -------------------------------------------------------------------------------------------------- choices

    def _checked(self, otherwise: str) -> list[Any]:
        """The arguments, after a line that tests them: rows outside their domains are told apart one by one."""
        kind = self._kind
        arguments = [*self._tape.outputs, *map(self._recording.constant, kind.defaults)]
        given = f"({''.join(f'{self._text(argument)}, ' for argument in arguments)})"
        if self._columns:
            # what stands is looked at once
            stands = all(each.__class__ is not Node or self._is_still(each) for each in arguments)
            line = f"{self._object(kind.group().check)}(r, {self._object(kind.tape.lifted)}, {given})"
            self._line(line, stands)
        else:
            valid = self._object(kind.trace.valid[kind.operator])
            self._lines.append(f"if not {valid}{given}: {otherwise.format(given)}")
        return arguments

    def _transform(self, arguments: Sequence[Any]) -> tuple[Any, Any, tuple[Any, ...]]:
        """How the functions of the transform are applied, the transform, and the arguments that it reads."""
        transform = self._kind.operator.transform
        read = tuple(arguments) if transform.reads_arguments else ()
        if self._is_number and isinstance(transform, Elementwise) and (self._reads_numbers or not read):
            return lambda function, *operands: recordable(function)(*operands), transform, read
        if self._columns:
            raise RowByRow
        return self._call, _Called(transform), tuple(arguments)

    def move(self) -> None:
        """Lines that put choices where their free coordinates are."""
        apply, transform, read = self._transform(self._checked(f"{self._object(self._kind.refused)}(r, {{}})"))
        free = self._call(self._kind.taken, "i")
        if self._is_number:
            free = self._recording.record("name", self._entry(self._kind.state.free, "i"))
        self._store(self._text(apply(transform.value_of, free, *read)))

    def place(self) -> None:
        """Lines that put numbers where their free coordinates are, whatever they depend on."""
        apply, transform, _ = self._transform(())
        free = self._recording.record("name", self._entry(self._kind.state.free, "i"))
        self._store(self._text(apply(transform.value_of, free)))

    def settle(self) -> None:
        """Lines that make derivatives by coordinates of the cotangents of numbers, and give the log Jacobian."""
        apply, transform, _ = self._transform(())
        value = self._load(self._kind.column, "r")
        gradient = apply(transform.by_free, value, self._own())
        self._lines.append(f"{self._entry(self._kind.state.gradient, 'i')} = {self._text(gradient)}")
        slope = apply(transform.log_slope, value)
        if self._columns and isinstance(slope, Node):
            slope = self._call(np.sum, slope)
        self._lines.append(f"return {self._text(slope)}")

    def reconsider(self) -> None:
        """Lines that give makers other parameters."""
        arguments = ", ".join(map(self._text, self._tape.outputs))
        given = self._text(self._load(self._kind.column, "r"))
        self._lines.append(f"{self._object(self._kind.reconsider)}({given}, ({arguments},))")

    def weigh(self) -> None:
        """Lines that weigh choices and makers, and pass the derivatives on."""
        kind = self._kind
        arguments = self._tape.outputs if kind.is_maker else self._checked("return nan")
        if self._columns:
            value = self._values()
            arguments = list(map(self._as_float, arguments))
            whole = self._call(kind.slopes_together(arguments), "r", value, *arguments)
        else:
            value = self._load(kind.column, "r")
            whole = self._call(kind.slopes(), value, *arguments)
        following = iter([self._known(self._recording.record("entry", whole, n)) for n in range(1 + sum(kind.flags))])
        term = self._text(next(following))
        if not self._columns:
            self._lines.append(f"if {term} - {term} != 0.0: return {term}")
        own, *parts = [next(following) if flag else None for flag in kind.flags]
        if kind.coordinates is not None:
            term += f" + {self._text(self._moved(arguments, value, own, parts))}"
        self._back(parts[: len(kind.asked)])
        if kind.is_apart:
            add = f"{self._object(kind.state.scatter)}(k, {{}})" if self._columns else ""
            add = add or f"{self._entry(kind.state.cotangents, 'k')} += {{}}"
            self._lines.append(add.format(self._text(own)))
        self._lines.append(f"return {term}")

    def _values(self) -> Node:
        """Of the choices."""
        value = self._call(self._kind.group().values_of, "r")
        if self._is_number:
            self._floats.add(value.place)
        self._stands[value.place] = not self._kind.flags[0]
        return value

    def _moved(self, arguments: Sequence[Any], value: Any, own: Any, parts: list[Any]) -> Any:
        """The log Jacobian of a transform; what it adds to the derivatives is added to the parts."""
        kind = self._kind
        apply, transform, read = self._transform(arguments)
        total = self._own() + own if self._is_number else self._call(accumulated, self._own(), own)
        gradient = apply(transform.by_free, value, total, *read)
        if self._is_number:
            self._lines.append(f"{self._entry(kind.state.gradient, 'i')} = {self._text(gradient)}")
        else:
            self._text(self._call(kind.give, "i", gradient))
        if kind.operator.transform.reads_arguments and any(kind.asked):
            moved = apply(transform.by_arguments, value, total, *read)
            if isinstance(moved, Node):
                moved = self._items(moved, kind.asked)
            for position, part in enumerate(moved):
                if part is not None and parts[position] is not None:
                    if self._columns:
                        part = self._call(gathered, part, self._object(kind.lifted[1:]), position, arguments[position])
                    parts[position] = self._call(accumulated, parts[position], part)
        slope = apply(transform.log_slope, value, *read)
        return self._call(np.sum, slope) if self._columns and isinstance(slope, Node) else slope

    # ---------------------------------------------------------------------------------------------------- text

    def _text(self, value: Any) -> str:
        """The name of a value; what it needs is printed first."""
        for node in needed([value]):
            if node.operation not in ("row", "name", "object") and node.place not in self._told:
                self._told.add(node.place)
                self._line(f"t{node.place} = {self._operation(node)}", self._is_still(node))
        return self._name(value)

    def _name(self, value: Any) -> str:
        if value.__class__ is not Node:
            return value if isinstance(value, str) else f"({value!r})"
        if value.operation == "object":
            return self._object(self._tape.operations.objects[value.operands[0]])
        return value.operands[0] if value.operation == "name" else f"t{value.place}"

    def _operation(self, node: Node) -> str:
        match node.operation, node.operands:
            case "load", _:
                leaf, row = self._leaves[node.place], self._rows[node.place]
                if self._columns and leaf.is_lifted:
                    gather = partial(values_of_rows, leaf.column) if self._is_still(node) else leaf.column.gather
                    return f"{self._object(gather)}({row})"
                return f"{self._object(leaf.column.view)}[{row}]"
            case "closure", (number, _):
                body = self._object(self._tape.operations.objects[number])
                return f"{self._object(Closure)}({body}, {self._rows[node.place]})"
            case "call", _ if node.place in self._written:
                return self._text(self._written[node.place])
            case "call", (_, *arguments):
                self._refuse_nan(arguments)
                lifted, names = tuple(map(self._tape.is_lifted, arguments)), list(map(self._name, arguments))
                record = self._tape.operations.calls[node.place][0]
                if self._columns and self._is_still(node):
                    return f"{self._object(applied_to_rows)}({self._object(record)}, {lifted}, ({', '.join(names)},))"
                return self._applied(record, lifted, names)
            case "apply", (function, *arguments):
                return f"{function}({', '.join(map(self._name, arguments))})"
            case "item" | "entry", (whole, position):
                return f"{self._name(whole)}[{position}]"
        return text_of(node, self._name, self._columns)

    def _refuse_nan(self, arguments: Sequence[Any]) -> None:
        """Lines that tell rows apart where what is written out has no value that a call could take."""
        for value in arguments:
            if value.__class__ is Node and value.place in self._written:
                self._line(f"{self._object(refuse_nan)}({self._name(value)})", self._is_still(value))

    def _kept(self) -> list[str]:
        """The lines that compute what does not depend on the block, once, and read it."""
        known = {line.split(" = ")[0] for line in self._still_lines if line.startswith("t")}
        read = [name for name in dict.fromkeys(re.findall(r"\bt\d+\b", "\n".join(self._lines))) if name in known]
        if not read and len(known) == len(self._still_lines):
            return []
        whole = "".join(f"{name}, " for name in read)
        lines = ["if not s:", *(f"    {line}" for line in self._still_lines), f"    s[:] = {whole or 'True, '}"]
        return [*lines, f"{whole}= s"] if read else lines

    def function(self) -> Callable[..., Any]:
        """The function with the lines printed so far."""
        leaves = [f", r{number}, k{number}" for number in range(len(self._tape.leaves))]
        rows = [f", e{number}" for number in range(len(self._tape.closures))]
        names = ", ".join(name for name, _ in self._objects.values())
        still = ", s" if self._columns or self._kind.keeps_rows else ""
        head = f"def make({names}):\n    def run(r, k, i{''.join(leaves)}{''.join(rows)}{still}):\n"
        body = "".join(f"        {line}\n" for line in (*self._kept(), *self._lines) or ["pass"])
        objects = (value for _, value in self._objects.values())
        return maker(f"{head}{body}    return run\n", self._columns)(*objects)


@functools.lru_cache(1000)
def maker(text: str, columns: bool) -> Callable[..., Callable[..., Any]]:
    """What a text defines that makes a function of the objects it names. Rows of one kind share their text, whatever
    their block."""
    namespace = {**(COLUMN_NAMES if columns else SCALAR_NAMES), **NAMES}
    exec(text, namespace)
    found: Callable[..., Callable[..., Any]] = namespace["make"]
    return found
