"""The knowledge of one folder: code, history, notes and documents, and the answers from them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from clew.access import Principal
from clew.background_tasks import beside
from clew.catalog.operations.answers import Known
from clew.clock import Clock
from clew.errors import ClewError, NotFound
from clew.knowledge.answering.finder import SourceFinder
from clew.knowledge.answering.history import HistoryHandler
from clew.knowledge.answering.notes import Notes
from clew.knowledge.answering.question import IS_QUESTION, parse_question, refers_back, with_subject
from clew.knowledge.answering.resolver import MAX_QUESTION, MODEL_SECONDS, Resolver
from clew.knowledge.code.files import is_changelog
from clew.knowledge.code.graph import CodeGraph, open_code
from clew.knowledge.code.index import IndexReport, Progress
from clew.knowledge.code.models import file_of
from clew.knowledge.consented_trail import TrailConsent, consented_trail
from clew.knowledge.evidence.firewall import Firewall, Ground
from clew.knowledge.git.commits import Commits
from clew.knowledge.git.log import NEWEST
from clew.knowledge.history.changelog import ParsedFiles, read_changelog
from clew.knowledge.history.decisions import Decisions
from clew.knowledge.nodes.kinds import NodeDomain
from clew.knowledge.nodes.node_graph import NodeGraph
from clew.knowledge.nodes.node_store import ScoredNode, as_text
from clew.knowledge.project.facts import ProjectFacts
from clew.knowledge.search_domains import SearchDomains
from clew.llm.requests import Model
from clew.trail.bulk import drop_selected
from clew.trail.model.selector import ContextMatch, Selector
from clew.trail.ownership import Ownership
from clew.trail.store import Embedder, Trail

if TYPE_CHECKING:  # a question needs none of these
    from clew.knowledge.documents.research import Library
    from clew.knowledge.history.beliefs import BeliefLedger
    from clew.knowledge.history.explanation import LineExplanation
    from clew.knowledge.history.journal import Archive, Chronicle
    from clew.knowledge.history.lessons import Mistakes, UserPreferences
    from clew.knowledge.project.devtools import ToolDiscovery

WAIT_SECONDS = 1.5
"""The longest that an answer takes by default."""
READING_SECONDS = 4.0
"""The seconds that an answer may wait while the files are read for the first time."""
BRIEF_SECONDS = 2.0
"""The time for indexing before an answer, unless reading the files alone takes longer."""
FEW_FILES = 200
"""A folder with fewer files is indexed completely before the first answer."""
PARTIAL = (
    "Indexing is not complete: this answer comes from names and words. Each question reads more of the rest (commits,"
    " documents and vectors), and `clew index` reads all of it."
)
LATE = "The answer could not be looked up in time. Ask again in a moment."
SWEEP_SECONDS, MAX_SWEPT = 3_600.0, 1_000
"""The time between two removals of expired records, and the most records of a kind that one removal deletes."""

_log = logging.getLogger(__name__)
T = TypeVar("T")


class GatherReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of reading everything: code, new commits, and the number of decision records. `is_log_cut` says that
    there may be older commits, which are not read."""

    code: IndexReport
    commits: int
    is_log_cut: bool = False
    decisions: int


class Knowledge:
    """Opened by `open_knowledge`, closed by its owner. If `ownership` says that the user neither made nor trusted the
    trail, only nodes that this user's programs read from files are shown."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        root: Path,
        owner: Principal,
        code: CodeGraph,
        model: Model | None = None,
        ownership: Ownership | None = None,
        patience: float | None = None,
    ) -> None:
        self._trail = trail
        self.consent = TrailConsent(ownership, lambda: self.resolver.cache.clear())
        self._shown = consented_trail(trail, self.consent)
        self._owner = owner
        self._model = model
        self.root = root
        self.clock = clock
        self.code = code
        self.patience = WAIT_SECONDS if patience is None else patience
        self.is_partial = False
        """Whether answers come before commits, documents and vectors are indexed."""
        self.decisions = Decisions(code)
        self.commits = Commits(code.store, root, lambda: self.resolver.cache.clear())
        self.search = SearchDomains(self._shown, code, self.commits, self.decisions)
        changelogs = ParsedFiles(code, is_changelog, lambda file: read_changelog(file.path, file.body))
        finder = SourceFinder(
            code,
            HistoryHandler(self.commits, changelogs.read, code),
            Notes(self._shown, self.decisions),
            ProjectFacts(code),
            clock,
        )
        self.resolver = Resolver(
            self._shown,
            clock,
            code,
            finder,
            self._ground,
            model,
        )

    async def gather(self, report: Progress | None = None, *, is_asked: bool = True) -> GatherReport:
        """Bring everything up to date: code first, then commits and decisions, and at the same time the edges that need
        value tracking. Words of code are indexed in parallel with the last step, unless a question arrives before. This
        takes less time in total, but files can be found by their words only later."""
        done = await self.code.with_rebuild(lambda: self._gather(report, is_asked))
        self._mark_complete()
        return done

    async def gather_briefly(self, documents: Callable[[], Awaitable[T]], report: Progress | None = None) -> T | None:
        """Read all changed files and link them by names. Then index the rest, `documents` included, until BRIEF_SECONDS
        are over. If the time is too short, answers are marked as incomplete, and the next call or `gather`
        continues."""
        end = time.monotonic() + BRIEF_SECONDS
        indexed = await self.code.refresh(report, until="linked")
        left = max(0.0, end - time.monotonic()) if indexed.files >= FEW_FILES else None
        try:
            async with asyncio.timeout(left), beside(_await(documents)) as read:
                await self.commits.catch_up()
                await self.code.embed(report)
            if self.commits.is_unread:
                async with asyncio.timeout(max(0.0, end - time.monotonic())):
                    await self.commits.read()
        except TimeoutError:
            self.is_partial = True
            return _result_of(read)
        self._mark_complete()
        return read.result()

    def _mark_complete(self) -> None:
        """Note that answers are complete from now on, and drop cached answers from before."""
        if self.is_partial:
            self.is_partial = False
            self.resolver.cache.clear()

    async def _gather(self, report: Progress | None, is_asked: bool) -> GatherReport:
        indexed = await self.code.refresh(report, until="read", has_late_words=not is_asked)
        async with beside(self.code.follow(report)):
            log = await self.commits.read()
            return GatherReport(
                code=indexed,
                commits=log.added,
                is_log_cut=await self.commits.count() >= NEWEST,
                decisions=len(await self.decisions.records()),
            )

    async def answer(self, question: str, by: Principal, previous: str = "") -> Known:
        """The citations that answer a question; `it` in a question means the subject of the previous one. If it takes
        longer than `patience`, as it may while all files are read for the first time, a note says so."""
        patience = self.patience if self.code.is_whole else max(self.patience, READING_SECONDS)
        patience += MODEL_SECONDS if self._model is not None else 0.0
        try:
            async with asyncio.timeout(patience):
                asked, session = question[:MAX_QUESTION], by.session or ""
                withheld = await self.consent.withheld()  # clears the cache if consent was given since the last call
                asked = await self._with_subject(asked, previous[:MAX_QUESTION], by)
                found = await self.code.with_rebuild(lambda: self.resolver.resolve(asked, by=by, session_id=session))
        except TimeoutError:
            return Known(notes=[LATE])
        except ClewError as error:
            _log.info("a question was not answered: %s", error)
            return Known()
        notes = found.notes if found.items or IS_QUESTION.search(question) else ()
        partial = [PARTIAL] if self.is_partial else []
        return Known(items=found.items, notes=[*notes, *withheld, *partial], text=found.text, more=found.more)

    async def _with_subject(self, question: str, previous: str, by: Principal) -> str:
        """A question with the name of its subject in place of `it`: a name of the previous question, or else the symbol
        that its answer cites first."""
        if not previous or not refers_back(question, self.clock.now()):
            return question
        names = parse_question(previous, self.clock.now()).names
        if not names:
            found = await self.resolver.resolve(previous, by=by, session_id=by.session or "")
            names = tuple(item.id.partition("#")[2].partition(":")[0] for item in found.items[:1] if "#" in item.id)
        return with_subject(question, names[0]) if names else question

    async def keep_up(self, *, sweeps: bool = True, on_read: Callable[[], None] = lambda: None) -> None:
        """Watch the files and keep the index up to date until cancelled. With `sweeps`, also remove expired records now
        and at intervals. Calls `on_read`, perhaps more than once, when all files have been read."""
        from clew.knowledge.code.watch import CodeWatch  # for processes that stay

        loop = asyncio.get_running_loop()

        def report(done: int, total: int, what: str) -> None:
            if what not in ("looking", "reading"):
                loop.call_soon_threadsafe(on_read)

        async with CodeWatch(self.code, report=report):
            await self.gather()
            on_read()
            while sweeps:
                await self._sweep()
                await asyncio.sleep(SWEEP_SECONDS)
            await asyncio.Event().wait()

    async def _sweep(self) -> None:
        """Remove history that expired long ago, and research that is out of date."""
        from clew.knowledge.documents.findings import SCHEMA as RESEARCH  # for processes that stay

        now = self.clock.now()
        is_over = ContextMatch(path="until", op="lt", value=as_text(now, "now"))
        research = Selector(schema_name=RESEARCH, context_match=(is_over,))
        try:
            await NodeGraph(self._trail, self._owner).remove_expired(now, MAX_SWEPT)
            await drop_selected(self._trail, research, MAX_SWEPT, by=self._owner)
        except ClewError as error:  # the next round may do better
            _log.warning("expired records were not removed: %s", error)

    async def why(self, path: str, line: int, last_line: int = 0, *, by: Principal) -> LineExplanation:
        """Explain a line, or all lines from it to the last. Raises NotFound, InvalidInput, ClewError."""
        from clew.knowledge.history.explanation import blame_why  # no question needs it

        place = file_of(self.root, path)
        symbol, decisions = await self._symbol_at(place, line), await self.decisions.records()
        return await blame_why(
            self.root, place, line, last_line, trail=self._shown, by=by, decisions=decisions, symbol=symbol
        )

    def chronicle(self, by: Principal, session_id: str) -> Chronicle:
        """The journal of a session, as the caller sees it. Entries are checked against the code when stored."""
        from clew.knowledge.history.journal import Chronicle  # no question needs it

        return Chronicle(self._shown, by, session_id, self.clock, self._firewall(by))

    def archive(self, by: Principal) -> Archive:
        """Summaries of all sessions. They are checked against the code when they are stored."""
        from clew.knowledge.history.journal import Archive  # no question needs it

        return Archive(self._shown, by, self._firewall(by), self.decisions)

    def mistakes(self, by: Principal) -> Mistakes:
        """Recorded mistakes that the caller may see."""
        from clew.knowledge.history.lessons import Mistakes  # no question needs it

        return Mistakes(self._shown, by, self.clock)

    def preferences(self, by: Principal) -> UserPreferences:
        """The user's preferences in the caller's session."""
        from clew.knowledge.history.lessons import UserPreferences  # no question needs it

        return UserPreferences(self._shown, by, self.clock, by.session or "")

    def beliefs(self, by: Principal) -> BeliefLedger:
        """Facts with the times at which they are valid, that the caller may see."""
        from clew.knowledge.history.beliefs import BeliefLedger  # no question needs it

        return BeliefLedger(self._shown, by, self.clock)

    def _firewall(self, by: Principal) -> Firewall:
        from clew.knowledge.history.links import ensure_anchors  # no question needs it

        async def anchors(refs: Sequence[str]) -> Sequence[str]:
            return await ensure_anchors(self._shown, refs, by=by)

        return Firewall(self._shown, by, self._ground(by), anchors)

    def _ground(self, by: Principal) -> Ground:
        """The code, the notes that a caller sees, and the decision records."""
        return Ground(self.code, NodeGraph(self._shown, by), self.decisions.nodes)

    def discovery(self, by: Principal) -> ToolDiscovery:
        """The development tools of this project, from its files, documents and the user's preferences."""
        from clew.knowledge.project.devtools import ToolDiscovery, document_research  # no question needs it

        async def search(question: str, limit: int) -> list[ScoredNode]:
            return await self.search.search(NodeDomain.ACADEMIC, question, by=by, limit=limit)

        return ToolDiscovery(self.root, self._shown, self.clock, by, research=document_research(search))

    def library(self, by: Principal) -> Library:
        """Ingested documents that the caller may see, and research over them."""
        from clew.knowledge.documents.research import Library  # no question needs it

        return Library(self._shown, self.clock, by, self.search, self.root, self._model)

    async def close(self) -> None:
        """Write pending traces, and close the index. A second call does nothing."""
        await self.resolver.flush()
        await self.code.close()

    async def _symbol_at(self, path: str, line: int) -> str:
        """The qualified name of the innermost symbol around a line; empty without one."""
        try:
            found = await self.code.symbols_of(path)
        except NotFound:
            return ""
        around = [each for each in found if (each.line_start or 0) <= line <= (each.line_end or 0)]
        inner = max(around, key=lambda each: each.line_start or 0, default=None)
        return inner.id.partition("#")[2] if inner is not None else ""


def _result_of(task: asyncio.Task[T]) -> T | None:
    """The result of a task, if it has one."""
    has_result = task.done() and not task.cancelled() and task.exception() is None
    return task.result() if has_result else None


async def _await(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def open_knowledge(
    trail: Trail,
    clock: Clock,
    folder: Path,
    root: Path,
    owner: Principal,
    embedder: Embedder | None,
    model: Model | None = None,
    ownership: Ownership | None = None,
    patience: float | None = None,
) -> Knowledge:
    """Open the knowledge of the files below `root`, with its database in `folder`. Reads no files yet. Raises
    StorageError."""
    code = open_code(folder, root, clock, embedder)
    return Knowledge(trail, clock, root, owner, code, model, ownership, patience)
