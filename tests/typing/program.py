"""A user's program that uses what is public; `mypy --strict` finds nothing wrong with it."""

from __future__ import annotations

import math
from typing import Annotated, Any, assert_type

import numpy as np

import venture_lite
from venture_lite import ArgumentError, Draws, ParameterError, Summary, Symbol, Venture, VentureError

v = Venture(seed=1, chains=2, nested_calls=10_000, memory_mb=None)
assert_type(v.seed, int)
values: list[Any] = v.execute("[assume x (normal 0 {s})]", s=2.0)
v.run_file("model.vnt", y=np.zeros(3))


class Coin:
    def __init__(self, a: float) -> None:
        self.a = a

    def set_arguments(self, arguments: tuple[float]) -> None:
        (self.a,) = arguments

    def simulate(self, rng: np.random.Generator) -> bool:
        return bool(rng.random() < 0.5)

    def log_predictive(self, value: bool) -> float:
        return math.log(0.5)

    def log_joint(self) -> float:
        return 0.0

    def add(self, value: bool) -> None: ...

    def remove(self, value: bool) -> None: ...


def log_density(value: float, sd: Annotated[float, "positive"]) -> float:
    return -abs(value) / sd - math.log(2 * sd)


v.register(
    "sharp",
    simulate=lambda rng, sd: rng.laplace(0, sd),
    log_density=log_density,
    domain="real",
    support=None,
    log_density_columns=lambda value, sd: -np.abs(value) / sd - np.log(2 * sd),
    gradient={"value": lambda value, sd: -math.copysign(1 / sd, value)},
    summary="A Laplace distribution around 0.",
)
v.register("bounded", simulate=lambda rng: 0.5, log_density=lambda value: 0.0, domain=(0, 1), arguments=[])
v.register("hypotenuse", function=math.hypot, arguments={"a": "real", "b": float})
v.register("make_coin", make=Coin, arguments=["a"], domain="boolean")

v.assume("w", "(sharp 1)", label="first")
density: float = v.observe("(normal w 1)", 0.5)
v.forget("first", 1, 2)
draws: Draws = v.infer("(repeat 10 (do (mh default one 1) (collect w)))")
assert_type(draws["w"], np.ndarray)
summary: Summary = draws.summary()
assert_type(summary.rows[0].mean, float)
assert_type(draws.names, tuple[str, ...])
for name, array in draws.items():
    print(name, array.shape)
draws.save("draws.npz")
print(draws.statistics[0].accepted, venture_lite.__version__, Symbol("red"))

try:
    v.execute("[assume")
except ParameterError as error:
    print(error.span)
except (ArgumentError, VentureError) as error:
    print(error.hint)
