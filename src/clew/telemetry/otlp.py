"""Spans and metrics as messages of OTLP. Needs the extra `otel`. The module is loaded only if something is exported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from clew.telemetry.metrics import MetricSeries
from clew.telemetry.spans import AttributeValue, FinishedSpan

_SCOPE = InstrumentationScope(name="clew")
_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def encode_spans(spans: Iterable[FinishedSpan], resource: Mapping[str, AttributeValue]) -> bytes:
    """The body of a request to /v1/traces."""
    scoped = ScopeSpans(scope=_SCOPE, spans=[_span(each) for each in spans])
    body: bytes = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(resource=_resource(resource), scope_spans=[scoped])]
    ).SerializeToString()
    return body


def encode_metrics(
    series: Sequence[MetricSeries], resource: Mapping[str, AttributeValue], began: int, now: int
) -> bytes:
    """The body of a request to /v1/metrics: totals since the process `began`, in nanoseconds."""
    scoped = ScopeMetrics(scope=_SCOPE, metrics=[_metric(each, began, now) for each in series if each.points])
    body: bytes = ExportMetricsServiceRequest(
        resource_metrics=[ResourceMetrics(resource=_resource(resource), scope_metrics=[scoped])]
    ).SerializeToString()
    return body


def _span(span: FinishedSpan) -> Span:
    return Span(
        trace_id=bytes.fromhex(span.trace_id),
        span_id=bytes.fromhex(span.span_id),
        parent_span_id=bytes.fromhex(span.parent_id),
        name=span.name,
        kind=Span.SpanKind.ValueType(span.kind),
        start_time_unix_nano=span.start,
        end_time_unix_nano=span.end,
        attributes=_attributes({**span.attributes, **({"error.type": span.error} if span.error else {})}),
        status=Status(code=Status.STATUS_CODE_ERROR) if span.error else None,
        flags=0x101,  # sampled, and the parent of this span may be in another process
    )


def _metric(series: MetricSeries, began: int, now: int) -> Metric:
    if not series.bounds:
        numbers = [
            NumberDataPoint(
                attributes=_attributes(point.labels),
                start_time_unix_nano=began,
                time_unix_nano=now,
                as_int=int(point.value),
            )
            for point in series.points
        ]
        total = Sum(data_points=numbers, aggregation_temporality=_CUMULATIVE, is_monotonic=True)
        return Metric(name=series.name, description=series.what, sum=total)
    points = [
        HistogramDataPoint(
            attributes=_attributes(point.labels),
            start_time_unix_nano=began,
            time_unix_nano=now,
            count=sum(point.buckets),
            sum=point.value,
            bucket_counts=point.buckets,
            explicit_bounds=series.bounds,
        )
        for point in series.points
    ]
    histogram = Histogram(data_points=points, aggregation_temporality=_CUMULATIVE)
    return Metric(name=series.name, description=series.what, unit="s", histogram=histogram)


def _resource(attributes: Mapping[str, AttributeValue]) -> Resource:
    return Resource(attributes=_attributes(attributes))


def _attributes(attributes: Mapping[str, AttributeValue]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: AttributeValue) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
        case _:
            return AnyValue(string_value=value)
