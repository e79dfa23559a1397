"""The perceptron forwards, backwards, and one row at a time."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from tests.networks.examples import assert_gradient
from venture_lite.networks.perceptron import Perceptron


@pytest.mark.parametrize("ends_linear", [True, False])
@pytest.mark.parametrize("sizes", [(3, 4), (3, 8, 5), (2, 6, 6, 4)])
def test_gradients_agree_with_differences(sizes: tuple[int, ...], ends_linear: bool) -> None:
    rng = np.random.default_rng(1)
    network = Perceptron.drawn(rng, sizes, ends_linear)
    inputs, weighing = rng.standard_normal((7, sizes[0])), rng.standard_normal((7, sizes[-1]))

    def total(arrays: list[np.ndarray]) -> float:
        *weights, x = arrays
        return float(np.sum(weighing * Perceptron(weights, sizes[0], ends_linear).forward(x)[-1]))

    by_weights, by_inputs = network.backward(network.forward(inputs), weighing)
    assert_gradient(total, [*network.weights, inputs], [*by_weights, by_inputs], rng)


@pytest.mark.parametrize("ends_linear", [True, False])
def test_a_row_is_a_row_of_the_batch(ends_linear: bool) -> None:
    rng = np.random.default_rng(2)
    network = Perceptron.drawn(rng, (5, 32, 32, 7), ends_linear)
    inputs = 3.0 * rng.standard_normal((20, 5))
    rows = [network.row(row).copy() for row in inputs]
    assert np.allclose(rows, network.forward(inputs)[-1], rtol=1e-12, atol=1e-13)


def test_a_network_without_inputs_is_its_biases() -> None:
    network = Perceptron.drawn(np.random.default_rng(3), (0, 4, 2))
    outputs = network.forward(np.empty((3, 0)))[-1]
    assert (outputs == network.row(np.empty(0))).all()


def test_outputs_are_of_size_one_at_first() -> None:
    rng = np.random.default_rng(4)
    network = Perceptron.drawn(rng, (40, 50, 50, 50))
    assert 0.4 < network.forward(rng.standard_normal((500, 40)))[-1].std() < 1.0


def test_training_is_in_the_type_of_the_weights() -> None:
    network = Perceptron([np.ones((3, 2), np.float32)], 2)
    layers = network.forward(np.ones((4, 2), np.float32))
    (by_weights,), by_inputs = network.backward(layers, layers[-1])
    assert {array.dtype for array in (*layers, by_weights, by_inputs)} == {np.dtype(np.float32)}


def test_a_copy_has_buffers_of_its_own() -> None:
    rng = np.random.default_rng(5)
    network = Perceptron.drawn(rng, (5, 8, 8, 3), ends_linear=False)
    first, second = rng.standard_normal((2, 5))
    expected = network.row(first).copy()
    network.row(second)
    for copied in (copy.deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert (copied.row(first) == expected).all()


def test_shapes_that_do_not_follow_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="shape"):
        Perceptron([np.zeros((3, 4)), np.zeros((4, 2))], 2)
    with pytest.raises(ValueError, match="for 3 inputs"):
        Perceptron([np.zeros((3, 4))], 3)
