"""The document and the page that are made from the route table."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import Any

import httpx
import jsonschema_rs
import pytest

from clew.adapters.rest.app import OPERATIONS
from clew.adapters.rest.errors import PROTOCOL, STATUS
from clew.adapters.rest.openapi import build_document
from clew.adapters.rest.reference import STATUS_MEANINGS, build_example
from clew.errors import ClewError

DOCUMENT = build_document(OPERATIONS, "1.2.3")


def described() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method} {path}", operation)
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_operation_is_in_the_document_under_a_name_of_its_own() -> None:
    names = [operation["operationId"] for _, operation in described()]
    assert len(names) == len(set(names)) == len(OPERATIONS)


def test_every_reference_in_the_document_leads_somewhere() -> None:
    references = set(re.findall(r"'#/components/schemas/(\w+)'", str(DOCUMENT)))
    assert references
    assert references <= set(DOCUMENT["components"]["schemas"])


def test_every_guarded_operation_documents_401_and_403_and_its_security() -> None:
    for name, operation in described():
        if "security" in operation:
            assert "401" in operation["responses"], name
        if "description" in operation:
            assert {"401", "403"} <= set(operation["responses"]), name


def test_every_error_class_has_a_status_and_a_code_that_is_its_name() -> None:
    """Subclasses of errors inside a package have the status of their base class."""
    waiting: list[type[ClewError]] = [ClewError]
    while waiting:
        kind = waiting.pop()
        waiting += [each for each in kind.__subclasses__() if each.__module__ == ClewError.__module__]
        status, code = STATUS[kind]
        assert 400 <= status < 600
        assert code.replace("_", "") == kind.__name__.lower()
    codes = [code for _, code in STATUS.values()] + [code for code, _ in PROTOCOL.values()]
    assert len(codes) == len(set(codes))


@pytest.mark.req("RCR-03")
async def test_the_document_is_published_and_says_what_version_it_is_of(http: httpx.AsyncClient) -> None:
    published = (await http.get("/openapi.json")).json()
    welcome = (await http.get("/")).json()
    assert published["openapi"].startswith("3.1")
    assert published["info"]["version"] == welcome["version"]
    assert published["paths"].keys() == DOCUMENT["paths"].keys()


class Page(HTMLParser):
    """Collects what a page would load, and whether its tags are balanced."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("link", "img", "iframe", "object") or "src" in given:
            self.loads.append(tag)
        if given.get("id"):
            self.ids.add(str(given["id"]))
        if tag == "a":
            self.links.add(str(given["href"]))
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_reference_page_loads_nothing_and_shows_every_operation(http: httpx.AsyncClient) -> None:
    response = await http.get("/docs")
    page = Page()
    page.feed(response.text)
    assert page.open == []
    assert page.loads == []
    assert "url(" not in response.text
    assert "@import" not in response.text
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert {operation["operationId"] for _, operation in described()} <= page.ids
    inner = {link[1:] for link in page.links if link.startswith("#")}
    assert inner <= page.ids
    assert page.links - {f"#{id}" for id in inner} == {"/openapi.json"}


async def test_the_page_runs_only_its_own_script_and_explains_every_status(http: httpx.AsyncClient) -> None:
    response = await http.get("/docs")
    script = response.text.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in response.headers["content-security-policy"]
    statuses = {int(status) for _, operation in described() for status in operation["responses"]}
    assert statuses <= set(STATUS_MEANINGS)
    assert all(f'id="status-{status}"' in response.text for status in statuses)


@pytest.mark.parametrize("name", [name for name, operation in described() if "requestBody" in operation])
def test_the_example_of_a_body_fits_its_schema(name: str) -> None:
    operation = dict(described())[name]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    example = build_example(schema, DOCUMENT["components"]["schemas"])
    assert jsonschema_rs.validator_for({**schema, "components": DOCUMENT["components"]}).is_valid(example)


@pytest.mark.req("BEY-12")
async def test_a_browser_gets_a_page_with_the_address_for_agents_and_a_program_gets_json(
    http: httpx.AsyncClient,
) -> None:
    shown = await http.get("/", headers={"Accept": "text/html,*/*;q=0.8"})
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    page = Page()
    page.feed(shown.text)
    assert (page.open, page.loads) == ([], [])
    assert {"/docs", "/metrics", "/openapi.json"} <= page.links
    assert f"http://{http.base_url.netloc.decode()}/mcp" in shown.text
    assert (await http.get("/")).json()["docs"] == "/docs"
