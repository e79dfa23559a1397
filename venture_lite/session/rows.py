"""From observes, predicts and loops over data to rows of the traces: analysed once, loaded together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.errors import ParameterError, VentureError, in_passes
from venture_lite.interpreter.evidence import NO_EVIDENCE
from venture_lite.interpreter.model import Model, Rows
from venture_lite.language import syntax
from venture_lite.language.collector import collector_paused
from venture_lite.language.syntax import Directive, Expression, Literal, Parameter, Quote
from venture_lite.program.code import Code, Global
from venture_lite.program.lift import Lifter, shape
from venture_lite.program.parameters import constant_index, index_column
from venture_lite.session.chains import Chains, Given
from venture_lite.session.live import Live, LivePasses, LoopPart
from venture_lite.session.queries import evaluator
from venture_lite.session.shapes import Shared, told_at
from venture_lite.values import from_python, show

REMEMBERED = 1_000_000
"""Numbers observed in one loop beyond which draws do not carry them along: whoever has so many has them in a file."""

MOST_PASSES = 2**32 - 1
"""A row's number has 32 bits."""

Variables = Mapping[str, np.ndarray]
"""Loop variable -> its value in each pass, outermost loop first."""


@dataclass(frozen=True, slots=True)
class LoopLeaf:
    """An observe or a predict, with the passes of all loops around it."""

    directive: syntax.Observe | syntax.Predict
    variables: Variables
    count: int


def lowered(
    model: Model, expression: Expression, given: Given, variables: Variables | None, name: str | None = None
) -> tuple[Shared, list[Any]]:
    """The Code of a directive's expression, shared by expressions of one shape, and a column for each argument slot.

    `variables` are those of the loops around it, None outside loops; `name` is what an assume binds.
    """
    lifter = Lifter(tuple(variables or ()), given.parameters, lift_literals=variables is None)
    lifted = lifter.lift(expression)
    analyzer = model.trace.analyzer
    key = (shape(lifted.expression), name), analyzer.meaning(lifted.expression)
    shared = model.codes.get(key)
    if shared is None:
        code = analyzer.directive(name or "expression", lifted.expression, len(lifted.arguments), name is not None)
        shared = model.codes[key] = Shared(code, expression)
        model.trace.grow_with_program()
    columns: list[Any] = []
    for argument in lifted.arguments:
        if isinstance(argument, Literal):
            columns.append([from_python(argument.value)])
        else:
            columns.append(index_column(argument.index, given.parameters, variables or {}))
    return shared, columns


def load_assume(chains: Chains, directive: syntax.Assume, given: Given, targets: list[Global]) -> list[Rows]:
    """Evaluate an assume's expression in every chain, and bind its name there."""
    made = []
    for model, target in zip(chains.models, targets, strict=True):
        shared, columns = lowered(model, directive.expression, given, None, name=directive.name)
        with told_at(shared, directive.expression), model.starting():
            rows = model.load(shared.code, columns, 1, NO_EVIDENCE, target)
            if model.trace.result(shared.code, int(rows.rows[0])) is None:
                raise VentureError(f"{directive.name} is used before it has a value", directive.span)
        made.append(rows)
    return made


def load_rows(chains: Chains, live: Live, given: Given) -> None:
    """An observe, a predict, or a loop that holds nothing else: its rows are loaded together."""
    around = {name: np.array([value]) for name, value in given.passes.items()}
    leaves = list(_leaves(live.directive, given, around))
    # the directives of one loop share its passes: together they make its data
    passes: dict[int, LivePasses] = {}
    for leaf in leaves:
        if leaf.variables and id(leaf.variables) not in passes:
            columns = [_compact(column) for column in leaf.variables.values()]
            passes[id(leaf.variables)] = LivePasses(tuple(leaf.variables), columns, leaf.count)
        live.parts.append(LoopPart(leaf.directive, passes=passes.get(id(leaf.variables))))
    _load(chains, live.parts, leaves, given)
    # a part without a pass has no rows, and nothing to report or to forget
    live.parts[:] = [part for part in live.parts if part.rows]


def _compact(column: np.ndarray) -> np.ndarray | range:
    """A run of whole numbers kept as what it is."""
    size = len(column)
    if size > 1 and int(column[-1]) - int(column[0]) == size - 1 and bool((np.diff(column) == 1).all()):
        return range(int(column[0]), int(column[-1]) + 1)
    return column


def bounds(loop: syntax.Loop, given: Given, passes: Mapping[str, int]) -> range:
    """The values of a loop's variable. Raises ParameterError for bounds that are no whole numbers."""
    found = []
    for bound in (loop.first, loop.last):
        value = constant_index(bound, given.parameters, passes)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value % 1 != 0:
            raise ParameterError(f"a loop's bound must be a whole number, got {show(value)}", bound.span)
        found.append(int(value))
    return range(found[0], found[1] + 1)


def passes_of(loop: syntax.Loop, given: Given, outer: Variables) -> dict[str, np.ndarray]:
    """The variables of a loop and of those around it in every pass, as arrays."""
    count = len(next(iter(outer.values()))) if outer else 1
    ranges = [bounds(loop, given, {name: int(column[i]) for name, column in outer.items()}) for i in range(count)]
    # a range may be longer than Python counts
    lengths = [max(0, values.stop - values.start) for values in ranges]
    if sum(lengths) > MOST_PASSES:
        message = f"the loop has {sum(lengths):,} passes, more than the {MOST_PASSES:,} that can be"
        raise ParameterError(message, loop.span)
    inner = {name: np.repeat(column, lengths) for name, column in outer.items()}
    inner[loop.variable] = np.concatenate([np.arange(r.start, r.stop) for r in ranges] or [np.zeros(0, np.int64)])
    return inner


def _leaves(directive: Directive, given: Given, variables: Variables) -> Iterator[LoopLeaf]:
    """The observes and predicts of a directive, with all passes of the loops around them."""
    if isinstance(directive, syntax.Loop):
        inner = passes_of(directive, given, variables)
        for part in directive.body:
            yield from _leaves(part, given, inner)
    elif isinstance(directive, (syntax.Observe, syntax.Predict)):
        yield LoopLeaf(directive, variables, len(next(iter(variables.values()))) if variables else 1)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What one chain needs to load a leaf."""

    part: LoopPart
    leaf: LoopLeaf
    shared: Shared
    columns: list[Any]
    evidence: Any

    def arguments(self) -> tuple[Code, list[Any], int, Any]:
        return self.shared.code, self.columns, self.leaf.count, self.evidence

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Errors are told at the leaf's own place, and name the pass of the loop."""
        with _naming_the_pass(self.part.passes), told_at(self.shared, self.leaf.directive.expression):
            yield


def _load(chains: Chains, parts: list[LoopPart], leaves: list[LoopLeaf], given: Given) -> None:
    """Load the leaves into every chain; the data are shared."""
    data: list[tuple[list[Any], Any]] = []
    present = [(part, leaf) for part, leaf in zip(parts, leaves, strict=True) if leaf.count]
    for model in chains.models:
        prepared = []
        for position, (part, leaf) in enumerate(present):
            with _naming_the_pass(part.passes):
                shared, columns = lowered(model, leaf.directive.expression, given, leaf.variables or None)
                if position == len(data):
                    data.append((columns, _evidence(chains, leaf, given)))
                    _remember(part, leaf, data[position][1])
            prepared.append(_Prepared(part, leaf, shared, *data[position]))
        with model.starting():
            made = _load_prepared(model, prepared)
        for item, rows in zip(prepared, made, strict=True):
            item.part.rows.append(rows)
            with item.told():
                _read_predictions(model, rows)


def _remember(part: LoopPart, leaf: LoopLeaf, evidence: Any) -> None:
    """Keep an observe's values for the origin of draws, copied: the trace may take the array over and write to it."""
    if not isinstance(leaf.directive, syntax.Observe) or isinstance(leaf.directive, syntax.Factor):
        return
    is_array = isinstance(evidence, np.ndarray)
    if (evidence.size if is_array else len(evidence)) <= REMEMBERED:
        part.evidence = np.array(evidence) if is_array else evidence


def _read_predictions(model: Model, rows: Rows) -> None:
    """A prediction that is computed when it is read is read once, so that what is wrong with it is told now."""
    if rows.observed or rows.code.result_slot >= 0:
        return
    for position in model.polled(range(len(rows.rows))):
        try:
            model.trace.result(rows.code, int(rows.rows[position]))
        except VentureError as error:
            error.position = position
            raise


def _load_prepared(model: Model, prepared: list[_Prepared]) -> list[Rows]:
    counts = {item.leaf.count for item in prepared}
    together = len(counts) > 1 or len(prepared) == 1 or all(model.is_flat(item.shared.code) for item in prepared)
    made = []
    with collector_paused():
        if together:
            for item in prepared:
                with item.told():
                    made.append(model.load(*item.arguments()))
            return made
        # one pass after another, so that the data of a pass stand together
        made = [model.begin_load(*item.arguments()) for item in prepared]
        for position in model.polled(range(counts.pop()), grows=True):
            for item, rows in zip(prepared, made, strict=True):
                try:
                    model.load_one(rows, item.evidence, position)
                except VentureError:
                    with item.told():
                        raise
        return made


@contextlib.contextmanager
def _naming_the_pass(passes: LivePasses | None) -> Iterator[None]:
    """An error met in one pass of a loop says in which."""
    try:
        yield
    except VentureError as error:
        if passes is not None and error.position is not None:
            error.in_pass(passes.told(error.position))
        raise


def _evidence(chains: Chains, leaf: LoopLeaf, given: Given) -> Any:
    """The observed value in every pass, or NO_EVIDENCE for a predict."""
    if not isinstance(leaf.directive, syntax.Observe):
        return NO_EVIDENCE
    value = leaf.directive.value
    match value:
        case Parameter(index=index) if leaf.variables:
            return index_column(index, given.parameters, leaf.variables)
        case Literal() | Quote() | Parameter():
            return [from_python(evaluator(chains, given).constant(value))] * leaf.count

    def constant(position: int) -> Any:
        passes = {name: int(column[position]) for name, column in leaf.variables.items()}
        return from_python(evaluator(chains, Given(given.parameters, passes)).constant(value))

    return in_passes(constant, chains.models[0].polled(range(leaf.count)))
