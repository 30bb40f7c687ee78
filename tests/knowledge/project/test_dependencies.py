"""Needs that the declared packages of a project meet, and how its code uses packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.errors import InvalidInput, NotFound
from clew.knowledge.project.dependencies import analyze_dependencies, check_dependency
from clew.knowledge.project.manifests import parse_manifest
from tests.knowledge.project.samples import PYTHON, REACT, line_at, project

MANIFESTS = {
    "package.json": REACT["package.json"],
    "go.mod": (
        "module example.org/shop\n\ngo 1.22\n\nrequire (\n\tgithub.com/spf13/cobra v1.8.0\n"
        "\tgolang.org/x/sys v0.1.0 // indirect\n)\n\nrequire github.com/google/uuid v1.6.0\n"
    ),
    "requirements.txt": "# all\nDjango==4.2  # web\n-r other.txt\nrequests[socks]>=2; python_version > '3'\n",
    "requirements-dev.txt": "pytest\n",
    "pyproject.toml": (
        '[project]\ndependencies = ["pydantic>=2"]\n[project.optional-dependencies]\npdf = ["pypdf"]\n'
        '[dependency-groups]\nlint = ["ruff"]\n[tool.poetry.dependencies]\npython = "^3.11"\nrich = {version = "^13"}\n'
    ),
    "Cargo.toml": (
        '[dependencies]\nserde = { version = "1.0", features = ["derive"] }\n\n[dev-dependencies]\nrstest = "0.18"\n'
    ),
    "Gemfile": "source 'x'\ngem 'rails', '~> 7.1'\ngroup :development, :test do\n  gem 'rspec'\nend\ngem 'pg'\n",
    "pom.xml": (
        "<project><properties><gson.version>2.10</gson.version></properties><dependencyManagement><dependencies>\n"
        "<dependency><groupId>org.managed</groupId><artifactId>only</artifactId></dependency>\n"
        "</dependencies></dependencyManagement><dependencies>\n<dependency>\n"
        "<groupId>com.google.code.gson</groupId>\n<artifactId>gson</artifactId>\n"
        "<version>${gson.version}</version></dependency>\n<dependency><groupId>junit</groupId>"
        "<artifactId>junit</artifactId><scope>test</scope></dependency></dependencies></project>\n"
    ),
}


@pytest.mark.req("SYL-108")
async def test_date_formatting_is_available_by_date_fns(tmp_path: Path) -> None:
    async with project(tmp_path, REACT) as code:
        answer = await check_dependency(code, "date formatting")
    assert answer.already_available
    (package,) = answer.packages
    assert (package.name, package.version, package.type) == ("date-fns", "^2.30.0", "runtime")
    assert "date formatting" in package.capabilities
    assert package.source == "package.json:4"
    uses = {use.name: use for use in package.usage_examples}
    assert uses["format"].code == (
        "import { format } from 'date-fns'\nconst shownDate = format(new Date(), 'yyyy-MM-dd')"
    )
    assert "format(new Date()" in line_at(REACT, uses["format"].source)
    assert "parse" in uses


@pytest.mark.req("SYL-108")
async def test_a_package_has_its_type_and_meets_a_need_in_other_words(tmp_path: Path) -> None:
    async with project(tmp_path, REACT) as code:
        zod = (await check_dependency(code, "form validation")).packages[0]
        vitest = (await check_dependency(code, "a library for unit tests")).packages[0]
        named = (await check_dependency(code, "react")).packages[0]
    assert (zod.name, zod.type) == ("zod", "peer")
    assert (vitest.name, vitest.type) == ("vitest", "dev")
    assert named.name == "react"


@pytest.mark.req("SYL-108")
async def test_packages_of_python_are_known_by_the_modules_they_bring(tmp_path: Path) -> None:
    async with project(tmp_path, PYTHON) as code:
        dates = (await check_dependency(code, "parse dates")).packages[0]
        client = (await check_dependency(code, "HTTP client")).packages[0]
    assert (dates.name, dates.version, dates.source) == ("python-dateutil", ">=2.8", "pyproject.toml:4")
    assert dates.usage_examples[0].code.startswith("from dateutil.parser import parse\n")
    assert client.name == "httpx"
    assert "httpx.AsyncClient()" in client.usage_examples[0].code


@pytest.mark.req("SYL-108")
async def test_a_missing_tool_comes_with_suggestions_of_its_ecosystem(tmp_path: Path) -> None:
    async with project(tmp_path, PYTHON) as code:
        answer = await check_dependency(code, "date picker")
        charts = await check_dependency(code, "charts")
        unknown = await check_dependency(code, "quantum teleportation")
    assert not answer.already_available
    assert not charts.already_available
    assert {each.ecosystem for each in charts.suggestions} == {"python"}
    assert "matplotlib" in {each.name for each in charts.suggestions}
    assert (unknown.already_available, list(unknown.suggestions)) == (False, [])
    assert charts.manifests == ["pyproject.toml"]


@pytest.mark.req("SYL-108")
def test_all_manifests_are_parsed_with_version_type_and_line() -> None:
    packages = [each for path, text in MANIFESTS.items() for each in parse_manifest(path, text).packages]
    found = {(each.ecosystem, each.name): each for each in packages if each.is_direct}
    assert {(*key, each.version, each.type) for key, each in found.items()} == {
        ("npm", "date-fns", "^2.30.0", "runtime"),
        ("npm", "react", "^18.2.0", "runtime"),
        ("npm", "vitest", "^1.0.0", "dev"),
        ("npm", "zod", ">=3", "peer"),
        ("go", "github.com/spf13/cobra", "v1.8.0", "runtime"),
        ("go", "github.com/google/uuid", "v1.6.0", "runtime"),
        ("python", "django", "==4.2", "runtime"),
        ("python", "requests", ">=2", "runtime"),
        ("python", "pytest", "", "dev"),
        ("python", "pydantic", ">=2", "runtime"),
        ("python", "pypdf", "", "runtime"),
        ("python", "ruff", "", "dev"),
        ("python", "rich", "^13", "runtime"),
        ("rust", "serde", "1.0", "runtime"),
        ("rust", "rstest", "0.18", "dev"),
        ("ruby", "rails", "~> 7.1", "runtime"),
        ("ruby", "rspec", "", "dev"),
        ("ruby", "pg", "", "runtime"),
        ("java", "com.google.code.gson:gson", "2.10", "runtime"),
        ("java", "junit:junit", "", "dev"),
    }
    for each in found.values():
        assert each.name.rpartition(":")[2] in line_at(MANIFESTS, each.source).lower()


async def test_packages_of_examples_and_benchmarks_are_not_available_to_the_project(tmp_path: Path) -> None:
    files = {"package.json": '{"dependencies": {}}', "benchmarks/package.json": '{"dependencies": {"dayjs": "1"}}'}
    async with project(tmp_path, files) as code:
        assert not (await check_dependency(code, "date formatting")).already_available


async def test_broken_and_hostile_manifests_declare_nothing(tmp_path: Path) -> None:
    files = {
        "package.json": '{"dependencies": ["a"], "devDependencies": {"x": 3, "../../y": "1"}',
        "a/package.json": "[" * 50_000,
        "b/package.json": '{"dependencies": 3}',
        "Cargo.toml": "dependencies = 3\n[dev-dependencies\n",
        "pyproject.toml": "project = 3\n",
        "pom.xml": '<!DOCTYPE x [<!ENTITY a "&b;">]>' + "<dependency>" * 2_000,
        "go.mod": "require (\n" + "(" * 1_000,
        "Gemfile": "end\nend\ngem\ngroup do\n",
        "requirements.txt": "\x00\x01\x02",
    }
    async with project(tmp_path, files) as code:
        answer = await check_dependency(code, "date formatting")
        assert not answer.already_available
        assert {each.partition(" ")[0] for each in answer.problems} == {
            "package.json", "a/package.json", "Cargo.toml", "pom.xml",
        }  # fmt: skip
        with pytest.raises(InvalidInput, match="need"):
            await check_dependency(code, "")


async def test_keys_in_a_manifest_are_masked(tmp_path: Path) -> None:
    key = "ghp_" + "a1B2" * 10
    address = f"git+https://{key}@example.org/dayjs.git"
    files = {"package.json": f'{{"name": "x", "license": "MIT", "dependencies": {{"dayjs": "{address}"}}}}'}
    async with project(tmp_path, files) as code:
        answer = await check_dependency(code, "date formatting")
    assert [each.name for each in answer.packages] == ["dayjs"]
    assert key not in repr(answer)


async def test_an_analysis_lists_packages_in_use_unused_and_undeclared(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\ndependencies = ["httpx>=0.27", "rich"]\n[dependency-groups]\ntest = ["pytest"]\n',
        "shop/__init__.py": "",
        "shop/client.py": "import os\n\nimport httpx\nimport redis\n\nfrom shop.prices import VAT\n",
        "shop/prices.py": "VAT = 0.19\n",
        "shop/web/app.py": "from httpx import Client\n\nfrom shop.client import os\n",
    }
    async with project(tmp_path, files) as code:
        await code.refresh()
        whole = await analyze_dependencies(code)
        part = await analyze_dependencies(code, "./shop/client.py")
        folder = await analyze_dependencies(code, "shop/web/")
        with pytest.raises(NotFound):
            await analyze_dependencies(code, "shop/gone.py")
    (httpx,) = whole.packages
    assert (httpx.name, httpx.version, httpx.files, httpx.source) == ("httpx", ">=0.27", 2, "pyproject.toml:2")
    assert httpx.imports == ["shop/client.py:3", "shop/web/app.py:1"]
    assert (whole.unused, whole.undeclared) == (["rich"], {"redis": ["shop/client.py:4"]})
    assert ([each.name for each in part.packages], part.undeclared) == (["httpx"], {"redis": ["shop/client.py:4"]})
    assert ([each.name for each in folder.packages], folder.undeclared) == (["httpx"], {})
