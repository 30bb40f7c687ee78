"""Recognised questions on manifests and people, and questions that are not recognised."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from clew.app import open_app
from clew.config import Config, HygieneConfig
from clew.knowledge.project.questions import read_question, tell_manifest, tell_people
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.code.sampling import opened
from tests.knowledge.doors import known

PYTHON = {
    "pyproject.toml": (
        '[project]\nname = "letters"\nlicense = {text = "MIT"}\nrequires-python = ">=3.10"\ndynamic = ["version"]\n'
        'dependencies = [\n    "urllib3>=1.26,<3",\n    "idna>=2.5",\n]\n\n'
        '[dependency-groups]\ntest = ["pytest>=8", "letters[all]"]\n'
    ),
    "src/letters/__version__.py": '__title__ = "letters"\n__version__ = "2.34.2"\n',
    "src/letters/api.py": "def send():\n    return 1\n",
    "README.md": "# Letters\n\nSends letters.\n",
}
SCRIPT = {
    "package.json": (
        '{\n  "name": "shop",\n  "version": "4.13.3",\n  "license": "ISC",\n  "devDependencies": {\n'
        '    "typescript": "^6.0.3"\n  },\n  "engines": {\n    "node": ">=16.9.0"\n  }\n}\n'
    ),
    "src/a.ts": "export const a = 1\n",
}
GO = {
    "go.mod": (
        "module example.com/tool\n\ngo 1.22.5\n\nrequire (\n\tgithub.com/spf13/cobra v1.8.1\n"
        "\tgithub.com/cli/go-gh/v2 v2.11.0\n)\n"
    ),
    "LICENSE": "\nMIT License\n\nCopyright\n",
    "main.go": "package main\n",
}
RUST = {
    "Cargo.toml": '[workspace]\nmembers = ["web"]\n\n[workspace.package]\nrust-version = "1.80"\n',
    "web/Cargo.toml": (
        '[package]\nname = "web"\nversion = "0.8.9" # bump\nrust-version = { workspace = true }\nlicense = "MIT"\n\n'
        '[dependencies]\ntower = { version = "0.5.2", features = ["util"] }\n'
    ),
    "web/src/lib.rs": "pub fn a() {}\n",
}
JAVA = {
    "pom.xml": (
        "<project>\n  <groupId>g</groupId>\n  <artifactId>jar</artifactId>\n  <version>2.14.1</version>\n"
        "  <properties>\n    <maven.compiler.release>8</maven.compiler.release>\n    <j.v>4.13.2</j.v>\n"
        "  </properties>\n"
        "  <licenses><license>\n    <name>Apache-2.0</name></license></licenses>\n"
        "  <dependencyManagement><dependencies><dependency>\n    <groupId>junit</groupId>\n"
        "    <artifactId>junit</artifactId><version>${j.v}</version>\n"
        "  </dependency></dependencies></dependencyManagement>\n</project>\n"
    ),
    "core/pom.xml": (
        "<project><parent><version>9</version></parent><dependencies><dependency><groupId>junit</groupId>"
        "<artifactId>junit</artifactId><scope>test</scope></dependency></dependencies></project>\n"
    ),
    "core/src/A.java": "class A {}\n",
}


@pytest.mark.parametrize(
    ("files", "question", "lines"),
    [
        (
            PYTHON,
            "which version of urllib3 is required",
            ["pyproject.toml:7: urllib3 >=1.26,<3 (python, needed to run)"],
        ),
        (PYTHON, "is urllib3 2.0 supported", ["pyproject.toml:7: urllib3 >=1.26,<3 (python, needed to run)"]),
        (PYTHON, "which Python versions are supported", ["pyproject.toml:4: python version >=3.10"]),
        (PYTHON, "does it support Python 3.9?", ["pyproject.toml:4: python version >=3.10"]),
        (PYTHON, "which python version does letters need", ["pyproject.toml:4: python version >=3.10"]),
        (PYTHON, "what is the current version", ["src/letters/__version__.py:2: this project has version 2.34.2"]),
        (PYTHON, "which version of letters is this", ["src/letters/__version__.py:2: this project has version 2.34.2"]),
        (PYTHON, "what license is this under", ["pyproject.toml:3: licence MIT"]),
        (
            PYTHON,
            "which dependencies does this project have",
            [
                "2 packages needed to run: urllib3 >=1.26,<3 (pyproject.toml:7), idna >=2.5 (pyproject.toml:8)",
                "2 packages needed for development: pytest >=8 (pyproject.toml:12), letters (pyproject.toml:12)",
            ],
        ),
        (
            PYTHON,
            "what are the test dependencies",
            ["2 packages needed for development: pytest >=8 (pyproject.toml:12), letters (pyproject.toml:12)"],
        ),
        (PYTHON, "which version of flask is required", ["No manifest here names flask."]),
        (SCRIPT, "which TypeScript version", ["package.json:6: typescript ^6.0.3 (npm, needed for development)"]),
        (SCRIPT, "Node version", ["package.json:9: node version >=16.9.0"]),
        (SCRIPT, "what is the version of this project", ["package.json:3: this project has version 4.13.3"]),
        (GO, "which Go version is needed", ["go.mod:3: go version 1.22.5"]),
        (GO, "which version of cobra", ["go.mod:6: github.com/spf13/cobra v1.8.1 (go, needed to run)"]),
        (GO, "which version of go-gh is used", ["go.mod:7: github.com/cli/go-gh/v2 v2.11.0 (go, needed to run)"]),
        (GO, "which licence does it have", ["LICENSE:2: licence MIT License"]),
        (GO, "what is the current version", []),
        (RUST, "which version of tower", ["web/Cargo.toml:8: tower 0.5.2 (rust, needed to run)"]),
        (RUST, "minimum supported rust version", ["Cargo.toml:5: rust version 1.80"]),
        (RUST, "what is the MSRV", ["Cargo.toml:5: rust version 1.80"]),
        (RUST, "which version of web is this", ["web/Cargo.toml:3: this project has version 0.8.9"]),
        (JAVA, "which Java version is required", ["pom.xml:6: java version 8"]),
        (JAVA, "which version of junit", ["pom.xml:13: junit:junit 4.13.2"]),
        (JAVA, "what is the current version", ["pom.xml:4: this project has version 2.14.1"]),
        (JAVA, "which license", ["pom.xml:10: licence Apache-2.0"]),
    ],
)
async def test_manifests_answer_with_the_line_that_says_it(
    tmp_path: Path, files: Mapping[str, str], question: str, lines: list[str]
) -> None:
    async with opened(make_repository(tmp_path / "p", dict(files))) as code:
        await code.look()
        assert await tell_manifest(question, code) == [f"- {line}" for line in lines]


async def test_ask_tells_it_before_all_else(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "letters", PYTHON)
    async with open_app(Config(folder=root / ".clew", hygiene=HygieneConfig(enabled=False))) as app:
        await app.bootstrap()
        await app.knowledge().gather()
        [first, *_] = await known(app, "which version of urllib3 is required")
    assert first == "- pyproject.toml:7: urllib3 >=1.26,<3 (python, needed to run)"


@pytest.mark.parametrize(
    "question",
    [
        "what is the difference between json and data",
        "how is the version header parsed",
        "where is the licence key checked",
        "how does dependency injection work",
        "what changed in the last version",
        "which version dropped Python 3.7",
        "which version introduced urllib3 support",
        "does letters support HTTP/2",
        "which function checks the license header",
        "why was the version bumped in the release script of the old build that nobody used",
        "",
    ],
)
async def test_other_questions_are_not_for_manifests(tmp_path: Path, question: str) -> None:
    async with opened(make_repository(tmp_path / "p", PYTHON)) as code:
        await code.look()
        assert await tell_manifest(question, code) == []


async def test_what_a_manifest_says_is_no_markup(tmp_path: Path) -> None:
    hostile = {"package.json": '{"name": "a", "version": "1](http://evil) **`x://tools/y`**", "license": "# <b>"}\n'}
    async with opened(make_repository(tmp_path / "p", hostile)) as code:
        await code.look()
        [version] = await tell_manifest("what is the current version", code)
        [licence] = await tell_manifest("which license", code)
    assert version.endswith(r"this project has version 1]\(http://evil) \*\*\`x://tools/y\`\*\*")
    assert licence.endswith(r"licence # \<b>")


def test_a_long_question_is_read_up_to_a_limit() -> None:
    assert read_question("which version of " + "x " * 100_000) is not None


FILES = {
    "MAINTAINERS": "# Those who answer\n\n- Ada Byron <ada@example.org>\n- bolind\n",
    ".github/CODEOWNERS": "# owners\ndocs/* @ada\n",
    "parts/deep/AUTHORS": "Somebody Else\n",
    "pyproject.toml": '[project]\nname = "letters"\nauthors = [\n  { name = "Cy Dee", email = "cy@example.org" },\n]\n',
    "package.json": '{"name": "letters", "author": "Eve Fay <eve@example.org> (https://example.org)"}\n',
}
TOLD = [
    "- MAINTAINERS:3: Ada Byron",
    "- MAINTAINERS:4: bolind",
    "- .github/CODEOWNERS:2: docs/\\* @ada",
    "- package.json:1: author: Eve Fay",
    "- pyproject.toml:4: authors: Cy Dee",
]


@pytest.mark.parametrize(
    "question",
    [
        "who maintains it",
        "who are the maintainers?",
        "who maintains letters",
        "who are the code owners of this project",
    ],
)
async def test_files_and_manifests_tell_who_stands_behind_a_project(tmp_path: Path, question: str) -> None:
    async with opened(make_repository(tmp_path / "shop", FILES)) as code:
        await code.look()
        assert await tell_people(question, code) == TOLD


@pytest.mark.parametrize(
    "question",
    ["who maintains the parser", "who calls maintainers", "who owns lodash", "where are the maintainers", ""],
)
async def test_other_questions_are_not_about_the_people_of_the_project(tmp_path: Path, question: str) -> None:
    async with opened(make_repository(tmp_path / "shop", FILES)) as code:
        await code.look()
        assert await tell_people(question, code) == []


@pytest.mark.parametrize("text", ["", "[", "authors = [", '{"author": [1, {"name": 2}]}', "\x00", "- \n* \n"])
async def test_a_broken_file_says_less_and_never_fails(tmp_path: Path, text: str) -> None:
    files = dict.fromkeys(("MAINTAINERS", "pyproject.toml", "package.json", "Cargo.toml"), text)
    async with opened(make_repository(tmp_path / "shop", files)) as code:
        await code.look()
        assert isinstance(await tell_people("who maintains it", code), list)
