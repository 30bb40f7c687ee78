from __future__ import annotations

import json
import re
from typing import Any

import pytest

from clew.catalog.resource import ContentSource
from clew.catalog.sources import build_source, http
from clew.errors import ConfigError, NotFound
from tests.catalog.sources import shapes
from tests.catalog.sources.contract import HttpContract
from tests.catalog.sources.replay import Replay, as_json


class GithubContract(HttpContract):
    kind = "github"
    items: str

    def shape(self, replay: Replay) -> None:
        shapes.github(replay)

    @property
    def options(self) -> dict[str, Any]:  # type: ignore[override]  # made from the kind of item
        return {"repo": "acme/shop", "items": self.items}


class TestPullRequests(GithubContract):
    items = "prs"
    absent = "404"

    async def test_a_pull_request_has_its_number_its_title_and_the_time_of_its_change(
        self, source: ContentSource
    ) -> None:
        first = (await source.list_documents()).documents[0]
        body = json.loads((await source.fetch_content("1")).body)

        assert source.id.startswith("github:prs:acme/shop")
        assert (first.id, first.name, first.version) == ("1", "#1 Fix the refund of order 1", "2026-01-01T00:00:00Z")
        assert body["user"] == {"login": "ada"}

    async def test_only_what_changed_since_is_listed_and_older_pages_are_not_asked_for(self, replay: Replay) -> None:
        documents = await self.list_all(self.build(replay, since="2026-01-05"))

        assert [document.id for document in documents] == ["5"]
        assert len(replay.asked) == 1

    async def test_the_state_is_passed_on(self, replay: Replay) -> None:
        assert await self.list_all(self.build(replay, state="open")) == []

    @pytest.mark.parametrize("url", ["https://evil.test/pulls?page=2", "http://[", "http://127.0.0.1:1/x", "http://"])
    async def test_a_next_page_on_another_host_is_refused(
        self, source: ContentSource, replay: Replay, url: str
    ) -> None:
        replay.script.append(as_json([shapes.pull(1)], Link=f'<{url}>; rel="next"'))

        assert re.search("another host|malformed", await self.failure(source))
        assert len(replay.asked) == 1

    async def test_a_limit_that_github_tells_by_403_is_waited_for(
        self, source: ContentSource, replay: Replay, waits: list[float]
    ) -> None:
        replay.script.append(as_json({}, 403, X_RateLimit_Remaining="0", Retry_After="3"))

        assert await self.list_all(source)
        assert waits == [3.0]

    async def test_pages_without_end_are_an_error(
        self, source: ContentSource, replay: Replay, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(http, "MAX_PAGES", 20)
        link = f'<{replay.url}/repos/acme/shop/pulls?page=1>; rel="next"'
        replay.routes["/repos/acme/shop/pulls"] = lambda _: as_json([], Link=link)

        assert "more than 20 pages" in await self.failure(source)


class TestIssues(GithubContract):
    items = "issues"
    absent = "404"

    async def test_pull_requests_are_no_issues(self, source: ContentSource) -> None:
        assert [document.id for document in (await source.list_documents()).documents] == ["7", "8", "9"]
        with pytest.raises(NotFound):
            await source.fetch_content("1")


class TestCommits(GithubContract):
    items = "commits"
    absent = "f" * 40

    async def test_a_commit_is_named_by_its_first_line(self, source: ContentSource) -> None:
        first = (await source.list_documents()).documents[0]

        assert (first.id, first.version, first.name) == ("a" * 40, "a" * 40, "Change a")

    async def test_a_repository_without_commits_has_no_documents(self, source: ContentSource, replay: Replay) -> None:
        replay.script.append(as_json({"message": "Git Repository is empty."}, 409))

        assert await self.list_all(source) == []

    async def test_a_hash_that_no_commit_has_is_not_found(self, source: ContentSource, replay: Replay) -> None:
        replay.script.append(as_json({"message": "No commit found for SHA"}, 422))

        with pytest.raises(NotFound):
            await source.fetch_content("b" * 40)


@pytest.mark.parametrize("repo", ["acme", "acme/shop/x", "acme/..", "../x/y", "acme/shop?x=1", "", "acme/shop\n"])
def test_a_repository_that_is_no_name_is_refused(repo: str) -> None:
    with pytest.raises(ConfigError, match="owner/name"):
        build_source("github", {"repo": repo}, secrets={})


def test_a_date_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not a date"):
        build_source("github", {"repo": "a/b", "since": "yesterday"}, secrets={})


def test_sources_that_list_different_documents_have_different_ids() -> None:
    options: list[dict[str, str]] = [
        {},
        {"items": "commits"},
        {"items": "issues"},
        {"state": "open"},
        {"since": "2026-01-01"},
        {"base_url": "https://git.acme.test/api/v3"},
    ]

    ids = [build_source("github", {"repo": "acme/shop", **more}, secrets={}).id for more in options]

    assert ids[0] == "github:prs:acme/shop"
    assert len(set(ids)) == len(ids)
