"""`smc`: sequential Monte Carlo over whole traces (Del Moral, Doucet and Jasra 2006; Chopin 2002), and the evidence.

Particles are states of the whole trace. They are drawn from the prior and led to the posterior: with `'tempered` by the
likelihood to powers that grow from 0 to 1, each as far from the one before as the conditional effective share of
particles allows; else datum by datum, in the order of entry. On the way weights become uneven, particles are resampled,
and the kernels move each of them within the distribution of the day. Several independent runs go side by side: the mean
of their estimates is that of the evidence, and its error comes from their spread.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import numpy as np

from venture_lite.blocks.particles import Particles, PlainParticles, WholeParticles, refuse_improper, unobserved
from venture_lite.draws.draws import KernelStatistics
from venture_lite.draws.evidence import Evidence
from venture_lite.draws.presentation import counted
from venture_lite.engines.smc.populations import Populations
from venture_lite.errors import ArgumentError, KernelError, Span, VentureError
from venture_lite.inference.data import Data
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Keep, KernelPart, Part, Print, located, often
from venture_lite.inference.watch import Use
from venture_lite.interpreter.answers import Differs
from venture_lite.interpreter.failures import failure_details
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selector
from venture_lite.interpreter.tempering import Tempering
from venture_lite.interpreter.weights import log_likelihood
from venture_lite.procedures import registry
from venture_lite.trace.copies import Copies

RUNS = 8
"""Independent runs, where nobody says how many."""
LEAST_SHARE = 0.6
"""The conditional effective share of particles between two powers of the likelihood. The error of the evidence at a
given cost hardly depends on it: fewer powers allow more particles."""
SMALLEST = 1e-100
"""The smallest power: densities to it are numbers of full precision still."""
HALVINGS = 60
"""Of the interval in which the next power lies."""


class ParticleRuns:
    """One `smc` of a program: particles of several runs, moved side by side."""

    def __init__(self, model: Model, runs: int, particles: int, moves: Sequence[Part]) -> None:
        self.model = model
        self.populations = Populations(runs, particles)
        self.count = runs * particles
        self._moves = moves
        # distributions between the prior and the posterior in which particles were moved
        self.stages = 0
        self.particles: Particles
        self._copies: Copies

    def draw(self, copies: Copies, is_plain: bool) -> np.ndarray:
        """Draw all particles from the prior of the trace as it stands; whether each (count,) could be."""
        self._copies = copies
        if is_plain:
            self.particles = PlainParticles(self.model, self.count)
            with suppress(Differs):
                return self.particles.draw()
        self.particles = WholeParticles(self.model, self.count, copies)
        return self.particles.draw()

    def feed(self, data: Data, datum: int) -> np.ndarray:
        """Put a datum in; the log density (count,) of what it observes, -inf for particles without weight."""
        alive = self.populations.alive()
        try:
            return self.particles.feed(data, datum, alive)
        except Differs:
            assert isinstance(self.particles, PlainParticles)
            self.particles = self.particles.whole(self._copies, alive)
        return self.particles.feed(data, datum, alive)

    def refresh(self) -> None:
        """Resample runs whose weights are uneven, then move every particle: kernel by kernel, all particles at once
        where that can be, else one after the other."""
        self.particles.take(self.populations.resample(self.model.trace.rng))
        self.stages += 1
        alive = self.populations.alive()
        for part in self._moves:
            # a particle without weight may have no values that columns could hold
            if not (alive.all() and self.particles.moved(part)):
                self.particles.each(lambda particle, part=part: part.run(), alive)  # type: ignore[misc]

    def weigh_standing(self) -> None:
        """Weigh the particles by what is observed in the trace as it stands, if anything is."""
        trace = self.model.trace
        if not any(map(trace.is_observed, trace.choices())):
            return
        terms = np.full(self.count, -math.inf)

        def look(particle: int) -> None:
            terms[particle] = log_likelihood(trace).value()

        self.particles.each(look, self.populations.alive())
        self.weigh(terms, "under what is observed where something else reads it")

    def weigh(self, increments: np.ndarray, where: str) -> None:
        """Raises KernelError where no particle of any run has a positive weight."""
        self.populations.add(increments)
        if self.populations.is_dead:
            reason = f"all {self.count:,} particles have probability zero {where}"
            raise KernelError(reason, hint="more particles, a prior nearer to the data, or 'tempered")


# ------------------------------------------------------------------------------------------------------ two ways


def temper(sampler: ParticleRuns, drawn: np.ndarray, tempering: Tempering, told: Callable[[int], None]) -> None:
    """From the prior to the posterior by powers of the likelihood (Zhou, Johansen and Aston 2016, algorithm 4)."""
    populations, power = sampler.populations, 0.0
    likelihoods = log_likelihoods(sampler, drawn, tempering)
    while power < 1.0:
        following = next_power(populations, likelihoods, power)
        sampler.weigh((following - power) * likelihoods, "under the data")
        power = following
        tempering.set(power)
        sampler.refresh()
        likelihoods = log_likelihoods(sampler, populations.alive(), tempering) / power
        told(sampler.stages)


def log_likelihoods(sampler: ParticleRuns, alive: np.ndarray, tempering: Tempering) -> np.ndarray:
    """The log density (R P,) of the observations to the present power, -inf for particles that are not alive."""
    found = sampler.particles.weigh(tempering.observed()) if alive.all() else None
    if found is None:
        terms = np.full(sampler.count, -math.inf)

        def look(particle: int) -> None:
            terms[particle] = tempering.log_likelihood().value()

        sampler.particles.each(look, alive)
        found = terms
    return found


def next_power(populations: Populations, likelihoods: np.ndarray, power: float) -> float:
    """The greatest power of the likelihood at which LEAST_SHARE of the particles are effective, given those at the
    present one: found by halving, and 1 where that is near enough."""

    def is_near(following: float) -> bool:
        return populations.conditional_share((following - power) * likelihoods) >= LEAST_SHARE

    if not (likelihoods > -math.inf).any() or is_near(1.0):
        return 1.0
    # particles of probability zero are lost at any power
    low, high = power, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_near(middle) else (low, middle)
    return max(low, math.nextafter(power, 1.0), SMALLEST)


def feed(sampler: ParticleRuns, data: Data, fed: Sequence[int], told: Callable[[int], None]) -> None:
    """From the prior to the posterior datum by datum; particles move when weights have become uneven, and at the
    end."""
    for number, datum in enumerate(fed):
        sampler.weigh(sampler.feed(data, datum), f"at datum {number + 1} of {len(fed)}")
        if sampler.populations.is_uneven() or number + 1 == len(fed):
            sampler.refresh()
        told(number + 1)


# ----------------------------------------------------------------------------------------------------- the action


@dataclass(frozen=True, slots=True)
class SequentialMonteCarlo(Part):
    """Makes particles, once, and draws of what is collected from each."""

    particles: int
    runs: int
    tempered: bool
    # what draws each of the particles that the result is made of
    keeps: tuple[Part, ...]
    span: Span = field(repr=False, compare=False)
    program: InferenceProgram = field(repr=False, compare=False)
    use: Use = field(repr=False, compare=False)

    @property
    def heading(self) -> str:
        how = "tempered" if self.tempered else "datum by datum"
        return f"{self.action}: {self.runs} runs of {counted(self.particles, 'particle')}, {how}, moved by"

    def run(self) -> None:
        start, failures = time.perf_counter(), Counter[str]()
        sampler = ParticleRuns(self.program.model, self.runs, self.particles, self.parts)
        try:
            with self.program.failures.added_to(failures), self._told(), _restored(self.program.model) as copies:
                self._sample(sampler, copies)
                self._collect(sampler)
        except VentureError as error:
            raise located(error, self.span) from error
        self._report(sampler, time.perf_counter() - start, failures)

    @contextmanager
    def _told(self) -> Iterator[None]:
        progress = self.program.progress
        progress.begin(" ".join(self.span.text.split()), None)
        try:
            yield
        finally:
            progress.end()

    def _sample(self, sampler: ParticleRuns, copies: Copies) -> None:
        model, told = self.program.model, self.program.progress.advance
        refuse_improper(model)
        if not unobserved(model):
            raise KernelError("there is nothing to draw: the model has no unobserved choice")
        is_plain = PlainParticles.fit(model)
        if self.tempered:
            tempering = Tempering(model)
            try:
                drawn = sampler.draw(copies, is_plain)
                sampler.weigh(np.where(drawn, 0.0, -math.inf), "under the prior")
                temper(sampler, drawn, tempering, told)
            finally:
                tempering.end()
            return
        data = self.program.data(True)
        assert data is not None
        fed = [datum for datum in range(data.count) if data.can_go(datum)]
        try:
            for datum in reversed(fed):
                data.remove(datum)
            drawn = sampler.draw(copies, is_plain)
            sampler.weigh(np.where(drawn, 0.0, -math.inf), "under the prior")
            sampler.weigh_standing()
            feed(sampler, data, fed, told)
        except BaseException:
            data.all_in()
            raise

    def _collect(self, sampler: ParticleRuns) -> None:
        """Keep draws of particles of equal weight, and leave the trace as one of them."""
        program, particles = self.program, sampler.particles
        program.draws.settled()
        program.draws.transition = dict
        chosen = sampler.populations.draw(program.model.trace.rng)
        for particle in chosen.tolist() if self.keeps else ():
            program.model.poll()
            particles.stand_at(particle)
            self.use.ran()
            for keep in self.keeps:
                keep.run()
        particles.stand_at(int(program.model.trace.rng.choice(chosen)))

    def _report(self, sampler: ParticleRuns, seconds: float, failures: Counter[str]) -> None:
        what = "temperatures" if self.tempered else "times moved"
        told = counted(sampler.stages, "temperature") if self.tempered else f"moved {often(sampler.stages)}"
        note = f"{counted(self.runs, 'run')} of {counted(self.particles, 'particle')}, {told}"
        evidence = tuple(sampler.populations.log_evidence.tolist())
        details = {"log evidence": Evidence.of(evidence).log, "error of the log evidence": Evidence.of(evidence).error}
        details |= {what: float(sampler.stages), **failure_details(failures)}
        statistics = KernelStatistics(
            self.span.text, 0, 0, 0, seconds, details=details, note=note, evidence=evidence
        )  # fmt: skip
        self.program.notes.setdefault(self.span, []).append(statistics)


@contextmanager
def _restored(model: Model) -> Iterator[Copies]:
    """Copies of a model's states; after an error, or Ctrl-C, it stands at the present one."""
    procedures = [*registry.PROCEDURES.values(), *model.trace.analyzer.registered.values()]
    copies = Copies(model.trace, procedures)
    before = copies.keep()
    try:
        yield copies
    except BaseException:
        copies.put(before)
        raise
    finally:
        # while data were out others were read
        model.kept.extended()


def _parts(given: ActionForm) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """The kernels, and what is collected. Raises ArgumentError where something is collected elsewhere than at the
    end."""
    moves: list[Part] = []
    keeps: list[Part] = []
    for item, part in zip(given.all("KERNEL"), given.kernels(), strict=True):
        if isinstance(part, Keep):
            keeps.append(part)
            continue
        effects = [each for _, each in part.walk() if isinstance(each, (Keep, Print))]
        if effects or keeps:
            what = f"{effects[0].action} inside a kernel of smc" if effects else "a kernel after what smc collects"
            raise ArgumentError(f"{what} has no place", item.span, "(smc P KERNEL ... (collect EXPR ...))")
        moves.append(part)
    return tuple(moves), tuple(keeps)


NOT_MOVES = {
    "flymc": "which rows are bright is no part of a particle",
    "subsampled_mh": "its decisions are approximate, and so would be the evidence",
    "subsampled_mh_report": "its decisions are approximate, and so would be the evidence",
    "vi": "it is approximate, and so would be the evidence",
    "compile": "it learns from the prior, before inference",
    "save_proposers": "it moves nothing",
    "load_proposers": "it moves nothing",
}
"""The actions that are no moves of particles, and why."""

UNTEMPERED = {"compiled_mh": "it has learned from data with their densities as they are"}
"""Those that know nothing of powers of the likelihood."""


def _refuse_moves(parts: Sequence[Part], span: Span, tempered: bool) -> None:
    refused = NOT_MOVES | (UNTEMPERED if tempered else {})
    for part in parts:
        for _, each in part.walk():
            if each.action in refused:
                place = each.span if isinstance(each, KernelPart) else span
                hint = "mh, slice, gibbs, nuts, hmc, mala, pgibbs and rejection move particles"
                raise ArgumentError(f"{each.action} cannot move particles: {refused[each.action]}", place, hint)


def _compile_smc(program: InferenceProgram, given: ActionForm) -> Part:
    particles = given.count("P", least=2, hint="one particle alone is never resampled")
    runs = given.count("RUNS", least=1) if "RUNS" in given else RUNS
    if program.annealing:
        raise KernelError("smc cannot run inside an annealing, whose data come and go", given.span)
    # data, or their power, come and go here as well
    program.annealing = True
    try:
        moves, keeps = _parts(given)
    finally:
        program.annealing = False
    tempered = "tempered" in given
    _refuse_moves(moves, given.span, tempered)
    use = program.watch.use("default", Selector("all"))
    return SequentialMonteCarlo(
        given.action, particles, runs, tempered, keeps, given.span, program, use, parts=moves
    )  # fmt: skip


SMC = Action(
    "smc", ("(smc P ['tempered] ['runs RUNS] [KERNEL ...])",),
    "P particles of the whole trace, from the prior to the posterior: datum by datum, or with 'tempered by powers of "
    "the likelihood; on the way the KERNELs move them. The last of these are (collect EXPR ...): a draw of each EXPR a "
    "particle, of equal weights. Estimates the log evidence from RUNS independent runs, 8 where nothing is said.",
    _compile_smc, is_once=True,
)  # fmt: skip
