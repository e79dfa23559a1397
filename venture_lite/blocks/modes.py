"""Modes of linear blocks, kept with the trace: where bounds are placed, expansions made and steps scaled.

A mode only centres. So it is found once, from the block's present values, and stays while other kernels move what the
likelihoods read besides: a centre that followed them with a delay would carry memories of the block into its moves. It
is found anew where the program or its data change.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from venture_lite.blocks.linear_block import LinearBlock


@dataclass(slots=True)
class Mode:
    """Where the log posterior of a linear block was highest. Mutable: `edition` follows the trace's."""

    # (D,)
    at: np.ndarray
    # of the gradient there
    norm: float
    # how often all rows were evaluated on the way
    evaluations: int
    # of the set-ups when the mode was last known to be that of the program and its data
    edition: int
    # of features and values
    digest: bytes

    def bytes_used(self) -> int:
        return self.at.nbytes + len(self.digest)


def mode_of(linear: LinearBlock) -> tuple[Mode, bool]:
    """The kept mode, or one that is found now, and whether it was kept."""
    owner = linear.model.kept
    key = ("mode", *linear.block, linear.size)

    def found() -> Mode:
        return Mode(*linear.mode(), owner.edition, digest_of(linear))

    return owner.had(key, found, lambda kept: is_current(kept, linear))


def is_current(mode: Mode, linear: LinearBlock) -> bool:
    """Whether the block reads the data that it read. A directive that was added may have nothing to do with it."""
    edition = linear.model.kept.edition
    if mode.edition != edition and mode.digest == digest_of(linear):
        mode.edition = edition
    return mode.edition == edition


def digest_of(linear: LinearBlock) -> bytes:
    """What the rows are: features and values. Other arguments and offsets may move with other kernels."""
    found = hashlib.blake2b(digest_size=16)
    for kind in linear.kinds:
        for array in (kind.features, kind.values):
            found.update(f"{array.shape}{array.dtype}".encode())
            found.update(np.ascontiguousarray(array).data)
    return found.digest()
