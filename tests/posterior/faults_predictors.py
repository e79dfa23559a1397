"""Linear predictors."""

from __future__ import annotations

from tests.posterior.fault import Fault

FAULTS: tuple[Fault, ...] = ()
