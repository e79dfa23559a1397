"""Which names a text reads from around it."""

from __future__ import annotations

from collections.abc import Iterator

from venture_lite.language.syntax import Expression, Form, Name

NOTHING: frozenset[str] = frozenset()


def free_names(item: Expression, bound: frozenset[str] = NOTHING, in_queries: bool = True) -> Iterator[Name]:
    """The names in a text that neither its lambdas and lets nor `bound` bind, as they come; words of special forms
    among them. A form that is not written as it should be is gone through like a call. Without `in_queries` what stands
    inside of a query is left out."""
    match item:
        case Name(name=name):
            if name not in bound:
                yield item
        case Form(items=(Name(name="quote"), _)):
            return
        case Form(items=(Name(name="enumerate"), *_)) if not in_queries and "enumerate" not in bound:
            return
        case Form(items=(Name(name="lambda"), Form(items=parameters), *body)):
            yield from _all(body, bound | {part.name for part in parameters if isinstance(part, Name)}, in_queries)
        case Form(items=(Name(name="let"), Form(items=bindings), *body)):
            for binding in bindings:
                match binding:
                    case Form(items=(Name(name=name), value)):
                        yield from free_names(value, bound, in_queries)
                        bound = bound | {name}
            yield from _all(body, bound, in_queries)
        case Form(items=(Name(name="letrec"), Form(items=bindings), *body)):
            pairs = [binding.items for binding in bindings if isinstance(binding, Form)]
            bound = bound | {pair[0].name for pair in pairs if pair and isinstance(pair[0], Name)}
            yield from _all([part for pair in pairs for part in pair[1:]], bound, in_queries)
            yield from _all(body, bound, in_queries)
        case Form(items=(Name(name="scope_include" | "tag"), _, key, expression)):
            yield from _all([key, expression], bound, in_queries)
        case Form(items=items):
            yield from _all(items, bound, in_queries)


def _all(items: list[Expression] | tuple[Expression, ...], bound: frozenset[str], in_queries: bool) -> Iterator[Name]:
    for item in items:
        yield from free_names(item, bound, in_queries)
