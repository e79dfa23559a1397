"""Transforms: round trips, Jacobians against finite differences, and never a value on the boundary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.procedures.differences import agree, derivative, is_sharp
from tests.procedures.examples import RANDOM
from venture_lite.errors import KernelError
from venture_lite.procedures import transforms
from venture_lite.procedures.distributions.factors import cholesky_of
from venture_lite.procedures.record import Random
from venture_lite.procedures.registered.value_domains import one_sided
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.procedures.straight_line import Recording, compiled, recordable
from venture_lite.procedures.transforms import Elementwise, Transform

SCALAR: list[tuple[Transform, tuple[Any, ...]]] = [
    (transforms.REAL, ()),
    (transforms.POSITIVE, ()),
    (transforms.UNIT, ()),
    (transforms.INTERVAL, (-3.0, 5)),
    (transforms.INTERVAL_AFTER_TWO, (0.5, 2.0, -3.0, 5)),
    (transforms.ABOVE_SCALE, (2.0, 0.5)),
    (transforms.ABOVE, (0.25,)),
    (transforms.BELOW, (-0.25,)),
]
FREE = [-30.0, -2.5, -0.1, 0.0, 0.3, 4.0, 12.0]


@pytest.mark.parametrize(("transform", "args"), SCALAR)
def test_round_trip_of_numbers(transform: Transform, args: tuple[Any, ...]) -> None:
    for free in FREE:
        value = transform.from_free(free, args)
        back = transform.to_free(value, args)
        assert math.isclose(transform.from_free(back, args), value, rel_tol=1e-12)
        # near an upper bound the value itself carries fewer digits of the free coordinate
        assert math.isclose(back, free, rel_tol=1e-8, abs_tol=1e-8) or free < -20


@pytest.mark.parametrize(("transform", "args"), SCALAR)
def test_jacobian_of_numbers(transform: Transform, args: tuple[Any, ...]) -> None:
    for free in FREE[1:-1]:
        ahead, behind = (transform.from_free(free + h, args) for h in (1e-5, -1e-5))
        value = transform.from_free(free, args)
        assert math.isclose(transform.log_jacobian(value, args), math.log(abs(ahead - behind) / 2e-5), abs_tol=1e-6)


@pytest.mark.parametrize(("transform", "args"), SCALAR)
def test_vectors_go_coordinate_by_coordinate(transform: Transform, args: tuple[Any, ...]) -> None:
    values = transform.from_free(np.array(FREE), args)
    one_by_one = [transform.from_free(free, args) for free in FREE]
    assert np.allclose(values, one_by_one, 1e-14, 0)
    assert not values.flags.writeable
    assert np.allclose(transform.to_free(values, args), [transform.to_free(x, args) for x in one_by_one], 1e-12)
    total = sum(transform.log_jacobian(x, args) for x in one_by_one)
    assert math.isclose(transform.log_jacobian(values, args), total, rel_tol=1e-12)


@pytest.mark.parametrize(("transform", "args"), [*SCALAR, (transforms.CIRCLE, ()), (one_sided(1.5, -1.0), ())])
def test_a_recorded_transform_is_the_transform(transform: Elementwise, args: tuple[Any, ...]) -> None:
    """To the last bit, which is what lets a form draw what the interpreter draws."""
    recording = Recording()
    inputs = [recording.input(position) for position in range(1 + len(args))]
    lines = [
        compiled([recordable(way)(*inputs)], len(inputs), columns=False)
        for way in (transform.value_of, transform.free_of, transform.log_slope)
    ]
    for free in (*FREE, 800.0):
        value = transform.from_free(free, args)
        assert lines[0](free, *args) == (value,)
        assert lines[2](value, *args) == (transform.log_jacobian(value, args),)
        if transform is transforms.UNIT and free > 36.0:
            for told in (value, np.array([0.5, value])):
                with pytest.raises(KernelError, match="nearer to 1 than any other float"):
                    transform.to_free(told, ())
        else:
            assert lines[1](value, *args) == (transform.to_free(value, args),)


@pytest.mark.parametrize(("transform", "args"), SCALAR[1:])
def test_no_value_lies_on_the_boundary(transform: Transform, args: tuple[Any, ...]) -> None:
    low, high = {
        transforms.POSITIVE: (0.0, math.inf),
        transforms.UNIT: (0.0, 1.0),
        transforms.INTERVAL: (-3.0, 5.0),
        transforms.INTERVAL_AFTER_TWO: (-3.0, 5.0),
        transforms.ABOVE_SCALE: (0.5, math.inf),
        transforms.ABOVE: (0.25, math.inf),
        transforms.BELOW: (-math.inf, -0.25),
    }[transform]
    for free in (-1e308, -1000.0, -40.0, 40.0, 1000.0, 1e308):
        for value in (transform.from_free(free, args), transform.from_free(np.array([free]), args)[0]):
            assert low < value < high
            assert math.isfinite(transform.log_jacobian(float(value), args))


def test_the_circle_is_rolled_up_without_a_seam() -> None:
    turn = 2 * math.pi
    for free in (-3.0, 0.0, 1.5, math.pi):
        for turns in (-2, 0, 1, 5):
            value = transforms.CIRCLE.from_free(free + turns * turn, ())
            assert math.isclose(math.cos(value - free), 1.0, abs_tol=1e-12)
            assert -math.pi <= value <= math.pi
            assert transforms.CIRCLE.log_jacobian(value, ()) == 0.0
    wide = [-1e308, -40.0, -math.pi, -0.1, 3.0, 3.2, 9.5, 1e308, math.inf]
    rolled = [transforms.CIRCLE.from_free(free, ()) for free in wide]
    assert np.allclose(transforms.CIRCLE.from_free(np.array(wide), ()), rolled, 0, 1e-14)
    assert np.array_equal(transforms.CIRCLE.to_free(tuple(rolled), ()), rolled)


def positive_definite(free: Any) -> np.ndarray:
    matrix = transforms.POSITIVE_DEFINITE.from_free(np.asarray(free, dtype=np.float64), ())
    assert isinstance(matrix, np.ndarray)
    return matrix


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_positive_definite_matrices_go_there_and_back(size: int) -> None:
    rng = np.random.default_rng(4)
    for _ in range(10):
        free = rng.normal(size=size * (size + 1) // 2)
        matrix = positive_definite(free)
        assert np.array_equal(matrix, matrix.T)
        assert not matrix.flags.writeable
        assert np.allclose(transforms.POSITIVE_DEFINITE.to_free(matrix, ()), free, 1e-9, 1e-9)
        assert np.allclose(
            transforms.POSITIVE_DEFINITE.to_free(tuple(map(tuple, matrix.tolist())), ()), free, 1e-9, 1e-9
        )


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_jacobian_of_positive_definite_matrices(size: int) -> None:
    rng = np.random.default_rng(5)
    free, lower = rng.normal(size=size * (size + 1) // 2), np.tril_indices(size)
    columns = [
        (positive_definite(free + step) - positive_definite(free - step))[lower] / 2e-6
        for step in np.eye(len(free)) * 1e-6
    ]
    exact = math.log(abs(np.linalg.det(np.array(columns))))
    assert math.isclose(transforms.POSITIVE_DEFINITE.log_jacobian(positive_definite(free), ()), exact, abs_tol=1e-6)


@pytest.mark.filterwarnings("error")
def test_matrices_stay_positive_definite_whatever_the_free_coordinates() -> None:
    rng = np.random.default_rng(6)
    extreme = [[1e308, 0, -1e308], [-1000, 1, -1000], [0, 1e308, 0], [400, 1, -400], [-300, 1e9, 5]]
    for free in [*extreme, *(rng.normal(size=10) * 10.0 ** rng.integers(0, 5) for _ in range(50))]:
        matrix = positive_definite(free)
        assert cholesky_of(matrix) is not None
        assert np.isfinite(transforms.POSITIVE_DEFINITE.to_free(matrix, ())).all()
        assert math.isfinite(transforms.POSITIVE_DEFINITE.log_jacobian(matrix, ()))
    assert np.isnan(positive_definite([math.nan, 0, 0])).any()


def test_the_simplex_round_trip_and_its_centre() -> None:
    rng = np.random.default_rng(1)
    for size in (2, 3, 7):
        assert np.allclose(transforms.SIMPLEX.from_free(np.zeros(size - 1), ()), 1 / size)
        for _ in range(20):
            free = rng.normal(size=size - 1) * 3
            value = transforms.SIMPLEX.from_free(free, ())
            assert math.isclose(value.sum(), 1.0, rel_tol=1e-12)
            assert np.allclose(transforms.SIMPLEX.to_free(value, ()), free, 1e-7, 1e-7)


def test_the_jacobian_of_the_simplex() -> None:
    rng = np.random.default_rng(2)
    for size in (2, 3, 5):
        free = rng.normal(size=size - 1)
        columns = []
        for step in np.eye(size - 1) * 1e-6:
            ahead, behind = transforms.SIMPLEX.from_free(free + step, ()), transforms.SIMPLEX.from_free(free - step, ())
            columns.append((ahead - behind)[:-1] / 2e-6)
        exact = math.log(abs(np.linalg.det(np.array(columns))))
        assert math.isclose(
            transforms.SIMPLEX.log_jacobian(transforms.SIMPLEX.from_free(free, ()), ()), exact, abs_tol=1e-6
        )


def test_the_simplex_keeps_off_its_boundary() -> None:
    for free in ([800.0, 0.0], [-800.0, -800.0], [0.0, 1e308], [-1e308, 3.0]):
        value = transforms.SIMPLEX.from_free(np.array(free), ())
        assert ((value > 0.0) & (value < 1.0)).all()
        assert math.isfinite(transforms.SIMPLEX.log_jacobian(value, ()))


@pytest.mark.parametrize("name", [n for n in RANDOM if PROCEDURES[n].transform is not None])  # type: ignore[union-attr]
def test_draws_go_through_the_transform_of_their_record(name: str) -> None:
    record = PROCEDURES[name]
    assert isinstance(record, Random)
    assert record.transform is not None
    rng = np.random.default_rng(3)
    for args in RANDOM[name].arguments:
        for _ in range(20):
            value = record.simulate(rng, *args)
            back = record.transform.from_free(record.transform.to_free(value, args), args)
            assert np.allclose(back, value, 1e-12, 0)


FREE_POINTS: list[tuple[Transform, tuple[Any, ...], list[Any]]] = [
    *[(transform, args, [-2.5, 0.3, 4.0, np.array([-1.0, 0.2, 3.0])]) for transform, args in SCALAR],
    (transforms.CIRCLE, (), [-2.0, 0.4, np.array([1.0, -3.0])]),
    (one_sided(1.5, -1.0), (), [-2.0, 0.7, np.array([1.0, -1.0])]),
    (one_sided(-0.5, 1.0), (), [-2.0, 0.7]),
    (transforms.SIMPLEX, (), [np.array([0.4]), np.array([-1.0, 0.5, 2.0])]),
    (transforms.POSITIVE_DEFINITE, (), [np.array([0.3]), np.array([-0.5, 1.2, 0.4, 0.7, -0.3, 0.9])]),
]


@pytest.mark.parametrize(("transform", "args", "points"), FREE_POINTS)
def test_derivatives_by_the_free_coordinates(transform: Transform, args: tuple[Any, ...], points: list[Any]) -> None:
    """Of a linear function of the value plus the log Jacobian, in a random direction, against central differences."""
    rng = np.random.default_rng(7)
    for free in points:
        value = transform.from_free(free, args)
        slope = rng.normal(size=np.shape(value))
        for _ in range(4):
            way = rng.normal(size=np.shape(free))

            def total(step: float, free: Any = free, way: Any = way, slope: Any = slope) -> float:
                moved_value = transform.from_free(
                    free + step * way if np.ndim(free) else float(free + step * way), args
                )
                return float(np.sum(slope * moved_value)) + transform.log_jacobian(moved_value, args)

            found = transform.free_gradient(value, args, slope if np.ndim(value) else float(slope))
            assert agree(float(np.sum(found * way)), derivative(total))


@pytest.mark.parametrize(
    ("transform", "args", "moving"),
    [(transforms.INTERVAL, (-3.0, 5.0), (0, 1)), (transforms.ABOVE_SCALE, (2.0, 0.5), (1,))],
)
def test_derivatives_by_the_arguments_while_the_free_coordinates_stay(
    transform: Transform, args: tuple[float, ...], moving: tuple[int, ...]
) -> None:
    for free, slope in ((0.7, 1.3), (np.array([-1.0, 0.2, 2.0]), np.array([0.5, -2.0, 1.0]))):
        found = transform.argument_gradient(transform.from_free(free, args), args, slope)
        for position, part in enumerate(found):
            if position not in moving:
                assert part is None
                continue

            def total(step: float, position: int = position, free: Any = free, slope: Any = slope) -> float:
                shifted = tuple(x + step * (i == position) for i, x in enumerate(args))
                value = transform.from_free(free, shifted)
                return float(np.sum(slope * value)) + transform.log_jacobian(value, shifted)

            expected = derivative(total)
            assert is_sharp(expected)
            assert agree(part, expected)
