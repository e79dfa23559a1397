"""Lists observed at once: each item is an observation of its choice, with what follows from that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venture_lite import Venture, VentureError

LINE = "[assume m (normal 0 1)] d: [observe (map (lambda (x) (normal (* m x) 1)) (list 1 2 3)) {Y}]"
ALONE = "[assume m (normal 0 1)] d: for i in 1...3: [observe (normal (* m i) 1) {Y[i]}]"
Y = [1.0, 2.5, 2.0]


@pytest.mark.thorough
@pytest.mark.parametrize("kernels", ["compiled", "interpreted", "checked"])
def test_a_list_is_observed_as_its_items_are(kernels: Any) -> None:
    """Every weight of a transition depends on the evidence: the draws are those of the items observed one by one."""
    program = "(repeat 100 (do (mh default one 'drift 0.7 2) (collect m (log_score))))"
    found = []
    for text in (LINE, ALONE):
        v = Venture(seed=3, kernels=kernels)
        v.execute(text, Y=Y)
        # the draws of the two begin alike: evidence takes no random number
        found.append((v.log_score(), v.infer(program)))
    (score, listed), (expected, alone) = found
    assert score == pytest.approx(expected, rel=1e-12)
    assert np.allclose(listed["m"], alone["m"])
    assert np.allclose(listed["(log_score)"], alone["(log_score)"])


@pytest.mark.parametrize("data", [Y, tuple(Y), np.array(Y)])
def test_values_come_from_python_as_lists_and_arrays(data: Any) -> None:
    v = Venture(seed=1)
    assert v.execute(LINE, Y=data)[-1] == pytest.approx(-0.5 * 3 * np.log(2 * np.pi) + residual(v, data))


def residual(v: Venture, data: Any) -> float:
    return float(-0.5 * sum((y - v.sample("m") * (i + 1)) ** 2 for i, y in enumerate(data)))


@pytest.mark.thorough
def test_an_item_is_a_datum_of_likelihoods_and_replicates() -> None:
    v = Venture(seed=1)
    v.execute(LINE, Y=Y)
    draws = v.infer("(repeat 4 (do (mh default one 1) (collect m (log_likelihood d) (replicate d))))")
    terms, m = draws["(log_likelihood d)"], draws["m"]
    assert terms.shape == draws["(replicate d)"].shape == (1, 4, 3)
    assert np.allclose(terms, -0.5 * np.log(2 * np.pi) - 0.5 * (np.array(Y) - m[..., None] * [1, 2, 3]) ** 2)
    assert np.array_equal(draws.to_datatree()["observed_data"]["d"].values, Y)


def test_loops_observe_a_list_in_each_pass_and_forget_them_one_by_one() -> None:
    v = Venture(seed=1)
    text = "[assume m (normal 0 1)] d: for n in 1...2: [observe (list (normal m 1) (normal (* 2 m) 1)) {Y[n]}]"
    v.execute(text, Y=np.array([[1.0, 2.0], [3.0, 4.0]]))
    both = v.log_score()
    v.execute("[forget d 2] again: [observe (list (normal m 1) (normal (* 2 m) 1)) (list 3 4)]")
    assert v.log_score() == pytest.approx(both)
    v.execute("[forget d] [forget again]")
    assert v.log_score() == pytest.approx(-0.5 * np.log(2 * np.pi) - v.sample("m") ** 2 / 2)


def test_forgotten_items_that_others_use_are_choices_again() -> None:
    v = Venture(seed=1)
    v.execute("[assume f (mem (lambda (i) (normal 0 1)))] [predict (f 2)] d: [observe (list (f 1) (f 2)) (list 4 5)]")
    assert v.execute("[report 2] [forget d] [report 2]")[0::2] == [5, 5]
    v.infer("(mh default each 1)")
    assert v.execute("[report 2]") != [5]


def test_draws_of_a_maker_are_weighed_one_after_the_other() -> None:
    v = Venture(seed=1)
    v.execute("[assume coin (make_beta_bernoulli 1 1)]")
    value = v.observe("(list (coin) (coin) (coin))", [True, True, False])
    assert value == pytest.approx(np.log(1 / 12))
    assert v.log_score() == pytest.approx(np.log(1 / 12))


@pytest.mark.thorough
def test_a_random_predicate_may_choose_among_lists_as_long() -> None:
    """P(b) = 0.5 N(2; 0, 1) / (0.5 N(2; 0, 1) + 0.5 N(2; 3, 1)): 0.1824; 2,000 draws of gibbs stray by 6 errors, 0.05,
    with probability 1e-8. Fails if the items of the branch that opens are drawn anew."""
    v = Venture(seed=1)
    v.execute("[assume b (flip)]")
    v.execute("[observe (if b (list (normal 0 1) (normal 0 1)) (list (normal 0 1) (normal 3 1))) (list 1 2)]")
    draws = v.infer("(repeat 2000 (do (gibbs default one 1) (collect b)))")
    assert abs(draws["b"].mean() - 1 / (1 + np.exp(1.5))) < 0.05


BAD = {
    "shorter": ("(list (normal 0 1) (normal 0 1))", "(list 1 2 3)", "a list of 2 items is observed, and 3 values were"),
    "longer": ("(map flip (list 0.1 0.2 0.3))", "(list 1 0)", "a list of more than 2 items is observed, and 2 values"),
    "mapped": ("(map flip (list 0.1))", "(list)", "a list of more than 0 items is observed, and 0 values were given"),
    "no list": ("(list (normal 0 1))", "3", "a list of choices is observed, and 3 is no list"),
    "computed": ("(list (normal 0 1) 3)", "(list 1 3)", "a deterministic value cannot be observed"),
    "twice": ("(let ((x (flip))) (list x x))", "(list true true)", "one choice stands twice in the list"),
    "observed": ("(list x x)", "(list 1 1)", "this random choice is observed already"),
    "impossible": ("(list (normal 0 1) (poisson 2))", "(list 1 -3)", "-3 is impossible for poisson"),
    "reversed": ("(reverse (list (normal 0 1)))", "(list 1)", "a deterministic value cannot be observed"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_said_at_its_place(what: str) -> None:
    expression, value, message = BAD[what]
    v = Venture(seed=1)
    v.execute("[assume x (normal 0 1)]")
    before = v.log_score()
    with pytest.raises(VentureError) as caught:
        v.execute(f"[observe {expression} {value}]")
    assert message in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.place().startswith("<input>:1:")
    assert (v.log_score(), len(v.list_directives())) == (before, 1)


def test_a_list_that_becomes_longer_is_an_error_of_the_transition() -> None:
    v = Venture(seed=1)
    v.execute("[assume b (flip)] [force b true]")
    v.execute("[observe (if b (list (normal 0 1)) (list (normal 0 1) (normal 3 1))) (list 1)]")
    before = v.log_score()
    with pytest.raises(VentureError, match="a list of 2 items is observed, and 1 value was given"):
        v.infer("(mh default one 100)")
    assert v.log_score() == before


def test_a_list_cannot_be_forced() -> None:
    with pytest.raises(VentureError, match="a list of choices is not one choice"):
        Venture(seed=1).force("(list (flip) (flip))", [True, False])
