"""Packing: which pieces share a chunk, by their lengths alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingest.chunking.atoms import Atom
from ingest.chunking.meter import TokenMeter, cut


def pack(atoms: Sequence[Atom], *, budget: int, meter: TokenMeter) -> list[list[Atom]]:
    """Runs of pieces of at most `budget` tokens, broken between blocks where that costs little.

    All are filled but the last two, which are about equally long: a scrap at the end of a section
    would say little and match much. An edit therefore leaves the chunks before it as they are.
    """
    pieces = [part for atom in atoms for part in divided(atom, budget=budget, meter=meter)]
    costs = [meter.cost(piece.text) for piece in pieces]
    left = sum(costs)
    chunks: list[list[Atom]] = []
    room, size, target = 0, 0, 0.0
    for piece, cost in zip(pieces, costs, strict=True):
        if not chunks or cost > room or _is_full(size, cost, target, piece):
            chunks.append([])
            room, size = budget, 0
            target = left / 2 if budget < left <= 2 * budget else budget
        chunks[-1].append(piece)
        room -= cost
        size += cost
        left -= cost
    return chunks


def _is_full(size: int, cost: int, target: float, piece: Atom) -> bool:
    """Near the target length it breaks, sooner before a new block than inside one."""
    if piece.opens_block:
        return size >= 0.75 * target and size + cost > target
    return size + cost / 2 > target


def divided(atom: Atom, *, budget: int, meter: TokenMeter) -> list[Atom]:
    """The piece, or if it is longer than a chunk its parts; a part that is longer still is cut."""
    if meter.cost(atom.text) <= budget:
        return [atom]
    pieces: list[Atom] = []
    for part in atom.parts or (atom.text,):
        for position, found in enumerate(cut(part, budget, meter)):
            text = found.lstrip()
            inner_gap = found[: len(found) - len(text)] if position else atom.part_gap
            gap = inner_gap if pieces else atom.gap
            pieces.append(replace(atom, text=text, gap=gap, parts=()))
    meter.measure(piece.text for piece in pieces)
    return pieces
