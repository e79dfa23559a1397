"""One BLAS thread while anything infers: transitions are many and small."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""What says how many threads a BLAS library begins with."""


class _BlasThreads:
    """The BLAS library's number of threads, which the whole process shares: one while any thread infers.

    Each thread that limited it for itself would put back, at its end, what another had set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None
        self._before: dict[str, str | None] = {}
        # the libraries that were loaded when so many modules were
        self._libraries: Any = None
        self._modules = 0

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Transitions are many and small: BLAS threads would cost more than they bring."""
        with self._lock:
            if not self._users:
                self._limit = self._found().limit(limits=1, user_api="blas")
                self._limit_later()
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._limit.restore_original_limits()
                    self._restore_later()

    def _limit_later(self) -> None:
        """SciPy brings a library of its own when it is first imported, which may be while something infers: a library
        looks at these names as it is loaded."""
        self._before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))

    def _restore_later(self) -> None:
        """Those that were loaded since get as many threads as the others have."""
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        known, modules = self._libraries, self._modules
        if modules != len(sys.modules):
            most = [library["num_threads"] for library in known.select(user_api="blas").info()]
            paths = {library["filepath"] for library in known.info()}
            for library in self._found().select(user_api="blas").lib_controllers:
                if library.filepath not in paths and most:
                    library.set_num_threads(max(most))

    def _found(self) -> Any:
        """The process's libraries. To look for them takes 5 ms, and only a module that is imported brings another."""
        from threadpoolctl import ThreadpoolController

        if self._modules != len(sys.modules):
            self._libraries, self._modules = ThreadpoolController(), len(sys.modules)
        return self._libraries


BLAS_THREADS = _BlasThreads()
