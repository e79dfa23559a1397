"""The programs of the sublinear paper: the scaffolds that they draw, and that each runs at a small size."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

PAPERS = Path(__file__).parents[2] / "programs" / "papers"


def program(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(PAPERS)
    return importlib.import_module(name)


def test_the_scaffold_of_the_branch_is_the_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figure 1: the if is in the target set and y absorbs; the gamma is there only where b is false, and transient."""
    branch = program("branch", monkeypatch)
    always = {"(bernoulli 0.5)": "principal", "(if b 1 (gamma 1 1))": "target", "(normal mu 0.1)": "absorbing"}
    for is_true, more in ((True, {}), (False, {"(gamma 1 1)": "transient"})):
        graph = branch.graph_of(branch.branch(is_true=is_true), "b")
        assert {node.text: node.role for node in graph.values()} == always | more
    edges = {(graph[parent].text, node.text) for node in graph.values() for parent in node.parents}
    assert edges == {
        ("(bernoulli 0.5)", "(if b 1 (gamma 1 1))"),
        ("(gamma 1 1)", "(if b 1 (gamma 1 1))"),
        ("(if b 1 (gamma 1 1))", "(normal mu 0.1)"),
    }
    assert [(graph[by].text, node.text) for node in graph.values() for by in node.deciders] == [
        ("(bernoulli 0.5)", "(gamma 1 1)")
    ]


def test_each_observation_is_a_local_section(monkeypatch: pytest.MonkeyPatch) -> None:
    branch = program("branch", monkeypatch)
    graph = branch.graph_of(branch.regression(4), "w")
    assert [node.role for node in graph.values()] == ["principal", *["absorbing"] * 4]


@pytest.mark.slow
def test_the_analysis_of_the_test_is_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 tests among 1,000 rows: the mean number used, about 340 with a standard deviation of about 350, has a
    standard error of 1.6%. Within 12% of the analysis: six of them, and 2% by which the analysis is off itself."""
    sublinearity = program("sublinearity", monkeypatch)
    cell = sublinearity.measured(1000, 0.1, 4000)
    assert cell.used == pytest.approx(cell.expected, rel=0.12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options", "lines"),
    [
        ("risk", ["--seconds", "0.05", "--chains", "1", "--exact", "2000"], 6),
        ("bias", ["--transitions", "400", "--exact", "2000"], 6),
    ],
)
def test_a_program_runs(
    name: str, options: list[str], lines: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pytest.importorskip("matplotlib")
    ran = program(name, monkeypatch)
    picture = tmp_path / f"{name}.png"
    monkeypatch.setattr("sys.argv", [name, *options, "--picture", str(picture)])
    ran.main()
    printed = capsys.readouterr().out.splitlines()
    header = next(at for at, line in enumerate(printed) if line.startswith("kernel"))
    assert len(printed[header + 1 :]) == lines
    assert picture.stat().st_size > 10_000
    assert np.all(["nan" not in line for line in printed])
