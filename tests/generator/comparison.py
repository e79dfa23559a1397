"""Two comparisons of every kernel on a random program.

*Draw for draw.* A program and its plain spelling mean the same, and are run from one seed. Every draw, every decision
and the log density of every state must agree: names and wrappers take no random numbers, and hardly ever change the
order in which they are taken. Where they do change it, both spellings must have the same answer.

*With the enumeration.* A finite program's draws must be worlds of its enumeration, each state must weigh what the world
weighs, and the worlds must come as often as they should.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.generator.directives import random_program
from tests.generator.loops import without_pass
from tests.generator.programs import Program, Step
from tests.generator.session import check, infer, load, perform
from tests.generator.worlds import Answer, TooManyWorlds, World, worlds
from tests.statistics import Comparison, Table, autocorrelation_time, compare

if TYPE_CHECKING:
    from venture_lite import Venture

KERNELS = (
    "(mh default one 4)",
    "(mh default all 3)",
    "(mh default each 1)",
    "(mh default ordered 1)",
    "(mh s each 1)",
    "(gibbs default one 4)",
    "(gibbs default each 1)",
    "(gibbs default all 1)",
    "(gibbs (choices 'finite) each 1)",
    "(gibbs d each 1)",
    "(gibbs s one 2)",
    "(pgibbs default ordered 3 1)",
    "(pgibbs default ordered 3 'ancestor 1)",
    "(cycle ((gibbs default one 2) (mh default each 1)) 1)",
    "(cycle ((pgibbs default ordered 2 1) (gibbs default each 1)) 1)",
    "(mixture (0.5 (mh default one 3) 0.5 (gibbs default each 1)) 2)",
    "(rejection default one 2)",
    "(rejection default each 1)",
    "(rejection default all 1)",
)
GENERAL = (
    "(mh default one 4)",
    "(mh default all 2)",
    "(mh default each 1)",
    "(mh default ordered 1)",
    "(mh s one 2)",
    "(mh s each 1)",
    "(mh r one 'drift 0.7 3)",
    "(mh r all 'drift 0.2 2)",
    "(gibbs d one 2)",
    "(gibbs d each 1)",
    "(pgibbs default ordered 3 1)",
    "(pgibbs default ordered 3 'ancestor 1)",
    "(slice r each 1 3 1)",
    "(cycle ((mh default one 2) (gibbs d each 1)) 2)",
)
ENOUGH = 500
"""Draws by which a kernel is judged at first."""
TRIES = 3_000
"""Of rejection, before it is given up."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a kernel gave: draws of each query, accepted transitions, log density at the end, or why it could not."""

    draws: list[list[Any]] = field(default_factory=list)
    accepted: list[tuple[int, int]] = field(default_factory=list)
    log_score: float = 0.0
    refused: str = ""
    interrupted: bool = False


def step(venture: Venture, kernel: str, queries: Sequence[str], draws: int) -> Outcome:
    """Run a kernel for that many draws of the queries."""
    from venture_lite import VentureError

    collected = " ".join(f"(labelled {query} q{i})" for i, query in enumerate(queries))
    for model in venture.traces:
        model.interrupt_after = TRIES if "rejection" in kernel else None
    try:
        found = infer(venture, f"(repeat {draws} (do {kernel} (collect {collected})))")
    except VentureError as error:
        return Outcome(refused=str(error))
    except KeyboardInterrupt:
        return Outcome(interrupted=True)
    finally:
        for model in venture.traces:
            model.interrupt_after = None
    if len(found) < len(queries):
        return Outcome(interrupted=True)
    columns = [np.ravel(np.asarray(found[f"q{i}"], dtype=float)).tolist() for i in range(len(queries))]
    accepted = [(row.transitions, row.accepted) for row in found.statistics]
    return Outcome(columns, accepted, float(np.ravel(venture.log_score())[0]))


def same(one: Outcome, other: Outcome) -> str:
    """How two outcomes differ; empty where they agree."""
    if bool(one.refused) != bool(other.refused):
        return f"refused: {one.refused or other.refused}"
    if one.accepted != other.accepted:
        return f"accepted {one.accepted}, plainly {other.accepted}"
    for i, (a, b) in enumerate(zip(one.draws, other.draws, strict=True)):
        if not np.allclose(a, b, rtol=1e-12, atol=1e-12):
            at = int(np.argmax(~np.isclose(a, b, rtol=1e-12, atol=1e-12)))
            return f"query {i}, draw {at}: {a[at]}, plainly {b[at]}"
    close = math.isclose(one.log_score, other.log_score, rel_tol=1e-9, abs_tol=1e-9)
    return "" if close or one.log_score == other.log_score else f"log score {one.log_score}, plainly {other.log_score}"


class Fault(AssertionError):
    """A kernel differs; the message is the program, ready to be run."""


class Departure(Fault):
    """A kernel's draws leave those of the plain spelling, for one that may take its random numbers in another order."""

    def __init__(self, kernel: str, message: str) -> None:
        super().__init__(message)
        self.kernel = kernel


def told(program: Program, what: str) -> str:
    operations = "\n".join(f"; {s.label}: {s.text}" for s in program.operations)
    return (
        f"; {what}\n" + "\n".join(f"{s.label}: {s.text}" for s in program.directives) + f"\n; operations:\n{operations}"
    )


@dataclass(slots=True)
class Pair:
    """A program and its plain spelling, side by side in two sessions of one seed."""

    program: Program
    seed: int
    kernels: tuple[str, ...]
    # The program is finite.
    exactly: bool = True
    dressed: Venture = field(init=False)
    plain: Venture = field(init=False)

    def __post_init__(self) -> None:
        self.dressed, self.plain = load(self.program, self.seed), load(self.program.plain, self.seed)

    def compare(self, draws: int) -> int:
        """Run every kernel, and the operations between them; how many kernels ran. Raises Fault, Departure."""
        self._both(self.kernels[0], draws)
        for number, operation in enumerate(self.program.operations):
            perform(self.dressed, operation)
            for plain in Program((), (operation,), ()).plain.operations:
                perform(self.plain, plain)
            check(self.dressed)
            self._both(self.kernels[number % len(self.kernels)], 2)
        compared = [kernel for kernel in self.kernels if self._both(kernel, draws)]
        # The others have the audit alone, when the sessions need no longer agree.
        for kernel in self.kernels:
            if kernel not in compared:
                step(self.dressed, kernel, [q.dressed for q in self.program.queries], 2)
                check(self.dressed)
        return len(compared)

    def _both(self, kernel: str, draws: int) -> bool:
        if not self._comparable(kernel):
            return False
        draws = max(1, draws // 5) if kernel == "(gibbs default all 1)" else draws
        one = step(self.dressed, kernel, [q.dressed for q in self.program.queries], draws)
        other = step(self.plain, kernel, [q.plain for q in self.program.queries], draws)
        check(self.dressed)
        if one.interrupted or other.interrupted:
            raise Interrupted
        if found := same(one, other):
            message = told(self.program, f"seed {self.seed}, {kernel}: {found}")
            raise Fault(message) if self._in_one_order(kernel) else Departure(kernel, message)
        return not one.refused

    def _in_one_order(self, kernel: str) -> bool:
        """Whether both spellings take their random numbers in one order, for certain.

        Tries of rejection depend on bounds, which are sharper where a branch is not taken than where it is fused with
        what surrounds it. A block of everything, and particles, are regenerated in the order in which nodes are due.
        Programs beyond the finite ones make and drop choices, in the order in which wrappers leave them.
        """
        return self.exactly and not any(word in kernel for word in ("rejection", "pgibbs", " all "))

    def _comparable(self, kernel: str) -> bool:
        """Whether both spellings take their random numbers in one order.

        Where wrappers are calls and branches, a block of everything is regenerated in another order, and bounds may be
        sharper in one spelling; particles on the trace itself draw for what a wrapper leaves there, and those in
        columns choose their paths strand by strand, which a name that nobody reads may join."""
        if "(choices" in kernel:
            # a block is what one evaluation chose, and a spelling of several directives has several
            return False
        if "pgibbs" in kernel:
            found = columns(self.dressed)
            return self.exactly and bool(found) and found == columns(self.plain)
        return not (self.program.heavy and ("rejection" in kernel or " all " in kernel))


def compare_spellings(program: Program, seed: int, kernels: tuple[str, ...], finite: bool, draws: int = 20) -> int:
    """Draw for draw, in two stages; how many kernels ran. Raises Fault, Interrupted."""
    try:
        return Pair(program, seed, kernels, finite).compare(draws)
    except Departure as departure:
        for spelling in (program, program.plain) if finite else ():
            assert_confirmed(spelling, seed, departure.kernel)
        if not finite:
            assert_one_answer(program, seed, departure.kernel)
        return 1


def assert_one_answer(program: Program, seed: int, kernel: str) -> None:
    """Both spellings have the same means. Raises Fault."""
    queries = [query.dressed for query in program.queries], [query.plain for query in program.queries]
    samples = []
    for spelling, expressions in zip((program, program.plain), queries, strict=True):
        venture = load(spelling, seed + 1_000_003)
        for operation in spelling.operations:
            perform(venture, operation)
        outcome = step(venture, f"(do {kernel} (mh default one 4))", expressions, 10 * ENOUGH)
        if outcome.refused or outcome.interrupted:
            raise Interrupted(outcome.refused)
        samples.append(outcome.draws)
    for query, one, other in zip(program.queries, *samples, strict=True):
        if abs(z := standard_errors(one, other)) > CONFIRM:
            raise Fault(told(program, f"seed {seed}, {kernel}: {query.dressed} is apart by {z:.1f} standard errors"))


def standard_errors(one: Sequence[float], other: Sequence[float]) -> float:
    """By how many of them the means of two chains of one distribution are apart."""
    a, b = np.asarray(one), np.asarray(other)
    variance = max(float(a.var()), float(b.var()))
    error = math.sqrt(variance * (autocorrelation_time(a) / len(a) + autocorrelation_time(b) / len(b)))
    return 0.0 if a.mean() == b.mean() else float(a.mean() - b.mean()) / max(error, 1e-12)


def columns(venture: Venture) -> list[list[list[int]]]:
    """The blocks that particles carry side by side, as strands of one shape; none where they move on the trace."""
    from venture_lite.interpreter.schedule import Schedule, alike, strands_of
    from venture_lite.interpreter.selection import Selection, Selector

    (model,) = venture.traces
    blocks = Selection(model, "default", Selector("ordered")).in_order()
    schedule = Schedule(model.trace, blocks)
    if not schedule.is_plain():
        return []
    number = {node: at for at, block in enumerate(blocks) for node in block}
    return [
        [[number[node] for node in strand.nodes() if node in number] for strand in strands]
        for strands in alike(schedule, strands_of(schedule))
    ]


@cache
def finite_program(seed: int) -> Program:
    """The finite program of this seed: the first of its attempts whose worlds can be enumerated, and do differ."""
    for attempt in range(100):
        program = random_program(seed, finite=True, attempt=attempt)
        try:
            found = worlds(program.plain.directives, [query.plain for query in program.queries], {})
        except TooManyWorlds:
            continue
        if len({world.values for world in found}) > 1:
            return program
    raise AssertionError(f"no finite program of seed {seed}")


class Interrupted(Exception):
    """Rejection met evidence that is too improbable."""


def remaining(program: Program) -> list[Step]:
    """The directives that stand after the operations."""
    steps = list(program.directives)
    for operation in program.operations:
        if operation.kind == "forget":
            steps = [left for step in steps for left in after_forgetting(step, operation)]
        elif operation.kind in ("assume", "observe", "predict"):
            steps.append(operation)
    return steps


def after_forgetting(step: Step, forgotten: Step) -> list[Step]:
    """What stands of a step."""
    if step.label != forgotten.label:
        return [step]
    return [] if forgotten.text == f"[forget {step.label}]" else without_pass(step, forgotten)


def frozen(program: Program, venture: Venture) -> dict[str, Any]:
    """Values that became constants, by their labels."""
    return {step.label: venture.report(step.label) for step in program.operations if step.kind == "freeze"}


SLOW = 4.0
"""A chain that takes more sweeps than this to forget its state says too little."""
SUSPECT = 3.5
CONFIRM = 6.5
"""Standard errors. With 1,000 programs, 18 kernels and 20 comparisons each, about 1 in 50 chains is suspect; of their
some 7,000 comparisons one beyond CONFIRM has probability 8e-11 each, 6e-7 in all."""


@dataclass(slots=True)
class Exact:
    """A finite program in a session, beside its enumeration."""

    program: Program
    seed: int
    # Gives the worlds of directives, with the values of queries.
    enumerate: Callable[..., list[World]] = worlds
    venture: Venture = field(init=False)
    answer: Answer = field(init=False)
    joint: dict[tuple[float, ...], float] = field(init=False)
    summed_out: bool = field(init=False)

    def __post_init__(self) -> None:
        """Raises TooManyWorlds."""
        self.venture = load(self.program, self.seed)
        for operation in self.program.operations:
            perform(self.venture, operation, self.program.parameters)
            infer(self.venture, "(mh default one 5)")
        queries = [query.dressed for query in self.program.queries]
        found = self.enumerate(
            remaining(self.program), queries, frozen(self.program, self.venture), self.program.parameters
        )
        self.answer = Answer.of(found)
        # Its worlds leave out a parameter that stands in the trace.
        self.summed_out = self.enumerate is not worlds or any(
            "make_uc_" in step.text for step in remaining(self.program)
        )
        self.joint = self.answer.joint()

    def suspicious(self, kernel: str, draws: int, beyond: float) -> str:
        """What in that many draws of a kernel is further than that from the answer; empty if nothing is."""
        outcome = step(self.venture, kernel, [query.dressed for query in self.program.queries], draws)
        check(self.venture)
        if outcome.interrupted or outcome.refused:
            raise Interrupted(outcome.refused)
        drawn = list(zip(*outcome.draws, strict=True))
        strange = [values for values in drawn if values not in self.joint]
        if strange:
            raise Fault(self._told(kernel, f"{strange[0]} is in no world"))
        scores = self.answer.scores()[drawn[-1]]
        weighed = any(math.isclose(outcome.log_score, score, rel_tol=1e-9, abs_tol=1e-9) for score in scores)
        if not weighed and not self.summed_out:
            raise Fault(self._told(kernel, f"the state weighs {outcome.log_score}, its worlds {scores[:5]}"))
        # A forced start may be a state that nobody comes back to.
        settled = drawn[len(drawn) // 10 :]
        worst = max(self._comparisons(settled), key=lambda comparison: abs(comparison[1].z))
        return f"{worst[0]} {worst[1]}" if abs(worst[1].z) > beyond else ""

    def _comparisons(self, drawn: list[tuple[float, ...]]) -> Iterator[tuple[str, Comparison]]:
        """Of the worlds as the queries tell them apart, and of each query."""
        codes = {values: float(i) for i, values in enumerate(self.joint)}
        coded = {codes[values]: p for values, p in self.joint.items()}
        yield from (("all", found) for found in compare([codes[values] for values in drawn], Table(coded)))
        for i, query in enumerate(self.program.queries):
            marginal: dict[float, float] = {}
            for values, p in self.joint.items():
                marginal[values[i]] = marginal.get(values[i], 0.0) + p
            yield from ((query.dressed, found) for found in compare([v[i] for v in drawn], Table(marginal)))

    def _told(self, kernel: str, what: str) -> str:
        return told(self.program, f"seed {self.seed}, {kernel}: {what}")


def assert_finds_the_answer(program: Program, seed: int, kernel: str) -> bool:
    """In two stages; whether the kernel could be judged. Raises Fault.

    Where a chain that moves one choice at a time is slow, the suspect is judged by single steps from independent draws
    of the posterior: `rejection`, which is judged by itself.
    """
    kernel = kernel if "default" in kernel else f"(do {kernel} (mh default one 4))"
    try:
        first = Exact(program, seed)
        if kernel == "(gibbs default all 1)" and len(first.answer.worlds) > 50:
            return False
        suspicion = first.suspicious(kernel, ENOUGH, SUSPECT)
        if not suspicion:
            return True
        assert_confirmed(program, seed, kernel)
    except (TooManyWorlds, Interrupted):
        return False
    return True


def assert_confirmed(program: Program, seed: int, kernel: str) -> None:
    """The second stage, of another seed. Raises Fault, TooManyWorlds, Interrupted."""
    exact = Exact(program, seed + 1_000_003)
    if exact.answer.relaxation() > SLOW:
        # Its draws are made independent of each other, so that only the kernel's own step is judged.
        kernel = f"(do (rejection default all 1) {kernel})"
    if suspicion := exact.suspicious(kernel, 40 * ENOUGH, CONFIRM):
        raise Fault(told(program, f"seed {seed}, {kernel}: {suspicion}"))
