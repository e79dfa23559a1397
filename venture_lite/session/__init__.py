"""The embedding API: `Venture` runs directives on the traces of one program.

`venture.py` is the door, `runner.py` runs what comes through it, `programs.py` reads programs; `chains.py` holds the
traces, `live.py` the directives that are in force; `rows.py` loads them, and `queries.py` asks the traces without
changing the model.
"""

from __future__ import annotations

# NumPy first: imported some modules further down it takes 40 ms more, since its calls then cross the end of one of the
# interpreter's chunks of stack again and again
import numpy  # noqa: F401

from venture_lite.language.source_files import read_source
from venture_lite.session.programs import DirectiveResult
from venture_lite.session.venture import Venture

__all__ = ["DirectiveResult", "Venture", "read_source"]
