"""Proposals over the whole range of the data (Liang et al. 2021, figure 1): a normal mean, data from -10 to 10.

    python programs/papers/compiled_conjugate.py                              # as in the documents
    python programs/papers/compiled_conjugate.py --points 5 --transitions 500 # few data, short chains

The prior's sd is 2, so that worlds hardly reach beyond 6. What is trained without rounds is trained once, and read from
a file for every datum; a round sees the datum, and is made for each anew.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from venture_lite import Venture, VentureWarning

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from compiled import LEARNED, save
from drawing import BAND, OTHER, POSTERIOR, PRIOR, STYLE, panels

PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "compiled_conjugate.png"
PRIOR_SD, SD = 2.0, 0.1
PROGRAM = "[assume x (tag 'x 0 (normal 0 {S}))] [observe (normal x {SD}) {y}]"
# name -> the frame, rounds, and what colour it has
WAYS = {
    "prior frame": ("prior", 0, PRIOR),
    "prior frame, a round": ("prior", 1, OTHER),
    "newton frame": ("newton", 0, POSTERIOR),
}
# where worlds are: two and a half prior sds
NEAR = 5.0
EACH_OF = 5
"""Of so many data beyond one is run with a round: its chains stand still there."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Of one datum."""

    y: float
    # difference from the exact mean in exact sds, and the ratio of the sds
    off: float
    sd: float
    acceptance: float
    # whether it was told that the data lie outside of what the prior draws
    is_warned: bool


def session(y: float) -> Venture:
    v = Venture(seed=1)
    v.execute(PROGRAM, S=PRIOR_SD, SD=SD, y=y)
    return v


def chain(v: Venture, y: float, transitions: int) -> Chain:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", VentureWarning)
        v.infer(f"(compiled_mh p x one {transitions // 10})")
        found = v.infer(f"(repeat {transitions} (do (compiled_mh p x one 1) (collect x)))")
    x, precision = np.asarray(found["x"]), 1.0 / PRIOR_SD**2 + 1.0 / SD**2
    mean, sd = y / SD**2 / precision, precision**-0.5
    is_warned = any("outside what the prior draws" in str(each.message) for each in told)
    details = found.statistics[0].details
    return Chain(y, float((x.mean() - mean) / sd), float(x.std() / sd), details[LEARNED], is_warned)


def chains(frame: str, rounds: int, points: np.ndarray, worlds: int, transitions: int) -> list[Chain]:
    """One for each datum."""
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", VentureWarning)
        file = Path(folder) / "p.npz"
        for y in points.tolist():
            v = session(y)
            if rounds:
                v.compile("p", "x", "one", worlds=worlds, frame=frame, rounds=rounds)
            elif file.exists():
                v.load_proposers(file)
            else:
                v.compile("p", "x", "one", worlds=worlds, frame=frame)
                v.save_proposers(file)
            found.append(chain(v, y, transitions))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--points", type=int, default=50, help="data")
    parser.add_argument("--transitions", type=int, default=10_000, help="for each datum")
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), help=f"of {', '.join(WAYS)}")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    points = np.linspace(-10.0, 10.0, options.points)
    print(f"{'':<22} {'data':>10} {'mean off by, sds':>17} {'ratio of sds':>15} {'acceptance':>11} {'warned':>7}")
    found = {}
    for name in options.ways:
        frame, rounds, _ = WAYS[name]
        # with a round each datum is trained for
        some = (np.abs(points) <= NEAR) | (np.arange(len(points)) % (EACH_OF if rounds else 1) == 0)
        found[name] = chains(frame, rounds, points[some], options.worlds, options.transitions)
        for where, is_near in (("|y| <= 5", True), ("beyond", False)):
            its = [each for each in found[name] if (abs(each.y) <= NEAR) == is_near]
            print(f"{name:<22} {where:>10} {line(its)}", flush=True)
    draw(found, options.picture)


def line(chains: list[Chain]) -> str:
    """The worst of several data."""
    if not chains:
        return ""
    ratios = [each.sd for each in chains]
    return (
        f"{max(abs(each.off) for each in chains):>17.3f} {min(ratios):>7.3f} {max(ratios):>7.3f} "
        f"{min(each.acceptance for each in chains):>11.3f} {sum(each.is_warned for each in chains):>3} of {len(chains)}"
    )


def draw(found: dict[str, list[Chain]], out: Path) -> None:
    """Means and acceptance against the datum."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        figure, (left, right) = panels(1, 2, width=8.0, height=2.8)
        left.axhspan(-0.1, 0.1, color=BAND, linewidth=0)
        for name, chains in found.items():
            y, colour = [each.y for each in chains], WAYS[name][2]
            left.plot(y, [each.off for each in chains], ".-", color=colour, linewidth=0.8, markersize=4, label=name)
            right.plot(y, [each.acceptance for each in chains], ".-", color=colour, linewidth=0.8, markersize=4)
        left.set_yscale("symlog", linthresh=0.2)
        left.set(xlabel="datum", ylabel="mean of the chain, off by sds")
        left.legend()
        right.set(xlabel="datum", ylabel="acceptance of learned proposals", ylim=(0, 1.02))
        save(figure, out)


if __name__ == "__main__":
    main()
