"""A branch with learned proposals: what exists depends on a choice (figure 1 of the sublinear paper, with other data).

    python programs/papers/compiled_branch.py                 # as in the documents
    python programs/papers/compiled_branch.py --draws 500     # shorter chains

Whether the gamma exists is proposed by a network, its value by another. The probability of the branch is compared with
quadrature for several data.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np

from venture_lite import Venture, VentureWarning
from venture_lite.draws import diagnostics

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from compiled import CHAINS, save
from drawing import EXACT, OTHER, POSTERIOR, STYLE, panels

PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "compiled_branch.png"
PROGRAM = """
[assume b (tag 'b 0 (bernoulli 0.5))]
[assume mu (if b 1 (tag 'mu 0 (gamma 1 1)))]
[observe (normal mu 0.1) {y}]
"""
SD = 0.1
DATA = (0.3, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 2.0)
# by name what trains a kernel, and the kernel
KERNELS = {
    "learned": (
        "(do (compile p b one 'worlds {worlds}) (compile q mu one 'worlds {worlds}))",
        "(do (compiled_mh p b one 1) (compiled_mh q mu one 1))",
    ),
    "mh": ("(do)", "(do (mh b one 1) (mh mu one 'drift 0.2 1))"),
}


def exact(y: float) -> float:
    """The probability of the branch without the gamma."""
    mu = np.linspace(0.0, 40.0, 400_001)
    gamma = float(np.exp(-mu - 0.5 * np.square((y - mu) / SD)).sum() * (mu[1] - mu[0]))
    constant = float(np.exp(-0.5 * np.square((y - 1.0) / SD)))
    return constant / (constant + gamma)


def found_by(name: str, y: float, draws: int, worlds: int) -> tuple[float, float]:
    """The share of the branch in four chains, and its standard error."""
    training, kernel = KERNELS[name]
    v = Venture(seed=1, chains=CHAINS)
    v.execute(PROGRAM, y=y)
    v.infer(training, worlds=worlds)
    v.infer(f"(repeat {draws // 5} {kernel})")
    b = np.asarray(v.infer(f"(repeat {draws} (do {kernel} (collect b)))")["b"], dtype=float)
    effective = diagnostics.ess_mean(b)
    return float(b.mean()), float(b.std() / np.sqrt(effective)) if np.isfinite(effective) else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=5000, help="of each of four chains")
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--data", type=float, nargs="*", default=DATA)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    warnings.simplefilter("ignore", VentureWarning)
    found = {name: [found_by(name, y, options.draws, options.worlds) for y in options.data] for name in KERNELS}
    print(f"{'y':>5} {'exact':>7}  " + "  ".join(f"{name:>8} {'error':>7} {'z':>5}" for name in found))
    for at, y in enumerate(options.data):
        shares = [each[at] for each in found.values()]
        parts = [f"{share:>8.4f} {error:>7.4f} {(share - exact(y)) / (error or 1):>5.1f}" for share, error in shares]
        print(f"{y:>5.1f} {exact(y):>7.4f}  " + "  ".join(parts))
    draw(list(options.data), found, options.picture)


def draw(data: list[float], found: dict[str, list[tuple[float, float]]], out: Path) -> None:
    from matplotlib import rc_context

    points = np.linspace(0.0, 2.2, 221)
    with rc_context(STYLE):
        figure, axes = panels(width=5.0, height=2.8)
        axes.plot(points, [exact(y) for y in points.tolist()], color=EXACT, label="by quadrature")
        for (name, shares), colour in zip(found.items(), (POSTERIOR, OTHER), strict=True):
            values, errors = np.array(shares).T
            axes.errorbar(data, values, 2.0 * errors, fmt=".", color=colour, label=name, markersize=7, capsize=3)
        axes.set(xlabel="datum", ylabel="probability that b is true")
        axes.legend()
        save(figure, out)


if __name__ == "__main__":
    main()
