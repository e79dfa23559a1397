"""Forms as Python over the columns' memory: for transitions that weigh a few rows.

Of a form two functions are made: `weigh(rows)` gives minus the log density of the present state, `step(rows, that)`
makes a transition. Whatever is not as it should be (a number that fails a test, an infinite density, an error) leaves
the transition to the interpreter, with the value that was proposed if one was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from venture_lite.interpreter.kernel import Decide, Metropolis
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.form import Demand, Form, Loop, Side, Value
from venture_lite.procedures.straight_line import SCALAR_NAMES, Node, needed, text_of

UNDRAWN = object()
"""In `Left`: nothing was proposed yet."""


class Left(NamedTuple):
    """A transition that is the interpreter's."""

    proposed: Any


class Printed(NamedTuple):
    """The functions of a form."""

    # rows of places and of loops -> minus the log density of the present state
    weigh: Callable[..., float]
    # (*rows, minus) -> the same of the new state where the transition was accepted, None where not, else Left
    step: Callable[..., float | Left | None]


class _Printer:
    """Prints the operations of a form, each once in a function: those of a loop that depend on its row inside, all
    others before it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._told: set[int] = set()

    def value(self, value: Value, indent: str, inside: frozenset[int] = frozenset()) -> str:
        """The name of a value, what it needs being printed; nodes of `inside` are left for later."""
        for node in needed([value]):
            if node.operation not in ("row", "each") and node.place not in self._told and node.place not in inside:
                self._told.add(node.place)
                self.lines.append(f"{indent}t{node.place} = {_text(node)}")
        return _name(value)

    def demand(self, demand: Demand, indent: str, left: str) -> None:
        name = self.value(demand.value, indent)
        self.lines.append(f"{indent}if not ({demand.test.format(x=name)}): return Left({left})")

    def side(self, side: Side, indent: str, left: str) -> list[str]:
        """Prints what is weighed of a state; the names of its sum and of the sums of its loops."""
        for demand in side.demands:
            self.demand(demand, indent, left)
        terms = [self.value(value, indent) for value in side.terms]
        names = [f"terms{len(self.lines)}"]
        self.lines.append(f"{indent}{names[0]} = {' + '.join(['0.0', *terms])}")
        for number, loop in enumerate(side.loops):
            names.append(f"sum{len(self.lines)}")
            self._loop(loop, number, names[-1], indent, left)
        return names

    def _loop(self, loop: Loop, number: int, name: str, indent: str, left: str) -> None:
        inside = depending(loop)
        for value in (*(demand.value for demand in loop.demands), loop.term):
            self.value(value, indent, inside)
        fixed = [demand for demand in loop.demands if demand.value.place not in inside]
        for demand in fixed:
            self.demand(demand, indent, left)
        self.lines += [f"{indent}{name} = 0.0", f"{indent}for {_name(loop.each)} in g{number}:"]
        for demand in loop.demands:
            if demand not in fixed:
                self.demand(demand, indent + "    ", left)
        term = self.value(loop.term, indent + "    ")
        self.lines.append(f"{indent}    {name} += {term}")
        self._told -= inside


def depending(loop: Loop) -> frozenset[int]:
    """Places, in the order of recording, of the nodes that differ between the rows of a loop."""
    found = {loop.each.place}
    for node in needed([*(demand.value for demand in loop.demands), loop.term]):
        if any(operand.__class__ is Node and operand.place in found for operand in node.operands):
            found.add(node.place)
    return frozenset(found)


def _name(value: Value) -> str:
    if value.__class__ is not Node:
        return f"({value!r})"
    match value.operation:
        case "row":
            return f"r{value.operands[0]}"
        case "each":
            return f"each{value.operands[0]}"
    return f"t{value.place}"


def _text(node: Node) -> str:
    match node.operation, node.operands:
        case "load", (column, row):
            return f"c{column}[{_name(row)}]"
        case "object", (number,):
            return f"o{number}"
        case "call", (number, *arguments):
            return f"o{number}({', '.join(map(_name, arguments))})"
    return text_of(node, _name, columns=False)


def printed(form: Form, rng: np.random.Generator, rows: int, decide: Decide) -> Printed:
    """The functions of a form, bound to its columns as they stand; they hold until a column changes its kind or size.

    `rows` is the number of the shape's places.
    """
    text = "\n".join([*_weigh(form, rows), *_step(form, rows, isinstance(decide, Metropolis))]) + "\n"
    namespace: dict[str, Any] = {
        **SCALAR_NAMES,
        "inf": math.inf,
        "nan": math.nan,
        "Left": Left,
        "UNDRAWN": UNDRAWN,
        "decide": decide,
        "Weight": Weight,
    }
    namespace |= {f"c{number}": column.view for number, column in enumerate(form.columns)}
    namespace |= {f"o{number}": value for number, value in enumerate(form.objects)}
    namespace |= {"rng": rng, "random": rng.random}
    exec(text, namespace)
    return Printed(namespace["weigh"], namespace["step"])


def _parameters(form: Form, places: int) -> str:
    rows = [f"r{place}" for place in range(places)]
    return ", ".join([*rows, *(f"g{number}" for number in range(len(form.new.loops)))])


def _weigh(form: Form, places: int) -> list[str]:
    printer = _Printer()
    terms, *sums = printer.side(form.old, "    ", "UNDRAWN")
    return [f"def weigh({_parameters(form, places)}):", *printer.lines, f"    return {_minus(terms, sums)}"]


def _minus(terms: str, sums: list[str]) -> str:
    """What the densities of a state count where it is left: loops first, as they were weighed apart."""
    return " - ".join(["0.0", *sums, terms])


def _step(form: Form, places: int, by_metropolis: bool) -> list[str]:
    printer = _Printer()
    lines = printer.lines
    for demand in form.before:
        printer.demand(demand, "    ", "UNDRAWN")
    proposed = printer.value(form.proposed, "    ")
    lines.append("    try:")
    terms, *sums = printer.side(form.new, "        ", proposed)
    for store in form.stores:
        kind = form.columns[store.column].kind
        assert kind is not None
        name = printer.value(store.value, "        ")
        lines.append(f"        if {name}.__class__ is not {kind.__name__}: return Left({proposed})")
    ratio = [] if form.ratio.__class__ is float and form.ratio == 0.0 else [printer.value(form.ratio, "        ")]
    lines.append(f"        total = {' + '.join(['minus', *ratio, terms, *sums])}")
    lines.append(f"        if total - total != 0.0: return Left({proposed})")
    lines.append(f"    except Exception: return Left({proposed})")
    if by_metropolis:
        lines.append("    u = random()")
        lines.append("    if total >= 0.0 or u < exp(total):")
    else:
        lines.append("    if decide(Weight(0, total)):")
    lines.extend(f"        c{store.column}[r{store.place}] = {_name(store.value)}" for store in form.stores)
    lines.append(f"        return {_minus(terms, sums)}")
    lines.append("    return None")
    return [f"def step({_parameters(form, places)}, minus):", *lines]
