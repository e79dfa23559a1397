"""Dictionaries: equality, keys, order, Python and back, derivatives through them; values as they are typed."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from tests.procedures.examples import DICT, RED, V, vector
from venture_lite.errors import ArgumentError, VentureError
from venture_lite.procedures.pullbacks import accumulated
from venture_lite.procedures.record import Deterministic
from venture_lite.procedures.registry import PROCEDURES
from venture_lite.values import (
    Dictionary,
    Symbol,
    equal,
    from_python,
    is_same,
    is_value,
    key_of,
    show,
    to_python,
    written,
)


def call(name: str, *args: Any) -> Any:
    record = PROCEDURES[name]
    assert isinstance(record, Deterministic)
    return record.scalar(*args)


def pulled(name: str, cotangent: Any, *args: Any) -> tuple[Any, ...]:
    record = PROCEDURES[name]
    assert isinstance(record, Deterministic)
    assert record.pullback is not None
    none, every = (False,) * len(args), (True,) * len(args)
    return record.pullback(none, every, cotangent, record.scalar(*args), *args)


def test_keys_compare_as_values_do() -> None:
    one = call("dict", 1, "a", RED, "b", vector(1, 2), "c")
    for key, value in [(1.0, "a"), (True, "a"), (Symbol("red"), "b"), (vector(1, 2), "c")]:
        assert call("lookup", one, key) == value
    for key in ("red", (1, 2), 2):
        assert not call("contains", one, key)
    assert call("lookup", call("dict", 0.0, "zero"), -0.0) == "zero"
    with pytest.raises(VentureError, match="NaN cannot be a key"):
        call("dict", math.nan, 1)


def test_dictionaries_are_equal_by_what_they_hold_in_any_order() -> None:
    one, other = call("dict", "a", 1, "b", V), call("dict", "b", vector(1, 2, 3), "a", True)
    assert equal(one, other)
    assert key_of(one) == key_of(other)
    assert len({one, other}) == 1
    assert not equal(one, call("dict", "a", 1))
    assert not equal(one, call("insert", one, "a", 2))
    assert not equal(one, ("a", 1))
    assert key_of(call("dict", "vector", 1)) != key_of(("dict", "vector", 1))


def test_a_list_is_never_the_key_of_a_vector() -> None:
    assert key_of(("vector", (3,), (1.0, 2.0, 3.0))) != key_of(V)


def test_what_was_made_does_not_change_and_keeps_its_order() -> None:
    before = call("dict", "b", 1, "a", 2)
    after = call("insert", call("insert", before, "c", 3), "b", 0)
    assert call("to_list", before) == (("b", 1), ("a", 2))
    assert call("to_list", after) == (("b", 0), ("a", 2), ("c", 3))
    assert call("keys", call("remove", after, "a")) == ("b", "c")
    assert call("to_dict", call("to_list", after)) == after
    assert pickle.loads(pickle.dumps(after)) == copy.deepcopy(after) == after


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("dict", ("a", 1, "b"), "dict takes keys and values in turn, got 3 arguments"),
        ("dict", (1, 2, True, 3), "dict: the key true is given twice"),
        ("to_dict", ((1, 2),), "to_dict takes a list of lists of a key and a value, got"),
        ("lookup", (DICT, "b"), 'lookup: the dictionary has no key "b"'),
        ("remove", (DICT, "b"), 'remove: the dictionary has no key "b"'),
        ("insert", ((), 1, 2), r"insert: dictionary must be a dictionary, got \(\)"),
        ("lookup", (3, 0), "lookup: collection must be a list, a vector, a matrix, a string or a dictionary, got 3"),
        ("lookup", ("", 0), "lookup: position 0 of an empty string"),
        ("lookup", ((1, 2), "a", 5), 'lookup: index must be an integer, got "a"'),
        ("lookup", (np.eye(2), 0, 1), "lookup: default must be a vector, as the rows of a matrix are, got 1"),
        ("append", ("a", (1,)), r'append joins lists with lists.*got "a" \(1\)'),
        ("contains", ("abc", 1), "contains: value must be a string"),
        ("substring", ("abc", 2, 5), "substring: from 2 up to 5 is no part of a string of 3 characters"),
        ("split", ("abc", ""), "split: separator must not be empty"),
        ("join", (("a", 1), ""), "join: texts must be a list of strings"),
        ("to_number", ("one",), 'to_number: "one" is not a number'),
        ("to_number", ("nan",), 'to_number: "nan" is not a number'),
        ("to_number", ("1_000",), 'to_number: "1_000" is not a number'),
    ],
)
def test_messages(name: str, args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call(name, *args)


def test_python_dictionaries_come_in_and_go_out() -> None:
    given = {"a": [1, 2], 3: np.arange(2.0), "inner": {"x": True}}
    value = from_python(given)
    assert isinstance(value, Dictionary)
    assert is_value(value)
    assert call("lookup", call("lookup", value, "inner"), "x") is True
    back = to_python(value)
    assert list(back) == ["a", 3, "inner"]
    assert back["a"] == [1, 2]
    assert back[3].flags.writeable
    assert to_python(call("dict", RED, 1, (1, (2, "b")), 2, V, 3)) == {"red": 1, (1, (2, "b")): 2, (1.0, 2.0, 3.0): 3}
    assert to_python(call("dict", RED, 1, "red", 2)) == {RED: 1, "red": 2}
    assert not is_value(from_python({"a": [1, math.nan]}))
    assert not is_value(from_python({None: 1}))
    with pytest.raises(VentureError, match="NaN"):
        from_python({math.nan: 1})


@pytest.mark.parametrize(
    ("value", "shown", "full"),
    [
        ('say "hi"\n\\', r'"say \"hi\"\n\\"', r'"say \"hi\"\n\\"'),
        ("\x01\0", r'"\x01\0"', r'"\x01\0"'),
        (RED, "red", "'red"),
        ((RED, "red", 1 / 3), '(red "red" 0.333333)', '(list \'red "red" 0.3333333333333333)'),
        (call("dict", "a", (1, 2.0), RED, True), '(dict "a" (1 2) red true)', '(dict "a" (list 1 2) \'red true)'),
        (V, "[1. 2. 3.]", "(vector 1 2 3)"),
        (np.eye(2), "[[1. 0.]\n [0. 1.]]", "(matrix (list 1 0) (list 0 1))"),
        (Dictionary(enumerate("abcdefgh")), '(dict 0 "a" 1 "b" 2 "c" 3 "d" 4 "e" 5 "f" ...)', None),
        (1e300, "1e+300", "1e+300"),
    ],
)
def test_values_are_shown_as_they_are_typed(value: Any, shown: str, full: str | None) -> None:
    assert show(value) == shown
    assert full is None or written(value) == full


def test_what_is_written_in_full_reads_back_as_the_value() -> None:
    from venture_lite import Venture

    value = call("dict", 'a\t"b"', (1, 2.5, RED), RED, vector(0.1, -3), (), np.eye(2), "d", Dictionary([(1, True)]))
    venture = Venture(seed=1)
    assert venture.sample(f"(= {written(value)} {{value}})", value=value)


def test_derivatives_pass_through_dictionaries() -> None:
    x, y = 2.0, 5.0
    one = call("dict", "x", x, "y", y)
    # insert another x, take y out, look x up among the values
    two = call("insert", one, "x", 3.0)
    three = call("remove", two, "y")
    (by_three, _) = pulled("lookup", 1.5, three, "x")
    assert by_three == (1.5,)
    by_two, _ = pulled("remove", by_three, two, "y")
    assert by_two == (1.5, None)
    by_one, _, by_value = pulled("insert", by_two, one, "x", 3.0)
    assert (by_one, by_value) == ((None, None), 1.5)
    more = accumulated(by_one, pulled("lookup", 2.0, one, "y")[0])
    assert pulled("dict", more, "x", x, "y", y) == (None, None, None, 2.0)
    assert pulled("values", (1.0, 2.0), one) == ((1.0, 2.0),)
    assert pulled("to_list", ((None, 1.0), None), one) == ((1.0, None),)
    assert pulled("to_dict", (1.0, 2.0), (("x", x), ("y", y))) == (((None, 1.0), (None, 2.0)),)
    assert pulled("insert", (1.0, 2.0, 3.0), one, "z", 0.5) == ((1.0, 2.0), None, 3.0)
    assert pulled("lookup", 4.0, one, "z", 1.0) == (None, None, 4.0)


def test_what_a_program_can_tell_apart_is_not_the_same() -> None:
    vectors = [np.array([0.0, 1.0]), np.array([-0.0, 1.0]), np.array([0, 1]), np.array([0.0, 1.0, 2.0])]
    values = [True, 1, 1.0, 0.0, -0.0, "1", Symbol("a"), (1, 2), (True, 2), (1, 2.0), *vectors, None]
    for at, one in enumerate(values):
        for other_at, other in enumerate(values):
            assert is_same(one, other) == (at == other_at)
    assert is_same(np.array([0.5]), np.array([0.5]))
    assert is_same((1, (2.0, Symbol("a"))), (1, (2.0, Symbol("a"))))
