"""Tables of numbers and of outcomes for cross-categorization: the program for one, what it inferred, and what that says
of rows that it has not seen."""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import gammaln, logsumexp

from venture_lite import Venture

PROGRAM = Path(__file__).with_name("crosscat.vnt").read_text(encoding="utf-8")
COLUMNS = "; here the first column is numeric"
"""From here on the program speaks of two columns."""
GRIDS = {
    "strengths": np.geomspace(0.1, 10.0, 6),
    "discounts": np.array([0.0, 0.25, 0.5]),
    # numbers have mean 0 and sd 1
    "means": np.linspace(-2.0, 2.0, 7),
    "kappas": np.geomspace(0.01, 10.0, 6),
    "nus": np.geomspace(1.0, 64.0, 5),
    "vars": np.geomspace(0.003, 3.0, 7),
    "weights": np.geomspace(0.05, 5.0, 5),
}
LEAST_NUMBERS = 20
"""A column of numbers with fewer values than this is one of outcomes."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows (rows, columns); a column's entries are numbers, or outcomes 0, 1, ..."""

    rows: np.ndarray
    # of each column, 0 for numbers
    outcomes: tuple[int, ...]

    def some_columns(self, most: int) -> Table:
        """At most so many of the columns, evenly spread."""
        count = len(self.outcomes)
        kept = np.unique(np.linspace(0, count - 1, min(most, count)).astype(int))
        return Table(self.rows[:, kept], tuple(self.outcomes[column] for column in kept))

    def split(self, rng: np.random.Generator) -> tuple[Table, Table]:
        """A random 7/8 of the rows to learn from and the others; numbers in units of the former's mean and sd."""
        order = rng.permutation(len(self.rows))
        count = len(order) * 7 // 8
        train, test = self.rows[order[:count]].copy(), self.rows[order[count:]].copy()
        for column in np.flatnonzero(np.array(self.outcomes) == 0):
            centre, sd = train[:, column].mean(), train[:, column].std()
            for part in (train, test):
                part[:, column] = (part[:, column] - centre) / (sd if sd > 0.0 else 1.0)
        return Table(train, self.outcomes), Table(test, self.outcomes)


def read(path: Path, most_rows: int) -> Table:
    """All columns of a .csv.gz file but names of the rows and constants; where there are more rows, a random part."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = list(csv.reader(file))[1:]
    picked = np.random.default_rng(0).permutation(len(lines))[:most_rows]
    cells = np.array([lines[row] for row in picked])
    columns, outcomes = [], []
    for texts in cells.T:
        values, codes = np.unique(texts, return_inverse=True)
        if 1 < len(values) < LEAST_NUMBERS or (len(values) < len(cells) and not _are_numbers(values)):
            columns.append(codes.astype(np.float64))
            outcomes.append(len(values))
        elif len(values) > 1 and _are_numbers(values):
            columns.append(texts.astype(np.float64))
            outcomes.append(0)
    return Table(np.stack(columns, axis=1), tuple(outcomes))


def _are_numbers(texts: np.ndarray) -> bool:
    try:
        texts.astype(np.float64)
    except ValueError:
        return False
    return True


def generated(rows: int, columns: int, seed: int = 0) -> Table:
    """A table of three views of four categories each, every fourth column of outcomes."""
    rng = np.random.default_rng(seed)
    category = rng.integers(4, size=(3, rows))
    views, found, outcomes = rng.integers(3, size=columns), [], []
    for column, view in enumerate(views):
        if column % 4 == 3:
            shares = rng.dirichlet(np.full(3, 0.4), size=4)
            reached = rng.random(rows)[:, None] > shares.cumsum(axis=1)[category[view]][:, :2]
            found.append(reached.sum(axis=1).astype(np.float64))
            outcomes.append(3)
        else:
            found.append(rng.normal(0.0, 2.0, size=4)[category[view]] + rng.normal(0.0, 0.6, size=rows))
            outcomes.append(0)
    return Table(np.stack(found, axis=1), tuple(outcomes))


# -------------------------------------------------------------------------------------------- the program and its state


def program(outcomes: tuple[int, ...]) -> str:
    """The program's model for these columns; what it infers is left out."""
    columns = list(enumerate(outcomes, start=1))
    kinds = [f"nominal {column} {count}" if count else f"numeric {column}" for column, count in columns]
    lines = [PROGRAM[: PROGRAM.index(COLUMNS)]]
    for (column, _), kind in zip(columns, kinds, strict=True):
        lines += [f"[assume components_{column} ({kind})]", f"[assume view_{column} (view {column})]"]
    lines.append("rows: for n in 1...N:")
    for column, _ in columns:
        lines.append(f"  [observe ((components_{column} (category view_{column} n))) {{X[n, {column}]}}]")
    return "\n".join(lines)


def session(table: Table, seed: int) -> Venture:
    v = Venture(seed=seed)
    v.execute(program(table.outcomes), X=table.rows, N=len(table.rows), **GRIDS)
    return v


@dataclass(frozen=True, slots=True)
class View:
    """One view: its columns, how it parts the rows, and the process of its categories."""

    columns: list[int]
    # category of each row, from 0
    categories: np.ndarray
    strength: float
    discount: float


@dataclass(frozen=True, slots=True)
class State:
    views: list[View]
    # of each column: (mean, kappa, nu, var), or the weights of its outcomes
    shared: list[np.ndarray]


def state_of(v: Venture, outcomes: tuple[int, ...], count: int) -> State:
    """What the present state of a session says of the rows 1, ..., count."""
    columns = range(1, len(outcomes) + 1)
    of_column = np.array(v.sample(f"(map view (range 1 {len(outcomes) + 1}))"))
    views = []
    for view in np.unique(of_column):
        labels = v.sample(f"(map (lambda (n) (category {view} n)) (range 1 {count + 1}))")
        _, categories = np.unique(np.array(labels), return_inverse=True)
        strength, discount = v.sample(f"(list (strength {view}) (discount {view}))")
        views.append(View(np.flatnonzero(of_column == view).tolist(), categories, strength, discount))
    shared = [
        v.sample(f"(map (lambda (k) (weight {column} k)) (range {many}))" if many else
                 f"(list (mean {column}) (kappa {column}) (nu {column}) (var {column}))")
        for column, many in zip(columns, outcomes, strict=True)
    ]  # fmt: skip
    return State(views, [np.array(values, dtype=np.float64) for values in shared])


# -------------------------------------------------------------------------------------------------------- held-out rows


def log_predictive(state: State, seen: Table, rows: np.ndarray) -> np.ndarray:
    """Log density of each of these rows, (rows, columns), given the state of those seen; its categories are summed
    over, a new one included."""
    found: np.ndarray = np.sum([_in_view(view, state, seen, rows) for view in state.views], axis=0)
    return found


def _in_view(view: View, state: State, seen: Table, rows: np.ndarray) -> np.ndarray:
    sizes = np.bincount(view.categories)
    shares = np.append(sizes - view.discount, view.strength + view.discount * len(sizes))
    log_density = np.tile(np.log(shares / (len(view.categories) + view.strength)), (len(rows), 1))
    for column in view.columns:
        values, shared = seen.rows[:, column], state.shared[column]
        of = _outcome if seen.outcomes[column] else _number
        log_density += of(rows[:, column], values, view.categories, len(sizes) + 1, shared)
    found: np.ndarray = logsumexp(log_density, axis=1)
    return found


def _outcome(x: np.ndarray, seen: np.ndarray, categories: np.ndarray, count: int, weights: np.ndarray) -> np.ndarray:
    """Log probability of each outcome in each category (rows, count), the last of which is empty."""
    counts = np.tile(weights, (count, 1))
    np.add.at(counts, (categories, seen.astype(int)), 1.0)
    shares: np.ndarray = np.log(counts / counts.sum(axis=1, keepdims=True)).T[x.astype(int)]
    return shares


def _number(x: np.ndarray, seen: np.ndarray, categories: np.ndarray, count: int, shared: np.ndarray) -> np.ndarray:
    """Log density of each number in each category (rows, count): a Student t (Murphy 2007, section 5)."""
    mean, kappa, nu, var = shared
    n = np.bincount(categories, minlength=count)
    centre = np.bincount(categories, seen, count) / np.maximum(n, 1)
    scatter = np.bincount(categories, (seen - centre[categories]) ** 2, count)
    squares = nu * var + scatter + kappa * n / (kappa + n) * (centre - mean) ** 2
    place = (kappa * mean + n * centre) / (kappa + n)
    spread = squares * (1.0 + kappa + n) / (kappa + n)
    half = 0.5 * (nu + n + 1.0)
    constant = gammaln(half) - gammaln(half - 0.5) - 0.5 * np.log(np.pi * spread)
    found: np.ndarray = constant - half * np.log1p((x[:, None] - place) ** 2 / spread)
    return found
