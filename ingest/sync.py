"""Bringing the index in line with its sources, and taking documents out.

    list → compare with the catalog → nothing to do: done, without Ray and without a model
         → hide what is gone, end what is no longer granted → read, chunk, embed, commit (Ray Data)
         → sweep what is gone

A run that is stopped or killed anywhere goes on with the next one: an address has an entry only
when all its documents are committed, and a document is committed as a whole.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from ingest import parsers, removal
from ingest.index import existing_index, need_lasting_stores
from ingest.ledger import Ledger
from ingest.run import Pipeline, Run, run_id
from ingest.summary import ProgressCallback, RunSummary
from ingest.targets import open_targets
from quarry import retention
from quarry.settings import Settings
from quarry.stores.milvus_lite import vector_server, writer_lock


def run_sync(  # noqa: PLR0913 - by keyword, and each has a default
    settings: Settings,
    targets: Sequence[str],
    *,
    source: str | None = None,
    moved: bool = False,
    allow_mass_delete: bool = False,
    progress: ProgressCallback | None = None,
    pipeline: Pipeline | None = None,
) -> RunSummary:
    """Reads what is new or changed at the targets, and deletes what is gone from them.

    A folder is a whole source; a single file says nothing about the others of its source. `source`
    names the source of all targets; `moved` lets them take the place of what it was read from until
    now. `pipeline` is that of Ray Data unless a test gives another.

    Raises UsageError, DataDirBusy and
    FingerprintMismatch before anything is written; StoreError and ModelError stop a run, and the
    next one goes on.
    """
    need_lasting_stores(settings)
    run = Run(
        settings,
        open_targets(targets, source),
        parsers=parsers.recipe(settings),
        allow_mass_delete=allow_mass_delete,
        progress=progress,
    )
    with writer_lock(settings):
        run.plan(named=source is not None, moved=moved)
        if not run.is_idle:
            run.work(pipeline)
    return run.summary()


def delete_documents(settings: Settings, *, doc_ids_or_uris: Sequence[str]) -> RunSummary:
    """Deletes documents by id, by uri, or all documents of an address.

    They come back when their content changes and is ingested again; other metadata or settings do
    not bring them back. Raises UsageError, before anything is deleted, if one of them is not there.
    """
    need_lasting_stores(settings)
    started = time.monotonic()
    ledger = Ledger()
    with (
        writer_lock(settings),
        vector_server(settings),
        existing_index(settings) as index,
    ):
        found = removal.find(index.stores.catalog, doc_ids_or_uris)
        retention.advance(index.stores)
        stay = removal.delete(index.stores, found, ledger, by_hand=True)
        kept = {document.doc_id for document in stay}
        gone = [document for document in found if document.doc_id not in kept]
        removal.uncount(index.stores.catalog, gone)
        retention.expire(index.stores)
        index.stores.vectors.flush()
    return ledger.summary(
        run_id=run_id(),
        source=", ".join(sorted({document.source for document in found})),
        unread=Counter(),
        seconds=time.monotonic() - started,
    )
