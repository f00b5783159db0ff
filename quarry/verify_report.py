"""What a comparison of the stores found: records that become JSON as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

LISTED = 10_000
"""Differences that a report lists one by one; all are counted."""


class Kind(StrEnum):
    """How the stores and the catalog can differ. Readers see none of the first five."""

    REPLACED_ROWS = "replaced_rows"
    """Rows of a revision that was replaced, past the retention: a sweep that did not happen."""
    ROWS_OF_DELETED = "rows_of_deleted"
    """Rows of a document that was deleted."""
    UNFINISHED_ROWS = "unfinished_rows"
    """Rows of an attempt that has not committed: it crashed, or is running now."""
    ROWS_AHEAD = "rows_ahead"
    """Rows of an attempt that started from a catalog row newer than there is: the catalog is older
    than the stores, as after a restore."""
    ROWS_OF_NO_DOCUMENT = "rows_of_no_document"
    """Rows whose document the catalog does not know."""
    MISSING_TEXT = "missing_text"
    """Text rows of the served revision that are not there."""
    MISSING_VECTORS = "missing_vectors"
    """Vectors of the served revision that are not there."""
    UNSEARCHABLE_TEXT = "unsearchable_text"
    """Text rows of the served revision that no search finds as it should: what they are searched
    by is gone."""
    CHUNK_COUNT = "chunk_count"
    """The catalog counts fewer chunks than the served revision has, or serves none."""
    LOST_DOCUMENTS = "lost_documents"
    """An address of which the catalog has fewer documents than its last reading gave: the catalog
    was emptied, or put back from an older copy. Counted by address."""
    DOCUMENTS_WITHOUT_ENTRY = "documents_without_entry"
    """An address that has documents and no entry: that it is gone, no ingest would notice. Counted
    by address."""
    OLD_LABELS = "old_labels"
    """Rows carry the labels from before an ACL was narrowed or a document withdrawn; the catalog
    keeps readers out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One kind of difference of one document."""

    kind: Kind
    doc_id: str
    uri: str
    """Empty if the catalog does not know the document."""
    text_rows: int
    """Rows that are too many, or missing."""
    vector_rows: int
    repaired: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reread:
    """An address that only its source can mend; the next ingest of the source reads it again."""

    source: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    stage: str
    """`documents`, `text`, `vectors`, one after the other."""
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    documents: int
    text_rows: int
    vector_rows: int
    found: Mapping[str, int]
    """Differences by kind, counted by document; `lost_documents` and `documents_without_entry` by
    address."""
    repaired: Mapping[str, int]
    """How many of them are mended now."""
    differences: tuple[Difference, ...]
    unlisted: int
    """Differences beyond the LISTED first ones."""
    reread: tuple[Reread, ...]
    """What must be read again, and is marked so if repairs were asked for."""
    busy: int
    """Documents that others kept changing; nothing is known of them."""
    seconds: float

    @property
    def clean(self) -> bool:
        """Whether nothing differs, or nothing does any more."""
        return self.found == self.repaired and not self.busy


@dataclass(slots=True)
class Book:
    """Adds up a report."""

    progress: Callable[[Progress], None]
    documents: int = 0
    busy: int = 0
    _rows: Counter[str] = field(default_factory=Counter)
    _found: Counter[str] = field(default_factory=Counter)
    _repaired: Counter[str] = field(default_factory=Counter)
    _listed: list[Difference] = field(default_factory=list)
    _reread: dict[Reread, None] = field(default_factory=dict)

    def tell(self, stage: str, done: int, total: int) -> None:
        self.progress(Progress(stage=stage, done=done, total=max(done, total)))

    def count_rows(self, stage: str, rows: int) -> None:
        self._rows[stage] += rows

    def note(
        self,
        differences: Iterable[Difference],
        repaired: Iterable[Kind] = (),
        reread: Reread | None = None,
    ) -> None:
        mended = set(repaired)
        for difference in differences:
            noted = replace(difference, repaired=difference.kind in mended)
            self._found[noted.kind.value] += 1
            self._repaired[noted.kind.value] += noted.repaired
            if len(self._listed) < LISTED:
                self._listed.append(noted)
        if reread:
            self._reread[reread] = None

    def report(self, *, seconds: float) -> VerifyReport:
        return VerifyReport(
            documents=self.documents,
            text_rows=self._rows["text"],
            vector_rows=self._rows["vectors"],
            found=dict(self._found),
            repaired=dict(+self._repaired),
            differences=tuple(self._listed),
            unlisted=self._found.total() - len(self._listed),
            reread=tuple(self._reread),
            busy=self.busy,
            seconds=round(seconds, 3),
        )
