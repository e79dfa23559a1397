"""Held-out log likelihood of cross-categorization within bounded time: figure 3 of Obermeyer, Glidden and Jonas (2014).

    python programs/papers/crosscat.py                                   # a generated table
    python programs/papers/crosscat.py --data dartmouth_atlas_dha.csv.gz --rows 307 --columns 63 \\
        --seeds 10 --save out/crosscat.jsonl

Each seed parts the rows at random into 7/8 to learn from and 1/8 to be scored. Subsample annealing runs with each
number of churns. The CPU time that it takes is the bound within which Gibbs sampling of all rows, from the prior or
from a sequential start, is scored: after the first sweep that ends beyond it, so that what is left over is in its
favour. Gibbs sampling is scored after as many assignments, too. The score is the mean log density of a held-out row
under the last state. What was found is saved as it comes, and a second run goes on from there.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from crosscat_table import PROGRAM, Table, generated, log_predictive, read, session, state_of
from drawing import EXACT, OTHER, POSTERIOR, STYLE, panels

from venture_lite import Venture

PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "crosscat.png"
# the kernels that run once for each pass through the rows, as in the program
KERNELS = PROGRAM[PROGRAM.index("(anneal category linear 9") :].removeprefix("(anneal category linear 9").rstrip()[:-1]
ANNEAL, PRIOR, SEQUENTIAL = "anneal", "prior + gibbs", "sequential + gibbs"
TIME, ASSIGNMENTS = BOUNDS = ("time", "assignments")
COLOURS = {ANNEAL: POSTERIOR, PRIOR: EXACT, SEQUENTIAL: OTHER}


@dataclass(frozen=True, slots=True)
class Score:
    """One point of the figure."""

    strategy: str
    # whether as much time as annealing took bounds it, or as many assignments
    bound: str
    # of that annealing
    churns: int
    seed: int
    # CPU seconds
    took: float
    # mean log density of a held-out row
    score: float
    views: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a table as .csv.gz")
    parser.add_argument("--rows", type=int, default=160, help="at most so many; of a generated table just as many")
    parser.add_argument("--columns", type=int, default=12, help="so many; of data spread over all that there are")
    parser.add_argument("--churns", nargs="*", type=int, default=[1, 2, 4], help="of annealing: one bound for each")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--save", type=Path, help="where scores are kept")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    parser.add_argument("--costs", action="store_true", help="print what a sweep costs, and nothing else")
    options = parser.parse_args()
    if options.data:
        table = read(options.data, options.rows).some_columns(options.columns)
    else:
        table = generated(options.rows, options.columns)
    if options.costs:
        print_costs(table, options.first)
        return
    scores = saved(options.save)
    for seed in range(options.first, options.first + options.seeds):
        for score in run(table, seed, sorted(options.churns), [one for one in scores if one.seed == seed]):
            scores.append(score)
            what = f"{score.strategy:<18}  {score.bound:<11}"
            print(f"{what}  {score.took:6.1f} s  {score.score:8.3f}  {score.views} views", flush=True)
            if options.save:
                with options.save.open("a") as file:
                    file.write(json.dumps(asdict(score)) + "\n")
    report(scores)
    draw(scores, options.picture)


def saved(path: Path | None) -> list[Score]:
    if path is None or not path.exists():
        return []
    return [Score(**json.loads(line)) for line in path.read_text().splitlines()]


# ------------------------------------------------------------------------------------------------------------- running


def run(table: Table, seed: int, churns: list[int], known: list[Score]) -> Iterator[Score]:
    """The scores of one seed that are not known yet."""
    train, test = table.split(np.random.default_rng(seed))
    kernels = KERNELS if any(table.outcomes) else KERNELS.replace("(gibbs weight each 1)", "")

    def scored(v: Venture, strategy: str, bound: str, count: int, took: float) -> Score:
        state = state_of(v, train.outcomes, len(train.rows))
        density = log_predictive(state, train, test.rows)
        return Score(strategy, bound, count, seed, took, float(density.mean()), len(state.views))

    done = {(one.strategy, one.bound, one.churns) for one in known}
    limits = {one.churns: one.took for one in known if one.strategy == ANNEAL}
    for count in churns:
        if count not in limits:
            v = session(train, seed)
            limits[count] = timed(v, f"(anneal category linear {count} {kernels})")
            yield scored(v, ANNEAL, TIME, count, limits[count])
    for strategy in (PRIOR, SEQUENTIAL):
        left = [(bound, count) for bound in BOUNDS for count in churns if (strategy, bound, count) not in done]
        if not left:
            continue
        v = session(train, seed)
        sweeps, took = 0, 0.0
        while left:
            is_start = strategy == SEQUENTIAL and not sweeps
            kernel = "(anneal category sequential 0)" if is_start else f"(anneal category constant 0 {kernels})"
            took += timed(v, kernel)
            sweeps += 1
            for bound, count in list(left):
                if sweeps == count + 1 if bound == ASSIGNMENTS else took >= limits[count]:
                    left.remove((bound, count))
                    yield scored(v, strategy, bound, count, took)


def print_costs(table: Table, seed: int) -> None:
    """CPU seconds of loading the rows to learn from, and of each part of a sweep, twice."""
    train, _ = table.split(np.random.default_rng(seed))
    started = time.process_time()
    v = session(train, seed)
    print(f"{time.process_time() - started:6.2f}  loading {train.rows.size:,} cells")
    hyper = " ".join(f"(gibbs {scope} each 1)" for scope in ("views", "categories", "mean", "kappa", "nu", "var"))
    rows = [f"(anneal category {schedule} 0)" for schedule in ("constant", "sequential")]
    for kernel in [*rows, f"(do {hyper})", "(gibbs view each 1)", "(mh view each 1)"] * 2:
        print(f"{timed(v, kernel):6.2f}  {kernel}")


def timed(v: Venture, kernel: str) -> float:
    """CPU seconds that a kernel takes."""
    started = time.process_time()
    v.infer(kernel)
    return time.process_time() - started


# ----------------------------------------------------------------------------------------------------------- what came


def report(scores: list[Score]) -> None:
    """For each bound and strategy: the mean and its standard error, and how far the seeds scatter: as they are, and
    about what the three strategies have in common on the same rows."""
    columns = (
        f"{'as much':<11}",
        "churns",
        f"{'strategy':<18}",
        " CPU s",
        f"{'mean':>9}",
        " error",
        "    sd",
        "paired",
    )
    print("", "  ".join((*columns, "views")), sep="\n")
    for bound in BOUNDS:
        for count in sorted({one.churns for one in scores}):
            for strategy in COLOURS:
                some = compared(scores, bound, count, strategy)
                if len(some) < 2:
                    continue
                found = np.array([one.score for one in some])
                apart = found - [common(scores, bound, one) for one in some]
                took, views = np.mean([one.took for one in some]), np.mean([one.views for one in some])
                print(
                    f"{bound:<11}  {count:>6}  {strategy:<18}  {took:>6.1f}  {found.mean():>9.3f}  "
                    f"{found.std(ddof=1) / np.sqrt(len(found)):>6.3f}  {found.std(ddof=1):>6.3f}  "
                    f"{apart.std(ddof=1):>6.3f}  {views:>5.1f}"
                )


def compared(scores: list[Score], bound: str, churns: int, strategy: str) -> list[Score]:
    """One strategy's scores under one bound; annealing is what sets both."""
    wanted = (strategy, TIME if strategy == ANNEAL else bound, churns)
    return [one for one in scores if (one.strategy, one.bound, one.churns) == wanted]


def common(scores: list[Score], bound: str, like: Score) -> float:
    """The mean score of a seed under a bound."""
    every = (one for strategy in COLOURS for one in compared(scores, bound, like.churns, strategy))
    return float(np.mean([one.score for one in every if one.seed == like.seed]))


def draw(scores: list[Score], out: Path) -> None:
    from matplotlib import rc_context

    churns = sorted({one.churns for one in scores})
    with rc_context(STYLE):
        figure, both = panels(1, 2, height=3.4, sharey=True)
        for axes, bound in zip(both, BOUNDS, strict=True):
            for shift, (strategy, colour) in zip((-0.2, 0.0, 0.2), COLOURS.items(), strict=True):
                found = [[one.score for one in compared(scores, bound, count, strategy)] for count in churns]
                for place, values in enumerate(found):
                    axes.plot(np.full(len(values), place + shift), values, ".", color=colour, markersize=5, alpha=0.6)
                means = [np.mean(values) if values else np.nan for values in found]
                axes.plot(np.arange(len(churns)) + shift, means, "-", color=colour, label=strategy)
        took = [np.mean([one.took for one in compared(scores, TIME, count, ANNEAL)]) for count in churns]
        both[0].set_xticks(range(len(churns)), [f"{seconds:.1f} s" for seconds in took])
        both[0].set(xlabel="the same CPU time", ylabel="log density of a held-out row")
        both[1].set_xticks(range(len(churns)), [f"{count + 1} N" for count in churns])
        both[1].set_xlabel("the same number of assignments")
        figure.legend(*both[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        out.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(out, dpi=100, metadata={"Software": None})


if __name__ == "__main__":
    main()
