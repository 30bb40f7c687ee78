"""The metrics of a scrape."""

from __future__ import annotations

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from clew.adapters.rest import Metrics
from tests.servers import Served


def samples(text: str, name: str) -> dict[tuple[str, ...], float]:
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == name:
                found[tuple(sample.labels[key] for key in sorted(sample.labels))] = sample.value
    return found


@pytest.mark.req("RCR-54")
async def test_a_scrape_shows_requests_by_route_and_never_by_path(server: Served, http: httpx.AsyncClient) -> None:
    for id in ("first", "second", "third"):
        await http.get(f"/breadcrumbs/{id}")
    await http.get("/surprise/42")
    async with httpx.AsyncClient(verify=False, base_url=server.url) as anybody:
        scraped = await anybody.get("/metrics")
    assert scraped.headers["content-type"].startswith("text/plain")
    counted = samples(scraped.text, "http_requests_total")
    assert counted[("GET", "/breadcrumbs/{id}", "404")] >= 3
    assert counted[("GET", "(unmatched)", "404")] >= 1
    assert "first" not in scraped.text
    assert "surprise" not in scraped.text
    timed = samples(scraped.text, "http_request_duration_seconds_count")
    assert timed[("GET", "/breadcrumbs/{id}")] >= 3


@pytest.mark.req("RCR-54")
@pytest.mark.req("RCR-24")
def test_deliveries_are_counted_by_outcome() -> None:
    metrics = Metrics()
    for outcome in ("delivered", "failed", "failed"):
        metrics.record_delivery(outcome, 0.25)
    text = metrics.render().decode()
    assert samples(text, "webhook_delivery_total") == {("delivered",): 1.0, ("failed",): 2.0}
    assert samples(text, "webhook_delivery_duration_seconds_count") == {(): 3.0}
    assert samples(text, "webhook_delivery_duration_seconds_sum") == {(): 0.75}


def test_methods_that_callers_make_up_share_one_label() -> None:
    metrics = Metrics()
    for number in range(1_000):
        metrics.record_request(f"M{number}", "/x", 405, 0.001)
    assert samples(metrics.render().decode(), "http_requests_total") == {("other", "/x", "405"): 1_000.0}


async def test_an_open_stream_is_counted_when_it_begins(http: httpx.AsyncClient) -> None:
    before = samples((await http.get("/metrics")).text, "http_requests_total").get(("GET", "/events/stream", "200"), 0)
    async with http.stream("GET", "/events/stream"):
        after = samples((await http.get("/metrics")).text, "http_requests_total")
        assert after[("GET", "/events/stream", "200")] == before + 1
