"""`(plot ...)`: text for a terminal, pictures where matplotlib is installed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture, VentureError
from venture_lite.draws import pictures, plots
from venture_lite.draws.draws import Draws
from venture_lite.session.auto.running import AutoRun
from venture_lite.shell.cli import main
from venture_lite.shell.painter import Painter

MODEL = "[assume mu (normal 0 1)] [assume b (flip)] [observe (normal mu 1) 1] "
LOOP = MODEL + "[infer (repeat 200 (do (mh default one 2) (plot mu b (labelled (list mu) pair) 'red)))]"


def of(**columns: object) -> Draws:
    return Draws([{name: np.asarray(column) for name, column in columns.items()}])


def rows_of(text: str) -> list[str]:
    return text.splitlines()[1:]


def test_plot_keeps_draws_apart_from_the_collected_ones() -> None:
    draws = Venture(seed=1, chains=2).execute(LOOP.replace("(plot", "(collect mu) (plot"))[-1]
    assert draws.names == ("mu",)
    assert draws.plotted.names == ("mu", "b", "pair", "'red")
    assert draws.plotted["mu"].shape == (2, 200)
    assert (draws.plotted["mu"] == draws["mu"]).all()


def test_a_program_without_plot_has_none() -> None:
    assert Venture(seed=1).execute(MODEL + "[infer (collect mu)]")[-1].plotted is None


def test_plot_needs_an_expression() -> None:
    with pytest.raises(VentureError, match=r"plot is written \(plot EXPR \.\.\.\)"):
        Venture(seed=1).infer("(plot)")


def test_a_histogram_has_its_mass_where_the_draws_are() -> None:
    values = np.concatenate([np.zeros(900) + np.linspace(0, 0.1, 900), np.linspace(0.9, 1.0, 100)])
    left = [line.ljust(38)[2:38] for line in rows_of(plots.text(of(x=values)))[:-1]]
    filled = np.array([[sign != " " for sign in line] for line in left])
    assert filled[:, :3].all()
    assert not filled[:, 10:25].any()
    assert filled[-1, -4:].all()
    assert not filled[:-1, -4:].any()


def test_a_trace_rises_with_the_draws() -> None:
    lines = rows_of(plots.text(of(x=np.linspace(0.0, 1.0, 500)), plain=True))[:-1]
    starred = [line[40:].find("*") for line in lines]
    assert starred == sorted(starred, reverse=True)
    assert starred[0] > starred[-1]


def test_the_ends_of_the_axes_are_labelled() -> None:
    text = plots.text(of(x=np.array([0.5, 1.25, 2.75, 7.5])))
    assert "x: 4 draws, mean 3, sd 3.142" in text
    *_, axis = text.splitlines()
    assert axis.split() == ["0.5", "7.5", "1", "4"]


def test_what_has_few_values_has_bars() -> None:
    assert rows_of(plots.text(of(b=[True, True, True, False]), plain=True)) == [
        "  false  " + "#" * 21 + " " * 42 + "   25.0%", "   true  " + "#" * 63 + "   75.0%",
    ]  # fmt: skip
    assert [line.split()[0] for line in rows_of(plots.text(of(k=[10, 9, 9, 10])))] == ["9", "10"]


def test_other_values_are_counted() -> None:
    column = np.empty(3, dtype=object)
    column[:] = ["red", [1, 2], "red"]
    assert [line[2:].strip().split("  ")[0] for line in rows_of(plots.text(of(s=column)))] == ["red", "(1 2)"]
    many = np.array([f"v{at}" for at in range(30)], dtype=object)
    assert plots.text(of(s=many)).endswith("and 10 other values")


def test_one_draw_is_its_value_and_a_long_vector_its_profile() -> None:
    assert plots.text(of(x=[0.5])) == "x = 0.5 (one draw)"
    assert plots.text(of(w=[[1.0, 2.0]])) == "w[0] = 1 (one draw)\nw[1] = 2 (one draw)"
    assert plots.text(of(w=[np.arange(50.0)])).startswith("w: one draw of 50 numbers, by position")


def test_values_that_are_not_finite_are_told() -> None:
    assert "4 draws, 1 not finite" in plots.text(of(x=[0.0, 0.25, np.inf, 1.5]))
    assert plots.text(of(x=[np.nan, np.nan])) == "x: 2 draws, 2 not finite"
    assert plots.text(of(x=[0.5, 0.5])) == "x: 2 draws, all 0.5"


def test_a_long_vector_is_cut() -> None:
    text = plots.text(of(w=np.random.default_rng(1).normal(size=(100, 9))))
    assert "w[5]: " in text
    assert "w[6]: " not in text
    assert text.endswith("w: 3 more coordinates not shown")


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("plain", [False, True])
def test_a_plot_keeps_to_its_width(width: int, plain: bool) -> None:
    rng = np.random.default_rng(1)
    draws = of(x=rng.normal(size=999) * 1e6, b=rng.random(99) < 0.5, w=rng.normal(size=(50, 2)))
    text = plots.text(draws, width, plain)
    assert max(map(len, text.splitlines())) <= width
    assert text.isascii() == plain


def test_an_output_that_cannot_show_blocks_gets_ascii() -> None:
    assert plots.needs_plain("latin-1")
    assert plots.needs_plain(None)
    assert not plots.needs_plain("utf-8")


def test_run_shows_plots_and_writes_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    program = tmp_path / "p.vnt"
    program.write_text(LOOP + LOOP.partition("] ")[0].replace("mu", "nu") + "][infer (plot nu)]")
    assert main(["run", str(program), "--seed", "1", "--plots", str(tmp_path / "out")]) == 0
    shown, said = capsys.readouterr()
    assert "mu: 200 draws, mean" in shown
    assert "(one draw)" in shown
    assert "plot-2.png" in said
    assert (tmp_path / "out" / "plot-1.png").read_bytes().startswith(b"\x89PNG")


def test_draws_of_auto_are_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    program = tmp_path / "p.vnt"
    program.write_text("[assume x (flip 0.5)] [observe (flip (if x 0.7 0.4)) true]")
    plots_of = ["--seed", "1", "--plots", str(tmp_path)]
    assert main(["run", str(program), "--auto", "--draws", "100", *plots_of]) == 0
    assert "picture written to" in capsys.readouterr().err
    assert (tmp_path / "plot-1.png").read_bytes().startswith(b"\x89PNG")
    # of other draws nothing was asked for
    program.write_text("[assume x (flip 0.5)] [infer (repeat 10 (do (gibbs default one 1) (collect x)))]")
    assert main(["run", str(program), *plots_of]) == 0
    assert "picture written to" not in capsys.readouterr().err


def test_json_names_the_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    program = tmp_path / "p.vnt"
    program.write_text(LOOP)
    assert main(["run", str(program), "--seed", "1", "--json", "--plots", str(tmp_path)]) == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert last["picture"] == str(tmp_path / "plot-1.png")


def test_a_picture_that_cannot_be_written_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    program = tmp_path / "p.vnt"
    program.write_text(LOOP)
    assert main(["run", str(program), "--seed", "1", "--plots", str(program)]) == 1
    assert "cannot write" in capsys.readouterr().err


def test_a_figure_has_a_row_for_each_quantity() -> None:
    pytest.importorskip("matplotlib")
    draws = Venture(seed=1, chains=2).execute(LOOP)[-1]
    axes = draws.plotted.figure().axes
    assert [axis.get_title(loc="left") for axis in axes[::2]] == ["mu", "b", "pair[0]", "'red"]
    assert len(axes[1].lines) == 2


def test_pictures_without_matplotlib_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(pictures, "is_available", lambda: False)
    program = tmp_path / "p.vnt"
    program.write_text(LOOP)
    assert main(["run", str(program), "--plots", str(tmp_path)]) == 1
    assert "venture-lite[plots]" in capsys.readouterr().err


def noting(method: Callable[..., Any], seen: list[str]) -> Callable[..., Any]:
    """The method, of which each call is noted."""

    def noted(*arguments: Any) -> Any:
        seen.append(method.__name__)
        return method(*arguments)

    return noted


class TestPainter:
    """A process that makes pictures. Seen to fail where a process that is gone is waited for, where what was begun is
    given for other draws, and where nothing is begun."""

    def test_makes_one_after_the_other(self) -> None:
        pytest.importorskip("matplotlib")
        painter = Painter()
        try:
            for draws in (of(x=np.linspace(0.0, 1.0, 50)), of(x=np.zeros(5))):
                assert painter.png(draws) == pictures.png(draws)
        finally:
            painter.end()

    def test_makes_what_is_asked_for_whatever_was_begun(self) -> None:
        pytest.importorskip("matplotlib")
        painter, (draws, others) = Painter(), (of(x=np.linspace(0.0, 1.0, 50)), of(x=np.zeros(5)))
        try:
            for begun, asked in ((draws, draws), (draws, others), (draws, draws)):
                painter.begin(begun)
                assert painter.png(asked) == pictures.png(asked)
        finally:
            painter.end()

    def test_may_be_gone(self) -> None:
        pytest.importorskip("matplotlib")
        for is_begun in (False, True):
            painter, draws = Painter(), of(x=np.arange(5.0))
            if is_begun:
                painter.begin(draws)
            if painter._connection is not None:
                painter._process.kill()
                painter._process.join()
            assert painter.png(draws) == pictures.png(draws)
            painter.end()

    def test_begins_where_auto_looks_at_other_paths(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        seen: list[str] = []
        for owner, name in ((Painter, "begin"), (Painter, "png"), (AutoRun, "_compare")):
            monkeypatch.setattr(owner, name, noting(getattr(owner, name), seen))
        program = tmp_path / "p.vnt"
        program.write_text("[assume x (normal 0 1)] [observe (normal x 1) 1.0]")
        assert main(["run", str(program), "--auto", "--draws", "50", "--plots", str(tmp_path)]) == 0
        assert (tmp_path / "plot-1.png").read_bytes().startswith(b"\x89PNG")
        assert seen == ["begin", "_compare", "png"]

    def test_cannot_write_to_a_file_that_stands_for_a_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(VentureError, match="cannot write"):
            pictures.write(b"", tmp_path / "file" / "c.png")


@pytest.mark.filterwarnings("error")
def test_draws_that_span_more_than_the_floats_have_a_plot() -> None:
    near, most = np.linspace(-0.999, 1.0, 200) ** 3, 2.0**1023
    text = plots.text(of(x=most * near))
    assert "sd 3.4" in text
    assert "8.988e+307                              ⣠⠞" in text
    assert "▃▃▃▄▃▃▄▄▅▅▅▆████████▆▅▅▅▄▄▃▃▄▃▃  -8.962e+307 ⡴⠋" in text
    assert "by position" in plots.text(of(v=[most * near]))


@pytest.mark.filterwarnings("error")
def test_a_figure_says_what_has_no_axis() -> None:
    pytest.importorskip("matplotlib")
    from venture_lite.draws.pictures import png

    assert png(of(x=[-1.7e308, 0.5, 1.7e308], y=[1.0, 2.5, 3.0]))
    assert png(of(x=[1e307, 0.5, 2.0]))
