"""The stages of an ingest over sources, parsers and stores in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ingest.chunking import Chunker
from ingest.reading import Reader, ReadSettings
from ingest.stages import Encoder, Writer
from ingest.work import Done, End, Row, Task, Work
from quarry import ids
from quarry.errors import ParseError
from quarry.models.fakes import FakeEmbedder
from quarry.ports import Parser
from quarry.records import Block, BlockKind, DocState, Document, ParsedDocument, SourceItem
from quarry.settings import Settings, SourceSettings
from quarry.stores.factory import Stores
from quarry.stores.memory import MemoryCatalog, MemoryTextStore, MemoryVectorStore


@dataclass
class FakeSource:
    """Addresses and their text; counts what is read."""

    files: dict[str, str | bytes | ParseError]
    beside: dict[str, object] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    name: str = "s"

    def list(self) -> Iterator[SourceItem]:
        for address in self.files:
            yield item(address)

    def read(self, item: SourceItem) -> bytes:
        self.reads.append(item.address)
        content = self.files[item.address]
        if isinstance(content, ParseError):
            raise content
        return content if isinstance(content, bytes) else content.encode()

    def metadata(self, item: SourceItem) -> Mapping[str, object]:
        if self.beside.get("broken"):
            raise ParseError(DocState.FAILED, "_meta.yaml beside it is not YAML.")
        return self.beside


class FakeParser:
    """One document a file, or one a line `name|text` of a .jsonl file; `!state` fails with it."""

    def parse(self, content: bytes, item: SourceItem) -> Iterator[ParsedDocument]:
        text = content.decode()
        if not item.address.endswith("l"):
            yield parsed(text)
            return
        for line in text.splitlines():
            name, _, rest = line.partition("|")
            yield parsed(rest, record=name)


def parsed(text: str, record: str = "") -> ParsedDocument:
    if text == "!bug":
        raise ZeroDivisionError
    if text.startswith("!"):
        raise ParseError(text[1:], "It cannot be read.")
    block = Block(kind=BlockKind.PARAGRAPH, text=text, end=len(text))
    return ParsedDocument(record=record, title="T", blocks=(block,), content_hash=ids.digest(text))


def item(address: str, size: int = 10) -> SourceItem:
    return SourceItem(source="s", address=address, uri=address, tag="t", size=size)


@dataclass
class Bench:
    """All three stages over stores in memory."""

    source: FakeSource
    stores: Stores = field(
        default_factory=lambda: Stores(MemoryCatalog(), MemoryTextStore(), MemoryVectorStore())
    )
    embedder: FakeEmbedder = field(default_factory=FakeEmbedder)
    parser: Parser = field(default_factory=FakeParser)
    recipe: str = "r1"
    settings: Settings = field(
        default_factory=lambda: Settings(sources={"s": SourceSettings(default_acl=("public",))})
    )

    def __post_init__(self) -> None:
        self.stores.ensure(64)

    def read(self, *addresses: str, several: bool = False) -> list[Row]:
        reader = Reader(
            sources=[self.source],
            parser=self.parser,
            chunker=Chunker(self.embedder, self.settings.chunking),
            catalog=self.stores.catalog,
            config=ReadSettings(settings=self.settings, recipe=self.recipe, threads=2),
        )
        tasks = [
            Task(number=number, source=0, item=item(address), several=several)
            for number, address in enumerate(addresses or self.source.files)
        ]
        return list(reader(tasks))

    def encode(self, rows: Sequence[Row]) -> list[Row]:
        return list(Encoder(self.stores, self.embedder)(rows))

    def write(self, rows: Sequence[Row]) -> list[Row]:
        return list(Writer(self.stores)(rows))

    def sync(self, *addresses: str, several: bool = False) -> list[Done]:
        rows = self.write(self.encode(self.read(*addresses, several=several)))
        return [row for row in rows if isinstance(row, Done)]

    def row(self, address: str, record: str = "") -> Document:
        doc_id = ids.doc_id("s", address, record)
        return self.stores.catalog.get([doc_id])[doc_id]


def ends(rows: Sequence[Row]) -> list[End]:
    return [row for row in rows if isinstance(row, End)]


def works(rows: Sequence[Row]) -> list[Work]:
    return [row for row in rows if isinstance(row, Work)]
