from __future__ import annotations

import json

import pytest

from clew.catalog.resource import ContentSource
from clew.catalog.sources import build_source
from clew.errors import ConfigError
from tests.catalog.sources import shapes
from tests.catalog.sources.contract import HttpContract
from tests.catalog.sources.replay import Replay, as_json


class ClickupContract(HttpContract):
    kind = "clickup"
    absent = "nothing-here"

    def shape(self, replay: Replay) -> None:
        shapes.clickup(replay)


class TestDocs(ClickupContract):
    options = {"workspace": "9001"}  # noqa: RUF012  # read by the contract only

    async def test_a_doc_has_its_pages_beside_its_fields(self, source: ContentSource, replay: Replay) -> None:
        body = json.loads((await source.fetch_content("d-1")).body)

        assert (body["id"], body["name"]) == ("d-1", "Handbook d-1")
        assert body["pages"][0]["pages"][0]["name"] == "B"
        assert replay.asked[-1].query == {"max_page_depth": "-1", "content_format": "text/md"}

    async def test_a_cursor_that_comes_back_is_an_error(self, source: ContentSource, replay: Replay) -> None:
        same = {"docs": [{"id": "d-1"}], "next_cursor": "again"}
        replay.routes["/v3/workspaces/9001/docs"] = lambda _: as_json(same)

        assert "again and again" in await self.failure(source)


class TestTasks(ClickupContract):
    options = {"workspace": "9001", "items": "tasks"}  # noqa: RUF012  # read by the contract only

    async def test_a_task_has_the_time_of_its_change_as_version(self, source: ContentSource) -> None:
        versions = [document.version for document in (await source.list_documents()).documents]

        assert versions == ["170000000000", "170000000001", "170000000002"]

    async def test_tasks_of_one_list_are_asked_of_that_list(self, replay: Replay) -> None:
        source = self.build(replay, list="l1", closed=False)

        assert len(await self.list_all(source)) == 3
        assert {(asked.path, asked.query["include_closed"]) for asked in replay.asked} == {
            ("/v2/list/l1/task", "false")
        }


class TestLists(ClickupContract):
    options = {"workspace": "9001", "items": "lists"}  # noqa: RUF012  # read by the contract only

    async def test_lists_in_folders_and_without_are_found_and_bring_their_tasks(self, source: ContentSource) -> None:
        ids = [document.id for document in (await source.list_documents()).documents]
        body = json.loads((await source.fetch_content("l1")).body)

        assert ids == ["l1", "l2", "l3"]
        assert [task["id"] for task in body["tasks"]] == ["t1", "t2", "t3"]

    test_it_reads_all_pages = None  # type: ignore[assignment]  # ClickUp gives lists on one page
    test_a_broken_later_page_leaves_no_half_list = None  # type: ignore[assignment]  # as above


@pytest.mark.parametrize("options", [{"workspace": "../1"}, {"workspace": ""}, {"workspace": "1", "list": "a/b"}])
def test_an_id_that_would_lead_elsewhere_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="is not an id"):
        build_source("clickup", options, secrets={})
