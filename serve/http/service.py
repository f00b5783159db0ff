"""What the HTTP app needs of the engine behind it: in process, or Ray Serve handles."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol

from quarry.explanation import Explanation
from quarry.records import Answer, SearchRequest, SearchResult
from serve.results import Event


class Service(Protocol):
    async def search(self, request: SearchRequest) -> SearchResult: ...

    def answer(self, request: SearchRequest) -> AsyncGenerator[Event, None]:
        """Deltas, then the final answer; errors of the request come before the first event."""
        ...

    async def answer_whole(self, request: SearchRequest) -> Answer: ...

    async def explain(
        self, request: SearchRequest, expect: Sequence[Sequence[str]] = ()
    ) -> Explanation:
        """How the answer comes about; `expect` lists phrases that a source should hold."""
        ...

    async def ready(self) -> Mapping[str, str]:
        """`ok`, or one sentence, for each part: the stores and the models."""
        ...
