"""What the kernels of an inference did: a line for each, and what is wrong with those that hardly move anything.

Only what a kernel counted is looked at; what its draws show is in `summary.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from venture_lite.draws.evidence import Evidence
from venture_lite.draws.presentation import counted, cut, duration, number

if TYPE_CHECKING:
    from venture_lite.draws.draws import KernelStatistics

SHOWN = 6
WIDTH = 48

# a kernel that never accepts in so many transitions is stuck rather than unlucky
ENOUGH = 100
# a step of 0.01 standard deviations is refused about 3 times in so many transitions of a walk: without a refusal
# steps are smaller
ENOUGH_OF_A_WALK = 1000
LEAST_ACCEPTED = 0.01
MOST_ACCEPTED = 0.9999
# in standard deviations of the block
SMALLEST_MOVE = 0.01
MOST_REFUSED = 200
# a run of refusals is told where so long a one comes by chance in at most so many programs
CHANCE = 1e-3
# shares of transitions
MOST_DIVERGENT = 0.001
# in one chain, whatever the others do: of 1,000 transitions as many diverge by chance in one chain of 300 where 0.1% do
FEWEST_DIVERGENT = 5
MOST_DEEPEST = 0.01
# Betancourt 2016, Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte Carlo
LEAST_ENERGY_FRACTION = 0.3

METROPOLIS = frozenset({"mh", "hmc", "mala", "nuts", "flymc", "subsampled_mh", "subsampled_mh_report", "compiled_mh"})
"""The actions that accept or refuse proposals; of the others a transition that changes nothing may be a draw."""

COUNTED = "transitions that count"
"""Among the details of a kernel that adapts: how many did not, of which the other details are."""
DEEPEST = "transitions at the greatest depth"
STEEP = "divergences lie away from the states, in sds of "
FUNNEL = "divergences lie towards 0, in sds of the logarithm of "
"""Among the details of a kernel that diverges, followed by the choice in which they do most."""

SHAPE = "Pareto k"
EFFICIENCY = "efficiency of weights"
SLOPE = "largest slope"
IMPOSSIBLE = "share of draws without density"
"""Among the details of a kernel that draws from a fit: how that compares with the density."""
LARGEST_SHAPE = 0.7
# the shape has no scale: of weights that hardly differ it says nothing
ALIKE = 0.99
LARGEST_SLOPE = 0.1

FAILED = "failed solves of "
"""Among the details of a kernel, followed by the name of a procedure that found no value, and why, with what to try."""

TRAINED = "seconds for training"
"""Among the details of an action that trains."""

NEARER = ", or a start nearer to the data"

GENTLER = {
    "flymc": "a smaller step, or 'adapt BURN",
    "nuts": "'adapt BURN, or a smaller STEP",
    "compiled_mh": "more 'worlds, or a mixture with another kernel",
    "pgibbs": "more particles, or 'ancestor",
    "gibbs": "its value is certain given the others, or they must move together with it, as one block",
}
"""What moves a block where an action does not, whatever its arguments are."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel as the program has it, with what it did in each chain."""

    # as written, in one line
    kernel: str
    chains: tuple[KernelStatistics, ...]

    @property
    def transitions(self) -> int:
        return sum(row.transitions for row in self.chains)

    @property
    def accepted(self) -> int:
        return sum(row.accepted for row in self.chains)

    @property
    def evidence(self) -> Evidence | None:
        """From the runs of all chains; None where the action does not estimate it."""
        runs = [run for row in self.chains for run in row.evidence]
        return Evidence.of(runs) if runs else None

    @property
    def divergences(self) -> int | None:
        """None where the engine knows of none."""
        counts = [row.details["divergences"] for row in self.chains if "divergences" in row.details]
        return int(sum(counts)) if counts else None

    @property
    def divergent(self) -> float:
        """The share of transitions that diverged, in all chains together or in the worst one, where they are many: in
        single chains two are no sign of more than there are in all."""
        counts = [row.details.get("divergences", 0.0) for row in self.chains]
        shares = [share_of(row, "divergences") for row in self.chains]
        together = sum(counts) / max(sum(count_of(row) for row in self.chains), 1.0)
        alone = (share for share, count in zip(shares, counts, strict=True) if count >= FEWEST_DIVERGENT)
        return max([together, *alone])

    def worst(self, detail: str) -> float | None:
        """The largest of what the chains say under a name; None where none says it."""
        return max((row.details[detail] for row in self.chains if detail in row.details), default=None)

    @property
    def action(self) -> str:
        return self.kernel.strip("([ ").split(" ")[0]

    def line(self, with_seconds: bool = False) -> str:
        """`(mh default one 5): 2,500 transitions, 55% accepted`."""
        evidence = "" if self.evidence is None else f", {self.evidence}"
        if notes := self._notes():
            return f"{cut(self.kernel, WIDTH)}:{''.join(notes)}{evidence}{self._failures()}"
        text = f"{cut(self.kernel, WIDTH)}: {counted(self.transitions, 'transition')}"
        if self.transitions:
            text += f", {100 * self.accepted / self.transitions:.0f}% accepted"
        if self.divergences is not None:
            text += f", {counted(self.divergences, 'divergence')}"
        if (shape := self.worst(SHAPE)) is not None:
            least = min(row.details.get(EFFICIENCY, 0.0) for row in self.chains)
            text += f", Pareto k {number(shape, 2)}" + (" of weights that are alike" if least >= ALIKE else "")
        text += evidence
        seconds = f", {duration(sum(row.seconds for row in self.chains))}" if with_seconds else ""
        return text + seconds + self._failures()

    def _failures(self) -> str:
        """A line for each reason for which a procedure found no value."""
        names = dict.fromkeys(name for row in self.chains for name in row.details if name.startswith(FAILED))
        text = ""
        for name in names:
            count = int(sum(row.details.get(name, 0.0) for row in self.chains))
            procedure, why = name.removeprefix(FAILED).split(" ", 1)
            states = "a state that counts" if count == 1 else "states that count"
            text += f"\n  {procedure}: {counted(count, 'solve')} failed, of {states} as impossible: {why}"
        return text

    def _notes(self) -> list[str]:
        """What the chains say of where they stand: once, if they say the same."""
        notes = [f" {note}" for note in dict.fromkeys(row.note for row in self.chains if row.note)]
        return notes if len(notes) < 2 else [f"\n  chain {row.chain} {row.note}" for row in self.chains]


def kernel_rows(statistics: Iterable[KernelStatistics]) -> tuple[KernelRow, ...]:
    """A row for each kernel, its chains together, those first that say where chains began; what trained moved nothing,
    and is none."""
    kernels: dict[tuple[str, int], list[KernelStatistics]] = {}
    seen: dict[tuple[str, int], int] = {}
    for row in sorted(statistics, key=lambda row: not row.note):
        if TRAINED in row.details:
            continue
        # the same text may stand in a program twice
        place = seen[row.kernel, row.chain] = seen.get((row.kernel, row.chain), 0) + 1
        kernels.setdefault((row.kernel, place), []).append(row)
    return tuple(KernelRow(" ".join(kernel.split()), tuple(rows)) for (kernel, _), rows in kernels.items())


def kernel_lines(rows: tuple[KernelRow, ...], with_seconds: bool = False) -> list[str]:
    """The first kernels of a program, a line each, and how many more there are."""
    lines = [row.line(with_seconds) for row in rows[:SHOWN]]
    return [*lines, f"and {counted(len(rows) - SHOWN, 'more kernel')}"] if len(rows) > SHOWN else lines


# ------------------------------------------------------------------------------------------------ what to beware of


def has_particles(rows: tuple[KernelRow, ...]) -> bool:
    """Whether draws are particles, which kernels have moved one after the other, not a chain's states."""
    return any(row.action == "smc" for row in rows)


OF_CHAINS = ("energy", "refused")
"""What is wrong with transitions that follow one another."""


def kernel_warnings(rows: tuple[KernelRow, ...], chain_count: int) -> Iterator[str]:
    """A line for each thing that is wrong with a kernel, with the chains where it is."""
    left_out = OF_CHAINS if has_particles(rows) else ()
    for row in rows:
        if any(one.is_approximate for one in row.chains):
            yield f"{row.kernel} leaves what is not quite the posterior: its draws are approximate"
        told: dict[str, list[KernelStatistics]] = {}
        for one in row.chains:
            for wrong in (each for each in _wrong_with(row, one) if each not in left_out):
                told.setdefault(wrong, []).append(one)
        for wrong, where in told.items():
            chains = "" if chain_count == 1 else f" in chain {', '.join(str(one.chain) for one in where)}"
            yield f"{row.kernel} {_told(wrong, where)}{chains}: {_advice(row, wrong)}"


def _wrong_with(row: KernelRow, one: KernelStatistics) -> Iterator[str]:
    yield from _wrong_with_fit(one)
    # so many divergences are too many of any few transitions
    is_told = one.transitions >= ENOUGH or one.details.get("divergences", 0.0) >= FEWEST_DIVERGENT
    if is_told and share_of(one, "divergences") > MOST_DIVERGENT and row.divergent > MOST_DIVERGENT:
        yield "divergent"
    if one.transitions < ENOUGH:
        return
    share = one.accepted / one.transitions
    if not one.accepted:
        yield "none accepted"
    elif row.action in METROPOLIS and share < LEAST_ACCEPTED:
        yield "few accepted"
    elif row.action in METROPOLIS and _stood_still(one):
        yield "refused"
    elif _stands_still(row, one, share):
        yield "stands still"
    if share_of(one, DEEPEST) > MOST_DEEPEST:
        yield "deep"
    if one.details.get("energy fraction", 1.0) < LEAST_ENERGY_FRACTION and one.details.get(COUNTED, 0.0) >= ENOUGH:
        yield "energy"


def _wrong_with_fit(one: KernelStatistics) -> Iterator[str]:
    if one.details.get(SHAPE, 0.0) > LARGEST_SHAPE and one.details.get(EFFICIENCY, 0.0) < ALIKE:
        yield "far"
    if one.details.get(SLOPE, 0.0) > LARGEST_SLOPE:
        yield "unsettled"
    if one.details.get(IMPOSSIBLE, 0.0):
        yield "impossible"


def share_of(one: KernelStatistics, name: str) -> float:
    """The share of the transitions that count which were this; 0 where nobody counts it."""
    return one.details.get(name, 0.0) / count_of(one)


def count_of(one: KernelStatistics) -> float:
    """The transitions that count."""
    return one.details.get(COUNTED, 0.0) or max(one.transitions, 1)


def _stood_still(one: KernelStatistics) -> bool:
    """Whether refusals came in a row that the share accepted at other times does not explain."""
    if one.refused < MOST_REFUSED:
        return False
    otherwise = one.accepted / max(one.transitions - one.refused, 1)
    return one.accepted * (1.0 - min(otherwise, 1.0)) ** one.refused < CHANCE


def _stands_still(row: KernelRow, one: KernelStatistics, share: float) -> bool:
    """Whether all is accepted because hardly anything is proposed."""
    if (move := one.details.get("mean move in sds")) is not None:
        return move < SMALLEST_MOVE and one.details["mean acceptance probability"] > MOST_ACCEPTED
    walks = row.action in METROPOLIS and ("'drift" in row.kernel or "(quote drift)" in row.kernel)
    return walks and one.transitions >= ENOUGH_OF_A_WALK and share > MOST_ACCEPTED


def _told(wrong: str, where: list[KernelStatistics]) -> str:
    """What is said of the chains where something is wrong."""
    match wrong:
        case "none accepted":
            return f"accepted none of its {max(one.transitions for one in where)} transitions"
        case "few accepted":
            worst = min(where, key=lambda one: one.accepted / one.transitions)
            return f"accepted {worst.accepted:,} of its {worst.transitions:,} transitions"
        case "refused":
            return f"was refused {max(one.refused for one in where):,} times in a row"
        case "divergent":
            share = max(share_of(one, "divergences") for one in where)
            percent = f"{100 * share:.2g}" if share < 0.995 else "100"
            return f"diverged in {percent}% of its transitions{_steep(where)}"
        case "deep":
            share = max(share_of(one, DEEPEST) for one in where)
            return f"reached the greatest depth in {100 * share:.2g}% of its transitions"
        case "far":
            shape = max(one.details[SHAPE] for one in where)
            return f"is not to be trusted: its Pareto k of {number(shape, 2)} is above {LARGEST_SHAPE}"
        case "unsettled":
            return "had not settled when its steps were over"
        case "impossible":
            share = max(one.details[IMPOSSIBLE] for one in where)
            return f"drew anew where the density is zero, {100 * share:.2g}% of its normal"
        case "energy":
            return f"has an energy fraction of {min(one.details['energy fraction'] for one in where):.2g}"
    return "accepts all and moves its block by less than 0.01 of its standard deviation"


def _steep(where: list[KernelStatistics]) -> str:
    """Where most divergences are, as far as one choice tells."""
    for prefix, words in ((FUNNEL, "small: a funnel"), (STEEP, "")):
        found = {name.removeprefix(prefix): off for one in where for name, off in one.details.items() if prefix in name}
        if found:
            name = max(found, key=lambda name: abs(found[name]))
            return f", most of them where {name} is {words or ('large' if found[name] > 0.0 else 'small')}"
    return ""


def _advice(row: KernelRow, wrong: str) -> str:
    """What it means for the draws, and what to do."""
    scaled = "" if "'precondition" in row.kernel else ", or 'precondition"
    match wrong, row.action:
        case "divergent", "nuts":
            return "its draws miss where the density is steep; a longer 'adapt, or scales times standard normals"
        case "divergent", _:
            return f"its draws miss where the density is steep; a smaller STEP{scaled}"
        case "deep", _:
            return "its paths are cut before they turn, and it is slow; 'dense, a longer 'adapt, or data on one scale"
        case "energy", _:
            return "it is slow in the tails; other coordinates for scales, or priors with lighter tails"
        case "far", _:
            full = "" if "'full" in row.kernel or "(quote full)" in row.kernel else "'full, or "
            return f"the posterior is no such normal; {full}nuts"
        case "unsettled", _:
            return "its normal is not the best one; more steps"
        case "impossible", _:
            return "no normal comes near to a density with an edge; priors whose support has it"
        case "stands still", "hmc" | "mala":
            return f"a larger STEP{scaled}"
        case "stands still", _:
            return "a larger step"
        case "refused", _:
            return f"its block stood still meanwhile; {_gentler(row, scaled).removesuffix(NEARER)}{NEARER}"
        case "none accepted", _:
            return "its block did not move; " + _gentler(row, scaled)
    return "its block hardly moved; " + _gentler(row, scaled)


def _gentler(row: KernelRow, scaled: str) -> str:
    """What moves a block where a kernel does not."""
    if "'adapt" in row.kernel:
        return f"a longer 'adapt{NEARER}"
    if row.action in ("hmc", "mala"):
        return f"a smaller STEP{scaled}"
    if row.action in ("mh", "subsampled_mh", "subsampled_mh_report"):
        return f"a smaller SIGMA{scaled}" if "'drift" in row.kernel else "'drift, gibbs, or smaller blocks"
    return GENTLER.get(row.action, "its value is certain given the others, or another kernel must move it")
