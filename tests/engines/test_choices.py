"""Choices by name: which they are, whoever called, as they come and go."""

from __future__ import annotations

import contextlib

import pytest

from tests.generator.directives import random_program
from tests.generator.session import check, infer, load
from venture_lite import Venture
from venture_lite.errors import KernelError, VentureError

PROGRAM = """
    [assume level (normal 0 2)]
    [assume noise (lambda () (+ (normal 0 1) (normal 0 1)))]
    [assume x (mem (lambda (i) (normal level 1)))]
    [assume y (mem (lambda (i j) (+ (noise) (x i))))]
    [assume pair (list (noise) (flip))]
    [assume k (if (flip) (poisson 3) 0)]
    [assume crp (make_crp 1)]
    [assume z (mem (lambda (i) (crp)))]
    [assume m (mem (lambda (c) (normal 0 3)))]
    [assume kept (mem (lambda (a) (mem (lambda (b) (normal a b)))))]
    [predict (+ (y 1 2) (y 3 4) (x 3) ((kept 1) 2))]
    [predict (normal 0 1)]
    for i in 1...5: [observe (normal (m (z i)) 1) {v[i]}]"""
DATA = {"v": [-3.0, -2.0, 0.0, 2.0, 3.0]}

EXPECTED = {
    "(choices level)": [0],
    # calls of an ordinary procedure belong to who called, in the innermost memoized family
    "(choices y)": [(1, 2), (1, 2), (3, 4), (3, 4)],
    "(choices x)": [1, 3],
    "(choices pair)": [0, 0, 0],
    "(choices pair 'smooth)": [0, 0],
    "(choices pair 'finite)": [0],
    "(choices z 'finite)": [1, 2, 3, 4, 5],
    "(choices kept)": [(1, 2)],
    "(choices x level)": [(0, 1), (0, 3), (1, 0)],
    "(choices noise)": [],
}


def blocks(venture: Venture, scope: str) -> list[object]:
    """The key of each choice's block."""
    venture.explain(f"(mh {scope} one 1)")
    found = next(made for name, made in venture.traces[0].trace.scopes.items() if str(name) == scope)
    return sorted(key for key in found.all_keys() for _ in found.members(key))


@pytest.mark.thorough
@pytest.mark.parametrize("scope", EXPECTED)
def test_a_choice_belongs_to_the_assume_that_made_it(scope: str) -> None:
    v = Venture(seed=1)
    v.execute(PROGRAM, **DATA)
    assert blocks(v, scope) == EXPECTED[scope]
    check(v)


def test_without_names_there_are_the_choices_of_all_directives() -> None:
    v = Venture(seed=1)
    v.execute(PROGRAM, **DATA)
    everything = v.traces[0].trace.default.bag.count
    assert len(blocks(v, "(choices)")) == everything
    kinds = [f"(choices '{kind})" for kind in ("smooth", "rough", "finite", "counts")]
    assert sum(len(blocks(v, scope)) for scope in kinds) == everything


@pytest.mark.thorough
def test_choices_by_name_are_moved_as_those_of_tags() -> None:
    """The same draws, of blocks in the same order."""
    tagged = """[assume m (mem (lambda (k) (tag 'm k (normal 0 4))))] [assume crp (make_crp 1)]
        [assume z (mem (lambda (i) (tag 'z i (crp))))] for i in 1...5: [observe (normal (m (z i)) 1) {v[i]}]"""
    plain = tagged.replace("(tag 'm k (normal 0 4))", "(normal 0 4)").replace("(tag 'z i (crp))", "(crp)")
    kernels = (
        "(repeat 50 (do (mh {m} one 'drift 1 3) (slice {m} each 1 5 1) "
        "(gibbs {z} each 1) (mh {z} 2 2) (collect (m (z 1)))))"
    )
    found = []
    for program, m, z in ((tagged, "m", "z"), (plain, "(choices m)", "(choices z 'finite)")):
        v = Venture(seed=3)
        v.execute(program, **DATA)
        found.append(v.infer(kernels.format(m=m, z=z))["(m (z 1))"])
        check(v)
    assert (found[0] == found[1]).all()


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(600, 630))
def test_a_scope_follows_what_comes_and_goes(seed: int) -> None:
    """The checker compares the scope with what addresses say now."""
    v = load(random_program(seed), seed)
    for engine in ("(mh (choices) one 20)", "(mh (choices 'finite) each 1)", "(gibbs (choices 'finite) one 3)"):
        # a block may have more candidates than gibbs enumerates
        with contextlib.suppress(KernelError):
            infer(v, engine)
        check(v)


def test_a_name_that_is_bound_anew_has_other_choices() -> None:
    v = Venture(seed=1)
    v.assume("x", "(normal 0 1)", label="one")
    v.infer("(mh (choices x) one 1)")
    v.forget("one")
    v.assume("x", "(+ (normal 0 1) (normal 0 1))")
    assert blocks(v, "(choices x)") == [0, 0]
    check(v)


def test_what_is_collected_changes_no_kinds() -> None:
    """A predicate of its own reads a choice, which is smooth without it, while another choice is made."""
    v = Venture(seed=1)
    v.execute("[assume f (mem (lambda (i) (normal 0 1)))] [assume k (flip)] [assume y (f (if k 1 0))]")
    v.infer("(repeat 20 (do (mh k one 2) (mh (choices f 'smooth) each 1) (collect (if (< (f 7) 0) 1 2))))")
    assert len(blocks(v, "(choices f 'smooth)")) == 1
    check(v)


def test_an_explanation_that_is_taken_back_leaves_no_scope_behind() -> None:
    v = Venture(seed=1)
    undo = v.undo()
    v.assume("x", "(normal 0 1)")
    v.explain("(mh (choices x) one 1)")
    undo.take_back()
    assert list(v.traces[0].trace.scopes) == ["default"]
    check(v)


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ("(choices w)", "nothing is assumed as w"),
        ("(choices x 'smoth)", "did you mean smooth"),
        ("(choices 3)", "written (choices NAME"),
        ("(choices 'smooth x)", "written (choices NAME"),
    ],
)
def test_what_is_written_wrong(scope: str, said: str) -> None:
    v = Venture(seed=1)
    v.assume("x", "(normal 0 1)")
    with pytest.raises(VentureError, match=said.replace("(", r"\(")):
        v.infer(f"(mh {scope} one 1)")
