"""One BLAS thread while anything infers: transitions are many and small."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any


class _BlasThreads:
    """The BLAS library's number of threads, which the whole process shares: one while any thread infers.

    Each thread that limited it for itself would put back, at its end, what another had set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._limit: Any = None
        # the libraries that were loaded when so many modules were
        self._libraries: Any = None
        self._modules = 0

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        """Transitions are many and small: BLAS threads would cost more than they bring."""
        with self._lock:
            if not self._users:
                self._limit = self._found().limit(limits=1, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._limit.restore_original_limits()

    def _found(self) -> Any:
        """The process's libraries. To look for them takes 5 ms, and only a module that is imported brings another."""
        from threadpoolctl import ThreadpoolController

        if self._modules != len(sys.modules):
            self._libraries, self._modules = ThreadpoolController(), len(sys.modules)
        return self._libraries


BLAS_THREADS = _BlasThreads()
