"""`venture compile`: runs a program up to and with the last of its `compile` actions, and writes what these made."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from venture_lite.draws.whole_files import refuse_no_file
from venture_lite.engines.compiled import files
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.supply import LastCompiled, supply_of
from venture_lite.errors import Span, VentureError
from venture_lite.language import syntax
from venture_lite.language.parse import parse_program
from venture_lite.language.source_files import loading
from venture_lite.language.syntax import Directive, Expression, Form, Name, flattened
from venture_lite.session import DirectiveResult
from venture_lite.shell.chain_process import Listener
from venture_lite.shell.workers import Job, session

REPEATS = ("repeat", "mixture")
"""Actions in which what stands once may run more than once."""


def check_proposers(path: Path) -> None:
    """Refuse a file that could not be written, before anything is trained."""
    refuse_no_file(path, "proposers")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise VentureError(f"cannot write {path}: Permission denied")


def compile_program(job: Job, path: Path, listener: Listener) -> None:
    """Train the proposers of a program and write them, all or none. What the program would draw after the last
    `compile` is not drawn; the values of its directives are not told.

    Raises VentureError for a program that compiles nothing, and as `run` does.
    """
    program = parse_program(job.source)
    last, directive = _last_compile(program, Path(job.source.name))

    def ended(result: DirectiveResult) -> None:
        if result.directive is directive:
            raise LastCompiled

    with session(job, 0, listener) as (model, parameters):
        if not last.repeats:
            supply_of(model.traces[0]).last = last.span
        with contextlib.suppress(LastCompiled):
            model.run_source(job.source, parameters, ended, program)
        made = [proposer for proposer in proposers_of(model.traces[0]).values() if proposer.kinds]
    if not made:
        raise VentureError("nothing was compiled", last.span, "tag the choices with a scope that compile names")
    try:
        files.save(made, path)
    except OSError as error:
        raise VentureError(f"cannot write {path}: {error.strerror or error}") from error


@dataclass(frozen=True, slots=True)
class CompileAction:
    """A `compile` of a program."""

    span: Span
    # whether it may run more than once
    repeats: bool


def _last_compile(program: Sequence[Directive], path: Path) -> tuple[CompileAction, Directive]:
    """The last action, and the directive of the program that it stands in."""
    for directive in reversed(program):
        if found := [*_in_directives([directive], [path])]:
            return found[-1], directive
    raise VentureError(
        f"{path.name} compiles nothing: there is no compile in it",
        hint="[infer (compile NAME SCOPE BLOCK)], before the kernels that use NAME",
    )


def _in_directives(program: Iterable[Directive], running: list[Path]) -> Iterator[CompileAction]:
    """The actions of some directives, and of the files that they load, in order."""
    for directive in program:
        match directive:
            case syntax.Infer(expression=expression):
                yield from _in_expression(expression, False)
            case syntax.Loop(body=body):
                inside = (item for item in flattened(body) if isinstance(item, syntax.Infer))
                yield from (found for item in inside for found in _in_expression(item.expression, True))
            case syntax.Load(path=name, span=span):
                with loading(name, span, running) as loaded:
                    yield from _in_directives(parse_program(loaded), [*running, Path(loaded.name)])


def _in_expression(expression: Expression, repeats: bool) -> Iterator[CompileAction]:
    match expression:
        case Form(items=(Name(name="compile"), *_), span=span):
            yield CompileAction(span, repeats)
        case Form(items=(Name(name=head), *rest)):
            for item in rest:
                yield from _in_expression(item, repeats or head in REPEATS)
