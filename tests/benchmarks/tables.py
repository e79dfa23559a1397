"""Tables that memoized procedures fill: a speaker's probabilities of utterances, which listeners' are computed from."""

from __future__ import annotations

from tests.benchmarks.measure import Row, compare
from venture_lite import Venture

SPEAKER = """
[assume prior (list 0.2 0.3 0.5)]
[assume truth (lambda (u w) (if (= u w) 1 (if (> u w) 0.5 0.2)))]
[assume share (lambda (xs) (let ((total (fold + 0 xs))) (map (lambda (x) (/ x total)) xs)))]
[assume listener (mem (lambda (u) (share (map (lambda (w) (* (lookup prior w) (truth u w))) (range 3)))))]
[assume speaker (mem (lambda (w) (share (map (lambda (u) (pow (lookup (listener u) w) 2)) (range 3)))))]
"""
CALLED = """
[assume world (categorical prior)]
[observe (flip (lookup (speaker world) 0)) true]
"""
LISTED = """
[assume speakers (list (speaker 0) (speaker 1) (speaker 2))]
[assume world (categorical prior)]
[observe (flip (lookup (lookup speakers world) 0)) true]
"""
BAR = 0.51
TRANSITIONS = 5_000


def rows() -> list[Row]:
    called, listed = Venture(seed=1), Venture(seed=1)
    called.execute(SPEAKER + CALLED)
    listed.execute(SPEAKER + LISTED)
    kernel = "(mh default one {T})"
    found = compare(lambda: called.infer(kernel, T=TRANSITIONS), lambda: listed.infer(kernel, T=TRANSITIONS))
    return [
        Row(
            "a choice that names a memoized table, (mh default one T)",
            f"{TRANSITIONS / found.ours:,.0f}/s",
            f"at least {BAR} times the rate with the tables in lists",
            f"the tables in lists, {TRANSITIONS / found.theirs:,.0f}/s",
            found.ratio,
            found.ratio >= BAR,
        )
    ]
