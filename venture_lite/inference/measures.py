"""What `collect` may ask of a chain besides values of the model: densities, and data drawn anew."""

from __future__ import annotations

from dataclasses import dataclass

from venture_lite.errors import ArgumentError
from venture_lite.language.syntax import Expression, Form, Name


@dataclass(frozen=True, slots=True)
class Measure:
    """One way to ask, in the place of an expression that is collected, labelled, plotted or printed."""

    name: str
    # as it is written
    usage: str
    summary: str

    def arguments(self, form: Form) -> tuple[Expression, ...]:
        """Raises ArgumentError where a form is written otherwise."""
        if len(form.items) != len(self.usage.split()):
            raise ArgumentError(f"{self.name} is written {self.usage}", form.span)
        return form.items[1:]


MEASURES = {
    measure.name: measure
    for measure in (
        Measure("log_score", "(log_score)", "The log joint density of all choices that stand."),
        Measure(
            "log_density", "(log_density EXPR VALUE)",
            "The log density of VALUE for the choice that EXPR makes or denotes, in the state at hand.",
        ),
        Measure("classes", "(classes MAKER)", "How many labels the draws of a maker such as make_crp have."),
        Measure(
            "log_likelihood", "(log_likelihood LABEL)",
            "The log density of each datum of an observe, by its label or the parameter that holds its data.",
        ),
        Measure(
            "replicate", "(replicate LABEL)",
            "Each datum of an observe drawn anew, with its arguments as they stand: data as the model predicts them.",
        ),
    )
}  # fmt: skip


def measure_of(item: Expression) -> tuple[Measure, Form] | None:
    """The measure that an expression is a form of."""
    match item:
        case Form(items=(Name(name=name), *_)) if name in MEASURES:
            return MEASURES[name], item
    return None
