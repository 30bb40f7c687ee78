"""Docs with their pages, tasks, or lists of one ClickUp workspace."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any, Literal

import msgspec

from clew.catalog.formats.types import CLICKUP_DOC, CLICKUP_LIST, CLICKUP_TASK
from clew.catalog.resource import DocumentListing, RawContent, RawDocument
from clew.catalog.sources.http import Api, HttpAnswer, HttpReader, count_pages
from clew.catalog.sources.ids import check_document_id, source_id
from clew.errors import ConfigError, SourceError

API = Api(
    source="clickup",
    base_url="https://api.clickup.com/api",
    renew="Make a personal token under Apps in your ClickUp settings, of a member of the workspace",
)
PAGE = 100

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TYPES = {"docs": CLICKUP_DOC, "tasks": CLICKUP_TASK, "lists": CLICKUP_LIST}
_AS_MARKDOWN: dict[str, str | int] = {"include_markdown_description": "true"}
_ALL_PAGES: dict[str, str | int] = {"max_page_depth": -1, "content_format": "text/md"}


class ClickupSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The items to read from a workspace; tasks may be those of one `list`."""

    workspace: str
    items: Literal["docs", "tasks", "lists"] = "docs"
    list: str = ""
    closed: bool = True

    def __post_init__(self) -> None:
        for field, value in (("workspace", self.workspace), ("list", self.list or "0")):
            if not _ID.fullmatch(value):
                raise ConfigError(f"clickup: {field}: {value!r} is not an id, such as 9013045678")


class _ClickupEntity(msgspec.Struct, frozen=True):
    """A doc, task, list, folder or space."""

    id: str
    name: str = ""
    date_updated: int | str | None = None
    url: str = ""
    lists: list[_ClickupEntity] = []


class _Docs(msgspec.Struct, frozen=True):
    docs: list[_ClickupEntity]
    next_cursor: str | None = None


class _Tasks(msgspec.Struct, frozen=True):
    tasks: list[_ClickupEntity]
    last_page: bool | None = None


class _RawTasks(msgspec.Struct, frozen=True):
    tasks: list[dict[str, Any]]


class _Spaces(msgspec.Struct, frozen=True):
    spaces: list[_ClickupEntity]


class _Folders(msgspec.Struct, frozen=True):
    folders: list[_ClickupEntity]


class _Lists(msgspec.Struct, frozen=True):
    lists: list[_ClickupEntity]


class ClickupSource:
    """A doc's body has its `pages` beside its own fields, a list's body its `tasks`. Only tasks have versions, because
    docs and lists do not record a change of their contents."""

    name = "clickup"
    is_local = False

    def __init__(self, settings: ClickupSettings, http: HttpReader) -> None:
        self._settings = settings
        self._http = http

    @property
    def id(self) -> str:
        chosen = self._settings
        options = {
            "list": chosen.list,
            "closed": "" if chosen.closed else "no",
            "base_url": self._http.other_base_url,
        }
        return source_id(f"clickup:{chosen.items}:{chosen.workspace}", options)

    async def list_documents(self) -> DocumentListing:
        listers = {"docs": self._docs, "tasks": self._tasks, "lists": self._lists}
        found = {entity.id: entity async for entity in listers[self._settings.items]()}
        return DocumentListing(documents=[self._document(found[id]) for id in sorted(found)])

    async def fetch_content(self, id: str) -> RawContent:
        check_document_id(self.id, id, _ID, "86a1b2c3d")
        readers = {"docs": self._read_doc, "tasks": self._read_task, "lists": self._read_list}
        entity, body = await readers[self._settings.items](id)
        document = self._document(entity)
        return RawContent(
            id=id, name=document.name, content_type=document.content_type, body=body, metadata=document.metadata
        )

    async def close(self) -> None:
        await self._http.close()

    async def _docs(self) -> AsyncIterator[_ClickupEntity]:
        params: dict[str, str | int] = {"limit": PAGE}
        seen: set[str] = set()
        for _ in count_pages(self.id):
            page = await self._http.get_json(self._docs_path, _Docs, params)
            for doc in page.docs:
                yield doc
            if not page.next_cursor:
                return
            if page.next_cursor in seen:
                raise SourceError(self.id, "gives the same page of docs again and again")
            seen.add(page.next_cursor)
            params["cursor"] = page.next_cursor

    async def _tasks(self) -> AsyncIterator[_ClickupEntity]:
        chosen = self._settings
        path = f"/v2/list/{chosen.list}/task" if chosen.list else f"/v2/team/{chosen.workspace}/task"
        async for page in self._task_pages(path):
            for task in page.read(_Tasks).tasks:
                yield task

    async def _task_pages(self, path: str) -> AsyncIterator[HttpAnswer]:
        closed = str(self._settings.closed).lower()
        options: dict[str, str | int] = {"include_closed": closed, "subtasks": "true", **_AS_MARKDOWN}
        for number in count_pages(self.id):
            answer = await self._http.get(path, {**options, "page": number})
            yield answer
            page = answer.read(_Tasks)
            if not page.tasks or page.last_page or (page.last_page is None and len(page.tasks) < PAGE):
                return

    async def _lists(self) -> AsyncIterator[_ClickupEntity]:
        """The lists of all spaces, within folders and without."""
        spaces = await self._http.get_json(f"/v2/team/{self._settings.workspace}/space", _Spaces)
        for space in spaces.spaces:
            check_document_id(self.id, space.id, _ID, "790")
            folders = await self._http.get_json(f"/v2/space/{space.id}/folder", _Folders)
            free = await self._http.get_json(f"/v2/space/{space.id}/list", _Lists)
            for found in (*(inner for folder in folders.folders for inner in folder.lists), *free.lists):
                yield found

    async def _read_doc(self, id: str) -> tuple[_ClickupEntity, bytes]:
        answer = await self._http.get(f"{self._docs_path}/{id}", document=id)
        pages = await self._http.get(f"{self._docs_path}/{id}/pages", _ALL_PAGES, document=id)
        body = {**answer.read(dict[str, Any]), "pages": pages.read(list[Any])}
        return answer.read(_ClickupEntity), msgspec.json.encode(body)

    async def _read_task(self, id: str) -> tuple[_ClickupEntity, bytes]:
        answer = await self._http.get(f"/v2/task/{id}", _AS_MARKDOWN, document=id)
        return answer.read(_ClickupEntity), answer.body

    async def _read_list(self, id: str) -> tuple[_ClickupEntity, bytes]:
        answer = await self._http.get(f"/v2/list/{id}", document=id)
        tasks = [task async for page in self._task_pages(f"/v2/list/{id}/task") for task in page.read(_RawTasks).tasks]
        return answer.read(_ClickupEntity), msgspec.json.encode({**answer.read(dict[str, Any]), "tasks": tasks})

    @property
    def _docs_path(self) -> str:
        return f"/v3/workspaces/{self._settings.workspace}/docs"

    def _document(self, entity: _ClickupEntity) -> RawDocument:
        is_task = self._settings.items == "tasks"
        return RawDocument(
            id=entity.id,
            name=entity.name or entity.id,
            content_type=_TYPES[self._settings.items],
            version=str(entity.date_updated or "") if is_task else "",
            metadata={"url": entity.url} if entity.url else {},
        )
