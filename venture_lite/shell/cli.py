"""The command `venture`.

Standard output carries values, standard error everything else. The exit status is 0 where all went well, 1 for an
error in the program or its data, 2 for wrong usage, and after a signal 128 and its number: 130 after Ctrl-C. What is
heavy is imported where it is used: the command's help must not wait for NumPy. A signal waits until it is: an import
that is broken off may say something else (NumPy, that it is installed badly).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from venture_lite.errors import Source, UsageError, VentureError
from venture_lite.inference.signals import Stop
from venture_lite.language import syntax
from venture_lite.shell.streams import say, told, write_line

if TYPE_CHECKING:
    from venture_lite.checker import Checked
    from venture_lite.shell.data import Options
    from venture_lite.shell.painter import Painter
    from venture_lite.shell.workers import Job

Run = Callable[[argparse.Namespace, Stop], int]

AUTO_CHAINS, AUTO_DRAWS = 4, 1000
"""Of `auto`, where nothing else is said."""

# columns of data files that are named as left out
NOTES_SHOWN = 5

FAILED = 1
USAGE = 2
SIGNALLED = 128
# what is said at the end, by signal (Windows has no SIGHUP)
ENDED_BY = {signal.SIGTERM: "terminated", getattr(signal, "SIGHUP", None): "the terminal has hung up"}

KERNELS = ("compiled", "interpreted", "checked")
"""How kernels may make transitions: `interpreter.model.WAYS`, which costs an import."""
EXAMPLES = """\
examples:
  venture run model.vnt --seed 1
  venture run model.vnt -p sigma=0.5 -d data.csv --chains 4 --out draws.npz
  venture run model.vnt -d data.csv --auto
  venture run model.vnt -d data.csv --chains 16 --scheduler 10.0.0.5:8786
  venture compile model.vnt -d data.csv -o proposers.npz
  venture run model.vnt -d other.csv --proposers proposers.npz
  echo '[sample (normal 0 1)]' | venture run -
  venture check model.vnt
  venture explain model.vnt -d data.csv
  venture repl model.vnt
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with its arguments (those of the process by default); returns the exit status."""
    try:
        options = _parser().parse_args((sys.argv[1:] if argv is None else argv) or ["repl"])
    except SystemExit as ended:
        return int(ended.code or 0)
    with Stop().listening() as stop:
        try:
            return int(options.run(options, stop))
        except UsageError as error:
            say(str(error))
            return USAGE
        except (VentureError, MemoryError) as error:
            say(told(error))
            return FAILED
        except BrokenPipeError:
            return FAILED
        except KeyboardInterrupt:
            number = stop.number or signal.SIGINT
            say(ENDED_BY.get(number, "interrupted"))
            return SIGNALLED + number


def _parser() -> argparse.ArgumentParser:
    shared: dict[str, Any] = {"epilog": EXAMPLES, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(
        prog="venture", description="Run probabilistic programs. Without a command: a prompt, as repl is.", **shared
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and end")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Run, summary: str, **file: Any) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=summary, **shared)
        made.set_defaults(run=run)
        made.add_argument("file", metavar="FILE", **{"help": "the program; - is standard input", **file})
        _add_parameters(made)
        return made

    run = command("run", _run, "run a program")
    _add_limits(run)
    _add_plots(run)
    run.add_argument("--chains", type=_positive, metavar="K", help="independent runs, in K processes (1; 4 for auto)")
    run.add_argument("--scheduler", metavar="ADDRESS", help="run the chains on a cluster of dask, HOST:PORT")
    run.add_argument("--auto", action="store_true", help="compose an inference for a program that has none, and run it")
    run.add_argument("--approximate", action="store_true", help="--auto may take kernels that are not quite exact")
    run.add_argument("--draws", type=_positive, metavar="N", help="draws a chain that --auto makes at least (1000)")
    run.add_argument("--out", type=Path, metavar="FILE", help="write draws to a .npz, .csv, .parquet or .nc file")
    run.add_argument("--json", action="store_true", help="print one JSON object a line")
    run.add_argument(
        "--kernels", choices=KERNELS, default=KERNELS[0], help="by fast ways, by the interpreter, or both and compared"
    )
    run.add_argument("--proposers", type=Path, metavar="FILE", help="proposers that `compile` need not train")
    compiling = command("compile", _compile, "train the proposers of a program, and write them to a file")
    compiling.add_argument("-o", dest="out", type=Path, metavar="FILE", required=True, help="the file, a .npz")
    _add_limits(compiling)
    check = command("check", _check, "find what is wrong with a program without running it")
    check.add_argument("--json", action="store_true", help="print one JSON object a line, for editors")
    explain = command("explain", _explain, "show what the inferences of a program would do, without running them")
    explain.add_argument("--seed", type=_natural, metavar="N", default=1, help="seed of the state that is shown (1)")
    explain.add_argument("--json", action="store_true", help="print one JSON object a line")
    repl = command("repl", _repl, "a prompt for directives", nargs="?", type=Path, help="a program to run first")
    _add_limits(repl)
    _add_plots(repl)
    repl.add_argument("--chains", type=_positive, metavar="K", default=1, help="independent traces of the program")
    return parser


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-p", dest="values", metavar="NAME=VALUE", action="append", default=[], help="a parameter, its value as JSON"
    )
    parser.add_argument(
        "-d",
        dest="data",
        metavar="[NAME=]PATH[:KEY]",
        action="append",
        default=[],
        help="a parameter read from a .npy, .npz, .csv, .tsv or .parquet file; FILE alone binds every column or array",
    )


def _add_limits(parser: argparse.ArgumentParser) -> None:
    """The options of every command whose directives may run long."""
    parser.add_argument(
        "--seed", type=_natural, metavar="N", help="seed of the random numbers; the default is a fresh one"
    )
    parser.add_argument(
        "--nested-calls", type=_positive, metavar="N", default=400_000, help="stop a deeper recursion (400000)"
    )
    parser.add_argument("--memory-mb", type=_positive, metavar="M", help="stop a process that takes more memory")


def _add_plots(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--plots", type=Path, metavar="DIR", help="write plots, and draws of auto, as pictures into a folder"
    )


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


def _repl(options: argparse.Namespace, stop: Stop) -> int:
    with stop.held():
        from venture_lite import repl

    settings = repl.PromptSettings(
        _seed(options),
        options.chains,
        options.nested_calls,
        options.memory_mb,
        tuple(options.values),
        tuple(options.data),
        options.plots,
        repl.is_terminal(),
    )
    return repl.start(settings, options.file, stop)


def _run(options: argparse.Namespace, stop: Stop) -> int:
    with contextlib.ExitStack() as around:
        painter = None
        if options.plots is not None:
            from venture_lite.shell.painter import Painter

            # before all that is heavy is imported here
            painter = Painter()
            around.callback(painter.end)
        return _run_with(options, stop, painter)


def _run_with(options: argparse.Namespace, stop: Stop, painter: Painter | None) -> int:
    with stop.held():
        from venture_lite.shell.printer import Printer
        from venture_lite.shell.workers import ProgramFailed, run

    source = _composed(options)
    together = _is_automatic(source)
    options.chains = options.chains or (AUTO_CHAINS if together else 1)
    if options.scheduler is not None and options.chains == 1:
        raise UsageError("--scheduler runs the chains of a program: say how many, --chains K with K from 2 on")
    printer = Printer(options.json, options.out, options.plots, options.chains, painter)
    try:
        job = _job(source, together, options, printer.is_watched, stop)
        with _elsewhere(job, options.scheduler, stop) as job:
            run(job, printer, stop)
        printer.tell_of_earlier_files()
    except ProgramFailed as error:
        printer.finish()
        say(str(error))
        return FAILED
    finally:
        printer.finish()
    return 0


@contextlib.contextmanager
def _elsewhere(job: Job, scheduler: str | None, stop: Stop) -> Iterator[Job]:
    """The job, whose chains a cluster runs if one is named."""
    if scheduler is None:
        yield job
        return
    with stop.held():
        from venture_lite.shell.cluster import cluster
    with cluster(scheduler) as executor:
        yield replace(job, together=True, executor=executor)


def _composed(options: argparse.Namespace) -> Source:
    """The program, with the inference that `--auto` asks for."""
    source = _read_program(options.file)
    if not options.auto:
        if options.draws is not None:
            raise UsageError("--draws says how many draws --auto makes")
        if options.approximate:
            raise UsageError("--approximate says which kernels --auto may take")
        return source
    inference = next((item for item in _directives(source) if isinstance(item, syntax.Infer)), None)
    if inference is not None:
        raise VentureError("the program has an inference of its own", inference.span, "leave --auto out")
    draws = AUTO_DRAWS if options.draws is None else options.draws
    approximate = " 'approximate" if options.approximate else ""
    return Source(source.name, f"{source.text.rstrip()}\n[infer (auto {draws}{approximate})]\n")


def _is_automatic(source: Source) -> bool:
    """Whether some inference of a program is `(auto DRAWS)`."""
    if "auto" not in source.text:
        return False
    from venture_lite.session.programs import is_auto

    return any(isinstance(item, syntax.Infer) and is_auto(item.expression) for item in _directives(source))


def _directives(source: Source) -> list[syntax.Directive]:
    """Those inside of loops too."""
    from venture_lite.language.parse import parse_program

    return list(syntax.flattened(parse_program(source)))


def _job(source: Source, together: bool, options: argparse.Namespace, watched: bool, stop: Stop) -> Job:
    from venture_lite.shell.workers import Job

    if options.out is not None:
        from venture_lite.draws.files import check_output

        check_output(options.out)
    if options.plots is not None:
        from venture_lite.draws.pictures import check_available

        check_available()
    if options.proposers is not None:
        from venture_lite.engines.compiled.files import load

        with stop.held():
            load(options.proposers)
    seed = _seed(options)
    job = Job(
        source,
        _parameters(options, stop),
        seed,
        options.chains,
        options.nested_calls,
        options.memory_mb,
        watched,
        options.kernels,
        options.proposers,
        together=together,
    )
    _tell_seed(options, seed)
    return job


def _compile(options: argparse.Namespace, stop: Stop) -> int:
    with stop.held():
        from venture_lite.shell.compiling import check_proposers, compile_program
        from venture_lite.shell.printer import Printer
        from venture_lite.shell.workers import Job

    check_proposers(options.out)
    printer, seed = Printer(False, None, None), _seed(options)
    source, parameters = _read_program(options.file), _parameters(options, stop)
    job = Job(source, parameters, seed, 1, options.nested_calls, options.memory_mb, printer.is_watched)
    _tell_seed(options, seed)
    try:
        compile_program(job, options.out, printer)
    finally:
        printer.finish()
    say(f"proposers written to {options.out}")
    return 0


def _tell_seed(options: argparse.Namespace, seed: int) -> None:
    if options.seed is None:
        say(f"seed: {seed}")


def _read_program(file: str) -> Source:
    """The program's text.

    Raises:
        VentureError: no such file, nothing in it, or something other than text.
    """
    from venture_lite.language.source_files import read_source, read_standard_input

    source = read_standard_input() if file == "-" else read_source(Path(file), None)
    if not source.text.strip():
        raise VentureError(f"{source.name} is empty: there is no directive in it")
    return source


def _check(options: argparse.Namespace, stop: Stop) -> int:
    """What is wrong with a program, on standard output: that is what was asked for."""
    with stop.held():
        from venture_lite.checker import check_source

    parameters = _parameters(options, stop).parameters or None
    return _write_checked(check_source(_read_program(options.file), parameters), options.json)


def _write_checked(checked: Checked, as_json: bool) -> int:
    write_line("\n".join(map(json.dumps, checked.as_dicts())) if as_json else str(checked), sys.stdout)
    return 0 if checked.ok else FAILED


def _explain(options: argparse.Namespace, stop: Stop) -> int:
    """What the inferences of a program would do, on standard output; of a program with errors what a check says."""
    with stop.held():
        from venture_lite.checker import check_source
        from venture_lite.session import Venture
        from venture_lite.shell.report import warnings_to

    parameters = _parameters(options, stop).parameters
    source = _read_program(options.file)
    checked = check_source(source, parameters)
    if not checked.ok:
        return _write_checked(checked, options.json)
    with warnings_to(lambda text: say(f"warning: {text}")):
        explained = Venture(seed=options.seed).explain_source(source, parameters)
    if not explained:
        say("note: the program infers nothing")
    elif options.json:
        write_line("\n".join(json.dumps(one.as_dict()) for one in explained), sys.stdout)
    else:
        write_line("\n\n".join(map(str, explained)), sys.stdout)
    return 0


def _parameters(options: argparse.Namespace, stop: Stop) -> Options:
    """The values of all `-p` and `-d`; what is left out of a file is said."""
    with stop.held():
        from venture_lite.shell.data import read_options

    memory = getattr(options, "memory_mb", None)
    found = read_options(options.values, options.data, None if memory is None else memory * 2**20)
    notes = list(found.left_out.values())
    for note in notes[:NOTES_SHOWN]:
        say(f"note: {note}")
    if len(notes) > NOTES_SHOWN:
        say(f"note: and {len(notes) - NOTES_SHOWN} more columns")
    return found
