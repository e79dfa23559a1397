"""What was entered, kept between sessions: a file with one entry a line, as a JSON string.

Any number of processes may write one file: an entry is a single write at its end, under a lock, so lines never mix. A
line that is damaged is passed over. When the file has grown to twice what is kept, its older half is dropped. A file
that cannot be written costs a warning and the memory of this session, nothing else.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from prompt_toolkit.history import History

VARIABLE = "VENTURE_HISTORY"
"""Environment variable with another place for the file; empty, nothing is kept."""
KEPT = 10_000
# a longer entry is a file that was pasted, and no key brings it back with profit
LONGEST = 50_000
# no more of a file is read, whatever it is
MOST_BYTES = 8_000_000


def default_path() -> Path | None:
    """The file in the user's data folder (the XDG base directories), or where the environment says."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    data = os.environ.get("XDG_DATA_HOME", "")
    folder = Path(data) if os.path.isabs(data) else Path("~/.local/share").expanduser()
    return folder / "venture_lite" / "history"


class HistoryFile(History):
    """The file of entries, for prompt_toolkit. `problem` says why it cannot be used, once that is known."""

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self.path = path
        self.problem: str | None = None

    def load_history_strings(self) -> Iterable[str]:
        return reversed(self.read())

    def store_string(self, string: str) -> None:
        self.append(string)

    def read(self) -> list[str]:
        """The latest entries, oldest first."""
        if self.path is None:
            return []
        try:
            with self.path.open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_BYTES))
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return []
        except OSError as error:
            self._fail("read", error)
            return []
        return [entry for entry in map(_decoded, lines[-KEPT - 1 :]) if entry is not None]

    def check(self) -> None:
        """Find out whether entries can be kept, without writing one."""
        if self.path is None:
            return
        try:
            self._open().close()
        except OSError as error:
            self._fail("write", error)

    def append(self, entry: str) -> None:
        """Keep one more entry."""
        if self.path is None or self.problem or len(entry) > LONGEST:
            return
        try:
            with self._locked() as file:
                file.write(json.dumps(entry).encode() + b"\n")
                file.flush()
                if file.tell() > 64 * KEPT:
                    self._shorten(file)
        except OSError as error:
            self._fail("write", error)

    def _fail(self, verb: str, error: OSError) -> None:
        self.problem = f"history is not kept: cannot {verb} {self.path}: {error.strerror or error}"

    def _open(self) -> IO[bytes]:
        assert self.path is not None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # entries may hold what nobody else should read
        return open(os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600), "ab+")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """The file, this process alone writing; after a partial line of one that died, from a new line."""
        assert self.path is not None
        while True:
            with self._open() as file:
                _lock(file)
                # another process may have replaced the file while this one waited
                if os.path.exists(self.path) and os.path.samestat(os.fstat(file.fileno()), os.stat(self.path)):
                    if file.seek(0, os.SEEK_END) and _last_byte(file) != b"\n":
                        file.write(b"\n")
                    yield file
                    return

    def _shorten(self, file: IO[bytes]) -> None:
        """Replace the file by its latest entries, if there are far more; readers see the one or the other."""
        assert self.path is not None
        file.seek(0)
        lines = file.read().split(b"\n")[:-1]
        if len(lines) < 2 * KEPT:
            return
        shorter = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        with open(os.open(shorter, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as written:
            written.write(b"\n".join(lines[-KEPT:]) + b"\n")
        os.replace(shorter, self.path)


def _decoded(line: bytes) -> str | None:
    """An entry, or None for a line that is none."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, str) and entry.strip() else None


def _last_byte(file: IO[bytes]) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


def _lock(file: IO[bytes]) -> None:
    """Wait until no other process writes; without locks (Windows) single writes at the end have to do."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(file, fcntl.LOCK_EX)
