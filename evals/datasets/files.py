"""Reading the text files that sets and collections come in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quarry.errors import SourceNotFound, UsageError


def text_of(path: Path) -> str:
    """The whole file, without the mark that some programs put first. Raises SourceNotFound, and
    UsageError for a file that is not UTF-8 or cannot be read."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not in UTF-8 (byte {error.start}); save it as UTF-8 and try again."
        ) from error
    except FileNotFoundError as error:
        raise SourceNotFound(f"There is no file at {path}.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read; check the path and its rights.") from error


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of the lines that are not blank. Raises as `text_of`."""
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if line.strip():
            yield number, line.rstrip("\r")
