"""What an action of an inference program is given: its arguments, by the capitals of its usage."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from venture_lite.errors import ArgumentError, NameUnknown, Span, nearest
from venture_lite.inference.tree import KernelPart
from venture_lite.inference.usage import Matched, is_symbol
from venture_lite.interpreter.choices import KINDS, Choices, enter
from venture_lite.interpreter.kernel import Kernel
from venture_lite.interpreter.selection import Selection, Selector
from venture_lite.interpreter.tally import Tally
from venture_lite.language.syntax import Expression, Form, Literal, Name, Quote
from venture_lite.program.forms import scope_name
from venture_lite.values import Symbol, show

if TYPE_CHECKING:
    from venture_lite.inference.program import InferenceProgram
    from venture_lite.inference.tree import Part


@dataclass(frozen=True, slots=True)
class ActionForm(Matched):
    """One action as it is written in a program, by the usage that it fits.

    Each reader takes the capitals of an argument, and raises ArgumentError where the argument is something else;
    `what` is how a message calls it.
    """

    program: InferenceProgram = field(kw_only=True)
    form: Form = field(kw_only=True)

    @property
    def action(self) -> str:
        """The action's name."""
        return self.form.items[0].span.text

    @property
    def span(self) -> Span:
        return self.form.span

    @property
    def scope(self) -> Any:
        """The name of SCOPE, or what stands for choices by name, which the trace has from now on."""
        item = self["SCOPE"]
        choices = choices_of(item)
        if choices is None:
            return scope_name(item)
        trace = self.program.model.trace
        for name in choices.names:
            if name not in trace.analyzer.globals:
                hint = nearest(name, trace.analyzer.globals) or "choices takes names that assumes bind"
                raise NameUnknown(f"nothing is assumed as {name}", item.span, hint)
        enter(trace, choices, self.program.kinds())
        return choices

    @property
    def selector(self) -> Selector:
        """Which blocks BLOCK, or BLOCKS, means."""
        item = self["BLOCK" if "BLOCK" in self else "BLOCKS"]
        match item:
            case Name(name=name) | Quote(value=Symbol(name=name)) if name in ("one", "all", "each", "ordered"):
                return Selector(name)
            case Form(items=(Name(name="ordered_range"), low, high)):
                return Selector("range", None, self.program.value(low), self.program.value(high))
            case Form(items=(Name(name="ordered_range"), *_)):
                raise ArgumentError("a range of blocks is written (ordered_range LO HI)", item.span)
            case Name(name=name) if name not in self.program.names:
                return Selector("key", Symbol(name))
        return Selector("key", self.program.value(item))

    def count(self, role: str, least: int = 0, hint: str | None = None) -> int:
        def fits(number: float) -> bool:
            return math.isfinite(number) and number == int(number) and number >= least

        return int(self.number(role, f"a whole number, {least} or more", fits, None, hint))

    def some(self, role: str) -> int:
        """A count that is not 0."""
        found = self.count(role)
        if not found:
            raise ArgumentError(f"{role} must be 1 or more", self[role].span)
        return found

    def positive(self, role: str, what: str | None = None) -> float:
        return float(self.number(role, "a positive number", lambda number: 0 < number < math.inf, what))

    def between(self, role: str, low: float, high: float, what: str | None = None) -> float:
        return float(self.number(role, f"between {low} and {high}", lambda number: low <= number <= high, what))

    def number(
        self, role: str, kind: str, fits: Callable[[float], bool], what: str | None = None, hint: str | None = None
    ) -> float:
        """A number of a kind, which says what it must be."""
        value = self.value(role)
        if not isinstance(value, (int, float)) or not fits(value):
            raise ArgumentError(f"{what or role} must be {kind}, got {show(value)}", self[role].span, hint)
        return value

    def value(self, role: str) -> Any:
        return self.program.value(self[role])

    def word(self, role: str, words: Iterable[str]) -> str | None:
        """Which of some words the argument is, quoted or not; None where it is something else."""
        return next((word for word in words if is_symbol(self[role], word)), None)

    def kernel(
        self, move: str, kernel: Kernel, selector: Selector | None = None, times: int | None = None,
        moves: Callable[[Selection], list[int]] | None = None,
    ) -> KernelPart:  # fmt: skip
        """What runs a kernel on blocks of SCOPE, those that BLOCK means, T times, where nothing else is said; `move`
        says how it moves a block, and `moves` which choices, where these are not those of the blocks."""
        program, place, scope = self.program, self.span.place(), self.scope
        selector = self.selector if selector is None else selector
        times = self.count("T") if times is None else times
        tally = Tally(
            kernel,
            self.span.text,
            program.progress,
            lambda text: program.warn(f"{place}: {text}"),
            program.model.regenerator,
        )
        program.tallies.append(tally)
        selection, use = Selection(program.model, scope, selector), program.watch.use(scope, selector, moves)
        return KernelPart(
            self.action, scope, selector, times, move, self.span, kernel, selection, tally, use, program.failures
        )

    def kernels(self) -> tuple[Part, ...]:
        """What every KERNEL is compiled to."""
        return tuple([self.program.compile(item) for item in self.all("KERNEL")])


def choices_of(item: Expression) -> Choices | None:
    """What `(choices NAME ... 'KIND)` names; None where it is something else. Raises ArgumentError where it is written
    otherwise."""
    kind: str | None = None
    match item:
        case Form(items=(Name(name="choices"), *names, Quote(value=Symbol(name=word), span=span))):
            kind = word
            if kind not in KINDS:
                hint = nearest(kind, KINDS) or "a kind is 'smooth, 'rough, 'finite or 'counts"
                raise ArgumentError(f"there is no kind {kind} of choices", span, hint)
        case Form(items=(Name(name="choices"), *names)):
            pass
        case _:
            return None
    for name in names:
        if not isinstance(name, Name):
            raise ArgumentError("choices by name are written (choices NAME ... ['KIND])", name.span)
    return Choices(tuple(dict.fromkeys(name.name for name in names if isinstance(name, Name))), kind)


def label_of(item: Expression) -> str:
    """The NAME of a variable that is collected: a symbol or a string. Raises ArgumentError where it is none."""
    match item:
        case Name(name=name) | Literal(value=str(name)) | Quote(value=Symbol(name=name)):
            return name
    raise ArgumentError("NAME must be a symbol or a string", item.span)
