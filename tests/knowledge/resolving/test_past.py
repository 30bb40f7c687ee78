"""Questions on what was done, through the catalog of an app: by time, by file, by commit, by author, by version."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clew.app import App, open_app
from clew.clock import ManualClock
from clew.config import Config, HygieneConfig
from clew.knowledge.base import UNKNOWN
from tests.knowledge.doors import known, store

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
CHANGELOG = """# Changelog

## Unreleased

- Changed the lid to close by itself.

## 2.1.0

- Added a whistle.
- **Breaking:** removed the `Pot` class.
- Changed the handle to wood.

## 2.0.1 (2026-03-01)

- Fixed the spout.

## 1.0.0

- Changed the colour to red.
"""
FIRST = {
    "src/kettle.py": 'class Kettle:\n    """Boils water."""\n\n    def boil(self):\n        return 100\n',
    "CHANGELOG.md": CHANGELOG,
    "README.md": "# Shop\n\nA shop of kettles.\n",
    ".gitignore": ".clew/\n",
}
LINE = re.compile(r"- \[\d+\] commit ([0-9a-f]{10}) (\d{4}-\d\d-\d\d): (.+) · (.+)")


class Shop:
    """A repository whose commits have days and authors."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self._git("init", "-q", day="2026-01-01", author="Nobody")

    def commit(self, message: str, day: str, author: str, files: Mapping[str, str]) -> str:
        for path, content in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(content)
        self._git("add", "-A", day=day, author=author)
        self._git("commit", "-q", "-m", message, day=day, author=author)
        return self._git("rev-parse", "HEAD", day=day, author=author).strip()

    def tag(self, name: str, revision: str) -> None:
        self._git("tag", "-a", "-m", name, name, revision, day="2026-11-12", author="Bo Lind")

    def _git(self, *arguments: str, day: str, author: str) -> str:
        who = {
            f"GIT_{role}_{part}": value
            for role in ("AUTHOR", "COMMITTER")
            for part, value in (("NAME", author), ("EMAIL", "someone@example.org"), ("DATE", f"{day}T10:00:00+0000"))
        }
        env = {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", *arguments], cwd=self.root, env=env, capture_output=True, text=True, check=True)
        return done.stdout


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path / "shop")
    made.commit("Begin with a kettle", "2026-06-15", "Ada Byron", FIRST)
    kettle = FIRST["src/kettle.py"]
    made.commit("Boil quicker", "2026-08-04", "Ada Byron", {"src/kettle.py": f"{kettle}\n\nLIMIT = 1\n"})
    made.commit("Add a teapot", "2026-10-20", "Bo Lind", {"src/teapot.py": "class Teapot:\n    pass\n"})
    made.commit(
        "Tidy the kettle\n\nIt was full of chalk.",
        "2026-11-11",
        "Bo Lind",
        {"src/kettle.py": kettle, "docs/a.md": "# A\n"},
    )
    return made


@pytest.fixture
async def app(shop: Shop) -> AsyncIterator[App]:
    config = Config(folder=shop.root / ".clew", hygiene=HygieneConfig(enabled=False))
    async with open_app(config, ManualClock(NOW)) as opened:
        await opened.bootstrap()
        await opened.knowledge().gather()
        yield opened


def subjects(lines: list[str]) -> list[str]:
    return [found[3] for line in lines if (found := LINE.fullmatch(line))]


# -- a time ----------------------------------------------------------------------------------------------------


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("what changed last week", ["Tidy the kettle"]),
        ("what changed last month", ["Add a teapot"]),
        ("what changed in August 2026", ["Boil quicker"]),
        ("what changed since 2026-08-01", ["Tidy the kettle", "Add a teapot", "Boil quicker"]),
        ("what happened between 2026-06-01 and 2026-08-04", ["Boil quicker", "Begin with a kettle"]),
        ("what commits changed the kettle since June 2026", ["Tidy the kettle", "Boil quicker", "Begin with a kettle"]),
        ("which commits were made in the last two weeks", ["Tidy the kettle"]),
        ("what was fixed or added last month", ["Add a teapot"]),
    ],
)
async def test_only_what_was_done_in_a_time_is_told_newest_first(app: App, question: str, told: list[str]) -> None:
    lines = await known(app, question)
    assert subjects(lines) == told, lines


async def test_where_nothing_was_done_in_a_time_the_newest_before_is_told(app: App) -> None:
    lines = await known(app, "what changed in September 2026")
    assert lines[0] == "- None in that time; the newest before is:"
    assert subjects(lines) == ["Boil quicker"]
    assert len(lines) == 2
    assert await known(app, "what changed in 2019") == ["- None in that time."]


async def test_what_was_noted_is_told_with_what_was_committed(app: App) -> None:
    await store(app, "Kettles are sold on Mondays")
    lines = await known(app, "what happened today")
    assert lines[0] == "- 1 entry on 2026-11-16:"
    assert "Kettles are sold on Mondays" in lines[1]
    lines = await known(app, "what was decided last week")
    assert "None in that time" in lines[0]
    assert not any("Tidy" in line for line in lines), "a commit is no decision"


async def test_a_list_of_a_time_is_bounded_and_says_how_many_are_left(app: App, shop: Shop) -> None:
    for at in range(12):
        shop.commit(f"Step {at}", "2026-11-12", "Ada Byron", {"src/step.py": f"STEP = {at}\n"})
    lines = await known(app, "what changed last week")
    assert lines[0] == "- 13 commits from 2026-11-09 to 2026-11-15, newest first:"
    assert (len(subjects(lines)), lines[-1]) == (8, "- … and 5 more")


# -- what is recent --------------------------------------------------------------------------------------------


@pytest.mark.req("SYL-98")
async def test_versions_without_a_day_are_not_recent(app: App) -> None:
    lines = await known(app, "what changed recently")
    assert re.search(r"commit [0-9a-f]{10} 2026-11-11", lines[0]), lines
    assert any("close by itself" in line for line in lines), "what is not released yet is recent"
    assert not any("colour" in line or "wood" in line for line in lines), lines


# -- files, commits and authors --------------------------------------------------------------------------------


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("who changed src/kettle.py last", ["Tidy the kettle"]),
        ("when was kettle.py last changed?", ["Tidy the kettle"]),
        ("which commits touched src/kettle.py", ["Tidy the kettle", "Boil quicker", "Begin with a kettle"]),
        ("history of src/kettle.py", ["Tidy the kettle", "Boil quicker", "Begin with a kettle"]),
        ("who changed src/kettle.py in August 2026", ["Boil quicker"]),
        ("who wrote src/kettle.py", ["Begin with a kettle"]),
        ("when was `Teapot` last changed", ["Add a teapot"]),
        ("what changed in src/ last month", ["Add a teapot"]),
        ("what did Bo Lind change", ["Tidy the kettle", "Add a teapot"]),
        ("what did ada do since July 2026", ["Boil quicker"]),
        ("commits by Ada Byron", ["Boil quicker", "Begin with a kettle"]),
        ("what did Bo change in src/kettle.py", ["Tidy the kettle"]),
    ],
)
async def test_commits_are_told_by_file_and_by_author(app: App, question: str, told: list[str]) -> None:
    lines = await known(app, question)
    assert subjects(lines) == told, lines


async def test_the_author_is_told_and_never_an_address(app: App) -> None:
    lines = await known(app, "who changed src/teapot.py last")
    found = LINE.fullmatch(lines[0])
    assert found is not None, lines
    assert (found[2], found[4]) == ("2026-10-20", "Bo Lind")
    assert not any("@example" in line for line in await known(app, "which commits touched src/kettle.py"))


async def test_a_file_that_was_renamed_keeps_its_history(app: App, shop: Shop) -> None:
    (shop.root / "src/teapot.py").rename(shop.root / "src/pot.py")
    shop.commit("Call it a pot", "2026-11-13", "Ada Byron", {})
    assert subjects(await known(app, "which commits touched src/pot.py")) == ["Call it a pot", "Add a teapot"]


@pytest.mark.req("SYL-98")
async def test_a_commit_is_told_with_its_message_and_its_files(app: App, shop: Shop) -> None:
    sha = shop.commit("Sweep\n\nThe floor was wet.", "2026-11-14", "Bo Lind", {"src/floor.py": "", "src/wall.py": ""})
    for question in (f"show commit {sha[:10]}", f"what did commit {sha[:8]} change", f"what did {sha} change"):
        lines = await known(app, question)
        assert LINE.fullmatch(lines[0]), lines
        assert lines[1:] == [
            "- The floor was wet.",
            "- It touched 2 files:",
            "- created src/floor.py",
            "- created src/wall.py",
        ]
    assert await known(app, "show commit 0123456789") == ["- No commit that is known here begins with 0123456789."]


# -- versions --------------------------------------------------------------------------------------------------


@pytest.mark.req("SYL-98")
@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("what changed in 2.1.0", ["Added a whistle", "removed the `Pot`", "handle to wood"]),
        ("what changed in 2.1", ["Added a whistle", "removed the `Pot`", "handle to wood"]),
        ("changelog of v2.0.1", ["Fixed the spout"]),
        ("what broke in 2.1.0", ["removed the `Pot`"]),
        ("what was removed in 2.1.0", ["removed the `Pot`"]),
        ("what is new in version 1.0.0", ["colour to red"]),
    ],
)
async def test_the_changes_of_a_version_are_told_in_the_order_of_the_file(
    app: App, question: str, told: list[str]
) -> None:
    lines = await known(app, question)
    assert len(lines) == len(told), lines
    for line, said in zip(lines, told, strict=True):
        found = re.match(r"- \[\d\] CHANGELOG\.md:(\d+)@", line)
        assert found is not None, line
        assert said.split("`")[0] in line
        assert said.split("`")[0] in CHANGELOG.splitlines()[int(found[1]) - 1]


async def test_a_kind_that_no_change_of_a_version_has_is_said(app: App) -> None:
    lines = await known(app, "what was deprecated in 2.0.1")
    assert lines[0] == "- No change of 2.0.1 is told to be of that kind (deprecated); all of them:"
    assert "Fixed the spout" in lines[1]


# -- what stays as it was --------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", ["where is Kettle", "how does Kettle boil today", "what calls boil"])
async def test_questions_on_code_are_answered_from_code(app: App, question: str) -> None:
    lines = await known(app, question)
    assert not subjects(lines), lines
    assert any("src/kettle.py" in line for line in lines), lines


async def test_what_is_no_author_no_file_and_no_version_is_looked_up_as_before(app: App) -> None:
    lines = await known(app, "what did the whistle change")
    assert not any("None in that time" in line for line in lines)
    assert await known(app, "what changed in 9.9.9") is not None


@pytest.mark.req("SYL-98")
async def test_the_project_by_its_own_name_is_told_as_this_project_is(app: App) -> None:
    for question in ("what is shop", "what is Shop?", "tell me about shop"):
        [line] = await known(app, question)
        assert "A shop of kettles" in line
    assert not any("README.md" in line for line in await known(app, "what is Teapot"))


@pytest.mark.req("SYL-89")
@pytest.mark.parametrize("question", ["what calls NoSuchThing", "where is doesNotExist used", "what calls frobnicate"])
async def test_a_name_that_there_is_not_is_said_to_be_none(app: App, question: str) -> None:
    [line] = await known(app, question)
    assert re.match(r"- Nothing here is named `\w+`\.", line), line


async def test_a_name_that_is_nearly_one_is_told_with_that(app: App) -> None:
    assert await known(app, "what calls Kettel") == ["- Nothing here is named `Kettel`. Did you mean Kettle?"]


async def test_a_version_that_only_a_tag_tells_of_is_made_of_the_commits_since_the_one_before(
    app: App, shop: Shop
) -> None:
    shop.tag("v3.0.0-rc.1", "HEAD~1")
    shop.tag("v3.0.0", "HEAD~2")
    shop.tag("v3.1.0", "HEAD")
    shop.tag("other-9.0", "HEAD")
    lines = await known(app, "what changed in v3.1.0")
    assert lines[0] == "- No changelog tells of 3.1.0; 2 commits of the tag v3.1.0 since the tag v3.0.0:"
    assert subjects(lines) == ["Tidy the kettle", "Add a teapot"]
    assert len(lines) == 3
    assert subjects(await known(app, "what's new in 9.0")) == [
        "Tidy the kettle",
        "Add a teapot",
        "Boil quicker",
        "Begin with a kettle",
    ]
    assert await known(app, "what changed in 3.2") == ["- No changelog and no tag that is known here has 3.2."]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("what changed in the last 2 commits", ["Tidy the kettle", "Add a teapot"]),
        ("what were the last two commits?", ["Tidy the kettle", "Add a teapot"]),
        ("show the latest 3 commits", ["Tidy the kettle", "Add a teapot", "Boil quicker"]),
        ("who made the last commit", ["Tidy the kettle"]),
    ],
)
async def test_the_last_commits_are_told_and_no_others(app: App, question: str, told: list[str]) -> None:
    lines = await known(app, question)
    assert subjects(lines) == told, lines
    assert len(lines) == len(told)


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("how many commits were made in 2026", "- 4 commits from 2026-01-01 to 2026-12-31; the newest:"),
        ("how many commits were made by Ada Byron", "- 2 commits by Ada Byron; the newest:"),
        ("how many commits were made in 2019", "- 0 commits from 2019-01-01 to 2019-12-31."),
    ],
)
async def test_commits_are_counted(app: App, question: str, told: str) -> None:
    assert (await known(app, question))[0] == told


async def test_who_wrote_something_is_answered_with_the_authors(app: App) -> None:
    assert (await known(app, "who wrote the teapot"))[0].endswith("Add a teapot · Bo Lind")


async def test_a_change_is_told_with_its_version_and_day(app: App) -> None:
    lines = await known(app, "why was the Pot class removed")
    assert any(line.endswith(" · 2.1.0") for line in lines), lines


async def test_what_says_that_it_fixes_something_is_of_that_kind(app: App, shop: Shop) -> None:
    log = f"# Changelog\n\n## 4.0\n\n- CVE-2030-1 Fixed the lock.\n- Changed the door.\n\n{CHANGELOG[13:]}"
    shop.commit("Release", "2026-11-12", "Bo Lind", {"CHANGELOG.md": log})
    for question in ("what did the security fix in 4.0 do", "what was fixed in 4.0"):
        [line] = await known(app, question)
        assert "Fixed the lock" in line


# -- where something came from ---------------------------------------------------------------------------------


@pytest.mark.req("SYL-98")
async def test_which_version_introduced_something_is_told_by_the_changelog(app: App) -> None:
    for question in ("which version introduced the whistle", "when was the whistle added"):
        [line] = await known(app, question)
        assert re.fullmatch(r"- \[1\] CHANGELOG\.md:9@\w+: Added a whistle\. · 2\.1\.0", line), line


async def test_where_no_changelog_tells_it_the_first_tag_with_its_commit_does(app: App, shop: Shop) -> None:
    shop.commit("Add a milk jug (#7)", "2026-11-12", "Bo Lind", {"src/jug.py": ""})
    shop.commit("Polish the milk jug", "2026-11-13", "Ada Byron", {"src/jug.py": "JUG = 1\n"})
    for name, revision in (("v3.0.0", "HEAD~2"), ("v3.1.0-rc.1", "HEAD~1"), ("v3.1.0", "HEAD"), ("v3.2.0", "HEAD")):
        shop.tag(name, revision)
    lines = await known(app, "which version introduced the milk jug")
    assert lines[0] == "- No changelog tells of it; the first tag with the commit that names it is v3.1.0:"
    assert subjects(lines) == ["Add a milk jug (#7)"]


async def test_who_made_something_is_told_by_the_oldest_commit_that_is_about_it(app: App, shop: Shop) -> None:
    shop.commit("Add a milk jug", "2026-11-12", "Bo Lind", {"src/jug.py": ""})
    shop.commit("Add tests of the milk jug", "2026-11-13", "Ada Byron", {"src/jug.py": "JUG = 1\n"})
    assert [line.rpartition(" · ")[2] for line in await known(app, "who added the milk jug")] == ["Bo Lind"]


async def test_what_names_no_version_does_not_say_which(app: App, shop: Shop) -> None:
    boiler = 'class Boiler:\n    """Tells the version of a boiler."""\n'
    kiln = "# Kiln\n\nSince version 1.5 there is a kiln.\n"
    shop.commit("Sweep", "2026-11-12", "Bo Lind", {"src/boiler.py": boiler, "docs/kiln.md": kiln})
    await app.knowledge().gather()
    for question in ("which version introduced the boiler", "which version introduced the Boiler class"):
        assert await known(app, question) == [UNKNOWN]
    [line] = await known(app, "which version introduced the kiln")
    assert "docs/kiln.md" in line


async def test_what_was_done_with_another_version_is_no_answer(app: App, shop: Shop) -> None:
    shop.commit("Drop support of pipes 2.7", "2026-11-12", "Bo Lind", {"src/a.py": ""})
    shop.commit("Drop pipes 3.7 and their support", "2026-11-13", "Bo Lind", {"src/b.py": ""})
    lines = await known(app, "why was the support of pipes 3.7 dropped")
    assert "Drop pipes 3.7" in lines[0], lines
    assert not any("2.7" in line for line in lines), lines


async def test_what_names_nobody_does_not_say_who_did_it(app: App, shop: Shop) -> None:
    shop.commit("Sweep", "2026-11-12", "Bo Lind", {"docs/kiln.md": "# Kiln\n\nThe kiln burns clay; a kiln is hot.\n"})
    await app.knowledge().gather()
    assert await known(app, "who wrote the burning kiln") == [UNKNOWN]
