"""The proxy of `loadtests.chaos.proxy`, for the tests."""

from __future__ import annotations

from loadtests.chaos.proxy import Proxy

__all__ = ["Proxy"]
