"""One meaning in two spellings.

A twin holds an expression as it would be written plainly, and as it is written through names for names and wrappers
that change nothing. Whatever is built of twins is a twin, so that a generator writes both programs at once, and what
one of them draws the other has to draw.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Twin:
    """Two texts with one meaning."""

    plain: str
    dressed: str


# Wrappers that change nothing. Evidence finds its way through the first of them; the light ones leave nothing behind
# but a value that is read elsewhere, the others may keep particles from moving by columns.
EVIDENT = (
    "(begin {0})",
    "(begin 7 {0})",
    "(let ((w {0})) w)",
    "(let ((w {0}) (u w)) u)",
    "(tag 'q 0 {0})",
)
LIGHT = (*EVIDENT, "(same {0})")
EVIDENT_CALLS = ("((lambda (w) w) {0})", "((lambda () {0}))")
HEAVY = (
    *LIGHT,
    *EVIDENT_CALLS,
    "(first (list {0} 7))",
    '(lookup (list "s" \'q {0}) 2)',
    "(lookup (dict 'k {0} 2 3) 'k)",
    "(if true {0} 0)",
    "(cond (false 0) (else {0}))",
    "(letrec ((u (lambda () {0}))) (u))",
    "(first (map (lambda (w) w) (list {0} 2)))",
    "((lambda (f) (f {0})) same)",
    "(fold (lambda (a b) a) {0} (list 1 2))",
)


def both(text: str) -> Twin:
    """The same text in both spellings."""
    return Twin(text, text)


def twin(template: str, *parts: Twin) -> Twin:
    """`template` with each part in the place of its number, in both spellings."""
    return Twin(template.format(*(p.plain for p in parts)), template.format(*(p.dressed for p in parts)))
