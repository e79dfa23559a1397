"""What a session and what an executor runs for it say to each other. What a chain gives goes as bytes, in which its
trace's parts are numbers (`trace/handover.py`)."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from venture_lite.interpreter.machine import Limits
from venture_lite.session.chain_processes import Finish
from venture_lite.session.executors.parcel import Parcel, Shareable

PACKAGES = ("venture-lite", "numpy", "scipy")


@cache
def versions() -> Mapping[str, str]:
    """Of all that the draws of a seed depend on."""
    found = {"Python": ".".join(platform.python_version_tuple()[:2])}
    for name in PACKAGES:
        # a checkout may stand on Python's path without being installed
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


# ------------------------------------------------------------------------------------------------- to the session


@dataclass(frozen=True, slots=True)
class Hello:
    """The first that is said."""

    # machine and process, for a person
    where: str
    versions: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Parts of a chain that are not there yet."""

    digests: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Gave:
    """What a chain gave: bytes of a message."""

    chain: int
    message: bytes


@dataclass(frozen=True, slots=True)
class DrawsSoFar:
    """Draws that the inference under way has added."""

    chain: int
    # of each variable how many came before
    known: Mapping[str, int]
    # bytes of a dictionary from variables to lists of draws
    columns: bytes
    # by variable, how many of its first draws are warm-up
    adapting: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class CannotMake:
    """A chain cannot be made there."""

    chain: int
    reason: str


@dataclass(frozen=True, slots=True)
class StillHere:
    """Said now and then."""


# ----------------------------------------------------------------------------------------------- from the session


@dataclass(frozen=True, slots=True)
class ChainSetting:
    """What a chain is besides its program and its trace."""

    seed: np.random.SeedSequence
    # of all chains, and which of them it is
    count: int
    number: int
    limits: Limits
    kernels: str
    # whether a person sees how far it is
    is_watched: bool


@dataclass(frozen=True, slots=True)
class Begin:
    """Make a chain."""

    chain: int
    parcel: Parcel
    setting: ChainSetting


@dataclass(frozen=True, slots=True)
class Parts:
    """What was wanted, by digest."""

    found: Mapping[bytes, Shareable]


@dataclass(frozen=True, slots=True)
class Ask:
    """Let a chain run its program so many times more, or hand back its state."""

    chain: int
    request: int | Finish


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Let every chain stop as after Ctrl-C."""
