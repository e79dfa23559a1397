"""Hints for names that nothing binds. A word that this language lacks must not be answered by others that it lacks."""

from __future__ import annotations

import re

import pytest

from venture_lite import Venture
from venture_lite.errors import NameUnknown, VentureError
from venture_lite.language.suggestions import ELSEWHERE

ACTIONS = {"mh"}
# what stands for something that the user has
PLACES = re.compile(r"\b[A-Z]+\b")


@pytest.fixture(scope="module")
def session() -> Venture:
    return Venture(seed=1)


def refused(session: Venture, text: str) -> VentureError:
    with pytest.raises(VentureError) as caught:
        session.sample(text)
    return caught.value


@pytest.mark.parametrize("word", ELSEWHERE)
def test_the_word_of_another_system_is_answered_by_known_ones(session: Venture, word: str) -> None:
    error = refused(session, f"({word} 1)")
    assert isinstance(error, NameUnknown)
    assert error.hint == ELSEWHERE[word]
    for head in re.findall(r"\(([^\s()]+)", PLACES.sub("1", ELSEWHERE[word])):
        if head not in {"1", *ACTIONS}:
            try:
                session.sample(f"({head})")
            except NameUnknown:
                pytest.fail(f"{head} is unknown")
            except VentureError:
                pass


def test_a_word_of_the_program_is_its_own() -> None:
    session = Venture(seed=1)
    session.assume("softmax", "(lambda (x) x)")
    assert session.sample("(softmax 2)") == 2
    assert refused(session, "(softmx 1)").hint == "did you mean softmax?"
