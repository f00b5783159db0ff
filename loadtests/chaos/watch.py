"""Stores that tell of every call before it is made, so that something may happen just then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quarry.stores.factory import Stores

Pending = Callable[..., Any]
"""The call that is about to be made."""
Hook = Callable[[str, str, Pending, tuple[Any, ...]], None]
"""Given the store, the method, the call and its positional arguments."""


class Watched:
    """Any store; the hook is called first, and what it raises is raised in place of the call."""

    def __init__(self, store: Any, name: str, hook: Hook) -> None:
        self._store = store
        self._name = name
        self._hook = hook

    def __getattr__(self, method: str) -> Any:
        target = getattr(self._store, method)

        def call(*args: Any, **options: Any) -> Any:
            self._hook(self._name, method, target, args)
            return target(*args, **options)

        return call


def watched(stores: Stores, hook: Hook) -> Stores:
    return replace(
        stores,
        catalog=Watched(stores.catalog, "catalog", hook),
        text=Watched(stores.text, "text", hook),
        vectors=Watched(stores.vectors, "vectors", hook),
    )
