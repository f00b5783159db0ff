"""What commands print: JSON for programs, text for people, no terminal tricks from documents."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

# Text of documents, questions and file names is not ours. Escape sequences could rewrite what the
# terminal shows, and bidirectional overrides could reorder it, so both are shown and not obeyed.
# C0 has pictures of its own; the others are shown as their escape.
_KEPT = "\n\t"
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in _KEPT}
_ESCAPES = {code: f"\\u{code:04x}" for code in (*range(0x7F, 0xA0), 0x2028, 0x2029, *_BIDI)}
_NEUTRAL = _PICTURES | _ESCAPES


def printable(text: str) -> str:
    """`text` with every terminal control character made visible; line feeds and tabs stay."""
    return text.translate(_NEUTRAL)


def one_line(text: str) -> str:
    """`printable` on one line, runs of white space as one space."""
    return printable(" ".join(text.split()))


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object, indented. The characters that terminals act on are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=2, default=_plain)
    print_line(text.translate(_ESCAPES))


def print_line(text: str = "") -> None:
    sys.stdout.write(text + "\n")


def print_note(text: str) -> None:
    """A line for the person, on standard error, so that standard output stays data."""
    sys.stderr.write(text + "\n")


def print_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Aligned columns on a terminal, tab-separated lines elsewhere (for cut, grep and sort).

    The first line is the header, wherever it goes.
    """
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in (header, *cells):
            print_line("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*header, box=None, pad_edge=False, header_style="bold")
    for row in cells:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def print_report(parts: Iterable[Table | Text]) -> None:
    """Tables and sentences of a report, each followed by an empty line; tables as `print_table`."""
    from rich.console import Console
    from rich.table import Table

    for part in parts:
        if sys.stdout.isatty():
            Console().print(part)
        elif isinstance(part, Table):
            if part.title:
                print_line(one_line(str(part.title)))
            columns = [[column.header, *column.cells] for column in part.columns]
            for row in zip(*columns, strict=True):
                print_line("\t".join(one_line(str(cell)) for cell in row))
        else:
            print_line(one_line(part.plain))
        print_line()


def tolerate_any_text() -> None:
    """Lets a terminal that knows only ASCII show question marks instead of stopping the command."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def close_quietly() -> None:
    """After a broken pipe: stops the interpreter from failing again when it flushes at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())


def _plain(value: object) -> object:
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    return str(value)
