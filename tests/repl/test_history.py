"""The history file: shared, damaged, too long, not writable."""

from __future__ import annotations

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from venture_lite.repl import history
from venture_lite.repl.history import HistoryFile, default_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "history"


def test_entries_come_back_in_order_with_their_lines(path: Path) -> None:
    file = HistoryFile(path)
    entries = ["(+ 1 2)", "for n in 1...3:\n  [observe (f n) n]", 'größe "x"']
    for entry in entries:
        file.append(entry)
    assert HistoryFile(path).read() == entries
    assert path.stat().st_mode & 0o077 == 0


def _write(path: str, name: str, count: int) -> None:
    file = HistoryFile(Path(path))
    for number in range(count):
        file.append(f"{name} {number} " + "x" * 500)


def test_processes_that_write_at_once_lose_and_mix_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(str(path), name, 200)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = [json.loads(line).split()[:2] for line in path.read_text().splitlines()]
    assert len(found) == 600
    for name in "abc":
        assert [number for who, number in found if who == name] == [str(number) for number in range(200)]


def test_the_older_half_is_dropped_while_others_write(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "KEPT", 20)
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write, args=(str(path), name, 100)) for name in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = path.read_text().splitlines()
    assert 20 <= len(lines) <= 40
    # whoever wrote last, its last entries are there in order
    who, number = json.loads(lines[-1]).split()[:2]
    assert number == "99"
    mine = [int(json.loads(line).split()[1]) for line in lines if json.loads(line).startswith(who)]
    assert mine == list(range(100 - len(mine), 100))
    assert [entry.name for entry in path.parent.iterdir()] == ["history"]


def test_an_entry_waits_for_the_lock_and_goes_into_the_file_that_is_there_then(path: Path, tmp_path: Path) -> None:
    import fcntl

    HistoryFile(path).append("first")
    writer = multiprocessing.get_context("fork").Process(target=_write, args=(str(path), "late", 1))
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        writer.start()
        writer.join(0.5)
        assert writer.is_alive()
        (tmp_path / "new").write_text('"replaced"\n')
        os.replace(tmp_path / "new", path)
        # closing would not do: the writer inherited the open file
        fcntl.flock(held, fcntl.LOCK_UN)
    writer.join()
    assert [entry.split()[0] for entry in HistoryFile(path).read()] == ["replaced", "late"]


def test_damaged_lines_are_passed_over_and_a_torn_one_is_closed(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'"one"\n\xff\x00\n{"a": 1}\n3\n""\n"two"\n"tor')
    file = HistoryFile(path)
    assert file.read() == ["one", "two"]
    file.append("three")
    assert HistoryFile(path).read() == ["one", "two", "three"]


def test_only_the_latest_are_read(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("".join(f'"{number}"\n' for number in range(history.KEPT + 5)))
    found = HistoryFile(path).read()
    assert len(found) == history.KEPT
    assert found[-1] == str(history.KEPT + 4)


@pytest.mark.parametrize("where", ["file/history", ""])
def test_a_place_that_cannot_be_written_is_told_once_and_harmless(where: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    file = HistoryFile(tmp_path / where)
    file.check()
    assert file.problem is not None
    assert str(tmp_path / where) in file.problem
    file.append("x")
    assert file.read() == []


def test_a_full_disk_ends_the_writing_alone(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = HistoryFile(path)
    file.append("one")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(json, "dumps", full)
    file.append("two")
    assert "No space left" in (file.problem or "")
    assert file.read() == ["one"]


def test_what_was_pasted_by_the_megabyte_is_not_kept(path: Path) -> None:
    file = HistoryFile(path)
    file.append("x" * 1_000_000)
    assert file.read() == []


def test_the_place_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("VENTURE_HISTORY", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_path() == tmp_path / "venture_lite" / "history"
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path() == tmp_path / ".local" / "share" / "venture_lite" / "history"
    monkeypatch.setenv("VENTURE_HISTORY", str(tmp_path / "mine"))
    assert default_path() == tmp_path / "mine"
    monkeypatch.setenv("VENTURE_HISTORY", "")
    assert default_path() is None
    nowhere = HistoryFile(None)
    nowhere.check()
    nowhere.append("x")
    assert nowhere.read() == []
    assert os.listdir(tmp_path) == []
