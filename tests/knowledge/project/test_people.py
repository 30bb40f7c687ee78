"""Who stands behind a project, by its files of people and its manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.knowledge.project.people import tell_people
from tests.knowledge.code.repositories import make_repository
from tests.knowledge.code.sampling import opened

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
    "- pyproject.toml:3: authors: Cy Dee",
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
