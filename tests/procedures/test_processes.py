"""Gaussian processes and lazy hidden Markov models, alone: against dense formulas, and undone bit for bit.

Each statistical test is seeded and rejects a correct sampler with probability 1e-6.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.procedures.test_random import FALSE_ALARM, chi_squared
from venture_lite.errors import ArgumentError
from venture_lite.procedures import hidden_markov
from venture_lite.procedures.checks import check_arguments
from venture_lite.procedures.covariances import Covariance, mean_of
from venture_lite.procedures.gaussian_process import LEAST_NOISE, GaussianProcessState
from venture_lite.procedures.growing_cholesky import GrowingCholesky
from venture_lite.procedures.hidden_markov import LazyHmmState
from venture_lite.procedures.record import Deterministic, Maker, MakerState
from venture_lite.procedures.registry import PROCEDURES

Application = tuple[Any, Any]


def made(name: str, *args: Any) -> Any:
    record = PROCEDURES[name]
    assert isinstance(record, Deterministic)
    return record.scalar(*args)


SMOOTH = made("gp_squared_exponential", 1.5, 0.7)
NOISY = made("gp_sum", SMOOTH, made("gp_noise", 0.3))
LINE = made("gp_linear_mean", 0.5, 1)
COVARIANCES = [
    SMOOTH,
    *[made("gp_matern", 0.8, 1.2, order) for order in (0.5, 1.5, 2.5)],
    made("gp_rational_quadratic", 1.1, 0.6, 0.4),
    made("gp_periodic", 1.2, 0.9, 1.7),
    made("gp_linear", 0.7, 0.25),
    made("gp_constant", 2),
    made("gp_product", made("gp_linear", 1), SMOOTH),
    made("gp_sum", made("gp_constant", 1), made("gp_product", SMOOTH, made("gp_periodic", 1, 2, 0.5))),
]


@dataclass(frozen=True)
class Process:
    name: str
    arguments: list[tuple[Any, ...]]
    # some of them at one point or time
    applications: list[Application]


INITIAL = (0.6, 0.3, 0.1)
TRANSITION = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.0, 0.7]])
EMISSION = np.array([[0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.25, 0.25, 0.5]])
OTHER = (np.array([0.2, 0.3, 0.5]), ((0.1, 0.9, 0.0), (0.5, 0.25, 0.25), (0.0, 0.0, 1.0)), EMISSION[[2, 0, 1]])

PROCESSES = [
    Process(
        "make_gp",
        [(0, NOISY), (LINE, made("gp_sum", made("gp_linear", 2), NOISY)), (-1.5, made("gp_noise", 2.0))],
        [(0.5, 0.0), (-1.0, 1), (2.0, 0.35), (0.25, 1.0), (0.5, 0.0), (-0.75, 2.5), (3, -1.25)],
    ),
    Process(
        "make_gp",
        [(0, SMOOTH), (LINE, made("gp_matern", 1, 1, 1.5)), (2.0, NOISY)],
        [(0.5, 0.0), (-1.0, 1), (2.0, 0.35), (-1, 1.0), (0.5, -0.0), (-0.75, 2.5), (3, -1.25), (-1, 1)],
    ),
    Process(
        "make_gp",
        [
            (0, made("gp_squared_exponential", 1, np.array([0.5, 2.0]))),
            (made("gp_linear_mean", (1, -1)), made("gp_sum", made("gp_noise", 0.5), made("gp_linear", 1, (0, 1)))),
        ],
        [(0.5, np.array([0, 1.0])), (-1.0, (1, 1)), (2.0, np.array([0.5, -1])), (0.5, (0, 1.0)), (1.0, (3, 3))],
    ),
    Process(
        "make_lazy_hmm",
        [(INITIAL, TRANSITION, EMISSION), OTHER],
        [(0, 0), (1, 2), (3, 3), (3, 3.0), (1, 3), (2, 9), (1.0, 10), (True, 5), (0, 0)],
    ),
]
CALLS = [
    pytest.param(p, args, id=f"{p.name}{i}-{j}") for i, p in enumerate(PROCESSES) for j, args in enumerate(p.arguments)
]
IDS = [f"{p.name}{i}" for i, p in enumerate(PROCESSES)]


def state_of(process: Process, args: tuple[Any, ...], applications: Sequence[Application] = ()) -> MakerState:
    record = PROCEDURES[process.name]
    assert isinstance(record, Maker)
    state = record.make(*check_arguments(record, args))
    for value, place in applications:
        state.add(value, place)
    return state


def probe(state: MakerState, process: Process) -> list[float]:
    return [*(state.log_predictive(value, place) for value, place in process.applications), state.log_joint()]


def kept(state: MakerState) -> tuple[Any, ...]:
    return state.count, sorted(state.statistics().items())


# ------------------------------------------------------------------------------------------------- what both promise


@pytest.mark.parametrize(("process", "args"), CALLS)
def test_the_joint_density_is_the_sum_of_predictive_densities_in_any_order(
    process: Process, args: tuple[Any, ...]
) -> None:
    rng = np.random.default_rng(2)
    joints = []
    for _ in range(6):
        state, total = state_of(process, args), 0.0
        for position in rng.permutation(len(process.applications)):
            value, place = process.applications[position]
            total += state.log_predictive(value, place)
            state.add(value, place)
            assert math.isclose(state.log_joint(), total, rel_tol=1e-9, abs_tol=1e-8)
        joints.append(total)
    assert np.allclose(joints, joints[0], 1e-9, 1e-8)


@pytest.mark.parametrize(("process", "args"), CALLS)
def test_changes_are_undone_bit_for_bit(process: Process, args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(3)
    state = state_of(process, args, process.applications)
    before, probed = kept(state), probe(state, process)
    for _ in range(20):
        undo, present = [], list(process.applications)
        for _ in range(12):
            match rng.integers(5):
                case 0 | 1 if present:
                    undo.append((state.restore, state.remove(*present.pop(rng.integers(len(present))))))
                case 4:
                    undo.append((state.set_arguments, state.arguments))
                    state.set_arguments(process.arguments[rng.integers(len(process.arguments))])
                case _:
                    present.append(process.applications[rng.integers(len(process.applications))])
                    undo.append((state.restore, state.add(*present[-1])))
            if rng.integers(2):
                probe(state, process)
        if sum(take_back.__name__ == "set_arguments" for take_back, _ in undo) < 2:
            for take_back, token in reversed(undo):
                take_back(token)
            assert probe(state, process) == probed
        else:
            # the factor of the first parameters is no longer kept: computed anew, it may differ in the last bits
            for take_back, token in reversed(undo):
                take_back(token)
            assert np.allclose(probe(state, process), probed, 1e-9, 1e-9)
            state.recount(process.applications)
            probed = probe(state, process)
        assert kept(state) == before


@pytest.mark.parametrize(("process", "args"), CALLS)
def test_a_copy_takes_changes_back_as_the_original_would(process: Process, args: tuple[Any, ...]) -> None:
    state = state_of(process, args, process.applications)
    probed = probe(state, process)
    tokens = [state.remove(*process.applications[1]), state.add(*process.applications[2])]
    other = copy.deepcopy(state)
    for one in (state, other):
        for token in reversed(tokens):
            one.restore(token)
        assert probe(one, process) == probed


@pytest.mark.parametrize(("process", "args"), CALLS)
def test_statistics_equal_a_recount_and_are_empty_in_the_end(process: Process, args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(4)
    state, present = state_of(process, args), []
    for _ in range(200):
        if present and rng.random() < 0.45:
            state.remove(*present.pop(rng.integers(len(present))))
        else:
            present.append(process.applications[rng.integers(len(process.applications))])
            state.add(*present[-1])
    other = state_of(process, args)
    other.recount(present)
    assert kept(state) == kept(other)
    assert np.allclose(probe(state, process), probe(other, process), 1e-9, 1e-9)
    for application in present:
        state.remove(*application)
    assert kept(state) == (0, [])
    assert state.log_joint() == 0.0
    assert probe(state, process) == probe(state_of(process, args), process)


@pytest.mark.parametrize("process", PROCESSES, ids=IDS)
def test_new_arguments_keep_the_applications(process: Process) -> None:
    for first, second in itertools.permutations(process.arguments, 2):
        state = state_of(process, first, process.applications)
        state.log_joint()
        state.set_arguments(second)
        fresh = state_of(process, second, process.applications)
        assert state.arguments == second
        assert np.allclose(probe(state, process), probe(fresh, process), 1e-9, 1e-9)


@pytest.mark.parametrize("process", PROCESSES, ids=IDS)
def test_a_rejected_change_of_parameters_finds_all_as_it_was(process: Process) -> None:
    first, second = process.arguments[:2]
    state = state_of(process, first, process.applications)
    token = state.remove(*process.applications[0])
    state.restore(token)
    probed, before = probe(state, process), state.arguments
    state.set_arguments(second)
    token = state.remove(*process.applications[1])
    state.log_joint()
    state.restore(token)
    state.set_arguments(before)
    assert probe(state, process) == probed


@pytest.mark.parametrize("process", PROCESSES, ids=IDS)
def test_what_is_kept_of_earlier_parameters_is_not_taken_for_other_applications(process: Process) -> None:
    state = state_of(process, process.arguments[0], process.applications[:-1])
    state.log_joint()
    first = state.arguments
    state.set_arguments(process.arguments[1])
    state.add(*process.applications[-1])
    state.set_arguments(first)
    fresh = state_of(process, process.arguments[0], process.applications)
    assert np.allclose(probe(state, process), probe(fresh, process), 1e-9, 1e-9)


@pytest.mark.parametrize("process", PROCESSES, ids=IDS)
def test_a_prediction_is_of_the_applications_at_hand(process: Process) -> None:
    value, place = process.applications[0]
    state = state_of(process, process.arguments[0])
    found = [state.log_predictive(value, place)]
    token = state.add(*process.applications[1])
    found.append(state.log_predictive(value, place))
    state.restore(token)
    found.append(state.log_predictive(value, place))
    assert found[0] == found[2] != found[1]


@pytest.mark.parametrize("process", PROCESSES, ids=IDS)
def test_values_outside_the_support_are_impossible(process: Process) -> None:
    state = state_of(process, process.arguments[0], process.applications)
    for value in ("text", math.nan, math.inf, (1,), None):
        assert state.log_predictive(value, process.applications[0][1]) == -math.inf


# ----------------------------------------------------------------------------------------------- Gaussian processes


def dense(mean: Any, covariance: Covariance, applications: Sequence[Application]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the applications by their definition."""
    points = np.array([np.atleast_1d(x) for _, x in applications], dtype=float)
    shared, own = covariance.variances(points)
    matrix = covariance.gram(points, points)
    matrix[np.diag_indices(len(points))] = shared + np.maximum(own, LEAST_NOISE * shared)
    return mean_of(mean).at(points), matrix


@pytest.mark.parametrize("args", [args for p in PROCESSES[:3] for args in p.arguments if args[1].noisy])
def test_the_joint_density_is_that_of_the_multivariate_normal(args: tuple[Any, ...]) -> None:
    process = next(p for p in PROCESSES if any(a is args for a in p.arguments))
    mean, covariance = args
    expected = stats.multivariate_normal(*dense(mean, covariance, process.applications))
    state = state_of(process, args, process.applications)
    values = [value for value, _ in process.applications]
    assert math.isclose(state.log_joint(), expected.logpdf(values), rel_tol=1e-10)


@pytest.mark.parametrize("covariance", COVARIANCES, ids=repr)
def test_predictions_are_those_of_the_multivariate_normal(covariance: Covariance) -> None:
    rng = np.random.default_rng(5)
    places, values = rng.uniform(-2, 2, 9), rng.normal(size=9)
    noisy = made("gp_sum", covariance, made("gp_noise", 0.5))
    state = GaussianProcessState(LINE, noisy)
    for place, value in zip(places[:-1].tolist(), values.tolist(), strict=False):
        state.add(value, place)
    mean, matrix = dense(LINE, noisy, list(zip(values, places, strict=True)))
    gain = np.linalg.solve(matrix[:-1, :-1], matrix[:-1, -1])
    center = mean[-1] + gain @ (values[:-1] - mean[:-1])
    spread = math.sqrt(matrix[-1, -1] - gain @ matrix[:-1, -1])
    for value in (-1.0, 0.5, 7.0):
        expected = stats.norm.logpdf(value, center, spread)
        assert math.isclose(state.log_predictive(value, float(places[-1])), expected, rel_tol=1e-8, abs_tol=1e-8)


@pytest.mark.parametrize("covariance", [*COVARIANCES, made("gp_noise", 0.5), NOISY], ids=repr)
def test_a_covariance_is_symmetric_positive_semidefinite_and_fits_its_variances(covariance: Covariance) -> None:
    points = np.random.default_rng(6).uniform(-3, 3, (40, 1))
    gram = covariance.gram(points, points)
    assert (gram == gram.T).all()
    assert np.linalg.eigvalsh(gram).min() > -1e-12 * max(1.0, gram.max())
    shared, _ = covariance.variances(points)
    assert np.allclose(shared, gram.diagonal(), 1e-14)
    assert np.array_equal(covariance.gram(points[:3], points[7:]), gram[:3, 7:])


def test_a_product_with_noise_is_noise_but_for_the_product_of_what_is_shared() -> None:
    points = np.array([[0.0], [2.0]])
    noise = made("gp_noise", 0.5)
    product = made(
        "gp_product", made("gp_sum", made("gp_constant", 2), noise), made("gp_sum", made("gp_linear", 1), noise)
    )
    shared, own = product.variances(points)
    assert shared.tolist() == [0.0, 4 * 4.0]
    # (4 + 1/4) (x^2 + 1/4) less what is shared
    assert own.tolist() == [4.25 * 0.25, 4.25 * 4.25 - 16]
    assert product.noisy
    assert product.gram(points, points)[0, 1] == 0.0


def test_covariances_are_what_their_formulas_say() -> None:
    left, right = np.array([[0.3]]), np.array([[1.1]])
    d = 0.8
    for covariance, expected in [
        (made("gp_squared_exponential", 2, 0.5), 4 * math.exp(-(d**2) / 0.5)),
        (made("gp_matern", 2, 0.5, 0.5), 4 * math.exp(-d / 0.5)),
        (made("gp_matern", 2, 0.5, 1.5), 4 * (1 + 3**0.5 * d / 0.5) * math.exp(-(3**0.5) * d / 0.5)),
        (
            made("gp_matern", 2, 0.5, 2.5),
            4 * (1 + 5**0.5 * d / 0.5 + 5 * d**2 / (3 * 0.25)) * math.exp(-(5**0.5) * d / 0.5),
        ),
        (made("gp_rational_quadratic", 2, 0.5, 3), 4 * (1 + d**2 / (2 * 3 * 0.25)) ** -3),
        (made("gp_periodic", 2, 0.5, 3), 4 * math.exp(-2 * math.sin(math.pi * d / 3) ** 2 / 0.25)),
        (made("gp_linear", 2, 1), 4 * (0.3 - 1) * (1.1 - 1)),
        (made("gp_constant", 2), 4.0),
        (made("gp_noise", 2), 0.0),
    ]:
        assert math.isclose(covariance.gram(left, right)[0, 0], expected, rel_tol=1e-12, abs_tol=1e-15), covariance


def test_each_coordinate_has_its_length() -> None:
    points = np.array([[0.0, 0.0], [1.0, 4.0]])
    one = made("gp_squared_exponential", 1, (0.5, 2)).gram(points, points)
    assert math.isclose(one[0, 1], math.exp(-0.5 * (4 + 4)))
    with pytest.raises(ArgumentError, match="length has 3 entries, but the points have 2"):
        made("gp_matern", 1, (1, 1, 1), 0.5).gram(points, points)


def test_means_are_numbers_lines_sums_and_products() -> None:
    points = np.array([[0.0], [2.0]])
    mean = made("gp_sum", made("gp_product", LINE, LINE), 3)
    assert mean_of(mean).at(points).tolist() == [4.0, 7.0]
    assert mean_of(2).at(points).tolist() == [2.0, 2.0]
    assert mean_of(made("gp_linear_mean", (1, 2))).at(np.array([[3.0, 4.0]])).tolist() == [11.0]


def test_a_covariance_is_a_value_equal_by_content_and_printed_as_it_is_written() -> None:
    one = made("gp_sum", made("gp_squared_exponential", 1, np.array([2.0, 3.0])), made("gp_noise", 0.5))
    other = made("gp_sum", made("gp_squared_exponential", 1.0, (2, 3)), made("gp_noise", 0.5))
    assert one == other
    assert hash(one) == hash(other)
    assert one != NOISY
    assert repr(one) == "(gp_sum (gp_squared_exponential 1 (vector 2 3)) (gp_noise 0.5))"


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        (
            "make_gp",
            (0, abs),
            "make_gp: covariance must be a covariance made by gp_squared_exponential.*a lambda cannot",
        ),
        ("make_gp", (abs, SMOOTH), "make_gp: mean must be a number or a mean made by gp_linear_mean"),
        ("gp_sum", (SMOOTH, LINE), "gp_sum takes covariances alone, or means and numbers alone, got"),
        ("gp_sum", (abs,), "gp_sum: part must be a covariance, or a mean"),
        ("gp_matern", (1, 1, 2), "gp_matern: order must be 0.5, 1.5 or 2.5, got 2"),
        ("gp_noise", (0,), "gp_noise: sd must be a positive number, got 0"),
        ("gp_periodic", (1, 1), "gp_periodic takes 3 arguments"),
    ],
)
def test_messages(name: str, args: tuple[Any, ...], message: str) -> None:
    record = PROCEDURES[name]
    with pytest.raises(ArgumentError, match=message):
        record.make(*check_arguments(record, args)) if isinstance(record, Maker) else made(name, *args)


def test_points_of_two_sizes_are_refused() -> None:
    state = GaussianProcessState(0, SMOOTH)
    state.add(1.0, 2.0)
    with pytest.raises(ArgumentError, match=r"make_gp: \(1 2\) has 2 coordinates, other points have 1"):
        state.log_predictive(1.0, (1, 2))
    state.remove(1.0, 2.0)
    assert math.isfinite(state.log_predictive(1.0, (1, 2)))


def test_without_noise_a_value_is_repeated_and_its_repetition_is_certain() -> None:
    state = GaussianProcessState(0, SMOOTH)
    rng = np.random.default_rng(7)
    state.add(0.75, 1)
    before = state.log_joint()
    assert state.simulate(rng, 1.0) == 0.75
    assert state.log_predictive(0.75, 1) == 0.0
    assert state.log_predictive(0.76, 1) == -math.inf
    state.add(0.75, 1)
    assert state.log_joint() == before
    state.add(0.5, 1.0)
    assert state.log_joint() == -math.inf
    state.remove(0.75, 1)
    state.remove(0.75, 1)
    assert math.isclose(state.log_joint(), stats.norm.logpdf(0.5, 0, 1.5), rel_tol=1e-9)


def test_where_the_variance_is_0_the_mean_is_certain() -> None:
    state = GaussianProcessState(LINE, made("gp_linear", 2.0))
    for value, x in [(2.0, 1.0), (1.0, 0.0)]:
        state.add(value, x)
    assert state.log_predictive(1.0, 0.0) == 0.0
    assert state.simulate(np.random.default_rng(1), 0.0) == 1.0
    assert math.isclose(state.log_joint(), stats.norm.logpdf(2.0, 1.5, 2.0), rel_tol=1e-8)
    state.remove(2.0, 1.0)
    assert state.log_joint() == 0.0
    state.add(1.5, 0)
    state.remove(1.0, 0)
    assert state.log_joint() == -math.inf


def test_points_that_nearly_coincide_stay_regular() -> None:
    rng = np.random.default_rng(8)
    state = GaussianProcessState(0, made("gp_squared_exponential", 1, 1))
    values = {}
    for x in (0.5 + 1e-9 * rng.normal(size=60)).tolist():
        values[x] = state.simulate(rng, x)
        state.add(values[x], x)
    assert np.ptp(list(values.values())) < 1e-3
    assert math.isfinite(state.log_joint())
    for x in list(values)[::2]:
        state.remove(values[x], x)
    other = GaussianProcessState(0, made("gp_squared_exponential", 1, 1))
    other.recount([(values[x], x) for x in list(values)[1::2]])
    assert math.isclose(state.log_joint(), other.log_joint(), rel_tol=1e-3)


def test_drawn_one_after_the_other_values_are_jointly_normal() -> None:
    rng = np.random.default_rng(9)
    places = (0.0, 0.4, 1.5)
    state = GaussianProcessState(LINE, NOISY)
    drawn = []
    for _ in range(3000):
        tokens, values = [], []
        for x in places:
            values.append(state.simulate(rng, x))
            tokens.append(state.add(values[-1], x))
        for token in reversed(tokens):
            state.restore(token)
        drawn.append(values)
    mean, matrix = dense(LINE, NOISY, [(0, x) for x in places])
    for direction in np.array([[1, 0, 0], [0, 0, 1.0], [1, -1, 0], [1, 1, 1], [1, -2, 1]]):
        spread = math.sqrt(direction @ matrix @ direction)
        assert stats.kstest(np.array(drawn) @ direction, stats.norm(direction @ mean, spread).cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("position", [0, 3, 11])
def test_a_row_taken_out_of_a_factor_leaves_the_factor_of_the_rest(position: int) -> None:
    rng = np.random.default_rng(10)
    root = rng.normal(size=(12, 12))
    matrix = root @ root.T + np.eye(12)
    factor = GrowingCholesky()
    for row in range(12):
        weights = factor.solve(matrix[row, :row])
        factor.extend(weights, math.sqrt(matrix[row, row] - weights @ weights))
    right = rng.normal(size=12)
    before = factor.solve(right)
    assert np.allclose(before, np.linalg.solve(np.linalg.cholesky(matrix), right), 1e-12)
    token = factor.delete(position)
    rest = np.delete(np.delete(matrix, position, 0), position, 1)
    lower = np.linalg.cholesky(rest)
    assert np.allclose(factor.solve(right[:-1]), np.linalg.solve(lower, right[:-1]), 1e-11)
    assert np.allclose(factor.diagonal(), lower.diagonal(), 1e-12)
    factor.put_back(position, token)
    assert (factor.solve(right) == before).all()


def test_a_matrix_that_rounding_made_indefinite_is_factored_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    process, args = PROCESSES[0], PROCESSES[0].arguments[0]
    expected = probe(state_of(process, args, process.applications), process)

    def indefinite(factor: GrowingCholesky, matrix: np.ndarray) -> None:
        raise np.linalg.LinAlgError

    monkeypatch.setattr(GrowingCholesky, "factor", indefinite)
    state = state_of(process, args)
    state.recount(process.applications)
    assert np.allclose(probe(state, process), expected, 1e-12)


# --------------------------------------------------------------------------------------------- hidden Markov models


def by_paths(args: tuple[Any, ...], emitted: Sequence[Application]) -> float:
    """Log probability of the emissions, summed over all paths of states."""
    initial, transition, emission = (np.asarray(a, dtype=float) for a in args)
    last = max((int(t) for _, t in emitted), default=0)
    total = 0.0
    for path in itertools.product(range(len(initial)), repeat=last + 1):
        weight = initial[path[0]]
        for before, after in itertools.pairwise(path):
            weight *= transition[before, after]
        for value, t in emitted:
            weight *= emission[path[int(t)], int(value)]
        total += weight
    return math.log(total) if total > 0 else -math.inf


@pytest.mark.parametrize("args", PROCESSES[3].arguments, ids=["0", "1"])
def test_emissions_with_gaps_and_repetitions_have_the_probability_of_all_paths(args: tuple[Any, ...]) -> None:
    rng = np.random.default_rng(11)
    for _ in range(12):
        times = rng.integers(0, 7, rng.integers(1, 6))
        emitted = [(int(rng.integers(1, 4)), int(t)) for t in times]
        state = LazyHmmState(*args)
        for value, t in emitted:
            before = by_paths(args, [*_emitted(state), (value, t)]) - by_paths(args, _emitted(state))
            if by_paths(args, _emitted(state)) > -math.inf:
                assert math.isclose(state.log_predictive(value, t), before, rel_tol=1e-9, abs_tol=1e-12)
            state.add(value, t)
            expected = by_paths(args, _emitted(state))
            assert math.isclose(state.log_joint(), expected, rel_tol=1e-9, abs_tol=1e-12)


def _emitted(state: LazyHmmState) -> list[Application]:
    return [(outcome, t) for (t, outcome), n in state.statistics().items() for _ in range(n)]


@pytest.mark.parametrize("time", [0, 4, 6, 30])
def test_drawn_emissions_follow_the_predictive_probabilities(time: int) -> None:
    rng = np.random.default_rng(12)
    state = LazyHmmState(INITIAL, TRANSITION, EMISSION)
    for value, t in [(1, 1), (3, 4), (2, 4), (1, 8)]:
        state.add(value, t)
    masses = [(k, math.exp(state.log_predictive(k, time))) for k in state.support(time)]
    assert math.isclose(math.fsum(mass for _, mass in masses), 1.0, rel_tol=1e-12)
    assert chi_squared([state.simulate(rng, time) for _ in range(4000)], masses) > FALSE_ALARM


def test_far_ahead_the_chain_forgets() -> None:
    state = LazyHmmState(INITIAL, TRANSITION, EMISSION)
    state.add(3, 2)
    values, vectors = np.linalg.eig(TRANSITION.T)
    stationary = np.real(vectors[:, np.argmax(values.real)])
    expected = np.log(stationary / stationary.sum() @ EMISSION)
    for time in (10**4, 10**18, 1e300):
        assert np.allclose([state.log_predictive(k, time) for k in range(4)], expected, 1e-10)


def test_long_sequences_and_many_emissions_at_one_time_do_not_underflow() -> None:
    rng = np.random.default_rng(13)
    state = LazyHmmState(INITIAL, TRANSITION, EMISSION)
    for t in range(2000):
        state.add(int(rng.integers(1, 4)), t)
    assert -5000 < state.log_joint() < -1000
    one = LazyHmmState((1.0, 0.0), np.eye(2), ((1e-4, 1 - 1e-4), (0.5, 0.5)))
    for _ in range(500):
        one.add(0, 3)
    # the state that explains the emissions is impossible, and the other is not
    assert math.isclose(one.log_joint(), 500 * math.log(1e-4), rel_tol=1e-12)
    assert math.isclose(one.log_predictive(0, 5), math.log(1e-4), rel_tol=1e-12)


def test_impossible_emissions_are_told_and_taken_back() -> None:
    state = LazyHmmState((1.0, 0.0), np.eye(2), np.eye(2))
    state.add(0, 0)
    assert state.log_predictive(1, 5) == -math.inf
    token = state.add(1, 5)
    assert state.log_joint() == state.log_predictive(0, 2) == -math.inf
    assert state.simulate(np.random.default_rng(1), 2) == 0
    state.restore(token)
    assert state.log_joint() == 0.0


def test_a_matrix_of_fewer_outcomes_makes_the_others_impossible() -> None:
    state = LazyHmmState(INITIAL, TRANSITION, EMISSION)
    state.add(3, 1)
    state.set_arguments((INITIAL, TRANSITION, EMISSION[:, :2] / EMISSION[:, :2].sum(axis=1, keepdims=True)))
    assert state.log_joint() == -math.inf
    assert list(state.support(1)) == [0, 1]


def test_sizes_must_match() -> None:
    for args, message in [
        (((0.5, 0.5), TRANSITION, EMISSION), "initial has 2 entries, but transition is 3 by 3"),
        ((INITIAL, TRANSITION, EMISSION[:2]), "initial has 3 entries, but emission is 2 by 4"),
        ((INITIAL, TRANSITION[:, :1] * 0 + 1, EMISSION), "initial has 3 entries, but transition is 3 by 1"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            LazyHmmState(*args)
    with pytest.raises(ArgumentError, match="transition must be a matrix of probabilities whose rows each sum to 1"):
        check_arguments(PROCEDURES["make_lazy_hmm"], (INITIAL, TRANSITION.T, EMISSION))


def messages_computed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A list with one entry for each message from here on."""
    made: list[int] = []
    original = hidden_markov.joined

    def counting(message: np.ndarray, log_evidence: np.ndarray) -> tuple[np.ndarray, float]:
        made.append(1)
        return original(message, log_evidence)

    monkeypatch.setattr(hidden_markov, "joined", counting)
    return made


def test_in_order_of_time_an_emission_costs_few_messages_however_many_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = messages_computed(monkeypatch)
    state = LazyHmmState(INITIAL, TRANSITION, EMISSION)
    for t in range(300):
        state.log_predictive(1, t)
        state.add(1, t)
    assert len(made) <= 300
    # a sweep that draws each of them anew
    state.log_predictive(1, 0)
    made.clear()
    for t in range(300):
        state.remove(1, t)
        state.log_predictive(1, t)
        state.add(1, t)
    assert len(made) <= 3 * 300 + 10
