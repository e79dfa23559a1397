"""What holds for all tests."""

from __future__ import annotations

import gc
import signal

import pytest

from venture_lite.kernels import formed, label_columns

# a shell that starts the tests in the background has them ignore Ctrl-C, and so do the processes that they start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Ten thousand tests are a heap that no collection of garbage needs to go through again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def forms_at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs on many small programs are short: every shape that can be lowered is, at its first transition, and
    labels have columns at their first draw."""
    if request.path.parent.name in ("generator", "posterior"):
        monkeypatch.setattr(formed, "USES", 1)
        monkeypatch.setattr(formed, "LASTING", 1)
        monkeypatch.setattr(label_columns, "WAIT", 0)
