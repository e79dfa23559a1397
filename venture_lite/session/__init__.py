"""The embedding API: `Venture` runs directives on the traces of one program.

`venture.py` is the door, `chains.py` the traces behind it, `live.py` the directives that are in force, `rows.py` how
they are loaded, `queries.py` what is asked of the traces without changing the model.
"""

from __future__ import annotations

from venture_lite.session.venture import DirectiveResult, Venture, read_source

__all__ = ["DirectiveResult", "Venture", "read_source"]
