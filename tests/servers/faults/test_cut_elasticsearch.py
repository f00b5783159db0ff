"""The way to Elasticsearch broken at every step of every scenario."""

from __future__ import annotations

from tests.servers.faults.broken import ELASTICSEARCH
from tests.servers.faults.cut import CutContract


class TestCutElasticsearch(CutContract):
    store = ELASTICSEARCH
