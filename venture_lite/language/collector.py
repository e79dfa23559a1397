"""Python's garbage collector at rest.

Reading and loading a program make millions of objects and no cycles; the collector would only look at them all again
and again, for half of the time.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Within the block the collector does not run; afterwards it does if it did before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
