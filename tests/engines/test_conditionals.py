"""Conditional densities of blocks that are read affinely, against the passes that serve every block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.blocks import affine_conditionals
from venture_lite.blocks.conditionals import (
    FEW,
    LONGEST,
    Conditionals,
    _inverted,
    _solved,
    at_modes,
    mode_of_single,
)
from venture_lite.blocks.density import BlockDensity
from venture_lite.blocks.worlds import Blanket, WorldMaker, Worlds
from venture_lite.interpreter.scaffold import Builder, absorbing_rows
from venture_lite.interpreter.selection import in_order

WORLDS = 7
ROWS = np.random.default_rng(0).normal(size=(12, 2))
DATA = {"X": ROWS, "Y": [True, False, False] * 4, "J": [1, 2, 3] * 4, "C": np.array([[2.0, 0.5], [0.5, 1.0]])}
REGRESSION = """
    [assume w (mem (lambda (j) (tag 'x j (normal 0 2.5))))]
    for n in 1...12: [observe (bernoulli_logit (- (+ (w 0) (* (w 1) {X[n,1]})) (/ (w 2) {X[n,2]}))) {Y[n]}]
"""
LEVELS = """
    [assume m (tag 'x 0 (student_t 3 0 10))] [assume s (half_cauchy 3)] [assume twice (* 2 m)]
    [assume b (mem (lambda (j) (tag 'x j (normal twice s))))]
    for n in 1...12: [observe (normal (+ (b {J[n]}) m) 1) {X[n,1]}]
"""
SCALES = """
    [assume s (tag 'x 0 (gamma 2 2))] [assume p (tag 'x 1 (uniform_continuous -1 2))]
    [assume q (tag 'x 2 (beta 2 3))] [assume d (tag 'x 3 (gamma 2 1))]
    for n in 1...12: [observe (laplace (+ p {X[n,1]}) (* 2 s)) 1]
    [observe (student_t 4 p s) 1] [observe (binomial 5 q) 2] [observe (gamma d s) 1.5] [observe (von_mises p s) 1]
"""
VECTORS = """
    [assume w (mem (lambda (j) (tag 'x j (normal 0 2.5))))] [assume s (tag 'x 9 (normal 0 1))]
    [assume v (mem (lambda (j) (vector (w j) (+ s (* 2 (w 0))) 1)))]
    for n in 1...12: [observe (bernoulli_logit (dot (v {J[n]}) (vector {X[n,1]} {X[n,2]} 0.5))) {Y[n]}]
    [observe (normal (dot (v 1) (vector s 1 2)) 3) 1]
"""
PLAIN_VECTORS = VECTORS.replace("(vector s 1 2)", "(vector 3 1 2)")
DRAWN_VECTORS = """
    [assume a (tag 'x 0 (multivariate_normal (zeros 2) {C}))]
    [assume b (mem (lambda (j) (tag 'x j (multivariate_normal (vector 0 j) {C}))))]
    [assume s (tag 'x 9 (gamma 2 1))]
    for n in 1...12: [observe (bernoulli_logit (+ (dot a {X[n]}) (dot {X[n]} (b {J[n]})))) {Y[n]}]
    for n in 1...12: [observe (normal (dot (b {J[n]}) {X[n]}) s) 0.5]
"""
READ_VECTORS = DRAWN_VECTORS.replace("(vector 0 j)", "a")
VARYING = """
    [assume u (normal 0 1)] [assume a (tag 'x 0 (normal 0 1))] [assume s (tag 'x 1 (gamma 2 2))]
    for n in 1...4: [observe (normal (* a u {n}) (+ 0.1 (* u u s))) {n}]
"""


PAIRS = """
    [assume s (tag 'x 0 (gamma 2 2))] [assume half (/ s 2)]
    [assume b (mem (lambda (j) (tag 'x j (student_t 3 half 1))))]
    for n in 1...12: [observe (normal (- (b {J[n]}) (* 0.5 (b 2))) s) {X[n,1]}]
    for n in 1...12: [observe (poisson (exp (+ (b 3) (log s)))) {J[n]}]
"""


def conditionals_of(program: str, **data: Any) -> tuple[Conditionals, Worlds]:
    venture = Venture(seed=1)
    venture.execute(program, **data)
    model = venture.traces[0]
    block = in_order(model, model.trace.scopes["x"].everything())
    children = absorbing_rows(model.trace, Builder(model.trace).build(block))
    maker = WorldMaker(model, [*block, *children])
    worlds = maker.draw(WORLDS, np.random.default_rng(0))
    return Conditionals(BlockDensity(model, block), maker.places), worlds


@pytest.mark.parametrize("terms", [None, [], [0]])
@pytest.mark.parametrize("program", [REGRESSION, LEVELS, SCALES, VARYING, PLAIN_VECTORS, DRAWN_VECTORS])
def test_they_have_the_derivatives_of_the_passes(
    program: str, terms: list[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # in parts of a few worlds
    monkeypatch.setattr(affine_conditionals, "AT_ONCE", 40)
    conditionals, worlds = conditionals_of(program, **DATA)
    free = np.random.default_rng(1).normal(size=(WORLDS, conditionals.size))
    expected = conditionals.at(worlds.copy(), free, terms)
    given = conditionals.given(worlds)
    which = np.array([0, 2, 3, 6])
    assert conditionals.affine is not None
    for found, there in zip(given.at(which, free[which], terms), expected, strict=True):
        np.testing.assert_allclose(found, there[which], rtol=1e-9, atol=1e-9)
    for found, there in zip(given.at(np.arange(WORLDS), free, terms), expected, strict=True):
        np.testing.assert_allclose(found, there, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("program", [VECTORS, PLAIN_VECTORS, DRAWN_VECTORS, READ_VECTORS])
def test_in_the_state_at_hand_they_have_the_derivatives_of_the_density(program: str) -> None:
    venture = Venture(seed=1)
    venture.execute(program, **DATA)
    model = venture.traces[0]
    block = in_order(model, model.trace.scopes["x"].everything())
    density, places = BlockDensity(model, block), Blanket(model, block).places
    conditionals = Conditionals(density, places)
    assert (conditionals.affine is None) == (program in (VECTORS, READ_VECTORS))
    free = np.random.default_rng(1).normal(size=conditionals.size)
    gradient, hessian = conditionals.given(Worlds(places, 1)).at(np.arange(1), free[None])
    density.put(free)
    np.testing.assert_allclose(gradient[0], density.evaluate()[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(hessian[0], density.hessian(), rtol=1e-9, atol=1e-9)


def single_choices(program: str) -> list[tuple[BlockDensity, Conditionals]]:
    venture = Venture(seed=1)
    venture.execute(program, **DATA)
    model = venture.traces[0]
    found = []
    for node in in_order(model, model.trace.scopes["x"].everything()):
        density = BlockDensity(model, [node])
        found.append((density, Conditionals(density, Blanket(model, [node]).places)))
    return found


@pytest.mark.parametrize(("program", "recorded"), [(REGRESSION, 3), (LEVELS, 4), (SCALES, 0), (PAIRS, 4), (VARYING, 2)])
def test_a_single_choice_has_the_derivatives_of_the_density(program: str, recorded: int) -> None:
    for density, conditionals in single_choices(program):
        given = conditionals.single()
        if given is None:
            continue
        recorded -= 1
        # also at the seam of what is made of pieces
        for free in (0.7, -0.4, 0.0):
            density.put(np.array([free]))
            slope, curve = given.along(free)
            np.testing.assert_allclose(slope, density.evaluate()[1][0], rtol=1e-9, atol=1e-9)
            if free:
                np.testing.assert_allclose(curve, density.hessian()[0, 0], rtol=1e-9, atol=1e-9)
            own, own_curve = given.along(free, [])
            each = np.array([given.along(free, [at]) for at in range(len(conditionals.sites()))])
            np.testing.assert_allclose((each - (own, own_curve)).sum(axis=0), (slope - own, curve - own_curve))
    assert recorded == 0


def test_what_reads_a_single_choice_beside_vectors_goes_by_the_passes() -> None:
    for _, conditionals in single_choices(PLAIN_VECTORS):
        assert conditionals.single() is None


@pytest.mark.parametrize("start", [0.3, 40.0])
@pytest.mark.parametrize("program", [REGRESSION, LEVELS, PAIRS])
def test_a_single_choice_climbs_as_worlds_do(program: str, start: float) -> None:
    modes = []
    for _, conditionals in single_choices(program):
        given, worlds = conditionals.single(), Worlds(conditionals._terms[0].kind.state.places, 1)
        assert given is not None
        alone, derivatives = mode_of_single(given, start, 2.0)
        together, others = at_modes(conditionals.given(worlds).at, np.array([[start]]), np.array([2.0]))
        these, those = (alone.centre, alone.root, *derivatives), (together.centre, together.root, *others)
        for found, expected in zip(these, those, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        modes.append(bool(alone.is_of_mode[0]))
        assert modes[-1] == together.is_of_mode[0]
    assert any(modes)


@pytest.mark.thorough
def test_coefficients_of_many_choices_are_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    conditionals, worlds = conditionals_of(LEVELS, **DATA)
    free = np.random.default_rng(1).normal(size=(WORLDS, conditionals.size))
    expected = conditionals.at(worlds.copy(), free)
    monkeypatch.setattr(affine_conditionals, "DENSE", 1)
    for most in (0, 10_000):
        monkeypatch.setattr(affine_conditionals, "MOST_PRODUCTS", most)
        conditionals, _ = conditionals_of(LEVELS, **DATA)
        for found, there in zip(conditionals.given(worlds.copy()).at(np.arange(WORLDS), free), expected, strict=True):
            np.testing.assert_allclose(found, there, rtol=1e-9, atol=1e-9)


def test_a_seam_between_pieces_has_the_derivatives_of_one_side() -> None:
    conditionals, worlds = conditionals_of(REGRESSION, **DATA)
    free = np.zeros((WORLDS, conditionals.size))
    _, curves = conditionals.given(worlds).at(np.arange(WORLDS), free)
    design = np.column_stack((np.ones(12), ROWS[:, 0], -1.0 / ROWS[:, 1]))
    np.testing.assert_allclose(curves[0], -0.25 * design.T @ design - np.eye(3) / 2.5**2)


@pytest.mark.parametrize("mean", ["(exp x)", "(* x x)", "(/ 1 x)", "(* x (- x 1))"])
def test_what_is_not_read_affinely_is_told(mean: str) -> None:
    conditionals, _ = conditionals_of(f"[assume x (tag 'x 0 (normal 0 1))] [observe (normal {mean} 1) 1]")
    assert conditionals.affine is None


def test_worlds_that_have_no_value_at_zero_go_by_the_passes() -> None:
    conditionals, worlds = conditionals_of(VARYING)
    free = np.random.default_rng(1).normal(size=(WORLDS, conditionals.size))
    places = [at for at, value in enumerate(worlds.values) if value is not None]
    infinite = next(at for at in places if worlds.values[at].dtype == float and (worlds.values[at] < 0).any())
    worlds.values[infinite] = worlds.values[infinite].copy()
    worlds.values[infinite][1] = np.inf
    gradient, _ = conditionals.given(worlds).at(np.arange(WORLDS), free)
    assert np.isfinite(np.delete(gradient, 1, axis=0)).all()
    assert not np.isfinite(gradient[1]).all()


@pytest.mark.thorough
@pytest.mark.parametrize("program", [REGRESSION, LEVELS, SCALES])
def test_a_single_state_climbs_as_worlds_do(program: str) -> None:
    conditionals, worlds = conditionals_of(program, **DATA)
    start, scale = np.full((WORLDS, conditionals.size), 3.0), np.ones(conditionals.size)
    together, _ = at_modes(conditionals.given(worlds.copy()).at, start, scale)
    assert together.is_of_mode.sum() > 0
    for world in range(WORLDS):
        alone, _ = at_modes(conditionals.given(worlds.part(np.array([world]))).at, start[:1], scale)
        assert alone.is_of_mode[0] == together.is_of_mode[world]
        np.testing.assert_allclose(alone.centre[0], together.centre[world], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(alone.root[0], together.root[world], rtol=1e-6, atol=1e-6)


def test_curvatures_are_solved_by_the_magnitudes_of_their_eigenvalues() -> None:
    rng = np.random.default_rng(0)
    bases = rng.normal(size=(3 * FEW, 4, 4))
    vectors, _ = np.linalg.qr(bases)
    values = rng.gamma(1.0, 1.0, size=(len(bases), 4)) + LONGEST**-2
    # in some a negative or a small one
    values[5, 0], values[70, 2] = -2.0, 1e-15
    curvatures = (vectors * values[:, None]) @ vectors.swapaxes(1, 2)
    slopes = rng.normal(size=(len(bases), 4))
    magnitudes = np.maximum(np.abs(values), LONGEST**-2)
    expected = np.einsum("wij,wj,wkj,wk->wi", vectors, 1.0 / magnitudes, vectors, slopes)
    np.testing.assert_allclose(_solved(curvatures, slopes), expected, rtol=1e-8, atol=1e-8)
    known, inverses = _inverted(curvatures)
    assert np.flatnonzero(~known).tolist() == [5, 70]
    np.testing.assert_allclose(inverses[known] @ curvatures[known], np.tile(np.eye(4), (known.sum(), 1, 1)), atol=1e-8)
