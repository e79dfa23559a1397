"""The Codes that expressions of one shape share: where their errors are told, and how long they are kept.

Those of expressions that leave no rows behind, `sample`'s and `collect`'s, are kept while somebody may evaluate them,
and the last ones. When a Code has gone, its numbers are another one's.
"""

from __future__ import annotations

import contextlib
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

from venture_lite.errors import CallSite, Span, VentureError
from venture_lite.interpreter.model import Model
from venture_lite.language.syntax import Expression, Form
from venture_lite.program.code import Code, Extent, Global
from venture_lite.program.compiler import tree_of

MOST_KEPT = 256
"""Shapes that are kept though nobody holds them."""

TOGETHER = 64
"""So many Codes are let go of at once, since all that was derived from the text is derived anew then."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Shared:
    """A Code, and the expression of which it was made."""

    code: Code
    expression: Expression


class DirectiveShapes:
    """The shapes of one model. Mutable."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._all: weakref.WeakValueDictionary[Hashable, Shared] = weakref.WeakValueDictionary()
        # those that were asked for last, the latest at the end
        self._latest: OrderedDict[Hashable, Shared] = OrderedDict()
        # Codes that nobody holds any more
        self._gone: list[Code] = []
        # Codes of forgotten directives, each with the name that it bound
        self._forgotten: list[tuple[Code, Global | None]] = []

    def of(self, key: Hashable, make: Callable[[], Shared]) -> Shared:
        """The Code of a shape."""
        shared = self._all.get(key)
        if shared is None:
            self._let_go(TOGETHER)
            shared = self._all[key] = make()
            self._model.trace.make_tables(tree_of(shared.code))
            weakref.finalize(shared, self._gone.append, shared.code).atexit = False
        self._latest[key] = shared
        self._latest.move_to_end(key)
        if len(self._latest) > MOST_KEPT:
            self._latest.popitem(last=False)
        return shared

    def forget_gone(self, gone: set[Code]) -> None:
        """Codes were taken out: neither they nor those that read them can be asked for again."""
        for key, shared in list(self._all.items()):
            if shared.code in gone or any(target.code in gone for target in shared.code.uses):
                del self._all[key]
                self._latest.pop(key, None)

    def forgotten(self, code: Code, bound: Global | None) -> None:
        """A directive is gone: its Code goes, too, at once or when the directive can no longer be taken back."""
        self._forgotten.append((code, bound))
        self._let_go(1)

    def forget(self, name: object) -> None:
        """A name is gone: no shape that reads it can be asked for again."""
        for key in [key for key, shared in self._latest.items() if name in shared.code.uses]:
            del self._latest[key]
        self._let_go(1)

    def _let_go(self, least: int) -> None:
        if self._model.trace.journal.entries:
            return
        forgotten, self._forgotten[:] = list(self._forgotten), []
        for code, bound in forgotten:
            if code.index >= 0:
                let_go_of_forgotten(self._model, code, bound)
        self._gone[:] = [code for code in self._gone if code.index >= 0]
        if len(self._gone) < least:
            return
        gone, self._gone[:] = list(self._gone), []
        let_go(self._model, gone)


def shapes_of(model: Model) -> DirectiveShapes:
    """The model's shapes."""
    return model.kept.lasting(DirectiveShapes, model)


def let_go(model: Model, codes: list[Code]) -> None:
    """Take out the Codes of directives that nobody holds; those that have rows yet stay."""
    for code in codes:
        model.trace.let_go(tree_of(code))
    for derived in model.trace.derived:
        derived.clear()


def truncate(model: Model, extent: Extent) -> None:
    """Take out all Codes that got a number since `extent` was given."""
    gone = model.trace.truncate(extent)
    if gone:
        for key in [key for key, made in model.codes.items() if getattr(made, "code", made) in gone]:
            del model.codes[key]
        shapes_of(model).forget_gone(gone)


def let_go_of_forgotten(model: Model, code: Code, bound: Global | None) -> None:
    """Take out the Code of a forgotten directive, if no other one of its shape is there and nothing reads its name."""
    key = next((key for key, shared in model.codes.items() if isinstance(shared, Shared) and shared.code is code), None)
    tree = tree_of(code)
    has_rows = any(table.count > table.dead for table in map(model.trace.table, tree))
    is_read = bound is not None and any(reader not in tree for reader, _, _ in bound.readers)
    if key is not None and not has_rows and not is_read:
        del model.codes[key]
        let_go(model, [code])


@contextlib.contextmanager
def told_at(shared: Shared, expression: Expression) -> Iterator[None]:
    """Errors that point into the expression of the Code point to the same part of this one, which has its shape; those
    that point nowhere, to the whole."""
    try:
        yield
    except VentureError as error:
        if shared.expression.span != expression.span:
            places = dict(_pairs(shared.expression, expression))
            error.span = places.get(error.span, error.span) if error.span else None
            error.chain = tuple(
                CallSite(site.name, places.get(site.span, site.span) if site.span else None) for site in error.chain
            )
        error.at(expression.span)
        raise


def _pairs(first: Expression, second: Expression) -> Iterator[tuple[Span, Span]]:
    """The places of the parts of two expressions of one shape."""
    todo = [(first, second)]
    while todo:
        one, other = todo.pop()
        yield one.span, other.span
        if isinstance(one, Form) and isinstance(other, Form):
            todo.extend(zip(one.items, other.items, strict=True))
