"""Sums of log densities over rows and their derivatives, against the density and the gradient of one row after the
other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.procedures.examples import RANDOM
from tests.procedures.test_random import draws, record_of
from venture_lite.procedures.record import Random
from venture_lite.procedures.totals import is_summed, summed_slopes

ROWS = 7
STRETCHED = np.linspace(1.0, 1.001, ROWS)
"""What makes a column of an argument."""


def cases() -> list[tuple[str, tuple[Any, ...]]]:
    return [
        (name, arguments)
        for name, example in RANDOM.items()
        for arguments in example.arguments
        if is_summed(record_of(name)) and all(isinstance(each, (int, float)) for each in arguments)
    ]


def one_by_one(record: Random, rows: list[tuple[float, ...]]) -> tuple[float, np.ndarray]:
    """The sum of log densities, and the derivatives (rows, inputs)."""
    assert record.gradient is not None
    none, every = (False,) * len(rows[0]), (True,) * len(rows[0])
    slopes = [record.gradient.evaluate(none, every, *row) for row in rows]
    total = sum(record.log_density(*row) for row in rows)
    return total, np.array([[0.0 if part is None else part for part in parts] for parts in slopes])


@pytest.mark.parametrize(("name", "arguments"), cases(), ids=str)
def test_sums_are_those_of_single_rows(name: str, arguments: tuple[float, ...]) -> None:
    """For columns, numbers and constants in every place. Noticed: the total of a quotient by a column, a product of two
    columns summed apart, a constant that is multiplied once, `where` of the wrong branch."""
    record = record_of(name)
    assert record.gradient is not None
    values = np.array([float(value) for value in draws(name, arguments, ROWS)])
    for kinds in itertools.product(("column", "number", "constant"), repeat=len(arguments)):
        places = list(zip(map(float, arguments), kinds, strict=True))
        lifted = (True, *(kind == "column" for kind in kinds))
        constants = (None, *(each if kind == "constant" else None for each, kind in places))
        exists = zip(record.gradient.exists, constants, strict=True)
        asked = tuple(there and constant is None for there, constant in exists)
        given: list[Any] = [values, *(each * STRETCHED if kind == "column" else each for each, kind in places)]
        rows: list[Any] = [tuple(float(each[n]) if np.ndim(each) else each for each in given) for n in range(ROWS)]
        total, slopes = one_by_one(record, rows)
        if not np.isfinite(total):
            continue
        with np.errstate(all="ignore"):
            found, *parts = summed_slopes(record.definition, asked, lifted, constants)(*given, ROWS)
        assert found == pytest.approx(total, rel=1e-9, abs=1e-9)
        wanted = [(slopes[:, at], up) for at, (ask, up) in enumerate(zip(asked, lifted, strict=True)) if ask]
        for part, (single, is_column) in zip(parts, wanted, strict=True):
            expected = single if is_column else single.sum()
            np.testing.assert_allclose(part, expected, rtol=1e-8, atol=1e-8 * (1.0 + np.abs(single).sum()))
