"""Adam: steps whose size does not depend on the scale of gradients (Kingma and Ba 2015, algorithm 1)."""

from __future__ import annotations

import numpy as np


class Adam:
    """Means of gradients and of their squares, that of the past decaying."""

    DECAY, DECAY_OF_SQUARES, LEAST = 0.9, 0.999, 1e-8

    def __init__(self, weights: np.ndarray) -> None:
        self.mean = np.zeros_like(weights)
        self.square = np.zeros_like(weights)
        self.steps = 0

    def step(self, gradient: np.ndarray, rate: float) -> np.ndarray:
        """What to take from the weights (P,), or to add to them where the gradient leads uphill."""
        self.steps += 1
        self.mean += (1.0 - self.DECAY) * (gradient - self.mean)
        self.square += (1.0 - self.DECAY_OF_SQUARES) * (gradient * gradient - self.square)
        # both began at 0: the parts that they have are taken out
        root = np.sqrt(self.square / (1.0 - self.DECAY_OF_SQUARES**self.steps))
        root += self.LEAST
        return (rate / (1.0 - self.DECAY**self.steps)) * self.mean / root
