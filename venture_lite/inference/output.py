"""Actions that make something of the present state: `collect` and `labelled` keep draws, `plot` keeps them for a
picture, `print` shows values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from venture_lite.errors import escaped
from venture_lite.inference.given import ActionForm, label_of
from venture_lite.inference.program import Action, InferenceProgram, Run
from venture_lite.inference.watch import WatchedVariable
from venture_lite.language.syntax import Expression
from venture_lite.values import show, to_python


def _named(item: Expression) -> tuple[str, Expression]:
    """A variable's name and its expression."""
    labelled = LABELLED.find(item)
    if labelled is not None:
        return label_of(labelled["NAME"]), labelled["EXPR"]
    return " ".join(item.span.text.split()), item


def _drawing(
    program: InferenceProgram, items: Iterable[Expression], add: Callable[[list[tuple[str, Any]]], None]
) -> Run:
    """Draws every variable and adds it; the program's watch knows when."""
    watch = program.watch
    variables: list[tuple[str, Callable[[], Any], WatchedVariable]] = []
    for name, expression in map(_named, items):
        variable = watch.variable(name, program.reading(expression), program.place(expression))
        variables.append((name, program.sampler(expression), variable))
        program.collected.setdefault(name, []).append(expression)
    begun = False

    def run() -> None:
        nonlocal begun
        if not begun:
            watch.begin(variable for _, _, variable in variables)
            begun = True
        now = watch.now
        # all are made before one is kept: an error or Ctrl-C in the second leaves no draw of the first alone
        add([(name, to_python(sample())) for name, sample, _ in variables])
        for _, _, variable in variables:
            variable.draws += 1
            variable.last = now
        watch.now = now + 1

    return run


def _compile_collect(program: InferenceProgram, given: ActionForm) -> Run:
    return _drawing(program, given.all("EXPR"), program.draws.add_together)


def _compile_labelled(program: InferenceProgram, given: ActionForm) -> Run:
    return _drawing(program, [given.form], program.draws.add_together)


def _compile_print(program: InferenceProgram, given: ActionForm) -> Run:
    variables = [(name, program.sampler(expression)) for name, expression in map(_named, given.all("EXPR"))]

    def run() -> None:
        print(escaped("  ".join(f"{name} = {show(sample())}" for name, sample in variables)))

    return run


def _compile_plot(program: InferenceProgram, given: ActionForm) -> Run:
    return _drawing(program, given.all("EXPR"), program.draws.add_plotted)


COLLECT = Action(
    "collect", ("(collect [EXPR ...])",), "Adds one draw of each expression to the result.", _compile_collect
)
LABELLED = Action(
    "labelled", ("(labelled EXPR NAME)",), "Adds one draw of the expression to the result, under a name of its own.",
    _compile_labelled,
)  # fmt: skip
PRINT = Action("print", ("(print [EXPR ...])",), "Prints the present value of each expression.", _compile_print)
PLOT = Action(
    "plot", ("(plot EXPR ...)",),
    "Keeps one draw of each expression for a plot at the end of the program: a histogram and a trace of numbers, bars "
    "of what has few values.", _compile_plot,
)  # fmt: skip
