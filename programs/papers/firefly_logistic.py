"""Table 1, row 1, and Figure 4 (a) of the Firefly paper (Maclaurin and Adams 2014): logistic regression.

    python programs/papers/firefly_logistic.py                            # generated, 12,214 rows and 51 features
    python programs/papers/firefly_logistic.py --data mnist_7v9.npz       # MNIST, 7 against 9, as in the paper
    python programs/papers/firefly_logistic.py --data mnist_7v9.npz --scale 4     # the numbers of the page

Regular Metropolis-Hastings and Firefly Monte Carlo with the same isotropic walk, each with its step tuned to an
acceptance of 0.234: bounds at xi = 1.5 (`untuned`), and bounds at the mode (`map`). Then Langevin steps preconditioned
at the mode, and whether they find the same posterior as regular ones. MNIST: 50 principal components divided by one
common sd, and a bias; the prior is N(0, 0.1 I). What the columns mean is in `firefly.py`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from firefly import (
    HEADER,
    Beginnings,
    Measured,
    agreement,
    draw,
    line,
    measured,
    tuned,
)
from logistic import PRIOR_VARIANCE, Data, chosen, take_data

from venture_lite import Venture
from venture_lite.engines.firefly.flymc import GaussianStep

PROGRAM = Path(__file__).with_suffix(".vnt").read_text(encoding="utf-8")
MODEL = PROGRAM.partition("# a Gaussian walk")[0]
PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "firefly_logistic.png"
ACCEPTANCE = 0.234
ADAPTING = 20_000
LANGEVIN_ADAPTING = 2_000
REGULAR = "mh w all 'drift {step}"
REGULAR_LANGEVIN = "mala w all {step} 'precondition"
THIN = 10
COURSE = 6_000
"""Transitions of a run from the prior."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    take_data(parser)
    parser.add_argument("--scale", type=float, default=1.0, help="length of the runs, in those of the default")
    parser.add_argument("--runs", type=int, default=5, help="runs from the prior for each line of the picture")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    data = chosen(options)
    print(HEADER, flush=True)

    def count(transitions: int) -> int:
        return THIN * int(options.scale * transitions / THIN)

    regular = regular_walk(data, count(130_000))
    print(line(regular, regular), flush=True)
    walks = []
    for tuning, q, transitions in (("untuned", 0.1, 50_000), ("map", 0.01, 200_000), ("map", 0.003, 250_000)):
        walks.append(firefly_walk(data, tuning, q, count(transitions)))
        print(line(walks[-1], regular), flush=True)
    reference = regular_langevin(data, count(10_000))
    print(line(reference, regular), flush=True)
    for q, walk in zip((0.01, 0.003), walks[1:], strict=True):
        langevin = firefly_langevin(data, q, count(60_000))
        print(line(langevin, regular))
        print(
            f"  least ESS a transition {gain(langevin, walk):.0f} times the walk's; {agreement(langevin, reference)}",
            flush=True,
        )
    if options.runs:
        beginnings = Beginnings(lambda seed: model(data, seed), options.runs, COURSE)
        draw(beginnings.courses(REGULAR.format(step=regular.step), walks, GaussianStep()), options.picture)


def model(data: Data, seed: int) -> Venture:
    """At a draw from the prior."""
    v = Venture(seed=seed)
    prior = {"mu": np.zeros(data.size), "Sig": PRIOR_VARIANCE * np.eye(data.size)}
    v.execute(MODEL, X=data.train, Y=data.classes, N=len(data.train), **prior)
    return v


def burnt_in(data: Data, seed: int = 1) -> Venture:
    """Near a draw from the posterior: a walk would need tens of thousands of transitions from the prior."""
    v = model(data, seed)
    v.infer("(mala w all 0.8 'precondition 300)")
    return v


def regular_walk(data: Data, transitions: int) -> Measured:
    v = burnt_in(data)
    step = tuned(v, REGULAR, 0.01, ACCEPTANCE, ADAPTING)
    found = measured(v, "regular walk", REGULAR.format(step=step), transitions, THIN)
    return replace(found, step=step)


def firefly_walk(data: Data, tuning: str, q: float, transitions: int) -> Measured:
    # where half of the rows are bright a transition takes long, and little is lost by a step that is less well tuned
    adapting = ADAPTING if tuning == "map" else ADAPTING // 4
    kernel = f"flymc w all auto '{tuning} {q} 'drift 0.01 'adapt {adapting}"
    return measured(burnt_in(data), f"walk, {tuning}, q = {q}", kernel, transitions, THIN, adapting)


def regular_langevin(data: Data, transitions: int) -> Measured:
    v = burnt_in(data)
    step = tuned(v, REGULAR_LANGEVIN, 0.8, 0.57, LANGEVIN_ADAPTING)
    kernel = REGULAR_LANGEVIN.format(step=step)
    return measured(v, "regular MALA", kernel, transitions, 1)


def firefly_langevin(data: Data, q: float, transitions: int) -> Measured:
    kernel = f"flymc w all auto 'map {q} 'mala 0.8 'precondition 'adapt {LANGEVIN_ADAPTING}"
    return measured(burnt_in(data), f"MALA, map, q = {q}", kernel, transitions, 1, LANGEVIN_ADAPTING)


def gain(found: Measured, other: Measured) -> float:
    """Effective draws of the worst coordinate a transition, as a multiple of another kernel's."""
    return float(found.ess.min() / found.transitions / (other.ess.min() / other.transitions))


if __name__ == "__main__":
    main()
