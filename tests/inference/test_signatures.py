"""A check and a run read an action alike: by its usage, of which there is one."""

from __future__ import annotations

import ast
import itertools
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from venture_lite import Venture, VentureError
from venture_lite.checker import check
from venture_lite.engines.compiled.compiled import proposers_of
from venture_lite.engines.compiled.proposer import Proposer
from venture_lite.errors import Source
from venture_lite.inference.actions import ACTIONS
from venture_lite.inference.usage import Bracketed, Clauses, Optional, Pattern, Repeated, Role, pattern_of
from venture_lite.language.parse import parse_expression
from venture_lite.program.supplied import Parameters
from venture_lite.session.chains import Given
from venture_lite.session.queries import evaluator

PACKAGE = Path(__file__).parents[2] / "venture_lite"
PROGRAM = "[assume x (tag 's 0 (normal 0 1))]"
FILE = Path(tempfile.mkdtemp()) / "proposers.npz"
WRITTEN = {
    "SCOPE": "s", "BLOCK": "all", "BLOCKS": "ordered", "KERNEL": "(mh s all 1)", "EXPR": "x", "NAME": "level",
    "PROPOSAL": "(lambda (v) (normal v 1))", "SCHEDULE": "linear", "BOUND": "auto", "TUNING": "'map", "WEIGHT": "0.5",
    "T": "2", "P": "3", "MAX-STEPS": "4", "LEAPFROGS": "5", "NBATCH": "6", "BURN": "20", "SIGMA": "0.1", "WIDTH": "0.2",
    "STEP": "0.3", "VALUE": "1.5", "EPS": "0.4", "F": "0.5", "Q": "0.6", "FRACTION": "0.7",
    "N": "100", "K": "2", "H": "4", "DRAWS": "50", "A": "0.9", "FRAME": "prior", "R": "0", "B": "7", "RUNS": "2",
    "PROPOSALS": "3", "FILE": f'"{FILE}"',
}  # fmt: skip

OF_FORM = re.compile(r"\w+ (is written|knows no such|takes) ")


def ways(pattern: Pattern) -> Iterator[list[str]]:
    """How the arguments of a pattern can be written: every option in and out, in two orders."""
    for parts in itertools.product(*map(_ways, pattern)):
        yield list(itertools.chain(*parts))


def _ways(part: object) -> list[list[str]]:
    match part:
        case Role(name):
            return [[WRITTEN[name]]]
        case Bracketed(parts):
            return [[f"({' '.join(inside)})"] for inside in ways(parts)]
        case Optional(parts):
            return [[], *ways(parts)]
        case Repeated(parts, least):
            once = list(ways(parts))
            return [way * times for way in once for times in (1, 3)] + [[]] * (not least)
        case Clauses(clauses):
            found = []
            for there in itertools.product(*[(True,) if clause.required else (True, False) for clause in clauses]):
                chosen = list(itertools.compress(clauses, there))
                words = {clause.word for clause in chosen}
                if all(clause.inside is None or clause.inside in words for clause in chosen):
                    written = [[f"'{clause.word}", *(WRITTEN[role.name] for role in clause.roles)] for clause in chosen]
                    found += [list(itertools.chain(*written)), list(itertools.chain(*reversed(written)))]
            return found
    raise AssertionError(part)


def refused_by_check(form: str) -> tuple[str, str, str | None] | None:
    # that no compile makes the proposer is a warning
    found = [each for each in check(f"{PROGRAM}\n[infer {form}]").diagnostics if each.severity == "error"]
    return (found[0].message, found[0].span.text, found[0].hint) if found else None


def refused_by_run(form: str) -> tuple[str, str, str | None] | None:
    v = Venture(seed=1)
    v.execute(PROGRAM)
    # what is proposed with has to be there
    proposers_of(v.traces[0])["level"] = Proposer("level", "s", "s all", {})
    try:
        evaluator(v._runner.chains, Given(Parameters({}))).compile(parse_expression(Source("<input>", form)))
    except VentureError as error:
        return error.message, error.span.text if error.span else "", error.hint
    return None


def forms(name: str) -> Iterator[list[str]]:
    for usage in ACTIONS[name].usage:
        yield from ways(pattern_of(usage))


@pytest.mark.parametrize("name", ACTIONS)
def test_what_a_usage_says_passes_a_check_and_a_run(name: str) -> None:
    for arguments in forms(name):
        form = f"({' '.join([name, *arguments])})"
        # what an action refuses that its usage lets pass is refused by both
        assert refused_by_check(form) == refused_by_run(form), form
        assert refused_by_run(form) is None or "'energy" in form, form


@pytest.mark.parametrize("name", ACTIONS)
def test_what_no_usage_says_is_refused_alike(name: str) -> None:
    """An argument left out, one too many, a word twice, and a word that is not known."""
    wrong = {
        " ".join([name, *changed])
        for arguments in itertools.islice(forms(name), 6)
        for at in range(len(arguments) + 1)
        for changed in (
            arguments[:at] + arguments[at + 1 :],
            [*arguments[:at], "'nonsense", *arguments[at:]],
            [*arguments[: at + 1], *arguments[at : at + 1], *arguments[at + 1 :]],
        )
    }
    found = 0
    for form in (f"({text})" for text in sorted(wrong)):
        checked, run = refused_by_check(form), refused_by_run(form)
        # what is wrong with an argument's value is another matter, which a check may leave to a run
        of_form = [error if error is not None and OF_FORM.match(error[0]) else None for error in (checked, run)]
        assert of_form[0] == of_form[1], form
        found += of_form[0] is not None
    assert found > 0 or name in ("do", "collect", "print")


def hand_parsing(text: str) -> list[str]:
    """What a module does with syntax trees, other than to name their type."""
    found = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module="venture_lite.language.syntax", names=names):
                found += [alias.name for alias in names if alias.name != "Expression"]
            case ast.ImportFrom(module="venture_lite.inference.usage", names=names):
                found += [alias.name for alias in names if alias.name != "Matched"]
            case ast.Attribute(attr="items", value=ast.Attribute(attr="form")):
                found.append("form.items")
    return found


def test_engines_and_combinators_read_no_forms() -> None:
    paths = [*(PACKAGE / "engines").rglob("*.py")]
    paths += [PACKAGE / "inference" / name for name in ("combinators.py", "output.py")]
    assert {path.name: found for path in paths if (found := hand_parsing(path.read_text()))} == {}


def test_hand_parsing_is_found() -> None:
    text = "from venture_lite.language.syntax import Form, Expression\nparts = given.form.items[1:]"
    assert hand_parsing(text) == ["Form", "form.items"]


def test_options_come_in_any_order() -> None:
    def draws(form: str) -> list[float]:
        v = Venture(seed=1)
        v.execute(PROGRAM)
        return v.infer(f"(repeat 20 (do {form} (collect x)))")["x"].ravel().tolist()

    assert draws("(hmc s all 0.1 5 'precondition 'fixed 2)") == draws("(hmc s all 0.1 5 'fixed 'precondition 2)")
