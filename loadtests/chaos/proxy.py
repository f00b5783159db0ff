"""A TCP proxy in front of a server that can be cut, held and healed."""

from __future__ import annotations

import contextlib
import socket
import threading
from dataclasses import dataclass, field

CHUNK = 65536


@dataclass
class Proxy:
    """Forwards a loopback port to another one; `port` is known once it is started.

    `cut()` resets every connection and refuses new ones. `cut_after(n)` does so once n more bytes
    have gone to the server, `tear()` in the middle of whatever goes to the server next, and
    `mute()` when the server next says anything: it got the request, and its answer is lost.
    `mute_once()` resets only the connection that the lost answer was for, so that a second try
    gets through; both let so many answers pass before. `hold()` lets nothing pass and resets
    nothing, as a network that swallows packets. `heal()` ends all of these.
    """

    target: int
    port: int = 0
    cuts: int = 0
    """Times that connections were reset so far."""
    _open: bool = True
    _budget: int | None = None
    _tearing: bool = False
    _answers: int | None = None
    """That may still pass."""
    _once: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _pairs: set[socket.socket] = field(default_factory=set)
    _passes: threading.Event = field(default_factory=threading.Event)
    _listener: socket.socket | None = None

    def start(self) -> Proxy:
        self._passes.set()
        self._listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._listener:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
            self._listener.close()
        self.cut()
        self._passes.set()

    def cut(self) -> None:
        with self._lock:
            self.cuts += self._open
            self._open = False
            self._disarm()
            victims, self._pairs = self._pairs, set()
        for victim in victims:
            _reset(victim)

    def cut_after(self, sent: int) -> None:
        with self._lock:
            self._budget = sent

    def tear(self) -> None:
        with self._lock:
            self._tearing = True

    def mute(self, after: int = 0) -> None:
        with self._lock:
            self._answers = after

    def mute_once(self, after: int = 0) -> None:
        with self._lock:
            self._answers, self._once = after, True

    def hold(self) -> None:
        self._passes.clear()

    def heal(self) -> None:
        with self._lock:
            self._open = True
            self._disarm()
        self._passes.set()

    @property
    def is_cut(self) -> bool:
        """Whether it refuses, be it by `cut` or because what else was asked for has happened."""
        with self._lock:
            return not self._open

    @property
    def is_held(self) -> bool:
        return not self._passes.is_set()

    def _disarm(self) -> None:
        self._budget = self._answers = None
        self._tearing = self._once = False

    # -------------------------------------------------------------------------------- threads

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
            for source, sink, asking in ((client, server, True), (server, client, False)):
                threading.Thread(
                    target=self._pump, args=(source, sink, asking), daemon=True
                ).start()

    def _pump(self, source: socket.socket, sink: socket.socket, asking: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(CHUNK):
                self._passes.wait()
                last = self._last_part(data, asking)
                if last is None:
                    sink.sendall(data)
                    continue
                sink.sendall(last)
                if not self._is_done():
                    self.cut()
                break
        with self._lock:
            self._pairs -= {source, sink}
        _reset(source)
        _reset(sink)

    def _last_part(self, data: bytes, asking: bool) -> bytes | None:
        """What may still pass if this is where it is cut; None: all of it, and go on."""
        with self._lock:
            if not asking:
                if self._answers is not None:
                    self._answers -= 1
                return b"" if self._answers == -1 else None
            if self._tearing:
                return data[: len(data) // 2]
            if self._budget is None:
                return None
            left, self._budget = self._budget, self._budget - len(data)
            return data[:left] if self._budget < 0 else None

    def _is_done(self) -> bool:
        """Whether it was a matter of one connection, which is over now; it counts as a cut."""
        with self._lock:
            once = self._once
            if once:
                self.cuts += 1
                self._disarm()
            return once


def _reset(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        connection.close()
