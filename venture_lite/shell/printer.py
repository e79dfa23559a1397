"""Writes what a program gives while it runs: values to standard output, all else to standard error."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from venture_lite.draws.draws import Draws
from venture_lite.draws.files import save_parts
from venture_lite.draws.presentation import counted
from venture_lite.errors import VentureError
from venture_lite.inference.progress import Display, Snapshot, is_watched
from venture_lite.shell.report import RunReport, as_json, as_text
from venture_lite.shell.streams import say, write_line

if TYPE_CHECKING:
    from venture_lite.shell.painter import Painter


class Printer:
    """Writes values as they come. Mutable: it counts the sets of draws and remembers the warnings it has given."""

    def __init__(
        self, as_json: bool, out: Path | None, plots: Path | None, chains: int = 1, painter: Painter | None = None
    ) -> None:
        """Pictures go to the folder `plots`, by the painter where there is one."""
        self._painter = painter
        self._as_json = as_json
        self._out = out
        self._plots = plots
        self._chains = chains
        # what the program prints goes another way than its values: the streams as they are now
        self._stream: TextIO | None = sys.stdout
        self._display = Display(sys.stderr, chains) if not as_json and is_watched(sys.stderr) else None
        self._draws_written = 0
        self._pictures_written = 0
        self._tables_shown = 0
        self._warned: set[str] = set()
        self._written_to: set[Path] = set()

    @property
    def is_watched(self) -> bool:
        """Whether it shows how far the chains are."""
        return self._display is not None

    def progressed(self, chain: int, snapshot: Snapshot | None) -> None:
        if self._display is not None:
            self._display.update(chain, snapshot)

    def warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._say(f"warning: {text}")

    def printed(self, line: str) -> None:
        """A line of the program's own: among the values, or, where a machine reads those, for the person."""
        if self._as_json:
            self._say(line)
        else:
            self._write(line)

    def report(self, report: RunReport) -> None:
        """Write and show what a directive gave."""
        draws = report.value if isinstance(report.value, Draws) else None
        if report.partial is not None and draws is not None:
            self._say(_partial(report, draws, self._chains))
        files, failure = self._save(draws, report.rest) if draws else ([], None)
        picture = self._draw(draws) if draws is not None else None
        self._show(report, files, picture)
        if draws is not None:
            for warning in draws.summary().warnings:
                self.warn(warning)
        if failure is not None:
            raise failure

    def drawn(self, draws: Draws) -> None:
        """Let the picture be made of draws that will be reported."""
        if self._plots is not None and self._painter is not None:
            self._painter.begin(draws)

    def tell_of_earlier_files(self) -> None:
        """What an earlier run left beside the files of this one would be taken for its draws."""
        if self._out is None or not self._written_to:
            return
        name = re.compile(rf"{re.escape(self._out.stem)}(-\d+)?(-rest)?{re.escape(self._out.suffix)}")
        found = sorted(path for path in self._out.parent.iterdir() if name.fullmatch(path.name))
        if old := [str(path) for path in found if path not in self._written_to]:
            self.warn(f"of an earlier run, not of this one: {', '.join(old)}")

    def finish(self) -> None:
        """Leave the terminal as it was."""
        if self._display is not None:
            self._display.clear()

    def _say(self, text: str) -> None:
        self.finish()
        say(text)

    def _write(self, text: str) -> None:
        self.finish()
        write_line(text, self._stream)

    def _show(self, report: RunReport, files: list[Path], picture: Path | None) -> None:
        """One directive's value on standard output."""
        if self._as_json:
            file, rest, *_ = (*files, None, None)
            text = as_json(report, file, picture, rest)
        else:
            text = as_text(report, encoding=getattr(self._stream, "encoding", None))
            if isinstance(report.value, Draws) and text:
                text = "\n" * (self._tables_shown > 0) + text
                self._tables_shown += 1
        if text is not None:
            self._write(text)

    def _draw(self, draws: Draws) -> Path | None:
        """Write a picture to the folder of `--plots`, if there is one."""
        shown = draws.pictured
        if self._plots is None or shown is None:
            return None
        from venture_lite.draws import pictures

        self._pictures_written += 1
        path = self._plots / f"plot-{self._pictures_written}.png"
        pictures.write(pictures.png(shown) if self._painter is None else self._painter.png(shown), path)
        self._say(f"picture written to {path}")
        return path

    def _save(self, draws: Draws, rest: Draws | None) -> tuple[list[Path], VentureError | None]:
        """Write draws to `--out`, the second set to FILE-2 and so on, and what is left of uneven chains to FILE-rest.

        What cannot stand there is written to a folder for temporary files. An error is handed back: what the draws say
        can still be shown before it ends the program.
        """
        if self._out is None:
            return [], None
        self._draws_written += 1
        number = f"-{self._draws_written}" if self._draws_written > 1 else ""
        path = self._out.with_name(f"{self._out.stem}{number}{self._out.suffix}")
        try:
            written = save_parts(draws, rest, path, self._say)
        except VentureError as error:
            return self._rescued(draws, rest, path.name), error
        self._written_to.update(written)
        return written, None

    def _rescued(self, draws: Draws, rest: Draws | None, name: str) -> list[Path]:
        """Draws that the disk of `--out` does not take, on that of temporary files if it does."""
        import tempfile

        with contextlib.suppress(OSError):
            folder = Path(tempfile.mkdtemp(prefix="venture-draws-"))
            try:
                return save_parts(draws, rest, folder / name, self._say)
            except VentureError:
                # a folder with draws in it stays
                folder.rmdir()
        return []


def _partial(report: RunReport, draws: Draws, chains: int) -> str:
    """What there is of an inference that did not come to its end."""
    held = counted(max(draws.lengths().values(), default=0), "draw")
    if chains > 1:
        held = f"{_listed(draws.numbers)} of {chains}, {held}{' each' * (draws.chain_count > 1)}"
    if report.rest is not None:
        held += "; the rest: " + ", ".join(
            f"chain {number}: {counted(count, 'draw')}" for number, count in report.rest.lengths().items()
        )
    return f"partial draws ({report.partial}): {held}"


def _listed(numbers: Sequence[int]) -> str:
    """`chain 2`, `chains 0, 1 and 3`."""
    if len(numbers) == 1:
        return f"chain {numbers[0]}"
    *first, last = map(str, numbers)
    return f"chains {', '.join(first)} and {last}"
