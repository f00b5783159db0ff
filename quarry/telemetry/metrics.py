"""Every metric that Quarry exports, in one table: names, labels and help.

Labels take values from closed sets only: never a user, a document or a word of a question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True, slots=True)
class MetricSpec:
    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()


REQUESTS = MetricSpec(
    "quarry_requests", "counter", "HTTP requests by endpoint and status.", ("endpoint", "status")
)
REQUEST_SECONDS = MetricSpec(
    "quarry_request_seconds", "histogram", "Time to the end of a response.", ("endpoint",)
)
IN_FLIGHT = MetricSpec("quarry_requests_in_flight", "gauge", "Questions being worked on now.")
STAGE_SECONDS = MetricSpec(
    "quarry_stage_seconds", "histogram", "Time of one stage of a question.", ("stage",)
)
DEGRADED = MetricSpec(
    "quarry_degraded", "counter", "Answers made without a stage or leg.", ("stage",)
)
ANSWERS = MetricSpec("quarry_answers", "counter", "Answers by status.", ("status",))
GENERATED_TOKENS = MetricSpec("quarry_generated_tokens", "counter", "Tokens written in answers.")
UNKNOWN_CITATIONS = MetricSpec(
    "quarry_unknown_citations", "counter", "Citation marks dropped because they name no source."
)
REMOVED_LINKS = MetricSpec(
    "quarry_removed_links", "counter", "Images and links left out because no source has them."
)
DOUBTS = MetricSpec(
    "quarry_doubts", "counter", "Sentences that their sources may not bear.", ("reason",)
)
CUT_ANSWERS = MetricSpec("quarry_cut_answers", "counter", "Answers that the token limit ended.")

TABLE = (
    REQUESTS,
    REQUEST_SECONDS,
    IN_FLIGHT,
    STAGE_SECONDS,
    DEGRADED,
    ANSWERS,
    GENERATED_TOKENS,
    UNKNOWN_CITATIONS,
    REMOVED_LINKS,
    DOUBTS,
    CUT_ANSWERS,
)
"""Counters are exported with `_total` after the name, as Prometheus wants it."""


class Metrics:
    """The metrics of one process, or of one replica: make it there, not at import."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._counters: dict[MetricSpec, Counter] = {}
        self._gauges: dict[MetricSpec, Gauge] = {}
        self._histograms: dict[MetricSpec, Histogram] = {}
        for spec in TABLE:
            if spec.kind == "counter":
                self._counters[spec] = Counter(
                    spec.name, spec.help, spec.labels, registry=self._registry
                )
            elif spec.kind == "gauge":
                self._gauges[spec] = Gauge(
                    spec.name, spec.help, spec.labels, registry=self._registry
                )
            else:
                self._histograms[spec] = Histogram(
                    spec.name, spec.help, spec.labels, buckets=_SECONDS, registry=self._registry
                )

    def count(self, spec: MetricSpec, amount: float = 1.0, **labels: str) -> None:
        """Adds to a counter."""
        counter = self._counters[spec]
        (counter.labels(**labels) if labels else counter).inc(amount)

    def observe(self, spec: MetricSpec, seconds: float, **labels: str) -> None:
        """One value of a histogram."""
        histogram = self._histograms[spec]
        (histogram.labels(**labels) if labels else histogram).observe(seconds)

    def set(self, spec: MetricSpec, value: float) -> None:
        """The value of a gauge."""
        self._gauges[spec].set(value)

    def render(self) -> bytes:
        """Prometheus text format."""
        return generate_latest(self._registry)
