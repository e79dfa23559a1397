"""Actions that make something of the present state: `collect` and `labelled` keep draws, `plot` keeps them for a
picture, `print` shows values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from venture_lite.errors import ArgumentError
from venture_lite.inference.program import Action, InferenceProgram, Kernel
from venture_lite.inference.reading import parts_of
from venture_lite.syntax import Expression, Form, Literal, Name, Quote
from venture_lite.values import Symbol, show, to_python


def _named(program: InferenceProgram, item: Expression) -> tuple[str, Callable[[], Any]]:
    """A variable's name, and how one draw of it is made."""
    match item:
        case Form(items=(Name(name="labelled"), expression, Name(name=name) | Literal(value=str(name)))):
            return name, program.sampler(expression)
        case Form(items=(Name(name="labelled"), expression, Quote(value=Symbol(name=name)))):
            return name, program.sampler(expression)
        case Form(items=(Name(name="labelled"), *_)):
            raise ArgumentError("labelled is written (labelled EXPR NAME)", item.span)
    return " ".join(item.span.text.split()), program.sampler(item)


def _compile_collect(program: InferenceProgram, form: Form) -> Kernel:
    variables = [_named(program, item) for item in form.items[1:]]

    def run() -> None:
        for name, sample in variables:
            program.draws.add(name, to_python(sample()))

    return run


def _compile_labelled(program: InferenceProgram, form: Form) -> Kernel:
    name, sample = _named(program, form)
    return lambda: program.draws.add(name, to_python(sample()))


def _compile_print(program: InferenceProgram, form: Form) -> Kernel:
    variables = [_named(program, item) for item in form.items[1:]]

    def run() -> None:
        print("  ".join(f"{name} = {show(sample())}" for name, sample in variables))

    return run


def _compile_plot(program: InferenceProgram, form: Form) -> Kernel:
    variables = [_named(program, item) for item in parts_of(form, 1, PLOT.usage[0])]

    def run() -> None:
        for name, sample in variables:
            program.draws.add_plotted(name, to_python(sample()))

    return run


COLLECT = Action(
    "collect", ("(collect EXPR ...)",), "Adds one draw of each expression to the result.", _compile_collect
)
LABELLED = Action(
    "labelled", ("(labelled EXPR NAME)",), "Adds one draw of the expression to the result, under a name of its own.",
    _compile_labelled,
)  # fmt: skip
PRINT = Action("print", ("(print EXPR ...)",), "Prints the present value of each expression.", _compile_print)
PLOT = Action(
    "plot", ("(plot EXPR ...)",),
    "Keeps one draw of each expression for a plot at the end of the program: a histogram and a trace of numbers, bars "
    "of what has few values.", _compile_plot,
)  # fmt: skip
