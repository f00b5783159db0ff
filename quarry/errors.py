"""Every error that Quarry raises on purpose.

    QuarryError                     exit 1   HTTP 500   anything below, or a fault of ours
    ├── UsageError                  exit 2   HTTP 400   the caller can mend it
    │   ├── ConfigError             exit 2   HTTP 500   settings, unknown keys, missing files
    │   ├── SourceNotFound          exit 2   HTTP 404   a path or address that is not there
    │   ├── QuestionError           exit 2   HTTP 422   empty, too long, not text
    │   ├── FilterError             exit 2   HTTP 400   a filter that does not parse or type
    │   ├── AsOfError               exit 2   HTTP 422   a time that cannot be gone back to
    │   ├── PortInUse               exit 2   HTTP 500   the server cannot listen
    │   ├── DataDirBusy             exit 2   HTTP 503   another process writes this data folder
    │   ├── FingerprintMismatch     exit 2   HTTP 500   index built by another embedder or chunker
    │   ├── MassDelete              exit 2   HTTP 409   a listing shrank past the limit
    │   └── NotSignedIn             exit 2   HTTP 401   a token that is unknown or lacks a right
    ├── MissingExtra                exit 2   HTTP 500   an optional package is not installed
    ├── StoreError                  exit 1   HTTP 503   a store failed for good
    │   ├── StoreUnavailable        exit 1   HTTP 503   cannot be reached within the total time
    │   ├── StoreLost               exit 1   HTTP 503   tables, an index or a collection are gone
    │   ├── RowsRejected            exit 1   HTTP 500   some rows are bad; the rest are stored
    │   └── Conflict                exit 1   HTTP 409   compare-and-set lost against another writer
    ├── ModelError                  exit 1   HTTP 503   a model failed or cannot be loaded
    ├── Overloaded                  exit 1   HTTP 429   too much in flight; carries `retry_after`
    ├── DeadlineExceeded            exit 1   HTTP 504   the request's time is up
    └── ParseError                  exit 3   —          one document; carries the state it ends in

Messages are one plain sentence that says what to do. They never carry document text, questions or
secrets. Arguments are positional and reach ``super().__init__``, so every error survives a pickle
between processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar


class QuarryError(Exception):
    """Base of all errors raised on purpose; `exit_code` and `http_status` are part of the API."""

    exit_code: ClassVar[int] = 1
    http_status: ClassVar[int] = 500

    @property
    def code(self) -> str:
        """The stable machine-readable name, as in the JSON error body."""
        name = type(self).__name__
        return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


class UsageError(QuarryError):
    exit_code = 2
    http_status = 400


class ConfigError(UsageError):
    http_status = 500


class SourceNotFound(UsageError):
    http_status = 404


class QuestionError(UsageError):
    http_status = 422


class FilterError(UsageError):
    http_status = 400


class AsOfError(UsageError):
    http_status = 422


class PortInUse(UsageError):
    http_status = 500


class DataDirBusy(UsageError):
    http_status = 503


class FingerprintMismatch(UsageError):
    http_status = 500


class MassDelete(UsageError):
    http_status = 409


class NotSignedIn(UsageError):
    http_status = 401


class MissingExtra(QuarryError):
    exit_code = 2

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        command = f"pip install -e '.[{self.extra}]'"
        return f"{self.package} is not installed; run in the checkout: {command}"


class StoreError(QuarryError):
    http_status = 503


class StoreUnavailable(StoreError):
    pass


class StoreLost(StoreError):
    """What a live generation has is not there: only a repair may make it anew.

    A writer that did would leave an index that is silent on all that it had.
    """

    @classmethod
    def of(cls, what: str) -> StoreLost:
        return cls(f"{what} gone; run: quarry verify --repair, then quarry ingest.")


class RowsRejected(StoreError):
    """Some rows of a bulk write are bad for good; all others are stored.

    `rows` maps the row id to the reason.
    """

    http_status = 500

    def __init__(self, store: str, rows: dict[str, str]) -> None:
        super().__init__(store, rows)
        self.store = store
        self.rows = rows

    def __str__(self) -> str:
        row_id, reason = next(iter(self.rows.items()))
        return f"{self.store} rejected {len(self.rows)} rows, the first is {row_id}: {reason}"


class Conflict(StoreError):
    """The catalog row moved since it was read; drop this attempt and read again."""

    http_status = 409


class ModelError(QuarryError):
    http_status = 503


class Overloaded(QuarryError):
    http_status = 429

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message, retry_after)
        self.retry_after = retry_after

    def __str__(self) -> str:
        return str(self.args[0])


class Stopping(QuarryError):
    """The server takes no more questions; those in flight are still answered."""

    http_status = 503


class DeadlineExceeded(QuarryError):
    http_status = 504


class ParseError(QuarryError):
    """One document could not be read; `state` is the named state that it ends in."""

    exit_code = 3

    def __init__(self, state: str, reason: str) -> None:
        super().__init__(state, reason)
        self.state = state
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


def kinds_of_one_message(kind: type[QuarryError] = QuarryError) -> Iterator[type[QuarryError]]:
    """The classes of the tree that are made from their sentence alone, the general ones first.

    By these an error that came from another process as text is raised as what it was.
    """
    if "__init__" not in vars(kind):
        yield kind
    for below in kind.__subclasses__():
        yield from kinds_of_one_message(below)
