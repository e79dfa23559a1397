"""Forms as Python over the columns' memory: for transitions that weigh a few rows.

Of a form two functions are made: `weigh(rows)` gives minus the log density of the present state, `step(rows, that)`
makes a transition. Whatever is not as it should be (a number that fails a test, an infinite density, an error) leaves
the transition to the interpreter, with the value that was proposed if one was drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from venture_lite.interpreter.kernel import Metropolis, Move
from venture_lite.interpreter.readers import compiled_text
from venture_lite.interpreter.references import NUMBERS
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.form import Demand, Failed, RowLoop, Side, Store, TransitionForm, Value
from venture_lite.procedures.straight_line import SCALAR_NAMES, Node, depending, needed, text_of
from venture_lite.trace.table import STAMPS


class Left(NamedTuple):
    """A transition that is the interpreter's."""

    # the values drawn by then, each with its ratio, and the error that the next proposal met
    drawn: tuple[tuple[Any, float], ...]
    error: Exception | None = None


ROWS = ("row", "each")
"""Operations that give rows: they have names already."""

LONGEST_SUM = 50
"""Terms that are added in one line: a sum of very many is nested too deep for the compiler."""


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
            if node.operation not in ROWS and node.place not in self._told and node.place not in inside:
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
        self.lines.append(f"{indent}{names[0]} = 0.0")
        for first in range(0, len(terms), LONGEST_SUM):
            self.lines.append(f"{indent}{names[0]} = {' + '.join([names[0], *terms[first : first + LONGEST_SUM]])}")
        for number, loop in enumerate(side.loops):
            names.append(f"sum{len(self.lines)}")
            self._loop(loop, number, names[-1], indent, left)
        return names

    def _loop(self, loop: RowLoop, number: int, name: str, indent: str, left: str) -> None:
        values = [*(demand.value for demand in loop.demands), loop.term]
        # what differs between the rows of the loop
        inside = frozenset(depending(values, lambda node: node is loop.each))
        for value in values:
            self.value(value, indent, inside)
        varying = [demand for demand in loop.demands if demand.value.place in inside]
        for demand in loop.demands:
            if demand.value.place not in inside:
                self.demand(demand, indent, left)
        self.lines += [f"{indent}{name} = 0.0", f"{indent}for {_name(loop.each)} in g{number}:"]
        for demand in varying:
            self.demand(demand, indent + "    ", left)
        term = self.value(loop.term, indent + "    ")
        self.lines.append(f"{indent}    {name} += {term}")
        self._told -= inside


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
        case ("call", (number, *arguments)) | ("fresh", (_, number, *arguments)):
            return f"o{number}({', '.join(map(_name, arguments))})"
        case "part", (values, number):
            return f"{_name(values)}[{number}]"
    return text_of(node, _name, columns=False)


def printed(form: TransitionForm, rng: np.random.Generator, places: int, move: Move) -> Printed:
    """The functions of a form, bound to its columns as they stand; they hold until a column changes its kind or size.

    `places` is the number of the shape's places.
    """
    text = "\n".join([*_weigh(form, places), *_step(form, places, move)]) + "\n"
    namespace: dict[str, Any] = {**SCALAR_NAMES, "inf": math.inf, "nan": math.nan, "Left": Left, "Failed": Failed}
    namespace |= {"decide": move.decide, "Weight": Weight, "stamp": STAMPS.__next__, "rng": rng, "random": rng.random}
    for number, column in enumerate(form.columns):
        namespace |= {f"c{number}": column.view, f"column{number}": column}
    namespace |= {f"o{number}": value for number, value in enumerate(form.objects)}
    exec(compiled_text(text), namespace)
    return Printed(namespace["weigh"], namespace["step"])


def _parameters(form: TransitionForm, places: int) -> str:
    rows = [f"r{place}" for place in range(places)]
    groups = [f"g{number}" for number in range(len(form.new.loops))]
    return ", ".join([*rows, *groups, *(("sites", "users") if form.wide else ())])


def _weigh(form: TransitionForm, places: int) -> list[str]:
    printer = _Printer()
    sums = printer.side(form.old, "    ", "()")
    returned = _minus([*sums, "users()"] if form.wide else sums)
    return [f"def weigh({_parameters(form, places)}):", *printer.lines, f"    return {returned}"]


def _minus(sums: Sequence[str]) -> str:
    """What the densities of a state count where it is left: loops first, as they were weighed apart."""
    terms, *others = sums
    return " - ".join(["0.0", *others, terms])


def _step(form: TransitionForm, places: int, move: Move) -> list[str]:
    """A transition. What fails leaves it with what was drawn by then."""
    printer = _Printer()
    lines = printer.lines
    left, ratios = "()", []
    if form.wide:
        lines += ["    try: before = sites()", "    except Exception: return Left(())"]
    for proposal in form.proposals:
        lines.append("    try:")
        for demand in proposal.demands:
            printer.demand(demand, "        ", left)
        value, ratio = (printer.value(part, "        ") for part in (proposal.value, proposal.ratio))
        lines.append(f"    except Failed as failed: return Left({left}, failed.error)")
        lines.append(f"    except Exception: return Left({left})")
        ratios += [] if proposal.ratio.__class__ is float and proposal.ratio == 0.0 else [ratio]
        left = f"{left[:-1]}({value}, {ratio}), )"
    lines.append("    try:")
    sums = printer.side(form.new, "        ", left)
    values = [(store, printer.value(store.value, "        ")) for store in form.stores]
    lines += [line for store, value in values for line in _kind_is(form, store, value, left)]
    lines.append(f"    except Exception: return Left({left})")
    lines += _ending(form, move, _changes(form, values), sums, ratios, left)
    return [f"def step({_parameters(form, places)}, minus):", *lines]


def _kind_is(form: TransitionForm, store: Store, value: str, left: str) -> list[str]:
    """That a column of numbers takes a value of its own kind; of 64 bits, if it is an integer."""
    kind = form.columns[store.column].kind
    if kind not in NUMBERS:
        return []
    test = f"{value}.__class__ is not {kind.__name__}"
    test += f" or not {-(2**63)} <= {value} < {2**63}" if kind is int else ""
    return [f"        if {test}: return Left({left})"]


def _cell(store: Store) -> str:
    """Where a value stands."""
    return f"c{store.column}[r{store.place}]"


def _put(form: TransitionForm, store: Store, value: str) -> str:
    if form.columns[store.column].kind is np.ndarray:
        # the rows of a matrix may be those of the data, which nobody writes over
        return f"column{store.column}.put(r{store.place}, {value})"
    return f"{_cell(store)} = {value}"


Changes = tuple[list[str], list[str], list[str]]
"""The lines that save what stands, write the new values, and take that back."""


def _changes(form: TransitionForm, values: Sequence[tuple[Store, str]]) -> Changes:
    stamps = [f"column{number}.stamp" for number in dict.fromkeys(store.column for store in form.stores)]
    save = [f"s{at} = {_cell(store)}" for at, (store, _) in enumerate(values)]
    save += [f"k{at} = {stamp}" for at, stamp in enumerate(stamps)]
    put = [_put(form, store, value) for store, value in values] + [f"{stamp} = stamp()" for stamp in stamps]
    back = [_put(form, store, f"s{at}") for at, (store, _) in enumerate(values)]
    back += [f"{stamp} = k{at}" for at, stamp in enumerate(stamps)]
    return save, put, back


def _ending(
    form: TransitionForm, move: Move, changes: Changes, sums: Sequence[str], ratios: Sequence[str], left: str
) -> list[str]:
    """The end of a step: the decision, and what is written. Before rows are weighed by columns it must be."""
    save, put, back = changes
    terms, *others = sums
    if not (form.wide or move.looks):
        total = " + ".join(["minus", *ratios, terms, *others])
        test = [f"    if total - total != 0.0: return Left({left})"]
        if isinstance(move.decide, Metropolis):
            # the present state is possible: one that is not is rejected, whatever else it weighs
            test[:0] = ["    if total == -inf:", "        random()", "        return None"]
        elif move.refuses_impossible:
            test[:0] = ["    if total == -inf: return None"]
        return [
            *(f"    total = {total}", *test, *_decided(move), *_indented(put, 2)),
            *(f"        return {_minus(sums)}", "    return None"),
        ]
    weighed = ["after, using = sites(), users()"] if form.wide else []
    minus, more = ("minus - before", ["after", "using"]) if form.wide else ("minus", [])
    total = " + ".join([minus, *ratios, *others, terms, *more])
    failed = [*_indented(back, 2), f"        return Left({left})"]
    return [
        *_indented(save, 1),
        *("    try:", *_indented([*put, *weighed], 2), "    except Exception:", *failed),
        *(f"    total = {total}", "    if total - total != 0.0:", *failed),
        *("    try:", *_indented(_decided(move), 1), f"            return {_minus([*sums, *more[1:]])}"),
        *("    except BaseException:", *_indented(back, 2), "        raise"),
        *(*_indented(back, 1), "    return None"),
    ]


def _indented(lines: Sequence[str], levels: int) -> list[str]:
    return ["    " * levels + line for line in lines]


def _decided(move: Move) -> list[str]:
    """The decision, of which the last line begins what is done where the transition is accepted."""
    if isinstance(move.decide, Metropolis):
        return ["    u = random()", "    if total >= 0.0 or u < exp(total):"]
    return ["    if decide(Weight(0, total)):"]
