"""Prometheus metrics in a registry of their own. Paths are labelled by route, so labels are few."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts requests and webhook deliveries. Recording one costs a few microseconds."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "http_requests_total", "Requests answered", ("method", "path", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "http_request_duration_seconds",
            "Seconds from a request to the start of its answer",
            ("method", "path"),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._deliveries = Counter(
            "webhook_delivery_total", "Webhook deliveries attempted", ("outcome",), registry=self._registry
        )
        self._delivery_seconds = Histogram(
            "webhook_delivery_duration_seconds", "Seconds per webhook attempt", registry=self._registry
        )
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def record_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one answered request; `path` is the template of its route."""
        known = self._known.get((method, path, status))
        if known is None:
            known = self._add(method, path, status)
        known[0].inc()
        known[1].observe(seconds)

    def record_delivery(self, outcome: str, seconds: float) -> None:
        """Count one attempt to deliver a webhook; `outcome` is a short fixed word such as `delivered`."""
        self._deliveries.labels(outcome).inc()
        self._delivery_seconds.observe(seconds)

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus. None of them counts what owners have."""
        return generate_latest(self._registry)

    def _add(self, method: str, path: str, status: int) -> tuple[Counter, Histogram]:
        # Looking labels up costs more than counting, so each combination is looked up once. Any other method
        # than these is one label, and is not remembered: a caller could make up any number of them.
        label = method if method in _METHODS else "other"
        known = (self._requests.labels(label, path, str(status)), self._seconds.labels(label, path))
        if label == method:
            self._known[(method, path, status)] = known
        return known
