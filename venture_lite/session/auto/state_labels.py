"""States that are labels: choices of finite support that mean nothing but which memoized values they find.

A state that is read only as a key, of procedures whose text does not read the key, can be exchanged with any other: a
posterior has every such renaming of a state that it has. So neither the state nor what is memoized by it is a quantity
that chains agree on; what they give together is. Nor are the weights of labels, as `w` of `(categorical w)`, one where
their prior does not tell one label from another: a renaming exchanges them as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from venture_lite.blocks.chains import BINARY, POSITIONS
from venture_lite.blocks.distributions import name_of
from venture_lite.blocks.kinds import kinds
from venture_lite.errors import KernelError
from venture_lite.interpreter.ancestry import Families, key_choices
from venture_lite.interpreter.label_readers import refuse_other_readers
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.sources import computed_from, node_named, source_nodes
from venture_lite.interpreter.weights import density_of
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
        self._weights = {self._weight_of(found[site][0]) for site in self.sites}

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
        choice = self._handed_on(node)
        return choice >= 0 and site_of(choice) in self.sites

    def weighs(self, node: int) -> bool:
        """Whether a node's value says how probable each label is, by a prior to which labels are alike."""
        choice = self._handed_on(node)
        return choice >= 0 and choice in self._weights and self._is_symmetric(choice)

    def _weight_of(self, label: int) -> int:
        """The choice that says how probable the values of a label are; -1 where that is none."""
        if name_of(self._trace.application(label)[0]) not in POSITIONS | BINARY:
            return -1
        code, slot, row = self._trace.decode(label)
        if not code.slots[slot].arguments:
            return -1
        node = node_named(self._trace, code, row, code.slots[slot].arguments[0])
        return -1 if node < 0 else self._handed_on(node)

    def _is_symmetric(self, choice: int) -> bool:
        """Whether probabilities are as probable where labels are renamed: all by one place, or turned round."""
        operator, arguments, value = self._trace.choice(choice)
        renamed: list[Any] = [np.roll(value, 1), value[::-1]] if isinstance(value, np.ndarray) else [1.0 - value]
        here, *there = (density_of(self._trace, choice, operator, arguments, each) for each in (value, *renamed))
        return all(math.isclose(here, density, rel_tol=1e-9, abs_tol=1e-9) for density in there)

    def _handed_on(self, node: int) -> int:
        """The choice whose value a node has, as it is; -1 where it is computed."""
        while (source := computed_from(self._trace, node)) is not None:
            if source.is_applied or len(nodes := source_nodes(self._trace, source)) != 1:
                return -1
            (node,) = nodes
        return node
