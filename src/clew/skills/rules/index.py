"""Stores rules and their linked documents as breadcrumbs, so that the trail's search finds them by intent. A reference
has a tag for its rule, and is deleted with it. Unchanged records are not written again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid5

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.skills.rules.files import AgentRule
from clew.trail.bulk import drop_records, each_record
from clew.trail.mirror import Mirrored, mirror_files, searchable_text
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Draft
from clew.trail.model.query import SearchRequest
from clew.trail.model.selector import Selector
from clew.trail.search.closeness import closeness
from clew.trail.store import Trail

RULE_SCHEMA, REFERENCE_SCHEMA = "rule.v1", "rule.reference.v1"
_NAMESPACE = UUID("c1d54c5e-0f6b-5a0b-93a4-6e5f4a1f0e77")


class RuleReference(msgspec.Struct, frozen=True, kw_only=True):
    """A link in a rule file to a document below the root. `relative_path` is the path in the link, `source` the path of
    the rule relative to the root, `line_number` is 1-based."""

    display_text: str
    relative_path: str
    absolute_path: str
    source: str
    line_number: int


class LinkedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A reference with its searchable text: the line of the link, and the document, both with secrets masked. `path` is
    relative to the root."""

    reference: RuleReference
    path: str
    about: str
    content: str


class RuleReferenceMatch(msgspec.Struct, frozen=True, kw_only=True):
    """A reference that matches an intent. A `relevance` of 1 is just close enough."""

    reference: RuleReference
    relevance: float


class RuleIndex:
    """The rules of one root on a trail. Safe to use from several tasks and processes at once."""

    def __init__(self, trail: Trail, root: str, by: Principal) -> None:
        self._trail = trail
        self._root = root
        self._by = by
        self._tag = f"rules:{self._id('root')}"
        self._everything = Selector(schema_names=(RULE_SCHEMA, REFERENCE_SCHEMA), all_tags=(self._tag,))

    async def sync(self, rules: Sequence[AgentRule], linked: Sequence[LinkedDocument]) -> Mirrored:
        """Update the trail to exactly these rules and documents."""
        drafts = [*map(self._rule_draft, rules), *map(self._reference_draft, linked)]
        return await mirror_files(self._trail, drafts, self._everything, by=self._by)

    async def search(self, intent: str, limit: int) -> list[RuleReferenceMatch]:
        """Return matching references, best first, each document once; none if no match is close. Raises
        InvalidInput."""
        selector = Selector(schema_name=REFERENCE_SCHEMA, all_tags=(self._tag,))
        request = SearchRequest(text=intent, selector=selector, limit=min(limit * 4, 1_000))
        hits = [hit for hit in (await self._trail.index.search(request, by=self._by)).hits if closeness(hit) >= 1.0]
        found: dict[str, RuleReferenceMatch] = {}
        for hit in hits:
            reference = read_reference(hit.breadcrumb)
            if reference is not None and len(found) < limit and await self._has_rule(reference.source):
                match = RuleReferenceMatch(reference=reference, relevance=closeness(hit))
                found.setdefault(reference.absolute_path, match)
        return list(found.values())

    async def counts(self) -> tuple[int, int]:
        """Return the number of rules and of references of this root on the trail."""
        names = [each.schema_name async for each in each_record(self._trail, self._everything, by=self._by)]
        return names.count(RULE_SCHEMA), names.count(REFERENCE_SCHEMA)

    async def remove(self, path: str) -> None:
        """Delete a rule from the trail. Its references go first, so that none remains without its rule. Raises
        NotFound."""
        selector = Selector(schema_name=REFERENCE_SCHEMA, all_tags=(self._tag, self._rule_tag(path)))
        references = [each.id async for each in each_record(self._trail, selector, by=self._by)]
        await drop_records(self._trail, references, by=self._by)
        await self._trail.records.delete(self._rule_id(path), by=self._by)

    async def _has_rule(self, path: str) -> bool:
        """Whether the rule of a reference still exists."""
        try:
            found = await self._trail.records.get(self._rule_id(path), by=self._by)
        except NotFound:
            return False
        return found.schema_name == RULE_SCHEMA

    def _rule_draft(self, rule: AgentRule) -> Draft:
        context = {
            "root": self._root,
            "path": rule.path,
            "folder": rule.folder,
            "content": searchable_text(rule.text),
            "mtime": rule.mtime,
            "digest": rule.digest,
        }
        return self._draft(self._rule_id(rule.path), rule.path, RULE_SCHEMA, context, ())

    def _reference_draft(self, linked: LinkedDocument) -> Draft:
        reference = linked.reference
        shown = searchable_text(reference.display_text)
        context: dict[str, Any] = {
            **msgspec.to_builtins(reference),
            "display_text": shown,
            "path": linked.path,
            "description": linked.about,
            "content": linked.content,
        }
        id = self._id("reference", reference.source, reference.relative_path, reference.display_text)
        tags = (self._rule_tag(reference.source),)
        return self._draft(id, shown, REFERENCE_SCHEMA, context, tags)

    def _draft(self, id: str, title: str, schema: str, context: dict[str, Any], tags: Sequence[str]) -> Draft:
        shown = title.strip()[:500] or "a rule"
        return Draft(id=id, title=shown, schema_name=schema, context=context, tags=(self._tag, *tags), ttl=NEVER)

    def _rule_id(self, path: str) -> str:
        return self._id("rule", path)

    def _rule_tag(self, path: str) -> str:
        return f"rule:{self._rule_id(path)}"

    def _id(self, *parts: str) -> str:
        return str(uuid5(_NAMESPACE, "\n".join((self._by.owner_id, self._root, *parts))))


def read_reference(found: Breadcrumb) -> RuleReference | None:
    """Parse the reference in a breadcrumb; None if it is malformed."""
    try:
        return msgspec.convert(found.context, RuleReference)
    except msgspec.ValidationError:
        return None
