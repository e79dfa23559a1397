"""A mixture with learned proposals: 200 data of five clusters, assignments and means one after the other.

    python programs/papers/compiled_mixture.py                  # as in the documents
    python programs/papers/compiled_mixture.py --draws 20       # shorter chains

One network proposes every assignment, another every mean; beside them `gibbs`, which tries all clusters of a datum, and
walks of the means. Effective sizes are of what does not depend on the clusters' names: sorted means, and the density.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

from venture_lite import Venture, VentureWarning

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from compiled import CHAINS, HEADER, Measured, bars, measured, save
from drawing import STYLE, panels

PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "compiled_mixture.png"
CLUSTERS, ROWS, SPREAD = 5, 200, 5.0
PROGRAM = """
[assume mu (mem (lambda (k) (tag 'mu k (normal 0 5))))]
[assume z (mem (lambda (n) (tag 'z n (uniform_discrete 0 5))))]
for n in 1...N: [observe (normal (mu (z n)) 1) {Y[n]}]
"""
# name -> what is trained, and the kernel: a sweep of the assignments, then of the means
KERNELS = {
    "learned": ("zm", "(do (compiled_mh p z each {T}) (compiled_mh q mu each {T}))"),
    "learned assignments, walks": ("z", "(do (compiled_mh p z each {T}) (mh mu each 'drift 0.3 {T}))"),
    "gibbs, learned means": ("m", "(do (compiled_mh q mu each {T}) (gibbs z each {T}))"),
    "gibbs, walks": ("", "(do (gibbs z each {T}) (mh mu each 'drift 0.3 {T}))"),
}


def data(rows: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    found: np.ndarray = rng.normal(np.linspace(-8.0, 8.0, CLUSTERS)[np.arange(rows) % CLUSTERS], 1.0)
    return found


def run(name: str, values: np.ndarray, draws: int, worlds: int) -> Measured:
    which, kernel = KERNELS[name]
    v = Venture(seed=1, chains=CHAINS)
    v.execute(PROGRAM, N=len(values), Y=values)
    started, parameters = time.process_time(), 0
    for letter, proposer, scope in (("z", "p", "z"), ("m", "q", "mu")):
        if letter in which:
            parameters += v.compile(proposer, scope, "each", worlds=worlds).parameters
    training = time.process_time() - started
    # the mean of each datum's cluster: names of clusters do not matter
    collected = [f"(mu (z {n + 1}))" for n in range(0, len(values), max(len(values) // 20, 1))]
    found = measured(v, name, kernel, draws, collected, lambda states: -0.5 * np.square(states).sum(axis=-1))
    seconds, transitions = found.seconds, found.transitions
    return Measured(name, found.draws, found.log_density, transitions, found.acceptance, seconds, training, parameters)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=100, help="sweeps of each of four chains")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--worlds", type=int, default=500)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    warnings.simplefilter("ignore", VentureWarning)
    print(f"a transition is a sweep\n{HEADER}")
    found = []
    for name in KERNELS:
        found.append(run(name, data(options.rows), options.draws, options.worlds))
        print(found[-1], flush=True)
    draw(found, options.picture)


def draw(found: list[Measured], out: Path) -> None:
    from matplotlib import rc_context

    with rc_context(STYLE):
        figure, axes = panels(width=5.0, height=2.4)
        bars(axes, found)
        axes.set_xlabel("least ESS in 1000 sweeps")
        save(figure, out)


if __name__ == "__main__":
    main()
