"""Pull requests, commits or issues of one GitHub repository, over version 3 of its API."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from clew.catalog.formats.types import GITHUB_COMMIT, GITHUB_ISSUE, GITHUB_PR
from clew.catalog.resource import DocumentListing, RawContent, RawDocument
from clew.catalog.sources.http import Api, HttpAnswer, HttpReader, count_pages
from clew.catalog.sources.ids import check_document_id, source_id
from clew.errors import ConfigError, NotFound

API = Api(
    source="github",
    base_url="https://api.github.com",
    scheme="Bearer",
    headers={"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
    renew="Make a token that may read the repository at https://github.com/settings/tokens, or take `gh auth token`",
)
PAGE = 100

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}/(?!\.\.?$)[A-Za-z0-9._-]{1,100}")
_NUMBER = re.compile(r"[0-9]{1,12}")
_SHA = re.compile(r"[0-9a-f]{7,64}")
_EMPTY_REPOSITORY = 409


class GithubSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which items of which repository (`owner/name`). `since` is a date or time. It is compared with the last change,
    and for commits with the time of authorship. `state` is not for commits, and `branch` is for them alone."""

    repo: str
    items: Literal["prs", "commits", "issues"] = "prs"
    state: Literal["open", "closed", "all"] = "all"
    since: str = ""
    branch: str = ""

    def __post_init__(self) -> None:
        if not _REPO.fullmatch(self.repo):
            raise ConfigError(f"github: repo: {self.repo!r} is not of the form owner/name")
        if self.since:
            _check_date(self.since)


class _Item(msgspec.Struct, frozen=True):
    """The fields that the lists of pull requests and issues share."""

    number: int
    title: str
    updated_at: str
    state: str = ""
    html_url: str = ""
    pull_request: Any = None


class _Message(msgspec.Struct, frozen=True):
    message: str = ""


class _Commit(msgspec.Struct, frozen=True):
    sha: str
    commit: _Message
    html_url: str = ""


class GithubSource:
    """A pull request or issue has its number as id and the time of its last change as version; a commit its hash as
    both. Pull requests come by number, commits with the newest first."""

    name = "github"
    is_local = False

    def __init__(self, settings: GithubSettings, http: HttpReader) -> None:
        self._settings = settings
        self._http = http

    @property
    def id(self) -> str:
        chosen = self._settings
        options = {
            "state": "" if chosen.state == "all" else chosen.state,
            "since": chosen.since,
            "branch": chosen.branch,
            "base_url": self._http.other_base_url,
        }
        return source_id(f"github:{chosen.items}:{chosen.repo}", options)

    async def list_documents(self) -> DocumentListing:
        if self._settings.items == "commits":
            return DocumentListing(documents=await self._list_commits())
        found = {item.number: item async for item in self._items()}
        documents = [self._document(found[number]) for number in sorted(found)]
        return DocumentListing(documents=documents)

    async def fetch_content(self, id: str) -> RawContent:
        path = f"{self._path}/{id}"
        if self._settings.items == "commits":
            check_document_id(self.id, id, _SHA, "9fceb02d0ae598e95dc970b74767f19372d61af8")
            answer = await self._http.get(path, document=id)
            return _content(self._commit_document(answer.read(_Commit)), answer)
        check_document_id(self.id, id, _NUMBER, "1347")
        answer = await self._http.get(path, document=id)
        item = answer.read(_Item)
        if self._settings.items == "issues" and item.pull_request:
            raise NotFound("document", id)
        return _content(self._document(item), answer)

    async def close(self) -> None:
        await self._http.close()

    @property
    def _path(self) -> str:
        part = "pulls" if self._settings.items == "prs" else self._settings.items
        return f"/repos/{self._settings.repo}/{part}"

    async def _items(self) -> AsyncIterator[_Item]:
        """Pull requests or issues of the chosen state, changed since the chosen time."""
        chosen = self._settings
        params: dict[str, str | int] = {"state": chosen.state, "per_page": PAGE}
        if chosen.items == "issues":
            params |= {"sort": "created", "direction": "asc"} | ({"since": chosen.since} if chosen.since else {})
        else:
            # The list of pull requests has no parameter `since`: read the latest first, and stop at the first older
            # one.
            params |= (
                {"sort": "updated", "direction": "desc"} if chosen.since else {"sort": "created", "direction": "asc"}
            )
        async for answer in self._pages(params):
            for item in answer.read(list[_Item]):
                if chosen.items == "issues" and item.pull_request:
                    continue
                if chosen.since and _moment(item.updated_at) < _moment(chosen.since):
                    return
                yield item

    async def _list_commits(self) -> list[RawDocument]:
        params: dict[str, str | int] = {"per_page": PAGE}
        if self._settings.since:
            params["since"] = self._settings.since
        if self._settings.branch:
            params["sha"] = self._settings.branch
        found: dict[str, RawDocument] = {}
        async for answer in self._pages(params):
            for commit in answer.read(list[_Commit]):
                found.setdefault(commit.sha, self._commit_document(commit))
        return list(found.values())

    async def _pages(self, params: dict[str, str | int]) -> AsyncIterator[HttpAnswer]:
        """The answers from the first page to the last, along their links; none for a repository without commits."""
        answer = await self._http.get(self._path, params, accept=(_EMPTY_REPOSITORY,))
        for _ in count_pages(self.id):
            if answer.status == _EMPTY_REPOSITORY:
                return
            yield answer
            if not answer.next_url:
                return
            answer = await self._http.get(answer.next_url)

    def _document(self, item: _Item) -> RawDocument:
        return RawDocument(
            id=str(item.number),
            name=f"#{item.number} {item.title}",
            content_type=GITHUB_PR if self._settings.items == "prs" else GITHUB_ISSUE,
            version=item.updated_at,
            metadata={"url": item.html_url, "state": item.state},
        )

    def _commit_document(self, commit: _Commit) -> RawDocument:
        subject = commit.commit.message.partition("\n")[0].strip()
        return RawDocument(
            id=commit.sha,
            name=subject or commit.sha,
            content_type=GITHUB_COMMIT,
            version=commit.sha,
            metadata={"url": commit.html_url},
        )


def _content(document: RawDocument, answer: HttpAnswer) -> RawContent:
    return RawContent(
        id=document.id,
        name=document.name,
        content_type=document.content_type,
        body=answer.body,
        metadata=document.metadata,
    )


def _check_date(text: str) -> None:
    try:
        _moment(text)
    except ValueError:
        raise ConfigError(f"github: since: {text!r} is not a date such as 2026-01-31 or 2026-01-31T12:00:00Z") from None


def _moment(text: str) -> float:
    """The timestamp of an ISO date or time, in seconds. Without a zone it is UTC."""
    parsed = datetime.fromisoformat(text)
    return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
