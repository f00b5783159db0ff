"""A process whose threads search all the time, through the path that serves people's searches."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from loadtests.chaos.journal import Journal, Row
from loadtests.chaos.pages import LONG, PEOPLE, WORD, passage_of
from loadtests.chaos.world import GENERATION, World
from quarry.models.fakes import FakeEmbedder, FakeGenerator
from quarry.records import Candidate, Mode, SearchRequest
from quarry.settings import Settings, TelemetrySettings
from quarry.stores.factory import Stores
from quarry.telemetry.logs import configure_logging
from serve.engine import Engine, make_engine
from serve.index import Index
from serve.models import LoadedModels
from serve.stage import Threads

STOP = "stop-readers"
LEGS = {
    Mode.HYBRID: ("dense", "lexical"),
    Mode.DENSE: ("dense",),
    Mode.LEXICAL: ("lexical",),
}
DEADLINE_REQUESTS = 3
"""Store requests that a search has time for."""
PAUSE_S = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    person: int
    """Which of PEOPLE asks."""
    name: str
    """The document that is asked for; empty: all."""
    mode: Mode = Mode.HYBRID
    last: bool = False
    """Asked when all is healed and at rest: every leg must find everything."""

    def request(self, deadline_s: float) -> SearchRequest:
        return SearchRequest(
            question=f"{WORD} {self.name}".strip(),
            principal=PEOPLE[self.person],
            mode=self.mode,
            top_k=2 * LONG if self.name else 20,
            filter=f'page = "{self.name}"' if self.name else "",
            deadline_s=deadline_s,
        )


def engine_over(stores: Stores, settings: Settings, threads: Threads) -> Engine:
    """The engine that serves people, with models that need no weights."""
    models = LoadedModels(
        embedder=FakeEmbedder(), reranker=None, generator=FakeGenerator(), fallback=None
    )
    index = Index.of(GENERATION, stores)
    return make_engine(settings, index=index, models=models, threads=threads)


def read(world: World, readers: int) -> None:
    """Runs so many readers in this process until told to stop; then each asks for everything."""
    configure_logging(TelemetrySettings(log_level="error"))  # legs will be down all the time
    journal = Journal(world.journals / "readers.jsonl")
    chances = [random.Random(f"{world.seed}-reader-{number}") for number in range(readers)]  # noqa: S311
    _ask(world, journal, [_until_told(world, chance) for chance in chances])
    last = [last_questions(world.names[number::readers]) for number in range(readers)]
    _ask(world.patient, journal, last)
    journal.close()


def _ask(world: World, journal: Journal, readers: Sequence[Iterator[Question]]) -> None:
    """All questions of each reader, in a thread for each."""
    stores, threads = world.stores(), Threads(4 * len(readers))
    deadline_s = DEADLINE_REQUESTS * world.settings.stores.elasticsearch.timeout_s
    asker = Asker(engine_over(stores, world.settings, threads), journal, deadline_s)

    def ask(questions: Iterator[Question]) -> None:
        with asyncio.Runner() as runner:
            for question in questions:
                runner.run(asker.ask(question))

    with ThreadPoolExecutor(len(readers)) as pool:
        list(pool.map(ask, readers))
    threads.close()
    stores.close()


def _until_told(world: World, chance: random.Random) -> Iterator[Question]:
    while not world.told(STOP):
        yield _question(chance, world.names)
        time.sleep(PAUSE_S)


def _question(chance: random.Random, names: list[str]) -> Question:
    (mode,) = chance.choices(list(LEGS), weights=(8, 1, 1))
    name = chance.choice(names) if chance.random() < 0.7 else ""
    return Question(person=chance.randrange(len(PEOPLE)), name=name, mode=mode)


def last_questions(names: list[str]) -> Iterator[Question]:
    """Every person asks for every document, by both legs and by each alone."""
    for name in names:
        for person in range(len(PEOPLE)):
            for mode in LEGS:
                yield Question(person=person, name=name, mode=mode, last=True)


@dataclass(frozen=True, slots=True)
class Asker:
    engine: Engine
    journal: Journal
    deadline_s: float = 30.0

    async def ask(self, question: Question) -> None:
        """One search, noted with what it showed or how it failed."""
        start = time.monotonic()
        try:
            result = await self.engine.search(question.request(self.deadline_s))
        except Exception as error:  # noted whatever it is: the judge says what may happen
            self.journal.note(
                "unread",
                start=start,
                last=question.last,
                error=type(error).__name__,
                message=str(error),
            )
            return
        self.journal.note(
            "read",
            start=start,
            person=question.person,
            name=question.name,
            last=question.last,
            legs=[leg for leg in LEGS[question.mode] if leg not in result.degraded],
            degraded=result.degraded,
            seen=seen(result.candidates),
        )


def seen(candidates: tuple[Candidate, ...]) -> list[tuple[Row, list[str]]]:
    """Texts by the catalog row that let them pass."""
    found: dict[Row, list[str]] = {}
    for candidate in candidates:
        texts = found.setdefault(Row.of(candidate.document), [])
        texts.append(passage_of(candidate.chunk.text))
    return list(found.items())
