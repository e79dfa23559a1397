"""Directives at random: what is wrong is refused, as a VentureError and with the trace as it was; no trace breaks."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

from tests.generator.directive_grammar import DirectiveGrammar
from tests.generator.session import check, standing
from venture_lite import Venture
from venture_lite.errors import InternalError, VentureError, VentureWarning

# directives of one session: a trace that grows costs more to check, and later directives are refused more often
SESSION = 20
# points of interruption after which a directive is stopped: rejection may never find a state
PATIENCE = 1000


# what moves a trace at the end of a session, in the order of its choices
MOVES = "(cycle ((mh default one 5) (mh default each 1)) 2)"


def is_inference(text: str) -> bool:
    """An inference that fails keeps the transitions that it has made."""
    return "[infer" in text or text.startswith("(")


def run(venture: Venture, text: str) -> bool:
    """Run one directive; whether it was refused, or stopped."""
    (model,) = venture.traces
    model.interrupt_after = PATIENCE
    try:
        venture.execute(text)
    except (KeyboardInterrupt, VentureError):
        return True
    finally:
        model.interrupt_after = None
        # text that no directive holds any more is let go of as its objects go, here at the same step in both sessions
        gc.collect()
    return False


def step(venture: Venture, twin: Venture, text: str) -> bool:
    """Run one directive and check all that must hold after it; whether it was refused. The twin sees it only if not."""
    before = standing(venture)
    refused = run(venture, text)
    if not refused or is_inference(text):
        run(twin, text)
    else:
        assert standing(venture) == before, "a refused directive leaves something behind"
    check(venture)
    venture.log_score()
    return refused


def run_session(seed: int) -> int:
    """How many directives of one session are refused. Raises AssertionError that shows the session, where one fails."""
    grammar = DirectiveGrammar(np.random.default_rng(seed))
    venture, twin = (Venture(seed=seed, nested_calls=500) for _ in range(2))
    texts: list[str] = []
    refused = 0
    # what was there before is not searched again and again
    gc.freeze()
    with warnings.catch_warnings():
        # numpy's are none of the user's
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", VentureWarning)
        try:
            for _ in range(SESSION):
                texts.append(grammar.directive())
                refused += step(venture, twin, texts[-1])
            for one in (venture, twin):
                run(one, MOVES)
            assert standing(venture) == standing(twin), "the session differs from one that never saw what was refused"
        except (Exception, InternalError) as error:
            session = "\n".join(texts)
            raise AssertionError(f"seed {seed}:\n{session}\n{type(error).__name__}: {error}") from error
        finally:
            gc.unfreeze()
    return refused


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_two_thousand_directives_leave_sound_traces(first: int) -> None:
    refused = sum(run_session(seed) for seed in range(first, first + 25))
    # both kinds are many
    assert 0.2 < refused / (25 * SESSION) < 0.8


@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 5100, 100))
def test_a_hundred_thousand_directives_leave_sound_traces(first: int) -> None:
    for seed in range(first, first + 100):
        run_session(seed)
