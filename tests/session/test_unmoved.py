"""A choice that no kernel moves, though draws rest on it, is named; nothing else is."""

from __future__ import annotations

import io
import warnings
from typing import Any
from unittest.mock import patch

import pytest

from venture_lite import Venture
from venture_lite.draws.draws import Draws
from venture_lite.errors import VentureWarning
from venture_lite.inference.watch import Verdict, Watch
from venture_lite.shell.cli import main

PAIR = """
[assume x (tag 'x 0 (normal 0 1))]
[assume y (tag 'y 0 (normal x 1))]
[observe (normal y 1) 3]
"""


def warned(text: str, session: Venture | None = None, **parameters: Any) -> list[str]:
    """What a program is told, without its place."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (session or Venture(seed=1)).execute(text, **parameters)
    texts = [str(warning.message) for warning in caught if issubclass(warning.category, VentureWarning)]
    return [text.split(": ", 1)[1] for text in texts]


def one(name: str) -> str:
    return f"{name}: 1 choice is moved by no kernel: the draws take its value as given"


def test_a_parent_that_no_kernel_moves_is_named_with_the_place() -> None:
    assert warned(PAIR + "[infer (repeat 5 (do (mh y all 'drift 1 1) (collect x y)))]") == [one("x")]
    with pytest.warns(VentureWarning, match=r"^<input>:5:8: x: 1 choice is moved by no kernel"):
        Venture(seed=1).execute(PAIR + "[infer (repeat 5 (do (mh y all 'drift 1 1) (collect y)))]")


def test_an_unmoved_choice_below_is_evidence_that_nobody_gave() -> None:
    model = "[assume x (tag 'x 0 (normal 0 1))] [predict (normal x 0.1)]"
    assert warned(f"{model} [infer (repeat 5 (do (mh x all 'drift 1 1) (collect x)))]") == [one("(normal x 0.1)")]
    # what is below that is evidence for it, and so on
    model = "[assume x (tag 'x 0 (normal 0 1))] [assume a (normal 0 1)] [assume b (normal (+ a x) 1)]"
    assert warned(f"{model} [infer (repeat 5 (do (mh x all 1) (collect x)))]") == [one("a"), one("b")]


def test_what_shares_evidence_with_a_moved_choice_is_named() -> None:
    model = "[assume u (normal 0 1)] [assume x (tag 'x 0 (normal 0 1))] [observe (normal (+ x u) 1) 3]"
    assert warned(f"{model} [infer (repeat 5 (do (mh x all 1) (collect x)))]") == [one("u")]


def test_draws_of_one_maker_rest_on_each_other() -> None:
    model = "[assume f (make_beta_bernoulli 1 1)] [assume a (tag 'a 0 (f))] [assume b (f)]"
    assert warned(f"{model} [infer (repeat 5 (do (gibbs a all 1) (collect a)))]") == [one("b")]


def test_a_maker_whose_argument_stays_is_told() -> None:
    model = "[assume alpha (gamma 1 1)] [assume crp (make_crp alpha)] [assume z (mem (lambda (i) (tag 'z i (crp))))]"
    text = f"{model} [predict (z 1)] [predict (z 2)] [infer (repeat 5 (do (gibbs z each 1) (collect (= (z 1) (z 2)))))]"
    assert warned(text) == [one("alpha")]


def test_choices_of_a_memoized_procedure_are_counted_together() -> None:
    model = """
    [assume theta (mem (lambda (i) (normal 0 1)))]
    [assume m (tag 'm 0 (normal 0 1))]
    for i in 1...20: [observe (normal (+ m (theta i)) 1) 3]
    [infer (repeat 5 (do (mh m all 1) (collect m)))]
    """
    assert warned(model) == ["theta: 20 choices are moved by no kernel: the draws take their values as given"]


@pytest.mark.parametrize(
    "kernel",
    [
        "(mh default one 1)", "(mh default each 1)", "(gibbs default all 1)", "(do (mh a one 1) (mh b 0 1))",
        "(cycle ((mh a all 1) (mh b (ordered_range 0 1) 1)) 1)", "(mixture (1 (mh a each 1) 1 (mh b ordered 1)) 3)",
        "(pgibbs a ordered 2 1) (mh b one 1)", "(rejection default one 1)",
    ],
)  # fmt: skip
def test_kernels_that_may_select_every_choice_are_silent(kernel: str) -> None:
    model = "[assume a (tag 'a 0 (flip 0.3))] [assume b (tag 'b 0 (flip (if a 0.8 0.4)))]"
    assert warned(f"{model} [infer (repeat 9 (do {kernel} (collect a b)))]") == []


@pytest.mark.parametrize(
    "kernel", ["(mh s 1 1)", "(pgibbs s (ordered_range 1 1) 2 1)", "(gibbs s (ordered_range 0 1) 1)"]
)
def test_a_block_that_no_kernel_names_is_unmoved(kernel: str) -> None:
    model = "[assume s (mem (lambda (i) (tag 's i (flip (if (= i 1) 0.5 (if (s (- i 1)) 0.8 0.3))))))] [predict (s 2)]"
    assert warned(f"{model} [infer (repeat 5 (do {kernel} (collect (s 1))))]") == [one("s")]


def test_kernels_of_a_warm_up_do_not_count() -> None:
    assert warned(PAIR + "[infer (mh x all 9)] [infer (repeat 5 (do (mh y all 1) (collect y)))]") == [one("x")]
    assert warned(PAIR + "[infer (do (mh x all 9) (repeat 5 (do (mh y all 1) (collect y))))]") == [one("x")]
    assert warned(PAIR + "[infer (repeat 5 (do (mh x all 1) (mh y all 1) (collect y)))]") == []


def test_a_kernel_that_makes_no_transition_moves_nothing() -> None:
    assert warned(PAIR + "[infer (repeat 5 (do (mh x all 0) (mh y all 1) (collect y)))]") == [one("x")]


def test_each_variable_is_judged_by_its_own_window() -> None:
    text = "[infer (do (repeat 3 (do (mh x all 1) (collect x))) (repeat 3 (do (mh y all 1) (collect y))))]"
    assert sorted(warned(PAIR + text)) == [one("x"), one("y")]


def test_a_single_draw_is_not_judged() -> None:
    assert warned(PAIR + "[infer (do (mh y all 1) (collect y))]") == []


def test_what_nothing_rests_on_is_passed_over() -> None:
    model = PAIR + "[assume other (normal 0 1)] [predict (normal other 1)]"
    assert warned(f"{model} [infer (repeat 5 (do (mh x all 1) (mh y all 1) (collect y)))]") == []
    assert one("other") in warned(f"{model} [infer (repeat 5 (do (mh x all 1) (mh y all 1) (collect y other)))]")


def test_what_a_draw_itself_makes_is_not_named_but_what_it_depends_on_is() -> None:
    model = "[assume x (tag 'x 0 (normal 0 1))] [assume y (tag 'y 0 (normal 0 1))]"
    assert warned(f"{model} [infer (repeat 5 (do (mh x all 1) (collect (normal x 1))))]") == []
    assert warned(f"{model} [infer (repeat 5 (do (mh x all 1) (collect (normal y 1))))]") == [one("y")]


def test_what_is_read_through_calls_branches_and_keys_is_named() -> None:
    model = (
        "[assume k (flip)] [assume f (mem (lambda (i) (tag 'f i (normal 0 1))))] [predict (f true)] [predict (f false)]"
    )
    assert warned(f"{model} [infer (repeat 5 (do (mh f one 1) (collect (f k))))]") == [one("k")]
    assert warned(f"{model} [infer (repeat 5 (do (mh f one 1) (collect (if k 1 2))))]") == [one("k")]
    assert warned(f"{model} [infer (repeat 5 (do (mh f one 1) (collect (let ((g (lambda () k))) (g)))))]") == [one("k")]


def test_a_branch_that_is_not_taken_in_the_last_state_is_read_too() -> None:
    model = """[assume c (tag 'c 0 (flip 0.5))] [assume a (flip)] [assume b (flip)]
    [assume v (if c (let ((d (flip))) (or d a)) (not b))]"""
    told = warned(f"{model} [infer (repeat 9 (do (mh c one 1) (collect v)))]")
    assert sorted(told) == [one("a"), one("b")]


READ_IN_A_BRANCH = [
    "[observe (normal (if b (* 2 x) 0) 1) 0.5]",
    "[assume y (if b (if (< x 9) (* 2 x) 1) 0)] [observe (normal y 1) 0.5]",
    "[assume g (lambda (a) (* a 2))] [observe (normal (if b (g x) 0) 1) 0.5]",
    "[assume m (mem (lambda (i) (+ x i)))] [observe (normal (if b (m 1) 0) 1) 0.5]",
    "[assume m (mem (lambda (k) (if k x 0)))] [observe (normal (m b) 1) 0.5]",
    "[assume f (lambda () x)] [assume g (lambda () 0)] [observe (normal ((if b f g)) 1) 0.5]",
    "[assume f (lambda () x)] [assume g (lambda () 0)] [observe (normal ((lookup (list g f) (if b 1 0))) 1) 0.5]",
    "[observe (let ((h (lambda () (* 2 x)))) (normal (if b (h) 0) 1)) 0.5]",
    "[observe (if b (normal x 1) (normal 0 1)) 0.5]",
    "for i in 1...3: [observe (normal (if b (* i x) 0) 1) 0.5]",
]


@pytest.mark.thorough
@pytest.mark.parametrize("read", READ_IN_A_BRANCH)
def test_what_evidence_reads_only_where_a_moved_choice_may_lead_is_named(read: str) -> None:
    model = f"[assume b (tag 'b 0 (flip 0.5))] [assume x (tag 'x 0 (normal 0 1))] {read}"
    last = set()
    for seed in range(6):
        v = Venture(seed=seed)
        assert warned(f"{model} [infer (repeat 9 (do (gibbs b 0 1) (collect b)))]", v) == [one("x")]
        last.add(v.report("b"))
        assert warned(f"{model} [infer (repeat 9 (do (gibbs b 0 1) (mh x 0 1) (collect b)))]") == []
    assert last == {True, False}


@pytest.mark.parametrize(
    ("evidence", "value"), [("[observe (normal (if b (x 1) 0) 1) 0.5]", "b"), ("", "(if b (x 1) 0)")]
)
def test_a_family_that_is_called_only_where_a_moved_choice_may_lead_is_named(evidence: str, value: str) -> None:
    model = f"""
        [assume b (tag 'b 0 (flip 0.5))] [assume x (mem (lambda (i) (normal 0 1)))] [predict (x 1)] {evidence}
        [infer (repeat 9 (do (gibbs b 0 1) (collect {value})))]"""
    assert [warned(model, Venture(seed=seed)) for seed in range(6)] == [[one("x")]] * 6


@pytest.mark.parametrize(
    "read",
    [
        # nothing weighs it, no choice leads there, or none that moves
        "[assume y (if b (* 2 x) 0)]",
        "[observe (normal (if (< 2 1) (* 2 x) 0) 1) 0.5]",
        "[assume c (flip 0.5)] [force c false] [observe (normal (if c (* 2 x) 0) 1) 0.5]",
        "[assume c (flip 0.5)] [observe c false] [observe (normal (if c (* 2 x) 0) 1) 0.5]",
    ],
)
def test_a_branch_to_which_nothing_that_moves_leads_is_passed_over(read: str) -> None:
    model = f"[assume b (tag 'b 0 (flip 0.5))] [assume x (tag 'x 0 (normal 0 1))] {read}"
    assert warned(f"{model} [infer (repeat 9 (do (gibbs b 0 1) (collect b)))]") == []


def test_a_choice_with_one_possible_value_is_passed_over() -> None:
    model = "[assume k (uniform_discrete 2 3)] [assume b (flip 1)] [assume x (tag 'x 0 (normal (+ k b) 1))]"
    assert warned(f"{model} [infer (repeat 5 (do (mh x all 1) (collect x)))]") == []


def test_what_is_drawn_anew_with_a_branch_is_moved() -> None:
    model = "[assume c (tag 'c 0 (flip 0.5))] [assume x (if c (normal 0 1) (normal 5 1))]"
    assert warned(f"{model} [infer (repeat 20 (do (mh c all 1) (collect x)))]") == []


def test_families_that_come_and_go_are_moved() -> None:
    model = """
    [assume z (mem (lambda (i) (tag 'z i (uniform_discrete 0 3))))]
    [assume mean (mem (lambda (k) (normal 0 1)))]
    for i in 1...2: [observe (normal (mean (z i)) 1) i]
    [infer (repeat 60 (do (mh z each 1) (collect (mean (z 1)))))]
    """
    assert warned(model) == []


def test_a_family_that_stays_is_unmoved() -> None:
    model = """
    [assume z (mem (lambda (i) (tag 'z i (uniform_discrete 0 2))))]
    [assume mean (mem (lambda (k) (normal 0 1)))]
    [predict (list (mean 0) (mean 1))]
    for i in 1...2: [observe (normal (mean (z i)) 1) i]
    [infer (repeat 9 (do (mh z each 1) (collect (mean (z 1)))))]
    """
    assert warned(model) == ["mean: 2 choices are moved by no kernel: the draws take their values as given"]


LOOP = (
    PAIR
    + """
for i in 1...4:
  [observe (normal y 1) i]
  [infer (do {kernels} (collect y))]
"""
)


def test_the_passes_of_a_loop_count_together() -> None:
    assert warned(LOOP.replace("{kernels}", "(mh y all 1)")) == [one("x")]
    assert warned(LOOP.replace("{kernels}", "(mh x all 1) (mh y all 1)")) == []


def test_a_filter_that_moves_the_last_state_of_each_pass_is_silent() -> None:
    model = """
    [assume x (mem (lambda (t) (tag 'x t (if (= t 0) (normal 0 1) (normal (x (- t 1)) 1)))))]
    for t in 1...4:
      [observe (normal (x t) 1) t]
      [infer (do (mh x t 1) (mh x 0 1) (collect (x t)))]
    """
    assert warned(model) == []


def test_annealing_moves_what_is_in_its_scope_and_draws_the_rest_anew() -> None:
    model = """
    [assume crp (make_crp 1)]
    [assume z (mem (lambda (n) (tag 'z n (crp))))]
    [assume m (mem (lambda (k) (normal 0 1)))]
    for n in 1...3: [observe (normal (m (z n)) 1) n]
    [infer (repeat 3 (do (anneal z linear 1) (collect (= (z 1) (z 2)) (m (z 1)))))]
    """
    assert warned(model) == []


def test_a_forced_value_is_told_and_not_warned_of() -> None:
    v = Venture(seed=1)
    assert warned(PAIR + "[force x 5]", v) == []
    text = "(repeat 30 (do (mh y all 'drift 1 1) (collect x y)))"
    with warnings.catch_warnings(action="error"):
        summary = v.infer(text).summary()
    assert summary.held == ("x: held at 5",)
    assert "x: held at 5" in str(summary)
    assert not any("constant" in warning for warning in summary.warnings)
    # once a kernel may have moved it, it is held no more
    v.infer("(mh x all 5)")
    with pytest.warns(VentureWarning, match="x: 1 choice"):
        assert v.infer(text).summary().held == ()


def test_what_was_forced_and_is_observed_or_forgotten_is_not_held() -> None:
    v = Venture(seed=1)
    v.execute(PAIR + "[force x 5] o: [observe x 2] [forget o]")
    with pytest.warns(VentureWarning, match="x: 1 choice"):
        v.infer("(repeat 3 (do (mh y all 1) (collect y)))")


def test_a_refused_force_holds_nothing() -> None:
    v = Venture(seed=1)
    v.execute("[assume p (tag 'p 0 (uniform_continuous 0 1))] [assume b (tag 'b 0 (normal p 1))]")
    with pytest.raises(Exception, match="probability zero"):
        v.force("p", 3)
    with pytest.warns(VentureWarning, match="p: 1 choice"):
        v.infer("(repeat 3 (do (mh b all 1) (collect b)))")


def test_a_name_is_told_once_for_each_program_text() -> None:
    v = Venture(seed=1)
    assert warned(PAIR, v) == []
    text = "[infer (repeat 5 (do (mh y all 1) (collect y)))]"
    assert warned(text, v) == [one("x")]
    assert warned(text, v) == []
    assert warned(text.replace("5", "6"), v) == [one("x")]


def test_a_text_that_was_told_is_judged_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    v = Venture(seed=1)
    runs: list[int] = []
    looks: list[int] = []
    finish = Watch.finish
    monkeypatch.setattr(Watch, "finish", lambda self: looks.append(len(runs)) or finish(self))
    assert warned(PAIR, v) == []
    for run in range(12):
        warned("[infer (repeat 2 (do (mh y all 1) (collect y)))]", v)
        runs.append(run)
    assert looks == [0, 1, 2, 4, 8]
    v.force("x", 2)
    assert v.infer("(repeat 2 (do (mh y all 1) (collect y)))").held == ("x: held at 2",)


def test_each_chain_is_judged_and_a_name_told_once() -> None:
    assert warned(PAIR + "[infer (repeat 5 (do (mh y all 1) (collect y)))]", Venture(seed=1, chains=3)) == [one("x")]


def test_a_chain_of_branches_is_looked_through_once() -> None:
    model = """
    [assume z (mem (lambda (t) (if (= t 0) (flip) (if (z (- t 1)) (flip 0.8) (flip 0.3)))))]
    for t in 1...60: [observe (normal (if (z t) 2 -2) 1) 1]
    """
    assert warned(model + "[infer (repeat 2 (do (mh default one 1) (collect (z 60))))]") == []


def test_looking_leaves_the_draws_and_the_trace_as_they_are() -> None:
    def drawn(watched: bool) -> tuple[Any, Any]:
        v = Venture(seed=1)
        v.execute(PAIR)
        text = "(repeat 5 (do (mh y all 'drift 1 1) (collect y (normal x 1))))"
        with warnings.catch_warnings(action="ignore"):
            if watched:
                first = v.infer(text)
            else:
                with patch.object(Watch, "finish", lambda self: Verdict({}, ())):
                    first = v.infer(text)
            second = v.infer("(repeat 3 (do (mh default one 1) (collect y)))")
        assert isinstance(first, Draws)
        return {name: values.tolist() for name, values in first.items()}, second["y"].tolist()

    assert drawn(True) == drawn(False)


def test_an_inference_that_ends_early_is_judged_and_watched_no_more() -> None:
    v = Venture(seed=1, chains=2)
    v.execute(PAIR)
    v.traces[1].interrupt_after = 40
    with pytest.warns(VentureWarning, match="x: 1 choice"), pytest.raises(KeyboardInterrupt):
        v.infer("(repeat 50 (do (mh y all 1) (collect y)))")
    assert [model.trace.default.births for model in v.traces] == [None, None]


def test_the_command_tells_it_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAIR + "[infer (repeat 5 (do (mh y all 1) (collect y)))]"
    with patch("sys.stdin", io.StringIO(text)):
        assert main(["run", "-", "--seed", "1"]) == 0
    assert f"warning: <stdin>:5:8: {one('x')}" in capsys.readouterr().err
