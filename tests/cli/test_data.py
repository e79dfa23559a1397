"""Parameters from `-p` and `-d`, and what is said about bad ones."""

from __future__ import annotations

import gzip
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.errors import ParameterError, UsageError, VentureWarning
from venture_lite.shell import tables
from venture_lite.shell.cli import main
from venture_lite.shell.data import load_data, parse_parameter, read_options


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
    assert load_data(f"v={folder}/v.npy").values["v"].tolist() == [0, 1, 2]
    assert load_data(f"A={folder}/two.npz:X").values["A"].tolist() == [[1, 0], [0, 1]]
    assert load_data(f"x={folder}/one.npz").values["x"].tolist() == [0, 1]


def test_an_archive_without_a_name_binds_every_array(folder: Path) -> None:
    found = load_data(f"{folder}/two.npz").values
    assert list(found) == ["X", "N", "names"]
    assert found["N"] == 2
    assert isinstance(found["N"], int)


def test_csv_columns(folder: Path) -> None:
    assert load_data(f"x={folder}/t.csv.gz").values["x"].tolist() == [[1, 2], [3, 4]]
    assert load_data(f"x={folder}/t.csv.gz:y").values["x"].tolist() == [2, 4]
    assert load_data(f"x={folder}/t.csv.gz:y,x").values["x"].tolist() == [[2, 1], [4, 3]]


def test_csv_leaves_text_columns_out_and_makes_empty_cells_nan(folder: Path) -> None:
    table = load_data(f"x={folder}/t.csv").values["x"]
    assert table.shape == (3, 2)
    assert math.isnan(table[1, 0])
    assert math.isnan(table[2, 1])
    assert table[0].tolist() == [1.0, 2.5]


def test_text_is_a_list_of_strings(folder: Path) -> None:
    assert load_data(f"x={folder}/t.csv:id").values["x"] == ["a", "b", "c"]
    assert load_data(f"x={folder}/words.csv:x").values["x"] == ["a"]
    with pytest.raises(ParameterError, match="'id' holds strings"):
        load_data(f"x={folder}/t.csv:id,age")


def test_a_table_without_a_name_binds_every_column(folder: Path) -> None:
    found = load_data(f"{folder}/t.csv")
    assert found.rows == 3
    assert found.values["id"] == ["a", "b", "c"]
    assert found.values["score"][:2].tolist() == [2.5, 3.0]
    assert not found.left_out


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.tsv", "a\tg\n1.5\tx, y\n2\t\n"),
        ("semicolons.csv", 'a;g\n1,5;"x, y"\n2;\n'),
        ("commas.csv", 'a,"g"\r\n1.5,"x, y"\r\n2,\r\n'),
    ],
)
def test_cells_are_divided_as_the_file_has_them(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, newline="")
    found = load_data(str(tmp_path / name)).values
    assert found["a"].tolist() == [1.5, 2.0]
    assert found["g"] == ["x, y", None]


def test_parquet_is_read(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = {"a": [1, None, 3], "b": [True, False, True], "g": ["x", None, "y"], "l": [[1], [2], [3]]}
    polars.DataFrame(frame).write_parquet(tmp_path / "t.parquet")
    found = load_data(str(tmp_path / "t.parquet"))
    assert found.values["a"][[0, 2]].tolist() == [1, 3]
    assert math.isnan(found.values["a"][1])
    assert found.values["b"].dtype == bool
    assert found.values["g"] == ["x", None, "y"]
    assert "holds neither numbers" in found.left_out["l"]
    assert load_data(f"X={tmp_path}/t.parquet:a,b").values["X"].shape == (3, 2)
    with pytest.raises(ParameterError, match=r"t.parquet, row 2: the data"):
        load_data(str(tmp_path / "t.parquet"), limit=40)


def test_columns_that_no_program_can_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("first name,zip,y\na,1,1\nb,1A,2\n")
    found = load_data(str(tmp_path / "t.csv"))
    assert list(found.values) == ["y"]
    assert "'first name'" in found.left_out["first_name"]
    assert "row 2, column 'zip': '1A' is not a number" in found.left_out["zip"]
    name, told = "n", str(tmp_path / "t.csv")
    assert load_data(f"{name}={told}:first name").values["n"] == ["a", "b"]


def test_a_column_of_gaps_is_missing(tmp_path: Path) -> None:
    rows = tables.CELLS_AT_A_TIME + 5
    (tmp_path / "t.csv").write_text("g\n" + "NA\n" * rows + "word\n")
    found = load_data(str(tmp_path / "t.csv")).values["g"]
    assert (len(found), found[-1], found[0]) == (rows + 1, "word", None)


def test_rows_are_counted_where_nothing_else_is_called_n(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n2\n3\n")
    (tmp_path / "b.csv").write_text("y\n1\n2\n")
    (tmp_path / "c.csv").write_text("N,z\n7,1\n8,2\n")
    assert read_options([], [f"{tmp_path}/a.csv"]).parameters["N"] == 3
    assert read_options(["N=2"], [f"{tmp_path}/a.csv"]).parameters["N"] == 2
    assert read_options([], [f"{tmp_path}/a.csv", f"{tmp_path}/c.csv"]).parameters["N"].tolist() == [7, 8]
    assert read_options([], [f"{tmp_path}/a.csv", f"y={tmp_path}/b.csv"]).parameters["N"] == 3
    with pytest.raises(UsageError, match=r"3 rows and .* 2, so N could be either\n.*-d NAME="):
        read_options([], [f"{tmp_path}/a.csv", f"{tmp_path}/b.csv"])
    assert "N" in read_options(["N=2"], [f"{tmp_path}/a.csv", f"{tmp_path}/b.csv"]).parameters
    with pytest.raises(UsageError, match="x is given twice"):
        read_options(["x=1"], [f"{tmp_path}/a.csv"])


def test_what_expands_beyond_the_limit_stops_with_the_row(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "t.csv.gz", "wt") as file:
        file.write("a,b,c,d\n" + "0,0,0,0\n" * 200_000)
    with pytest.raises(ParameterError, match=r"row 100,000: the data up to here take 2 MB"):
        load_data(str(tmp_path / "t.csv.gz"), limit=2**21)
    np.savez_compressed(tmp_path / "t.npz", small=np.zeros(3), X=np.zeros((100_000, 4)))
    for text in (f"{tmp_path}/t.npz", f"X={tmp_path}/t.npz:X"):
        with pytest.raises(ParameterError, match=r"t.npz:X, row 65,53\d: the data"):
            load_data(text, limit=2**21)
    assert load_data(f"x={tmp_path}/t.npz:small", limit=2**21).values["x"].tolist() == [0, 0, 0]
    with gzip.open(tmp_path / "line.csv.gz", "wt") as file:
        file.write("a\n" + "1" * 2000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "LONGEST_LINE", 1000)
        with pytest.raises(ParameterError, match="row 1: the line does not end"):
            load_data(str(tmp_path / "line.csv.gz"))


SCORES = "name,group,score\nann,a,1.5\nbob,b,2.5\ncem,a,3.5\ndee,b,4.5\n"
BY_GROUP = """
[assume mean (mem (lambda (g) (normal 0 10)))]
for n in 1...N: [observe (normal (mean {group[n]}) 1) {score[n]}]
[sample (= (mean "a") (mean {group[1]}))]
"""


def run(folder: Path, text: str, *arguments: str) -> int:
    (folder / "p.vnt").write_text(text)
    (folder / "scores.csv").write_text(SCORES)
    return main(["run", str(folder / "p.vnt"), "--seed", "1", *arguments])


def test_a_program_runs_on_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, BY_GROUP, "-d", f"{tmp_path}/scores.csv") == 0
    assert capsys.readouterr() == ('(= (mean "a") (mean {group[1]})) = true\n', "")


def test_rows_that_loops_leave_unread_are_warned_of_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, BY_GROUP, "-d", f"{tmp_path}/scores.csv", "-p", "N=3", "--chains", "2") == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: the program reads 3 of the 4 rows of group",
        "warning: the program reads 3 of the 4 rows of score",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "for n in 1...2: [observe (normal 0 1) {y[n]}]\nfor n in 3...4: [observe (normal 0 1) {y[n]}]",
        "[observe (normal 0 1) {y[1]}]\nfor t in 2...4: [observe (normal 0 1) {y[t]}]",
        "for t in 2...4: [observe (normal {y[t - 1]} 1) {y[t]}]",
        "for t in 1...2: [observe (normal 0 1) {y[t]}]\n[sample {y}]",
        "[sample {y}]\nfor t in 1...2: [observe (normal 0 1) {y[t]}]",
        "for t in 1...4:\n  [observe (normal 0 1) {y[t]}]\n  [infer (mh default one 1)]",
        "[sample {y[2]}]",
    ],
)
def test_all_loops_of_a_program_are_counted_together(text: str, recwarn: pytest.WarningsRecorder) -> None:
    Venture(seed=1).execute(text, y=np.arange(4.0))
    assert not [str(warning.message) for warning in recwarn if "rows" in str(warning.message)]


def test_unread_rows_are_warned_of_in_python() -> None:
    with pytest.warns(VentureWarning, match="the program reads 3 of the 4 rows of y"):
        Venture(seed=1).execute("for t in 1...3:\n  [observe (normal 0 1) {y[t]}]\n  [sample 1]", y=[1.0, 2, 3, 4])


def test_what_is_given_and_not_used_is_warned_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "[sample (+ 1 {b})]", "-p", "a=1", "-p", "b=2", "-d", f"{tmp_path}/scores.csv") == 0
    assert capsys.readouterr().err.splitlines() == [
        "warning: the program uses nothing of -p a=1",
        f"warning: the program uses nothing of -d {tmp_path}/scores.csv",
    ]
    assert run(tmp_path, "[sample (lookup {score} 0)]", "-d", f"{tmp_path}/scores.csv") == 0
    assert capsys.readouterr().err == ""


def test_a_missing_parameter_is_answered_with_both_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "[sample {zzz}]") == 1
    assert "-p zzz=VALUE or -d zzz=FILE on the command line" in capsys.readouterr().err
    (tmp_path / "odd.csv").write_text("first name\nann\n")
    assert run(tmp_path, "[sample {first_name[1]}]", "-d", f"{tmp_path}/odd.csv") == 1
    said = capsys.readouterr().err
    assert said.count("the column 'first name' of") == 2
    assert said.startswith("note: ")


def test_a_path_may_hold_colons_and_equals_signs(folder: Path) -> None:
    odd = folder / "a:b=c.npy"
    np.save(odd, np.arange(2))
    assert load_data(f"x={odd}").values["x"].tolist() == [0, 1]


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


HEADER = b"\x93NUMPY\x01\x00\x10\x00{'descr': oops}\n "
DAMAGED = [
    ("-d x={}/header.npy", ["the parameter x: ", "header.npy cannot be read"]),
    ("-d x={}/header.npz", ["the parameter x: ", "array a of ", "header.npz cannot be read"]),
    ("-d x={}/no_array.npz:a", ["the parameter x: ", "a of ", "no_array.npz is no array"]),
    ("-d {}/no_array.npz", ["a of ", "no_array.npz is no array"]),
    ("-d x={}/complex.npz", ["the parameter x: ", "array z of ", "complex.npz is of complex128"]),
    ("-d {}/complex.npz", ["array z of ", "complex.npz is of complex128"]),
    ("-d x={}/complex.npy", ["the parameter x: ", "complex.npy is of complex128"]),
    ("-d x={}/ragged.csv", ["the parameter x: ", "ragged.csv, row 2: 1 cells"]),
    ("-d x={}/bytes.csv", ["the parameter x: ", "bytes.csv cannot be read"]),
    ("-d x={}/nowhere.csv", ["the parameter x: ", "there is no file", "nowhere.csv"]),
]


@pytest.mark.parametrize(("option", "says"), DAMAGED)
def test_a_damaged_file_is_named_with_its_parameter(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, says: list[str]
) -> None:
    (tmp_path / "header.npy").write_bytes(HEADER)
    for file, entry, content in (("header", "a.npy", HEADER), ("no_array", "a", b"text")):
        with zipfile.ZipFile(tmp_path / f"{file}.npz", "w") as archive:
            archive.writestr(entry, content)
    np.save(tmp_path / "complex.npy", np.ones(2, complex))
    np.savez(tmp_path / "complex.npz", z=np.ones(2, complex))
    (tmp_path / "ragged.csv").write_text("x,y\n1,2\n3\n")
    (tmp_path / "bytes.csv").write_bytes(b"x\n\xff\xfe\n")
    assert run(tmp_path, "[sample {x}]", *option.format(tmp_path).split()) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert len(said.splitlines()) <= 2
    assert [part for part in says if part not in said] == []


@pytest.mark.parametrize("text", ["x={}/t.txt", "{}/v.npy", "{}/t.csv:id", "{}/two.npz:X", "x={}/v.npy:X", "x"])
def test_a_malformed_option_is_wrong_usage(folder: Path, text: str) -> None:
    with pytest.raises(UsageError):
        load_data(text.format(folder))
