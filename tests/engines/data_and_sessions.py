"""A session with a program in it, and data of two classes, for the tests of engines."""

from __future__ import annotations

from typing import Any

import numpy as np

from venture_lite import Venture


def venture(text: str, seed: int = 1, **parameters: Any) -> Venture:
    v = Venture(seed=seed)
    v.execute(text, **parameters)
    return v


def classes(count: int, seed: int = 0, scale: float = 1.0) -> dict[str, Any]:
    """Two normal features, the second of another scale, whose weights are (1, -1) in units of their sds."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((count, 2)) * [1.0, scale]
    return {"X": features, "Y": rng.random(count) < 1 / (1 + np.exp(-features @ [1.0, -1.0 / scale])), "N": count}
