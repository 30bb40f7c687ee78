"""All that is known of one folder: its code, its history and what others wrote, with what answers from them."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.beside import beside
from clew.catalog.answers import Known
from clew.catalog.text import one_line
from clew.clock import Clock
from clew.errors import ClewError, NotFound
from clew.knowledge.code.graph import CodeGraph, open_code
from clew.knowledge.code.index import Indexed, Until
from clew.knowledge.code.index_pass import Progress
from clew.knowledge.code.watch import CodeWatch
from clew.knowledge.evidence.firewall import Firewall
from clew.knowledge.evidence.grounds import KnowledgeGround
from clew.knowledge.evidence.provenance import cited
from clew.knowledge.expiry import remove_expired
from clew.knowledge.history.anchors import ensure_anchors
from clew.knowledge.history.archive import Archive
from clew.knowledge.history.beliefs import BeliefLedger
from clew.knowledge.history.blame import file_of
from clew.knowledge.history.chronicle import Chronicle
from clew.knowledge.history.commit_shelf import Commits, HistoryShelf
from clew.knowledge.history.commits import NEWEST
from clew.knowledge.history.mistakes import Mistakes
from clew.knowledge.history.preferences import UserPreferences
from clew.knowledge.history.why import NOWHERE, Around, Why, blame_why
from clew.knowledge.project.devtools import ToolDiscovery
from clew.knowledge.project.devtools_records import ToolDiscoveryRequest
from clew.knowledge.project.devtools_research import shelf_research
from clew.knowledge.project.devtools_telling import NOT_KNOWN, categories_in, used_lines
from clew.knowledge.project.manifest_questions import tell_manifest
from clew.knowledge.project.people import tell_people
from clew.knowledge.prose import Prose
from clew.knowledge.references.packages import Packages
from clew.knowledge.references.research import Library
from clew.knowledge.resolving.answers import NOTHING, Resolved
from clew.knowledge.resolving.cache import IntentCache
from clew.knowledge.resolving.phrases import Target
from clew.knowledge.resolving.resolver import MAX_QUESTION, MODEL_SECONDS, Resolver
from clew.knowledge.resolving.routing import Router
from clew.knowledge.searching import Shelves
from clew.knowledge.shelves import CodeShelf, NodeShelf
from clew.knowledge.told_trail import Consent, ToldTrail
from clew.llm.requests import Model
from clew.trail.kinds import NodeDomain
from clew.trail.nodes import NodeGraph
from clew.trail.ownership import Ownership
from clew.trail.store import Embedder, Trail

WAIT_SECONDS = 1.5
"""So long an answer waits for what is known, where nobody says otherwise."""
READING_SECONDS = 4.0
"""The same while not all files have been read yet, and little else is there to be told."""
LATE = "*What is known could not be looked up in time. Ask again in a moment.*"
UNKNOWN = f"*{NOTHING}*"
KNOWING = (Target.LIBRARIAN, Target.ARCHIVALIST, Target.ACADEMIC)
SWEEP_SECONDS = 3_600.0
"""The time from one removal of what has expired to the next."""

_HOW = re.compile(r"\s*(?:so |and )?how\b", re.IGNORECASE)
_log = logging.getLogger(__name__)


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """What a look at everything brought: the code, new commits, and the decisions and documents that are new or have
    changed. `is_log_cut` says that there may be older commits, which are not read."""

    code: Indexed
    commits: int
    is_log_cut: bool = False
    decisions: int
    documents: int


class Knowledge:
    """Opened by `open_knowledge`, closed by its owner. Of a trail that the user neither made nor agreed to, as far as
    there is an `ownership`, only that is told which files bear out."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        root: Path,
        owner: Principal,
        code: CodeGraph,
        embedder: Embedder | None,
        model: Model | None = None,
        ownership: Ownership | None = None,
    ) -> None:
        self._trail = trail
        self.consent = Consent(ownership, lambda: self.resolver.cache.history_grew())
        self._told = ToldTrail(trail, self.consent)
        self._owner = owner
        self._model = model
        self.root = root
        self.clock = clock
        self.code = code
        self.patience = WAIT_SECONDS
        self.prose = Prose(trail, clock, root, owner, code, lambda: self.resolver.cache.history_grew(), self.consent)
        self._history = NodeShelf(trail, NodeDomain.HISTORY, owner, self.prose)
        self._literature = NodeShelf(trail, NodeDomain.ACADEMIC, owner, self.prose)
        self._shelf = CodeShelf(code)
        self.commits = Commits(code.store, root, lambda: self.resolver.cache.history_grew())
        self.shelves: Shelves = {
            NodeDomain.CODE: self._shelf,
            NodeDomain.HISTORY: HistoryShelf(self._history, self.commits),
            NodeDomain.ACADEMIC: self._literature,
        }
        self.resolver = Resolver(
            self._told,
            clock,
            self.shelves,
            Router(model),
            IntentCache(clock, embedder),
            model=model,
            ground=KnowledgeGround(self._shelf, NodeGraph(self._told, owner), owner, code.source),
            hashes=self._hashes,
            code=code,
            changes=self.prose.changes,
            truth=self.prose,
        )

    async def gather(self, report: Progress | None = None, *, until: Until = "followed") -> Gathered:
        """Bring everything up to date: code first, so far, then the commits, decisions and documents. While those are
        read, the edges are found that take long to find."""
        return await self.code.mending(lambda: self._gather(report, until))

    async def _gather(self, report: Progress | None, until: Until) -> Gathered:
        indexed = await self.code.refresh(report, until="embedded" if until == "followed" else until)
        async with beside(self.code.follow(report)) if until == "followed" else nullcontext():
            return await self._gather_told(indexed)

    async def _gather_told(self, indexed: Indexed) -> Gathered:
        async with beside(self.commits.read()) as log:
            kept = await self.prose.keep()
        return Gathered(
            code=indexed,
            commits=log.result().added,
            is_log_cut=await self.commits.count() >= NEWEST,
            decisions=kept.decisions,
            documents=kept.documents,
        )

    async def tell(self, question: str, by: Principal) -> Known:
        """What is known that answers a question, a line for each source. Where that takes longer than `patience`, as it
        may while all is read for the first time, a line that says so."""
        patience = self.patience if self.code.is_whole else max(self.patience, READING_SECONDS)
        patience += MODEL_SECONDS if self._model is not None else 0.0
        try:
            async with asyncio.timeout(patience):
                await self.code.mending(self.commits.catch_up)
                await self.prose.catch_up()
                tools = [*await self._tell_tools(question, by), *await tell_manifest(question, self.code)]
                tools += await tell_people(question, self.code)
                asked, session = question[:MAX_QUESTION], by.session or ""
                found = await self.code.mending(lambda: self.resolver.resolve(asked, by=by, session_id=session))
                withheld = [f"*{line}*" for line in await self.consent.withheld()]
        except TimeoutError:
            return Known(lines=[LATE])
        except ClewError as error:
            _log.info("nothing is told of what is known: %s", error)
            return Known()
        told = told_lines(found)
        lines = tools if tools and told == [UNKNOWN] else _in_order(question, tools, told)
        return Known(lines=[*lines, *withheld], sources=found.sources)

    async def keep_up(self, *, sweeps: bool = True, on_read: Callable[[], None] = lambda: None) -> None:
        """Watch the files, and keep what is known as they are, until it is cancelled; with `sweeps`, remove what has
        expired now and at intervals. `on_read` is called, perhaps more than once, when all files have been read."""
        loop = asyncio.get_running_loop()

        def report(done: int, total: int, what: str) -> None:
            if what not in ("looking", "reading"):
                loop.call_soon_threadsafe(on_read)

        async with CodeWatch(self.code, self._note_changes, report):
            await self.gather()
            on_read()
            while sweeps:
                await self._sweep()
                await asyncio.sleep(SWEEP_SECONDS)
            await asyncio.Event().wait()

    async def _sweep(self) -> None:
        try:
            await remove_expired(self._trail, self.clock.now(), by=self._owner)
        except ClewError as error:  # the next round may do better
            _log.warning("what has expired stays for now: %s", error)

    async def _note_changes(self, paths: Sequence[str], is_bulk: bool) -> None:
        self.resolver.cache.files_changed(paths)
        await self.prose.catch_up()

    async def why(self, path: str, line: int, last_line: int = 0, *, by: Principal) -> Why:
        """What explains a line, or all from it to the last. Raises NotFound, InvalidInput, ClewError."""
        place = file_of(self.root, path)
        around, told = await self._symbol_at(place, line), await self.prose.decisions()
        return await blame_why(
            self.root, place, line, last_line, trail=self._told, by=by, decisions=told, around=around
        )

    def chronicle(self, by: Principal, session_id: str) -> Chronicle:
        """What was done, as the caller keeps and sees it in a session. What is stored is held against the code."""
        return Chronicle(self._told, by, session_id, self.clock, self._firewall(by))

    def archive(self, by: Principal) -> Archive:
        """The skills of whoever keeps the history. What is stored is held against the code."""
        return Archive(self._told, by, self._firewall(by), self.prose)

    def mistakes(self, by: Principal) -> Mistakes:
        """What went wrong before, as the caller may know it."""
        return Mistakes(self._told, by, self.clock)

    def preferences(self, by: Principal) -> UserPreferences:
        """What the user prefers, as the session of the caller sees it."""
        return UserPreferences(self._told, by, self.clock, by.session or "")

    def beliefs(self, by: Principal) -> BeliefLedger:
        """Facts with the time for which they hold, as the caller may know them."""
        return BeliefLedger(self._told, by, self.clock)

    def _firewall(self, by: Principal) -> Firewall:
        graph = NodeGraph(self._told, by)

        async def anchors(refs: Sequence[str]) -> Sequence[str]:
            return await ensure_anchors(self._told, refs, by=by)

        return Firewall(graph, KnowledgeGround(self._shelf, graph, by, self.code.source), anchors)

    def discovery(self, by: Principal) -> ToolDiscovery:
        """Which tools for development are used here, from the project, what is written, and what the user prefers."""
        research = shelf_research(self._literature, by)
        return ToolDiscovery(self.root, self._told, self.clock, by, research=research)

    async def _tell_tools(self, question: str, by: Principal) -> list[str]:
        """The tools that a question wants to know of, as the project or the user says, or that neither does."""
        found = []
        for category in categories_in(question):
            request = ToolDiscoveryRequest(
                session_id=by.session or "", requesting_agent=by.agent_id, tool_category=category
            )
            response = await self.discovery(by).discover(request)
            found += used_lines(category, response)
        return found

    def library(self, by: Principal) -> Library:
        """What others wrote, as the caller sees it."""
        packages = Packages(self._trail, self.clock, self.root, by=self._owner)
        return Library(self._told, self.clock, by, self.shelves, self._model, packages=packages, root=self.root)

    async def close(self) -> None:
        """Let go of the index. Calling it twice is harmless."""
        await self._history.close()
        await self._literature.close()
        await self.code.close()

    async def _symbol_at(self, path: str, line: int) -> Around:
        """The innermost symbol around a line, if there is one."""
        try:
            found = await self.code.symbols_of(path)
        except NotFound:
            return NOWHERE
        around = [each for each in found if (each.line_start or 0) <= line <= (each.line_end or 0)]
        inner = max(around, key=lambda each: each.line_start or 0, default=None)
        if inner is None:
            return NOWHERE
        return Around(qualname=inner.id.partition("#")[2], first=inner.line_start or 0, last=inner.line_end or 0)

    async def _hashes(self, paths: Sequence[str]) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for path in paths:
            try:
                found[path] = (await self.code.symbol(path)).content_hash or ""
            except NotFound:
                continue
        return found


def told_lines(found: Resolved) -> list[str]:
    """An answer as a list. What a model put into words begins with who did it, and with the sources that it cites. That
    nothing answers is said to who asks for something that is known, and not to who wants something done."""
    if found.text == NOTHING and not found.sources:
        return [UNKNOWN] if found.target in KNOWING else []
    if not found.is_worded:
        return [f"- {line}" for line in (*found.text.splitlines(), *filter(None, [found.problem]))]
    numbers = set(cited(found.text))
    sources = "; ".join(f"[{each.number}] {each.place}" for each in found.sources if each.number in numbers)
    said = [one_line(line) for line in found.text.splitlines() if line.strip()]
    return [f"- layer: {found.layer}, {found.tokens:,} tokens, from {sources}", *(f"- {line}" for line in said)]


def _in_order(question: str, tools: Sequence[str], told: Sequence[str]) -> list[str]:
    """What the tools say before what else is told; that none is known comes last where it is asked how something is
    done: what is told may say that without naming a tool."""
    last = [line for line in tools if line.startswith(NOT_KNOWN)] if _HOW.match(question) else []
    return [*(line for line in tools if line not in last), *told, *last]


def open_knowledge(
    trail: Trail,
    clock: Clock,
    folder: Path,
    root: Path,
    owner: Principal,
    embedder: Embedder | None,
    model: Model | None = None,
    ownership: Ownership | None = None,
) -> Knowledge:
    """What is known of the files below `root`, kept in `folder` and on the trail. Nothing is read yet. Raises
    StorageError."""
    code = open_code(folder, root, clock, embedder)
    return Knowledge(trail, clock, root, owner, code, embedder, model, ownership)
