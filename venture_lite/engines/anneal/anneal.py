"""`anneal`: subsample annealing (Obermeyer, Glidden and Jonas 2014): assignments of data, from few of them to all.

A step takes random data out of the trace and puts random ones in, each with assignments drawn from their conditional
distribution by `gibbs`, until the subsample has the size that the schedule wants. A datum that would be taken out and
put in at once stays, and its assignments are drawn anew where they are: at full size this is a transition of `gibbs`,
also where components have parameters of their own (Neal 2000, Algorithm 8).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from venture_lite.engines.anneal.assignments import Assigning, Assignments
from venture_lite.errors import ArgumentError, KernelError, NameUnknown, nearest
from venture_lite.inference.data import Data, Subsample
from venture_lite.inference.given import ActionForm
from venture_lite.inference.lambdas import InferenceLambda
from venture_lite.inference.program import Action, InferenceProgram
from venture_lite.inference.replay import ReplayedProcedure
from venture_lite.inference.tree import Part
from venture_lite.inference.usage import Matched
from venture_lite.interpreter.addresses import address
from venture_lite.interpreter.evidence import NO_EVIDENCE
from venture_lite.interpreter.handler import KnownChoices
from venture_lite.interpreter.kernel import ROWS, Course
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.selection import Selection, Selector, one_of_each_kind
from venture_lite.interpreter.tally import Tally
from venture_lite.language.syntax import Expression
from venture_lite.values import Symbol, equal, show

WHOLE = 1.0 - 1e-9
"""The shares of a pass add up to this, whatever their rounding."""

Sizes = Callable[[int], Sequence[int]]
"""Number of data -> size of the subsample after each step."""


Gathered = Callable[[], tuple[Data, Sequence[int]]]
"""The data of the program's loops, and the size of the subsample after each step."""


class Uninterrupted(KnownChoices):
    """Choices take the values that they had; Ctrl-C waits."""

    def poll(self) -> None:
        pass


class Annealing:
    """The runs of one `anneal` action."""

    def __init__(self, model: Model, scope: Any, gathered: Gathered, kernels: Sequence[Part], tempers: bool) -> None:
        self.model = model
        self.scope = scope
        self.gathered = gathered
        # whether the likelihood is annealed, with all data in, in place of the subsample
        self.tempers = tempers
        self.kernels = kernels
        self.assigning = Assigning(model, scope)
        self.assignments = 0
        self.removals = 0
        # assignments that changed the state
        self.changed = 0
        # times that the kernels ran, and the part of a pass through the subsample made since they last did
        self.passes = 0
        self._part = 0.0

    def course(self, nodes: list[int], at: Selection) -> Course:
        each = Selection(self.model, self.scope, Selector("each"))
        return next((self.assigning.gibbs.course([node], each) for node in nodes), Course(ROWS))

    def run(self, selection: Selection, times: int, tally: Tally) -> int:
        """Anneal, and count the assignments. After an error or Ctrl-C all data are in, with the assignments that they
        had at the start."""
        before, changed = self.assignments, self.changed
        try:
            data, sizes = self.gathered()
            with tally.task(len(sizes)):
                for _ in range(times):
                    self._follow(data, sizes, tally.progress.advance)
        finally:
            tally.transitions += self.assignments - before
            tally.accepted += self.changed - changed
        return self.assignments - before

    def _follow(self, data: Data, sizes: Sequence[int], told: Callable[[int], None]) -> None:
        """Follow the sizes, the last of which is all."""
        assignments = Assignments(self.assigning, data)
        saved = self._saved(data, assignments)
        subsample = Subsample(data.count)
        move = self._heat_to if self.tempers else self._move_to
        self._part = 0.0
        # while data are out others are read
        self.model.kept.extended()
        try:
            for step, size in enumerate(sizes):
                move(assignments, subsample, size)
                if not step & 63:
                    told(step)
            assignments.settle()
        except BaseException:
            assignments.abandon()
            self._put_back(data, assignments, saved)
            raise
        finally:
            self.model.kept.extended()

    # --------------------------------------------------------------------------------------- the subsample

    def _move_to(self, assignments: Assignments, subsample: Subsample, size: int) -> None:
        """One step of the schedule: single removals and additions, of which the last is an addition."""
        if subsample.size == size:
            self._churn(assignments, subsample)
            return
        while subsample.size >= size:
            self._remove(assignments, subsample.take_out(self._draw()))
        while subsample.size < size:
            self._assign(assignments, subsample, subsample.take_in(self._draw()), new=True)

    def _churn(self, assignments: Assignments, subsample: Subsample) -> None:
        """Remove a random datum, and assign a random one of those that are then out."""
        going, coming = subsample.take_out(self._draw()), subsample.take_in(self._draw())
        if going != coming:
            self._remove(assignments, going)
        self._assign(assignments, subsample, coming, new=going != coming)

    def _heat_to(self, assignments: Assignments, subsample: Subsample, size: int) -> None:
        """One step with all data in: the likelihood to the power of what would be the subsample's share."""
        with self.model.regenerator.tempered(size / assignments.data.count):
            self._churn(assignments, subsample)

    def _draw(self) -> float:
        return self.model.trace.rng.random()

    def _remove(self, assignments: Assignments, datum: int) -> None:
        self.model.poll()
        assignments.remove(datum)
        self.removals += 1

    def _assign(self, assignments: Assignments, subsample: Subsample, datum: int, new: bool) -> None:
        """One more assignment, a datum's share of a pass through the subsample; after a whole pass the kernels run."""
        self.model.poll()
        self.changed += assignments.assign(datum, new)
        self.assignments += 1
        self._part += 1.0 / subsample.size
        if self._part >= WHOLE:
            self._part = 0.0
            self.passes += 1
            if self.kernels:
                assignments.settle()
            for kernel in self.kernels:
                kernel.run()

    # ------------------------------------------------------------------------------ what there was at the start

    def _saved(self, data: Data, assignments: Assignments) -> dict[tuple[Any, ...], Any]:
        """The value of every assignment, by address. Refuses what cannot be enumerated, and at first a scope without
        any; later on the branches that make them may all be closed."""
        trace = self.model.trace
        nodes = dict.fromkeys(node for datum in range(data.count) for node in assignments.in_scope(datum))
        if not nodes and not self.assignments:
            hint = "the scope of the choices that the data's rows name, as z in (tag 'z n (crp))"
            raise KernelError(f"no datum has a latent assignment in the scope {self.scope}", hint=hint)
        self.assigning.gibbs.refuse(one_of_each_kind(self.model, list(nodes)))
        return {address(trace, node): trace.value(node) for node in nodes}

    def _put_back(self, data: Data, assignments: Assignments, saved: Mapping[tuple[Any, ...], Any]) -> None:
        """Put all data in, with the assignments that were saved; Ctrl-C waits."""
        model = self.model

        def value_of(node: int) -> Any:
            return saved.get(address(model.trace, node), NO_EVIDENCE)

        with model.machine.handled_by(Uninterrupted(model.trace, value_of)):
            for datum in filter(data.is_out, range(data.count)):
                data.add(datum)
            for datum in range(data.count):
                for node in assignments.in_scope(datum):
                    value = value_of(node)
                    if value is not NO_EVIDENCE and not equal(value, model.trace.value(node)):
                        with model.transaction() as change:
                            model.put_value(node, value)
                            change.keep()

    # ------------------------------------------------------------------------------------------- statistics

    @property
    def rows(self) -> int:
        return self.assigning.rows

    def details(self) -> dict[str, float]:
        return {"assignments": self.assignments, "removals": self.removals, "passes of kernels": self.passes}


# ------------------------------------------------------------------------------------------------------ schedules


SCHEDULES: dict[str, Callable[[int, int, int], int]] = {
    "linear": lambda step, count, churns: 1 + step // (churns + 1),
    "sequential": lambda step, count, churns: min(step + 1, count),
    "constant": lambda step, count, churns: count,
}
"""Name -> size after one of the COUNT (T + 1) steps, the first being 0; from the number of data and T (section 2.4)."""


def _schedule(program: InferenceProgram, given: ActionForm, churns: int) -> Sizes:
    item, name = given["SCHEDULE"], given.word("SCHEDULE", SCHEDULES)
    try:
        value = program.value(item) if name is None else name
    except NameUnknown as error:
        error.hint = nearest(item.span.text, SCHEDULES) or error.hint
        raise
    name = value.name if isinstance(value, Symbol) else value
    if isinstance(name, str) and name in SCHEDULES:
        size = SCHEDULES[name]
        return lambda count: array("q", (size(step, count, churns) for step in range(count * (churns + 1))))
    if not isinstance(value, InferenceLambda):
        raise ArgumentError(f"SCHEDULE must be {', '.join(SCHEDULES)} or a procedure, got {show(value)}", item.span)
    procedure = ReplayedProcedure(program, item)
    if procedure.count != 1:
        raise ArgumentError("a schedule takes one argument, the step", item.span)

    def refuse(*_: Any) -> Any:
        raise ArgumentError("a schedule must not be random", item.span)

    def of(count: int) -> Sequence[int]:
        steps = range(1, count * (churns + 1) + 1)
        found = array("q", [_size(procedure((step,), refuse), step, count, item) for step in steps])
        if found[-1] != count:
            raise ArgumentError(
                f"the schedule ends at {found[-1]} of {count} data, in step {len(found)}",
                item.span,
                "a schedule ends with all data; its steps are 1, 2, ..., N (T + 1)",
            )
        return found

    return of


def _size(value: Any, step: int, count: int, item: Expression) -> int:
    if not isinstance(value, (int, float)) or value != value // 1 or not 1 <= value <= count:
        raise ArgumentError(
            f"a schedule's sizes are whole numbers from 1 to the {count} data that there are, got {show(value)} in "
            f"step {step}",
            item.span,
        )
    return int(value)


# ----------------------------------------------------------------------------------------------------- the action


def _refuse_kernels(found: Matched) -> None:
    if "energy" in found and "KERNEL" in found:
        what = "with 'energy no kernels run: they would see the whole likelihood"
        raise ArgumentError(what, found["KERNEL"].span, "kernels after anneal")


def _compile_anneal(program: InferenceProgram, given: ActionForm) -> Part:
    sizes = _schedule(program, given, given.count("T"))
    if program.annealing:
        raise KernelError("an annealing cannot run inside another, whose data come and go", given.span)
    program.annealing = True
    try:
        kernels = given.kernels()
    finally:
        program.annealing = False

    def gathered() -> tuple[Data, Sequence[int]]:
        data = program.data()
        if data is None or not data.count:
            reason = "there are no data to anneal: no loop observes"
            raise KernelError(reason, given.span, "for n in 1...N: [observe ...]")
        return data, sizes(data.count)

    engine = Annealing(program.model, given.scope, gathered, kernels, "energy" in given)
    what = "the likelihood annealed" if engine.tempers else "a subsample of the data grown to all"
    return replace(given.kernel(f"{what}, assignments by gibbs", engine, Selector("all"), 1), parts=kernels)


ANNEAL = Action(
    "anneal",
    ("(anneal SCOPE SCHEDULE ['energy] T [KERNEL ...])",),
    "Subsample annealing: assigns the program's data, from few to all, to what they belong to; the latent assignments "
    "are in SCOPE, SCHEDULE is `linear`, `sequential`, `constant` or a procedure from the step to the number of data, "
    "with T churn steps for each datum. The KERNELs run once for each pass through the data that are in. With "
    "'energy all data stay, and their likelihood is annealed.",
    _compile_anneal,
    _refuse_kernels,
)
