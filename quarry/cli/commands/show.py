"""`quarry show`: a document as it is indexed, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from quarry.cli.catalog import NOTHING_YET, Live, find, live_catalog
from quarry.cli.commands.documents import document_json
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.output import one_line, print_json, print_line, print_note, printable
from quarry.cli.render import pages_text
from quarry.errors import UsageError
from quarry.records import Chunk, Document

_PAGE = 500
"""Chunks of one store call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """A document, and the positions of those of its chunks that are asked for."""

    document: Document
    ordinals: range


def show(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="DOC_OR_CHUNK", help="A doc_id, an address, or the chunk_id of one chunk."
        ),
    ],
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Show a document as it is indexed: each chunk with its id, pages, header and text.

    A chunk_id, as search --json and diagnose name them, shows that chunk alone. Like documents and
    history it is for who can read the data folder, and asks for nobody's rights; what search and
    ask do not serve, such as replaced and deleted revisions, it does not show either.
    """
    settings = settings_of(context, config)
    with live_catalog(settings) as live:
        if live is None:
            raise UsageError(NOTHING_YET)
        wanted = _wanted(live, name)
        found = _chunks(live, wanted)
        missing = _print_json(wanted, found) if as_json else _print_text(wanted, found)
    if missing:
        print_note(
            f"The text store lacks {_chunk_count(missing)}; run it again, and quarry verify if it "
            "stays so."
        )


def _print_json(wanted: _Wanted, found: Iterable[Chunk]) -> int:
    """Gives how many chunks are missing, as `_print_text` does."""
    chunks = [_chunk_json(chunk) for chunk in found]
    print_json({**document_json(wanted.document), "chunks": chunks})
    return len(wanted.ordinals) - len(chunks)


def _print_text(wanted: _Wanted, found: Iterable[Chunk]) -> int:
    missing = len(wanted.ordinals)
    print_line(_heading(wanted.document))
    for chunk in found:
        missing -= 1
        for line in _lines(chunk, wanted.document.chunk_count):
            print_line(line)
    return missing


def _wanted(live: Live, name: str) -> _Wanted:
    """Raises UsageError for what is not there, or is not served."""
    by_id = live.catalog.get([name])
    wanted = None if by_id else _served_chunk(live, name)
    if wanted is not None:
        return wanted
    document = by_id.get(name) or find(live.catalog, name, kind="document or chunk")
    return _Wanted(
        document=document, ordinals=range(document.chunk_count if document.revision else 0)
    )


def _served_chunk(live: Live, chunk_id: str) -> _Wanted | None:
    """It alone, of the committed revision; None if no row has this id. Raises UsageError."""
    start = f"{chunk_id}."  # what the row ids of a chunk begin with
    rows = [
        row for row in live.texts.scan(after=start, limit=_PAGE) if row.row_id.startswith(start)
    ]
    documents = live.catalog.get({row.doc_id for row in rows})
    for row in rows:
        document = documents.get(row.doc_id)
        if document is not None and document.revision == row.revision:
            chunk = live.texts.fetch([row.row_id]).get(row.row_id)
            if chunk is None:
                return None
            return _Wanted(document=document, ordinals=range(chunk.ordinal, chunk.ordinal + 1))
    if rows:
        raise UsageError(
            f"The chunk {chunk_id} is of a revision that is not served; quarry show "
            f"{rows[0].doc_id} shows what is."
        )
    return None


def _chunks(live: Live, wanted: _Wanted) -> Iterator[Chunk]:
    document = wanted.document
    for start in range(wanted.ordinals.start, wanted.ordinals.stop, _PAGE):
        ordinals = range(start, min(start + _PAGE, wanted.ordinals.stop))
        yield from live.texts.chunks(document.doc_id, document.revision, ordinals)


def _heading(document: Document) -> str:
    names = (document.title, document.uri, f"doc_id {document.doc_id}")
    facts = (
        document.state.value,
        _chunk_count(document.chunk_count) if document.revision else "nothing of it is served",
        f"readable by {', '.join(document.acl) or 'nobody'}",
        document.error,
    )
    return f"{_joined('  ', names)}\n{_joined('; ', facts)}"


def _joined(separator: str, parts: Iterable[str]) -> str:
    return separator.join(one_line(part) for part in parts if part)


def _chunk_count(count: int) -> str:
    return "1 chunk" if count == 1 else f"{count} chunks"


def _lines(chunk: Chunk, count: int) -> Iterator[str]:
    """The header stands apart from the text by its sign: it is embedded, and not quoted."""
    facts = (f"{chunk.ordinal + 1}/{count}", chunk.chunk_id, pages_text(chunk.pages))
    yield ""
    yield _joined("  ", (*facts, f"{chunk.tokens} tokens"))
    for line in printable(chunk.header).splitlines():
        yield f"  | {line}"
    for line in printable(chunk.text).splitlines():
        yield f"    {line}" if line.strip() else ""


def _chunk_json(chunk: Chunk) -> dict[str, Any]:
    return {
        "chunk_id": chunk.chunk_id,
        "ordinal": chunk.ordinal,
        "section": " > ".join(chunk.section),
        "pages": list(chunk.pages) if chunk.pages else None,
        "tokens": chunk.tokens,
        "header": chunk.header,
        "text": chunk.text,
    }
