"""How far each strategy is from the posterior of the two urns: figure 2 of Obermeyer, Glidden and Jonas (2014).

Each replication runs `urns.vnt` with one strategy in place of its inference. The states, as (red balls on
the left, blue balls on the left), are counted on a grid of 5 x 5 cells and compared with the exact posterior by total
variation distance. The distance of as many draws from the posterior itself is reported beside: none can be expected to
come nearer. With `--results` every state is written down as it comes, and a run that was stopped goes on from there.

    python programs/papers/urns.py
    python programs/papers/urns.py --replications 1000 --workers 2 --results urns.csv --picture urns.png
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaln, gammaln

from venture_lite import Venture

sys.path.insert(0, str(Path(__file__).parents[1]))
from drawing import STYLE, panels

STEPSIZE = "anneal stepsize"
PROGRAM = Path(__file__).with_name("urns.vnt").read_text(encoding="utf-8")
HANDS = Path(__file__).with_name("urns_hands.vnt").read_text(encoding="utf-8")
BALL = "  [observe ((urn (left hand))) {red[hand]}]\n"
# what stands in the program, and in place of it; all but the first two make 10 N assignments
INFERENCE = "(anneal left linear 9)"
STRATEGIES = {
    "prior": "",
    "sequential": "(anneal left sequential 0)",
    "prior + gibbs": "(anneal left constant 9)",
    "sequential + gibbs": "(anneal left sequential 9)",
    "anneal energy": "(anneal left linear 'energy 9)",
    "anneal subsample": INFERENCE,
    STEPSIZE: "",
}
# sizes of the handfuls, each with 8 passes; at the time t of 10 N steps, 10 N / t is from one size to the one before
SIZES = (400, 100, 25, 5, 1)
# those that take all balls out first
FORGETFUL = {"sequential", "sequential + gibbs", "anneal subsample"}
CELLS = 5
# cells of the picture, each way
FINE = 20
AT_ONCE = 10
"""Replications that a worker makes before it reports."""

Task = tuple[str, int, range]
"""Strategy, number of balls, seeds."""


def main() -> None:
    options = arguments()
    reds = 2 * options.balls // 5
    exact = posterior(reds, options.balls - reds)
    known = read(options.results, options.balls)
    tasks = [
        (name, options.balls, range(first, min(first + AT_ONCE, options.replications)))
        for first in range(0, options.replications, AT_ONCE)
        for name in options.strategies
    ]
    waiting = [task for task in tasks if any((task[0], seed) not in known for seed in task[2])]
    if options.show:
        waiting.clear()
    for name, seed, red, blue in states(waiting, options.workers):
        known[name, seed] = (red, blue)
        write(options.results, (name, options.balls, seed, red, blue))
    found = {}
    for name in options.strategies:
        there = [known[name, seed] for seed in range(options.replications) if (name, seed) in known]
        if there:
            found[name] = np.array(there)
    print(table(found, exact, reds, options.balls - reds))
    if options.picture is not None:
        draw(found, exact, reds, options.balls - reds, options.picture)


def arguments() -> Any:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--balls", type=int, default=2000, help="two of five are red")
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--strategies", nargs="*", choices=list(STRATEGIES), default=list(STRATEGIES))
    parser.add_argument("--results", type=Path, help="a file of states, read and added to")
    parser.add_argument("--show", action="store_true", help="run nothing: show what the file of results holds")
    parser.add_argument("--picture", type=Path)
    return parser.parse_args()


# ---------------------------------------------------------------------------------------------------- the states


def states(tasks: list[Task], workers: int) -> Iterator[tuple[str, int, int, int]]:
    """(strategy, seed, red, blue) of each replication, as they come."""
    if workers == 1:
        for task in tasks:
            yield from replicate(task)
        return
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for found in pool.imap_unordered(replicate, tasks):
            yield from found


def replicate(task: Task) -> list[tuple[str, int, int, int]]:
    """The states after a strategy, one for each seed. Those that first take all balls out forget what was before, and
    run one after the other in one session."""
    strategy, balls, seeds = task
    red = np.arange(balls) < 2 * balls // 5
    found = []
    v = None
    if strategy == STEPSIZE:
        balls_left = [by_handfuls(balls, seed) for seed in seeds]
        return [(strategy, seed, *counted(left, red)) for seed, left in zip(seeds, balls_left, strict=True)]
    for seed in seeds:
        if v is None or strategy not in FORGETFUL:
            v = Venture(seed=seed)
            v.execute(PROGRAM.split(INFERENCE)[0], N=balls, red=red)
        if STRATEGIES[strategy]:
            v.infer(STRATEGIES[strategy])
        found.append((strategy, seed, *counted(on_the_left(v, balls), red)))
    return found


def counted(left: np.ndarray, red: np.ndarray) -> tuple[int, int]:
    return int((left & red).sum()), int((left & ~red).sum())


def by_handfuls(balls: int, seed: int) -> np.ndarray:
    """Where each ball is after annealing the size of the steps: handfuls of one colour move together, smaller and
    smaller ones. All sizes are to divide the numbers of red and of blue balls."""
    rng = np.random.default_rng(seed)
    left = np.repeat(rng.random(balls // SIZES[0]) < 0.45, SIZES[0])
    for size, stage in zip(SIZES, rng.spawn(len(SIZES)), strict=True):
        first = np.arange(0, balls, size)
        odds = (0.45 / 0.55) ** size
        v = Venture(seed=int(stage.integers(2**31)))
        v.execute(
            HANDS.replace(BALL, size * BALL), H=len(first), share=odds / (1 + odds),
            red=first < 2 * balls // 5, was=left[first],
        )  # fmt: skip
        left = np.repeat(on_the_left(v, len(first)), size)
    return left


def on_the_left(v: Venture, balls: int) -> np.ndarray:
    """Where each ball is, read from the trace: `[predict (left n)]` would keep assignments from being taken out."""
    trace = v.traces[0].trace
    scope = trace.scopes["left"]
    return np.array([trace.value(scope.members(n)[0]) for n in range(1, balls + 1)], dtype=bool)


def read(path: Path | None, balls: int) -> dict[tuple[str, int], tuple[int, int]]:
    """What earlier runs with as many balls wrote."""
    if path is None or not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as rows:
        return {
            (name, int(seed)): (int(red), int(blue)) for name, many, seed, red, blue in csv.reader(rows)
            if int(many) == balls
        }  # fmt: skip


def write(path: Path | None, row: tuple[Any, ...]) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8", newline="") as rows:
            csv.writer(rows).writerow(row)


# ------------------------------------------------------------------------------------------------ the exact answer


def posterior(reds: int, blues: int, prior: float = 0.45) -> np.ndarray:
    """Probability of each state, `(reds + 1, blues + 1)`: the urns' shares are summed out."""
    red, blue = np.arange(reds + 1)[:, None], np.arange(blues + 1)
    left = red + blue
    ways = gammaln(reds + 1) - gammaln(red + 1) - gammaln(reds - red + 1)
    ways = ways + gammaln(blues + 1) - gammaln(blue + 1) - gammaln(blues - blue + 1)
    log_density = ways + left * np.log(prior) + (reds + blues - left) * np.log1p(-prior)
    log_density += betaln(0.5 + red, 0.5 + blue) + betaln(0.5 + reds - red, 0.5 + blues - blue)
    density: np.ndarray = np.exp(log_density - log_density.max())
    density /= density.sum()
    return density


def on_grid(red: np.ndarray, blue: np.ndarray, weights: np.ndarray, reds: int, blues: int, cells: int) -> np.ndarray:
    """Total weight of the states in each cell, `(cells, cells)`. Counts and weights are broadcast together."""
    grid = np.zeros((cells, cells))
    at = (np.minimum(cells * red // reds, cells - 1), np.minimum(cells * blue // blues, cells - 1))
    np.add.at(grid, at, weights)
    return grid


def exact_grid(exact: np.ndarray, cells: int) -> np.ndarray:
    red, blue = np.arange(exact.shape[0])[:, None], np.arange(exact.shape[1])[None, :]
    return on_grid(red, blue, exact, exact.shape[0] - 1, exact.shape[1] - 1, cells)


def shares(found: np.ndarray, reds: int, blues: int, cells: int) -> np.ndarray:
    """The share of states `(replications, 2)` in each cell."""
    return on_grid(found[:, 0], found[:, 1], np.full(len(found), 1 / len(found)), reds, blues, cells)


def distance(left: np.ndarray, right: np.ndarray) -> float:
    """Total variation distance of the probabilities of cells."""
    return float(0.5 * np.abs(left - right).sum())


def resampled(grid: np.ndarray, exact: np.ndarray, replications: int) -> np.ndarray:
    """Distances from the exact probabilities of as many draws from a grid's, a thousand times."""
    counts = np.random.default_rng(0).multinomial(replications, grid.ravel() / grid.sum(), size=1000)
    found: np.ndarray = 0.5 * np.abs(counts / replications - exact.ravel()).sum(axis=1)
    return found


def table(found: dict[str, np.ndarray], exact: np.ndarray, reds: int, blues: int) -> str:
    """Each strategy's distance with its standard error by resampling, that of as many exact draws, and how many there
    are, farthest first."""
    right = exact_grid(exact, CELLS)
    lines = []
    for name, states_found in found.items():
        grid, many = shares(states_found, reds, blues, CELLS), len(states_found)
        error, noise = resampled(grid, right, many).std(), resampled(right, right, many).mean()
        far = distance(grid, right)
        lines.append((far, f"{name:<18}  {far:>8.3f}  {error:>6.3f}  {noise:>11.3f}  {many:>12,}"))
    head = f"{'strategy':<18}  {'distance':>8}  {'+-':>6}  {'exact draws':>11}  {'replications':>12}"
    return "\n".join([head, *(line for _, line in sorted(lines, reverse=True))])


# ---------------------------------------------------------------------------------------------------- the picture


def draw(found: dict[str, np.ndarray], exact: np.ndarray, reds: int, blues: int, out: Path) -> None:
    """The share of states in each of 20 x 20 cells, darker where there are more, beside the exact posterior's."""
    from matplotlib import rc_context

    right = exact_grid(exact, CELLS)
    grids = {"posterior": exact_grid(exact, FINE)}
    for name, states_found in found.items():
        far = distance(shares(states_found, reds, blues, CELLS), right)
        grids[f"{name}: {far:.2f}"] = shares(states_found, reds, blues, FINE)
    columns = 3
    with rc_context(STYLE):
        rows = -(-len(grids) // columns)
        figure, axes = panels(rows, columns, height=2.4 * rows, sharex=True, sharey=True, squeeze=False)
        for at, (title, grid) in enumerate(grids.items()):
            one = axes[at // columns, at % columns]
            one.imshow(np.sqrt(grid).T, origin="lower", extent=(0, 1, 0, 1), cmap="Blues", vmin=0.0, vmax=0.25)
            one.set_title(title)
        for one in axes[-1]:
            one.set_xlabel("red balls on the left")
        for one in axes[:, 0]:
            one.set_ylabel("blue balls on the left")
        for one in axes.ravel()[len(grids) :]:
            one.set_visible(False)
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=90)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
