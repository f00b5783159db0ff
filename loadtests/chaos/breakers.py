"""Threads that break things by the schedule, one a server and one a writer, and mend them again."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext, ForkServerProcess

from loadtests.chaos import writer
from loadtests.chaos.journal import Journal
from loadtests.chaos.proxy import Proxy
from loadtests.chaos.schedule import Fault, FaultKind
from loadtests.chaos.servers import Server
from loadtests.chaos.world import World


@dataclass
class Breaker(threading.Thread):
    """Breaks one server or the way to it; when it has ended, the server runs and is reachable."""

    label: str
    server: Server
    proxy: Proxy
    faults: Iterator[Fault]
    journal: Journal
    made: Counter[str] = field(default_factory=Counter)
    error: Exception | None = None
    """What ended the thread, if not `end`."""

    def __post_init__(self) -> None:
        super().__init__(name=f"breaker-{self.label}", daemon=True)
        self._ending = threading.Event()

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        try:
            for fault in self.faults:
                if self._ending.wait(fault.wait_s):
                    return
                self.journal.note("fault", server=self.label, kind=fault.kind, s=fault.lasts_s)
                self._break(fault)
                self.made[fault.kind] += 1
        except Exception as error:  # for who waits
            self.error = error

    def end(self) -> None:
        """Waits until the fault that is under way is mended."""
        self._ending.set()
        self.join()

    def _break(self, fault: Fault) -> None:
        if fault.kind is FaultKind.KILL:
            self.journal.note("outage" if self.label == "elasticsearch" else "down")
            self.server.kill()
            self.journal.note("outage" if self.label == "elasticsearch" else "down")
            self._ending.wait(fault.lasts_s)
            self.server.start()
            return
        if fault.kind is FaultKind.CUT:
            self.proxy.cut()
        elif fault.kind is FaultKind.HOLD:
            self.proxy.hold()
        else:
            self.proxy.cut_after(fault.sent)
        self._ending.wait(fault.lasts_s)
        self.proxy.heal()


class WriterKeeper(threading.Thread):
    """Keeps one writer running: kills it by the schedule, and starts it again whenever it is dead.

    With no kills it only starts it again.
    """

    def __init__(
        self, context: ForkServerContext, world: World, number: int, kills: Iterator[float]
    ) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self._context = context
        self._world = world
        self._number = number
        self._kills = kills
        self._ending = threading.Event()
        self.kills = 0
        self.deaths = 0
        """Times that it ended by itself: a fault of this program."""

    def run(self) -> None:
        for life, wait_s in enumerate(self._kills):
            process = self._start(life)
            ended = self._ending.wait(wait_s)
            if ended:
                process.join()
                return
            if process.is_alive() and process.pid:
                os.kill(process.pid, signal.SIGKILL)
                self.kills += 1
            else:
                self.deaths += 1
            process.join()

    def end(self) -> None:
        """Waits for its last step; the world must have told it to stop."""
        self._ending.set()
        self.join()

    def _start(self, life: int) -> ForkServerProcess:
        process = self._context.Process(
            target=writer.write, args=(self._world, self._number, life), daemon=True
        )
        process.start()
        return process
