"""`Venture`: one program, one trace for each chain, and a method for each directive.

A directive runs in every chain before it is made final in any, so that an error in one leaves all as they were.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite import syntax
from venture_lite.analyze import inlinable
from venture_lite.errors import ArgumentError, Source, Span, VentureError, VentureWarning
from venture_lite.lift import Lifter
from venture_lite.parse import parse_expression, parse_program
from venture_lite.procedures.user import user_random
from venture_lite.progress import Progress, Silent
from venture_lite.session import queries, rows
from venture_lite.session.chains import Chains, Given
from venture_lite.session.live import Directory, Live, Part
from venture_lite.syntax import Directive, Expression, Quote
from venture_lite.trace.directives import Model
from venture_lite.trace.machine import Limits
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.table import ROW_MASK
from venture_lite.trace.weights import log_density
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


class Venture:
    """A model and its inference.

    `seed`: an integer, or None for fresh entropy (kept as `v.seed`). `chains`: number of independent traces; chain k
    draws from `SeedSequence(seed).spawn(chains)[k]`. Values come as one value, or as a list of one a chain.
    `nested_calls` and `memory_mb` (of the whole process) stop a program that would never end.
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
        if seed is not None and seed < 0:
            raise ArgumentError(f"a seed is a whole number from 0, got {seed}")
        root = np.random.SeedSequence(seed)
        self.seed: int = seed if seed is not None else int(root.entropy)  # type: ignore[arg-type]
        seeds = root.spawn(chains)
        seeds = seeds if only_chain is None else [seeds[only_chain]]
        limits = Limits(nested_calls, memory_mb)
        self._chains = Chains(seeds, only_chain or 0, limits, progress or Silent())
        self._directory = Directory(self._chains)
        # the program files that are being run, innermost last
        self._running: list[Path] = []
        # names that the rest of the text will assume; None where nobody knows what comes
        self._to_come: frozenset[str] | None = None

    @property
    def traces(self) -> list[Model]:
        """The trace of each chain, with the machinery that changes it."""
        return self._chains.models

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
        program = parse_program(source)
        path = Path(source.name)
        before = self._to_come
        self._running.append(path)
        self._to_come = (before or frozenset()) | _assumed(program, path.parent, {path.resolve()})
        try:
            for directive in program:
                value = self._execute(directive, Given(parameters))
                on_value(_result(directive, value))
        finally:
            self._running.pop()
            self._to_come = before

    def _execute(self, directive: Directive, given: Given) -> Any:
        with self._chains.guarded():
            return self._dispatch(directive, given)

    def _dispatch(self, directive: Directive, given: Given) -> Any:
        match directive:
            case syntax.Assume():
                return self._assume(directive, given)
            case syntax.Observe() | syntax.Predict():
                return self._leaf(directive, given)
            case syntax.Loop():
                return self._loop(directive, given)
            case syntax.Infer(expression=expression):
                return queries.infer(self._chains, expression, given)
            case syntax.Sample(expression=expression):
                return queries.sample(self._chains, expression, given)
            case syntax.Force():
                return queries.force(self._chains, directive, given)
            case syntax.Forget(reference=reference):
                return self._directory.forget(reference)
            case syntax.Report(reference=reference):
                return self._directory.report(self._directory.find(reference))
            case syntax.Define(name=name, expression=expression):
                self._chains.defined[name] = queries.evaluator(self._chains, given).value(expression)
                return to_python(self._chains.defined[name])
            case syntax.ListDirectives():
                return self.list_directives()
            case syntax.Clear():
                return self.clear()
            case syntax.GetLogScore():
                return self._chains.joined([model.log_score().value() for model in self.traces])
            case syntax.Load(path=path, span=span):
                return self._load(path, span, given)
            case syntax.Freeze():
                raise VentureError("freeze is not there yet", directive.span, "observe the value instead")
        raise VentureError("unknown directive", directive.span)

    def _load(self, name: str, span: Span, given: Given) -> list[Any]:
        folder = self._running[-1].parent if self._running else Path()
        path = folder / name
        if any(path.resolve() == running.resolve() for running in self._running):
            raise VentureError(f"{path} loads itself", span)
        return self._run_all(read_source(path, span), dict(given.parameters))

    # ------------------------------------------------------------------------------- directives of the model

    def _assume(self, directive: syntax.Assume, given: Given) -> Any:
        self._directory.refuse_taken([directive.label], directive.span)
        analyzers = [model.trace.analyzer for model in self.traces]
        filled = Lifter((), given.parameters, lift_literals=False).lift(directive.expression).expression
        for analyzer in analyzers:
            analyzer.refuse_binding(directive.name, directive.span)
            analyzer.begin_assume(directive.name, self._to_come)
        targets = []
        try:
            for model in self.traces:
                target = model.trace.analyzer.new_global(directive.name, directive.span)
                target.lambda_form = inlinable(filled, directive.name)
                targets.append(target)
            made = rows.load_assume(self._chains, directive, given, targets)
        except BaseException:
            for model in self.traces[: len(targets)]:
                model.trace.analyzer.unbind(directive.name)
            raise
        finally:
            awaited, *_ = [analyzer.end_of_assume() for analyzer in analyzers]
        live = Live(
            self._directory.next_id, directive.label, "assume", directive.span, [Part(None, made)], directive.name
        )
        self._directory.enter(live)
        if self._to_come is None:
            for target in awaited:
                hint = f"; {target.hint}" if target.hint else ""
                text = f"{directive.name} refers to {target.name}, which nothing binds yet{hint}"
                warnings.warn(text, VentureWarning, stacklevel=5)
        return self._directory.value(live)

    def _leaf(self, directive: syntax.Observe | syntax.Predict, given: Given) -> Any:
        self._directory.refuse_taken([directive.label], directive.span, given.run)
        kind = "observe" if isinstance(directive, syntax.Observe) else "predict"
        live = Live(
            self._directory.next_id, directive.label, kind, directive.span, [Part(directive.label)], run=given.run
        )
        rows.load_leaf(self._chains, live, directive, given)
        self._directory.enter(live)
        if kind == "predict":
            return self._directory.value(live)
        return self._chains.joined(
            [_density(model, made) for model, made in zip(self.traces, live.parts[0].rows, strict=True)]
        )

    def _loop(self, loop: syntax.Loop, given: Given) -> Any:
        if _only_rows(loop):
            self._directory.refuse_taken([loop.label, *_labels(loop)], loop.span, given.run)
            live = Live(self._directory.next_id, loop.label, "loop", loop.span, [], run=given.run)
            rows.load_loop(self._chains, live, loop, given)
            self._directory.enter(live)
            return self._directory.value(live)
        _refuse_in_loop(loop)
        values, given = [], given.in_loop()
        for value in rows.bounds(loop, given, given.passes):
            inner = given.inside(loop.variable, value)
            try:
                values.append([self._dispatch(directive, inner) for directive in loop.body])
            except VentureError as error:
                error.in_pass(", ".join(f"{name} = {at}" for name, at in inner.passes.items()))
                raise
            self._chains.commit()
        return values

    # -------------------------------------------------------------------------------------------- Python's doors

    def assume(self, name: str, expression: str, label: str | None = None) -> Any:
        """Bind a name to an expression's value; returns the value."""
        parsed = _expression(expression)
        return self._execute(syntax.Assume(name, parsed, parsed.span, label), Given({}))

    def observe(self, expression: str, value: Any, label: str | None = None) -> Any:
        """Constrain the random choice that the expression's value is; returns its log density."""
        parsed = _expression(expression)
        constant = Quote(from_python(value), parsed.span)
        return self._execute(syntax.Observe(parsed, constant, parsed.span, label), Given({}))

    def predict(self, expression: str, label: str | None = None) -> Any:
        """Evaluate an expression in the trace and keep it up to date; returns its value."""
        parsed = _expression(expression)
        return self._execute(syntax.Predict(parsed, parsed.span, label), Given({}))

    def sample(self, expression: str) -> Any:
        """Evaluate an expression against the current trace and keep nothing."""
        parsed = _expression(expression)
        return self._execute(syntax.Sample(parsed, parsed.span), Given({}))

    def force(self, expression: str, value: Any) -> Any:
        """Set a random choice once, without constraining it."""
        parsed = _expression(expression)
        return self._execute(syntax.Force(parsed, Quote(from_python(value), parsed.span), parsed.span), Given({}))

    def forget(self, label: str | int, *positions: int) -> None:
        """Undo an assume, observe or predict; of a loop's data those of the pass with these loop variables."""
        reference = _reference(label, positions)
        self._execute(syntax.Forget(reference, reference.span), Given({}))

    def report(self, label: str | int) -> Any:
        """A directive's present value."""
        reference = _reference(label)
        return self._execute(syntax.Report(reference, reference.span), Given({}))

    def infer(self, expression: str, /, **parameters: Any) -> Any:
        """Run an inference program; returns its `Draws`."""
        parsed = _expression(expression)
        return self._execute(syntax.Infer(parsed, parsed.span), Given(parameters))

    def log_score(self) -> Any:
        """Log joint density of the current trace; one a chain where there are several."""
        return self._execute(syntax.GetLogScore(_expression("0").span), Given({}))

    def clear(self) -> None:
        """Forget everything but the seed's generators, which start afresh."""
        self._chains.clear()
        self._directory = Directory(self._chains)

    def list_directives(self) -> list[dict[str, Any]]:
        """Every directive of the model: id, label, kind and text."""
        return [
            {"id": live.id, "label": live.label, "directive": live.kind, "text": live.text} for live in self._directory
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
        """Make a random procedure of Python functions: `simulate(rng, *arguments)`, `log_density(value, *arguments)`.

        Raises ArgumentError where the language has a procedure of that name. A name that is registered again means the
        new procedure in all text that comes after.
        """
        self.traces[0].trace.analyzer.refuse_registration(name)
        self._chains.registered[name] = user_random(name, simulate, log_density, support, transform=transform)


def _density(model: Model, made: Any) -> float:
    """Of an observe that was just loaded: as it was before an exchangeable procedure took the value in."""
    trace = model.trace
    node = model.evidence_node(made.code, int(made.rows[0]))
    operator, _ = trace.application(node >> 32, node & ROW_MASK)
    mark = trace.journal.mark()
    if isinstance(operator, Exchangeable):
        trace.statistics.unincorporate(operator, trace.value(node))
    density = log_density(trace, node >> 32, node & ROW_MASK)
    trace.journal.rollback(mark)
    return density


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


def _only_rows(loop: syntax.Loop) -> bool:
    return all(
        _only_rows(item) if isinstance(item, syntax.Loop) else isinstance(item, (syntax.Observe, syntax.Predict))
        for item in loop.body
    )


def _labels(loop: syntax.Loop) -> list[str | None]:
    found: list[str | None] = []
    for directive in loop.body:
        found.append(directive.label)
        if isinstance(directive, syntax.Loop):
            found.extend(_labels(directive))
    return found


def _refuse_in_loop(loop: syntax.Loop) -> None:
    for directive in loop.body:
        match directive:
            case syntax.Assume():
                hint = "assume a memoized procedure of the loop's variable: [assume x (mem (lambda (n) ...))]"
                raise VentureError("assume cannot stand in a loop: names are never rebound", directive.span, hint)
            case syntax.Clear() | syntax.Load():
                keyword = "clear" if isinstance(directive, syntax.Clear) else "load"
                raise VentureError(f"{keyword} cannot stand in a loop", directive.span)
            case syntax.Loop():
                _refuse_in_loop(directive)


def _assumed(program: Iterable[Directive], folder: Path, seen: set[Path]) -> frozenset[str]:
    """The names that a program and the files that it loads assume; what is wrong with a file is told when it loads."""
    names: set[str] = set()
    for directive in program:
        match directive:
            case syntax.Assume(name=name):
                names.add(name)
            case syntax.Load(path=path, span=span) if (folder / path).resolve() not in seen:
                seen.add((folder / path).resolve())
                try:
                    loaded = parse_program(read_source(folder / path, span))
                except VentureError:
                    continue
                names |= _assumed(loaded, (folder / path).parent, seen)
    return frozenset(names)


def _expression(text: str) -> Expression:
    return parse_expression(Source("<input>", text))


def _reference(label: str | int, positions: tuple[int, ...] = ()) -> syntax.DirectiveReference:
    source = Source("<input>", str(label))
    return syntax.DirectiveReference(label, positions, Span(source, 0, len(source.text)))


def read_source(path: Path, span: Span | None) -> Source:
    """A program file's text. Raises VentureError for what is no such file."""
    try:
        return Source(str(path), path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise VentureError(f"{path} is not a text in UTF-8", span) from error
    except OSError as error:
        raise VentureError(f"cannot read {path}: {error.strerror or error}", span) from error
