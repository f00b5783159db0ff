"""Both example corpora, ingested by Ray with the real embedder, and asked as their people."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ingest.summary import RunSummary
from ingest.sync import run_sync
from quarry.access.principals import Users, load_users
from quarry.records import Answer, Candidate, Mode, Principal, SearchRequest
from quarry.settings import Settings
from serve.engine import Engine, open_engine
from tests.conftest import REPO

SHOP = REPO / "examples" / "outdoor-shop"
HANDBOOK = REPO / "examples" / "robotics-handbook"


@dataclass(frozen=True)
class Examples:
    """The engine over both corpora; the shop's pages are a copy that a test may change."""

    settings: Settings
    shop_pages: Path
    users: Users
    engine: Engine

    def search(
        self,
        question: str,
        *,
        person: str = "",
        mode: Mode = Mode.HYBRID,
        top_k: int = 10,
        all_versions: bool = False,
    ) -> list[Candidate]:
        request = SearchRequest(
            question=question,
            principal=self._principal(person),
            mode=mode,
            top_k=top_k,
            all_versions=all_versions,
            deadline_s=120,
        )
        result = asyncio.run(self.engine.search(request))
        assert result.degraded == ()
        return list(result.candidates)

    def ask(self, question: str, *, person: str = "") -> Answer:
        request = SearchRequest(
            question=question, principal=self._principal(person), deadline_s=120
        )
        answer = asyncio.run(self.engine.answer_whole(request))
        assert answer.degraded == ()
        return answer

    def _principal(self, person: str) -> Principal:
        return self.users.named(person) if person else Principal()


def ingest_shop(settings: Settings, pages: Path) -> RunSummary:
    return run_sync(settings, [str(pages)], source="shop")


@contextmanager
def examples(folder: Path) -> Iterator[Examples]:
    """Ingests into a data folder below `folder` and opens the engine over it."""
    settings = Settings(data_dir=folder / "data")
    pages = folder / "shop"
    shutil.copytree(SHOP / "documents", pages)
    for summary in (
        ingest_shop(settings, pages),
        run_sync(settings, [str(HANDBOOK / "documents")], source="handbook"),
    ):
        assert summary.failures == ()
    with open_engine(settings) as engine:
        yield Examples(
            settings=settings,
            shop_pages=pages,
            users=load_users(HANDBOOK / "users.yaml"),
            engine=engine,
        )
