"""`%%venture` in IPython: what a cell runs, shows, binds and refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config

from venture_lite import Draws, Venture


class Notebook:
    """A shell, and what its last cell wrote and displayed."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.variables: dict[str, Any] = shell.user_ns
        self.text = self.problems = ""
        self.displayed: list[dict[str, Any]] = []

    def run(self, cell: str) -> Any:
        """The exception that the cell raised, or None."""
        with capture_output() as captured:
            result = self.shell.run_cell(cell, store_history=True)
        self.text, self.problems = captured.stdout, captured.stderr
        self.displayed = [output.data for output in captured.outputs]
        return result.error_in_exec


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    """A shell that leaves nothing in the home folder."""
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance(
        config=config, colors="nocolor", ipython_dir=str(tmp_path_factory.mktemp("ipython"))
    )
    InteractiveShell.clear_instance()


@pytest.fixture
def notebook(shell: InteractiveShell) -> Iterator[Notebook]:
    before = set(shell.user_ns)
    made = Notebook(shell)
    assert made.run("%load_ext venture_lite") is None
    yield made
    for name in set(shell.user_ns) - before:
        del shell.user_ns[name]


def test_a_cell_runs_on_a_session_that_python_cells_share(notebook: Notebook) -> None:
    assert notebook.run("%%venture --seed 3\n[assume x (normal 0 1)]\n[predict (* 2 x)]") is None
    venture = notebook.variables["v"]
    assert isinstance(venture, Venture)
    assert venture.seed == 3
    assert notebook.text.startswith("(* 2 x) = ")
    notebook.run("v.observe('(normal x 1)', 2.0)")
    notebook.run("%%venture\n[list_directives]")
    assert "[observe (normal x 1) 2]" in notebook.text
    assert notebook.run("%venture [sample (+ 1 2)]") is None
    assert notebook.text == "(+ 1 2) = 3\n"


def test_parameters_are_the_notebooks_variables(notebook: Notebook) -> None:
    notebook.variables["y"] = np.array([1.0, 2.0])
    notebook.variables["spread"] = 3
    notebook.run("%%venture\nfor n in 1...2: [observe (normal 0 {spread}) {y[n]}]\n[get_logscore]")
    assert notebook.text.startswith("get logscore = -")
    error = notebook.run("%%venture\n[sample {sprea}]")
    assert "did you mean spread?" in str(error)
    error = notebook.run("%%venture\n[sample {np}]")
    assert "np is a module" in str(error) or "needs a parameter np" in str(error)


def test_the_columns_of_a_frame_are_parameters(notebook: Notebook) -> None:
    notebook.variables["df"] = pd.DataFrame({"height": [1.5, 1.75]})
    notebook.variables["height"] = "not this one"
    notebook.run("%%venture --data df\n[sample {height[2]}]")
    assert notebook.text == "{height[2]} = 1.75\n"
    error = notebook.run("%%venture --data d\n[sample {height[2]}]")
    assert "no variable d" in str(error)


def test_draws_are_bound_and_shown_as_a_table(notebook: Notebook) -> None:
    notebook.run("%%venture --chains 2 --seed 1 --into d\n[assume mu (normal 0 1)]\n"
                 "[infer (repeat 40 (do (mh default one 2) (collect (labelled (+ mu 0) a<b))))]")  # fmt: skip
    assert isinstance(notebook.variables["d"], Draws)
    assert notebook.variables["d"]["a<b"].shape == (2, 40)
    (shown,) = notebook.displayed
    assert "<th>variable</th>" in shown["text/html"]
    assert "<td>a&lt;b</td>" in shown["text/html"]
    assert "2 chains of 40 draws" in shown["text/html"]
    assert "warning: the effective sample size is below 100" in shown["text/html"]


def test_a_plot_is_a_picture(notebook: Notebook) -> None:
    notebook.run("%%venture --seed 1\n[assume x (normal 0 1)]\n(repeat 20 (do (mh default one 1) (plot x)))")
    (shown,) = notebook.displayed
    assert "Figure" in shown["text/plain"]


def test_options_make_sessions_and_name_them(notebook: Notebook) -> None:
    notebook.run("%%venture model --seed 5\n[assume x (normal 0 1)]")
    first = notebook.variables["model"]
    assert "v" not in notebook.variables
    error = notebook.run("%%venture model --seed 6\n[predict x]")
    assert "model has seed 5" in str(error)
    assert "--fresh" in str(error)
    first.register("twice", function=lambda x: 2 * x)
    notebook.run("%%venture model --seed 6 --fresh --quiet\n[assume x (normal 0 1)]\n[predict (twice 2)]")
    assert notebook.text == ""
    assert notebook.variables["model"].seed == 6
    assert notebook.variables["model"] is not first
    notebook.variables["model"] = 7
    assert "model is a int" in str(notebook.run("%%venture model\n[sample 1]"))


@pytest.mark.parametrize(
    ("line", "says"),
    [("--seed one", "invalid int value"), ("--sed 1", "unrecognized arguments"), ("a-b", "a-b is no name"),
     ("a b", "unrecognized arguments: b"), ("--into 1x", "1x is no name"), ("--into if", "if is no name")],
)  # fmt: skip
def test_options_that_do_not_fit_are_told_in_a_line(notebook: Notebook, line: str, says: str) -> None:
    notebook.run(f"%%venture {line}\n[sample 1]")
    assert says in notebook.problems + notebook.text
    assert "%%venture [NAME]" in notebook.problems + notebook.text
    assert "Traceback" not in notebook.problems + notebook.text


def test_an_error_shows_its_line_and_caret_and_none_of_pythons_frames(notebook: Notebook) -> None:
    error = notebook.run("%%venture\n[assume x 1]\n[assume y (normal x -1)]")
    assert error is not None
    shown = notebook.text + notebook.problems
    number = len(notebook.variables["In"]) - 1
    assert f"In[{number}]:3:11: normal: sd must be a positive number, got -1" in shown
    assert "    [assume y (normal x -1)]\n              ^^^^^^^^^^^^^" in shown
    assert "Traceback" not in shown
    assert "venture_lite/" not in shown
    assert notebook.run("%%venture\n[assume y (+ x 1)] [predict y]") is None
    assert notebook.text == "y = 2\n"


def test_an_error_in_a_registered_function_names_its_line(notebook: Notebook) -> None:
    notebook.run("%venture [sample 1]")
    notebook.run("def turned(x):\n    return 1 / x\n\nv.register('turned', function=turned)")
    notebook.run("%%venture\n[sample (turned 0)]")
    shown = notebook.text + notebook.problems
    assert "turned: its function raised ZeroDivisionError" in shown
    assert "raised by turned" in shown
    assert "return 1 / x" in shown


def test_what_was_drawn_before_an_error_or_an_interruption_is_kept(notebook: Notebook) -> None:
    notebook.run("%%venture --seed 1\n[assume x (normal 0 1)]")
    notebook.variables["stop"] = stop = [False]

    def limited(value: float) -> float:
        if stop[0]:
            raise KeyboardInterrupt
        stop[0] = value > 1.5
        return value

    notebook.variables["v"].register("limited", function=limited)
    error = notebook.run("%%venture --into d\n(repeat 5000 (do (mh default one 1) (collect (limited x))))")
    assert isinstance(error, KeyboardInterrupt)
    assert "interrupted; the trace and what was drawn are kept" in notebook.text + notebook.problems
    assert notebook.variables["d"]["(limited x)"].max() > 1.5
    assert "Traceback" not in notebook.text + notebook.problems


def test_warnings_are_lines_of_text(notebook: Notebook) -> None:
    notebook.run("%%venture\n[infer (mh nowhere one 1)]")
    assert re.match(r"warning: In\[\d+\]:2:8: the scope nowhere is empty", notebook.problems)


def test_progress_is_shown_in_one_display_and_gone_at_the_end(
    notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("venture_lite.inference.progress.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("venture_lite.inference.progress.REFRESH_SECONDS", 0.0)
    notebook.run("%%venture\n[assume x (normal 0 1)]\n[infer (mh default one 300)]")
    first, *_, last = [shown["text/html"] for shown in notebook.displayed]
    assert "(mh default one 300)" in first
    assert "of 300" in first
    assert last == ""
    notebook.run("%%venture --quiet\n[infer (mh default one 300)]")
    assert notebook.displayed == []


def test_the_extension_can_be_unloaded(notebook: Notebook) -> None:
    notebook.run("%unload_ext venture_lite")
    notebook.run("%%venture\n[sample 1]")
    assert "v" not in notebook.variables
    notebook.run("%load_ext venture_lite")
    notebook.run("%%venture\n[sample 1]")
    assert "v" in notebook.variables


# ------------------------------------------------------------------------------------- Python cells, and help


def test_an_error_in_a_python_cell_is_the_message_and_the_line_that_called(notebook: Notebook) -> None:
    cell = "from venture_lite import Venture\nw = Venture(seed=1)\nw.sample('(nromal 0 1)')"
    assert notebook.run(cell) is not None
    lines = (notebook.text + notebook.problems).strip().splitlines()
    assert lines[0] == "<input>:1:2: unknown name nromal"
    assert lines[-2:] == ["  try: did you mean normal?", "  called at line 3: w.sample('(nromal 0 1)')"]
    assert len(lines) == 5


def test_an_error_inside_a_registered_function_names_its_line(notebook: Notebook) -> None:
    cell = (
        "from venture_lite import Venture\nw = Venture(seed=1)\n"
        "def broken(x):\n    raise RuntimeError('no')\nw.register('broken', function=broken)\nw.sample('(broken 1)')"
    )
    assert notebook.run(cell) is not None
    assert "raised by broken" in notebook.text + notebook.problems
    assert len((notebook.text + notebook.problems).strip().splitlines()) < 10


@pytest.mark.parametrize(
    "cell", ["%%venture --help", "%%venture -h\n", "%%venture --help\n[predict 1]", "%venture --help"]
)
def test_help_is_shown(notebook: Notebook, cell: str) -> None:
    assert notebook.run(cell) is None
    assert "--chains  how many traces" in notebook.text
    assert not notebook.problems
