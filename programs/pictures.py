"""Runs the programs of this folder and draws what they find: one picture each, for the documents.

    python programs/pictures.py                            # all of them, into docs/programs/
    python programs/pictures.py hmm topics --out out       # two of them, elsewhere

What a program collects is what is drawn; where a picture needs more of the same run, that is collected besides. The
exact answers are in `exact.py`, the common style in `drawing.py`.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import digits
import numpy as np
from drawing import BAND, DATA, EXACT, OTHER, POSTERIOR, PRIOR, STYLE, band, exactly, heat, interval, panels
from exact import (
    change_probability,
    normal_density,
    smooth_function,
    smoothed,
    structure_probability,
    structures,
)

from venture_lite import Draws, Venture

PROGRAMS = Path(__file__).parent


def main() -> None:
    import matplotlib

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(PICTURES)}; all without one")
    parser.add_argument(
        "--out", type=Path, default=PROGRAMS.parent / "docs" / "programs", help="folder of the pictures"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(PICTURES):
        parser.error(f"no picture is called {', '.join(sorted(unknown))}")
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or PICTURES:
        with matplotlib.rc_context(STYLE):
            PICTURES[name]().savefig(options.out / f"{name}.png", dpi=100, metadata={"Software": None})
        print(options.out / f"{name}.png")


# ----------------------------------------------------------------------------------------- running a program


def run(name: str, also: Mapping[str, str] | None = None, **parameters: Any) -> dict[str, np.ndarray]:
    """The draws of a program by variable, two chains together; `also` maps labels to expressions collected besides."""
    before, collect, after = (PROGRAMS / f"{name}.vnt").read_text("utf-8").rpartition("(collect")
    more = "".join(f" (labelled {expression} {label})" for label, expression in (also or {}).items())
    draws = Venture(seed=1, chains=2).execute(before + collect + more + after, **parameters)[-1]
    assert isinstance(draws, Draws)
    return {variable: np.concatenate(draws.by_chain(variable)) for variable in draws}


def observations(name: str, of: str) -> tuple[np.ndarray, np.ndarray]:
    """The points and values of a program's observations of a procedure of one number, as `[observe (y 1) 2.1]`."""
    text = (PROGRAMS / f"{name}.vnt").read_text("utf-8")
    found = np.array(re.findall(rf"\[observe \({of} +([-.\d]+)\) +([-.\d]+)\]", text), dtype=np.float64)
    return found[:, 0], found[:, 1]


def along(points: np.ndarray, expression: str) -> dict[str, str]:
    """What `run` collects besides, to have an expression of one number at every point; `curve` puts it together."""
    return {f"at_{place}": expression.format(point) for place, point in enumerate(points)}


def curve(draws: Mapping[str, np.ndarray], points: np.ndarray) -> np.ndarray:
    """The draws at every point: (draws, points)."""
    return np.column_stack([draws[f"at_{place}"] for place in range(len(points))])


# --------------------------------------------------------------------------------------------- first models


def fig1() -> Any:
    mu = run("fig1")["mu"]
    figure, axes = panels(width=5, height=3)
    axes.hist(mu, bins=24, density=True, color=POSTERIOR, label="draws")
    grid = np.linspace(9.6, 10.4, 200)
    axes.plot(grid, normal_density(grid, 9.99, 0.1), color=EXACT, linewidth=2, label="exact")
    axes.plot(10.0, 0, "^", color=DATA, clip_on=False, label="seen: 10.0")
    axes.set(xlabel="mu, where b is false (in every draw)", ylabel="density", xlim=(9.6, 10.4))
    axes.legend(loc="upper left")
    return figure


def geometric() -> Any:
    n = run("geometric")["n"]
    figure, axes = panels(width=5, height=3)
    counts = np.arange(9)
    prior = 0.3 * 0.7 ** np.arange(60)
    posterior = prior * normal_density(3, np.arange(60), 1)
    axes.bar(counts, [np.mean(n == count) for count in counts], color=POSTERIOR, width=0.6, label="draws")
    exactly(axes, counts, (posterior / posterior.sum())[:9])
    axes.plot(counts, prior[:9], "o:", color=PRIOR, markersize=4, label="before the observation")
    axes.set(xlabel="failures before the first success, n", ylabel="probability", xticks=counts)
    axes.legend(loc="upper right")
    return figure


def hmm() -> Any:
    draws = run("hmm")
    times, signal = observations("hmm", "signal")
    likelihood = np.ones((6, 2))
    likelihood[:5] = normal_density(signal[:, None], np.array([-1.0, 1.0]), 1)
    exact = smoothed(np.array([0.5, 0.5]), np.array([[0.8, 0.2], [0.2, 0.8]]), likelihood)
    drawn = [draws[f"(state {time})"].mean() for time in range(1, 6)] + [draws["next"].mean()]
    figure, (top, bottom) = panels(2, sharex=True, width=5.5, height=3.8)
    for level in (-1, 1):
        top.axhline(level, color=PRIOR, linewidth=0.8, linestyle=":")
    top.plot(times, signal, "o", color=DATA)
    top.set(ylabel="signal seen", ylim=(-1.8, 1.8), yticks=(-1, 0, 1))
    bottom.bar(range(1, 7), drawn, color=[POSTERIOR] * 5 + [OTHER], width=0.6, label="draws")
    exactly(bottom, range(1, 7), exact[:, 1])
    bottom.set(xlabel="time (6 is predicted)", ylabel="probability\nof the state true", ylim=(0, 1))
    bottom.legend(loc="upper right")
    return figure


def weather() -> Any:
    changes = np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.2, 0.4, 0.4]])
    habits = np.array([[0.4, 0.1, 0.5], [0.6, 0.3, 0.1], [0.2, 0.8, 0.0]])
    likelihood = np.ones((8, 3))
    days, items = observations("weather", "carried")
    likelihood[days.astype(int)] = habits[:, items.astype(int)].T
    exact = smoothed(np.array([0.5, 0.3, 0.2]), changes, likelihood) @ habits
    drawn, summed = run("weather"), run("weather_collapsed")
    figure, every = panels(1, 3, sharey=True, height=2.9)
    for axes, day, when in zip(every, (2, 5, 7), ("between", "between", "ahead"), strict=True):
        places = np.arange(3)
        for draws, shift, colour, label in (
            (drawn, -0.2, POSTERIOR, "weather.vnt: states drawn"),
            (summed, 0.2, OTHER, "weather_collapsed.vnt: summed over"),
        ):
            shares = [np.mean(draws[f"(carried {day})"] == item) for item in places]
            axes.bar(places + shift, shares, 0.38, color=colour, label=label)
        axes.plot(places, exact[day], "_", color=DATA, markersize=34, markeredgewidth=1.5)
        axes.plot([], [], color=DATA, label="exact")
        axes.set_title(f"day {day} ({when})")
        axes.set_xticks(places, ["nothing", "umbrella", "sun-\nglasses"])
    every[0].set_ylabel("probability of being carried")
    figure.legend(*every[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


# -------------------------------------------------------------------------------------- models of data


def bayes_lr() -> Any:
    images = digits.bundled_digits()
    parameters = digits.features(images, digits.BUNDLED.components)
    weights = run("bayes_lr", burn=digits.BUNDLED.burn, T=digits.BUNDLED.thin, draws=1000, **parameters)["w"]
    figure, axes = panels(height=3.4)
    digits.draw_curve(axes, digits.logistic(parameters["X_test"] @ weights.T), images.test_nine)
    return figure


def eight_schools() -> Any:
    draws = run("eight_schools", {f"effect_{school}": f"(effect {school})" for school in range(1, 9)})
    text = (PROGRAMS / "eight_schools.vnt").read_text("utf-8")
    _, error, seen = np.array(re.findall(r"\(effect (\d)\) +(\d+)\) +(-?\d+)\]", text), dtype=np.float64).T
    order = np.argsort(seen)
    effects = np.column_stack([draws[f"effect_{school + 1}"] for school in order])
    figure, (left, right) = panels(1, 2, height=3.4, width_ratios=[2, 1])
    rows = np.arange(8)
    left.errorbar(seen[order], rows + 0.14, xerr=error[order], fmt="o", color=DATA, markersize=4, label="seen, ± 1 sd")
    low, high = interval(effects)
    left.hlines(rows - 0.14, low, high, color=POSTERIOR)
    left.plot(
        effects.mean(axis=0), rows - 0.14, "s", color=POSTERIOR, markersize=4, label="posterior mean, central 90%"
    )
    left.axvline(draws["mu"].mean(), color=PRIOR, linestyle=":", label="mean of mu")
    left.set_yticks(rows, [f"school {school + 1}" for school in order])
    left.set_xlabel("effect of coaching, points")
    left.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=3, columnspacing=1, handletextpad=0.4)
    right.hist(draws["tau"], bins=np.arange(0, 25.1), density=True, color=POSTERIOR)
    right.set(xlabel="tau, sd of the effects", ylabel="density", xlim=(0, 25))
    return figure


def linear_regression() -> Any:
    draws = run("linear_regression")
    x, y = observations("linear_regression", "y")
    grid = np.linspace(0, 12.6, 60)
    figure, (left, right) = panels(1, 2, width_ratios=[3, 2])
    band(left, grid, draws["intercept"][:, None] + draws["slope"][:, None] * grid, "line")
    left.plot(x, y, "o", color=DATA, markersize=4, label="data")
    low, high = interval(draws["next"])
    left.vlines(12, low, high, color=OTHER, linewidth=2)
    left.plot(12, draws["next"].mean(), "s", color=OTHER, markersize=6, label="y at 12, central 90%")
    left.set(xlabel="x", ylabel="y", xlim=(0, 12.6))
    left.legend(loc="upper left")
    right.plot(draws["intercept"], draws["slope"], ".", color=POSTERIOR, markersize=1.5, alpha=0.4, rasterized=True)
    right.set(xlabel="intercept", ylabel="slope", title="draws of the line")
    return figure


def change_point() -> Any:
    with (PROGRAMS / "coal.csv").open(encoding="utf-8") as file:
        table = np.array([(int(row["year"]), int(row["disasters"])) for row in csv.DictReader(file)])
    years, count = table.T
    draws = run("change_point", count=count, N=len(count))
    figure, (top, bottom) = panels(2, sharex=True, height=3.8, height_ratios=[3, 2])
    is_before = np.arange(1, len(years) + 1) < draws["change"][:, None]
    band(top, years, np.where(is_before, draws["early"][:, None], draws["late"][:, None]), "rate")
    top.plot(years, count, "o", color=DATA, markersize=2.5, label="disasters in the year")
    top.set_ylabel("disasters a year")
    top.legend(loc="upper right")
    first = years[1:-1]
    bottom.bar(first, [np.mean(years[draws["change"] - 1] == year) for year in first], color=POSTERIOR, label="draws")
    chance = change_probability(count)
    seen = chance > 1e-3
    bottom.plot(first[seen], chance[seen], "_", color=EXACT, markersize=6, markeredgewidth=1.5, label="exact")
    bottom.set(xlabel="year", ylabel="probability of the\nfirst year of 'late'", xlim=(1850, 1962))
    bottom.legend(loc="upper right")
    return figure


def cars() -> Any:
    """The tutorial's better model, with the text and the data that stand there."""
    page = (PROGRAMS.parent / "docs" / "tutorial.md").read_text("utf-8")
    (model,) = re.findall(r'^BETTER = """\n(.*?)^"""', page, flags=re.MULTILINE | re.DOTALL)
    table = list(csv.DictReader((PROGRAMS.parent / "docs" / "cars.csv").read_text("utf-8").splitlines()))
    speed, distance = (np.array([float(row[name]) for row in table]) for name in ("speed", "dist"))
    v = Venture(seed=1)
    v.execute(model, speed=speed, dist=distance)
    drawn = v.auto()
    reaction, braking, noise = (drawn[name].reshape(-1, 1) for name in ("reaction", "braking", "noise"))
    points = np.linspace(3, 25, 100)
    mean = points * (reaction + braking * points)
    new = mean + noise * points * np.random.default_rng(1).standard_normal(mean.shape)
    figure, axes = panels()
    axes.plot(points, interval(new).T, "--", color=POSTERIOR, linewidth=0.8)
    axes.plot([], [], "--", color=POSTERIOR, linewidth=0.8, label="a new car, central 90%")
    band(axes, points, mean, "curve")
    axes.plot(speed, distance, "o", color=DATA, markersize=3, label="cars")
    axes.set(xlabel="speed, miles an hour", ylabel="stopping distance, feet", xlim=(3, 25))
    axes.legend(loc="upper left")
    return figure


def stochastic_volatility() -> Any:
    times, returns = observations("stochastic_volatility", "returns")
    draws = run("stochastic_volatility", along(times.astype(int), "(h {})"))
    deviation = np.exp(curve(draws, times) / 2)
    low, high = interval(deviation)
    middle = np.median(deviation, axis=0)
    figure, axes = panels(height=3.2)
    for sign in (-1, 1):
        axes.fill_between(times, sign * low, sign * high, color=BAND, linewidth=0)
        axes.plot(times, sign * middle, color=POSTERIOR)
    axes.fill_between([], [], color=BAND, label="± sd of a return, exp(h/2): central 90%")
    axes.plot([], [], color=POSTERIOR, label="its median")
    axes.vlines(times, 0, returns, color=DATA, linewidth=1)
    axes.plot(times, returns, "o", color=DATA, markersize=4, label="returns")
    axes.axhline(0, color=DATA, linewidth=0.6)
    axes.set(xlabel="time", ylabel="return", xticks=times)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


# --------------------------------------------------------------------------- clusters, topics, functions


def dpm() -> Any:
    draws = run("dpm", along(np.arange(1, 6), "(z {})") | {"centre_of_next": "(centre (z 6))"})
    _, x = observations("dpm", "x")
    clusters = curve(draws, x)
    together = (clusters[:, :, None] == clusters[:, None, :]).mean(axis=0)
    figure, (left, right) = panels(1, 2, width_ratios=[3, 2])
    grid = np.linspace(-7, 7, 200)
    left.plot(grid, normal_density(grid, draws["centre_of_next"][:, None], 1).mean(axis=0), color=POSTERIOR)
    left.plot(x, np.zeros(5), "o", color=DATA, clip_on=False, zorder=3, label="data")
    left.set(xlabel="the next x", ylabel="predictive density", ylim=(0, None), xlim=(-7, 7))
    left.legend(loc="upper right")
    names = [f"{value:g}".replace("-", "\N{MINUS SIGN}") for value in x]
    heat(right, together, names, names)
    right.set_title("probability of sharing a cluster")
    return figure


WORDS = ("model", "chain", "sampler", "flour", "oven", "yeast")


def topics() -> Any:
    text = (PROGRAMS / "topics.vnt").read_text("utf-8")
    found = np.array(re.findall(r"\[observe \(word (\d) (\d)\) (\d)\]", text), dtype=int)
    draws = run("topics", {f"at_{row}": f"(topic {text} {place})" for row, (text, place, _) in enumerate(found)})
    # topics have no names of their own: A is that of the first word
    is_a = (assigned := curve(draws, found)) == assigned[:, :1]
    chance = [
        np.stack([(is_a == topic)[:, found[:, 2] == word].sum(axis=1) for word in range(6)], axis=1)
        for topic in (True, False)
    ]
    shares = np.array([((0.3 + counts) / (1.8 + counts.sum(axis=1, keepdims=True))).mean(axis=0) for counts in chance])
    figure, (left, right) = panels(1, 2, height=3.4, width_ratios=[7, 4])
    colours = {True: POSTERIOR, False: OTHER}
    for topic, share, shift in ((True, shares[0], -0.2), (False, shares[1], 0.2)):
        left.bar(np.arange(6) + shift, share, 0.38, color=colours[topic], label=f"topic {'A' if topic else 'B'}")
    left.set_xticks(range(6), WORDS)
    left.set(ylabel="probability of the word in the topic", xlabel="topic A is that of the first word of text 1")
    left.legend(loc="upper right")
    names = [f"{WORDS[word]}, text {number}" for number, _, word in found]
    right.barh(range(11), is_a.mean(axis=0), color=POSTERIOR)
    right.barh(range(11), 1 - is_a.mean(axis=0), left=is_a.mean(axis=0), color=OTHER)
    right.set_yticks(range(11), names)
    right.invert_yaxis()
    right.set(xlabel="probability of topic A, of topic B", xlim=(0, 1))
    return figure


def gp_regression() -> Any:
    x, y = observations("gp_regression", "f")
    points = np.linspace(0, 9, 46)
    draws = run("gp_regression", along(points, "(f {:.1f})"))
    figure, axes = panels(height=3.2)
    band(axes, points, curve(draws, points), "what would be seen")
    rng = np.random.default_rng(1)
    fine = np.linspace(0, 9, 181)
    for row in rng.choice(len(draws["length"]), 5, replace=False):
        function = smooth_function(draws["amplitude"][row], draws["length"][row], x, y, fine, rng)
        axes.plot(fine, function, color=OTHER, linewidth=0.8)
    axes.plot([], [], color=OTHER, linewidth=0.8, label="functions drawn")
    axes.plot(x, y, "o", color=DATA, markersize=4, label="data")
    axes.set(xlabel="x", ylabel="f", xlim=(0, 9))
    axes.legend(loc="upper center", ncols=2)
    return figure


def gp_structure() -> Any:
    x, y = observations("gp_structure", "f")
    points = np.linspace(0, 7, 36)
    draws = run("gp_structure", along(points, "(f {:.1f})"))
    every = structures(x)
    features = {
        "line": [0 in structure.kinds for structure in every],
        "wave": [1 in structure.kinds for structure in every],
        "curve": [2 in structure.kinds for structure in every],
        "sum\non top": [structure.is_sum for structure in every],
    }
    has = np.array(list(features.values()), dtype=np.float64)
    figure, (left, right) = panels(1, 2, height=3.4, width_ratios=[3, 2])
    band(left, points, curve(draws, points), "what would be seen")
    left.plot(x, y, "o", color=DATA, markersize=4, label="data")
    left.set(xlabel="x", ylabel="f", xlim=(0, 7))
    left.legend(loc="upper left")
    shares = [draws[name].mean() for name in ("line", "wave", "curve", "sum")]
    right.bar(range(4), shares, 0.6, color=POSTERIOR, label="draws")
    exactly(right, range(4), has @ structure_probability(every, y, noise=0.5))
    right.plot(
        range(4), has @ [structure.probability for structure in every], "o", color=PRIOR, label="before the data"
    )
    right.set_xticks(range(4), list(features))
    right.set(ylabel="probability that it is in the structure", ylim=(0, 1))
    right.legend(loc="upper right")
    return figure


PICTURES: dict[str, Callable[[], Any]] = {
    draw.__name__: draw
    for draw in (
        bayes_lr,
        fig1,
        geometric,
        hmm,
        weather,
        eight_schools,
        linear_regression,
        change_point,
        cars,
        stochastic_volatility,
        dpm,
        topics,
        gp_regression,
        gp_structure,
    )
}
"""A picture for each program; `weather` is that of `weather_collapsed.vnt` too, `cars` the tutorial's."""


if __name__ == "__main__":
    main()
