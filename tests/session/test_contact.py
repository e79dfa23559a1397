"""Callers of a session, and a session that ends."""

from __future__ import annotations

import pytest

from venture_lite.session.executors.contact import LOCAL, Listening, reach


def test_a_caller_that_was_not_asked_for_is_told_of_the_end() -> None:
    """Seen to fail where those who wait are left: they would wait for ever."""
    listening = Listening((LOCAL,))
    connection = reach(listening.contact)
    connection.send("hello")
    assert listening.bell.poll(10.0)
    listening.close()
    assert connection.poll(10.0)
    with pytest.raises((EOFError, OSError)):
        connection.recv()
    connection.close()
