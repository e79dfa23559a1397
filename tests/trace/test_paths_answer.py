"""Densities with gradients, and groups of rows by columns, are held against the interpreter's where they are first
used. Each test of something broken was seen to fail without that."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.blocks import block_record, density, gradients, second
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.gradients import Densities
from venture_lite.blocks.precondition import scale_of
from venture_lite.errors import Disagreement, InternalError, KernelError
from venture_lite.interpreter import weights
from venture_lite.interpreter.free_density import DensityLine
from venture_lite.interpreter.rounding import of_arguments, slope_agrees
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.weights import Group, log_density

Patch = pytest.MonkeyPatch

NORMAL = "[assume m (normal 0 1)] [observe (normal (* 2 m) 1) 1] [observe (normal (* 2 m) 1) 3]"
MEAN = 8 / 9
LONG = "[assume m (normal 0 1)] for n in 1...{N}: [observe (normal (* {X[n]} m) 1) {Y[n]}]"
STEPS = (
    "[assume s (gamma 2 2)] [assume x (mem (lambda (t) (if (= t 0) 0 (normal (* 0.9 (x (- t 1))) s))))]"
    "for t in 1...60: [observe (normal (x t) 1) {Y[t]}]"
)


def session(program: str, kernels: str = "compiled", **parameters: Any) -> Venture:
    venture = Venture(seed=1, kernels=kernels)
    venture.execute(program, **parameters)
    return venture


def long(count: int, kernels: str = "compiled") -> Venture:
    rng = np.random.default_rng(count)
    return session(LONG, kernels, N=count, X=rng.normal(size=count), Y=rng.normal(size=count))


def mean(venture: Venture, kernel: str, name: str = "m", draws: int = 400) -> float:
    found = venture.infer(f"(do (repeat 50 {kernel}) (repeat {draws} (do {kernel} (collect {name}))))")
    return float(np.mean(np.asarray(found[name], float)))


def changed(patch: Patch, owner: Any, name: str, change: Callable[[Any], Any]) -> None:
    """Something is called as before, and gives something else."""
    original = getattr(owner, name)
    patch.setattr(owner, name, lambda *given, **named: change(original(*given, **named)))


# ---------------------------------------------------------------------------------------------------- densities


def half_the_cotangents(patch: Patch) -> None:
    """In the function of a block alone."""
    changed(patch, block_record, "pulled", lambda parts: [part if part is None else 0.5 * part for part in parts])


def other_sums(patch: Patch) -> None:
    """The weights of sites that are offered to the log score."""
    changed(patch, BlockDensity, "sums", lambda found: {site: total + 1.0 for site, total in found.items()})


def a_wrong_type(patch: Patch) -> None:
    def recorded(*given: Any) -> Any:
        raise TypeError("must be real number, not Node")

    patch.setattr("venture_lite.blocks.block_function.recorded", recorded)


@pytest.mark.parametrize("broken", [half_the_cotangents, other_sums, a_wrong_type])
@pytest.mark.parametrize("kernel", ["(nuts default all 'step 0.5 1)", "(hmc default all 0.3 4 1)"])
def test_where_the_function_is_wrong_the_passes_go_on(
    broken: Callable[[Patch], None], kernel: str, monkeypatch: Patch
) -> None:
    broken(monkeypatch)
    venture = session(NORMAL)
    with pytest.warns(Disagreement, match="the function of the log density of m: a fast way differs"):
        found = mean(venture, kernel)
    # a seeded run of 400 draws, whose mean is off by less than six of its standard errors
    assert found == pytest.approx(MEAN, abs=6 * (1 / 9) ** 0.5 / 400**0.5 * 2)
    score = venture.log_score()
    venture.infer("(mh default all 0)")
    (model,) = venture.traces
    assert score == pytest.approx(math.fsum(log_densities(model)), rel=1e-12)


def log_densities(model: Any) -> Iterator[float]:
    (m,) = (model.trace.value(node) for node in model.trace.default.everything())
    for value, at in ((m, 0.0), (1.0, 2 * m), (3.0, 2 * m)):
        yield -0.5 * (value - at) ** 2 - 0.5 * math.log(2 * math.pi)


def a_term_less(patch: Patch) -> None:
    changed(patch, BlockDensity, "_absorbing", lambda kinds: list(kinds)[:-1])


def another_slope(patch: Patch) -> None:
    changed(patch, BlockDensity, "evaluate", lambda found: (found[0], 1.01 * found[1]))


def no_slope(patch: Patch) -> None:
    changed(patch, BlockDensity, "evaluate", lambda found: (found[0], 0.0 * found[1]))


def another_place(patch: Patch) -> None:
    original = BlockDensity.put
    patch.setattr(BlockDensity, "put", lambda self, free: original(self, free * 1.001))


def a_bare_error(patch: Patch) -> None:
    def advance(steps: Any) -> None:
        raise TypeError("unsupported operand")

    patch.setattr(density, "advance", advance)


@pytest.mark.parametrize("broken", [a_term_less, another_slope, no_slope, another_place, a_bare_error])
@pytest.mark.parametrize("kernel", ["nuts default all 'step 0.5 1", "mala default all 0.3 1", "optimize default all"])
def test_where_the_passes_are_wrong_the_engine_ends(
    broken: Callable[[Patch], None], kernel: str, monkeypatch: Patch
) -> None:
    broken(monkeypatch)
    venture = session("[assume s (gamma 2 2)] [observe (normal 0 s) 1] [observe (poisson s) 1]")
    wrong = pytest.warns(Disagreement, match="the log density and its slopes of s: a fast way differs")
    with wrong, pytest.raises(KernelError, match="not those of the interpreter's density") as error:
        venture.infer(f"({kernel})")
    assert "slice" in str(error.value.hint)
    venture.infer("(slice default one 1 5 1)")


def test_wrong_second_derivatives_give_way_to_differences(monkeypatch: Patch) -> None:
    changed(monkeypatch, second, "hessian", lambda found: 2.0 * found)
    venture = session("[assume s (gamma 3 2)] [observe (normal 0 s) 1]")
    kernel = "(hmc default all 0.5 3 'precondition 1)"
    with pytest.warns(Disagreement, match="second derivatives of s"):
        venture.infer(kernel)
    block = venture.traces[0].trace.default.everything()
    (scale,) = kept_scales(venture, block)
    monkeypatch.undo()
    expected = session("[assume s (gamma 3 2)] [observe (normal 0 s) 1]")
    expected.infer(kernel)
    (right,) = kept_scales(expected, block)
    assert scale == pytest.approx(right, rel=1e-4)


def test_second_derivatives_that_cancel_are_as_exact_as_the_gradient() -> None:
    """The density of x is that of the datum alone, whose second derivative is 0: no normal describes it."""
    venture = session("[assume x (cauchy 0 1)] [factor (log (+ 1 (* x x)))] [observe (laplace x 0.01) 5]", "checked")
    with pytest.raises(KernelError, match="the normal at the block's mode does not describe the density"):
        venture.infer("(mala default all 0.01 'precondition 2)")


def kept_scales(venture: Venture, block: list[int]) -> Iterator[float]:
    (model,) = venture.traces
    densities = Densities(model, "hmc", lambda text: None)
    found, was_kept = scale_of(densities, densities.of(block), tuple(block))
    assert was_kept
    yield float(found.root[0, 0])


@pytest.mark.parametrize("broken", [half_the_cotangents, another_slope])
def test_a_checked_session_raises(broken: Callable[[Patch], None], monkeypatch: Patch) -> None:
    broken(monkeypatch)
    venture = session(NORMAL, "checked")
    with pytest.raises(InternalError, match="of m: interpreted and compiled results differ"):
        venture.infer("(nuts default all 'step 0.5 5)")


@pytest.fixture
def held(monkeypatch: Patch) -> list[int]:
    """The numbers of choices of the blocks that were held against the interpreter."""
    found: list[int] = []
    original = DensityLine.density_difference

    def noted(self: DensityLine) -> str | None:
        found.append(len(self.density.places))
        return original(self)

    monkeypatch.setattr(DensityLine, "density_difference", noted)
    return found


def test_of_many_blocks_of_one_kind_the_first_two_answer(held: list[int]) -> None:
    venture = session(
        "[assume m (mem (lambda (k) (normal 0 1)))] for n in 1...50: [observe (normal (m {K[n]}) 1) {Y[n]}]",
        K=list(range(50)), Y=[1.0] * 50,
    )  # fmt: skip
    venture.infer("(nuts default each 'step 0.5 60)")
    assert held == [1, 1]


def test_a_block_answers_again_after_a_change_of_structure(held: list[int]) -> None:
    venture = session(NORMAL)
    venture.infer("(nuts default all 'step 0.5 5)")
    venture.infer("(nuts default all 'step 0.5 5)")
    venture.execute("[observe (normal (* 3 m) 1) 4]")
    venture.infer("(nuts default all 'step 0.5 5)")
    # each action has densities of its own; of one kind two are held
    assert held == [1, 1, 1]
    venture.infer("(nuts default all 'step 0.5 5)")
    venture.infer("(nuts default all 'step 0.5 5)")
    assert held == [1, 1, 1, 1]


def test_many_rows_and_recursions_answer_too(held: list[int]) -> None:
    long(3000).infer("(hmc default all 0.01 2 1)")
    assert held == [1]
    session(STEPS, Y=[0.5] * 60).infer("(hmc default all 0.01 2 1)")
    assert held == [1, 61]


def test_a_checked_session_compares_each_transition(held: list[int]) -> None:
    session(NORMAL, "checked").infer("(hmc default all 0.3 2 7)")
    assert len(held) >= 7


def test_draws_are_those_of_a_session_that_compares_nothing(monkeypatch: Patch) -> None:
    """To the last bit: no random number is taken, and no value is left behind."""
    kernel = "(nuts default all 'adapt 20 'step 0.3 1)"
    compared = [mean(long(30), kernel, draws=60), mean(session(STEPS, Y=[0.5] * 60), kernel, "(x 30)", 60)]
    monkeypatch.setattr(gradients, "is_right", lambda *given: True)
    monkeypatch.setattr(Group, "_answer", lambda *given: None)
    assert compared == [mean(long(30), kernel, draws=60), mean(session(STEPS, Y=[0.5] * 60), kernel, "(x 30)", 60)]


# Where a comparison could be wrong itself.
DELICATE = {
    "a kink where the block stands": "[assume m (normal 0 1)] [force m 0] [observe (normal (abs m) 0.1) 0.2]",
    "many kinks": "[assume m (normal 0 1)] for n in 1...200: [observe (normal (max m {X[n]}) 0.001) {X[n]}]",
    "zero at the start": "[assume m (gamma 1 1)] [force m 0.5] [observe (uniform_continuous 0 m) 0.9]",
    "a narrow support": "[assume m (normal 0 1)] [force m 0] [observe (uniform_continuous m (+ m 1e-3)) 5e-4]",
    "a huge curvature": "[assume m (normal 1e6 1)] [observe (normal (* 1e3 m) 1e-3) 1e9]",
    "cancellation": "[assume m (normal 0 1)] [observe (normal (- (+ m 1e12) 1e12) 1e-2) 0.3]",
    "large counts": "[assume r (normal 20 1)] [observe (poisson (exp r)) 500000000]",
    "a steep end": "[assume p (beta 0.3 0.3)] for n in 1...40: [observe (bernoulli p) 1]",
    "overflow nearby": "[assume m (normal 0 1)] [force m 6.5] [observe (normal (exp (exp m)) 1) 2]",
    "a nearly singular matrix": (
        "[assume m (normal 0 1)] [observe (multivariate_normal (vector m m) "
        "(matrix (list 1 0.9999999999) (list 0.9999999999 1))) (vector 0.5 0.5)]"
    ),
    "what would be drawn anew if a type changed": (
        "[assume makers (map (lambda (a) (make_beta_bernoulli a 1)) (list 1.5 (gamma 2 2) (gamma 2 2)))]"
        "[assume x ((lookup makers 0))] [assume y ((lookup makers 0))] [observe (flip (if x 0.9 0.2)) true]"
        "[condition (or (flip 0.01) x y)]"
    ),
    "no slope": "[assume m (normal 0 1)] [observe (normal (* 0 m) 1) 0.5]",
}


@pytest.mark.parametrize("name", DELICATE)
def test_there_is_no_false_alarm(name: str) -> None:
    """Warnings of a disagreement are errors in tests."""
    given = {"X": np.linspace(-1.0, 1.0, 200)} if "{X" in DELICATE[name] else {}
    session(DELICATE[name], **given).infer("(do (hmc (choices 'smooth) all 1e-4 2 3) (optimize (choices 'smooth) all))")


def test_slopes_are_told_from_differences() -> None:
    assert slope_agrees(lambda at: math.sin(1.0 + at), math.cos(1.0))
    assert slope_agrees(lambda at: math.sin(1.0 + at), 1.001 * math.cos(1.0)) is False
    assert slope_agrees(lambda at: 1e9 * abs(at - 1e-5), -1e9)
    assert slope_agrees(lambda at: None if at < 0 else at, 1.0) is None
    assert slope_agrees(lambda at: np.array([at, at * at]), np.array([1.0, 0.1])) is False
    # of a large number the last places are noise
    assert slope_agrees(lambda at: (1e12 + at) - 1e12, 1.0)
    assert slope_agrees(lambda at: (1e12 + at) - 1e12, 1.1) is False
    assert slope_agrees(lambda at: (1e16 + at) - 1e16, 1.0) is not True
    assert slope_agrees(lambda at: 3.0, 1.0) is False
    assert slope_agrees(lambda at: 3.0, 0.0)


def test_rounding_is_told_from_the_last_places_of_arguments() -> None:
    assert of_arguments(lambda x: (x + 1e9) - 1e9, [1.0]) < 1e-6
    assert of_arguments(lambda x: 1e12 * (x - 1.0), [1.0]) > 1e-4


# ------------------------------------------------------------------------------------------------------- groups


def other_values(at: int) -> Callable[[Patch], None]:
    """One row's value is another where columns are read."""

    def broken(patch: Patch) -> None:
        def moved(values: np.ndarray) -> np.ndarray:
            values = values.copy()
            values[at] += 1.0
            return values

        changed(patch, Group, "values_of", moved)

    return broken


def a_row_less(patch: Patch) -> None:
    """The sum has one row less than the terms."""
    original = Group._weigh_chunk
    patch.setattr(Group, "_weigh_chunk", lambda self, rows: original(self, slice(rows.start, rows.stop - 1)))


def no_columns(patch: Patch) -> None:
    def values_of(self: Group, rows: Any) -> Any:
        raise TypeError("ufunc not supported for the input types")

    patch.setattr(Group, "values_of", values_of)


@pytest.mark.parametrize(("count", "chunk"), [(21, None), (100, None), (500, None), (500, 250), (500, 249)])
@pytest.mark.parametrize("broken", [other_values(0), other_values(-1), a_row_less, no_columns])
def test_a_group_whose_columns_are_wrong_is_weighed_row_by_row(
    broken: Callable[[Patch], None], count: int, chunk: int | None, monkeypatch: Patch
) -> None:
    """In one call, and in three, each of which is compared."""
    if chunk is not None:
        monkeypatch.setattr(weights, "CHUNK", chunk)
    expected = long(count).log_score()
    broken(monkeypatch)
    with pytest.warns(Disagreement, match=r"densities of normal at .* by columns: a fast way differs"):
        venture = long(count)
    assert venture.log_score() == pytest.approx(expected, rel=1e-12)
    venture.infer("(slice default one 1 5 1)")


def test_the_users_of_a_family_answer_as_a_group(monkeypatch: Patch) -> None:
    program = "[assume m (mem (lambda (k) (normal 0 1)))] for n in 1...60: [observe (normal (m {K[n]}) {S[n]}) {Y[n]}]"
    (model,) = session(program, K=[0] * 25 + [1] * 35, S=[1.0] * 60, Y=[1.0] * 60).traces
    nodes = model.trace.default.everything()
    scaffolds = [Builder(model.trace, by_family=True).build([node]) for node in nodes]
    users = [users for scaffold in scaffolds for users in scaffold.users]
    expected = [sum(log_density(model.trace, users.site << 32 | row) for row in users.rows) for users in users]
    other_values(7)(monkeypatch)
    with pytest.warns(Disagreement, match="by columns"):
        found = [model.weights.all_users(each).total for each in users]
    assert found == pytest.approx(expected, rel=1e-12)
    assert len(found) == 2


def test_a_checked_session_raises_where_columns_are_wrong(monkeypatch: Patch) -> None:
    other_values(3)(monkeypatch)
    with pytest.raises(InternalError, match="results differ in a log density"):
        long(30, "checked")


def test_rows_are_compared_at_first_and_after_a_change_of_type(monkeypatch: Patch) -> None:
    compared: list[int] = []
    original = Group._difference

    def noted(self: Group, rows: Any) -> str | None:
        compared.append(1)
        return original(self, rows)

    monkeypatch.setattr(Group, "_difference", noted)
    venture = session("[assume m (normal 0 1)] for n in 1...40: [observe (normal m 1) {Y[n]}]", Y=[1.0] * 40)
    venture.infer("(mh default one 20)")
    assert len(compared) == 2
    venture.infer("(mh default one 20)")
    assert len(compared) == 2


@pytest.mark.parametrize(
    ("program", "values"),
    [
        ("(poisson {X[n]})", np.full(30, 10**9)),
        ("(binomial 2000000000 (/ 1 (+ 1 {X[n]})))", np.full(30, 2)),
        ("(normal (* 1e3 (/ {X[n]} 1e9)) 1e-4)", np.full(30, 1000.0 + 1e-4)),
        ("(student_t 3 {X[n]} 1e-9)", np.full(30, 1e9 + 1.0)),
    ],
)
def test_rounding_in_columns_is_no_disagreement(program: str, values: np.ndarray) -> None:
    session(f"for n in 1...30: [observe {program} {{Y[n]}}]", X=np.full(30, 1e9), Y=values)
