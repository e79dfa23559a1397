"""What references mean, recorded as operations."""

from __future__ import annotations

import pytest

from venture_lite import Venture
from venture_lite.interpreter.readers import RowText, columns_reader, compiled_text
from venture_lite.interpreter.references import Operations, References
from venture_lite.program.code import Code
from venture_lite.trace.table import NotColumnar
from venture_lite.trace.trace import Trace


def last(program: str) -> tuple[Trace, Code]:
    v = Venture(seed=1)
    v.execute(program)
    trace = v.traces[0].trace
    return trace, trace.program.codes[-1]


def test_what_is_read_twice_is_one_operation() -> None:
    trace, code = last(
        "[assume a (normal 0 1)] [assume f (lambda (x) (* (+ a x) (+ a x)))] [observe (normal (f 2) 1) 4]"
    )
    operations = Operations()
    row = operations.record("row", "r0")
    References(trace, operations).read(code, row, code.slots[-1].arguments[0])
    assert [node.operation for node in operations.nodes.values()] == ["row", "load", "load", "call", "call"]


def test_zeros_of_either_sign_are_two_constants() -> None:
    v = Venture(seed=1)
    v.execute("[assume f (lambda (x) (list (* x 0.0) (* x -0.0)))] [assume zeros (f 2)]")
    assert str(v.report("zeros")) == str([0.0, -0.0])


def test_rows_around_a_row_are_read_once() -> None:
    program = (
        "[assume make (lambda (a b) (lambda (x) (normal (+ a b x) 1)))] [assume f (mem (make 1 2))] [assume y (f 3)]"
    )
    trace, _ = last(program)
    (code,) = (code for code in trace.program.codes if code.parent is not None and code.parent.kind == "lambda")
    operations = Operations()
    text = RowText(operations)
    value = References(trace, operations).read(code, operations.record("row", "r0"), code.slots[-1].arguments[0])
    text.value(value)
    assert len(operations.rows) == 1
    assert len(text.lines) == 2


def test_readers_that_look_alike_are_compiled_once() -> None:
    model = "".join(f"[assume x{i} (normal (+ x{i - 1} (* 2 x{i - 1})) 1)]" for i in range(1, 6))
    compiled_text.cache_clear()
    last("[assume x0 (normal 0 1)]" + model)
    assert compiled_text.cache_info().misses < 5


@pytest.mark.parametrize("mean", ["(+ b (if (= f (lambda (x) x)) 1 2))", "(+ b (* {X[n]} (= (lambda (x) {X[n]}) f)))"])
def test_procedures_are_no_columns_whatever_is_read_beside_them(mean: str) -> None:
    v = Venture(seed=1)
    v.execute(
        "[assume b (normal 0 1)] [assume f (lambda (x) x)]"
        f"for n in 1...3: [observe (normal {mean} 1) 1]", X=[1.0, 2.0, 3.0],
    )  # fmt: skip
    trace = v.traces[0].trace
    (code,) = (each for each in trace.program.codes if each.name == "expression")
    reader, _, _ = columns_reader(trace, code, tuple(code.slots[-1].arguments))
    with pytest.raises(NotColumnar):
        reader(slice(0, 3))
