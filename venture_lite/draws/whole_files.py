"""Files that are written as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from venture_lite.errors import VentureError


def refuse_no_file(path: Path, what: str) -> None:
    """Raises VentureError where no file can be written, as far as its place says."""
    try:
        path.exists()
    except OSError as error:
        raise VentureError(f"cannot write {path}: {error.strerror}") from error
    if not path.parent.is_dir():
        raise VentureError(f"there is no folder {path.parent} to write {path.name} into")
    if path.is_dir():
        raise VentureError(f"{path} is a folder, so no {what} can be written to it")


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside the one asked for, which takes its place when it is complete and goes when it is not.

    Whoever could read and write the file before can do so afterwards, and nobody else, also while it is written. What
    is there and no ordinary file, a pipe for example, is written itself.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        yield path
        return
    before = path.stat() if path.exists() else None
    beside = path.with_name(f".{path.stem}-{os.getpid()}{path.suffix}")
    try:
        if before is not None:
            beside.touch(mode=0o600)
        yield beside
        if before is not None:
            # the owner, where the system lets this user say who, and the permissions
            with contextlib.suppress(OSError, AttributeError):
                os.chown(beside, before.st_uid, before.st_gid)
            beside.chmod(stat.S_IMODE(before.st_mode))
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
