"""Writes what a program gives while it runs: values to standard output, all else to standard error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TextIO

from venture_lite.draws import Draws
from venture_lite.errors import VentureError
from venture_lite.progress import Display, Snapshot, is_watched
from venture_lite.report import Report, as_json, as_text
from venture_lite.streams import say, write_line


class Printer:
    """Writes values as they come. Mutable: it counts the sets of draws and remembers the warnings it has given."""

    def __init__(self, as_json: bool, out: Path | None, plots: Path | None, chains: int = 1) -> None:
        self._as_json = as_json
        self._out = out
        self._plots = plots
        # what the program prints goes another way than its values: the streams as they are now
        self._stream: TextIO | None = sys.stdout
        self._display = Display(sys.stderr, chains) if not as_json and is_watched(sys.stderr) else None
        self._draws_written = 0
        self._pictures_written = 0
        self._tables_shown = 0
        self._warned: set[str] = set()

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

    def report(self, report: Report) -> None:
        """Show what a directive gave; of a loop what the directives in each of its passes gave."""
        for leaf in report.leaves():
            self._show(leaf)

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

    def _show(self, report: Report) -> None:
        draws = report.value if isinstance(report.value, Draws) else None
        file, failure = self._save(draws) if draws else (None, None)
        picture = self._draw(draws) if draws is not None else None
        if self._as_json:
            text = as_json(report, file, picture)
        else:
            text = as_text(report, encoding=getattr(self._stream, "encoding", None))
            if draws is not None and text:
                text = "\n" * (self._tables_shown > 0) + text
                self._tables_shown += 1
        if text is not None:
            self._write(text)
        if draws is not None:
            for warning in draws.summary().warnings:
                self.warn(warning)
        if failure is not None:
            raise failure

    def _draw(self, draws: Draws) -> Path | None:
        """Write what was plotted to a picture in `--plots`."""
        if self._plots is None or draws.plotted is None:
            return None
        from venture_lite.pictures import write

        self._pictures_written += 1
        path = self._plots / f"plot-{self._pictures_written}.png"
        write(draws.plotted, path)
        self._say(f"picture written to {path}")
        return path

    def _save(self, draws: Draws) -> tuple[Path | None, VentureError | None]:
        """Write draws to `--out`, the second set to FILE-2 and so on.

        An error is handed back: what the draws say can still be shown before it ends the program.
        """
        if self._out is None:
            return None, None
        self._draws_written += 1
        number = f"-{self._draws_written}" if self._draws_written > 1 else ""
        path = self._out.with_name(f"{self._out.stem}{number}{self._out.suffix}")
        try:
            draws.save(path)
        except VentureError as error:
            return None, error
        self._say(f"draws written to {path}")
        return path, None
