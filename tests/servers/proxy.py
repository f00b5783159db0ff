"""A TCP proxy in front of a server that a test can cut, hold and heal."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field

from tests.servers.managed import free_port

CHUNK = 65536


@dataclass
class Proxy:
    """Forwards a loopback port to another one.

    `cut()` resets every connection and refuses new ones; `heal()` takes connections again.
    `cut_after(n)` cuts once n more bytes have gone to the server: in the middle of a request.
    """

    target: int
    port: int = field(default_factory=free_port)
    _open: bool = True
    _budget: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pairs: list[socket.socket] = field(default_factory=list)
    _listener: socket.socket | None = None

    def start(self) -> Proxy:
        self._listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._listener:
            self._listener.close()
        self.cut()

    def cut(self) -> None:
        with self._lock:
            self._open = False
            self._budget = None
            victims, self._pairs = self._pairs, []
        for victim in victims:
            _reset(victim)

    def cut_after(self, sent: int) -> None:
        with self._lock:
            self._budget = sent

    def heal(self) -> None:
        with self._lock:
            self._open = True
            self._budget = None

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                allowed = self._open
            if not allowed:
                _reset(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=2)
            except OSError:
                _reset(client)
                continue
            server.settimeout(None)
            with self._lock:
                self._pairs += [client, server]
            for source, sink, counted in ((client, server, True), (server, client, False)):
                threading.Thread(
                    target=self._pump, args=(source, sink, counted), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                if counted and self._spent(len(data)):
                    self.cut()
                    return
                sink.sendall(data)
        _reset(source)
        _reset(sink)

    def _spent(self, size: int) -> bool:
        with self._lock:
            if self._budget is None:
                return False
            self._budget -= size
            return self._budget < 0


def _reset(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        connection.close()
