"""An event loop in a thread of its own, for engines that live in one loop but serve several."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines; safe to call from any thread and any other event loop."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine; the calling thread waits for it."""
        return self._submit(work).result()

    def call(self, function: Callable[[], object]) -> None:
        """Calls a function in the loop's thread, and waits until it returns."""

        async def called() -> None:
            function()

        self.run(called())

    async def iterate(
        self, open_stream: Callable[[], AsyncGenerator[T, None]]
    ) -> AsyncIterator[list[T]]:
        """The items of a stream that runs in this loop, in groups of what came meanwhile.

        An error of the stream is raised here; closing the iterator cancels the stream there.
        """
        here = asyncio.get_running_loop()
        arrived: asyncio.Queue[T | _End] = asyncio.Queue()

        def put(item: T | _End) -> None:
            with suppress(RuntimeError):  # the loop of a caller who went away is closed
                here.call_soon_threadsafe(arrived.put_nowait, item)

        pump = self._submit(_pump(open_stream, put))
        try:
            while True:
                group = [await arrived.get()]
                while not arrived.empty():
                    group.append(arrived.get_nowait())
                items = [item for item in group if not isinstance(item, _End)]
                if items:
                    yield items
                end = group[-1]
                if isinstance(end, _End):
                    if end.error is not None:
                        raise end.error
                    return
        finally:
            pump.cancel()

    def stop(self) -> None:
        """Ends the loop; what still runs in it is cancelled."""
        self.run(_cancel_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)


class _End:
    """Comes after the last item; carries what ended the stream early."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


async def _pump(
    open_stream: Callable[[], AsyncGenerator[T, None]], put: Callable[[T | _End], None]
) -> None:
    end = _End()
    stream = open_stream()
    try:
        async for item in stream:
            put(item)
    except BaseException as error:
        end = _End(error)
        if not isinstance(error, Exception):
            raise
    finally:
        await stream.aclose()
        put(end)


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
