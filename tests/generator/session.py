"""A random program in a session: its steps, its transitions, its state."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tests.generator.programs import PARAMETERS, Program, Step
from venture_lite.audit.snapshot import snapshot

if TYPE_CHECKING:
    from venture_lite import Venture

TRANSITIONS = (
    "(mh default one 3)",
    "(mh default each 1)",
    "(mh default ordered 1)",
    "(mh default all 2)",
    "(mh s one 2)",
    "(mh s each 1)",
    "(mh s all 1)",
    "(mh s (ordered_range 1 2) 1)",
    "(mh r one 'drift 0.7 3)",
    "(mh r each 'drift 0.7 1)",
    "(mh r all 'drift 0.2 2)",
    "(gibbs d one 2)",
    "(gibbs d each 1)",
    "(gibbs (choices 'finite) each 1)",
    "(cycle ((mh default one 1) (gibbs d one 1)) 2)",
    "(mixture (0.5 (mh default one 1) 0.5 (mh r one 'drift 1.0 1)) 2)",
)


def used(text: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a directive refers to."""
    return {name: value for name, value in parameters.items() if re.search(rf"\b{name}\b", text)}


def perform(venture: Venture, step: Step, parameters: Mapping[str, Any] = PARAMETERS) -> None:
    """Carry out one step, under its label."""
    label = f"{step.label}: " if step.kind in ("assume", "observe", "predict") else ""
    with warnings.catch_warnings():
        # Of rows that no loop reads.
        warnings.simplefilter("ignore")
        venture.execute(label + step.text, **used(step.text, parameters))


def load(program: Program, seed: int, chains: int = 1, kernels: str = "compiled") -> Venture:
    """A session in which the program's directives have run."""
    from venture_lite import Venture

    venture = Venture(seed=seed, chains=chains, kernels=kernels)
    for step in program.directives:
        perform(venture, step, program.parameters)
    return venture


def infer(venture: Venture, expression: str) -> Any:
    """Run an inference program; that a scope is empty, or the state impossible, is no matter here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return venture.infer(expression)


def check(venture: Venture) -> None:
    """All invariants of every trace."""
    from venture_lite.audit.invariants import check as check_trace

    for trace in venture.traces:
        check_trace(trace)


def state(venture: Venture) -> list[Any]:
    """Everything that the traces store, and the session's own list of directives."""
    return [venture.list_directives(), *(snapshot(trace) for trace in venture.traces)]


def standing(venture: Venture) -> list[Any]:
    """What decides how a session goes on: its `state`, random numbers, places of text in use, names, impossibility."""
    traces = [model.trace for model in venture.traces]
    return [
        state(venture),
        [trace.rng.bit_generator.state for trace in traces],
        [[table.code.first_site for table in trace.tables if table.dead < table.count] for trace in traces],
        [(sorted(trace.analyzer.globals), sorted(trace.analyzer.forward)) for trace in traces],
        [(model.maybe_impossible, model.impossible_since) for model in venture.traces],
    ]
