"""What the parsers get from source documents now, for `quarry diagnose --documents`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from quarry.cli.evaluating import Documents
from quarry.errors import ParseError
from quarry.ports import Parser, Source
from quarry.records import DocState, ParsedDocument, SourceItem
from quarry.settings import Settings

if TYPE_CHECKING:
    from evals.improving.diagnose import Sources


def extracted(settings: Settings, documents: Sequence[Documents]) -> Sources:
    """The text of every document of the folders, and those that could not be read as a whole."""
    from evals.improving.diagnose import Sources
    from ingest.parsers.sandbox import ParserPool
    from ingest.sources import open_source

    texts: dict[str, str] = {}
    unread: dict[str, str] = {}
    with closing(ParserPool(settings)) as parser:
        for each in documents:
            source = open_source(str(each.folder), name=each.source)
            for item in source.list():
                words, fault = _read(source, parser, item)
                texts[item.uri] = "\n".join(words)
                if fault:
                    unread[item.uri] = fault
    return Sources(texts=texts, unread=unread)


def _read(source: Source, parser: Parser, item: SourceItem) -> tuple[list[str], str]:
    """What was got before a fault is good, so both may be there."""
    words: list[str] = []
    fault = ""
    try:
        for parsed in parser.parse(source.read(item), item):
            words += _words(parsed)
            if parsed.state not in (DocState.INDEXED, DocState.EMPTY):
                fault = parsed.reason or parsed.state.value
    except ParseError as error:
        if error.state != DocState.EMPTY:
            fault = error.reason
    return words, fault


def _words(document: ParsedDocument) -> Iterator[str]:
    for block in document.blocks:
        yield block.text
        yield from (" ".join(row) for row in block.rows)
