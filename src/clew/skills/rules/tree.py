"""Rules of a tree in three tiers: those of the root always, documents that they link to by what is intended, and those
of a folder when a file below it is worked on.

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
from clew.skills.rules.files import AgentRule, FoundRules, RuleFiles
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
"""The most links that are followed, over all rules."""
_MAX_LINE = 300


class RuleStats(msgspec.Struct, frozen=True, kw_only=True):
    """Counts on the trail, and the result of the last refresh."""

    rules: int = 0
    references: int = 0
    refreshed: Mirrored | None = None
    problems: tuple[Problem, ...] = ()


class Rules:
    """The rules of one tree, on a trail. Texts are read from the present files; the search index is updated by
    `refresh`."""

    def __init__(self, root: Path, trail: Trail, *, by: Principal, cwd: Path | None = None, owns: bool = False) -> None:
        self.files = RuleFiles(os.fspath(root), os.fspath(cwd or ""))
        self._trail = trail
        self._owns = owns
        self._index = RuleIndex(trail, real_folder(root), by)
        self._refreshed: Mirrored | None = None
        self._problems: tuple[Problem, ...] = ()

    async def get_root_rules(self) -> tuple[AgentRule, ...]:
        """Return the rules of the root, and the files that they import."""
        return (await asyncio.to_thread(self.files.of_root)).rules

    async def get_rules_for_path(self, path: str | Path) -> tuple[AgentRule, ...]:
        """Return the rules of the folders on the way to a path, the outermost first; see RuleFiles.on_way."""
        return (await asyncio.to_thread(self.files.on_way, os.fspath(path))).rules

    async def search_references(self, intent: str, limit: int = 5) -> list[RuleReferenceMatch]:
        """Documents that the rules link to and that fit an intent, the best first; none where nothing is close.

        Raises InvalidInput for an empty intent, and for a limit that is none.
        """
        if not 1 <= limit <= MAX_LIMIT:
            raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT}")
        return await self._index.search(intent, limit)

    async def get_reference_content(self, reference: RuleReference) -> str | None:
        """The text of a document as it is now; None where it is not there any more, is no text, or is not below the
        root."""
        return await asyncio.to_thread(self._read, reference)

    async def find_rule(self, path: str) -> AgentRule | None:
        """One rule file as it is now, by its path from the root."""
        return await asyncio.to_thread(self.files.find, path)

    async def refresh(self) -> Mirrored:
        """Read the tree, and update the trail: new, changed and deleted files."""
        found, linked, problems = await asyncio.to_thread(self._collect)
        self._refreshed = await self._index.sync(found.rules, linked)
        self._problems = problems
        return self._refreshed

    async def forget(self, path: str) -> None:
        """Take a rule off the trail, and its references with it, until the next refresh. Raises NotFound."""
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
                texts[each.path] = ""  # a document is searched by the first link that leads to it
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
) -> Rules:
    """The rules of a folder, read once. To be closed. Nobody is asked for consent: `RuleInterceptor` looks it up.

    `trail` is one that is open, or the address of one that is opened here with `embedder`; without it the rules are in
    memory. Relative paths begin at `cwd`, or at the root. Raises ConfigError where there is no such folder or trail.
    """
    if not os.path.isdir(root):
        raise ConfigError(f"there is no folder {printable(os.fspath(root), 300)} to read rules from")
    by = by or Principal(owner_id="local", agent_id="rules")
    owns = trail is None or isinstance(trail, str)
    if trail is None or isinstance(trail, str):
        trail = await open_trail(trail or IN_MEMORY, embedder=embedder or open_embedder(EMBEDDER))
    rules = Rules(Path(root), trail, by=by, cwd=Path(cwd) if cwd is not None else None, owns=owns)
    try:
        if owns:
            await bootstrap(trail, by, [each for each in read_pieces() if each.key.startswith("schema/rule.")])
        await rules.refresh()
    except BaseException:
        await rules.close()
        raise
    return rules


def _links(rules: Sequence[AgentRule]) -> Iterator[tuple[AgentRule, MarkdownLink, str]]:
    """Each link to markdown with its line; without the line if that has other links too."""
    for rule in rules:
        lines = rule.text.split("\n")
        links = extract_links(rule.text, extensions=(MARKDOWN,))
        shared = Counter(link.line for link in links)
        for link in links:
            yield rule, link, lines[link.line - 1] if shared[link.line] == 1 else ""


def _follow(
    rule: AgentRule, link: MarkdownLink, line: str, root: Root, texts: dict[str, str], told: list[Problem]
) -> LinkedDocument | None:
    """The document that a rule links to; None, and a problem, if it does not exist below the root. `texts` caches
    documents."""
    target = resolve_beside(rule.real, link.path)
    if target is not None and target not in texts and (text := read_text(root, target)) is not None:
        texts[target] = searchable_text(text)
    if target is None or target not in texts:
        reason = "leads out of the root" if target is None else "leads to no text that can be read"
        message = f"the reference {printable(link.path, 200)} {reason}: it was left out"
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
