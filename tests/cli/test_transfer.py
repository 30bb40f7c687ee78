"""Moving a whole trail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.app import App
from clew.trail.model.edge import Edge
from tests.cli.conftest import Clew

Put = Callable[..., str]
InTrail = Callable[..., Any]


def test_an_export_imports_into_another_folder(clew: Clew, put: Put, in_trail: InTrail, tmp_path: Path) -> None:
    first, second = put("Zürich ✓", "--tag", "mine", context={"n": 1}), put("two", "--tag", "mine")
    clew("trail", "edit", first, "--set", "n=2")

    async def link(app: App) -> None:
        await app.trail.edges.add([Edge(source=first, target=second, type="references")], by=app.me)

    in_trail(link)
    file, other = tmp_path / "out.jsonl", str(tmp_path / "other")
    done = clew("trail", "export", str(file), "--versions", "--tag", "mine")
    assert (done.code, done.out, done.err) == (0, "", f"Wrote 5 lines to {file}.\n")
    assert file.stat().st_mode & 0o777 == 0o600
    report = clew("trail", "import", str(file), "--folder", other, "--json").json
    assert (report["created"], report["updated"], report["edges"]) == (2, 1, 1)
    moved = clew("trail", "show", first, "--full", "--json", "--folder", other).json
    assert (moved["title"], moved["context"], moved["version"]) == ("Zürich ✓", {"n": 2}, 2)
    again = clew("trail", "import", str(file), "--folder", other).out
    assert again.startswith("0 breadcrumbs created, 0 updated, 2 unchanged")


def test_an_export_to_standard_output_can_be_piped_into_an_import(clew: Clew, put: Put, tmp_path: Path) -> None:
    put("one", "--tag", "mine")
    exported = clew("trail", "export", "--tag", "mine").out
    assert [json.loads(line)["kind"] for line in exported.splitlines()] == ["header", "breadcrumb"]
    result = clew("trail", "import", "-", "--folder", str(tmp_path / "other"), stdin=exported.encode())
    assert (result.code, result.out.startswith("1 breadcrumb created")) == (0, True)


def test_a_file_is_replaced_only_on_demand_and_never_left_half_written(
    clew: Clew, put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("one")
    file = tmp_path / "out.jsonl"
    file.write_text("precious")
    assert clew("trail", "export", str(file)).code == 1
    assert file.read_text() == "precious"

    async def fail(*arguments: Any, **more: Any) -> Any:
        yield "half\n"
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("clew.cli.trail.transfer.export_trail", fail)
        result = clew("trail", "export", str(file), "--force")
    assert (result.code, result.err) == (1, "clew: No space left on device\n")
    assert file.read_text() == "precious"
    assert [each.name for each in tmp_path.iterdir() if each.name != ".clew"] == ["out.jsonl"]
    file.chmod(0o644)
    report = clew("trail", "export", str(file), "--force", "--json")
    assert (report.code, report.json) == (0, {"file": str(file), "lines": len(file.read_text().splitlines())})
    assert file.read_text() != "precious"
    assert file.stat().st_mode & 0o777 == 0o600
    assert "needs a file" in clew("trail", "export", "--json").err


def test_records_with_a_scope_are_exported_only_with_it(clew: Clew, put: Put) -> None:
    put("payroll", "--scope", "hr", "--tag", "mine")
    assert "payroll" not in clew("trail", "export", "--tag", "mine").out
    assert "payroll" in clew("trail", "export", "--tag", "mine", "--scopes", "hr").out


def test_lines_that_cannot_be_used_are_reported_and_the_rest_is_imported(clew: Clew, put: Put) -> None:
    put("makes the trail")
    good = '{"kind":"breadcrumb","id":"01900000-0000-7000-8000-000000000001","version":1,"title":"good","context":{}}'
    lines = ['{"kind":"header","format":1,"owner_id":"x"}', "broken", good, *["{}"] * 30]
    result = clew("trail", "import", "-", stdin="\n".join(lines).encode())
    assert result.code == 1
    assert result.out.startswith("1 breadcrumb created")
    assert result.err.splitlines()[0].startswith("line 2: ")
    assert result.err.splitlines()[-1] == "and 11 more lines"


@pytest.mark.parametrize("stdin", [b"", b"{}", b'{"kind":"header","format":99,"owner_id":"x"}', b"\x00\xff"])
def test_a_file_that_is_no_export_is_refused(clew: Clew, put: Put, stdin: bytes) -> None:
    put("makes the trail")
    result = clew("trail", "import", "-", stdin=stdin)
    assert (result.code == 1) == bool(stdin)
    assert len(result.err.splitlines()) == (1 if stdin else 0)


def test_a_file_that_is_missing_is_named(clew: Clew, folder: Path) -> None:
    result = clew("trail", "import", "nowhere.jsonl")
    assert (result.code, result.err) == (1, "clew: no file 'nowhere.jsonl'. Check the path\n")
    assert not folder.exists()


def test_changing_the_embedder_asks_for_a_reembedding_and_that_does_it(
    clew: Clew, put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a lighthouse keeper")
    monkeypatch.setenv("CLEW_EMBEDDER", "wordllama")
    refused = clew("trail", "search", "person in a tower", "--ranking", "vector")
    assert (refused.code, "clew trail reembed" in refused.err) == (1, True)
    assert clew("trail", "reembed").out == "1 vector made by wordllama.\n"
    assert clew("trail", "search", "person in a tower", "--ranking", "vector").code == 0
    assert clew("trail", "reembed").out == "All vectors are up to date.\n"
    assert clew("trail", "reembed", "--json").json == {"embedded": 0, "embedder": "wordllama"}
