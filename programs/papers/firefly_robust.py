"""Robust regression by Firefly Monte Carlo: Table 1, row 3, and Figure 4c of Maclaurin and Adams (2014).

    python programs/papers/firefly_robust.py                               # generated, 29,978 rows and 58 features
    python programs/papers/firefly_robust.py --data opv_cep_features.npz   # organic photovoltaics
    python programs/papers/firefly_robust.py --rows 1000000 --regular 100 --untuned 0 --q 0.0001

Slice sampling along random directions, of the same width in all three: over all rows (regular MCMC), with bounds that
touch where the predictor is 0 (untuned), with bounds that touch at the mode. A *query* is the likelihood of one row at
one new value of the weights; set-up and burn-in, by the third of these, are counted apart. The picture is of chains
that start at draws from the prior.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from venture_lite import Venture
from venture_lite.engines.firefly.firefly import FireflySettings
from venture_lite.engines.firefly.flymc import SliceMove

sys.path.insert(0, str(Path(__file__).parent))
from firefly import BATCHES, EACH, HEADER, Course, Measured, agreement, draw, firefly_course, line, measured

PROGRAM = Path(__file__).with_name("firefly_robust.vnt")
ROWS, COMPONENTS = 29_978, 57
DF, SCALE, PRIOR_SCALE = 4.0, 0.45, 0.1
# of a slice among ROWS rows: about three posterior sds
WIDTH = 0.01
# transitions between two draws that are kept, and at the start that are not
THIN, BURN_IN = 5, 2_000
# by tuning the probability with which a dark row is proposed to brighten
Q = {"untuned": 0.1, "map": 0.001}
# the chains of the picture, for each kernel, and their transitions
RUNS, COURSE = 1, 400


@dataclass(frozen=True, slots=True)
class Data:
    """What is regressed on what."""

    # (rows, features), the last a column of ones
    features: np.ndarray
    # (rows,)
    target: np.ndarray

    @property
    def size(self) -> int:
        return int(self.features.shape[1])

    @property
    def width(self) -> float:
        """Of a slice: the posterior narrows with the rows."""
        return float(WIDTH * np.sqrt(ROWS / len(self.target)))

    def session(self, seed: int = 1) -> Venture:
        """The program on these data, at a draw from the prior."""
        v = Venture(seed=seed)
        v.register(
            "independent_laplace",
            simulate=lambda rng, size, scale: rng.laplace(0.0, scale, int(size)),
            log_density=lambda value, size, scale: -np.abs(value).sum() / scale - size * np.log(2.0 * scale),
            gradient={"value": lambda value, size, scale: -np.sign(value) / scale},
            arguments=["size", "scale"],
            domain="real",
        )
        v.run_file(
            PROGRAM, X=self.features, Y=self.target, N=len(self.target), D=self.size, scale=SCALE,
            prior_scale=PRIOR_SCALE, q=1.0, width=self.width, T=0,
        )  # fmt: skip
        return v

    def burnt_in(self) -> Venture:
        """A session that has forgotten its start, least squares: from a draw of the prior the way is long."""
        v, features = self.session(), self.features
        v.force("w", np.linalg.solve(features.T @ features, features.T @ self.target))
        v.infer("(flymc w all auto 'map {q} 'slice {width} {T})", q=Q["map"], width=self.width, T=BURN_IN)
        return v

    def log_density(self, weights: np.ndarray) -> float:
        """Of weights and targets, up to a constant."""
        away = (self.target - self.features @ weights) / SCALE
        return float(-0.5 * (DF + 1.0) * np.log1p(away * away / DF).sum() - np.abs(weights).sum() / PRIOR_SCALE)


@dataclass(frozen=True, slots=True)
class Place:
    """Weights (D,) and the log density there."""

    theta: np.ndarray
    log_density: float


class AllRows:
    """The posterior as Firefly's slice sees one; that every row is evaluated is all that differs."""

    def __init__(self, data: Data, start: np.ndarray, seed: int) -> None:
        self.data = data
        self.rng = np.random.default_rng(seed)
        self._place = Place(start, data.log_density(start))
        self.queries = 0

    @property
    def theta(self) -> np.ndarray:
        return self._place.theta

    def here(self) -> Place:
        return self._place

    def at(self, theta: np.ndarray) -> Place:
        self.queries += len(self.data.target)
        return Place(theta, self.data.log_density(theta))

    def move(self, place: Place) -> bool:
        self._place = place
        return True

    def poll(self) -> None:
        """Python itself notices Ctrl-C."""


def main() -> None:
    options = arguments()
    data = generated(options.rows) if options.data is None else organic(options.data)
    print(HEADER)
    regular = over_all_rows(data, options.regular)
    print(line(regular, regular), flush=True)
    if options.coordinates:
        print(line(in_turn(data, options.coordinates), regular), flush=True)
    for tuning, q, transitions in (("untuned", Q["untuned"], options.untuned), ("map", options.q, options.map)):
        if transitions:
            found = by_firefly(data, tuning, q, transitions)
            print(line(found, regular), flush=True)
            # a few transitions over very many rows are made to see what they cost
            if len(regular.draws[0]) >= BATCHES:
                print(f"  against regular: {agreement(found, regular)}", flush=True)
    if options.picture is not None:
        seeds = range(1, RUNS + 1)
        courses = {"regular": [regular_course(data, seed) for seed in seeds]}
        for tuning in Q:
            courses[f"Firefly, {tuning}"] = [course(data, tuning, seed) for seed in seeds]
        draw(courses, options.picture)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="opv_cep_features.npz; generated by default")
    parser.add_argument("--rows", type=int, default=ROWS, help="how many are generated")
    parser.add_argument("--regular", type=int, default=10_000, help="transitions over all rows")
    parser.add_argument("--untuned", type=int, default=10_000, help="transitions with bounds that touch at 0")
    parser.add_argument("--map", type=int, default=100_000, help="transitions with bounds that touch at the mode")
    parser.add_argument("--q", type=float, default=Q["map"], help="share of dark rows then proposed to brighten")
    parser.add_argument("--coordinates", type=int, default=0, help="passes of the action `slice`, a coordinate a time")
    parser.add_argument("--picture", type=Path, help="where to draw how the chains begin")
    return parser.parse_args()


def organic(path: Path) -> Data:
    """Features of organic photovoltaic molecules, standardised, as whitened principal components and a bias, and the
    efficiency with which they convert power, standardised."""
    with np.load(path) as found:
        table, target = found["X"].astype(np.float64), found["y"]
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    _, directions = np.linalg.eigh(table.T @ table)
    components = table @ directions[:, ::-1][:, :COMPONENTS]
    features = np.column_stack([components / components.std(axis=0), np.ones(len(table))])
    return Data(features, (target - target.mean()) / target.std())


def generated(rows: int) -> Data:
    """Independent normal features, weights from the prior, targets from the likelihood."""
    rng = np.random.default_rng(0)
    features = np.column_stack([rng.standard_normal((rows, COMPONENTS)), np.ones(rows)])
    weights = rng.laplace(0.0, PRIOR_SCALE, COMPONENTS + 1)
    return Data(features, features @ weights + SCALE * rng.standard_t(DF, rows))


def over_all_rows(data: Data, transitions: int) -> Measured:
    density, move, step = AllRows(data, data.burnt_in().report("w"), seed=1), SliceMove(), data.width
    started = time.process_time()
    draws = np.empty((transitions // THIN, data.size))
    for row in draws:
        for _ in range(THIN):
            move(density, step)
        row[:] = density.theta
    seconds = (time.process_time() - started) / transitions
    return Measured("regular", draws[None], transitions, density.queries / transitions, 1.0, 0, data.width, seconds)


def in_turn(data: Data, passes: int) -> Measured:
    """The action `slice`: a transition moves every coordinate once."""
    v = data.burnt_in()
    started = time.process_time()
    draws = v.infer("(repeat {T} (do (slice w all {width} 100 1) (collect w)))", width=data.width, T=passes)
    seconds, rows = (time.process_time() - started) / passes, draws.statistics[0].rows
    return Measured("coordinates in turn", draws["w"], passes, rows / passes, 1.0, 0, data.width, seconds)


def by_firefly(data: Data, tuning: str, q: float, transitions: int) -> Measured:
    v = data.burnt_in()
    kernel = f"flymc w all gaussian_tangent '{tuning} {q} 'slice {data.width}"
    return measured(v, f"Firefly, {tuning}, q = {q}", kernel, transitions, THIN)


def regular_course(data: Data, seed: int) -> Course:
    density, move, step = AllRows(data, data.session(seed).report("w"), seed), SliceMove(), data.width
    found = []
    for _ in range(COURSE // EACH):
        density.queries = 0
        for _ in range(EACH):
            move(density, step)
        found.append((density.here().log_density, density.queries / EACH))
    return Course(*np.array(found).T)


def course(data: Data, tuning: str, seed: int) -> Course:
    settings = FireflySettings("gaussian_tangent", tuning == "map", Q[tuning], None, False)
    return firefly_course(data.session(seed), settings, SliceMove(), data.width, COURSE)


if __name__ == "__main__":
    main()
