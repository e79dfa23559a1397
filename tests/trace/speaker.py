"""Tables that memoized procedures fill: a speaker's probabilities of utterances, which listeners' are computed from."""

from __future__ import annotations

_PROGRAM = """
    [assume prior (list 0.2 0.3 0.5)]
    [assume truth (lambda (u w) (if (= u w) 1 (if (> u w) 0.5 FALSE)))]
    [assume share (lambda (xs) (let ((total (fold + 0 xs))) (map (lambda (x) (/ x total)) xs)))]
    [assume listener (mem (lambda (u) (share (map (lambda (w) (* (lookup prior w) (truth u w))) (range 3)))))]
    [assume speaker (mem (lambda (w) (share (map (lambda (u) (pow (lookup (listener u) w) 2)) (range 3)))))]
    LISTS
    [assume world (categorical prior)]
    [observe (flip (lookup READ SEEN)) true]"""


def called(false: float, seen: int) -> str:
    """World names its table; `false` is the truth of an utterance below the world, `seen` the utterance."""
    return _program(false, seen, "", "(speaker world)")


def listed(false: float, seen: int) -> str:
    """As `called`, with the tables in a list."""
    return _program(false, seen, "[assume all (list (speaker 0) (speaker 1) (speaker 2))]", "(lookup all world)")


def _program(false: float, seen: int, lists: str, read: str) -> str:
    return (
        _PROGRAM.replace("FALSE", str(false)).replace("LISTS", lists).replace("READ", read).replace("SEEN", str(seen))
    )
