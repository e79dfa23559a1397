"""Completion, signatures, help and the tour."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from venture_lite.errors import NameUnknown
from venture_lite.inference.actions import ACTIONS
from venture_lite.language import directives
from venture_lite.procedures import registry
from venture_lite.program.forms import SPECIAL_FORMS
from venture_lite.repl import Conversation, PromptSettings, commands, help, names
from venture_lite.repl.completion import candidates, signature
from venture_lite.repl.tour import EXAMPLES, tour
from venture_lite.session.standard import NAMES as STANDARD_NAMES


@pytest.fixture(scope="module")
def conversation() -> Conversation:
    found = Conversation(PromptSettings(1, interactive=False))
    for entry in (
        "[assume mu (scope_include 'centre 0 (normal 0 1))]",
        "[assume (double x) (* 2 x)]",
        "seen: [observe (normal mu 1) 2]",
        "[define steps 10]",
        ":set heights [1, 2]",
    ):
        found.enter(entry)
    return found


def offered(text: str, conversation: Conversation) -> list[str]:
    return [candidate.text for candidate in candidates(text, conversation)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("[ass", ["assume"]),
        ("[ASS", []),
        ("[l", ["list_directives", "load"]),
        ("[assume x (stud", ["student_t"]),
        ("[assume x (scope", ["scope_include"]),
        ("[predict (dou", ["double"]),
        ("[predict (double m", ["mu"]),
        ("[infer (repeat ste", ["steps"]),
        ("[infer (repeat 10 (coll", ["collect"]),
        ("(gibb", ["gibbs"]),
        ("[predict (gibb", []),
        ("(mh ", ["centre", "default"]),
        ("(mh 'cen", ["centre"]),
        ("(mh centre o", ["one", "ordered"]),
        ("(mh centre one 'd", ["drift"]),
        ("[forget se", ["seen"]),
        ("[report m", ["mu"]),
        ("[observe (normal mu {hei", ["heights"]),
        ("help logis", ["logistic"]),
        ("?logis", ["logistic"]),
        (":he", ["help"]),
        (":s", ["save", "set", "seed"]),
        ('[predict "mu', []),
        ("; mu", []),
        ("mu", ["mu", "mul"]),
    ],
)
def test_what_fits_the_place_is_offered(text: str, names: list[str], conversation: Conversation) -> None:
    found = offered(text, conversation)
    if text.endswith(("mu", " m", "dou", "logis", " o")):
        assert found[: len(names)] == names or set(found) >= set(names[:1])
    else:
        assert [name for name in found if name in names] == names
        assert bool(found) == bool(names)


def test_the_models_names_come_first_and_signs_last(conversation: Conversation) -> None:
    found = offered("[predict (", conversation)
    assert set(found[:2]) == {"mu", "double"}
    assert not found[-1][0].isalpha()
    assert len(found) > 100


def test_a_candidate_shows_its_signature_and_summary(conversation: Conversation) -> None:
    (found,) = candidates("(student", conversation)
    assert found.shown == "(student_t df [loc] [scale])"
    assert found.meta == registry.lookup("student_t").summary
    assert found.replaced == len("student")


def test_files_are_completed(conversation: Conversation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "model.vnt").write_text("")
    (tmp_path / ".hidden").write_text("")
    monkeypatch.chdir(tmp_path)
    assert offered(":load ", conversation) == ["folder/"]
    assert offered(":load folder/mo", conversation) == ["model.vnt"]
    assert offered('[load "folder/', conversation) == ["model.vnt"]
    assert offered(":load nowhere/", conversation) == []


def test_the_signature_is_of_the_innermost_known_call(conversation: Conversation) -> None:
    assert (signature("[assume x (normal (nothing 1 ", conversation) or ("",))[0] == "(normal mean sd)"
    assert (signature("[assume x ", conversation) or ("",))[0] == "[assume NAME EXPR]"
    assert (signature("(mh ", conversation) or ("",))[0].startswith("(mh SCOPE BLOCK T)")
    assert signature("mu", conversation) is None


def test_the_tables_hold_the_whole_language() -> None:
    assert names.DIRECTIVES.keys() == directives.DIRECTIVES.keys()
    assert names.FORMS.keys() == SPECIAL_FORMS.keys()
    found = names.entries()
    for name in (*registry.NAMES, *STANDARD_NAMES, *ACTIONS, *directives.DIRECTIVES, *SPECIAL_FORMS):
        assert found[name], name
        assert all(entry.usage and (entry.summary or entry.details) for entry in found[name]), name
    for name, (usage, _) in {**names.DIRECTIVES, **names.FORMS}.items():
        assert re.match(rf"[(\[]{name}[ \])]", usage), usage


def test_help_says_what_the_record_says(conversation: Conversation) -> None:
    text = help.about("normal", conversation.session, 100)
    assert text.splitlines()[0] == "(normal mean sd)  (random procedure)"
    assert "sd: a positive number" in text
    assert "(mh SCOPE BLOCK 'drift SIGMA ['precondition] ['adapt BURN] T)" in help.about(
        "mh", conversation.session, 100
    )
    assert "[observe EXPR VALUE]" in help.about("[observe", conversation.session, 100)
    assert "(fold f start xs)" in help.about("fold", conversation.session, 100)
    assert "[assume mu" in help.about("mu", conversation.session, 100)
    assert "= 10" in help.about("steps", conversation.session, 100)
    with pytest.raises(NameUnknown, match="nothing is called nrmal") as caught:
        help.about("nrmal", conversation.session, 100)
    assert caught.value.hint == "did you mean normal?"


@pytest.mark.parametrize("width", [60, 100])
def test_the_overview_names_everything_and_keeps_to_its_width(width: int) -> None:
    text = help.overview([(command.usage, command.summary) for command in commands.COMMANDS], width)
    words = set(text.split())
    for name in (*registry.NAMES, *STANDARD_NAMES, *ACTIONS, *directives.DIRECTIVES, *SPECIAL_FORMS):
        assert name in words, name
    assert all(command.usage in text for command in commands.COMMANDS)
    lists = [line for line in text.splitlines() if not any(command.usage in line for command in commands.COMMANDS)]
    assert max(map(len, lists)) <= width


@pytest.mark.parametrize("width", [80, 120])
def test_the_tour_is_a_screenful_that_was_run(width: int) -> None:
    lines = tour(width).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= width
    shown = "\n".join(lines)
    for _, texts in EXAMPLES:
        for text in texts:
            assert text in shown
    assert re.search(r"^\[assume mu .*\] +; mu = -?\d", shown, re.MULTILINE)
    assert "1 chain of 500 draws" in shown
    assert "warning" not in shown


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("?", True), ("help", True), ("help normal", True), ("?normal", True), (":save x", True), ("  :quit ", True),
        ("quit", True), ("helper", False), ("(help)", False), ("quit now\n(+ 1 2)", False), ("x: [predict 1]", False),
        ("[sample 1]", False), (":", True),
    ],
)  # fmt: skip
def test_a_command_is_one_line_with_a_colon_or_one_of_four_words(text: str, is_one: bool) -> None:
    assert commands.is_command(text) == is_one
