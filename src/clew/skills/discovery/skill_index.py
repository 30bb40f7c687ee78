"""Skills and their references as breadcrumbs, found by the trail's search.

The search sees names, descriptions and bodies; a prompt need not name a skill for it to be found.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from clew.access import Principal
from clew.decode_errors import suggest as suggest_name
from clew.errors import AlreadyExists, Conflict, NotFound, ValidationError
from clew.skills.discovery.mirror import Mirrored, mirror, to_kept
from clew.skills.discovery.reference_search import (
    REFERENCE_SCHEMA,
    SkillReference,
    SkillReferenceMatch,
    read_reference,
    record_id,
    reference_contexts,
    to_place,
    to_reference,
)
from clew.skills.discovery.relevance import (
    SkillFit,
    Vocabulary,
    close_ones,
    has_telling_words,
    open_background,
    read_vocabulary,
)
from clew.skills.files.tree_walk import show
from clew.skills.formats.collection import Collected
from clew.skills.library import SkillSuggestion
from clew.skills.manifest import ONLY_BY_NAME, Manifest, Skill
from clew.trail.bulk import each_record
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Change, Draft
from clew.trail.model.query import Hit, SearchRequest
from clew.trail.model.selector import MAX_TERMS, Selector
from clew.trail.search.closeness import closeness
from clew.trail.search.text import MAX_QUERY_CHARS
from clew.trail.store import Embedder, Trail

SKILL_SCHEMA, SHELF_SCHEMA = "skill.v1", "skill.shelf.v1"
MAIN = "main"
LOOKED_AT = 24
"""From so many hits at least it is judged whether anything is close."""
MOST = 1_000
EDITION = "2"
"""Raised when skills are kept in another way, so that all are written again."""
_TRIES = 10


class SkillShelf:
    """The skills of one place on a trail. Several shelves on one trail have different names.

    `root` is the folder that the paths of skills are relative to; without it references cannot be read. `embedder` is
    the trail's: without it, what fits is judged by words alone. Safe to use from several tasks and processes at once.
    """

    def __init__(
        self,
        trail: Trail,
        by: Principal,
        *,
        root: Path | None = None,
        name: str = MAIN,
        embedder: Embedder | None = None,
    ) -> None:
        self._trail = trail
        self._by = by
        self._root = root
        self._name = name
        self._tag = f"shelf:{self._id('shelf')}"
        self._background = open_background(embedder)
        self._vocabulary: tuple[str, Vocabulary] = ("", Vocabulary())
        self._syncing = asyncio.Lock()
        self._close: Callable[[], Any] | None = None

    async def sync(self, source: Manifest | Collected) -> Mirrored:
        """Make the trail hold exactly these skills and their references. Nothing is written where nothing changed, and
        an interrupted call is put in order by the next. Raises AccessDenied for a caller that is no curator."""
        self._by.require("administer")
        skills = list(source.skills.values() if isinstance(source, Manifest) else source.skills)
        digest = _digest([EDITION, *skills])
        async with self._syncing:
            for _ in range(_TRIES):
                with contextlib.suppress(AlreadyExists, Conflict):  # another process is at the same shelf
                    return await self._sync(skills, digest)
            return await self._write(skills)  # the marker stays empty, so that the next call looks again

    async def suggest(
        self, query: str, *, among: Sequence[str] | None = None, limit: int = 10
    ) -> list[SkillSuggestion]:
        """Skills that fit, the best first, of those that are named by `among`; none where nothing is close. One of the
        third tier is found by its name alone."""
        allowed = frozenset(among) if among is not None else None
        if not query.strip() or (allowed is not None and not allowed) or limit < 1:
            return []
        found = await self._search(SKILL_SCHEMA, query, limit, allowed)
        hits = [hit for hit in found if hit.exact or hit.breadcrumb.context["tier"] != ONLY_BY_NAME]
        if not hits:
            return []
        vocabulary = await self._known() if self._background is not None else Vocabulary()
        fit = await asyncio.to_thread(SkillFit, query, vocabulary, self._background)
        return [
            SkillSuggestion(skill=hit.breadcrumb.title, description=_about(hit.breadcrumb), relevance=round(close, 3))
            for hit, close in close_ones(hits, fit.closeness, limit)
        ]

    async def search_references(self, intent: str, limit: int = 5) -> list[SkillReferenceMatch]:
        """References whose text fits an intent, the best first; none where nothing is close. No file is read."""
        if not has_telling_words(intent) or limit < 1:
            return []
        hits = await self._search(REFERENCE_SCHEMA, intent, limit, None)
        found = close_ones(hits, closeness, limit)
        return [SkillReferenceMatch(reference=to_reference(hit.breadcrumb), relevance=round(c, 3)) for hit, c in found]

    async def get_references(self, skill: str) -> list[SkillReference]:
        """The references of a skill in the order of its text. Raises ValidationError for a skill that there is not."""
        await self._get_skill(skill)
        selector = Selector(schema_name=REFERENCE_SCHEMA, all_tags=(self._tag, self._skill_tag(skill)))
        found = [each async for each in each_record(self._trail, selector, by=self._by)]
        return [to_reference(each) for each in sorted(found, key=lambda each: int(each.context["number"]))]

    async def get_reference_content(self, reference: SkillReference) -> str:
        """The text of a reference as its file has it now. Raises ValidationError for one that the skill does not have
        or that leads out of its folder, and as `referring.read_reference`."""
        id = self._id("reference", reference.skill, reference.path)
        try:
            record = await self._trail.records.get(id, by=self._by)
        except NotFound:
            known = [each.path for each in await self.get_references(reference.skill)]
            raise ValidationError(
                f"the skill {reference.skill!r} has no reference {reference.path!r}",
                allowed=tuple(known),
                hint=suggest_name(reference.path, known, "References are"),
                skillName=reference.skill,
            ) from None
        return await asyncio.to_thread(read_reference, self._root, to_place(record))

    async def close(self) -> None:
        """Close the trail if `open_shelf` opened it."""
        if self._close is not None:
            await self._close()

    async def _search(self, schema: str, text: str, limit: int, among: frozenset[str] | None) -> Sequence[Hit]:
        is_few = among is not None and len(among) <= MAX_TERMS
        tags = [self._skill_tag(name) for name in sorted(among)] if among is not None and is_few else []
        selector = Selector(schema_name=schema, all_tags=(self._tag,), any_tags=tags)
        most = max(limit, LOOKED_AT) if among is None or is_few else MOST
        request = SearchRequest(text=text[:MAX_QUERY_CHARS], selector=selector, limit=min(most, MOST))
        hits = (await self._trail.index.search(request, by=self._by)).hits
        return [hit for hit in hits if among is None or hit.breadcrumb.context["name"] in among]

    async def _get_skill(self, name: str) -> Breadcrumb:
        try:
            return await self._trail.records.get(self._id("skill", name), by=self._by)
        except NotFound:
            raise ValidationError(f"no skill {name!r}", hint="Look for it by what it is for", skillName=name) from None

    async def _known(self) -> Vocabulary:
        """The words of all skills here; read again when another process has changed them."""
        marker = await self._marker()
        digest = str(marker.context["digest"]) if marker is not None else ""
        if self._vocabulary[0] != digest or not digest:
            selector = Selector(schema_name=SKILL_SCHEMA, all_tags=(self._tag,))
            records = [each async for each in each_record(self._trail, selector, by=self._by)]
            heads = [f"{each.title}\n{_about(each)}" for each in records]
            bodies = [str(each.context["content"]) for each in records]
            self._vocabulary = (digest, await asyncio.to_thread(read_vocabulary, heads, bodies))
        return self._vocabulary[1]

    def _drafts(self, skill: Skill) -> Iterable[Draft]:
        tags = (self._tag, self._skill_tag(skill.name), f"origin:{skill.origin}")
        yield Draft(
            id=self._id("skill", skill.name),
            title=skill.name,
            schema_name=SKILL_SCHEMA,
            context=_context(skill),
            tags=tags,
            ttl=NEVER,
        )
        for context in reference_contexts(skill):
            yield Draft(
                id=self._id("reference", skill.name, context["path"]),
                title=context["text"],
                schema_name=REFERENCE_SCHEMA,
                context=context,
                tags=tags,
                ttl=NEVER,
            )

    async def _sync(self, skills: Sequence[Skill], digest: str) -> Mirrored:
        """The marker says what is being written before anything changes, and last that it was. Raises Conflict and
        AlreadyExists where another process came to it meanwhile."""
        marker = await self._marker()
        if marker is not None and marker.context["digest"] == digest:
            return Mirrored()
        if marker is None or marker.context["digest"] or marker.context["wanted"] != digest:
            marker = await self._mark(marker, "", digest)
        done = await self._write(skills)
        await self._mark(marker, digest, digest)
        return done

    async def _write(self, skills: Sequence[Skill]) -> Mirrored:
        everything = Selector(schema_names=(SKILL_SCHEMA, REFERENCE_SCHEMA), all_tags=(self._tag,))
        drafts = [draft for skill in skills for draft in self._drafts(skill)]
        return await mirror(self._trail, drafts, everything, by=self._by)

    async def _marker(self) -> Breadcrumb | None:
        try:
            return await self._trail.records.get(self._id("shelf"), by=self._by)
        except NotFound:
            return None

    async def _mark(self, marker: Breadcrumb | None, digest: str, wanted: str) -> Breadcrumb:
        records, context = self._trail.records, {"name": self._name, "digest": digest, "wanted": wanted}
        if marker is not None:
            return await records.update(marker.id, Change(context=context), expect=marker.version, by=self._by)
        id = self._id("shelf")
        draft = Draft(id=id, title=self._name, schema_name=SHELF_SCHEMA, context=context, ttl=NEVER, embed="never")
        return await records.create(draft, by=self._by)

    def _skill_tag(self, name: str) -> str:
        tag = f"skill:{name}"
        return tag if len(tag) <= 200 and not any(each.isspace() for each in name) else f"skill:{self._id('tag', name)}"

    def _id(self, *parts: str) -> str:
        return record_id(self._by.owner_id, self._name, *parts)


async def open_shelf(manifest: Manifest, *, root: Path | None = None) -> SkillShelf:
    """A shelf in memory with these skills, for as long as the program runs or until it is closed."""
    # the embedder, and what opens a trail, take longer to load than a program that looks for no skill takes to run
    from clew.llm.embedders import open_embedder
    from clew.trail import open_trail
    from clew.trail.bootstrap import bootstrap

    embedder = open_embedder("wordllama")
    trail = await open_trail("sqlite://:memory:", embedder=embedder)
    by = Principal(owner_id="local")
    await bootstrap(trail, by)
    shelf = SkillShelf(trail, by, root=root, embedder=embedder)
    shelf._close = trail.close
    await shelf.sync(manifest)
    return shelf


def _context(skill: Skill) -> dict[str, Any]:
    context: dict[str, Any] = {
        "name": skill.name,
        "description": to_kept(skill.description),
        "keywords": [to_kept(each) for each in (*skill.keywords, *skill.triggers.words)],
        "content": to_kept(skill.content),
        "origin": skill.origin,
        "domain": skill.domain,
        "path": show(skill.path),
        "folder": show(skill.folder),
        "scripts": [show(each) for each in skill.scripts],
        "assets": [show(each) for each in skill.assets],
        "tier": skill.tier,
        "digest": skill.digest or _digest([skill]),
    }
    return context


def _about(record: Breadcrumb) -> str:
    return str(record.context["description"])


def _digest(parts: Iterable[Any]) -> str:
    return hashlib.blake2b(msgspec.json.encode(list(parts)), digest_size=16).hexdigest()
