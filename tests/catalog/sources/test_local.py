"""A folder of this machine as a source: what is read."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.catalog.formats.types import SOURCE_CODE
from clew.catalog.resource import ContentSource, DocumentListing
from clew.catalog.sources.local import LocalSource
from clew.errors import NotFound, SourceError
from tests.catalog.sources.contract import SourceContract
from tests.catalog.sources.folders import ids, put


class TestLocal(SourceContract):
    absent = "docs/absent.md"

    @pytest.fixture
    async def source(self, tmp_path: Path) -> AsyncIterator[ContentSource]:
        put(tmp_path, {"README.md": "# Shop", "docs/refunds.rst": "Refunds\n=======\n\nText.", "src/a.py": "x = 1\n"})
        built = LocalSource(tmp_path)
        yield built
        await built.close()


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


async def test_a_file_that_changes_between_two_listings_is_looked_at_again(tmp_path: Path) -> None:
    source = LocalSource(put(tmp_path, {"a.md": "text", "b.md": "text", "c.md": "text"}))
    assert ids(await source.list_documents()) == ["a.md", "b.md", "c.md"]
    status = (tmp_path / "a.md").stat()
    (tmp_path / "a.md").write_bytes(b"\0\1\2\3")
    os.utime(tmp_path / "a.md", ns=(status.st_atime_ns, status.st_mtime_ns))  # as big and as old as before
    (tmp_path / "b.md").unlink()
    (tmp_path / "b.md").symlink_to(tmp_path / "c.md")
    listed = await source.list_documents()
    assert ids(listed) == ["c.md"]
    assert [each.document for each in listed.skipped] == ["a.md", "b.md"]
    assert await source.list_documents() == listed


async def test_an_empty_folder_has_no_documents(tmp_path: Path) -> None:
    assert await LocalSource(tmp_path).list_documents() == DocumentListing(documents=[], skipped=[])


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
async def test_the_type_of_a_file_follows_from_its_name_and_beginning(
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


async def test_files_of_unlisted_types_are_neither_listed_nor_examined(tmp_path: Path) -> None:
    (tmp_path / "read.md").write_text("# Kettle\n")
    (tmp_path / "kettle.py").write_bytes(b"\0")

    everything = await LocalSource(tmp_path).list_documents()
    documents = await LocalSource(tmp_path, unlisted=(SOURCE_CODE,)).list_documents()

    assert [each.document for each in everything.skipped] == ["kettle.py"]
    assert ([each.id for each in documents.documents], documents.skipped) == (["read.md"], [])


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
