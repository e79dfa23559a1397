"""The likelihood to a power, for every kernel: observed choices are those of other records meanwhile.

Whatever weighs a choice reads its distribution off the text, so that a power put there is in every transition, gradient
and bound, without a word in any engine. What was derived from the text is derived anew at each power.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from venture_lite.errors import KernelError
from venture_lite.interpreter.model import Model
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.weights import Weight
from venture_lite.procedures.powers import raised
from venture_lite.procedures.record import Random
from venture_lite.program.code import Code, Kind

HINT = "without 'tempered data come one by one, with their densities as they are"


class Tempering:
    """The power of the likelihood of one model. Mutates the program's Codes, until `end`."""

    def __init__(self, model: Model) -> None:
        """Raises KernelError where the distribution of an observation is found only when it is evaluated."""
        self.model = model
        # the places of observations that are tempered, with their distributions
        self._records: dict[tuple[Code, int], Random] = {}
        self._find()

    def _find(self) -> None:
        trace = self.model.trace
        changing = Builder(trace).build(node for node in trace.choices() if not trace.is_observed(node)).structural
        for table in trace.tables:
            for slot in table.observed if table.dead < table.count else ():
                for row in table.live_rows():
                    if table.is_observed(slot, row):
                        node = (table.code.first_site + slot) << 32 | row
                        self._add(table.code, slot, node in changing, trace.is_choice(table.code, slot, row))

    def _add(self, code: Code, slot: int, may_change: bool, is_choice: bool) -> None:
        """An observed node: the choice that takes evidence, or one on the way to it."""
        item = code.slots[slot]
        if isinstance(item.record, Random) and item.kind is Kind.RANDOM:
            self._records[code, slot] = item.record
        elif is_choice or (may_change and not item.branches):
            what = "which distribution this observation has is found when it is evaluated: it cannot be tempered"
            raise KernelError(what, item.span, HINT)
        elif may_change:
            # evidence goes into the branch that is not taken now as well, once that is
            for branch in item.branches:
                self._add(branch, branch.result_slot, may_change=True, is_choice=False)

    def set(self, power: float) -> None:
        """Raise the likelihood to a power (0, 1]."""
        for (code, slot), record in self._records.items():
            code.slots[slot].record = raised(record, power)
        self.model.derive_anew()

    def end(self) -> None:
        """The likelihood is as the program says."""
        self.set(1.0)

    def log_likelihood(self) -> Weight:
        """The log density of all observations, to the present power."""
        total = Weight()
        for site in self._observed():
            total.plus(self.model.weights.all_rows(site))
        return total

    def observed(self) -> list[int]:
        """Every observed choice."""
        return [node for site in self._observed() for node in self.model.trace.nodes_of(site)]

    def _observed(self) -> Iterator[int]:
        """The places of observations. Raises KernelError where another choice is made at one of them."""
        for code, slot in self._records:
            table = self.model.trace.tables[code.index]
            count, flags = table.count - table.dead, table.observed.get(slot)
            if not count:
                continue
            every = np.frombuffer(flags or bytes(table.count), np.uint8, table.count)
            if int(np.count_nonzero(every[table.rows()])) < count:
                what = "some choices made here are observed and others are not: they cannot be tempered apart"
                raise KernelError(what, code.slots[slot].span, HINT)
            yield code.first_site + slot
