"""Wrong uses; `mypy --strict` names each line marked with what it says."""

from __future__ import annotations

import math

from venture_lite import Draws, Venture

v = Venture(seed="one")  # E: arg-type
Venture(chain=2)  # E: call-arg
v.execute(3)  # E: arg-type
v.exectue("[assume x 1]")  # E: attr-defined
v.register("f")  # E: call-overload
v.register("f", simulate=lambda rng: 1.0)  # E: call-overload
v.register("f", function=math.sin, log_density=math.sin)  # E: call-overload
v.register("f", function=3)  # E: call-overload


class NoState:
    """Lacks all that an exchangeable procedure is asked."""


v.register("f", make=NoState)  # E: arg-type
v.forget(2.5)  # E: arg-type


def use(draws: Draws) -> str:
    print(draws.summary().mean)  # E: attr-defined
    return draws["mu"]  # E: return-value
