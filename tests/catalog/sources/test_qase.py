from __future__ import annotations

import json

import pytest

from clew.catalog.resource import ContentSource
from clew.catalog.sources import build_source
from clew.errors import ConfigError
from tests.catalog.sources import shapes
from tests.catalog.sources.contract import HttpContract
from tests.catalog.sources.replay import Replay, as_json


class QaseContract(HttpContract):
    kind = "qase"
    absent = "404"

    def shape(self, replay: Replay) -> None:
        shapes.qase(replay)


class TestSuites(QaseContract):
    options = {"project": "SHOP"}  # noqa: RUF012  # read by the contract only

    async def test_a_suite_has_its_cases_over_all_pages_beside_its_fields(self, source: ContentSource) -> None:
        body = json.loads((await source.fetch_content("1")).body)

        assert body["title"] == "Suite 1"
        assert [case["id"] for case in body["cases"]] == [11, 12, 13]

    async def test_a_case_in_no_suite_is_reported(self, source: ContentSource) -> None:
        [left_out] = (await source.list_documents()).skipped

        assert left_out.document == "case 15"
        assert "items = cases" in left_out.reason

    async def test_a_changed_case_changes_the_version_of_its_suite_alone(
        self, source: ContentSource, replay: Replay
    ) -> None:
        before = {document.id: document.version for document in (await source.list_documents()).documents}
        changed = {"id": 11, "suite_id": 1, "title": "Case 11, reworded"}
        counts = {"total": 1, "filtered": 1, "count": 1}
        whole = replay.routes["/v1/case/SHOP"]
        replay.routes["/v1/case/SHOP"] = lambda asked: (
            as_json({"result": {**counts, "total": 5, "filtered": 5, "entities": [changed]}})
            if asked.query["offset"] == "0"
            else whole(asked)
        )
        after = {document.id: document.version for document in (await source.list_documents()).documents}

        assert [id for id in before if before[id] != after[id]] == ["1"]


class TestCases(QaseContract):
    options = {"project": "SHOP", "items": "cases"}  # noqa: RUF012  # read by the contract only

    async def test_every_case_is_a_document(self, source: ContentSource) -> None:
        listing = await source.list_documents()

        assert [document.id for document in listing.documents] == ["11", "12", "13", "14", "15"]
        assert not listing.skipped

    async def test_the_token_goes_into_the_header_that_qase_wants(self, source: ContentSource, replay: Replay) -> None:
        await source.list_documents()

        assert replay.asked[0].headers["token"] == "t0ken-that-nobody-may-see"


def test_a_project_that_is_no_code_is_refused() -> None:
    with pytest.raises(ConfigError, match="code of a project"):
        build_source("qase", {"project": "../x"}, secrets={})
