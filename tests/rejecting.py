"""Proposals that are made and always rejected: the trace must be as before."""

from __future__ import annotations

from typing import Any

from venture_lite.engines.mh import Drift, Resimulation
from venture_lite.engines.transitions import Transitions
from venture_lite.inference.selection import draw_block
from venture_lite.interpreter.model import Model


def propose_and_reject(model: Model, scope: Any, block: Any, proposal: str | None) -> None:
    """Propose as `mh` would, by its walk where the proposal is "drift"."""
    chosen = draw_block(model, scope, block)
    if chosen is None:
        return
    transitions = Transitions(model, None, decide=lambda weight: False)
    transitions.step(chosen, Drift(model.trace.rng, 0.5) if proposal == "drift" else Resimulation(model))
