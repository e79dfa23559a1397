"""The cluster of dask that `--scheduler` names."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import Executor

from venture_lite.errors import UsageError, VentureError

SECONDS = 10.0
"""How long a scheduler may take to answer."""


@contextlib.contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """An executor that has the cluster run things, until the block ends.

    Raises:
        UsageError: the address is none.
        VentureError: dask is not installed, or no scheduler answers there.
    """
    try:
        from distributed import Client
    except ImportError:
        raise VentureError("--scheduler needs dask", hint="pip install 'venture-lite[dask]'") from None
    if not address.rpartition(":")[2].isdigit():
        raise UsageError(f"--scheduler {address}: the address is HOST:PORT, as `dask scheduler` shows it")
    # what becomes of connections is told by what becomes of chains
    for name in ("distributed", "distributed.client", "distributed.core"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address if "://" in address else f"tcp://{address}", timeout=SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        hint = "`dask scheduler` starts one, and shows its address; `dask worker ADDRESS` gives it workers"
        message = f"no scheduler answers at {address} within {SECONDS:.0f} s ({_first_line(error)})"
        raise VentureError(message, hint=hint) from None
    with contextlib.closing(client):
        yield client.get_executor()


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
