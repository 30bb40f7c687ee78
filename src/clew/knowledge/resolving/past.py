"""Answers on what was done, from the log and the changelogs themselves: a commit, the commits of a file or an author,
the changes of a version, and what was done in a time."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from clew.access import Principal
from clew.catalog.text import inline
from clew.clock import Clock
from clew.knowledge.evidence.naming import COMMIT_PREFIX, on_one_line
from clew.knowledge.git.commits import Commits
from clew.knowledge.git.store import CommitFilter
from clew.knowledge.history.changelog import ChangeNote, happened_at
from clew.knowledge.history.shelf import HistoryShelf
from clew.knowledge.resolving.about_commits import ThingAsked, read_authors, read_count, read_last, read_sha, read_thing
from clew.knowledge.resolving.about_origins import OriginAsked, commits_on, notes_on, read_origin
from clew.knowledge.resolving.about_versions import VersionAsked, is_of_kind, note_node, notes_of, read_version
from clew.knowledge.resolving.answers import EXCERPT, Resolved
from clew.knowledge.resolving.commit_answers import (
    ASKED,
    SHOWN,
    UNREAD,
    moment_of,
    paths_of,
    tell_author,
    tell_commit,
    tell_count,
    tell_newest_before,
    tell_tagged,
    unread,
)
from clew.knowledge.resolving.definitions import find_definitions, read_names
from clew.knowledge.resolving.intents import Classified, asking_words
from clew.knowledge.resolving.periods import Period, read_period
from clew.knowledge.resolving.phrases import Target
from clew.knowledge.resolving.recent import list_noted, types_in, wants_commits_only
from clew.knowledge.resolving.subjects import subject_words
from clew.knowledge.resolving.support import build_wanted, support_of
from clew.knowledge.resolving.told import Told, build_told
from clew.knowledge.searching import Shelves
from clew.knowledge.shelves import AsFound, Truth
from clew.trail.kinds import NodeDomain, NodeType
from clew.trail.nodes import Node, ScoredNode
from clew.trail.store import Trail

MOST_LAST = 20
MOST_ORIGINS = 3
MOST_NAMING = 200
"""So many commits that may name a thing are looked at."""

ReadChanges = Callable[[], Awaitable[Sequence[ChangeNote]]]
"""Reads the lines of all changelogs, in the order of their files."""

_OF_CHANGES = re.compile(
    r"\b(?:chang\w*|commit\w*|happen\w*|did|done|doing|decid\w+|decisions?|brok\w+|fix\w*|add(?:ed|s)?|remov\w+"
    r"|merg\w+|new|work(?:ed|s|ing)? on|release[ds]?|updat\w+|activity|history|touch\w*|modif\w+|went on|going on"
    r"|introduc\w+|refactor\w*|renam\w+|deprecat\w+|learn(?:ed|t)|noted)\b",
    re.IGNORECASE,
)
_OTHER = re.compile(r"^(?:so |and |but )?(?:where|how|why|explain|is|are|does|can|should)\b", re.IGNORECASE)
_BROKE = ("broke",)
_PATH = re.compile(r"/|\.\w{1,8}\Z")
_FILE = re.compile(
    r"\S{1,300}\.(?:py|pyi|js|jsx|ts|tsx|go|rs|java|kt|c|h|cc|cpp|hpp|rb|md|rst|txt|toml|ya?ml|json|cfg|ini|html|css|sh|sql)"
)
"""What can only be a file, by how it ends."""


class Past:
    """Tells what was done. `changes` reads the changelogs anew: their lines are few, and change with every release.
    `truth` holds what was noted against the files that it tells of."""

    def __init__(
        self,
        trail: Trail,
        clock: Clock,
        shelves: Shelves,
        changes: ReadChanges | None = None,
        truth: Truth | None = None,
    ) -> None:
        self._trail, self._clock, self._shelves, self._changes = trail, clock, shelves, changes
        self._truth = truth or AsFound()

    async def tell(self, question: str, what: Classified, *, by: Principal) -> Resolved | None:
        """The answer; None where the question asks for something else, or nothing is known of what it names."""
        shelf = self._shelves.get(NodeDomain.HISTORY)
        if not isinstance(shelf, HistoryShelf):
            return None
        told = await self._find(question, what, shelf.commits, by)
        return build_told(question, what, told, self._clock.now()) if told is not None else None

    async def _find(self, question: str, what: Classified, commits: Commits, by: Principal) -> Told | None:
        """By the first of what a question may name that there is: a commit, a version, a file, an author, a time."""
        named = read_sha(question)
        if named is not None and (told := await tell_commit(commits, named[0], is_sure=named[1])) is not None:
            return told
        version = read_version(question)
        if version is not None and (told := await self._tell_version(version, commits)) is not None:
            return told
        period = read_period(question, self._clock.now())
        rest = period.rest if period is not None else question
        bounds = CommitFilter(since=period.since, until=period.until) if period is not None else CommitFilter()
        whose = read_count(rest)
        if whose is not None and (told := await tell_count(whose, period, bounds, commits)) is not None:
            return told
        if last := read_last(rest):
            nodes, _ = await commits.among(bounds, min(last, MOST_LAST))
            return Told(
                nodes=nodes, total=len(nodes), head="" if nodes else f"No commit is known here{unread(commits)}."
            )
        thing = read_thing(rest)
        if thing is not None and (told := await self._tell_thing(thing, bounds, commits, by)) is not None:
            return told
        origin = read_origin(question)
        if origin is not None and (told := await self._tell_origin(origin, commits)) is not None:
            return told
        for author in read_authors(rest):
            if (told := await tell_author(author, bounds, commits)) is not None:
                return told
        return await self._tell_period(period, what, commits, by) if period is not None else None

    async def _tell_version(self, asked: VersionAsked, commits: Commits) -> Told | None:
        notes = notes_of(await self._changes(), asked) if self._changes is not None else []
        meant = [note for note in notes if is_of_kind(note, asked.kind)]
        if not notes:
            return await tell_tagged(asked, commits)
        head = f"No change of {asked.version} is told to be of that kind ({asked.kind}); all of them:"
        nodes = [note_node(note, self._clock.now()) for note in (meant or notes)]
        return Told(nodes=nodes[:SHOWN], head="" if meant else head, total=len(nodes))

    async def _tell_origin(self, asked: OriginAsked, commits: Commits) -> Told | None:
        """Where something came or went: by the changelogs, or else by the oldest commits whose subject names it."""
        notes = notes_on(await self._changes(), asked) if self._changes is not None and not asked.is_by_whom else []
        if notes:
            nodes = [note_node(note, self._clock.now()) for note in notes[:MOST_ORIGINS]]
            return Told(nodes=nodes, total=len(nodes), has_versions=True)
        named, _ = await commits.among(CommitFilter(words=asked.words), MOST_NAMING, oldest_first=asked.kind == "added")
        found = commits_on(named, asked)[: MOST_ORIGINS if asked.is_by_whom else 1]
        if not found or asked.is_by_whom:
            return Told(nodes=found, total=len(found)) if found else None
        tag = await commits.first_version_with(found[0].id.removeprefix(COMMIT_PREFIX))
        first = f"the first tag with the commit that names it is {inline(tag)}" if tag else "no tag has its commit"
        return Told(nodes=found, head=f"No changelog tells of it; {first}:", total=len(found))

    async def _tell_thing(
        self, asked: ThingAsked, bounds: CommitFilter, commits: Commits, by: Principal
    ) -> Told | None:
        """The commits that touched a file, or the file of a symbol."""
        path, paths = asked.thing, await paths_of(commits, asked.thing)
        if not paths:
            path = await self._file_of(asked.thing, by)
            paths = await commits.paths_of(path) if path else []
        if not paths:
            return _tell_no_file(asked.thing, path, commits)
        wanted = msgspec.structs.replace(bounds, paths=tuple(paths))
        limit = 1 if asked.is_last or asked.is_first else SHOWN
        nodes, total = await commits.among(wanted, limit, oldest_first=asked.is_first)
        head = f"{inline(asked.thing, EXCERPT)} is in {on_one_line(path)}:" if path != asked.thing else ""
        return Told(nodes=nodes, head=head, total=total) if nodes else await tell_newest_before(wanted, commits)

    async def _file_of(self, name: str, by: Principal) -> str:
        """The file that defines what can only be a name; nothing for other words."""
        shelf, named = self._shelves.get(NodeDomain.CODE), read_names(f"where is {name}")
        if shelf is None or not named.is_spelled:
            return ""
        found = await find_definitions(shelf, named, by=by)
        return found[0].node.path or "" if found else ""

    async def _tell_period(self, period: Period, what: Classified, commits: Commits, by: Principal) -> Told | None:
        """What was committed and noted in a time."""
        rest = period.rest.strip(" ?!.")
        is_asked = what.target is Target.ARCHIVALIST or not rest or _OF_CHANGES.search(rest) is not None
        if _OTHER.match(rest) or not is_asked:
            return None
        types, words = types_in(rest), _words_of(rest, what)
        is_broken = types == (NodeType.FAILURE,)
        are_commits = not types or is_broken
        told = words or (_BROKE if is_broken else ())
        wanted = CommitFilter(since=period.since, until=period.until, words=told)
        done, total = await commits.among(wanted, SHOWN) if are_commits else ([], 0)
        is_noted = not wants_commits_only(rest)
        inside, count = await self._noted(period, types, words, by) if is_noted else ([], 0)
        nodes = sorted((*done, *inside), key=moment_of, reverse=True)[:SHOWN]
        if nodes:
            return Told(nodes=nodes, head=_head(period, total, count, commits), total=total + count)
        earlier = Period(until=period.since)
        before, _ = await self._noted(earlier, types, words, by) if is_noted else ([], 0)
        return await tell_newest_before(wanted, commits, before, are_commits=are_commits)

    async def _noted(
        self, period: Period, types: Sequence[NodeType], words: Sequence[str], by: Principal
    ) -> tuple[list[Node], int]:
        """The newest of what was noted in a time, as far as it is what the files say now, and how many there are."""
        wanted, total = build_wanted(words, {}), 0

        async def find() -> list[ScoredNode]:
            nonlocal total
            found = [node for node in await list_noted(self._trail, types, by=by) if happened_at(node) is not None]
            meant = [node for node in found if period.since <= moment_of(node) < period.until]
            spoken = [node for node in meant if not words or support_of(wanted, node) > wanted.least]
            total = len(spoken)
            newest = sorted(spoken, key=moment_of, reverse=True)[:SHOWN]
            return [ScoredNode(node=node, similarity=1.0) for node in newest]

        held = await self._truth.hold(find)
        return [each.node for each in held], total - min(total, SHOWN) + len(held)


def _tell_no_file(thing: str, path: str, commits: Commits) -> Told | None:
    """That the log does not know a file, or is not read yet; None for what may be no file."""
    if commits.is_unread:
        return Told(nodes=[], head=f"{UNREAD.capitalize()}.") if path or _PATH.search(thing) else None
    if not path and not _FILE.fullmatch(thing):
        return None
    return Told(nodes=[], head=f"No commit that is known here touched {inline(path or thing, EXCERPT)}.")


def _words_of(rest: str, what: Classified) -> tuple[str, ...]:
    """The words that tell of what, beside the time. Where several things may have been done to it (`fixed or added`),
    none of them does."""
    done = frozenset(map(str.lower, _OF_CHANGES.findall(rest)))
    left_out = asking_words(rest, what.intent) | ASKED | (done if len(done) > 1 else frozenset())
    return tuple(subject_words(rest, left_out))


def _head(period: Period, commits: int, entries: int, log: Commits) -> str:
    """How much there is in a time."""
    parts = [f"{commits:,} commit{'' if commits == 1 else 's'}"] if commits else []
    parts += [f"{entries:,} {'entry' if entries == 1 else 'entries'}"] if entries else []
    order = ", newest first" if commits + entries > 1 else ""
    return f"{' and '.join(parts)} {period.label}{order}{unread(log)}:"
