"""What a run has to do: the listing of a source compared with what the catalog knows of it.

Nothing is read here. An address is read again if its change mark or its recipe differs, or if its
last reading failed for a reason that may have passed. An address that is listed no more
has vanished, and its documents are deleted, unless that would be suspiciously many.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

from ingest.sources import LeftOut
from ingest.sources.local import Refused
from ingest.summary import Failure
from quarry.entries import MARK, UNFINISHED, documents_of, lost, mark, orphan, present, shortfalls
from quarry.errors import UsageError
from quarry.ids import digest
from quarry.ports import Catalog
from quarry.records import DocState, SourceEntry, SourceItem
from quarry.settings import IngestSettings, Settings

_LIMITED = frozenset({DocState.TOO_LARGE, DocState.TIMED_OUT})
_NAMED = 3
"""Addresses that an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What else but its content decides how the reading of an address of one source ends."""

    parsers: str
    """Fingerprint of the parsers and what they may use."""
    labels: str = ""
    """Fingerprint of the source's settings: who reads what has no ACL of its own, and so on."""
    limits: str = ""
    """Fingerprint of the limits on size, time and memory, for what failed by them."""

    def of(self, state: DocState) -> str:
        """What an entry of this state remembers; another one later means: read it again."""
        return digest(self.parsers, self.labels, self.limits if state in _LIMITED else "")


def recipe_of(parsers: str, settings: Settings, source: str) -> Recipe:
    """`parsers` is the parsers' own fingerprint. All settings of a source count, so that none that
    is added later can be forgotten here."""
    ingest = settings.ingest
    limits = (ingest.max_bytes, ingest.parse_timeout_s, ingest.parse_memory_mb)
    return Recipe(
        parsers=parsers,
        labels=digest(settings.source(source).model_dump_json()),
        limits=digest(*map(str, limits)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the catalog knows of one source."""

    source: str
    entries: Mapping[str, SourceEntry] = field(default_factory=dict)
    origins: tuple[str, ...] = ()
    """Where it was read from; empty: never."""
    there: int = 0
    """Documents that the catalog has of it, tombstones not counted."""
    unfinished: bool = False
    """The last run did not come to its end, or the source's own entry is lost: there may be
    documents without an entry."""

    @property
    def documents(self) -> int:
        return sum(entry.documents for entry in self.entries.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    source: str
    read: tuple[SourceItem, ...]
    several: frozenset[str]
    """Addresses among `read` that gave other than one document before."""
    unchanged: Counter[DocState]
    """Documents of the addresses that are not read, by state."""
    mixed: tuple[str, ...]
    """Addresses that are not read either, whose documents have states of their own."""
    vanished: tuple[str, ...]
    withheld: int = 0
    """Documents of vanished addresses that are kept, because they are suspiciously many."""
    left_out: tuple[LeftOut, ...] = ()
    """What is listed and no document."""
    refused: tuple[Failure, ...] = ()
    """What is not read again since it never can be; each run tells it, until it is mended."""


def known(catalog: Catalog, source: str) -> Known:
    found = {entry.address: entry for entry in catalog.entries(source)}
    own = found.pop(MARK, None)
    there = present(catalog, source)
    if own is None:
        return Known(source=source, entries=found, there=there, unfinished=there > 0)
    return Known(
        source=source,
        entries=found,
        there=there,
        origins=_origins(own),
        unfinished=own.recipe == UNFINISHED,
    )


def put_mark(catalog: Catalog, source: str, origins: Sequence[str], *, unfinished: bool) -> None:
    """Remembers where a source is read from, and whether a run over it is under way."""
    catalog.put_entry(mark(source, origins, unfinished=unfinished))


def _origins(own: SourceEntry) -> tuple[str, ...]:
    return tuple(own.reason.split("\n"))


def check_origins(before: Known, origins: Sequence[str], *, named: bool) -> None:
    """A name that stands for another place by chance would mix, or delete, what is of two places.

    Raises UsageError, unless the name was given on purpose.
    """
    if named or not _is_elsewhere(before, origins):
        return
    raise UsageError(
        f"The source {before.source} was read from {before.origins[0]} until now; pass --moved to "
        f"read it from {origins[0]} from now on, or --source with another name."
    )


def check_moved(plan: Plan, before: Known, origins: Sequence[str]) -> None:
    """A source that is read from another place keeps its documents, or somebody has to mean it.

    Raises UsageError that names some of those that are not at the new place.
    """
    lost = [address for address in plan.vanished if before.entries[address].documents]
    if not lost or not _is_elsewhere(before, origins):
        return
    documents = sum(before.entries[address].documents for address in lost)
    names = ", ".join([*lost[:_NAMED], *(["…"] if len(lost) > _NAMED else [])])
    raise UsageError(
        f"The source {before.source} was read from {before.origins[0]} until now, and {documents} "
        f"of its {before.documents} documents are not in {origins[0]} ({names}); pass --moved to "
        "delete them and read it from there from now on, or --source with another name."
    )


def check_renamed(catalog: Catalog, plan: Plan, origins: Sequence[str]) -> None:
    """A folder under another name would be there twice: as it was, for good, and as it is.

    Raises UsageError if half of the documents of a source whose place is gone are listed here.
    """
    listed = {item.address for item in plan.read}
    for name in catalog.sources():
        own = catalog.entry(name, MARK)
        if name == plan.source or own is None or any(map(_is_there, _origins(own))):
            continue
        had = [entry.address for entry in catalog.entries(name) if entry.documents]
        same = sum(address in listed for address in had)
        if had and 2 * same >= len(had):
            raise UsageError(
                f"{same} of the {len(had)} files of the source {name}, whose place "
                f"{_origins(own)[0]} is gone, are in {origins[0]}; pass --source {name} --moved "
                f"if they have moved there, or --source {plan.source} to have both."
            )


def check_within(catalog: Catalog, source: str, origins: Sequence[str]) -> None:
    """What is in the folder of another source would be there twice, each with rights of its own.

    Raises UsageError if one of these places is in one of another source's, or the other way round.
    """
    places = list(filter(os.path.isabs, origins))
    for name in catalog.sources():
        own = catalog.entry(name, MARK)
        if name == source or own is None:
            continue
        for place, other in product(places, filter(os.path.isabs, _origins(own))):
            if Path(place).is_relative_to(other):
                raise UsageError(
                    f"{place} is in {other}, which is the source {name}; run: quarry ingest "
                    f"{other}, or pass --source {source} to have it twice, with rights of its own."
                )
            if Path(other).is_relative_to(place):
                raise UsageError(
                    f"{other}, which is the source {name}, is in {place}; pass --source {name} "
                    f"--moved to read all of it as that, or --source {source} to have both."
                )


def check_apart(origins: Sequence[str], others: Sequence[str]) -> None:
    """The same for the targets of one run, of which the catalog knows nothing yet.

    Raises UsageError if a place of the one is in a place of the other.
    """
    for pair in product(filter(os.path.isabs, origins), filter(os.path.isabs, others)):
        for inner, outer in (pair, pair[::-1]):
            if inner != outer and Path(inner).is_relative_to(outer):
                raise UsageError(
                    f"{inner} is in {outer} and would be there twice; leave it out, or ingest it "
                    "alone with --source NAME to have it twice, with rights of its own."
                )


def _is_there(origin: str) -> bool:
    """Only of a path can it be told that it is gone."""
    return not Path(origin).is_absolute() or os.path.lexists(origin)


def _is_elsewhere(before: Known, origins: Sequence[str]) -> bool:
    return bool(before.origins) and before.origins != tuple(origins)


def make_plan(
    listing: Iterable[SourceItem], before: Known, *, recipe: Recipe, complete: bool = True
) -> Plan:
    """`complete`: what is not listed is gone. Raises UsageError if an address is listed twice."""
    read: list[SourceItem] = []
    unchanged: Counter[DocState] = Counter()
    mixed: list[str] = []
    listed: set[str] = set()
    left_out: list[LeftOut] = []
    refused: list[Failure] = []
    for item in listing:
        if isinstance(item, LeftOut):
            left_out.append(item)
            continue
        if item.address in listed:
            raise UsageError(
                f"Two files have the address {item.address}; give them sources of their own."
            )
        listed.add(item.address)
        entry = before.entries.get(item.address)
        if entry is None or not _is_current(entry, item, recipe):
            read.append(item)
            continue
        if entry.state is DocState.FAILED:
            refused.append(Failure(uri=item.uri, state=entry.state, reason=entry.reason))
        if entry.documents > 1 and entry.state is not DocState.INDEXED:
            mixed.append(item.address)
        else:
            unchanged[entry.state] += entry.documents
    gone = sorted(before.entries.keys() - listed) if complete else []
    return Plan(
        source=before.source,
        read=tuple(read),
        several=frozenset(a for a, e in before.entries.items() if e.documents != 1),
        unchanged=unchanged,
        mixed=tuple(mixed),
        vanished=tuple(gone),
        left_out=tuple(left_out),
        refused=tuple(refused),
    )


def guarded(plan: Plan, before: Known, settings: IngestSettings, *, allow: bool) -> Plan:
    """The plan without its deletions if they are suspiciously many and not allowed."""
    gone = sum(before.entries[address].documents for address in plan.vanished)
    if allow or not is_mass_delete(gone, before.documents, settings):
        return plan
    return replace(plan, vanished=(), withheld=gone)


def is_mass_delete(gone: int, documents: int, settings: IngestSettings) -> bool:
    """True past both limits: a count of documents and a share of all that were there."""
    return gone > settings.mass_delete_documents and gone > settings.mass_delete_share * documents


def with_orphans(catalog: Catalog, before: Known) -> Known:
    """Adds the addresses that only the catalog's documents tell of: after an unfinished run, or if
    there are more documents than the entries count."""
    if not before.unfinished and before.there <= before.documents:
        return before
    entries = dict(before.entries)
    for document in documents_of(catalog, before.source):
        if document.address in before.entries or document.state is DocState.DELETED:
            continue
        entry = entries.get(document.address) or orphan(document)
        entries[document.address] = replace(entry, documents=entry.documents + 1)
    return replace(before, entries=entries)


def with_lost(catalog: Catalog, before: Known) -> Known:
    """Marks the entries whose documents the catalog has lost, so that they are read again.

    Only if the source has too few documents, each entry is looked at.
    """
    if before.there >= before.documents:
        return before
    entries = dict(before.entries)
    for each in shortfalls(catalog, before.source):
        if each.entry.address in entries:
            entries[each.entry.address] = lost(each.entry, each.there)
    return replace(before, entries=entries)


def states(catalog: Catalog, plan: Plan) -> Counter[DocState]:
    """All documents that the plan leaves alone, by state."""
    counted = Counter(plan.unchanged)
    for address in plan.mixed:
        found = documents_of(catalog, plan.source, address)
        counted.update(row.state for row in found if row.state is not DocState.DELETED)
    return counted


def _is_current(entry: SourceEntry, item: SourceItem, recipe: Recipe) -> bool:
    # What failed may work now: a file's rights can change without its change mark. What is refused
    # for its name or as a link has another mark as soon as it may be read.
    same = (entry.tag, entry.recipe) == (item.tag, recipe.of(entry.state))
    return same and (entry.state is not DocState.FAILED or isinstance(item, Refused))
