"""Chains in processes of their own: the first leaves what it trained, and the others wait for it while it lives."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from venture_lite import Venture
from venture_lite.engines.compiled.compiled import generator
from venture_lite.engines.compiled.proposer import Proposer
from venture_lite.engines.compiled.supply import GONE, Exchange
from venture_lite.errors import VentureError

MADE = Proposer("p", "x", "x one", {})


def nothing() -> None:
    return None


def trains_here() -> Proposer:
    return MADE


def must_not() -> Proposer:
    raise AssertionError("it trains, and was to wait")


def test_every_chain_would_train_the_same() -> None:
    """Whichever it is, and of how many; another name or another seed is another training."""
    models = [
        *Venture(seed=1, chains=3).traces,
        *Venture(seed=1).traces,
        *Venture(seed=1, chains=3, only_chain=2).traces,
    ]
    assert len({generator(model, "p").random() for model in models}) == 1
    first = models[0]
    others = generator(first, "q").random(), generator(Venture(seed=2).traces[0], "p").random()
    assert len({generator(first, "p").random(), *others, first.trace.rng.random()}) == 4


def test_what_the_first_trained_is_found_by_name_and_number(tmp_path: Path) -> None:
    first, second = Exchange(tmp_path, True), Exchange(tmp_path, False)
    first.trained("p", trains_here, nothing)
    first.trained("p", lambda: Proposer("p", "y", "y all", {}), nothing)
    first.trained("q / r", trains_here, nothing)
    found = [second.trained(name, must_not, nothing) for name in ("p", "q / r", "p")]
    assert [each.blocks for each in found if each is not None] == ["x one", "x one", "y all"]


@pytest.mark.thorough
def test_the_others_wait_and_can_be_interrupted(tmp_path: Path) -> None:
    polls = iter(range(5))

    def poll() -> None:
        if next(polls) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Exchange(tmp_path, False).trained("p", must_not, poll)
    leaving = threading.Timer(0.1, Exchange(tmp_path, True).trained, ("p", trains_here, nothing))
    leaving.start()
    assert Exchange(tmp_path, False).trained("p", must_not, nothing) == MADE


def test_where_the_first_has_ended_the_others_train_for_themselves(tmp_path: Path) -> None:
    Exchange(tmp_path, True).trained("p", trains_here, nothing)
    (tmp_path / GONE).touch()
    other = Exchange(tmp_path, False)
    assert other.trained("p", must_not, nothing) == MADE
    assert other.trained("p", trains_here, nothing) is MADE


def test_a_chain_that_found_nothing_to_train_for_leaves_the_others_to_look(tmp_path: Path) -> None:
    assert Exchange(tmp_path, True).trained("p", lambda: None, nothing) is None
    assert Exchange(tmp_path, False).trained("p", trains_here, nothing) is MADE


def test_a_disk_that_takes_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(VentureError, match="cannot be handed to the other chains: No such file"):
        Exchange(tmp_path / "none", True).trained("p", trains_here, nothing)
