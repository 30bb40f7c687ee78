"""Pages are read only from allowed hosts at public addresses, without redirects to other hosts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network

import msgspec
import pytest

from clew.errors import InvalidInput, ToolFailure
from clew.tools.fetch import fetch_tools
from clew.tools.html_text import html_to_text
from clew.tools.permissions.policy import DEFAULT, Policy, extend
from clew.tools.permissions.rules import parse_rule
from tests.tools.working_folder import ANN, Toolbox

LOCAL = [ip_network("127.0.0.0/8")]
OPEN = extend(DEFAULT, [parse_rule("fetch(good.example)", "allow"), parse_rule("fetch(*.good.example)", "allow")])


async def resolve(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


def box(policy: Policy = OPEN, **more: object) -> Toolbox:
    return Toolbox(fetch_tools(policy, **{"allow": LOCAL, "resolve": resolve, **more}))  # type: ignore[arg-type]


@asynccontextmanager
async def serving(answer: Callable[[str], bytes]) -> AsyncIterator[tuple[int, list[str]]]:
    """A plain HTTP server with scripted answers that records its requests."""
    asked: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head)
        writer.write(answer(head.split(" ")[1]))
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], asked


def page(content: bytes, kind: str = "text/plain", status: str = "200 OK", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n{more}"
    return f"{head}Connection: close\r\n\r\n".encode() + content


async def test_a_page_of_an_allowed_host_is_read_as_text_without_identifying_headers() -> None:
    html = b"<html><head><title>Hello</title><script>bad()</script></head><body><h1>One</h1><p>Two\x1b[2J</body>"
    async with serving(lambda path: page(html, "text/html; charset=utf-8")) as (port, asked):
        shown = await box().call("fetch", url=f"http://good.example:{port}/a?b=c")
    assert shown.startswith(f"http://good.example:{port}/a?b=c answered 200, characters 0 to ")
    assert "````text\nHello\n\n# One\n\nTwo" in shown
    assert "\x1b" not in shown
    assert "bad()" not in shown
    assert asked[0].startswith("GET /a?b=c HTTP/1.1\r\n")
    assert f"Host: good.example:{port}" in asked[0]
    assert "cookie" not in asked[0].lower()
    assert "authorization" not in asked[0].lower()


async def test_by_default_no_host_is_allowed() -> None:
    with pytest.raises(ToolFailure, match=r"no rule allows fetching from good\.example.*Ask the user") as caught:
        await box(DEFAULT).call("fetch", url="http://good.example/")
    assert caught.value.kind == "permission"


async def test_consent_allows_a_fetch_unless_a_rule_denies_it() -> None:
    asked = msgspec.structs.replace(ANN, permitted=True)
    async with serving(lambda path: page(b"fine")) as (port, _):
        assert "fine" in await box(DEFAULT).call("fetch", asked, url=f"http://asked.example:{port}/")
    denied = extend(DEFAULT, [parse_rule("fetch(asked.example)", "deny")])
    with pytest.raises(ToolFailure, match="no rule allows fetching"):
        await box(denied).call("fetch", asked, url="http://asked.example/")


async def test_consent_does_not_cover_redirects() -> None:
    asked = msgspec.structs.replace(ANN, permitted=True)
    away = page(b"", status="302 Found", more="Location: http://evil.example/\r\n")
    async with serving(lambda path: away) as (port, _):
        with pytest.raises(ToolFailure, match=r"no rule allows fetching from evil\.example"):
            await box(DEFAULT).call("fetch", asked, url=f"http://asked.example:{port}/")


async def test_a_redirect_is_followed_only_to_hosts_that_are_allowed() -> None:
    def answer(path: str) -> bytes:
        targets = {"/in": "/end", "/sub": "http://a.good.example:PORT/end", "/out": "http://evil.example/"}
        if path in targets:
            return page(b"", status="302 Found", more=f"Location: {targets[path].replace('PORT', str(ports[0]))}\r\n")
        return page(b"the end") if path == "/end" else page(b"", status="302 Found", more="Location: /loop\r\n")

    ports: list[int] = []
    async with serving(answer) as (port, asked):
        ports.append(port)
        for path in ("/in", "/sub"):
            assert "the end" in await box().call("fetch", url=f"http://good.example:{port}{path}")
        before = len(asked)
        with pytest.raises(ToolFailure, match=r"no rule allows fetching from evil\.example"):
            await box().call("fetch", url=f"http://good.example:{port}/out")
        assert len(asked) == before + 1
        with pytest.raises(ToolFailure, match="redirects more than 5 times"):
            await box().call("fetch", url=f"http://good.example:{port}/loop")


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:127.0.0.1", "192.168.0.1"]
)
async def test_an_allowed_host_with_a_private_address_is_refused(address: str) -> None:
    async def leads_inside(host: str, port: int) -> list[str]:
        return ["93.184.215.14", address]

    with pytest.raises(ToolFailure, match="nothing is fetched from") as caught:
        await box(allow=[], resolve=leads_inside).call("fetch", url="http://good.example/")
    assert caught.value.kind == "permission"


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://good.example/",
        "http://user:pw1234@good.example/",
        "good.example",
        "",
        "http://a b/",
    ],
)
async def test_an_invalid_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        await box().call("fetch", url=url)
    assert "pw1234" not in str(caught.value)


async def test_a_large_compressed_or_binary_response_is_refused() -> None:
    answers = {
        "/large": page(b"x" * 2_000),
        "/packed": page(b"x", more="Content-Encoding: gzip\r\n"),
        "/image": page(b"x", "image/png"),
        "/broken": b"nonsense\r\n\r\n",
    }
    async with serving(answers.__getitem__) as (port, _):
        tools = box(max_bytes=1_000)
        for path, said in (
            ("/large", "more than 1,000 bytes"),
            ("/packed", "compressed"),
            ("/image", "only text"),
            ("/broken", "cannot be read"),
        ):
            with pytest.raises((InvalidInput, ToolFailure), match=said):
                await tools.call("fetch", url=f"http://good.example:{port}{path}")


async def test_a_response_without_end_times_out() -> None:
    left = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        left.set()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    async with server:
        with pytest.raises(ToolFailure, match="no complete response") as caught:
            await box(seconds=0.3).call("fetch", url=f"http://good.example:{server.sockets[0].getsockname()[1]}/")
        await left.wait()
    assert caught.value.kind == "timeout"


async def test_a_long_page_is_read_in_parts_and_a_failed_one_says_its_status() -> None:
    async with serving(lambda path: page(b"abcdefghij", status="404 Not Found")) as (port, _):
        first = await box().call("fetch", url=f"http://good.example:{port}/", limit=4)
        assert "answered 404, characters 0 to 4 of 10. Go on with start 4." in first
        assert "````text\nabcd\n````" in first
        assert "````text\nefghij\n````" in await box().call("fetch", url=f"http://good.example:{port}/", start=4)


def test_html_becomes_readable_text() -> None:
    html = """<!doctype html><title>T &amp; t</title><style>x{}</style><body><nav>Menu</nav>
    <h2>Head</h2><p>Some <b>bold</b>
    text.<br>Next</p><ul><li>one</li><li><a href="https://a.example/x">two</a></ul>
    <table><tr><th>a<td>b</tr></table><pre>  keep\n    this</pre>
    <script>if (a < b) {}</script><template>no</template>"""
    text = html_to_text(html)
    assert text.startswith("T & t\n\nMenu\n\n## Head\n\nSome bold text.\nNext\n\n- one\n- two (https://a.example/x)")
    assert "| a | b" in text
    assert "  keep\n    this" in text
    assert "if (a" not in text
    assert "no" not in text.split()


@pytest.mark.parametrize(
    "html", ["", "<", "<p", "</p></p>", "<svg>" * 5_000, "<div>" * 50_000, "&#x110000;", "<![CDATA[", "<!--"]
)
def test_broken_html_is_read_as_far_as_possible(html: str) -> None:
    assert html_to_text(f"{html}<p>end</p>") is not None
