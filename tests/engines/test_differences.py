"""A file of proposers meets another program: what differs is named, and nothing has moved."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture, VentureError
from venture_lite.audit.snapshot import snapshot
from venture_lite.engines.compiled import files
from venture_lite.networks import fitting

SCHOOLS = """
[assume mu (tag 'mu 0 (normal 0 {S}))] [assume spread (tag 'block 0 (gamma 2 1))]
[assume beta (mem (lambda (j) (tag 'block (+ j 1) (normal 0 spread))))]
for n in 1...3: [observe (normal (+ mu (beta n)) 1) n]
"""
VECTOR = "[assume w (tag 'block 0 (multivariate_normal {z} {I}))] [observe (normal (dot w {x}) 1) 1]"


@pytest.fixture(autouse=True)
def short_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "LEAST_STEPS", 100)
    monkeypatch.setattr(fitting, "PASSES", 1)


def session(program: str, high: float = 1.0, **parameters: Any) -> Venture:
    venture = Venture(seed=1)
    venture.register(
        "ramp",
        simulate=lambda rng: high * math.sqrt(rng.random()),
        log_density=lambda value: math.log(2.0 * value) - 2.0 * math.log(high),
        domain=(0, high),
    )
    venture.execute(program, **parameters)
    return venture


def told(path: Path, before: Venture, after: Venture) -> str:
    """What the second session says of the first one's file."""
    before.compile("p", "block", "all", worlds=200)
    before.save_proposers(path)
    after.load_proposers(path)
    state = snapshot(after.traces[0])
    with pytest.raises(VentureError) as caught:
        after.infer("(compiled_mh p block all 1)")
    assert snapshot(after.traces[0]) == state
    return str(caught.value)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("was", "now", "difference"),
    [
        ("(normal 0 spread)", "(student_t 3 0 spread)", "for another program: beta is student_t here, normal there"),
        ("(gamma 2 1)", "(gamma 3 1)", "for another program: spread is (gamma 3 1) here, (gamma 2 1) there"),
        (
            "(normal (+ mu",
            "(laplace (+ mu",
            "for another program: (laplace (+ mu (beta n)) 1): laplace did not read the",
        ),
    ],
)
def test_another_choice_is_named(tmp_path: Path, was: str, now: str, difference: str) -> None:
    first, second = session(SCHOOLS, S=1.0), session(SCHOOLS.replace(was, now), S=1.0)
    assert f"proposer p was compiled {difference}" in told(tmp_path / "p.npz", first, second)


@pytest.mark.thorough
@pytest.mark.parametrize(("was", "now"), [("(+ j 1)", "(* j 2)"), ("[assume mu", "[assume nu (gamma 2 1)] [assume mu")])
def test_other_keys_other_data_and_other_names_are_no_difference(tmp_path: Path, was: str, now: str) -> None:
    first, second = session(SCHOOLS, S=1.0), session(SCHOOLS.replace(was, now), S=2.0)
    first.compile("p", "block", "all", worlds=200)
    first.save_proposers(tmp_path / "p.npz")
    second.load_proposers(tmp_path / "p.npz")
    second.infer("(compiled_mh p block all 3)")


@pytest.mark.thorough
def test_another_number_of_choices_is_named(tmp_path: Path) -> None:
    """Of heads, here; of a body that the heads scale any number will do."""
    scales = "[assume s (mem (lambda (j) (tag 'block j (gamma 2 1))))] for n in 1...{N}: [observe (normal 0 (s n)) n]"
    three, two = session(scales, N=3), session(scales, N=2)
    assert "for other blocks: here are" in told(tmp_path / "p.npz", three, two)


def test_another_transform_is_named(tmp_path: Path) -> None:
    program = "[assume x (tag 'block 0 (ramp))] [observe (normal x 1) 0.5]"
    said = told(tmp_path / "p.npz", session(program), session(program, high=2.0))
    assert "for another program: x is ramp from 0 to 2 here, ramp from 0 to 1 there" in said


def test_vectors_of_another_length_are_named(tmp_path: Path) -> None:
    two, three = [session(VECTOR, z=np.zeros(d), I=np.eye(d), x=np.ones(d)) for d in (2, 3)]
    assert "for data of other sizes: w has 3 numbers here, 2 numbers there" in told(tmp_path / "p.npz", two, three)


@pytest.mark.thorough
def test_a_file_with_other_bytes_is_an_error_or_the_same(tmp_path: Path) -> None:
    """Wherever one is turned over, and however long what is left of it is."""
    path, rng = tmp_path / "p.npz", np.random.default_rng(1)
    venture = session("[assume x (tag 'block 0 (normal 0 1))] [observe (normal x 1) 0.5]")
    venture.compile("p", "block", "all", worlds=200, hidden=4)
    venture.save_proposers(path)
    content = path.read_bytes()
    for at in rng.integers(len(content), size=150).tolist():
        turned = content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]
        path.write_bytes(turned if at % 3 else content[:at])
        said = ""
        try:
            files.load(path)
        except VentureError as error:
            said = error.message
        assert not said or "damaged" in said
