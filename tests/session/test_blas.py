"""BLAS has one thread while anything infers, in the libraries that are loaded meanwhile, too."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, os, sys
import numpy
from threadpoolctl import threadpool_info
from venture_lite.session.blas import BLAS_THREADS

def threads():
    return {library["filepath"]: library["num_threads"] for library in threadpool_info()}

before = threads()
assert "scipy.linalg" not in sys.modules
with BLAS_THREADS.one():
    import scipy.linalg
    with BLAS_THREADS.one():
        inside = threads()
    assert threads() == inside
after = threads()
assert "OPENBLAS_NUM_THREADS" not in os.environ
print(json.dumps([before, inside, after]))
"""


@pytest.mark.thorough
def test_a_library_that_is_loaded_while_something_infers_has_one_thread() -> None:
    """In a process of its own, since SciPy is imported once. Seen to fail where only the libraries are limited that
    are there at first."""
    names = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "OMP_NUM_THREADS")
    environment = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, inside, after = json.loads(done.stdout)
    assert set(before) <= set(inside)
    assert set(inside.values()) == {1}
    most = max(before.values())
    assert set(after.values()) == {most}
