"""The contract of every source, and the additional contract of every source over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from clew.catalog.formats import ALL, find_format
from clew.catalog.resource import ContentSource, RawDocument
from clew.catalog.sources import build_source
from clew.catalog.sources.http import HttpReader
from clew.errors import NotFound, SourceError
from tests.catalog.sources.replay import Given, Replay, as_json, run_replay

TOKEN = "t0ken-that-nobody-may-see"
HOSTILE_IDS = (
    "",
    ".",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "a/../b",
    "http://169.254.169.254/latest",
    "1?access=all",
    "1#x",
    "1\r\nX-Injected: yes",
    "\0",
    "1/files",
    "٣",
    "x" * 5_000,
)


class SourceContract:
    """Subclasses have a fixture `source` with at least two documents, and the id of one that it could have but has
    not."""

    absent: str

    @pytest.mark.req("ERN-17")
    async def test_it_lists_documents_each_with_an_id_of_its_own_in_the_same_order_every_time(
        self, source: ContentSource
    ) -> None:
        documents = (await source.list_documents()).documents

        assert len(documents) >= 2
        assert len({document.id for document in documents}) == len(documents)
        assert all(document.id and document.name and document.content_type for document in documents)
        assert (await source.list_documents()).documents == documents

    @pytest.mark.req("ERN-17")
    async def test_every_listed_document_can_be_fetched_and_a_format_of_ours_reads_it(
        self, source: ContentSource
    ) -> None:
        for document in (await source.list_documents()).documents:
            content = await source.fetch_content(document.id)
            found = find_format(content.content_type, ALL)

            assert (content.id, content.name, content.content_type) == (
                document.id,
                document.name,
                document.content_type,
            )
            assert content.body
            assert found is not None
            assert found.parse(content, "base")

    @pytest.mark.req("ERN-17")
    async def test_an_id_that_it_does_not_have_is_not_found(self, source: ContentSource) -> None:
        await source.list_documents()

        with pytest.raises(NotFound):
            await source.fetch_content(self.absent)

    @pytest.mark.parametrize("id", HOSTILE_IDS)
    async def test_a_hostile_id_gives_an_error_and_nothing_else(self, source: ContentSource, id: str) -> None:
        with pytest.raises((SourceError, NotFound)) as error:
            await source.fetch_content(id)

        assert len(str(error.value)) < 1_000

    async def test_a_listed_version_stays_while_nothing_changes(self, source: ContentSource) -> None:
        def versions(documents: Any) -> dict[str, str]:
            return {document.id: document.version for document in documents}

        first = versions((await source.list_documents()).documents)
        assert versions((await source.list_documents()).documents) == first

    async def test_its_id_names_its_kind_and_closing_twice_is_harmless(self, source: ContentSource) -> None:
        assert source.id.startswith(f"{source.name}:")
        await source.close()
        await source.close()


class HttpContract(SourceContract):
    """Subclasses say what is built from which options, and put the shapes of the API on the server."""

    kind: str
    options: dict[str, Any]

    def shape(self, replay: Replay) -> None:
        raise NotImplementedError

    @pytest.fixture
    def replay(self) -> Iterator[Replay]:
        with run_replay(Replay(token=TOKEN)) as running:
            self.shape(running)
            yield running

    @pytest.fixture
    def waits(self, monkeypatch: pytest.MonkeyPatch) -> list[float]:
        """The pause of the source, which is recorded and skipped."""
        waited: list[float] = []

        async def note(seconds: float) -> None:
            waited.append(seconds)

        build = HttpReader.__init__
        monkeypatch.setattr(
            HttpReader, "__init__", lambda self, *given, **named: build(self, *given, sleep=note, **named)
        )
        return waited

    @pytest.fixture
    async def source(self, replay: Replay, waits: list[float]) -> AsyncIterator[ContentSource]:
        built = self.build(replay)
        yield built
        await built.close()

    def build(self, replay: Replay, token: str = TOKEN, **more: Any) -> ContentSource:
        options = {"base_url": replay.url, "allow": ["127.0.0.0/8"], "token": "THE_TOKEN", **self.options, **more}
        return build_source(self.kind, options, secrets={"THE_TOKEN": token})

    async def list_all(self, source: ContentSource) -> list[RawDocument]:
        try:
            return list((await source.list_documents()).documents)
        finally:
            await source.close()

    async def failure(self, source: ContentSource) -> str:
        with pytest.raises(SourceError) as error:
            await self.list_all(source)
        assert TOKEN not in str(error.value)
        assert "\n" not in str(error.value)
        return str(error.value)

    async def test_it_reads_all_pages(self, source: ContentSource, replay: Replay) -> None:
        documents = await self.list_all(source)

        assert len(documents) >= 3
        assert len(replay.asked) >= 2

    async def test_a_limit_of_rate_is_waited_for_as_long_as_the_server_says(
        self, source: ContentSource, replay: Replay, waits: list[float]
    ) -> None:
        replay.script.append(as_json({"message": "slow down"}, 429, Retry_After="7"))
        replay.script.append(as_json({}, 503))

        assert await self.list_all(source)
        assert waits == [7.0, 2.0]

    async def test_a_limit_that_outlasts_the_deadline_is_an_error(self, source: ContentSource, replay: Replay) -> None:
        replay.script.append(as_json({}, 429, Retry_After="3600"))

        assert "3,600 seconds" in await self.failure(source)
        assert len(replay.asked) == 1

    async def test_a_service_that_stays_down_is_given_up(
        self, source: ContentSource, replay: Replay, waits: list[float]
    ) -> None:
        replay.script.extend([as_json({}, 502)] * 20)

        assert "502" in await self.failure(source)
        assert waits == [1.0, 2.0, 4.0, 8.0, 16.0]

    @pytest.mark.parametrize("status", [401, 403])
    async def test_an_expired_token_is_named_with_the_way_to_a_new_one(
        self, source: ContentSource, replay: Replay, status: int
    ) -> None:
        replay.script.append(as_json({"message": f"{TOKEN} is no longer valid"}, status))

        said = await self.failure(source)
        assert "expired" in said
        assert "token" in said.partition(". ")[2]
        assert len(replay.asked) == 1

    async def test_the_wrong_token_is_refused_without_being_shown(self, replay: Replay) -> None:
        source = self.build(replay, token="another-secret-token")

        with pytest.raises(SourceError) as error:
            await self.list_all(source)
        assert "another-secret-token" not in str(error.value) + repr(source) + repr(vars(source)) + source.id

    @pytest.mark.parametrize(
        "body",
        [b"", b"<html>Sign in</html>", b'{"files": [', b"[{}]", b"{}", b"null", b'"text"', b"\xff\xfe", b"[" * 100_000],
        ids=["empty", "page", "half", "fields", "object", "null", "text", "bytes", "deep"],
    )
    async def test_a_broken_answer_is_an_error_that_names_the_path_alone(
        self, source: ContentSource, replay: Replay, body: bytes
    ) -> None:
        replay.script.append(Given(body))

        said = await self.failure(source)
        assert "/" in said
        assert "?" not in said.partition(": ")[2]

    async def test_a_broken_later_page_leaves_no_half_list(self, source: ContentSource, replay: Replay) -> None:
        await self.list_all(source)
        paths = [request.path for request in replay.asked]
        replay.asked.clear()
        repeated = next(path for path in paths if paths.count(path) > 1)
        whole = replay.routes[repeated]
        replay.routes[repeated] = lambda request: (
            Given(b'{"cut', cut=3) if any(earlier.path == repeated for earlier in replay.asked[:-1]) else whole(request)
        )

        await self.failure(source)

    async def test_a_connection_that_breaks_is_tried_again(
        self, source: ContentSource, replay: Replay, waits: list[float]
    ) -> None:
        replay.script.append(Given(json.dumps([1] * 100).encode(), cut=10))

        assert await self.list_all(source)
        assert waits == [1.0]

    async def test_a_server_that_never_answers_is_left(self, replay: Replay, waits: list[float]) -> None:
        replay.script.extend([Given(held=True)] * 2)
        source = self.build(replay, timeout_seconds=0.05, attempts=2)

        assert "did not answer" in await self.failure(source)
        assert waits == [1.0]

    async def test_an_oversized_answer_is_not_read_to_its_end(self, replay: Replay, waits: list[float]) -> None:
        replay.script.append(Given(b"[" + b"1," * 12_000_000))
        source = self.build(replay)

        assert "answered more than" in await self.failure(source)
        assert waits == []

    async def test_a_redirect_to_another_host_is_not_followed(self, source: ContentSource, replay: Replay) -> None:
        with run_replay(Replay()) as other:
            replay.script.append(Given(status=302, headers={"Location": f"{other.url}/steal?secret=1"}))

            said = await self.failure(source)
            assert "redirects to another host" in said
            assert "secret=1" not in said
            assert other.asked == []

    async def test_redirects_on_the_same_host_are_followed_but_not_for_ever(
        self, source: ContentSource, replay: Replay
    ) -> None:
        elsewhere = Given(status=301, headers={"Location": "/elsewhere"})
        replay.script.extend([elsewhere] * 10)

        assert "redirects more than" in await self.failure(source)

    async def test_without_leave_it_does_not_go_to_a_private_address(self, replay: Replay) -> None:
        source = self.build(replay, allow=[])

        assert "loopback" in await self.failure(source)
        assert replay.asked == []
