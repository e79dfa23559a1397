"""Which kind of record a procedure registered from Python is, by the fields that are given for it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from venture_lite.errors import ArgumentError, nearest
from venture_lite.procedures.record import Procedure
from venture_lite.procedures.registered.makers import user_maker
from venture_lite.procedures.registered.procedures import user_function, user_random


def user_procedure(name: str, fields: Mapping[str, Any]) -> Procedure:
    """A record of whichever kind the fields are for; see `Venture.register`."""
    made = [build for key, build in BUILDERS.items() if key in fields]
    if len(made) != 1:
        raise ArgumentError(
            f"{name}: a procedure is registered with simulate and log_density, with function, or with make",
            hint=f"given were {', '.join(fields) or 'none of them'}",
        )
    known = inspect.signature(made[0]).parameters
    for field in fields:
        if field not in known or field == "name":
            takes = ", ".join(key for key in known if key != "name")
            raise ArgumentError(f"{name}: it takes no field {field}", hint=nearest(field, known) or f"one of {takes}")
    if made[0] is user_random and "log_density" not in fields:
        raise ArgumentError(f"{name}: a random procedure needs log_density beside simulate")
    record: Procedure = made[0](name, **fields)
    return record


BUILDERS: dict[str, Callable[..., Procedure]] = {
    "simulate": user_random,
    "function": user_function,
    "make": user_maker,
}
