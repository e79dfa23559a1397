"""What a Python caller may supply for `{name}`: arrays of every kind, frames, series, and what is refused."""

from __future__ import annotations

import datetime
import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from venture_lite import Symbol, Venture
from venture_lite.errors import ParameterError

LOOP = "for n in 1...3: [predict {x[n]}]"


def values(x: Any, rows: int = 3) -> Any:
    """`{x[1]}`, `{x[2]}`, ... as the language has them."""
    venture = Venture(seed=1)
    venture.execute(f"all:\nfor n in 1...{rows}:\n  each: [predict {{x[n]}}]", x=x)
    return venture.report("each")


NUMBERS = np.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "x",
    [
        *[NUMBERS.astype(kind) for kind in ("f2", "f4", ">f8", "g", "i1", "u1", "<i2", ">i4", "u8", "b1", "O")[:9]],
        np.arange(9.0)[1::3] / 3 + np.array([2 / 3, 2 / 3, 2 / 3]),
        np.array([[1.0, 9.0], [2.0, 9.0], [3.0, 9.0]])[:, 0],
        np.array([3.0, 2.0, 1.0])[::-1],
        np.asfortranarray(NUMBERS),
        np.array([1, 2, 3], dtype=object),
        np.ma.array(NUMBERS, mask=False),
        pd.Series(NUMBERS, index=[7, 8, 9]),
        pd.Series([1, 2, 3], dtype="Int64"),
        pd.Index([1, 2, 3]),
        pd.Categorical([1, 2, 3]),
        pl.Series([1, 2, 3]),
        pl.Series([1, 2, 3]).cast(pl.Float32),
        range(1, 4),
        (1, 2.0, np.float32(3)),
        [np.int8(1), 2, 3],
        [Decimal(1), Fraction(2), 3],
    ],
    ids=repr,
)
def test_a_column_of_numbers_in_any_form(x: Any) -> None:
    assert values(x) == [1, 2, 3]


@pytest.mark.parametrize(
    "x",
    [
        np.array(["a", "b", "a"]),
        np.array(["a", "b", "a"], dtype=object),
        np.array(["a", "b", "a"], dtype=np.dtypes.StringDType()),
        pd.Series(["a", "b", "a"]),
        pd.Series(["a", "b", "a"], dtype="category"),
        pd.Series(["a", "b", "a"], dtype="string"),
        pl.Series(["a", "b", "a"]),
        pl.Series(["a", "b", "a"]).cast(pl.Categorical),
        ["a", "b", "a"],
    ],
    ids=repr,
)
def test_a_column_of_strings_in_any_form(x: Any) -> None:
    assert values(x) == ["a", "b", "a"]


@pytest.mark.parametrize(
    "x", [np.array([True, False]), pd.Series([True, False], dtype="boolean"), pl.Series([True, False])], ids=repr
)
def test_truth_stays_truth(x: Any) -> None:
    assert values(x, 2) == [True, False]
    assert Venture(seed=1).execute("[sample (if {x[1]} 'yes 'no)]", x=x) == ["yes"]


def test_single_values_of_every_kind() -> None:
    given = {
        "a": np.array(2.5), "b": np.float32(0.5), "c": np.int64(3), "d": np.bool_(True), "e": np.str_("text"),
        "f": Decimal("0.25"), "g": Fraction(1, 4), "h": [1, [2, 3]], "i": np.eye(2), "j": np.uint64(2**63),
    }  # fmt: skip
    program = " ".join(f"[sample {{{name}}}]" for name in given)
    *plain, matrix, large = Venture(seed=1).execute(program, **given)
    assert plain == [2.5, 0.5, 3, True, "text", 0.25, 0.25, [1, [2, 3]]]
    assert matrix.tolist() == np.eye(2).tolist()
    assert large == 2.0**63
    with pytest.raises(ParameterError, match="a is a single value and cannot be indexed"):
        Venture(seed=1).execute("[sample {a[1]}]", **given)


def test_integers_that_are_no_floats_stay_integers_beside_floats() -> None:
    assert values([2**53 + 1, 0.5, 1]) == [2**53 + 1, 0.5, 1]
    assert values([0.5, -(2**60) - 1, 1]) == [0.5, -(2**60) - 1, 1]


def test_integers_beyond_64_bits_are_floats() -> None:
    assert values(np.array([2**64 - 1, 1, 2], dtype=np.uint64)) == [2.0**64, 1, 2]


# ------------------------------------------------------------------------------------------------------ frames


def frame(kind: str) -> Any:
    columns = {"x": [1.0, 2.0, 3.0], "group": ["a", "b", "a"], "hit": [True, False, True]}
    return pd.DataFrame(columns, index=[5, 6, 7]) if kind == "pandas" else pl.DataFrame(columns)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_the_columns_of_a_frame_are_parameters(kind: str) -> None:
    venture = Venture(seed=1)
    program = "all:\nfor n in 1...N:\n  each: [predict (list {x[n]} {group[n]} {hit[n]})]"
    venture.execute(program, data=frame(kind), N=3)
    assert venture.report("each") == [[1, "a", True], [2, "b", False], [3, "a", True]]
    assert venture.infer("{x[2]}", data=frame(kind)) == 2
    assert venture.sample("(+ {x[2]} 1)", data=frame(kind)) == 3


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_frame_of_numbers_is_a_matrix_by_its_own_name(kind: str) -> None:
    program = "for n in 1...3: [sample {data[n]}]"
    (rows,) = Venture(seed=1).execute(program, data=frame(kind)[["x", "hit"]])
    assert [row.tolist() for (row,) in rows] == [[1, 1], [2, 0], [3, 1]]
    says = "data is no matrix: its column group holds other things than numbers"
    with pytest.raises(ParameterError, match=says) as caught:
        Venture(seed=1).execute(program, data=frame(kind)[["hit", "group"]])
    assert "{hit[n]}" in str(caught.value)


def test_a_name_with_two_meanings_is_refused_where_it_is_used() -> None:
    venture, other = Venture(seed=1), pd.DataFrame({"x": [9], "z": [8]})
    assert venture.execute("[sample {z[1]}] [sample {group[1]}]", a=frame("pandas"), b=other) == [8, "a"]
    says = re.escape("x has two meanings: the column x of a and the column x of b")
    with pytest.raises(ParameterError, match=says) as caught:
        venture.execute("[sample {x[1]}]", a=frame("pandas"), b=other)
    assert str(caught.value).startswith("<input>:1:10")
    with pytest.raises(ParameterError, match="the column x of a and the parameter x"):
        venture.execute("[sample {x[1]}]", a=other, x=3)


def test_a_column_whose_name_is_none_of_the_language_is_told_of() -> None:
    data = pd.DataFrame({"petal length": [1.0], 7: [2.0], "größe": [3.0]})
    assert Venture(seed=1).execute("[sample {größe[1]}]", d=data) == [3.0]
    with pytest.raises(ParameterError, match="needs a parameter petal_length") as caught:
        Venture(seed=1).execute("[sample {petal_length[1]}]", d=data)
    assert "the column 'petal length' of d is no name of the language: rename it" in str(caught.value)


def test_a_column_that_no_program_could_read_hurts_only_where_it_is_used() -> None:
    data = pd.DataFrame({"x": [1.0, 2.0], "day": pd.to_datetime(["2020-01-01", "2020-01-02"])})
    venture = Venture(seed=1)
    assert venture.execute("[sample {x[2]}]", d=data) == [2.0]
    with pytest.raises(ParameterError, match="day holds dates"):
        venture.execute("[sample {day[2]}]", d=data)


# ------------------------------------------------------------------------------------------------ missing values


@pytest.mark.parametrize(
    "x",
    [
        np.array([1.0, np.nan, 3.0]),
        np.array([1.0, np.nan, 3.0], dtype=np.float16),
        np.ma.array([1, 2, 3], mask=[False, True, False]),
        np.ma.array(["a", "b", "c"], mask=[False, True, False]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1.0, None, 3], dtype="Float64"),
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series(["a", None, "c"]),
        pd.Series(["a", None, "c"], dtype="category"),
        pl.Series([1, None, 3]),
        pl.Series([1.0, float("nan"), 3]),
        pl.Series([True, None, False]),
        pl.Series(["a", None, "c"]),
        [1.0, None, 3.0],
        [1.0, math_nan := float("nan"), 3.0],
        [1.0, pd.NA, 3.0],
    ],
    ids=repr,
)
def test_a_missing_value_is_refused_by_name_and_row_with_how_to_drop_it(x: Any) -> None:
    venture = Venture(seed=1)
    with pytest.raises(ParameterError, match="the value of x in row 2 is missing") as caught:
        venture.execute(LOOP, x=x)
    assert "(n = 2)" in str(caught.value)
    assert "drop the row" in str(caught.value)
    assert venture.list_directives() == []
    assert venture.execute("[sample {x[3]}]", x=x) != [None]


@pytest.mark.parametrize(
    "x",
    [
        np.array([[1.0, 2.0], [3.0, np.nan]]),
        np.ma.array([[1, 2], [3, 4]], mask=[[False, False], [False, True]]),
        pd.DataFrame({"a": [1, 3], "b": pd.array([2, None], dtype="Int64")}),
        pl.DataFrame({"a": [1, 3], "b": [2.0, None]}),
    ],
    ids=repr,
)
@pytest.mark.parametrize("program", ["for n in 1...2: [predict {x[n]}]", "[predict {x}]", "[predict {x[2, 2]}]"])
def test_a_missing_value_of_a_matrix_is_refused_by_row_and_column(program: str, x: Any) -> None:
    with pytest.raises(ParameterError, match="the value of x in row 2, column 2 is missing"):
        Venture(seed=1).execute(program, x=x)


def test_a_missing_value_of_a_dictionary_is_refused_by_its_key() -> None:
    assert Venture(seed=1).execute("[sample (lookup {d} 'b)] [sample {d}]", d={"a": 1, Symbol("b"): [2, 3]})[0] == [
        2,
        3,
    ]
    with pytest.raises(ParameterError, match='the value of d in entry "b" is missing'):
        Venture(seed=1).execute("[sample {d}]", d={"a": 1, "b": None})


# ---------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("x", "says"),
    [
        (np.array([1j]), "x holds complex numbers"),
        (np.array([b"a"]), "x holds bytes"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "x holds dates"),
        (np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), "x holds records"),
        (pl.Series([datetime.date(2020, 1, 1)]), "x holds dates"),
        ({1, 2}, "x is a set"),
        (object(), "x is a object"),
        (iter([1]), "x is a list_iterator"),
        ([b"a"], "the value of x in row 1 is a bytes"),
        ([object()], "the value of x in row 1 is a object"),
        ([datetime.date(2020, 1, 1)], "the value of x in row 1 is a date"),
        (1j, "x is a complex"),
    ],
)
def test_what_the_language_has_no_values_for_is_refused(x: Any, says: str) -> None:
    venture = Venture(seed=1)
    with pytest.raises(ParameterError, match=says) as caught:
        venture.execute("[predict {x[1]}]", x=x)
    assert str(caught.value).startswith("<input>:1:")
    assert venture.list_directives() == []


@pytest.mark.parametrize("value", [object(), np.array([1j]), None, float("nan"), {1}])
@pytest.mark.parametrize("method", ["observe", "force"])
def test_an_observed_value_that_is_none_of_the_language_is_refused(method: str, value: Any) -> None:
    venture = Venture(seed=1)
    venture.assume("x", "(normal 0 1)")
    with pytest.raises(ParameterError, match="value"):
        getattr(venture, method)("x", value)
    assert venture.log_score() is not None


def test_the_trace_owns_a_copy_of_frames_and_series() -> None:
    data = pd.DataFrame({"y": np.ones(50)})
    series = pl.Series("z", np.ones(50))
    venture = Venture(seed=1)
    venture.execute(
        "for n in 1...50: [observe (normal 0 1) {y[n]}] for n in 1...50: [observe (normal 0 2) {z[n]}]",
        d=data,
        z=series,
    )
    before = venture.log_score()
    data["y"].to_numpy().setflags(write=True)
    data.loc[:, "y"] = 7.0
    assert venture.log_score() == before


ZEROS = -math.log(2 * math.pi) - 0.5 * ((3 - math.pi) ** 2 + (3 + math.pi) ** 2)
"""The log density of two data 3 around pi and around -pi."""


@pytest.mark.parametrize(
    ("program", "given", "expected"),
    [
        ("[observe (normal (atan2 {A} -1) 1) 3] [observe (normal (atan2 {B} -1) 1) 3]", {"A": 0.0, "B": -0.0}, ZEROS),
        (
            "[observe (normal (if true (atan2 -0.0 -1) 0) 1) 3] [observe (normal (if true (atan2 0.0 -1) 0) 1) 3]",
            {},
            ZEROS,
        ),
        (
            "[observe (normal (if (is_boolean (first {A})) 1 0) 1) 3] "
            "[observe (normal (if (is_boolean (first {B})) 1 0) 1) 3]",
            {"A": [1, 2], "B": [True, 2]},
            -math.log(2 * math.pi) - 0.5 * (3**2 + 2**2),
        ),
    ],
)
def test_expressions_whose_values_are_equal_and_not_the_same_keep_their_own(
    program: str, given: dict[str, Any], expected: float
) -> None:
    v = Venture(seed=1)
    v.execute(program, **given)
    assert v.log_score() == pytest.approx(expected, rel=1e-12)
