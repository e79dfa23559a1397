"""Proposers from Python: `Venture.compile`, `save_proposers`, `load_proposers`, and what draws say of a training."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from venture_lite import ProposerReport, Venture, VentureError, VentureWarning
from venture_lite.networks import fitting

PROGRAM = """
[assume x (mem (lambda (i) (tag 'x i (normal 0 2))))]
for n in 1...4: [observe (normal (x {i[n]}) 0.5) {y[n]}]
"""
KERNEL = "(repeat 20 (do (compiled_mh p x each 1) (collect (x 1))))"


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "LEAST_STEPS", 300)
    monkeypatch.setattr(fitting, "PASSES", 2)


def session(chains: int = 1) -> Venture:
    venture = Venture(seed=1, chains=chains)
    venture.execute(PROGRAM, i=[1, 1, 2, 3], y=[1.0, 2.0, 0.0, -1.0])
    return venture


@pytest.mark.thorough
def test_a_report_says_what_was_learned(capsys: pytest.CaptureFixture[str]) -> None:
    report = session().compile("p", "x", "each", worlds=300, hidden=8)
    assert isinstance(report, ProposerReport)
    assert not capsys.readouterr().out
    (kind,) = report
    assert (kind.sites, kind.blocks, kind.worlds, kind.frame) == (("x: (normal 0 2)",), 3, 300, "newton")
    assert kind.seconds_of_training > 0.0
    assert repr(report).startswith("proposer p: 3 x x: (normal 0 2); 300 worlds in ")
    ((port, rows),) = kind.ports
    assert port == "(normal (x {i[n]}) 0.5): normal"
    assert rows == 4.0 / 3.0


@pytest.mark.thorough
def test_the_prior_is_weighed_on_the_worlds_held_out() -> None:
    """In the frame of quantiles the prior is a standard normal, whose entropy is 1.419: five standard errors."""
    (kind,) = session().compile("p", "x", "one", worlds=2000, frame="prior")
    assert abs(kind.prior_loss - 0.5 * np.log(2.0 * np.pi * np.e)) < 5.0 * np.sqrt(0.5 / 600) + 0.05
    assert kind.gain == kind.prior_loss - kind.loss > 0.5


@pytest.mark.thorough
def test_proposers_go_through_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / 'p "1".npz'
    first, second = session(2), session(2)
    report = first.compile("p", "x", "one", worlds=100)
    first.save_proposers(path)
    assert second.load_proposers(path) == [report]
    assert first.infer(KERNEL)["(x 1)"].tobytes() == second.infer(KERNEL)["(x 1)"].tobytes()
    assert not capsys.readouterr().out


@pytest.mark.thorough
def test_draws_hold_what_a_training_came_to(tmp_path: Path) -> None:
    draws = session(2).infer(f"(do (compile p x one 'worlds 100) {KERNEL})")
    rows = [row for row in draws.statistics if row.kernel == "(compile p x one 'worlds 100)"]
    assert [row.chain for row in rows] == [0, 1]
    assert rows[0].details == rows[1].details
    assert rows[0].details["worlds"] == 100
    tree = draws.to_datatree()["kernel_stats"]
    found = tree["held-out loss of the prior"].sel(kernel=rows[0].kernel)
    assert found.values.tolist() == [rows[0].details["held-out loss of the prior"]] * 2
    assert tree["greatest log weight"].isnull().sum() == 2
    draws.save(tmp_path / "x.nc")
    assert "(compile p" not in str(draws.summary())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "p q"}, "'p q' is no name of the language"),
        ({"worlds": 3}, "N must be a whole number, 100 or more, got 3"),
        ({"worlds": "many"}, "unknown name many"),
        ({"hidden": 0}, "H must be a whole number, 1 or more, got 0"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(VentureError, match=message):
        session().compile(**{"name": "p", "scope": "x", "block": "one", **options})  # type: ignore[arg-type]


def test_an_empty_scope_gives_an_empty_report() -> None:
    with pytest.warns(VentureWarning, match="the scope nothing is empty"):
        assert not len(session().compile("p", "nothing", "one"))


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VentureError, match="No such file"):
        session().load_proposers(tmp_path / "none.npz")
