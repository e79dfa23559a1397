"""What some labels' rows absorb in a class, were its parameters these: one evaluation of many rows, for several lists
of parameters, or for many pairs of a class and a label.

Parameters that are numbers are given to the rows in place of what their calls give; others are written into the cells
of a class that stands for any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from venture_lite.interpreter.weights import Group
from venture_lite.kernels.label_rows import LabelReader, NotByColumns, group_terms
from venture_lite.trace.runtime import Memo
from venture_lite.trace.table import Column, NotColumnar


@dataclass(frozen=True, slots=True)
class MemberRows:
    """The rows that some members have at one reader, and which member each belongs to."""

    reader: LabelReader
    rows: np.ndarray
    # None where each member has one, in their order
    owners: np.ndarray | None
    # the rows several times over, by how many times
    _repeated: dict[int, np.ndarray] = field(default_factory=dict, compare=False)

    def repeated(self, times: int) -> np.ndarray:
        found = self._repeated.get(times)
        if found is None:
            found = self._repeated[times] = np.tile(self.rows, times)
        return found


@dataclass(frozen=True, slots=True)
class Pairs:
    """Some pairs of a class and a member, class by class, with the rows in which they absorb."""

    # how many pairs, and which class (P,) and which member (P,) each is of
    count: int
    classes: np.ndarray
    members: np.ndarray
    # the rows at one reader, one class after the other, how many each class has (K,), and of which pair each row is,
    # None where each pair has one, in their order
    rows: tuple[tuple[LabelReader, np.ndarray, np.ndarray, np.ndarray | None], ...]


@dataclass(frozen=True, slots=True)
class Members:
    """Some labels, with the rows in which they absorb."""

    count: int
    rows: tuple[MemberRows, ...]


class ClassAtHand:
    """A class whose cells hold the parameters of any."""

    def __init__(
        self, places: list[tuple[Column, int]], families: dict[LabelReader, list[int]], memos: Sequence[Memo],
        impossible: float = -math.inf,
    ) -> None:  # fmt: skip
        """`memos` make the parameters; a row that is impossible counts as `impossible`."""
        self._places, self._families, self._impossible = places, families, impossible
        self._parameter_of = {memo: place for place, memo in enumerate(memos)}
        # by group and the identity of rows: these, and the values of their choices
        self._values: dict[tuple[Group, int], tuple[np.ndarray, np.ndarray]] = {}

    def write(self, values: Sequence[Any]) -> None:
        for (column, row), value in zip(self._places, values, strict=True):
            if column.kind is np.ndarray:
                column.own()
                column.array[row] = value
            elif column.kind is object or type(value) is column.kind:
                column.view[row] = value
            else:
                raise NotByColumns

    def terms(self, values: Sequence[Any], members: Members) -> np.ndarray:
        """The log densities of some members' rows (m,), were the parameters these. Raises NotByColumns."""
        self.write(values)
        total = np.zeros(members.count)
        for part in members.rows:
            for group in part.reader.groups:
                group.families[:] = self._families[part.reader]
                terms = group_terms(group, part.rows, self._impossible)
                if part.owners is None:
                    total += terms
                else:
                    np.add.at(total, part.owners, terms)
        if not bool((total < math.inf).all()):
            raise NotByColumns
        return total

    def terms_of_lists(self, several: Sequence[Sequence[Any]], members: Members) -> np.ndarray:
        """The log densities (P, m) of some members' rows under P lists of parameters, whatever these are: one
        evaluation for all where they are numbers. Raises NotByColumns."""
        try:
            return self._terms_of_numbers(_numbers(several), members)
        except NotByColumns:
            return np.array([self.terms(values, members) for values in several])

    def _terms_of_numbers(self, numbers: np.ndarray, members: Members) -> np.ndarray:
        """Of parameters (P, d)."""
        count = len(numbers)

        def terms(impossible: float) -> np.ndarray:
            total = np.zeros((count, members.count))
            for part in members.rows:
                rows = part.repeated(count)
                given = [
                    np.repeat(numbers[:, self._place_of(part.reader, slot)], len(part.rows))
                    for slot in part.reader.borrowed
                ]
                for group in part.reader.given_groups:
                    group.families[: len(given)] = given
                    found = group_terms(group, rows, impossible, self._values_of(group, rows))
                    its = (found if np.ndim(found) else np.full(len(rows), found)).reshape(count, -1)
                    if part.owners is None:
                        total += its
                    else:
                        np.add.at(total.T, part.owners, its.T)
            return total

        return self._counted(terms)

    def terms_of_pairs(self, parameters: Sequence[Sequence[Any]], pairs: Pairs) -> np.ndarray:
        """The log densities (P,) of some pairs, with the parameters of each class: one evaluation for all. Raises
        NotByColumns, also where that is not to be had."""
        numbers = _numbers(parameters)

        def terms(impossible: float) -> np.ndarray:
            total = np.zeros(pairs.count)
            for reader, rows, counts, of_pair in pairs.rows:
                given = [np.repeat(numbers[:, self._place_of(reader, slot)], counts) for slot in reader.borrowed]
                for group in reader.given_groups:
                    group.families[: len(given)] = given
                    its = group_terms(group, rows, impossible, self._values_of(group, rows))
                    if of_pair is None:
                        total += its
                    else:
                        np.add.at(total, of_pair, its)
            return total

        return self._counted(terms)

    def _counted(self, terms: Callable[[float], np.ndarray]) -> np.ndarray:
        """The terms, in which what an impossible row counts is looked for only where there is one. Raises
        NotByColumns where one is infinite."""
        total = terms(-math.inf)
        if math.isfinite(total.sum()):
            return total
        if self._impossible > -math.inf:
            total = terms(self._impossible)
        if not bool((total < math.inf).all()):
            raise NotByColumns
        return total

    def _values_of(self, group: Group, rows: np.ndarray) -> np.ndarray:
        """The values of choices that absorb, which stay as they are meanwhile."""
        _, found = self._values.get((group, id(rows)), (None, None))
        if found is None:
            try:
                found = group.values_of(rows)
            except NotColumnar:
                raise NotByColumns from None
            # the rows are kept, too, that no others have their number
            self._values[group, id(rows)] = rows, found
        return found

    def terms_where(
        self, parameters: Sequence[Sequence[Any]], members: Members, mask: np.ndarray, pairs: Pairs
    ) -> np.ndarray:
        """As `terms_of_pairs`, whatever the parameters are, of the pairs where a mask (K, m) of all members holds."""
        try:
            return self.terms_of_pairs(parameters, pairs)
        except NotByColumns:
            # arrays, or integers, which a text may tell from numbers
            found: np.ndarray = np.array([self.terms(values, members) for values in parameters])[mask]
            return found

    def _place_of(self, reader: LabelReader, slot: int) -> int:
        """Which parameter a call gives. Raises NotByColumns where it gives none."""
        place = self._parameter_of.get(reader.memos[slot])
        if place is None:
            raise NotByColumns
        return place


def _numbers(several: Sequence[Sequence[Any]]) -> np.ndarray:
    """Parameters that are numbers, as an array. Raises NotByColumns where some are not."""
    for values in several:
        for value in values:
            if type(value) is not float:
                raise NotByColumns
    return np.array(several, dtype=np.float64).reshape(len(several), -1)
