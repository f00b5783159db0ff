"""What one read of the catalog says about the documents of a pass, for one person."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from quarry import past
from quarry.access.check import Verdict, current_of_series, grants, verdict
from quarry.ports import Catalog
from quarry.records import Document
from serve.finding.question import Asked

Series: TypeAlias = tuple[str, str]
"""A source and the name of one of its series; those of two sources are two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    admitted: Mapping[str, Document]
    """By doc_id: served, readable, matching the filter, of the version asked for."""
    passed_over: Mapping[str, tuple[Document, Verdict]]
    """By doc_id: readable, but not admitted, and why."""
    successors: frozenset[str]
    """Revisions of current versions that no row was found of, though an older version's was."""

    @classmethod
    def read(cls, catalog: Catalog, doc_ids: Collection[str], asked: Asked) -> View:
        """Reads the rows, as of the time that is asked about, and the series they are of."""
        documents = _documents(catalog, doc_ids, asked)
        current = {
            name: current_of_series(family, principal=asked.principal, today=asked.today)
            for name, family in _families(catalog, documents, asked).items()
        }
        admitted, passed_over, successors = {}, {}, set()
        for doc_id, document in documents.items():
            siblings = current.get(_series(document), ())
            said = _verdict(asked, document, siblings)
            if said is Verdict.ADMITTED:
                admitted[doc_id] = document
            elif said is not Verdict.UNREADABLE:
                passed_over[doc_id] = document, said
                successors |= {d.revision for d in siblings if d.doc_id not in documents}
        return cls(admitted=admitted, passed_over=passed_over, successors=frozenset(successors))

    @classmethod
    def page(
        cls, catalog: Catalog, asked: Asked, *, after: str, limit: int
    ) -> tuple[View, str | None]:
        """One page of the whole catalog, and where the next one begins; None after the last."""
        rows = catalog.scan(after=after, limit=limit)
        view = cls.read(catalog, [row.doc_id for row in rows], asked)
        return view, rows[-1].doc_id if len(rows) == limit else None


def _verdict(asked: Asked, document: Document, siblings: Collection[Document]) -> Verdict:
    return verdict(
        document,
        principal=asked.principal,
        filter=asked.filter,
        today=asked.today,
        siblings=siblings,
        all_versions=asked.all_versions,
    )


def _documents(catalog: Catalog, doc_ids: Collection[str], asked: Asked) -> dict[str, Document]:
    """Rows by doc_id. Of the past only what this person may read today is taken up: all else is as
    if it had never been."""
    if asked.as_of is None:
        return catalog.get(doc_ids)
    kept = catalog.kept()
    then = {
        doc_id: past.standing(history, kept, asked.as_of)
        for doc_id, history in catalog.histories(doc_ids).items()
        if grants(history[-1], asked.principal)
    }
    return {doc_id: document for doc_id, document in then.items() if document}


def _siblings(catalog: Catalog, names: Collection[str], asked: Asked) -> Iterator[Document]:
    if asked.as_of is None:
        for family in catalog.series(names).values():
            yield from family
    else:
        yield from _documents(catalog, catalog.members(names), asked).values()


def _series(document: Document) -> Series:
    return document.source, document.series


def _families(
    catalog: Catalog, documents: Mapping[str, Document], asked: Asked
) -> dict[Series, list[Document]]:
    """All documents of each series; rows that were read already stand for themselves, so that two
    reads cannot show two states of one document."""
    wanted = {_series(document) for document in documents.values() if document.series}
    names = {series for _, series in wanted}
    families: dict[Series, dict[str, Document]] = defaultdict(dict)
    for each in _siblings(catalog, names, asked) if names else ():
        if _series(each) in wanted:
            families[_series(each)][each.doc_id] = each
    for document in documents.values():
        for family in families.values():
            family.pop(document.doc_id, None)
        if document.series:
            families[_series(document)][document.doc_id] = document
    return {name: list(family.values()) for name, family in families.items()}
