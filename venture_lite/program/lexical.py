"""What a piece of text sees: the names of lambdas and lets around it, as references."""

from __future__ import annotations

from dataclasses import dataclass, replace

from venture_lite.errors import ArgumentError, CallSite
from venture_lite.language.syntax import Expression, Name
from venture_lite.program.code import Code, Global, Ref, Region, SlotRef
from venture_lite.program.lift import ARGUMENT_PREFIX


@dataclass(frozen=True, slots=True)
class LexicalScope:
    """The names that a piece of text sees, the Code in which it is evaluated, and what stands around it there."""

    code: Code
    parent: LexicalScope | None
    # references as seen from a row of `code`
    names: dict[str, Ref]
    # globals defined later than this are not seen: an inlined body means what it meant where it was written
    horizon: int
    # the tags around, outermost first
    regions: tuple[Region, ...] = ()
    # the calls that were inlined, innermost first, and the globals that they called
    inlined: tuple[CallSite, ...] = ()
    inlining: tuple[Global, ...] = ()
    # whether the text is part of a primitive procedure's argument: its value is all that matters
    in_argument: bool = False
    # whether the text is a value of a select: what fails in it is no error until it is taken
    is_tolerant: bool = False

    def inner(self, names: dict[str, Ref]) -> LexicalScope:
        return replace(self, parent=self, names=names)

    def body(self, code: Code, names: dict[str, Ref]) -> LexicalScope:
        """The scope of a body of its own: tags and inlined calls around it are a matter of its rows, not of its
        text."""
        return replace(self, code=code, parent=self, names=names, regions=(), inlined=())

    def find(self, name: str) -> Ref | None:
        depth = 0
        scope: LexicalScope | None = self
        while scope is not None:
            if name in scope.names:
                ref = scope.names[name]
                return SlotRef(ref.depth + depth, ref.slot) if isinstance(ref, SlotRef) else ref
            if scope.parent is not None and scope.parent.code is not scope.code:
                depth += 1
            scope = scope.parent
        return None

    def in_procedure(self) -> bool:
        """Whether the text is evaluated when a procedure is called, and not at once."""
        code: Code | None = self.code
        while code is not None and code.kind != "lambda":
            code = code.parent
        return code is not None

    def all_names(self) -> list[str]:
        found: list[str] = []
        scope: LexicalScope | None = self
        while scope is not None:
            found.extend(name for name in scope.names if not name.startswith(ARGUMENT_PREFIX))
            scope = scope.parent
        return found


def parameter_names(items: tuple[Expression, ...]) -> list[str]:
    found: list[str] = []
    for item in items:
        if not isinstance(item, Name):
            raise ArgumentError("a parameter of a lambda is a name", item.span)
        if item.name in found:
            raise ArgumentError(f"the parameter {item.name} is named twice", item.span)
        found.append(item.name)
    return found
