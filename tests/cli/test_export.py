"""Draws in files, read back by the programs that they are for."""

from __future__ import annotations

import csv
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_draws import one_chain
from venture_lite.draws import files as export
from venture_lite.draws.draws import Draws
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


UNEVEN = Draws(
    [{"x": np.arange(3.0), "b": np.array([True])}, {"x": np.array([7.0])}, {"s": np.array(["a"], object)}],
    numbers=(0, 2, 5),
)


def test_uneven_chains_are_written_chain_by_chain(tmp_path: Path) -> None:
    UNEVEN.save(tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as file:
        assert {name: file[name].tolist() for name in file} == {
            "x (chain 0)": [0.0, 1.0, 2.0], "x (chain 2)": [7.0], "b (chain 0)": [True], "s (chain 5)": ["a"],
        }  # fmt: skip
    UNEVEN.save(tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == [
        "chain,draw,x,b,s", "0,0,0.0,true,", "0,1,1.0,,", "0,2,2.0,,", "2,0,7.0,,", "5,0,,,a",
    ]  # fmt: skip
    tree = UNEVEN.to_datatree()
    assert tree["posterior_3_chain_0"]["x"].values.tolist() == [[0.0, 1.0, 2.0]]
    assert tree["posterior_1_chain_2"]["x"].values.tolist() == [[7.0]]


def test_chains_that_are_left_keep_their_numbers(tmp_path: Path) -> None:
    draws = Draws([{"x": np.arange(2.0)}, {"x": np.arange(2.0)}], numbers=(0, 3))
    draws.save(tmp_path / "out.csv")
    assert [line[0] for line in (tmp_path / "out.csv").read_text().splitlines()[1:]] == ["0", "0", "3", "3"]
    assert draws.to_datatree()["posterior"].chain.values.tolist() == [0, 3]


@pytest.mark.skipif(os.name != "posix", reason="permissions are as on Unix")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o664])
@pytest.mark.parametrize("name", ["out.npz", "out.csv"])
def test_a_file_that_exists_keeps_its_permissions(draws: Draws, tmp_path: Path, name: str, mode: int) -> None:
    (tmp_path / name).touch()
    (tmp_path / name).chmod(mode)
    draws.save(tmp_path / name)
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode
    assert (tmp_path / name).stat().st_size > 0
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.skipif(os.name != "posix", reason="permissions are as on Unix")
def test_nobody_else_can_read_the_draws_while_they_are_written(
    draws: Draws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.csv"
    path.touch(mode=0o600)
    path.chmod(0o600)
    seen = []

    def written(draws: Draws, beside: Path) -> None:
        beside.write_text("1")
        seen.append(stat.S_IMODE(beside.stat().st_mode))

    monkeypatch.setattr(export, "_save_csv", written)
    draws.save(path)
    assert seen == [0o600]


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
