"""What the makers of steps share: expressions, names, labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.generator.expressions import Expressions, Rng
from tests.generator.programs import Step
from tests.generator.twins import Twin

Made = list[Step]


@dataclass(slots=True)
class Maker:
    """Makes the steps of one program."""

    expressions: Expressions
    depth: int = 3
    counter: int = 0
    # Plain names of choices that evidence fixes.
    observed: set[str] = field(default_factory=set)
    # Labels of directives that others count on.
    permanent: set[str] = field(default_factory=set)

    @property
    def rng(self) -> Rng:
        return self.expressions.rng

    def chance(self, probability: float) -> bool:
        return self.expressions.chance(probability)

    def pick(self, options: Sequence[str]) -> str:
        return self.expressions.pick(options)

    def step(self, kind: str, text: str, plain: tuple[str, ...]) -> Step:
        self.counter += 1
        return Step(kind, f"step{self.counter}", text, plain)

    def assume(self, name: str, made: Twin) -> Step:
        return self.step("assume", f"[assume {name} {made.dressed}]", (f"[assume {name} {made.plain}]",))

    def body(
        self, parameters: Sequence[tuple[str, Twin]], make: Callable[[], Twin], memoized: bool, copies: float = 2.0
    ) -> Twin:
        """A procedure's body, in which `parameters` are bound, each with its type."""
        e = self.expressions
        outer = e.names, e.tags_finite, e.key, e.copies
        e.names = e.names.copy()
        for kind, parameter in parameters:
            e.names.bind(kind, parameter)
        e.tags_finite, e.key = memoized, parameters[-1][1] if memoized else None
        e.copies *= copies
        made = make()
        e.names, e.tags_finite, e.key, e.copies = outer
        return made
