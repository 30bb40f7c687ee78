"""Files that git ignores are not read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.catalog.sources.local import LocalSource
from clew.errors import NotFound
from clew.tools.search.gitignore import MAX_LINES, MAX_RULES
from tests.catalog.sources.folders import ids, put


async def test_ignore_files_apply_at_every_level_and_may_negate(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            ".gitignore": "*.log\n/build/\nsecret*\n!secret-not.md\n# comment\n\\#odd.md\n",
            "a.log": "x",
            "build/out.md": "x",
            "docs/build/kept.md": "x",
            "secret.md": "x",
            "secret-not.md": "x",
            "#odd.md": "x",
            "docs/.gitignore": "!important.log\ndraft.md\n",
            "docs/important.log": "x",
            "docs/other.log": "x",
            "docs/draft.md": "x",
            "draft.md": "x",
        },
    )
    source = LocalSource(tmp_path)

    assert ids(await source.list_documents()) == [
        ".gitignore",
        "docs/.gitignore",
        "docs/build/kept.md",
        "docs/important.log",
        "draft.md",
        "secret-not.md",
    ]
    for ignored in ("secret.md", "build/out.md", "docs/draft.md"):
        with pytest.raises(NotFound):
            await source.fetch_content(ignored)


async def test_rules_of_the_repository_around_a_folder_apply_in_it(tmp_path: Path) -> None:
    put(tmp_path, {".git/info/exclude": "private.md\n", ".gitignore": "*.tmp\n/shop/inner.md\n"})
    put(tmp_path, {f"shop/docs/{name}": "x" for name in ("a.md", "b.tmp", "private.md", "inner.md")})
    put(tmp_path, {"shop/.gitignore": "inner.md\n!docs/b.tmp\n"})

    assert ids(await LocalSource(tmp_path / "shop" / "docs").list_documents()) == ["a.md", "b.tmp"]


async def test_a_folder_that_is_itself_ignored_is_read_when_it_is_named(tmp_path: Path) -> None:
    put(tmp_path, {".git/HEAD": "x", ".gitignore": "build/\n", "build/docs/a.md": "x"})

    assert ids(await LocalSource(tmp_path / "build" / "docs").list_documents()) == ["a.md"]


async def test_a_work_tree_follows_the_exclusions_of_its_repository(tmp_path: Path) -> None:
    put(tmp_path, {"main/.git/info/exclude": "private.md\n", "main/.git/worktrees/tree/commondir": "../..\n"})
    put(tmp_path, {"tree/.git": "gitdir: ../main/.git/worktrees/tree\n", "tree/private.md": "x", "tree/a.md": "x"})

    assert ids(await LocalSource(tmp_path / "tree").list_documents()) == ["a.md"]


async def test_the_folders_of_git_and_clew_are_never_read(tmp_path: Path) -> None:
    put(tmp_path, {".git/config": "token", ".clew/trail.db": "x", "inner/.git/config": "x", "a.md": "x", ".GIT/x": "x"})
    source = LocalSource(tmp_path)

    assert ids(await source.list_documents()) == ["a.md"]
    for id in (".git/config", ".clew/trail.db", "inner/.git/config", ".GIT/x"):
        with pytest.raises(NotFound):
            await source.fetch_content(id)


async def test_invalid_rules_change_nothing(tmp_path: Path) -> None:
    put(tmp_path, {".gitignore": b"!\n/\n***/\n[\n\xff\xfe\n\0\n\\\n//\n*.log\r\n", "a.md": "x", "b.log": "x"})

    assert "a.md" in ids(await LocalSource(tmp_path).list_documents())
    assert "b.log" not in ids(await LocalSource(tmp_path).list_documents())


def list_with_git(root: Path) -> list[str]:
    """The files that git would add in a test repository."""
    subprocess.run(["git", "init", "-q", root], check=True, timeout=60)
    command = ["git", "-c", "core.excludesFile=", "ls-files", "-z", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True, timeout=60).stdout
    return sorted(listed.decode().split("\0")[:-1])


NAMES = ("a", "b", "a.md", "b.md")
RULES = st.lists(
    st.builds(
        "".join,
        st.tuples(
            st.sampled_from(("", "!")),
            st.sampled_from(("", "/", "**/")),
            st.sampled_from(
                ("*", "a", "b", "*.md", "a/b", "a/*", "a/**", "?", "[ab]", "a/**/b", "*a*.*d", "[!a]*", "*/**/b/**/b*")
            ),
            st.sampled_from(("", "/")),
        ),
    ),
    max_size=4,
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(top=RULES, inner=RULES)
async def test_the_same_files_are_ignored_as_by_git(
    tmp_path_factory: pytest.TempPathFactory, top: list[str], inner: list[str]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    files = [f"{one}/{two}/{three}" for one in ("a", "b") for two in ("a", "b") for three in NAMES]
    put(root, dict.fromkeys((*files, *(f"a/{name}" for name in ("a.md", "b.md")), "a.md", "c"), "x"))
    put(root, {".gitignore": "\n".join(top), "a/.gitignore": "\n".join(inner)})

    assert ids(await LocalSource(root).list_documents()) == list_with_git(root)


LIST = """
import asyncio, sys
from pathlib import Path
from clew.catalog.sources.local import LocalSource
for document in asyncio.run(LocalSource(Path(sys.argv[1])).list_documents()).documents:
    print(document.id)
"""


def list_apart(root: Path) -> list[str]:
    """The documents as listed by another process, which is killed if it hangs."""
    done = subprocess.run([sys.executable, "-c", LIST, str(root)], capture_output=True, check=True, timeout=60)
    return done.stdout.decode().split()


@pytest.mark.parametrize(
    ("rule", "file"),
    [
        ("*a" * 14 + "b", "a" * 120),
        ("[ab]*" * 20 + "c", "a" * 200),
        ("**/a/" * 16 + "b", "a/" * 60 + "c"),
        ("**/*a*a*a*a/" * 8 + "b", "aaaaaaaa/" * 40 + "c"),
    ],
)
def test_rules_with_many_stars_do_not_delay_the_listing(tmp_path: Path, rule: str, file: str) -> None:
    put(tmp_path, {".gitignore": f"{rule}\n", file: "x"})

    assert list_apart(tmp_path) == sorted((".gitignore", file))


def test_pipes_instead_of_files_of_git_are_skipped(tmp_path: Path) -> None:
    put(tmp_path, {"one/a.md": "x", "two/a.md": "x", "three/a.md": "x", "three/.git": "gitdir: ../private\n"})
    (tmp_path / "private").mkdir()
    for pipe in ("one/.gitignore", "two/.git", "private/commondir"):
        os.mkfifo(tmp_path / pipe)

    assert [list_apart(tmp_path / name) for name in ("one", "two", "three")] == [["a.md"]] * 3


async def test_rules_of_a_file_have_limits_of_number_and_length(tmp_path: Path) -> None:
    rules = ["a.md", f"{'*' * 5_000}b.md", *["#"] * (MAX_LINES - 2), "c.md"]
    put(tmp_path, {".gitignore": "\n".join(rules), "a.md": "x", "b.md": "x", "c.md": "x"})

    assert ids(await LocalSource(tmp_path).list_documents()) == [".gitignore", "b.md", "c.md"]


async def test_one_walk_applies_a_bounded_number_of_rules_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    many = "".join(f"unused{at}\n" for at in range(MAX_LINES - 1)) + "*.log\n"
    folders = [tmp_path.joinpath(*["deeper"] * depth) for depth in range(MAX_RULES // MAX_LINES + 2)]
    for folder in folders:
        put(folder, {".gitignore": many if folder != tmp_path else "", "here.log": "x"})

    found = ids(await LocalSource(tmp_path).list_documents())

    assert "here.log" in found
    assert "deeper/here.log" not in found
    assert f"{'deeper/' * (len(folders) - 1)}here.log" not in found, "rules above apply below"
    assert "over 5,000 ignore rules" in caplog.text


async def test_rules_beyond_the_bound_of_a_walk_ignore_nothing(tmp_path: Path) -> None:
    many = "".join(f"unused{at}\n" for at in range(MAX_LINES))
    deepest = tmp_path
    for _ in range(MAX_RULES // MAX_LINES + 1):
        put(deepest, {".gitignore": many})
        deepest = deepest / "deeper"
    put(deepest, {".gitignore": "*.log\n", "here.log": "x"})

    assert f"{deepest.relative_to(tmp_path)}/here.log" in ids(await LocalSource(tmp_path).list_documents())


async def test_an_invalid_range_ignores_nothing(tmp_path: Path) -> None:
    put(tmp_path, {".gitignore": "[z-a]*\n[[a]b\n", "a.md": "x", "[b": "x"})

    assert ids(await LocalSource(tmp_path).list_documents()) == [".gitignore", "a.md"]
