"""Parameters from `-p` and `-d`, and what is said about bad ones."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venture_lite.data import UsageError, load_data, parse_parameter
from venture_lite.errors import ParameterError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x=1", 1),
        ("x=-2.5e3", -2500.0),
        ("x=true", True),
        ('x="a=b"', "a=b"),
        ("x=[1, [2.5, false], []]", [1, [2.5, False], []]),
    ],
)
def test_a_value_is_json(text: str, value: Any) -> None:
    assert parse_parameter(text) == ("x", value)


@pytest.mark.parametrize(
    "text", ["x", "=1", "2x=1", "x=", "x=abc", "x=NaN", "x=null", "x=[null]", 'x={"a": 1}', "a-b=1"]
)
def test_anything_else_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError):
        parse_parameter(text)


def test_a_bare_word_is_answered_with_its_quoted_form() -> None:
    with pytest.raises(UsageError, match=r"""-p 'colour="red"'"""):
        parse_parameter("colour=red")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "v.npy", np.arange(3))
    np.savez(tmp_path / "two.npz", X=np.eye(2), N=np.array(2), names=np.array(["a", "b"]))
    np.savez(tmp_path / "one.npz", only=np.arange(2))
    np.savez(tmp_path / "objects.npz", X=np.array([{}], dtype=object))
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object))
    (tmp_path / "t.csv").write_text("id,age,score\na,1,2.5\nb,,3\n\nc,3,nan\n")
    (tmp_path / "bad.csv").write_text("x,y\n1,2\n3,oops\n")
    (tmp_path / "ragged.csv").write_text("x,y\n1,2\n3\n")
    (tmp_path / "words.csv").write_text("x\na\n")
    (tmp_path / "header.csv").write_text("x,y\n")
    (tmp_path / "under.csv").write_text("x\n1\n1_0\n")
    (tmp_path / "latin.csv").write_bytes(b"x\n\xff\xfe\n")
    (tmp_path / "broken.csv.gz").write_bytes(b"not gzip")
    (tmp_path / "broken.npz").write_bytes(b"PK but no zip")
    (tmp_path / "broken.npy").write_bytes(b"junk")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "empty.npy").touch()
    (tmp_path / "dir.npz").mkdir()
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write("x,y\n1,2\n3,4\n")
    return tmp_path


def test_npy_and_npz(folder: Path) -> None:
    assert load_data(f"v={folder}/v.npy")["v"].tolist() == [0, 1, 2]
    assert load_data(f"A={folder}/two.npz:X")["A"].tolist() == [[1, 0], [0, 1]]
    assert load_data(f"x={folder}/one.npz")["x"].tolist() == [0, 1]


def test_an_archive_without_a_name_binds_every_array(folder: Path) -> None:
    found = load_data(f"{folder}/two.npz")
    assert list(found) == ["X", "N", "names"]
    assert found["N"] == 2
    assert isinstance(found["N"], int)


def test_csv_columns(folder: Path) -> None:
    assert load_data(f"x={folder}/t.csv.gz")["x"].tolist() == [[1, 2], [3, 4]]
    assert load_data(f"x={folder}/t.csv.gz:y")["x"].tolist() == [2, 4]
    assert load_data(f"x={folder}/t.csv.gz:y,x")["x"].tolist() == [[2, 1], [4, 3]]


def test_csv_leaves_text_columns_out_and_makes_empty_cells_nan(folder: Path) -> None:
    table = load_data(f"x={folder}/t.csv")["x"]
    assert table.shape == (3, 2)
    assert math.isnan(table[1, 0])
    assert math.isnan(table[2, 1])
    assert table[0].tolist() == [1.0, 2.5]


def test_a_path_may_hold_colons_and_equals_signs(folder: Path) -> None:
    odd = folder / "a:b=c.npy"
    np.save(odd, np.arange(2))
    assert load_data(f"x={odd}")["x"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x={}/vv.npy", "no file.*\n.*did you mean v.npy"),
        ("x={}/dir.npz", "is a folder"),
        ("x={}/empty.csv", "is empty"),
        ("x={}/empty.npy", "is empty"),
        ("x={}/header.csv", "no data"),
        ("x={}/bad.csv", r"row 2, column 'y': 'oops' is not a number"),
        ("x={}/bad.csv:y", r"row 2, column 'y': 'oops' is not a number"),
        ("x={}/under.csv", r"row 2, column 'x': '1_0' is not a number"),
        ("x={}/ragged.csv", r"row 2: 1 cells, but 2 column names"),
        ("x={}/words.csv", "no numeric column"),
        ("x={}/t.csv:aeg", "no column 'aeg'\n.*did you mean age"),
        ("x={}/t.csv:zzz", "its columns are id, age, score"),
        ("x={}/two.npz:Y", "no array Y"),
        ("x={}/two.npz", "several arrays: X, N, names"),
        ("x={}/objects.npz", "Python objects"),
        ("x={}/objects.npy", "Python objects"),
        ("x={}/latin.csv", "cannot be read"),
        ("x={}/broken.csv.gz", "cannot be read"),
        ("x={}/broken.npz", "cannot be read"),
        ("x={}/broken.npy", "cannot be read"),
    ],
)
def test_a_bad_file_is_explained(folder: Path, text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        load_data(text.format(folder))


@pytest.mark.parametrize("text", ["x={}/t.txt", "{}/v.npy", "{}/t.csv", "{}/two.npz:X", "x={}/v.npy:X", "x"])
def test_a_malformed_option_is_wrong_usage(folder: Path, text: str) -> None:
    with pytest.raises(UsageError):
        load_data(text.format(folder))
