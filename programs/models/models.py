"""Models of the field by `auto` with nothing else said: how long it takes, and whether what made the data is found.

    python programs/models/models.py                 # all of them, in one process after the other
    python programs/models/models.py radon mixture   # some
    python programs/models/models.py --seed 2

Each program is what a user would write first. Data are generated, always the same, so that the truth is known, but for
the eight schools, whose answer comes by quadrature. A number of the truth has to lie within 4 posterior sds; of classes
and states, whose names mean nothing, functions are compared that do not depend on names.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special, stats

from venture_lite import Venture
from venture_lite.draws.diagnostics import ess_mean
from venture_lite.draws.draws import Draws

HERE = Path(__file__).parent
SDS = 4.0
Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Model:
    """A program, its data, and what is known of its posterior."""

    # from nothing to the parameters of the program
    data: Callable[[], Given]
    # numbers that made the data, by the names of what is drawn
    truth: Mapping[str, float]
    # procedures that the program needs
    register: Callable[[Venture], None] = lambda venture: None
    # means that are exact, with the sds, where data are real
    exact: Callable[[Given], Mapping[str, tuple[float, float]]] = lambda given: {}


# ------------------------------------------------------------------------------------------------------------- data


def radon() -> Given:
    """919 houses in 85 counties, of which some have one house and one has more than a hundred."""
    rng = np.random.default_rng(7)
    share = rng.gamma(0.7, size=85)
    county = np.concatenate([np.arange(1, 86), rng.choice(np.arange(1, 86), size=834, p=share / share.sum())])
    basement = (rng.random(919) < 0.17).astype(float)
    level = 1.4 + 0.33 * rng.normal(size=85)
    y = level[county - 1] - 0.66 * basement + 0.73 * rng.normal(size=919)
    return {"N": 919, "county": county, "basement": basement, "y": y}


def schools() -> Given:
    return {
        "N": 8,
        "y": np.array([28.0, 8, -3, 7, -1, 1, 18, 12]),
        "se": np.array([15.0, 10, 16, 11, 9, 11, 10, 18]),
    }


def schools_exactly(given: Given) -> dict[str, tuple[float, float]]:
    """mu given tau is normal; tau by quadrature over its logarithm."""
    log_tau = np.linspace(-9, 6, 4001)
    tau = np.exp(log_tau)[:, None]
    precision = 1 / (given["se"] ** 2 + tau**2)
    total = precision.sum(axis=1) + 1 / 25
    centre = (precision * given["y"]).sum(axis=1) / total
    fit = 0.5 * (np.log(precision) - precision * given["y"] ** 2).sum(axis=1) + 0.5 * (
        centre**2 * total - np.log(total)
    )
    weight = fit + stats.halfcauchy.logpdf(tau[:, 0], scale=5) + log_tau
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()

    def moments(mean: np.ndarray, square: np.ndarray) -> tuple[float, float]:
        return float(weight @ mean), math.sqrt(float(weight @ square - (weight @ mean) ** 2))

    return {"mu": moments(centre, centre**2 + 1 / total), "tau": moments(tau[:, 0], tau[:, 0] ** 2)}


WEIGHTS = np.array([1.5, -2.0, 0.5, 0.0, 3.0, -0.7, 0.2, 1.0, -1.2])


def robust() -> Given:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(10_000, 9))
    return {"N": 10_000, "D": 9, "X": X, "y": X @ WEIGHTS + 1.3 * rng.standard_t(4, size=10_000)}


def volatility() -> Given:
    rng = np.random.default_rng(5)
    h = np.empty(1000)
    before = -1.0 + 0.2 / math.sqrt(1 - 0.95**2) * rng.normal()
    for t in range(1000):
        h[t] = before = -1.0 + 0.95 * (before + 1.0) + 0.2 * rng.normal()
    return {"N": 1000, "y": np.exp(h / 2) * rng.normal(size=1000)}


SHARES, CENTRES, NOISE = np.array([0.45, 0.3, 0.15, 0.1]), np.array([-4.0, 0.0, 3.0, 9.0]), 0.8


def mixture() -> Given:
    """Of four classes, some nearer to each other than others; the first four data lie in the middle of one each."""
    rng = np.random.default_rng(11)
    y = CENTRES[rng.choice(4, size=2000, p=SHARES)] + NOISE * rng.normal(size=2000)
    for at, centre in enumerate(CENTRES):
        nearest = at + int(np.argmin(np.abs(y[at:] - centre)))
        y[[at, nearest]] = y[[nearest, at]]
    return {"N": 2000, "y": y}


ROWS, LEVELS = np.array([[0.9, 0.08, 0.02], [0.05, 0.85, 0.1], [0.1, 0.1, 0.8]]), np.array([-2.0, 0.5, 4.0])


def hidden_states() -> np.ndarray:
    rng = np.random.default_rng(13)
    states = np.empty(500, dtype=int)
    for t in range(500):
        states[t] = rng.choice(3, p=ROWS[states[t - 1]]) if t else rng.choice(3)
    return states


def hidden_markov() -> Given:
    return {"N": 500, "y": LEVELS[hidden_states()] + np.random.default_rng(14).normal(size=500)}


def levels() -> list[float]:
    """Of the states of the days that `hidden_markov.vnt` looks at."""
    return [float(LEVELS[hidden_states()[t - 1]]) for t in (50, 450)]


def gaussian_process() -> Given:
    rng = np.random.default_rng(17)
    x = np.sort(rng.uniform(0, 10, size=100))
    covariance = 1.5**2 * np.exp(-0.5 * (x[:, None] - x) ** 2 / 1.2**2) + 0.3**2 * np.eye(100)
    return {"N": 100, "x": x, "y": np.linalg.cholesky(covariance) @ rng.normal(size=100)}


SLOPES = np.array([0.5, -1.0, 0.8, 0.0, 0.3, -0.3, 1.2, 0.1, -0.6, 0.0, 0.9, -0.2, 0.4, -1.5])


def logistic() -> Given:
    rng = np.random.default_rng(19)
    X = rng.normal(size=(20_000, 14))
    return {"N": 20_000, "D": 14, "X": X, "y": rng.random(20_000) < 1 / (1 + np.exp(-X @ SLOPES))}


def zero_inflated() -> Given:
    rng = np.random.default_rng(23)
    x = rng.normal(size=400)
    y = np.where(rng.random(400) < 0.25, 0, rng.poisson(np.exp(0.7 + 0.5 * x)))
    return {"N": 400, "x": x, "y": y}


def register_counts(venture: Venture) -> None:
    """A Poisson distribution as a user would give it, with the form of columns and the derivatives."""
    venture.register(
        "counts",
        simulate=lambda rng, rate: int(rng.poisson(rate)),
        log_density=lambda k, rate: k * math.log(rate) - rate - math.lgamma(k + 1),
        log_density_columns=lambda k, rate: k * np.log(rate) - rate - special.gammaln(k + 1),
        gradient={"rate": lambda k, rate: k / rate - 1},
        gradient_columns={"rate": lambda k, rate: k / rate - 1},
        arguments={"rate": "positive"},
        domain="count",
    )


# ------------------------------------------------------------------------------------------------------------ models


RADON = {"level": 1.4, "spread": 0.33, "floor": -0.66, "noise": 0.73}
VOLATILITY = {"mu": -1.0, "phi": 0.95, "sigma": 0.2}
MODELS: dict[str, Model] = {
    "radon": Model(radon, RADON),
    "radon_centred": Model(radon, RADON),
    "schools": Model(schools, {}, exact=schools_exactly),
    "schools_centred": Model(schools, {}, exact=schools_exactly),
    "robust": Model(robust, {f"w[{i}]": float(w) for i, w in enumerate(WEIGHTS)} | {"scale": 1.3, "degrees": 4.0}),
    "volatility": Model(volatility, VOLATILITY),
    "volatility_centred": Model(volatility, VOLATILITY),
    "mixture": Model(
        mixture,
        {f"centre_{k + 1}": float(CENTRES[k]) for k in range(4)} | {"noise": NOISE, "(classes class)": 4.0},
    ),
    "mixture_collapsed": Model(mixture, {"(classes class)": 4.0}),
    "hidden_markov": Model(
        hidden_markov, {"noise": 1.0} | dict(zip(("level_early", "level_late"), levels(), strict=True))
    ),
    "gaussian_process": Model(gaussian_process, {"amplitude": 1.5, "length": 1.2, "noise": 0.3}),
    "logistic": Model(logistic, {f"w[{i}]": float(w) for i, w in enumerate(SLOPES)}),
    "zero_inflated": Model(zero_inflated, {"share": 0.25, "a": 0.7, "b": 0.5}, register=register_counts),
}


def values_of(draws: Draws, name: str) -> np.ndarray:
    """Draws (chains, draws) of a number by its name; `w[2]` is an entry."""
    base, _, index = name.partition("[")
    values = np.asarray(draws[base], dtype=np.float64)
    return values[..., int(index[:-1])] if index else values


def faults(model: Model, given: Given, draws: Draws) -> list[str]:
    """What was not found: a truth that is far outside, or an exact mean or sd that is missed."""
    found = []
    for name, truth in model.truth.items():
        its = values_of(draws, name)
        off = (float(its.mean()) - truth) / max(float(its.std()), 1e-12)
        if not abs(off) <= SDS:
            found.append(f"{name}: {its.mean():.4g}, {off:+.1f} sds from {truth:.4g}")
    for name, (mean, sd) in model.exact(given).items():
        its = values_of(draws, name)
        error = 4 * sd / math.sqrt(ess_mean(its)) + 0.02 * sd
        if not abs(its.mean() - mean) <= error or not abs(its.std() / sd - 1) <= 0.1:
            found.append(f"{name}: mean {its.mean():.4g}, sd {its.std():.4g}, exactly {mean:.4g}, {sd:.4g}")
    return found


def run(name: str, seed: int) -> tuple[list[str], str]:
    """What is wrong with the draws of a model, and a line of what they cost and what was warned of."""
    model = MODELS[name]
    given, v = model.data(), Venture(seed=seed)
    model.register(v)
    began, spent = time.monotonic(), processor_seconds()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        v.run_file(HERE / f"{name}.vnt", **given)
        draws = v.auto()
    cost = f"{time.monotonic() - began:.0f} s, {processor_seconds() - spent:.0f} of processors"
    told = "".join(f"\n    warned: {' '.join(str(each.message).split())}" for each in warned)
    return faults(model, given, draws), f"{cost}, {draws[draws.names[0]].shape[1]} draws a chain{told}"


def processor_seconds() -> float:
    """Of this process and of those that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; by default all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    wrong = []
    for name in options.names or MODELS:
        found, cost = run(name, options.seed)
        print(f"{name}: {'found' if not found else 'NOT FOUND'} ({cost})", *found, sep="\n    ", flush=True)
        wrong += [name] if found else []
    if wrong:
        sys.exit(f"{len(wrong)} were not found: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
