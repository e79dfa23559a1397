"""Deterministic records: their examples, their columns against their rows, and clean errors for anything else."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from tests.procedures.examples import DETERMINISTIC, RED, M, V, matrix, vector
from venture_lite.errors import ArgumentError
from venture_lite.interpreter.answered_columns import value_at
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.trace.table import column_of

ODD = [math.nan, math.inf, -math.inf, -1, 0, 0.5, 2**62, True, "text", RED, (), (1, "a"), ((1,), 2), V, M, vector()]


def scalar(name: str) -> Any:
    record = PROCEDURES[name]
    assert isinstance(record, Deterministic)
    return record.scalar


def same(left: Any, right: Any) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return type(left) is type(right) and left.shape == right.shape and np.allclose(left, right, 1e-14, 0)
    if isinstance(left, float) and isinstance(right, (int, float)):
        return left == right or math.isclose(left, right, rel_tol=1e-14)
    return bool(left == right)


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_examples(name: str) -> None:
    for args, expected in DETERMINISTIC[name]:
        assert same(scalar(name)(*args), expected), (name, args, scalar(name)(*args))


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_arrays_that_come_out_are_read_only_floats(name: str) -> None:
    for args, _ in DETERMINISTIC[name]:
        result = scalar(name)(*args)
        if isinstance(result, np.ndarray):
            assert result.dtype == np.float64
            assert not result.flags.writeable
        assert not isinstance(result, np.generic), (name, args)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", DETERMINISTIC)
@pytest.mark.thorough
def test_anything_else_is_an_argument_error_and_never_a_nan(name: str) -> None:
    counts = {len(args) for args, _ in DETERMINISTIC[name]} - {0}
    for count in sorted(counts & {1, 2}):
        for args in itertools.product(ODD, repeat=count):
            if any(isinstance(x, float) and math.isnan(x) for x in args):
                continue
            try:
                result = scalar(name)(*args)
            except ArgumentError:
                continue
            assert not (isinstance(result, float) and math.isnan(result)), (name, args)


@pytest.mark.parametrize("name", [name for name in DETERMINISTIC if PROCEDURES[name].columns is not None])  # type: ignore[union-attr]
def test_columns_agree_with_rows(name: str) -> None:
    record = PROCEDURES[name]
    assert isinstance(record, Deterministic)
    assert record.columns is not None
    answered = 0
    by_count: dict[int, list[tuple[Any, ...]]] = {}
    for args, _ in DETERMINISTIC[name]:
        by_count.setdefault(len(args), []).append(args)
    for count, calls in by_count.items():
        for kept in (calls, *[[call] for call in calls]):
            for lifted in itertools.product((True, False), repeat=count):
                if not any(lifted):
                    continue
                rows = [
                    tuple(a if up else kept[0][i] for i, (a, up) in enumerate(zip(r, lifted, strict=True)))
                    for r in kept
                ]
                columns = [column(r[i] for r in rows) if lifted[i] else rows[0][i] for i in range(count)]
                try:
                    result = record.columns(lifted, *columns)
                except RowByRow:
                    continue
                answered += 1
                assert len(result) == len(rows)
                for got, row in zip(result, rows, strict=True):
                    expected = record.scalar(*row)
                    assert np.shape(got) == np.shape(expected), (name, row)
                    assert np.allclose(np.asarray(got, float), np.asarray(expected, float), 1e-12, 1e-15), (
                        name,
                        row,
                        got,
                    )
    assert answered


def column(values: Any) -> np.ndarray:
    """As the trace would store them: numbers and equal shapes as numbers, anything else as objects."""
    values = list(values)
    numbers = all(isinstance(value, (int, float)) for value in values)
    arrays = all(isinstance(value, np.ndarray) for value in values) and len({np.shape(value) for value in values}) == 1
    if numbers or arrays:
        return np.array(values)
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


AWKWARD: dict[type, list[Any]] = {
    bool: [True, False],
    int: [0, 1, 3, -2, 2**31, 2**53 + 1, -(2**53) - 1, 2**62],
    float: [0.0, -0.0, 1.0, 0.5, -2.5, 2.0**53, 1e300, math.inf, -math.inf],
}


@pytest.mark.parametrize("name", [name for name in DETERMINISTIC if PROCEDURES[name].columns is not None])  # type: ignore[union-attr]
def test_columns_keep_kinds_signs_and_digits(name: str) -> None:
    """Of numbers and truth values, each column of one kind."""
    record = PROCEDURES[name]
    assert isinstance(record, Deterministic)
    assert record.columns is not None
    draw = random.Random(name)
    counts = sorted({len(args) for args, _ in DETERMINISTIC[name]} & {1, 2, 3})
    for _ in range(200 * len(counts)):
        lifted = tuple(draw.random() < 0.6 for _ in range(draw.choice(counts)))
        kinds = [AWKWARD[draw.choice([bool, int, float])] for _ in lifted]
        rows = [[draw.choice(kind) for kind in kinds] for _ in range(2)]
        if True not in lifted:
            continue
        columns = [column_of([rows[0][i], rows[1][i]]) if up else rows[0][i] for i, up in enumerate(lifted)]
        try:
            found = record.columns(lifted, *columns)
        except RowByRow:
            continue
        for row, value in zip(rows, found, strict=True):
            given = [each if up else rows[0][i] for i, (each, up) in enumerate(zip(row, lifted, strict=True))]
            assert is_same_number(record.scalar(*given), value_at(np.asarray([value]), 0)), (name, given, value)


def is_same_number(expected: Any, value: Any) -> bool:
    """True if numbers, or vectors, are of one kind and differ by rounding alone, and zeros have one sign."""
    if isinstance(expected, np.ndarray):
        return expected.shape == value.shape and all(map(is_same_number, expected.tolist(), value.tolist()))
    if isinstance(expected, bool) or isinstance(value, bool):
        return expected is value
    if expected == 0 or value == 0:
        return (expected, math.copysign(1, expected)) == (value, math.copysign(1, value))
    return bool(expected == value or (isinstance(value, float) and math.isclose(expected, value, rel_tol=1e-14)))


def test_integers_beyond_64_bits_become_floats() -> None:
    assert scalar("+")(2**62, 2**62) == 2.0**63
    assert isinstance(scalar("*")(2**62, 4), float)
    assert isinstance(scalar("*")(2**31, 2), int)
    with pytest.raises(RowByRow):
        PROCEDURES["*"].columns((True, True), np.array([2**62]), np.array([4]))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("/", (1, 0), "/: division by zero, of 1 by 0"),
        ("/", (V, vector(1, 0, 1)), "division by zero"),
        ("mod", (1, 0), "mod: division by zero"),
        ("+", (V, vector(1, 2)), r"\+: shapes differ: \(3,\) and \(2,\)"),
        ("log", (-1,), "log: x must be a number that is not negative, got -1"),
        ("lookup", ((1, 2), 2), "lookup: position 2 of 2: positions run from 0 to 1"),
        ("lookup", ((), 0), "lookup: position 0 of an empty list"),
        ("lookup", ((1, 2), -1), "position -1 of 2"),
        ("lookup", ((1, 2), 0.5), "index must be an integer, got 0.5"),
        ("dot", (V, vector(1, 2)), "dot: sizes do not match"),
        ("first", ((),), "first: the list has no entry"),
        ("last", ((),), "last: the list has no entry"),
        ("take", ((1, 2), -1), "take: count must be an integer, 0 or more, got -1"),
        ("sort", ((1, "a"),), "sort takes a vector, a list of numbers or a list of strings"),
        ("variance", ((1,),), "variance takes at least two numbers"),
        ("quantile", ((), 0.5), "quantile: an empty list has none"),
        ("quantile", ((1, 2), 1.5), "quantile: p must be a number between 0 and 1, got 1.5"),
        ("solve", (matrix((1, 2), (2, 4)), vector(1, 1)), "solve: the matrix is singular"),
        ("solve", (M, V), "solve: the matrix is 2 by 2, but right has 3 rows"),
        ("solve", (matrix((1, 2, 3)), V), "solve: the matrix must be square, and is 1 by 3"),
        ("inverse", (matrix((0,)),), "inverse: the matrix is singular"),
        ("cholesky", (M,), "cholesky: matrix must be a symmetric positive definite matrix"),
        ("cholesky", (matrix((1, 2), (2, 1)),), "cholesky: matrix must be a symmetric positive definite matrix"),
        ("det", (V,), "det: matrix must be a matrix of finite numbers"),
        ("eye", (10**9,), "eye: size must be an integer, 0 or more and at most 32,768"),
    ],
)
def test_messages(name: str, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        scalar(name)(*args)


@pytest.mark.filterwarnings("error")
def test_algebra_of_many_rows_agrees_with_one_at_a_time() -> None:
    rng = np.random.default_rng(2)
    matrices, vectors, sides = rng.normal(size=(7, 3, 3)), rng.normal(size=(7, 3)), rng.normal(size=(7, 3, 2))
    for name in ("det", "trace", "inverse"):
        assert np.allclose(columns_of(name)((True,), matrices), [scalar(name)(m) for m in matrices], 1e-12, 1e-14)
    for rights in (vectors, sides):
        for lifted in ((True, True), (True, False), (False, True)):
            left = matrices if lifted[0] else matrices[0]
            right = rights if lifted[1] else rights[0]
            expected = [scalar("solve")(matrices[i * lifted[0]], rights[i * lifted[1]]) for i in range(7)]
            assert np.allclose(columns_of("solve")(lifted, left, right), expected, 1e-12, 1e-14)
    matrices[3, 1] = matrices[3, 0]
    for name in ("inverse", "solve"):
        with pytest.raises(RowByRow):
            columns_of(name)((True, True)[: 1 + (name == "solve")], matrices, *[vectors][: name == "solve"])


def columns_of(name: str) -> Any:
    record = PROCEDURES[name]
    assert isinstance(record, Deterministic)
    return record.columns


def test_the_determinant_of_large_entries_is_no_nan() -> None:
    assert scalar("det")(matrix((1e300, 1e300), (1e300, -1e300))) == -math.inf
    assert scalar("det")(matrix((1e300, 1e300), (1e300, 1e300))) == 0.0


def test_dot_of_a_matrix_column_with_uniform_weights() -> None:
    rng = np.random.default_rng(1)
    rows, weights = rng.normal(size=(50, 3)), vector(1, -2, 0.5)
    for name in ("dot", "linear_logistic"):
        record = PROCEDURES[name]
        assert isinstance(record, Deterministic)
        assert record.columns is not None
        expected = [record.scalar(weights, row) for row in rows]
        assert np.allclose(record.columns((False, True), weights, rows), expected, 1e-12, 1e-15)
        assert np.allclose(record.columns((True, True), np.tile(weights, (50, 1)), rows), expected, 1e-12, 1e-15)
