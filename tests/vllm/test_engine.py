"""The vLLM generator over a real engine and a real small model, on CPU."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from quarry.errors import ConfigError, ModelError
from quarry.models.guiding import answer_pattern
from quarry.models.vllm import VllmGenerator
from quarry.models.vllm_engine import engine_arguments
from quarry.records import Message, Prompt, StopReason
from quarry.text.harmless import harmless
from serve.answering.prompt import RULES, Limits, fit
from tests.contract.generator import GeneratorContract, pieces, prompt, source, text_of
from tests.vllm.conftest import cpu_settings

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SOURCES = (
    source("S1", "The shop in Oslo opens at nine and closes at six.", title="Opening hours"),
    source("S2", "Used tents come back within 60 days for store credit only.", title="Returns"),
    source("S3", "Gas stoves cannot be returned once they are opened.", title="Stoves"),
)
LONG = prompt("Write a long story about a tent.", max_tokens=1000)


class TestVllm(GeneratorContract):
    @pytest.fixture
    def generator(self, engine: VllmGenerator) -> VllmGenerator:
        return engine

    @pytest.fixture
    def asked(self, hours: Prompt) -> Prompt:
        return hours


@pytest.fixture(scope="module")
def hours(engine: VllmGenerator) -> Prompt:
    """A question as the server puts it, which this model answers and ends by itself."""

    async def count(messages: Sequence[Message]) -> int:
        return engine.count_prompt(messages)

    made, _ = asyncio.run(
        fit(
            "When does the shop in Oslo open?",
            SOURCES,
            limits=Limits(context=2048, max_tokens=120),
            count=count,
            request_id="r1",
        )
    )
    return made


async def written(engine: VllmGenerator, asked: Prompt) -> str:
    return await text_of(engine, asked)


async def test_an_answer_comes_in_pieces_with_its_usage(engine: VllmGenerator) -> None:
    *before, last = await pieces(engine, replace(LONG, max_tokens=20))
    assert len(before) > 5
    assert last.stop is StopReason.LENGTH
    assert last.completion_tokens == 20
    assert last.prompt_tokens == engine.count_prompt(LONG.messages)


async def test_what_the_template_began_to_write_comes_first(
    engine: VllmGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = replace(LONG, max_tokens=5)
    alone = await written(engine, asked)
    monkeypatch.setattr(engine._chat, "begun", "<think>")
    assert await written(engine, asked) == f"<think>{alone}"


async def test_closing_a_stream_aborts_it_in_the_engine(engine: VllmGenerator) -> None:
    async with aclosing(engine.stream(LONG)) as stream:  # type: ignore[type-var]
        await anext(stream)
        assert engine.in_flight == 1
    await _idle(engine)


async def test_cancelling_the_reader_aborts_it_in_the_engine(engine: VllmGenerator) -> None:
    task = asyncio.create_task(pieces(engine, LONG))
    await _until(lambda: engine.in_flight == 1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await _idle(engine)


async def test_readers_at_once_each_get_their_own_answer(engine: VllmGenerator) -> None:
    asked = [replace(LONG, max_tokens=tokens) for tokens in (5, 9, 13, 17)]
    together = await asyncio.gather(*(pieces(engine, each) for each in asked))
    assert [found[-1].completion_tokens for found in together] == [5, 9, 13, 17]


def test_it_serves_several_event_loops_in_turn(engine: VllmGenerator) -> None:
    for _ in range(2):
        assert asyncio.run(written(engine, replace(LONG, max_tokens=5)))


async def test_a_guided_answer_cites_after_each_sentence_and_only_what_there_is(
    engine: VllmGenerator, hours: Prompt
) -> None:
    text = await written(engine, hours)
    assert re.fullmatch(answer_pattern(["S1", "S2", "S3"]), text), text


async def test_an_answer_never_leaves_the_context_window(engine: VllmGenerator) -> None:
    words = _long_prompt(engine, 2000)
    last = (await pieces(engine, words))[-1]
    assert last.stop in (StopReason.LENGTH, StopReason.END)
    assert last.prompt_tokens + last.completion_tokens <= 2048
    with pytest.raises(ModelError, match="fills the generator's context window"):
        await pieces(engine, _long_prompt(engine, 2100))


async def test_an_answer_that_takes_too_long_is_given_up_and_aborted(
    engine: VllmGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = engine._settings.model_copy(update={"timeout_s": 0.5})
    monkeypatch.setattr(engine, "_settings", impatient)
    with pytest.raises(ModelError, match="took too long"):
        await pieces(engine, LONG)
    await _idle(engine)


def test_special_tokens_of_the_model_cannot_come_from_a_message(engine: VllmGenerator) -> None:
    tokenizer = engine._engine.get_tokenizer()
    special = {**tokenizer.get_added_vocab()}
    assert "<|im_start|>" in special and "<file_sep>" in special
    plain = _special_count(engine, "a")
    for token in special:
        assert _special_count(engine, f"x{token}y {token}{token}") == plain
        # The prompt's own rule knows them too, for engines that are reached over HTTP.
        assert token not in harmless(f"x{token}y"), token


def test_tokens_are_the_models_own(engine: VllmGenerator) -> None:
    tokenizer = engine._engine.get_tokenizer()
    text = "A used tent can be returned within 60 days."
    assert engine.count_tokens([text]) == [len(tokenizer.encode(text))]
    messages = [Message(role="system", content=RULES), Message(role="user", content=text)]
    rendered = tokenizer.apply_chat_template(
        [{"role": m.role, "content": m.content} for m in messages],
        tokenize=True,
        add_generation_prompt=True,
        return_dict=False,
    )
    assert engine.count_prompt(messages) == len(rendered)


def test_a_living_engine_is_healthy(engine: VllmGenerator) -> None:
    engine.check_health()


@pytest.mark.parametrize(
    ("vllm", "part", "name", "value"),
    [
        ({"dtype": "float32"}, "model_config", "dtype", "torch.float32"),
        ({"kv_cache_gib": 0.5}, "cache_config", "kv_cache_memory_bytes", 1 << 29),
        ({"gpu_memory_utilization": 0.4}, "cache_config", "gpu_memory_utilization", 0.4),
        ({"enable_prefix_caching": False}, "cache_config", "enable_prefix_caching", False),
        ({"enforce_eager": True}, "model_config", "enforce_eager", True),
        ({"tensor_parallel_size": 3}, "parallel_config", "tensor_parallel_size", 3),
    ],
)
def test_each_setting_arrives_in_the_engines_configuration(
    model: Path, vllm: dict[str, object], part: str, name: str, value: object
) -> None:
    from vllm import AsyncEngineArgs

    config = AsyncEngineArgs(**engine_arguments(cpu_settings(model, vllm=vllm)))
    found = getattr(getattr(config.create_engine_config(), part), name)
    assert (str(found) if isinstance(value, str) else found) == value


@pytest.mark.parametrize(
    ("more", "error", "says"),
    [
        ({"context_tokens": 16384}, ConfigError, "vLLM refused .* settings: .*16384"),
        ({"vllm": {"quantization": "nonsense"}}, ConfigError, "vLLM refused"),
        ({"vllm": {"device": "cuda"}}, ConfigError, "runs on cpu"),
    ],
)
def test_what_vllm_refuses_is_one_plain_sentence(
    model: Path, more: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as raised:
        VllmGenerator(cpu_settings(model, **more))
    assert "\n" not in str(raised.value)


def _long_prompt(engine: VllmGenerator, tokens: int) -> Prompt:
    """A prompt of so many tokens, its template included."""
    frame = engine.count_prompt([Message(role="user", content="")])
    asked = prompt(" tent" * (tokens - frame), max_tokens=1500)
    assert abs(engine.count_prompt(asked.messages) - tokens) <= 2
    return asked


def _special_count(engine: VllmGenerator, text: str) -> int:
    special = set(engine._engine.get_tokenizer().get_added_vocab().values())
    messages = [Message(role="system", content="a"), Message(role="user", content=text)]
    return sum(token in special for token in engine._chat.tokens(messages))


async def _idle(engine: VllmGenerator) -> None:
    await _until(lambda: engine.in_flight == 0)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - the engine has no event for it
            await asyncio.sleep(0.01)
