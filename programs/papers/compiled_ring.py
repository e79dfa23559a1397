"""The nuisance program of lightweight inference compilation (Liang et al. 2021, table 1): two choices on a ring.

    python programs/papers/compiled_ring.py               # as in the documents
    python programs/papers/compiled_ring.py --draws 500   # shorter chains

x and y are normal and x^2 + y^2 is observed, nearly exactly, beside 0, 100 or 1000 nuisance choices. Proposals for one
choice at a time flip the sign of x and stay where they are on the ring; a joint proposal goes round it.
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
from drawing import POSTERIOR, STYLE, panels

PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "compiled_ring.png"
PROGRAM = """
[assume x (tag 'ring 0 (normal 0 {SCALE}))]
for n in 1...N: [predict (normal 0 {SCALE})]
[assume y (tag 'ring 1 (normal 0 {SCALE}))]
[observe (normal (+ (* x x) (* y y)) {SD}) {Z}]
"""
# scale of the choices, sd of the observation, and its value: as released, and as in the poster
RELEASED, POSTER = (1.0, 0.01, 1.0), (10.0, 0.1, 1.0)
NUISANCES = (0, 100, 1000)
TIMES = 3
"""Trainings of which the median time is told."""
WORLDS = 200_000
UNTRAINED = {"prior": "(mh ring all {T})", "walk, sd 0.02": "(mh ring all 'drift 0.02 {T})"}


def session(scale: float, sd: float, z: float, nuisances: int, chains: int = CHAINS, seed: int = 1) -> Venture:
    v = Venture(seed=seed, chains=chains)
    # without a nuisance there is no loop
    program = PROGRAM if nuisances else PROGRAM.replace("for n in 1...N: [predict (normal 0 {SCALE})]\n", "")
    v.execute(program, SCALE=scale, SD=sd, Z=z, **({"N": nuisances} if nuisances else {}))
    return v


def log_density(scale: float, sd: float, z: float, states: np.ndarray) -> np.ndarray:
    """Of (..., 2)."""
    square = np.square(states).sum(axis=-1)
    found: np.ndarray = -0.5 * square / scale**2 - 0.5 * np.square((square - z) / sd)
    return found


def kernels(model: tuple[float, float, float], draws: int, worlds: int) -> list[Measured]:
    """Each with 100 nuisances, as in the paper."""
    print(HEADER)
    v = session(*model, 100)
    found = [run(v, model, name, kernel, draws) for name, kernel in UNTRAINED.items()]
    for name, block, components, count in (
        ("single choices, 1 normal", "one", 1, 1000),
        ("single choices, 6 normals", "one", 6, worlds // 2),
        ("joint block, 8 normals", "all", 8, worlds),
    ):
        v = session(*model, 100)
        by = trained(v, "ring", block, components=components, worlds=count)
        kernel = f"(compiled_mh p ring {block} {{T}})"
        found.append(run(v, model, f"{name}, {count:,} worlds", kernel, draws, by))
    return found


def run(v: Venture, model: tuple[float, float, float], name: str, kernel: str, draws: int, by: Any = None) -> Measured:
    found = measured(v, name, kernel, draws, ("x", "y"), lambda states: log_density(*model, states), by=by)
    print(found, flush=True)
    return found


def with_nuisances(worlds: int) -> dict[int, tuple[int, float]]:
    """The parameters of the joint proposer, and the median CPU seconds of its training, by the number of nuisances."""
    found: dict[int, list[tuple[int, float]]] = {count: [] for count in NUISANCES}
    # in turn, so that a slower hour is that of all
    for at in range(TIMES):
        for count in NUISANCES:
            report, seconds = trained(session(*RELEASED, count, 1, at), "ring", "all", components=8, worlds=worlds)
            found[count].append((report.parameters, seconds))
    return {count: (each[0][0], float(np.median([seconds for _, seconds in each]))) for count, each in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=5000, help="of each of four chains")
    parser.add_argument("--worlds", type=int, default=WORLDS, help="of the joint proposer")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    released = kernels(RELEASED, options.draws, options.worlds)
    print("\nscales 10, sd 0.1")
    kernels(POSTER, options.draws, options.worlds)
    print(f"\n{'nuisances':>9} {'parameters':>10} {'median of compile, s':>20}")
    for count, (parameters, seconds) in with_nuisances(options.worlds // 10).items():
        print(f"{count:>9,} {parameters:>10,} {seconds:>20.2f}")
    draw(released, options.picture)


def draw(found: list[Measured], out: Path) -> None:
    """States of a single-choice chain and of the joint one, and what all are worth."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        figure, axes = panels(1, 3, width=9.0, height=2.9, width_ratios=(1, 1, 1.2))
        for each, measure in zip(axes, found[-2:], strict=False):
            states = measure.draws[0, -1000:]
            each.plot(*states.T, ".", color=POSTERIOR, markersize=2)
            each.set_title(measure.name.split(",")[0])
            each.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal", xlabel="x", ylabel="y")
        bars(axes[2], found)
        save(figure, out)


if __name__ == "__main__":
    main()
