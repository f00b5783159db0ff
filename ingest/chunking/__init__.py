"""Chunking: from a parsed document to the passages that are embedded, searched and cited."""

from __future__ import annotations

from ingest.chunking.chunker import Chunker, ChunkJob
from ingest.chunking.header import Head

__all__ = ["ChunkJob", "Chunker", "Head"]
