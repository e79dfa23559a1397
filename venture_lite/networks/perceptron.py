"""A multilayer perceptron: affine maps with tanh between them, forwards, backwards, and one row at a time.

Why tanh: it is smooth, NumPy has it in vector instructions, and its derivative 1 - tanh^2 needs the output alone, so
that the backward pass keeps one array for each layer. It is bounded, so that a network far from its training examples
goes on as a constant and not as a line.

Training runs in float32, where a minibatch takes half the time; one row runs in float64, since its density enters a
Metropolis-Hastings weight.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


class Perceptron:
    """Weights of one network.

    Layer l has one array (inputs + 1, outputs), the biases in its last row: an input that ends in 1 needs one product.
    The arrays are those given, not copies.
    """

    __slots__ = ("_input", "_steps", "ends_linear", "inputs", "weights")

    def __init__(self, weights: Sequence[np.ndarray], inputs: int, ends_linear: bool = True) -> None:
        """With `ends_linear`, the last layer has no tanh. Raises ValueError where the shapes do not follow each
        other."""
        width = inputs
        for layer in weights:
            if layer.ndim != 2 or len(layer) != width + 1 or layer.dtype.kind != "f":
                raise ValueError(f"a layer of a network has the shape {layer.shape} for {width} inputs")
            width = layer.shape[1]
        self.weights = list(weights)
        self.inputs = inputs
        self.ends_linear = ends_linear
        self._input: np.ndarray | None = None
        self._steps: list[tuple[Callable[..., np.ndarray], np.ndarray, np.ndarray, bool]] = []

    @staticmethod
    def drawn(rng: np.random.Generator, sizes: Sequence[int], ends_linear: bool = True) -> Perceptron:
        """Initial weights of layers of these sizes, inputs first: normal, of variance 1 / inputs, which keeps outputs
        of size one (LeCun et al. 1998, Efficient BackProp, section 4.6); biases 0."""
        weights = []
        for inputs, outputs in itertools.pairwise(sizes):
            layer = np.zeros((inputs + 1, outputs))
            layer[:-1] = rng.standard_normal((inputs, outputs)) / math.sqrt(max(inputs, 1))
            weights.append(layer)
        return Perceptron(weights, sizes[0], ends_linear)

    def __reduce__(self) -> tuple[Any, ...]:
        # a copied step would read and write copies of its buffers that are no longer parts of each other
        return Perceptron, (self.weights, self.inputs, self.ends_linear)

    @property
    def outputs(self) -> int:
        return int(self.weights[-1].shape[1])

    def _is_linear(self, layer: int) -> bool:
        return self.ends_linear and layer == len(self.weights) - 1

    def forward(self, inputs: np.ndarray) -> list[np.ndarray]:
        """Inputs (N, I), what each layer makes of them, and last the outputs (N, O): all that `backward` needs."""
        activations = [inputs]
        for layer, weights in enumerate(self.weights):
            outputs = activations[-1] @ weights[:-1]
            outputs += weights[-1]
            activations.append(outputs if self._is_linear(layer) else np.tanh(outputs, out=outputs))
        return activations

    def backward(self, activations: list[np.ndarray], by_outputs: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """From derivatives (N, O) by the outputs of `forward` to those by each array of weights, and by inputs
        (N, I)."""
        by_weights = []
        passed = by_outputs
        for layer in range(len(self.weights) - 1, -1, -1):
            inputs, outputs, weights = activations[layer], activations[layer + 1], self.weights[layer]
            if not self._is_linear(layer):
                slope = outputs * outputs
                np.subtract(1.0, slope, out=slope)
                slope *= passed
                passed = slope
            gradient = np.empty_like(weights)
            np.dot(inputs.T, passed, out=gradient[:-1])
            np.dot(np.ones(len(passed), passed.dtype), passed, out=gradient[-1])
            by_weights.append(gradient)
            passed = passed @ weights[:-1].T
        return by_weights[::-1], passed

    def row(self, inputs: np.ndarray) -> np.ndarray:
        """Outputs (O,) of one row (I,), in a buffer that the next call of `row` writes over. Weights are float64.

        At the first call the steps are laid out: each product reads a buffer whose last number is 1 and writes into all
        but the last of the next one.
        """
        if self._input is None:
            buffers = [np.ones(len(weights)) for weights in self.weights]
            written = [*(buffer[:-1] for buffer in buffers), np.empty(self.outputs)]
            self._input = written[0]
            self._steps = [
                (buffer.dot, weights, target, self._is_linear(layer))
                for layer, (buffer, weights, target) in enumerate(zip(buffers, self.weights, written[1:], strict=True))
            ]
        self._input[:] = inputs
        for product, weights, target, is_linear in self._steps:
            product(weights, target)
            if not is_linear:
                np.tanh(target, target)
        return target
