"""Runs the directives of a program on its traces: one dispatch for text and for Python's methods."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.draws.draws import Draws, Origin
from venture_lite.errors import Source, Span, VentureError, VentureWarning, warn
from venture_lite.inference.explain import Explanation
from venture_lite.inference.progress import Silent
from venture_lite.interpreter.impossible import explain_start
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.weights import log_density
from venture_lite.language import syntax
from venture_lite.language.parse import parse_program
from venture_lite.language.source_files import loading, resolved
from venture_lite.language.syntax import Directive, flattened
from venture_lite.program.compiler import inlinable
from venture_lite.program.label_uses import LabelUses
from venture_lite.program.lift import Lifter
from venture_lite.program.supplied import Parameters
from venture_lite.session import queries, rows
from venture_lite.session.chain_runs import ChainRuns, judge
from venture_lite.session.chains import Chains, Given
from venture_lite.session.live import Directory, Live, LoopPart
from venture_lite.session.origin import Origins
from venture_lite.session.programs import DirectiveResult, assumed_names, is_auto, only_rows, refused_in_loop
from venture_lite.trace.runtime import Exchangeable
from venture_lite.values import to_python

if TYPE_CHECKING:
    from venture_lite.session.auto.running import AutoOptions


class Runner:
    """One program under way. Mutates the traces and the directory of what is in force.

    A directive runs in every chain before it is made final in any, so that an error in one leaves all as they were.
    """

    def __init__(self, chains: Chains, seed: int, may_copy: bool = True) -> None:
        """`may_copy` says whether `auto` may run the program of one chain again on several."""
        self.chains, self._may_copy = chains, may_copy
        self._origins = Origins(seed)
        self.directory = Directory(chains)
        self._label_uses = LabelUses()
        # the program files that are being run, innermost last
        self._running: list[Path] = []
        # told what each directive inside a loop or a loaded file gave, as it comes
        self._on_part: Callable[[DirectiveResult], None] | None = None
        self._on_draws: Callable[[Draws], None] = lambda draws: None
        # what the inferences of the text would do, where they are explained in place of run
        self._explained: list[Explanation] | None = None
        # names that the rest of the text will assume; None where nobody knows what comes
        self._to_come: frozenset[str] | None = None

    # ------------------------------------------------------------------------------------------------ programs

    def run(
        self,
        source: Source,
        parameters: Mapping[str, Any],
        on_value: Callable[[DirectiveResult], None],
        program: tuple[Directive, ...] | None = None,
        on_part: Callable[[DirectiveResult], None] | None = None,
        on_draws: Callable[[Draws], None] = lambda draws: None,
    ) -> None:
        """Run a program, and tell each directive's value as it comes; `program` is what the source says, if known.

        `on_part` is told what the directives gave of a loop that runs pass by pass, or of a loaded file, while that
        is under way: an interruption later leaves their values told. `on_draws` is told what `auto` drew while it still
        looks whether there is more to say of them.
        """

        def run(directive: Directive, given: Given) -> None:
            with self.chains.interruption.delivered():
                on_value(DirectiveResult(directive, self._run_one(directive, given)))

        before = self._on_part, self._on_draws
        self._on_part, self._on_draws = on_part, on_draws
        try:
            self._each(source, parse_program(source) if program is None else program, parameters, run)
        finally:
            self._on_part, self._on_draws = before

    def _each(
        self,
        source: Source,
        program: tuple[Directive, ...],
        parameters: Mapping[str, Any],
        run: Callable[[Directive, Given], None],
    ) -> None:
        known = Parameters.of(parameters)
        path = Path(source.name)
        before = self._to_come
        self._running.append(path)
        self._to_come = (before or frozenset()) | assumed_names(program, path.parent, {resolved(path)})
        try:
            for directive in program:
                run(directive, Given(known))
        finally:
            self._running.pop()
            self._to_come = before

    def execute(self, directive: Directive, given: Given) -> Any:
        """Run one directive; after an error the traces are as they were.

        Raises VentureError at its own place, or at the directive's where it has none. A Ctrl-C that came too late to
        interrupt it raises KeyboardInterrupt when it is done; of an inference, with its `draws`.
        """
        value: Any = None
        try:
            with self.chains.interruption.delivered():
                value = self._run_one(directive, given)
        except KeyboardInterrupt as interrupt:
            if isinstance(value, Draws):
                interrupt.draws = value  # type: ignore[attr-defined]
            raise
        return value

    def _run_one(self, directive: Directive, given: Given) -> Any:
        try:
            with self.chains.guarded():
                return self._dispatch(directive, given)
        except VentureError as error:
            error.at(directive.span)
            if error.position is not None:
                # it was met while rows were evaluated
                for model in self.chains.models:
                    explain_start(model, error)
            raise

    def _dispatch(self, directive: Directive, given: Given) -> Any:
        match directive:
            case syntax.Assume():
                return self._assume(directive, given)
            case syntax.Observe() | syntax.Predict():
                return self._rows(directive, given)
            case syntax.Loop():
                return self._loop(directive, given)
            case syntax.Infer():
                return self._infer(directive, given)
            case syntax.Sample(expression=expression):
                return queries.sample(self.chains, expression, given)
            case syntax.Force():
                return queries.force(self.chains, directive, given)
            case syntax.Forget(reference=reference):
                return self.directory.forget(reference)
            case syntax.Report(reference=reference):
                return self.directory.report(self.directory.find(reference))
            case syntax.Define(name=name, expression=expression):
                self.chains.defined[name] = queries.evaluator(self.chains, given).value(expression)
                return to_python(self.chains.defined[name])
            case syntax.ListDirectives():
                return self.directory.listed()
            case syntax.Clear():
                return self._clear()
            case syntax.GetLogScore():
                return self.chains.joined([model.log_score().value() for model in self.chains.models])
            case syntax.Load(path=path, span=span):
                return self._load(path, span, given)
            case syntax.Freeze(reference=reference):
                return self.directory.freeze(reference)
        raise VentureError("unknown directive", directive.span)

    def explain(self, source: Source, parameters: Mapping[str, Any]) -> list[Explanation]:
        """Run a program but for its inferences: what each of these would do as of the state before it. In a loop the
        first pass is explained."""
        self._explained = []
        try:
            self.run(source, parameters, lambda result: None)
            return self._explained
        finally:
            self._explained = None

    def predictive(self, draws: Draws | int, labels: Sequence[str], likelihood: bool) -> Draws:
        """Data as the model predicts them; see `Venture.predictive`."""
        self.chains.settle()
        with self.chains.interruption.delivered(), self.chains.guarded():
            found = queries.predictive(self.chains, draws, labels, likelihood, self.directory)
        if found.origin is None:
            found.origin = self._origins.of(self.directory, "the prior")
        return found

    def explain_expression(self, expression: syntax.Expression, given: Given) -> Explanation:
        """What an inference program would do as of this state."""
        with self.chains.guarded():
            return queries.explain(self.chains, expression, given)

    def _infer(self, directive: syntax.Infer, given: Given) -> Any:
        if self._explained is not None:
            if all(found.span != directive.span for found in self._explained):
                found = queries.explain(self.chains, directive.expression, given)
                self._explained.append(found.in_pass(directive.span, [*given.passes.items()]))
            return None
        # in a loop that runs pass by pass, the observations of every pass would be gathered anew in each
        origin = self._origins.of(self.directory, directive.expression.span.text) if given.run is None else None
        # transitions keep no journal
        self.chains.settle(moves=True)
        try:
            if is_auto(directive.expression):
                return self._auto(self._auto_options(directive.expression, given), given)
            value = queries.infer(self.chains, directive.expression, given, self.directory)
        except BaseException as error:
            if isinstance(draws := getattr(error, "draws", None), Draws):
                draws.origin = draws.origin or origin
                unfinished = DirectiveResult(directive, draws, tuple(given.passes.items()))
                error.unfinished = unfinished  # type: ignore[attr-defined]
            raise
        if isinstance(value, Draws):
            value.origin = origin
        return value

    def auto(self, options: AutoOptions, given: Given) -> Draws:
        """Compose a program for the model as it is, run it until its draws are enough, and leave each chain at its last
        draw. One chain alone becomes the first of several that are run anew for this."""
        with self.chains.interruption.delivered(), self.chains.guarded():
            return self._auto(options, given)

    def _auto(self, options: AutoOptions, given: Given) -> Draws:
        # imported here: a session that composes nothing does not pay for it
        from venture_lite.session.auto.running import TARGETS, AutoRun

        began = time.monotonic()
        self.chains.settle(moves=True)
        given = replace(given, run=None, watches=())
        states = [model.trace.rng.bit_generator.state for model in self.chains.models]
        is_one = len(self.chains.models) == self.chains.count == 1 and options.chains > 1 and self._may_copy
        draws, tried = None, ""
        for target in TARGETS:
            # what begins anew draws as if nothing had been before
            for model, state in zip(self.chains.models, states, strict=True):
                model.trace.rng.bit_generator.state = state
            runner = self.anew(options.chains) if is_one else self
            until = math.inf if options.seconds is None else began + options.seconds
            run = partial(queries.chain_runs, runner.chains, given=given, directory=runner.directory, until=until)
            others = partial(self._others, runner.chains.count, given, until)
            automatic = AutoRun(runner.chains.models[0], run, others, options, began, target, tried, self._on_draws)
            try:
                draws = automatic.draws()
            except BaseException as error:
                _keep(error, draws, self._origins.of(self.directory, automatic.program))
                raise
            draws.origin = self._origins.of(self.directory, automatic.program)
            if not automatic.should_be_finer:
                break
            tried = automatic.tried
        assert draws is not None
        draws.preface = automatic.preface()
        if runner is not self:
            runner.chains.keep([0])
            runner.directory.keep([0])
            self.chains, self.directory = runner.chains, runner.directory
        return draws

    def _auto_options(self, expression: syntax.Expression, given: Given) -> AutoOptions:
        from venture_lite.session.auto.running import LEAST_DRAWS, AutoOptions

        asked = queries.evaluator(self.chains, given).given(expression)
        return AutoOptions(draws=asked.count("DRAWS", LEAST_DRAWS), approximate="approximate" in asked)

    def _others(self, chains: int, given: Given, until: float, paths: int) -> _Others:
        """So many traces of the same program, whose generators are none of the first `chains`."""
        other = self.anew(paths, beyond=chains)
        other.chains.progress = Silent()
        return _Others(other.chains, given, other.directory, until)

    def anew(self, chains: int, beyond: int = 0) -> Runner:
        """The same program on so many chains of its seed, those `beyond` the first ones, as if nothing had been
        inferred yet.

        Raises VentureError where a value was frozen, or parameters have been changed since.
        """
        seeds = np.random.SeedSequence(self._origins.seed).spawn(beyond + chains)[beyond:]
        other = Runner(self.chains.anew(seeds), self._origins.seed)
        for live in self.directory:
            if any(part.is_frozen for part in live.parts):
                hint = f"Venture(chains={chains}) has the chains from the start"
                raise VentureError("a program with frozen values is not run again", live.span, hint)
            with warnings.catch_warnings():
                # what there was to say has been said
                warnings.simplefilter("ignore", VentureWarning)
                other.directory.next_id = live.id
                other.execute(live.directive, replace(live.given, watches=()))
            other.directory.forget_as(live)
        if not other.directory.observes_as(self.directory):
            hint = "run the program again in a new session"
            raise VentureError("the data of the program have been changed since it was run", hint=hint)
        return other

    def _load(self, name: str, span: Span, given: Given) -> list[Any]:
        values: list[Any] = []

        def run(directive: Directive, inner: Given) -> None:
            values.append(self._part(directive, inner))

        with loading(name, span, self._running) as source:
            self._each(source, parse_program(source), given.parameters, run)
        return values

    def _part(self, directive: Directive, given: Given) -> Any:
        """Run a directive of a loop or of a loaded file."""
        self.chains.commit()
        value = self._dispatch(directive, given)
        # what is itself made of parts has told them already
        has_parts = isinstance(directive, (syntax.Loop, syntax.Load)) and isinstance(value, list)
        if self._on_part is not None and not has_parts:
            self._on_part(DirectiveResult(directive, value, tuple(given.passes.items())))
        return value

    def _clear(self) -> None:
        self.chains.clear()
        self.directory = Directory(self.chains)
        self._label_uses = LabelUses()

    # ------------------------------------------------------------------------------- directives of the model

    def _assume(self, directive: syntax.Assume, given: Given) -> Any:
        self.directory.refuse_taken([directive.label], directive.span)
        analyzers = [model.trace.analyzer for model in self.chains.models]
        filled = Lifter((), given.parameters, lift_literals=False).lift(directive.expression).expression
        for analyzer in analyzers:
            analyzer.refuse_binding(directive.name, directive.span)
            analyzer.begin_assume(directive.name, self._to_come)
        targets = []
        try:
            for analyzer in analyzers:
                target = analyzer.new_global(directive.name, directive.span)
                target.lambda_form = inlinable(filled, directive.name)
                targets.append(target)
            made = rows.load_assume(self.chains, directive, given, targets)
            live = Live(self.directory.next_id, directive, [LoopPart(directive, made)], given)
            value = self.directory.value(live)
        except BaseException:
            for analyzer in analyzers[: len(targets)]:
                analyzer.unbind(directive.name)
            for analyzer in analyzers:
                analyzer.forget_awaited()
            raise
        finally:
            awaited, *_ = [analyzer.end_of_assume() for analyzer in analyzers]
        self.directory.enter(live)
        if self._to_come is None:
            for target in awaited:
                hint = f"; {target.hint}" if target.hint else ""
                warn(f"{directive.name} refers to {target.name}, which nothing binds yet{hint}")
        for use in self._label_uses.bind(directive.name, directive.expression):
            warn(str(use))
        return value

    def _rows(self, directive: syntax.Observe | syntax.Predict | syntax.Loop, given: Given) -> Any:
        """An observe or a predict, or a loop that holds nothing else."""
        self.directory.refuse_taken([part.label for part in flattened([directive])], directive.span, given.run)
        live = Live(self.directory.next_id, directive, [], given)
        with self.directory.naming_the_first():
            rows.load_rows(self.chains, live, given)
        if isinstance(directive, syntax.Observe) and not isinstance(directive, syntax.Factor):
            models = zip(self.chains.models, live.parts[0].rows, strict=True)
            value = self.chains.joined([_density(model, made) for model, made in models])
        else:
            value = self.directory.value(live)
        self.directory.enter(live)
        for use in self._label_uses.within(directive, tuple(given.passes)):
            warn(str(use))
        return value

    def _loop(self, loop: syntax.Loop, given: Given) -> Any:
        if only_rows(loop):
            return self._rows(loop, given)
        if error := next(filter(None, map(refused_in_loop, flattened(loop.body))), None):
            raise error
        inside = given.in_loop(self.chains.models)
        if inside is given:
            return self._passes(loop, given)
        try:
            values = self._passes(loop, inside)
            judge(self.chains, inside.watches, loop.span, _last_draws(values))
        finally:
            for watch in inside.watches:
                watch.close()
        return values

    def _passes(self, loop: syntax.Loop, given: Given) -> list[list[Any]]:
        """The values of a loop's directives, pass by pass."""
        values = []
        for value in rows.bounds(loop, given, given.passes):
            self.chains.models[0].poll()
            inner = given.inside(loop.variable, value)
            try:
                values.append([self._part(directive, inner) for directive in loop.body])
            except VentureError as error:
                error.in_pass(", ".join(f"{name} = {at}" for name, at in inner.passes.items()))
                raise
            self.chains.commit()
        return values


@dataclass(frozen=True, slots=True)
class _Others:
    """Traces that are moved aside. Mutable: fewer are left."""

    chains: Chains
    given: Given
    directory: Directory
    until: float

    def run(self, expression: syntax.Expression, start: syntax.Expression | None) -> ChainRuns:
        return queries.chain_runs(self.chains, expression, self.given, self.directory, start, self.until)

    def keep(self, positions: Iterable[int]) -> None:
        kept = list(positions)
        self.chains.keep(kept)
        self.directory.keep(kept)


def _last_draws(values: list[Any]) -> Draws | None:
    """The draws that a loop's passes gave last."""
    for value in reversed(values):
        found = _last_draws(value) if isinstance(value, list) else value
        if isinstance(found, Draws):
            return found
    return None


def _density(model: Model, made: Any) -> float:
    """Of an observe that was just loaded: as it was before an exchangeable procedure took the values in."""
    trace, total = model.trace, 0.0
    with model.aside():
        for node in reversed(model.evidence_nodes(made.code, int(made.rows[0]))):
            operator, inputs = trace.application(node)
            if isinstance(operator, Exchangeable):
                trace.statistics.unincorporate(operator, trace.value(node), inputs)
            total += log_density(trace, node)
    return total


def _keep(error: BaseException, before: Draws | None, origin: Origin) -> None:
    """Give an error the draws that it ended, or where these do not count yet those of the try before."""
    made = getattr(error, "draws", None)
    if not isinstance(made, Draws):
        return
    made.origin = origin
    counted = made.without_adaptation()
    if before is not None and not any(len(values) for name in counted.names for values in counted.by_chain(name)):
        error.draws = before  # type: ignore[attr-defined]
