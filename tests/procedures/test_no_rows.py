"""Columns of no row and of one: what is written for columns gives none of each, and what it gives of one among all."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.procedures.examples import RANDOM
from tests.procedures.likelihoods import RECORDS, SETTINGS, placed, predictor_of
from tests.procedures.test_deterministic import column
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Random
from venture_lite.procedures.registry import PROCEDURES


def record_of(name: str) -> Random:
    record = PROCEDURES[name]
    assert isinstance(record, Random)
    return record


def rows_of(name: str) -> list[tuple[Any, ...]]:
    """Three drawn values with their arguments."""
    record, args = record_of(name), RANDOM[name].arguments[0]
    rng = np.random.default_rng(5)
    return [(record.simulate(rng, *args), *args) for _ in range(3)]


@pytest.mark.parametrize("name", [name for name in RANDOM if record_of(name).log_density_columns is not None])
def test_densities_and_gradients(name: str) -> None:
    record = record_of(name)
    rows = rows_of(name)
    for lifted in itertools.product((True, False), repeat=len(rows[0])):
        if not any(lifted):
            continue
        found: dict[int, list[Any]] = {}
        for count in (0, 1, 3):
            columns = [column(row[i] for row in rows)[:count] if up else rows[0][i] for i, up in enumerate(lifted)]
            try:
                assert record.log_density_columns is not None
                made = [record.log_density_columns(lifted, *columns)]
                if record.gradient is not None:
                    wanted = tuple(record.gradient.exists)
                    made += [each for each in record.gradient.evaluate(lifted, wanted, *columns) if each is not None]
            except RowByRow:
                break
            found[count] = made
            assert len(made[0]) == count
        for count in (set(found) & {1}) if 3 in found else ():
            np.testing.assert_allclose(np.asarray(found[count][0]), np.asarray(found[3][0])[:1], rtol=1e-12)


@pytest.mark.parametrize("name", RECORDS)
def test_predictors(name: str) -> None:
    predictor = predictor_of(name)
    shape = (3,) if predictor.is_vector else ()
    for setting in SETTINGS[name]:
        etas = np.linspace(-1.0, 1.0, 3 * (3 if shape else 1)).reshape(3, *shape)
        for count in (0, 1, 3):
            value, *arguments = placed(name, setting, etas[:count])
            given = (np.repeat(np.array([value]), count), *arguments)
            density, first = predictor.first_order(*given)
            terms = predictor.taylor(*given)
            assert np.shape(first) == (count, *shape)
            for found in (density, terms[0], predictor.limits(*given)[0]):
                assert np.shape(found) in ((), (count,))
            assert np.shape(predictor.information(*given))[:1] in ((), (count,))
            for bound in predictor.bounds:
                assert len(np.atleast_1d(bound.touching(*given).value)) == count
