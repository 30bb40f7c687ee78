"""The packages that manifests declare."""

from __future__ import annotations

import re

import pytest

from clew.knowledge.project.manifests import MAX_DECLARED, ecosystem_of, parse_manifest

POETRY = """\
[tool.poetry.dependencies]
python = "^3.11"
Rich_Text = {version = "^13", extras = ["x"]}
[tool.poetry.dev-dependencies]
black = "24.1"
[tool.poetry.group.docs.dependencies]
sphinx = "*"
[tool.uv]
dev-dependencies = ["ruff>=0.4"]
"""
GO = """\
module example.org/shop

require(
	github.com/spf13/cobra v1.8.0
	golang.org/x/sys v0.1.0 // indirect
)
require example.org/one v1.0.0 // indirectly told
replace (
	github.com/spf13/cobra v1.8.0 => ../cobra
)
exclude example.org/two v2.0.0
tool example.org/lint/cmd
"""
CARGO = """\
[dependencies]
short = { package = "long-name", version = "1" }
local = { path = "../local" }
[target.'cfg(unix)'.dependencies]
nix = "0.28"
[build-dependencies]
cc = "1"
"""


def declared(path: str, text: str) -> list[tuple[str, str, str, str]]:
    found = parse_manifest(path, text)
    assert found.problem == ""
    return [(each.name, each.version, each.type, each.source.rpartition(":")[2]) for each in found.packages]


def test_poetry_and_uv_declare_in_pyproject() -> None:
    assert declared("pyproject.toml", POETRY) == [
        ("ruff", ">=0.4", "dev", "9"),
        ("rich-text", "^13", "runtime", "3"),
        ("black", "24.1", "dev", "5"),
        ("sphinx", "*", "dev", "7"),
    ]


def test_requirements_and_tools_of_go_are_dependencies() -> None:
    assert declared("a/go.mod", GO) == [
        ("github.com/spf13/cobra", "v1.8.0", "runtime", "4"),
        ("example.org/one", "v1.0.0", "runtime", "7"),
        ("golang.org/x/sys", "v0.1.0", "runtime", "5"),
        ("example.org/lint/cmd", "", "dev", "12"),
    ]
    assert [each.is_direct for each in parse_manifest("go.mod", GO).packages] == [True, True, False, True]


def test_a_renamed_crate_keeps_its_own_name() -> None:
    assert declared("Cargo.toml", CARGO) == [
        ("long-name", "1", "runtime", "2"),
        ("local", "../local", "runtime", "3"),
        ("cc", "1", "dev", "7"),
        ("nix", "0.28", "runtime", "5"),
    ]


def test_a_name_is_found_where_it_stands_by_itself() -> None:
    text = '{"devDependencies": {\n"react-dom": "18",\n"@types/react": "18",\n"react": "18"\n}}'
    assert [each[3] for each in declared("package.json", text)] == ["2", "3", "4"]


@pytest.mark.parametrize("path", ["requirements.txt", "dev-requirements.txt", "a/requirements/web.in", "b/Gemfile"])
def test_manifests_are_known_by_their_names(path: str) -> None:
    assert ecosystem_of(path)


@pytest.mark.parametrize("path", ["", "requirements", "notes.txt", "a/package.json.bak", "requirements/a/b.txt"])
def test_other_files_declare_nothing(path: str) -> None:
    assert not ecosystem_of(path)
    assert parse_manifest(path, "httpx\n").packages == []


@pytest.mark.parametrize(
    "line", ["httpx==0.27 \\\r", "  httpx == 0.27 ; python_version > '3'", "httpx[http2]==0.27 # x"]
)
def test_requirements_are_read_however_they_are_written(line: str) -> None:
    (found,) = parse_manifest("requirements.txt", f"# a\n-e .\nhttps://example.org/x.zip\n{line}\n").packages
    assert (found.name, found.version.replace(" ", ""), found.source) == ("httpx", "==0.27", "requirements.txt:4")


@pytest.mark.parametrize(
    ("path", "text", "problem"),
    [
        ("pyproject.toml", "[broken\n", "is not valid TOML: .*line 1"),
        ("Cargo.toml", "a = " + "[" * 50_000, "is not valid TOML: nested too deeply"),
        ("Cargo.toml", "a." * 200, "has a key of over 100 parts"),
        ("package.json", '{"a": 1,\n', "is not valid JSON: .*line 2"),
        ("package.json", "[" * 100_000, "is not valid JSON: nested too deeply"),
        ("package.json", "[]", "is not an object of JSON"),
        ("pom.xml", "<project>", "is not valid XML: no element found"),
        ("pom.xml", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "is not valid XML: has a document type"),
        ("pom.xml", "<a>" * 30_000, "is not valid XML: nested too deeply"),
    ],
)
def test_a_manifest_that_cannot_be_read_says_what_is_wrong(path: str, text: str, problem: str) -> None:
    found = parse_manifest(path, text)
    assert found.packages == []
    assert re.match(problem, found.problem)


def test_no_more_than_a_limit_is_taken_of_one_manifest() -> None:
    text = "".join(f"package-{number}\n" for number in range(MAX_DECLARED + 1))
    found = parse_manifest("requirements.txt", text)
    assert len(found.packages) == MAX_DECLARED


def test_a_problem_repeats_no_key_of_the_text() -> None:
    key = "ghp_" + "a1B2" * 10
    found = parse_manifest("pyproject.toml", f"[{key}]\n[{key}]\n")
    assert found.problem.startswith("is not valid TOML")
    assert key not in found.problem
