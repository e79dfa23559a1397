"""Choices by name, `(choices NAME ... 'KIND)`: the unobserved choices that assumes, and the calls of their memoized
procedures, have made.

Nothing is tagged: whose a choice is, its address says. A choice of a memoized family belongs to the assume in which the
procedure was made, whoever called it. Such a scope is one of the trace's, filled when an inference first names it, and
kept up to date from then on as those of tags are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from venture_lite.interpreter.addresses import address
from venture_lite.program.code import Code
from venture_lite.trace.nodes import node_at
from venture_lite.trace.scopes import Scope

if TYPE_CHECKING:
    from venture_lite.trace.trace import Trace

KINDS = ("smooth", "rough", "finite", "counts")
"""Continuous with a gradient, continuous without, of finite support, counts without bound."""

Kinds = Callable[[int], str | None]
"""The kind of the choices of a site: a value, since choices leave a scope by the kinds by which they came."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What a scope of choices by name is known by: of all assumes, where there are no names."""

    names: tuple[str, ...]
    # None for every kind
    kind: str | None

    def __str__(self) -> str:
        kind = () if self.kind is None else (f"'{self.kind}",)
        return f"({' '.join(('choices', *self.names, *kind))})"


class NamedChoices:
    """Which choices of one trace belong to such a scope, and to which of its blocks."""

    def __init__(self, trace: Trace, choices: Choices, kinds: Kinds) -> None:
        self._trace, self._choices, self._kinds = trace, choices, kinds
        self._ranks = _ranks(trace, choices)

    def is_good(self, kinds: Kinds) -> bool:
        """Whether the names still stand for what they did, and choices are of the kinds that they were."""
        return self._kinds == kinds and self._ranks == _ranks(self._trace, self._choices)

    def may_hold(self, code: Code, slot: int) -> bool:
        """Whether a choice that is made there may belong to the scope."""
        return self._choices.kind in (None, self._kinds(code.first_site + slot))

    def key(self, code: Code, slot: int, row: int) -> Any:
        """The key of the block of a choice: the arguments of the calls in which it was made, 0 where there were none,
        and after them which call of a recursion it was; with the assume's place before them, unless there is one name.
        None where it is not in the scope."""
        if not self.may_hold(code, slot):
            return None
        *calls, outermost = address(self._trace, node_at(code.first_site + slot, row))
        calls.reverse()
        # before the place in the text there is the directive, and the key of a call or the directive's row
        (directive, its_row), arguments = outermost[:2], tuple([call[0] for call in calls])
        paths = (outermost[3:], *(call[1:] for call in calls))
        if recursions := tuple(filter(None, (_recursion(self._trace, path) for path in paths))):
            arguments = *arguments, recursions
        if not self._choices.names:
            # each row of a loop is an evaluation of its own
            return directive, its_row, *arguments
        rank = self._ranks.get(directive)
        if rank is None:
            return None
        key = arguments[0] if len(arguments) == 1 else arguments or 0
        return key if len(self._ranks) == 1 else (rank, key)


def _recursion(trace: Trace, path: Sequence[int]) -> tuple[int, ...]:
    """Of Codes and the places in them where the next one is called, the part from the first call of a procedure that is
    in a call of itself to the last: calls of a recursion without memory have no arguments that tell them apart. Empty
    where there is none but of the standard library's, as `map`, whose calls are one evaluation."""
    known: dict[int, int] = {}
    first, last = len(path), -1
    for at, index in enumerate(path[::2]):
        code = trace.program.codes[index]
        if code.kind == "lambda" and known.setdefault(index, at) < at and not _is_standard(trace, code):
            first, last = min(first, known[index]), at
    return tuple(path[2 * first : 2 * last + 1])


def _is_standard(trace: Trace, code: Code) -> bool:
    while code.parent is not None:
        code = code.parent
    return any(known.code is code for known in trace.analyzer.standard.values())


def _ranks(trace: Trace, choices: Choices) -> dict[int, int]:
    """The directive of each name -> its place among the names."""
    bound = trace.analyzer.globals
    codes = [bound[name].code if name in bound else None for name in choices.names]
    return {code.index: rank for rank, code in enumerate(codes) if code is not None}


def enter(trace: Trace, choices: Choices, kinds: Kinds) -> None:
    """Have a scope of choices by name in a trace, from now on."""
    known = trace.named.get(choices)
    if known is not None and known.is_good(kinds):
        return
    named, scope, journal = NamedChoices(trace, choices, kinds), Scope(), trace.journal
    mark = len(journal.entries)
    for node in trace.default.everything():
        key = named.key(*trace.decode(node))
        if key is not None:
            scope.add(key, node, journal)
    # what was there before may be taken back, and the scope with it, but not the scope alone
    del journal.entries[mark:]
    if mark:
        journal.note(_leave, trace, choices)
    trace.named[choices], trace.scopes[choices] = named, scope


def _leave(trace: Trace, choices: Choices) -> None:
    del trace.named[choices], trace.scopes[choices]
