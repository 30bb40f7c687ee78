"""Manifests from files, of every version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clew.errors import BuildError, ClewError, ConfigError, ParseError, ValidationError
from clew.skills.definitions.manifest_builder import build_or_raise
from clew.skills.definitions.manifest_loader import load_manifest, read_manifest
from clew.skills.definitions.migrations import migrate
from clew.skills.manifest import VERSION
from tests.skills.definition_trees import google, researcher, write

V1: dict[str, Any] = {
    "version": 1,
    "agents": {"researcher": {"initialSkills": ["search"], "skills": ["plain"], "prompt": "You research."}},
    "skills": {
        "search": {"description": "Search", "content": "# How", "tools": ["google", "bing"]},
        "plain": {"description": "No tools"},
    },
    "tools": {"google": {"description": "G"}, "bing": {"description": "B"}},
}
V2: dict[str, Any] = {
    "version": 2,
    "agents": {"researcher": {"skills": ["deploy"], "prompt": "Go."}},
    "skills": {
        "deploy": {
            "description": "D",
            "toolsets": ["ops"],
            "loadTrigger": "deploy|roll ?out",
            "requiresExplicit": False,
        },
        "drop": {"description": "D", "requiresExplicit": True},
    },
    "toolsets": {"ops": {"description": "O", "tools": ["kubectl", "a://tools/b"]}},
    "tools": {"kubectl": {"description": "K"}},
}


def encoded(data: Any) -> bytes:
    return json.dumps(data).encode()


@pytest.mark.req("CAR-02")
def test_a_built_manifest_loads_unchanged(tmp_path: Path) -> None:
    manifest = build_or_raise(write(tmp_path, researcher()), [google()])
    file = tmp_path / "manifest.json"
    file.write_bytes(manifest.encode())
    assert load_manifest(file) == manifest
    assert load_manifest(str(file)).encode() == manifest.encode()


@pytest.mark.req("CAR-03")
def test_a_first_version_gets_a_toolset_for_each_skill_with_tools() -> None:
    manifest = read_manifest(encoded(V1))
    assert manifest.version == VERSION
    assert manifest.skills["search"].toolsets == ("search",)
    assert manifest.toolsets["search"].tools == ("google", "bing")
    assert manifest.skills["plain"].toolsets == ()
    assert list(manifest.toolsets) == ["search"]
    assert manifest.agents["researcher"].initial_skills == ("search",)


@pytest.mark.req("CAR-03")
def test_a_first_version_without_tools_gets_those_that_skills_list() -> None:
    manifest = read_manifest(encoded({key: value for key, value in V1.items() if key != "tools"}))
    assert list(manifest.tools) == ["bing", "google"]


@pytest.mark.req("CAR-03")
def test_a_second_version_gets_triggers_and_tiers() -> None:
    manifest = read_manifest(encoded(V2))
    assert manifest.skills["deploy"].triggers.pattern == "deploy|roll ?out"
    assert manifest.skills["deploy"].tier == 2
    assert manifest.skills["drop"].tier == 3
    assert manifest.agents["researcher"].initial_skills == ()


@pytest.mark.req("CAR-03")
@pytest.mark.parametrize("data", [V1, V2])
def test_migration_is_idempotent_and_keeps_its_input(data: dict[str, Any]) -> None:
    before = json.dumps(data)
    manifest = read_manifest(encoded(data))
    assert read_manifest(manifest.encode()) == manifest
    migrate(data)
    assert json.dumps(data) == before


@pytest.mark.req("CAR-03")
@pytest.mark.parametrize("version", [99, 0, -1, 4, "3", 1.0, True, None, [1]])
def test_another_version_is_refused_with_the_supported_ones(version: Any) -> None:
    with pytest.raises(ConfigError) as raised:
        read_manifest(encoded({**V2, "version": version}), "m.json")
    assert "[1, 2, 3]" in str(raised.value)
    assert raised.value.choices == ("1", "2", "3")


@pytest.mark.req("CAR-31")
def test_malformed_json_is_reported_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text('{\n  "version": 3,\n  "agents": oops\n}')
    with pytest.raises(ParseError) as raised:
        load_manifest(file)
    assert (raised.value.path, raised.value.line) == (str(file), 3)


@pytest.mark.req("CAR-02", "CAR-31")
@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        (
            {"skills": {"a": {"name": "a", "description": "", "toolsets": ["gone"]}}},
            BuildError,
            "unknown toolset `gone`",
        ),
        ({"agents": {"a": {"name": "a", "initialSkills": ["gone"]}}}, BuildError, "unknown skill `gone`"),
        ({"toolsets": {"a": {"name": "a", "description": "", "tools": ["gone"]}}}, BuildError, "unknown tool `gone`"),
        ({"skills": {"a": {"name": "a", "description": "", "skills": ["a"]}}}, ValidationError, "circular"),
        ({"skills": {"a": {"name": "b", "description": ""}}}, ValidationError, "its name is b"),
        ({"skills": {"a": {"name": "a", "description": "", "toolset": []}}}, ValidationError, "no key `toolset`"),
        ({"skills": {"a": {"name": "a", "description": 1}}}, ValidationError, "must be text"),
        ({"skills": {"a": {"name": "a", "description": "", "tier": 7}}}, ValidationError, "tier"),
        ({"skills": []}, ValidationError, "object"),
        ({"skils": {}}, ValidationError, "Did you mean skills?"),
    ],
)
def test_invalid_names_and_values_are_refused(change: dict[str, Any], kind: type[ClewError], said: str) -> None:
    with pytest.raises(kind) as raised:
        read_manifest(encoded({"version": 3, **change}), "m.json")
    assert said in str(raised.value)
    assert str(raised.value).startswith("m.json: ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("raw", [b"", b"[]", b"3", b"\xff\xfe", b"[" * 100_000, b'{"version": 3', b"null"])
def test_other_json_is_a_parse_error(raw: bytes) -> None:
    with pytest.raises(ParseError) as raised:
        read_manifest(raw, "m.json")
    assert raised.value.line >= 1


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path, tmp_path / "a\0b"):
        with pytest.raises(ConfigError):
            load_manifest(path)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("section", ["agents", "skills", "toolsets", "tools"])
@pytest.mark.parametrize(
    "value", [[], 3, {"a": 3}, {"a": {"tools": 3}}, {"a": {"tools": [1]}}, {"a": {"toolsets": 3, "tools": ["x"]}}]
)
def test_a_migration_of_a_wrong_shape_is_reported(version: int, section: str, value: Any) -> None:
    with pytest.raises(ClewError):
        read_manifest(encoded({"version": version, section: value}))
