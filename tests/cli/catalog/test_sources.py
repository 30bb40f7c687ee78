"""Sources and domains on the command line: lists, refreshes and skipped sources."""

from __future__ import annotations

import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from clew.catalog.indexing.pipeline import MANY
from tests.cli.catalog.conftest import settings
from tests.cli.conftest import Clew


def test_domains_are_listed_with_what_they_hold(clew: Clew, tools: Path, folder: Path) -> None:
    (listed,) = clew("domains", "ls").rows
    assert listed == ["warehouse", "3", "1", "", "Payments and those who make them."]
    (info,) = clew("domains", "--json", "--scopes", "finance").json
    assert len(info["entry_points"]) == 4
    settings(folder, "[catalog]\nrepository = false\n")
    empty = clew("domains")
    assert (empty.out, empty.code) == ("", 0)
    assert "No domains" in empty.err


@pytest.mark.req("ERN-24")
def test_sources_are_refreshed_one_by_one_all_or_not_at_all(clew: Clew, folder: Path) -> None:
    for name in ("one", "two"):
        (folder.parent / name).mkdir()
        (folder.parent / name / "page.md").write_text(f"# {name}\n\nText of {name}.\n")
    tables = [f"[sources.{name}]\nkind = 'local'\nroot = '{name}'\n" for name in ("one", "two", "gone")]
    settings(folder, "[catalog]\nrepository = false\n" + "".join(tables))

    states = {each["domain"]: each for each in clew("refresh", "--list", "--json").json}
    assert [states[name]["is_fresh"] for name in ("one", "two", "gone")] == [False, False, False]
    assert clew("refresh", "--list").rows[0][3] == "it was never indexed"

    first = clew("refresh", "--json")
    assert first.code == 1
    outcomes = {each["domain"]: each["outcome"] for each in first.json}
    assert outcomes == {"one": "refreshed", "two": "refreshed", "gone": "failed"}
    shown = clew("refresh")
    assert shown.code == 1
    assert any(line.startswith("failed  gone") and "there is no such folder" in line for line in shown.lines)

    (folder.parent / "one" / "page.md").write_text("# one\n\nAnother text.\n")
    (folder.parent / "two" / "page.md").write_text("# two\n\nAnother text.\n")
    (only,) = clew("refresh", states["one"]["source_id"], "--json").json
    assert (only["domain"], only["changed"]) == ("one", 1)
    assert "Text of two" in clew("trail", "search", "text of two", "--schema", "resource.v1", "--json").out
    rebuilt = {each["domain"]: each for each in clew("refresh", "--all", "--json").json}
    assert rebuilt["two"]["outcome"] == "refreshed"
    assert "Another text" in clew("get", "two://resources/page.md").out

    for number in range(MANY):
        (folder.parent / "two" / f"{number}.md").write_text("# Page\n\nText.\n")
    clew("refresh", states["two"]["source_id"])
    for page in (folder.parent / "two").iterdir():
        page.unlink()
    kept = clew("refresh", states["two"]["source_id"], "--json")
    assert (kept.code, kept.json[0]["outcome"]) == (1, "failed")
    assert clew("get", "two://resources/page.md").code == 0
    assert clew("refresh", states["two"]["source_id"], "--force").code == 0
    assert clew("get", "two://resources/page.md").code == 1


def test_a_secret_of_a_source_is_named_and_never_shown(clew: Clew, folder: Path) -> None:
    secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"
    table = (
        "[sources.pulls]\nkind = 'github'\nrepo = 'a/b'\nbase_url = 'http://127.0.0.1:1'\nattempts = 1\ntoken = '{}'\n"
    )
    settings(folder, table.format("github"))
    clew("trust", "--yes")
    assert "[sources.pulls] is left out: it names neither a secret nor a variable that is there" in clew("domains").err
    clew("secret", "put", "github", stdin=secret.encode())
    results = [clew("domains", "--json"), clew("refresh", "--list", "--json"), clew("refresh", "--json")]
    settings(folder, table.format(secret))
    results += [clew("trust", "--yes")]
    results += [clew("domains"), clew("ask", "x"), clew("refresh")]
    assert [each.code for each in results] == [0, 0, 1, 0, 0, 0, 0]
    assert all(secret not in each.out + each.err for each in results)


def test_a_database_of_the_settings_is_found_from_any_folder(
    clew: Clew, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(folder.parent / "shop.db")) as database:
        database.executescript("CREATE TABLE orders (id INTEGER, total NUMERIC);")
    settings(folder, "[catalog]\nrepository = false\n[sources.shop]\nkind = 'warehouse'\nurl = 'sqlite:///shop.db'\n")
    (folder.parent / "below").mkdir()
    monkeypatch.chdir(folder.parent / "below")
    (report,) = clew("refresh", "--json").json
    assert (report["outcome"], report["documents"]) == ("refreshed", 1)


def test_odd_files_are_skipped_with_a_reason_and_hold_nobody_up(clew: Clew, folder: Path) -> None:
    root = folder.parent
    deep = root.joinpath(*["n"] * 200)
    deep.mkdir(parents=True)
    (deep / "leaf.md").write_text("# Leaf\n\nDeep down.\n")
    os.mkfifo(root / "pipe.md")
    with (root / "sparse.md").open("wb") as sparse:
        sparse.truncate(100_000_000)
    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind("socket.md")  # from the working folder, as a whole path may be too long for a socket
    (root / ("long-" * 40 + ".md")).write_bytes(b"\x00binary")
    result = clew("refresh", "--json")
    (report,) = result.json
    reasons = {each["document"]: each["reason"] for each in report["skipped"]}
    assert (result.code, report["documents"]) == (0, 1)
    assert reasons["pipe.md"] == reasons["socket.md"] == "is not a regular file"
    assert "over the limit" in reasons["sparse.md"]
    shown = clew("refresh", report["source_id"])
    assert "skipped long-long-" in shown.err
    assert all(len(line) < 200 for line in shown.err.splitlines())
    assert clew("get", f"repo://resources/{'n/' * 200}leaf.md").code == 0
