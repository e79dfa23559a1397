"""The command `venture`.

Standard output carries values, standard error everything else. The exit status is 0 where all went well, 1 for an
error in the program or its data, 2 for wrong usage, 130 after Ctrl-C. What is heavy is imported where it is used: the
command's help must not wait for NumPy.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from venture_lite.errors import Source, VentureError

if TYPE_CHECKING:
    from venture_lite.draws import Draws
    from venture_lite.report import Report

FAILED = 1
USAGE = 2
INTERRUPTED = 130

EXAMPLES = """\
examples:
  venture run model.vnt --seed 1
  venture run model.vnt -p sigma=0.5 -d y=data.csv:score --chains 4 --out draws.npz
  echo '[sample (normal 0 1)]' | venture run -
  venture repl model.vnt
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with its arguments (those of the process by default); returns the exit status."""
    try:
        options = _parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        return _repl(options) if options.command == "repl" else _run(options)
    except BrokenPipeError:
        _abandon_output()
        return FAILED
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="venture", description="Run probabilistic programs.", epilog=EXAMPLES, formatter_class=_Formatter
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and end")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a program", epilog=EXAMPLES, formatter_class=_Formatter)
    run.add_argument("file", metavar="FILE", help="the program; - is standard input")
    _add_common(run)
    run.add_argument("--chains", type=_positive, metavar="K", default=1, help="independent runs, in K processes")
    run.add_argument("--out", type=Path, metavar="FILE", help="write draws to a .npz, .csv or .nc file")
    run.add_argument("--json", action="store_true", help="print one JSON object a line")
    repl = commands.add_parser("repl", help="a prompt for directives", epilog=EXAMPLES, formatter_class=_Formatter)
    repl.add_argument("file", metavar="FILE", nargs="?", type=Path, help="a program to run first")
    _add_common(repl)
    repl.add_argument("--chains", type=_positive, metavar="K", default=1, help="independent traces of the program")
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    """The options of every command that runs directives."""
    parser.add_argument(
        "-p", dest="values", metavar="NAME=VALUE", action="append", default=[], help="a parameter, its value as JSON"
    )
    parser.add_argument(
        "-d",
        dest="data",
        metavar="NAME=PATH[:KEY]",
        action="append",
        default=[],
        help="a parameter read from a .npy, .npz, .csv or .csv.gz file; FILE.npz alone binds every array in it",
    )
    parser.add_argument(
        "--seed", type=_natural, metavar="N", help="seed of the random numbers; the default is a fresh one"
    )
    parser.add_argument(
        "--plots", type=Path, metavar="DIR", help="write what (plot ...) shows as pictures into a folder"
    )
    parser.add_argument(
        "--nested-calls", type=_positive, metavar="N", default=400_000, help="stop a deeper recursion (400000)"
    )
    parser.add_argument("--memory-mb", type=_positive, metavar="M", help="stop a process that takes more memory")


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps the examples' lines."""


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        from importlib.metadata import version

        print(f"venture {version('venture-lite')}")
        parser.exit()


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0")
    return int(text)


def _positive(text: str) -> int:
    number = _natural(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return number


def _seed(options: argparse.Namespace) -> int:
    """The seed asked for, or a fresh one."""
    return int.from_bytes(os.urandom(4), "little") if options.seed is None else int(options.seed)


def _repl(options: argparse.Namespace) -> int:
    from venture_lite import repl

    settings = repl.Settings(
        _seed(options),
        options.chains,
        options.nested_calls,
        options.memory_mb,
        tuple(options.values),
        tuple(options.data),
        options.plots,
        repl.is_terminal(),
    )
    try:
        return repl.start(settings, options.file)
    except VentureError as error:
        from venture_lite.data import UsageError

        _say(str(error) if error.span or isinstance(error, UsageError) else f"error: {error}")
        return USAGE if isinstance(error, UsageError) else FAILED


def _run(options: argparse.Namespace) -> int:
    from venture_lite.data import UsageError
    from venture_lite.workers import Interrupted, ProgramFailed

    seed = _seed(options)
    printer = _Printer(options.json, options.out, options.plots)
    try:
        _execute(options, seed, printer)
    except UsageError as error:
        _say(str(error))
        return USAGE
    except VentureError as error:
        _say(str(error) if error.span else f"error: {error}")
        return FAILED
    except ProgramFailed as error:
        _say(str(error))
        return FAILED
    except MemoryError:
        _say("error: out of memory")
        return FAILED
    except Interrupted as interrupt:
        _keep_draws(interrupt.draws, printer)
        raise
    return 0


def _execute(options: argparse.Namespace, seed: int, printer: _Printer) -> None:
    from venture_lite.report import warnings_to
    from venture_lite.workers import Interrupted, Job, run_chains, run_one

    if options.out is not None:
        from venture_lite.export import check_output

        check_output(options.out)
    if options.plots is not None:
        from venture_lite.pictures import check_available

        check_available()
    job = Job(
        _read_program(options.file),
        _parameters(options),
        seed,
        options.chains,
        options.nested_calls,
        options.memory_mb,
    )
    if options.seed is None:
        _say(f"seed: {seed}")
    if job.chains > 1:
        run_chains(job, printer.report, printer.warn)
        return
    with warnings_to(printer.warn):
        try:
            run_one(job, 0, printer.report)
        except KeyboardInterrupt as interrupt:
            raise Interrupted(getattr(interrupt, "draws", None)) from interrupt


def _read_program(file: str) -> Source:
    """The program's text.

    Raises:
        VentureError: no such file, nothing in it, or something other than text.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise VentureError(f"{file} is not a text in UTF-8") from error
    except OSError as error:
        raise VentureError(f"cannot read {file}: {error.strerror or error}") from error
    name = "<stdin>" if file == "-" else file
    if not text.strip():
        raise VentureError(f"{name} is empty: there is no directive to run")
    return Source(name, text)


def _parameters(options: argparse.Namespace) -> dict[str, Any]:
    """The values of all `-p` and `-d`; a name given twice is refused, since one of the two would be lost."""
    from venture_lite.data import UsageError, load_data, parse_parameter

    parameters: dict[str, Any] = {}
    for found in [dict([parse_parameter(text)]) for text in options.values] + [
        load_data(text) for text in options.data
    ]:
        for name, value in found.items():
            if name in parameters:
                raise UsageError(f"the parameter {name} is given twice")
            parameters[name] = value
    return parameters


class _Printer:
    """Writes values as they come. Mutable: it counts the sets of draws and remembers the warnings it has given."""

    def __init__(self, as_json: bool, out: Path | None, plots: Path | None) -> None:
        self._as_json = as_json
        self._out = out
        self._plots = plots
        self._draws_written = 0
        self._pictures_written = 0
        self._tables_shown = 0
        self._warned: set[str] = set()

    def warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            _say(f"warning: {text}")

    def report(self, report: Report) -> None:
        """Show what a directive gave; of a loop what the directives in each of its passes gave."""
        for leaf in report.leaves():
            self._show(leaf)

    def _show(self, report: Report) -> None:
        from venture_lite.draws import Draws
        from venture_lite.plots import needs_plain
        from venture_lite.report import as_json, as_text

        draws = report.value if isinstance(report.value, Draws) else None
        file = self._save(draws) if draws else None
        picture = self._draw(draws) if draws is not None else None
        if self._as_json:
            text = as_json(report, file, picture)
        else:
            text = as_text(report, plain=needs_plain(sys.stdout.encoding))
            if draws is not None and text:
                text = "\n" * (self._tables_shown > 0) + text
                self._tables_shown += 1
        if text is not None:
            print(text, flush=True)
        if draws is not None:
            for warning in draws.summary().warnings:
                self.warn(warning)

    def _draw(self, draws: Draws) -> Path | None:
        """Write what was plotted to a picture in `--plots`."""
        if self._plots is None or draws.plotted is None:
            return None
        from venture_lite.pictures import write

        self._pictures_written += 1
        path = self._plots / f"plot-{self._pictures_written}.png"
        write(draws.plotted, path)
        _say(f"picture written to {path}")
        return path

    def _save(self, draws: Draws) -> Path | None:
        """Write draws to `--out`, the second set to FILE-2 and so on."""
        if self._out is None:
            return None
        self._draws_written += 1
        number = f"-{self._draws_written}" if self._draws_written > 1 else ""
        path = self._out.with_name(f"{self._out.stem}{number}{self._out.suffix}")
        draws.save(path)
        _say(f"draws written to {path}")
        return path


def _keep_draws(draws: Draws | None, printer: _Printer) -> None:
    """What an interrupted inference had collected is shown and written like any other draws."""
    if draws or (draws is not None and draws.plotted is not None):
        from venture_lite.report import Report

        printer.report(Report("infer", None, None, draws, None))


def _say(text: str) -> None:
    """To standard error; a closed one is no reason to fail."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def _abandon_output() -> None:
    """Nobody reads standard output any more: keep the interpreter from complaining when it flushes it at the end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
