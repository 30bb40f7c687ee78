"""The exporter: it never waits for the collector, drops and counts spans that do not fit, and continues when the
collector answers."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from clew.clock import SystemClock
from clew.telemetry import exporter as exporter_module
from clew.telemetry.exporter import OtlpExporter
from clew.telemetry.metrics import Metrics
from clew.telemetry.settings import TelemetrySettings, read_telemetry
from clew.telemetry.spans import FinishedSpan
from tests.telemetry.collector import Collector, collecting


def span(number: int) -> FinishedSpan:
    return FinishedSpan(trace_id=f"{number:032x}", span_id=f"{number:016x}", name=f"span {number}", start=1, end=2)


def outcomes(metrics: Metrics) -> dict[str, float]:
    return {
        point.labels["outcome"]: point.value
        for each in metrics.series()
        for point in each.points
        if each.name == "telemetry_spans_total"
    }


@contextmanager
def exporting(settings: TelemetrySettings, metrics: Metrics) -> Iterator[Callable[[FinishedSpan], None]]:
    found = OtlpExporter(settings, {"service.name": "clew"}, metrics, SystemClock())
    found.start()
    try:
        yield found.add
    finally:
        found.close()


def settings_for(address: str, **more: Any) -> TelemetrySettings:
    return replace(TelemetrySettings(traces=f"{address}/v1/traces", delay=0.01), **more)


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_module, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(exporter_module, "LONGEST_PAUSE", 0.02)


def test_spans_of_an_outage_arrive_when_the_collector_answers_again(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    with collecting() as (collector, address):
        collector.status = 503
        with caplog.at_level(logging.WARNING), exporting(settings_for(address), metrics) as add:
            for number in range(1, 4):
                add(span(number))
            collector.until(lambda: collector.refused >= 3, "it was asked again")
            collector.status = 200
            collector.until(lambda: len(collector.spans) == 3, "all have arrived")
    assert [each.name for each in collector.spans] == ["span 1", "span 2", "span 3"]
    assert outcomes(metrics) == {"exported": 3}
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2, "one line for the outage, one for its end"
    assert "does not answer (it answers 503)" in told[0]
    assert told[1].endswith("answers again")


def test_spans_that_do_not_fit_into_the_queue_are_dropped_and_counted() -> None:
    metrics = Metrics()
    with collecting() as (collector, address):
        collector.status = 503
        with exporting(settings_for(address, queue=2, batch=2), metrics) as add:
            for number in range(1, 6):
                add(span(number))
            collector.status = 200
            collector.until(lambda: len(collector.spans) == 2, "the first ones arrive")
    assert outcomes(metrics) == {"exported": 2, "dropped": 3}


def test_spans_that_the_collector_refuses_are_not_sent_again() -> None:
    metrics = Metrics()
    with collecting() as (collector, address):
        collector.status = 400
        with exporting(settings_for(address), metrics) as add:
            add(span(1))
            collector.until(lambda: collector.refused == 1, "it is refused")
            collector.status = 200
            add(span(2))
            collector.until(lambda: collector.spans, "the next one arrives")
    assert [each.name for each in collector.spans] == ["span 2"]
    assert outcomes(metrics) == {"refused": 1, "exported": 1}


def test_a_process_ends_although_its_collector_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporter_module, "FLUSH_SECONDS", 0.05)
    metrics = Metrics()
    with collecting() as (collector, address):
        collector.answers.clear()
        with exporting(settings_for(address, timeout=600.0), metrics) as add:
            add(span(1))
    assert outcomes(metrics).get("dropped") == 1


def test_the_last_spans_are_sent_at_the_end() -> None:
    with collecting() as (collector, address):
        with exporting(settings_for(address, delay=600.0), Metrics()) as add:
            add(span(1))
        assert [each.name for each in collector.spans] == ["span 1"]


def test_refused_metrics_do_not_delay_spans() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, collecting() as (collector, address):
        # it accepts connections, and says nothing
        nobody = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/metrics"
        settings = settings_for(address, metrics=nobody, metrics_every=0.01, timeout=600.0)
        with exporting(settings, Metrics()) as add:
            connection, _ = silent.accept()
            with connection:
                add(span(1))
                collector.until(lambda: collector.spans, "the span arrives")
                assert len(collector.spans) == 1


def test_an_address_without_metrics_is_logged_once_while_spans_arrive(caplog: pytest.LogCaptureFixture) -> None:
    with collecting() as (spans, to_spans), collecting() as (numbers, to_numbers):
        numbers.status = 404
        settings = settings_for(to_spans, metrics=f"{to_numbers}/v1/metrics", metrics_every=0.01)
        with caplog.at_level(logging.WARNING), exporting(settings, Metrics()) as add:
            for number in range(1, 4):
                before = numbers.refused
                numbers.until(lambda before=before: numbers.refused > before, "metrics are refused")  # type: ignore[misc]
                add(span(number))
                spans.until(lambda number=number: len(spans.spans) == number, "the span arrives")  # type: ignore[misc]
            before = numbers.refused
            numbers.until(lambda: numbers.refused > before + 1, "metrics are refused again")
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert "refuses the data with status 404" in told[0]


def test_a_header_that_http_cannot_carry_is_left_out_and_spans_arrive() -> None:
    with collecting() as (collector, address):
        settings = read_telemetry(
            {
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{address}/v1/traces",
                "OTEL_EXPORTER_OTLP_HEADERS": "x-team=Zürich,x-key=k,content-length=3,x-two=a%0Ab,na me=1",
            }
        )
        with exporting(settings, Metrics()) as add:
            add(span(1))
            collector.until(lambda: collector.spans, "the span arrives")
    assert collector.headers[0]["x-key"] == "k"
    assert settings.problems == ("OTEL_EXPORTER_OTLP_HEADERS has a header that cannot be sent, which is left out",)


@pytest.mark.req("RCR-54")
def test_the_collector_gets_the_numbers_of_a_scrape() -> None:
    metrics = Metrics()
    for status in (200, 200, 404):
        metrics.record_request("GET", "/breadcrumbs/{id}", status, 0.003)
    metrics.record_delivery("delivered", 0.25)
    with collecting() as (collector, address):
        settings = TelemetrySettings(metrics=f"{address}/v1/metrics", headers={"x-key": "k"}, is_compressed=True)
        with exporting(settings, metrics):
            collector.until(lambda: collector.metrics, "metrics arrive at once")
    assert collector.headers[0]["x-key"] == "k"
    assert pushed(collector) == scraped(metrics)


def pushed(collector: Collector) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found = {}
    for metric in collector.metrics[0].resource_metrics[0].scope_metrics[0].metrics:
        for point in metric.sum.data_points:
            found[metric.name, _labels(point)] = float(point.as_int)
        for each in metric.histogram.data_points:
            found[f"{metric.name}_sum", _labels(each)] = each.sum
            found[f"{metric.name}_count", _labels(each)] = float(each.count)
            assert sum(each.bucket_counts) == each.count
    return found


def scraped(metrics: Metrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(metrics.render().decode())
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith(("_bucket", "_created"))
    }


def _labels(point: Any) -> frozenset[tuple[str, str]]:
    return frozenset((each.key, each.value.string_value) for each in point.attributes)


# -- settings ---------------------------------------------------------------------------------------------

BASE = "http://collector:4318"


@pytest.mark.parametrize(
    ("environ", "traces", "metrics"),
    [
        ({}, "", ""),
        ({"ENDPOINT": BASE}, f"{BASE}/v1/traces", f"{BASE}/v1/metrics"),
        ({"ENDPOINT": f"{BASE}/in/"}, f"{BASE}/in/v1/traces", f"{BASE}/in/v1/metrics"),
        ({"TRACES_ENDPOINT": f"{BASE}/t"}, f"{BASE}/t", ""),
        ({"ENDPOINT": BASE, "OTEL_METRICS_EXPORTER": "none"}, f"{BASE}/v1/traces", ""),
        ({"ENDPOINT": BASE, "OTEL_SDK_DISABLED": "true"}, "", ""),
    ],
)
def test_the_standard_variables_say_where_spans_and_metrics_go(
    environ: dict[str, str], traces: str, metrics: str
) -> None:
    found = read_telemetry(
        {name if "OTEL_" in name else f"OTEL_EXPORTER_OTLP_{name}": environ[name] for name in environ}
    )
    assert (found.traces, found.metrics, found.problems) == (traces, metrics, ())


def test_an_unusable_variable_is_reported_and_stops_nothing() -> None:
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": BASE,
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "grpc",
        "OTEL_BSP_MAX_QUEUE_SIZE": "many",
        "OTEL_TRACES_SAMPLER": "wise",
        "OTEL_EXPORTER_OTLP_HEADERS": "nonsense",
    }
    found = read_telemetry(given)
    assert (found.traces, found.metrics, found.queue, found.ratio) == (f"{BASE}/v1/traces", "", 2_048, 1.0)
    assert len(found.problems) == 4


def test_headers_may_hold_a_login_and_are_not_shown() -> None:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": BASE, "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20abc,X-Team=a"}
    found = read_telemetry(given)
    assert found.headers == {"authorization": "Basic abc", "x-team": "a"}
    assert "abc" not in repr(found)


def test_a_share_of_traces_is_the_same_share_in_every_process() -> None:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": BASE, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio"}
    found = read_telemetry(given | {"OTEL_TRACES_SAMPLER_ARG": "0.25"})
    low, high = "0" * 16 + "3" + "f" * 15, "0" * 16 + "4" + "0" * 15
    assert found.is_sampled(low)
    assert not found.is_sampled(high)
