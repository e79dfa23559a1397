"""Who marks the journal and rolls it back by hand. Everybody else has `with model.transaction()`."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "venture_lite"

BY_HAND = re.compile(r"journal\.mark\(|\.rollback\(|\.commit_transition\(|journal\.commit\(")

# The list may only get shorter.
BY_HAND_WITH_A_REASON = {
    "interpreter/model.py": "transactions, and what they are made of",
    "engines/pgibbs/particle_steps.py": "the marks of particles form a tree, not blocks inside blocks",
    "engines/pgibbs/particle_future.py": "looks ahead from one of these marks",
    "session/chains.py": "a directive that is held back is taken back later, by another directive",
    "session/chain_program.py": "an inference that fails ends what its directive began",
    "session/standard.py": "a definition of the library stays whatever becomes of the directive that named it",
}


def by_hand(package: Path) -> set[str]:
    return {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if BY_HAND.search(path.read_text(encoding="utf-8"))
    }


def test_nobody_else_marks_and_rolls_back_by_hand() -> None:
    assert by_hand(PACKAGE) == set(BY_HAND_WITH_A_REASON)


def test_a_mark_by_hand_is_found(tmp_path: Path) -> None:
    (tmp_path / "engines").mkdir()
    (tmp_path / "engines" / "mine.py").write_text("def f(model):\n    mark = model.trace.journal.mark()\n")
    (tmp_path / "engines" / "yours.py").write_text("def f(model):\n    with model.transaction():\n        pass\n")
    assert by_hand(tmp_path) == {"engines/mine.py"}
