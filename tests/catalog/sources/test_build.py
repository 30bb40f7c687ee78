from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from clew.catalog.sources import KINDS, build_source, secret_names
from clew.errors import ConfigError

ENOUGH: dict[str, dict[str, Any]] = {
    "local": {"root": "."},
    "github": {"repo": "acme/shop"},
    "clickup": {"workspace": "1"},
    "qase": {"project": "SHOP"},
    "warehouse": {"url": "sqlite:///a.db"},
    "drive": {},
}


@pytest.mark.req("ERN-17")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_can_be_built_from_plain_options(kind: str) -> None:
    source = build_source(kind, ENOUGH[kind], secrets={})

    assert source.name == kind
    assert source.id == build_source(kind, dict(ENOUGH[kind]), secrets={}).id


@pytest.mark.req("ERN-23")
@pytest.mark.parametrize("kind", KINDS)
def test_only_local_files_are_looked_at_again_at_every_start(kind: str) -> None:
    assert build_source(kind, ENOUGH[kind], secrets={}).is_local == (kind == "local")


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("githb", {}, "Did you mean github?"),
        ("jira", {}, "Choose one of: clickup, drive, github, local, qase, warehouse"),
        ("github", {"repo": "a/b", "itms": "prs"}, "Did you mean items?"),
        ("github", {"repo": "a/b", "tokn": "X"}, "Did you mean token?"),
        ("local", {"root": ".", "inclde": []}, "Did you mean include?"),
        ("local", {}, "root"),
        ("github", {"repo": "a/b", "items": "wikis"}, "items"),
        ("github", {"repo": "a/b", "attempts": "many"}, "attempts"),
        ("warehouse", {"url": "sqlite:///a", "table_pattern": "("}, "table_pattern"),
    ],
)
def test_a_mistake_is_named_with_the_nearest_right_name(kind: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        build_source(kind, options, secrets={})

    assert said in str(error.value)


def test_a_secret_that_is_not_there_is_named_by_its_option_alone() -> None:
    """Somebody may have written the token itself where its name belongs."""
    with pytest.raises(ConfigError) as error:
        build_source("github", {"repo": "a/b", "token": "ghp_realsecret"}, secrets={})

    assert "token names no secret" in str(error.value)
    assert "ghp_realsecret" not in str(error.value)


def test_the_names_of_needed_secrets_are_known_before_building() -> None:
    assert secret_names({"repo": "a/b", "token": "GITHUB_TOKEN"}) == ("GITHUB_TOKEN",)
    assert secret_names({"url": "postgresql://h/d", "password": "PG"}) == ("PG",)
    assert secret_names({"root": "."}) == ()


def test_building_sources_loads_nothing_that_only_reading_needs() -> None:
    code = (
        "import sys\nfrom clew.catalog.sources import build_source\n"
        "build_source('github', {'repo': 'a/b'}, secrets={})\nbuild_source('local', {'root': '.'}, secrets={})\n"
        "print(sorted({'httpx', 'psycopg'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "[]"
