"""venture_lite: a probabilistic programming language with programmable, scalable inference.

A tour in the order in which a program flows through the package:

- `language` turns text into syntax; mistakes become the located errors of `errors`.
- `procedures` holds one record for each procedure of the language.
- `program` turns expressions into `Code`: numbered slots with their static dependencies.
- `trace` holds the evaluations of Codes in tables, one row each; `interpreter` makes them, and changes them by detach
  and regenerate; `kernels` makes transitions fast.
- `inference` evaluates programs of inference, `blocks` is what engines ask of a block, `engines` has one engine a file.
- `session` is the door from Python, `shell` the one from the command line, `repl` the prompt; `checker` looks through a
  program without running it, `audit` through a trace, and `draws` is what inference returns.
"""

from __future__ import annotations

# what checkers of types take for `typing.TYPE_CHECKING`: Ctrl-C must not come in the middle of an import of `typing`
# before the command listens to it
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from venture_lite.checker import check, check_file
    from venture_lite.draws.draws import Draws, KernelStatistics
    from venture_lite.draws.summary import Summary
    from venture_lite.engines.compiled.report import ProposerReport
    from venture_lite.errors import (
        ArgumentError,
        EvidenceError,
        KernelError,
        LimitError,
        NameUnknown,
        ParameterError,
        ParseError,
        VentureError,
        VentureWarning,
    )
    from venture_lite.procedures.registered.makers import ExchangeableState
    from venture_lite.session import Venture
    from venture_lite.shell.notebook import load_ipython_extension, unload_ipython_extension
    from venture_lite.values import Symbol

__version__ = "0.1.0"
__all__ = [
    "ArgumentError",
    "Draws",
    "EvidenceError",
    "ExchangeableState",
    "KernelError",
    "KernelStatistics",
    "LimitError",
    "NameUnknown",
    "ParameterError",
    "ParseError",
    "ProposerReport",
    "Summary",
    "Symbol",
    "Venture",
    "VentureError",
    "VentureWarning",
    "__version__",
    "check",
    "check_file",
    "load_ipython_extension",
    "unload_ipython_extension",
]

_HOMES = {
    "Draws": "venture_lite.draws.draws",
    "ExchangeableState": "venture_lite.procedures.registered.makers",
    "KernelStatistics": "venture_lite.draws.draws",
    "ProposerReport": "venture_lite.engines.compiled.report",
    "Summary": "venture_lite.draws.summary",
    "Symbol": "venture_lite.values",
    "Venture": "venture_lite.session",
    "check": "venture_lite.checker",
    "check_file": "venture_lite.checker",
    "load_ipython_extension": "venture_lite.shell.notebook",
    "unload_ipython_extension": "venture_lite.shell.notebook",
}
"""Where what is public stands, errors aside."""


def __getattr__(name: str) -> Any:
    """What is public, imported when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES.get(name, "venture_lite.errors")), name)


def __dir__() -> list[str]:
    return __all__
