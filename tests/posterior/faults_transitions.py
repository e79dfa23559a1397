"""Transitions by forms, and values of several kinds in columns."""

from __future__ import annotations

from tests.posterior.fault import Fault

FAULTS: tuple[Fault, ...] = ()
