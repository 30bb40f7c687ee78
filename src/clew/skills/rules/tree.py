"""Rules of a tree in three tiers: those of the root always, those of a folder when an agent works on a file below it,
and linked documents by intent.

rules = await open_rules("project")
always = await rules.get_root_rules()
here = await rules.get_rules_for_path("src/auth/login.py")
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.errors import ConfigError, InvalidInput
from clew.llm import open_embedder
from clew.skills.checks.problems import Problem, in_order
from clew.skills.files.links import MarkdownLink, extract_links
from clew.skills.formats.rules import resolve_beside
from clew.skills.formats.safe_open import Root
from clew.skills.rules.documents import MARKDOWN, read_text
from clew.skills.rules.files import ROOT_FILE, AgentRule, FoundRules, RuleFiles
from clew.skills.rules.index import LinkedDocument, RuleIndex, RuleReference, RuleReferenceMatch
from clew.trail import open_trail
from clew.trail.bootstrap import bootstrap, read_pieces
from clew.trail.mirror import Mirrored, searchable_text
from clew.trail.store import Embedder, Trail
from clew.trust import printable, real_folder

IN_MEMORY = "sqlite://:memory:"
EMBEDDER = "wordllama"
MAX_LIMIT = 100
MAX_LINKS = 5_000
"""The limit for links of all rules."""
_MAX_LINE = 300


class RuleStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts on the trail, and the result of the last refresh."""

    rules: int = 0
    references: int = 0
    refreshed: Mirrored | None = None
    problems: tuple[Problem, ...] = ()


class Rules:
    """The rules of one tree, on a trail. Texts come from the current files; `refresh` updates the search index."""

    def __init__(
        self,
        root: Path,
        trail: Trail,
        *,
        by: Principal,
        cwd: Path | None = None,
        owns: bool = False,
        root_file: str = ROOT_FILE,
    ) -> None:
        self.files = RuleFiles(os.fspath(root), os.fspath(cwd or ""), root_file)
        self._trail = trail
        self._owns = owns
        self._index = RuleIndex(trail, real_folder(root), by)
        self._refreshed: Mirrored | None = None
        self._problems: tuple[Problem, ...] = ()

    async def get_root_rules(self) -> tuple[AgentRule, ...]:
        """Return the rules of the root, and the files that they import."""
        return (await asyncio.to_thread(self.files.of_root)).rules

    async def get_rules_for_path(self, path: str | Path) -> tuple[AgentRule, ...]:
        """Return the rules of the folders on the way to a path, outermost first; see RuleFiles.on_way."""
        return (await asyncio.to_thread(self.files.on_way, os.fspath(path))).rules

    async def search_references(self, intent: str, limit: int = 5) -> list[RuleReferenceMatch]:
        """Return the linked documents that match an intent, best first; none if no match is close.

        Raises InvalidInput for an empty intent or an invalid limit.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT}")
        return await self._index.search(intent, limit)

    async def get_reference_content(self, reference: RuleReference) -> str | None:
        """Return the current text of a document; None if it no longer exists, is not text, or is outside the root."""
        return await asyncio.to_thread(self._read, reference)

    async def find_rule(self, path: str) -> AgentRule | None:
        """Return one rule file by its path relative to the root, or None."""
        return await asyncio.to_thread(self.files.find, path)

    async def refresh(self) -> Mirrored:
        """Read the tree, and update the trail: new, changed and deleted files."""
        found, linked, problems = await asyncio.to_thread(self._collect)
        self._refreshed = await self._index.sync(found.rules, linked)
        self._problems = problems
        return self._refreshed

    async def forget(self, path: str) -> None:
        """Delete a rule and its references from the trail until the next refresh. Raises NotFound."""
        await self._index.remove(path)

    async def stats(self) -> RuleStats:
        """Return counts, the result of the last refresh, and the files that it could not read."""
        rules, references = await self._index.counts()
        return RuleStats(rules=rules, references=references, refreshed=self._refreshed, problems=self._problems)

    async def close(self) -> None:
        """Close the trail if `open_rules` opened it. Calling it twice is harmless."""
        if self._owns:
            await self._trail.close()

    def _collect(self) -> tuple[FoundRules, list[LinkedDocument], tuple[Problem, ...]]:
        found = self.files.everywhere()
        told: list[Problem] = []
        linked: dict[tuple[str, str, str], LinkedDocument] = {}
        texts: dict[str, str] = {}
        for rule, link, line in islice(_links(found.rules), MAX_LINKS):
            each = _follow(rule, link, line, self.files.root, texts, told)
            if each is not None and (rule.path, link.path, link.text) not in linked:
                linked[rule.path, link.path, link.text] = each
                texts[each.path] = ""  # only the first link to a document adds its text to the index
        return found, list(linked.values()), tuple(in_order([*found.problems, *told]))

    def _read(self, reference: RuleReference) -> str | None:
        root = self.files.root
        relative = root.relative(os.path.realpath(reference.absolute_path))
        return read_text(root, relative) if relative is not None and relative.lower().endswith(MARKDOWN) else None


async def open_rules(
    root: str | Path,
    *,
    trail: Trail | str | None = None,
    embedder: Embedder | None = None,
    cwd: str | Path | None = None,
    by: Principal | None = None,
    root_file: str = ROOT_FILE,
) -> Rules:
    """Read the rules of a folder; close the result. This does not check consent: `RuleInterceptor` does.

    `trail` is an open trail, or the address of a trail that is opened here with `embedder`. Without it the rules are in
    memory. Relative paths begin at `cwd`, or at the root. `root_file` replaces the AGENTS.md of the root. Raises
    ConfigError if there is no such folder or trail.
    """
    if not os.path.isdir(root):
        raise ConfigError(f"the folder {printable(os.fspath(root), 300)} does not exist")
    by = by or Principal(owner_id="local", agent_id="rules")
    owns = trail is None or isinstance(trail, str)
    if trail is None or isinstance(trail, str):
        trail = await open_trail(trail or IN_MEMORY, embedder=embedder or open_embedder(EMBEDDER))
    rules = Rules(Path(root), trail, by=by, cwd=Path(cwd) if cwd is not None else None, owns=owns, root_file=root_file)
    try:
        if owns:
            await bootstrap(trail, by, [each for each in read_pieces() if each.key.startswith("schema/rule.")])
        await rules.refresh()
    except BaseException:
        await rules.close()
        raise
    return rules


def _links(rules: Sequence[AgentRule]) -> Iterator[tuple[AgentRule, MarkdownLink, str]]:
    """Yield each link to markdown with the text of its line, which is empty if the line has several links."""
    for rule in rules:
        lines = rule.text.split("\n")
        links = extract_links(rule.text, extensions=(MARKDOWN,))
        shared = Counter(link.line for link in links)
        for link in links:
            yield rule, link, lines[link.line - 1] if shared[link.line] == 1 else ""


def _follow(
    rule: AgentRule, link: MarkdownLink, line: str, root: Root, texts: dict[str, str], told: list[Problem]
) -> LinkedDocument | None:
    """Return the document that a rule links to; None, with a problem, if it does not exist below the root. `texts`
    caches documents."""
    target = resolve_beside(rule.real, link.path)
    if target is not None and target not in texts and (text := read_text(root, target)) is not None:
        texts[target] = searchable_text(text)
    if target is None or target not in texts:
        reason = "leads out of the root" if target is None else "leads to no readable text"
        message = f"the reference {printable(link.path, 200)} {reason}: it is ignored"
        told.append(Problem(kind="build", severity="warning", path=rule.path, line=link.line, message=message))
        return None
    reference = RuleReference(
        display_text=link.text,
        relative_path=link.path,
        absolute_path=real_folder(root.absolute(target)),
        source=rule.path,
        line_number=link.line,
    )
    about = searchable_text(" ".join(line.split()), _MAX_LINE)
    return LinkedDocument(reference=reference, path=target, about=about, content=texts[target])
