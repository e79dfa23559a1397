"""How often procedures had no value, as a solver that found no solution: told with the kernel that met it.

Such a value is one under which nothing observed has a density, so that the state counts as impossible and no error is
raised. Who looks at the draws is to know nevertheless: a solver may have given up where there is a solution.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from venture_lite.draws.kernel_summary import FAILED
from venture_lite.procedures.record import Deterministic
from venture_lite.program.code import Program


class FailedSolves:
    """What the procedures of a program count, kernel by kernel. Mutates what it is told to add to."""

    def __init__(self, program: Program) -> None:
        records = {id(slot.record): slot.record for code in program.codes for slot in code.slots}.values()
        self._records = [each for each in records if isinstance(each, Deterministic) and each.failures is not None]

    def so_far(self) -> Counter[str]:
        """By name and reason."""
        found: Counter[str] = Counter()
        for record in self._records:
            for reason, count in (record.failures or {}).items():
                found[f"{record.name} {reason}"] += count
        return found

    @contextmanager
    def added_to(self, counts: Counter[str]) -> Iterator[None]:
        """`with failures.added_to(counts):` what is met meanwhile is added, also where an error ends it."""
        before = self.so_far() if self._records else Counter()
        try:
            yield
        finally:
            if self._records:
                counts.update(self.so_far() - before)


def failure_details(counts: Mapping[str, int]) -> dict[str, float]:
    """As details of a kernel."""
    return {f"{FAILED}{name}": float(count) for name, count in counts.items()}
