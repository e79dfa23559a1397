"""Runs the programs of this folder on the data of posteriordb, and compares their draws with its reference draws.

    python programs/references/references.py FOLDER               # all of them
    python programs/references/references.py FOLDER sblrc-blr     # one
    python programs/references/references.py FOLDER --auto        # as `auto` draws them, with nothing said

FOLDER holds a file NAME.json for each program NAME.vnt: `data`, and of each parameter the `mean`, `sd` and `mcse_mean`
of `draws` reference draws. A mean agrees within 4 Monte Carlo errors, its own and the reference's, and 0.02 sd; an sd
within 4 of its Monte Carlo errors and 3%.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from venture_lite import Venture
from venture_lite.draws.diagnostics import ess_mean, ess_sd, r_hat

HERE = Path(__file__).parent


def kernels_of(program: str, metric: str, warmup: int) -> str:
    """Paths over what is smooth, and the states as a whole where a program has some."""
    states = " (gibbs (choices 'finite) all 'forward 1)" if "(categorical " in program else ""
    return f"(nuts (choices 'smooth) all {metric}'adapt {warmup} 1){states}"


def parameters_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a program is given: lists as arrays, X with the mean of each column taken off, two series apart."""
    given = {name: np.array(value) if isinstance(value, list) else value for name, value in data.items()}
    if "X" in given:
        given["C"] = given["X"] - given["X"].mean(axis=0)
    if "N" not in given and "weight" in given:
        given["N"] = len(given["weight"])
    if "y_init" in given:
        given["hares"], given["lynxes"] = given["y"].T
    return given


def expression_of(parameter: str, program: str) -> str:
    """What a parameter of the reference is in the program: `beta[2]` is a call, or an entry of a vector."""
    if parameter.startswith("log "):
        return f"(log {expression_of(parameter.removeprefix('log '), program)})"
    found = re.fullmatch(r"(\w+)\[(\d+)\]", parameter)
    if found is None:
        return parameter.lower() if f"[assume {parameter.lower()} " in program else parameter
    name, index = found[1], int(found[2])
    if f"[assume {name}{index} " in program:
        return f"{name}{index}"
    is_call = re.search(rf"\[assume {name} \((mem|lambda)", program) is not None
    return f"({name} {index})" if is_call else f"(lookup {name} {index - 1})"


def faults(draws: np.ndarray, reference: Mapping[str, float], count: int) -> list[str]:
    """What is wrong with the draws (chains, draws) of one parameter, whose reference has `count` draws."""
    mean, sd = float(draws.mean()), float(draws.std(ddof=1))
    error = math.hypot(sd / math.sqrt(ess_mean(draws)), reference["mcse_mean"])
    found = []
    if not abs(mean - reference["mean"]) <= 4 * error + 0.02 * reference["sd"]:
        found.append(f"mean {mean:.5g}, not {reference['mean']:.5g}")
    # the error of an sd by that of the variance, with the kurtosis of the draws
    spread = np.square(draws - mean)
    error = float(spread.std()) / (2 * sd) * math.sqrt(1 / ess_sd(draws) + 1 / count)
    if not abs(sd - reference["sd"]) <= 4 * error + 0.03 * reference["sd"]:
        found.append(f"sd {sd:.4g}, not {reference['sd']:.4g}")
    if not r_hat(draws) < 1.02:
        found.append(f"r_hat {r_hat(draws):.2f}")
    return found


def compare(path: Path, metric: str, warmup: int, count: int, seed: int) -> tuple[list[str], str]:
    """What is wrong with a program's draws, and a line of what they cost."""
    text, known = (HERE / f"{path.stem}.vnt").read_text("utf-8"), json.loads(path.read_text("utf-8"))
    # of a parameter without a variance the logarithm is compared
    names = [name for name in known["reference"] if f"log {name}" not in known["reference"]]
    asked = {name: expression_of(name, text) for name in names}
    v, began = Venture(seed=seed, chains=4), time.process_time()
    v.execute(text, **parameters_of(known["data"]))
    kernels = kernels_of(text, metric, warmup)
    draws = v.infer(f"(repeat {warmup + count} (do {kernels} (collect {' '.join(asked.values())})))")
    seconds = time.process_time() - began
    found, least = [], math.inf
    for name, expression in asked.items():
        # those of the warm-up come first
        its = np.asarray(draws[expression], dtype=np.float64).reshape(4, -1)[:, -count:]
        least = min(least, ess_mean(its))
        found += [f"{name}: {fault}" for fault in faults(its, known["reference"][name], known["draws"])]
    told = ", ".join(f"{value:.3g} {name}" for name, value in draws.statistics[0].details.items())
    return found, f"{seconds:.1f} s, least ESS of a mean {least:.0f}; first chain: {told}"


def compare_auto(path: Path, seed: int) -> tuple[list[str], str]:
    """The same of draws by `auto` without an argument, with the seconds that pass and what it warns of."""
    text, known = (HERE / f"{path.stem}.vnt").read_text("utf-8"), json.loads(path.read_text("utf-8"))
    v, began = Venture(seed=seed), time.monotonic()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        v.execute(text, **parameters_of(known["data"]))
        draws = v.auto()
    seconds = time.monotonic() - began
    found, compared = [], 0
    for name, reference in known["reference"].items():
        if f"log {name}" in known["reference"]:
            continue
        its = values_of(draws, expression_of(name.removeprefix("log "), text))
        if its is None:
            found.append(f"{name}: not drawn")
            continue
        compared += 1
        its = np.log(its) if name.startswith("log ") else its
        found += [f"{name}: {fault}" for fault in faults(its, reference, known["draws"])]
    count = draws[draws.names[0]].shape[1]
    told = "".join(f"; {' '.join(str(each.message).split())}" for each in warned)
    return found, f"{seconds:.1f} s, {count} draws a chain, {compared} parameters{told}"


def values_of(draws: Any, expression: str) -> np.ndarray | None:
    """Draws (chains, draws) of an expression, which may be an entry of what was drawn; None where it was not."""
    entry = re.fullmatch(r"\(lookup (\S+) (\d+)\)", expression)
    if expression not in draws.names and entry is not None and entry[1] in draws.names:
        return np.asarray(draws[entry[1]][..., int(entry[2])], dtype=np.float64)
    return np.asarray(draws[expression], dtype=np.float64) if expression in draws.names else None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="with the data and references")
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; by default all")
    parser.add_argument("--metric", choices=("diagonal", "dense"), default="dense")
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--auto", action="store_true", help="draw by auto, which chooses the rest but the seed")
    options = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    wrong = []
    for name in options.names or sorted(path.stem for path in HERE.glob("*.vnt")):
        metric = "'dense " if options.metric == "dense" else ""
        path = options.folder / f"{name}.json"
        try:
            if options.auto:
                found, cost = compare_auto(path, options.seed)
            else:
                found, cost = compare(path, metric, options.warmup, options.draws, options.seed)
        except Exception as error:
            found, cost = [f"{type(error).__name__}: {error}"], ""
        print(f"{name}: {'agrees' if not found else 'DIFFERS'} ({cost})", *found, sep="\n    ", flush=True)
        wrong += [name] if found else []
    if wrong:
        sys.exit(f"{len(wrong)} differ: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
