"""Pullbacks of deterministic procedures against central differences, for every record of the registry."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tests.procedures.differences import agree, derivative, inner, is_sharp, moved, random_direction
from tests.procedures.examples import CORRELATED, DETERMINISTIC, M, V, W, matrix, vector
from tests.procedures.test_deterministic import column
from venture_lite.errors import ArgumentError
from venture_lite.procedures.columns import RowByRow
from venture_lite.procedures.pullbacks import LOCALLY_CONSTANT, accumulated
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.values import Symbol, freeze

JUMPS = "its value jumps where its arguments pass a point"
WHOLE = "its arguments are whole numbers"
WITHOUT = {
    **dict.fromkeys(("floor", "round", "mod", "int_div"), JUMPS),
    **dict.fromkeys(("range", "ones", "zeros", "eye"), WHOLE),
    "unique": "entries come and go where two are equal",
    "to_number": "its argument is text",
    **dict.fromkeys(("probability", "log_density", "probabilities"), "gradients through queries are refused"),
}
"""Records whose value has numbers in it and that have no pullback, and why."""

RECORDS = {record.name: record for record in PROCEDURES.values() if isinstance(record, Deterministic)}
OF_DICTIONARIES = ("dict", "to_dict", "values", "insert", "remove")
"""Asked in `test_dictionaries.py`, where what goes in and comes out are numbers."""
SMOOTH = [
    name
    for name, r in RECORDS.items()
    if r.pullback is not None and r.pullback is not LOCALLY_CONSTANT and name not in OF_DICTIONARIES
]
SYMMETRIC = ("cholesky",)
"""Records of symmetric matrices, which are moved symmetrically."""

MORE: dict[str, list[tuple[Any, ...]]] = {
    "+": [(V, W, 0.5), (2.5, V), (M, M)],
    "-": [(V, 1.5), (1.5, V), (V,), (W, V, 2.0), (M, M)],
    "*": [(V, W), (0.0, 2.0, 3.0), (0.0, 0.0, 3.0), (M, 0.5), (V, 0.0, W)],
    "/": [(V, W), (2.0, V), (W,), (W, V, 4.0)],
    "exp": [(-3.5,), (M,)],
    "log": [(1e-6,), (V,)],
    "sqrt": [(1e-4,), (V,)],
    "abs": [(0.3,), (M,)],
    "pow": [(2.5, 1.5), (V, W), (-2.0, 3), (0.5, V), (V, 1.5)],
    "lgamma": [(-0.5,), (V,), (50.0,)],
    "erf": [(V,), (-2.0,)],
    "erfc": [(V,), (-2.0,), (5.0,)],
    "log10": [(1e-6,), (V,)],
    "normal_cdf": [(V,), (-2.0,), (-8.0,)],
    "logistic": [(W,), (-40.0,), (3.0,)],
    "logit": [(vector(0.25, 0.9),), (1e-3,)],
    "tan": [(V,)],
    "min": [(V, 1.5, W), ((3.0, 1.0, 2.5),), (M, 2.5)],
    "max": [(V, 1.5, W), ((3.0, 1.0, 2.5),), (M, 2.5)],
    "logsumexp": [(0.5, -1.0, 3.0), ((0.5, 1.5),), (V,)],
    "matrix": [((V, W),), (V, W), ((1.0, 2.0),), (((1.0, 2.0),),)],
    "to_vector": [((1.0, 2.5),)],
    "dot": [(M, M), (vector(1, 1), M), (M, vector(2, -1)), (V, (1.0, 2.0, 3.0))],
    "matmul": [(M, vector(2, -1)), (vector(2, -1), M), (V, W), (matrix((1, 2, 3)), V)],
    "sum": [((0.5, 1.5),)],
    "prod": [((0.5, 0.0, 1.5),), ((0.0, 0.0, 1.5),), (M,)],
    "mean": [((0.5, 1.5),)],
    "list": [(1.0, (2.0, V), M)],
    "pair": [(0.5, (V, 2.0))],
    "first": [((V, 2.0),), (M,)],
    "second": [((V, M),), (M,)],
    "last": [((V, 2.0),), (M,)],
    "take": [((V, 2.0), 1), (M, 1), (V, 2)],
    "drop": [((V, 2.0), 1), (M, 1), (V, 2)],
    "sort": [((3.0, 1.0, 2.5),), (W,)],
    "variance": [((0.5, 1.5),), (M,)],
    "sd": [((0.5, 1.5),), (M,)],
    "cumsum": [((0.5, 1.5, -1.0),)],
    "quantile": [((0.5, 1.5, -1.0), 0.3), (M, 0.4), (W, 0.8)],
    "rest": [((V, 2.0),), (M,)],
    "append": [((V, 1.0), (), (2.0,)), (V, W)],
    "reverse": [((V, 2.0),), (M,)],
    "lookup": [((V, 2.0), 0), (M, 1), ((1.0, (2.0, V)), 1)],
    "solve": [(M, M), (M, (1.0, 2.0))],
    "inverse": [(CORRELATED,)],
    "cholesky": [(CORRELATED,), (matrix((4, 1, 0.5), (1, 3, -1), (0.5, -1, 2)),)],
    "det": [(matrix((1, 2, 0), (3, 1, 1), (0.5, -1, 2)),), (matrix((1, 2), (2, 4)),)],
    "diagonal": [(V,), (M,)],
    "transpose": [(matrix((1, 2, 3)),), (matrix((0.5, 0.25), (1, -1), (3, 2)),)],
    "zip": [((1.0, 2.0), V), (M, (1.0, 2.0, 3.0)), (V, (0.5,))],
    "to_list": [(M,), (V,)],
    "vector": [(1.0, 2.5)],
}
"""Calls at which the derivative is asked for, beside the examples: edges, several shapes, lists."""


def is_number(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def smooth_parts(record: Deterministic, args: tuple[Any, ...]) -> tuple[bool, ...]:
    """Which arguments are numbers, arrays or lists of such, and not positions."""

    def has_numbers(x: Any) -> bool:
        return all(map(has_numbers, x)) if isinstance(x, tuple) else is_number(x) or isinstance(x, np.ndarray)

    domains = [argument.domain for argument in record.arguments] + [record.rest] * len(args)
    return tuple(has_numbers(x) and not d.discrete for x, d in zip(args, domains, strict=False) if d is not None)


def floats(x: Any) -> Any:
    """Numbers as floats: what is moved is not a whole number any more."""
    return tuple(map(floats, x)) if isinstance(x, tuple) else float(x) if is_number(x) else x


def calls(name: str) -> list[tuple[Any, ...]]:
    record = RECORDS[name]
    found = []
    for args in [args for args, _ in DETERMINISTIC[name]] + MORE.get(name, []):
        smooth = smooth_parts(record, args)
        if any(smooth):
            found.append(tuple(floats(x) if there else x for x, there in zip(args, smooth, strict=True)))
    return found


def pull(name: str, lifted: tuple[bool, ...], wanted: tuple[bool, ...], cotangent: Any, result: Any, *args: Any) -> Any:
    pullback = RECORDS[name].pullback
    assert pullback is not None
    return pullback(lifted, wanted, cotangent, result, *args)


def random_like(rng: np.random.Generator, x: Any) -> Any:
    if isinstance(x, tuple):
        return tuple(random_like(rng, item) for item in x)
    return rng.normal(size=np.shape(x)) if isinstance(x, np.ndarray) else float(rng.normal())


def total(cotangent: Any, result: Any) -> float:
    return inner(cotangent, result)


def is_numeric(x: Any) -> bool:
    return is_number(x) or isinstance(x, np.ndarray) or (isinstance(x, tuple) and any(map(is_numeric, x)))


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_whose_value_has_numbers_passes_derivatives_back_or_says_why_not(name: str) -> None:
    numeric = any(is_numeric(value) for _, value in DETERMINISTIC[name])
    if RECORDS[name].pullback is None:
        assert not numeric or name in WITHOUT
    else:
        assert name not in WITHOUT


# the derivatives of means and covariances, which are no numbers, are those of what is drawn by them
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [name for name in SMOOTH if any(is_numeric(y) for _, y in DETERMINISTIC[name])])
def test_the_pullback_agrees_with_central_differences(name: str) -> None:
    record, rng, sharp = RECORDS[name], np.random.default_rng(len(name)), 0
    for args in calls(name):
        smooth = smooth_parts(record, args)
        for position in range(len(args)):
            if not smooth[position]:
                continue
            way = random_direction(rng, args[position])
            way = way + way.T if name in SYMMETRIC and isinstance(way, np.ndarray) else way
            result = record.scalar(*args)
            if not all(is_numeric(part) and np.all(np.isfinite(part)) for part in flattened(result)):
                continue
            cotangent = random_like(rng, result)

            def along(
                step: float, args: Any = args, position: int = position, way: Any = way, g: Any = cotangent
            ) -> float:
                shifted = (*args[:position], frozen(moved(args[position], way, step)), *args[position + 1 :])
                return total(g, record.scalar(*shifted))

            wanted = tuple(i == position for i in range(len(args)))
            found = pull(name, (False,) * len(args), wanted, cotangent, result, *args)
            assert [part is None for part in found] == [i != position for i in range(len(args))]
            try:
                expected = derivative(along)
            except ArgumentError:
                continue
            assert agree(inner(found[position], way), expected), (args, position, found, expected)
            sharp += is_sharp(expected)
    assert sharp >= 2


def flattened(x: Any) -> list[Any]:
    return [leaf for item in x for leaf in flattened(item)] if isinstance(x, tuple) else [x]


def frozen(x: Any) -> Any:
    return tuple(map(frozen, x)) if isinstance(x, tuple) else freeze(x) if isinstance(x, np.ndarray) else x


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", [name for name in SMOOTH if RECORDS[name].columns is not None])
def test_columns_agree_with_rows(name: str) -> None:
    record, rng, answered = RECORDS[name], np.random.default_rng(len(name)), 0
    by_count: dict[int, list[tuple[Any, ...]]] = {}
    for args in calls(name):
        by_count.setdefault(len(args), []).append(args)
    for count, given in by_count.items():
        for kept in (given, *[[args] * 3 for args in given]):
            for lifted in itertools.product((True, False), repeat=count):
                if not any(lifted):
                    continue
                rows = [
                    tuple(a if up else kept[0][i] for i, (a, up) in enumerate(zip(r, lifted, strict=True)))
                    for r in kept
                ]
                columns = [column(r[i] for r in rows) if lifted[i] else rows[0][i] for i in range(count)]
                try:
                    assert record.columns is not None
                    result = record.columns(lifted, *columns)
                    cotangent = rng.normal(size=result.shape)
                    found = pull(name, lifted, (True,) * count, cotangent, result, *columns)
                except RowByRow:
                    continue
                answered += 1
                check_columns(name, lifted, rows, cotangent, found)
    assert answered


def check_columns(name: str, lifted: tuple[bool, ...], rows: list[Any], cotangent: Any, found: Any) -> None:
    record, count = RECORDS[name], len(lifted)
    singles = [
        pull(name, (False,) * count, (True,) * count, part if np.ndim(part) else float(part), record.scalar(*row), *row)
        for part, row in zip(cotangent, rows, strict=True)
    ]
    for position in range(count):
        if found[position] is None:
            assert all(single[position] is None for single in singles)
            continue
        parts = np.array([single[position] for single in singles])
        expected = parts if lifted[position] else parts.sum(axis=0)
        assert np.shape(found[position]) == np.shape(expected)
        error = 1e-13 * np.abs(parts).sum(axis=0) + 1e-15
        with np.errstate(invalid="ignore"):
            same = (found[position] == expected) | (np.isnan(found[position]) & np.isnan(expected))
            assert np.all(same | (np.abs(found[position] - expected) <= error)), (lifted, rows, found, expected)


def test_rows_share_weights() -> None:
    """The cotangent of shared weights is the sum over the rows, in one product."""
    rng = np.random.default_rng(1)
    inputs, weights, cotangent = rng.normal(size=(50, 3)), vector(1, -2, 0.5), rng.normal(size=50)
    for name in ("dot", "linear_logistic"):
        record = RECORDS[name]
        assert record.columns is not None
        result = record.columns((False, True), weights, inputs)
        by_weights, nothing = pull(name, (False, True), (True, False), cotangent, result, weights, inputs)
        rows = [
            pull(name, (False,) * 2, (True, False), g, record.scalar(weights, x), weights, x)[0]
            for g, x in zip(cotangent, inputs, strict=True)
        ]
        assert nothing is None
        assert np.allclose(by_weights, np.sum(rows, axis=0), 1e-12, 1e-12)


def test_rows_that_take_one_entry_add_up() -> None:
    index = np.array([2, 0, 2])
    share, nothing = pull("lookup", (False, True), (True, True), np.array([1.0, 2.0, 4.0]), V[index], V, index)
    assert share.tolist() == [2.0, 0.0, 5.0]
    assert nothing is None


def test_equal_arguments_share_nothing_twice() -> None:
    for name in ("min", "max"):
        assert pull(name, (False,) * 3, (True,) * 3, 2.0, 1.0, 1.0, 1.0, 1.0) == (2.0, 0.0, 0.0)
        assert pull(name, (False,), (True,), 2.0, 1.0, vector(1, 1))[0].tolist() == [2.0, 0.0]


@pytest.mark.parametrize("name", [name for name, r in RECORDS.items() if r.pullback is LOCALLY_CONSTANT])
def test_what_is_locally_constant_does_not_change_with_the_numbers(name: str) -> None:
    for args in ((V,), (2.5,), ((1.0, V),), (M,), (Symbol("red"),)):
        try:
            value = RECORDS[name].scalar(*args)
            near = RECORDS[name].scalar(
                *(frozen(moved(x, random_direction(np.random.default_rng(1), x), 0.1)) for x in args)
            )
        except (ArgumentError, TypeError):
            continue
        assert value == near
        assert pull(name, (False,), (True,), 1.0, value, *args) == (None,)


def test_cotangents_of_one_value_add_up() -> None:
    assert accumulated(None, 2.0) == 2.0
    assert accumulated((1.0, None, (2.0, None)), (0.5, 3.0, (None, None))) == (1.5, 3.0, (2.0, None))
    assert accumulated((1.0, None), np.array([1.0, 2.0])) == (2.0, 2.0)
    assert math.isclose(accumulated(0.1, 0.2), 0.3)
