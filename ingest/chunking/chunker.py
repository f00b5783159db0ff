"""Chunks of parsed documents: structure first, then length, counted as the embedder counts.

Whoever changes how a document is cut raises `quarry.generations.CHUNKER_VERSION`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ingest.chunking.atoms import Atom
from ingest.chunking.header import (
    SHARE,
    Head,
    Header,
    fitted_header,
    full_header,
    section_path,
)
from ingest.chunking.meter import CHARS_PER_TOKEN, TokenMeter, cut
from ingest.chunking.outline import Group, Section, outline
from ingest.chunking.pack import pack
from quarry import ids
from quarry.ports import TokenCounter
from quarry.records import Block, Chunk
from quarry.settings import ChunkingSettings
from quarry.text import embedded_text, identifiers


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkJob:
    doc_id: str
    head: Head
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    header: str
    section: tuple[str, ...]
    anchor: str
    atoms: tuple[Atom, ...]

    @property
    def text(self) -> str:
        first, *rest = self.atoms
        return first.text + "".join(atom.gap + atom.text for atom in rest)

    @property
    def embedded(self) -> str:
        return embedded_text(self.header, self.text)


class Chunker:
    """Cuts documents into chunks of at most `max_tokens`, header and special tokens included, and
    of at most `CHARS_PER_TOKEN` characters for each of these tokens.

    Never cut are a sentence, a list item, a table row and a line of code, unless one alone is
    longer than a chunk. A title that a header has no room for, such as a clause that is set as a
    heading, stands in the text of the first chunk below it. Sections shorter than `min_tokens`
    share a chunk with the next ones of the same parent, each under its own title.
    """

    def __init__(self, counter: TokenCounter, settings: ChunkingSettings) -> None:
        self._counter = counter
        self._max = settings.max_tokens
        self._min = settings.min_tokens

    def chunk(self, jobs: Sequence[ChunkJob]) -> list[tuple[Chunk, ...]]:
        """Chunks of each job, without revision and row_id. Many jobs at once count faster."""
        meter = TokenMeter(self._counter)
        outlines = [outline(job.blocks) for job in jobs]
        meter.measure(_texts(jobs, outlines))
        drafts = [
            (number, draft)
            for number, (job, sections) in enumerate(zip(jobs, outlines, strict=True))
            for draft in self._drafts(job.head, sections, meter)
        ]
        found: list[list[tuple[_Draft, int]]] = [[] for _ in jobs]
        for number, draft, tokens in self._fitted(drafts, meter):
            found[number].append((draft, tokens))
        return [_finished(job, done) for job, done in zip(jobs, found, strict=True)]

    def _drafts(self, head: Head, sections: list[Section], meter: TokenMeter) -> Iterable[_Draft]:
        said: set[tuple[str, ...]] = set()
        for group in self._grouped(head, sections, meter):
            path = section_path(head, group.path)
            header = self._header(head, path, meter)
            unsaid = [path[: end + 1] for end in range(header.left_out)]
            atoms = group.under([each[-1] for each in unsaid if each not in said])
            said.update(path[: end + 1] for end in range(len(path)))
            budget = self._budget(header, meter)
            meter.measure(atom.text for atom in atoms)
            for part in pack(atoms, budget=budget, meter=meter):
                yield _Draft(
                    header=header.text, section=path, anchor=group.anchor, atoms=tuple(part)
                )

    def _grouped(self, head: Head, sections: list[Section], meter: TokenMeter) -> list[Group]:
        groups: list[Group] = []
        for section in sections:
            alone = Group(sections=(section,))
            if groups and self._size(groups[-1], meter) < self._min:
                joined = Group(sections=(*groups[-1].sections, section))
                if self._may_join(head, joined, meter):
                    groups[-1] = joined
                    continue
            groups.append(alone)
        return groups

    def _may_join(self, head: Head, joined: Group, meter: TokenMeter) -> bool:
        """Only under the parent of the first section, and only if no title leaves a header for
        good because the rest of a long section follows in other chunks."""
        if len(joined.path) < len(joined.sections[0].path) - 1:
            return False
        header = self._header(head, section_path(head, joined.path), meter)
        return self._size(joined, meter) <= self._budget(header, meter)

    def _size(self, group: Group, meter: TokenMeter) -> int:
        return sum(meter.cost(atom.text) for atom in group.atoms)

    def _header(self, head: Head, path: tuple[str, ...], meter: TokenMeter) -> Header:
        return fitted_header(head, path, limit=self._max // SHARE, meter=meter)

    def _budget(self, header: Header, meter: TokenMeter) -> int:
        return max(1, self._max - meter.overhead - meter.cost(header.text))

    def _fitted(
        self, drafts: list[tuple[int, _Draft]], meter: TokenMeter
    ) -> list[tuple[int, _Draft, int]]:
        """Counts each chunk as a whole and divides those that the sum of their pieces misjudged."""
        totals = meter.totals([draft.embedded for _, draft in drafts])
        done: list[tuple[int, _Draft, int]] = []
        for (number, draft), tokens in zip(drafts, totals, strict=True):
            too_long = tokens > self._max or len(draft.embedded) > self._max * CHARS_PER_TOKEN
            halves = _halved(draft, meter) if too_long else []
            if halves:
                done.extend(self._fitted([(number, half) for half in halves], meter))
            else:
                done.append((number, draft, tokens))
        return done


def _texts(jobs: Sequence[ChunkJob], outlines: list[list[Section]]) -> Iterable[str]:
    for job, sections in zip(jobs, outlines, strict=True):
        for section in sections:
            yield full_header(job.head, section_path(job.head, section.path))
            for atom in section.atoms:
                yield atom.text


def _halved(draft: _Draft, meter: TokenMeter) -> list[_Draft]:
    """Two or more shorter drafts; none if a single character is left."""
    if len(draft.atoms) > 1:
        middle = len(draft.atoms) // 2
        return [
            replace(draft, atoms=draft.atoms[:middle]),
            replace(draft, atoms=draft.atoms[middle:]),
        ]
    (atom,) = draft.atoms
    pieces = cut(atom.text, max(1, meter.cost(atom.text) // 2), meter)
    if len(pieces) < 2:
        return []
    shorter = [replace(atom, text=piece.strip(), parts=()) for piece in pieces]
    return [replace(draft, atoms=(piece,)) for piece in shorter]


def _finished(job: ChunkJob, drafts: list[tuple[_Draft, int]]) -> tuple[Chunk, ...]:
    seen: Counter[str] = Counter()
    chunks: list[Chunk] = []
    for ordinal, (draft, tokens) in enumerate(drafts):
        embedded = draft.embedded
        chunks.append(
            Chunk(
                row_id="",
                chunk_id=ids.chunk_id(job.doc_id, embedded, seen[embedded]),
                doc_id=job.doc_id,
                revision="",
                ordinal=ordinal,
                text=draft.text,
                header=draft.header,
                section=draft.section,
                anchor=draft.anchor,
                pages=_pages(draft.atoms),
                span=(
                    min(atom.span[0] for atom in draft.atoms),
                    max(atom.span[1] for atom in draft.atoms),
                ),
                tokens=tokens,
                text_hash=ids.digest(embedded),
                identifiers=identifiers(embedded),
            )
        )
        seen[embedded] += 1
    return tuple(chunks)


def _pages(atoms: tuple[Atom, ...]) -> tuple[int, int] | None:
    pages = [atom.pages for atom in atoms if atom.pages is not None]
    return (min(first for first, _ in pages), max(last for _, last in pages)) if pages else None
