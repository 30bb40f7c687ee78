"""Documents of a repository as references (O15, SYL-71, SYL-83)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.knowledge.code.file_content import blob_id
from clew.knowledge.code.files import Tree
from clew.knowledge.evidence.trust import trust_of
from clew.knowledge.history.cross_domain import CrossDomain
from clew.knowledge.references import documents
from clew.knowledge.references.documents import KeptDocuments, is_document, keep_documents, type_of
from clew.trail.bulk import each_record
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import Node, NodeFilter, to_node, to_selector
from clew.trail.store import Trail
from tests.knowledge.references.writing import write

README = "# Weather\n\nTells the weather.\n\n## Install\n\nRun `make`.\n\n## Use\n\nSee src/app.py for the parser.\n"
KEY = "ghp_" + "a1B2" * 9


async def kept(trail: Trail, root: Path, clock: ManualClock, me: Principal) -> KeptDocuments:
    return await keep_documents(trail, root, Tree(root).look(), clock, by=me)


async def nodes(trail: Trail, by: Principal) -> dict[str, Node]:
    wanted = to_selector(NodeFilter(domain=NodeDomain.ACADEMIC))
    found = [to_node(each) async for each in each_record(trail, wanted, by=by)]
    return {each.name: each for each in found}


@pytest.mark.req("O15", "SYL-71", "SYL-83")
async def test_a_document_is_a_node_for_each_section_with_its_lines(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    write(root, "README.md", README)
    report = await kept(trail, root, clock, me)
    found = await nodes(trail, me)
    assert list(found) == ["Weather", "Weather › Install", "Weather › Use"]
    install = found["Weather › Install"]
    assert (install.path, install.line_start, install.line_end) == ("README.md", 5, 7)
    lines = README.split("\n")[install.line_start - 1 : install.line_end]
    assert install.content == "\n".join(lines)
    assert install.content_hash == blob_id(README.encode())
    assert install.node_type is NodeType.DOCUMENTATION
    assert (install.trust, trust_of(install, clock.now()), install.verified) == (70, 70, True)
    assert (report.documents, report.nodes) == (1, 3)


@pytest.mark.req("O15")
async def test_what_has_not_changed_is_not_written_and_what_is_gone_goes(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    write(root, "README.md", README)
    write(root, "docs/guide.md", "# Guide\n\nFirst steps.\n")
    await kept(trail, root, clock, me)
    head = await trail.log.head()
    assert (await kept(trail, root, clock, me)).changed == 0
    assert await trail.log.head() == head
    before = await nodes(trail, me)
    write(root, "README.md", README.replace("## Install\n\nRun `make`.\n\n", "").replace("parser", "lexer"))
    (root / "docs/guide.md").unlink()
    report = await kept(trail, root, clock, me)
    after = await nodes(trail, me)
    assert (report.changed, report.removed) == (1, 1)
    assert list(after) == ["Weather", "Weather › Use"]
    assert after["Weather › Use"].id == before["Weather › Use"].id
    assert "lexer" in after["Weather › Use"].content


async def test_whoever_is_interrupted_begins_again(trail: Trail, root: Path, clock: ManualClock, me: Principal) -> None:
    write(root, "README.md", README)
    await kept(trail, root, clock, me)
    before = await nodes(trail, me)
    await trail.records.delete(before["Weather"].id, by=me)
    await kept(trail, root, clock, me)
    assert set(await nodes(trail, me)) == set(before)


async def test_two_who_look_at_once_write_each_document_once(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    for text in (README, README.replace("Run", "Start"), README.replace("## Use", "## Usage")):
        write(root, "README.md", text)
        write(root, "docs/one.md", text)
        await asyncio.gather(*(kept(trail, root, clock, me) for _ in range(4)))
        wanted = to_selector(NodeFilter(domain=NodeDomain.ACADEMIC))
        found = [to_node(each) async for each in each_record(trail, wanted, by=me)]
        assert len(found) == 6
        assert {each.content_hash for each in found} == {blob_id(text.encode())}


async def test_a_section_documents_the_code_that_it_names_and_only_while_it_does(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    write(root, "README.md", README)
    write(root, "src/app.py", "x = 1\n")
    await kept(trail, root, clock, me)
    use = (await nodes(trail, me))["Weather › Use"]
    across = CrossDomain(trail, me)
    assert [each.path for each in await across.code_for_academic(use.id)] == ["src/app.py"]
    assert [each.id for each in await across.academic_for_code("src/app.py")] == [use.id]
    write(root, "README.md", README.replace("src/app.py", "the source"))
    await kept(trail, root, clock, me)
    assert await across.code_for_academic(use.id) == []


async def test_keys_ignored_files_and_what_is_no_prose_are_left_out(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    write(root, ".gitignore", "drafts/\n")
    write(root, "drafts/secret.md", "# Draft\n\nnobody reads this\n")
    write(root, "docs/token.md", f"# Token\n\nUse {KEY} here.\n")
    write(root, "requirements.txt", "httpx\n")
    write(root, "LICENSE.txt", "All rights.\n")
    write(root, "CHANGELOG.md", "# 1.0\n\n- new\n")
    write(root, "docs/binary.md", b"\0\1\2\0")
    write(root, "docs/empty.md", "\n\n")
    report = await kept(trail, root, clock, me)
    found = await nodes(trail, me)
    assert [each.path for each in found.values()] == ["docs/token.md"]
    assert KEY not in found["Token"].content
    assert report.left_out == {"docs/binary.md": "is binary", "docs/empty.md": "is empty"}


def test_the_path_says_what_a_document_is() -> None:
    assert type_of("docs/tutorial.md") is NodeType.TUTORIAL
    assert type_of("docs/getting-started/one.rst") is NodeType.TUTORIAL
    assert type_of("docs/best-practices.md") is NodeType.BEST_PRACTICE
    assert type_of("docs/reference.md") is NodeType.DOCUMENTATION
    assert all(map(is_document, ("README", "a/b/notes.rst")))
    assert not any(map(is_document, ("tests/data/words.txt", "src/app.py")))


async def test_huge_odd_and_hostile_documents_do_no_harm(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    write(root, "docs/huge.md", b"# H\n\n" + b"word " * 300_000)
    write(root, "docs/long.md", "# Long\n\n" + "\n\n".join(f"Paragraph {n} " + "text " * 100 for n in range(100)))
    write(root, "docs/same.md", "# A\n\none\n\n# A\n\ntwo\n\n# A\n\nthree\n")
    write(root, "docs/ünï.md", "# Ünïcode ‮ 日本\n\nテキスト\u200b\u2066 und 🎉\n")
    write(root, "docs/bare.txt", "just a line")
    write(root, "docs/crlf.rst", "Title\r\n=====\r\n\r\nBody\r\n")
    write(root, "docs/utf16.md", "# Sixteen\n\nbits\n".encode("utf-16"))
    report = await kept(trail, root, clock, me)
    found = [to_node(each) async for each in each_record(trail, to_selector(NodeFilter()), by=me)]
    assert report.left_out == {"docs/huge.md": "has over 1,000,000 bytes"}
    assert sum(each.path == "docs/same.md" for each in found) == 3
    parts = [each for each in found if each.path == "docs/long.md"]
    text = (root / "docs/long.md").read_text().split("\n")
    assert len(parts) > 5
    assert all(len(each.content) <= 8_000 for each in parts)
    for each in parts:
        assert each.content == "\n".join(text[each.line_start - 1 : each.line_end]).strip()
    odd = next(each for each in found if each.path == "docs/ünï.md")
    assert not {"\u200b", "\u202e", "\u2066"} & set(odd.name + odd.content)
    assert "🎉" in odd.content
    assert next(each for each in found if each.path == "docs/utf16.md").name == "Sixteen"


async def test_there_are_no_more_documents_than_allowed(
    trail: Trail, root: Path, clock: ManualClock, me: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENTS", 2)
    for name in ("README.md", "docs/a.md", "z.md"):
        write(root, name, f"# {name}\n\ntext\n")
    report = await kept(trail, root, clock, me)
    assert (report.documents, list(report.left_out)) == (2, ["z.md"])


async def test_another_owner_sees_none_of_it(
    trail: Trail, root: Path, clock: ManualClock, me: Principal, stranger: Principal
) -> None:
    write(root, "README.md", README)
    await kept(trail, root, clock, me)
    assert await nodes(trail, stranger) == {}
    assert (await kept(trail, root, clock, stranger)).changed == 1
    assert {each.id for each in (await nodes(trail, me)).values()}.isdisjoint(
        each.id for each in (await nodes(trail, stranger)).values()
    )


async def test_what_tells_agents_what_to_do_is_no_document(
    trail: Trail, root: Path, clock: ManualClock, me: Principal
) -> None:
    write(root, "README.md", README)
    write(root, "AGENTS.md", "# Rules\n\nBe brief.\n")
    write(root, ".claude/agents/clerk.md", "# Clerk\n\nYou are a clerk.\n")
    write(root, ".claude/skills/feeding/SKILL.md", "# Feeding\n\nHerring at noon.\n")
    write(root, ".claude/skills/feeding/references/fish.md", "# Fish\n\nAll kinds of them.\n")
    report = await kept(trail, root, clock, me)
    assert list(await nodes(trail, me)) == ["Weather", "Weather › Install", "Weather › Use"]
    assert (report.documents, report.left_out) == (1, {})
