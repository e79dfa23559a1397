"""Labels of exchangeable makers, and engines that sum labels out."""

from __future__ import annotations

from tests.posterior.fault import Fault

FAULTS: tuple[Fault, ...] = ()
