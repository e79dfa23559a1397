"""Of what kind the choices of a site are, whatever the state: what decides which kernels may move them.

Finite and unbounded supports are said by distributions. Whether a continuous choice has a gradient is read off the
Codes: it has none where its number may reach, through whatever is computed from it and in branches that are not taken
now, what jumps: a predicate, a comparison, a memoized key, a parameter by which a density has no derivative. Sizes and
types are not numbers (`is_constant_in_numbers`).

Which procedures a call may apply is found in the same pass, as the procedures that can reach its operator (Shivers
1991, Control-flow analysis of higher-order languages; 1CFA). The body of a procedure is gone through for each place
from which it is called, whatever the depth of its recursion, so that two uses of `map` are told apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from venture_lite.interpreter.choices import Kinds
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.sources import reached
from venture_lite.procedures.record import Deterministic, Maker, Random
from venture_lite.program.code import Code, Constant, GlobalRef, Kind, Ref, Slot, is_constant_in_numbers, named

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

Context = tuple[Any, ...]
"""The site from which a lambda's body was entered and the context around the lambda; () in a directive. A branch has
that of its `if`."""

MOST_BODIES = 5_000
"""Bodies, each as often as it is told apart, beyond which no calls are: procedures in procedures multiply."""


class ValuePlace(NamedTuple):
    """The values of a site in all rows of one context."""

    site: int
    context: Context


class Written(NamedTuple):
    """A lambda with its context, memoized or not."""

    body: Code
    context: Context
    memoized: bool = False


class Drawn(NamedTuple):
    """What a maker makes."""

    record: Maker


class ValueFlow:
    """Where values of the directives of a program may go. Filled when it is made."""

    def __init__(self, directives: list[Code], told_apart: bool = True) -> None:
        self._told_apart = told_apart
        self._bodies: set[tuple[Code, Context]] = set()
        # the procedures that a value may be or hold, and who asks for them
        self._held: dict[ValuePlace, set[Any]] = defaultdict(set)
        self._asking: dict[ValuePlace, list[Callable[[Any], None]]] = defaultdict(list)
        # from which numbers the numbers of a value may come
        self._numbers: dict[ValuePlace, set[ValuePlace]] = defaultdict(set)
        self._jumps: set[ValuePlace] = set()
        # site -> the distributions of its choices
        self.drawn: dict[int, set[Random | Maker]] = defaultdict(set)
        self._todo: list[Callable[[], None]] = [partial(self._enter, code, ()) for code in directives]
        while self._todo and (not told_apart or len(self._bodies) <= MOST_BODIES):
            self._todo.pop()()

    def is_whole(self) -> bool:
        return not self._todo

    def rough(self) -> set[int]:
        """The sites whose numbers may reach what jumps."""
        return {place.site for place in reached(self._jumps, lambda place: self._numbers.get(place, ()))}

    # ------------------------------------------------------------------------------------------------- places

    def _place(self, code: Code, context: Context, ref: Ref) -> ValuePlace | None:
        """The value that a reference reads; None for a constant and for a name without a value."""
        while isinstance(ref, GlobalRef):
            target = named(ref.target)
            if target.code is None:
                return None
            code, context, ref = target.code, (), target.code.result
        if isinstance(ref, Constant):
            return None
        for _ in range(ref.depth):
            assert code.parent is not None
            code, context = code.parent, _around(code, context)
        return ValuePlace(code.first_site + ref.slot, context)

    def _passed(self, code: Code, context: Context, ref: Ref, to: ValuePlace, numbers: bool = True) -> None:
        """What is read goes on to another place, without its numbers if so said."""
        place = self._place(code, context, ref)
        self._ask(code, context, ref, partial(self._hold, to))
        if numbers and place is not None:
            self._numbers[to].add(place)

    def _ends(self, code: Code, context: Context, *refs: Ref) -> None:
        """What is read decides."""
        self._jumps.update(place for ref in refs if (place := self._place(code, context, ref)) is not None)

    def _hold(self, place: ValuePlace, procedure: Any) -> None:
        if procedure not in self._held[place]:
            self._held[place].add(procedure)
            self._todo.extend([partial(ask, procedure) for ask in self._asking[place]])

    def _ask(self, code: Code, context: Context, ref: Ref, ask: Callable[[Any], None]) -> None:
        """Each procedure that what is read may be or hold, now or later."""
        constant = _constant(ref)
        place = None if constant is not None else self._place(code, context, ref)
        held = list(_procedures_in(constant.value) if constant is not None else self._held[place] if place else ())
        if place is not None:
            self._asking[place].append(ask)
        self._todo.extend([partial(ask, procedure) for procedure in held])

    # ------------------------------------------------------------------------------------------------- bodies

    def _enter(self, code: Code, context: Context) -> None:
        if (code, context) in self._bodies:
            return
        self._bodies.add((code, context))
        for index, slot in enumerate(code.slots):
            here = ValuePlace(code.first_site + index, context)
            self._ends(code, context, *(region.block for region in slot.regions))
            if slot.operator is not None:
                self._ends(code, context, slot.operator)
            self._evaluate(code, context, slot, here)

    def _evaluate(self, code: Code, context: Context, slot: Slot, here: ValuePlace) -> None:
        match slot.kind:
            case Kind.DETERMINISTIC | Kind.RANDOM | Kind.MAKER:
                self._apply(code, context, slot, here, slot.record)
            case Kind.LAMBDA:
                assert slot.body is not None
                self._hold(here, Written(slot.body, context))
            case Kind.MEM:
                assert slot.operator is not None
                self._ask(code, context, slot.operator, partial(self._memoize, here))
            case Kind.IF:
                for branch in slot.branches:
                    self._enter(branch, context)
                    self._passed(branch, context, branch.result, here)
            case Kind.CALL:
                assert slot.operator is not None
                self._ask(code, context, slot.operator, partial(self._apply, code, context, slot, here))

    def _memoize(self, here: ValuePlace, procedure: Any) -> None:
        if isinstance(procedure, Written):
            self._hold(here, procedure._replace(memoized=True))

    def _apply(self, code: Code, context: Context, slot: Slot, here: ValuePlace, procedure: Any) -> None:
        """What an application gives, and which of its arguments decide."""
        if isinstance(procedure, Written):
            self._call(code, context, slot.arguments, here, procedure)
            return
        if isinstance(procedure, Maker):
            self._hold(here, Drawn(procedure))
        elif not isinstance(procedure, Deterministic):
            self.drawn[here.site].add(procedure.record if isinstance(procedure, Drawn) else procedure)
        numbers = isinstance(procedure, Deterministic) and not is_constant_in_numbers(procedure)
        for position, argument in enumerate(slot.arguments):
            self._passed(code, context, argument, here, numbers)
            if not _is_smooth(procedure, position):
                self._ends(code, context, argument)

    def _call(
        self, code: Code, context: Context, arguments: tuple[Ref, ...], here: ValuePlace, procedure: Written
    ) -> None:
        if procedure.memoized:
            self._ends(code, context, *arguments)
        body = procedure.body
        inside = self._entered_from(code, context, body, here.site), procedure.context
        for position, argument in enumerate(arguments[: body.arity]):
            self._passed(code, context, argument, ValuePlace(body.first_site + position, inside))
        self._enter(body, inside)
        self._passed(body, inside, body.result, here)

    def _entered_from(self, code: Code, context: Context, body: Code, site: int) -> int:
        """Where a body was entered first: in a recursion the site from which the outermost call came."""
        if not self._told_apart:
            return 0
        at: Code | None = code
        while at is not None and at is not body:
            context, at = _around(at, context), at.parent
        entry: int = site if at is None else context[0]
        return entry


def _around(code: Code, context: Context) -> Context:
    """The context of the body around a body."""
    return context[1] if code.kind == "lambda" else context


def _is_smooth(procedure: Any, position: int) -> bool:
    """Whether what a procedure gives, or its density, does not jump with the numbers of an argument."""
    match procedure:
        case Deterministic(pullback=pullback):
            return pullback is not None
        case Random(gradient=gradient) if gradient is not None:
            return position + 1 < len(gradient.exists) and gradient.exists[position + 1]
        case Maker(gradient=joint) if joint is not None:
            return position < len(joint.exists) and joint.exists[position]
    return False


def _constant(ref: Ref) -> Constant | None:
    """The constant that a reference means, also by a name."""
    while isinstance(ref, GlobalRef) and (code := named(ref.target).code) is not None:
        ref = code.result
    return ref if isinstance(ref, Constant) else None


def _procedures_in(value: Any) -> Iterator[Any]:
    if isinstance(value, (Deterministic, Random, Maker)):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _procedures_in(item)


# ------------------------------------------------------------------------------------------------------- the answer


def _kind(records: set[Random | Maker], is_rough: bool) -> str:
    """Of choices with these distributions."""
    if all(record.transform is None for record in records):
        bounded = all(record.finite if isinstance(record, Maker) else record.support is not None for record in records)
        return "finite" if bounded else "counts"
    return "rough" if is_rough or not all(map(_has_gradient, records)) else "smooth"


def _has_gradient(record: Random | Maker) -> bool:
    """Whether a density has a derivative by its value, in free coordinates."""
    is_density = isinstance(record, Random) and record.gradient is not None and record.gradient.exists[0]
    return is_density and hasattr(record.transform, "free_gradient")


@dataclass(frozen=True, slots=True)
class SiteKinds:
    """The kind of the choices of each site of a program."""

    found: dict[int, str]

    def __call__(self, site: int) -> str | None:
        """None where no choice can stand."""
        return self.found.get(site)


class PresentKinds:
    """Those of one model, looked for anew where its program is another."""

    def __init__(self, model: Model) -> None:
        self._model, self._version, self._kinds = model, -1, SiteKinds({})
        # directives without rows: of one that was interrupted, or failed, the text stays for when it is given again
        self._empty: list[Code] = []

    def present(self) -> SiteKinds:
        trace = self._model.trace
        if self._version != trace.program.version or any(_has_rows(trace, code) for code in self._empty):
            directives = [code for code in trace.program.codes if code.kind == "directive"]
            self._empty = [code for code in directives if not _has_rows(trace, code)]
            self._version, self._kinds = trace.program.version, SiteKinds(_found(trace, directives))
        return self._kinds


def _has_rows(trace: Trace, code: Code) -> bool:
    table = trace.tables[code.index]
    return table.count > table.dead


def _found(trace: Trace, directives: list[Code]) -> dict[int, str]:
    lasting = [code for code in directives if _has_rows(trace, code)]
    flow = ValueFlow(lasting)
    if not flow.is_whole():
        flow = ValueFlow(lasting, told_apart=False)
    rough = flow.rough()
    return {site: _kind(records, site in rough) for site, records in flow.drawn.items()}


def kinds(model: Model) -> Kinds:
    """The kind of the choices of each site, of the program as it stands: 'smooth', 'rough', 'finite' or 'counts'."""
    return model.kept.lasting(PresentKinds, model).present()
