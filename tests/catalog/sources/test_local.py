from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.catalog.resource import ContentSource, Listing
from clew.catalog.sources.local import LocalSource
from clew.errors import NotFound, SourceError
from clew.tools.ignoring import MAX_LINES
from tests.catalog.sources.contract import SourceContract


def put(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def ids(listing: Listing) -> list[str]:
    return [document.id for document in listing.documents]


def reasons(listing: Listing) -> dict[str, str]:
    return {left_out.document: left_out.reason for left_out in listing.skipped}


class TestLocal(SourceContract):
    absent = "docs/absent.md"

    @pytest.fixture
    async def source(self, tmp_path: Path) -> AsyncIterator[ContentSource]:
        put(tmp_path, {"README.md": "# Shop", "docs/refunds.rst": "Refunds\n=======\n\nText.", "src/a.py": "x = 1\n"})
        built = LocalSource(tmp_path)
        yield built
        await built.close()


# -- what is read -------------------------------------------------------------------------------------------


@pytest.mark.req("ERN-23")
async def test_a_touched_or_changed_file_has_another_version_at_once(tmp_path: Path) -> None:
    source = LocalSource(put(tmp_path, {"a.md": "one", "b.md": "two"}))
    before = {document.id: document.version for document in (await source.list_documents()).documents}
    status = (tmp_path / "a.md").stat()
    os.utime(tmp_path / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    touched = {document.id: document.version for document in (await source.list_documents()).documents}
    put(tmp_path, {"b.md": "three"})
    changed = {document.id: document.version for document in (await source.list_documents()).documents}

    assert source.is_local
    assert [id for id in before if before[id] != touched[id]] == ["a.md"]
    assert touched["b.md"] != changed["b.md"]
    assert (await source.fetch_content("b.md")).body == b"three"


async def test_an_empty_folder_has_no_documents(tmp_path: Path) -> None:
    assert await LocalSource(tmp_path).list_documents() == Listing(documents=[], skipped=[])


async def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such folder"):
        await LocalSource(tmp_path / "absent").list_documents()


@pytest.mark.parametrize(
    ("name", "text", "content_type"),
    [
        ("a.md", "x", "text/markdown"),
        ("A.MARKDOWN", "x", "text/markdown"),
        ("a.rst", "x", "text/x-rst"),
        ("a.ipynb", "{}", "application/x-ipynb+json"),
        ("api.yaml", "# ours\nopenapi: 3.1.0\n", "application/vnd.oai.openapi"),
        ("api.yml", "swagger: '2.0'\n", "application/vnd.oai.openapi"),
        ("api.json", '\ufeff {"openapi": "3.0.0"}', "application/vnd.oai.openapi"),
        ("api.json", '{"info": {}, "swagger" : "2.0"}', "application/vnd.oai.openapi"),
        ("a.yaml", "tools:\n  openapi: 3.1.0\n", "text/plain"),
        ("a.json", '{"a": "openapi"}', "text/plain"),
        ("a.py", "x", "text/x-source"),
        ("Makefile", "x", "text/x-source"),
        ("Dockerfile", "x", "text/x-source"),
        ("a.tsx", "x", "text/x-source"),
        ("LICENSE", "x", "text/plain"),
        (".env.md.txt", "x", "text/plain"),
        (".md", "x", "text/plain"),
        ("a.", "x", "text/plain"),
    ],
)
async def test_the_type_of_a_file_is_told_from_its_name_and_beginning(
    tmp_path: Path, name: str, text: str, content_type: str
) -> None:
    source = LocalSource(put(tmp_path, {name: text}))

    [document] = (await source.list_documents()).documents

    assert document.content_type == content_type
    assert (await source.fetch_content(name)).content_type == content_type


async def test_globs_choose_files_and_leave_folders_out(tmp_path: Path) -> None:
    put(tmp_path, dict.fromkeys(("a.md", "docs/b.md", "docs/old/c.md", "docs/d.txt", "vendor/e.md"), "x"))

    assert ids(await LocalSource(tmp_path, ["**/*.md"], ["vendor/**"]).list_documents()) == [
        "a.md",
        "docs/b.md",
        "docs/old/c.md",
    ]
    assert ids(await LocalSource(tmp_path, ["docs/*"]).list_documents()) == ["docs/b.md", "docs/d.txt"]
    assert ids(await LocalSource(tmp_path, (), ["docs/old", "*.md"]).list_documents()) == [
        "docs/b.md",
        "docs/d.txt",
        "vendor/e.md",
    ]
    with pytest.raises(NotFound):
        await LocalSource(tmp_path, (), ["vendor/**"]).fetch_content("vendor/e.md")


async def test_a_thousand_files_are_listed_in_order(tmp_path: Path) -> None:
    put(tmp_path, {f"folder{number % 30}/file{number}.md": "x" for number in range(1_000)})

    found = ids(await LocalSource(tmp_path).list_documents())

    assert len(found) == 1_000
    assert found == sorted(found)


def test_sources_that_choose_differently_have_different_ids(tmp_path: Path) -> None:
    sources = (
        LocalSource(tmp_path),
        LocalSource(tmp_path, ["*.md"]),
        LocalSource(tmp_path, (), ["*.md"]),
        LocalSource(tmp_path, max_bytes=5),
        LocalSource(tmp_path / "inner"),
    )

    assert len({source.id for source in sources}) == len(sources)
    assert LocalSource(tmp_path / "." / "inner" / "..").id == LocalSource(tmp_path).id


# -- what git ignores ---------------------------------------------------------------------------------------


async def test_ignore_files_hold_at_every_level_and_may_take_back(tmp_path: Path) -> None:
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


async def test_rules_of_the_repository_around_a_folder_hold_in_it(tmp_path: Path) -> None:
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


async def test_rules_that_make_no_sense_change_nothing(tmp_path: Path) -> None:
    put(tmp_path, {".gitignore": b"!\n/\n***/\n[\n\xff\xfe\n\0\n\\\n//\n*.log\r\n", "a.md": "x", "b.log": "x"})

    assert "a.md" in ids(await LocalSource(tmp_path).list_documents())
    assert "b.log" not in ids(await LocalSource(tmp_path).list_documents())


def list_with_git(root: Path) -> list[str]:
    """What git would add, in a repository that is made here."""
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
    """The documents by another process, which is ended should it hang."""
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
def test_rules_of_many_stars_do_not_hold_up_the_listing(tmp_path: Path, rule: str, file: str) -> None:
    put(tmp_path, {".gitignore": f"{rule}\n", file: "x"})

    assert list_apart(tmp_path) == sorted((".gitignore", file))


def test_pipes_in_place_of_files_of_git_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path, {"one/a.md": "x", "two/a.md": "x", "three/a.md": "x", "three/.git": "gitdir: ../private\n"})
    (tmp_path / "private").mkdir()
    for pipe in ("one/.gitignore", "two/.git", "private/commondir"):
        os.mkfifo(tmp_path / pipe)

    assert [list_apart(tmp_path / name) for name in ("one", "two", "three")] == [["a.md"]] * 3


async def test_only_so_many_rules_of_a_file_count_and_none_that_is_longer_than_a_path(tmp_path: Path) -> None:
    rules = ["a.md", f"{'*' * 5_000}b.md", *["#"] * (MAX_LINES - 2), "c.md"]
    put(tmp_path, {".gitignore": "\n".join(rules), "a.md": "x", "b.md": "x", "c.md": "x"})

    assert ids(await LocalSource(tmp_path).list_documents()) == [".gitignore", "b.md", "c.md"]


async def test_a_range_that_makes_no_sense_ignores_nothing(tmp_path: Path) -> None:
    put(tmp_path, {".gitignore": "[z-a]*\n[[a]b\n", "a.md": "x", "[b": "x"})

    assert ids(await LocalSource(tmp_path).list_documents()) == [".gitignore", "a.md"]


# -- hostile folders ----------------------------------------------------------------------------------------


async def test_binary_and_oversized_files_are_reported_and_cannot_be_fetched(tmp_path: Path) -> None:
    put(tmp_path, {"a.md": "x", "logo.png": b"\x89PNG\0\0", "late.txt": b"x" * 9_000 + b"\0"})
    with (tmp_path / "huge.md").open("wb") as sparse:
        sparse.truncate(100_000_000)
    source = LocalSource(tmp_path)

    listing = await source.list_documents()

    assert ids(listing) == ["a.md", "late.txt"]
    assert reasons(listing) == {
        "huge.md": "has 100,000,000 bytes, over the limit of 2,000,000",
        "logo.png": "is binary",
    }
    for id in ("huge.md", "logo.png"):
        with pytest.raises(SourceError):
            await source.fetch_content(id)


async def test_links_are_not_followed_wherever_they_lead(tmp_path: Path) -> None:
    put(tmp_path, {"outside/secret.md": "secret", "root/docs/a.md": "x"})
    root = tmp_path / "root"
    (root / "out.md").symlink_to(tmp_path / "outside" / "secret.md")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "within.md").symlink_to(root / "docs" / "a.md")
    (root / "nowhere.md").symlink_to(root / "absent")
    (root / "circle.md").symlink_to(root / "circle.md")
    (root / "docs" / "up").symlink_to(root)
    source = LocalSource(root)

    listing = await source.list_documents()

    assert ids(listing) == ["docs/a.md"]
    assert reasons(listing) == {
        "circle.md": "is a link that leads nowhere",
        "docs/up": "is a link; . is read where it stands",
        "nowhere.md": "is a link that leads nowhere",
        "out": "is a link that leads out of the folder",
        "out.md": "is a link that leads out of the folder",
        "within.md": "is a link; docs/a.md is read where it stands",
    }
    for id in ("out.md", "out/secret.md", "docs/up/docs/a.md", "circle.md", "within.md"):
        with pytest.raises((SourceError, NotFound)):
            await source.fetch_content(id)


async def test_a_root_that_is_reached_over_a_link_is_read(tmp_path: Path) -> None:
    put(tmp_path, {"real/a.md": "x"})
    (tmp_path / "link").symlink_to(tmp_path / "real")

    assert (await LocalSource(tmp_path / "link").fetch_content("a.md")).body == b"x"


@pytest.mark.parametrize(
    "id",
    ["../outside.md", "../../etc/passwd", "/etc/passwd", "a/../../outside.md", "./a.md", "a//b", "a.md/", "", "\0"],
)
async def test_a_path_that_is_not_plainly_within_the_folder_is_refused(tmp_path: Path, id: str) -> None:
    put(tmp_path, {"outside.md": "secret", "root/a.md": "x"})

    with pytest.raises(SourceError, match="not a path within the folder"):
        await LocalSource(tmp_path / "root").fetch_content(id)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(parts=st.lists(st.sampled_from(("..", ".", "", "a.md", "root", "out", "secret.md", "%2e%2e", "..\\", "\udcff"))))
async def test_no_path_at_all_leads_to_what_lies_outside(tmp_path: Path, parts: list[str]) -> None:
    put(tmp_path, {"secret.md": "secret", "out/secret.md": "secret", "root/a.md": "x"})
    link = tmp_path / "root" / "out"
    if not link.is_symlink():
        link.symlink_to(tmp_path / "out")

    try:
        content = await LocalSource(tmp_path / "root").fetch_content("/".join(parts))
    except (SourceError, NotFound):
        return
    assert content.body == b"x"


async def test_odd_names_are_read_or_reported_and_never_end_the_listing(tmp_path: Path) -> None:
    put(
        tmp_path,
        dict.fromkeys(("new\nline.md", "ünïcode 🧶.md", " ", "-rf", "a\\b.md", "'\"`$.md", "\u202eevil.md"), "x"),
    )
    put(tmp_path, {os.fsdecode(b"bad-\xff.md"): "x", os.fsdecode(b"dir-\xfe/a.md"): "x"})
    source = LocalSource(tmp_path)

    listing = await source.list_documents()

    assert len(listing.documents) == 7
    assert set(reasons(listing).values()) == {"has a name that is not UTF-8"}
    assert sorted(reasons(listing)) == ["bad-\\udcff.md", "dir-\\udcfe/a.md"]
    for document in listing.documents:
        assert (await source.fetch_content(document.id)).body == b"x"


async def test_what_is_no_regular_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "s"))
    put(tmp_path, {"a.md": "x"})
    try:
        listing = await LocalSource(tmp_path).list_documents()
        with pytest.raises(SourceError, match="not a regular file"):
            await LocalSource(tmp_path).fetch_content("pipe")
    finally:
        listener.close()

    assert ids(listing) == ["a.md"]
    assert reasons(listing) == {"pipe": "is not a regular file", "s": "is not a regular file"}


async def test_a_file_that_goes_away_meanwhile_is_not_found(tmp_path: Path) -> None:
    source = LocalSource(put(tmp_path, {"a.md": "x"}))
    await source.list_documents()
    (tmp_path / "a.md").unlink()

    with pytest.raises(NotFound):
        await source.fetch_content("a.md")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
async def test_what_may_not_be_read_is_reported(tmp_path: Path) -> None:
    put(tmp_path, {"closed.md": "x", "closed/a.md": "x", "a.md": "x"})
    (tmp_path / "closed.md").chmod(0)
    (tmp_path / "closed").chmod(0)
    try:
        listing = await LocalSource(tmp_path).list_documents()
    finally:
        (tmp_path / "closed").chmod(0o700)

    assert ids(listing) == ["a.md"]
    assert set(reasons(listing)) == {"closed", "closed.md"}


@pytest.mark.parametrize(
    ("name", "is_read"),
    [
        (".env", False),
        ("deploy/.env.production", False),
        ("keys/id_ed25519", False),
        ("server.PEM", False),
        (".mcp.json", False),
        ("conf/secrets.yaml", False),
        (".env.example", True),
        ("environment.md", True),
        ("keyboard.txt", True),
    ],
)
async def test_files_that_are_made_for_secrets_are_left_out_and_told(tmp_path: Path, name: str, is_read: bool) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("PASSWORD=hunter2\n")

    listing = await LocalSource(tmp_path).list_documents()

    assert [document.id for document in listing.documents] == ([name] if is_read else [])
    assert [each.document for each in listing.skipped] == ([] if is_read else [name])
    if not is_read:
        with pytest.raises(SourceError):
            await LocalSource(tmp_path).fetch_content(name)


async def test_folders_that_tools_fill_are_passed_over_also_without_git(tmp_path: Path) -> None:
    for name in ("node_modules/left-pad/README.md", ".venv/lib/a.py", "src/__pycache__/b.txt", "docs/node_modules"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text\n")

    listing = await LocalSource(tmp_path).list_documents()

    assert [document.id for document in listing.documents] == ["docs/node_modules"]
