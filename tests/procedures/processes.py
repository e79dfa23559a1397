"""Examples of Gaussian processes and lazy hidden Markov models, with what their tests ask of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.record import Deterministic, Maker, MakerState
from venture_lite.procedures.registry import PROCEDURES

Application = tuple[Any, Any]


def made(name: str, *args: Any) -> Any:
    record = PROCEDURES[name]
    assert isinstance(record, Deterministic)
    return record.scalar(*args)


SMOOTH = made("gp_squared_exponential", 1.5, 0.7)
NOISY = made("gp_sum", SMOOTH, made("gp_noise", 0.3))
LINE = made("gp_linear_mean", 0.5, 1)
COVARIANCES = [
    SMOOTH,
    *[made("gp_matern", 0.8, 1.2, order) for order in (0.5, 1.5, 2.5)],
    made("gp_rational_quadratic", 1.1, 0.6, 0.4),
    made("gp_periodic", 1.2, 0.9, 1.7),
    made("gp_linear", 0.7, 0.25),
    made("gp_constant", 2),
    made("gp_product", made("gp_linear", 1), SMOOTH),
    made("gp_sum", made("gp_constant", 1), made("gp_product", SMOOTH, made("gp_periodic", 1, 2, 0.5))),
]


@dataclass(frozen=True)
class Process:
    name: str
    arguments: list[tuple[Any, ...]]
    # some of them at one point or time
    applications: list[Application]


INITIAL = (0.6, 0.3, 0.1)
TRANSITION = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.0, 0.7]])
EMISSION = np.array([[0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.25, 0.25, 0.5]])
OTHER = (np.array([0.2, 0.3, 0.5]), ((0.1, 0.9, 0.0), (0.5, 0.25, 0.25), (0.0, 0.0, 1.0)), EMISSION[[2, 0, 1]])

PROCESSES = [
    Process(
        "make_gp",
        [(0, NOISY), (LINE, made("gp_sum", made("gp_linear", 2), NOISY)), (-1.5, made("gp_noise", 2.0))],
        [(0.5, 0.0), (-1.0, 1), (2.0, 0.35), (0.25, 1.0), (0.5, 0.0), (-0.75, 2.5), (3, -1.25)],
    ),
    Process(
        "make_gp",
        [(0, SMOOTH), (LINE, made("gp_matern", 1, 1, 1.5)), (2.0, NOISY)],
        [(0.5, 0.0), (-1.0, 1), (2.0, 0.35), (-1, 1.0), (0.5, -0.0), (-0.75, 2.5), (3, -1.25), (-1, 1)],
    ),
    Process(
        "make_gp",
        [
            (0, made("gp_squared_exponential", 1, np.array([0.5, 2.0]))),
            (made("gp_linear_mean", (1, -1)), made("gp_sum", made("gp_noise", 0.5), made("gp_linear", 1, (0, 1)))),
        ],
        [(0.5, np.array([0, 1.0])), (-1.0, (1, 1)), (2.0, np.array([0.5, -1])), (0.5, (0, 1.0)), (1.0, (3, 3))],
    ),
    Process(
        "make_lazy_hmm",
        [(INITIAL, TRANSITION, EMISSION), OTHER],
        [(0, 0), (1, 2), (3, 3), (3, 3.0), (1, 3), (2, 9), (1.0, 10), (True, 5), (0, 0)],
    ),
]
CALLS = [
    pytest.param(p, args, id=f"{p.name}{i}-{j}") for i, p in enumerate(PROCESSES) for j, args in enumerate(p.arguments)
]
IDS = [f"{p.name}{i}" for i, p in enumerate(PROCESSES)]


def state_of(process: Process, args: tuple[Any, ...], applications: Sequence[Application] = ()) -> MakerState:
    record = PROCEDURES[process.name]
    assert isinstance(record, Maker)
    state = record.make(*check_arguments(record, args))
    for value, place in applications:
        state.add(value, place)
    return state


def probe(state: MakerState, process: Process) -> list[float]:
    return [*(state.log_predictive(value, place) for value, place in process.applications), state.log_joint()]


def kept(state: MakerState) -> tuple[Any, ...]:
    return state.count, sorted(state.statistics().items())
