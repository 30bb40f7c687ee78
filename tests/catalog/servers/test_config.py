"""`.clew/mcp.json`: read with clear complaints, written back the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.catalog.route import check_domain_name
from clew.catalog.servers import McpServerConfig, read_servers, write_servers
from clew.catalog.servers.config import MAX_SERVERS, Features, Filter, derive_id
from clew.catalog.servers.login.auth_settings import Auth
from clew.catalog.servers.value_references import FromEnv, FromSecret
from clew.errors import ConfigError, InvalidInput, ReadOnly


def put(folder: Path, servers: Any) -> Path:
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return folder


@pytest.mark.req("PLA-24")
def test_a_file_of_the_common_format_is_read_with_our_own_keys(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "files": {
                "command": "npx",
                "args": ["-y", "server"],
                "env": {"ROOT": "/srv", "KEY": {"$env": "FILES_KEY"}},
            },
            "GitHub MCP": {
                "type": "http",
                "url": "https://mcp.example.com/mcp",
                "headers": {"X-Team": "a"},
                "auth": {"type": "oauth", "client_id": "clew", "token": {"$secret": "github"}},
                "features": {"completions": True, "logging": True},
                "tools": {"deny": ["delete"]},
                "timeout_seconds": 5,
                "scopes": ["code"],
            },
            "asleep": {"command": "x", "disabled": True},
        },
    )
    files, github, asleep = read_servers(tmp_path)
    assert (files.id, files.transport, files.command) == ("files", "stdio", ("npx", "-y", "server"))
    assert files.env == {"ROOT": "/srv", "KEY": FromEnv("FILES_KEY")}
    assert (github.id, github.name, github.transport) == ("github-mcp", "GitHub MCP", "http")
    assert github.auth == Auth(type="oauth", client_id="clew", token=FromSecret("github"))
    assert github.features == Features(completions=True, logging=True)
    assert github.tools == Filter(deny=("delete",))
    assert github.timeout_seconds == 5
    assert not asleep.enabled


def test_written_entries_are_read_back_unchanged(tmp_path: Path) -> None:
    servers = [
        McpServerConfig(id="a", name="A", transport="stdio", command=("x", "y"), env={"K": FromEnv("K")}, cwd="sub"),
        McpServerConfig(
            id="b",
            name="B",
            transport="http",
            url="https://example.com/mcp",
            auth=Auth(type="bearer", token=FromSecret("b")),
            extra_headers={"X": "1"},
            enabled=False,
            scopes=("s",),
        ),
    ]
    path = write_servers(tmp_path, servers)
    assert read_servers(tmp_path) == servers
    assert path.stat().st_mode & 0o077 == 0


def test_without_a_file_there_are_no_servers(tmp_path: Path) -> None:
    assert read_servers(tmp_path) == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "needs either a command or a url"),
        ({"command": "x", "url": "http://y"}, "needs either a command or a url"),
        ({"command": "x", "comand": "y"}, "comand: is not a key here. Did you mean command"),
        ({"command": 7}, "command: must be text or a list, not a whole number"),
        (7, "server 'wrong': must be an object, not a whole number"),
        ({"command": "x", "tools": {"alow": []}}, r"tools\.alow: is not a key here. Did you mean allow"),
        ({"url": "http://x", "auth": {"redirect_port": "x"}}, "auth: redirect_port: must be a whole number, not text"),
        ({"url": "ftp://x"}, "url must begin with http:// or https://"),
        ({"url": "http://x", "type": "sse"}, "uses the old SSE transport"),
        ({"url": "http://x", "type": "stdio"}, "type 'stdio' does not fit"),
        ({"command": "x", "env": {"A": 1}}, r"env\.A must be text"),
        ({"command": "x", "timeout_seconds": 0}, "timeout_seconds must be above 0"),
        ({"url": "http://x", "auth": {"type": "magic"}}, "auth.type 'magic' is unknown.*oauth, bearer, none"),
        ({"url": "http://x", "auth": {"tokn": 1}}, "auth.tokn is not a setting"),
    ],
)
def test_a_mistake_is_named_with_its_server(tmp_path: Path, entry: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        read_servers(put(tmp_path, {"wrong": entry}))
    assert "wrong" in str(error.value)


def test_a_token_that_is_written_out_is_refused_without_showing_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"auth\.token has the value itself") as error:
        read_servers(put(tmp_path, {"web": {"url": "http://x", "auth": {"token": "hush-hush"}}}))
    assert "hush" not in str(error.value)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"mcpServers": []}', "\x00", "[" * 100_000])
def test_a_broken_file_is_a_config_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "mcp.json").write_text(text)
    with pytest.raises(ConfigError, match=r"mcp\.json"):
        read_servers(tmp_path)


@given(names=st.lists(st.text(max_size=80), max_size=8))
def test_every_name_gives_a_domain_name_of_its_own(names: list[str]) -> None:
    taken: set[str] = set()
    for name in names:
        taken.add(check_domain_name(derive_id(name, taken)))
    assert len(taken) == len(names)


def test_an_id_that_is_no_domain_name_is_refused() -> None:
    with pytest.raises(InvalidInput):
        McpServerConfig(id="Not One", transport="stdio", command=("x",))


def test_nothing_that_may_be_secret_is_in_a_repr() -> None:
    config = McpServerConfig(
        id="a", transport="stdio", command=("/opt/x", "--key=hush"), env={"K": "hush"}, extra_headers={"H": "hush"}
    )
    assert "hush" not in repr(config)
    assert "hush" not in str([config])


def test_comments_and_last_commas_are_no_harm(tmp_path: Path) -> None:
    text = '// ours\n{"mcpServers": {"a": {"url": "https://a.example/*x*/", /* ü */ "scopes": ["//",],},},}\n'
    (tmp_path / "mcp.json").write_text(text)
    (server,) = read_servers(tmp_path)
    assert (server.url, server.scopes) == ("https://a.example/*x*/", ("//",))


def test_nothing_is_written_through_links(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    target = tmp_path_factory.mktemp("target") / "kept"
    target.write_text("{}")
    server = McpServerConfig(id="a", transport="stdio", command=("a",))
    (tmp_path / "mcp.json.new").symlink_to(target)
    write_servers(tmp_path, [server])
    assert target.read_text() == "{}"
    (tmp_path / "mcp.json").unlink()
    (tmp_path / "mcp.json").symlink_to(target)
    with pytest.raises(ReadOnly, match="leads out of"):
        write_servers(tmp_path, [server])
    assert target.read_text() == "{}"


def test_a_file_with_very_many_servers_is_refused(tmp_path: Path) -> None:
    servers = {f"s{number}": {"command": "true"} for number in range(MAX_SERVERS + 1)}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with pytest.raises(ConfigError, match=f"more than {MAX_SERVERS} servers"):
        read_servers(tmp_path)
