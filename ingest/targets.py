"""What a run is pointed at: targets opened as sources, and grouped by the names they have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ingest.plan import check_apart
from ingest.sources import LocalSource, open_source
from quarry.errors import UsageError
from quarry.ports import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Everything that is listed under one source name."""

    name: str
    sources: tuple[Source, ...]
    origins: tuple[str, ...]
    """Where it is read from, sorted."""
    complete: bool
    """The listing is all of the source; a single file says nothing about the others."""


def open_targets(targets: Sequence[str], name: str | None) -> list[Group]:
    """Groups in the order of their first target.

    Raises SourceNotFound for a target that is not there, UsageError for targets whose own names
    are the same though nobody asked for that, and for a part of a target of the same source.
    """
    if not targets:
        raise UsageError("Name a file or a folder to read.")
    by_name: dict[str, list[Source]] = {}
    for target in dict.fromkeys(targets):
        source = open_source(target, name=name)
        by_name.setdefault(source.name, []).append(source)
    for found, sources in by_name.items():
        if len(sources) > 1 and name is None:
            raise UsageError(
                f"{len(sources)} of the targets would be the source {found}; ingest them one by "
                f"one with --source, or together as one source with --source NAME."
            )
    groups = [_group(found, sources) for found, sources in by_name.items()]
    for group in groups:
        check_apart(group.origins, group.origins)
    return groups


def _group(name: str, sources: Sequence[Source]) -> Group:
    return Group(
        name=name,
        sources=tuple(sources),
        origins=tuple(sorted(_origin(source) for source in sources)),
        complete=not all(_is_file(source) for source in sources),
    )


def _origin(source: Source) -> str:
    return str(source.root) if isinstance(source, LocalSource) else source.name


def _is_file(source: Source) -> bool:
    return isinstance(source, LocalSource) and source.root.is_file()
