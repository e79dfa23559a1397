"""An inference program is compiled to records that print and compare."""

from __future__ import annotations

import pytest

from venture_lite import Venture
from venture_lite.errors import Source
from venture_lite.inference.tree import Part
from venture_lite.language.parse import parse_expression
from venture_lite.program.supplied import Parameters
from venture_lite.session.chains import Given
from venture_lite.session.queries import evaluator

PROGRAM = """
[assume x (tag 's 0 (normal 0 1))]
[assume b (tag 's 1 (flip 0.3))]
for n in 1...3: [observe (normal x 1) 2]
"""


def compiled(form: str) -> Part:
    v = Venture(seed=1)
    v.execute(PROGRAM)
    return evaluator(v._runner.chains, Given(Parameters({}))).compile(parse_expression(Source("<input>", form)))


def test_a_tree_prints() -> None:
    form = """
    (repeat 1000 (do
      (cycle ((mh default one 10) (gibbs s 1 2)) 3)
      (mixture (1 (mh s (ordered_range 0 1) (lambda (x) (normal x 1)) 1) 0.5 (slice s each 0.5 8 1)) 1)
      (collect x (labelled (+ x 1) next)) (print b) (plot x)))
    """
    assert str(compiled(form)).splitlines() == [
        "repeat 1,000 times",
        "  do",
        "    cycle 3 times",
        "      mh 10 times, one block of default: proposals from the prior",
        "      gibbs 2 times, block 1 of s: exact draws, by enumeration",
        "    mixture once, by weights 1, 0.5",
        "      mh once, blocks 0 to 1 of s, in order: proposals by (lambda (x) (normal x 1))",
        "      slice once, each block of s, in order: slices of width 0.5, at most 8 of them",
        "    collect x next",
        "    print b",
        "    plot x",
    ]


@pytest.mark.parametrize(
    ("form", "heading"),
    [
        ("(mh s all 'drift 0.1 5)", "mh 5 times, all of s as one block: a walk of sd 0.1"),
        ("(mh s all 'drift 0.1 'precondition 5)",
         "mh 5 times, all of s as one block: a walk of sd 0.1, in the coordinates of the curvature"),
        ("(hmc s 0 0.1 4 5)", "hmc 5 times, block 0 of s: paths of 1 to 7 steps of 0.1 along the gradient"),
        ("(hmc s 0 0.1 4 'fixed 5)", "hmc 5 times, block 0 of s: paths of 4 steps of 0.1 along the gradient"),
        ("(mala s 0 0.1 5)", "mala 5 times, block 0 of s: paths of a step of 0.1 along the gradient"),
        ("(rejection s 0 5)", "rejection 5 times, block 0 of s: exact draws, by rejection from the prior"),
        ("(subsampled_mh s 0 10 0.1 'drift 0.2 5)",
         "subsampled_mh 5 times, block 0 of s: a walk of sd 0.2, decided from minibatches of 10"),
        ("(pgibbs s ordered 7 'ancestor 5)",
         "pgibbs 5 times, each block of s, in order: 7 particles, ancestors drawn anew"),
        ("(flymc s 0 auto 'map 0.1 'mala 0.2 5)", "flymc 5 times, block 0 of s: Langevin steps of 0.2, by bright rows"),
        ("(anneal s linear 5 (mh default one 2))",
         "anneal once, all of s as one block: a subsample of the data grown to all, assignments by gibbs"),
    ],
)  # fmt: skip
def test_a_kernel_says_how_it_moves_what(form: str, heading: str) -> None:
    assert compiled(form).heading == heading


def test_what_runs_inside_is_a_part() -> None:
    for form in ("(anneal s linear 5 (mh default one 2))", "(subsampled_mh_report default one 2 0.1 2)"):
        (part,) = compiled(form).parts
        assert "2 times, one block of default" in part.heading


def test_parts_compare_by_what_they_do() -> None:
    form = "(repeat 10 (do (mh default one 10) (collect x)))"
    assert compiled(form) == compiled(form)
    assert compiled(form) != compiled(form.replace("10)", "11)"))
    assert compiled(form) != compiled(form.replace("collect x", "collect b"))
