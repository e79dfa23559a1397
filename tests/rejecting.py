"""Proposals that are made and always rejected: the trace must be as before."""

from __future__ import annotations

from typing import Any

from venture_lite.engines.walk import Drift
from venture_lite.interpreter.kernel import Move, Resimulation
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.kernels.compiled import kernel


def propose_and_reject(model: Model, scope: Any, block: Any, proposal: str | None) -> None:
    """Propose as `mh` would, by its walk where the proposal is "drift"."""
    selection = Selection(model, scope, Selector(block) if block in ("one", "all") else Selector("key", block))
    if selection.missing() is None:
        new = Drift(model.trace.rng, 0.5) if proposal == "drift" else Resimulation(model)
        kernel(model, Move(new, lambda weight: False)).step(selection.next_block(), selection)
