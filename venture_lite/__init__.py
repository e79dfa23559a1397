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

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from venture_lite.draws import Draws
    from venture_lite.errors import VentureError, VentureWarning
    from venture_lite.session import Venture

__version__ = "0.1.0"
__all__ = ["Draws", "Venture", "VentureError", "VentureWarning", "__version__"]

_HOMES = {
    "Venture": "venture_lite.session",
    "Draws": "venture_lite.draws",
    "VentureError": "venture_lite.errors",
    "VentureWarning": "venture_lite.errors",
}


def __getattr__(name: str) -> Any:
    """What is public, imported when it is first asked for."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)
