"""States that are labels: choices of finite support that mean nothing but which memoized values they find.

A state that is read only as a key, of procedures whose text does not read the key, can be exchanged with any other: a
posterior has every such renaming of a state that it has. So neither the state nor what is memoized by it is a quantity
that chains agree on; what they give together is.
"""

from __future__ import annotations

from collections.abc import Iterable

from venture_lite.blocks.kinds import kinds
from venture_lite.errors import KernelError
from venture_lite.interpreter.ancestry import Families, key_choices
from venture_lite.interpreter.label_readers import refuse_other_readers
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.sources import computed_from, source_nodes
from venture_lite.program.code import Code
from venture_lite.trace.nodes import site_of
from venture_lite.trace.runtime import Exchangeable, Memo

FEW = 20
"""Families of a procedure that are looked at."""


class StateLabels:
    """Those of one model: the sites of the choices, and the procedures that they are keys of."""

    def __init__(self, model: Model, memos: Iterable[Memo]) -> None:
        self._model, self._trace = model, model.trace
        self._kind = kinds(model)
        # site -> one choice, and the procedures with the positions of their arguments that it decides
        found: dict[int, tuple[int, dict[Memo, set[int]]]] = {}
        for memo in memos:
            for choice, position in self._keys(memo):
                found.setdefault(site_of(choice), (choice, {}))[1].setdefault(memo, set()).add(position)
        self.sites = {site for site, (choice, keyed) in found.items() if self._is_label(choice, keyed)}
        self.keyed = {memo for site in self.sites for memo in found[site][1]}

    def _keys(self, memo: Memo) -> Iterable[tuple[int, int]]:
        """Choices that keys of calls depend on, with the position of the argument; of many calls a few."""
        for _, row in memo.entries.items()[:FEW]:
            for choice, position in key_choices(self._trace, memo.procedure.code, row):
                if self._kind(site_of(choice)) == "finite" and not self._trace.is_observed(choice):
                    yield choice, position

    def _is_label(self, choice: int, keyed: dict[Memo, set[int]]) -> bool:
        """Whether a choice is a key and nothing else, some value that it finds is found by nobody else, and nothing
        that it finds reads it."""
        if isinstance(self._trace.application(choice)[0], Exchangeable):
            return False
        families = Families(self._trace)
        comes_and_goes = (
            not families.stays(memo.procedure.code, row) for memo in keyed for _, row in memo.entries.items()[:FEW]
        )
        if any(self._reads(memo.procedure.code, positions) for memo, positions in keyed.items()):
            return False
        if not any(comes_and_goes):
            return False
        try:
            refuse_other_readers(self._model, choice)
        except KernelError:
            return False
        return True

    @staticmethod
    def _reads(code: Code, positions: Iterable[int]) -> bool:
        """Whether a body reads its arguments."""
        return any(code.readers.get(position) or code.env_readers.get(position) for position in positions)

    def holds(self, node: int) -> bool:
        """Whether a node's value is a label, handed on as it is."""
        while (source := computed_from(self._trace, node)) is not None:
            if source.is_applied or len(nodes := source_nodes(self._trace, source)) != 1:
                return False
            (node,) = nodes
        return site_of(node) in self.sites
