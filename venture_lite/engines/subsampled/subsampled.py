"""`subsampled_mh`: Metropolis-Hastings that decides from some of the rows (Chen et al. 2014, Algorithms 2 and 3).

The proposal and the uniform number come first, then the rows, a minibatch at a time, until a sequential test is sure of
the decision. With a tolerance of 0 it is `mh`, draw for draw.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from venture_lite.blocks.linear_block import LinearBlock, NotBelieved
from venture_lite.blocks.sections import NoBorder, Sections
from venture_lite.engines.mh import scaled
from venture_lite.engines.subsampled.control_variates import Expansion
from venture_lite.engines.subsampled.decision_record import DecisionRecord
from venture_lite.engines.subsampled.reach import Reach
from venture_lite.engines.subsampled.sequential_test import Decision, NotFinite, RowTerms, SequentialTest, exact
from venture_lite.engines.walk import Drift, Walk, drift
from venture_lite.errors import VentureError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part, Reported
from venture_lite.interpreter.ancestry import readers_come_and_go
from venture_lite.interpreter.impossible import REJECTING
from venture_lite.interpreter.kernel import COLUMNS, BlockKernel, Course, Metropolis, Move, Resimulation
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.regenerate import Proposal
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.weights import Weight
from venture_lite.kernels.compiled import kernel
from venture_lite.trace.row_order import AnySampler, LooseSampler, order_of
from venture_lite.trace.trace import Trace
from venture_lite.values import show


@dataclass(frozen=True, slots=True)
class SubsampledSettings:
    """How an action decides."""

    # rows of a minibatch, at least 2
    batch: int
    # probability of a wrong decision at which the test stops, 0 to 0.5
    tolerance: float
    # whether control variates are used
    proxy: bool = False
    # whether the test's stopping rule holds for terms of any distribution
    bernstein: bool = False
    # the fraction of transitions on which the exact decision is made as well
    audit: float = 0.0

    @property
    def is_exact(self) -> bool:
        """Whether every decision reads every row, as `mh` does."""
        return not self.tolerance and not self.proxy


@dataclass(frozen=True, slots=True)
class Read:
    """What the transitions of one block know of its rows, kept with the trace while these stay."""

    sections: Sections
    expansion: Expansion | None
    # the linear predictors, where control variates or bounds are made of them
    linear: LinearBlock | None
    # bounds on the terms, for the rule that holds for any distribution
    reach: Reach | None

    def are_as_they_were(self) -> bool:
        return self.linear is None or self.linear.is_as_read()

    def bytes_used(self) -> int:
        """Of what is kept by rows, and of features that are no view of the trace's columns."""
        return sum(part.bytes_used() for part in (self.linear, self.expansion) if part is not None)


class Subsampled(BlockKernel):
    """Transitions of one `subsampled_mh` action."""

    refuses_blocks = True

    def __init__(
        self,
        model: Model,
        proposal: Proposal,
        settings: SubsampledSettings,
        warn: Callable[[str], None] = lambda text: None,
    ) -> None:
        super().__init__(model)
        self.proposal = proposal
        self.settings = settings
        self.warn = warn
        self.record = DecisionRecord()
        # evaluations of rows for decisions that tests made, and for expansions
        self._decided = 0
        self._expanded = 0
        self._exact = kernel(model, Move(proposal, Metropolis(model)))
        self._prepared: dict[tuple[int, ...], Prepared] = {}
        # what became of expansions, by name
        self._counts: Counter[str] = Counter()

    @property
    def is_approximate(self) -> bool:  # type: ignore[override]
        """Whether its decisions may be wrong."""
        return self.settings.tolerance > 0.0

    @property
    def rows(self) -> int:
        """Evaluations of rows, those of the exact decisions that an audit makes aside."""
        return self._decided + self._expanded + self._exact.rows

    def details(self) -> dict[str, float]:
        found = self.record.details()
        if self._expanded:
            found["rows of expansions"] = self._expanded
        return found | self._counts

    def refuse(self, nodes: list[int]) -> None:
        if not self.settings.is_exact:
            self.prepare(nodes)

    def course(self, nodes: list[int], at: Selection) -> Course:
        """Nothing is expanded, which takes time."""
        sections = None if self.settings.is_exact else self._sections(nodes)
        if sections is None:
            return self._exact.course(nodes, at)
        return Course(COLUMNS, f"by minibatches of its {sections.count:,} rows")

    def step(self, nodes: list[int], at: Selection) -> bool:
        prepared = None if self.settings.is_exact else self.prepare(nodes)
        if prepared is None:
            return self._exact.step(nodes, at)
        read = prepared.read
        try:
            with self.model.transaction() as change:
                decision = prepared.decide()
                if decision.above:
                    read.sections.stand_at_new()
                    change.keep()
                    if read.linear is not None:
                        read.linear.look()
        except VentureError as error:
            if not read.sections.rejects(error):
                raise
            return False
        self._decided += decision.rows + decision.ahead
        self.record.add(decision, read.sections.count)
        if read.expansion is not None:
            before = read.expansion.rows
            with self.model.kept.changing(self._key(nodes)):
                read.expansion.watch(decision.rows, self.settings.batch)
            self._expanded += read.expansion.rows - before
        if self.record.is_skewed():
            self.warn("subsampled_mh: the means of minibatches are far from normal; larger ones make the test safer")
        return decision.above

    def _key(self, nodes: Sequence[int]) -> tuple[Any, ...]:
        settings = self.settings
        return ("rows", *nodes, settings.proxy, settings.bernstein and settings.tolerance > 0.0)

    def prepare(self, nodes: Sequence[int]) -> Prepared | None:
        """The sections of a block; None where too few others read it now and inference may make them more, or
        its linear predictors are not believed. Raises KernelError where a block has none."""
        block = tuple(nodes)
        found = self._prepared.get(block)
        if found is not None and found.read.sections.is_valid() and found.read.are_as_they_were():
            return found
        try:
            with self.model.kept.changing(self._key(block)):
                read = self._read(block)
        except NotBelieved:
            read = None
        if read is None:
            return None
        if found is None or found.read is not read:
            found = self._prepared[block] = Prepared(self, read)
        return found

    def _read(self, block: tuple[int, ...]) -> Read | None:
        """What is kept of a block's rows, brought up to date."""
        kept: Read | None = self.model.kept.find(self._key(block))
        if kept is None or not kept.sections.is_valid():
            sections = self._sections(block)
            if sections is None:
                return None
        elif kept.are_as_they_were():
            self._count_kept(kept.expansion, block)
            return kept
        else:
            sections = kept.sections
        made = self._made(sections, block, kept)
        self.model.kept.keep(self._key(block), made)
        return made

    def _sections(self, block: Sequence[int]) -> Sections | None:
        """None where too few others read the block now and inference may make them more."""
        try:
            return Sections.of(self.model, block)
        except NoBorder:
            code, _, row = self.model.trace.decode(block[0])
            if not readers_come_and_go(self.model.trace, code, row):
                raise
            return None

    def _count_kept(self, expansion: Expansion | None, block: tuple[int, ...]) -> None:
        """Where an action meets an expansion for the first time."""
        if expansion is not None and block not in self._prepared:
            self._counts["set-ups kept"] += 1

    def _made(self, sections: Sections, block: tuple[int, ...], before: Read | None) -> Read:
        settings = self.settings
        linear = expansion = reach = None
        if settings.proxy or settings.bernstein:
            linear = LinearBlock(self.model, sections, block)
            expansion = self._expansion(linear, block, before) if settings.proxy else None
        if linear is not None and settings.bernstein and settings.tolerance:
            reach = Reach(linear, linear.present())
            reach.refuse_unbounded(sections, of_residuals=settings.proxy)
        return Read(sections, expansion, linear, reach)

    def _expansion(self, linear: LinearBlock, block: tuple[int, ...], before: Read | None) -> Expansion:
        found = None if before is None else before.expansion
        if found is None or not found.follows(linear):
            found, already = Expansion(linear), 0
            self._counts["set-ups made"] += 1
        else:
            already = found.rows
            found.follow(linear)
            self._count_kept(found, block)
        self._expanded += found.rows - already
        return found


def samplers_of(trace: Trace, sections: Sections, kinds: Sequence[int]) -> list[AnySampler]:
    """For each of some kinds what draws positions among its sections; where all rows of a table are sections, by their
    random order, which stays with the table."""
    found: list[AnySampler] = []
    for kind in (sections.kinds[at] for at in kinds):
        if kind.group.site not in sections.sites:
            found.append(LooseSampler(kind.count))
            continue
        sampler = order_of(trace.table(kind.group.code), trace.rng).sampler(kind.group.site)
        rows = kind.all_rows()
        sampler.among = None if isinstance(rows, slice) else rows
        found.append(sampler)
    return found


class Prepared:
    """What one action keeps of one block, and one proposal after the other with its decision."""

    def __init__(self, engine: Subsampled, read: Read) -> None:
        self.engine = engine
        self.read = read
        settings, trace = engine.settings, engine.model.trace
        # the kinds that the test draws from: all but those that an expansion knows exactly
        self.tested = list(range(len(read.sections.kinds))) if read.expansion is None else read.expansion.inexact
        samplers = samplers_of(trace, read.sections, self.tested)
        self.test = SequentialTest(samplers, settings.batch, settings.tolerance, trace.rng, settings.proxy)

    def decide(self) -> Decision:
        """Propose, draw u, and read rows until the decision is sure. The trace is left at either value."""
        engine, expansion, linear = self.engine, self.read.expansion, self.read.linear
        old = new = linear.present() if linear is not None else np.empty(0)
        ratio, weight = self.read.sections.propose(engine.proposal)
        u = engine.model.trace.rng.random()
        if weight.impossible:
            return self._by_all(u, ratio, weight)
        threshold = (math.log(u) if u else -math.inf) - ratio - weight.total
        terms: RowTerms = self._differences
        if linear is not None:
            new = linear.present()
        if expansion is not None:
            total = expansion.total(old, new)
            if not self.tested or not engine.settings.tolerance:
                return self._first_stage(total > threshold, total)
            threshold -= total

            def terms(kind: int, positions: np.ndarray) -> np.ndarray:
                return _finite(expansion.residuals(self.tested[kind], positions, old, new))

        try:
            decision = self.test.decide(threshold, terms, self._largest(old, new), engine.record.looks())
        except NotFinite:
            return self._by_all(u, ratio, weight)
        if engine.record.is_to_compare(engine.settings.audit):
            engine.record.compare(decision, self._exactly(threshold, terms, u, ratio, weight))
        return decision

    def _exactly(self, threshold: float, terms: RowTerms, u: float, ratio: float, weight: Weight) -> Decision:
        """The decision from every row; the test may not have met one that is impossible."""
        try:
            return exact(self.test.counts, threshold, terms)
        except NotFinite:
            return self._by_all(u, ratio, weight)

    def _differences(self, kind: int, positions: np.ndarray) -> np.ndarray:
        sections = self.read.sections
        try:
            new, old = sections.differences(sections.kinds[self.tested[kind]], positions)
        except REJECTING:
            raise NotFinite from None
        with np.errstate(invalid="ignore"):
            return _finite(new - old)

    def _first_stage(self, passed: bool, total: float) -> Decision:
        """Delayed acceptance (Christen and Fox 2005): what the expansion lets pass is decided by what it left out, all
        of it; an expansion that is exact decides alone."""
        if not passed or not self.tested:
            return Decision(passed, 0, 0.0)
        return self._by_all(self.engine.model.trace.rng.random(), -total, Weight())

    def _by_all(self, u: float, ratio: float, weight: Weight) -> Decision:
        """Decided by every row, impossible ones counted."""
        change = self.read.sections.change_of_all()
        change.plus(weight)
        change.total += ratio
        return Decision(accepts(u, change), self.read.sections.count, 0.0)

    def _largest(self, old: np.ndarray, new: np.ndarray) -> float | None:
        """A bound on the distance between any two terms, where the stopping rule asks for one."""
        reach, expansion = self.read.reach, self.read.expansion
        if reach is None or expansion is None:
            return None if reach is None else reach.of_differences(old, new)
        return reach.of_residuals(old, new, expansion.center)


def _finite(change: np.ndarray) -> np.ndarray:
    if not math.isfinite(change.sum()):
        raise NotFinite
    return change


def accepts(u: float, weight: Weight) -> bool:
    """Accept with the probability that the weight gives, by a uniform number that was drawn already."""
    if weight.impossible:
        return weight.impossible < 0
    return weight.total >= 0.0 or u < math.exp(weight.total)


def _engine(program: InferenceProgram, given: ActionForm, always_audited: bool) -> tuple[Subsampled, Part]:
    batch, tolerance = given.count("NBATCH", least=2), given.between("EPS", 0, 0.5)
    audit = given.between("F", 0, 1, "the audited fraction F") if "audit" in given else float(always_audited)
    model = program.model
    proposal = drift(program, given) if "drift" in given else Resimulation(model)
    settings = SubsampledSettings(batch, tolerance, "proxy" in given, "bernstein" in given, audit)
    engine = Subsampled(model, proposal, settings, program.warn)
    decided = f"decided from minibatches of {batch}"
    if isinstance(proposal, Drift):
        words = f"a walk of sd {show(proposal.sigma)}{scaled(given)}, {decided}"
        return engine, given.kernel(words, Walk(model, proposal, engine))
    return engine, given.kernel(f"proposals from the prior, {decided}", engine)


def _compile_report(program: InferenceProgram, given: ActionForm) -> Part:
    engine, kernel = _engine(program, given, always_audited=True)

    def tell() -> None:
        if not engine.record.tests:
            print("no decision was tested: with EPS 0 and no 'proxy, and where nothing moves, there is no test")
        for name, value in engine.record.details().items():
            print(f"{name:>30}  {value:.4g}")

    return Reported(given.action, tell, parts=(kernel,))


_WRITTEN = "SCOPE BLOCK NBATCH EPS ['drift SIGMA ['precondition]] ['proxy] ['bernstein] ['audit F] T)"
SUBSAMPLED_MH = Action(
    "subsampled_mh", (f"(subsampled_mh {_WRITTEN}",),
    "T transitions as mh makes them, each decided from as many minibatches of NBATCH rows as a sequential test needs "
    "to be wrong with probability about EPS; with 'proxy on what second-order expansions at the mode leave over, with "
    "'bernstein by a rule for terms of any distribution; with 'audit the exact decision is made too, on a fraction F.",
    lambda program, given: _engine(program, given, always_audited=False)[1],
)  # fmt: skip
SUBSAMPLED_MH_REPORT = Action(
    "subsampled_mh_report", (f"(subsampled_mh_report {_WRITTEN}",),
    "Runs subsampled_mh, makes the exact decision each time as well, and prints what the tests read and how often they "
    "differed.", _compile_report,
)  # fmt: skip
