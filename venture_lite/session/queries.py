"""What is evaluated against the traces without becoming part of them: samples, inference programs, forced values."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from venture_lite.draws.draws import Draws
from venture_lite.errors import EvidenceError, Span, VentureError, warn
from venture_lite.inference.explain import Explanation
from venture_lite.inference.explain import explain as explained
from venture_lite.inference.program import NOTHING_READ, InferenceProgram
from venture_lite.inference.watch import Watch, unmoved_line
from venture_lite.interpreter.ancestry import Sources, sources_of
from venture_lite.interpreter.evidence import NO_EVIDENCE
from venture_lite.interpreter.impossible import impossible_choices
from venture_lite.interpreter.model import Model
from venture_lite.language import syntax
from venture_lite.language.syntax import Expression, Name
from venture_lite.program.code import Kind
from venture_lite.program.lift import Lifter, shape
from venture_lite.program.parameters import constant_index
from venture_lite.session.chains import Chains, Given, Told
from venture_lite.session.live import Directory
from venture_lite.session.loop_data import LoopData
from venture_lite.session.shapes import Shared, shapes_of, told_at
from venture_lite.values import from_python, to_python


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
        return (lambda: model.sample(shared.code, values)) if shared.expression is expression else draw

    return compiled


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


def sample(chains: Chains, expression: Expression, given: Given) -> Any:
    """The expression's value in every chain."""
    return chains.joined([to_python(sampler(model, given)(expression)()) for model in chains.models])


def evaluator(chains: Chains, given: Given) -> InferenceProgram:
    """Evaluates constant expressions; they are the same in every chain."""
    return _program(chains, given, chains.models[0], Watch(chains.models[0]))


def _program(chains: Chains, given: Given, model: Model, watch: Watch, *heard: Any) -> InferenceProgram:
    names = {**chains.defined, **given.passes}
    program = InferenceProgram(model, names, given.passes, given.parameters, sampler(model, given), watch, *heard)
    program.kinds, program.choice = partial(_kind, model), partial(_choice_of, model, given)
    return program


def _kind(model: Model, site: int) -> str | None:
    # imported here: few programs name choices by their kinds
    from venture_lite.blocks.kinds import kinds

    return kinds(model)(site)


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
    parts: list[Draws] = []
    values: list[Any] = []
    warned: set[str] = set()
    joint: dict[Any, Any] = {}
    watches = given.watches or [Watch(model) for model in chains.models]
    # a proposal may overflow: what that means is for the engines to say
    with _BLAS_THREADS.one(), np.errstate(all="ignore"):
        for index, (model, watch) in enumerate(zip(chains.models, watches, strict=True)):
            data, reader = partial(LoopData, directory, index), partial(_read_by, model, given)
            program = _program(chains, given, model, watch, chains.progress, warned, joint, data, reader)
            chains.collecting = program.draws
            try:
                values.append(to_python(program.run(expression)))
                model.commit()
                parts.append(_finished(program))
            except BaseException as error:
                model.rollback()
                parts.append(_finished(program, looked_at=False))
                error.draws = draws = Draws.merge(parts)  # type: ignore[attr-defined]
                if not given.watches and isinstance(error, (KeyboardInterrupt, VentureError)):
                    # a second Ctrl-C ends the look at what there is, and the first goes on
                    with contextlib.suppress(KeyboardInterrupt):
                        judge(chains, watches, expression.span, draws)
                raise
            finally:
                chains.collecting = None
            _warn_impossible(model, chains.first + index if len(chains.models) > 1 else None)
        draws = Draws.merge(parts)
        if not given.watches:
            try:
                judge(chains, watches, expression.span, draws)
            except KeyboardInterrupt as interrupt:
                interrupt.draws = draws  # type: ignore[attr-defined]
                raise
    if any(value is not None for value in values):
        return chains.joined(values)
    return draws


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


def judge(chains: Chains, watches: Sequence[Watch], span: Span, draws: Draws | None) -> None:
    """Say what no kernel moved though draws rest on it, each name once for a program text; `draws` are told of what
    `force` holds."""
    held: dict[str, None] = dict.fromkeys(draws.held if draws is not None else ())
    for watch in watches:
        watch.close()
    told = chains.told_unmoved.get(span.text)
    for watch in watches if told is None or told.looks_again(chains.models) else ():
        verdict = watch.finish()
        held.update(dict.fromkeys(verdict.held))
        for name, count in verdict.unmoved.items():
            told = chains.told_unmoved.setdefault(span.text, Told())
            if name not in told.names:
                told.names.add(name)
                warn(f"{span.place()}: {unmoved_line(name, count)}")
    if draws is not None:
        draws.held = tuple(held)


def _read_by(model: Model, given: Given, expression: Expression) -> Sources:
    """What an expression reads; what cannot be evaluated in the state at hand reads nothing."""
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
        row = model.apply(shared.code, values)
        try:
            node = model.evidence_node(shared.code, row)
        except EvidenceError:
            node = -1
    generator.state = state
    if node < 0 or not trace.default.has(node):
        what, hint = " ".join(expression.span.text.split()), "what a random procedure gave: (f 1) of a memoized f"
        raise EvidenceError(f"{what} is no unobserved choice that stands", expression.span, hint)
    return node


def _finished(program: InferenceProgram, looked_at: bool = True) -> Draws:
    """The draws of one chain; merging numbers it among the others."""
    noted = itertools.chain.from_iterable(program.notes.values())
    program.draws.statistics = [*(tally.statistics() for tally in program.tallies), *noted]
    if looked_at:
        program.draws.could_move = program.could_move()
    return program.draws.finish()


def _warn_impossible(model: Model, chain: int | None) -> None:
    """Say so where inference ended at probability zero, and name the observation."""
    if not model.maybe_impossible:
        return
    impossible = impossible_choices(model.trace)
    if not impossible:
        model.maybe_impossible = False
        return
    code, slot, _ = model.trace.decode(impossible[0])
    value = model.trace.value(impossible[0])
    span = code.slots[slot].span
    where = f"{span.place()}: {span.text}" if span else code.name
    more = f" (and {len(impossible) - 1} more)" if len(impossible) > 1 else ""
    of_chain = f"chain {chain}: " if chain is not None else ""
    warn(f"{of_chain}the state has probability zero: {where} cannot be {to_python(value)}{more}")


class _BlasThreads:
    """The BLAS library's number of threads, which the whole process shares: one while any thread infers.

    Each thread that limited it for itself would put back, at its end, what another had set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Transitions are many and small: BLAS threads would cost more than they bring."""
        from threadpoolctl import threadpool_limits

        with self._lock:
            if not self._users:
                self._limit = threadpool_limits(1, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._limit.restore_original_limits()


_BLAS_THREADS = _BlasThreads()
