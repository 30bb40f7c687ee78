"""Prometheus metrics in a registry of their own. Paths are labelled by route, so labels are few."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts requests and webhook deliveries. Recording one costs a few microseconds."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = _Requests()
        self._registry.register(self._requests)
        self._deliveries = Counter(
            "webhook_delivery_total", "Webhook deliveries attempted", ("outcome",), registry=self._registry
        )
        self._delivery_seconds = Histogram(
            "webhook_delivery_duration_seconds", "Seconds per webhook attempt", registry=self._registry
        )

    def record_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one answered request; `path` is the template of its route."""
        # Any other method than these is one label: a caller could make up any number of them.
        self._requests.record(method if method in _METHODS else "other", path, status, seconds)

    def record_delivery(self, outcome: str, seconds: float) -> None:
        """Count one attempt to deliver a webhook; `outcome` is a short fixed word such as `delivered`."""
        self._deliveries.labels(outcome).inc()
        self._delivery_seconds.observe(seconds)

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus. None of them counts what owners have."""
        return generate_latest(self._registry)


class _Requests(Collector):
    """Counts requests without locks: all of them are answered on one event loop."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, int], int] = {}
        self._buckets: dict[tuple[str, str], list[int]] = {}
        self._seconds: dict[tuple[str, str], float] = {}

    def record(self, method: str, path: str, status: int, seconds: float) -> None:
        counted, timed = (method, path, status), (method, path)
        self._counts[counted] = self._counts.get(counted, 0) + 1
        buckets = self._buckets.get(timed)
        if buckets is None:
            buckets = self._buckets[timed] = [0] * (len(_BUCKETS) + 1)
        buckets[bisect_left(_BUCKETS, seconds)] += 1
        self._seconds[timed] = self._seconds.get(timed, 0.0) + seconds

    def collect(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("http_requests", "Requests answered", labels=("method", "path", "status"))
        for (method, path, status), count in self._counts.items():
            requests.add_metric((method, path, str(status)), count)
        yield requests
        what = "Seconds from a request to the start of its answer"
        durations = HistogramMetricFamily("http_request_duration_seconds", what, labels=("method", "path"))
        for labels, buckets in self._buckets.items():
            bounds = (*map(str, _BUCKETS), "+Inf")
            durations.add_metric(labels, list(zip(bounds, accumulate(buckets), strict=True)), self._seconds[labels])
        yield durations
