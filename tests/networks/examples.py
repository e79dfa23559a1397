"""Networks for the tests, with weights that make every output vary, and their derivatives by differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.procedures.differences import agree, derivative, inner, is_sharp
from venture_lite.networks.conditional import Conditional, Layout
from venture_lite.networks.heads import Categories, Normals
from venture_lite.networks.pooled import Examples, InputNames, PortRows

NAMES = InputNames(("a", "b"), (("data", ("value", "sd")), ("others", ("value",))))
LAYOUT = Layout(NAMES, (("x", Normals(3)), ("k", Categories(4)), ("n", Categories(5, ordered=True)), ("y", Normals(2))))


def random_examples(rng: np.random.Generator, count: int = 40) -> Examples:
    """Of NAMES; some examples have no rows at a port."""
    ports = []
    for _, columns in NAMES.ports:
        counts = rng.integers(0, 5, size=count)
        ports.append(PortRows(rng.standard_normal((counts.sum(), len(columns))) ** 3, counts))
    return Examples(rng.standard_normal((count, len(NAMES.fixed))), tuple(ports))


def random_values(rng: np.random.Generator, count: int = 40) -> np.ndarray:
    """Of LAYOUT, (count, 4)."""
    counted = [rng.integers(0, size, size=count) for size in (4, 5)]
    return np.column_stack((rng.standard_normal(count), *counted, 3.0 * rng.standard_normal(count)))


def random_network(rng: np.random.Generator, layout: Layout = LAYOUT, count: int = 40) -> Conditional:
    """Of `layout`, whose coordinates may be some of LAYOUT's; all weights differ from 0."""
    every = [name for name, _ in LAYOUT.coordinates]
    values = random_values(rng, count)[:, [every.index(name) for name, _ in layout.coordinates]]
    network = Conditional.drawn(rng, layout, random_examples(rng, count), values, hidden=8, summed=6)
    return network.with_weights([layer + 0.3 * rng.standard_normal(layer.shape) for layer in network.weights])


def assert_gradient(
    function: Callable[[Sequence[np.ndarray]], float],
    at: Sequence[np.ndarray],
    gradient: Sequence[np.ndarray],
    rng: np.random.Generator,
) -> None:
    """Each array's derivative along a random direction is that by differences, which would tell if it were not."""
    for position, (array, found) in enumerate(zip(at, gradient, strict=True)):
        assert found.shape == array.shape
        if not array.size:
            continue
        way = rng.standard_normal(array.shape)

        def along(step: float, position: int = position, way: np.ndarray = way) -> float:
            return function([a + step * way if p == position else a for p, a in enumerate(at)])

        expected = derivative(along)
        assert is_sharp(expected), (position, expected)
        assert agree(inner(found, way), expected), (position, inner(found, way), expected)
