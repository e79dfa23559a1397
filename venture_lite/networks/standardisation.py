"""Inputs of any magnitude, made fit for a network to read.

Draws of priors span many orders of magnitude, and a network learns from inputs of size one. An input is compressed by
asinh, which is the identity near 0 and a logarithm far from it; the mean of the training examples is taken off, and
their standard deviation divided out; what then lies beyond CLIP is cut to it, and counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from venture_lite.errors import ParameterError

CLIP = 6.0
"""In standard deviations: beyond, a network only extrapolates."""
LARGEST = float(np.finfo(np.float64).max)
CONSTANT = 1e-10
"""Inputs that vary less, relative to their mean, are rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Standardisation:
    """What was learned of I inputs, of which J vary."""

    names: tuple[str, ...]
    # positions (J,) of the inputs that vary; the rest would only be a second bias
    kept: np.ndarray
    # of asinh of those, (J,)
    mean: np.ndarray
    sd: np.ndarray

    @staticmethod
    def of(names: tuple[str, ...], inputs: np.ndarray) -> Standardisation:
        """From inputs (N, I), an infinite one taken for the largest float; without any rows, all are constant. Raises
        ParameterError for one that is not a number."""
        refuse_nan(names, inputs)
        if not len(inputs):
            return Standardisation(names, np.empty(0, np.intp), np.empty(0), np.empty(0))
        compressed = np.arcsinh(np.clip(inputs, -LARGEST, LARGEST))
        mean, sd = compressed.mean(axis=0), compressed.std(axis=0)
        kept = np.flatnonzero(sd > CONSTANT * (1.0 + np.abs(mean)))
        return Standardisation(names, kept, mean[kept], sd[kept])

    @property
    def width(self) -> int:
        return len(self.kept)

    @property
    def dropped(self) -> tuple[str, ...]:
        """Names of the inputs that are constant."""
        kept = set(self.kept.tolist())
        return tuple(name for position, name in enumerate(self.names) if position not in kept)

    def arrays(self) -> list[np.ndarray]:
        return [self.kept, self.mean, self.sd]

    @staticmethod
    def from_arrays(names: tuple[str, ...], kept: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> Standardisation:
        """What `arrays` gave. Raises ValueError for arrays that cannot standardise inputs of these names."""
        if not (kept.ndim == 1 and kept.shape == mean.shape == sd.shape and kept.dtype.kind == "i"):
            raise ValueError("a standardisation has positions, means and standard deviations of as many inputs")
        if not (np.isin(kept, np.arange(len(names))).all() and np.isfinite(mean).all() and (sd > 0.0).all()):
            raise ValueError(f"a standardisation is not of the inputs {', '.join(names)}")
        return Standardisation(names, kept, mean, sd)

    def __call__(self, inputs: np.ndarray) -> tuple[np.ndarray, int]:
        """Standardised inputs (..., J) of inputs (..., I), and how many numbers were clipped.

        Raises ParameterError for one that is not a number; an input that was dropped is not looked at.
        """
        found: np.ndarray = np.arcsinh(inputs.take(self.kept, axis=-1))
        found -= self.mean
        found /= self.sd
        flat = found.ravel()
        # one product finds what is no number, and mostly also that nothing needs clipping
        squares = float(flat.dot(flat))
        if squares <= CLIP * CLIP:
            return found, 0
        if math.isnan(squares):
            refuse_nan(self.names, np.where(np.isin(np.arange(len(self.names)), self.kept), inputs, 0.0))
        clipped = int(np.count_nonzero(np.abs(found) > CLIP))
        return np.clip(found, -CLIP, CLIP, out=found), clipped


def refuse_nan(names: tuple[str, ...], inputs: np.ndarray) -> None:
    """Raises ParameterError for the first of the inputs (..., I) that is not a number."""
    unknown = np.isnan(inputs).reshape(-1, max(len(names), 1)).any(axis=0)
    if unknown.any():
        raise ParameterError(f"the network's input {names[int(np.argmax(unknown))]} is not a number")
