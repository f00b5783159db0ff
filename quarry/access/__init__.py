"""Who may read what: principals, scopes, and the filter language with its compilation per store."""

from quarry.access.filters import (
    EVERYTHING,
    And,
    Compare,
    Everything,
    Filter,
    In,
    Not,
    Op,
    Or,
    ReadableBy,
)

__all__ = [
    "EVERYTHING",
    "And",
    "Compare",
    "Everything",
    "Filter",
    "In",
    "Not",
    "Op",
    "Or",
    "ReadableBy",
]
