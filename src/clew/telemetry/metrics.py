"""Metrics of one process, as series and in the text format of Prometheus. Paths are labelled by route, so labels are
few."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Literal, NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_REQUEST_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_DELIVERY_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


SpanOutcome = Literal["exported", "dropped", "refused"]
"""`dropped`: the queue was full, or the process ended; `refused`: the collector rejected the span."""


class MetricPoint(NamedTuple):
    """The value of one combination of labels: a count, or for a histogram the sum of the values and the number of
    values up to each bound."""

    labels: Mapping[str, str]
    value: float
    buckets: Sequence[int] = ()


class MetricSeries(NamedTuple):
    """All points of one metric. A histogram has `bounds`; its points have one bucket more."""

    name: str
    what: str
    points: Sequence[MetricPoint]
    bounds: Sequence[float] = ()


class Metrics:
    """Counts requests and webhook deliveries, all of them on one event loop, and spans. Recording one costs a
    microsecond. Series may be read in another thread."""

    def __init__(self) -> None:
        self._requests = _Counter("http_requests_total", "Requests answered", ("method", "path", "status"))
        self._request_seconds = _Histogram(
            "http_request_duration_seconds",
            "Seconds from a request to the start of its answer",
            ("method", "path"),
            _REQUEST_BOUNDS,
        )
        self._deliveries = _Counter("webhook_delivery_total", "Webhook deliveries attempted", ("outcome",))
        self._delivery_seconds = _Histogram(
            "webhook_delivery_duration_seconds", "Seconds per webhook attempt", (), _DELIVERY_BOUNDS
        )
        self._spans = _Counter("telemetry_spans_total", "Spans for an OpenTelemetry collector", ("outcome",))

    def record_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one answered request; `path` is the template of its route."""
        # Any other method than these is one label: a caller could make up any number of them.
        known = method if method in METHODS else "other"
        self._requests.add(known, path, str(status))
        self._request_seconds.add(seconds, known, path)

    def record_delivery(self, outcome: str, seconds: float) -> None:
        """Count one attempt to deliver a webhook; `outcome` is a short fixed word such as `delivered`."""
        self._deliveries.add(outcome)
        self._delivery_seconds.add(seconds)

    def record_spans(self, outcome: SpanOutcome, count: int = 1) -> None:
        """Count spans that left the process or were lost. Each outcome is recorded in one thread only."""
        self._spans.add(outcome, count=count)

    def series(self) -> list[MetricSeries]:
        """All metrics. None of them counts the data of owners."""
        metrics = (self._requests, self._request_seconds, self._deliveries, self._delivery_seconds, self._spans)
        return [each.series() for each in metrics]

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return "".join(f"{line}\n" for series in self.series() for line in _lines(series)).encode()


class _Counter:
    """A number for each combination of labels."""

    def __init__(self, name: str, what: str, labels: tuple[str, ...]) -> None:
        self._name, self._what, self._labels = name, what, labels
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, *values: str, count: int = 1) -> None:
        self._counts[values] = self._counts.get(values, 0) + count

    def series(self) -> MetricSeries:
        counts = self._counts.copy()  # in one step: another thread may add to it
        points = [MetricPoint(dict(zip(self._labels, key, strict=True)), count) for key, count in counts.items()]
        return MetricSeries(self._name, self._what, points)


class _Histogram:
    """Numbers of values up to each bound, for each combination of labels."""

    def __init__(self, name: str, what: str, labels: tuple[str, ...], bounds: tuple[float, ...]) -> None:
        self._name, self._what, self._labels, self._bounds = name, what, labels, bounds
        self._buckets: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}
        if not labels:
            self._buckets[()] = [0] * (len(bounds) + 1)

    def add(self, value: float, *values: str) -> None:
        buckets = self._buckets.get(values)
        if buckets is None:
            buckets = self._buckets[values] = [0] * (len(self._bounds) + 1)
        buckets[bisect_left(self._bounds, value)] += 1
        self._sums[values] = self._sums.get(values, 0.0) + value

    def series(self) -> MetricSeries:
        points = [
            MetricPoint(dict(zip(self._labels, key, strict=True)), self._sums.get(key, 0.0), tuple(buckets))
            for key, buckets in self._buckets.copy().items()
        ]
        return MetricSeries(self._name, self._what, points, self._bounds)


def _lines(series: MetricSeries) -> Iterator[str]:
    name, bounds = series.name, (*map(str, series.bounds), "+Inf")
    yield f"# HELP {name} {series.what}"
    yield f"# TYPE {name} {'histogram' if series.bounds else 'counter'}"
    for point in series.points:
        if not series.bounds:
            yield f"{name}{_braces(point.labels)} {point.value}"
            continue
        for bound, count in zip(bounds, accumulate(point.buckets), strict=True):
            yield f"{name}_bucket{_braces({**point.labels, 'le': bound})} {count}"
        yield f"{name}_sum{_braces(point.labels)} {point.value}"
        yield f"{name}_count{_braces(point.labels)} {sum(point.buckets)}"


def _braces(labels: Mapping[str, str]) -> str:
    """The labels of a line; a value may hold any character."""
    inner = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""
