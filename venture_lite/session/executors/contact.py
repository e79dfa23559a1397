"""How what an executor runs, perhaps on another machine, comes to talk with the session that asked for it.

The session listens at a port of its own for as long as an inference runs. Who calls there proves that it knows a secret
which the executor carried to it, and asks the same of the session: `multiprocessing.connection` has the protocol.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import struct
import threading
from concurrent.futures import Executor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, answer_challenge, deliver_challenge
from typing import Any
from urllib.parse import urlsplit

CONNECT_SECONDS = 5.0
"""How long an address may take to answer."""
SENDING_SECONDS = 60.0
"""How long a message may wait for who stopped listening."""
LOOK_SECONDS = 0.5
LOCAL = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Contact:
    """Where a session listens, and the secret."""

    # tried one after the other
    hosts: tuple[str, ...]
    port: int
    key: bytes = field(repr=False)

    def told(self) -> str:
        return " or ".join(f"{host}:{self.port}" for host in self.hosts)


class Unreachable(Exception):
    """Nobody answers at any of the addresses."""


def reach(contact: Contact) -> Connection:
    """Call the session. Raises Unreachable."""
    reasons = []
    for host in contact.hosts:
        try:
            end = socket.create_connection((host, contact.port), CONNECT_SECONDS)
            connection = _connection(end)
            if not connection.poll(CONNECT_SECONDS):
                raise TimeoutError("nothing is said there")
            answer_challenge(connection, contact.key)
            deliver_challenge(connection, contact.key)
            return connection
        except Exception as error:
            # whoever answers there may be anybody
            reasons.append(f"{host}:{contact.port}: {error or type(error).__name__}")
    raise Unreachable("; ".join(reasons))


def _connection(end: socket.socket) -> Connection:
    """The same end, for messages; a machine that vanishes is noticed in the end."""
    end.settimeout(None)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Connection(end.detach())


def hang_up(connection: Connection) -> None:
    """End a connection on which another thread may wait: both sides find it at its end."""
    with contextlib.suppress(OSError):
        end = socket.socket(fileno=connection.fileno())
        try:
            end.shutdown(socket.SHUT_RDWR)
        finally:
            end.detach()


class Listening:
    """Takes calls, in threads of its own, until it is closed. Mutable."""

    def __init__(self, hosts: tuple[str, ...]) -> None:
        is_local = all(host == LOCAL for host in hosts)
        self._socket = socket.create_server((LOCAL if is_local else "", 0))
        self.contact = Contact(hosts, self._socket.getsockname()[1], os.urandom(32))
        self._callers: queue.SimpleQueue[tuple[Connection, Any]] = queue.SimpleQueue()
        self._is_closed = False
        # a caller is either among them when they are told, or finds that it is too late
        self._closing = threading.Lock()
        # so that the end is noticed on every system
        self._socket.settimeout(LOOK_SECONDS)
        # `bell` can be read once for each caller
        self.bell, self._rope = Pipe(duplex=False)
        threading.Thread(target=self._take_all, daemon=True).start()

    def _take_all(self) -> None:
        while not self._is_closed:
            try:
                end, _ = self._socket.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            # one that calls and says nothing holds up nobody
            threading.Thread(target=self._take, args=(end,), daemon=True).start()

    def _take(self, end: socket.socket) -> None:
        with contextlib.suppress(Exception):
            _limit_sending(end)
            connection = _connection(end)
            deliver_challenge(connection, self.contact.key)
            answer_challenge(connection, self.contact.key)
            said = connection.recv()
            with self._closing:
                if self._is_closed:
                    connection.close()
                    return
                self._callers.put((connection, said))
            self._rope.send_bytes(b"!")

    def caller(self) -> tuple[Connection, Any]:
        """Who has called, and what was said first; the bell says whether there is one."""
        self.bell.recv_bytes()
        return self._callers.get()

    def close(self) -> None:
        """Take no more; those who have called and were not asked for are told."""
        with self._closing:
            self._is_closed = True
            while not self._callers.empty():
                connection, _ = self._callers.get()
                connection.close()
        # a thread that waits for callers wakes
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self.bell.close()


def _limit_sending(end: socket.socket) -> None:
    """Let a message that nobody takes fail in the end; where the system knows of such a limit."""
    with contextlib.suppress(OSError, AttributeError, struct.error):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(SENDING_SECONDS), 0))


def hosts_for(executor: Executor) -> tuple[str, ...]:
    """The addresses of this machine at which what an executor runs can call; on this machine alone where it is one of
    processes or threads here."""
    module = type(executor).__module__
    if module.startswith("concurrent.futures") or "loky" in module:
        return (LOCAL,)
    scheduler = _scheduler_of(executor)
    if scheduler is None:
        return tuple(dict.fromkeys([*_own_addresses(), LOCAL]))
    toward = _address_toward(scheduler)
    return (toward,) if toward == LOCAL else (toward, LOCAL)


def _scheduler_of(executor: Any) -> str | None:
    """The host of the scheduler of a cluster of dask."""
    address = getattr(getattr(getattr(executor, "_client", None), "scheduler", None), "address", None)
    if not isinstance(address, str):
        return None
    # a cluster inside of this process has an address without a host
    return urlsplit(address).hostname or LOCAL if not address.startswith("inproc") else LOCAL


def _address_toward(host: str) -> str:
    """This machine's address as that host sees it."""
    try:
        family, kind, *_, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as end:
            # nothing is sent
            end.connect(address)
            return str(end.getsockname()[0])
    except OSError:
        return LOCAL


def _own_addresses() -> list[str]:
    with contextlib.suppress(OSError):
        found = socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        return [str(address[0]) for *_, address in found]
    return []
