"""Rules on a trail: three tiers, found by intent, following the files, and gone with them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from clew.access import Principal
from clew.clock import ManualClock
from clew.errors import AccessDenied, ConfigError, InvalidInput, NotFound
from clew.llm import open_embedder
from clew.skills.rules import tree
from clew.skills.rules.index import REFERENCE_SCHEMA, RULE_SCHEMA, RuleReference
from clew.skills.rules.tree import Rules, open_rules
from clew.trail import open_trail
from clew.trail.mirror import Mirrored
from clew.trail.model.breadcrumb import Breadcrumb, Draft
from clew.trail.model.selector import Selector
from clew.trail.store import Trail
from tests.leaked_keys import CARELESS, KEY_BODY, TOKEN, read_whole_trail
from tests.skills.formats.trees import plant

ROOT_RULES = """# Project

Use tabs. ![picture](docs/picture.md)

- [Database migrations](docs/migrations.md)
- [Releases](docs/release.md) and [the site](https://example.org/x.md)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return plant(
        tmp_path / "project",
        {
            "AGENTS.md": ROOT_RULES,
            "src/auth/AGENTS.md": "Never log tokens. See [templates](notes/forms.md#top).\n",
            "src/auth/notes/forms.md": "# Forms\nHow the pages for signing in are made.\n",
            "docs/migrations.md": "# Migrations\nEvery schema change is a numbered SQL file.\n",
            "docs/release.md": "# Releases\nTag the commit, publish the wheel, write the changelog.\n",
            "docs/picture.md": "",
        },
    )


@pytest.fixture
async def rules(root: Path, tmp_path: Path) -> AsyncIterator[Rules]:
    opened = await open_rules(root, trail=f"sqlite://{tmp_path}/rules.db", embedder=open_embedder("wordllama"))
    yield opened
    await opened.close()


async def titles(rules: Rules, intent: str, limit: int = 5) -> list[str]:
    return [each.reference.display_text for each in await rules.search_references(intent, limit)]


async def on_trail(trail: Trail, me: Principal, schema: str) -> list[Breadcrumb]:
    page = await trail.records.list(Selector(schema_name=schema), by=me, limit=500, oldest_first=True)
    return list(page.items)


@pytest.mark.req("PLA-14")
async def test_rules_come_in_three_tiers(rules: Rules) -> None:
    (always,) = await rules.get_root_rules()
    assert always.text == ROOT_RULES
    assert [each.text for each in await rules.get_rules_for_path("README.md")] == []
    (nested,) = await rules.get_rules_for_path("src/auth/x")
    assert nested.text.startswith("Never log tokens.")
    (match,) = await rules.search_references("add a database migration")
    assert await rules.get_reference_content(match.reference) == (
        "# Migrations\nEvery schema change is a numbered SQL file.\n"
    )


@pytest.mark.req("PLA-15")
async def test_a_reference_says_where_it_stands_and_where_it_leads(rules: Rules, root: Path) -> None:
    (match,) = await rules.search_references("templates", limit=1)
    assert match.reference == RuleReference(
        display_text="templates",
        relative_path="notes/forms.md",
        absolute_path=os.path.realpath(root / "src/auth/notes/forms.md"),
        source="src/auth/AGENTS.md",
        line_number=1,
    )
    assert match.relevance >= 1.0
    stats = await rules.stats()
    assert (stats.rules, stats.references, stats.problems) == (2, 3, ())


@pytest.mark.req("PLA-15")
async def test_references_are_found_by_their_text_and_by_what_the_document_says(rules: Rules) -> None:
    assert (await titles(rules, "database migration"))[0] == "Database migrations"
    assert (await titles(rules, "write the changelog and publish the wheel"))[0] == "Releases"
    assert await titles(rules, "migrations releases templates", limit=2) != []
    assert len(await titles(rules, "migrations releases templates", limit=1)) <= 1


async def test_nothing_is_found_where_nothing_is_close(rules: Rules) -> None:
    for intent in ("bake a chocolate cake", "write a poem about the sea", "which bird sings at night"):
        assert await titles(rules, intent) == []
    for limit in (0, -1, 101):
        with pytest.raises(InvalidInput, match="limit"):
            await rules.search_references("x", limit)
    with pytest.raises(InvalidInput, match="text"):
        await rules.search_references(" ")


@pytest.mark.req("PLA-15")
async def test_a_refresh_picks_up_what_is_new_changed_and_deleted(rules: Rules, root: Path) -> None:
    assert await rules.refresh() == Mirrored()
    plant(root, {"web/AGENTS.md": "Read [styling of pages](style.md).", "web/style.md": "Colours of buttons"})
    plant(root, {"docs/release.md": "# Releases\nAsk the zeppelin captain first.\n"})
    assert await rules.refresh() == Mirrored(created=2, updated=1)
    assert (await titles(rules, "styling of pages"))[0] == "styling of pages"
    assert (await titles(rules, "ask the zeppelin captain"))[0] == "Releases"
    (root / "web" / "AGENTS.md").unlink()
    assert await rules.refresh() == Mirrored(deleted=2)
    assert "styling of pages" not in await titles(rules, "styling of pages")
    (root / "docs" / "release.md").unlink()
    assert await rules.refresh() == Mirrored(deleted=1)
    (problem,) = (await rules.stats()).problems
    assert (problem.path, problem.line) == ("AGENTS.md", 6)
    os.utime(root / "AGENTS.md")
    assert await rules.refresh() == Mirrored()


@pytest.mark.req("PLA-16")
async def test_a_rule_is_one_breadcrumb_and_takes_its_references_with_it(
    root: Path, trail: Trail, me: Principal
) -> None:
    rules = await open_rules(root, trail=trail, by=me)
    stored = await on_trail(trail, me, RULE_SCHEMA)
    assert [each.context["path"] for each in stored] == ["AGENTS.md", "src/auth/AGENTS.md"]
    assert stored[0].context["content"] == ROOT_RULES
    assert stored[0].context["mtime"] == (root / "AGENTS.md").stat().st_mtime_ns // 1_000_000
    again = await open_rules(root, trail=trail, by=me)
    assert [each.id for each in await on_trail(trail, me, RULE_SCHEMA)] == [each.id for each in stored]

    await rules.forget("AGENTS.md")
    assert [each.title for each in await on_trail(trail, me, REFERENCE_SCHEMA)] == ["templates"]
    with pytest.raises(NotFound):
        await rules.forget("AGENTS.md")
    assert await again.refresh() == Mirrored(created=3)


@pytest.mark.req("PLA-16")
async def test_references_of_a_rule_that_somebody_deleted_are_not_found_and_swept(
    root: Path, trail: Trail, me: Principal
) -> None:
    rules = await open_rules(root, trail=trail, by=me)
    (stored, _) = await on_trail(trail, me, RULE_SCHEMA)
    assert "Releases" in await titles(rules, "releases")
    await trail.records.delete(stored.id, by=me)
    assert "Releases" not in await titles(rules, "releases")
    (root / "AGENTS.md").unlink()
    assert (await rules.refresh()).deleted == 2


async def test_a_trail_holds_the_rules_of_several_roots_and_owners_apart(
    root: Path, tmp_path: Path, trail: Trail, me: Principal, stranger: Principal
) -> None:
    other = plant(tmp_path / "other", {"AGENTS.md": "See [whale songs](w.md)", "w.md": "Deep"})
    first, second = await open_rules(root, trail=trail, by=me), await open_rules(other, trail=trail, by=me)
    third = await open_rules(root, trail=trail, by=stranger)
    assert await titles(second, "whale songs") == ["whale songs"]
    assert await titles(first, "whale songs") == []
    assert await first.refresh() == await second.refresh() == await third.refresh() == Mirrored()
    assert (await third.stats()).references == 3


@pytest.mark.req("PLA-15")
async def test_closing_lets_go_of_the_trail_that_was_opened_and_of_no_other(
    root: Path, tmp_path: Path, trail: Trail, me: Principal
) -> None:
    own = await open_rules(root, trail=f"sqlite://{tmp_path}/own.db")
    await own.close()
    await own.close()
    reopened = await open_trail(f"sqlite://{tmp_path}/own.db", embedder=open_embedder("wordllama"))
    assert len(await on_trail(reopened, Principal(owner_id="local"), RULE_SCHEMA)) == 2
    await reopened.close()
    given = await open_rules(root, trail=trail, by=me)
    await given.close()
    assert len(await on_trail(trail, me, RULE_SCHEMA)) == 2
    memory = await open_rules(root)
    assert (await memory.stats()).rules == 2
    await memory.close()
    with pytest.raises(ConfigError, match="does not exist"):
        await open_rules(tmp_path / "missing")


async def test_a_document_is_read_when_it_is_asked_for_and_only_below_the_root(
    rules: Rules, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("a secret")
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    plant(root, {".env": "KEY=1", "bad.md": b"\xff", "nul.md": b"a\x00"})
    (match,) = await rules.search_references("database migrations", limit=1)
    (root / "docs" / "migrations.md").write_text("later")
    assert await rules.get_reference_content(match.reference) == "later"
    (root / "docs" / "migrations.md").unlink()
    assert await rules.get_reference_content(match.reference) is None
    for path in (tmp_path / "secret.md", root / "link.md", root / ".env", root / "bad.md", root / "nul.md", root):
        reference = RuleReference(
            display_text="x", relative_path="x.md", absolute_path=str(path), source="AGENTS.md", line_number=1
        )
        assert await rules.get_reference_content(reference) is None


async def test_links_that_lead_nowhere_or_out_are_reported_and_the_rest_is_kept(tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("a secret")
    text = "[a](../secret.md) [b](/etc/x.md) [c](missing.md) [d](out.md)\n[e](good.md) [e](good.md) [f](dir.md)"
    root = plant(tmp_path / "root", {"AGENTS.md": text, "good.md": "good", "dir.md/x": ""})
    (root / "out.md").symlink_to(tmp_path / "secret.md")
    rules = await open_rules(root)
    stats = await rules.stats()
    assert stats.references == 1
    assert [(each.line, each.message.split(":")[0]) for each in stats.problems] == [
        (1, "the reference ../secret.md leads out of the root"),
        (1, "the reference /etc/x.md leads out of the root"),
        (1, "the reference missing.md leads to no readable text"),
        (1, "the reference out.md leads to no readable text"),
        (2, "the reference dir.md leads to no readable text"),
    ]
    await rules.close()


async def test_hostile_texts_are_stored_within_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_LINKS", 200)
    links = "\n".join(f"[l{number}](d.md)" for number in range(300))
    plant(tmp_path, {"AGENTS.md": "\x01" * 1_000_000, "a/AGENTS.md": links, "a/d.md": "\x02" * 1_000_000})
    plant(tmp_path, {"b/AGENTS.md": "[ \u202e\x1b[31m](d.md) [](d.md)", "b/d.md": "[" * 100_000})
    rules = await open_rules(tmp_path, embedder=open_embedder("hash"))
    stats = await rules.stats()
    assert (stats.rules, stats.references) == (3, 200)
    assert await rules.refresh() == Mirrored()
    await rules.close()


async def test_keys_in_rules_and_their_documents_never_reach_the_trail(
    tmp_path: Path, trail: Trail, me: Principal
) -> None:
    link = f"- [signing with {TOKEN}](docs/signing.md), {'long ' * 50} {TOKEN}"
    document = f"How to sign. {CARELESS}\n{'x' * 19_600}\n{CARELESS}"
    root = plant(tmp_path / "root", {"AGENTS.md": f"{CARELESS}\n\n{link}\n", "docs/signing.md": document})
    rules = await open_rules(root, trail=trail, by=me)
    kept = await read_whole_trail(trail, me)
    assert "How to sign." in kept
    assert "and push with" in kept
    for secret in (TOKEN, TOKEN[:12], KEY_BODY, KEY_BODY[:8]):
        assert secret not in kept
    (match,) = await rules.search_references("how to sign")
    assert await rules.get_reference_content(match.reference) == document


async def test_two_that_refresh_at_once_write_each_rule_once(root: Path, tmp_path: Path, me: Principal) -> None:
    address = f"sqlite://{tmp_path}/shared.db"
    clock = ManualClock()
    first, second = [await open_trail(address, clock) for _ in range(2)]
    both = [Rules(root, each, by=me) for each in (first, second)]
    await asyncio.gather(*(each.refresh() for each in both * 3))
    plant(root, {"AGENTS.md": "Only [releases](docs/release.md)."})
    await asyncio.gather(*(each.refresh() for each in both * 3))
    assert len(await on_trail(first, me, RULE_SCHEMA)) == 2
    assert [each.title for each in await on_trail(second, me, REFERENCE_SCHEMA)] == ["templates", "releases"]
    await asyncio.gather(first.close(), second.close())


async def test_only_a_curator_writes_rules(root: Path, trail: Trail, me: Principal) -> None:
    emitter = Principal(owner_id=me.owner_id, agent_id="bot", roles=frozenset({"emitter", "subscriber"}))
    for schema in (RULE_SCHEMA, REFERENCE_SCHEMA):
        with pytest.raises(AccessDenied, match="Clew's own"):
            await trail.records.create(Draft(title="x", context={}, schema_name=schema), by=emitter)
