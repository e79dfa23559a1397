"""What the sequential test does to the posterior of a logistic regression: means and sds against exact transitions.

    python programs/papers/bias.py                       # generated, 12,214 rows and 51 features
    python programs/papers/bias.py --data mnist_7v9.npz  # MNIST, 7 against 9, as in the paper
    python programs/papers/bias.py --transitions 80000 --exact 240000  # as in the documents: 400 effective draws

Random walks of `logistic.vnt`'s weights, preconditioned at the mode, of acceptance about 0.25. For each setting: the
fraction of rows used, the smallest effective sample size, the root mean square over the coordinates of (difference of
means / posterior sd), the mean ratio of sds, and how long a transition takes beside an exact one.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite import Venture
from venture_lite.draws import diagnostics

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import logistic
from drawing import BAND, DATA, EXACT, POSTERIOR, STYLE, panels

PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "bias.png"
# tolerance, option, and the share of the transitions that is made: errors of a size need no long chain to be seen
SETTINGS = (("0.001", "", 1.0), ("0.01", "'proxy", 1.0), ("0.01", "", 0.25), ("0.1", "", 0.25), ("0.3", "", 0.25))
# transitions between two draws
THIN = 20


@dataclass(frozen=True, slots=True)
class Setting:
    """What one setting's chain found, and what it cost."""

    name: str
    # (features,) of its draws
    mean: np.ndarray
    sd: np.ndarray
    # the smallest of the features' effective sample sizes
    smallest: float
    fraction: float
    accepted: float
    # seconds for a transition
    took: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    logistic.take_data(parser)
    parser.add_argument(
        "--transitions", type=int, default=20_000, help="of each setting; plain tests of wide tolerance make a quarter"
    )
    parser.add_argument("--exact", type=int, default=100_000, help="exact transitions")
    parser.add_argument("--batch", type=int, default=100, help="rows of a minibatch")
    parser.add_argument("--settings", nargs="*", type=int, default=range(len(SETTINGS)), help="some of the lines")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    data = logistic.chosen(options)
    v, walk = data.session(), f"'drift {data.walk} 'precondition"
    exact = drawn(v, "exact", f"mh w all {walk}", options.exact)
    columns = ("  rows", "accepted", "least ESS", "means off by", "   sds", " time")
    print(f"{'kernel':<18}", *columns, sep="  ")
    print(line(exact, exact), flush=True)
    found = []
    for at in options.settings:
        tolerance, proxy, share = SETTINGS[at]
        kernel = f"subsampled_mh w all {options.batch} {tolerance} {walk} {proxy}"
        found.append(drawn(v, f"eps {tolerance} {proxy}".rstrip(), kernel, int(share * options.transitions)))
        print(line(found[-1], exact), flush=True)
    draw(found, exact, options.picture)


def drawn(v: Venture, name: str, kernel: str, transitions: int) -> Setting:
    started = time.process_time()
    found = v.infer(f"(repeat {transitions // THIN} (do ({kernel} {THIN}) (collect w)))")
    took = (time.process_time() - started) / transitions
    (statistics,) = found.statistics
    fraction = statistics.details.get("mean fraction of rows", 1.0)
    draws = np.asarray(found["w"])[0]
    sizes = [diagnostics.ess_bulk(draws[None, :, k]) for k in range(draws.shape[1])]
    accepted = statistics.accepted / statistics.transitions
    return Setting(name, draws.mean(axis=0), draws.std(axis=0), min(sizes), fraction, accepted, took)


def off_by(found: Setting, exact: Setting) -> np.ndarray:
    """Differences of the means in posterior sds."""
    return np.asarray((found.mean - exact.mean) / exact.sd)


def line(found: Setting, exact: Setting) -> str:
    off, ratio = np.sqrt(np.mean(off_by(found, exact) ** 2)), np.mean(found.sd / exact.sd)
    return (
        f"{found.name:<18}  {100 * found.fraction:>5.2f}%  {found.accepted:>8.2f}  {found.smallest:>9.0f}  "
        f"{off:>12.3f}  {ratio:>6.3f}  {found.took / exact.took:>5.1f}"
    )


def draw(found: list[Setting], exact: Setting, out: Path) -> None:
    """For each setting one point a coordinate: the differences of the means, the ratios of the sds."""
    from matplotlib import rc_context

    rng, style = np.random.default_rng(0), STYLE
    with rc_context(style):
        figure, (left, right) = panels(1, 2, sharey=True)
        for row, setting in enumerate(reversed(found)):
            scattered = row + rng.uniform(-0.25, 0.25, len(exact.mean))
            colour = EXACT if "proxy" in setting.name else POSTERIOR
            for axes, values in ((left, off_by(setting, exact)), (right, setting.sd / exact.sd)):
                axes.plot(values, scattered, ".", color=colour, markersize=4)
        _aim(left, 0.0, 0.1, "difference of means, in posterior sds")
        _aim(right, 1.0, 0.03, "ratio of the sds")
        left.set_yticks(range(len(found)), [setting.name for setting in reversed(found)])
        left.set_xscale("symlog", linthresh=0.2)
        left.set_xticks([-10, -1, -0.1, 0.1, 1, 10], ["-10", "-1", "-0.1", "0.1", "1", "10"])
        right.set_xscale("log", base=2)
        right.set_xticks([1, 2, 4], ["1", "2", "4"])
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=100, metadata={"Software": None})


def _aim(axes: Any, where: float, width: float, label: str) -> None:
    axes.axvspan(where - width, where + width, color=BAND, linewidth=0)
    axes.axvline(where, color=DATA, linewidth=0.8)
    axes.set_xlabel(label)


if __name__ == "__main__":
    main()
