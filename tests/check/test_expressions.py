"""What is found in expressions of the model: each with its place, and one mistake does not hide the next."""

# ruff: noqa: E501 - one case a line

from __future__ import annotations

import pytest

from venture_lite import check

F = "[assume (f a b) (+ a b)]"
X = "[assume x (normal 0 1)]"

# the text, and each diagnostic as `line:column part of the message | part of the hint`
CASES = {
    "an unknown procedure": ("[assume a (nromal 0 1)]", ["1:12 unknown name nromal | did you mean normal?"]),
    "two unknown names in one call": ("[predict (+ p q)]", ["1:13 unknown name p", "1:15 unknown name q"]),
    "a name in the body of a lambda": ("[assume g (lambda (a) (h a))]", ["1:24 unknown name h"]),
    "a name that is assumed further down": ("[predict (+ y 1)]\n[assume y 1]", ["1:13 unknown name y | assumed at <input>:2:1"]),
    "a later name in a body is right": ("[assume (g a) (h a)]\n[assume (h a) a]", []),
    "a later name called with too many": ("[assume (g a) (h a 1)]\n[assume (h a) a]", ["1:15 h takes 1 argument, got 2"]),
    "its own value": ("[assume a (+ a 1)]", ["1:14 a is used before it has a value"]),
    "a procedure that calls itself": ("[assume (g n) (if (= n 0) 0 (g (- n 1)))]", []),
    "a defined name in the model": ("[define n 3]\n[predict (+ n 1)]", ["2:13 unknown name n | inference expressions only"]),
    "a special form as a value": ("[predict (list lambda)]", ["1:16 special form, not a value"]),
    "too few for a primitive": ("[predict (normal 0)]", ["1:10 normal takes 2 arguments (mean sd), got 1"]),
    "too many for a lambda": (F + " [predict (f 1 2 3)]", ["1:35 f takes 2 arguments, got 3"]),
    "too many for a memoized one": ("[assume g (mem (lambda (a) a))] [predict (g 1 2)]", ["1:42 takes 1 argument, got 2"]),
    "by another name": (F + " [assume h f] [predict (h 1)]", ["1:48 f takes 2 arguments, got 1"]),
    "by a local name": ("[predict (let ((g (lambda (a) a))) (g))]", ["1:36 takes 1 argument, got 0"]),
    "by a letrec": ("[predict (letrec ((g (lambda (a) (g a a)))) (g 1 2))]", ["1:45 takes 1 argument, got 2"]),
    "written where it is called": ("[predict ((lambda (a) a))]", ["1:10 takes 1 argument, got 0"]),
    "either of two procedures": (X + " [predict ((if (flip) (lambda (a) a) (lambda (b) 1)) 1 2)]", ["1:34 takes 1 argument, got 2"]),
    "of the standard library": ("[predict (fold + 2)]", ["1:10 fold takes 3 arguments, got 2"]),
    "of what a maker made": ("[assume c (make_crp 1)] [predict (c 3)]", ["1:34 make_crp made takes no arguments, got 1"]),
    "a number is called": ("[predict (3 4)]", ["1:10 3 is not a procedure"]),
    "a draw is called": (X + " [predict (x)]", ["1:34 a draw from normal is not a procedure"]),
    "a domain": ("[predict (normal 0 -1)]", ["1:20 normal: sd must be a positive number, got -1"]),
    "two domains in one directive": ("[predict (+ (normal 0 0) (flip 2))]", ["1:23 got 0", "1:32 p must be"]),
    "a wrong type": ("[predict (normal 'red 1)]", ["1:18 mean must be"]),
    "a domain of computed constants": ("[predict (categorical (vector 1 1))]", ["1:23 sum to 1"]),
    "a computation that fails": ("[predict (normal 0 (log (- 0 1)))]", ["1:20 log: x must be"]),
    "a domain through a name": ("[assume s (- 1 2)] [predict (normal 0 s)]", ["1:39 sd must be a positive number, got -1"]),
    "a branch that is never taken": ("[predict (if false (log -1) (or true (log -2)))]", []),
    "a branch that may be taken": ("[predict (if (flip) (log -1) 1)]", ["1:21 log"]),
    "a name in a branch that is never taken": ("[predict (if false (oops) 1)]", ["1:21 unknown name oops"]),
    "a predicate": ("[predict (if 2 1 3)]", ["1:14 a predicate must be true, false, 0 or 1, got 2"]),
    "an if with two parts": ("[predict (if (flip) 1)]", ["1:10 if is written"]),
    "a cond without value": ("[predict (cond ((flip)))]", ["1:10 cond is written"]),
    "a let of another form": ("[predict (let (x 1) x)]", ["1:10 let is written"]),
    "a lambda without body": ("[assume g (lambda (a))]", ["1:11 lambda is written"]),
    "a parameter named twice": ("[assume g (lambda (a a) a)]", ["1:22 named twice"]),
    "an empty body": ("[predict (begin)]", ["1:10 nothing to evaluate"]),
    "an empty call": ("[predict (+ 1 ())]", ["1:15 an empty form calls nothing"]),
    "mem of a primitive": ("[assume g (mem exp)]", ["1:11 mem takes a procedure of the program, not exp itself | (mem (lambda (x) (exp x)))"]),
    "mem of a number": ("[assume g (mem 3)]", ["1:11 mem takes a procedure of the program, got 3"]),
    "a scope that is no constant": ("[predict (tag (list 1) 1 (flip))]", ["1:15 a scope's name is"]),
    "a random block key": ("[predict (tag 's (flip) (flip))]", ["1:18 a block's key may not depend"]),
    "a sum observed": (X + " [observe (+ x 1) 2]", ["1:34 a deterministic value cannot be observed"]),
    "a name for a sum observed": (X + " [assume y (+ x 1)] [observe y 2]", ["1:53 a deterministic value cannot be observed"]),
    "a value that is never drawn": ("[observe (flip 0.3) 7]", ["1:10 7 is impossible for flip"]),
    "a sum forced": (X + " [force (+ x 1) 2]", ["1:32 a deterministic value cannot be forced"]),
    "a choice observed through a name": (X + " [observe x 2]", []),
    "shadowed names": ("[assume (g if) (+ if 1)] [assume (h list) list] [predict (let ((+ 3)) +)]", []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_is_found_at_its_place(name: str) -> None:
    text, wanted = CASES[name]
    found = check(text).diagnostics
    assert len(found) == len(wanted), "\n".join(map(str, found))
    for diagnostic, expected in zip(found, wanted, strict=True):
        place, _, rest = expected.partition(" ")
        message, _, hint = rest.partition(" | ")
        assert diagnostic.severity == "error"
        line, column = diagnostic.span.source.line_and_column(diagnostic.span.start)
        assert f"{line}:{column}" == place, str(diagnostic)
        assert message in diagnostic.message
        assert hint in (diagnostic.hint or "")


def test_a_value_that_these_arguments_do_not_give_is_warned_of() -> None:
    checked = check("[observe (uniform_discrete 0 2) 2]")
    assert checked.ok
    (warning,) = checked.diagnostics
    assert warning.severity == "warning"
    assert warning.message == "2 has probability zero under (uniform_discrete 0 2)"
    assert "warning: 2 has" in str(checked)


def test_every_special_form_is_looked_through() -> None:
    from venture_lite.checker.expressions import FORMS
    from venture_lite.program.forms import SPECIAL_FORMS

    assert FORMS.keys() == SPECIAL_FORMS.keys()


def test_queries_are_looked_through() -> None:
    text = """[assume f (lambda (x) (enumerate (lambda () (let ((k (flip x))) (condition k) (factor 1) (normal 0 1)))))]
[assume g (lambda (x) (factor x))]
[predict (enumerate 3)]
[assume condition (lambda (x) x)]
[predict (condition (enumerate (lambda () (oops))))]"""
    found = [(found.span.line, found.message) for found in check(text).diagnostics]
    assert found == [
        (1, "normal has no finite support, so that the worlds of a query cannot be enumerated"),
        (2, "factor is an expression inside of queries only"),
        (3, "enumerate is written (enumerate (lambda () EXPR))"),
        (5, "unknown name oops"),
    ]


@pytest.mark.parametrize("text", ["(" * 100_000 + "1" + ")" * 100_000, "(+ 1 " * 30_000 + "1" + ")" * 30_000])
@pytest.mark.thorough
def test_an_expression_that_nests_too_deep_is_one_error_and_the_rest_is_looked_through(text: str) -> None:
    checked = check(f"[predict {text}]\n[predict oops]")
    assert [diagnostic.span.line for diagnostic in checked.diagnostics] == [1, 2]
    assert "nested too deeply" in checked.diagnostics[0].message
