"""Figure 4 of the sublinear paper: the risk of the predictive mean over time, and over the rows read.

    python programs/papers/risk.py                       # generated, 12,214 rows and 51 features
    python programs/papers/risk.py --data mnist_7v9.npz  # MNIST, 7 against 9, as in the paper

The program of the paper's figure 3 (`logistic.vnt`) with its random walk, from weights of zero. The risk is the mean,
over the test points and over several chains, of the squared error of the predictive probability: the mean over the
later half of a chain's draws so far against that of a long exact run. Times are of the processor, that of the search
for the mode included.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from venture_lite import Venture

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
import logistic
from digits import logistic as probability
from drawing import DATA, EXACT, OTHER, POSTERIOR, PRIOR, STYLE, panels

PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "risk.png"
# name, what stands for KERNEL in (KERNEL w all ... T), colour, marker
SETTINGS = (
    ("exact", "mh w all", "", DATA, "o"),
    ("eps 0.01", "subsampled_mh w all {batch} 0.01", "", POSTERIOR, "o"),
    ("eps 0.1", "subsampled_mh w all {batch} 0.1", "", POSTERIOR, "s"),
    ("eps 0.3", "subsampled_mh w all {batch} 0.3", "", POSTERIOR, "^"),
    ("eps 0.01 'proxy", "subsampled_mh w all {batch} 0.01", "'proxy", EXACT, "o"),
    ("eps 0 'proxy", "subsampled_mh w all {batch} 0", "'proxy", OTHER, "o"),
)
# transitions before the first look, doubled from look to look; transitions between two draws
FIRST, THIN = 400, 20


@dataclass(frozen=True, slots=True)
class Look:
    """What one chain has come to."""

    transitions: int
    seconds: float
    rows: int
    # (test rows,) predictive probabilities by the later half of the draws
    predicted: np.ndarray


@dataclass(frozen=True, slots=True)
class Curve:
    """Means over the chains of one setting, (looks,) each."""

    transitions: np.ndarray
    seconds: np.ndarray
    rows: np.ndarray
    risk: np.ndarray


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    logistic.take_data(parser)
    parser.add_argument("--seconds", type=float, default=8, help="of each chain")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--exact", type=int, default=200_000, help="transitions of the run that tells the truth")
    parser.add_argument("--sigma", type=float, default=0.01, help="of the random walk")
    parser.add_argument("--batch", type=int, default=100, help="rows of a minibatch")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    data = logistic.chosen(options)
    truth, error = long_run(data, options.exact)
    print(f"the long run's own squared error is about {error:.1e}\n")
    print(f"{'kernel':<16}  transitions  rows each  us each       risk  exact comes to it in")
    curves: dict[str, Curve] = {}
    for name, kernel, option, _, _ in SETTINGS:
        written = f"{kernel.format(batch=options.batch)} 'drift {options.sigma} {option}"
        chains = [looks(data, written, options.seconds, seed) for seed in range(1, options.chains + 1)]
        curves[name] = curve(chains, truth)
        print(line(name, curves[name], curves["exact"]), flush=True)
    draw(curves, error, options.picture)


def long_run(data: logistic.Data, transitions: int) -> tuple[np.ndarray, float]:
    """Predictive probabilities (test rows,) and about their mean squared error, by the two halves of the run."""
    v = data.session()
    kernel = f"mh w all 'drift {data.walk} 'precondition"
    halves = [after(v, kernel, transitions // 2, data) for _ in range(2)]
    return np.mean(halves, axis=0), float(np.mean((halves[0] - halves[1]) ** 2)) / 4


def after(v: Venture, kernel: str, transitions: int, data: logistic.Data) -> np.ndarray:
    """Mean predictive probabilities (test rows,) by the draws of further transitions."""
    draws = v.infer(f"(repeat {transitions // THIN} (do ({kernel} {THIN}) (collect w)))")
    return predictive(np.asarray(draws["w"])[0], data)


def predictive(weights: np.ndarray, data: logistic.Data) -> np.ndarray:
    """Of draws (draws, features), 1,000 at a time."""
    parts = [probability(data.test @ part.T).sum(axis=1) for part in np.split(weights, range(1000, len(weights), 1000))]
    return np.asarray(sum(parts) / len(weights))


def looks(data: logistic.Data, kernel: str, seconds: float, seed: int) -> list[Look]:
    """One chain, looked at whenever its transitions have doubled, until its time is over."""
    v = data.session(np.zeros(data.size), seed)
    found: list[Look] = []
    done, rows, took, more = 0, 0, 0.0, FIRST
    while took < seconds:
        started = time.process_time()
        draws = v.infer(f"(repeat {more // THIN} (do ({kernel} {THIN}) (collect w)))")
        took += time.process_time() - started
        done, rows = done + more, rows + draws.statistics[0].rows
        found.append(Look(done, took, rows, predictive(np.asarray(draws["w"])[0], data)))
        more = done
    return found


def curve(chains: list[list[Look]], truth: np.ndarray) -> Curve:
    both = [[chain[at] for chain in chains] for at in range(min(map(len, chains)))]
    return Curve(
        np.array([found[0].transitions for found in both]),
        np.array([np.mean([look.seconds for look in found]) for found in both]),
        np.array([np.mean([look.rows for look in found]) for found in both]),
        np.array([np.mean([np.mean((look.predicted - truth) ** 2) for look in found]) for found in both]),
    )


def line(name: str, found: Curve, exact: Curve) -> str:
    """With the share of its time after which the exact chain comes to the same risk."""
    reaches = np.interp(-np.log(found.risk[-1]), -np.log(np.minimum.accumulate(exact.risk)), np.log(exact.seconds))
    bound = ">" if found.risk[-1] < exact.risk.min() else "<" if found.risk[-1] > exact.risk[0] else " "
    each = found.seconds[-1] / found.transitions[-1]
    return (
        f"{name:<16}  {found.transitions[-1]:>11,}  {found.rows[-1] / found.transitions[-1]:>9,.0f}  "
        f"{1e6 * each:>7,.0f}  {found.risk[-1]:>9.2e}  {bound} {np.exp(reaches) / found.seconds[-1]:.3f} of that time"
    )


def draw(curves: dict[str, Curve], error: float, out: Path) -> None:
    from matplotlib import rc_context

    with rc_context(STYLE):
        figure, (left, right) = panels(1, 2, sharey=True, height=3.6)
        for name, _, _, colour, marker in SETTINGS:
            found = curves[name]
            for axes, across in ((left, found.seconds), (right, found.rows)):
                axes.loglog(across, found.risk, marker + "-", color=colour, label=name, markersize=4, linewidth=1)
        for axes, what in ((left, "seconds"), (right, "rows read")):
            axes.axhline(error, color=PRIOR, linewidth=0.8, linestyle=":")
            axes.set_xlabel(what)
        left.set_ylabel("risk of the predictive mean")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=6, columnspacing=1)
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
