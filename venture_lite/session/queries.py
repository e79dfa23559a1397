"""What is evaluated against the traces without becoming part of them: samples, inference programs, forced values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.draws.draws import Draws
from venture_lite.errors import ArgumentError, EvidenceError, Source, Span, VentureError
from venture_lite.inference.explain import Explanation
from venture_lite.inference.explain import explain as explained
from venture_lite.inference.given import label_of
from venture_lite.inference.measures import measure_of
from venture_lite.inference.program import NOTHING_READ, InferenceProgram
from venture_lite.inference.watch import Watch
from venture_lite.interpreter.ancestry import Sources, sources_of
from venture_lite.interpreter.choices import Kinds
from venture_lite.interpreter.evidence import NO_EVIDENCE
from venture_lite.interpreter.model import Model
from venture_lite.language import syntax
from venture_lite.language.parse import parse_expression
from venture_lite.language.syntax import Expression, Form, Literal, Name
from venture_lite.program.code import Kind
from venture_lite.program.lift import Lifter, shape
from venture_lite.program.parameters import constant_index
from venture_lite.program.supplied import Parameters
from venture_lite.session.chain_runs import ChainRuns
from venture_lite.session.chains import Chains, Given
from venture_lite.session.live import Directory
from venture_lite.session.loop_data import LoopData
from venture_lite.session.measured import ObservedData, class_count, density_at
from venture_lite.session.predictive import from_draws, from_prior
from venture_lite.session.shapes import Shared, shapes_of, told_at
from venture_lite.trace.keys import memo_key
from venture_lite.trace.runtime import Memo
from venture_lite.values import from_python, show, to_python


def sampler(model: Model, given: Given) -> Callable[[Expression], Callable[[], Any]]:
    """Compiles an expression into a function that evaluates it against the trace and keeps nothing."""

    def compiled(expression: Expression) -> Callable[[], Any]:
        if isinstance(expression, Name) and expression.name not in given.passes:
            direct = _stored_global(model, expression.name)
            if direct is not None:
                return direct
        shared, values = _code(model, expression, given)

        def draw() -> Any:
            with told_at(shared, expression):
                return model.sample(shared.code, values)

        # the Code that was made of this very text needs no translation of places
        plain = (lambda: model.sample(shared.code, values)) if shared.expression is expression else draw
        return _stored_call(model, given, expression, plain) or plain

    return compiled


def _measured(
    model: Model,
    given: Given,
    directory: Directory,
    chain: int,
    endings: list[Callable[[], str]],
    expression: Expression,
) -> Callable[[], Any]:
    """`sampler`, for an inference program: knows the measures of a chain as well, and adds to what ends the program."""
    plain, analyzer = sampler(model, given), model.trace.analyzer
    found = measure_of(expression)
    if found is None or found[0].name in analyzer.globals or found[0].name in analyzer.registered:
        # the program's own name keeps its meaning
        return plain(expression)
    arguments = found[0].arguments(found[1])
    match found[0].name:
        case "log_score":
            return lambda: model.log_score().value()
        case "log_density":
            density, value = arguments
            shared, values = _code(model, density, given)

            def apply() -> int:
                with told_at(shared, density):
                    return _apply(model, shared, values)

            return partial(density_at, model, apply, plain(value), expression.span)
        case "classes":
            return partial(_classes, plain(arguments[0]), expression.span)
    (label,) = arguments
    try:
        data = ObservedData(model, directory, chain, label_of(label))
    except ArgumentError as error:
        raise error.at(label.span) from None
    if found[0].name == "log_likelihood":
        return data.log_likelihood
    endings.append(data.note)
    return data.replicate


def _classes(maker: Callable[[], Any], span: Span) -> int:
    value = maker()
    if (count := class_count(value)) is None:
        hint = "(classes z), where z is assumed to be (make_crp 1)"
        raise ArgumentError(f"classes are those of a maker of labels, got {show(value)}", span, hint)
    return count


def _apply(model: Model, shared: Shared, values: tuple[Any, ...]) -> int:
    """Evaluate an expression in the trace, and give the choice that its value is, or -1."""
    row = model.apply(shared.code, values)
    try:
        return model.evidence_node(shared.code, row)
    except EvidenceError:
        return -1


def _code(model: Model, expression: Expression, given: Given) -> tuple[Shared, tuple[Any, ...]]:
    """The Code of an expression that leaves no rows behind, one for all passes of a loop, and its arguments."""
    lifted = Lifter(tuple(given.passes), given.parameters, lift_literals=False).lift(expression)
    analyzer = model.trace.analyzer
    key = ("sample", shape(lifted.expression)), analyzer.meaning(lifted.expression)

    def made() -> Shared:
        code = analyzer.directive("sample", lifted.expression, len(lifted.arguments), False, passing=True)
        return Shared(code, expression)

    shared = shapes_of(model).of(key, made)
    values = (
        constant_index(argument.index, given.parameters, given.passes)
        for argument in lifted.arguments
        if isinstance(argument, syntax.Parameter)
    )
    return shared, tuple(values)


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


def _stored_call(
    model: Model, given: Given, expression: Expression, otherwise: Callable[[], Any]
) -> Callable[[], Any] | None:
    """A direct reading of what a memoized procedure gave for arguments that are written as constants; `otherwise` where
    it was not called with them."""
    match expression:
        case Form(items=(Name(name=name), *arguments)) if name not in given.passes and arguments:
            target = model.trace.analyzer.globals.get(name)
        case _:
            return None
    constants = [argument.value for argument in arguments if isinstance(argument, Literal)]
    if target is None or target.code is None or len(constants) < len(arguments):
        return None
    key, code, row = memo_key(tuple(constants)), target.code, target.row
    trace, program, journal = model.trace, model.trace.program, model.trace.journal
    # where it was found, and as of which structure: a draw of a thousand calls looks none of them up again
    version = structure = at = -1
    column: Any = None

    def draw() -> Any:
        nonlocal version, structure, column, at
        stands = structure == journal.structure and version == program.version and not journal.entries
        if stands and column is not None:
            return column.view[at]
        column, memo = None, trace.result(code, row)
        found = memo.entries.get(key) if isinstance(memo, Memo) else None
        if found is None or memo.procedure.code.arity != len(constants):
            return otherwise()
        its = memo.procedure.code
        if its.result_slot >= 0 and not journal.entries:
            version, structure = trace.structure_stamp()
            column, at = trace.tables[its.index].columns[its.result_slot], found
        return trace.result(its, found)

    return draw


def sample(chains: Chains, expression: Expression, given: Given) -> Any:
    """The expression's value in every chain."""
    return chains.joined([to_python(sampler(model, given)(expression)()) for model in chains.models])


def evaluator(chains: Chains, given: Given) -> InferenceProgram:
    """Evaluates constant expressions; they are the same in every chain."""
    return _program(chains, given, chains.models[0], Watch(chains.models[0]))


def _program(chains: Chains, given: Given, model: Model, watch: Watch, *heard: Any) -> InferenceProgram:
    names = {**chains.defined, **given.passes}
    program = InferenceProgram(model, names, given.passes, given.parameters, sampler(model, given), watch, *heard)
    program.kinds, program.choice = partial(_kinds, model), partial(_choice_of, model, given)
    return program


def _kinds(model: Model) -> Kinds:
    # imported here: few programs name choices by their kinds
    from venture_lite.blocks.kinds import kinds

    return kinds(model)


def force(chains: Chains, directive: syntax.Force, given: Given) -> Any:
    """Set the choice that the expression's value is, in every chain."""
    value = from_python(evaluator(chains, given).constant(directive.value))
    for model in chains.models:
        shared, values = _code(model, directive.expression, given)
        with told_at(shared, directive.expression):
            rows = model.load(shared.code, [[value] for value in values], 1, NO_EVIDENCE)
            try:
                model.force(shared.code, int(rows.rows[0]), value)
                model.remove_row(rows, 0)
            except VentureError as error:
                raise error.at(directive.span) from error
    chains.commit()
    return to_python(value)


# -------------------------------------------------------------------------------------------------- inference


def infer(chains: Chains, expression: Expression, given: Given, directory: Directory) -> Any:
    """Run an inference program in every chain: its `Draws`, or the value of an expression that is no action.

    An error of any kind, and Ctrl-C, carries the draws made so far as `draws`.
    """
    with chain_runs(chains, expression, given, directory) as runs:
        draws = runs.more()
    return chains.joined(runs.values) if any(value is not None for value in runs.values) else draws


def chain_runs(
    chains: Chains, expression: Expression, given: Given, directory: Directory, start: Expression | None = None,
    until: float = math.inf,
) -> ChainRuns:  # fmt: skip
    """An inference program on every chain, which can go on; see `ChainRuns`."""
    heard: tuple[Any, ...] = (set(), {})
    watches = given.watches or [Watch(model) for model in chains.models]
    programs = [
        inference_program(chains, given, directory, index, watch, *heard) for index, watch in enumerate(watches)
    ]
    executor = chains.executor if len(chains.models) > 1 else None
    crew = None if executor is None else partial(executor.crew, chains, directory, expression, start, given)
    return ChainRuns(chains, programs, expression, start, bool(given.watches), crew, until)


def inference_program(
    chains: Chains, given: Given, directory: Directory, index: int, watch: Watch, *heard: Any
) -> InferenceProgram:
    """What runs inference expressions in one chain; `heard` is what its chains say together."""
    model = chains.models[index]
    data, reader = partial(LoopData, directory, index), partial(_read_by, model, given)
    program = _program(chains, given, model, watch, chains.progress, *(heard or (set(), {})), data, reader)
    program.sampler = partial(_measured, model, given, directory, index, program.endings)
    return program


def predictive(
    chains: Chains, draws: Draws | int, labels: Sequence[str], likelihood: bool, directory: Directory
) -> Draws:
    """Data as the model predicts them, from draws or so many of the prior; see `Venture.predictive`."""
    given = Given(Parameters({}))

    def find(model: Model, text: str) -> int:
        return _choice_of(model, given, parse_expression(Source("<draws>", text)))

    with np.errstate(all="ignore"):
        if isinstance(draws, Draws):
            return from_draws(draws, directory, labels, find, likelihood)
        return from_prior(draws, directory, labels)


def explain(chains: Chains, expression: Expression, given: Given) -> Explanation:
    """What an inference program would do in the first chain, whose trace stays as it is. An expression that is no
    action has no parts."""
    program = evaluator(chains, given)
    if not program.is_action(expression):
        program.value(expression)
        return Explanation(expression.span, ())
    root = program.compile(expression)
    with np.errstate(all="ignore"):
        return explained(root, expression.span)


def _read_by(model: Model, given: Given, expression: Expression) -> Sources:
    """What an expression reads; what cannot be evaluated in the state at hand reads nothing."""
    match expression:
        case Form(items=(Name(name="log_density"), density, _)):
            expression = density
    try:
        shared, values = _code(model, expression, given)
        return sources_of(model, shared.code, values)
    except VentureError:
        return NOTHING_READ


def _choice_of(model: Model, given: Given, expression: Expression) -> int:
    """The choice that an expression's value is. Raises EvidenceError where it is none, or one that does not stand."""
    trace = model.trace
    generator = trace.rng.bit_generator
    state = generator.state
    shared, values = _code(model, expression, given)
    with told_at(shared, expression), model.aside():
        node = _apply(model, shared, values)
    generator.state = state
    if node < 0 or not trace.default.has(node):
        what, hint = " ".join(expression.span.text.split()), "what a random procedure gave: (f 1) of a memoized f"
        raise EvidenceError(f"{what} is no unobserved choice that stands", expression.span, hint)
    return node
