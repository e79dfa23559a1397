"""Directives on a live trace, in any order, in one chain and in several."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from venture_lite import Venture, VentureError, VentureWarning
from venture_lite.audit.invariants import check


def normal(value: float, mean: float, sd: float) -> float:
    return float(stats.norm.logpdf(value, mean, sd))


# --------------------------------------------------------------------------------------------- observe and forget


def test_an_observation_made_after_inference_counts() -> None:
    venture = Venture(seed=1)
    x = venture.assume("x", "(normal 0 1)")
    venture.infer("(mh default one 10)")
    x = venture.report("x")
    assert venture.observe("(normal x 2)", 3.0) == pytest.approx(normal(3, x, 2))
    assert venture.log_score() == pytest.approx(normal(x, 0, 1) + normal(3, x, 2))


def test_an_observed_choice_that_exists_already_takes_the_value() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume x (mem (lambda (i) (normal 0 1)))] [predict (+ 1 (x 1))] data: [observe (x 1) 5]")
    assert venture.report(2) == 6
    venture.execute("[forget data]")
    assert venture.report(2) == 6
    venture.infer("(mh default all 20)")
    assert venture.report(2) != 6


def test_what_is_forgotten_leaves_no_density() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume x (normal 0 1)]")
    before = venture.log_score()
    venture.execute("a: [observe (normal x 1) 2] b: [predict (normal x 1)] [observe (normal x 1) 3]")
    for label in ("a", "b", 4):
        venture.forget(label)
    assert venture.log_score() == pytest.approx(before)
    assert [entry["directive"] for entry in venture.list_directives()] == ["assume"]


def test_an_assume_is_forgotten_by_its_name_and_its_name_is_free_again() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume x 3] [assume y (+ x 1)] [forget y] [forget x] [assume x 5]")
    assert venture.sample("x") == 5


@pytest.mark.parametrize("given", ["[force w (list 0.3 -0.2)]", "q: [observe w (list 0.3 -0.2)] [forget q]"])
def test_a_list_given_to_a_vector_is_a_vector(given: str) -> None:
    """Kernels go on from it as from a draw."""
    v = Venture(seed=1)
    v.execute("[assume w (tag 'w 0 (multivariate_normal (zeros 2) (eye 2)))]")
    v.execute(given)
    assert v.report("w").tolist() == [0.3, -0.2]
    assert v.infer("(repeat 3 (do (mh w all 'drift 0.1 1) (hmc w all 0.1 2 1) (collect w)))")["w"].shape == (1, 3, 2)


def test_force_sets_a_choice_once() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume x (normal 0 1)] [assume y (+ x 1)] [assume z (if (> x 0) (normal 9 1) 0)] [predict y]")
    assert venture.force("x", 2.5) == 2.5
    assert venture.report("y") == 3.5
    assert venture.report("z") != 0
    venture.force("x", -1)
    assert venture.report("z") == 0
    venture.infer("(mh default all 10)")
    assert venture.report("x") != -1


def test_a_prediction_stays_current() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume x (normal 0 1)] twice: [predict (* 2 x)]")
    for _ in range(5):
        venture.infer("(mh default one 1)")
        assert venture.report("twice") == 2 * venture.report("x")


def test_clear_starts_afresh_with_the_draws_of_the_seed() -> None:
    venture = Venture(seed=7)
    first = venture.execute("[assume x (normal 0 1)] [define n 3]")
    venture.clear()
    assert venture.list_directives() == []
    assert venture.execute("[assume x (normal 0 1)]")[0] == first[0]
    with pytest.raises(VentureError, match="n"):
        venture.infer("(mh default one n)")


# -------------------------------------------------------------------------------------------------------- loops


def test_a_data_loop_is_one_directive() -> None:
    venture = Venture(seed=1)
    values = venture.execute("[assume m 0] data: for n in 1...3: [observe (normal m 1) {y[n]}]", y=[1.0, 2.0, 3.0])
    assert values[1] == 3
    assert [entry["label"] for entry in venture.list_directives()] == [None, "data"]
    assert venture.log_score() == pytest.approx(sum(normal(y, 0, 1) for y in (1, 2, 3)))


@pytest.mark.parametrize("passes", [2, 3, 20, 50])
@pytest.mark.parametrize("before", [0, 1, 3, 9])
def test_a_loop_and_single_directives_of_the_same_text_share_a_table(passes: int, before: int) -> None:
    v = Venture(seed=1)
    v.assume("f", "(mem (lambda (i) (normal 0 1)))")
    for i in range(before):
        v.predict(f"(f {i})")
    v.execute(f"for n in 100...{99 + passes}: [predict (f n)]")
    for i in range(3):
        v.predict(f"(f {200 + i})")
    check(v.traces[0])
    assert len(v.infer("(do (mh default one 5) (collect (f 100) (f 202)))")) == 2


def test_data_are_forgotten_by_the_values_of_the_loop_variables() -> None:
    venture = Venture(seed=1)
    y = np.arange(6.0).reshape(2, 3)
    venture.execute("data: for i in 1...2: for j in 2...3: [observe (normal 0 1) {y[i, j]}]", y=y)
    venture.execute("[forget data 2 3]")
    assert venture.log_score() == pytest.approx(sum(normal(v, 0, 1) for v in (1, 2, 4)))
    assert venture.report("data") == 3
    with pytest.raises(VentureError, match="no pass 2 3"):
        venture.execute("[forget data 2 3]")
    venture.forget("data", 1)
    assert venture.report("data") == 1
    venture.execute("[forget data]")
    assert venture.log_score() == 0
    assert venture.list_directives() == []


def test_a_loop_with_directives_at_two_depths() -> None:
    venture = Venture(seed=1)
    venture.execute(
        """
        [assume a (mem (lambda (i) (normal 0 1)))]
        data: for i in 1...2:
          [predict (a i)]
          for j in 1...3:
            [observe (normal (a i) 1) {y[i, j]}]""",
        y=np.ones((2, 3)),
    )
    assert venture.report("data") == 6
    venture.execute("[forget data 1 2] [forget data]")
    assert venture.log_score() == 0


@pytest.mark.parametrize("infers", [False, True])
def test_a_label_in_a_loop_names_the_directive_in_every_pass(infers: bool) -> None:
    venture = Venture(seed=1)
    infer = "[infer (mh default one 1)]" if infers else "[observe (normal 0 1) 0]"
    venture.execute(f"[assume x (normal 0 1)]\nfor n in 1...3:\n  twice: [predict (* 2 n)]\n  {infer}")
    assert venture.execute("[report twice]") == [[2, 4, 6]]
    venture.execute("[forget twice 2]")
    assert venture.report("twice") == [2, 6]
    venture.execute("[forget twice]")
    with pytest.raises(VentureError, match="twice"):
        venture.report("twice")
    venture.execute("twice: [predict 1]")


def test_a_label_in_a_loop_is_not_taken_twice() -> None:
    venture = Venture(seed=1)
    program = "for n in 1...2:\n  a: [predict n]\n  [sample n]"
    venture.execute(program)
    with pytest.raises(VentureError, match="the label a is taken"):
        venture.execute(program)
    with pytest.raises(VentureError, match="the label b is taken"):
        venture.execute("for n in 1...2:\n  b: [predict n]\n  b: [predict n]")


def test_a_failing_pass_undoes_the_whole_data_loop() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume x (normal 0 1)]")
    before = venture.log_score()
    with pytest.raises(VentureError, match=r"\(n = 3\)"):
        venture.execute("for n in 1...4:\n  [predict (normal x 1)]\n  [observe (normal x (- 3 n)) 1]")
    assert venture.log_score() == before
    assert len(venture.list_directives()) == 1


def test_every_directive_may_stand_in_a_loop_that_runs_pass_by_pass() -> None:
    venture = Venture(seed=1)
    values = venture.execute(
        """
        [assume x (mem (lambda (t) (normal t 1)))]
        for t in 1...3:
          [define steps (* 2 t)]
          [observe (normal (x t) 1) {y[t]}]
          [sample (+ t {y[t]})]
          [force (x (+ t 10)) t]
          [infer (do (mh default one steps) (collect (labelled (+ t 0) t)))]
          [sample ((lambda (t) t) 7)]
          [get_logscore]""",
        y=[1.0, 2.0, 3.0],
    )[1]
    assert [one[0] for one in values] == [2, 4, 6]
    assert [one[2] for one in values] == [2, 4, 6]
    assert [one[3] for one in values] == [1, 2, 3]
    assert [one[4]["t"].tolist() for one in values] == [[[1]], [[2]], [[3]]]
    assert [one[4].statistics[0].transitions for one in values] == [2, 4, 6]
    assert [one[5] for one in values] == [7, 7, 7]


def test_a_loop_without_a_pass_does_nothing() -> None:
    venture = Venture(seed=1)
    venture.execute("data: for n in 1...0: [observe (normal 0 1) {y[n]}]", y=[])
    assert venture.log_score() == 0
    assert venture.report("data") == 0
    venture.execute("[forget data]")


# ----------------------------------------------------------------------------------------------- several chains


def test_values_come_as_one_for_each_chain() -> None:
    venture = Venture(seed=1, chains=3)
    x = venture.assume("x", "(normal 0 1)")
    assert len(set(x)) == 3
    assert venture.predict("(* 2 x)", "twice") == [2 * value for value in x]
    assert venture.observe("(normal x 1)", 2.0) == pytest.approx([normal(2, value, 1) for value in x])
    assert venture.force("x", 1.5) == 1.5
    assert venture.report("twice") == [3.0, 3.0, 3.0]
    assert len(venture.log_score()) == 3
    assert venture.infer("(repeat 4 (do (mh default one 1) (collect x)))")["x"].shape == (3, 4)
    venture.execute("for n in 1...2:\n  a: [predict (+ x n)]\n  [infer (mh default one 1)]")
    x = venture.report("x")
    assert venture.report("a") == [[value + 1, value + 2] for value in x]
    venture.forget("a")
    venture.forget("twice")


def test_an_error_in_one_chain_leaves_all_as_they_were() -> None:
    venture = Venture(seed=1, chains=8)
    z = venture.assume("z", "(flip 0.5)")
    assert set(z) == {True, False}
    before = venture.log_score()
    with pytest.raises(VentureError, match="sd must be"):
        venture.observe("(normal 0 (if z 1 -1))", 1.0)
    with pytest.raises(VentureError, match="sd must be"):
        venture.assume("a", "(normal 0 (if z 1 -1))")
    assert venture.log_score() == before
    venture.assume("a", "(normal 0 (if z 1 2))")


def test_chains_do_not_depend_on_how_many_there_are() -> None:
    three, two = Venture(seed=5, chains=3), Venture(seed=5, chains=2)
    assert three.assume("x", "(normal 0 1)")[:2] == two.assume("x", "(normal 0 1)")


# -------------------------------------------------------------------------------------------------------- names


def test_procedures_that_call_each_other() -> None:
    program = """
        [assume (even? n) (if (= n 0) true (odd? (- n 1)))]
        [assume (odd? n) (if (= n 0) false (even? (- n 1)))]
        [predict (even? 1001)]"""
    assert Venture(seed=1).execute(program)[-1] is False


def test_a_name_that_comes_later_is_warned_of_from_python_and_an_error_when_it_is_needed() -> None:
    venture = Venture(seed=1)
    with pytest.warns(VentureWarning, match="ping refers to pong, which nothing binds yet"):
        venture.assume("ping", "(lambda (n) (if (= n 0) 'ping (pong (- n 1))))")
    assert venture.sample("(ping 0)") == "ping"
    with pytest.raises(VentureError, match="unknown name pong") as caught:
        venture.sample("(ping 3)")
    assert "in ping" in str(caught.value)
    with pytest.raises(VentureError, match="sd must be"):
        venture.assume("pong", "(begin (ping 0) (normal 0 -1))")
    venture.assume("pong", "(lambda (n) (if (= n 0) 'pong (ping (- n 1))))")
    assert venture.sample("(ping 3)") == "pong"


def test_a_directive_that_failed_leaves_the_name_free() -> None:
    venture = Venture(seed=1)
    with pytest.raises(VentureError):
        venture.execute(
            "[assume f (lambda (n) (if (= n 0) (g n) (f (- n 1))))] [assume y (f 2)] [assume g (lambda (n) n)]"
        )
    assert venture.execute("[assume g (lambda (n) (+ n 7))] [assume y (f 2)]")[-1] == 7


def test_a_procedure_of_the_language_may_be_shadowed_and_text_before_keeps_it() -> None:
    venture = Venture(seed=1)
    venture.execute(
        "[assume (f x) (floor x)] [assume g (mem (lambda (x) (floor x)))] [assume floor 3] [assume first 4]"
    )
    assert venture.sample("(+ floor first)") == 7
    assert venture.sample("(f 2.5)") == 2
    assert venture.sample("(g 2.5)") == 2
    assert venture.sample("(map (lambda (x) (+ x floor)) (list 1 2))") == [4, 5]


def test_a_definition_of_the_standard_library_may_be_shadowed() -> None:
    venture = Venture(seed=1)
    assert venture.sample("(map (lambda (x) (* 2 x)) (list 1 2))") == [2, 4]
    venture.execute("[assume (map x) (+ x 1)] [predict (map 3)]")
    assert venture.report(2) == 4


# -------------------------------------------------------------------------------------------------- load and files


def test_load_resolves_against_the_loading_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "main.vnt").write_text('[assume (f x) (g x)] [load "inner/a.vnt"] [predict (f 3)]')
    (tmp_path / "inner" / "a.vnt").write_text('[load "b.vnt"]')
    (tmp_path / "inner" / "b.vnt").write_text("[assume (g x) (* x x)]")
    assert Venture(seed=1).run_file(tmp_path / "main.vnt")[-1] == 9


def test_a_file_that_loads_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.vnt"
    path.write_text('[assume x 1] [load "a.vnt"]')
    with pytest.raises(VentureError, match="loads itself"):
        Venture(seed=1).run_file(path)


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.vnt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(VentureError, match=r"a\.vnt"):
        Venture(seed=1).run_file(path)


# ---------------------------------------------------------------------------------------------------- ownership


def test_the_trace_owns_its_data_and_gives_copies() -> None:
    venture = Venture(seed=1)
    y = np.array([1.0, 2.0])
    X = np.ones((2, 2))
    venture.execute("[assume v {y}] for n in 1...2: [observe (normal (dot {X[n]} v) 1) {y[n]}]", y=y, X=X)
    before = venture.log_score()
    y[:] = 100
    X[:] = 100
    value: Any = venture.report("v")
    value[:] = 100
    assert venture.log_score() == before
    assert venture.report("v").tolist() == [1.0, 2.0]
