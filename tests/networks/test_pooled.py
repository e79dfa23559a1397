"""Networks over sets of rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.networks.examples import NAMES, assert_gradient, random_examples
from venture_lite.errors import ParameterError
from venture_lite.networks.pooled import Examples, InputNames, Pooled, PortRows


def example(examples: Examples, at: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """One of several: its fixed inputs, and its rows at each port."""
    taken = examples.take(np.array([at]))
    return taken.fixed[0], [rows.values for rows in taken.ports]


def pooled(seed: int, examples: Examples) -> Pooled:
    return Pooled.drawn(np.random.default_rng(seed), NAMES, examples, 6)


def test_gradients_agree_with_differences() -> None:
    rng = np.random.default_rng(1)
    examples = random_examples(rng, 12)
    network = pooled(1, examples)
    prepared, _ = network.prepared(examples, np.float64)
    weighing = rng.standard_normal((12, network.width))

    def total(weights: list[np.ndarray]) -> float:
        return float(np.sum(weighing * network.with_weights(iter(weights)).forward(prepared)[0]))

    _, activations = network.forward(prepared)
    assert_gradient(total, network.weights, network.backward(prepared, activations, weighing), rng)


@pytest.mark.parametrize("counts", [[3, 3, 3], [0, 2, 4], [2, 0, 0], [0, 0, 0]])
def test_means_and_their_derivatives_are_those_of_loops(counts: list[int]) -> None:
    rng = np.random.default_rng(2)
    rows = PortRows(np.empty((sum(counts), 0)), np.array(counts))
    terms, by_means = rng.standard_normal((sum(counts), 4)), rng.standard_normal((3, 4))
    parts = np.split(terms, np.cumsum(counts)[:-1])
    expected = [part.mean(axis=0) if len(part) else np.zeros(4) for part in parts]
    assert np.allclose(rows.means(terms), expected, rtol=1e-14, atol=1e-15)
    repeated = [by / count for by, count in zip(by_means, counts, strict=True) for _ in range(count)]
    assert np.allclose(rows.by_terms(by_means), np.reshape(repeated, (-1, 4)))


def test_rows_are_taken_with_their_examples() -> None:
    rows = PortRows.owned(np.arange(6.0)[:, None], np.array([0, 0, 2, 3, 3, 3]), 5)
    assert rows.counts.tolist() == [2, 0, 1, 3, 0]
    taken = rows.take(np.array([3, 1, 0]))
    assert taken.values[:, 0].tolist() == [3.0, 4.0, 5.0, 0.0, 1.0]
    assert taken.counts.tolist() == [3, 0, 2]
    with pytest.raises(ValueError, match="not sorted"):
        PortRows.owned(np.zeros((2, 1)), np.array([1, 0]), 2)


def test_one_example_is_a_row_of_the_batch() -> None:
    examples = random_examples(np.random.default_rng(3))
    network = pooled(3, examples)
    features = network.forward(network.prepared(examples, np.float64)[0])[0]
    assert 0 in examples.ports[0].counts
    for at in range(len(examples)):
        assert np.allclose(network.row(*example(examples, at))[0], features[at], rtol=1e-12, atol=1e-13)


def test_the_order_of_rows_changes_nothing() -> None:
    rng = np.random.default_rng(4)
    examples = random_examples(rng)
    network = pooled(4, examples)
    rows = rng.standard_normal((500, 2))
    others = rng.standard_normal((3, 1))
    fixed = examples.fixed[0]
    before, after = network.row(fixed, [rows, others])[0], network.row(fixed, [rng.permutation(rows), others[::-1]])[0]
    assert np.allclose(before, after, rtol=0.0, atol=1e-12)
    # what stands at which port is something
    assert not np.allclose(before, network.row(fixed, [rows[:, ::-1], others])[0], atol=1e-3)


def test_counts_are_read() -> None:
    examples = random_examples(np.random.default_rng(5))
    network = pooled(5, examples)
    row = np.ones((1, 2))
    once, twice = [network.row(examples.fixed[0], [np.repeat(row, n, axis=0), np.ones((1, 1))])[0] for n in (1, 2)]
    changed = np.flatnonzero(np.abs(once - twice) > 1e-12)
    assert changed.tolist() == [len(NAMES.fixed)]


def test_a_count_that_never_varies_is_no_input() -> None:
    names = InputNames(("a",), (("data", ("value",)),))
    rng = np.random.default_rng(6)
    examples = Examples(rng.standard_normal((9, 1)), (PortRows(rng.standard_normal((18, 1)), np.full(9, 2)),))
    assert Pooled.drawn(rng, names, examples, 4).standard.dropped == ("count of data",)


@pytest.mark.filterwarnings("error")
def test_a_port_that_is_always_empty_is_harmless() -> None:
    names = InputNames(("a",), (("data", ("value",)),))
    rng = np.random.default_rng(7)
    examples = Examples(rng.standard_normal((9, 1)), (PortRows(np.empty((0, 1)), np.zeros(9, np.intp)),))
    network = Pooled.drawn(rng, names, examples, 4)
    assert network.ports[0].standard.dropped == ("value of data",)
    features, activations = network.forward(network.prepared(examples, np.float32)[0])
    assert (features[:, 1:] == 0.0).all()
    assert all((by == 0.0).all() for by in network.backward(examples, activations, features))
    # rows that come later are counted among none, and read by biases alone
    assert np.isfinite(network.row(np.zeros(1), [np.ones((3, 1))])[0]).all()


def test_a_row_that_is_no_number_is_refused_by_name() -> None:
    examples = random_examples(np.random.default_rng(8))
    network = pooled(8, examples)
    with pytest.raises(ParameterError, match="input sd of data is not a number"):
        network.row(examples.fixed[0], [np.array([[0.0, np.nan]]), np.ones((1, 1))])


def test_clipped_numbers_of_rows_are_counted() -> None:
    examples = random_examples(np.random.default_rng(9))
    network = pooled(9, examples)
    assert network.row(np.array([1e9, 0.0]), [np.full((2, 2), 1e200), np.ones((1, 1))])[1] == 5
