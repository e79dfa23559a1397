"""`pgibbs`: particle Gibbs, conditional sequential Monte Carlo over the ordered blocks of a scope (Andrieu, Doucet and
Holenstein 2010, section 4.5).

P particles go through the blocks side by side. The first one is retained: it keeps the values that the trace has. The
others draw each block, with the brush that it brings into being, from its distribution, and are weighed by what
absorbs. Between two blocks the particles with little weight die out and others have several children; in the end one
path is drawn, and it is the new state. How a block is drawn for all particles at once is in `particle_columns.py`; what
may change structure is done particle by particle, in `particle_tree.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from venture_lite.engines.pgibbs.particle_columns import ColumnSweep
from venture_lite.engines.pgibbs.particle_tree import TreeSweep
from venture_lite.errors import ArgumentError
from venture_lite.inference.given import ActionForm
from venture_lite.inference.program import Action, InferenceProgram, Kernel
from venture_lite.inference.selection import Selector, in_order, in_range, order_of_key, scope_of
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.schedule import Schedule
from venture_lite.trace.scopes import DefaultScope


@dataclass(slots=True)
class Tally:
    """What the sweeps of one action came to."""

    sweeps: int = 0
    moved: float = 0.0
    effective: float = 0.0
    later_terms: float = 0.0
    fitting: float = 0.0
    played: float = 0.0


class ParticleGibbs:
    """Sweeps of one `pgibbs` action."""

    def __init__(self, model: Model, scope: Any, selector: Selector, particles: int, ancestor: bool) -> None:
        self.model = model
        self.scope = scope
        self.selector = selector
        self.particles = particles
        self.ancestor = ancestor
        self.rows = 0
        self._tally = Tally()
        # the sweep over columns, as of a state of the trace's structure
        self._columns: tuple[tuple[int, int], ColumnSweep] | None = None

    def blocks(self) -> list[list[int]]:
        """The choices of each block of the range that exists now, in order."""
        found = scope_of(self.model, self.scope)
        if found is None:
            return []
        if isinstance(found, DefaultScope):
            return [[node] for node in in_order(self.model, found.all_keys())]
        keys = sorted(found.all_keys(), key=lambda key: order_of_key(self.model, self.scope, key))
        is_range = self.selector.kind == "range"
        return [found.members(key) for key in keys if not is_range or in_range(self.model, self.selector, key)]

    def step(self, nodes: list[int], key: Any) -> bool:
        """One sweep; whether the state changed."""
        structure = self.model.trace.structure_stamp()
        sweep: ColumnSweep | TreeSweep
        if self._columns is not None and self._columns[0] == structure:
            sweep = self._columns[1]
        else:
            blocks = self.blocks()
            if not blocks:
                return False
            schedule = Schedule(self.model.trace, blocks)
            if schedule.is_plain():
                sweep = ColumnSweep(self.model, schedule, self.particles, self.ancestor)
                self._columns = structure, sweep
            else:
                sweep = TreeSweep(self.model, schedule, self.particles, self.ancestor)
        changed, moved, effective = sweep.run()
        self.rows += sweep.rows
        tally = self._tally
        tally.sweeps += 1
        tally.moved += moved
        tally.effective += effective
        tally.later_terms += sweep.later_terms
        tally.fitting += sweep.fitting
        tally.played += sweep.played
        return changed

    def details(self) -> dict[str, float]:
        tally = self._tally
        if not tally.sweeps:
            return {}
        found = {
            "mean fraction of blocks moved": tally.moved / tally.sweeps,
            "mean effective fraction of particles": tally.effective / tally.sweeps,
        }
        if tally.played:
            found["mean steps played again for a particle's"] = tally.played / tally.sweeps
        if self.ancestor:
            found["mean later terms weighed for an ancestor"] = tally.later_terms / tally.sweeps
            found["mean fraction of particles that may be an ancestor"] = tally.fitting / tally.sweeps
        return found


def _compile_pgibbs(program: InferenceProgram, given: ActionForm) -> Kernel:
    scope, selector = given.scope, given.selector
    if selector.kind not in ("ordered", "range"):
        hint = "ordered, or (ordered_range LO HI)"
        raise ArgumentError("pgibbs goes through blocks in order", given["BLOCKS"].span, hint)
    particles = given.count("P", least=2, hint="one particle alone never moves")
    engine = ParticleGibbs(program.model, scope, selector, particles, "ancestor" in given)
    # the warnings of a scope that is empty are those of a kernel that moves everything at once
    count = given.count("T")
    run = program.kernel(given.form, scope, Selector("all"), count, engine.step, engine, moves=selector)

    def checked_run() -> None:
        found = scope_of(program.model, scope)
        if found is not None and found.block_count() and selector.kind == "range":
            place = f"{given.span.place()}: the scope {scope} has no block"
            if isinstance(found, DefaultScope):
                hint = "its blocks have no keys; tag the choices with scope_include"
                program.warn(f"{place} {selector.text()} ({hint}), nothing is moved")
                return
            if not engine.blocks():
                program.warn(f"{place} in {selector.text()}, nothing is moved")
                return
        run()

    return checked_run


PGIBBS = Action(
    "pgibbs", ("(pgibbs SCOPE BLOCKS P ['ancestor] T)",),
    "T sweeps of particle Gibbs: P particles go through the blocks in order (BLOCKS is ordered or (ordered_range LO "
    "HI)), the present state is one of them, and one is drawn to be the new state. With 'ancestor its past is drawn "
    "anew at every block.", _compile_pgibbs,
)  # fmt: skip
