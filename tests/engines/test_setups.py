"""Set-ups live with the trace: kept from one `infer` to the next, made anew where the program or its data change, right
after everything that a session can do in between, and no larger than the data."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.engines.data_and_sessions import LOGISTIC, classes, venture
from venture_lite import Venture, VentureError
from venture_lite.audit.invariants import check
from venture_lite.engines.firefly.firefly import Firefly
from venture_lite.engines.firefly.firefly_bounds import bright_probability
from venture_lite.trace import kept as kept_module
from venture_lite.trace.kept import SetUps

FIREFLY = "(flymc w all auto 'map 0.05 'drift 0.2 5)"
PROXY = "(subsampled_mh w all 50 0.1 'drift 0.2 'proxy 5)"
SCALED = "(mala w all 0.8 'precondition 5)"
KERNELS = (FIREFLY, "(flymc w all auto 'untuned 0.2 'mala 0.1 5)",
           "(flymc w all auto 'map 0.1 'mala 1 'precondition 5)", PROXY,
           "(subsampled_mh w all 50 0.1 'drift 1 'precondition 'proxy 5)", SCALED,
           "(hmc w all 0.5 3 'precondition 5)")  # fmt: skip
MODEL = LOGISTIC.replace("[assume y", "[assume b (scope_include 'b 0 (normal 0 1))] [assume y").replace(
    "(linear_logistic w x)", "(logistic (+ b (dot w x)))"
)


def details(v: Venture, kernel: str) -> dict[str, float]:
    return dict(v.infer(kernel).statistics[-1].details)


def _assert_firefly_is_right(firefly: Firefly) -> None:
    firefly.refresh()
    bright = firefly.brightness.bright
    found, _ = firefly._query(firefly.linear.present(), np.arange(firefly.count), "set-up")
    assert firefly._excess[bright] == pytest.approx(found[bright], abs=1e-9)
    assert np.array_equal(firefly.theta, firefly.linear.present())
    assert (bright_probability(found[bright]) > 0).all()
    whole = np.concatenate([firefly.brightness.bright, firefly.brightness.dark])
    assert np.array_equal(np.sort(whole), np.arange(firefly.count))


def regression(**others: Any) -> Venture:
    return venture(MODEL, **classes(300), **others)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_set_up_is_made_once(kernel: str) -> None:
    v = regression()
    first, second = details(v, kernel), details(v, kernel)
    assert first["set-ups made"] >= 1
    assert "set-ups made" not in second
    assert second["set-ups kept"] == first["set-ups made"]
    assert not second.get("queries of set-up")
    assert not second.get("rows of expansions")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (FIREFLY, "(flymc w all auto 'map 0.3 'mala 0.1 'explicit 0.5 5)"),
        (PROXY, "(subsampled_mh w all 20 0 'drift 0.1 'proxy 'audit 1 5)"),
        (SCALED, "(hmc w all 0.3 3 'precondition 5)"),
    ],
)
def test_steps_and_tolerances_have_no_part_in_it(one: str, other: str) -> None:
    v = regression()
    v.infer(one)
    assert details(v, other)["set-ups kept"] == 1


def test_bounds_and_tunings_have_states_of_their_own() -> None:
    v = regression()
    for kernel in (FIREFLY, FIREFLY.replace("'map", "'untuned"), FIREFLY.replace("0.2 5", "0.2 'precondition 5")):
        assert details(v, kernel)["set-ups made"] == 1
    assert details(v, FIREFLY)["set-ups kept"] == 1


def test_a_mode_serves_all_that_centre_there() -> None:
    """The search reads all rows several times; what comes after it, once for the sum and once for the brightness."""
    v = regression()
    v.infer(PROXY)
    assert details(v, FIREFLY)["queries of set-up"] == 2 * 300


def test_actions_of_one_program_share_a_brightness() -> None:
    v = regression()
    draws = v.infer(f"(cycle ({FIREFLY} {FIREFLY.replace('0.05', '0.1')}) 20)")
    assert "queries of other kernels' moves" not in draws.statistics[1].details
    assert draws.statistics[1].details["set-ups kept"] == 1


def test_what_the_likelihood_reads_besides_is_followed() -> None:
    """The intercept moves between two inferences: the sum is made anew, the mode is not searched."""
    v = regression()
    v.infer(f"(do {FIREFLY} {PROXY})")
    v.infer("(mh b all 'drift 1 20)")
    found = details(v, FIREFLY)
    assert found["set-ups kept"] == 1
    assert found["queries of set-up"] == 2 * 300
    assert details(v, PROXY)["rows of expansions"] == 300
    assert details(v, PROXY.replace("5)", "'audit 1 40)"))["share that differs"] < 0.2


@pytest.mark.parametrize("kernel", [FIREFLY, PROXY, SCALED])
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda v: v.observe("(y (vector 1 1))", True), "made"),
        (lambda v: v.forget("data"), "none"),
        (lambda v: v.execute("[forget data 3]"), "made"),
        (lambda v: v.clear(), "none"),
        (lambda v: v.force("w", np.array([0.3, -0.2])), "kept"),
        (lambda v: v.sample("(y (vector 1 2))"), "kept"),
        (lambda v: v.infer("(repeat 3 (do (mh b one 1) (collect (+ b 3) w)))"), "kept"),
    ],
)
@pytest.mark.thorough
def test_the_program_and_its_data_are_followed(kernel: str, change: Callable[[Venture], Any], name: str) -> None:
    v = venture(MODEL.replace("for n", "data: for n"), **classes(60))
    v.infer(kernel)
    change(v)
    if name == "none":
        assert not v.traces[0].kept.names()
        return
    assert details(v, kernel)[f"set-ups {name}"] == 1
    check(v.traces[0])


def test_a_directive_that_has_nothing_to_do_with_the_rows_leaves_modes_as_they_are() -> None:
    v = regression()
    v.infer(f"(do {FIREFLY} {PROXY})")
    v.predict("(+ b 1)")
    v.assume("other", "(normal 0 1)")
    for kernel in (FIREFLY, PROXY):
        found = details(v, kernel)
        assert found["set-ups kept"] == 1
        assert not found.get("queries of set-up")
        assert not found.get("rows of expansions")


@pytest.mark.parametrize("kernel", [FIREFLY, FIREFLY.replace("'map", "'untuned"), PROXY, SCALED])
@pytest.mark.thorough
def test_an_interruption_at_any_point_leaves_right_set_ups(kernel: str) -> None:
    """Of the first run, in which they are made, and of one after the intercept has moved, in which they follow."""
    for moved in (False, True):
        for polls in (1, 2, 5, 13, 34):
            v = venture(MODEL, **classes(60))
            model = v.traces[0]
            if moved:
                v.infer(kernel)
                v.infer("(do (mh b all 'drift 1 5) (mh w all 'drift 0.1 5))")
            model.interrupt_after = polls
            with pytest.raises(KeyboardInterrupt):
                v.infer(kernel.replace(" 5)", " 1000)"))
            _assert_states_are_right(v)
            v.infer(kernel)
            _assert_states_are_right(v)


def _assert_states_are_right(v: Venture) -> None:
    model = v.traces[0]
    check(model)
    for key in model.kept.names():
        kept = model.kept.find(key)
        if isinstance(kept, Firefly):
            _assert_firefly_is_right(kept)


def test_an_error_in_the_middle_of_a_change_drops_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    v = regression()
    v.infer(FIREFLY)
    with monkeypatch.context() as broken:
        broken.setattr(Firefly, "_keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            v.infer(FIREFLY)
    found = details(v, FIREFLY)
    assert found["set-ups made"] == 1
    # the mode was not in the middle of a change
    assert found["queries of set-up"] == 2 * 300
    _assert_states_are_right(v)


def test_a_directive_that_fails_leaves_set_ups_as_they_are() -> None:
    v = regression()
    v.infer(FIREFLY)
    with pytest.raises(VentureError):
        v.observe("(y (vector 1 1))", 7)
    with pytest.raises(VentureError):
        v.infer(f"(do (mh b all 'drift 1 3) {FIREFLY} (gibbs w all 1))")
    assert details(v, FIREFLY)["set-ups kept"] == 1
    _assert_states_are_right(v)


def test_a_choice_that_stands_where_another_stood_has_no_set_up_of_its() -> None:
    """The same text with another prior, of which the mode is another."""
    v = Venture(seed=1)
    program = "w: [assume w (scope_include 'w 0 (normal {m} {sd}))] data: for n in 1...20: [observe (normal w 1) 0]"
    for mean, sd in ((0.0, 1.0), (500.0, 0.01)):
        v.execute(program, m=mean, sd=sd)
        found = details(v, "(mala w all 0.9 'precondition 20)")
        assert found["set-ups made"] == 1
        assert found["mean acceptance probability"] > 0.5
        v.execute("[forget data] [forget w]")


@pytest.mark.thorough
def test_rows_that_come_and_go_place_bounds_at_the_mode_of_those_that_there_are() -> None:
    v = venture(
        """[assume w (mem (lambda (g) (scope_include 'w g (normal 0 1))))]
        [assume z (mem (lambda (n) (scope_include 'z n (flip))))]
        for n in 1...N: [observe (bernoulli (logistic (* (w (z n)) {X[n]}))) {Y[n]}]""",
        X=np.linspace(-3, 3, 40), Y=np.linspace(-3, 3, 40) > 0.5, N=40,
    )  # fmt: skip
    v.infer("(cycle ((flymc w each auto 'map 0.3 'drift 0.5 1) (gibbs z one 1)) 40)")
    _assert_states_are_right(v)
    kept = [v.traces[0].kept.find(key) for key in v.traces[0].kept.names()]
    for firefly in (each for each in kept if isinstance(each, Firefly)):
        assert firefly._mode is not None
        assert firefly._collapsed.reference == pytest.approx(firefly.linear.mode()[0], abs=1e-4)
        assert firefly._collapsed.reference != pytest.approx(firefly._mode.at, abs=1e-4)


# ------------------------------------------------------------------------------------------------------------ memory


class Bytes:
    def __init__(self, count: int) -> None:
        self.count = count

    def bytes_used(self) -> int:
        return self.count


def test_the_oldest_goes_first() -> None:
    limit = 4 * kept_module.ANYWAY
    kept = SetUps(lambda: limit)
    for name, count in (("mode", 1000), ("a", limit // 2), ("b", limit // 4), ("c", limit // 8)):
        kept.keep(name, Bytes(count))
    assert kept.names() == ["mode", "a", "b", "c"]
    # now b is the oldest of those with rows
    assert kept.find("a") is not None
    kept.keep("d", Bytes(limit // 4))
    assert kept.names() == ["mode", "c", "a", "d"]
    assert kept.bytes_used() <= limit
    kept.keep("e", Bytes(2 * limit))
    assert kept.names() == ["mode", "e"]


def test_many_small_ones_go_too() -> None:
    kept = SetUps(lambda: 0)
    for k in range(100):
        kept.keep(k, Bytes(kept_module.SMALL))
    assert kept.bytes_used() <= kept_module.ANYWAY
    assert kept.names()[-1] == 99


def test_set_ups_of_a_session_stay_within_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three states of 100 rows each take more than the data do."""
    monkeypatch.setattr(kept_module, "ANYWAY", 0)
    monkeypatch.setattr(kept_module, "SMALL", 2000)
    v = regression()
    model = v.traces[0]
    for kernel in (FIREFLY, FIREFLY.replace("'map", "'untuned"), FIREFLY.replace("0.2 5", "0.2 'precondition 5")):
        v.infer(kernel)
    assert sum(key[0] == "firefly" for key in model.kept.names()) == 1
    assert details(v, FIREFLY)["set-ups made"] == 1


def test_what_is_kept_is_found_with_the_stamp_that_it_was_kept_with() -> None:
    kept = SetUps(lambda: 0)
    made = np.zeros(3)
    scale = SimpleNamespace(at=made, bytes_used=lambda: made.nbytes)
    kept.keep("scale", scale, stamp=0)
    assert kept.find("scale", stamp=0) is scale
    assert kept.find("scale", stamp=1) is None
    assert kept.find("scale") is None


def test_what_lasts_is_made_once_for_its_owner() -> None:
    kept, made = SetUps(lambda: 0), []
    assert kept.lasting(made.append, 1) is kept.lasting(made.append, 2)
    assert made == [1]
