"""Shapes: scaffolds without their rows."""

from __future__ import annotations

import pytest

from tests.generator.directives import random_program
from tests.generator.session import infer, load
from venture_lite import Venture
from venture_lite.interpreter.scaffold import Builder
from venture_lite.interpreter.shape import NoShape, shape_of
from venture_lite.kernels.shapes import Shapes

MEMOIZED = """
    [assume th (mem (lambda (i) (normal 0 1)))]
    for n in 1...6: [observe (normal (th {I[n]}) 1) {Y[n]}]
"""


def test_blocks_that_differ_by_their_rows_alone_have_one_shape() -> None:
    venture = Venture(seed=1)
    venture.execute(MEMOIZED, I=[0, 0, 1, 1, 2, 2], Y=[0.0] * 6)
    trace = venture.traces[0].trace
    found = [shape_of(trace, [node]) for node in trace.default.all_keys()]
    assert not any(isinstance(one, NoShape) for one in found)
    assert len({one[0] for one in found if not isinstance(one, NoShape)}) == 1
    assert len({tuple(one[1].nodes) for one in found if not isinstance(one, NoShape)}) == 3


def test_unlike_surroundings_are_no_binding() -> None:
    venture = Venture(seed=1)
    venture.execute(MEMOIZED, I=[0, 1, 1, 2, 2, 2], Y=[0.0] * 6)
    trace, shapes = venture.traces[0].trace, Shapes()
    found = [shapes.shape_of(trace, [node]) for node in trace.default.all_keys()]
    assert [len(one[0].absorbing) for one in found if not isinstance(one, NoShape)] == [1, 2, 3]


def test_a_shape_says_what_moves_and_what_weighs() -> None:
    venture = Venture(seed=1)
    venture.execute("[assume x (normal 0 1)] [assume y (exp x)] [observe (normal y 1) 2] [observe (normal x 1) 2]")
    trace = venture.traces[0].trace
    found = shape_of(trace, [next(iter(trace.default.all_keys()))])
    assert not isinstance(found, NoShape)
    assert found[0].touched(trace.program) == [
        ("moves (normal 0 1)", 1),
        ("renews (exp x)", 1),
        ("weighs (normal x 1)", 1),
        ("weighs (normal y 1)", 1),
    ]


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("[assume b (flip)] [assume m (if b 1 (gamma 1 1))]", "a branch, a call", "(if b 1 (gamma 1 1))"),
        ("[assume a (gamma 1 1)] [assume f (make_beta_bernoulli a 1)]", "the parameters", "(make_beta_bernoulli a 1)"),
        ("[assume f (make_beta_bernoulli 1 1)] [assume b (f)]", "a draw of an exchangeable", "(f)"),
    ],
)
def test_where_there_is_no_shape_the_place_is_told(text: str, reason: str, place: str) -> None:
    venture = Venture(seed=1)
    venture.execute(text)
    trace = venture.traces[0].trace
    found = shape_of(trace, [next(iter(trace.default.all_keys()))])
    assert isinstance(found, NoShape)
    assert found.reason.startswith(reason)
    assert found.place is not None
    assert found.place.text == place


@pytest.mark.thorough
def test_a_binding_is_the_scaffold_that_a_walk_finds() -> None:
    """Also where the shape was learned from another principal; blocks of random programs."""
    bound = 0
    for seed in range(12):
        venture = load(random_program(seed), seed)
        infer(venture, "(mh default one 10)")
        trace = venture.traces[0].trace
        shapes = Shapes()
        for node in trace.default.all_keys():
            known, walked = shapes.shape_of(trace, [node]), shape_of(trace, [node])
            if isinstance(known, NoShape) or isinstance(walked, NoShape):
                assert known == walked
                continue
            scaffold = Builder(trace, by_family=True).build([node])
            shape, binding = known
            bound += shape is not walked[0]
            assert shape == walked[0]
            assert len(binding.nodes) == len(set(binding.nodes))
            assert [binding.nodes[place] for place in shape.absorbing] == list(scaffold.absorbing)
            assert {binding.nodes[place] for place in shape.order} == {*scaffold.principals, *scaffold.pending}
    assert bound > 8
