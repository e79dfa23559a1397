"""ArviZ's plots of trees of ours, as far as they go with the libraries that are installed."""

from __future__ import annotations

from typing import Any

import pytest


def plot(name: str, tree: Any) -> None:
    """Draws to no screen. Skips the test where the plot does not even take ArviZ's own data."""
    import matplotlib as mpl
    import matplotlib.style

    mpl.use("Agg")
    if not hasattr(matplotlib.style, "core"):
        # as its contents are reached since Matplotlib 3.11
        matplotlib.style.core = matplotlib.style
    import arviz_plots
    from arviz_base import load_arviz_data

    drawn = getattr(arviz_plots, name)
    try:
        drawn(tree)
    except Exception:
        try:
            drawn(load_arviz_data("centered_eight"))
        except Exception as error:
            pytest.skip(f"arviz_plots does not go with what is installed: {error}")
        raise
