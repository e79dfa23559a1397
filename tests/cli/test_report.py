"""How values are shown to a person and in JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from venture_lite.report import Report, as_json, as_text


def predicted(value: Any) -> Report:
    return Report("predict", None, "x", value, 3)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.123456789, "x = 0.123457"),
        (True, "x = true"),
        ([1, 2.5], "x = (1 2.5)"),
        ("red", "x = red"),
        (np.array([1.0, 2.0]), "x = [1. 2.]"),
    ],
)
def test_a_value_is_shown_beside_its_expression(value: Any, shown: str) -> None:
    assert as_text(predicted(value)) == shown


def test_a_label_is_shown_in_place_of_the_expression() -> None:
    assert as_text(Report("predict", "slope", "w", 1, 3)) == "slope = 1"


def test_values_of_several_chains_share_a_line_while_they_fit() -> None:
    assert as_text(Report.merge([predicted(1), predicted(2)])) == "x = 1, 2 (a value for each chain)"
    long = Report.merge([predicted(np.eye(3)), predicted(np.eye(3))])
    assert (as_text(long) or "").startswith("x =\n  chain 0: [[1.")


@pytest.mark.parametrize("kind", ["assume", "observe", "define", "force", "forget", "clear", "load"])
def test_other_directives_are_silent(kind: str) -> None:
    assert as_text(Report(kind, None, "x", 1, 1)) is None


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
    assert as_json(Report("clear", None, None, None, 1), None) is None
