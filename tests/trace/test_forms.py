"""Forms of transitions: they make the interpreter's draws, print, and leave what they cannot do to the interpreter."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture
from venture_lite.audit.invariants import check
from venture_lite.errors import InternalError, KernelError, VentureError
from venture_lite.interpreter.kernel import Metropolis, Move, Resimulation
from venture_lite.interpreter.shape import NoShape, shape_of
from venture_lite.kernels import formed, python
from venture_lite.kernels.lower import NoForm, lower
from venture_lite.trace.table import Column
from venture_lite.values import equal

MEAN = "[assume mu (normal 0 10)] for n in 1...10: [observe (normal mu 1) {y[n]}]"
LEVELS = """
[assume s (gamma 2 2)]
[assume th (mem (lambda (i) (tag 'th i (normal 0 1))))]
for n in 1...60: [observe (normal (* 2 (th {g[n]})) (+ s 0.1)) {y[n]}]
"""
COUNTS = """
[assume rate (gamma 2 0.5)]
[assume k (poisson 3)]
[assume p (beta 1 2)]
[assume b (bernoulli p)]
[observe (poisson (+ rate (* 0.5 k))) 4]
[observe (binomial 10 p) 3]
[observe (flip (if b 0.8 0.3)) true]
"""
CALLS = """
[assume a (normal 0 1)]
[assume double (lambda (x) (+ x x))]
[assume scale (lambda (x) (exp (* 0.1 (double x))))]
[observe (normal (double a) (scale a)) 1.5]
[observe (student_t 4 a 2) 0.5]
"""
TABLES = """
[assume x (normal 0 1)]
[assume f (lambda (k) (lookup (dict 1 0.5 2 (+ 1 x)) k))]
[assume g (lambda (x) (+ x (lookup (dict 1 0.5) 1)))]
[observe (normal (g x) (lookup (vector 2.0 0.5) 1)) 1.5]
[observe (normal (f 1) 2) 0.5]
"""
# of two arguments that are tested in every row one is the same in all
LINE = """
[assume a (normal 0 1)]
[assume b (normal 0 1)]
for n in 1...15: [observe (normal (+ a (* b {y[n]})) (exp a)) {y[n]}]
"""
FEATURES = "[assume w (multivariate_normal {m} {s})] for n in 1...12: [observe (normal (dot w {X[n]}) 1) {y[n]}]"
PROGRAMS = {
    "features": FEATURES,
    "line": LINE,
    "mean": MEAN,
    "levels": LEVELS,
    "counts": COUNTS,
    "calls": CALLS,
    "tables": TABLES,
}
DATA: dict[str, Any] = {
    "y": np.random.default_rng(0).normal(1.0, 2.0, 60).tolist(),
    "g": [n // 5 for n in range(60)],
    "X": np.random.default_rng(1).normal(size=(60, 2)),
    "m": np.zeros(2),
    "s": np.eye(2),
}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """For each transition by a form whether it was left to the interpreter; shapes are lowered at once."""
    found: list[bool] = []
    original = formed.BlockForm.transition

    def transition(self: formed.BlockForm, model: Any) -> bool | python.Left:
        outcome = original(self, model)
        found.append(isinstance(outcome, python.Left))
        return outcome

    monkeypatch.setattr(formed.BlockForm, "transition", transition)
    monkeypatch.setattr(formed, "USES", 1)
    return found


def loaded(program: str, kernels: str, seed: int = 1) -> Venture:
    v = Venture(seed=seed, kernels=kernels)
    v.execute(program, **DATA)
    return v


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "kernel"),
    [(name, kernel) for name in PROGRAMS for kernel in ("(mh default one 2000)", "(mh default each 40)")]
    + [("levels", "(repeat 20 (mh th one 60))")],
)
def test_forms_make_the_draws_of_the_interpreter(made: list[bool], name: str, kernel: str) -> None:
    """Values and the generator's state are the same to the last bit, and no kept weight or column is out of step."""
    fast, slow = (loaded(PROGRAMS[name], kernels) for kernels in ("compiled", "interpreted"))
    fast.infer(kernel)
    assert len(made) > 35
    slow.infer(kernel)
    (one,), (other,) = fast.traces, slow.traces
    nodes = one.trace.default.everything()
    assert all(equal(one.trace.value(node), other.trace.value(node)) for node in nodes)
    assert one.trace.rng.bit_generator.state == other.trace.rng.bit_generator.state
    check(one)


def form_of(program: str, name: str) -> Any:
    v = loaded(program, "compiled")
    (model,) = v.traces
    (target,) = [bound for bound in model.trace.bindings.by_row.values() if bound.name == name]
    found = shape_of(model.trace, [model.trace.result_node(target.code, target.row)])
    assert not isinstance(found, NoShape)
    return lower(model.trace, Resimulation(model), *found)


def test_a_form_is_read_by_a_person() -> None:
    program = "[assume a (normal 0 1)] [observe (normal (* 3 a) 2) 1.5]"
    assert str(form_of(program, "a")).splitlines() == [
        "t0 = row 0",
        "t1 = load 0, t0",
        "demand -inf < t1 < inf",
        "t2 = load 1, t0",
        "demand 0.0 < t2 < inf",
        "t4 = draw 4, 'standard_normal'",
        "t5 = * t2, t4",
        "t6 = + t1, t5",
        "t7 = clip t6, -1.7976931348623157e+308, 1.7976931348623157e+308",
        "propose t7, ratio 0.0",
        "t8 = row 1",
        "t9 = load 3, t8",
        "t10 = load 2, 0",
        "t11 = call 0, t9, t10",
        "t12 = load 4, t8",
        "t13 = load 5, t8",
        "t14 = - t13, t11",
        "t15 = / t14, t12",
        "t16 = * t15, t15",
        "t17 = * -0.5, t16",
        "t18 = log t12",
        "t19 = + t18, 0.9189385332046727",
        "t20 = - t17, t19",
        "add t20 to old",
        "t21 = call 0, t9, t7",
        "demand -inf < t21 < inf",
        "t22 = - t13, t21",
        "t23 = / t22, t12",
        "t24 = * t23, t23",
        "t25 = * -0.5, t24",
        "t26 = - t25, t19",
        "add t26 to new",
        "store t7 in place 0",
    ]


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("[assume a (normal 0 1)] [observe ((lookup (list normal cauchy) 0) a 1) 1]", "a distribution is computed"),
        ("[assume a (normal 0 1)] [assume b ((lookup (list exp sin) 0) a)]", "a procedure is computed"),
    ],
)
def test_a_transition_without_a_form_says_why(program: str, reason: str) -> None:
    with pytest.raises(NoForm, match=reason):
        form_of(program, "a")


@pytest.mark.parametrize(
    "program",
    [
        # an argument beyond its domain's limit, a value that is too large for a float
        "[assume a (normal 0 30)] [observe (normal 0 (exp (* 30 a))) 0.1]",
        "[assume a (normal 0 1)] [observe (normal (* a 1e308) 1e308) 1]",
        # an integer beyond 64 bits
        "[assume a (poisson 2)] [assume b (* a 5000000000000000000)] [observe (normal (* b 1e-18) 3) 5]",
    ],
)
def test_what_a_form_leaves_the_interpreter_makes_with_the_same_numbers(made: list[bool], program: str) -> None:
    outcomes = []
    for kernels in ("compiled", "interpreted"):
        v = loaded(program, kernels)
        try:
            v.infer("(mh default one 300)")
            error = None
        except VentureError as met:
            error = met.message
        (model,) = v.traces
        outcomes.append((error, model.trace.rng.bit_generator.state, v.sample("a") if error is None else None))
        check(v.traces[0])
    assert outcomes[0] == outcomes[1]
    assert any(made)


def test_a_form_rejects_what_is_impossible_as_the_interpreter_does() -> None:
    program = "[assume a (normal 0 1)] [observe (gamma 2 2) 0.5] [observe (uniform_continuous (- a 0.5) 2) 0.4]"
    found = [loaded(program, kernels) for kernels in ("compiled", "interpreted")]
    for v in found:
        v.infer("(mh default one 300)")
    one, other = ((v.sample("a"), v.traces[0].trace.rng.bit_generator.state) for v in found)
    assert one == other


def test_a_form_that_forgets_a_density_is_noticed(made: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    original = python._Printer.side

    def side(self: Any, side: Any, indent: str, left: str) -> list[str]:
        return original(self, side, indent, left)[:1]

    monkeypatch.setattr(python._Printer, "side", side)
    v = loaded(MEAN, "checked")
    with pytest.raises(InternalError, match="interpreted and compiled results differ in log weights"):
        v.infer("(mh default one 20)")


@pytest.mark.thorough
def test_an_interruption_between_forms_leaves_a_valid_trace(made: list[bool]) -> None:
    for after in range(1, 12):
        v = loaded(LEVELS, "compiled")
        (model,) = v.traces
        model.interrupt_after = after
        with pytest.raises(KeyboardInterrupt):
            v.infer("(repeat 20 (mh default one 64))")
        model.interrupt_after = None
        check(v.traces[0])
        v.infer("(mh default one 10)")


@pytest.mark.thorough
def test_forms_are_printed_anew_where_a_column_grows_or_changes_its_kind(made: list[bool]) -> None:
    program = "[assume f (mem (lambda (i) (tag 'f i (normal 0 1))))] [observe (normal (f 1) 1) 2]"
    for kernels in ("compiled", "checked"):
        v = loaded(program, kernels)
        for i in range(2, 40):
            v.infer("(mh f one 5)")
            v.execute(f"[observe (normal (f {i}) 1) {i}]")
        check(v.traces[0])
    assert not all(made)


def test_a_form_whose_columns_changed_is_not_used_however_many_shapes_there_are(
    made: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formed, "MOST_SHAPES", 2)
    v = loaded(COUNTS, "compiled")
    (model,) = v.traces
    move = Move(Resimulation(model), Metropolis(model))
    forms = formed.Forms(model, move)
    shaped = [(node, shape_of(model.trace, [node])) for node in model.trace.default.everything()]
    blocks = [forms.of([node]) for node, found in shaped if not isinstance(found, NoShape)]
    assert len([block for block in blocks if block is not None]) > 2
    assert len(forms.ready()) > 2
    column = model.trace.column(shaped[0][0] >> 32)
    column.view = memoryview(column.array.copy())
    Column.reshaped += 1
    assert not forms.ready()


def test_a_name_that_many_branches_give_as_their_value_is_moved() -> None:
    """Their bodies have no slots."""
    v = Venture(seed=3, kernels="checked")
    v.execute(
        "[assume p (tag 'p 0 (beta 2 2))]"
        "[assume z (mem (lambda (t) (tag 'z t (flip (if (= t 1) 0.5 (if (z (- t 1)) p (- 1 p)))))))]"
        "for t in 1...200: [observe (flip (if (z t) 0.9 0.2)) {y[t]}]",
        y=[True, True, True, False] * 50,
    )
    v.infer("(mh p one 3)")


MANY = "for n in 1...60: [observe (normal (+ a (* b 0.1)) (exp c)) {y[n]}]"
WIDE = {
    "of the prior": "[assume a (normal 0 1)] [assume b (poisson 3)] [assume c (normal 0 1)]" + MANY,
    "moving bounds": "[assume a (normal 0 1)] [assume b (uniform_continuous a (+ a 1))] [assume c (beta 2 2)]" + MANY,
}


@pytest.mark.parametrize("kernel", ["(mh default one 60)", "(mh default all 20)", "(slice default each 1 5 4)"])
@pytest.mark.parametrize("name", WIDE)
def test_rows_that_columns_weigh_come_to_what_the_interpreter_says(made: list[bool], name: str, kernel: str) -> None:
    v = loaded(WIDE[name], "checked")
    with contextlib.suppress(KernelError):  # slice refuses what is discrete
        v.infer(kernel)
        v.infer(kernel if "poisson" in WIDE[name] else "(cycle ((mh default one 5) (mh default all 'drift 0.1 2)) 4)")
        assert len(made) > 20
    check(v.traces[0])


@pytest.mark.thorough
def test_vectors_in_rows_of_a_matrix_are_moved(made: list[bool]) -> None:
    v = Venture(seed=1, kernels="checked")
    v.execute(
        "[assume m (multivariate_normal {z} {s})] [assume f (mem (lambda (i) (multivariate_normal m {s})))]"
        "for n in 1...120: [predict (f n)]",
        z=np.zeros(2), s=np.eye(2),
    )  # fmt: skip
    (model,) = v.traces
    node = model.trace.default.everything()[5]
    assert model.trace.column(node >> 32).kind is np.ndarray
    v.infer("(mh default one 40)")
    v.infer("(mh default one 'drift 0.5 40)")
    assert len(made) == 80
    check(model)
