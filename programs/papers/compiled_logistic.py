"""Logistic regression with learned proposals (Liang et al. 2021, figure 3), of 200 and of 2000 rows.

    python programs/papers/compiled_logistic.py                            # as in the documents
    python programs/papers/compiled_logistic.py --rows 200 --draws 500     # smaller

Ten features and an intercept; sds of the prior 2.5 and 10. Kernels for single choices and for all eleven in a block,
with and without what was trained; four chains each.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite import Venture

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from compiled import CHAINS, HEADER, Measured, bars, measured, save, trained
from drawing import STYLE, panels

PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "compiled_logistic.png"
FEATURES = 10
SDS = np.array([10.0] + [2.5] * FEATURES)
NAMES = range(FEATURES + 1)
WEIGHTS = "[assume w (mem (lambda (j) (tag 'w j (normal 0 (lookup {S} j)))))]\n" + "\n".join(
    f"[assume w{j} (w {j})]" for j in NAMES
)
ROWS = "\nfor n in 1...N: [observe (bernoulli (logistic {})) {{Y[n]}}]"
# second derivatives in many worlds know numbers alone, other kernels are fastest with vectors
LEARNED = WEIGHTS + ROWS.format("(+ " + " ".join(f"(* w{j} {{X[n, {j + 1}]}})" for j in NAMES) + ")")
PLAIN = WEIGHTS + f"\n[assume beta (vector {' '.join(f'w{j}' for j in NAMES)})]" + ROWS.format("(dot {X[n]} beta)")
COLLECTED = tuple(f"w{j}" for j in NAMES)


class Data:
    """Features with a column of ones, and classes by weights of sd 1."""

    def __init__(self, rows: int) -> None:
        rng = np.random.default_rng(rows)
        self.features = np.column_stack([np.ones(rows), rng.standard_normal((rows, FEATURES))])
        logits = self.features @ rng.standard_normal(FEATURES + 1)
        self.classes = rng.random(rows) < 1.0 / (1.0 + np.exp(-logits))

    def session(self, program: str) -> Venture:
        v = Venture(seed=1, chains=CHAINS)
        v.execute(program, X=self.features, Y=self.classes, N=len(self.classes), S=SDS)
        return v

    def log_density(self, states: np.ndarray) -> np.ndarray:
        """Of (..., 11)."""
        signed = np.where(self.classes, 1.0, -1.0) * (states @ self.features.T)
        found: np.ndarray = -0.5 * np.square(states / SDS).sum(axis=-1) - np.logaddexp(0.0, -signed).sum(axis=-1)
        return found


def kernels(rows: int, draws: int, thin: int, worlds: int, rounds: bool) -> list[Measured]:
    data = Data(rows)

    def run(name: str, kernel: str, its: int, **learned: Any) -> None:
        # the network reads every row at each transition
        count = draws // 4 if its > 1 and learned else draws
        v = data.session(LEARNED if learned else PLAIN)
        by = trained(v, "w", learned.pop("block"), worlds=worlds, **learned) if learned else None
        found.append(measured(v, name, kernel, count, COLLECTED, data.log_density, its, by))
        print(found[-1], flush=True)

    found: list[Measured] = []
    print(f"\n{rows} rows\n{HEADER}")
    # a walk of the posterior's width
    width = 2.4 * 2.0 / np.sqrt(rows)
    run("single choices: prior", "(mh w one {T})", thin)
    run("single choices: walk", f"(mh w one 'drift {width:.3f} {{T}})", thin)
    run("single choices: one network, newton frame", "(compiled_mh p w one {T})", thin, block="one", frame="newton")
    run("block: newton frame", "(compiled_mh p w all {T})", 1, block="all", frame="newton")
    if rounds:
        run("block: newton frame, a round", "(compiled_mh p w all {T})", 1, block="all", frame="newton", rounds=1)
    run("block: preconditioned walk", "(mh w all 'drift 0.72 'precondition {T})", 1)
    run("hmc 'precondition", "(hmc w all 0.7 3 'precondition {T})", 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[200, 2000])
    parser.add_argument("--draws", type=int, default=2500, help="of each of four chains")
    parser.add_argument("--thin", type=int, default=4, help="transitions of single choices between two draws")
    parser.add_argument("--worlds", type=int, default=2000)
    parser.add_argument("--no-rounds", action="store_true")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    found = {
        rows: kernels(rows, options.draws, options.thin, options.worlds, not options.no_rounds) for rows in options.rows
    }
    draw(found, options.picture)


def draw(found: dict[int, list[Measured]], out: Path) -> None:
    from matplotlib import rc_context

    with rc_context(STYLE):
        figure, axes = panels(1, len(found), width=9.0, height=2.6, sharey=True, squeeze=False)
        for each, (rows, kernels) in zip(axes[0], found.items(), strict=True):
            bars(each, kernels)
            each.set_title(f"{rows} rows")
        save(figure, out)


if __name__ == "__main__":
    main()
