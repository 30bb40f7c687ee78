from __future__ import annotations

import pytest

from clew.catalog.resource import ContentSource
from clew.catalog.sources import build_source
from clew.errors import ConfigError, SourceError
from tests.catalog.sources import shapes
from tests.catalog.sources.contract import HttpContract
from tests.catalog.sources.replay import Given, Replay, as_json


class TestDrive(HttpContract):
    kind = "drive"
    options = {"folder": "folder-1"}  # noqa: RUF012  # read by the contract only
    absent = "nothing-here"

    def shape(self, replay: Replay) -> None:
        shapes.drive(replay)

    async def test_folders_are_entered_once_even_in_a_circle(self, source: ContentSource) -> None:
        listing = await source.list_documents()

        assert [document.id for document in listing.documents] == ["doc-1", "sheet-1", "text-1", "text-2"]

    async def test_binary_and_large_files_are_reported(self, source: ContentSource) -> None:
        skipped = {left_out.document: left_out.reason for left_out in (await source.list_documents()).skipped}

        assert skipped == {
            "logo.png (image-1)": "is not text (image/png)",
            "huge.txt (huge-1)": "has 99,999,999 bytes, over the limit of 2,000,000",
        }
        with pytest.raises(SourceError, match="not text"):
            await source.fetch_content("image-1")

    async def test_a_google_doc_is_exported_as_markdown_and_a_sheet_as_csv(
        self, source: ContentSource, replay: Replay
    ) -> None:
        doc, sheet = await source.fetch_content("doc-1"), await source.fetch_content("sheet-1")

        assert (doc.content_type, doc.body) == ("text/markdown", b"# Refunds\n\nWithin a day.")
        assert (sheet.content_type, sheet.body) == ("text/plain", b"a,b\n1,2")
        exported = [asked.query["mimeType"] for asked in replay.asked if asked.path.endswith("/export")]
        assert exported == ["text/markdown", "text/csv"]

    async def test_a_file_that_turns_out_binary_is_refused(self, source: ContentSource, replay: Replay) -> None:
        replay.script.extend([as_json(shapes.FILES[1]), Given(b"PK\0\0")])

        with pytest.raises(SourceError, match="is binary"):
            await source.fetch_content("text-1")

    async def test_a_search_that_was_not_complete_is_no_list(self, source: ContentSource, replay: Replay) -> None:
        replay.script.append(as_json({"files": [], "incompleteSearch": True}))

        assert "could not search all drives" in await self.failure(source)

    async def test_a_very_long_token_of_a_page_is_sent_back_whole(self, source: ContentSource, replay: Replay) -> None:
        replay.script.append(as_json({"files": [], "nextPageToken": "~" * 3_000}))
        replay.script.append(as_json({"files": []}))

        assert await self.list_all(source) == []
        assert replay.asked[-1].query["pageToken"] == "~" * 3_000

    async def test_a_limit_that_google_tells_by_403_is_waited_for(
        self, source: ContentSource, replay: Replay, waits: list[float]
    ) -> None:
        replay.script.append(as_json({"error": {"errors": [{"reason": "userRateLimitExceeded"}]}}, 403))

        assert await self.list_all(source)
        assert waits == [1.0]


def test_a_folder_that_would_change_the_query_is_refused() -> None:
    with pytest.raises(ConfigError, match="is not an id"):
        build_source("drive", {"folder": "x' or 'a' = 'a"}, secrets={})
