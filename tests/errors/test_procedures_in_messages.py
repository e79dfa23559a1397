"""Procedures of the language by their names, wherever a message or a value shows one."""

from __future__ import annotations

import pytest

from venture_lite import Venture, VentureError

REFUSED = {
    "[assume f (mem flip)]": ("mem takes a procedure of the program, not flip itself", "(mem (lambda (p) (flip p)))"),
    "[assume f (mem exp)]": ("mem takes a procedure of the program, not exp itself", "(mem (lambda (x) (exp x)))"),
    "[assume f (mem make_gp)]": ("not make_gp itself", "(make_gp mean covariance)"),
    "[assume f (mem 3)]": ("mem takes a procedure of the program, got 3", None),
    "[assume m (lambda (g) (mem g))] [predict (m (lookup (list flip exp) 0))]": ("not flip itself", "(flip p)"),
    "[assume m (lambda (g) (mem g))] [predict (m (make_crp 1))]": ("got <procedure from make_crp>", None),
    "[predict (+ flip 1)]": ("got <procedure flip>", None),
    "[predict (exp make_crp)]": ("got <procedure make_crp>", None),
    "[predict (flip exp)]": ("got <procedure exp>", None),
    "[assume c (list normal)] [predict (c 1)]": ("(<procedure normal>) is not a procedure", None),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_procedure_goes_by_its_name(text: str) -> None:
    message, hint = REFUSED[text]
    with pytest.raises(VentureError) as raised:
        Venture(seed=1).execute(text)
    assert message in raised.value.message
    assert hint is None or hint in (raised.value.hint or "")
    assert "function" not in str(raised.value)


def test_a_procedure_as_a_value_shows_its_name() -> None:
    assert repr(Venture(seed=1).execute("[predict (list flip make_crp exp)]")) == (
        "[[<procedure flip>, <procedure make_crp>, <procedure exp>]]"
    )
