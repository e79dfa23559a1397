"""Evidence: on its way down, from an observed expression to the random choice that takes it, and where it went.

What must never change is which application takes the evidence, not its distribution; a way on which it could move to
another choice is refused, and so is what no parameters could have given.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from venture_lite.errors import EvidenceError, VentureError
from venture_lite.interpreter.ancestry import depends_on_choice
from venture_lite.interpreter.application import within
from venture_lite.interpreter.sources import ValueSource, computed_from, named_node
from venture_lite.interpreter.weights import log_density
from venture_lite.procedures.distributions.improper import CONDITION, FACTOR
from venture_lite.procedures.domains import SEVERAL, vector_of
from venture_lite.procedures.record import Random
from venture_lite.program.code import Code, GlobalRef, Kind, SlotRef
from venture_lite.trace.borrowed import called_body
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.trace import Trace
from venture_lite.values import show

COULD_MOVE = "it could move to another choice"
MADE_ELSEWHERE = f"a random predicate leads the evidence to a choice made elsewhere: {COULD_MOVE}"
OBSERVE_THE_CHOICE = "make the choice inside each branch, or observe the choice itself"

NO_EVIDENCE: Any = object()
"""In place of an observed value, where there is none."""

DETERMINISTIC = "a deterministic value cannot be observed"
OBSERVE_A_CHOICE = "observe a random choice, for example (normal VALUE 0.1)"


class Carrier:
    """Follows evidence through a trace; appends to `found` where it leads to a choice that exists already."""

    def __init__(self, trace: Trace, found: list[tuple[int, Any, list[int]]]) -> None:
        self.trace = trace
        self.found = found

    def leave(self, code: Code, row: int, value: Any) -> None:
        """The row's result is no node of the row: evidence goes on to the node that it names."""
        match code.result:
            case SlotRef(depth=0, slot=slot):
                raise deterministic_evidence(self.trace, code, slot, row)
        self.to_family(code, row, value, [])

    def to_family(self, code: Code, row: int, value: Any, path: list[int]) -> None:
        """Carry evidence from an existing family to the choice that its result is."""
        trace = self.trace
        self._refuse_leaving(code, row)
        for node, source in _way_down(trace, code, row):
            path.append(node)
            if source is None:
                self.found.append((node, value, path))
                return
            at, slot, there = trace.decode(node)
            if at.slots[slot].branches:
                self.refuse_alternatives(at, slot, there)
            if trace.is_memoized(source.code, source.row):
                self.refuse_moving(at, slot, there)
            self._refuse_leaving(source.code, source.row)

    def _refuse_leaving(self, code: Code, row: int) -> None:
        """Refuse a random way to a row whose result names a node outside the row."""
        if self.trace.result_node(code, row) < 0:
            refuse_random_way(self.trace, code, row)

    def refuse_alternatives(self, code: Code, slot: int, row: int) -> None:
        """Refuse an `if` whose predicate is random where an alternative, taken now or not, ends in a deterministic
        value, or by its text leads to a choice made elsewhere."""
        item = code.slots[slot]
        for branch in item.branches:
            wrong = _wrong_end(branch)
            if wrong is not None and depends_on_choice(self.trace, code, row, [item.operator]):
                raise EvidenceError(wrong[0], branch.span, wrong[1], self.trace.call_chain(code, slot, row))

    def refuse_moving(self, code: Code, slot: int, row: int) -> None:
        """Refuse the call of a memoized procedure whose key is random."""
        item = code.slots[slot]
        if depends_on_choice(self.trace, code, row, (item.operator, *item.arguments)):
            message = f"evidence cannot go through a memoized procedure whose key is random: {COULD_MOVE}"
            hint = "observe the choice itself, with a key that is fixed"
            raise EvidenceError(message, hint=hint).at(*self.trace.place(code, slot, row))


def refuse_random_way(trace: Trace, code: Code, row: int) -> None:
    """Refuse evidence that came by a random predicate or operator and would go on to a choice made elsewhere."""
    start, start_row = code, row
    while (caller := trace.caller(code, row)) is not None:
        if not trace.is_observed(caller):
            return
        code, slot, row = trace.decode(caller)
        if depends_on_choice(trace, code, row, [code.slots[slot].operator]):
            raise EvidenceError(MADE_ELSEWHERE, hint=OBSERVE_THE_CHOICE).at(*trace.place(start, -1, start_row))


def _wrong_end(branch: Code) -> tuple[str, str] | None:
    """Why evidence may not come to a branch by a random predicate, and what to do; None where, as far as the text
    shows, a choice takes it that is made in the branch."""
    match branch.result:
        case SlotRef(depth=0, slot=index) if branch.slots[index].kind is Kind.CALL:
            return None if called_body(branch, index) is None else (MADE_ELSEWHERE, OBSERVE_THE_CHOICE)
        case SlotRef(depth=0, slot=index):
            makes_a_choice = branch.slots[index].kind in (Kind.RANDOM, Kind.IF)
            return None if makes_a_choice else (DETERMINISTIC, OBSERVE_A_CHOICE)
        case SlotRef() | GlobalRef():
            return MADE_ELSEWHERE, OBSERVE_THE_CHOICE
    return DETERMINISTIC, OBSERVE_A_CHOICE


def deterministic_evidence(trace: Trace, code: Code, slot: int, row: int) -> VentureError:
    return EvidenceError(DETERMINISTIC, hint=OBSERVE_A_CHOICE).at(*trace.place(code, slot, row))


def _way_down(trace: Trace, code: Code, row: int) -> Iterator[tuple[int, ValueSource | None]]:
    """The nodes that evidence passes, from the result of a row to the choice that takes it, each with its source."""
    while True:
        node = named_node(trace, code, row)
        if node < 0:
            raise deterministic_evidence(trace, code, -1, row)
        source = computed_from(trace, node)
        if source is not None and not source.is_result:
            raise deterministic_evidence(trace, *trace.decode(node))
        yield node, source
        if source is None:
            return
        code, row = source.code, source.row


def evidence_path(trace: Trace, code: Code, row: int) -> list[int]:
    """The nodes that an observe row's evidence passes, from its result to the choice that takes it."""
    return [node for node, _ in _way_down(trace, code, row)]


def refuse_impossible(trace: Trace, code: Code, row: int) -> None:
    """An observed value outside the support whatever the parameters are is an error of the directive."""
    node = evidence_path(trace, code, row)[-1]
    operator, arguments, value = trace.choice(node)
    if log_density(trace, node) != -np.inf:
        return
    try:
        refuse_other_shape(operator, arguments, value)
    except EvidenceError as error:
        raise error.at(*trace.place(*trace.decode(node))) from None
    moving = _moving(trace, node, len(arguments))
    if never_possible(operator, arguments, value, moving):
        item = _impossible_item(operator, arguments, value, moving)
        raise _impossible(trace, node, operator, value, item)


def refuse_other_shape(operator: Random | Exchangeable, arguments: tuple[Any, ...], value: Any) -> None:
    """Refuse a vector observed where parameters are numbers, or of another length than theirs, and the converse."""
    if isinstance(operator, Exchangeable) or operator.item_log_densities is None:
        return
    size = next((len(each) for each in arguments if isinstance(each, SEVERAL)), None)
    vector = vector_of(value)
    observed = None if vector is None else len(vector)
    if observed == size or (vector is None and not isinstance(value, (int, float))):
        return
    name, (first, *others) = operator.name, [argument.name for argument in operator.arguments]
    drawn = "one number" if size is None else f"a vector of {size}"
    found = f"{show(value)} was observed" if observed is None else f"{observed} values were observed"
    hint = "the vectors among its parameters are as long as the value"
    if size is None:
        hint = f"a parameter for each item, as in ({' '.join([name, f'(* {first} (ones {observed}))', *others])})"
    raise EvidenceError(f"{name} is {drawn} here, and {found}", hint=hint)


def _impossible(
    trace: Trace, node: int, operator: Random | Exchangeable, value: Any, item: int | None = None
) -> VentureError:
    name = operator.name if isinstance(operator, Random) else operator.record.name
    found = show(value) if item is None else f"{show(float(value[item]))}, item {item} of a vector,"
    return EvidenceError(why_never(name, found)).at(*trace.place(*trace.decode(node)))


NEVER_WEIGHED = {
    FACTOR.name: "the factor is -inf, whatever the random choices are",
    CONDITION.name: "the condition does not hold, whatever the random choices are",
}


def why_never(name: str, found: str) -> str:
    """Of a value that no parameters of the procedure of this name could give."""
    return NEVER_WEIGHED.get(name) or f"{found} is impossible for {name}, whatever its parameters are"


def take_in(
    trace: Trace, node: int, operator: Exchangeable, value: Any, arguments: tuple[Any, ...], term: float
) -> None:
    """Enter an application, whose log density is `term`, into the statistics of its maker.

    Raises EvidenceError for a value that is impossible whatever the parameters are: statistics know no such value.
    """
    if term == -np.inf and never_possible(operator, arguments, value):
        raise _impossible(trace, node, operator, value)
    trace.statistics.incorporate(operator, value, arguments)


PROBES: dict[str, tuple[Any, ...]] = {
    "real": (0.0,),
    "positive": (1.0,),
    "non-negative": (1.0,),
    "probability": (0.5,),
    "positive probability": (0.5,),
    "integer": (0, 1),
    "count": (1, 2**31),
    "positive integer": (1, 2**31),
}
"""Arguments to try, by domain, where a value is impossible for the arguments at hand."""


def _moving(trace: Trace, node: int, count: int) -> tuple[bool, ...]:
    """Which arguments of a choice depend on random choices."""
    code, slot, row = trace.decode(node)
    given = [depends_on_choice(trace, code, row, [ref]) for ref in code.slots[slot].arguments]
    return (*given, *[False] * (count - len(given)))


def _elsewhere(domain: str, given: Any, value: Any) -> tuple[Any, ...]:
    """What an argument that moves may be in another state in which the value is possible, where no number is."""
    if domain in ("boolean", "log weight"):
        return (True, 0.0)
    if domain == "list":
        return ((value,) * len(given),)
    if domain == "count":
        return (int(np.sum(value)),) if isinstance(value, np.ndarray) else ()
    size = value + 1 if isinstance(value, int) and 0 <= value < MOST_OUTCOMES else np.size(value)
    sizes = {len(given), size} if domain in ("probability vector", "positive vector", "scores") else ()
    return tuple(np.full(size, 1.0 / size) for size in sizes if size)


def _impossible_item(
    operator: Random | Exchangeable, arguments: tuple[Any, ...], value: Any, moving: tuple[bool, ...]
) -> int | None:
    """The first item of a vector that no parameters could have given, if there is one."""
    if isinstance(operator, Exchangeable) or operator.item_log_densities is None or vector_of(value) is None:
        return None
    given = [each if isinstance(each, (int, float)) else vector_of(each) for each in arguments]
    for at in np.flatnonzero(operator.item_log_densities(value, *arguments) == -np.inf).tolist():
        item = tuple([float(each[at]) if isinstance(each, np.ndarray) else each for each in given])
        if never_possible(operator, item, float(value[at]), moving):
            return int(at)
    return None


MOST_OUTCOMES = 2**20
"""A position beyond this is not taken for one of a longer vector of probabilities."""


def never_possible(
    operator: Random | Exchangeable, arguments: tuple[Any, ...], value: Any, moving: tuple[bool, ...] = ()
) -> bool:
    """Whether no parameters give the value positive density: it has none for any of a few typical ones.

    `moving` says which of the arguments depend on random choices: their lists and vectors may be others, too.
    """
    if isinstance(operator, Exchangeable):
        fresh = operator.record.make(*operator.state.arguments)
        return bool(fresh.log_predictive(value, *arguments) == -np.inf)
    if operator.item_log_densities is not None and isinstance(value, SEVERAL):
        return vector_of(value) is None or _impossible_item(operator, arguments, value, moving) is not None
    choices: list[tuple[Any, ...]] = []
    for given, argument, moves in zip(arguments, operator.arguments, moving or (False,) * len(arguments), strict=True):
        domain = argument.domain.name
        if moves and domain == "any":
            return False
        given = within(argument.domain, given)
        choices.append((given, *PROBES.get(domain, ()), *(_elsewhere(domain, given, value) if moves else ())))
    if isinstance(value, (int, float)):
        # bounds: supports that are an interval between arguments
        around = (value - 1, value + 1)
        choices = [(*tried, *around) if len(tried) > 1 else tried for tried in choices]
    for tried in itertools.islice(itertools.product(*choices), 200):
        try:
            if operator.log_density(value, *tried) > -np.inf:
                return False
        except (VentureError, ArithmeticError, LookupError, TypeError, ValueError):
            continue
    return True
