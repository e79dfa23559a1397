"""How far each strategy is from the posterior of the two urns: figure 2 of Obermeyer, Glidden and Jonas (2014).

Each replication runs `urns.vnt` to its end. The states, as (red balls on the left, blue balls on the left), are counted
on a grid of 5 x 5 cells and compared with the exact posterior by total variation distance. The distance of as many
draws from the posterior itself is reported beside: none can be expected to come nearer.

    python programs/papers/urns.py --balls 2000 --replications 1000 --workers 2
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from scipy.special import betaln, gammaln

from venture_lite import Venture

PROGRAM = Path(__file__).with_name("urns.vnt").read_text(encoding="utf-8")
# what infers; all but the first two make 10 N assignments
STRATEGIES = {
    "prior": "",
    "sequential": "(anneal left sequential 0)",
    "prior + gibbs": "(anneal left constant 9)",
    "sequential + gibbs": "(anneal left sequential 9)",
    "anneal energy": "(anneal left linear 'energy 9)",
    "anneal subsample": "(anneal left linear 9)",
}
INFERENCE = "(anneal left linear 9)"
CELLS = 5


def state(strategy: str, balls: int, seed: int) -> tuple[int, int]:
    """(red, blue) balls on the left after one run; two balls of five are red."""
    red = np.arange(balls) < 0.4 * balls
    v = Venture(seed=seed)
    v.execute(PROGRAM.replace(INFERENCE, STRATEGIES[strategy]), N=balls, red=red)
    left = np.array(v.report("is_left"), dtype=bool)
    return int((left & red).sum()), int((left & ~red).sum())


def posterior(reds: int, blues: int, prior: float = 0.45) -> np.ndarray:
    """Probability of each cell, `(CELLS, CELLS)`: the urns' shares are summed out."""
    red, blue = np.arange(reds + 1)[:, None], np.arange(blues + 1)
    left = red + blue
    ways = gammaln(reds + 1) - gammaln(red + 1) - gammaln(reds - red + 1)
    ways = ways + gammaln(blues + 1) - gammaln(blue + 1) - gammaln(blues - blue + 1)
    log_density = ways + left * np.log(prior) + (reds + blues - left) * np.log1p(-prior)
    log_density += betaln(0.5 + red, 0.5 + blue) + betaln(0.5 + reds - red, 0.5 + blues - blue)
    density = np.exp(log_density - log_density.max())
    cells = np.zeros((CELLS, CELLS))
    np.add.at(cells, (cell(red, reds), cell(blue, blues)), density)
    cells /= cells.sum()
    return cells


def cell(count: np.ndarray, total: int) -> np.ndarray:
    found: np.ndarray = np.minimum(CELLS * count // total, CELLS - 1)
    return found


def distance(states: np.ndarray, exact: np.ndarray, reds: int, blues: int) -> float:
    """Total variation distance of the shares of states, `(replications, 2)`, from the exact probabilities."""
    counts = np.zeros_like(exact)
    np.add.at(counts, (cell(states[:, 0], reds), cell(states[:, 1], blues)), 1.0)
    return float(0.5 * np.abs(counts / len(states) - exact).sum())


def noise(exact: np.ndarray, replications: int) -> float:
    """Mean distance of as many draws from the exact distribution."""
    counts = np.random.default_rng(0).multinomial(replications, exact.ravel(), size=1000) / replications
    return float(0.5 * np.abs(counts - exact.ravel()).sum(axis=1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--balls", type=int, default=2000)
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    options = parser.parse_args()
    reds = sum(np.arange(options.balls) < 0.4 * options.balls)
    blues = options.balls - reds
    exact = posterior(reds, blues)
    print(f"{noise(exact, options.replications):.3f}  exact draws")
    with ProcessPoolExecutor(options.workers) as pool:
        for name in options.strategies:
            found = pool.map(partial(state, name, options.balls), range(options.replications))
            print(f"{distance(np.array(list(found)), exact, reds, blues):.3f}  {name}", flush=True)


if __name__ == "__main__":
    main()
