"""Metrics in the text format of Prometheus. Paths are labelled by route, so labels are few."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_REQUEST_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_DELIVERY_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Metrics:
    """Counts requests and webhook deliveries, all of them on one event loop. Recording one costs a microsecond."""

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

    def record_request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one answered request; `path` is the template of its route."""
        # Any other method than these is one label: a caller could make up any number of them.
        known = method if method in _METHODS else "other"
        self._requests.add(known, path, str(status))
        self._request_seconds.add(seconds, known, path)

    def record_delivery(self, outcome: str, seconds: float) -> None:
        """Count one attempt to deliver a webhook; `outcome` is a short fixed word such as `delivered`."""
        self._deliveries.add(outcome)
        self._delivery_seconds.add(seconds)

    def render(self) -> bytes:
        """All metrics in the text format of Prometheus. None of them counts what owners have."""
        metrics = (self._requests, self._request_seconds, self._deliveries, self._delivery_seconds)
        return "".join(f"{line}\n" for metric in metrics for line in metric.lines()).encode()


class _Counter:
    """A number for each combination of labels."""

    def __init__(self, name: str, what: str, labels: tuple[str, ...]) -> None:
        self._name, self._what, self._labels = name, what, labels
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, *values: str) -> None:
        self._counts[values] = self._counts.get(values, 0) + 1

    def lines(self) -> Iterator[str]:
        yield from _head(self._name, self._what, "counter")
        for values, count in self._counts.items():
            yield f"{self._name}{_braces(dict(zip(self._labels, values, strict=True)))} {count}"


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

    def lines(self) -> Iterator[str]:
        yield from _head(self._name, self._what, "histogram")
        for values, buckets in self._buckets.items():
            labels = dict(zip(self._labels, values, strict=True))
            for bound, count in zip((*map(str, self._bounds), "+Inf"), accumulate(buckets), strict=True):
                yield f"{self._name}_bucket{_braces({**labels, 'le': bound})} {count}"
            yield f"{self._name}_sum{_braces(labels)} {self._sums.get(values, 0.0)}"
            yield f"{self._name}_count{_braces(labels)} {sum(buckets)}"


def _head(name: str, what: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} {kind}"


def _braces(labels: Mapping[str, str]) -> str:
    """The labels of a line; a value may hold any character."""
    inner = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels.items())
    return f"{{{inner}}}" if inner else ""
