"""Looks through the directives of a program in their order, and through the files that it loads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from venture_lite.checker.expressions import Expressions
from venture_lite.checker.findings import Findings
from venture_lite.checker.inference import Inference
from venture_lite.checker.known import ANONYMOUS, Certain, Computed, Known, KnownList, WrittenLambda, refuse_observation
from venture_lite.checker.labels import Labels
from venture_lite.checker.names import Names, tags_of
from venture_lite.checker.parameters import NeededParameters
from venture_lite.checker.unmoved import Unmoved
from venture_lite.errors import EvidenceError, Source, Span, VentureError
from venture_lite.interpreter.evidence import taken_for
from venture_lite.language import syntax
from venture_lite.language.recovery import parse_on
from venture_lite.language.source_files import loading
from venture_lite.language.syntax import Directive, Expression
from venture_lite.program.forms import refuse_as_name
from venture_lite.program.label_uses import LabelUse, LabelUses
from venture_lite.session.chains import nested_too_deeply
from venture_lite.session.programs import only_rows, refused_in_loop


class ProgramCheck:
    """A check under way."""

    def __init__(self, findings: Findings, names: Names, parameters: NeededParameters) -> None:
        self.findings = findings
        self.names = names
        self.parameters = parameters
        self.labels = Labels()
        self.label_uses = LabelUses()
        self.unmoved = Unmoved()
        self.expressions = Expressions(names, findings, parameters)
        self.inference = Inference(self.expressions)
        # the files that are being looked through, innermost last
        self._running: list[Path] = []

    def source(self, source: Source) -> None:
        """A whole text."""
        if source.name not in self.findings.files:
            self.findings.files.append(source.name)
        recovered = parse_on(source)
        for error in recovered.errors:
            self.findings.error(error, Span(source, 0, 0))
        self._running.append(Path(source.name))
        self.names.announce(recovered.directives, recovered.doubtful)
        self.labels.uncertain |= bool(recovered.errors)
        self.unmoved.uncertain |= bool(recovered.errors)
        try:
            for directive in recovered.directives:
                self.directive(directive)
        finally:
            self._running.pop()

    def directive(self, directive: Directive) -> None:
        if not self.parameters.variables:
            self.expressions.used = set()
        errors = self.findings.errors
        try:
            with self.findings.told(directive.span):
                self._dispatch(directive)
        except RecursionError:
            self.findings.error(nested_too_deeply(), directive.span)
        self.names.scopes.update(name for name, _ in tags_of(directive))
        self.unmoved.enter(directive)
        if self.inference.in_loop or self.names.incomplete:
            return
        lines = self.unmoved.find(directive) if isinstance(directive, (syntax.Infer, syntax.Loop)) else ()
        # an inference that is refused says nothing of what it was meant to move
        for line in lines if self.findings.errors == errors else ():
            self.findings.warn(line, directive.span)

    def _dispatch(self, directive: Directive) -> None:
        match directive:
            case syntax.Assume():
                self._assume(directive)
            case syntax.Observe(expression=expression) | syntax.Predict(expression=expression):
                if isinstance(directive, syntax.Observe):
                    self._observe(directive)
                else:
                    self._model(expression)
                # loops enter their directives themselves
                if not self.parameters.variables:
                    self.labels.enter(directive, self.expressions.used)
                self._tell_uses(self.label_uses.look(expression, self.parameters.variables))
            case syntax.Sample(expression=expression):
                self._model(expression)
                self._tell_uses(self.label_uses.look(expression, self.parameters.variables))
            case syntax.Infer(expression=expression):
                self.inference.program(expression)
            case syntax.Force(expression=expression, value=value):
                self._refuse_deterministic(self._model(expression), expression, "forced")
                self.inference.constant(value)
            case syntax.Define(name=name, expression=expression):
                self.names.defined[name] = self.inference.value(expression)
            case syntax.Loop():
                self._loop(directive)
            case syntax.Load(path=path, span=span):
                self._load(path, span)
            case syntax.Clear():
                self.names.clear()
                self.labels = Labels()
                self.label_uses = LabelUses()
                self.unmoved = Unmoved()
            case (
                syntax.Forget(reference=reference)
                | syntax.Freeze(reference=reference)
                | syntax.Report(reference=reference)
            ):
                self._reference(directive, reference)

    def _tell_uses(self, found: list[LabelUse]) -> None:
        for use in found:
            self.findings.warn(use.message, use.span, use.hint)

    def _model(self, expression: Expression) -> Known:
        return self.expressions.check(expression, self.inference.loop_scope())

    # ---------------------------------------------------------------------------------------------- the model

    def _assume(self, directive: syntax.Assume) -> None:
        name = directive.name
        self.expressions.defining = name
        value: Known = None
        try:
            value = self._model(directive.expression)
        finally:
            self.expressions.defining = None
            already = self.names.places.get(name)
            if isinstance(value, WrittenLambda) and value.name == ANONYMOUS:
                value = WrittenLambda(name, value.parameters, value.memoized)
            self.names.bind(directive, value)
        self._tell_uses(self.label_uses.bind(name, directive.expression))
        refuse_as_name(name, directive.span)
        if already is not None:
            hint = f"it is assumed at {already.place()}; choose another name"
            raise VentureError(f"{name} is already assumed; names are never rebound", directive.span, hint)
        self.labels.enter(directive, self.expressions.used)

    def _observe(self, directive: syntax.Observe) -> None:
        observed = self._model(directive.expression)
        value = self.inference.constant(directive.value)
        with self.findings.told(directive.expression.span):
            self._refuse_items(observed, value, directive)

    def _refuse_items(self, observed: Known, value: Known, directive: syntax.Observe) -> None:
        """Of one value, or of each item of a list."""
        if isinstance(observed, KnownList):
            values: Sequence[Known] = [None] * len(observed.items)
            if isinstance(value, Certain):
                values = [Certain(item) for item in taken_for(len(observed.items), value.value)]
            for item, its_value in zip(observed.items, values, strict=True):
                self._refuse_items(item, its_value, directive)
            return
        self._refuse_deterministic(observed, directive.expression, "observed")
        doubt = refuse_observation(observed, value, directive.expression.span)
        if doubt is not None:
            self.findings.warn(doubt, directive.value.span)

    def _refuse_deterministic(self, value: Known, expression: Expression, done: str) -> None:
        if isinstance(value, (Certain, Computed, KnownList)):
            hint = "observe a random choice, for example (normal VALUE 0.1)" if done == "observed" else None
            raise EvidenceError(f"a deterministic value cannot be {done}", expression.span, hint)

    def _loop(self, loop: syntax.Loop) -> None:
        outermost = not self.parameters.variables
        by_pass = not only_rows(loop)
        in_loop = self.inference.in_loop
        self.inference.in_loop = in_loop or by_pass
        with self.parameters.inside(loop):
            for directive in loop.body:
                if by_pass and (error := refused_in_loop(directive)):
                    self.findings.error(error, directive.span)
                else:
                    self.directive(directive)
        self.inference.in_loop = in_loop
        if outermost and by_pass:
            self.labels.uncertain = True
            for directive in _entered(loop.body):
                self.labels.enter(directive, self.expressions.used, in_loop=True)
        elif outermost:
            self.labels.enter(loop, self.expressions.used)

    # ------------------------------------------------------------------------------------- other directives

    def _load(self, name: str, span: Span) -> None:
        loaded = loading(name, span, self._running)
        try:
            with loaded as source:
                self.source(source)
        except VentureError:
            # what the file would have bound is not known
            self.names.incomplete = self.labels.uncertain = True
            raise

    def _reference(
        self, directive: syntax.Forget | syntax.Freeze | syntax.Report, reference: syntax.DirectiveReference
    ) -> None:
        if self.names.incomplete or reference.target in self.names.doubtful:
            return
        match directive:
            case syntax.Forget():
                if (name := self.labels.forget(reference)) is not None:
                    self.names.unbind(name)
            case syntax.Freeze():
                if (name := self.labels.freeze(reference)) is not None:
                    self._freeze(name, reference)
            case _:
                self.labels.find(reference)

    def _freeze(self, name: str, reference: syntax.DirectiveReference) -> None:
        if isinstance(self.names.globals.get(name), WrittenLambda):
            hint = "freeze a value that it gives"
            raise VentureError("a procedure of the program cannot be frozen", reference.span, hint)
        self.names.globals[name] = Computed()


def _entered(body: Iterable[Directive]) -> Iterable[Directive]:
    """The directives of the model in a loop that runs pass by pass, loops over data as they are."""
    for directive in body:
        if isinstance(directive, syntax.Loop) and not only_rows(directive):
            yield from _entered(directive.body)
        elif isinstance(directive, (syntax.Observe, syntax.Predict, syntax.Loop)):
            yield directive
