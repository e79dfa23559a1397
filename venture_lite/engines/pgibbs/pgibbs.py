"""`pgibbs`: particle Gibbs, conditional sequential Monte Carlo over the ordered blocks of a scope (Andrieu, Doucet and
Holenstein 2010, section 4.5).

P particles go through the blocks side by side. The first one is retained: it keeps the values that the trace has. The
others draw each block, with the brush that it brings into being, from its distribution, and are weighed by what
absorbs. Between two blocks the particles with little weight die out and others have several children; in the end one
path is drawn, and it is the new state. How a block is drawn for all particles at once is in `particle_columns.py`; what
may change structure is done particle by particle, in `particle_tree.py`.
"""

from __future__ import annotations

from venture_lite.draws.evidence import Evidence
from venture_lite.engines.pgibbs.free_passes import free_passes
from venture_lite.engines.pgibbs.particle_columns import ColumnSweep
from venture_lite.engines.pgibbs.particle_tree import TreeSweep
from venture_lite.errors import ArgumentError, KernelError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.tree import Part
from venture_lite.interpreter.answers import Differs
from venture_lite.interpreter.kernel import COLUMNS, ROWS, Course
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.schedule import Schedule
from venture_lite.interpreter.selection import Selection
from venture_lite.interpreter.tally import Tally

PLAYED = "mean steps played again for a particle's"
"""Of a kernel's statistics, where there were any."""

PARTICLES = "particle by particle"


class ParticleGibbs:
    """Sweeps of one `pgibbs` action."""

    def __init__(self, model: Model, particles: int, ancestor: bool, passes: int = 0) -> None:
        """The evidence is estimated from so many `passes`, once, if from any."""
        self.model = model
        self.passes = passes
        # the log of what each of them estimates
        self.log_evidences: tuple[float, ...] = ()
        self.particles = particles
        self.ancestor = ancestor
        self.rows = 0
        # sweeps, and sums over them by name
        self._sweeps = 0
        self._sums: dict[str, float] = {}
        # the sweep over columns, as of a state of the trace's structure
        self._columns: tuple[tuple[int, int], ColumnSweep] | None = None
        # whether columns may move particles: not where their values have differed from the interpreter's, nor in a
        # checked session, since columns draw in another order
        self._has_columns = model.may_take("pgibbs")
        # what a sweep would be, as of a state of the trace's structure
        self._course: tuple[tuple[int, int], Course] | None = None

    def course(self, nodes: list[int], at: Selection) -> Course:
        """The same for every block: particles go through all of them."""
        structure = self.model.trace.structure_stamp()
        if self._course is None or self._course[0] != structure:
            course = Course(ROWS, PARTICLES, "what exists may change with a block, or statistics count")
            if not self.model.may_take("pgibbs"):
                course = Course(ROWS, PARTICLES, f"the session's kernels are {self.model.kernels}")
            elif self._has_columns and Schedule(self.model.trace, at.in_order()).is_plain():
                course = Course(COLUMNS, "all particles at once")
            self._course = structure, course
        return self._course[1]

    def run(self, selection: Selection, times: int, tally: Tally) -> int:
        """Make so many sweeps."""
        missing = selection.missing()
        if missing is None and not selection.in_order():
            missing = f"the scope {selection.scope} has no block in {selection.selector.text()}, nothing is moved"
        if missing is not None:
            tally.warn(missing)
            return 0
        if self.passes and not self.log_evidences:
            self.log_evidences = free_passes(self.model, selection.in_order(), self.particles, self.passes)
        with tally.task(times):
            for done in range(times):
                self.model.poll()
                tally.count(self.sweep(selection))
                if not done & 63:
                    tally.progress.advance(done)
        return times

    def sweep(self, selection: Selection) -> bool:
        """Move the blocks that exist now; whether the state changed."""
        structure = self.model.trace.structure_stamp()
        sweep: ColumnSweep | TreeSweep
        if self._columns is not None and self._columns[0] == structure:
            sweep = self._columns[1]
        else:
            blocks = selection.in_order()
            if not blocks:
                return False
            schedule = Schedule(self.model.trace, blocks)
            if self._has_columns and schedule.is_plain():
                sweep = ColumnSweep(self.model, schedule, self.particles, self.ancestor)
                self._columns = structure, sweep
            else:
                sweep = TreeSweep(self.model, schedule, self.particles, self.ancestor)
        try:
            changed, moved, effective = sweep.run()
        except Differs:
            self._columns, self._has_columns = None, False
            return self.sweep(selection)
        self.rows += sweep.rows
        self._sweeps += 1
        found = {
            "mean fraction of blocks moved": moved,
            "mean effective fraction of particles": effective,
            PLAYED: sweep.played,
        }
        if self.ancestor:
            found["mean later terms weighed for an ancestor"] = sweep.later_terms
            found["mean fraction of particles that may be an ancestor"] = sweep.fitting
        self._sums = {name: self._sums.get(name, 0.0) + value for name, value in found.items()}
        return changed

    def details(self) -> dict[str, float]:
        found = {name: total / self._sweeps for name, total in self._sums.items() if total or name != PLAYED}
        if self.log_evidences:
            evidence = Evidence.of(self.log_evidences)
            found |= {"log evidence": evidence.log, "error of the log evidence": evidence.error}
        return found


def _compile_pgibbs(program: InferenceProgram, given: ActionForm) -> Part:
    if given.selector.kind not in ("ordered", "range"):
        hint = "ordered, or (ordered_range LO HI)"
        raise ArgumentError("pgibbs goes through blocks in order", given["BLOCKS"].span, hint)
    particles = given.count("P", least=2, hint="one particle alone never moves")
    move = f"{particles} particles" + (", ancestors drawn anew" if "ancestor" in given else "")
    passes = given.count("RUNS", least=1) if "RUNS" in given else 0
    if passes and program.annealing:
        what = "data come and go here: what 'evidence estimates would be of some of them"
        raise KernelError(what, given.span, "pgibbs without 'evidence")
    return given.kernel(move, ParticleGibbs(program.model, particles, "ancestor" in given, passes))


PGIBBS = Action(
    "pgibbs", ("(pgibbs SCOPE BLOCKS P ['ancestor] ['evidence RUNS] T)",),
    "T sweeps of particle Gibbs: P particles go through the blocks in order (BLOCKS is ordered or (ordered_range LO "
    "HI)), the present state is one of them, and one is drawn to be the new state. With 'ancestor its past is drawn "
    "anew at every block. With 'evidence the log evidence is estimated, where BLOCKS hold all unobserved choices: from "
    "RUNS further passes, made once, in which no particle is retained.", _compile_pgibbs,
)  # fmt: skip
