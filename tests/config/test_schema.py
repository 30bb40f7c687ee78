"""The JSON Schema for editors agrees with the reader of the settings."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from clew.cli.project import render_settings
from clew.config.descriptions import ABOUT
from clew.config.layers import read_settings
from clew.config.model import KINDS
from clew.config.schema import build_schema

GOOD = """
owner = "ann"
embedder = "hash"
[agent]
name = "ann"
model = "ollama:qwen3"
[mcp]
hooks = ["hooks:masking"]
[[mcp.servers]]
id = "geo"
command = ["geo-server", "--stdio"]
env = { LEVEL = "debug" }
[scripts]
persistence = "callback"
expiration_days = 7
[adapters]
sandbox = "bubblewrap"
[sources.docs]
kind = "local"
root = "docs"
[models]
default = "ollama:qwen3"
librarian = "fast"
[models.known.x]
context_tokens = 5
[providers.lab]
key = "env:LAB"
"""


@pytest.fixture(scope="module")
def validator() -> Any:
    return jsonschema_rs.validator_for(build_schema())


@pytest.mark.req("PLA-27")
def test_the_schema_accepts_what_the_reader_accepts(validator: Any, tmp_path: Path) -> None:
    for each in (GOOD, "", render_settings()):
        (tmp_path / "config.toml").write_text(each)
        assert read_settings(tmp_path).problems == ()
        validator.validate(tomllib.loads(each))


@pytest.mark.req("PLA-27")
@pytest.mark.parametrize(
    "text",
    [
        "ownr = 'x'",
        "server.port = 'x'",
        "server.port = 70000",
        "embedder = 'gpt'",
        "adapters.sandbox = 'chroot'",
        "adapters.acp = 'stdio'",
        "scripts.persistence = 'disk'",
        "scripts.expiration_days = 0",
        "[[mcp.servers]]\ncommand = 'x'",
        "[[mcp.servers]]\nid = 'x'\ncomand = 'x'",
        "mcp.hooks = 'x'",
        "sources.docs.root = '.'",
        "sources.docs = { kind = 'local', ttl_minutes = -1 }",
        "providers.lab.key = 'sk-0123456789'",
        "providers.lab.base = 'x'",
        "models.librarian = 1",
        "models.known = 'x:y'",
        "models.known.x.price = 1",
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(validator: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    assert len(read_settings(tmp_path).problems) == 1
    assert not validator.is_valid(tomllib.loads(text))


def test_settings_that_no_command_uses_say_so() -> None:
    scripts = [about for name, about in ABOUT.items() if name.startswith("scripts.")]
    assert [about.startswith("for Python programs") for about in scripts] == [True] * 3


def test_every_setting_has_a_description_and_a_default() -> None:
    schema = build_schema()
    for name in KINDS:
        found = schema
        for part in name.split("."):
            found = found["properties"][part]
        assert found["description"], name
        assert "default" in found, name
    assert "$ref" not in str(schema)
    assert "folder" not in schema["properties"]
