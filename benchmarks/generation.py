"""Tokens a second of the generator deployment beside vLLM alone: python -m benchmarks.generation

    python -m benchmarks.generation MODEL [--concurrent 8] [--tokens 128] [--rounds 6]

MODEL is a folder or hub id; the default is the small model of `make vllm-env`. The same prompts are
written by `AsyncLLM` alone and through `GeneratorServer` on Ray Serve and its handle, with the same
engine settings, each in processes of its own and never at once: alone, served, served, alone, so
that a machine that gets slower or faster meanwhile favours neither. A round is all prompts at
once; the figure is the median of the rounds. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from benchmarks.environment import environment, environment_line
from quarry.records import Message, Piece, Prompt
from quarry.settings import GeneratorSettings, Settings

SIDES = ("alone", "served", "served", "alone")
RULES = "You are a careful writer. Answer in full sentences."
TOPICS = ("tents", "stoves", "boots", "maps", "rivers", "bridges", "winter", "bread")

Write = Callable[[Prompt], Awaitable[int]]
"""Writes one answer and gives its tokens."""


def settings_for(model: str, *, context_tokens: int = 2048) -> GeneratorSettings:
    """The engine as on two cores: no compiling, a small cache."""
    return GeneratorSettings.model_validate(
        {
            "kind": "vllm",
            "model": model,
            "context_tokens": context_tokens,
            "timeout_s": 600,
            "vllm": {
                "device": "cpu",
                "dtype": "bfloat16",
                "kv_cache_gib": 1.0,
                "enforce_eager": True,
            },
        }
    )


def prompts(count: int, tokens: int) -> list[Prompt]:
    return [
        Prompt(
            question="",
            evidence=(),
            messages=(
                Message(role="system", content=RULES),
                Message(role="user", content=f"Write a very long story about {topic}, part {n}."),
            ),
            max_tokens=tokens,
        )
        for n, topic in zip(range(count), TOPICS * count, strict=False)
    ]


async def rounds(write: Write, asked: Sequence[Prompt], count: int) -> list[dict[str, float]]:
    """Tokens and seconds of each round, after one to warm up."""
    found = []
    for _ in range(count + 1):
        begun = time.perf_counter()
        tokens = sum(await asyncio.gather(*(write(prompt) for prompt in asked)))
        found.append({"tokens": tokens, "seconds": time.perf_counter() - begun})
    return found[1:]


async def alone(
    settings: GeneratorSettings, asked: Sequence[Prompt], count: int
) -> list[dict[str, float]]:
    from vllm import SamplingParams
    from vllm.inputs import tokens_input
    from vllm.sampling_params import RequestOutputKind

    from quarry.models.chat import Chat
    from quarry.models.vllm_engine import import_vllm, start

    import_vllm(settings.vllm)
    engine = await start(settings)
    chat = Chat(engine.get_tokenizer(), settings.model)
    numbers = iter(range(1_000_000))

    async def write(prompt: Prompt) -> int:
        sampling = SamplingParams(
            temperature=0.0,
            max_tokens=prompt.max_tokens,
            output_kind=RequestOutputKind.DELTA,
        )
        tokens = chat.tokens(prompt.messages)
        outputs = engine.generate(tokens_input(tokens), sampling, str(next(numbers)))
        return sum([len(output.outputs[0].token_ids) async for output in outputs])

    try:
        return await rounds(write, asked, count)
    finally:
        engine.shutdown()


def served(
    settings: GeneratorSettings, asked: Sequence[Prompt], count: int
) -> list[dict[str, float]]:
    from ray import serve

    from serve.serving.deployments import GeneratorServer
    from serve.serving.handles import RemoteGenerator
    from serve.serving.placement import placements

    whole = Settings(generator=settings)
    generator = serve.deployment(
        GeneratorServer,
        name="generator",
        max_ongoing_requests=len(asked) + 8,
        **placements(whole)["generator"].options(),
    )
    handle = serve.run(generator.bind(_load(settings), None, whole), route_prefix=None)
    remote = RemoteGenerator(handle)

    async def write(prompt: Prompt) -> int:
        last = Piece()
        async for piece in remote.stream(prompt):
            last = piece
        return last.completion_tokens

    return asyncio.run(rounds(write, asked, count))


def _load(settings: GeneratorSettings) -> Callable[[Any], Any]:
    def load(_embedder: Any) -> Any:
        from quarry.models.factory import load_generator
        from serve.serving.pacing import pace

        return load_generator(settings, pace=pace)

    return load


def one_side(side: str, model: str, concurrent: int, tokens: int, count: int) -> None:
    """Measures in this process and prints the rounds as one JSON line."""
    settings, asked = settings_for(model), prompts(concurrent, tokens)
    if side == "alone":
        found = asyncio.run(alone(settings, asked, count))
    else:
        from serve.serving.app import LOCAL_RAY

        for name, value in LOCAL_RAY.items():
            os.environ.setdefault(name, value)
        import ray
        from ray import serve

        ray.init(address="local", include_dashboard=False, log_to_driver=False)
        serve.start(proxy_location="Disabled", logging_config={"log_level": "ERROR"})
        found = served(settings, asked, count)
        serve.shutdown()
        ray.shutdown()
    print(json.dumps(found))


def measure(model: str, concurrent: int, tokens: int, count: int) -> dict[str, Any]:
    seen: dict[str, list[dict[str, float]]] = {"alone": [], "served": []}
    for side in SIDES:
        arguments = [model, "--concurrent", str(concurrent), "--tokens", str(tokens)]
        arguments += ["--rounds", str(count), "--side", side]
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.generation", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        seen[side].extend(json.loads(done.stdout.splitlines()[-1]))
    rates = {
        side: [each["tokens"] / each["seconds"] for each in measured]
        for side, measured in seen.items()
    }
    medians = {side: statistics.median(each) for side, each in rates.items()}
    return {
        "benchmark": "generation",
        "model": model.rpartition("/")[2],
        "concurrent": concurrent,
        "max_tokens": tokens,
        "tokens_a_round": sorted({int(r["tokens"]) for side in seen.values() for r in side}),
        "tokens_per_s": {
            side: {
                "median": round(medians[side], 1),
                "least": round(min(each), 1),
                "most": round(max(each), 1),
                "rounds": len(each),
            }
            for side, each in rates.items()
        },
        "ratio": round(medians["served"] / medians["alone"], 3),
        "environment": environment(),
    }


def show(result: dict[str, Any]) -> None:
    """The two rates and their ratio, then what they ran on."""
    print(f"{result['model']}, {result['concurrent']} answers at once (tokens a second)")
    for side, rate in result["tokens_per_s"].items():
        print(f"  {side:<8} {rate['median']:>8}   {rate['least']} to {rate['most']}")
    print(f"  ratio    {result['ratio']:>8}")
    print(environment_line(result["environment"]))


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.generation")
    parser.add_argument("model", nargs="?", default="")
    parser.add_argument("--concurrent", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--side", choices=sorted(set(SIDES)), help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    if not given.model:
        from tests.vllm.smollm2 import smollm2

        given.model = str(smollm2())
    if given.side:
        one_side(given.side, given.model, given.concurrent, given.tokens, given.rounds)
        return
    result = measure(given.model, given.concurrent, given.tokens, given.rounds)
    show(result)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
