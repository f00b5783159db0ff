"""The catalog row of a document that was read, and what its chunks are headed with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ingest.chunking import Head
from ingest.metadata import DocumentFields, document_fields
from ingest.work import SERVED
from quarry import ids
from quarry.access.labels import clean_text
from quarry.records import DocState, Document, ParsedDocument, SourceItem
from quarry.settings import SourceSettings
from quarry.text import clean


def document_of(
    item: SourceItem,
    parsed: ParsedDocument,
    beside: Mapping[str, object] | None,
    *,
    source: SourceSettings,
    recipe: str,
) -> Document:
    """The row to commit, without serial and revision; its state says whether there is text.

    `beside` is the metadata kept beside the content; None: it could not be read, and so nobody may
    read the document, nor one that stands for an unread line. The ACL is that which the document
    has now, in whatever state it ends.
    """
    fields = DocumentFields(title=clean_text(parsed.title), tenant=source.tenant)
    if beside is not None:
        fields = document_fields(parsed, beside, source)
    state, reason = _ending(parsed, fields)
    return Document(
        doc_id=ids.doc_id(item.source, item.address, parsed.record),
        source=item.source,
        address=item.address,
        uri=f"{item.uri}#{clean_text(parsed.record)}" if parsed.record else item.uri,
        url=fields.url,
        title=fields.title,
        content_hash=parsed.content_hash,
        meta_hash=fields.meta_hash,
        recipe=recipe,
        state=state,
        error=clean_text(reason),
        series=fields.series,
        version=fields.version,
        status=fields.status,
        effective=fields.effective,
        tenant=fields.tenant,
        acl=() if parsed.is_unread else fields.acl,
        metadata=fields.metadata,
    )


def _ending(parsed: ParsedDocument, fields: DocumentFields) -> tuple[DocState, str]:
    """What became of the content counts before what is wrong with its metadata."""
    told = " ".join(filter(None, (fields.fault, fields.problem)))
    if parsed.state not in SERVED or not told:
        return parsed.state, parsed.reason
    if fields.fault:
        return DocState.FAILED, told
    return DocState.PARTIAL, " ".join(filter(None, (parsed.reason, told)))


def head_of(document: Document) -> Head:
    """Title, version and region: what tells a reader of one chunk which document speaks."""
    return Head(
        title=_line(document.title),
        version=_line(document.version),
        scope=_line(str(document.metadata.get("region", ""))),
    )


def failed(document: Document, state: DocState, reason: str) -> Document:
    return replace(document, state=state, error=reason)


def _line(text: str) -> str:
    return " ".join(clean(text).split())
