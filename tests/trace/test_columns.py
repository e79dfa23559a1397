"""A column keeps its type: data are not made a list by a move, vectors of a wide table are rows of a matrix, and what
was read stays as it was when the column changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.procedures import domains
from venture_lite.trace.journal import Journal
from venture_lite.trace.table import WIDE, Column, narrowest


def data_column(rows: int = 3) -> Column:
    column = Column()
    column.adopt(0, np.arange(2.0 * rows).reshape(rows, 2))
    return column


def vectors(rows: int) -> Column:
    column = Column()
    column.reserve(8)
    for row in range(rows):
        if row >= len(column.view):
            column.reserve(2 * len(column.view))
        column.put(row, np.array([row, 0.5]))
    return column


def test_a_row_of_data_is_replaced_in_the_matrix() -> None:
    column = data_column()
    before, stamp = column.view[1], column.stamp
    column.put(1, np.array([7.0, 8.0]))
    assert column.kind is np.ndarray
    assert column.stamp != stamp
    assert column.gather(slice(0, 3)).tolist() == [[0.0, 1.0], [7.0, 8.0], [4.0, 5.0]]
    # who read the row before keeps what was read
    assert before.tolist() == [2.0, 3.0]


def test_data_given_again_are_not_copied() -> None:
    column = data_column()
    array, stamp = column.array, column.stamp
    column.put(2, np.array([4.0, 5.0]))
    assert column.array is array
    assert column.stamp == stamp


def test_vectors_of_a_wide_table_are_rows_of_a_matrix_read_out_as_copies() -> None:
    column = vectors(2 * WIDE)
    assert column.kind is np.ndarray
    read = column.view[3]
    column.put(3, np.array([-1.0, -2.0]))
    assert read.tolist() == [3.0, 0.5]
    assert not read.flags.writeable
    assert column.view[3].tolist() == [-1.0, -2.0]


def test_vectors_of_a_narrow_table_are_the_objects_that_were_put_in() -> None:
    column = vectors(WIDE // 2)
    assert column.kind is object
    assert column.view[1] is column.view[1]


@pytest.mark.parametrize("other", [np.zeros(3), 1.5, (1, 2), np.zeros((2, 2))])
def test_rows_of_another_shape_make_it_a_list(other: Any) -> None:
    column = vectors(2 * WIDE)
    column.put(5, other)
    assert column.kind is object
    assert column.view[5] is other
    assert column.view[6].tolist() == [6.0, 0.5]


def test_rejection_restores_rows_of_a_matrix() -> None:
    for column in (data_column(), vectors(2 * WIDE)):
        journal, before, stamp = Journal(), column.gather(slice(0, 3)).copy(), column.stamp
        journal.put(column, 0, np.array([9.0, 9.0]))
        journal.put(column, 2, np.array([8.0, 8.0]))
        journal.put_rows(column, np.array([0, 1]), np.ones((2, 2)))
        journal.rollback()
        assert column.gather(slice(0, 3)).tolist() == before.tolist()
        assert column.stamp == stamp


MIXTURE = """
[assume crp (make_crp 1)]
[assume z (mem (lambda (n) (tag 'z n (crp))))]
[assume g (mem (lambda (k) (make_collapsed_multivariate_normal {mu} 1 5 {I})))]
for n in 1...N: [observe ((g (z n))) {X[n]}]
"""


def test_data_stay_a_matrix_when_components_come_and_go() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) + 4])
    model = Venture(seed=1)
    model.execute(MIXTURE, X=points, N=40, mu=np.zeros(3), I=np.eye(3))
    model.infer("(gibbs z one 300)")
    trace = model.traces[0].trace
    evidence = [table.columns[slot] for table in trace.tables if table.count == 40 for slot in table.observed]
    assert [column.kind for column in evidence if column is not None] == [np.ndarray]


# ------------------------------------------------------------------------------------------------ narrower types


@pytest.mark.parametrize(
    ("numbers", "dtype"),
    [
        (np.array([0.0, 1.0, 1.0, -0.0]), np.bool_),
        (np.array([0, 1, 1]), np.bool_),
        (np.array([0.0, 2.0, -3.0]), np.int64),
        (np.array([0.0, 0.5]), np.float64),
        (np.array([0.0, 2.0**60]), np.float64),
        (np.array([0.0, np.nan]), np.float64),
        (np.array([0.0, 5.0, np.inf]), np.float64),
    ],
)
def test_the_narrowest_type_holds_the_same_numbers(numbers: np.ndarray, dtype: Any) -> None:
    narrow = narrowest(numbers)
    assert narrow.dtype == dtype
    assert np.array_equal(narrow, numbers, equal_nan=numbers.dtype.kind == "f")


def test_a_column_is_searched_once_and_again_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    def search(numbers: np.ndarray) -> np.ndarray:
        searched.append(len(numbers))
        return narrowest(numbers)

    monkeypatch.setattr("venture_lite.trace.table.narrowest", search)
    column = Column()
    column.adopt(0, np.array([0.0, 1.0, 1.0, 0.0]))
    found = [column.gather_narrow(rows) for rows in (slice(0, 4), slice(1, 3), np.array([3, 1]), slice(0, 4))]
    assert searched == [4]
    assert [part.dtype.kind for part in found] == ["f", "b", "b", "b"]
    assert [part.tolist() for part in found] == [[0, 1, 1, 0], [1, 1], [0, 1], [0, 1, 1, 0]]
    column.put(2, 0.5)
    assert [column.gather_narrow(slice(0, 4)).tolist() for _ in range(3)] == [[0, 1, 0.5, 0]] * 3
    assert searched == [4, 4]


def test_a_minibatch_of_a_column_that_changes_each_time_searches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("venture_lite.trace.table.narrowest", lambda numbers: pytest.fail("searched"))
    column = Column()
    column.adopt(0, np.arange(1000.0))
    for row in range(100):
        column.put(row, 0.5)
        column.gather_narrow(np.array([1, 2, 3]))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", [np.float64, np.int64])
def test_classes_given_as_numbers_are_weighed_as_booleans_are(kind: Any) -> None:
    text = """
    [assume w (tag 'w 0 (multivariate_normal {mu} {S}))]
    for n in 1...N: [observe (bernoulli (linear_logistic w {X[n]})) {Y[n]}]
    """
    rng = np.random.default_rng(3)
    features, classes = rng.normal(size=(50, 2)), rng.random(50) < 0.5

    def draws(given: np.ndarray) -> np.ndarray:
        model = Venture(seed=1)
        model.execute(text, X=features, Y=given, N=50, mu=np.zeros(2), S=np.eye(2))
        found: np.ndarray = model.infer("(repeat 50 (do (mh w all 'drift 0.3 1) (hmc w all 0.1 3 1) (collect w)))")["w"]
        return found

    assert np.array_equal(draws(classes), draws(classes.astype(kind)))


def test_an_argument_that_stands_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
    [assume a (tag 'a 0 (normal 0 1))]
    for n in 1...N: [observe (binomial {M[n]} (logistic a)) {Y[n]}]
    """
    model = Venture(seed=1)
    model.execute(text, M=np.full(40, 7.0), Y=np.full(40, 3.0), N=40)
    checked: list[int] = []
    contains = domains.COUNT.contains_all

    def counted(column: np.ndarray) -> bool:
        checked.append(len(column))
        return contains(column)

    count = replace(domains.COUNT, contains_all=counted)
    for table in model.traces[0].weights.groups.values():
        arguments = tuple(replace(a, domain=count) if a.name == "n" else a for a in table.record.arguments)
        table.record = replace(table.record, arguments=arguments)
    before = model.infer("(repeat 30 (do (mh a all 'drift 0.3 1) (collect a)))")["a"]
    # the loading has looked at the rows before
    assert len(checked) <= 2
    assert np.ptp(before) > 0
