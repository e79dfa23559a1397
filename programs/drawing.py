"""How the pictures of the programs look: their colours, and the parts that several share.

Data are black, posteriors blue, exact answers vermilion (the colours of Okabe and Ito, which people who confuse red and
green can tell apart).
"""

from __future__ import annotations

from typing import Any

import numpy as np

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
}
DATA, POSTERIOR, EXACT = "black", "#0072B2", "#D55E00"
OTHER, PRIOR, BAND = "#E69F00", "0.55", "#BCD9EA"


def panels(rows: int = 1, columns: int = 1, width: float = 7.0, height: float = 3.2, **more: Any) -> tuple[Any, Any]:
    """A figure and its axes; nothing of it depends on a screen."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, **more)


def interval(values: np.ndarray) -> np.ndarray:
    """Ends of the central 90% of draws, which lie along the first axis."""
    ends: np.ndarray = np.quantile(values, (0.05, 0.95), axis=0)
    return ends


def band(axes: Any, points: np.ndarray, values: np.ndarray, label: str) -> None:
    """The mean and the central 90% of draws (draws, points) along points."""
    axes.fill_between(points, *interval(values), color=BAND, linewidth=0, label=f"{label}, central 90%")
    axes.plot(points, values.mean(axis=0), color=POSTERIOR, label=f"{label}, mean")


def exactly(axes: Any, points: Any, values: Any) -> None:
    axes.plot(points, values, "_", color=EXACT, markersize=11, markeredgewidth=2, label="exact")


def heat(axes: Any, matrix: np.ndarray, rows: list[str], columns: list[str]) -> None:
    """Probabilities as a table of colours and numbers."""
    axes.imshow(matrix, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    for (row, column), value in np.ndenumerate(matrix):
        colour = "white" if value > 0.55 else "black"
        axes.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=colour)
