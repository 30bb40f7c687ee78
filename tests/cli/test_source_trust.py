"""Sources of a folder that somebody else wrote: no secret leaves, no host is contacted and nothing outside is read
before the user agrees."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from clew.catalog.consent.consent import source_wish
from clew.catalog.sources.reach import reach_of
from clew.cli import main
from clew.config import SourceConfig
from tests.cli.conftest import Clew

TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
VARIABLE = "SOMEBODYS_TOKEN"


class Listener:
    """A host of a stranger's choice, with what it was sent."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        heard = self.heard

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                heard.append(self.headers.get("Authorization", ""))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"[]")

            def log_message(self, format: str, *args: Any) -> None:
                return None

        self._server = HTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    with closing(Listener()) as one:
        yield one


def write(folder: Path, *tables: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text("\n".join(("[catalog]\nrepository = false", *tables)) + "\n")


def pulls(listener: Listener, **more: str) -> str:
    options = {"kind": "github", "repo": "a/b", "base_url": listener.url, "token": VARIABLE} | more
    lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in options.items())
    return f"[sources.pulls]\n{lines}\nallow = ['127.0.0.0/8']\nattempts = 1"


def awaiting(clew: Clew) -> dict[str, str]:
    return {each["name"]: each["summary"] for each in clew("trust", "--json").json["awaiting"]}


def test_a_secret_is_sent_to_nobody_before_consent_and_to_no_other_host_after(
    clew: Clew, folder: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, TOKEN)
    write(folder, pulls(listener))
    for command in (["domains"], ["ask", "pulls"], ["refresh"], ["refresh", "--all"], ["doctor"]):
        assert "pulls" in clew(*command).err + clew(*command).out
    assert clew("refresh", "--json").json == []
    assert listener.heard == []
    assert "pulls: not trusted yet: run `clew trust`" in clew("domains").err
    assert clew("domains").rows[0][0] == "pulls"
    host = listener.url.removeprefix("http://")
    reached = f"contacts http://{host} in place of api.github.com"
    assert awaiting(clew) == {"pulls": f"{reached}; sends the variable or secret {VARIABLE} as its token"}

    assert clew("trust", "pulls", "--yes").code == 0
    assert clew("refresh").code == 0
    assert listener.heard == [f"Bearer {TOKEN}"]
    for change in ({"base_url": f"http://localhost:{host.partition(':')[2]}"}, {"token": "HOME"}, {"repo": "c/d"}):
        write(folder, pulls(listener, **change))
        assert clew("refresh", "--json").json == []
    assert len(listener.heard) == 1
    assert TOKEN not in clew("trust", "--list", "--json").out + clew("trust", "--json").out


def test_documents_of_a_source_stay_on_the_trail_while_it_waits_for_consent(
    clew: Clew, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "okapi.md").write_text("# Okapi\n\nStripes of the okapi.\n")
    table = f"[sources.far]\nkind = 'local'\nroot = '{outside}'\ndescription = '{{}}'"
    write(folder, table.format("One"))
    assert clew("refresh", "--json").json == []
    assert awaiting(clew) == {"far": f"reads the files below {outside}, outside of this folder"}
    clew("trust", "--yes")
    assert [each["outcome"] for each in clew("refresh", "--json").json] == ["refreshed"]
    write(folder, table.format("Two") + "\nttl_minutes = 1")
    assert "Stripes" in clew("get", "far://resources/okapi.md").out
    write(folder, table.format("Two") + "\nexclude = ['x']")
    assert "dropped" not in clew("refresh").out
    assert clew("get", "far://resources/okapi.md").code == 1
    assert "Okapi" in clew("trail", "ls", "--system", "--schema", "resource.v1").out


def test_a_folder_that_a_link_leads_out_of_is_outside(
    clew: Clew, folder: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first, second = (tmp_path_factory.mktemp(name) for name in ("first", "second"))
    (tmp_path / "docs").symlink_to(first)
    write(folder, "[sources.docs]\nkind = 'local'\nroot = 'docs'")
    clew("trust", "--yes")
    assert awaiting(clew) == {}
    (tmp_path / "docs").unlink()
    (tmp_path / "docs").symlink_to(second)
    assert str(second) in awaiting(clew)["docs"]


def test_a_database_outside_is_not_opened_before_consent(
    clew: Clew, folder: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    place = tmp_path_factory.mktemp("outside") / "shop.db"
    with closing(sqlite3.connect(place)) as database:
        database.executescript("CREATE TABLE orders (id INTEGER);")
    (tmp_path / "link.db").symlink_to(place)
    write(folder, "[sources.shop]\nkind = 'warehouse'\nurl = 'sqlite:///link.db'")
    assert clew("refresh", "--json").json == []
    assert awaiting(clew) == {"shop": f"reads the tables of {place}, outside of this folder"}
    clew("trust", "--yes")
    assert [each["documents"] for each in clew("refresh", "--json").json] == [1]


def test_a_folder_that_stays_at_home_needs_no_consent(clew: Clew, folder: Path, trust_file: Path) -> None:
    for name in ("docs", "here"):
        (folder.parent / name).mkdir()
    with closing(sqlite3.connect(folder.parent / "shop.db")) as database:
        database.executescript("CREATE TABLE orders (id INTEGER);")
    write(
        folder,
        "[sources.docs]\nkind = 'local'\nroot = 'docs'",
        f"[sources.here]\nkind = 'local'\nroot = '{folder.parent}/docs/../here'",
        "[sources.shop]\nkind = 'warehouse'\nurl = 'sqlite:///shop.db'",
    )
    assert "trust" not in clew("domains").err
    assert [each["outcome"] for each in clew("refresh", "--json").json] == ["refreshed"] * 3
    assert [each["kind"] for each in json.loads(trust_file.read_text())["grants"]] == ["trail"]


def test_a_source_that_is_agreed_to_joins_the_domain_that_others_fill(
    clew: Clew, folder: Path, in_trail: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    for place, name in ((outside, "far"), (folder.parent / "docs", "near")):
        place.mkdir(exist_ok=True)
        (place / f"{name}.md").write_text(f"# {name}\n\nAll of {name}.\n")
    write(
        folder,
        "[sources.near]\nkind = 'local'\nroot = 'docs'\ndomain = 'both'",
        f"[sources.far]\nkind = 'local'\nroot = '{outside}'\ndomain = 'both'",
    )

    async def work(app: Any) -> list[int]:
        workspace = await app.workspace()
        numbers = [len(await workspace.look_again())]
        assert await asyncio.to_thread(main, ["trust", "--yes"]) == 0
        await workspace.notice_consent()
        numbers += [len(await workspace.look_again()), len(workspace.catalog.registry.all_domains())]
        assert workspace.tell_problems() == []
        return numbers

    assert in_trail(work) == [1, 2, 1]


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("github", {"repo": "a/b"}, []),
        ("github", {"repo": "a/b", "base_url": "https://api.github.com/"}, []),
        ("github", {"repo": "a/b", "base_url": "http://api.github.com"}, ["http://api.github.com in place of"]),
        ("github", {"repo": "a/b", "base_url": "https://api.github.com.evil.example"}, ["github.com.evil.example in"]),
        ("qase", {"project": "A", "base_url": "not a url"}, []),
        ("drive", {"token": "A"}, ["sends the variable or secret A as its token"]),
        ("drive", {"token": TOKEN}, ["sends the variable or secret [masked] as its token"]),
        ("local", {"root": "~"}, ["outside of this folder"]),
        ("local", {"root": "../other"}, ["/other, outside of this folder"]),
        ("local", {"root": "/"}, ["the files below /, outside"]),
        ("local", {"root": "a/../b"}, []),
        ("local", {"root": "bad\0name"}, []),
        ("local", {"root": 5}, []),
        ("warehouse", {"url": "sqlite:////etc/shop.db"}, ["the tables of /etc/shop.db"]),
        ("warehouse", {"url": "sqlite:///~/shop.db"}, ["outside of this folder"]),
        ("warehouse", {"url": "sqlite:///%2e%2e/shop.db"}, ["outside of this folder"]),
        ("warehouse", {"url": "sqlite:///shop.db"}, []),
        (
            "warehouse",
            {"url": "postgresql://me:hunter2@db.example/shop?sslmode=disable"},
            ["the database postgresql://db.example/shop, with your PGPASSWORD if it is set"],
        ),
        ("warehouse", {"url": "redshift://h/d", "password": "P"}, ["redshift://h/d", "variable or secret P as its"]),
        ("warehouse", {"url": "oracle://h/d"}, []),
        ("nothing", {}, []),
    ],
)
def test_the_reach_of_a_source_is_shown_without_secrets(
    kind: str, options: dict[str, Any], said: list[str], tmp_path: Path
) -> None:
    found = reach_of(kind, options, tmp_path / "project")
    assert len(found) == len(said), found
    assert all(part in whole for part, whole in zip(said, found, strict=True))
    assert "hunter2" not in str(found)


def test_a_wish_covers_every_setting_but_words_and_times(tmp_path: Path) -> None:
    def digest(name: str = "pulls", **more: Any) -> str:
        given = {"kind": "github", "domain": "d", "options": {"repo": "a/b", "token": "T", "timeout_seconds": 1e400}}
        wish = source_wish(name, SourceConfig(**{**given, **more}), tmp_path)
        assert wish is not None
        return wish.digest

    others = [
        digest(),
        digest("\x1b[2J"),
        digest("\n"),
        digest(domain="e"),
        digest(base_path="x"),
        digest(scopes=("staff",)),
        digest(options={"repo": "a/b", "token": "T", "attempts": 10**40}),
    ]
    assert len(set(others)) == len(others)
    assert digest(description="Other", ttl_minutes=1.0) == digest()
