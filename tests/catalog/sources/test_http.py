from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any

import pytest

from clew.catalog.sources.http import Api, HttpReader, HttpSettings, wait_named_by
from clew.catalog.sources.http_client import SourceResponse
from clew.clock import ManualClock
from clew.errors import ConfigError, NotFound, SourceError
from tests.catalog.sources.replay import Given, Replay, as_json, run_replay

SECRET = "hush-hush"
API = Api(source="test", base_url="https://api.acme.test", scheme="Bearer", renew="Ask for a new token")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def replay() -> Iterator[Replay]:
    with run_replay(Replay()) as running:
        running.routes["/ok"] = lambda asked: as_json({"query": asked.query})
        yield running


class Readers:
    """Makes readers that wait for nothing, and closes them."""

    def __init__(self, url: str, clock: ManualClock) -> None:
        self._url = url
        self._clock = clock
        self._open: list[HttpReader] = []
        self.waits: list[float] = []

    def __call__(self, *, token: str = SECRET, resolve: Any = None, **settings: Any) -> HttpReader:
        async def note(seconds: float) -> None:
            self.waits.append(seconds)

        chosen = HttpSettings(**{"base_url": self._url, "allow": ("127.0.0.0/8",), **settings})
        more = {"resolve": resolve} if resolve else {}
        self._open.append(HttpReader(API, chosen, token=token, clock=self._clock, sleep=note, **more))
        return self._open[-1]

    async def close(self) -> None:
        for reader in self._open:
            await reader.close()


@pytest.fixture
async def readers(replay: Replay, clock: ManualClock) -> AsyncIterator[Readers]:
    made = Readers(replay.url, clock)
    yield made
    await made.close()


async def failure(reader: HttpReader, path: str = "/ok", **more: Any) -> str:
    with pytest.raises(SourceError) as error:
        await reader.get(path, **more)
    assert SECRET not in str(error.value)
    return str(error.value)


# -- asking -------------------------------------------------------------------------------------------------


async def test_a_query_is_escaped_and_the_token_sent_in_its_header(readers: Readers, replay: Replay) -> None:
    found = await readers().get_json("/ok", dict[str, Any], {"q": "a&b=ü #?", "n": 1})

    assert found == {"query": {"q": "a&b=ü #?", "n": "1"}}
    assert replay.asked[0].headers["authorization"] == f"Bearer {SECRET}"


async def test_without_a_token_no_header_is_sent_and_a_refusal_says_that_one_is_needed(
    readers: Readers, replay: Replay
) -> None:
    replay.script.append(as_json({}, 401))

    assert "a token is needed. Ask for a new token" in await failure(readers(token=""))
    assert "authorization" not in replay.asked[0].headers


async def test_a_plain_answer_is_asked_for_and_a_packed_one_is_refused_unopened(
    readers: Readers, replay: Replay
) -> None:
    bomb = gzip.compress(gzip.compress(b" " * 50_000_000))
    for encoding in ("gzip", "gzip, gzip", "br", "x-unknown"):
        replay.script.append(Given(bomb, headers={"Content-Encoding": encoding}))
        assert "sent a compressed answer" in await failure(readers(max_bytes=1_000_000))

    replay.script.append(Given(b'{"a": 1}', headers={"Content-Encoding": "Identity"}))
    assert await readers().get_json("/ok", dict[str, int]) == {"a": 1}
    assert {asked.headers["accept-encoding"] for asked in replay.asked} == {"identity"}


async def test_an_answer_over_the_limit_is_stopped(readers: Readers, replay: Replay) -> None:
    replay.script.append(Given(b" " * 2_000))
    assert "more than 1,000 bytes" in await failure(readers(max_bytes=1_000))


async def test_many_requests_at_once_share_one_reader(readers: Readers) -> None:
    reader = readers()

    found = await asyncio.gather(*(reader.get_json("/ok", dict[str, Any], {"n": n}) for n in range(40)))

    assert [entry["query"]["n"] for entry in found] == [str(n) for n in range(40)]


async def test_a_closed_reader_opens_again_when_it_is_asked(readers: Readers) -> None:
    reader = readers()
    await reader.get("/ok")
    await reader.close()

    assert (await reader.get("/ok")).status == 200


async def test_a_named_document_that_is_gone_is_not_found_and_any_other_path_an_error(readers: Readers) -> None:
    with pytest.raises(NotFound, match="'17'"):
        await readers().get("/gone", document="17")

    assert "/gone is not there (404)" in await failure(readers(), "/gone")


async def test_other_refusals_repeat_what_the_server_says_but_never_the_token(readers: Readers, replay: Replay) -> None:
    replay.script.append(as_json({"message": f"bad\r\nrequest {SECRET}"}, 400))

    said = await failure(readers())
    assert "answered 400" in said
    assert "***" in said


# -- waiting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status", "wait"),
    [
        ({"retry-after": "12"}, 429, 12.0),
        ({"retry-after": "0"}, 503, 0.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 GMT"}, 429, 60.0),
        ({"retry-after": "Thu, 01 Jan 2026 00:01:00 -0000"}, 429, 60.0),
        ({"retry-after": "Thu, 01 Jan 2015 00:00:00 GMT"}, 429, 0.0),
        ({"retry-after": "soon"}, 429, None),
        ({"retry-after": "-5"}, 429, None),
        ({"retry-after": "9" * 400}, 429, None),
        ({"retry-after": "٣"}, 429, None),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 90)}, 429, 90.0),
        ({"x-ratelimit-reset": str(int(NOW.timestamp()) + 90)}, 502, None),
        ({"x-ratelimit-reset": "never"}, 429, None),
        ({}, 429, None),
    ],
)
def test_the_pause_that_a_server_requests(headers: dict[str, str], status: int, wait: float | None) -> None:
    assert wait_named_by(SourceResponse(status=status, headers=headers, body=b""), NOW) == wait


async def test_waits_grow_to_a_limit_and_end_at_the_deadline(readers: Readers, replay: Replay) -> None:
    replay.script.extend([as_json({}, 500)] * 30)

    assert "keeps answering 500" in await failure(readers(attempts=30, deadline_seconds=100.0))
    assert readers.waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


async def test_an_unknown_host_is_an_error_after_all_attempts(readers: Readers) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        raise OSError(-2, "Name or service not known")

    assert "Name or service not known" in await failure(readers(resolve=resolve, attempts=2))
    assert readers.waits == [1.0]


async def test_a_request_that_is_cancelled_ends_at_once(readers: Readers, replay: Replay) -> None:
    replay.script.append(Given(held=True))
    asking = asyncio.create_task(readers().get("/ok"))
    while not replay.asked:
        await asyncio.sleep(0)
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking


# -- where it may go ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "fe80::1", "::ffff:127.0.0.1", "100.64.0.1", "0.0.0.0"],
)
async def test_a_name_that_leads_to_an_inner_address_is_refused(readers: Readers, replay: Replay, address: str) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["93.184.216.34", address]

    said = await failure(readers(resolve=resolve, base_url="http://public.test", allow=()))
    assert f"public.test leads to {ip_address(address)}, " in said
    assert "`allow`" in said
    assert replay.asked == []


async def test_a_name_that_changes_its_address_is_checked_at_every_request(readers: Readers, replay: Replay) -> None:
    places = iter(["127.0.0.1", "127.0.0.2"])

    async def resolve(host: str, port: int) -> Sequence[str]:
        return [next(places)]

    port = replay.url.rpartition(":")[2]
    reader = readers(resolve=resolve, base_url=f"http://api.acme.test:{port}", allow=("127.0.0.1/32",))
    await reader.get("/ok")

    assert replay.asked[0].headers["host"] == f"api.acme.test:{port}"
    assert "127.0.0.2" in await failure(reader)


async def test_a_redirect_to_an_inner_address_of_the_same_name_is_refused(readers: Readers, replay: Replay) -> None:
    places = iter(["127.0.0.1", "169.254.169.254"])

    async def resolve(host: str, port: int) -> Sequence[str]:
        return [next(places)]

    port = replay.url.rpartition(":")[2]
    replay.script.append(Given(status=307, headers={"Location": "/ok"}))
    reader = readers(resolve=resolve, base_url=f"http://api.acme.test:{port}", allow=("127.0.0.0/8",))

    assert "169.254.169.254" in await failure(reader)


@pytest.mark.parametrize(
    "location",
    [
        "//evil.test/x",
        "https://127.0.0.1/x",
        "http://127.0.0.1:1/x",
        "file:///etc/passwd",
        "http://u:p@127.0.0.1/",
        "http://[",
    ],
)
async def test_no_redirect_leaves_the_origin(readers: Readers, replay: Replay, location: str) -> None:
    replay.script.append(Given(status=302, headers={"Location": location}))

    await failure(readers())
    assert len(replay.asked) == 1


async def test_a_redirect_within_the_origin_is_followed(readers: Readers, replay: Replay) -> None:
    replay.script.append(Given(status=301, headers={"Location": f"{replay.url}/ok?moved=1"}))

    assert await readers().get_json("/old", dict[str, Any]) == {"query": {"moved": "1"}}


# -- settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.test",
        "a.test",
        "http://user:hush-hush@a.test",
        "https://a.test/?token=hush-hush",
        "http://a b/",
        "http://",
    ],
)
def test_a_base_url_that_cannot_be_used_is_refused_without_showing_its_secrets(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        HttpReader(API, HttpSettings(base_url=url))
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("token", ["hush-hush\nX-Evil: 1", "hush-hushé", "hush-hush\0"])
def test_a_token_that_no_header_can_hold_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(ConfigError) as error:
        HttpReader(API, HttpSettings(), token=token)
    assert SECRET not in str(error.value)


async def test_a_line_end_after_a_token_does_not_belong_to_it(readers: Readers, replay: Replay) -> None:
    await readers(token=f"{SECRET}\n").get("/ok")

    assert replay.asked[0].headers["authorization"] == f"Bearer {SECRET}"


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="allow"):
        HttpReader(API, HttpSettings(allow=("everything",)))
