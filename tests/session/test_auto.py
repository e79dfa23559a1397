"""`auto`: the program that it composes, when it stops, what it returns, and what it leaves."""

from __future__ import annotations

import math
import re
import signal
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.draws.draws import Draws, Origin
from venture_lite.errors import VentureError, VentureWarning
from venture_lite.session.auto.composing import composed
from venture_lite.session.auto.judging import judged, looks
from venture_lite.session.auto.running import AutoOptions, AutoRun
from venture_lite.session.runner import _keep

MANY = 300
DATA = {"y": [2.9, 1.0, 0.3, 1.8, 2.2, 0.9]}
LEVEL = "[assume mu (normal 0 10)] for n in 1...6: [observe (normal mu 1) {y[n]}]"
MODELS = {
    "smooth": (
        "[assume m (normal 0 5)] [assume t (half_normal 5)] [assume a (mem (lambda (j) (normal m t)))]"
        "[assume n 10] [assume d (- m t)] for i in 1...6: [observe (normal (a (if (< i 3) 1 2)) 1) {y[i]}]",
        ("(nuts (choices m t a 'smooth) all 'dense 'adapt 100 1)",),
        ["m", "t", "(a 1)", "(a 2)", "d"],
        {},
    ),
    "labels": (
        "[assume crp (make_crp 1)] [assume mu (mem (lambda (k) (normal 0 5)))] [assume s (half_normal 1)]"
        "[assume z (mem (lambda (i) (crp)))] for i in 1...6: [observe (normal (mu (z i)) s) {y[i]}]",
        (
            "(nuts (choices s 'smooth) all 'dense 'adapt 100 1)",
            "(slice (choices mu 'smooth) each 1 50 'adapt 100 1)",
            "(gibbs (choices 'finite) each 1)",
            "(split_merge (choices 'finite) 1)",
        ),
        ["(classes crp)", "s"],
        {"mu": "its calls come and go", "z": "labels"},
    ),
    "collapsed": (
        "[assume alpha (gamma 1 1)] [assume crp (make_crp alpha)]"
        "[assume c (mem (lambda (k) (make_beta_bernoulli 1 1)))] [assume z (mem (lambda (i) (crp)))]"
        "for i in 1...6: [observe ((c (z i))) (= 1 {y[i]})]",
        (
            "(slice (choices 'smooth) each 1 50 'adapt 100 1)",
            "(gibbs (choices 'finite) each 1)",
            "(split_merge (choices 'finite) 1)",
        ),
        ["alpha", "(classes crp)"],
        {"z": "labels"},
    ),
    "labels_of_which_a_member_has_a_choice": (
        "[assume crp (make_crp 1)] [assume mu (mem (lambda (k i) (normal 0 5)))] [assume z (mem (lambda (i) (crp)))]"
        "for i in 1...6: [observe (normal (mu (z i) i) 1) {y[i]}]",
        ("(slice (choices 'smooth) each 1 50 'adapt 100 1)", "(gibbs (choices 'finite) each 1)"),
        ["(classes crp)"],
        {"mu": "its calls come and go", "z": "labels"},
    ),
    "states": (
        "[assume z (mem (lambda (t) (if (= t 1) (flip) (flip (if (z (- t 1)) 0.9 0.1)))))]"
        "for i in 1...6: [observe (normal (if (z i) 3 0) 1) {y[i]}]",
        ("(gibbs (choices z 'finite) all 'forward 1)",),
        [f"(z {i})" for i in range(1, 7)],
        {},
    ),
    "states that are labels": (
        "[assume row (mem (lambda (k) (dirichlet (list 1 1))))] [assume mu (mem (lambda (k) (normal 0 5)))]"
        "[assume z (mem (lambda (t) (if (= t 0) 0 (categorical (row (z (- t 1)))))))]"
        "for i in 1...6: [observe (normal (mu (z i)) 1) {y[i]}]\n"
        "[assume first (z 1)] [assume same (= (z 1) (z 2))] [assume level (mu (z 1))]",
        ("(nuts (choices 'smooth) all 'dense 'adapt 100 1)", "(gibbs (choices 'finite) all 'forward 1)"),
        ["same", "level"],
        {"row": "keyed by labels", "mu": "keyed by labels", "z": "labels", "first": "labels"},
    ),
    "labels of a finite mixture": (
        "[assume w (dirichlet (vector 1 1))] [assume z (mem (lambda (i) (categorical w)))]"
        "[assume mu (mem (lambda (k) (normal 0 5)))] [assume s (half_normal 1)]"
        "for i in 1...6: [observe (normal (mu (z i)) s) {y[i]}]",
        ("(nuts (choices 'smooth) all 'dense 'adapt 100 1)", "(gibbs (choices 'finite) all 'forward 1)"),
        ["s"],
        {"w": "how probable labels are", "z": "labels", "mu": "keyed by labels"},
    ),
    "labels of which one is rare": (
        "[assume w (beta 1 9)] [assume z (mem (lambda (i) (flip w)))] [assume mu (mem (lambda (k) (normal 0 5)))]"
        "for i in 1...6: [observe (normal (mu (z i)) 1) {y[i]}]",
        ("(nuts (choices 'smooth) all 'dense 'adapt 100 1)", "(gibbs (choices 'finite) all 'forward 1)"),
        ["w"],
        {"z": "labels", "mu": "keyed by labels"},
    ),
    "labels beside others": (
        "[assume w (beta 1 1)] [assume z (mem (lambda (i) (flip w)))] [assume u (mem (lambda (i) (flip)))]"
        "[assume mu (mem (lambda (k) (normal 0 5)))] [assume nu (mem (lambda (k) (normal 0 5)))]"
        "for i in 1...6: [observe (normal (+ (mu (z i)) (nu (u i))) 1) {y[i]}]",
        ("(nuts (choices 'smooth) all 'dense 'adapt 100 1)", "(gibbs (choices 'finite) each 1)"),
        [],
        {
            "w": "how probable labels are",
            "z": "labels",
            "mu": "keyed by labels",
            "u": "labels",
            "nu": "keyed by labels",
        },
    ),
    "states that mean what they are": (
        "[assume mu (mem (lambda (k) (normal k 5)))]"
        "[assume rows (list (list 0.6 0.4) (list 0.3 0.7))]"
        "[assume z (mem (lambda (t) (if (= t 0) 0 (categorical (lookup rows (z (- t 1)))))))]"
        "for i in 1...3: [observe (normal (mu (z i)) 1) {y[i]}]",
        ("(nuts (choices 'smooth) all 'dense 'adapt 100 1)", "(gibbs (choices 'finite) all 'forward 1)"),
        ["(z 1)", "(z 2)", "(z 3)"],
        {"mu": "its calls come and go"},
    ),
    "a chain beside a switch": (
        "[assume z (mem (lambda (t) (if (= t 0) 0 (flip (if (z (- t 1)) 0.9 0.1)))))] [assume on (flip)]"
        "for i in 1...3: [observe (normal (+ (if (z i) 3 0) (if on 1 0)) 1) {y[i]}]",
        ("(gibbs (choices z 'finite) all 'forward 1)", "(gibbs (choices on 'finite) each 1)"),
        ["(z 1)", "(z 2)", "(z 3)", "on"],
        {},
    ),
    "counts in a row": (
        "[assume x (mem (lambda (t) (if (= t 0) 3 (poisson (+ 1 (x (- t 1)))))))]"
        "for i in 1...3: [observe (normal (x i) 1) {y[i]}]",
        ("(pgibbs (choices x 'counts) ordered 20 'ancestor 1)",),
        ["(x 1)", "(x 2)", "(x 3)"],
        {},
    ),
    "numbers in a row that are cut": (
        "[assume x (mem (lambda (t) (if (= t 0) 0 (normal (x (- t 1)) 1))))]"
        "for i in 1...3: [observe (flip (if (> (x i) 0) 0.8 0.2)) true]",
        ("(pgibbs (choices x 'rough) ordered 20 'ancestor 1)",),
        ["(x 1)", "(x 2)", "(x 3)"],
        {},
    ),
}


WAYS = ("compiled", "interpreted", "checked")
"""Of making transitions, on which no program depends."""


@pytest.mark.parametrize("kernels", WAYS)
@pytest.mark.parametrize(
    ("classes", "observed", "sweep"),
    [
        ("(normal 0 5)", "(normal (c (z i)) sd)", "(slice (choices z c sd) all 2 50 'weights 'splits 20 1)"),
        ("(poisson 3)", "(normal (c (z i)) 1)", "(gibbs (choices 'finite) all 'weights 1)"),
        ("(make_normal_inv_chi_sq 0 1 1 1)", "((c (z i)))", "(gibbs (choices 'finite) each 1)"),
    ],
)
def test_many_labels_are_drawn_at_once(classes: str, observed: str, sweep: str, kernels: str) -> None:
    """Where they are independent, given the weights and the parameters of their classes; with what else moves so."""
    v = Venture(seed=1, kernels=kernels)
    labels = "[assume sd (gamma 2 1)] [assume crp (make_crp 1)] [assume z (mem (lambda (i) (crp)))]"
    v.execute(
        f"{labels} [assume c (mem (lambda (k) {classes}))] for i in 1...{MANY}: [observe {observed} {{y[i]}}]",
        y=[0.1 * i for i in range(MANY)],
    )
    (model,) = v.traces
    program, _ = composed(model, 100, None)
    assert sweep in program.kernels


TWO_MODES = "[assume x (normal 0 5)] [assume y (normal x 1)] [observe (normal (pow (- x 1) 2) 0.3) 9]"


@pytest.fixture(autouse=True)
def no_other_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take a second, and are none of what most tests look at."""
    monkeypatch.setattr("venture_lite.session.auto.running.PATHS", 0)


def session(program: str, **options: Any) -> Venture:
    v = Venture(seed=1, **options)
    v.execute(program, **DATA)
    return v


@pytest.mark.parametrize("name", MODELS)
def test_every_choice_has_the_kernel_of_its_kind(name: str) -> None:
    text, kernels, drawn, left_out = MODELS[name]
    for way in WAYS:
        found, without = composed(session(text, kernels=way).traces[0], 100, None)
        assert found.kernels == kernels
        assert [quantity.text for quantity in found.quantities] == [*drawn, "(log_score)"]
        assert {left.text: left.why for left in without} == left_out


RUN = ("states", "numbers in a row that are cut", next(iter(MODELS)))
"""Every day, the others with the slow tests; what they compose is looked at above."""


@pytest.mark.thorough
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name not in RUN)) for name in MODELS])
def test_every_program_runs_and_leaves_no_choice_unmoved(name: str) -> None:
    v = session(MODELS[name][0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # a short run may be told not to be enough
        warnings.filterwarnings("default", message="auto: ")
        draws = v.auto(draws=20, warmup=20, target_ess=1, chains=2)
    assert list(draws) == [*MODELS[name][2], "(log_score)"]


@pytest.mark.thorough
def test_the_posterior_is_found_and_the_text_gives_the_same_draws() -> None:
    """A mean of six data of sd 1: within five standard errors of 400 effective draws. The text, in four chains loaded
    anew from the seed, gives the same draws, whatever the session had inferred before."""
    v = session(LEVEL)
    v.infer("(mh default one 7)")
    draws = v.auto(draws=200, warmup=100)
    precision = 6.0 + 0.01
    assert abs(draws["mu"].mean() - sum(DATA["y"]) / precision) < 5.0 / math.sqrt(400 * precision)
    assert draws["mu"].std() == pytest.approx(1 / math.sqrt(precision), rel=0.2)
    assert draws.program is not None
    again = session(LEVEL, chains=4).infer(draws.program).without_adaptation()
    np.testing.assert_array_equal(draws["mu"], again["mu"])
    assert str(draws.summary()).startswith("(do (initialize)\n")
    # the session is left as its first chain
    assert v.report("mu") == draws["mu"][0, -1]
    assert len(v.traces) == 1
    np.testing.assert_array_equal(v.auto(draws=200, warmup=100)["mu"], draws["mu"])


@pytest.mark.thorough
def test_a_program_without_tuned_kernels_warms_up_without_drawing() -> None:
    draws = session(MODELS["states"][0]).auto(draws=50, warmup=30, target_ess=1)
    assert draws["(z 1)"].shape == (4, 50)
    assert draws.program is not None
    assert "(repeat 30 (do (gibbs (choices z 'finite) all 'forward 1)))" in draws.program
    again = session(MODELS["states"][0], chains=4).infer(draws.program)
    np.testing.assert_array_equal(draws["(z 3)"], again["(z 3)"])


@pytest.mark.thorough
def test_paths_that_diverge_begin_anew_with_smaller_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is that of the last try, and gives its draws."""
    monkeypatch.setattr("venture_lite.session.auto.running.MOST_DIVERGENT", -1.0)
    for chains in (1, 2):
        v = session(LEVEL, chains=chains)
        draws = v.auto(draws=40, warmup=40, target_ess=1, chains=2)
        assert draws.program is not None
        assert "'target 0.99" in draws.program
        assert "begun anew with smaller steps" in draws.preface
        again = session(LEVEL, chains=2).infer(draws.program).without_adaptation()
        np.testing.assert_array_equal(draws["mu"], again["mu"])


@pytest.mark.thorough
def test_a_long_try_ends_when_enough_paths_have_diverged(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a quarter of its draws, where it is sure by then; the draws of the next try are the same."""
    monkeypatch.setattr("venture_lite.session.auto.running.MOST_DIVERGENT", -1.0)
    found, made = [], []
    more = AutoRun._more

    def told(self: AutoRun, runs: Any, wanted: int) -> Draws:
        draws = more(self, runs, wanted)
        made[-1].append((self.target, self.made))
        return draws

    monkeypatch.setattr(AutoRun, "_more", told)
    for long in (0.0, math.inf):
        monkeypatch.setattr("venture_lite.session.auto.running.LONG", long)
        made.append([])
        found.append(session(LEVEL, chains=2).auto(draws=40, warmup=40, target_ess=1, chains=2))
    assert made == [[(0.8, 10), (0.95, 10), (0.99, 40)], [(0.8, 40), (0.95, 40), (0.99, 40)]]
    np.testing.assert_array_equal(found[0]["mu"], found[1]["mu"])
    assert found[0].program == found[1].program


@pytest.mark.thorough
@pytest.mark.parametrize("in_text", [False, True])
def test_an_interruption_keeps_the_draws(in_text: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes while draws are judged, or not enough of them: the next run of the program ends it."""

    def interrupted(draws: Draws, target: float) -> Any:
        signal.raise_signal(signal.SIGINT)
        return judged(draws, target)

    monkeypatch.setattr("venture_lite.session.auto.running.judged", interrupted)
    v = session(LEVEL, chains=2)
    with pytest.raises(KeyboardInterrupt) as caught:
        v.execute("[infer (auto 20)]") if in_text else v.auto(draws=20, warmup=100, target_ess=10**6)
    draws = caught.value.draws  # type: ignore[attr-defined]
    # a chain in a process of its own may have made some of the next run
    assert [len(chain) >= 20 for chain in draws.without_adaptation().by_chain("mu")] == [True, True]
    assert draws.program.startswith("(do (initialize)")
    if in_text:
        assert caught.value.unfinished.value is draws  # type: ignore[attr-defined]


@pytest.mark.thorough
def test_an_interruption_of_a_second_try_keeps_the_draws_of_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C comes while paths of the first try are counted, which diverged; the second has drawn nothing yet."""
    monkeypatch.setattr("venture_lite.session.auto.running.MOST_DIVERGENT", -1.0)
    counted = []

    def interrupted(draws: Draws) -> float:
        counted.append(draws)
        if len(counted) == 1:
            signal.raise_signal(signal.SIGINT)
        return 1.0

    monkeypatch.setattr("venture_lite.session.auto.running.divergent", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        session(LEVEL, chains=2).auto(draws=20, warmup=20)
    draws = caught.value.draws  # type: ignore[attr-defined]
    assert draws["mu"].shape == (2, 20)
    assert "'target" not in draws.program


@pytest.mark.parametrize(("count", "kept"), [(0, True), (3, True), (6, False)])
def test_draws_of_a_warm_up_do_not_replace_those_of_the_try_before(count: int, kept: bool) -> None:
    """Of a second try that was broken off after so many draws, the first five of which are its warm-up."""
    before = draws_of(mu=np.zeros((4, 20)))
    made = Draws([{"mu": np.ones(count)}] * 4, adapting=[{"mu": min(count, 5)}] * 4)
    error = KeyboardInterrupt()
    error.draws = made  # type: ignore[attr-defined]
    _keep(error, before, Origin(1, "", "(auto)", {}))
    assert error.draws is (before if kept else made)  # type: ignore[attr-defined]


@pytest.mark.thorough
def test_its_seconds_count_from_its_first_try(monkeypatch: pytest.MonkeyPatch) -> None:
    """What begins anew with smaller steps has no time of its own."""
    monkeypatch.setattr("venture_lite.session.auto.running.MOST_DIVERGENT", -1.0)
    began = []

    class Spied(AutoRun):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            began.append(self._began)

    monkeypatch.setattr("venture_lite.session.auto.running.AutoRun", Spied)
    session(LEVEL, chains=2).auto(draws=20, warmup=20, target_ess=1)
    assert len(began) == 3
    assert len(set(began)) == 1


@pytest.mark.thorough
def test_expressions_of_the_user_are_drawn() -> None:
    draws = session(LEVEL).auto(draws=40, warmup=40, target_ess=10, collect=["(* 2 mu)", "(normal mu 1)"], chains=2)
    assert list(draws) == ["(* 2 mu)", "(normal mu 1)"]


@pytest.mark.thorough
def test_it_goes_on_until_draws_are_enough() -> None:
    """Looks come after half as many more draws each."""
    looked = looks(100)
    assert [next(looked) for _ in range(4)] == [100, 150, 225, 337]
    few, many = (session(LEVEL).auto(draws=20, warmup=50, target_ess=size, chains=2) for size in (1, 300))
    assert few["mu"].shape[1] == 20
    assert many["mu"].shape[1] > 100


@pytest.mark.thorough
def test_time_that_is_too_short_leaves_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for model in (LEVEL, MODELS["states"][0]):
        with pytest.warns(match="too short for a warm-up"):
            assert not session(model).auto(seconds=1e-3)
    # there is time until there are forty draws, whatever else the machine does
    monkeypatch.setattr(AutoRun, "_left", property(lambda run: 0.05 if run.made < 40 else 0.0))
    with pytest.warns(match=r"1 s are over after"):
        draws = session(LEVEL).auto(draws=10**6, warmup=20, seconds=1.0)
    assert 40 <= draws["mu"].shape[1] < 10**6


def test_a_warm_up_of_long_sweeps_ends_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps of 20 s by a clock that nothing else moves, and 70 s: there is a fourth, and no fifth."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr("venture_lite.session.auto.running.time", SimpleNamespace(monotonic=lambda: clock.now))

    class LongSweeps:
        def more(self, times: int = 1) -> Draws:
            clock.now += 20.0 * times
            return Draws([{"mu": np.zeros(int(clock.now / 20.0))}])

    options = AutoOptions(seconds=70.0)
    run = AutoRun(session(LEVEL).traces[0], None, None, options, began=0.0)  # type: ignore[arg-type]
    run._warm_up(LongSweeps())
    assert (run.warmed, clock.now) == (4, 80.0)


@pytest.mark.thorough
def test_a_program_file_may_ask_for_it() -> None:
    v = Venture(seed=1)
    draws = v.execute(LEVEL + "\n[infer (auto 30)]\n[predict mu]", **DATA)[-2]
    assert isinstance(draws, Draws)
    assert draws["mu"].shape[0] == 4
    assert v.report("mu") == draws["mu"][0, -1]


@pytest.mark.thorough
def test_the_chains_are_those_of_the_program_as_it_stands() -> None:
    v = session(LEVEL)
    v.assume("extra", "(normal 0 1)", label="gone")
    v.forget("gone")
    v.execute("data: for n in 1...2: [observe (normal mu 0.001) {x[n]}]", x=[4.0, 5.0])
    v.forget("data", 2)
    draws = v.auto(draws=100, warmup=100, chains=2)
    assert draws["mu"].mean() == pytest.approx(4.0, abs=0.01)
    assert v.list_directives()[-1]["id"] == 4
    v.forget("data")


def test_what_cannot_be_run_again() -> None:
    v, y = Venture(seed=1), np.array(DATA["y"])
    v.execute(LEVEL, y=y)
    y[0] = 7.0
    with pytest.raises(VentureError, match="have been changed since"):
        v.auto(draws=20, warmup=20)
    v = session(LEVEL)
    v.assume("b", "(flip)", label="b")
    v.freeze("b")
    with pytest.raises(VentureError, match="frozen"):
        v.auto(draws=20, warmup=20)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("[assume x 3]", "no unobserved choices"),
        ("", "no unobserved choices"),
    ],
)
def test_models_in_which_there_is_nothing_to_infer(program: str, said: str) -> None:
    v = Venture(seed=1)
    v.execute(program)
    with pytest.raises(VentureError, match=said):
        v.auto()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"draws": 3}, "draws must be a whole number, 20 or more, got 3"),
        ({"chains": 0}, "chains must be a whole number"),
        ({"warmup": 19}, "warmup must be a whole number, 20 or more"),
        ({"seconds": 0}, "seconds must be a positive number"),
        ({"target_ess": math.nan}, "target_ess must be a positive number"),
        ({"collect": "mu"}, "a list of expressions"),
        ({"collect": ["(+ mu"]}, "not closed"),
    ],
)
def test_what_cannot_be_asked(options: dict[str, Any], said: str) -> None:
    with pytest.raises(VentureError, match=said):
        session(LEVEL).auto(**options)


def test_it_is_a_whole_program() -> None:
    with pytest.raises(VentureError, match="whole inference program"):
        session(LEVEL).infer("(do (auto 100))")


# ------------------------------------------------------------------------------------------------------ judgements


def draws_of(**columns: np.ndarray) -> Draws:
    return Draws([{name: values[chain] for name, values in columns.items()} for chain in range(4)])


def test_what_is_warm_up_is_not_judged() -> None:
    rng = np.random.default_rng(4)
    drawn = [{"x": rng.normal(size=500)} for _ in range(4)]
    for counted in (500, 100, 3, 0):
        marked = [{"x": 500 - counted}, {}, {"x": 100 if counted <= 400 else 0}, {}]
        found = judged(Draws(drawn, adapting=marked), 1000)
        assert (found.draws, found.is_enough) == (counted, counted == 500)
        assert not found.apart
        assert not list(found.warnings())


@pytest.mark.parametrize("seed", [0, 1])
def test_a_walk_that_comes_and_goes_has_its_draws_when_it_has_learned(seed: int) -> None:
    """It warms up longer than it was asked to."""
    v = Venture(seed=seed)
    v.execute("[assume r (poisson 4)] [assume l (if (< 4 r) 6 (+ (* 3 r) (poisson 4)))] [observe (poisson l) 6]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VentureWarning)
        draws = v.auto(draws=60, warmup=40, target_ess=20, chains=2)
    assert any(map(len, draws.adapting))
    assert draws.without_adaptation()["l"].shape[1] >= 60
    assert min(row.ess_bulk for row in draws.summary().rows) >= 20


def test_draws_are_judged_number_by_number() -> None:
    rng = np.random.default_rng(1)
    fine = rng.normal(size=(4, 500))
    slow = np.cumsum(rng.normal(size=(4, 500)), axis=1)
    apart = fine + 10.0 * np.arange(4)[:, None]
    still = fine.copy()
    still[0] = 1.0
    rare = np.zeros((4, 500), int)
    rare[2, 7] = 1
    assert judged(draws_of(x=fine, c=np.ones((4, 500)), rare=rare), 400).is_enough
    for wrong in (slow, apart, still):
        assert not judged(draws_of(x=fine, y=wrong), 400).is_enough
    found = judged(draws_of(x=fine, v=np.stack([fine, apart], axis=2)), 400)
    assert [number.name for number in found.apart] == ["v[1]"]
    told = "\n".join(judged(draws_of(apart=apart, still=still, c=np.ones((4, 500))), 400).warnings())
    assert "different places (R-hat up to" in told
    with_density = judged(draws_of(apart=apart, **{"(log_score)": fine - 5.0 * np.arange(4)[:, None]}), 400)
    assert re.search(
        r"mean log density by chain is -?0\.\d+, -[45]\.\d+, -(9|10)\.\d+", "\n".join(with_density.warnings())
    )
    assert "some chains never move still" in told
    assert "the same in all draws: c" in told
    # chains that never move, each in its own place
    assert not judged(draws_of(x=np.ones((4, 500)) * np.arange(4)[:, None]), 400).is_enough


@pytest.mark.thorough
def test_a_state_of_probability_zero_is_told_of_once_a_chain() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume x (uniform_continuous 0 1)] [observe (bernoulli (if (< x 2) 0 1)) true]")
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        venture.auto(draws=20, warmup=20, chains=2)
    told = [str(each.message) for each in met if "the state has probability zero" in str(each.message)]
    assert len(told) == len(set(told)) == 2


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("warmup", "seconds", "leaves"),
    [(200, 600.0, True), (20, None, False), pytest.param(20, 600.0, False, marks=pytest.mark.slow)],
)
def test_a_state_of_probability_zero_is_told_where_draws_are_made_from_it(
    warmup: int, seconds: float | None, leaves: bool
) -> None:
    """Where the clock is looked at, the warm-up pauses after one sweep, when no count has reached 12."""
    venture = Venture(seed=1)
    venture.execute(
        "[assume rate (gamma 2 1)] [assume n (mem (lambda (i) (poisson rate)))]"
        "for i in 1...4: [observe (binomial (n i) 0.5) 12]"
    )
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        draws = venture.auto(draws=40, warmup=warmup, chains=2, target_ess=1.0, seconds=seconds)
    impossible = np.isneginf(draws["(log_score)"]).any(axis=1)
    told = {str(each.message).split(":")[0] for each in met if "probability zero" in str(each.message)}
    assert told == ({"chain 0"} if impossible[0] else set())
    assert impossible.tolist() == [not leaves, False]
    # it ends where it can be
    assert draws["(log_score)"][:, -1].min() > -math.inf
