"""A TCP proxy in front of a server that can be cut, held and healed."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field

from loadtests.chaos.servers import free_port

CHUNK = 65536


@dataclass
class Proxy:
    """Forwards a loopback port to another one.

    `cut()` resets every connection and refuses new ones. `cut_after(n)` does so once n more bytes
    have gone to the server: in the middle of a request. `hold()` lets nothing pass and resets
    nothing, as a network that swallows packets. `heal()` ends all three.
    """

    target: int
    port: int = field(default_factory=free_port)
    cuts: int = 0
    """Times that connections were reset so far."""
    _open: bool = True
    _budget: int | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pairs: set[socket.socket] = field(default_factory=set)
    _passes: threading.Event = field(default_factory=threading.Event)
    _listener: socket.socket | None = None

    def start(self) -> Proxy:
        self._passes.set()
        self._listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._listener:
            self._listener.close()
        self.cut()
        self._passes.set()

    def cut(self) -> None:
        with self._lock:
            self.cuts += self._open
            self._open = False
            self._budget = None
            victims, self._pairs = self._pairs, set()
        for victim in victims:
            _reset(victim)

    def cut_after(self, sent: int) -> None:
        with self._lock:
            self._budget = sent

    def hold(self) -> None:
        self._passes.clear()

    def heal(self) -> None:
        with self._lock:
            self._open = True
            self._budget = None
        self._passes.set()

    @property
    def is_cut(self) -> bool:
        """Whether a `cut_after` has come to its end, or `cut` was called."""
        with self._lock:
            return not self._open

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
                allowed = self._open
                self._pairs |= {client, server} if allowed else set()
            if not allowed:  # cut meanwhile
                _reset(client)
                _reset(server)
                continue
            for source, sink, counted in ((client, server, True), (server, client, False)):
                threading.Thread(
                    target=self._pump, args=(source, sink, counted), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                self._passes.wait()
                if counted and (last := self._last_part(data)) is not None:
                    sink.sendall(last)
                    self.cut()
                    break
                sink.sendall(data)
        with self._lock:
            self._pairs -= {source, sink}
        _reset(source)
        _reset(sink)

    def _last_part(self, data: bytes) -> bytes | None:
        """What may still pass if this is where it is cut; None: all of it, and go on."""
        with self._lock:
            if self._budget is None:
                return None
            left, self._budget = self._budget, self._budget - len(data)
            return data[:left] if self._budget < 0 else None


def _reset(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        connection.close()
