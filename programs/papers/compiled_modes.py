"""Escape from a mode (Liang et al. 2021): a posterior with two modes that walks seldom cross.

    python programs/papers/compiled_modes.py                  # as in the documents
    python programs/papers/compiled_modes.py --draws 500      # shorter chains

The modes lie near 0.8 and 9.4; the share of the right one is found by quadrature.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from venture_lite import Venture

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from compiled import CHAINS, HEADER, Measured, measured, save, trained
from drawing import DATA, EXACT, OTHER, POSTERIOR, PRIOR, STYLE, panels

PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "compiled_modes.png"
PROGRAM = "[assume x (tag 'x 0 (normal 6.55 5))] [observe (normal (pow (- x 5) 2) 10) 25]"
BETWEEN = 5.0
# kernels that are not trained, by name
WALKS = {
    "mh 'drift 1": "(mh x one 'drift 1 {T})",
    "mh 'drift 6": "(mh x one 'drift 6 {T})",
    "hmc": "(hmc x one 0.3 10 {T})",
}


def log_density(states: np.ndarray) -> np.ndarray:
    """Of (..., 1)."""
    x = states[..., 0]
    found: np.ndarray = -0.5 * np.square((x - 6.55) / 5.0) - 0.5 * np.square((np.square(x - BETWEEN) - 25.0) / 10.0)
    return found


def density(points: np.ndarray) -> np.ndarray:
    """At evenly spaced points, by quadrature."""
    found = np.exp(log_density(points[:, None]))
    normalised: np.ndarray = found / (found.sum() * (points[1] - points[0]))
    return normalised


def exact_share() -> float:
    """Of the right mode."""
    points = np.linspace(-20.0, 30.0, 200_001)
    return float(density(points)[points > BETWEEN].sum() * (points[1] - points[0]))


def share(found: Measured) -> float:
    return float((found.draws > BETWEEN).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=5000, help="of each of four chains")
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    print(HEADER)
    v = Venture(seed=1, chains=CHAINS)
    v.execute(PROGRAM)
    by = trained(v, "x", "one", worlds=options.worlds)
    found = [measured(v, "compiled_mh", "(compiled_mh p x one {T})", options.draws, ("x",), log_density, by=by)]
    for name, kernel in WALKS.items():
        v = Venture(seed=1, chains=CHAINS)
        v.execute(PROGRAM)
        found.append(measured(v, name, kernel, options.draws, ("x",), log_density))
    for each in found:
        print(each)
    print(f"\n{'share of the right mode':<44} {'':>6} of each chain\n{'by quadrature':<44} {exact_share():>6.3f}")
    for each in found:
        print(f"{each.name:<44} {share(each):>6.3f} {np.round((each.draws > BETWEEN).mean(axis=(1, 2)), 3).tolist()}")
    draw(found, options.picture)


def draw(found: list[Measured], out: Path) -> None:
    """Two traces, and the draws beside the posterior."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        figure, axes = panels(1, 3, width=8.0, height=2.5, width_ratios=(1, 1, 1.4))
        for each, measure, colour in zip(axes, found, (POSTERIOR, OTHER), strict=False):
            each.plot(measure.draws[0, :100, 0], color=colour, linewidth=0.7)
            each.set(xlabel="transition", ylabel="x", ylim=(-3, 13), title=measure.name)
        points = np.linspace(-4.0, 14.0, 301)
        for measure, colour in zip(found, (POSTERIOR, OTHER, PRIOR, DATA), strict=True):
            heights, edges = np.histogram(measure.draws, bins=45, range=(-4.0, 14.0), density=True)
            axes[2].stairs(heights, edges, color=colour, label=measure.name)
        axes[2].plot(points, density(points), color=EXACT, linewidth=1.2, label="by quadrature")
        axes[2].set(xlabel="x", ylim=(0, 0.42), title="all chains")
        axes[2].legend(ncols=2)
        save(figure, out)


if __name__ == "__main__":
    main()
