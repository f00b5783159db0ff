"""The catalog check: whether a document may be shown to a person, and which version of it.

Readers call `admit` with the catalog's row, whatever the stores said (invariant 2). What a person
may not read takes no part in any decision: it is as if it did not exist.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from enum import StrEnum

from quarry.access.compile import labels_of, matches
from quarry.access.filters import (
    And,
    Compare,
    Everything,
    Filter,
    In,
    Not,
    Op,
    Or,
    ReadableBy,
)
from quarry.access.labels import clean_text, date_key
from quarry.access.principals import scopes
from quarry.access.versions import version_key
from quarry.records import Document, Principal, Status


class Verdict(StrEnum):
    """What the catalog check says of a document, for one person and one filter."""

    ADMITTED = "admitted"
    UNREADABLE = "unreadable"
    """To this person it does not exist; nobody is told."""
    FILTERED = "filtered"
    NOT_CURRENT = "not_current"
    """A draft or withdrawn, and not asked for."""
    SUPERSEDED = "superseded"
    """Another version of its series is current, or it is not in effect yet."""


def may_read(principal: Principal, document: Document) -> bool:
    """Whether the document is served and this principal may read it; closed by default.

    Raises UsageError for a principal whose names are not names.
    """
    return bool(document.revision) and grants(document, principal)


def grants(document: Document, principal: Principal) -> bool:
    """`may_read`, whether the document is served or not."""
    return (
        bool(principal.tenant)
        and document.tenant == principal.tenant
        and not set(scopes(principal)).isdisjoint(document.acl)
    )


def scope_filter(principal: Principal) -> Filter:
    """The part of `may_read` that a store can say. Raises UsageError."""
    tenant = Compare("tenant", Op.EQ, clean_text(principal.tenant))
    return And((tenant, ReadableBy(scopes(principal))))


def search_filter(
    principal: Principal, filter: Filter, *, today: date, all_versions: bool = False
) -> Filter:
    """What to ask a store for, so that what `admit` lets through is among it.

    It leaves to `admit` only which version of a series is the current one.
    """
    named = fields_of(filter)
    parts: list[Filter] = [scope_filter(principal), filter]
    if "status" not in named:
        parts.append(Compare("status", Op.EQ, Status.CURRENT.value))
        if not _any_version(named, all_versions):
            parts.append(Not(Compare("effective", Op.GT, today)))
    return And(tuple(parts))


def admit(
    document: Document,
    *,
    principal: Principal,
    filter: Filter,
    today: date,
    siblings: Iterable[Document],
    all_versions: bool = False,
) -> bool:
    """Whether this principal gets to see this document by this filter: `verdict` lets it pass."""
    said = verdict(
        document,
        principal=principal,
        filter=filter,
        today=today,
        siblings=siblings,
        all_versions=all_versions,
    )
    return said is Verdict.ADMITTED


def verdict(
    document: Document,
    *,
    principal: Principal,
    filter: Filter,
    today: date,
    siblings: Iterable[Document],
    all_versions: bool = False,
) -> Verdict:
    """Whether this principal gets to see this document by this filter, or why not.

    `siblings` are the documents of its series (`Catalog.series`), of which only the current ones
    are shown, unless `all_versions` is set or the filter names `version` or `effective`. Drafts and
    withdrawn documents are shown only if the filter names `status`. A series is one of its source:
    who may write to one source must not be able to hide what another one says.
    """
    if not may_read(principal, document):
        return Verdict.UNREADABLE
    if not isinstance(filter, Everything) and not matches(filter, labels_of(document)):
        return Verdict.FILTERED
    named = fields_of(filter)
    if document.status is not Status.CURRENT:
        return Verdict.ADMITTED if "status" in named else Verdict.NOT_CURRENT
    if _any_version(named, all_versions):
        return Verdict.ADMITTED
    if not document.series:
        return Verdict.ADMITTED if _in_effect(document, today) else Verdict.SUPERSEDED
    family = {each.doc_id: each for each in siblings if each.source == document.source}
    family[document.doc_id] = document
    current = current_of_series(family.values(), principal=principal, today=today)
    shown = any(each.doc_id == document.doc_id for each in current)
    return Verdict.ADMITTED if shown else Verdict.SUPERSEDED


def current_of_series(
    documents: Iterable[Document], *, principal: Principal, today: date
) -> tuple[Document, ...]:
    """The current documents among those of one series, as this principal sees it.

    Of the readable ones with status current that are in effect today: those of the highest
    version, and among equal versions those with the latest date of effect. Several only if these
    are equal too, such as translations.
    """
    in_effect = [
        document
        for document in documents
        if _in_effect(document, today) and may_read(principal, document)
    ]
    ranks = [(version_key(each.version), date_key(each.effective)) for each in in_effect]
    highest = max(ranks, default=None)
    return tuple(each for each, rank in zip(in_effect, ranks, strict=True) if rank == highest)


def _in_effect(document: Document, today: date) -> bool:
    effective = document.effective
    return document.status is Status.CURRENT and (effective is None or effective <= today)


def fields_of(filter: Filter) -> frozenset[str]:
    """Names of the fields that a filter asks about."""
    if isinstance(filter, And | Or):
        return frozenset().union(*(fields_of(part) for part in filter.parts))
    if isinstance(filter, Not):
        return fields_of(filter.part)
    if isinstance(filter, Everything | ReadableBy):
        return frozenset()
    assert isinstance(filter, Compare | In)
    return frozenset({filter.field})


def _any_version(named: frozenset[str], all_versions: bool) -> bool:
    return all_versions or not named.isdisjoint({"version", "effective"})
