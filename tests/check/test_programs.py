"""What is found in directives: names, labels, scopes, actions, loaded files; and that nothing else is."""

# ruff: noqa: E501 - one case a line

from __future__ import annotations

from pathlib import Path

import pytest

from tests.errors.test_bad_input import CASES as BAD_INPUT
from tests.errors.test_bad_input import Bad
from tests.generator.directives import random_program
from tests.generator.programs import PARAMETERS
from tests.language import test_language as language
from venture_lite import Venture, VentureError, check, check_file
from venture_lite.checker import Checked
from venture_lite.errors import Source

ROOT = Path(__file__).parents[2]
X = "[assume x (normal 0 1)]"
TAGGED = "[assume z (scope_include 'latent 1 (flip))]"


def told(checked: Checked) -> list[str]:
    return [f"{found.span.line} {found.message} | {found.hint or ''}" for found in checked.diagnostics]


# the text, and each diagnostic as `line part of the message | part of the hint`
CASES = {
    "a list observed with more values": ("[observe (list (flip) (flip)) (list true true false)]", ["1 a list of 2 items is observed, and 3 values were given | as many values as the list has items"]),
    "a list observed with an item that is computed": (f"{X}\n[observe (list x (+ x 1)) (list 1 2)]", ["2 a deterministic value cannot be observed | observe a random choice"]),
    "a name assumed twice": ("[assume a 1]\n[assume a 2]", ["2 a is already assumed | <input>:1:1"]),
    "a proposer that nothing compiles": (f"{TAGGED}\n[infer (compiled_mh p latent one 1)]", ["2 there is no proposer p here | compile makes one"]),
    "a proposer of another name": (f"{TAGGED}\n[infer (do (compile modes latent one) (compiled_mh mode latent one 1))]", ["2 there is no proposer mode here | did you mean modes?"]),
    "a proposer that is compiled": (f"{TAGGED}\n[infer (do (compile p latent one 'worlds 200) (compiled_mh p latent one 1))]", []),
    "a proposer of a file": (f'{TAGGED}\n[infer (do (load_proposers "p.npz") (compiled_mh p latent one 1))]', []),
    "worlds that are no number": (f"{TAGGED}\n[infer (compile p latent one 'worlds -1)]", ["2 a whole number, 0 or more, is needed here, got -1 | "]),
    "a name that is forgotten is free": ("[assume a 1]\n[forget a]\n[assume a 2]", []),
    "clear frees all names": ("[assume a 1]\nl: [predict a]\n[clear]\n[assume a 2]\nl: [predict a]", []),
    "a forgotten name is unknown": ("[assume a 1]\n[forget a]\n[predict a]", ["3 unknown name a | "]),
    "forget of what is used": ("[assume a 1]\n[predict (+ a 1)]\n[forget a]", ["3 a is used by [predict (+ a 1)] | first"]),
    "a frozen user does not use": ("[assume a 1]\np: [predict (+ a 1)]\n[freeze p]\n[forget a]", []),
    "a special form assumed": ("[assume if 1]", ["1 if is a special form | "]),
    "assume in a loop": ("for n in 1...3:\n  [assume a n]\n  [predict b]", ["2 assume cannot stand in a loop | mem", "3 unknown name b | "]),
    "load in a loop": ('for n in 1...3:\n  [load "a.vnt"]', ["2 load cannot stand in a loop | "]),
    "an unknown label": ("here: [predict 1]\n[report her]", ["2 no directive is labelled or numbered her | did you mean here?"]),
    "an unknown number": ("[predict 1]\n[report 2]", ["2 numbered 2 | "]),
    "a number": ("[assume a 1]\nfor n in 1...3: [predict n]\n[report 2]\n[forget 2]\n[report 2]", ["5 numbered 2 | "]),
    "numbers after a loop that infers": ("for n in 1...3:\n  [infer (mh default one 1)]\n  [predict n]\n[report 3]", []),
    "a label of what is no directive of the model": ("l: [sample 1]\n[report l]", ["2 numbered l | "]),
    "a label inside a loop": ("for n in 1...3:\n  l: [predict n]\n[report l]\n[forget l]\n[report l]", ["5 numbered l | "]),
    "one datum": ("data: for n in 1...3: [predict n]\n[forget data 2]\n[report data]\nl: [predict 1]\n[forget l 2]", ["5 only the data of a loop | "]),
    "one pass of a loop that infers": ("for n in 1...3:\n  l: [predict n]\n  [infer (mh default one 1)]\n[forget l 2]", []),
    "a label taken": ("l: [predict 1]\nl: [predict 2]", ["2 the label l is taken | choose another"]),
    "an observe frozen": ("l: [observe (flip) true]\n[freeze l]", ["2 an observe cannot be frozen | "]),
    "a procedure frozen": ("[assume (f a) a]\n[freeze f]", ["2 a procedure of the program cannot be frozen | "]),
    "a frozen value observed": (X + "\n[freeze x]\n[observe x 2]", ["3 a deterministic value cannot be observed | "]),
    "an unknown scope": (TAGGED + "\n[infer (mh latnet one 1)]", ["2 no scope_include makes the scope latnet | did you mean latent?"]),
    "scopes bare, quoted and default": (TAGGED + "\n(do (mh latent one 1) (mh 'latent one 1) (mh \"latent\" one 1) (mh default one 1))", []),
    "a block of default": (X + "\n(mh default onee 1)", ["2 the scope default has no block onee | did you mean one?"]),
    "a number as a block of default": (X + "\n(mh default 3 1)", ["2 the scope default has no block 3 | tag the choices"]),
    "an unknown action": (X + "\n(mhh default one 1)", ["2 unknown inference action mhh | did you mean mh?"]),
    "an action in an action": (X + "\n(repeat 5 (do (mh default one 1) (colect x)))", ["2 unknown inference action colect | collect"]),
    "an action as it is not written": (X + "\n(mh default one)", ["2 mh is written (mh SCOPE BLOCK T) | "]),
    "a word misspelt": (X + "\n(mh default one 'drfit 0.1 10)", ["2 mh knows no such option | did you mean 'drift?"]),
    "a walk of Firefly Monte Carlo": (X + "\n(flymc default all auto 'map 0.1 'drift 0.1 'precondition 'adapt 9 5)", []),
    "gradients of Firefly Monte Carlo": (X + "\n(flymc default all auto 'untuned 0.1 'mala 0.1 'explicit 0.2 5)", []),
    "slices of Firefly Monte Carlo": (X + "\n(flymc default all auto 'map 0.1 'slice 2 5)", []),
    "Firefly Monte Carlo without a kernel": (X + "\n(flymc default all auto 'map 0.1 5)", ["2 flymc is written (flymc SCOPE | "]),
    "options in another order": (X + "\n(subsampled_mh default all 9 0.1 'audit 0.5 'proxy 'drift 0.1 'precondition 5)", []),
    "an action by a name": (X + "\n[define step (mh default one 1)]", ["2 mh is an action: it has no value | where it runs"]),
    "kernels that are refused move nothing": (X + "\n[observe (normal x 1) 1]\n(repeat 5 (do step (collect x)))", ["3 an inference action is written | "]),
    "inside an action that is written wrong": (X + "\n(repeat (do (mh default one -1)))", ["2 repeat is written | ", "2 0 or more, is needed here, got -1 | "]),
    "a count": (X + "\n(mh default one 1.5)", ["2 a whole number, 0 or more, is needed here, got 1.5 | "]),
    "a count by name": (X + "\n[define steps -1]\n(mh default one steps)", ["3 got -1 | "]),
    "an unknown name for a count": (X + "\n(repeat stepz (mh default one 1))", ["2 unknown name stepz | what [define ...] binds"]),
    "a random count": (X + "\n(mh default one (poisson 3))", ["2 unknown inference action poisson | "]),
    "a mixture's weight": (X + "\n(mixture (-1 (mh default one 1)) 2)", ["2 a weight must be | "]),
    "a cycle": (X + "\n(cycle ((mh default one 1) (gibs default one 1)) 2)", ["2 unknown inference action gibs | gibbs"]),
    "an unknown name collected": (X + "\n(collect (+ x y))", ["2 unknown name y | "]),
    "labelled": (X + "\n(collect (labelled (+ x oops) s))", ["2 unknown name oops | "]),
    "a proposal that is none": (X + "\n(mh default one 3 10)", ["2 PROPOSAL must be a procedure, got 3 | "]),
    "a proposal": (X + "\n[define w 0.1]\n(mh default one (lambda (v) (normal v w)) 10)", []),
    "an unknown name in a proposal": (X + "\n(mh default one (lambda (v) (normal v w)) 10)", ["2 unknown name w | "]),
    "loop variables": ("for n in 1...3: [predict (+ n 1)]\n[predict n]", ["2 unknown name n | "]),
    "loop variables in inference": (X + "\nfor n in 1...3:\n  (mh default one n)", []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_found(name: str) -> None:
    text, wanted = CASES[name]
    found = told(check(text))
    assert len(found) == len(wanted), found
    for diagnostic, expected in zip(found, wanted, strict=True):
        line, _, parts = expected.partition(" ")
        assert diagnostic.startswith(f"{line} ")
        message, hint = parts.split(" | ")
        assert message in diagnostic.split(" | ")[0]
        assert hint in diagnostic.split(" | ")[1]


def test_a_scope_that_is_made_further_down_is_warned_of() -> None:
    checked = check("[infer (mh latent one 1)]\n" + TAGGED)
    assert checked.ok
    assert "empty here: it is made further down, at <input>:2:26" in checked.diagnostics[0].message
    again = "for n in 1...2:\n  [infer (mh data one 1)]\n  [predict (tag 'data n (flip))]"
    assert not check(again).diagnostics


# ----------------------------------------------------------------------------------------------------- several files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "inner.vnt").write_text("[assume (f a b) (+ a b c)]\n[predict (f 1)]")
    (tmp_path / "main.vnt").write_text('[predict oops]\n[load "parts/inner.vnt"]\n[predict (f 1 2 3)]')
    (tmp_path / "self.vnt").write_text('[load "self.vnt"]')
    (tmp_path / "missing.vnt").write_text('[load "no.vnt"]\n[predict (g 1)]\n[report l]\n(mh somewhere one 1)')
    return tmp_path


def test_loaded_files_are_followed(folder: Path) -> None:
    found = check_file(folder / "main.vnt").diagnostics
    assert [(Path(one.span.source.name).name, one.span.line, one.message) for one in found] == [
        ("main.vnt", 1, "unknown name oops"),
        ("main.vnt", 3, "f takes 2 arguments, got 3"),
        ("inner.vnt", 1, "unknown name c"),
        ("inner.vnt", 2, "f takes 2 arguments, got 1"),
    ]


def test_a_file_that_loads_itself_is_found(folder: Path) -> None:
    (found,) = check_file(folder / "self.vnt").diagnostics
    assert "loads itself" in found.message


def test_what_a_missing_file_would_bind_is_not_held_against_the_rest(folder: Path) -> None:
    (found,) = check_file(folder / "missing.vnt").diagnostics
    assert "No such file" in found.message


# ------------------------------------------------------------------------------------------------------- parameters


def test_the_parameters_that_a_program_needs_are_listed_with_their_places() -> None:
    checked = check("[assume s {sigma}]\nfor n in 1...N: [observe (normal {X[n]} s) {Y[n - L]}]\n[predict {sigma}]")
    assert checked.ok
    places = {name: [span.place() for span in spans] for name, spans in checked.parameters.items()}
    assert places == {
        "sigma": ["<input>:1:12", "<input>:3:11"],
        "N": ["<input>:2:14"],
        "X": ["<input>:2:35"],
        "Y": ["<input>:2:45"],
        "L": ["<input>:2:51"],
    }


def test_parameters_that_are_given_are_tried() -> None:
    text = "[predict (normal 0 {s})]\nfor n in 1...N:\n  for m in 1...n: [predict {X[n, m]}]\n[predict {t}]"
    found = told(check(text, s=-1, N=3, X=[[1], [1, 2], [1, 2]]))
    assert ["sd must be a positive number, got -1" in found[0], "has 2 rows" in found[1]] == [True, True]
    assert "(n = 3, m = 3)" in found[1]
    assert "needs a parameter t" in found[2]
    assert len(found) == 3
    assert check(text, s=1, t=1, N=2, X=[[1], [1, 2]]).ok


@pytest.mark.parametrize("text", ["[assume a (mine 1)]", "[define n (mine 1)]\n(mh default one (mine n))"])
def test_procedures_that_are_registered_from_python_are_named(text: str) -> None:
    assert not check(text).ok
    assert check(text, registered=["mine"]).ok


# -------------------------------------------------------------------------------------- a check says what a run says

# what only a run can know
NEEDS_A_RUN = {
    "a domain error three calls deep",
    "the same in calls that are not inlined",
    "an error in one pass",
    "an error in a pass of a loop that infers",
    "an argument observed",
    "two observations of one choice",
    "two observations in one loop",
    "a second observation in a loop",
    "a random key on the way",
    "a random predicate to choices elsewhere",
    "a random predicate to a memoized choice",
    "the other way round",
    "to a choice by another name",
    "and where a name is observed",
    "one of many",
    "a pass that is not there",
    "gibbs on a continuous choice",
    "drift on a discrete choice",
    "recursion without an end",
    "a memoized call that needs its own result",
    "force of an observed choice",
    "force to probability zero",
    "a random block key by a call",
    "a block's key that a random key decides",
    "outside a vector",
}


@pytest.mark.parametrize("case", BAD_INPUT, ids=lambda case: case.name)
@pytest.mark.thorough
def test_bad_input_is_found_before_it_runs(case: Bad) -> None:
    given = case.parameters or {"nothing": 0}
    assert not check(case.before, **given).diagnostics
    found = check(case.before + "\n" + case.text, **given)
    assert found.ok == (case.name in NEEDS_A_RUN), told(found)


@pytest.mark.parametrize("path", language.PROGRAMS, ids=lambda path: path.stem)
def test_nothing_is_found_where_a_program_runs(path: Path) -> None:
    """Lines that neither fail nor warn are right; and what fails in a run is found with the run's own words."""
    text = path.read_text(encoding="utf-8")
    notes = language.notes(text)
    for found in check(text, **language.PARAMETERS).diagnostics:
        kind, part = notes.get(found.span.line, ("", ""))
        assert kind in ("error", "warning") or found.severity == "warning", str(found)
        if kind == "error" and found.span.line == max(notes):
            assert part in found.message


@pytest.mark.parametrize("first", range(0, 200, 50))
@pytest.mark.thorough
def test_nothing_is_found_in_random_programs(first: int) -> None:
    for seed in range(first, first + 50):
        text = "\n".join(step.text for step in random_program(seed).directives)
        assert not [one for one in check(text, **PARAMETERS).diagnostics if one.severity == "error"], text


@pytest.mark.parametrize("path", sorted((ROOT / "programs").glob("*.vnt")), ids=lambda path: path.stem)
def test_nothing_is_found_in_the_programs(path: Path) -> None:
    assert not check_file(path).diagnostics


def test_the_errors_of_a_check_are_those_of_the_run() -> None:
    """Of the first mistake in each: the same words at the same place, the argument at fault apart."""
    for text in (
        "[predict (f 1)]",
        "[assume (f a b) a] [predict (f 1)]",
        "[report l]",
        "[predict (if 1 2)]",
        "[foo 1]",
    ):
        (found,) = check(text).diagnostics
        with pytest.raises(VentureError) as caught:
            Venture(seed=1).run_source(Source("<input>", text), {}, lambda result: None)
        assert str(found) == str(caught.value)
