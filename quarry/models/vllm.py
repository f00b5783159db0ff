"""Generation by vLLM in this process: its engine, streaming, stopped when nobody reads any more.

Engine: https://docs.vllm.ai/en/latest/api/vllm/v1/engine/async_llm/
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from functools import partial
from itertools import chain
from typing import Any
from uuid import uuid4

import structlog

from quarry.errors import ModelError
from quarry.models.chat import Chat
from quarry.models.guiding import answer_pattern
from quarry.models.loop_thread import LoopThread
from quarry.models.vllm_engine import adapter, import_vllm, model_of, start
from quarry.records import Message, Piece, Prompt, StopReason
from quarry.settings import GeneratorSettings

_log = structlog.get_logger(__name__)

_STOP_S = 2.0
"""Seconds that the engine's processes have to end by themselves."""
Pace = Callable[[int], float]
"""Seconds between the pieces of an answer after the first, when so many are being written."""

_STOPS = {"stop": StopReason.END, "length": StopReason.LENGTH}


class VllmGenerator:
    """Greedy answers of one model. Safe to call from several threads and event loops.

    Raises MissingExtra without vLLM, ConfigError for settings that vLLM or the model refuses,
    ModelError when the engine does not start. A prompt with its `max_tokens` over the context
    window gets a shorter answer; one that leaves no room for any raises ModelError.
    """

    def __init__(self, settings: GeneratorSettings, *, pace: Pace | None = None) -> None:
        """`pace`: unset, each token is a piece."""
        self._pace = pace or (lambda _: 0.0)
        import_vllm(settings.vllm)
        self._settings = settings
        self._model_id = model_of(settings).model_id
        self._lora = adapter(settings.vllm)
        began = time.monotonic()
        self._thread = LoopThread("vllm")
        try:
            self._engine = self._thread.run(start(settings))
            self._chat = Chat(self._engine.get_tokenizer(), self._model_id)
        except BaseException:
            self._thread.stop()
            raise
        seconds = round(time.monotonic() - began, 1)
        _log.info("generator_loaded", model=self._model_id, seconds=seconds)

    @property
    def name(self) -> str:
        return f"vllm:{self._model_id}"

    @property
    def in_flight(self) -> int:
        """Answers that the engine is writing now."""
        return int(self._engine.get_num_unfinished_requests())

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._chat.count(texts)

    def count_prompt(self, messages: Sequence[Message]) -> int:
        return len(self._chat.tokens(messages))

    async def stream(self, prompt: Prompt) -> AsyncGenerator[Piece, None]:
        """Pieces as they come; several tokens are one piece if they came while nobody read."""
        end = time.monotonic() + self._settings.timeout_s
        tokens = await asyncio.to_thread(self._chat.tokens, prompt.messages)
        outputs = self._thread.iterate(partial(self._outputs, prompt, tokens))
        count, begun = 0, self._chat.begun
        async with aclosing(_timed(outputs, end)) as arrived:
            async for groups in arrived:
                group = list(chain.from_iterable(groups))
                written = [output.outputs[0] for output in group]
                count += sum(len(part.token_ids) for part in written)
                text = begun + "".join(part.text for part in written)
                if text:
                    begun = ""
                    yield Piece(text=text)
                if group[-1].finished:
                    yield Piece(
                        stop=_stop(written[-1].finish_reason),
                        prompt_tokens=len(tokens),
                        completion_tokens=count,
                    )

    def check_health(self) -> None:
        """Raises ModelError once the engine has died; it does not come back by itself."""
        if self._engine.errored:
            raise _dead()

    def close(self) -> None:
        """Ends the engine and its processes, which have nothing to save."""
        self._thread.call(partial(self._engine.shutdown, timeout=_STOP_S))
        self._thread.stop()

    async def _outputs(self, prompt: Prompt, tokens: list[int]) -> AsyncGenerator[list[Any], None]:
        from vllm.inputs import tokens_input

        room = self._settings.context_tokens - len(tokens)
        if room < 1:
            raise ModelError(
                "The prompt fills the generator's context window; lower retrieval.evidence_chunks "
                "or raise generator.context_tokens."
            )
        generated = self._engine.generate(
            tokens_input(tokens),
            self._sampling(prompt, min(prompt.max_tokens, room)),
            # Two answers never share an id, whatever the caller's is.
            f"{prompt.request_id}-{uuid4().hex[:8]}",
            lora_request=self._lora,
        )
        with _told():
            groups = grouped(generated, lambda: self._pace(self.in_flight))
            async with aclosing(generated), aclosing(groups):
                async for group in groups:
                    yield group

    def _sampling(self, prompt: Prompt, max_tokens: int) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

        labels = [item.label for item in prompt.evidence]
        guided = self._settings.vllm.guided_citations and labels
        return SamplingParams(
            temperature=0.0,
            max_tokens=max_tokens,
            output_kind=RequestOutputKind.DELTA,
            structured_outputs=(
                StructuredOutputsParams(regex=answer_pattern(labels)) if guided else None
            ),
        )


async def grouped(
    outputs: AsyncIterator[Any], interval: Callable[[], float]
) -> AsyncGenerator[list[Any], None]:
    """The first output at once, later ones together after an interval (seconds), the last at once.

    Whoever reads is in another thread, which each group wakes, on cores that a small model on a CPU
    computes on. No group waits for longer than until the next output.
    """
    group, due = [], 0.0
    async for output in outputs:
        group.append(output)
        now = time.monotonic()
        if now >= due or output.finished:
            yield group
            group, due = [], now + interval()
    if group:
        yield group


async def _timed(outputs: AsyncIterator[list[Any]], end: float) -> AsyncGenerator[list[Any], None]:
    """The groups, each within what is left of the time. Raises ModelError when it is up."""
    try:
        while True:
            async with asyncio.timeout(max(0.0, end - time.monotonic())):
                group = await anext(outputs, None)
            if group is None:
                return
            yield group
    except TimeoutError as error:
        raise ModelError("The generator took too long; raise generator.timeout_s.") from error
    finally:
        await outputs.aclose()  # type: ignore[attr-defined]  # it is an async generator


@contextmanager
def _told() -> Iterator[None]:
    """Errors of vLLM as ours; their text may hold the prompt and stays out."""
    from vllm.exceptions import VLLMError
    from vllm.v1.engine.exceptions import EngineDeadError

    try:
        yield
    except EngineDeadError as error:
        raise _dead() from error
    except VLLMError as error:
        raise ModelError(
            f"vLLM could not write this answer ({type(error).__name__}); look at its log."
        ) from error


def _stop(finish_reason: str | None) -> StopReason:
    if finish_reason == "error":
        raise ModelError("vLLM gave up this answer; look at its log.")
    if finish_reason == "abort":
        return StopReason.CANCELLED
    return _STOPS.get(finish_reason or "", StopReason.END)


def _dead() -> ModelError:
    return ModelError("The vLLM engine has stopped; its log says why, a restart brings it back.")
