"""A session's record, run as a program with its seed, gives the session's trace."""

from __future__ import annotations

import io
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from venture_lite import Venture, VentureError
from venture_lite.audit.snapshot import snapshot
from venture_lite.repl import Conversation, PromptSettings, plain
from venture_lite.repl.record import write_new
from venture_lite.shell.cli import main


def after(*entries: str, chains: int = 1, seed: int = 7) -> Conversation:
    conversation = Conversation(PromptSettings(seed, chains, interactive=False))
    for entry in entries:
        conversation.enter(entry)
    return conversation


def replayed(conversation: Conversation, tmp_path: Path, **parameters: Any) -> Venture:
    """The saved program, run with the session's seed."""
    path = tmp_path / "saved.vnt"
    path.write_text(conversation.record.program("saved.vnt", conversation.settings.seed, conversation.settings.chains))
    found = Venture(conversation.settings.seed, conversation.settings.chains)
    found.run_file(path, **(parameters or conversation.record.parameters.values))
    return found


def states(session: Venture) -> list[Any]:
    """Everything that later draws depend on, with the next draws."""
    score = session.log_score()
    return [score, session.sample("(list (normal 0 1) (uniform_continuous 0 1))"), session.log_score()]


MODEL = (
    "[assume mu (normal 0 1)]",
    "first: [observe (normal mu 1) 2]",
    "for n in 1...3:\n  [observe (normal mu 1) n]\n  more: [predict (normal mu n)]",
    "[define steps 20]",
    "(mh default one steps)",
)


@pytest.mark.parametrize(
    "entries",
    [
        MODEL,
        (*MODEL, "(normal mu 1)", "mu", "(mh default one 5)"),
        (*MODEL, "[sample (nonsense 1)]", "[predict (+ (normal 0 1) (normal 0 -1))]", "(mh default one 5)"),
        (*MODEL, "[assume bad (list (normal 0 1) (normal 0 -1))]", "[assume x (normal mu 1)]", "[force x 3]"),
        (*MODEL, "[observe (normal mu 1) true true]", "[observe (+ mu (normal 0 1)) 1]", "(normal 0 1)"),
        (*MODEL, "[forget first]", "(mh default one 5)"),
        (*MODEL, "(gibbs default one 10)", "(mh default one 5)"),
        ("(normal 0 1)", "[clear]", *MODEL),
        ("for n in 1...3:\n  [observe (normal n 1) n]\n  [sample (normal n 1)]", "[assume x (normal 0 1)]"),
        ("  for n in 1...2:\n    for m in n...2:\n      [observe (normal 0 1) m]", "[assume y (normal 0 1)]"),
        ("[assume a (normal 0 1)] [assume b (nonsense 1)]", "[assume c (normal a 1)]", "[report a]"),
    ],
)
@pytest.mark.parametrize("chains", [1, 2])
def test_the_saved_program_gives_the_same_trace(
    entries: tuple[str, ...], chains: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = after(*entries, chains=chains)
    again = replayed(conversation, tmp_path)
    assert not conversation.record.inexact
    texts = [[entry["text"].split() for entry in found.list_directives()] for found in (conversation.session, again)]
    assert texts[0] == texts[1]
    assert states(conversation.session) == states(again)


def test_what_only_looks_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    conversation = after(
        "[assume x 1]", "x", "[report x]", "[list_directives]", "[get_logscore]", "help normal", "(+ x 1)"
    )
    assert conversation.record.steps == ["[assume x 1]"]


def test_what_was_indented_stands_at_the_margin(capsys: pytest.CaptureFixture[str]) -> None:
    conversation = after("    for n in 1...2:\n      [observe (normal 0 1) n]", "  w: [predict (list 1\n    2)]")
    assert conversation.record.steps == ["for n in 1...2:\n  [observe (normal 0 1) n]", "w: [predict (list 1\n    2)]"]


def test_a_loaded_file_stands_in_the_record_with_its_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "inner.vnt").write_text("[assume y (normal x 1)]")
    (tmp_path / "outer.vnt").write_text('[assume x (normal 0 1)] [load "inner.vnt"]')
    for entry in (f":load {tmp_path}/outer.vnt", f'[load "{tmp_path}/outer.vnt"]'):
        conversation = after(entry)
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        assert states(replayed(conversation, tmp_path / "elsewhere")) == states(conversation.session)
        assert "load" not in "".join(conversation.record.steps)


def test_a_parameter_with_two_values_has_two_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", np.array([1.0, 2.0]))
    conversation = after(
        ":set N 2", f":data X={tmp_path}/x.npy", "for n in 1...N: [observe (normal 0 {N}) {X[n]}]", ":set N 2",
        "[assume a (normal {N} 1)]", ":set N 3", "[assume b (normal {N - 1} {N})]", ":set unused 4",
        "for N in 1...2: [observe (normal 0 1) {X[N]}]",
    )  # fmt: skip
    assert conversation.record.steps[-2:] == [
        "[assume b (normal {N_2 - 1} {N_2})]", "for N in 1...2: [observe (normal 0 1) {X[N]}]",
    ]  # fmt: skip
    arguments = conversation.record.parameters.arguments()
    assert arguments == ["-p", "N=2", "-d", f"X={tmp_path}/x.npy", "-p", "N_2=3"]
    again = replayed(conversation, tmp_path, N=2, N_2=3, X=np.array([1.0, 2.0]))
    assert states(again) == states(conversation.session)


def test_the_command_in_the_file_runs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "my data.npz", X=np.array([1.0, 2.0]), Y=np.array(3.0))
    saved = tmp_path / "a session.vnt"
    conversation = after(
        f":data {tmp_path}/my data.npz", ":set name \"it's\"", "[assume mu (normal {X[1]} {Y})]", "[predict {name}]",
        f":save {saved}",
    )  # fmt: skip
    assert conversation.failures == 0
    command = saved.read_text().splitlines()[1].removeprefix(";")
    assert main(shlex.split(command)[1:]) == 0
    score = conversation.session.log_score()
    saved.write_text(saved.read_text() + "[get_logscore]")
    capsys.readouterr()
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"get logscore = {score:.6g}"


def test_an_interrupted_inference_is_remarked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = after("[assume mu (normal 0 1)]")
    model = conversation.session.traces[0]
    polls = iter(range(100))
    monkeypatch.setattr(model, "interrupted", lambda: next(polls) > 5)
    conversation.enter("(repeat 1000 (do (mh default one 1) (collect mu)))")
    shown, said = capsys.readouterr()
    assert "interrupted; the trace is kept" in said
    assert "1 chain of" in shown
    assert conversation.record.inexact
    assert conversation.record.steps[-1].startswith("; The next directive was interrupted in the session")


def test_an_interrupted_training_leaves_the_prompt_and_no_proposer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = after("[assume mu (tag 'x 0 (normal 0 1))]", "[observe (normal mu 1) 1]")
    model = conversation.session.traces[0]
    polls = iter(range(100))
    monkeypatch.setattr(model, "interrupted", lambda: next(polls) > 20)
    conversation.enter("(compile p x one)")
    assert "interrupted; the trace is kept" in capsys.readouterr().err
    monkeypatch.setattr(model, "interrupted", lambda: False)
    conversation.enter("(compiled_mh p x one 1)")
    assert "there is no proposer p" in capsys.readouterr().err


def test_an_existing_file_is_replaced_only_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.vnt"
    path.write_text("[assume precious 1]")
    conversation = after("[assume x 1]", f":save {path}")
    assert conversation.failures == 1
    assert path.read_text() == "[assume precious 1]"
    conversation.enter(f":save {path} replace")
    assert "[assume x 1]" in path.read_text()
    conversation.enter(f":save {path}")
    assert conversation.failures == 1


def test_a_file_that_cannot_be_written_whole_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, text: str, **_: Any) -> int:
        with self.open("w") as file:
            file.write(text[:3])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(VentureError, match="No space left"):
        write_new(tmp_path / "s.vnt", "text", replace=False)
    assert list(tmp_path.iterdir()) == []


def test_another_seed_only_before_anything_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    conversation = after(":set N 1", ":seed 9", ":seed", "{N}", "[assume x (normal 0 1)]", ":seed 10")
    assert conversation.failures == 1
    assert conversation.settings.seed == 9
    assert conversation.session.report("x") == Venture(9).assume("x", "(normal 0 1)")
    assert capsys.readouterr().out.splitlines()[:2] == ["9", "1"]


def test_a_defect_is_told_and_the_session_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = after("[assume x (normal 0 1)]")
    before = conversation.session.traces[0].trace.rng.bit_generator.state

    def broken(*_: Any) -> None:
        conversation.session.traces[0].trace.rng.random()
        raise AttributeError("broken")

    monkeypatch.setattr("venture_lite.session.queries.sample", broken)
    conversation.enter("x")
    assert "defect of venture_lite" in capsys.readouterr().err
    assert conversation.session.traces[0].trace.rng.bit_generator.state == before


def test_output_that_cannot_show_a_name_escapes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", narrow)
    after("[assume größe 1]")
    narrow.flush()
    assert narrow.buffer.getvalue() == b"gr\\xf6\\xdfe = 1\n"  # type: ignore[attr-defined]


BEGINNING = """\
[assume c (make_crp 1)]
[assume z (mem (lambda (i) (tag 'z i (c))))]
[assume mu (mem (lambda (k) (normal 0 3)))]
for n in 1...4: [observe (normal (mu (z n)) 1) n]
"""


@pytest.mark.parametrize(
    "entry",
    [
        "[assume w (normal 0 1)]",
        "[assume f (lambda (x) (+ x later))] [assume later 2]",
        "[observe (normal (mu (z 9)) 1) 2.5]",
        "[observe (mu 1) 0.25]",
        "[predict (mu (z 11))]",
        "for n in 20...40: [observe (normal (mu (z n)) 1) 3]",
        "for n in 1...2:\n  [predict (mu (z (+ n 50)))]\n  [sample (normal 0 1)]\n",
        "[force (mu 1) 7]",
        "[define steps 3]",
        "[forget 4]",
        "old: [predict (mu 77)] [assume v (normal 0 1)] [forget old] [sample (normal v 1)]",
        "[assume w (normal 0 1)] [assume v nobody]",
        "[predict (mu 77)] [freeze 5]",
    ],
)
def test_what_is_taken_back_was_never_there(entry: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Traces, random numbers, names, numbers of directives and the record, bit for bit; and the session goes on."""
    taken_back, plain_one = (Conversation(PromptSettings(seed=1, chains=2, interactive=False)) for _ in range(2))
    for conversation in (taken_back, plain_one):
        for line in BEGINNING.splitlines():
            conversation.enter(line)
    taken_back.enter(entry)
    # what only looks, and what fails and changes nothing, is no entry to take back
    for look in ("(normal 0 1)", "[report 1]", "[assume bad (normal 0 -1)]", "[list_directives]"):
        taken_back.enter(look)
    taken_back.enter(":undo")
    assert state(taken_back) == state(plain_one)
    for conversation in (taken_back, plain_one):
        conversation.enter("[predict (mu (z 60))] [infer (repeat 5 (do (mh default one 3) (gibbs z one 1)))]")
    assert state(taken_back) == state(plain_one)


def state(conversation: Conversation) -> Any:
    session = conversation.session
    return (
        [snapshot(model) for model in session.traces],
        [model.trace.rng.bit_generator.state for model in session.traces],
        [sorted(model.trace.analyzer.globals) for model in session.traces],
        session.list_directives(),
        conversation.record.program("s.vnt", 1, 2),
        session._runner.chains.defined,
    )


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ("", "nothing to take back"),
        ("[sample (normal 0 1)]\n", "nothing to take back"),
        ("[assume x (normal 0 1)]\n(mh default one 3)\n", "an inference or [clear], and what was done before it"),
        ("[assume x (normal 0 1)]\n[clear]\n", "an inference or [clear], and what was done before it"),
        ("[assume x 1]\n:undo\n", "only the last entry can be taken back"),
    ],
)
def test_what_cannot_be_taken_back(entries: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation(PromptSettings(seed=1, interactive=False))
    plain.converse(conversation, io.StringIO(f"{entries}:undo\n"))
    assert said in capsys.readouterr().err
    assert conversation.failures == 1


def test_an_entry_that_failed_leaves_the_one_before_to_be_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    conversation = Conversation(PromptSettings(seed=1, interactive=False))
    plain.converse(conversation, io.StringIO("[assume x (normal 0 1)]\n[assume y (normal 0 -1)]\nx\n:undo\n"))
    assert conversation.failures == 1
    assert conversation.session.list_directives() == []
