"""What one read of the catalog says about the documents of a pass, for one person."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from quarry.access.check import Verdict, current_of_series, verdict
from quarry.ports import Catalog
from quarry.records import Document
from serve.question import Asked


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
        """Reads the rows and the series they are of."""
        documents = catalog.get(doc_ids)
        current = {
            series: current_of_series(family, principal=asked.principal, today=asked.today)
            for series, family in _families(catalog, documents).items()
        }
        admitted, passed_over, successors = {}, {}, set()
        for doc_id, document in documents.items():
            siblings = current.get(document.series, ())
            said = _verdict(asked, document, siblings)
            if said is Verdict.ADMITTED:
                admitted[doc_id] = document
            elif said is not Verdict.UNREADABLE:
                passed_over[doc_id] = document, said
                successors |= {d.revision for d in siblings if d.doc_id not in documents}
        return cls(admitted=admitted, passed_over=passed_over, successors=frozenset(successors))


def _verdict(asked: Asked, document: Document, siblings: Collection[Document]) -> Verdict:
    return verdict(
        document,
        principal=asked.principal,
        filter=asked.filter,
        today=asked.today,
        siblings=siblings,
        all_versions=asked.all_versions,
    )


def _families(catalog: Catalog, documents: Mapping[str, Document]) -> dict[str, list[Document]]:
    """All documents of each series; rows that were read already stand for themselves, so that two
    reads cannot show two states of one document."""
    wanted = {document.series for document in documents.values() if document.series}
    families: dict[str, dict[str, Document]] = defaultdict(dict)
    for series, siblings in (catalog.series(wanted) if wanted else {}).items():
        families[series] = {each.doc_id: each for each in siblings}
    for document in documents.values():
        for family in families.values():
            family.pop(document.doc_id, None)
        if document.series:
            families[document.series][document.doc_id] = document
    return {series: list(family.values()) for series, family in families.items()}
