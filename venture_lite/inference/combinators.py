"""What composes kernels: `do`, `repeat`, `cycle` and `mixture`."""

from __future__ import annotations

from venture_lite.errors import ArgumentError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram, Run


def _compile_do(program: InferenceProgram, given: ActionForm) -> Run:
    kernels = given.kernels()

    def run() -> None:
        for kernel in kernels:
            kernel()

    return run


def _compile_repeat(program: InferenceProgram, given: ActionForm) -> Run:
    return _repeated(program, "repeat", given.count("T"), given.kernels())


def _compile_cycle(program: InferenceProgram, given: ActionForm) -> Run:
    kernels = given.kernels()
    return _repeated(program, "cycle", given.count("T"), kernels)


def _repeated(program: InferenceProgram, name: str, times: int, kernels: list[Run]) -> Run:
    def run() -> None:
        program.progress.begin(name, times)
        try:
            for done in range(times):
                program.model.poll()
                for kernel in kernels:
                    kernel()
                program.progress.advance(done + 1)
        finally:
            program.progress.end()

    return run


def _compile_mixture(program: InferenceProgram, given: ActionForm) -> Run:
    items = given.all("WEIGHT")
    weights = [program.value(item) for item in items]
    for item, weight in zip(items, weights, strict=True):
        if not isinstance(weight, (int, float)) or not 0 <= weight < float("inf"):
            raise ArgumentError(f"a weight must be a number that is not negative, got {weight}", item.span)
    total = float(sum(weights))
    if total <= 0:
        raise ArgumentError("the weights of a mixture are all 0", given.span)
    kernels = given.kernels()
    random = program.model.trace.rng.random

    def choose() -> None:
        target = random() * total
        for weight, kernel in zip(weights, kernels, strict=True):
            target -= weight
            if target < 0:
                kernel()
                return
        kernels[max(i for i, weight in enumerate(weights) if weight > 0)]()

    return _repeated(program, "mixture", given.count("T"), [choose])


DO = Action("do", ("(do [KERNEL ...])",), "Runs the kernels one after the other.", _compile_do)
REPEAT = Action("repeat", ("(repeat T KERNEL ...)",), "Runs the kernels, in order, T times.", _compile_repeat)
CYCLE = Action("cycle", ("(cycle (KERNEL ...) T)",), "Runs the kernels, in order, T times.", _compile_cycle)
MIXTURE = Action(
    "mixture", ("(mixture (WEIGHT KERNEL ...) T)",),
    "Runs one kernel, drawn with probability in proportion to its weight, T times.", _compile_mixture,
)  # fmt: skip
