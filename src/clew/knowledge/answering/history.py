"""Questions about the past: a commit, the changes of a version, the changes of a file, folder or symbol in a period,
and commits on a topic."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from clew.catalog.operations.text import code_span
from clew.knowledge.answering.question import HOW_MANY_COMMITS, VERSION, ParsedQuestion
from clew.knowledge.code.files import is_changelog
from clew.knowledge.code.graph import CodeGraph
from clew.knowledge.code.models import FileInfo, LeftOutFile
from clew.knowledge.code.search.words import parts_of, terms_of
from clew.knowledge.git.commits import Commits, commit_node
from clew.knowledge.git.log import version_key
from clew.knowledge.git.store import CommitFilter
from clew.knowledge.history.changelog import ChangeNote
from clew.knowledge.nodes.kinds import NodeDomain, NodeType, TrustLevel, Verification
from clew.knowledge.nodes.node_store import Node, ScoredNode
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import mask_keys
from clew.trail.model.readable import find_words

if TYPE_CHECKING:
    from packaging.version import Version

SHOWN = 8
LINE_SECONDS, MAX_BETWEEN = 1.0, 500
CANDIDATES, LEAST_COVER, SURE = 40, 0.3, 0.8
SUBJECT_SHARE = 0.3
"""How much more a word counts in the subject of a commit than in its body."""
CHANGELOG = "changelog"
NO_HISTORY = (
    "This folder has no history that can be read: it has no commits, or its .git leads to the repository of another "
    "folder."
)
UNREAD = "The commits have not been read yet: run `clew index`."
_NAMED = 200

_OF_CHANGES = lazy_pattern(
    r"\b(?:changes?|changed|commits?|committed|history|touched|modified|edited|happened|worked on|done|new|log)\b",
    re.IGNORECASE,
)
_LAST = lazy_pattern(r"\b(?:last|latest|newest|most recent|recent|recently|lately)\b", re.IGNORECASE)
_FIRST = lazy_pattern(
    r"\bwho (?:first )?(?:wrote|created|made|authored)\b|\bfirst commit\b|\bwhen was .* created\b", re.I
)
_WHO_CHANGED = lazy_pattern(
    r"\bwho (?:last |has |have )?(?:\w+ly )?(?:changed|touched|modified|edited|worked on|updated)\b", re.I
)
_ASKING_WORDS = """
    what which who when show list commit commits committed change changed changes happen happened done did touch touched
    modify modified update updated new work worked working activity history log git here everything anything made make
    merged merge release released project repository repo codebase last latest recent recently newest lately wrote
    created version author authored first
"""
_ASKING = frozenset(_ASKING_WORDS.split())
_SINCE = lazy_pattern(r"\b(?:since|after|from) v?\d+\.\d", re.IGNORECASE)
WHICH_VERSION = lazy_pattern(r"\b(?:version|release|since)\b", re.IGNORECASE)
WHICH_VERSION_OR_WHEN = lazy_pattern(rf"\b(?:who|when|author)\b|{WHICH_VERSION.pattern}", re.IGNORECASE)
_PLACE = lazy_pattern(
    r"(?P<before>\b(?:in|of|to|at|on|under|below|inside|within|touch(?:ed|ing)?|changed|modified|edited|folder|file"
    r"|directory|module|package) (?:the )?[`'\"]?)?(?<![\w/.-])(?P<name>[\w.-]*\w(?:/[\w.-]+)*)/?",
    re.IGNORECASE,
)
"""A word or a path, with the word for a place before it, if there is one."""
_PERSON = lazy_pattern(r"\b(?:did|has|have|by|from|of) ([A-Z][\w'-]+(?: [A-Z][\w'.-]+){0,3})")


class HistoryAnswer(NamedTuple):
    """An answer of history: nodes in order, how many there are in all, and sentences before them."""

    nodes: Sequence[Node]
    total: int = 0
    notes: tuple[str, ...] = ()


class _NamedPlace(NamedTuple):
    """A word or path; `is_named` if a word for a place, such as `in`, comes before it."""

    name: str
    is_named: bool


ScoredNote = tuple[ChangeNote, float]


class _NoteIndex:
    """The notes of all changelogs by their terms and versions."""

    def __init__(self, notes: Sequence[ChangeNote]) -> None:
        self.notes = notes
        by_term: dict[int, list[int]] = defaultdict(list)
        self._by_version: dict[Version | None, list[ChangeNote]] = defaultdict(list)
        for number, note in enumerate(notes):
            self._by_version[version_key(note.version)].append(note)
            for term in _terms(f"{note.text} {note.version}"):
                by_term[term].append(number)
        self._versions = {note.version for note in notes}
        self._by_term = {term: np.array(numbers) for term, numbers in by_term.items()}

    def of_version(self, version: str) -> list[ScoredNote]:
        """The notes of a version. If it has none, those of all releases whose number starts with it."""
        key = version_key(version)
        same = self._by_version.get(key, []) if key is not None else []
        longer = {name for name in self._versions if name.startswith(f"{version}.")} if not same else set()
        found = same or ([note for note in self.notes if note.version in longer] if longer else [])
        return [(note, 1.0) for note in found]

    def search(self, weights: Mapping[str, float], limit: int) -> list[ScoredNote]:
        """The notes that have more than LEAST_COVER of some words by weight, best first, each with its share."""
        total = sum(weights.values()) or 1.0
        shares = np.zeros(len(self.notes))
        for word, weight in weights.items():
            parts = parts_of(word)
            for part in parts:
                if part in self._by_term:
                    shares[self._by_term[part]] += weight / (total * len(parts))
        near = np.flatnonzero(shares > LEAST_COVER)
        best = near[np.argsort(-shares[near], kind="stable")][:limit].tolist()
        return [(self.notes[number], float(shares[number])) for number in best]


ReadChanges = Callable[[], Awaitable[Sequence[ChangeNote]]]


class HistoryHandler:
    """Answers from the git log and the changelogs of one repository."""

    def __init__(self, commits: Commits, changes: ReadChanges, code: CodeGraph) -> None:
        self._commits, self._changes, self._code = commits, changes, code
        self._notes = _NoteIndex(())
        self._state = ""
        """The state of the files in which the notes were read."""
        self._large: tuple[Sequence[FileInfo], list[LeftOutFile]] = ((), [])
        """Changelogs that are left out of the index, for a list of files."""
        self._stems: tuple[Sequence[FileInfo], dict[str, list[str]]] = ((), {})

    async def catch_up(self) -> None:
        """Read new commits. Answers from older ones leave the cache."""
        await self._commits.catch_up()

    async def mentions(self, name: str) -> bool:
        """Whether a commit message may have a name of a word and a number, such as a ticket."""
        await self.catch_up()
        return self._commits.contains(name.replace("/", "-"))

    async def gaps(self) -> list[str]:
        """Sentences on parts of the history that are not read: a long log before `clew index`, large changelogs."""
        files = await self._code.files()
        if self._large[0] is not files:
            self._large = files, [each for each in await self._code.left_out() if is_changelog(each.path)]
        unread = [UNREAD] if self._commits.is_unread else []
        return unread + [f"{_quoted(each.path)} is not read: it {each.reason}." for each in self._large[1]]

    async def answer(self, question: ParsedQuestion, state: str, now: datetime) -> HistoryAnswer | None:
        """The answer to a question about the past that names a commit, a version, a period, or a symbol or file whose
        changes it asks for. `state` is the state of the files."""
        if question.commit:
            commit = await self._commits.find(question.commit)
            return HistoryAnswer([commit_node(commit)], 1) if commit is not None else None
        if question.version and (
            found := await self._between_versions(question) or await self._of_version(question, state, now)
        ):
            return found
        if HOW_MANY_COMMITS.search(question.text):
            return await self._count(question)
        return await self._of_thing(question)

    async def search(
        self, question: ParsedQuestion, state: str, weights: Mapping[str, float], now: datetime
    ) -> list[ScoredNode]:
        """Notes of changelogs and commits that have the words of a question, best first, scored by the share of the
        words that they have. At equal scores, notes come first, because they name the version."""
        wanted = {word: weight for word, weight in weights.items() if word.lower() not in _ASKING} or dict(weights)
        commits = [each.node for each in await self._commits.search(" ".join(wanted), limit=CANDIDATES)]
        scored = [ScoredNode(node=node, similarity=cover_of(node, wanted)) for node in commits]
        notes = await self._find_notes(state, lambda index: index.search(wanted, CANDIDATES))
        scored += [ScoredNode(node=note_node(note, now), similarity=share) for note, share in notes]
        if (
            WHICH_VERSION_OR_WHEN.search(question.text)
            and max((each.similarity for each in scored), default=0.0) < SURE
        ):
            scored += await self._introducing(question)
        best = sorted(scored, key=lambda each: -each.similarity)
        return [each for each in best if each.similarity > LEAST_COVER][:SHOWN]

    async def first_version(self, sha: str) -> str:
        """A sentence with the first version that has a commit."""
        tag = await self._commits.first_tag(sha)
        shown = _quoted(sha[:10])
        return f"{_quoted(tag)} is the first version with commit {shown}." if tag else f"No version has {shown} yet."

    async def _introducing(self, question: ParsedQuestion) -> list[ScoredNode]:
        """The first and the last commit that added or removed the name of a question in the file that defines it."""
        for name in question.names:
            for node in (await self._code.named(name))[:1]:
                found = await self._commits.changing_text(_last_part(name), CANDIDATES, path=node.path or "")
                ends = dict.fromkeys(commit.sha for commit in (*found[-1:], *found[:1]))
                wanted = [commit for commit in found if commit.sha in ends]
                return [ScoredNode(node=commit_node(commit), similarity=SURE) for commit in reversed(wanted)]
        return []

    async def _find_notes(self, state: str, find: Callable[[_NoteIndex], list[ScoredNote]]) -> list[ScoredNote]:
        """Notes of changelogs that have not changed since they were read. Checks the changelogs of the notes that
        `find` returns for changes, and all changelogs if the state of the files is new."""
        if state == self._state:
            found = find(self._notes)
            if not found or not await self._code.freshen({note.path for note, _ in found}):
                return found
        notes = await self._changes()
        if self._notes.notes is not notes:
            self._notes = await asyncio.to_thread(_NoteIndex, notes)
        self._state = state
        return find(self._notes)

    async def _of_version(self, question: ParsedQuestion, state: str, now: datetime) -> HistoryAnswer | None:
        """The notes of a version, those with the words of the question first. Without notes, the commits of its tag."""
        version = question.version
        found = [note for note, _ in await self._find_notes(state, lambda index: index.of_version(version))]
        if found:
            words = [word.lower() for word in question.words if word.lower() not in _ASKING]
            ranked = sorted(found, key=lambda note: -_shared(words, f"{note.kind} {note.text}"))
            return HistoryAnswer([note_node(note, now) for note in ranked[:SHOWN]], len(found))
        tagged = await self._commits.between("", question.version, limit=SHOWN)
        if tagged is not None:
            note = f"No changelog has {question.version}; these are the commits of the tag {_quoted(tagged.tag)}."
            return HistoryAnswer([commit_node(commit) for commit in tagged.commits], tagged.total, (note,))
        if _OF_CHANGES.search(question.text):
            return HistoryAnswer([], 0, (f"No changelog and no tag here has {question.version}.",))
        return None

    async def _between_versions(self, question: ParsedQuestion) -> HistoryAnswer | None:
        """The commits between two versions, or since one, limited to files that the question names."""
        versions = [found[1] for found in VERSION.finditer(question.text)]
        if len(versions) < 2 and not _SINCE.search(question.text):
            return None
        found = await self._commits.between(*versions[:2], limit=MAX_BETWEEN)
        if found is None:
            return None
        paths = set((await self._paths(question))[0])
        wanted = [commit for commit in found.commits if not paths or any(each.path in paths for each in commit.files)]
        total = len(wanted) if paths else found.total
        return HistoryAnswer([commit_node(commit) for commit in wanted[:SHOWN]], total) if wanted else None

    async def _of_lines(self, question: ParsedQuestion) -> HistoryAnswer | None:
        """The commits that changed the lines of the one symbol that a question names, if git finds them in time."""
        nodes = await self._code.named(question.names[0]) if len(question.names) == 1 else []
        if len(nodes) != 1 or question.period is not None or _FIRST.search(question.text):
            return None
        node = nodes[0]
        with suppress(TimeoutError):
            async with asyncio.timeout(LINE_SECONDS):
                place = (node.path or "", node.line_start or 1, node.line_end or 1)
                found = await self._commits.changing_lines(*place, limit=SHOWN)
                return HistoryAnswer([commit_node(commit) for commit in found], len(found)) if found else None
        return None

    async def _of_thing(self, question: ParsedQuestion) -> HistoryAnswer | None:
        """Commits that touched the files or symbols that the question names, or all commits of a period or an
        author."""
        authors, stranger = await self._authors(question)
        if stranger:
            return await self._nothing(f"No commit here is by {stranger}.")
        paths, unknown = await self._paths(question)
        is_asked = question.period is not None or _LAST.search(question.text) or _WHO_CHANGED.search(question.text)
        named = {part.lower() for path in paths for part in _stems(path)}
        named |= {part for name in question.names for part in re.split(r"\W+", name.lower())}
        spelled = (*question.paths, *(place.name for place in _places(question.text) if "/" in place.name))
        named |= {word.lower() for name in spelled for word in find_words(name)}
        topic = [word for word in question.words if word.lower() not in _ASKING | named]
        if unknown and (_OF_CHANGES.search(question.text) or _WHO_CHANGED.search(question.text)):
            return await self._nothing(f"No commit here touched {unknown}.")
        is_of_changes = _OF_CHANGES.search(question.text) or _FIRST.search(question.text)
        if topic and not (authors or question.period):
            return None
        if not (authors or is_asked or (paths and is_of_changes)):
            return None
        if of_lines := await self._of_lines(question):
            return of_lines
        wanted = _filter(question, paths, authors)
        oldest_first = _FIRST.search(question.text) is not None
        found, total = await self._commits.select(wanted, SHOWN, oldest_first=oldest_first)
        if found or question.period is None:
            return HistoryAnswer([commit_node(commit) for commit in found], total) if found else None
        before = CommitFilter(until=question.period.since, paths=tuple(paths), authors=tuple(authors))
        earlier, _ = await self._commits.select(before, 1)
        nodes = [commit_node(commit) for commit in earlier]
        return HistoryAnswer(
            nodes, len(nodes), (f"No commit {question.period.label}{': the last before it' if earlier else ''}.",)
        )

    async def _count(self, question: ParsedQuestion) -> HistoryAnswer:
        authors, stranger = await self._authors(question)
        if stranger:
            return await self._nothing(f"No commit here is by {stranger}.")
        paths, unknown = await self._paths(question, words=False)
        if unknown:
            return await self._nothing(f"No commit here touched {unknown}.")
        period = question.period
        found, total = await self._commits.select(_filter(question, paths, authors), 1)
        nodes = [commit_node(commit) for commit in found]
        by = f" by {', '.join(map(_quoted, authors))}" if authors else ""
        when = f" {period.label}" if period is not None else ""
        return HistoryAnswer(nodes, len(nodes), (f"{total:,} commit{'' if total == 1 else 's'}{by}{when}.",))

    async def _nothing(self, note: str) -> HistoryAnswer:
        """An answer without commits: `note`, or a note that there is no history if no commits are known."""
        return HistoryAnswer([], 0, (note if await self._commits.count() else NO_HISTORY,))

    async def _authors(self, question: ParsedQuestion) -> tuple[list[str], str]:
        """The authors that a question names. If it names only a person who is not an author, the second value is that
        name as it is shown. A name that occurs in the files does not count as a person."""
        unknown = ""
        for found in _PERSON.finditer(question.text):
            if authors := await self._commits.authors_of(found[1]):
                return authors, ""
            is_thing = any(self._code.text.rarity(find_words(found[1])).values())
            unknown = unknown or ("" if is_thing else _quoted(found[1]))
        return [], unknown

    async def _paths(self, question: ParsedQuestion, *, words: bool = True) -> tuple[list[str], str]:
        """The files that a question names by path, symbol or folder, or with `words` by a word of their names. Also
        returns a named path that has no commits, as it is shown."""
        places = _places(question.text)
        folders = [place for place in places if "/" in place.name]
        for name in (*question.paths, *(place.name for place in folders)):
            if paths := await self._commits.paths_of(name):
                return paths, ""
        missing = [*question.paths, *(place.name for place in folders if place.is_named)]
        if missing:
            return [], _quoted(missing[0])
        for name in question.names:
            if nodes := await self._code.named(name):
                return list(dict.fromkeys(node.path for node in nodes if node.path)), ""
        for place in places:
            if place.is_named and (paths := await self._commits.paths_of(place.name)):
                return paths, ""
        if not words:
            return [], ""
        return await self._paths_of_words(question), ""

    async def _paths_of_words(self, question: ParsedQuestion) -> list[str]:
        words = {word.lower(): word for word in question.words if word.lower() not in _ASKING}
        by_stem = await self._paths_by_stem()
        if found := sorted({path for word in words for path in by_stem.get(word, ())}):
            return found
        nodes = [node for word in words.values() for node in await self._code.named(word) if node.name.endswith(word)]
        return list(dict.fromkeys(node.path for node in nodes if node.path))

    async def _paths_by_stem(self) -> dict[str, list[str]]:
        """The files by their names without endings and by their folders."""
        files = await self._code.files()
        if self._stems[0] is not files:
            found = defaultdict[str, list[str]](list)
            for file in files:
                for stem in _stems(file.path):
                    found[stem].append(file.path)
            self._stems = files, found
        return self._stems[1]


def cover_of(node: Node, weights: Mapping[str, float]) -> float:
    """The share of the words that a commit or note has, by weight; words of its title count more."""
    title = _terms(node.name)
    whole = title | _terms(node.content)
    total = sum(weights.values()) or 1.0
    held = 0.0
    for word, weight in weights.items():
        parts = parts_of(word)
        in_title, in_whole = (sum(part in terms for part in parts) / (len(parts) or 1) for terms in (title, whole))
        held += weight * (SUBJECT_SHARE * in_title + (1 - SUBJECT_SHARE) * in_whole)
    return held / total


def note_node(note: ChangeNote, now: datetime) -> Node:
    """A line of a changelog as a node of history."""
    at = datetime.combine(note.day, time(), UTC) if note.day else None
    return Node(
        id=note.cited,
        name=note.text.split("\n", 1)[0][:_NAMED],
        domain=NodeDomain.HISTORY,
        node_type=NodeType.HISTORY_ENTRY,
        content=note.text,
        path=note.path,
        line_start=note.line,
        line_end=note.end_line,
        content_hash=note.hash,
        timestamp=at,
        created_at=at or now,
        verified=True,
        verification=Verification.CODE,
        trust=TrustLevel.RECENT,
        metadata={"kind": CHANGELOG, "status": note.kind, "version": note.version},
    )


def _terms(text: str) -> set[int]:
    return {term for word in find_words(text) for term in terms_of(word)}


def _shared(words: Sequence[str], text: str) -> int:
    terms = _terms(text)
    return sum(bool(set(terms_of(word)) & terms) for word in words)


def _quoted(name: str) -> str:
    """A name from a question or from git as a note shows it."""
    return code_span(mask_keys(name), _NAMED)


def _filter(question: ParsedQuestion, paths: Sequence[str], authors: Sequence[str]) -> CommitFilter:
    """The commits of the period of a question that touched some paths and are by some authors."""
    since, until = (question.period.since, question.period.until) if question.period else (None, None)
    return CommitFilter(since=since, until=until, paths=tuple(paths), authors=tuple(authors))


def _places(text: str) -> list[_NamedPlace]:
    """The words and paths of a question that may name a file or a folder."""
    return [_NamedPlace(found["name"], found["before"] is not None) for found in _PLACE.finditer(text)]


def _last_part(name: str) -> str:
    return re.split(r"[.:#]", name)[-1]


def _stems(path: str) -> set[str]:
    *folders, name = path.lower().split("/")
    return {*folders, name.partition(".")[0]}
