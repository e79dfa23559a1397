"""What a case is: a program, what is asked of it, the exact answer, and the engines that must find it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.statistics import Expected


@dataclass(frozen=True, slots=True)
class Case:
    """One program with its exact posterior."""

    name: str
    program: str
    # Variable to expression.
    query: Mapping[str, str]
    exact: Callable[[], Mapping[str, Expected]]
    # Inference expressions, each one step between two draws.
    engines: tuple[str, ...]
    # How `exact` follows from the program.
    derivation: str
    # Values of the program's {NAME}s.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # The same model as the reference interpreter can run it, its observations before whatever uses the observed values:
    # likelihood weighting needs it.
    forward: str | None = None
