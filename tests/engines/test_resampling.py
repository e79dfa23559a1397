"""Conditional systematic resampling: its law given the kept ancestor, and what a wrong law would look like.

Frequencies of 20,000 draws are compared at 5.5 standard errors: a false alarm has probability 4e-8 for each of the at
most 20 comparisons of a test, 8e-7 together.
"""

from __future__ import annotations

import numpy as np
import pytest

from venture_lite.engines.pgibbs.resampling import draw_ancestors, draw_particles, effective, shares

DRAWS = 20_000
SHARE = np.array([0.05, 0.4, 0.0, 0.3, 0.25])


def systematic(rng: np.random.Generator, draws: int) -> np.ndarray:
    """Ancestors of all slots without a condition, shifted cyclically at random: the law that is conditioned on."""
    count = len(SHARE)
    points = (rng.random((draws, 1)) + np.arange(count)) / count
    found = np.minimum(np.searchsorted(SHARE.cumsum(), points, side="right"), count - 1)
    shifted = (np.arange(count) + rng.integers(count, size=(draws, 1))) % count
    return np.take_along_axis(found, shifted, axis=1)


def frequencies(ancestors: np.ndarray) -> np.ndarray:
    """(slots, particles): how often each particle is each slot's ancestor."""
    return np.stack([(ancestors == particle).mean(axis=0) for particle in range(ancestors.shape[1])], axis=1)


def conditional(kept: int, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return draw_ancestors(rng, np.tile(SHARE, (DRAWS, 1)), np.full(DRAWS, kept))


def far(found: np.ndarray, expected: np.ndarray, draws: int) -> bool:
    error = np.sqrt(np.maximum(expected * (1 - expected), 1e-4) * (1 / DRAWS + 1 / draws))
    return bool((np.abs(found - expected) > 5.5 * error).any())


@pytest.mark.parametrize("kept", [0, 1, 4])
def test_the_law_is_that_of_systematic_resampling_given_the_kept_ancestor(kept: int) -> None:
    rng = np.random.default_rng(0)
    free = systematic(rng, 10 * DRAWS)
    given = free[free[:, 0] == kept]
    found = conditional(kept)
    assert (found[:, 0] == kept).all()
    assert not far(frequencies(found), frequencies(given), len(given))
    pairs = [(found[:, 1] == found[:, 3]).mean(), (given[:, 1] == given[:, 3]).mean()]
    assert not far(np.array(pairs[:1]), np.array(pairs[1:]), len(given))


def test_other_ancestors_drawn_systematically_beside_the_kept_one_would_be_told_apart() -> None:
    rng = np.random.default_rng(0)
    free = systematic(rng, 10 * DRAWS)
    given = free[free[:, 0] == 1]
    points = (rng.random((DRAWS, 1)) + np.arange(4)) / 4
    wrong = np.hstack([np.full((DRAWS, 1), 1), np.searchsorted(SHARE.cumsum(), points, side="right")])
    assert far(frequencies(wrong), frequencies(given), len(given))


def test_every_particle_has_its_share_of_children_rounded_up_or_down() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        share = rng.dirichlet(np.full(7, 0.5))
        ancestors = draw_ancestors(rng, np.stack([share, share[::-1]]), rng.choice(7, p=share, size=2))
        for found, own in zip(ancestors, (share, share[::-1]), strict=True):
            children = np.bincount(found, minlength=7)
            assert (children >= np.floor(7 * own) - 1e-9).all()
            assert (children <= np.ceil(7 * own) + 1e-9).all()


def test_a_kept_particle_without_a_share_is_kept() -> None:
    ancestors = draw_ancestors(np.random.default_rng(0), np.array([[0.0, 1.0, 0.0]]), np.array([2]))
    assert ancestors.tolist() == [[2, 1, 1]]


def test_only_the_fewest_impossible_terms_have_a_share() -> None:
    found = shares(np.array([2, 1, 1]), np.array([900.0, -800.0, -800.0 + np.log(3)]))
    assert np.allclose(found, [0, 0.25, 0.75])
    assert np.isclose(effective(found), 1.6)


def test_a_particle_is_drawn_in_proportion_to_its_share_in_each_population() -> None:
    rng = np.random.default_rng(3)
    share = np.stack([SHARE, SHARE[::-1]])
    drawn = draw_particles(rng, np.tile(share, (DRAWS, 1))).reshape(DRAWS, 2)
    for population, own in enumerate(share):
        found = np.bincount(drawn[:, population], minlength=5) / DRAWS
        assert (np.abs(found - own) <= 5.5 * np.sqrt(own * (1 - own) / DRAWS)).all()
    assert draw_particles(rng, np.array([[0.0, 1.0, 0.0]])).tolist() == [1]
