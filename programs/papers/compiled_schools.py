"""n-schools with learned proposals (Liang et al. 2021, figure 3): scales and effects of a hierarchy in one block.

    python programs/papers/compiled_schools.py                          # as in the documents
    python programs/papers/compiled_schools.py --draws 300 --sets 3     # shorter chains, fewer data sets

120 schools in 10 districts, 6 states and 4 types. Beside single-choice walks; `hmc` on the program in which effects are
scaled draws of a standard normal is the reference. Then 20 data sets from one file, and twice as many groups.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from venture_lite import Venture, VentureError, VentureWarning

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1]))
from compiled import CHAINS, HEADER, LEARNED, Measured, bars, measured, save, trained
from drawing import OTHER, POSTERIOR, PRIOR, STYLE, panels

PICTURE = Path(__file__).parents[2] / "docs" / "experiments" / "compiled_schools.png"
GROUPS, SCHOOLS = (10, 6, 4), 120
SCALES = (2.5, 1.0, 2.0)
"""That data are generated with, of districts, states and types."""
HEAD = """
[assume b0 (tag 'a 0 (student_t 3 0 10))] [assume td (tag 'a 1 (half_cauchy 3))]
[assume ts (tag 'a 2 (half_cauchy 3))] [assume tt (tag 'a 3 (half_cauchy 3))]
"""
DATA = "for k in 1...N: [observe (normal (+ b0 (d {D[k]}) (s {S[k]}) (t {T[k]})) {SD[k]}) {Y[k]}]\n"
CENTRED = f"""{HEAD}
[assume d (mem (lambda (j) (tag 'a (+ 100 j) (normal 0 td))))]
[assume s (mem (lambda (j) (tag 'a (+ 200 j) (normal 0 ts))))]
[assume t (mem (lambda (j) (tag 'a (+ 300 j) (normal 0 tt))))]
{DATA}"""
NON_CENTRED = f"""{HEAD}
[assume zd (mem (lambda (j) (tag 'a (+ 100 j) (normal 0 1))))] [assume d (lambda (j) (* td (zd j)))]
[assume zs (mem (lambda (j) (tag 'a (+ 200 j) (normal 0 1))))] [assume s (lambda (j) (* ts (zs j)))]
[assume zt (mem (lambda (j) (tag 'a (+ 300 j) (normal 0 1))))] [assume t (lambda (j) (* tt (zt j)))]
{DATA}"""
HMC = "(hmc a all 0.1 12 {T})"
ENOUGH = 400
"""Effective draws for which the times of several data sets are told."""


@dataclass(frozen=True)
class Schools:
    """One data set."""

    groups: tuple[int, ...]
    # (schools,) which group of each kind, from 1
    of: tuple[np.ndarray, ...]
    # (schools,)
    sds: np.ndarray
    values: np.ndarray

    @staticmethod
    def generated(seed: int, groups: tuple[int, ...] = GROUPS, schools: int = SCHOOLS) -> Schools:
        """Every group has a school; which ones, and the sds, are those of all data sets of a size."""
        design = np.random.default_rng(schools)
        of = tuple(1 + design.permutation(np.arange(schools) % count) for count in groups)
        sds, rng = design.uniform(1.0, 3.0, schools), np.random.default_rng(seed)
        effects = [scale * rng.standard_normal(count) for scale, count in zip(SCALES, groups, strict=True)]
        mean = 1.0 + sum(effect[which - 1] for effect, which in zip(effects, of, strict=True))
        return Schools(groups, of, sds, rng.normal(mean, sds))

    def session(self, program: str = CENTRED, chains: int = CHAINS) -> Venture:
        v = Venture(seed=1, chains=chains)
        d, s, t = self.of
        v.execute(program, N=len(self.values), D=d, S=s, T=t, SD=self.sds, Y=self.values)
        return v

    def reference(self, chains: int = CHAINS) -> Venture:
        """The non-centred program, for `hmc`, with scales where it can move."""
        v = self.session(NON_CENTRED, chains)
        for name in ("td", "ts", "tt"):
            v.force(name, 1.0)
        v.force("b0", float(self.values.mean()))
        # its paths are refused where standard normals are draws of the prior, but for short steps
        v.infer("(hmc a all 0.02 12 100)")
        return v

    @cached_property
    def collected(self) -> tuple[str, ...]:
        effects = [f"({name} {j + 1})" for name, count in zip("dst", self.groups, strict=True) for j in range(count)]
        return ("b0", *(f"(log {scale})" for scale in ("td", "ts", "tt")), *effects)

    def log_density(self, states: np.ndarray) -> np.ndarray:
        """Of (..., 4 + effects): of the intercept, log scales and effects."""
        b0, log_scales = states[..., 0], states[..., 1:4]
        found = -2.0 * np.log1p(np.square(b0 / 10.0) / 3.0)
        found = found + (log_scales - np.log1p(np.square(np.exp(log_scales) / 3.0))).sum(axis=-1)
        mean, at = b0[..., None], 4
        for kind, (count, which) in enumerate(zip(self.groups, self.of, strict=True)):
            effects, log_scale = states[..., at : at + count], log_scales[..., kind]
            squares = np.square(effects).sum(axis=-1) * np.exp(-2.0 * log_scale)
            found = found - 0.5 * squares - count * log_scale
            mean, at = mean + effects[..., which - 1], at + count
        residuals: np.ndarray = np.square((self.values - mean) / self.sds).sum(axis=-1)
        return found - 0.5 * residuals  # type: ignore[no-any-return]


def block(data: Schools, draws: int, worlds: int, rounds: int) -> Measured:
    v = data.session()
    more = {"rounds": rounds} if rounds else {}
    by = trained(v, "a", "all", worlds=worlds, **more)
    name = f"learned, a block{', a round' * bool(rounds)}"
    return measured(v, name, "(compiled_mh p a all {T})", draws, data.collected, data.log_density, by=by)


def compare(data: Schools, draws: int, worlds: int, with_round: bool) -> list[Measured]:
    print(HEADER)
    found = [block(data, draws, worlds, rounds) for rounds in ((0, 1) if with_round else (0,))]
    walk = "(mh a each 'drift 1 {T})"
    # a sweep counts as one transition
    swept = measured(data.session(), "walks, each", walk, draws // 2, data.collected, data.log_density)
    found += [swept, measured(data.reference(), "hmc, non-centred", HMC, draws, data.collected, data.log_density)]
    for each in found:
        print(each)
    return found


def scales(found: list[Measured]) -> None:
    """Of the log scales means and sds, and how far they are from those of the reference, the last."""
    reference = found[-1].draws[:, :, 1:4]
    mean, sd = reference.mean(axis=(0, 1)), reference.std(axis=(0, 1))
    print(f"\n{'log scales':<24} {'means':^24} {'sds':^24}  means off by, sds by")
    for each in found:
        its = each.draws[:, :, 1:4]
        means, sds = its.mean(axis=(0, 1)), its.std(axis=(0, 1))
        off, ratio = np.abs(means - mean).max(), np.abs(sds / sd - 1.0).max()
        print(f"{each.name:<24} {means.round(3)!s:^24} {sds.round(3)!s:^24}  {off:.3f}, {ratio:.1%}")


def amortised(count: int, draws: int, worlds: int) -> None:
    """CPU seconds for so many effective draws of each of several data sets: from one file, trained anew, by hmc."""
    with tempfile.TemporaryDirectory() as folder:
        file, first = Path(folder) / "p.npz", Schools.generated(1)
        v = first.session(chains=1)
        _, training = trained(v, "a", "all", worlds=worlds)
        v.save_proposers(file)
        learned, by_hmc = [], []
        for seed in range(1, count + 1):
            data = Schools.generated(seed)
            v = data.session(chains=1)
            v.load_proposers(file)
            learned.append(for_enough(v, "(compiled_mh p a all {T})", data, draws))
            by_hmc.append(for_enough(data.reference(1), HMC, data, draws))
    print(f"\nCPU seconds for {ENOUGH} effective draws of each of {count} data sets; training took {training:.1f}")
    print(f"from one file, training included {training + sum(learned):>8.1f}")
    print(f"trained anew for each            {training * count + sum(learned):>8.1f}")
    print(f"hmc on the non-centred program   {sum(by_hmc):>8.1f}")
    ahead = np.cumsum(by_hmc) - np.cumsum(learned) - training
    paid = int(np.argmax(ahead > 0.0)) + 1 if (ahead > 0.0).any() else 0
    print(f"the training is paid back by data set {paid or 'none'}")


def for_enough(v: Venture, kernel: str, data: Schools, draws: int) -> float:
    """CPU seconds, with what a session needs before its first transition."""
    started = time.process_time()
    found = measured(v, "", kernel, draws, data.collected, data.log_density)
    before, speed = time.process_time() - started - found.seconds, found.a_second()
    return before + ENOUGH / speed if speed else np.inf


def twice(worlds: int, draws: int) -> None:
    """The acceptance of what was trained for these groups, on twice as many."""
    more = Schools.generated(2, tuple(2 * count for count in GROUPS), 2 * SCHOOLS)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "p.npz"
        for data in (Schools.generated(1), more):
            v = data.session(chains=1)
            if file.exists():
                v.load_proposers(file)
            else:
                trained(v, "a", "all", worlds=worlds)
                v.save_proposers(file)
            try:
                found = v.infer(f"(compiled_mh p a all {draws})").statistics[0].details[LEARNED]
            except VentureError as error:
                print(f"{sum(data.groups)} groups: {error.message}")
            else:
                print(f"{sum(data.groups)} groups, {len(data.values)} schools: acceptance {found:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=5000, help="of each of four chains")
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--sets", type=int, default=20, help="data sets that are served from one file")
    parser.add_argument("--no-rounds", action="store_true")
    parser.add_argument("--picture", type=Path, default=PICTURE)
    options = parser.parse_args()
    warnings.simplefilter("ignore", VentureWarning)
    found = compare(Schools.generated(1), options.draws, options.worlds, not options.no_rounds)
    scales(found)
    amortised(options.sets, options.draws // 3, options.worlds)
    twice(options.worlds, options.draws // 5)
    draw(found, options.picture)


def draw(found: list[Measured], out: Path) -> None:
    """The scale of districts: how chains move, its distribution, and what kernels are worth."""
    from matplotlib import rc_context

    with rc_context(STYLE):
        figure, (left, middle, right) = panels(1, 3, width=9.0, height=2.7)
        for each, colour in zip(found[-3:], (POSTERIOR, OTHER, PRIOR), strict=True):
            states = each.draws[:, :, 1]
            left.plot(states[0, :100], color=colour, linewidth=0.7)
            heights, edges = np.histogram(states, bins=50, range=(-0.5, 2.5), density=True)
            middle.stairs(heights, edges, color=colour, label=each.name)
        left.set(xlabel="transition", ylabel="log scale of districts")
        middle.set(xlabel="log scale of districts", ylim=(0, 2.6))
        middle.legend()
        bars(right, found)
        save(figure, out)


if __name__ == "__main__":
    main()
