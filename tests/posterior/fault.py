"""What a fault is: programs that a fast way answered wrongly, and how its mend is taken out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.posterior.case import Case


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was mended."""

    # In words, of the program that showed it: "levels of two groups in one loop".
    name: str
    # The program that showed it first, then its siblings; each with the engines that were wrong.
    cases: tuple[Case, ...]
    # Takes the mend out, so that the first case is wrong again without the check at run time.
    broken: Callable[[pytest.MonkeyPatch], None]
    # Further siblings, which run with the slow tests.
    siblings: tuple[Case, ...] = ()
    # Draws take long: all runs are slow tests, and another test stands for them every day.
    is_long: bool = False
