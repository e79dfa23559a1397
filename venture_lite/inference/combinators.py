"""What composes kernels: `do`, `repeat`, `cycle` and `mixture`."""

from __future__ import annotations

from venture_lite.errors import ArgumentError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Do, Mixture, Part, Repeat


def _compile_mixture(program: InferenceProgram, given: ActionForm) -> Part:
    items = given.all("WEIGHT")
    weights = tuple(program.value(item) for item in items)
    for item, weight in zip(items, weights, strict=True):
        if not isinstance(weight, (int, float)) or not 0 <= weight < float("inf"):
            raise ArgumentError(f"a weight must be a number that is not negative, got {weight}", item.span)
    if sum(weights) <= 0:
        raise ArgumentError("the weights of a mixture are all 0", given.span)
    kernels = given.kernels()
    return Mixture(given.action, given.count("T"), weights, program, parts=kernels)


DO = Action(
    "do",
    ("(do [KERNEL ...])",),
    "Runs the kernels one after the other.",
    lambda _, given: Do(given.action, parts=given.kernels()),
)
REPEAT = Action(
    "repeat", ("(repeat T KERNEL ...)",), "Runs the kernels, in order, T times.",
    lambda program, given: Repeat(given.action, given.count("T"), program, parts=given.kernels()),
)  # fmt: skip
CYCLE = Action(
    "cycle", ("(cycle (KERNEL ...) T)",), "Runs the kernels, in order, T times.",
    lambda program, given: Repeat(given.action, parts=given.kernels(), times=given.count("T"), program=program),
)  # fmt: skip
MIXTURE = Action(
    "mixture", ("(mixture (WEIGHT KERNEL ...) T)",),
    "Runs one kernel, drawn with probability in proportion to its weight, T times.", _compile_mixture,
)  # fmt: skip
