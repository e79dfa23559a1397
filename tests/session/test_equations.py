"""`ode`: solutions and derivatives against scipy, closed forms and differences; what fails; what is refused."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

from venture_lite import Venture
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.gradients import Densities
from venture_lite.checker import check
from venture_lite.errors import Disagreement, VentureError
from venture_lite.procedures import equations, runge_kutta
from venture_lite.procedures.straight_line import recorded

PREY = """
    [assume a {a}] [assume theta (vector 0.03 {c})] [assume start (vector 33 {v})]
    [assume sol (ode
        (lambda (t y) (let ((u (lookup y 0)) (v (lookup y 1)))
            (vector (* (- a (* (lookup theta 0) v)) u) (* (- (* 0.024 u) (lookup theta 1)) v))))
        start {t0} {ts} {options})]
"""
FIXED = {"a": "0.55", "c": "0.8", "v": "6", "t0": "0", "ts": "(range 1 21)"}


def solved(program: str, **data: object) -> np.ndarray:
    v = Venture(seed=1)
    v.execute(program, **data)
    return np.array(v.sample("sol"))


def prey(t: float, y: np.ndarray) -> list[float]:
    return [(0.55 - 0.03 * y[1]) * y[0], (0.024 * y[0] - 0.8) * y[1]]


# ------------------------------------------------------------------------------------------------ solutions


@pytest.mark.parametrize(("options", "tolerances"), [("", {}), ("'rtol 1e-3 'atol 1e-4", {"rtol": 1e-3, "atol": 1e-4})])
def test_the_method_is_that_of_scipy(options: str, tolerances: dict[str, float]) -> None:
    """Step by step: the same steps, and the same interpolation between them. Noticed: another norm of errors, another
    interpolation, another first step."""
    expected = solve_ivp(
        prey, (0, 20), [33, 6], t_eval=np.arange(1, 21), **{"rtol": 1e-6, "atol": 1e-6} | tolerances
    ).y.T
    np.testing.assert_allclose(solved(PREY.format(options=options, **FIXED)), expected, rtol=1e-10)


@pytest.mark.parametrize("options", ["", "'stiff"])
def test_linear_equations_have_exponential_solutions(options: str) -> None:
    """Also where a time is that of the start, or comes twice, and where there is none."""
    found = solved(f"[assume sol (ode (lambda (t y) (* (vector -1 0.5) y)) (list 1 2) 1 (vector 1 2 2 4) {options})]")
    away = np.array([0, 1, 1, 3])
    np.testing.assert_allclose(found, np.c_[np.exp(-away), 2 * np.exp(0.5 * away)], rtol=1e-5)
    assert solved(f"[assume sol (ode (lambda (t y) y) (list 1 2) 1 (list) {options})]").shape == (0, 2)
    assert solved(f"[assume sol (ode (lambda (t y) y) (list 1) 1 (list 1) {options})]").tolist() == [[1.0]]


@pytest.mark.thorough
def test_stiff_equations_are_solved_by_lsoda_in_few_steps() -> None:
    """Robertson's, at 10^4: from the literature (Hairer and Wanner 1996, section IV.1) and scipy."""
    program = """[assume sol (ode (lambda (t y) (let ((a (lookup y 0)) (b (lookup y 1)) (c (lookup y 2)))
        (vector (+ (* -0.04 a) (* 1e4 b c)) (- (* 0.04 a) (* 1e4 b c) (* 3e7 b b)) (* 3e7 b b))))
        (vector 1 0 0) 0 (vector 0.4 40 1e4) 'stiff 'atol 1e-10)]"""

    def robertson(t: float, y: np.ndarray) -> list[float]:
        slow, fast = -0.04 * y[0] + 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
        return [slow, -slow - fast, fast]

    expected = solve_ivp(robertson, (0, 1e4), [1, 0, 0], "BDF", [0.4, 40, 1e4], rtol=1e-9, atol=1e-13).y.T
    np.testing.assert_allclose(solved(program), expected, rtol=1e-4)


RELAXED = """[assume rate {rate}] [assume sol (ode (lambda (t y) (let ((u (lookup y 0)) (v (lookup y 1)))
    (vector (* rate (- (cos t) u)) (- u v)))) (vector 0 1) 0 (vector 1 2 10) {options})]"""


def test_what_turns_out_to_be_stiff_is_solved_by_lsoda() -> None:
    """From the beginning, as if that had been asked for. An eigenvalue of -10^4 over 10 units of time, for which an
    explicit method takes some 30,000 steps. Noticed: an estimate of stiffness that is left out."""
    found = solved(RELAXED.format(rate="1e4", options=""))
    assert np.array_equal(found, solved(RELAXED.format(rate="1e4", options="'stiff")))
    np.testing.assert_allclose(found[:, 0], np.cos([1, 2, 10]), atol=2e-4)


def test_what_takes_many_steps_need_not_be_stiff() -> None:
    """Turning, and fading slowly: hundreds of steps, all of them those of scipy's method. Noticed: every long solution
    taken to be stiff."""
    program = """[assume sol (ode (lambda (t y) (let ((u (lookup y 0)) (v (lookup y 1)))
        (vector (* 2 v) (- (* -2 u) (* 0.01 v))))) (vector 1 0) 0 {ts})]"""
    times = np.array([1.0, 60.0])
    expected = solve_ivp(
        lambda t, y: [2.0 * y[1], -2.0 * y[0] - 0.01 * y[1]], (0, 60), [1, 0], t_eval=times, rtol=1e-6, atol=1e-6
    )
    assert expected.nfev > 6 * 250
    np.testing.assert_allclose(solved(program, ts=times), expected.y.T, rtol=1e-8)


def test_what_f_may_be() -> None:
    """Branches, powers, extremes, matrices, vectors that are free, time."""
    program = """
        [assume m (matrix (list -1 0.2) (list 0 -2))] [assume dose (mem (lambda (i) (* i 1.5)))]
        [assume sol (ode (lambda (t y) (let ((flow (dot m y)) (k (* 2 (dose 1))))
            (cond ((< t 1) (+ flow (* k (vector 1 (sin t)))))
                  (else (+ flow (vector (max 0 (- 2 t)) (/ (pow (abs (sum y)) 1.5) (+ 1 (logistic t)))))))))
          (vector 1 2) 0 (vector 0.5 1 2))]
    """

    def side(t: float, y: np.ndarray) -> np.ndarray:
        flow = np.array([[-1, 0.2], [0, -2]]) @ y
        if t < 1:
            return flow + 3.0 * np.array([1, math.sin(t)])
        return flow + np.array([max(0, 2 - t), abs(y.sum()) ** 1.5 / (1 + 1 / (1 + math.exp(-t)))])

    expected = solve_ivp(side, (0, 2), [1, 2], t_eval=[0.5, 1, 2], rtol=1e-6, atol=1e-6).y.T
    np.testing.assert_allclose(solved(program), expected, rtol=1e-10)


# ------------------------------------------------------------------------------------------------ sensitivities


def density_of(program: str, **data: object) -> tuple[Venture, Densities, BlockDensity]:
    v = Venture(seed=2)
    v.execute(program, **data)
    (model,) = v._runner.chains.models
    densities = Densities(model, "nuts", warnings.warn)
    return v, densities, densities.of(list(model.trace.default.everything()))


RANDOM = {"a": "(gamma 20 40)", "c": "(gamma 40 50)", "v": "(gamma 30 5)", "t0": "(normal -0.1 0.01)"}


@pytest.mark.parametrize("options", ["", "'stiff 'rtol 1e-9 'atol 1e-9"])
def test_gradients_are_those_of_differences(options: str) -> None:
    """By a parameter, an entry of a vector, the state at the start, when that is, and the times. Noticed: a missing
    entry of the Jacobian, the sensitivity of the start left out, a sign of the start's time."""
    program = PREY.format(options=options, ts="(list 1 2 late)", **RANDOM)
    program = "[assume late (gamma 900 300)]" + program
    program += "for n in 1...3: [observe (normal (lookup (lookup sol (- n 1)) 0) 5) {y[n]}]"
    program += "for n in 1...3: [observe (normal (lookup (lookup sol (- n 1)) 1) 2) 5]"
    _, densities, density = density_of(program, y=[50, 70, 40])
    free = density.present()
    found = densities.evaluate(density, free)
    for i in range(len(free)):
        step = 1e-4 * np.eye(len(free))[i]
        up, down = (densities.evaluate(density, free + way * step)[0] for way in (1, -1))
        assert found[1][i] == pytest.approx((up - down) / 2e-4, rel=2e-3, abs=2e-3)


@pytest.mark.thorough
def test_gradients_of_what_turns_out_to_be_stiff_are_those_of_differences() -> None:
    program = RELAXED.format(rate="(gamma 1e3 1)", options="'rtol 1e-9 'atol 1e-9").replace(
        "(vector 0 1)", "(list 0 s)"
    )
    program = "[assume s (normal 1 0.1)]" + program + "[observe (normal (lookup (lookup sol 0) 1) 0.001) 0.7]"
    _, densities, density = density_of(program)
    free = density.present()
    found = densities.evaluate(density, free)
    for i, step in enumerate((1e-3, 1e-4)):
        away = step * np.eye(len(free))[i]
        up, down = (densities.evaluate(density, free + way * away)[0] for way in (1, -1))
        assert found[1][i] == pytest.approx((up - down) / (2 * step), rel=2e-3, abs=2e-3)


@pytest.mark.parametrize("options", ["", "'stiff"])
def test_values_are_the_same_with_derivatives_and_without(options: str) -> None:
    """Bit for bit: sensitivities are never solved for, or always."""
    program = PREY.format(options=options, ts="(range 1 4)", **RANDOM)
    program += "for n in 1...3: [observe (normal (lookup (lookup sol (- n 1)) 0) 5) 40]"
    v, densities, density = density_of(program)
    before = np.array(v.sample("sol"))
    free = density.present()
    densities.evaluate(density, free + 0.1)
    with densities.model.aside():
        densities.at(density, free)
        here = np.array(v.sample("sol"))
    assert np.array_equal(here, before)


def ring(t: object, y: tuple[object, ...], free: list[object]) -> tuple[object, ...]:
    """Four numbers around a ring, driven: of a matrix (1, 8) and a number."""
    (m,), k = free
    return tuple(
        recorded("sin")(t) * k - m[i] * y[i] * y[(i + 1) % 4] + recorded("exp")(-y[(i + 2) % 4]) * m[4 + i]
        for i in range(4)
    )


RING: tuple[object, ...] = (
    np.array([1.0, 0.5, 0.2, 0.8]), 0.5, np.r_[0.5, 0.5, np.linspace(0.6, 1.0, 30), 2.0, 2.0, 4.0], 1e-10, 1e-10,
    np.array([[0.3, 0.2, 0.1, 0.4, 0.1, 0.2, 0.05, 0.1]]), 0.7,
)  # fmt: skip


def pulled(system: equations.Equations, wanted: tuple[bool, ...], shift: float = 0.0) -> np.ndarray:
    """The cotangents that are wanted, in a row, at the ring shifted."""
    given = (RING[0] + shift, *RING[1:])
    values = system.values(*given)
    cotangent = np.random.default_rng(1).standard_normal(values.shape)
    parts = system.pull((False,) * 7, wanted, cotangent, values, *given)
    assert [part is not None for part in parts] == list(wanted)
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


@pytest.mark.parametrize("wanted", [(True, True, True, False, False, True, True), (False,) * 6 + (True,)])
def test_going_back_over_the_steps_gives_what_sensitivities_do(wanted: tuple[bool, ...]) -> None:
    """Two methods, each with errors of some 1e-10 a step: at the start, in the midst of a step, at times that come
    twice. Noticed: a weight of another stage, the derivative that two steps share left out, the share of a step's
    beginning in its midst, the stage at the very beginning, times at the start."""
    explicit, stiff = (equations.Equations(ring, is_stiff, ("m", "k")) for is_stiff in (False, True))
    np.testing.assert_allclose(pulled(explicit, wanted), pulled(stiff, wanted), rtol=1e-6)


def test_steps_that_were_not_kept_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a solution of many steps, and where nobody asked for derivatives for long."""
    wanted = (True, False, False, False, False, True, False)
    expected = pulled(equations.Equations(ring, False, ("m", "k")), wanted, 3e-3)
    late = equations.Equations(ring, False, ("m", "k"))
    pulled(late, wanted)
    for shift in range(6):
        late.values(RING[0] + 1e-3 * shift, *RING[1:])
    assert np.array_equal(pulled(late, wanted, 3e-3), expected)
    monkeypatch.setattr(equations, "LONGEST", 3)
    assert np.array_equal(pulled(equations.Equations(ring, False, ("m", "k")), wanted, 3e-3), expected)


def test_values_and_derivatives_come_of_one_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    program = PREY.format(options="", ts="(range 1 4)", **RANDOM)
    program += "for n in 1...3: [observe (normal (lookup (lookup sol (- n 1)) 0) 5) 40]"
    _, densities, density = density_of(program)
    solving, solves = equations.System.solve, []

    def counted(self: equations.System, *given: object) -> equations.Solution:
        solves.append(given[-1])
        return solving(self, *given)

    monkeypatch.setattr(equations.System, "solve", counted)
    free = density.present()
    for i in range(12):
        densities.evaluate(density, free + 0.01 * i)
    # the first value was known, its steps were not: nobody had asked for derivatives yet
    assert len(solves) <= 13
    assert all(solves[1:])


# ------------------------------------------------------------------------------------------------ inference


@pytest.mark.thorough
def test_the_rate_of_a_decay_is_found() -> None:
    """An exact posterior by quadrature, within 11 standard errors of ten batches of draws: one false alarm in 10^6
    (Student's t)."""
    times, rng = np.arange(1, 7) / 2, np.random.default_rng(1)
    y = 3.0 * np.exp(-0.7 * times) + 0.2 * rng.standard_normal(6)
    v = Venture(seed=1)
    v.execute(
        """[assume k (gamma 2 2)] [assume sol (ode (lambda (t y) (* (- k) y)) (vector 3) 0 {times})]
           for n in 1...6: [observe (normal (lookup (lookup sol (- n 1)) 0) 0.2) {y[n]}]""",
        times=times,
        y=y,
    )
    draws = v.infer("(repeat 350 (do (nuts default all 'adapt 100 1) (collect k)))").without_adaptation()["k"][0]
    grid = np.linspace(0.3, 1.3, 4001)
    weights = stats.gamma(2, scale=0.5).pdf(grid) * np.exp(
        -0.5 * np.sum(((y - 3.0 * np.exp(-grid[:, None] * times)) / 0.2) ** 2, axis=1)
    )
    mean = float(grid @ weights / weights.sum())
    batches = draws.reshape(10, 25).mean(axis=1)
    assert abs(draws.mean() - mean) < 11.0 * batches.std(ddof=1) / math.sqrt(10.0)


BLOWN = """[assume k (uniform_continuous 0 2)]
    [assume sol (ode (lambda (t y) (vector (* k (lookup y 0) (lookup y 0)))) (vector 1) 0 (vector 0.5 1) {})]
    [observe (normal (lookup (lookup sol 1) 0) 1) 2]"""


@pytest.mark.parametrize(
    ("options", "kernel"),
    [("", "(mh default one 5)"), ("", "(nuts default all 'step 0.5 3)"), ("'stiff", "(mh default one 1)")],
)
def test_where_the_solver_fails_the_density_is_zero(options: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The solution 1 / (1 - k t) is infinite at 1 from k = 1 on. A chain that begins there leaves, none enters."""
    monkeypatch.setattr(runge_kutta, "MOST_STEPS", 500)
    for seed in range(2):
        v = Venture(seed=seed)
        v.execute(BLOWN.format(options))
        v.execute("[force k 1.7]")
        assert np.isinf(np.array(v.sample("sol"))).all()
        draws = v.infer(f"(do (mh default one 20) (repeat 5 (do {kernel} (collect k))))")
        assert np.all(draws["k"] < 1.0)


def test_solves_that_fail_are_counted_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """In all of the program, the path to its start included. Noticed: solves that are not counted, and what reads a
    kept solution counted as one."""
    solving, failed = equations.System.solve, []

    def counted(self: equations.System, *given: object) -> equations.Solution:
        found = solving(self, *given)
        failed.append(not np.isfinite(found.values).all())
        return found

    monkeypatch.setattr(equations.System, "solve", counted)
    # solves of what is compared with the interpreter are no kernel's
    monkeypatch.setattr("venture_lite.interpreter.answers.ANSWERS", 0)
    v = Venture(seed=1)
    v.execute(BLOWN.format(""))
    failed.clear()
    kernels = "(mh default one 2) (nuts default all 'step 0.5 1)"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = v.infer(f"(do (pathfinder default all) (repeat 20 (do {kernels} (collect k))))")
    found = [(row.kernel.split()[0], name, count) for row in draws.statistics for name, count in row.details.items()]
    told = {kernel: count for kernel, name, count in found if name.startswith("failed solves of ode no step was small")}
    assert set(told) == {"(pathfinder", "(mh", "(nuts"}
    assert sum(told.values()) == sum(failed)
    assert f"\n  ode: {told['(mh']:.0f} solves failed, of states that count as impossible: " in str(draws.summary())
    draws = v.infer("(mh default one 0)")
    assert not any("failed" in name for row in draws.statistics for name in row.details)


def test_a_solver_gives_up_after_very_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runge_kutta, "MOST_STEPS", 20)
    assert np.isinf(solved(PREY.format(options="", **FIXED))).all()
    monkeypatch.setattr(runge_kutta, "MOST_STEPS", 5)
    stiff = "[assume sol (ode (lambda (t y) (* -1 y)) (vector 1) 0 (vector 100) 'stiff)]"
    assert np.isinf(solved(stiff)).all()


# ------------------------------------------------------------------------------------------------ refusals

SIMPLE = "[assume sol (ode (lambda (t y) {}) {} 0 (list 1 2))]"


@pytest.mark.parametrize(
    ("program", "message", "place"),
    [
        ("[assume f 1] [assume sol (ode f (list 1) 0 (list 1))]", "F is written out, (lambda (t y) VECTOR)", "f"),
        ("[assume sol (ode (lambda (y) y) (list 1) 0 (list 1))]", "F is of the time and the state", "(lambda (y) y)"),
        ("[assume sol (ode (lambda (t y) y) (list 1) 0)]", "ode is written (ode (lambda", None),
        ("[assume sol (ode (lambda (t y) y) (list 1) 0 (list 1) 'stif)]", "ode knows no such option", "'stif"),
        ("[assume sol (ode (lambda (t y) y) (list 1) 0 (list 1) 'rtol)]", "ode is written", None),
        (SIMPLE.format("(floor y)", "(list 1)"), "floor cannot be applied to what depends on t or y", "(floor y)"),
        (SIMPLE.format("(vector (normal 0 1))", "(list 1)"), "normal would be drawn inside F", "(normal 0 1)"),
        ("[assume f (lambda (x) x)]" + SIMPLE.format("(f y)", "(list 1)"), "f cannot be applied to what", "(f y)"),
        (SIMPLE.format("((lookup y 0) 1)", "(list 1)"), "a procedure that depends on t or y", "((lookup y 0) 1)"),
        (SIMPLE.format("(vector unknown t)", "(list 1 2)"), "unknown name unknown", "unknown"),
    ],
)
def test_what_is_written_wrong_is_refused_by_a_check_and_a_run_alike(
    program: str, message: str, place: str | None
) -> None:
    v = Venture(seed=1)
    with pytest.raises(VentureError) as caught:
        v.execute(program)
    assert message in caught.value.message
    assert caught.value.span is not None
    assert place is None or caught.value.span.text == place
    found = [each for each in check(program).diagnostics if each.severity == "error"]
    assert [each.message for each in found] == [caught.value.message]
    with pytest.raises(VentureError, match="unknown name sol"):
        v.sample("sol")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (SIMPLE.format("(vector 1 t)", "(list 1)"), "F must give a vector of 1, as Y0 is, not a vector of 2"),
        (SIMPLE.format("t", "(list 1)"), "F must give a vector of 1, as Y0 is, not a number"),
        (SIMPLE.format("(vector (lookup y 3))", "(list 1)"), "lookup: there is no item 3 of 1"),
        (SIMPLE.format("(+ y (vector 1 2))", "(list 1)"), "+ of vectors of 1 and 2 items"),
        (SIMPLE.format("y", "3"), "Y0 must be a vector of numbers, got 3"),
        (SIMPLE.format("y", "(list)"), "Y0 is empty"),
        (SIMPLE.format("y", '(list "one")'), "Y0 must be a vector of numbers"),
        (SIMPLE.format('(vector (* "a" t))', "(list 1)"), "which F reads, must be numbers"),
        ("[assume sol (ode (lambda (t y) y) (list 1) 0 (list 2 1))]", "TS must not decrease"),
        ("[assume sol (ode (lambda (t y) y) (list 1) 3 (list 2))]", "begin at T0 or later: 2 is after 3"),
        ("[assume sol (ode (lambda (t y) y) (list 1) 0 (list 1) 'rtol 0)]", "R must be a positive number, got 0"),
        (
            "[assume sol (truncated (ode (lambda (t y) y) (list 1) 0 (list 1)) 0 1)]",
            "ode is no distribution of numbers",
        ),
    ],
)
def test_sizes_and_values_that_do_not_fit_are_named(program: str, message: str) -> None:
    v = Venture(seed=1)
    with pytest.raises(
        VentureError, match=message.replace("(", r"\(").replace(")", r"\)").replace("+", r"\+")
    ) as caught:
        v.execute(program)
    assert caught.value.span is not None
    with pytest.raises(VentureError, match="unknown name sol"):
        v.sample("sol")


def test_a_slope_that_is_exact_to_the_tolerance_of_the_solver_raises_no_alarm() -> None:
    """Where the density is nearly flat, its slope and differences of it differ by what the solver leaves."""
    v = Venture(seed=1)
    v.execute(BLOWN.format(""))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Disagreement)
        v.infer("(do (pathfinder default all) (repeat 5 (nuts default all 'step 0.5 1)))")
