"""Servers of other clients are found in their own files; secrets stay there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from clew.catalog.servers import import_servers, project_files, read_servers, user_files, write_servers
from clew.catalog.servers.config import McpServerConfig
from clew.catalog.servers.login.auth_settings import Auth
from clew.catalog.servers.value_references import FromEnv

TOKEN = "ghp_" + "a1B2c3D4" * 4

FILES = {
    ".mcp.json": json.dumps(
        {"mcpServers": {"github": {"command": "docker", "args": ["run", "gh"], "env": {"GITHUB_TOKEN": TOKEN}}}}
    ),
    ".cursor/mcp.json": json.dumps(
        {
            "mcpServers": {
                "search": {"url": "https://search.example/mcp?api_key=" + TOKEN, "headers": {"X-Team": "blue"}}
            }
        }
    ),
    ".vscode/mcp.json": """{
        // VS Code asks for this one
        "inputs": [{"id": "api-key", "type": "promptString", "password": true}],
        "servers": {"maps": {"type": "http", "url": "https://maps.example/mcp",
                             "headers": {"Authorization": "Bearer ${input:api-key}"}},
                    "old": {"type": "sse", "url": "https://old.example/sse"},},
    }""",
    ".zed/settings.json": """{
        "theme": "One // Dark", /* not ours */
        "context_servers": {
            "notes": {"source": "custom", "command": "notes", "args": ["--stdio"], "env": {}},
            "older": {"command": {"path": "older", "args": ["-x"], "env": null}, "settings": {}},
            "extension-only": {"settings": {}}
        }
    }""",
    ".gemini/settings.json": json.dumps(
        {"mcpServers": {"docs": {"httpUrl": "https://docs.example/mcp", "excludeTools": ["drop"], "trust": True}}}
    ),
    ".codex/config.toml": """
        model = "x"
        [mcp_servers.ctx]
        command = "npx"
        args = ["-y", "ctx", "--api-key", "TOKEN"]
        enabled_tools = ["find"]
        [mcp_servers.web]
        url = "https://web.example/mcp"
        bearer_token_env_var = "WEB_TOKEN"
    """.replace('"TOKEN"', f'"{TOKEN}"').replace("Bearer TOKEN", f"Bearer {TOKEN}"),
    "goose/config.yaml": """
        GOOSE_MODEL: x
        extensions:
          developer: {type: builtin, enabled: true, name: developer}
          fetch:
            {type: stdio, cmd: uvx, args: [fetch], envs: {MODE: fast}, env_keys: [FETCH_KEY], timeout: 30,
             enabled: false}
          remote: {type: streamable_http, uri: "https://remote.example/mcp", headers: {Authorization: "Bearer TOKEN"}}
    """.replace('"TOKEN"', f'"{TOKEN}"').replace("Bearer TOKEN", f"Bearer {TOKEN}"),
    ".claude.json": json.dumps(
        {
            "mcpServers": {"github": {"command": "docker", "args": ["run", "gh"], "env": {"GITHUB_TOKEN": TOKEN}}},
            "projects": {"/home/ann/app": {"mcpServers": {"My DB!": {"command": "db", "args": []}}}},
        }
    ),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_servers_of_every_client_are_found(home: Path) -> None:
    report = import_servers(
        [home / name for name in FILES], present=[McpServerConfig(id="web", transport="stdio", command=("web",))]
    )
    found = {one.id: one for one in report.servers}
    assert set(found) == {
        "github", "search", "maps", "notes", "older", "docs", "ctx", "web-2", "fetch", "remote", "my-db"
    }  # fmt: skip
    assert found["older"].command == ("older", "-x")
    assert found["docs"].url == "https://docs.example/mcp"
    assert found["docs"].tools.deny == ("drop",)
    assert found["ctx"].tools.allow == ("find",)
    assert found["web-2"].auth == Auth(type="bearer", token=FromEnv("WEB_TOKEN"))
    assert found["fetch"].env == {"MODE": "fast", "FETCH_KEY": FromEnv("FETCH_KEY")}
    assert (found["fetch"].enabled, found["fetch"].timeout_seconds) == (False, 30)
    assert found["my-db"].name == "My DB!"


def test_skipped_servers_are_reported_with_their_reason(home: Path) -> None:
    (home / "broken.json").write_text("{")
    (home / "empty.json").write_text("{}")
    names = [*FILES, "broken.json", "empty.json", "missing.json"]
    report = import_servers([home / name for name in names])
    reasons = {(Path(one.path).name, one.name): one.reason for one in report.skipped}
    assert "old SSE transport" in reasons["mcp.json", "old"]
    assert "needs either a command or a url" in reasons["settings.json", "extension-only"]
    assert "lives inside goose" in reasons["config.yaml", "developer"]
    assert "is the same as github" in reasons[".claude.json", "github"]
    assert reasons["broken.json", ""] == "is not JSON"
    assert reasons["missing.json", ""] == "does not exist"
    assert reasons["empty.json", ""] == "holds no servers"
    assert len(report.skipped) == 7
    unreadable = [Path(one.path).name for one in report.skipped if one.is_unreadable]
    assert unreadable == ["broken.json", "missing.json"]


def test_files_that_are_not_regular_are_skipped_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    report = import_servers([pipe, Path("/dev/zero"), tmp_path])
    assert [one.reason for one in report.skipped] == ["is not a regular file"] * 3


def test_secrets_stay_in_their_files_and_are_reported(home: Path, tmp_path: Path) -> None:
    report = import_servers([home / name for name in FILES])
    path = write_servers(tmp_path / "clew", report.servers)
    assert TOKEN not in path.read_text()
    assert TOKEN not in repr(report)
    to_set = {one.server.id: list(one.to_set) for one in report.found if one.to_set}
    assert to_set == {
        "github": ["GITHUB_TOKEN"],
        "search": ["SEARCH_API_KEY"],
        "maps": ["MAPS_API_KEY"],
        "ctx": ["CTX_API_KEY"],
        "remote": ["REMOTE_TOKEN"],
    }
    found = {one.id: one for one in read_servers(tmp_path / "clew")}
    assert found["github"].env == {"GITHUB_TOKEN": FromEnv("GITHUB_TOKEN")}
    assert found["search"].url == "https://search.example/mcp?api_key=${SEARCH_API_KEY}"
    assert found["search"].extra_headers == {"X-Team": "blue"}
    assert found["maps"].extra_headers == {"Authorization": "Bearer ${MAPS_API_KEY}"}
    assert found["ctx"].command == ("npx", "-y", "ctx", "--api-key", "${CTX_API_KEY}")
    assert found["remote"].auth == Auth(type="bearer", token=FromEnv("REMOTE_TOKEN"))


def test_secrets_are_imported_on_request(home: Path) -> None:
    report = import_servers([home / ".mcp.json"], keep_secrets=True)
    assert report.servers[0].env == {"GITHUB_TOKEN": TOKEN}
    assert report.found[0].to_set == ()


@pytest.mark.parametrize(
    "text", ["[]", "null", '{"mcpServers": {"a": 1, "b": []}}', '{"servers": "x"}', "\x00", "[" * 9_999]
)
def test_no_file_content_raises(tmp_path: Path, text: str) -> None:
    for suffix in ("json", "toml", "yaml"):
        path = tmp_path / f"x.{suffix}"
        path.write_text(text)
        assert import_servers([path]).found == []


def test_the_files_of_other_clients_are_known(tmp_path: Path) -> None:
    names = {
        str(path.relative_to(tmp_path)) for path in (*project_files(tmp_path / "work"), *user_files(tmp_path / "home"))
    }
    assert {"work/.mcp.json", "work/.vscode/mcp.json", "home/.codex/config.toml", "home/.claude.json"} <= names
