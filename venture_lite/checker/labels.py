"""The directives that a program refers to by label, number or name, counted as the session counts them."""

from __future__ import annotations

from dataclasses import dataclass

from venture_lite.errors import VentureError, nearest
from venture_lite.language.syntax import Assume, Directive, DirectiveReference, Loop, Observe, flattened


@dataclass(slots=True)
class LabelledEntry:
    """A directive of the model. Mutable: parts of it are forgotten, and what is frozen uses nothing any more."""

    number: int
    directive: Directive
    # names of the program that it refers to
    uses: frozenset[str]
    # the labelled directives inside a loop over data
    parts: dict[str, Directive]
    # whether it is as many as its loop has passes
    has_passes: bool

    @property
    def name(self) -> str | None:
        """What an assume binds."""
        return self.directive.name if isinstance(self.directive, Assume) else None


class Labels:
    """The directives in force. Mutable: they come and go."""

    def __init__(self) -> None:
        self.entries: dict[int, LabelledEntry] = {}
        self._by_label: dict[str, LabelledEntry] = {}
        self._by_name: dict[str, LabelledEntry] = {}
        self._next = 1
        # whether the numbers depend on how often a loop runs, or on text that is missing
        self.uncertain = False

    def enter(self, directive: Directive, uses: set[str], in_loop: bool = False) -> None:
        """`in_loop`: it stands in a loop that runs pass by pass.

        Raises VentureError where a label is taken already; the directive is entered all the same.
        """
        labels = [(part.label, part) for part in flattened([directive]) if part.label is not None]
        parts = {label: part for label, part in labels if part is not directive}
        has_passes = in_loop or isinstance(directive, Loop)
        entry = self.entries[self._next] = LabelledEntry(self._next, directive, frozenset(uses), parts, has_passes)
        self._next += 1
        if entry.name is not None:
            self._by_name[entry.name] = entry
        taken = None
        for label, part in labels:
            if label in self._by_label:
                taken = taken or (label, part.span)
            self._by_label.setdefault(label, entry)
        if taken is not None:
            hint = "choose another, or forget the directive that has it"
            raise VentureError(f"the label {taken[0]} is taken", taken[1], hint)

    def find(self, reference: DirectiveReference) -> tuple[LabelledEntry, Directive] | None:
        """The entry that a reference names, and which directive of it; None where that cannot be told.

        Raises VentureError where there is nothing of that name.
        """
        target = reference.target
        if isinstance(target, str):
            entry = self._by_label.get(target) or self._by_name.get(target)
        else:
            entry = None if self.uncertain else self.entries.get(target)
        if entry is not None:
            return entry, entry.parts.get(str(target), entry.directive)
        if self.uncertain and isinstance(target, int):
            return None
        hint = nearest(str(target), [*self._by_label, *self._by_name]) or "[list_directives] shows what there is"
        raise VentureError(f"no directive is labelled or numbered {target}", reference.span, hint)

    def forget(self, reference: DirectiveReference) -> str | None:
        """Take out what a reference names; the name that is free again, if one is. Raises VentureError where it is
        used."""
        found = self.find(reference)
        if found is None:
            return None
        entry, directive = found
        if reference.positions:
            if not entry.has_passes:
                raise VentureError("only the data of a loop are forgotten one by one", reference.span)
            return None
        if directive is not entry.directive:
            del entry.parts[str(reference.target)], self._by_label[str(reference.target)]
            return None
        for other in self.entries.values():
            if entry.name is not None and other is not entry and entry.name in other.uses:
                user = " ".join(other.directive.span.text.split())
                raise VentureError(f"{entry.name} is used by {user}", reference.span, "forget that directive first")
        del self.entries[entry.number]
        if entry.name is not None:
            self._by_name.pop(entry.name, None)
        self._by_label = {label: other for label, other in self._by_label.items() if other is not entry}
        return entry.name

    def freeze(self, reference: DirectiveReference) -> str | None:
        """Take note that a value is a constant from now on; the name of what is frozen, if it is an assume."""
        found = self.find(reference)
        if reference.positions:
            raise VentureError("freeze takes a whole directive", reference.span, "[freeze LABEL]")
        if found is None:
            return None
        entry, directive = found
        if any(isinstance(part, Observe) for part in flattened([directive])):
            raise VentureError("an observe cannot be frozen: its value is a constant already", reference.span)
        if directive is entry.directive:
            entry.uses = frozenset()
        return entry.name
