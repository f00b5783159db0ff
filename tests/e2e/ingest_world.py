"""A folder, an index over it, and runs in this process or through Ray."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from ingest.parsers import parse_item
from ingest.run import Pipeline
from ingest.stages import StageSettings, make_encoder, make_reader, make_writer
from ingest.summary import RunSummary
from ingest.sync import delete_documents, run_sync
from ingest.work import Done, End, Task
from quarry.access import Everything
from quarry.generations import open_live
from quarry.records import DocState, Document, ParsedDocument, SourceItem
from quarry.settings import Settings
from quarry.stores.factory import Stores
from quarry.stores.milvus_lite import vector_server
from quarry.verify import verify


class InProcessParsers:
    """Parses where it is called, for tests that do not start the sandbox's processes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings.ingest

    def parse(self, content: bytes, item: SourceItem) -> Iterator[ParsedDocument]:
        return parse_item(content, item, self._settings)


class InlinePipeline:
    """The stages one after the other in this process; remembers the addresses that it read."""

    def __init__(self, before_writing: Callable[[str], None] = lambda address: None) -> None:
        self.read: list[str] = []
        self._before_writing = before_writing

    def session(self) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, config: StageSettings, tasks: Sequence[Task]) -> Iterable[list[Done | End]]:
        read, embed, write = make_reader(config), make_encoder(config), make_writer(config)
        for task in tasks:
            self.read.append(task.item.address)
            rows = list(embed(list(read([task]))))
            self._before_writing(task.item.address)
            yield [row for row in write(rows) if isinstance(row, (Done, End))]


class NoPipeline(InlinePipeline):
    """For runs that must not need one."""

    def session(self) -> AbstractContextManager[None]:
        raise AssertionError("the run reads though it has nothing to read")


@dataclass
class World:
    root: Path
    overrides: dict[str, object] = field(default_factory=dict)
    pipeline: Pipeline | None = field(default_factory=InlinePipeline)

    def __post_init__(self) -> None:
        self.folder = self.root / "docs"
        self.folder.mkdir(parents=True)

    @property
    def settings(self) -> Settings:
        return Settings.model_validate(
            {
                "data_dir": self.root / "data",
                "sources": {"default": {"default_acl": ["public"]}},
                "embedder": {"model": "fake"},
                "ingest": {"parse_workers": 1},
            }
            | self.overrides
        )

    def write(self, address: str, text: str) -> Path:
        path = self.folder / address
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def remove(self, address: str) -> None:
        path = self.folder / address
        shutil.rmtree(path) if path.is_dir() else path.unlink()

    def sync(self, *targets: Path, **options: object) -> RunSummary:
        options.setdefault("pipeline", self.pipeline)
        found = [str(target) for target in targets or (self.folder,)]
        return run_sync(self.settings, found, **options)  # type: ignore[arg-type]

    def delete(self, *names: str) -> RunSummary:
        return delete_documents(self.settings, doc_ids_or_uris=names)

    @contextmanager
    def stores(self) -> Iterator[Stores]:
        with vector_server(self.settings):
            _, stores = open_live(self.settings, None)
            with closing(stores):
                yield stores

    def rows(self) -> dict[str, Document]:
        """Catalog rows by uri, tombstones left out."""
        with self.stores() as stores:
            rows = stores.catalog.scan(limit=10_000)
        return {row.uri: row for row in rows if row.state is not DocState.DELETED}

    def row(self, uri: str) -> Document:
        return self.rows()[uri]

    def found(self, question: str) -> set[str]:
        """Uris of the live documents that hold one of these words."""
        with self.stores() as stores:
            hits = stores.text.search(question, limit=50, where=Everything())
            rows = stores.catalog.get({hit.doc_id for hit in hits})
            live = [hit for hit in hits if rows[hit.doc_id].revision == hit.revision]
            return {rows[hit.doc_id].uri for hit in live}

    def is_clean(self) -> bool:
        with self.stores() as stores:
            report = verify(stores, repair=False)
        return report.clean and not report.found


def filled(world: World, count: int = 4) -> World:
    for number in range(count):
        world.write(f"page{number}.md", f"# Page {number}\n\nWord{number} is said here.\n")
    world.sync()
    return world
