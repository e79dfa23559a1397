"""venture_lite: a probabilistic programming language with programmable, scalable inference.

A tour in the order in which a program flows through the package:

- `parse` turns text into the records of `syntax`; mistakes become the located errors of `errors`.
- `lift` and `analyze` turn expressions into `code`: numbered slots with their static dependencies.
- `trace` evaluates Codes into tables, one row an evaluation, and changes them by detach and regenerate.
- `procedures` holds one record for each procedure of the language.
- `inference` holds one engine a file, and the programs that compose them.
- `session` is the door from Python, `cli` the one from the command line; `draws` is what inference returns.
"""

from __future__ import annotations

# what checkers of types take for `typing.TYPE_CHECKING`: Ctrl-C must not come in the middle of an import of `typing`
# before the command listens to it
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from venture_lite.checker import check, check_file
    from venture_lite.draws import Draws, KernelStatistics
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
    from venture_lite.notebook import load_ipython_extension, unload_ipython_extension
    from venture_lite.procedures.user_makers import ExchangeableState
    from venture_lite.session import Venture
    from venture_lite.summary import Summary
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
    "venture_lite.checker": ("check", "check_file"),
    "venture_lite.draws": ("Draws", "KernelStatistics"),
    "venture_lite.errors": (
        "ArgumentError",
        "EvidenceError",
        "KernelError",
        "LimitError",
        "NameUnknown",
        "ParameterError",
        "ParseError",
        "VentureError",
        "VentureWarning",
    ),
    "venture_lite.notebook": ("load_ipython_extension", "unload_ipython_extension"),
    "venture_lite.procedures.user_makers": ("ExchangeableState",),
    "venture_lite.session": ("Venture",),
    "venture_lite.summary": ("Summary",),
    "venture_lite.values": ("Symbol",),
}


def __getattr__(name: str) -> Any:
    """What is public, imported when it is first asked for."""
    home = next((module for module, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return __all__
