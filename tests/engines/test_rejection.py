"""`rejection`: what has a bound, what is refused, and how it ends."""

from __future__ import annotations

import pytest

from venture_lite import Venture
from venture_lite.audit.invariants import check
from venture_lite.audit.snapshot import snapshot
from venture_lite.errors import VentureError


def loaded(program: str) -> Venture:
    venture = Venture(seed=3)
    venture.execute(program)
    return venture


@pytest.mark.parametrize(
    ("program", "engine", "message", "at"),
    [
        ("[assume s (gamma 1 1)] [assume m (normal 0 1)] [observe (normal m s) 1]", "(rejection default all 1)",
         "no upper bound for the density of normal", "(normal m s)"),
        ("[assume c (inv_wishart 3 (list (list 1 0) (list 0 1)))] [observe (multivariate_normal (vector 0 0) c) {V}]",
         "(rejection default one 1)", "no upper bound for the density of multivariate_normal", "(multivariate_normal"),
        ("[assume z (flip)] [observe (if z (normal 0 1) (normal 1 2)) 1]", "(rejection default one 9)",
         "no upper bound for the density of normal", "(normal"),
        ("[assume m (normal 0 1)] [assume f (make_normal_inv_chi_sq m 1 3 1)] [observe (f) 1]",
         "(rejection default one 1)", "no upper bound for the density of a draw of make_normal_inv_chi_sq", "(make"),
        ("[assume m (normal 0 1)] [observe (own m) 1]", "(rejection default one 1)",
         "no upper bound for the density of own", "(own m)"),
        ("[assume x (normal 0 1)]", "(rejection default one)", "rejection is written", "(rejection"),
    ],
)  # fmt: skip
def test_what_has_no_bound_is_refused_at_its_place(program: str, engine: str, message: str, at: str) -> None:
    venture = Venture(seed=3)
    venture.register("own", simulate=lambda rng, m: m, log_density=lambda value, m: -((value - m) ** 2))
    venture.execute(program, **({"V": [1.0, 2.0]} if "{V}" in program else {}))
    before = snapshot(venture.traces[0])
    with pytest.raises(VentureError, match=message) as caught:
        venture.infer(engine)
    assert caught.value.span is not None
    assert caught.value.span.text.startswith(at)
    assert snapshot(venture.traces[0]) == before


def test_each_choice_alone_may_have_a_bound_where_all_together_have_none() -> None:
    venture = loaded("[assume s (gamma 1 1)] [assume m (normal 0 1)] [observe (normal m s) 1]")
    assert venture.infer("(rejection default each 5)").statistics[0].accepted == 10
    check(venture.traces[0])


def test_all_together_may_have_a_bound_where_one_alone_has_none() -> None:
    program = """[assume c (inv_wishart 3 (list (list 1 0) (list 0 1)))] [assume x (multivariate_normal (vector 0 0) c)]
                 [observe (flip (logistic (lookup x 0))) true]"""
    venture = loaded(program)
    assert venture.infer("(rejection default all 5)").statistics[0].accepted == 5
    with pytest.raises(VentureError, match="no upper bound for the density of multivariate_normal"):
        venture.infer("(rejection default one 5)")


def test_a_registered_procedure_with_a_support_has_a_bound() -> None:
    venture = Venture(seed=3)
    venture.register(
        "coin", simulate=lambda rng, p: rng.random() < p, support=lambda p: [True, False],
        log_density=lambda value, p: -0.1 if value else -2.0,
    )  # fmt: skip
    venture.execute("[assume p (beta 1 1)] [observe (coin p) true]")
    assert venture.infer("(rejection default one 5)").statistics[0].accepted == 5


def test_rounding_does_not_lift_the_joint_density_of_a_makers_draws_above_its_bound() -> None:
    """That of a single draw of a CRP is 1 for every concentration."""
    venture = loaded("[assume a (gamma 1 1)] [assume f (make_crp a)] [assume z (f)]")
    assert venture.infer("(rejection default each 100)").statistics[0].accepted == 200


def test_many_tries_are_told_of_and_ended_by_an_interruption(monkeypatch: pytest.MonkeyPatch) -> None:
    from venture_lite.engines import rejection

    monkeypatch.setattr(rejection, "MANY", 50)
    venture = loaded("[assume x (normal 0 1)] [observe (flip (if (< x 0) 0 0)) true]")
    before, (model,) = snapshot(venture.traces[0]), venture.traces
    model.interrupt_after = 500
    with pytest.warns(UserWarning, match="50 tries for one draw"), pytest.raises(KeyboardInterrupt):
        venture.infer("(rejection default one 1)")
    assert snapshot(model) == before
    check(model)
