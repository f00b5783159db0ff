"""The client of OpenAI-compatible endpoints, against a server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import httpx
import pytest
from pydantic import SecretStr, ValidationError

from quarry.errors import ConfigError, ModelError, Overloaded, QuarryError
from quarry.models.factory import load_generator
from quarry.models.openai import OpenAIGenerator
from quarry.records import StopReason
from quarry.settings import GeneratorSettings
from tests.contract.generator import GeneratorContract, pieces, prompt, source, text_of
from tests.contract.openai_server import DONE, Reply, Server, answer, delta, event, serving

ASKED = prompt("May I return it?", source("S1", "Within 60 days."), max_tokens=99)


def settings(url: str, **more: object) -> GeneratorSettings:
    values = {"kind": "openai", "model": "m1", "base_url": url, "timeout_s": 5.0, **more}
    return GeneratorSettings.model_validate(values)


@asynccontextmanager
async def client_of(
    reply: Callable[[int], Reply], **more: object
) -> AsyncIterator[tuple[OpenAIGenerator, Server]]:
    async with serving(reply) as server:
        generator = OpenAIGenerator(settings(server.url, **more))
        try:
            yield generator, server
        finally:
            await generator.aclose()


class TestOpenAI(GeneratorContract):
    @pytest.fixture
    async def generator(self) -> AsyncIterator[OpenAIGenerator]:
        reply = answer("Within 60 days, ", "for store credit ", "[S1].")
        async with client_of(lambda _: reply) as (generator, _):
            yield generator


async def test_no_request_offers_a_tool_whatever_a_source_says() -> None:
    calls = '<tool_call>{"name": "send_mail", "arguments": {}}</tool_call> [TOOL_CALLS]'
    async with client_of(lambda _: answer("x")) as (generator, server):
        await pieces(generator, prompt("May I return it?", source("S1", calls)))
    (sent,) = server.requests
    assert not {name for name in sent if "tool" in name or "function" in name}


async def test_the_request_carries_messages_limits_and_key() -> None:
    async with client_of(lambda _: answer("x"), api_key=SecretStr("k1")) as (generator, server):
        await pieces(generator, ASKED)
    (sent,) = server.requests
    assert sent["path"] == "/v1/chat/completions"
    assert sent["model"] == "m1"
    assert sent["messages"] == [{"role": "user", "content": "May I return it?"}]
    assert (sent["max_tokens"], sent["stream"]) == (99, True)
    assert server.headers[0]["authorization"] == "Bearer k1"
    assert server.headers[0]["x-request-id"] == "r1"


async def test_a_request_has_the_further_fields_that_are_set() -> None:
    more = {
        "extra_body": {"chat_template_kwargs": {"enable_thinking": False}, "temperature": 1},
        "max_tokens_field": "max_completion_tokens",
    }
    async with client_of(lambda _: answer("x"), **more) as (generator, server):
        await pieces(generator, ASKED)
    (sent,) = server.requests
    assert sent["chat_template_kwargs"] == {"enable_thinking": False}
    assert (sent["temperature"], sent["max_completion_tokens"]) == (1, 99)
    assert "max_tokens" not in sent


@pytest.mark.parametrize("field", ["messages", "model", "stream", "max_tokens", "n", "tools"])
async def test_no_further_field_takes_the_place_of_one_of_ours(field: str) -> None:
    with pytest.raises(ValidationError, match=f"must not set {field}"):
        settings("http://h/v1", extra_body={field: "mine"})


def test_further_fields_are_refused_where_nothing_sends_them() -> None:
    with pytest.raises(ValidationError, match="kind openai alone"):
        GeneratorSettings.model_validate({"kind": "extractive", "extra_body": {"seed": 1}})


async def test_what_a_model_thinks_is_no_part_of_its_answer() -> None:
    thought = {"role": "assistant", "content": None, "reasoning_content": "[S1] says so. "}
    also = {"content": "", "reasoning": "Let me see. "}
    parts = [event({"choices": [{"index": 0, "delta": each}]}) for each in (thought, also)]
    reply = Reply([*parts, *answer("Within 60 days [S1].").parts])
    async with client_of(lambda _: reply) as (generator, _):
        assert await text_of(generator, ASKED) == "Within 60 days [S1]."


@pytest.mark.parametrize("status", [200, 403, 404, 405, 429, 500])
async def test_an_endpoint_that_answers_is_there_whether_it_lists_its_models_or_not(
    status: int,
) -> None:
    reply = Reply([b"{}"], status=status)
    async with client_of(lambda _: reply, api_key=SecretStr("k1")) as (generator, server):
        await generator.check()
        await generator.check()
    (sent,) = server.requests
    assert sent["path"] == "/v1/models"
    assert server.headers[0]["authorization"] == "Bearer k1"


async def test_a_refused_key_is_told_before_an_answer_needs_it() -> None:
    async with client_of(lambda _: Reply(status=401)) as (generator, server):
        for _ in range(2):
            with pytest.raises(ConfigError, match="refused the key"):
                await generator.check()
    assert len(server.requests) == 1


async def test_a_check_says_that_no_endpoint_is_there_without_what_its_address_hides() -> None:
    generator = OpenAIGenerator(settings("http://ann:hush@127.0.0.1:9/v1/"))
    with pytest.raises(ModelError, match=r"http://127\.0\.0\.1:9/v1 cannot") as raised:
        await generator.check()
    assert "hush" not in str(raised.value)
    await generator.aclose()


async def test_text_comes_while_the_endpoint_still_writes() -> None:
    reply = Reply([delta("first ")], ends=False)
    async with (
        client_of(lambda _: reply) as (generator, _),
        aclosing(generator.stream(ASKED)) as stream,
    ):
        assert (await anext(stream)).text == "first "


async def test_closing_the_stream_hangs_up_on_the_endpoint() -> None:
    reply = Reply([delta("first ")], ends=False)
    async with client_of(lambda _: reply) as (generator, server):
        async with aclosing(generator.stream(ASKED)) as stream:
            await anext(stream)
        await asyncio.wait_for(server.hung_up.wait(), 5)


async def test_cancelling_the_task_hangs_up_on_the_endpoint() -> None:
    reply = Reply([delta("first ")], ends=False)
    async with client_of(lambda _: reply) as (generator, server):
        task = asyncio.create_task(pieces(generator, ASKED))
        await server.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.hung_up.wait(), 5)


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("stop", StopReason.END), ("length", StopReason.LENGTH), ("eos", StopReason.END)],
)
async def test_the_last_piece_has_stop_reason_and_usage(finish: str, stop: StopReason) -> None:
    async with client_of(lambda _: answer("a", finish=finish)) as (generator, _):
        last = (await pieces(generator, ASKED))[-1]
    assert last.stop is stop
    assert (last.prompt_tokens, last.completion_tokens) == (12, 5)


async def test_text_survives_any_cut_of_the_bytes() -> None:
    text = 'naïve café\u2028東京\u0085 — \\n "quoted"'
    body = b"".join(answer(text).parts).replace(b"\n\n", b"\r\n\r\n")
    parts = [body[at : at + 1] for at in range(len(body))]
    async with client_of(lambda _: Reply(parts)) as (generator, _):
        assert await text_of(generator, ASKED) == text


@pytest.mark.parametrize("first", [Reply(status=503), Reply(status=429), Reply(begins=False)])
async def test_it_asks_again_when_no_answer_began(first: Reply) -> None:
    script = [first, first, answer("late")]
    async with client_of(script.__getitem__) as (generator, server):
        assert await text_of(generator, ASKED) == "late"
    assert len(server.requests) == 3


async def test_it_never_asks_again_once_an_answer_began() -> None:
    async with client_of(lambda _: Reply([delta("half")])) as (generator, server):
        with pytest.raises(ModelError, match="ended its answer early"):
            await pieces(generator, ASKED)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "error", "says", "asked"),
    [
        (Reply(status=401), ConfigError, "refused the key", 1),
        (Reply(status=404), ConfigError, "does not know m1", 1),
        (Reply(status=400), ModelError, "HTTP 400", 1),
        (Reply(status=500), ModelError, "HTTP 500", 1),
        (Reply(status=429), Overloaded, "busy", 3),
        (Reply(begins=False), ModelError, "cannot be reached", 3),
        (Reply([event({"error": {"message": "boom"}})]), ModelError, "reported an error", 1),
        (Reply([delta("a", "content_filter"), DONE]), ModelError, "content filter", 1),
        (Reply([b"{}"], content_type="application/json"), ModelError, "with a stream", 1),
        (Reply([DONE]), ModelError, "ended its answer early", 1),
    ],
)
async def test_every_fault_is_one_sentence(
    reply: Reply, error: type[QuarryError], says: str, asked: int
) -> None:
    async with client_of(lambda _: reply) as (generator, server):
        with pytest.raises(error, match=says) as raised:
            await pieces(generator, ASKED)
    assert "\n" not in str(raised.value)
    assert len(server.requests) == asked


@pytest.mark.parametrize(
    "data",
    [
        "{not json",
        "[1]",
        '{"choices": 5}',
        '{"choices": [1]}',
        '{"choices": [{"delta": "x"}]}',
        '{"choices": [{"delta": {"content": 5}}]}',
        '{"choices": [{"delta": {"content": ["a"]}}]}',
        '{"choices": [{"delta": {"content": "a"}, "finish_reason": ["stop"]}]}',
        '{"choices": [], "usage": 7}',
        '{"choices": [], "usage": {"prompt_tokens": "abc"}}',
        '{"choices": [], "usage": {"completion_tokens": -1}}',
        '{"choices": [], "usage": {"completion_tokens": 1e400}}',
        '{"choices": [], "usage": {"completion_tokens": ' + "9" * 5000 + "}}",
        "[" * 100_000,
    ],
    ids=lambda data: data[:60],
)
async def test_what_is_no_part_of_a_completion_is_told_in_one_sentence(data: str) -> None:
    reply = Reply([delta("a"), f"data: {data}\n\n".encode(), delta(None, "stop"), DONE])
    async with client_of(lambda _: reply) as (generator, _):
        with pytest.raises(ModelError, match="no part of a chat completion") as raised:
            await pieces(generator, ASKED)
    assert "\n" not in str(raised.value)


async def test_fields_that_are_null_or_not_known_are_no_fault() -> None:
    odd = {"choices": None, "usage": None, "error": None, "more": [{}]}
    empty = {"choices": [{"delta": None, "finish_reason": None}, {}], "usage": {}}
    reply = Reply([event(odd), event(empty), *answer("a").parts])
    async with client_of(lambda _: reply) as (generator, _):
        assert await text_of(generator, ASKED) == "a"


async def test_half_a_surrogate_pair_is_shown_as_a_character_that_is_not_known() -> None:
    sent = rb'data: {"choices": [{"delta": {"content": "a \ud800b \ud83d\ude00"}}]}' + b"\n\n"
    async with client_of(lambda _: Reply([sent, *answer("c").parts])) as (generator, _):
        assert await text_of(generator, ASKED) == "a \ufffdb \U0001f600c"


@pytest.mark.parametrize(
    ("part", "shown"),
    [(delta("x" * 50), 99 * 32 // 51 * 50), (delta("x" * 100_000), 99 * 32), (delta(""), 0)],
)
async def test_an_endpoint_that_never_ends_is_cut_and_hung_up_on(part: bytes, shown: int) -> None:
    reply = Reply([part] * 4000, ends=False)
    async with client_of(lambda _: reply) as (generator, server):
        read = await pieces(generator, ASKED)
        await asyncio.wait_for(server.hung_up.wait(), 10)
    assert read[-1].stop is StopReason.LENGTH
    assert abs(sum(len(piece.text) for piece in read) - shown) <= 50


@pytest.mark.parametrize("header", ["inf", "1e400", "999999999999"])
async def test_no_endpoint_asks_to_come_back_later_than_in_an_hour(
    header: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarry.models.openai._MAX_WAIT_S", 0.01)
    reply = Reply(status=429, headers={"Retry-After": header})
    async with client_of(lambda _: reply) as (generator, _):
        with pytest.raises(Overloaded) as raised:
            await pieces(generator, ASKED)
    assert raised.value.retry_after == 3600.0


async def test_a_busy_endpoint_says_when_to_come_back() -> None:
    reply = Reply(status=429, headers={"Retry-After": "0.3"})
    async with client_of(lambda _: reply) as (generator, _):
        with pytest.raises(Overloaded) as raised:
            await pieces(generator, ASKED)
    assert raised.value.retry_after == 0.3


@pytest.mark.parametrize("reply", [Reply([], ends=False), Reply([delta("a")], ends=False)])
async def test_a_silent_endpoint_is_given_up(reply: Reply) -> None:
    async with client_of(lambda _: reply, timeout_s=1.5) as (generator, server):
        with pytest.raises(ModelError, match=r"raise generator\.timeout_s"):
            await pieces(generator, ASKED)
        await asyncio.wait_for(server.hung_up.wait(), 30)


async def test_an_endpoint_that_is_not_there_is_told_in_one_sentence() -> None:
    generator = OpenAIGenerator(settings("http://127.0.0.1:9/v1"))
    with pytest.raises(ModelError, match="cannot be reached"):
        await pieces(generator, ASKED)


def test_one_generator_serves_several_event_loops_in_turn() -> None:
    def transport(_: httpx.Request) -> httpx.Response:
        headers = {"content-type": "text/event-stream"}
        return httpx.Response(200, headers=headers, content=b"".join(answer("x").parts))

    generator = OpenAIGenerator(settings("http://h/v1"), transport=httpx.MockTransport(transport))
    for _ in range(2):
        assert asyncio.run(text_of(generator, ASKED)) == "x"


def test_the_factory_makes_it() -> None:
    assert load_generator(settings("http://h/v1")).name == "openai:m1"
