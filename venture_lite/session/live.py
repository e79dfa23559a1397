"""The directives that are part of the model: found by number, label or name, reported and forgotten."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from venture_lite.errors import ObservedAlready, Span, VentureError, nearest
from venture_lite.interpreter.frozen import freeze_rows
from venture_lite.interpreter.model import Model, Rows
from venture_lite.language.syntax import Assume, Directive, DirectiveReference, Factor, Loop
from venture_lite.program.code import Code
from venture_lite.session.chains import Chains, Given
from venture_lite.session.shapes import shapes_of
from venture_lite.values import equal, to_python


class LivePasses:
    """The passes of a loop: a column for the variable of each loop, outermost first."""

    def __init__(self, names: Sequence[str], variables: Sequence[np.ndarray | range], count: int) -> None:
        self.names = tuple(names)
        self.variables = tuple(variables)
        self.count = count

    def told(self, position: int) -> str:
        """The loop variables in one pass, for a message: `i = 3, j = 17`."""
        values = zip(self.names, self.variables, strict=True)
        return ", ".join(f"{name} = {int(column[position])}" for name, column in values)

    def find(self, wanted: tuple[int, ...]) -> list[int]:
        """Positions of the passes whose first variables have the wanted values."""
        if len(wanted) > len(self.variables):
            return []
        match = np.ones(self.count, bool)
        for column, value in zip(self.variables, wanted, strict=False):
            match &= np.asarray(column) == value
        found: list[int] = np.flatnonzero(match).tolist()
        return found


@dataclass(slots=True, eq=False)
class LoopPart:
    """One assume, observe or predict, with the rows that it made: one, or one for each pass of a loop."""

    directive: Directive
    # by chain
    rows: list[Rows] = field(default_factory=list)
    passes: LivePasses | None = None
    # positions of forgotten passes
    forgotten: set[int] = field(default_factory=set)
    # of an observe: the values, one a pass, as the trace was given them
    evidence: Any = None
    # whether its value was made a constant
    is_frozen: bool = False

    def left(self) -> Sequence[int]:
        """Positions that are not forgotten."""
        count = self.passes.count if self.passes is not None else 1
        if not self.forgotten:
            return range(count)
        return [position for position in range(count) if position not in self.forgotten]


@dataclass(slots=True, eq=False)
class Live:
    """A directive of the model: an assume, an observe, a predict, or a loop over data with the directives inside."""

    id: int
    directive: Directive
    parts: list[LoopPart]
    # what it was run with
    given: Given

    @property
    def run(self) -> object:
        """The run of a loop, pass by pass, in which it stands: its passes share their labels."""
        return self.given.run

    @property
    def label(self) -> str | None:
        return self.directive.label

    @property
    def span(self) -> Span:
        return self.directive.span

    @property
    def name(self) -> str | None:
        """What an assume binds."""
        return self.directive.name if isinstance(self.directive, Assume) else None

    @property
    def is_loop(self) -> bool:
        return isinstance(self.directive, Loop)


@dataclass(frozen=True, slots=True)
class FoundDirective:
    """What a reference names: a directive, or one label inside a loop over data."""

    live: Live
    # one part of it, or None for the whole
    part: LoopPart | None = None

    def parts(self) -> list[LoopPart]:
        return self.live.parts if self.part is None else [self.part]


class Directory:
    """Every live directive, in the order of entry. Mutable."""

    def __init__(self, chains: Chains) -> None:
        self.chains = chains
        self.entries: dict[int, Live] = {}
        self.next_id = 1
        # counts the changes of what is in force
        self.revision = 0

    def __iter__(self) -> Iterator[Live]:
        return iter(self.entries.values())

    def memory(self) -> Callable[[], None]:
        """A function that puts back what is in force now; the traces are another's to put back."""
        entries, next_id = dict(self.entries), self.next_id
        lives = [(live, list(live.parts)) for live in self]
        parts = [(part, list(part.rows), set(part.forgotten)) for live in self for part in live.parts]

        def restore() -> None:
            self.entries, self.next_id = entries, next_id
            self.revision += 1
            for live, its_parts in lives:
                live.parts[:] = its_parts
            for part, rows, forgotten in parts:
                part.rows, part.forgotten = rows, forgotten

        return restore

    def enter(self, live: Live) -> None:
        """Make a directive final."""
        self.chains.commit()
        for model in self.chains.models:
            model.kept.extended()
        self.entries[live.id] = live
        self.next_id = live.id + 1
        self.revision += 1

    def forget_as(self, live: Live) -> None:
        """Forget of the directive that was entered last the passes that are forgotten of another, in every chain."""
        made = self.entries[self.next_id - 1]
        by_directive = {id(part.directive): part for part in live.parts}
        for part in list(made.parts):
            like = by_directive.get(id(part.directive))
            gone = [at for at in part.left() if like is None or at in like.forgotten]
            for model, rows in zip(self.chains.models, part.rows, strict=True):
                for position in reversed(gone):
                    model.remove_row(rows, position)
            part.forgotten.update(gone)
            if not part.left():
                made.parts.remove(part)
        self.chains.commit()

    def observes_as(self, other: Directory) -> bool:
        """Whether all observed values are those of another session of the same program."""
        pairs = zip(self, other, strict=True)
        parts = ((mine, theirs) for one, two in pairs for mine, theirs in zip(one.parts, two.parts, strict=True))
        return all(_alike(mine.evidence, theirs.evidence) for mine, theirs in parts)

    def keep(self, positions: list[int]) -> None:
        """Only the rows of the chains at these positions are left."""
        for live in self:
            for part in live.parts:
                part.rows[:] = [part.rows[position] for position in positions]

    def listed(self) -> list[dict[str, Any]]:
        """For a person: id, label, kind and text of each."""
        return [
            {"id": live.id, "label": live.label, "directive": live.directive.kind, "text": live.span.text}
            for live in self
        ]

    def refuse_taken(self, labels: Sequence[str | None], span: Span, run: object = None) -> None:
        """Raises VentureError where a label names something already, but for other passes of the same loop."""
        wanted = [label for label in labels if label is not None]
        for label in wanted:
            holders = self._labelled(label)
            if any(run is None or found.live.run is not run for found in holders) or wanted.count(label) > 1:
                hint = "choose another, or forget the directive that has it"
                raise VentureError(f"the label {label} is taken", span, hint)

    def _labelled(self, label: str | int) -> list[FoundDirective]:
        if isinstance(label, int):
            return []
        found = []
        for live in self:
            if live.label == label:
                found.append(FoundDirective(live))
            elif live.is_loop:
                found.extend(FoundDirective(live, part) for part in live.parts if part.directive.label == label)
        return found

    def find(self, reference: DirectiveReference) -> list[FoundDirective]:
        """What a reference names: one directive, or those of one label in the passes of a loop.

        Raises VentureError where there is none.
        """
        target = reference.target
        found = self._labelled(target)
        if found:
            return found
        for live in self:
            if target in (live.id, live.name):
                return [FoundDirective(live)]
        known = [live.label for live in self] + [live.name for live in self]
        known.extend(part.directive.label for live in self for part in live.parts)
        hint = nearest(str(target), filter(None, known)) or "[list_directives] shows what there is"
        raise VentureError(f"no directive is labelled or numbered {target}", reference.span, hint)

    # ------------------------------------------------------------------------------------------------- observe

    @contextlib.contextmanager
    def naming_the_first(self) -> Iterator[None]:
        """A second observation of one choice is told together with the first."""
        try:
            yield
        except ObservedAlready as error:
            chain = next(k for k, model in enumerate(self.chains.models) if model is error.model)
            for live in self:
                for part in live.parts:
                    position = self._observing(part, chain, error.node)
                    if position is not None:
                        passes = f" ({part.passes.told(position)})" if part.passes is not None else ""
                        error.name_first(f"{live.span.place()}{passes}")
                        raise
            raise

    def _observing(self, part: LoopPart, chain: int, node: int) -> int | None:
        """The pass of an observe that fixes a choice, if one does."""
        model = self.chains.models[chain]
        rows = part.rows[chain]
        if rows.observed:
            for position in part.left():
                if node in model.evidence_nodes(rows.code, int(rows.rows[position])):
                    return position
        return None

    def report(self, found: list[FoundDirective]) -> Any:
        """The present value; a list with one for each pass where a label stands inside a loop."""
        if len(found) == 1 and found[0].part is None:
            return self.value(found[0].live)
        values = [self._by_chain(item.part or item.live.parts[0]) for item in found]
        return self.chains.joined(
            [[value for one in values for value in one[k]] for k in range(len(self.chains.models))]
        )

    def value(self, live: Live) -> Any:
        """A directive's value; of a loop over data the number of its passes."""
        if live.is_loop:
            return max((len(part.left()) for part in live.parts), default=0)
        return self.chains.joined([values[0] for values in self._by_chain(live.parts[0])])

    def _by_chain(self, part: LoopPart) -> list[list[Any]]:
        """For each chain the values of the passes that are left."""
        value_of = _weight if isinstance(part.directive, Factor) else _result
        chains = zip(self.chains.models, part.rows, strict=True)
        return [
            [to_python(value_of(model, rows.code, int(rows.rows[position]))) for position in model.polled(part.left())]
            for model, rows in chains
        ]

    def forget(self, reference: DirectiveReference) -> None:
        """Undo what a reference names, in every chain."""
        found = self.find(reference)
        for item in found:
            if item.live.name is not None:
                self._refuse_used(item.live.name, item.live, reference.span)
        chosen = [(item, part, positions) for item in found for part, positions in _positions(item, reference)]
        if reference.positions and not any(positions for _, _, positions in chosen):
            wanted = " ".join(map(str, reference.positions))
            raise VentureError(f"the loop has no pass {wanted}", reference.span)
        for _, part, positions in reversed(chosen):
            for model, rows in zip(self.chains.models, part.rows, strict=True):
                for position in model.polled(reversed(positions)):
                    model.remove_row(rows, position)
        self.chains.commit()
        self._let_go_of_setups()
        self.revision += 1
        for item, part, positions in chosen:
            part.forgotten.update(positions)
            if not part.left():
                item.live.parts.remove(part)
            if not item.live.parts:
                self.entries.pop(item.live.id, None)
        for item in found:
            if item.live.name is not None:
                for model in self.chains.models:
                    shapes_of(model).forget(model.trace.analyzer.unbind(item.live.name))
            if not reference.positions and item.part is None:
                self.entries.pop(item.live.id, None)
        for _, part, _ in chosen:
            if not part.left():
                for model, rows in zip(self.chains.models, part.rows, strict=True):
                    shapes_of(model).forgotten(rows.code, rows.bound)

    def freeze(self, reference: DirectiveReference) -> None:
        """Make the present value of what a reference names a constant, in every chain."""
        if reference.positions:
            raise VentureError("freeze takes a whole directive", reference.span, "[freeze LABEL]")
        parts = [part for found in self.find(reference) for part in found.parts()]
        if any(rows.observed for part in parts for rows in part.rows):
            raise VentureError("an observe cannot be frozen: its value is a constant already", reference.span)
        frozen = []
        for part in parts:
            models = zip(self.chains.models, part.rows, strict=True)
            frozen.append([freeze_rows(model, rows, part.left()) for model, rows in models])
        self.chains.commit()
        self._let_go_of_setups()
        for part, rows in zip(parts, frozen, strict=True):
            part.rows, part.is_frozen = rows, True

    def _let_go_of_setups(self) -> None:
        """Choices have gone, and others may come to stand in their places."""
        for model in self.chains.models:
            model.kept.clear()

    def _refuse_used(self, name: str, live: Live, span: Span) -> None:
        target = self.chains.models[0].trace.analyzer.globals[name]
        for other in self:
            if other is not live and any(target in part.rows[0].code.uses for part in other.parts if part.rows):
                raise VentureError(f"{name} is used by {other.span.text}", span, "forget that directive first")


def _alike(some: Any, others: Any) -> bool:
    """Whether observed values, one a pass, are the same; None for none."""
    if isinstance(some, np.ndarray) and isinstance(others, np.ndarray):
        return np.array_equal(some, others)
    return some is others or (len(some) == len(others) and all(map(equal, some, others)))


def _result(model: Model, code: Code, row: int) -> Any:
    return model.trace.result(code, row)


def _weight(model: Model, code: Code, row: int) -> Any:
    """What a factor or a condition is weighed by."""
    _, (weight,) = model.trace.application(model.evidence_node(code, row))
    return weight


def _positions(found: FoundDirective, reference: DirectiveReference) -> list[tuple[LoopPart, Sequence[int]]]:
    """The rows that a reference names in each part: all that are left, or those of one pass."""
    if not reference.positions:
        return [(part, part.left()) for part in found.parts()]
    if all(part.passes is None for part in found.parts()):
        raise VentureError("only the data of a loop are forgotten one by one", reference.span)
    chosen: list[tuple[LoopPart, Sequence[int]]] = []
    for part in found.parts():
        at = part.passes.find(reference.positions) if part.passes is not None else []
        chosen.append((part, [position for position in at if position not in part.forgotten]))
    return chosen
