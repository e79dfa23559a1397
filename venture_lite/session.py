"""`Venture`: the embedding API. One program, one trace for each chain.

A directive runs in every chain before it is made final in any, so that an error in one leaves all as they were.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite import syntax
from venture_lite.analyze import inlinable
from venture_lite.code import Code, Global, Kind
from venture_lite.draws import Draws
from venture_lite.errors import (
    ArgumentError,
    ParameterError,
    Source,
    Span,
    VentureError,
    VentureWarning,
    nearest,
)
from venture_lite.inference.program import InferenceProgram
from venture_lite.lift import Lifter, shape
from venture_lite.parameters import Passes, constant_index, index_column
from venture_lite.parse import parse_expression, parse_program
from venture_lite.procedures import registry
from venture_lite.procedures.user import user_random
from venture_lite.progress import Progress, Silent
from venture_lite.standard import StandardLibrary
from venture_lite.syntax import Directive, Expression, Literal, Name, Parameter, Quote
from venture_lite.trace.directives import Model, Rows
from venture_lite.trace.evaluate import NO_EVIDENCE, Limits
from venture_lite.values import from_python, to_python


@dataclass(frozen=True, slots=True)
class DirectiveResult:
    """What one directive of a program gave."""

    directive: Directive
    kind: str
    label: str | None
    # the expression's text, where the directive has one
    expression: str | None
    value: Any
    line: int


@dataclass(slots=True)
class _Live:
    """A directive that is part of the model."""

    id: int
    label: str | None
    kind: str
    text: str
    span: Span
    # for each chain: the rows of each directive inside (one, but for a loop over several)
    rows: list[list[Rows]]
    # for each pass of a loop: the values of its variables, outermost first
    passes: list[tuple[int, ...]] | None = None
    name: str | None = None
    forgotten: set[int] = field(default_factory=set)


class Venture:
    """A model and its inference.

    `seed`: an integer, or None for fresh entropy (kept as `v.seed`). `chains`: number of independent traces; chain k draws from
    `SeedSequence(seed).spawn(chains)[k]`. Values come as one value, or as a list of one a chain.
    """

    def __init__(
        self,
        seed: int | None = None,
        chains: int = 1,
        *,
        only_chain: int | None = None,
        progress: Progress | None = None,
        nested_calls: int = 400_000,
        memory_mb: float | None = None,
    ) -> None:
        if chains < 1:
            raise ArgumentError(f"chains must be 1 or more, got {chains}")
        root = np.random.SeedSequence(seed)
        self.seed: int = seed if seed is not None else int(root.entropy)  # type: ignore[arg-type]
        seeds = root.spawn(chains)
        self._seeds = seeds if only_chain is None else [seeds[only_chain]]
        self._first_chain = only_chain or 0
        self._limits = Limits(nested_calls, memory_mb)
        self._progress = progress or Silent()
        self._registered: dict[str, Any] = {}
        self._interrupted = False
        self._start()

    def _start(self) -> None:
        self._standard = StandardLibrary()
        self.traces = [
            Model(np.random.default_rng(seed), self._standard.definer(lambda i=i: self.traces[i]), self._limits)
            for i, seed in enumerate(self._seeds)
        ]
        for model in self.traces:
            model.interrupted = lambda: self._interrupted
            model.trace.analyzer.registered = self._registered
        self._directives: dict[int, _Live] = {}
        self._next_id = 1
        self._defined: dict[str, Any] = {}
        self._codes: dict[Any, Code] = {}
        self._folder = Path()

    def __reduce__(self) -> Any:
        raise TypeError("a Venture cannot be pickled: save its program and run it again with the same seed")

    # ------------------------------------------------------------------------------------------------ programs

    def execute(self, text: str, /, **parameters: Any) -> list[Any]:
        """Run a program's text; the value of each directive."""
        return self._run_all(Source("<input>", text), parameters)

    def run_file(self, path: str | PathLike[str], /, **parameters: Any) -> list[Any]:
        """Run a program file; the value of each directive."""
        return self._run_all(read_source(Path(path), None), parameters)

    def _run_all(self, source: Source, parameters: dict[str, Any]) -> list[Any]:
        values: list[Any] = []
        self.run_source(source, parameters, lambda result: values.append(result.value))
        return values

    def run_source(
        self, source: Source, parameters: dict[str, Any], on_value: Callable[[DirectiveResult], None]
    ) -> None:
        """Run a program, and tell each directive's value as it comes."""
        folder, self._folder = self._folder, Path(source.name).parent
        try:
            for directive in parse_program(source):
                value = self._execute(directive, parameters, {})
                on_value(_result(directive, value))
        finally:
            self._folder = folder

    def _execute(self, directive: Directive, parameters: dict[str, Any], passes: dict[str, int]) -> Any:
        with self._guarded():
            return self._dispatch(directive, parameters, passes)

    def _dispatch(self, directive: Directive, parameters: dict[str, Any], passes: dict[str, int]) -> Any:
        match directive:
            case syntax.Assume():
                return self._assume(directive, parameters)
            case syntax.Observe() | syntax.Predict():
                return self._rows(directive, parameters, passes)
            case syntax.Loop():
                return self._loop(directive, parameters, passes)
            case syntax.Infer(expression=expression):
                return self._infer(expression, parameters, passes)
            case syntax.Sample(expression=expression):
                return self._joined([to_python(sample()) for sample in self._samplers(expression, parameters, passes)])
            case syntax.Force():
                return self._force(directive, parameters)
            case syntax.Forget(reference=reference):
                return self._forget(reference)
            case syntax.Report(reference=reference):
                return self._report(self._find(reference))
            case syntax.Define(name=name, expression=expression):
                self._defined[name] = self._evaluator(parameters, passes).value(expression)
                return to_python(self._defined[name])
            case syntax.ListDirectives():
                return self.list_directives()
            case syntax.Clear():
                self._start()
                return None
            case syntax.GetLogScore():
                return self._log_score()
            case syntax.Load(path=path, span=span):
                values: list[Any] = []
                source = read_source(self._folder / path, span)
                self.run_source(source, parameters, lambda result: values.append(result.value))
                return values
            case syntax.Freeze():
                raise VentureError("freeze is not there yet", directive.span, "observe the value instead")
        raise VentureError("unknown directive", directive.span)

    # ------------------------------------------------------------------------------------------------- assume

    def _assume(self, directive: syntax.Assume, parameters: dict[str, Any]) -> Any:
        self._refuse_label(directive.label, directive.span)
        if directive.name in registry.PROCEDURES and False:
            raise ArgumentError(f"{directive.name} is a procedure of the language", directive.span)
        live = self._new("assume", directive, [])
        live.name = directive.name
        bound: list[Global] = []
        try:
            for model in self.traces:
                analyzer = model.trace.analyzer
                target = analyzer.new_global(directive.name, directive.span)
                bound.append(target)
                target.lambda_form = inlinable(_filled(directive.expression, parameters), directive.name)
                code, columns = self._code(model, directive.expression, parameters, None, name=directive.name)
                live.rows.append([model.load(code, columns, 1, NO_EVIDENCE, target)])
        except BaseException:
            for model, _ in zip(self.traces, bound, strict=False):
                del model.trace.analyzer.globals[directive.name]
            raise
        self._enter(live)
        return self._report(live)

    def _code(
        self,
        model: Model,
        expression: Expression,
        parameters: dict[str, Any],
        passes: Passes | None,
        name: str = "expression",
    ) -> tuple[Code, list[Any]]:
        """The Code of a directive's expression, shared by expressions of one shape, and a column for each argument slot."""
        lifter = Lifter(tuple(passes or ()), parameters, lift_literals=passes is None)
        lifted = lifter.lift(expression)
        analyzer = model.trace.analyzer
        key = (shape(lifted.expression), name if name != "expression" else None)
        names = analyzer.meaning(lifted.expression)
        code = model.codes.get((key, names))
        if code is None:
            code = analyzer.directive(name, lifted.expression, len(lifted.arguments), name != "expression")
            model.codes[key, names] = code
            model.trace.grow_with_program()
        columns = []
        for argument in lifted.arguments:
            if isinstance(argument, Literal):
                columns.append([from_python(argument.value)])
            else:
                columns.append(self._column(argument, parameters, passes or {}))
        return code, columns

    def _column(self, argument: Parameter, parameters: dict[str, Any], passes: Passes) -> Any:
        return index_column(argument.index, parameters, passes)

    # ------------------------------------------------------------------------------------- observe and predict

    def _rows(self, directive: syntax.Observe | syntax.Predict, parameters: dict[str, Any], passes: dict[str, int]) -> Any:
        """One observe or predict, on its own or in one pass of a loop that runs pass by pass."""
        arrays = {name: np.array([value]) for name, value in passes.items()}
        live = self._new("observe" if isinstance(directive, syntax.Observe) else "predict", directive, [])
        self._load(live, [(directive, arrays, 1)], parameters, bool(passes))
        self._enter(live)
        if live.kind == "predict":
            return self._report(live)
        return self._joined([self._density(model, rows[0]) for model, rows in zip(self.traces, live.rows, strict=True)])

    def _density(self, model: Model, rows: Rows) -> float:
        from venture_lite.trace.trace import ROW_MASK
        from venture_lite.trace.weights import log_density

        node = model.evidence_node(rows.code, int(rows.rows[0]))
        return log_density(model.trace, node >> 32, node & ROW_MASK)

    def _load(self, live: _Live, leaves: list[Any], parameters: dict[str, Any], in_loop: bool) -> None:
        """Load the observes and predicts of a directive, each with its passes, into every chain."""
        shared: dict[int, Any] = {}
        for model in self.traces:
            prepared = []
            for position, (directive, arrays, count) in enumerate(leaves):
                code, columns = self._code(model, directive.expression, parameters, arrays if in_loop or arrays else None)
                columns = shared.setdefault(position, columns)
                evidence = NO_EVIDENCE
                if isinstance(directive, syntax.Observe):
                    key = ("evidence", position)
                    if key not in shared:  # type: ignore[comparison-overlap]
                        shared[key] = self._evidence(directive.value, parameters, arrays, count)  # type: ignore[index]
                    evidence = shared[key]  # type: ignore[index]
                prepared.append((code, columns, count, evidence))
            live.rows.append(self._load_prepared(model, prepared, live))

    def _load_prepared(self, model: Model, prepared: list[Any], live: _Live) -> list[Rows]:
        counts = {count for _, _, count, _ in prepared}
        together = len(prepared) == 1 or len(counts) > 1 or all(model.is_flat(code) for code, *_ in prepared)
        with _without_garbage_collection():
            try:
                if together:
                    return [model.load(*item) for item in prepared]
                # one pass after another, so that the data of a pass stand together
                made = [model.begin_load(*item) for item in prepared]
                for position in range(counts.pop()):
                    for rows, (*_, evidence) in zip(made, prepared, strict=True):
                        model.load_one(rows, evidence, position)
                return made
            except VentureError as error:
                at = getattr(error, "position", None)
                if at is not None and live.passes is not None:
                    values = live.passes[at] if at < len(live.passes) else ()
                    error.message += f" ({', '.join(f'pass {v}' for v in map(str, values))})" if values else ""
                raise

    def _evidence(self, value: Expression, parameters: dict[str, Any], arrays: Passes, count: int) -> Any:
        match value:
            case Parameter(index=index) if arrays:
                return index_column(index, parameters, arrays)
            case Literal() | Quote() | Parameter():
                return [from_python(self._evaluator(parameters, {}).value(value))] * count
        found = []
        for position in range(count):
            passes = {name: int(column[position]) for name, column in arrays.items()}
            found.append(from_python(self._evaluator(parameters, passes).value(value)))
        return found

    # --------------------------------------------------------------------------------------------------- loops

    def _loop(self, loop: syntax.Loop, parameters: dict[str, Any], passes: dict[str, int]) -> Any:
        if _only_rows(loop):
            return self._data_loop(loop, parameters, passes)
        _refuse_assume(loop)
        values = []
        for value in self._range(loop, parameters, passes):
            inner = {**passes, loop.variable: value}
            values.append([self._dispatch(directive, parameters, inner) for directive in loop.body])
            self._commit()
        return values

    def _range(self, loop: syntax.Loop, parameters: dict[str, Any], passes: dict[str, int]) -> range:
        bounds = []
        for bound in (loop.first, loop.last):
            value = constant_index(bound, parameters, passes)
            if not isinstance(value, (int, float)) or isinstance(value, bool) or value != int(value):
                raise ParameterError(f"a loop's bound must be a whole number, got {value}", bound.span)
            bounds.append(int(value))
        return range(bounds[0], bounds[1] + 1)

    def _data_loop(self, loop: syntax.Loop, parameters: dict[str, Any], passes: dict[str, int]) -> Any:
        """A loop that only observes and predicts: one directive, its rows loaded together."""
        live = self._new("loop", loop, [])
        fixed = {name: np.array([value]) for name, value in passes.items()}
        leaves: list[Any] = []
        self._unroll(loop, parameters, fixed, 1, leaves)
        if leaves:
            _, arrays, count = leaves[0]
            names = list(arrays)[len(passes) :]
            live.passes = _PassList([arrays[name] for name in names], count)  # type: ignore[assignment]
        if sum(count for *_, count in leaves):
            self._load(live, leaves, parameters, True)
        else:
            live.rows = [[] for _ in self.traces]
        self._enter(live)
        return leaves[0][2] if leaves else 0

    def _unroll(
        self, loop: syntax.Loop, parameters: dict[str, Any], outer: dict[str, np.ndarray], count: int, leaves: list[Any]
    ) -> None:
        """The passes of a loop inside all passes of those around it, as arrays."""
        if count == 1:
            bounds = self._range(loop, parameters, {name: int(column[0]) for name, column in outer.items()})
            inner = {name: np.repeat(column, len(bounds)) for name, column in outer.items()}
            inner[loop.variable] = np.arange(bounds.start, bounds.stop)
        else:
            ranges = [
                self._range(loop, parameters, {name: int(column[i]) for name, column in outer.items()})
                for i in range(count)
            ]
            lengths = [len(r) for r in ranges]
            inner = {name: np.repeat(column, lengths) for name, column in outer.items()}
            inner[loop.variable] = np.concatenate([np.arange(r.start, r.stop) for r in ranges] or [np.zeros(0, int)])
        size = len(inner[loop.variable])
        for directive in loop.body:
            if isinstance(directive, syntax.Loop):
                self._unroll(directive, parameters, inner, size, leaves)
            else:
                leaves.append((directive, inner, size))

    # ------------------------------------------------------------------------------------------------ inference

    def _infer(self, expression: Expression, parameters: dict[str, Any], passes: dict[str, int]) -> Any:
        parts: list[Draws] = []
        values: list[Any] = []
        with _one_blas_thread():
            for index, model in enumerate(self.traces):
                program = InferenceProgram(
                    model, self._defined, parameters, self._sampler_of(model, parameters, passes), passes, self._progress
                )
                try:
                    values.append(to_python(program.run(expression)))
                except (KeyboardInterrupt, VentureError) as error:
                    model.rollback()
                    parts.append(_finished(program, self._first_chain + index))
                    error.draws = Draws.merge(parts)  # type: ignore[union-attr]
                    raise
                model.commit()
                parts.append(_finished(program, self._first_chain + index))
                self._warn_impossible(model, index)
        if any(value is not None for value in values):
            return self._joined(values)
        return Draws.merge(parts)

    def _warn_impossible(self, model: Model, chain: int) -> None:
        if not model.maybe_impossible:
            return
        impossible = model.impossible_choices()
        if not impossible:
            model.maybe_impossible = False
            return
        code, slot, row = model.trace.decode(impossible[0])
        span = code.slots[slot].span
        where = f"{span.place()}: {span.text}" if span else code.name
        more = f" (and {len(impossible) - 1} more)" if len(impossible) > 1 else ""
        of_chain = f"chain {chain}: " if len(self.traces) > 1 else ""
        warnings.warn(f"{of_chain}the state has probability zero: {where}{more}", VentureWarning, stacklevel=4)

    def _sampler_of(
        self, model: Model, parameters: dict[str, Any], passes: dict[str, int]
    ) -> Callable[[Expression], Callable[[], Any]]:
        def sampler(expression: Expression) -> Callable[[], Any]:
            if isinstance(expression, Name):
                direct = _stored_global(model, expression.name)
                if direct is not None:
                    return direct
            arrays = {name: np.array([value]) for name, value in passes.items()}
            bound = Lifter((), {**parameters, **passes}, lift_literals=False).lift(_bind_passes(expression, passes))
            del arrays
            code = model.trace.analyzer.directive("sample", bound.expression, 0, False)
            model.trace.grow_with_program()
            return lambda: model.sample(code)

        return sampler

    def _samplers(
        self, expression: Expression, parameters: dict[str, Any], passes: dict[str, int]
    ) -> list[Callable[[], Any]]:
        return [self._sampler_of(model, parameters, passes)(expression) for model in self.traces]

    def _evaluator(self, parameters: dict[str, Any], passes: dict[str, int]) -> InferenceProgram:
        model = self.traces[0]
        return InferenceProgram(model, self._defined, parameters, self._sampler_of(model, parameters, passes), passes)

    # ------------------------------------------------------------------------------------ directives that exist

    def _new(self, kind: str, directive: Any, rows: list[list[Rows]]) -> _Live:
        self._refuse_label(directive.label, directive.span)
        return _Live(self._next_id, directive.label, kind, directive.span.text, directive.span, rows)

    def _enter(self, live: _Live) -> None:
        self._commit()
        self._directives[live.id] = live
        self._next_id += 1

    def _refuse_label(self, label: str | None, span: Span) -> None:
        if label is not None and any(live.label == label for live in self._directives.values()):
            raise VentureError(f"the label {label} is taken", span, "choose another, or forget the directive that has it")

    def _find(self, reference: syntax.DirectiveReference) -> _Live:
        for live in self._directives.values():
            if reference.target in (live.id, live.label) or (live.kind == "assume" and live.name == reference.target):
                return live
        labels = [live.label for live in self._directives.values() if live.label]
        hint = nearest(str(reference.target), labels) or "[list_directives] shows what there is"
        raise VentureError(f"no directive is labelled or numbered {reference.target}", reference.span, hint)

    def _report(self, live: _Live) -> Any:
        if live.kind == "loop":
            return len(live.passes or ()) - len(live.forgotten)
        values = []
        for model, (rows, *_) in zip(self.traces, live.rows, strict=True):
            values.append(to_python(model.read_result(rows.code, int(rows.rows[0]))))
        return self._joined(values)

    def _forget(self, reference: syntax.DirectiveReference) -> None:
        live = self._find(reference)
        if live.kind == "assume":
            self._refuse_forget_of_used(live, reference.span)
        positions = self._passes_of(live, reference)
        for model, all_rows in zip(self.traces, live.rows, strict=True):
            for rows in reversed(all_rows):
                for position in reversed(positions):
                    model.remove_row(rows, position)
        self._commit()
        if reference.positions:
            live.forgotten.update(positions)
            return
        if live.kind == "assume" and live.name is not None:
            for model in self.traces:
                del model.trace.analyzer.globals[live.name]
        del self._directives[live.id]

    def _passes_of(self, live: _Live, reference: syntax.DirectiveReference) -> list[int]:
        """The rows that a reference names: all that are left, or those of one pass."""
        count = len(live.passes) if live.passes is not None else 1
        if not reference.positions:
            return [position for position in range(count) if position not in live.forgotten]
        if live.passes is None:
            raise VentureError("only the data of a loop are forgotten one by one", reference.span)
        if not hasattr(live.passes, "find"):
            raise VentureError("the loop has no such pass", reference.span)
        found = [position for position in live.passes.find(reference.positions) if position not in live.forgotten]
        if not found:
            raise VentureError(f"the loop has no pass {' '.join(map(str, reference.positions))}", reference.span)
        return found

    def _refuse_forget_of_used(self, live: _Live, span: Span) -> None:
        target = self.traces[0].trace.analyzer.globals[live.name]  # type: ignore[index]
        for other in self._directives.values():
            if other.id != live.id and any(target in rows.code.uses for rows in (other.rows[0] if other.rows else ())):
                raise VentureError(f"{live.name} is used by {other.text}", span, "forget that directive first")

    def _force(self, directive: syntax.Force, parameters: dict[str, Any]) -> Any:
        value = from_python(self._evaluator(parameters, {}).value(directive.value))
        for model in self.traces:
            bound = Lifter((), parameters, lift_literals=False).lift(directive.expression)
            code = model.trace.analyzer.directive("force", bound.expression, 0, False)
            model.trace.grow_with_program()
            rows = model.load(code, [], 1, NO_EVIDENCE)
            try:
                model.force(code, int(rows.rows[0]), value)
                model.remove_row(rows, 0)
            except VentureError as error:
                raise error.at(directive.span) from error
        self._commit()
        return to_python(value)

    # -------------------------------------------------------------------------------------------- Python's doors

    def assume(self, name: str, expression: str, label: str | None = None) -> Any:
        """Bind a name to an expression's value; returns the value."""
        parsed = _expression(expression)
        return self._execute(syntax.Assume(name, parsed, parsed.span, label), {}, {})

    def observe(self, expression: str, value: Any, label: str | None = None) -> Any:
        """Constrain the random choice that the expression's value is; returns its log density."""
        parsed = _expression(expression)
        constant = Quote(from_python(value), parsed.span)
        return self._execute(syntax.Observe(parsed, constant, parsed.span, label), {}, {})

    def predict(self, expression: str, label: str | None = None) -> Any:
        """Evaluate an expression in the trace and keep it up to date; returns its value."""
        parsed = _expression(expression)
        return self._execute(syntax.Predict(parsed, parsed.span, label), {}, {})

    def sample(self, expression: str) -> Any:
        """Evaluate an expression against the current trace and keep nothing."""
        parsed = _expression(expression)
        return self._execute(syntax.Sample(parsed, parsed.span), {}, {})

    def force(self, expression: str, value: Any) -> Any:
        """Set a random choice once, without constraining it."""
        parsed = _expression(expression)
        return self._execute(syntax.Force(parsed, Quote(from_python(value), parsed.span), parsed.span), {}, {})

    def forget(self, label: str | int) -> None:
        """Undo an assume, observe or predict."""
        self._execute(syntax.Forget(_reference(label), _reference(label).span), {}, {})

    def report(self, label: str | int) -> Any:
        """A directive's present value."""
        return self._execute(syntax.Report(_reference(label), _reference(label).span), {}, {})

    def infer(self, expression: str, /, **parameters: Any) -> Any:
        """Run an inference program; returns its `Draws`."""
        parsed = _expression(expression)
        return self._execute(syntax.Infer(parsed, parsed.span), parameters, {})

    def log_score(self) -> Any:
        """Log joint density of the current trace; one a chain where there are several."""
        return self._execute(syntax.GetLogScore(_expression("0").span), {}, {})

    def _log_score(self) -> Any:
        return self._joined([model.log_score().value() for model in self.traces])

    def clear(self) -> None:
        """Forget everything but the seed's generators, which start afresh."""
        self._start()

    def list_directives(self) -> list[dict[str, Any]]:
        """Every directive of the model: id, label, kind and text."""
        return [
            {"id": live.id, "label": live.label, "directive": live.kind, "text": live.text}
            for live in self._directives.values()
        ]

    def register(
        self,
        name: str,
        *,
        simulate: Callable[..., Any],
        log_density: Callable[..., Any],
        support: Callable[..., Any] | None = None,
        transform: Any = None,
    ) -> None:
        """Make a random procedure of Python functions: `simulate(rng, *arguments)`, `log_density(value, *arguments)`."""
        self._registered[name] = user_random(name, simulate, log_density, support, transform=transform)

    # ------------------------------------------------------------------------------------------------ machinery

    def _joined(self, values: list[Any]) -> Any:
        return values[0] if len(self._seeds) == 1 else values

    def _commit(self) -> None:
        for model in self.traces:
            model.commit()

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Ctrl-C becomes a flag that is read where the trace can stop; after an error the trace is as it was."""
        main = threading.current_thread() is threading.main_thread()
        previous = signal.getsignal(signal.SIGINT) if main else None
        handled = main and callable(previous)
        if handled:
            signal.signal(signal.SIGINT, self._interrupt)
        try:
            yield
        except RecursionError:
            self._rollback()
            raise VentureError("the expression is nested too deeply") from None
        except BaseException:
            self._rollback()
            raise
        finally:
            self._interrupted = False
            if handled:
                signal.signal(signal.SIGINT, previous)

    def _interrupt(self, number: int, frame: Any) -> None:
        self._interrupted = True

    def _rollback(self) -> None:
        for model in self.traces:
            model.rollback()


class _PassList:
    """The passes of a loop, kept as arrays."""

    def __init__(self, variables: list[np.ndarray], count: int) -> None:
        self.variables = variables
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, position: int) -> tuple[int, ...]:
        return tuple(int(column[position]) for column in self.variables)

    def find(self, positions: tuple[int, ...]) -> list[int]:
        """Passes whose first variables have these values."""
        if len(positions) > len(self.variables):
            return []
        match = np.ones(self.count, bool)
        for column, value in zip(self.variables, positions, strict=False):
            match &= column == value
        return np.flatnonzero(match).tolist()


def _finished(program: InferenceProgram, chain: int) -> Draws:
    collected = program.draws.finish()
    return Draws([{name: collected.by_chain(name)[0] for name in collected}], program.statistics(chain))


def _result(directive: Directive, value: Any) -> DirectiveResult:
    expression = getattr(directive, "expression", None)
    return DirectiveResult(
        directive,
        _KIND.get(type(directive), type(directive).__name__.lower()),
        directive.label,
        " ".join(expression.span.text.split()) if expression is not None else None,
        value,
        directive.span.line,
    )


_KIND = {syntax.ListDirectives: "list_directives", syntax.GetLogScore: "get_logscore"}


def _stored_global(model: Model, name: str) -> Callable[[], Any] | None:
    """A direct reading of a name whose value is stored."""
    target = model.trace.analyzer.globals.get(name)
    if target is None or target.code is None or target.code.result_slot < 0:
        return None
    if target.code.slots[target.code.result_slot].kind in (Kind.MEM, Kind.MAKER):
        return None
    column = model.trace.tables[target.code.index].columns[target.code.result_slot]
    assert column is not None
    row = target.row
    return lambda: column.view[row]


def _filled(expression: Expression, parameters: dict[str, Any]) -> Expression:
    """An assume's text with its parameters' values in place."""
    return Lifter((), parameters, lift_literals=False).lift(expression).expression


def _bind_passes(expression: Expression, passes: dict[str, int]) -> Expression:
    """Loop variables of a loop that runs pass by pass become numbers in an expression that is sampled."""
    if not passes:
        return expression
    match expression:
        case Name(name=name, span=span) if name in passes:
            return Literal(passes[name], span)
        case syntax.Form(items=items, span=span):
            return syntax.Form(tuple(_bind_passes(item, passes) for item in items), span)
    return expression


def _only_rows(loop: syntax.Loop) -> bool:
    return all(
        _only_rows(directive) if isinstance(directive, syntax.Loop) else isinstance(directive, (syntax.Observe, syntax.Predict))
        for directive in loop.body
    )


def _refuse_assume(loop: syntax.Loop) -> None:
    for directive in loop.body:
        if isinstance(directive, syntax.Assume):
            raise VentureError("assume cannot stand in a loop", directive.span, "assume a memoized procedure: (mem (lambda (n) ...))")
        if isinstance(directive, syntax.Loop):
            _refuse_assume(directive)


def _expression(text: str) -> Expression:
    return parse_expression(Source("<input>", text))


def _reference(label: str | int) -> syntax.DirectiveReference:
    source = Source("<input>", str(label))
    return syntax.DirectiveReference(label, (), Span(source, 0, len(source.text)))


def read_source(path: Path, span: Span | None) -> Source:
    """A program file's text. Raises VentureError for what is no such file."""
    try:
        return Source(str(path), path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise VentureError(f"{path} is not a text in UTF-8", span) from error
    except OSError as error:
        raise VentureError(f"cannot read {path}: {error.strerror or error}", span) from error


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Loading makes many objects and no cycles: the collector would only look at them again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Transitions are many and small: BLAS threads would cost more than they bring."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


