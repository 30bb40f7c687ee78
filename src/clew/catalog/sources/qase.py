"""Test suites with their cases, or single cases, of one Qase project."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec

from clew.catalog.formats.types import QASE_CASE, QASE_SUITE
from clew.catalog.resource import DocumentListing, RawContent, RawDocument, Skipped
from clew.catalog.sources.http import Api, HttpReader, count_pages
from clew.catalog.sources.ids import check_document_id, digest_of, source_id
from clew.decode_errors import in_plain_words
from clew.errors import ConfigError, SourceError

API = Api(
    source="qase",
    base_url="https://api.qase.io",
    header="Token",
    renew="Make a token under API tokens of your Qase profile, of a user who is a member of the project",
)
PAGE = 100

_PROJECT = re.compile(r"[A-Za-z0-9_]{1,32}")
_NUMBER = re.compile(r"[0-9]{1,12}")


class QaseSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The items to read from a project, which its code names."""

    project: str
    items: Literal["suites", "cases"] = "suites"

    def __post_init__(self) -> None:
        if not _PROJECT.fullmatch(self.project):
            raise ConfigError(f"qase: project: {self.project!r} is not the code of a project, such as DEMO")


class _QaseEntity(msgspec.Struct, frozen=True):
    id: int
    title: str = ""


class _QasePage(msgspec.Struct, frozen=True):
    """`filtered` is how many there are on all pages."""

    entities: list[dict[str, Any]]
    total: int = 0
    filtered: int | None = None


class _PageAnswer(msgspec.Struct, frozen=True):
    result: _QasePage


class _OneAnswer(msgspec.Struct, frozen=True):
    result: dict[str, Any]


class QaseSource:
    """A suite's body has its `cases` beside its own fields, and its version covers both; a case's body is the case."""

    name = "qase"
    is_local = False

    def __init__(self, settings: QaseSettings, http: HttpReader) -> None:
        self._settings = settings
        self._http = http

    @property
    def id(self) -> str:
        head = f"qase:{self._settings.items}:{self._settings.project}"
        return source_id(head, {"base_url": self._http.other_base_url})

    async def list_documents(self) -> DocumentListing:
        cases = [case async for case in self._entities("case")]
        if self._settings.items == "cases":
            return DocumentListing(documents=[self._document(case, digest_of(case)) for case in _in_order(cases)])
        suites = _in_order([suite async for suite in self._entities("suite")])
        members = {suite["id"]: [case for case in cases if case.get("suite_id") == suite["id"]] for suite in suites}
        documents = [self._document(suite, digest_of([suite, _in_order(members[suite["id"]])])) for suite in suites]
        lonely = [case for case in _in_order(cases) if case.get("suite_id") not in members]
        reason = "belongs to no suite; a source with items = cases has it"
        return DocumentListing(
            documents=documents,
            skipped=[Skipped(document=f"case {case['id']}", reason=reason) for case in lonely],
        )

    async def fetch_content(self, id: str) -> RawContent:
        check_document_id(self.id, id, _NUMBER, "17")
        what = "suite" if self._settings.items == "suites" else "case"
        answer = await self._http.get(f"/v1/{what}/{self._settings.project}/{id}", document=id)
        found = self._checked(answer.read(_OneAnswer).result)
        body: dict[str, Any] = found
        if what == "suite":
            cases = [case async for case in self._entities("case", suite_id=int(id))]
            # The filter may include cases of the suites below.
            own = [case for case in cases if case.get("suite_id") == found["id"]]
            body = {**found, "cases": _in_order(own)}
        document = self._document(found, "")
        return RawContent(id=id, name=document.name, content_type=document.content_type, body=msgspec.json.encode(body))

    async def close(self) -> None:
        await self._http.close()

    async def _entities(self, what: str, **filters: int) -> AsyncIterator[dict[str, Any]]:
        """All suites or cases, over all pages, each once."""
        seen: set[int] = set()
        offset = 0
        for _ in count_pages(self.id):
            params: dict[str, str | int] = {"limit": PAGE, "offset": offset, **filters}
            path = f"/v1/{what}/{self._settings.project}"
            page = (await self._http.get_json(path, _PageAnswer, params)).result
            for entity in map(self._checked, page.entities):
                if entity["id"] not in seen:
                    seen.add(entity["id"])
                    yield entity
            offset += len(page.entities)
            if not page.entities or offset >= (page.total if page.filtered is None else page.filtered):
                return

    def _checked(self, entity: dict[str, Any]) -> dict[str, Any]:
        """The entity, which has a number."""
        try:
            msgspec.convert(entity, _QaseEntity)
        except msgspec.ValidationError as error:
            wrong = in_plain_words(error, _QaseEntity, "it")
            raise SourceError(self.id, f"sent an entry of unexpected form: {wrong}") from None
        return entity

    def _document(self, entity: dict[str, Any], version: str) -> RawDocument:
        return RawDocument(
            id=str(entity["id"]),
            name=entity.get("title") or f"{self._settings.items[:-1]} {entity['id']}",
            content_type=QASE_SUITE if self._settings.items == "suites" else QASE_CASE,
            version=version,
        )


def _in_order(entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entities, key=lambda entity: int(entity["id"]))
