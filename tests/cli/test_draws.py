"""Draws: shapes, kinds of values, merging, summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from venture_lite.draws.calls import by_procedure
from venture_lite.draws.draws import Draws, DrawsBuilder, KernelStatistics
from venture_lite.values import Symbol


def one_chain(statistics: Sequence[KernelStatistics] = (), **columns: Sequence[Any]) -> Draws:
    builder = DrawsBuilder()
    for name, values in columns.items():
        for value in values:
            builder.add(name, value)
    builder.statistics.extend(statistics)
    return builder.finish()


def noise(count: int, seed: int) -> list[float]:
    return np.random.default_rng(seed).normal(size=count).tolist()


@pytest.mark.parametrize(
    ("values", "kind", "shape"),
    [
        ([True, False, True], "b", (1, 3)),
        ([1, 2, 3], "i", (1, 3)),
        ([1, 2.5, True], "f", (1, 3)),
        ([np.array([1.0, 2.0]), np.array([3.0, 4.0])], "f", (1, 2, 2)),
        ([np.eye(3)] * 4, "f", (1, 4, 3, 3)),
        ([(1, 2), (3, 4)], "i", (1, 2, 2)),
        ([Symbol("a"), Symbol("b")], "O", (1, 2)),
        (["a", "b"], "O", (1, 2)),
        ([1, "b"], "O", (1, 2)),
        ([(1,), (1, 2)], "O", (1, 2)),
        ([1, (1, 2)], "O", (1, 2)),
        ([np.zeros(2), np.zeros(3)], "O", (1, 2)),
    ],
)
def test_a_column_is_numeric_where_all_draws_have_one_numeric_shape(values: list[Any], kind: str, shape: Any) -> None:
    draws = one_chain(x=values)
    assert draws["x"].dtype.kind == kind
    assert draws["x"].shape == shape


def test_other_values_come_as_python_values() -> None:
    draws = one_chain(s=[Symbol("red"), Symbol("blue")], l=[(1,), (1, 2)])
    assert draws["s"].tolist() == [["red", "blue"]]
    assert draws["l"].tolist() == [[[1], [1, 2]]]


def test_draws_do_not_share_memory_with_the_values_collected() -> None:
    value = np.zeros(2)
    draws = one_chain(x=[value])
    value[0] = 1.0
    assert draws["x"].tolist() == [[[0.0, 0.0]]]


def test_chains_are_stacked_and_their_statistics_numbered() -> None:
    row = KernelStatistics("(mh default one 1)", 10, 5, 10, 0.1)
    draws = Draws.merge([one_chain([row], x=[1.0, 2.0]), one_chain([row], x=[3.0, 4.0])])
    assert draws["x"].tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert [row.chain for row in draws.statistics] == [0, 1]


def test_variables_and_chains_may_differ_in_length() -> None:
    draws = Draws.merge([one_chain(x=[1.0, 2.0], y=[1.0]), one_chain(x=[3.0], y=[2.0])])
    assert draws["y"].shape == (2, 1)
    assert [chain.tolist() for chain in draws["x"]] == [[1.0, 2.0], [3.0]]
    assert draws.summary().left_out == ("x",)


def test_uneven_chains_are_cut_where_most_draws_are_kept() -> None:
    even, rest = Draws.merge([one_chain(x=[1.0, 2.0], y=[1.0]), one_chain(x=[3.0])]).evened()
    assert even.numbers == (0,)
    assert {name: values.tolist() for name, values in even.items()} == {"x": [[1.0, 2.0]], "y": [[1.0]]}
    assert rest.lengths() == {1: 1}
    even, rest = Draws.merge([one_chain(x=[1.0] * length) for length in (250, 300, 120)]).evened()
    assert even.numbers == (0, 1)
    assert even["x"].shape == (2, 250)
    assert rest.lengths() == {1: 50, 2: 120}


@pytest.mark.parametrize("seed", range(20))
def test_even_chains_and_the_rest_are_all_draws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 6, size=4)
    chains = [{"x": np.arange(n) + 10.0 * k, "y": np.arange(n // 2) > 1} for k, n in enumerate(lengths)]
    even, rest = Draws(chains, adapting=[{"x": 2}] * 4).evened()
    for number, chain in enumerate(chains):
        for name, values in chain.items():
            place = even.numbers.index(number) if number in even.numbers and name in even else None
            first = even.by_chain(name)[place] if place is not None else np.empty(0)
            last = rest.by_chain(name)[number] if name in rest else np.empty(0)
            assert [*first.tolist(), *last.tolist()] == values.tolist()
    kept = sum(values.size for values in even.values())
    assert kept == max(count * int(n + n // 2) for count, n in enumerate(sorted(lengths)[::-1], 1))


def test_a_variable_missing_from_one_chain_is_no_error() -> None:
    draws = Draws.merge([one_chain(x=[1.0]), one_chain()])
    assert [len(chain) for chain in draws["x"]] == [1, 0]


def test_an_unknown_variable_names_the_nearest() -> None:
    with pytest.raises(KeyError, match="did you mean slope"):
        one_chain(slope=[1.0])["slop"]


def test_draws_are_a_mapping() -> None:
    draws = one_chain(a=[1.0], b=[2.0])
    assert list(draws) == ["a", "b"]
    assert "a" in draws
    assert {name: values.tolist() for name, values in draws.items()} == {"a": [[1.0]], "b": [[2.0]]}
    assert repr(draws) == "Draws(a (1, 1), b (1, 1))"
    assert not one_chain()


def test_the_summary_holds_moments_interval_and_diagnostics() -> None:
    draws = Draws.merge([one_chain(x=noise(500, seed)) for seed in range(4)])
    (row,) = draws.summary().rows
    assert row.mean == pytest.approx(np.mean(draws["x"]))
    assert row.sd == pytest.approx(np.std(draws["x"], ddof=1))
    assert (row.low, row.high) == pytest.approx(tuple(np.quantile(draws["x"], [0.05, 0.95])))
    assert row.ess_bulk > 1000
    assert row.r_hat < 1.01
    assert not draws.summary().warnings
    assert "4 chains of 500 draws" in str(draws.summary())


def test_coordinates_are_counted_from_0_and_cut_in_print_only() -> None:
    rng = np.random.default_rng(0)
    summary = one_chain(w=list(rng.normal(size=(400, 15))), S=list(rng.normal(size=(400, 2, 2)))).summary()
    names = [row.name for row in summary.rows]
    assert names[:2] == ["w[0]", "w[1]"]
    assert names[-1] == "S[1, 1]"
    assert len(names) == 19
    assert "w[11]" in str(summary)
    assert "w[12]" not in str(summary)
    assert "3 more coordinates not shown" in str(summary)


def test_of_many_calls_the_worst_are_printed_after_all_else() -> None:
    """Of thirty calls two are walks, one has chains apart; ten are constant."""
    rng = np.random.default_rng(0)
    values = {f"(theta {key})": rng.normal(size=400) for key in range(30)}
    values |= {f"(z {key} 'red)": np.ones(400) for key in range(10)}
    values["(theta 7)"] = rng.normal(size=400).cumsum()
    values["(theta 21)"] = 0.9 * rng.normal(size=400) + 2 * (np.arange(400) > 200)
    values |= {"mu": rng.normal(size=400), "(+ mu 1)": rng.normal(size=400), "(log_score)": rng.normal(size=400)}
    summary = one_chain(**{name: list(column) for name, column in values.items()}).summary()
    names = [cells[0] for cells in summary.cells()[1:]]
    assert names[:3] == ["mu", "(+ mu 1)", "(log_score)"]
    assert set(names[3:5]) == {"(theta 7)", "(theta 21)"}
    assert len(names) == 3 + 12
    told = str(summary)
    assert "(theta ...), (z ...): 28 more rows not shown, 10 of all 40 constant; over all 40, ess_bulk" in told
    assert "every row: summary().everything(), or venture run --json" in told
    every = summary.everything().splitlines()
    assert [line.split("  ")[0] for line in every[1:]] == list(values)
    assert len(summary.as_dict()) == len(values) == 43


def test_calls_of_one_procedure_are_named_together() -> None:
    names = ["mu", *(f"(z {t})" for t in range(1, 96)), "(theta 1)", "(theta 2)"]
    assert by_procedure(names) == ["mu", "(z 1) ... (z 95) (95 calls of z)", "(theta 1)", "(theta 2)"]
    few = one_chain(**{f"(z {key})": [1.0] * 50 for key in range(24)}).summary()
    assert "(z 23)" in str(few)
    assert "not shown" not in str(few)
    many = one_chain(**{f"(z {key})": [1.0] * 50 for key in range(25)}).summary()
    assert "(z ...): 22 more rows not shown, 25 of all 25 constant" in str(many)


def test_undefined_diagnostics_print_as_a_dash() -> None:
    summary = one_chain(k=[3] * 10, few=[1.0, 2.0, 3.0]).summary()
    assert "nan" not in str(summary)
    assert [line.split()[-3:] for line in str(summary).splitlines()[1:3]] == [["-"] * 3] * 2
    assert summary.as_dict()["k"]["r_hat"] is None
    assert not summary.warnings


def test_a_stuck_kernel_is_warned_of() -> None:
    stuck = KernelStatistics("(mh w all 10)", 100, 0, 100, 0.1)
    slow = KernelStatistics("(mh v all 10)", 99, 0, 99, 0.1)
    (warning,) = one_chain([stuck, slow]).summary().warnings
    assert warning == (
        "(mh w all 10) accepted none of its 100 transitions: its block did not move; 'drift, gibbs, or smaller blocks"
    )
    moving = KernelStatistics("(mh w all 10)", 100, 3, 100, 0.1)
    (warning,) = Draws.merge([one_chain([moving]), one_chain([stuck])]).summary().warnings
    assert warning.startswith("(mh w all 10) accepted none of its 100 transitions in chain 1: ")


def test_chains_that_disagree_and_few_effective_draws_are_warned_of() -> None:
    apart = Draws.merge([one_chain(x=noise(500, 0)), one_chain(x=[3 + value for value in noise(500, 1)])])
    warnings = apart.summary().warnings
    assert any(warning.startswith("R-hat is above 1.01 for x") for warning in warnings)
    walk = one_chain(x=np.cumsum(noise(300, 0)).tolist())
    assert any("effective sample size is below 100" in warning for warning in walk.summary().warnings)


def test_variables_without_a_summary_are_named() -> None:
    assert "not summarized (not numbers of one shape): s" in str(one_chain(s=["a"], x=[1.0]).summary())


def test_very_many_variables_without_a_summary_are_one_line() -> None:
    """A thousand calls that hold symbols, and names besides."""
    names = [f"(step {t})" for t in range(1000)]
    text = str(one_chain(**{name: ["a"] for name in [*names, *(f"s{n}" for n in range(20))]}).summary())
    assert "(step 0) ... (step 999) (1,000 calls of step), s0, s1" in text
    assert text.endswith(" s10 and 9 more")


def test_draws_that_are_all_marked_are_not_said_to_be_no_numbers() -> None:
    chain = {"x": np.array([1.0, 2.0]), "s": np.array(["a", "b"], dtype=object)}
    draws = Draws([chain] * 2, adapting=[{"x": 2, "s": 2}] * 2)
    what = "not counted: 2 warm-up draws a chain, all that there are"
    assert str(draws.summary()) == what


def test_a_table_fits_the_width_that_there_is() -> None:
    name = "(lookup weights 3)"
    summary = one_chain(**{name: noise(100, 1), "x": noise(100, 2)}).summary()
    assert summary.table(200) == summary.table()
    assert max(map(len, summary.table(76).splitlines())) <= 76
    assert "(lookup weig..." in summary.table(76)
    narrow = summary.table(50).splitlines()
    assert max(map(len, narrow)) <= 50
    assert [line.split()[0] for line in narrow] == ["variable", "(lookup", "x", "variable", "(lookup", "x"]
    assert narrow[3].split() == ["variable", "ess_bulk", "ess_tail", "r_hat"]
