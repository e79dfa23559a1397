"""The fenced blocks of a document, and what each of them gives when it is run.

- A `venture` block is a program of its own, run as `venture run - --seed 1`.
- The `python` blocks of one document share their names, so that a later one goes on where an earlier one stopped.
- A `cell` block is a cell of a notebook, which shares its variables with the page's other cells.
- A `console` block is a session: each line that starts with `$ ` is a command, the lines below are what it prints.
- A `prompt` block is a session of `venture repl --seed 1 --plots pictures`, which later ones of the document go on
  with. Each line that starts with a number and `> ` is an entry, the lines that start with `.. ` are more of it, the
  others what it gives.
- A block with `title="FILE"` is a file that later commands find in their folder; it is run only if an output follows.

What a `venture` or `python` block prints stands in an `output` block directly below it. The folder in which a
document's blocks run is empty but for `programs/` and what the document itself puts there.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from venture_lite.inference.signals import Stop
from venture_lite.repl import Conversation, PromptSettings
from venture_lite.shell import workers
from venture_lite.shell.cli import main
from venture_lite.shell.report import RunReport

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.relative_to(ROOT / "docs").parts[0] != "editors"),
]
FENCE = re.compile(r"^```(\w*)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r'title="([^"]+)"')
RUN = ("python", "venture", "cell", "console", "prompt")
# blocks that hold what they print
SESSIONS = ("console", "prompt")
ENTRY = re.compile(r"^\d+> [^\n]*\n(?: *\.\. [^\n]*\n)*", re.MULTILINE)
# how long a kernel took, or the parts of `auto`, which no document shows
SECONDS = re.compile(
    r"(accepted|divergences?|then [\d,]+)(?:, [\d.]+ s|: \S+ s for the warm-up, \S+ s for the draws)$", re.MULTILINE
)
# how wide the terminal is taken to be
WIDTH = "100"


@dataclass(frozen=True, slots=True)
class Block:
    language: str
    text: str
    # the file that it stands for, if any
    title: str | None
    # what it prints, where the document says so
    output: str | None
    line: int
    # where that output stands in the document's text; of a console block, the block's own text
    output_span: tuple[int, int] | None

    @property
    def shown(self) -> str | None:
        """What the document shows of a run: the output, or a whole session."""
        return self.text if self.language in SESSIONS else self.output


def blocks(text: str) -> list[Block]:
    """Every block of a document that is a program, a session or a file."""
    fences = list(FENCE.finditer(text))
    found = []
    for place, fence in enumerate(fences):
        language, title = fence[1], TITLE.search(fence[2])
        following = fences[place + 1] if place + 1 < len(fences) else None
        output = following if following is not None and following[1] == "output" else None
        if language not in RUN and title is None:
            continue
        span = fence.span(3) if language in SESSIONS else output.span(3) if output else None
        line = text.count("\n", 0, fence.start()) + 1
        found.append(Block(language, fence[3], title[1] if title else None, output[3] if output else None, line, span))
    return found


@dataclass(slots=True)
class Runner:
    """Runs the blocks of one document in their order. Mutable: names and files stay for the later blocks."""

    # also the working directory, which the caller enters
    folder: Path
    names: dict[str, Any] = field(default_factory=dict)
    shell: Any = None
    conversation: Conversation = field(default_factory=lambda: Conversation(PromptSettings(1, plots=Path("pictures"))))

    def __post_init__(self) -> None:
        (self.folder / "programs").symlink_to(ROOT / "programs")

    def run(self, block: Block) -> str | None:
        """What the block prints (of a session, all of it) but for seconds, or None for a file that is not run."""
        printed = self._printed(block)
        return None if printed is None else SECONDS.sub(r"\1", printed)

    def _printed(self, block: Block) -> str | None:
        if block.title is not None:
            (self.folder / block.title).write_text(block.text, encoding="utf-8")
            if block.output is None:
                return None
        match block.language:
            case "venture":
                return _command("venture run - --seed 1", stdin=block.text)
            case "console":
                return "".join(f"$ {command}\n{_command(command)}" for command in _commands(block.text))
            case "prompt":
                return "".join(entry + self._entry(entry) for entry in ENTRY.findall(block.text))
            case "python":
                return self._python(block.text)
            case "cell":
                return self._cell(block.text)
        return None

    def _cell(self, text: str) -> str:
        from IPython.utils.capture import capture_output

        shell = self.shell = self.shell or _notebook(self.folder)
        with capture_output() as captured:
            shell.run_cell(text.rstrip("\n"), store_history=True)
        shown = [
            output.data["text/plain"] for output in captured.outputs if not output.data["text/plain"].startswith("<")
        ]
        return "".join([captured.stdout, captured.stderr, *(f"{line}\n" for line in shown)])

    def close(self) -> None:
        if self.shell is not None:
            type(self.shell).clear_instance()

    def _entry(self, shown: str) -> str:
        with _printed() as printed:
            self.conversation.enter(re.sub(r"^(?:\d+>| *\.\.) ", "", shown, flags=re.MULTILINE).rstrip("\n"))
        return printed.getvalue()

    def _python(self, text: str) -> str:
        with _printed() as printed:
            exec(compile(text, "<document>", "exec"), self.names)
        return printed.getvalue()


def _notebook(folder: Path) -> Any:
    """A shell that leaves nothing in the home folder, with the language loaded."""
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    InteractiveShell.clear_instance()
    return InteractiveShell.instance(config=config, colors="nocolor", ipython_dir=str(folder / ".ipython"))


@contextlib.contextmanager
def _printed() -> Iterator[io.StringIO]:
    """What goes to standard output and standard error meanwhile, together."""
    shown = io.StringIO()
    with (
        contextlib.redirect_stdout(shown),
        contextlib.redirect_stderr(shown),
        patch.dict(os.environ, {"COLUMNS": WIDTH}),
    ):
        yield shown


def _commands(session: str) -> list[str]:
    """The commands of a console session; one that ends in a backslash goes on in the next line."""
    return [match[1] for match in re.finditer(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)$", session, re.MULTILINE)]


def _command(command: str, stdin: str = "") -> str:
    """Standard output and standard error of a command together. `venture` alone runs in this process: it is quicker."""
    words = shlex.split(command)
    if words[0] != "venture" or "|" in words or ">" in words:
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        done = subprocess.run(
            command, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PATH": path}
        )
        return done.stdout
    with (
        _printed() as shown,
        patch.object(sys, "stdin", io.StringIO(stdin)),
        patch.object(workers, "_run_chains", _chains_in_this_process),
    ):
        main(words[1:])
    return shown.getvalue()


@dataclass(slots=True)
class _Reports:
    """Keeps what one chain reports, and passes on the rest."""

    listener: workers.Listener
    reports: list[RunReport] = field(default_factory=list)

    def report(self, report: RunReport) -> None:
        self.reports.append(report)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.listener, name)


def _chains_in_this_process(job: workers.Job, listener: workers.Listener, stop: Stop) -> None:
    """The chains one after the other, without processes, which take longer to start than the programs to run.

    That the draws are the same is tested in `tests/cli/test_chains.py`.
    """
    chains = [_Reports(listener) for _ in range(job.chains)]
    for chain, reports in enumerate(chains):
        workers.run_chain(job, chain, reports)
    for together in zip(*(chain.reports for chain in chains), strict=True):
        listener.report(RunReport.merge(together))
