"""What composes kernels: `do`, `repeat`, `cycle` and `mixture`."""

from __future__ import annotations

from venture_lite.errors import ArgumentError
from venture_lite.inference.program import Action, InferenceProgram, Kernel
from venture_lite.inference.reading import parts_of
from venture_lite.language.syntax import Form


def _compile_do(program: InferenceProgram, form: Form) -> Kernel:
    kernels = [program.compile(part) for part in form.items[1:]]

    def run() -> None:
        for kernel in kernels:
            kernel()

    return run


def _compile_repeat(program: InferenceProgram, form: Form) -> Kernel:
    parts = parts_of(form, 2, "(repeat T KERNEL ...)")
    return _repeated(program, form, program.count(parts[0], "T"), [program.compile(part) for part in parts[1:]])


def _compile_cycle(program: InferenceProgram, form: Form) -> Kernel:
    parts = parts_of(form, 2, "(cycle (KERNEL ...) T)")
    if len(parts) != 2 or not isinstance(parts[0], Form):
        raise ArgumentError("cycle is written (cycle (KERNEL ...) T)", form.span)
    kernels = [program.compile(part) for part in parts[0].items]
    return _repeated(program, form, program.count(parts[1], "T"), kernels)


def _repeated(program: InferenceProgram, form: Form, times: int, kernels: list[Kernel]) -> Kernel:
    def run() -> None:
        program.progress.begin(form.items[0].span.text, times)
        try:
            for done in range(times):
                program.model.poll()
                for kernel in kernels:
                    kernel()
                program.progress.advance(done + 1)
        finally:
            program.progress.end()

    return run


def _compile_mixture(program: InferenceProgram, form: Form) -> Kernel:
    usage = "(mixture (WEIGHT KERNEL ...) T)"
    parts = parts_of(form, 2, usage)
    if len(parts) != 2 or not isinstance(parts[0], Form) or not parts[0].items or len(parts[0].items) % 2:
        raise ArgumentError(f"mixture is written {usage}", form.span)
    weights = [program.value(item) for item in parts[0].items[::2]]
    for item, weight in zip(parts[0].items[::2], weights, strict=True):
        if not isinstance(weight, (int, float)) or not 0 <= weight < float("inf"):
            raise ArgumentError(f"a weight must be a number that is not negative, got {weight}", item.span)
    total = float(sum(weights))
    if total <= 0:
        raise ArgumentError("the weights of a mixture are all 0", form.span)
    kernels = [program.compile(item) for item in parts[0].items[1::2]]
    random = program.model.trace.rng.random

    def choose() -> None:
        target = random() * total
        for weight, kernel in zip(weights, kernels, strict=True):
            target -= weight
            if target < 0:
                kernel()
                return
        kernels[max(i for i, weight in enumerate(weights) if weight > 0)]()

    return _repeated(program, form, program.count(parts[1], "T"), [choose])


DO = Action("do", ("(do KERNEL ...)",), "Runs the kernels one after the other.", _compile_do)
REPEAT = Action("repeat", ("(repeat T KERNEL ...)",), "Runs the kernels, in order, T times.", _compile_repeat)
CYCLE = Action("cycle", ("(cycle (KERNEL ...) T)",), "Runs the kernels, in order, T times.", _compile_cycle)
MIXTURE = Action(
    "mixture", ("(mixture (WEIGHT KERNEL ...) T)",),
    "Runs one kernel, drawn with probability in proportion to its weight, T times.", _compile_mixture,
)  # fmt: skip
