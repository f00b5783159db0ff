"""One run: what is known, what is planned, and what becomes of it."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

import structlog

from ingest import removal
from ingest.index import Index, existing_index, live_catalog, live_stores, writable_index
from ingest.ledger import Address, Ledger
from ingest.plan import (
    Known,
    Plan,
    check_apart,
    check_moved,
    check_origins,
    check_renamed,
    check_within,
    guarded,
    is_mass_delete,
    known,
    make_plan,
    put_mark,
    recipe_of,
    states,
    with_lost,
    with_orphans,
)
from ingest.reading import holds_records
from ingest.reporter import Reporter
from ingest.rights import Rights
from ingest.stages import StageSettings
from ingest.summary import Failure, Omission, ProgressCallback, RunSummary
from ingest.targets import Group
from ingest.work import Done, End, Task
from quarry import retention
from quarry.ports import Parser, Source
from quarry.records import DocState, Document, SourceItem
from quarry.settings import Settings
from quarry.stores.factory import Stores, utc_now
from quarry.stores.milvus_lite import vector_server

_log = structlog.get_logger(__name__)


class Pipeline(Protocol):
    """Runs tasks through the stages: Ray Data, or one process in tests."""

    def session(self) -> AbstractContextManager[None]:
        """What `run` needs, entered before the stores are opened."""
        ...

    def run(self, config: StageSettings, tasks: Sequence[Task]) -> Iterable[list[Done | End]]:
        """How documents and addresses ended, in batches, as they end."""
        ...


class Run:
    """Steps in order: `plan`, then `work` unless the run `is_idle`, then `summary`.

    `parsers` is the parsers' fingerprint.
    """

    def __init__(
        self,
        settings: Settings,
        groups: Sequence[Group],
        *,
        parsers: str,
        allow_mass_delete: bool = False,
        progress: ProgressCallback | None = None,
    ) -> None:
        self._settings = settings
        self._groups = groups
        self._parsers = parsers
        self._recipes = {g.name: recipe_of(parsers, settings, g.name) for g in groups}
        self._allow_mass_delete = allow_mass_delete
        self._run_id = run_id()
        self._ledger = Ledger()
        self._report = Reporter(self._ledger, progress)
        self._known: list[Known] = []
        self._plans: list[Plan] = []
        self._tasks: list[Task] = []
        self._hidden: set[int] = set()
        """Tasks of files of which records were hidden before they were read."""
        self._unread: Counter[DocState] = Counter()
        self._overdue = False
        """Whether the retention of something has ended."""

    @property
    def is_idle(self) -> bool:
        pairs = zip(self._groups, self._known, strict=True)
        settled = not any(before.unfinished or _has_moved(group, before) for group, before in pairs)
        settled = settled and not self._overdue
        return settled and not self._tasks and not any(plan.vanished for plan in self._plans)

    def summary(self) -> RunSummary:
        summary = self._ledger.summary(
            run_id=self._run_id,
            source=", ".join(group.name for group in self._groups),
            unread=self._unread,
            seconds=self._report.seconds,
        )
        left_out = (item for plan in self._plans for item in plan.left_out)
        omissions = tuple(Omission(uri=item.uri, reason=item.reason) for item in left_out)
        return replace(summary, left_out=omissions)

    # ----------------------------------------------------------------------------- planning

    def plan(self, *, named: bool, moved: bool) -> None:
        """Compares listings with the catalog; reads no content, writes nothing.

        `named`: the source was named on purpose. `moved`: what it was read from until now is given
        up. Raises UsageError, SourceNotFound.
        """
        self._report("listing")
        with live_catalog(self._settings) as catalog:
            if catalog:
                self._overdue = retention.overdue(catalog, self._settings.stores, now=utc_now())
            for group in self._groups:
                before = known(catalog, group.name) if catalog else Known(source=group.name)
                check_origins(before, group.origins, named=named or moved)
                if catalog:
                    before = with_lost(catalog, with_orphans(catalog, before))
                if not (before.origins or named):
                    for earlier in self._groups[: len(self._plans)]:
                        check_apart(group.origins, earlier.origins)
                plan = self._compared(group, before)
                if catalog and not (before.origins or named):
                    check_within(catalog, group.name, group.origins)
                    check_renamed(catalog, plan, group.origins)
                if not moved:
                    check_moved(plan, before, group.origins)
                plan = guarded(plan, before, self._settings.ingest, allow=self._allow_mass_delete)
                if plan.withheld:
                    self._withhold(group.name, plan.withheld, before.documents)
                self._unread += states(catalog, plan) if catalog else plan.unchanged
                self._ledger.failures += plan.refused
                self._known.append(before)
                self._plans.append(plan)
        self._report.expect(self._tasks)
        _log.info(
            "ingest_planned",
            run_id=self._run_id,
            addresses=len(self._tasks),
            vanished=sum(len(plan.vanished) for plan in self._plans),
            unchanged=self._unread.total(),
        )

    def _compared(self, group: Group, before: Known) -> Plan:
        first = sum(len(earlier.sources) for earlier in self._groups[: len(self._plans)])
        owners: dict[str, int] = {}

        def listing() -> Iterator[SourceItem]:
            for number, source in enumerate(group.sources, start=first):
                for item in source.list():
                    owners[item.address] = number
                    yield item

        recipe = self._recipes[group.name]
        plan = make_plan(listing(), before, recipe=recipe, complete=group.complete)
        for item in plan.read:
            several = item.address in plan.several or holds_records(item.address)
            number, source = len(self._tasks), owners[item.address]
            self._tasks.append(Task(number=number, source=source, item=item, several=several))
        return plan

    # ------------------------------------------------------------------------------ working

    def work(self, pipeline: Pipeline | None = None) -> None:
        """Indexes and deletes. Raises what stops it; what was committed until then stays."""
        self._take_away()
        with ExitStack() as stack:
            if self._tasks:
                self._report("starting")
                pipeline = pipeline or _ray_pipeline()
                stack.enter_context(pipeline.session())
            stack.enter_context(vector_server(self._settings))
            index = stack.enter_context(self._index())
            self._begin(index.stores)
            if pipeline and self._tasks:
                self._read(index, pipeline)
            self._report("finishing")
            self._sweep_vanished(index.stores)
            self._sweep_records(index.stores)
            retention.expire(index.stores)
            index.stores.text.publish()
            index.stores.vectors.flush()
            self._mark(index.stores, unfinished=False)
        _log.info(
            "ingest_finished",
            run_id=self._run_id,
            indexed=self._ledger.indexed,
            deleted=len(self._ledger.deleted),
            failed=self._ledger.failed,
            seconds=round(self._report.seconds, 3),
        )

    def _take_away(self) -> None:
        """What is gone is hidden, and what is no longer granted ends, by the catalog alone: neither
        Ray nor the vectors nor a model has to start for that."""
        with live_stores(self._settings) as stores:
            if stores is None:
                return
            self._begin(stores)
            for plan in self._plans:
                removal.hide(stores, _vanished(stores, plan), self._ledger)
            self._narrow(stores, self._tasks)

    def _narrow(self, stores: Stores, tasks: Sequence[Task]) -> None:
        rights = Rights(
            stores,
            self._sources(),
            self._settings,
            self._parser,
            ledger=self._ledger,
            is_mass_delete=self._is_suspicious,
        )
        self._hidden.update(task.number for task in rights.narrow(tasks))

    def _begin(self, stores: Stores) -> None:
        """Comes before any other change of a generation; a second time it changes nothing."""
        self._mark(stores, unfinished=True)
        retention.advance(stores)

    def _sweep_vanished(self, stores: Stores) -> None:
        for plan in self._plans:
            for address in plan.vanished:
                rows = removal.of_addresses(stores.catalog, plan.source, [address])
                if removal.sweep(stores, rows):  # else the next run tries again
                    stores.catalog.delete_entry(plan.source, address)

    def _sweep_records(self, stores: Stores) -> None:
        """Of those that this run has hidden, and of a source whose last run did not come to its
        end all: what that run read is not read again."""
        unfinished = {before.source for before in self._known if before.unfinished}
        for source in sorted(unfinished):
            removal.sweep_hidden(stores, source)
        for task in self._tasks:
            item = task.item
            if task.number in self._hidden and item.source not in unfinished:
                removal.sweep_hidden(stores, item.source, item.address)

    def _index(self) -> AbstractContextManager[Index]:
        return writable_index(self._settings) if self._tasks else existing_index(self._settings)

    def _read(self, index: Index, pipeline: Pipeline) -> None:
        """Two passes at most: the second for what another writer changed during the first."""
        config = StageSettings(
            settings=self._settings,
            generation=index.generation,
            sources=self._sources(),
            recipe=self._parsers,
        )
        tasks = self._tasks
        for last in (False, True):
            if last:
                self._narrow(index.stores, tasks)
            self._ledger.expect(tasks, last=last)
            again: list[Task] = []
            for rows in pipeline.run(config, tasks):
                for address in self._ledger.add(rows):
                    self._finish(index.stores, address)
                    if address.conflict:
                        again.append(address.task)
                self._report("indexing")
            self._ledger.check()
            tasks = again
            if not tasks:
                break

    def _sources(self) -> tuple[Source, ...]:
        return tuple(source for group in self._groups for source in group.sources)

    def _parser(self) -> Parser:
        from ingest.parsers.sandbox import ParserPool

        return ParserPool(self._settings)

    def _finish(self, stores: Stores, address: Address) -> None:
        """The entry comes last: whatever is not done before it, the address is read again."""
        if address.conflict:
            return
        gone, before = address.end.gone, address.end.before
        if gone and self._is_suspicious(len(gone), before):
            self._withhold(address.task.item.uri, len(gone), before)
            return
        if gone and removal.delete(stores, stores.catalog.get(gone).values(), self._ledger):
            return
        stores.catalog.put_entry(address.entry(self._recipes[address.task.item.source]))

    def _is_suspicious(self, gone: int, before: int) -> bool:
        return not self._allow_mass_delete and is_mass_delete(gone, before, self._settings.ingest)

    def _withhold(self, where: str, gone: int, before: int) -> None:
        reason = (
            f"{gone} of {before} documents are not there any more and were kept, since that is "
            "suspiciously many; pass --allow-mass-delete to delete them."
        )
        self._ledger.failures.append(Failure(uri=where, state=DocState.FAILED, reason=reason))
        _log.warning("mass_delete_withheld", address=where, gone=gone, before=before)

    def _mark(self, stores: Stores, *, unfinished: bool) -> None:
        for group, before in zip(self._groups, self._known, strict=True):
            stands = before.origins and not group.complete
            origins = before.origins if stands else group.origins
            put_mark(stores.catalog, group.name, origins, unfinished=unfinished)


def run_id() -> str:
    """Sortable by time."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def _vanished(stores: Stores, plan: Plan) -> Iterator[Document]:
    return removal.of_addresses(stores.catalog, plan.source, plan.vanished)


def _has_moved(group: Group, before: Known) -> bool:
    return group.complete and bool(before.origins) and before.origins != group.origins


def _ray_pipeline() -> Pipeline:
    from ingest.pipeline import RayPipeline  # takes a second to import

    return RayPipeline()
