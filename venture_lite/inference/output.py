"""Actions that make something of the present state: `collect` and `labelled` keep draws, `plot` keeps them for a
picture, `print` shows values."""

from __future__ import annotations

from functools import partial

from venture_lite.inference.given import ActionForm, label_of
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Add, Keep, Part, Print
from venture_lite.language.syntax import Expression


def _named(item: Expression) -> tuple[str, Expression]:
    """A variable's name and its expression."""
    labelled = LABELLED.find(item)
    if labelled is not None:
        return label_of(labelled["NAME"]), labelled["EXPR"]
    return " ".join(item.span.text.split()), item


def _kept(program: InferenceProgram, given: ActionForm, items: list[Expression], add: Add) -> Part:
    """Draws every variable and adds it; the program's watch knows when."""
    samplers, watched = [], []
    for name, expression in map(_named, items):
        # expressions apart from one another, and the passes of each
        key = id(expression), *program.passes.values()
        watched.append(program.watch.variable(name, partial(program.reader, expression), key))
        samplers.append((name, program.sampler(expression)))
        program.collected.setdefault(name, []).append(expression)
    names = tuple(name for name, _ in samplers)
    return Keep(given.action, names, tuple(samplers), add, program.watch.collect(watched))


def _compile_print(program: InferenceProgram, given: ActionForm) -> Part:
    samplers = tuple((name, program.sampler(expression)) for name, expression in map(_named, given.all("EXPR")))
    return Print(given.action, tuple(name for name, _ in samplers), samplers)


COLLECT = Action(
    "collect", ("(collect [EXPR ...])",), "Adds one draw of each expression to the result.",
    lambda program, given: _kept(program, given, given.all("EXPR"), program.keep),
)  # fmt: skip
LABELLED = Action(
    "labelled", ("(labelled EXPR NAME)",), "Adds one draw of the expression to the result, under a name of its own.",
    lambda program, given: _kept(program, given, [given.form], program.keep),
)  # fmt: skip
PRINT = Action("print", ("(print [EXPR ...])",), "Prints the present value of each expression.", _compile_print)
PLOT = Action(
    "plot", ("(plot EXPR ...)",),
    "Keeps one draw of each expression for a plot at the end of the program: a histogram and a trace of numbers, bars "
    "of what has few values.",
    lambda program, given: _kept(program, given, given.all("EXPR"), program.draws.add_plotted),
)  # fmt: skip
