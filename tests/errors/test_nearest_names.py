"""What is suggested for a name that nothing binds: the word that the fewest edits lead to, wherever the name stands."""

from __future__ import annotations

import io

import pytest

from venture_lite import Venture, check
from venture_lite.errors import NameUnknown, nearest_name
from venture_lite.language.directives import EXAMPLES
from venture_lite.repl import Conversation, PromptSettings, plain

MODEL = "[assume mu (normal 0 1)]"
ACTIONS = {
    "colect": "collect", "repeet": "repeat", "gibs": "gibbs", "pgibs": "pgibbs", "cylce": "cycle", "slcie": "slice",
    "hcm": "hmc", "nust": "nuts", "optimise": "optimize", "annael": "anneal", "plto": "plot", "labeled": "labelled",
    "rejecton": "rejection", "asume": "assume", "obsrve": "observe",
}  # fmt: skip
OF_THE_MODEL = {
    "nomral": "normal", "bernouli": "bernoulli", "gama": "gamma", "bta": "beta", "poison": "poisson",
    "lookpu": "lookup", "drichlet": "dirichlet", "categroical": "categorical", "binom": "binomial", "memm": "mem",
    "uniform_continous": "uniform_continuous", "normal_dist": "normal", "lamda": "lambda", "lte": "let", "fi": "if",
    "scope_inclde": "scope_include",
}  # fmt: skip
NOTHING = ["qqqqqq", "frobnicate", "foo", "bar", "zzz", "q", "kq"]


def hint_of(wanted: str | None) -> str | None:
    return None if wanted is None else f"did you mean {EXAMPLES.get(wanted, wanted)}?"


def hint_in(text: str) -> str | None:
    with pytest.raises(NameUnknown) as caught:
        Venture(seed=1).execute(f"{MODEL} {text}")
    (found,) = [each for each in check(f"{MODEL} {text}").diagnostics if each.severity == "error"]
    assert found.hint == caught.value.hint
    return caught.value.hint


@pytest.mark.parametrize(("typo", "wanted"), [*ACTIONS.items(), *OF_THE_MODEL.items(), *((it, None) for it in NOTHING)])
def test_the_nearest_word_is_named(typo: str, wanted: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert hint_in(f"[infer ({typo} mu)]") == hint_of(wanted)
    assert hint_in(f"[infer (repeat 2 (do (mh default one 1) ({typo} mu)))]") == hint_of(wanted)
    if typo not in ACTIONS:
        assert hint_in(f"[assume x ({typo} mu 1)]") == hint_of(wanted)
    conversation = Conversation(PromptSettings(seed=1, interactive=False))
    plain.converse(conversation, io.StringIO(f"{MODEL}\n({typo} mu)\n"))
    said = capsys.readouterr().err
    assert f"unknown name {typo}" in said
    assert (hint_of(wanted) or "try:") in said or (wanted is None and "try:" not in said)


def test_the_model_is_not_told_of_a_word_far_away() -> None:
    """`let` is three letters of `colect`, and no more than that."""
    assert hint_in("[assume x (colect mu)]") is None


def test_a_word_of_the_model_in_the_place_of_an_action_is_told_where_it_goes() -> None:
    for text in ("(do (normal 0 1))", "(normal 0 1)"):
        hint = hint_in(f"[infer {text}]")
        assert hint == "normal is no action: (collect (normal ...)) evaluates it in the model"


@pytest.mark.parametrize(
    ("name", "known", "wanted"),
    [
        ("sigm", ["mu", "sigma"], "sigma"),
        ("ab", ["ba", "abc"], "ba"),
        ("mean1", ["men", "mean"], "mean"),
        ("Normal", ["formal", "normal"], "normal"),
        ("x3", ["x1", "x2"], None),
        ("x", ["y"], None),
        ("yy", ["y"], "y"),
        ("binom", ["bimodal", "binomial"], "binomial"),
        ("a" * 1_000_000, ["a" * 999_999], None),
    ],
)
def test_edits_are_counted(name: str, known: list[str], wanted: str | None) -> None:
    """A letter too few, too many, another one, or two that changed places; of names as near, the likest one."""
    assert nearest_name(name, known) == wanted
