"""The worlds of a query: every path of its random choices, followed one after the other in a scratch trace.

A path is a tape of decisions, one for each choice in the order of evaluation; the next one differs in the last decision
that has values left. A condition that does not hold ends a path where it stands, and with it all that would have come
after. What a query gives depends on nothing but the values that it reads, so that it is kept by these.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, zip_longest
from operator import is_
from typing import TYPE_CHECKING, Any, Protocol

from venture_lite.errors import CallSite, KernelError, LimitError, Undrawable, VentureError
from venture_lite.interpreter.answers import NEAR, Differs, is_near
from venture_lite.interpreter.application import simulate
from venture_lite.interpreter.candidates import MOST_CANDIDATES, support_of
from venture_lite.interpreter.constants import Constants
from venture_lite.interpreter.evidence import NO_EVIDENCE
from venture_lite.interpreter.handler import Handler
from venture_lite.interpreter.weights import density_of
from venture_lite.language.syntax import Form, Name
from venture_lite.procedures.distributions.improper import CONDITION, WEIGHED
from venture_lite.program.code import Code, Constant, Global, GlobalRef, Ref
from venture_lite.program.lexical import LexicalScope
from venture_lite.program.lift import ARGUMENT_PREFIX
from venture_lite.program.queries import FoundText, Handed, Meaning, OwnProcedure, QueryText
from venture_lite.trace.runtime import Closure, Exchangeable, Memo
from venture_lite.values import Dictionary, Distribution, Symbol, exact_key, key_of, show

if TYPE_CHECKING:
    from venture_lite.interpreter.model import Model
    from venture_lite.trace.trace import Trace

SINGLE = frozenset((float, int, bool, str, Symbol))
"""Values that are keys themselves."""

MOST_KEPT = 100_000
"""Values of the distributions that one query keeps; those of longest ago go first."""

MOST_COMPARED = 8
"""Worlds of a fast way that are compared with the interpreter's where it is used first."""

MOST_CHOICES = 1000
"""Of one world: a recursion that may go on for ever has no last world."""

DEEPEST = 30
"""Queries that may be evaluated one inside another: each takes its share of Python's stack."""


class Query:
    """What `enumerate` stands for, as a function of the values that its text reads. Mutable: it keeps the distributions
    that it found, and the trace in which it looks for them."""

    def __init__(self, host: Model, form: Form) -> None:
        self.host = host
        self.form = form
        # set when the names are looked up, and again when a name is bound that was not there
        self.text: QueryText | None = None
        self._kept: dict[Hashable, Distribution] = {}
        # of all that is kept
        self._size = 0
        self._latest: tuple[tuple[Any, ...], Distribution] | None = None
        # what the latest call met, which is evaluated once more to find its place
        self._failed: tuple[tuple[Any, ...], VentureError] | None = None
        # of each value of the latest call that is neither number nor symbol, what stands for it in keys; and by key
        self._tokens: list[tuple[Any, Hashable]] = []
        self._token_of: dict[Hashable, Hashable] = {}
        self._scratch: Scratch | None = None
        self._direct: Direct | None = None
        self._looked_up: QueryText | None = None

    def __reduce__(self) -> Any:
        # in another process it is found by its place in the program
        raise TypeError("a query is sent by reference")

    def __call__(self, *values: Any) -> Distribution:
        if self._looked_up is not self.text:
            self._forget()
        if self._latest is not None and all(map(is_, values, self._latest[0])):
            return self._latest[1]
        if self._failed is not None and all(map(is_, values, self._failed[0])):
            raise self._failed[1]
        key = self._key(values)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self._enumerated(values)
            self._size += len(found) + 1
            while self._size > MOST_KEPT and len(self._kept) > 1:
                self._size -= len(self._kept.pop(next(iter(self._kept)))) + 1
            if len(self._token_of) > MOST_KEPT:
                self._forget()
        self._latest, self._failed = (values, found), None
        return found

    def _key(self, values: tuple[Any, ...]) -> Hashable:
        """What the distribution is kept by, one for values that no procedure tells apart: lists, vectors and
        dictionaries, which mostly are the same from call to call, are hashed once."""
        if len(self._tokens) != len(values):
            self._tokens = [(NO_EVIDENCE, None)] * len(values)
        key = []
        for position, value in enumerate(values):
            if value.__class__ in SINGLE:
                if value != value:
                    key_of(value)
                # most values: texts and symbols equal nothing else, and only 0.0 has a sign that may differ
                is_plain = value.__class__ is str or value.__class__ is Symbol
                key.append(value if is_plain else (value.__class__, value or repr(value)))
                continue
            known, token = self._tokens[position]
            if known is not value:
                key_of(value)  # NaN is refused
                token = self._token_of.setdefault(exact_key(value), object())
                self._tokens[position] = value, token
            key.append(token)
        return tuple(key)

    def _forget(self) -> None:
        self._kept.clear()
        self._token_of.clear()
        self._tokens.clear()
        self._size, self._latest, self._failed = 0, None, None
        self._scratch, self._direct, self._looked_up = None, None, self.text

    def _found(self, scratch: Scratch, values: tuple[Any, ...]) -> Distribution:
        """By the fast way where there is one, by the interpreter, or both ways and compared."""
        host = self.host
        if host.direct is None:
            return scratch.distribution(values)
        if self._direct is None:
            self._direct = host.direct(scratch)

        def difference(found: list[tuple[Any, float]] | VentureError) -> str | None:
            return None if isinstance(found, VentureError) else scratch.difference(values, found)

        try:
            direct = partial(self._direct.weighed, values)
            worlds = host.answers.believed(self, "worlds of a query", direct, difference)
        except (NotDirect, Differs):
            return scratch.distribution(values)
        return Distribution(worlds)

    def _enumerated(self, values: tuple[Any, ...]) -> Distribution:
        """Raises VentureError, whose calls end with the query, for what cannot be evaluated or enumerated."""
        try:
            for value in values:
                refuse_procedures(value)
            if self.host.query_depth >= DEEPEST:
                hint = "give the recursion of queries a base case"
                raise LimitError(f"more than {DEEPEST} queries inside one another", self.form.span, hint)
            if self._scratch is None:
                assert self.text is not None
                self._scratch = Scratch(self.host, self.text)
            return self._found(self._scratch, values)
        except VentureError as error:
            self._scratch = self._direct = None
            error.chain = (*error.chain, CallSite("enumerate", self.form.span))
            self._failed = values, error.at(self.form.span)
            raise
        except BaseException:
            self._scratch = self._direct = None
            raise


class NotDirect(Exception):
    """Worlds that the interpreter is to evaluate."""


class Direct(Protocol):
    """A fast way through the worlds of a query."""

    def weighed(self, values: tuple[Any, ...]) -> list[tuple[Any, float]]:
        """The value of each possible world, with its log weight. Raises NotDirect."""


def refuse_procedures(value: Any, what: str = "a query reads") -> None:
    """Raises VentureError for a value that is, or holds, a procedure of the trace around a query, or of its own."""
    if value.__class__ in SINGLE:
        return
    match value:
        case Closure() | Memo() | Exchangeable():
            message = f"{what} {show(value)}, a procedure that is made while the program runs"
            raise VentureError(
                message, hint="procedures that a query calls are assumed by name, or written inside of it"
            )
        case tuple():
            for item in value:
                refuse_procedures(item, what)
        case Dictionary():
            for key, item in value.items():
                refuse_procedures(key, what)
                refuse_procedures(item, what)
        case Distribution():
            for item in value.values:
                refuse_procedures(item, what)


class Scratch:
    """A trace of its own for one query: the values that it reads, its procedures, and the world at hand."""

    def __init__(self, host: Model, text: QueryText) -> None:
        self.model = model = host.scratch()
        model.query_depth = host.query_depth + 1
        model.trace.constants = Passing(model.trace)
        model.trace.analyzer.in_query = True
        self._text = text
        self.values: list[Global] = []
        self._written = [Global(each.name, 0, each.form.span) for each in text.procedures]
        self._load_procedures()
        body = text.form.items[2:]
        expression = body[0] if len(body) == 1 else Form((Name("begin", text.form.span), *body), text.form.span)
        names = {name: self._ref(meaning) for name, meaning in text.names.items()}
        self.body = model.trace.analyzer.directive("query", expression, 0, False, around=names)
        model.trace.grow_with_program()

    def _ref(self, meaning: Meaning) -> Ref:
        match meaning:
            case OwnProcedure(position=position):
                return GlobalRef(self._written[position])
            case Handed(position=position):
                while len(self.values) <= position:
                    self.values.append(self._new_value())
                return GlobalRef(self.values[position])
            case Constant():
                return meaning

    def _new_value(self) -> Global:
        """A name for a value that the query reads, in a row of its own."""
        target, place = Global("value", 0), self._text.form.span
        code = self.model.trace.analyzer.directive("value", Name(f"{ARGUMENT_PREFIX}0", place), 1, False)
        self.model.trace.grow_with_program()
        self._load(code, [[None]], target)
        return target

    def _load(self, code: Code, columns: list[Any], target: Global) -> None:
        self.model.trace.grow_with_program()
        self.model.load(code, columns, 1, NO_EVIDENCE, target)
        self.model.commit()

    def _load_procedures(self) -> None:
        """All names are there before the first text is analysed, since procedures may call one another."""
        analyzer = self.model.trace.analyzer
        memoized: set[int] = set()
        scopes: list[dict[str, Ref]] = []
        for target, text in zip(self._written, self._text.procedures, strict=True):
            names = {name: self._ref(meaning) for name, meaning in text.names.items()}
            scopes.append(names)
            scope = LexicalScope(Code("directive", text.name, None, 0, text.form.span), None, names, 0)
            analyzer.texts[target] = FoundText(text.form, scope, None, text.memoized)
        for target, text, names in zip(self._written, self._text.procedures, scopes, strict=True):
            form = text.form
            if text.memoized:
                form = Form((Name("mem", form.span), form), form.span)
            code = analyzer.directive(text.name, form, 0, False, around=names)
            for inner in code.inner:
                inner.name = text.name
            self._load(code, [], target)
            if text.memoized:
                memoized.update(inner.index for inner in code.inner)
        # Codes of procedures that are memoized around the query
        self.memoized = frozenset(memoized)

    def distribution(self, values: tuple[Any, ...]) -> Distribution:
        """The distribution of the value, where the query reads these."""
        return Distribution(list(self._weighed(values)))

    def difference(self, values: tuple[Any, ...], found: Sequence[tuple[Any, float]]) -> str | None:
        """What differs of the worlds that a fast way found: of all in a checked session, else of the first ones."""
        most = None if self.model.answers.always else MOST_COMPARED
        for one, other in zip_longest(islice(self._weighed(values), most), found[:most], fillvalue=(NO_EVIDENCE, 0.0)):
            if not (is_near(one[0], other[0]) and is_near(one[1], other[1], NEAR)):
                return f"a value and its log weight, {one} and {other}"
        return None

    def _weighed(self, values: tuple[Any, ...]) -> Iterator[tuple[Any, float]]:
        """The value of each possible world, with its log weight, where the query reads these values."""
        model, trace = self.model, self.model.trace
        for target, value in zip(self.values, values, strict=False):
            assert target.code is not None
            trace.journal.put(trace.tables[target.code.index].columns[0], target.row, value)  # type: ignore[arg-type]
        model.commit()
        worlds = QueryWorlds(trace, self.memoized)
        tape, is_left = worlds.tape, True
        while is_left:
            tape.begin()
            found = None
            try:
                with model.machine.handled_by(worlds), model.aside():
                    value = trace.result(self.body, model.apply(self.body, ()))
                    refuse_procedures(value, "a query's value is or holds")
                    found = value, tape.log_weight
            except ImpossibleWorld:
                tape.give_up()
            if found is not None:
                yield found
            is_left = tape.advance()


class Passing(Constants):
    """Nothing stays: what a query reads changes in place."""

    def made(self, memo: Memo, row: int) -> None:
        """It goes with its world."""

    def stays(self, code: Code, row: int) -> bool:
        return False


class ImpossibleWorld(Exception):
    """The world at hand has probability zero."""


class WorldChoice:
    """One choice on the way to a world. Mutable: it moves from one value to the next."""

    __slots__ = ("at", "log_densities", "values")

    def __init__(self, weighed: Iterable[tuple[Any, float]]) -> None:
        """Raises ImpossibleWorld where no value has a positive density."""
        possible = [pair for pair in weighed if pair[1] > -math.inf]
        if not possible:
            raise ImpossibleWorld
        self.values, self.log_densities = zip(*possible, strict=True)
        self.at = 0


class WorldTape:
    """The choices that lead to the world at hand, and its weight. Mutable: it goes from world to world."""

    def __init__(self) -> None:
        self.choices: list[WorldChoice] = []
        # how many of them are behind
        self.position = 0
        self.log_weight = 0.0
        self.count = 0

    def begin(self) -> None:
        """The next world. Raises LimitError where there were too many."""
        self.position, self.log_weight = 0, 0.0
        self.count += 1
        if self.count > MOST_CANDIDATES:
            hint = "fewer choices, or a condition before those that it rules out"
            raise LimitError(f"the query has more than {MOST_CANDIDATES:,} worlds", None, hint)

    def give_up(self) -> None:
        """The world turned out to be impossible: so are all that begin like it."""
        del self.choices[self.position :]

    def advance(self) -> bool:
        """Go on to the next world; False where all have been."""
        while self.choices:
            last = self.choices[-1]
            if last.at + 1 < len(last.values):
                last.at += 1
                return True
            self.choices.pop()
        return False

    def weigh(self, operator: Any, weight: Any) -> Any:
        """A factor or a condition of the world."""
        if operator is CONDITION:
            if weight != 1:
                raise ImpossibleWorld
            return weight
        self.log_weight += weight
        if self.log_weight == -math.inf:
            raise ImpossibleWorld
        return weight

    def is_at_end(self) -> bool:
        """Whether the next choice of the world has not been met before."""
        return self.position == len(self.choices)

    def take(self) -> Any:
        """The value of the next choice."""
        choice = self.choices[self.position]
        self.position += 1
        if self.position > MOST_CHOICES:
            hint = "a recursion that ends, with a bound on its depth"
            raise LimitError(f"a world of the query makes more than {MOST_CHOICES:,} choices", None, hint)
        self.log_weight += choice.log_densities[choice.at]
        return choice.values[choice.at]


class QueryWorlds(Handler):
    """Gives each choice of a world the value that stands on the tape."""

    def __init__(self, trace: Trace, memoized: frozenset[int]) -> None:
        super().__init__(trace)
        self.tape = WorldTape()
        self._memoized = memoized

    def choose(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> Any:
        """A choice of the world, or the weight that stands there as one."""
        tape = self.tape
        if operator in WEIGHED:
            return tape.weigh(operator, *arguments)
        if tape.is_at_end():
            tape.choices.append(self._choice(node, operator, arguments))
        return tape.take()

    def _choice(self, node: int, operator: Any, arguments: tuple[Any, ...]) -> WorldChoice:
        self._refuse_memoized(node)
        try:
            values = support_of(operator, arguments)
        except Undrawable:
            raise ImpossibleWorld from None
        if values is None:
            raise self._endless(operator).at(*self.trace.place(*self.trace.decode(node)))
        if len(values) > MOST_CANDIDATES:
            raise LimitError(f"the query has more than {MOST_CANDIDATES:,} worlds").at(
                *self.trace.place(*self.trace.decode(node))
            )
        if not values:
            # what has no value says why where it is drawn
            simulate(self.trace, node, operator, arguments)
        return WorldChoice((value, density_of(self.trace, node, operator, arguments, value)) for value in values)

    def _endless(self, operator: Any) -> VentureError:
        name = operator.record.name if isinstance(operator, Exchangeable) else operator.name
        message = f"{name} has no finite support, so that the worlds of a query cannot be enumerated"
        return KernelError(message, hint="draw it around the query, which reads its value from there")

    def _refuse_memoized(self, node: int) -> None:
        """A procedure that is memoized around the query makes its choices there."""
        assert self.asked_by is not None
        for index, _ in self.asked_by.unfinished:
            if index in self._memoized:
                name = self.trace.program.codes[index].name
                message = f"{name} is memoized around the query, so that its random choices are none of the query's"
                hint = f"read them around the query: (let ((x ({name} ...))) (enumerate (lambda () ... x ...)))"
                raise VentureError(message, hint=hint).at(*self.trace.place(*self.trace.decode(node)))
