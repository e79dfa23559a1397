"""What leaves a `Venture`: errors without the package's frames, warnings at the caller's own line."""

from __future__ import annotations

import inspect
import traceback
import warnings
from pathlib import Path
from typing import Any

import pytest

from venture_lite import Venture, VentureError, VentureWarning

PACKAGE = Path(inspect.getfile(Venture)).parents[1]


def frames_of(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("execute", ("[predict (nromal 0 1)]",)),
        ("run_file", ("missing.vnt",)),
        ("assume", ("x", "(normal 0 -1)")),
        ("observe", ("(+ 1 1)", 2)),
        ("predict", ("(f 1",)),
        ("sample", ("(lookup (list 1) 3)",)),
        ("force", ("(flip)", 7)),
        ("forget", ("nothing",)),
        ("freeze", ("nothing",)),
        ("report", (99,)),
        ("infer", ("(hmc default one 0.1 3 1)",)),
        ("register", ("1x",)),
    ],
)
def test_an_error_shows_the_callers_frame_and_one_more(method: str, arguments: tuple[Any, ...]) -> None:
    model = Venture(seed=1)
    model.assume("b", "(flip)")
    with pytest.raises(VentureError) as caught:
        getattr(model, method)(*arguments)
    own, door = frames_of(caught.value)
    assert own.filename == __file__
    assert Path(door.filename).is_relative_to(PACKAGE)
    assert caught.value.__suppress_context__
    assert len(traceback.format_exception(caught.value)) < 20
    assert caught.value.frames is not None


def test_the_exception_of_a_registered_function_is_shown_before_it() -> None:
    def broken(x: float) -> float:
        raise RuntimeError("no")

    model = Venture(seed=1)
    model.register("broken", function=broken)
    with pytest.raises(VentureError) as caught:
        model.sample("(broken 1)")
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.thorough
def test_a_warning_points_at_the_line_that_called() -> None:
    model = Venture(seed=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.stack()[0].lineno + 1
        model.execute("[assume f (lambda () x)]\n[infer (mh nothing one 1)]\n[assume x (flip)]")
        model.execute("[observe (flip (if (= x x) 0 1)) true] [infer (mh default one 1)]")
    assert {(warning.filename, warning.category) for warning in caught} == {(__file__, VentureWarning)}
    assert {warning.lineno for warning in caught} <= {line, line + 1}
    assert len(caught) >= 2
