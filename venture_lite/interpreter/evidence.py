"""Evidence: on its way down, from an observed expression to the random choice that takes it, and where it went.

Evidence on a list of choices, made by `list` or `pair` (as `map` does, item by item), is taken apart before the items
are evaluated, so that each choice has its value as if it were observed alone.

What must never change is which application takes the evidence, not its distribution; a way on which it could move to
another choice is refused, and so is what no parameters could have given.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from venture_lite.errors import EvidenceError, VentureError
from venture_lite.interpreter.ancestry import depends_on_choice
from venture_lite.interpreter.sources import ValueSource, computed_from, node_named
from venture_lite.interpreter.weights import log_density
from venture_lite.procedures.checks import within
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.distributions.improper import CONDITION, FACTOR
from venture_lite.procedures.domains import SEVERAL, vector_of
from venture_lite.procedures.record import Random
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.program.code import Code, GlobalRef, Kind, Ref, SlotRef
from venture_lite.trace.borrowed import called_body
from venture_lite.trace.runtime import Exchangeable
from venture_lite.trace.trace import Trace
from venture_lite.values import Distribution, show

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
        """The row's result is no node of the row: evidence goes on to the node that it names, or to those that it
        lists, but for items that took theirs in the row."""
        if item_refs(code) is None:
            match code.result:
                case SlotRef(depth=0, slot=slot):
                    raise deterministic_evidence(self.trace, code, slot, row)
            self.to_family(code, row, value, [])
            return
        for ref, part in self.parts(code, row, value):
            if taking_slot(code, ref) < 0:
                refuse_random_way(self.trace, code, row)
                self._carry(_way_down(self.trace, code, row, part, ref), [])

    def parts(self, code: Code, row: int, value: Any) -> list[tuple[Ref, Any]]:
        """What a row's result lists, each with its part of the evidence. Raises EvidenceError where the lists are not
        as long, or one choice stands in them twice."""
        try:
            found = parts_of(code, value)
        except EvidenceError as error:
            raise error.at(*_place_of_directive(self.trace, code, row)) from None
        own = [ref for ref, _ in found if taking_slot(code, ref) >= 0]
        if len(set(own)) < len(own):
            twice = EvidenceError("one choice stands twice in the list that is observed", hint="observe it once")
            raise twice.at(*_place_of_directive(self.trace, code, row))
        return found

    def to_family(self, code: Code, row: int, value: Any, path: list[int]) -> None:
        """Carry evidence from an existing family to the choice that its result is, or to those that it lists."""
        self._refuse_leaving(code, row)
        self._carry(_way_down(self.trace, code, row, value), path)

    def _carry(self, way: Iterator[tuple[int, ValueSource | None, Any]], path: list[int]) -> None:
        trace = self.trace
        for node, source, value in way:
            path.append(node)
            if source is None:
                self.found.append((node, plain(value), path))
                path = []
                continue
            at, slot, there = trace.decode(node)
            if at.slots[slot].branches:
                self.refuse_alternatives(at, slot, there)
            if trace.is_memoized(source.code, source.row):
                self.refuse_moving(at, slot, there)
            self._refuse_leaving(source.code, source.row)

    def _refuse_leaving(self, code: Code, row: int) -> None:
        """Refuse a random way to a row whose result names a node outside the row."""
        refs = item_refs(code)
        leaves = any(taking_slot(code, ref) < 0 for ref in refs or ())
        if leaves or (refs is None and self.trace.result_node(code, row) < 0):
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


def _place_of_directive(trace: Trace, code: Code, row: int) -> tuple[Any, ...]:
    """Where the directive stands that led to a row."""
    while (caller := trace.caller(code, row)) is not None:
        code, _, row = trace.decode(caller)
    return trace.place(code, -1, row)


def _wrong_end(branch: Code) -> tuple[str, str] | None:
    """Why evidence may not come to a branch by a random predicate, and what to do; None where, as far as the text
    shows, choices take it that are made in the branch."""
    refs = item_refs(branch)
    ends = (_wrong_item(branch, ref) for ref in ((branch.result,) if refs is None else refs))
    return next(filter(None, ends), None)


def _wrong_item(branch: Code, ref: Ref) -> tuple[str, str] | None:
    match ref:
        case SlotRef(depth=0, slot=index) if branch.slots[index].kind is Kind.CALL:
            return None if called_body(branch, index) is None else (MADE_ELSEWHERE, OBSERVE_THE_CHOICE)
        case SlotRef(depth=0, slot=index):
            makes_a_choice = branch.slots[index].kind in (Kind.RANDOM, Kind.IF)
            return None if makes_a_choice else (DETERMINISTIC, OBSERVE_A_CHOICE)
        case SlotRef() | GlobalRef():
            return MADE_ELSEWHERE, OBSERVE_THE_CHOICE
    return DETERMINISTIC, OBSERVE_A_CHOICE


# ------------------------------------------------------------------------------------------------------- lists

LIST, PAIR = PROCEDURES["list"], PROCEDURES["pair"]

A_VALUE_EACH = "as many values as the list has items: [observe (list A B) (list 1 2)]"


@dataclass(frozen=True, slots=True)
class ListEvidence:
    """The values from a position on of a list or vector that was observed."""

    values: Any
    start: int = 0

    def plain(self) -> tuple[Any, ...]:
        """The values as a list."""
        return tuple(map(_item, self.values[self.start :]))


def plain(evidence: Any) -> Any:
    """Evidence as the value that a choice has."""
    return evidence.plain() if isinstance(evidence, ListEvidence) else evidence


def list_slot(code: Code, ref: Ref) -> int:
    """The slot of the row that makes a list which `ref` reads; -1 where none does."""
    match ref:
        case SlotRef(depth=0, slot=slot) if code.slots[slot].record in (LIST, PAIR):
            return slot
    return -1


@cache
def item_refs(code: Code) -> tuple[Ref, ...] | None:
    """What a row's result lists, lists in it taken apart as far as the row makes them; None where it is no list."""
    if list_slot(code, code.result) < 0:
        return None
    found: list[Ref] = []
    todo = [code.result]
    while todo:
        ref = todo.pop()
        slot = list_slot(code, ref)
        if slot < 0:
            found.append(ref)
        else:
            todo.extend(reversed(code.slots[slot].arguments))
    return tuple(found)


def taken_for(count: int, evidence: Any) -> list[Any]:
    """The values for a list of so many items. Raises EvidenceError where there are more or fewer."""
    values, start = _values_from(evidence)
    if len(values) - start != count:
        raise _unequal(str(start + count), values)
    return [_item(value) for value in values[start:]]


def _values_from(evidence: Any) -> tuple[Any, int]:
    """All values of a list that is observed, and the position from which on they are at hand."""
    if isinstance(evidence, ListEvidence):
        return evidence.values, evidence.start
    if isinstance(evidence, tuple) or (isinstance(evidence, np.ndarray) and evidence.ndim):
        return evidence, 0
    raise EvidenceError(f"a list of choices is observed, and {show(evidence)} is no list", hint=A_VALUE_EACH)


def taken_apart(code: Code, slot: int, evidence: Any) -> list[tuple[Ref, Any]]:
    """What a slot that makes a list is applied to, each with its part of the evidence.

    Raises EvidenceError where they are not as many.
    """
    item = code.slots[slot]
    if item.record is LIST:
        return list(zip(item.arguments, taken_for(len(item.arguments), evidence), strict=True))
    values, start = _values_from(evidence)
    if len(values) == start:
        raise _unequal(f"more than {start}", values)
    first, rest = item.arguments
    return [(first, _item(values[start])), (rest, ListEvidence(values, start + 1))]


def parts_of(code: Code, evidence: Any) -> list[tuple[Ref, Any]]:
    """What a row's result lists, each with its part of the evidence."""
    found: list[tuple[Ref, Any]] = []
    todo = [(code.result, evidence)]
    while todo:
        ref, value = todo.pop()
        slot = list_slot(code, ref)
        if slot < 0:
            found.append((ref, value))
        else:
            todo.extend(reversed(taken_apart(code, slot, value)))
    return found


def taking_slot(code: Code, ref: Ref) -> int:
    """The slot of the row that an item is, where it takes its evidence when it is evaluated; else -1."""
    match ref:
        case SlotRef(depth=0, slot=slot) if code.slots[slot].stored:
            return slot if code.slots[slot].kind in (Kind.RANDOM, Kind.CALL, Kind.IF) else -1
    return -1


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _unequal(items: str, values: Any) -> EvidenceError:
    is_one, are = items == "1", "value was" if len(values) == 1 else "values were"
    message = f"a list of {items} {'item' if is_one else 'items'} is observed, and {len(values)} {are} given"
    return EvidenceError(message, hint=A_VALUE_EACH)


# ------------------------------------------------------------------------------------------- the way down


def deterministic_evidence(trace: Trace, code: Code, slot: int, row: int) -> VentureError:
    return EvidenceError(DETERMINISTIC, hint=OBSERVE_A_CHOICE).at(*trace.place(code, slot, row))


def _way_down(
    trace: Trace, code: Code, row: int, evidence: Any = NO_EVIDENCE, ref: Ref | None = None
) -> Iterator[tuple[int, ValueSource | None, Any]]:
    """The nodes that evidence passes, from the result of a row, or what `ref` reads there, to the choices that take it,
    each with its source and the evidence on it; of a list one item after the other."""
    todo = [(code, row, code.result if ref is None else ref, evidence)]
    while todo:
        code, row, ref, evidence = todo.pop()
        node = node_named(trace, code, row, ref)
        source = computed_from(trace, node) if node >= 0 else None
        if node >= 0 and (source is None or source.is_result):
            yield node, source, evidence
            if source is not None:
                todo.append((source.code, source.row, source.code.result, evidence))
            continue
        if node >= 0:
            code, slot, row = trace.decode(node)
            ref = SlotRef(0, slot)
        slot = list_slot(code, ref)
        if slot < 0:
            raise deterministic_evidence(
                trace, code, ref.slot if isinstance(ref, SlotRef) and not ref.depth else -1, row
            )
        if evidence is NO_EVIDENCE:
            parts = [(item, NO_EVIDENCE) for item in code.slots[slot].arguments]
        else:
            parts = taken_apart(code, slot, evidence)
        todo.extend((code, row, item, part) for item, part in reversed(parts))


def evidence_path(trace: Trace, code: Code, row: int) -> list[int]:
    """The nodes that an observe row's evidence passes, from its result to the choices that take it."""
    return [node for node, *_ in _way_down(trace, code, row)]


def evidence_nodes(trace: Trace, code: Code, row: int) -> list[int]:
    """The choices that an observe row's evidence fixes: one, or those of a list."""
    return [node for node, source, _ in _way_down(trace, code, row) if source is None]


def refuse_impossible(trace: Trace, code: Code, row: int) -> None:
    """An observed value outside the support whatever the parameters are is an error of the directive."""
    for node in evidence_nodes(trace, code, row):
        _refuse_impossible_choice(trace, node)


def _refuse_impossible_choice(trace: Trace, node: int) -> None:
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
    if domain == "distribution":
        return (Distribution([(value, 0.0)]),)
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
        try:
            return vector_of(value) is None or _impossible_item(operator, arguments, value, moving) is not None
        except RowByRow:
            # as many items as there are can only be of other arguments
            return not any(moving)
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
