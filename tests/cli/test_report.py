"""How values are shown to a person and in JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.draws.draws import Draws
from venture_lite.errors import Source
from venture_lite.session import DirectiveResult
from venture_lite.shell.report import RunReport, as_json, as_text


def predicted(value: Any) -> RunReport:
    return RunReport("predict", None, "x", value, 3)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123456789, "x = 0.123457"),
        (True, "x = true"),
        ([1, 2.5], "x = (1 2.5)"),
        ("red", "x = red"),
        (np.array([1.0, 2.0]), "x = [1 2]"),
    ],
)
def test_a_value_is_shown_beside_its_expression(value: Any, shown: str) -> None:
    assert as_text(predicted(value)) == shown


def test_a_label_is_shown_in_place_of_the_expression() -> None:
    assert as_text(RunReport("predict", "slope", "w", 1, 3)) == "slope = 1"


def test_values_of_several_chains_share_a_line_while_they_fit() -> None:
    assert as_text(RunReport.merge([predicted(1), predicted(2)])) == "x = 1, 2 (a value for each chain)"
    long = RunReport.merge([predicted(np.eye(3)), predicted(np.eye(3))])
    assert (as_text(long) or "").startswith("x =\n  chain 0:\n    [[1  0  0]")


@pytest.mark.parametrize("kind", ["assume", "observe", "define", "force", "forget", "clear", "load"])
def test_other_directives_are_silent(kind: str) -> None:
    assert as_text(RunReport(kind, None, "x", 1, 1)) is None


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (-math.inf, "-inf"),
        (math.nan, "nan"),
        (np.array([[1.0, math.inf]]), [[1.0, "inf"]]),
        ([True, "a", [None]], [True, "a", [None]]),
    ],
)
def test_json_takes_every_value(value: Any, written: Any) -> None:
    line = as_json(predicted(value), None)
    assert line is not None
    assert json.loads(line) == {"directive": "predict", "label": None, "expression": "x", "value": written, "line": 3}


def test_a_directive_without_a_value_writes_no_json() -> None:
    assert as_json(RunReport("clear", None, None, None, 1), None) is None


def reports(text: str, chains: int = 1, **parameters: Any) -> list[RunReport]:
    found: list[RunReport] = []
    session = Venture(seed=1, chains=chains)

    def told(result: DirectiveResult) -> None:
        found.append(RunReport.of(result, chains))

    session.run_source(Source("p.vnt", text), parameters, told, on_part=told)
    return found


LOOP = """
for i in 1...2:
  for j in i...2:
    [observe (normal 0 1) j]
    twice: [sample (* 2 j)]
  [infer (collect i)]
"""


def test_the_directives_of_a_loop_that_runs_pass_by_pass_are_shown_with_their_pass() -> None:
    shown = [text for report in reports(LOOP) if (text := as_text(report)) is not None]
    assert [text for text in shown if "twice" in text] == [
        "i = 1, j = 1: twice = 2", "i = 1, j = 2: twice = 4", "i = 2, j = 2: twice = 4",
    ]  # fmt: skip
    assert [text.splitlines()[0] for text in shown if "variable" in text] == [
        "i = 1: (collect i)",
        "i = 2: (collect i)",
    ]


def test_the_directives_of_a_loop_are_a_line_of_json_each() -> None:
    lines = [json.loads(line) for report in reports(LOOP) if (line := as_json(report, None)) is not None]
    assert [line["passes"] for line in lines if line["directive"] == "sample"] == [
        {"i": 1, "j": 1}, {"i": 1, "j": 2}, {"i": 2, "j": 2},
    ]  # fmt: skip
    assert sum(line["directive"] == "infer" for line in lines) == 2


def test_a_loop_whose_start_is_a_parameter_names_its_passes() -> None:
    shown = [as_text(report) for report in reports("for n in S...4: [sample n]", S=3)]
    assert shown == ["n = 3: n = 3", "n = 4: n = 4", None]


def test_a_loop_is_merged_directive_by_directive() -> None:
    parts = zip(reports("for n in 1...2: [sample n]"), reports("for n in 1...2: [sample (+ n 5)]"), strict=True)
    assert [as_text(RunReport.merge(part)) for part in parts] == [
        "n = 1: n = 1, 6 (a value for each chain)", "n = 2: n = 2, 7 (a value for each chain)", None,
    ]  # fmt: skip


def test_a_chain_that_has_ended_is_a_gap_among_the_values() -> None:
    assert as_text(RunReport.merge([predicted(1), None, predicted(2)])) == "x = 1, -, 2 (a value for each chain)"


def test_the_directives_of_a_loaded_file_are_shown_as_if_they_stood_there(tmp_path: Path) -> None:
    path = tmp_path / "inner.vnt"
    path.write_text("[assume x 2] [sample (+ x 1)] [infer (collect x)]")
    found = reports(f'[load "{path}"] [sample x]')
    assert [report.kind for report in found] == ["assume", "sample", "infer", "load", "sample"]
    assert found[3].value == 3


def test_a_loop_that_only_observes_is_one_value() -> None:
    (report,) = reports("for n in 1...3: [observe (normal 0 1) n]")
    assert report.value == 3


def test_values_of_chains_in_one_process_are_told_apart_from_lists() -> None:
    listed, drawn = reports("[sample (list 1 2)] [get_logscore]", chains=2)
    assert as_text(listed) == "(list 1 2) = (1 2), (1 2) (a value for each chain)"
    assert as_text(drawn) == "get logscore = 0, 0 (a value for each chain)"


def test_directives_are_listed_as_a_table() -> None:
    text = "[assume x (normal 0 1)]\nlong: [predict (list" + " x" * 60 + ")]\n[list_directives]"
    lines = (as_text(reports(text)[-1]) or "").splitlines()
    assert lines[0].split() == ["id", "label", "directive", "text"]
    assert lines[1].split(maxsplit=2) == ["1", "assume", "[assume x (normal 0 1)]"]
    assert lines[2].endswith("...")
    assert len(lines[2]) == 100
    assert as_text(reports("[list_directives]")[0]) == "no directives"


def test_what_was_plotted_is_shown_below_the_table() -> None:
    plotted = Draws([{"b": np.array([True, True, False])}])
    report = RunReport("infer", None, "x", Draws([{"mu": np.arange(8.0)}], plotted=plotted), 1)
    text = as_text(report) or ""
    assert text.index("1 chain of 8 draws") < text.index("b: 3 draws")
    assert "#" in (as_text(report, encoding="ascii") or "")
    line = as_json(report, None)
    assert line is not None
    assert "plotted" not in line
