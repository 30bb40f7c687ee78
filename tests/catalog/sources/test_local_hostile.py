"""Folders made to mislead: links, pipes, odd names, secrets."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.catalog.sources.local import LocalSource
from clew.errors import NotFound, SourceError
from tests.catalog.sources.folders import ids, put, reasons


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


@pytest.mark.parametrize(("moment", "sizes"), [("docs", {}), ("docs/a.md", {"docs/a.md": 1})])
async def test_a_folder_that_becomes_a_link_while_it_is_read_leads_nowhere(
    tmp_path: Path, moment: str, sizes: dict[str, int]
) -> None:
    put(tmp_path, {"outside/docs/a.md": "secret", "outside/docs/private.md": "secret", "root/docs/a.md": "x"})
    docs = tmp_path / "root" / "docs"

    def swap(path: str, is_folder: bool) -> bool:
        if path == moment and not docs.is_symlink():
            docs.rename(tmp_path / "kept")
            docs.symlink_to(tmp_path / "outside" / "docs")
        return False

    source = LocalSource(tmp_path / "root", leaves_out=swap)
    listing = await source.list_documents()
    assert {each.id: each.metadata["size"] for each in listing.documents} == sizes  # of the file that was there
    assert list(reasons(listing)) == ([] if sizes else [moment])

    docs.unlink()
    (tmp_path / "kept").rename(docs)
    with pytest.raises(SourceError, match="cannot be read"):
        await source.fetch_content("docs/a.md")


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


async def test_only_regular_files_are_opened(tmp_path: Path) -> None:
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


async def test_a_file_that_disappears_is_not_found(tmp_path: Path) -> None:
    source = LocalSource(put(tmp_path, {"a.md": "x"}))
    await source.list_documents()
    (tmp_path / "a.md").unlink()

    with pytest.raises(NotFound):
        await source.fetch_content("a.md")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read everything")
async def test_unreadable_files_are_reported(tmp_path: Path) -> None:
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
async def test_files_that_are_made_for_secrets_are_left_out_and_reported(
    tmp_path: Path, name: str, is_read: bool
) -> None:
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
