"""Draws in files, read back by the programs that they are for."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_draws import one_chain
from venture_lite import export
from venture_lite.draws import Draws
from venture_lite.errors import VentureError


@pytest.fixture
def draws() -> Draws:
    def chain(shift: float) -> Draws:
        mu = [shift, shift + 1, shift + 2]
        w = [np.array([value, -value]) for value in mu]
        return one_chain(mu=mu, w=w, b=[True, False, True], word=["a", "b", "c"], file=[1.0])

    return Draws.merge([chain(0.0), chain(10.0)])


def test_npz_holds_an_array_a_variable_without_pickles(draws: Draws, tmp_path: Path) -> None:
    draws.save(tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz", allow_pickle=False) as file:
        assert file["mu"].tolist() == draws["mu"].tolist()
        assert file["w"].shape == (2, 3, 2)
        assert file["b"].dtype == bool
        assert file["word"].tolist() == [["a", "b", "c"]] * 2
        assert file["file"].shape == (2, 1)


def test_csv_has_a_row_a_draw_and_blanks_where_a_variable_is_shorter(draws: Draws, tmp_path: Path) -> None:
    draws.save(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["chain", "draw", "mu", "w[0]", "w[1]", "b", "word", "file"]
    assert rows[1] == ["0", "0", "0.0", "0.0", "-0.0", "true", "a", "1.0"]
    assert rows[5] == ["1", "1", "11.0", "11.0", "-11.0", "false", "b", ""]
    assert len(rows) == 7


def test_csv_marks_what_was_drawn_while_a_kernel_adapted(tmp_path: Path) -> None:
    chains = [{"w": np.arange(3.0), "late": np.arange(2.0)}] * 2
    Draws(chains, [], adapting=[{"w": 2}, {}]).save(tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["chain", "draw", "adapting", "w", "late"]
    assert [row[2] for row in rows[1:]] == ["true", "true", "false", "false", "false", "false"]
    assert rows[3] == ["0", "2", "false", "2.0", ""]


def test_the_tree_is_as_arviz_reads_it(draws: Draws) -> None:
    tree = draws.to_datatree()
    posterior = tree["posterior"]
    assert posterior["w"].dims == ("chain", "draw", "w_dim_0")
    assert posterior["mu"].values.tolist() == draws["mu"].tolist()
    assert "word" not in posterior
    assert tree["posterior_1"]["file"].shape == (2, 1)


def test_a_slash_in_a_name_is_no_path() -> None:
    tree = one_chain(**{"(/ a b)": [1.0]}).to_datatree()
    assert list(tree["posterior"].data_vars) == ["(÷ a b)"]


def test_netcdf_is_read_back(draws: Draws, tmp_path: Path) -> None:
    pytest.importorskip("h5netcdf")
    import xarray

    draws.save(tmp_path / "out.nc")
    with xarray.open_datatree(tmp_path / "out.nc", engine="h5netcdf") as tree:
        assert tree["posterior"]["mu"].values.tolist() == draws["mu"].tolist()


def test_without_a_netcdf_library_the_error_says_what_to_install(
    draws: Draws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_netcdf_engine", lambda: None)
    with pytest.raises(VentureError, match="pip install"):
        draws.save(tmp_path / "out.nc")


@pytest.mark.parametrize("name", ["out", "out.txt", "missing/out.npz"])
def test_an_output_that_cannot_be_written_is_refused(draws: Draws, tmp_path: Path, name: str) -> None:
    with pytest.raises(VentureError):
        draws.save(tmp_path / name)


def test_no_draws_at_all_can_be_written(tmp_path: Path) -> None:
    for name in ("out.npz", "out.csv"):
        one_chain().save(tmp_path / name)
    assert (tmp_path / "out.csv").read_text().strip() == "chain,draw"
