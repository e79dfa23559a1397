"""Networks that know nothing, or what is wrong: `compiled_mh` is exact with these, too.

An *untrained* network has the weights of a drawing alone, in all of its layers, so that what it proposes follows its
inputs without rhyme or reason. A *mirrored* one was trained, on worlds in which what is learned is the other way round:
the high numbers of the block stand where the program has the low ones. A *foreign* one was trained on draws of another
program and put in place past all that `compile` looks at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.engines.compiled import training
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.proposer import KindProposer, Proposer
from venture_lite.networks.conditional import Conditional
from venture_lite.networks.fitting import FitReport
from venture_lite.networks.heads import Categories
from venture_lite.networks.pooled import Examples

Patch = pytest.MonkeyPatch
SPREAD = 1.0
"""Of weights that are drawn, in layers whose weights are drawn smaller or are 0 before training."""


def keep_networks(patch: Patch) -> None:
    """However little they know: of a body the t in its frame would stay, or the normal."""
    patch.setattr(training, "log_t_of", lambda numbers: np.full(len(numbers), -np.inf))
    patch.setattr(training, "of_body", lambda *given: np.inf)


def untrained(patch: Patch) -> None:
    """Nothing is trained from here on."""
    fit = training.fit

    def drawn(
        initial: Conditional, examples: Examples, values: np.ndarray, rng: np.random.Generator, *given: Any
    ) -> tuple[Conditional, FitReport]:
        network, report = fit(initial, examples, values, rng, steps=0)
        weights = [layer + SPREAD * rng.standard_normal(layer.shape) for layer in network.weights]
        return network.with_weights(weights), report

    keep_networks(patch)
    patch.setattr(training, "fit", drawn)


def mirrored(patch: Patch) -> None:
    """What is trained from here on learns the other way round."""
    fit = training.fit

    def misled(
        initial: Conditional, examples: Examples, values: np.ndarray, *given: Any
    ) -> tuple[Conditional, FitReport]:
        turned = values.copy()
        for d, head in enumerate(initial.heads):
            turned[:, d] = head.size - 1 - values[:, d] if isinstance(head, Categories) else 0.5 - 0.7 * values[:, d]
        return fit(initial, examples, turned, *given)

    keep_networks(patch)
    patch.setattr(training, "fit", misled)


def put_past_the_signature(trained: Venture, venture: Venture, other: str, own: str) -> None:
    """A proposer q of another program, which says `other` where this one says `own`."""

    def here(text: str) -> str:
        return text.replace(other, own)

    def renamed(kind: KindProposer) -> KindProposer:
        parts: dict[str, Any] = {
            part: tuple(map(here, getattr(kind, part))) for part in ("sites", "ports", "slopes", "known")
        }
        return replace(kind, **parts)

    proposer = proposers_of(trained.traces[0])["q"]
    kinds = {tuple(map(here, sites)): renamed(kind) for sites, kind in proposer.kinds.items()}
    proposers_of(venture.traces[0])["q"] = Proposer("q", proposer.scope, proposer.blocks, kinds)


Bad = Callable[[Patch], None]
