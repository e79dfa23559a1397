"""`venture explain`: what the inferences of a program would do, as of the state before each."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.posterior.case import Case
from tests.posterior.cases import CASES
from venture_lite import Venture, VentureError
from venture_lite.audit.snapshot import snapshot
from venture_lite.interpreter.kernel import COLUMNS, ROWS
from venture_lite.shell.cli import main

Explained = Callable[..., tuple[int, str]]
"""The exit status of a command on a program, and what it shows."""

LEVELS = """\
[assume slope (normal 0 1)]
[assume spread (gamma 2 1)]
[assume level (mem (lambda (county) (tag 'level county (normal 0 spread))))]
for n in 1...6: [observe (normal (+ (level {county[n]}) (* slope {x[n]})) {sd}) {y[n]}]
[infer (repeat 1000 (do (mh default one 10) (hmc level all 0.1 5 1) (collect slope spread)))]
"""
LEVELS_EXPLAINED = """\
p.vnt:5:1: [infer (repeat 1000 (do (mh default one 10) (hmc level al...
  repeat 1,000 times
    do
      mh 10 times, one block of default: proposals from the prior
        1 block: slope
          moves (normal 0 1)
          weighs (normal (+ (level {county[n]}) (* slope {x[n]})) {sd}), 6 times
          columns
        1 block: spread
          moves (gamma 2 1)
          weighs (normal 0 spread), 3 times
          columns
        3 blocks: level
          moves (normal 0 spread)
          renews (level {county[n]}), 1 to 3 times
          weighs (normal (+ (level {county[n]}) (* slope {x[n]})) {sd}), 1 to 3 times
          columns
      hmc once, all of level as one block: paths of 1 to 9 steps of 0.1 along the gradient
        1 block: level (3)
          moves (normal 0 spread), 3 times
          renews (level {county[n]}), 6 times
          weighs (normal (+ (level {county[n]}) (* slope {x[n]})) {sd}), 6 times
          columns, by gradients of its density
      collect slope spread
"""
MIXTURE = """\
[assume table (make_crp 1)]
[assume z (mem (lambda (n) (tag 'z n (table))))]
[assume mean (mem (lambda (k) (tag 'mean k (normal 0 3))))]
for n in 1...4: [observe (normal (mean (z n)) 1) n]
[infer (cycle ((gibbs z each 1) (mh z one 1) (slice mean (ordered_range 1 0) 1 8 1)) 100)]
[infer (gibbs default all 1)]
"""
CHANGING = """\
[assume b (bernoulli 0.5)]
[assume mu (if b 1 (gamma 1 1))]
for n in 1...3: [observe (normal mu 0.1) n]
[force b 0]
[infer (do (mh default one 10) (gibbs default one 1))]
[force b 1]
[infer (pgibbs default ordered 5 1)]
"""
BRANCH = "a branch, a call or a memoized procedure may change with the block, and with it what exists"
CHANGING_EXPLAINED = f"""\
p.vnt:5:1: [infer (do (mh default one 10) (gibbs default one 1))]
  do
    mh 10 times, one block of default: proposals from the prior
      1 block: b
        rows by the interpreter: {BRANCH}
          p.vnt:2:12: (if b 1 (gamma 1 1))
      1 block: mu
        moves (gamma 1 1)
        renews (if b 1 (gamma 1 1))
        weighs (normal mu 0.1), 3 times
        columns
    gibbs once, one block of default: exact draws, by enumeration
      1 block: b
        rows by the interpreter: {BRANCH}
          p.vnt:2:12: (if b 1 (gamma 1 1))
      1 block: mu
        moves (gamma 1 1)
        renews (if b 1 (gamma 1 1))
        weighs (normal mu 0.1), 3 times
        refused: gibbs enumerates finite supports; gamma has none
          p.vnt:2:20: (gamma 1 1)

p.vnt:7:1: [infer (pgibbs default ordered 5 1)]
  pgibbs once, each block of default, in order: 5 particles
    1 block: b
      rows by the interpreter, particle by particle: what exists may change with a block, or statistics count
"""
DATA = ["-p", "county=[1,1,1,2,2,3]", "-p", "x=[1,2,3,4,5,6]", "-p", "y=[1,2,3,4,5,6]", "-p", "sd=0.5"]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Explained:
    monkeypatch.chdir(tmp_path)

    def explained(program: str, *options: str, command: str = "explain") -> tuple[int, str]:
        (tmp_path / "p.vnt").write_text(program)
        status = main([command, "p.vnt", *options])
        return status, capsys.readouterr().out

    return explained


def test_a_regression_with_levels(run: Explained) -> None:
    assert run(LEVELS, *DATA) == (0, LEVELS_EXPLAINED)


def test_a_structure_that_changes_and_a_later_state(run: Explained) -> None:
    assert run(CHANGING) == (0, CHANGING_EXPLAINED)


def test_a_mixture(run: Explained) -> None:
    status, text = run(MIXTURE)
    assert status == 0
    assert text.splitlines()[:9] == [
        "p.vnt:5:1: [infer (cycle ((gibbs z each 1) (mh z one 1) (slice mean ...",
        "  cycle 100 times",
        "    gibbs once, each block of z, in order: exact draws, by enumeration",
        "      4 blocks: z",
        "        columns, what each class gives is computed once for many labels",
        "    mh once, one block of z: proposals from the prior",
        "      4 blocks: z",
        "        columns, planned for one choice, where no family comes or goes",
        "    slice once, blocks 1 to 0 of mean, in order: slices of width 1, at most 8 of them",
    ]
    assert "      the scope mean has no block in (ordered_range 1 0), nothing is moved" in text
    assert "refused: gibbs enumerates finite supports; normal has none" in text


def test_a_program_with_errors_says_what_a_check_says(run: Explained) -> None:
    broken = LEVELS.replace("(gamma 2 1)", "(gamma 2 -1)").replace("hmc level", "hmc levle")
    assert run(broken, *DATA) == run(broken, *DATA, command="check")
    assert run(broken, *DATA)[0] == 1
    assert run(broken, *DATA, "--json") == run(broken, *DATA, "--json", command="check")


def test_parameters_that_are_missing_are_errors(run: Explained) -> None:
    status, text = run(LEVELS)
    assert status == 1
    assert "p.vnt:4:45: the program needs a parameter county" in text
    assert run(LEVELS, "-d", "nothing.csv")[0] == run(LEVELS, "-d", "nothing.csv", command="run")[0] != 0


def test_an_error_that_only_a_run_knows_ends_as_a_run_does(run: Explained) -> None:
    program = "[assume f (lambda (x) (/ 1 x))]\n[assume g (f (binomial 0 0.5))]\n[infer (mh default one 1)]"
    assert run(program)[0] == run(program, command="run")[0] == 1


def test_json_is_one_object_an_inference(run: Explained) -> None:
    status, text = run(CHANGING, "--json")
    first, second = map(json.loads, text.splitlines())
    assert (status, first["line"], second["line"]) == (0, 5, 7)
    kernel = first["parts"][1]
    assert kernel["depth"] == 1
    assert kernel["kinds"][0]["way"] == "rows by the interpreter"
    assert kernel["kinds"][0]["place"] == "p.vnt:2:12"
    assert kernel["kinds"][1]["touched"][-1] == {"text": "weighs (normal mu 0.1)", "fewest": 3, "most": 3}


def test_a_program_that_infers_nothing_shows_nothing(run: Explained) -> None:
    assert run("[assume x 1]") == (0, "")


def test_of_a_loop_the_first_pass_is_explained(run: Explained) -> None:
    program = "[assume x (normal 0 1)]\nfor n in 1...5:\n  [observe (normal x 1) n]\n  [infer (mh default one 1)]"
    text = run(program)[1]
    assert text.startswith("p.vnt:4:3: [infer (mh default one 1)] (n = 1)\n")
    assert text.count("[infer") == 1


def test_nothing_changes_and_nothing_is_drawn() -> None:
    v = Venture(seed=3)
    v.execute(MIXTURE.split("[infer")[0])
    before, state = snapshot(v.traces[0]), v.traces[0].trace.rng.bit_generator.state
    shown = str(
        v.explain("(do (mh default one 5) (gibbs z one 2) (subsampled_mh mean one 2 0.1 3) (rejection z one 1))")
    )
    assert "columns" in shown
    assert snapshot(v.traces[0]) == before
    assert v.traces[0].trace.rng.bit_generator.state == state


def test_the_ways_are_those_of_the_session() -> None:
    ways = {}
    for kernels in ("compiled", "checked", "interpreted"):
        v = Venture(seed=1, kernels=kernels)
        v.execute("[assume x (normal 0 1)] [assume b (tag 'b 0 (flip))]")
        found = v.explain("(do (mh default one 'drift 1 1) (gibbs b one 1) (pgibbs b ordered 2 1))")
        ways[kernels] = [kind.course.way for part in found.parts for kind in part.kinds or ()]
    assert ways["compiled"] == [COLUMNS, "refused", COLUMNS, COLUMNS]
    assert ways["checked"] == [COLUMNS, "refused", COLUMNS, ROWS]
    assert ways["interpreted"] == [ROWS, "refused", ROWS, ROWS]


KERNELS = (
    "(mh default one 5)", "(mh default all 5)", "(mh default one 'drift 0.1 5)", "(slice default each 1 8 1)",
    "(gibbs default one 5)", "(hmc default all 0.1 3 1)", "(rejection default all 1)", "(pgibbs default ordered 3 1)",
    "(subsampled_mh default one 2 0.1 1)", "(flymc default all auto 'untuned 0.1 'drift 0.1 1)",
    "(gibbs default all 'weights 1)", "(split_merge default 1)", "(gibbs default all 'forward 1)",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES[::5], ids=lambda case: case.name)
def test_any_program_can_be_explained(case: Case) -> None:
    """The trace and its generator stay as they are."""
    v = Venture(seed=1)
    v.execute(case.program, **case.parameters)
    model = v.traces[0]
    for kernel in KERNELS:
        before, state = snapshot(model), model.trace.rng.bit_generator.state
        found = v.explain(kernel)
        assert (snapshot(model), model.trace.rng.bit_generator.state) == (before, state)
        assert str(found)


def test_many_blocks_are_looked_at_in_part() -> None:
    v = Venture(seed=1)
    v.execute(
        "[assume f (mem (lambda (i) (normal 0 1)))] for n in 1...1200: [observe (normal (f n) 1) {y[n]}]",
        y=np.ones(1200),
    )
    shown = str(v.explain("(mh default one 5)"))
    assert "1,000 blocks: f" in shown
    assert "and 200 blocks more, not looked at" in shown


def test_what_is_written_wrongly_is_told() -> None:
    v = Venture(seed=1)
    with pytest.raises(VentureError, match="mh is written"):
        v.explain("(mh default one)")
    assert v.explain("(+ 1 2)").parts == ()
