"""Draws as a picture: a histogram and a trace for each number, bars for what has few values. Needs matplotlib.

Figures are made without pyplot: no display is opened, and nothing is kept by matplotlib.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from venture_lite.draws.plots import BARS_SHOWN, PlottedVariable, bin_count, variables_of
from venture_lite.errors import VentureError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from venture_lite.draws.draws import Draws

ROW_INCHES = (9.0, 1.9)
BETWEEN_INCHES, ABOVE_INCHES, BELOW_INCHES = 0.75, 0.3, 0.45
"""Of a row, for the numbers beside its trace, its title, and the numbers below."""
DOTS_PER_INCH = 120
MOST_BINS = 60
# a PNG is at most 2^16 dots high, and nobody looks at more
ROWS_SHOWN = 50
MOST_HALF_SPAN = 2.0**1020
"""Of an axis: with its margins it is within the floats."""


def is_available() -> bool:
    """Whether matplotlib is installed; does not import it."""
    return importlib.util.find_spec("matplotlib") is not None


def check_available() -> None:
    """Raises VentureError, with what to install, where matplotlib is missing."""
    if not is_available():
        raise VentureError("pictures need matplotlib, which is not installed", hint="pip install 'venture-lite[plots]'")


def get_ready() -> None:
    """Import what a figure needs, and look for its letters. Raises ImportError where matplotlib is missing."""
    from io import BytesIO

    from matplotlib.figure import Figure

    made = Figure(figsize=(1.0, 1.0))
    made.subplots(1, 1).set_title("0", parse_math=False)
    made.savefig(BytesIO(), format="png")


def figure(draws: Draws) -> Figure:
    """One row for each scalar quantity: at the left its histogram (chains together), at the right its trace, one line
    for each chain. Values that are few or no numbers have bars.

    Raises:
        VentureError: matplotlib is not installed.
    """
    check_available()
    from matplotlib.figure import Figure

    variables = variables_of(draws)[0][:ROWS_SHOWN]
    width, height = ROW_INCHES
    rows = max(1, len(variables))
    # names of values may be long; where there are none, looking for a layout would take as long as all else
    names = any(variable.is_discrete() for variable in variables)
    made = Figure(figsize=(width, rows * height), layout="constrained" if names else None)
    axes = made.subplots(rows, 2, squeeze=False, width_ratios=(1, 1.6))
    if not names:
        made.subplots_adjust(
            **{side: inches / width for side, inches in (("left", 0.15), ("right", width - 0.15))},
            bottom=BELOW_INCHES / (rows * height),
            top=1.0 - ABOVE_INCHES / (rows * height),
            # of the mean width and height of what is drawn in
            wspace=BETWEEN_INCHES / ((width - 0.3 - BETWEEN_INCHES) / 2),
            hspace=(ABOVE_INCHES + BELOW_INCHES) / (height - ABOVE_INCHES - BELOW_INCHES),
        )
    for variable, (left, right) in zip(variables, axes, strict=False):
        _draw(variable, left, right)
    return made


def png(draws: Draws) -> bytes:
    """The draws' figure as what stands in a file. Raises VentureError where matplotlib is not installed."""
    from io import BytesIO

    made, content = figure(draws), BytesIO()
    made.savefig(content, format="png", dpi=DOTS_PER_INCH)
    return content.getvalue()


def write(picture: bytes, path: Path) -> None:
    """Write a picture to a file, in a folder that need not be there. Raises VentureError where it cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture)
    except OSError as error:
        raise VentureError(f"cannot write {path}: {error.strerror or error}") from error


def _draw(variable: PlottedVariable, left: Any, right: Any) -> None:
    left.set_title(variable.name, loc="left", fontsize=10, parse_math=False)
    for axis in (left, right):
        axis.tick_params(labelsize=8)
    if variable.is_discrete():
        _bars(variable, left)
    elif _is_beyond_axes(variable.values):
        for axis in (left, right):
            axis.set_axis_off()
        left.text(0.0, 0.5, "differences of draws are beyond the floats", fontsize=8)
        return
    else:
        values = variable.values[np.isfinite(variable.values)].astype(np.float64)
        if len(values):
            # one outline: bars of their own would take a third of the time of a picture
            left.hist(values, bins=bin_count(values, MOST_BINS), color="C0", alpha=0.8, histtype="stepfilled")
        left.set_yticks([])
    if variable.values.dtype == object:
        right.set_axis_off()
        return
    for chain in variable.chains:
        right.plot(
            np.arange(1, len(chain) + 1), chain.astype(np.float64), linewidth=0.6, marker="o" if len(chain) == 1 else ""
        )
    right.set_xlabel("draw", fontsize=8)


def _is_beyond_axes(values: np.ndarray) -> bool:
    """Whether numbers lie so far apart that matplotlib has no axis for them."""
    finite = values[np.isfinite(values)].astype(np.float64)
    return bool(len(finite)) and 0.5 * float(finite.max()) - 0.5 * float(finite.min()) > MOST_HALF_SPAN


def _bars(variable: PlottedVariable, axis: Any) -> None:
    names, counts = zip(*variable.counts()[:BARS_SHOWN], strict=True)
    axis.barh(range(len(names)), np.array(counts) / len(variable.values), color="C0", alpha=0.8)
    axis.set_yticks(range(len(names)), [name.replace("$", r"\$") for name in names], fontsize=8)
    axis.invert_yaxis()
    axis.set_xlabel("share of draws", fontsize=8)
