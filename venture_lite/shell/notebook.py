"""Programs in the cells of a notebook: `%load_ext venture_lite`, then `%%venture` at the top of a cell.

A cell runs on a `Venture` that stands in the notebook under a name, `v` unless another is given, so that cells of
programs and cells of Python share it. Parameters that the text names are the notebook's variables.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import keyword
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from venture_lite.draws.draws import Draws
from venture_lite.errors import Source, VentureError, escaped, shown_in_notebook
from venture_lite.inference.progress import Silent, for_notebook
from venture_lite.interpreter.tally import Progress
from venture_lite.program.supplied import Parameters
from venture_lite.session import DirectiveResult, Venture
from venture_lite.shell.report import RunReport, as_text, warnings_to

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

DEFAULT_NAME = "v"
ASKS_FOR_HELP = (["%%venture", "--help"], ["%%venture", "-h"])
USAGE = "%%venture [NAME] [--seed N] [--chains K] [--fresh] [--into NAME] [--data FRAME] [--quiet] [--help]"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What `%load_ext venture_lite` calls: adds the magics `%%venture` and `%venture`."""
    magic = Magic(shell)
    register: Any = shell.register_magic_function
    register(magic.cell, "cell", "venture")
    register(magic.line, "line", "venture")
    shell.input_transformers_cleanup.append(_help_alone)


def _help_alone(lines: list[str]) -> list[str]:
    """`%%venture --help` with nothing below it, which IPython would refuse as a cell without a body."""
    if lines and lines[0].split() in ASKS_FOR_HELP and not "".join(lines[1:]).strip():
        return ["%venture --help\n"]
    return lines


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """What `%unload_ext venture_lite` calls."""
    for kind in ("cell", "line"):
        shell.magics_manager.magics[kind].pop("venture", None)
    with contextlib.suppress(ValueError):
        shell.input_transformers_cleanup.remove(_help_alone)


class Magic:
    """`%%venture` in one notebook. Mutates the notebook's variables: the session, and what `--into` names."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def line(self, line: str) -> None:
        """Run the line as a program of the language, on the session `v`: `%venture [predict x]`."""
        if line.strip() in ("--help", "-h"):
            self.cell(line, "")
        else:
            self._run("", line)

    def cell(self, line: str, cell: str) -> None:
        """Run the cell as a program of the language.

        %%venture [NAME] [--seed N] [--chains K] [--fresh] [--into NAME] [--data FRAME] [--quiet]

        NAME      the variable that holds the session (v where none is named); made where there is none
        --seed    of a session that is made now
        --chains  how many traces a session that is made now has
        --fresh   start the session anew; registered procedures stay
        --into    the variable that gets the value of the last directive: draws, after an infer
        --data    a frame whose columns are parameters; may be given several times
        --quiet   show neither values nor progress
        --help    show this

        Parameters that the text names, as in {y[n]}, are the notebook's variables.
        """
        if self._options(line).help:
            print(inspect.cleandoc(Magic.cell.__doc__ or ""))
        else:
            # the cell's first line is the magic's own
            self._run(line, "\n" + cell)

    def _run(self, line: str, program: str) -> None:
        options = self._options(line)
        shown = Shown(options.quiet)
        value: Any = None

        def on_part(result: DirectiveResult) -> None:
            shown.result(result, len(venture.traces))

        def on_value(result: DirectiveResult) -> None:
            nonlocal value
            value = result.value
            on_part(result)

        try:
            venture = self._session(options)
            chains = venture._runner.chains
            watched, chains.progress = chains.progress, shown.progress()
            try:
                with warnings_to(lambda text: print(escaped(f"warning: {text}"), file=sys.stderr)):
                    source = Source(f"In[{len(self.shell.user_ns.get('In', '?')) - 1}]", program)
                    venture.run_source(source, self._parameters(options), on_value, on_part=on_part)
            finally:
                chains.progress = watched
        except (VentureError, KeyboardInterrupt) as error:
            if isinstance(drawn := getattr(error, "draws", None), Draws) and drawn.names:
                value = drawn
                shown.draws(drawn)
            _without_frames(error)
            raise
        finally:
            if options.into is not None:
                self.shell.user_ns[options.into] = value

    def _options(self, line: str) -> argparse.Namespace:
        parser = _Parser()
        options = parser.parse_args(line.split())
        for name in (options.name, options.into, *options.data):
            if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
                parser.error(f"{name} is no name of a variable")
        return options

    def _session(self, options: argparse.Namespace) -> Venture:
        """The session under the name, made where there is none or a fresh one was asked for."""
        known = self.shell.user_ns.get(options.name)
        if known is not None and not isinstance(known, Venture):
            kind = type(known).__name__
            raise VentureError(f"{options.name} is a {kind}, no session", hint="name the session: %%venture model")
        if known is not None and not options.fresh:
            for option, held in (("seed", known.seed), ("chains", len(known.traces))):
                if getattr(options, option) not in (None, held):
                    raise VentureError(f"{options.name} has {option} {held}", hint="--fresh starts it anew")
            return known
        made = Venture(options.seed, 1 if options.chains is None else options.chains)
        if known is not None:
            # what was registered from Python stays, as `clear` keeps it
            made._runner.chains.registered.update(known._runner.chains.registered)
        self.shell.user_ns[options.name] = made
        return made

    def _parameters(self, options: argparse.Namespace) -> Mapping[str, Any]:
        variables = self.shell.user_ns
        for name in options.data:
            if name not in variables:
                raise VentureError(f"there is no variable {name}, whose columns could be parameters")
        return Parameters({name: variables[name] for name in options.data}, around=variables)


class _Parser(argparse.ArgumentParser):
    """The magic's options; what is wrong with them is a line of text, not the end of the process."""

    def __init__(self) -> None:
        super().__init__(prog="%%venture", add_help=False)
        self.add_argument("name", nargs="?", default=DEFAULT_NAME)
        self.add_argument("--seed", type=int)
        self.add_argument("--chains", type=int)
        self.add_argument("--fresh", action="store_true")
        self.add_argument("--into", metavar="NAME")
        self.add_argument("--data", metavar="FRAME", action="append", default=[])
        self.add_argument("--quiet", action="store_true")
        self.add_argument("--help", "-h", action="store_true")

    def error(self, message: str) -> NoReturn:
        from IPython.core.error import UsageError

        raise UsageError(f"{message}\n{USAGE}")


class Shown:
    """What a cell shows: values as text, draws as tables, plots as pictures, progress in a line of its own."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet

    def result(self, result: DirectiveResult, chains: int) -> None:
        """What a person ran the directive to see."""
        report = RunReport.of(result, chains)
        if isinstance(report.value, Draws):
            self.draws(report.value)
        elif not self.quiet and (text := as_text(report)) is not None:
            print(escaped(text))

    def draws(self, draws: Draws) -> None:
        from IPython.display import display

        from venture_lite.draws import pictures, plots

        if self.quiet:
            return
        if draws.names:
            display(draws)
        if draws.plotted is not None:
            if pictures.is_available():
                display(draws.plotted.figure())
            else:
                print(plots.text(draws.plotted))

    def progress(self) -> Progress:
        return Silent() if self.quiet else for_notebook()


def _without_frames(error: BaseException) -> None:
    """Let IPython show the message alone, and the place in a registered function where another error began."""
    lines = ["interrupted; the trace and what was drawn are kept"]
    if isinstance(error, VentureError):
        lines = shown_in_notebook(error, called=False)
    # IPython asks an exception for this before it renders Python's frames
    error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
