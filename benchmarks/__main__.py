"""All benchmarks that `make bench` runs, one after the other."""

from __future__ import annotations

from benchmarks import ingest_throughput, search_stages

if __name__ == "__main__":
    ingest_throughput.main([])
    search_stages.main([])
