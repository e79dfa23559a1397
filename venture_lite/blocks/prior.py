"""The prior's density of blocks in worlds: what a network is compared with."""

from __future__ import annotations

import contextlib
from collections.abc import Container, Sequence
from typing import Any

import numpy as np

from venture_lite.blocks.worlds import Blanket, Lifted, Worlds
from venture_lite.errors import VentureError
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Random
from venture_lite.procedures.transforms import slopes_of_rows


def log_prior(blanket: Blanket, worlds: Worlds, choices: Container[int]) -> np.ndarray:
    """(W,): of the values of some choices of a block in the worlds, given their parents there. A continuous choice has
    its density by the free coordinates of its transform; NaN or infinite where it cannot be evaluated."""
    found = np.zeros(worlds.count)
    with np.errstate(all="ignore"):
        for reader in blanket.choices:
            if reader.run.nodes[0] not in choices:
                continue
            record, values, arguments = reader.run.operator, reader.values(worlds), reader.outputs(worlds)
            terms = _log_densities(record, reader.lifted, values, arguments)
            if record.transform is not None:
                terms = terms + slopes_of_rows(record.transform, values, arguments)
            found += terms.reshape(-1, worlds.count).sum(axis=0)
    return found


def _log_densities(record: Random, lifted: Lifted, values: np.ndarray, arguments: Sequence[Any]) -> np.ndarray:
    """Of the values of rows, (R,)."""
    if record.log_density_columns is not None:
        try:
            terms = record.log_density_columns((True, *lifted), values, *arguments)
            return np.broadcast_to(np.asarray(terms), (len(values),))
        except (RowByRow, TypeError):
            pass
    found = np.full(len(values), np.nan)
    columns = [x if up else [x] * len(values) for x, up in zip(arguments, lifted, strict=True)]
    for at, row in enumerate(zip(values.tolist() if values.ndim == 1 else values, *columns, strict=True)):
        with contextlib.suppress(VentureError):
            found[at] = record.log_density(*row)
    return found
