"""Gradients and functions of blocks."""

from __future__ import annotations

from tests.posterior.fault import Fault

FAULTS: tuple[Fault, ...] = ()
