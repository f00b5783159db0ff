"""Generation by any OpenAI-compatible endpoint: vLLM, llama.cpp, Ollama, a hosted service.

API: https://platform.openai.com/docs/api-reference/chat/streaming
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import Any
from weakref import WeakKeyDictionary

import httpx
import structlog
from httpx_sse import EventSource, SSEError
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, stop_after_attempt
from tenacity import wait_exponential_jitter as backoff

from quarry.addresses import shown
from quarry.errors import ConfigError, ModelError, Overloaded, QuarryError
from quarry.models import estimate
from quarry.models.openai_events import Event, Usage, read
from quarry.records import Message, Piece, Prompt, StopReason
from quarry.settings import GeneratorSettings

_log = structlog.get_logger(__name__)

_ATTEMPTS = 3
_CONNECT_S = 5.0
_MAX_WAIT_S = 10.0
_CHECK_S = 3.0
"""Longest that a check waits for the endpoint."""
_CHECKED_S = 10.0
"""How long a check holds: readiness is asked for often, and hosted endpoints count requests."""
_BUSY = frozenset({429, 502, 503, 504})
_LONGEST_RETRY_S = 3600.0
_MOST_A_TOKEN = 32
"""Characters, on average over a whole answer: no tokenizer comes near it. An event counts as one
more, so that an endpoint that sends events without text for ever is stopped too."""
_STOPS = {"stop": StopReason.END, "length": StopReason.LENGTH}


class _NotYet(Exception):
    """The endpoint did not begin to answer, so that asking again is safe."""

    def __init__(self, fault: QuarryError, retry_after: float = 0.0) -> None:
        super().__init__(fault)
        self.fault = fault
        self.retry_after = retry_after


class OpenAIGenerator:
    """Streams chat completions. Asks again only before the first byte of an answer.

    Raises ConfigError for a refused key or an unknown model, Overloaded when the endpoint stays
    busy, ModelError for all else. Closing the stream closes the connection, which stops the
    endpoint's work.
    """

    def __init__(
        self, settings: GeneratorSettings, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._settings = settings
        self._transport = transport
        self._base = settings.base_url.rstrip("/")
        self._fault: QuarryError | None = None
        self._check_again_at = -math.inf
        # A client belongs to the event loop of its first request.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = (
            WeakKeyDictionary()
        )

    @property
    def name(self) -> str:
        return f"openai:{self._settings.model}"

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """An upper estimate from the length in bytes; the endpoint's tokenizer is not known."""
        return estimate.tokens(texts)

    def count_prompt(self, messages: Sequence[Message]) -> int:
        """As `count_tokens`, with room for what a chat template puts round each turn."""
        return estimate.prompt_tokens(messages)

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        """Pieces as they come; the last one has the stop reason and the endpoint's usage.

        An endpoint that does not heed `max_tokens` is cut once it has sent much more.
        """
        end = time.monotonic() + self._settings.timeout_s
        async with AsyncExitStack() as stack:
            response = await self._open(prompt, end)
            stack.push_async_callback(response.aclose)
            stop: StopReason | None = None
            usage = Usage()
            left = prompt.max_tokens * _MOST_A_TOKEN
            events = await stack.enter_async_context(aclosing(_events(response, end)))
            async for event in events:
                usage = event.usage or usage
                left -= 1
                for choice in event.choices or ():
                    if text := choice.text[: max(0, left)]:
                        yield Piece(text=text)
                    left -= len(choice.text)
                    stop = _stop(choice.finish_reason) or stop
                if left < 0:
                    _log.warning("generator_endless", max_tokens=prompt.max_tokens)
                    stop = StopReason.LENGTH
                    break
        if stop is None:
            raise _cut_off()
        yield Piece(
            stop=stop,
            prompt_tokens=usage.prompt_tokens or 0,
            completion_tokens=usage.completion_tokens or 0,
        )

    async def check(self) -> None:
        """Raises ConfigError while the endpoint refuses the key, ModelError while none is there.

        What it found holds for some seconds.
        """
        if time.monotonic() >= self._check_again_at:
            self._fault = None
            try:
                await self.probe()
            except QuarryError as error:
                self._fault = error
            self._check_again_at = time.monotonic() + _CHECKED_S
        if self._fault is not None:
            raise self._fault

    async def probe(self) -> int:
        """The HTTP status of the endpoint's list of models, which costs no token. Raises as
        `check`.

        Only a refused key (401) is a fault: not every endpoint has the list, and some keys may
        write answers but not read it.
        """
        url = f"{self._base}/models"
        try:
            response = await self._client().get(url, timeout=_CHECK_S)
        except httpx.HTTPError as error:
            raise _unreachable(self._base) from error
        if response.status_code == httpx.codes.UNAUTHORIZED:
            raise _refused_key()
        return response.status_code

    async def aclose(self) -> None:
        """Closes the connections of this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    async def _open(self, prompt: Prompt, end: float) -> httpx.Response:
        """The response at its first byte, asked for up to three times."""
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(_NotYet),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=_wait,
            before_sleep=_note,
            reraise=True,
        )
        try:
            async with asyncio.timeout(max(0.0, end - time.monotonic())):
                return await retrying.wraps(self._send)(prompt)
        except TimeoutError as error:
            raise _too_slow(self._settings.timeout_s) from error
        except _NotYet as error:
            raise error.fault from error

    async def _send(self, prompt: Prompt) -> httpx.Response:
        client = self._client()
        request = client.build_request(
            "POST",
            f"{self._base}/chat/completions",
            json=self._body(prompt),
            headers={"X-Request-Id": prompt.request_id},
        )
        try:
            response = await client.send(request, stream=True)
        except httpx.TransportError as error:
            raise _NotYet(_unreachable(self._base)) from error
        except httpx.HTTPError as error:
            raise _unreachable(self._base) from error
        if response.status_code != httpx.codes.OK:
            await response.aclose()
            raise _refusal(response, self._settings.model)
        return response

    def _body(self, prompt: Prompt) -> dict[str, Any]:
        return {
            "temperature": 0,
            "stream_options": {"include_usage": True},
            **self._settings.extra_body,
            # The settings refuse these names; they stand last all the same.
            "model": self._settings.model,
            "messages": [{"role": m.role, "content": m.content} for m in prompt.messages],
            self._settings.max_tokens_field: prompt.max_tokens,
            "stream": True,
        }

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            key = self._settings.api_key
            headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
            client = self._clients[loop] = httpx.AsyncClient(
                headers=headers,
                timeout=httpx.Timeout(self._settings.timeout_s, connect=_CONNECT_S),
                transport=self._transport,
            )
        return client


async def _events(response: httpx.Response, end: float) -> AsyncGenerator[Event, None]:
    """The events up to [DONE], each within what is left of the time."""
    stream = EventSource(response).aiter_sse()
    try:
        while True:
            async with asyncio.timeout(max(0.0, end - time.monotonic())):
                sent = await anext(stream, None)
            if sent is None or sent.data == "[DONE]":
                return
            yield read(sent.data)
    except (TimeoutError, httpx.TimeoutException) as error:
        raise ModelError("The generator took too long; raise generator.timeout_s.") from error
    except SSEError as error:
        raise ModelError(
            "The generator endpoint did not answer with a stream; check generator.base_url."
        ) from error
    except (httpx.HTTPError, ValueError) as error:
        raise _cut_off() from error
    finally:
        await stream.aclose()


def _stop(finish_reason: str | None) -> StopReason | None:
    if finish_reason == "content_filter":
        raise ModelError("The generator endpoint's content filter stopped the answer.")
    return _STOPS.get(finish_reason, StopReason.END) if finish_reason else None


def _refusal(response: httpx.Response, model: str) -> QuarryError | _NotYet:
    status = response.status_code
    if status in {401, 403}:
        return _refused_key()
    if status == httpx.codes.NOT_FOUND:
        return ConfigError(
            f"The generator endpoint does not know {model}; check generator.model and base_url."
        )
    if status in _BUSY:
        wait = _retry_after(response)
        busy = Overloaded("The generator endpoint is busy; try again later.", wait or 1.0)
        return _NotYet(busy, wait)
    return ModelError(f"The generator endpoint answered with HTTP {status}; look at its log.")


def _retry_after(response: httpx.Response) -> float:
    """Seconds, an hour at most; 0 where the header is absent or a date."""
    try:
        return min(max(0.0, float(response.headers.get("Retry-After", 0))), _LONGEST_RETRY_S)
    except ValueError:
        return 0.0


def _wait(state: RetryCallState) -> float:
    fault = state.outcome.exception() if state.outcome else None
    asked = fault.retry_after if isinstance(fault, _NotYet) else 0.0
    return min(_MAX_WAIT_S, max(asked, backoff(initial=0.2, max=_MAX_WAIT_S, jitter=0.2)(state)))


def _note(state: RetryCallState) -> None:
    _log.warning("generator_retry", attempt=state.attempt_number)


def _refused_key() -> ConfigError:
    return ConfigError("The generator endpoint refused the key; check generator.api_key.")


def _unreachable(base_url: str) -> ModelError:
    return ModelError(
        f"The generator endpoint {shown(base_url)} cannot be reached; check that it runs."
    )


def _cut_off() -> ModelError:
    return ModelError("The generator endpoint ended its answer early; look at its log.")


def _too_slow(seconds: float) -> ModelError:
    return ModelError(
        f"The generator did not begin within {seconds:g} s; raise generator.timeout_s."
    )
