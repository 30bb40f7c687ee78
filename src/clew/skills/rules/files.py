"""Reads rule files (AGENTS.md, CLAUDE.md …) by path.

A file that two links or imports lead to counts once. Nothing outside the root is read.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import stat
from collections.abc import Collection, Iterator
from functools import cached_property

import msgspec

from clew.errors import FormatError
from clew.llm.tokens import estimate_tokens
from clew.skills.checks.problems import Problem, Severity, in_order
from clew.skills.files.document import MAX_BYTES
from clew.skills.files.tree_walk import MAX_DEPTH, RULE_FILES, TreeWalk, is_plain, show, walk
from clew.skills.formats.collection import Alias
from clew.skills.formats.rules import read_imports
from clew.skills.formats.safe_open import Root
from clew.skills.rules.documents import Documents, find_documents
from clew.trust import Wish, digest_parts, printable, real_folder

MAX_RULES = 10_000
"""The limit for rule files of one tree."""
MAX_TOTAL = 50_000_000
"""The limit for all rules of one tree, in bytes."""
MAX_HOPS = 5
"""The limit for a chain of imports."""
CONSENT = "rules"
"""The kind of consent that a rule file needs."""

ROOT_FILE = "AGENTS.md"
"""The rules of the root, unless the settings name another file."""
_OVERRIDE, _OVERRIDDEN = "AGENTS.override.md", "AGENTS.md"
_IMPORTING = ("CLAUDE", "GEMINI")
_IMPORTED = (".md", ".mdc", ".markdown", ".txt")
_MAX_SUMMARY = 200


class AgentRule(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """One rule file. All paths are relative to the root.

    `real` is its real path; `folder` is the folder that it applies to, empty for the whole tree. `imported_by` is the
    rule file that imports it, `mtime` is in milliseconds, `documents` are the documents that it links to.
    """

    path: str
    real: str
    folder: str
    text: str
    digest: str
    mtime: int
    imported_by: str = ""
    documents: Documents = ()

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens."""
        return estimate_tokens(self.text)

    def wish(self, root: str) -> Wish:
        """Return the request for consent to the text and its linked documents. A model sees them only after consent.

        Consent covers these texts only. An imported file is a rule of its own.
        """
        head = next((line.strip("# \t") for line in self.text.split("\n") if line.strip("# \t")), "")
        lines = self.text.rstrip("\n").count("\n") + 1
        linked = (
            f", links to {len(self.documents):,} document{'s'[: len(self.documents) > 1]}" if self.documents else ""
        )
        summary = f"tells agents what to do ({lines:,} line{'s' if lines > 1 else ''}{linked}): {head}"
        name, about = printable(self.real), printable(summary, _MAX_SUMMARY)
        parts = [self.digest, *(each for document in self.documents for each in document)]
        digest = digest_parts(map(os.fsencode, parts)) if self.documents else self.digest
        return Wish(folder=real_folder(root), kind=CONSENT, name=name, digest=digest, summary=about)


class FoundRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules with the outermost first, second paths to the same rules, and skipped files with the reasons."""

    rules: tuple[AgentRule, ...] = ()
    repeats: tuple[Alias, ...] = ()
    problems: tuple[Problem, ...] = ()


class RuleFiles:
    """The rule files of one tree. A call reads the files of that time, blocks on the disk, and never raises.
    `root_file` replaces the AGENTS.md of the root: a path below the root."""

    def __init__(self, root: str, cwd: str = "", root_file: str = ROOT_FILE) -> None:
        self.root = Root(root)
        self.cwd = os.path.join(self.root.path, cwd)
        self._root_file = posixpath.normpath(root_file)

    def of_root(self) -> FoundRules:
        """Return the rules of the root, and the files that they import."""
        reader = _RuleReader(self.root)
        reader.read_root(self._root_file)
        return reader.found()

    def on_way(self, path: str) -> FoundRules:
        """Return the rules of the folders on the real path of a file or folder, without those of the root.

        There are none outside the root. A relative path starts at `cwd`. The path need not exist.
        """
        place = self.place_of(path)
        if not place:
            return FoundRules()
        reader = _RuleReader(self.root)
        reader.read_root(self._root_file)
        above = len(reader.rules)
        folders = place.split("/")
        for depth in range(1, min(len(folders), MAX_DEPTH) + 1):
            reader.read_folder("/".join(folders[:depth]))
        if len(folders) > MAX_DEPTH:
            reader.report(place, f"is more than {MAX_DEPTH} folders deep: rules below that are ignored", "warning")
        found = reader.found()
        return msgspec.structs.replace(found, rules=found.rules[above:])

    def place_of(self, path: str) -> str | None:
        """Return the real folder whose rules apply to a path, relative to the root; None if the path is outside."""
        try:
            real = os.path.realpath(os.path.join(self.cwd, path))
            is_folder = path.endswith(("/", os.sep)) or os.path.isdir(real)
        except (OSError, ValueError):
            return None
        relative = self.root.relative(real)
        return relative if relative is None or is_folder else posixpath.dirname(relative)

    def find(self, path: str) -> AgentRule | None:
        """Return one rule file by its path relative to the root; None if it cannot be read."""
        reader = _RuleReader(self.root)
        try:
            reader.read(path, self.root.resolve(path), posixpath.dirname(path))
        except FormatError:
            return None
        return next((each for each in reader.rules if each.path == path), None)

    def everywhere(self, tree: TreeWalk | None = None) -> FoundRules:
        """Return all rule files of the tree by path, with copies and imports. The walk is bounded, and skips installed
        packages and the like; `tree` is one that was done just now."""
        tree = tree or walk(self.root)
        reader = _RuleReader(self.root, are_copies_once=False)
        files = [
            (folder.files[name], folder.at(name), folder.path)
            for folder in tree.folders.values()
            for name in RULE_FILES
            if name in folder.files
        ]
        if self._root_file != ROOT_FILE:
            reader.read_root(self._root_file)
            files = [each for each in files if each[2]]
        ranked = sorted(files, key=lambda each: (each[0] != each[1], each[1]))  # real files before links
        for real, path, folder in ranked[:MAX_RULES]:
            reader.read(path, real, folder)
        if len(ranked) > MAX_RULES:
            reader.report(ranked[MAX_RULES][1], f"and {len(ranked) - MAX_RULES - 1:,} more are ignored", "warning")
        problems = [each for each in tree.problems if _is_ours(each, tree)]
        found = reader.found()
        return FoundRules(
            rules=tuple(sorted(found.rules, key=lambda each: each.path)),
            repeats=found.repeats,
            problems=tuple(in_order([*problems, *found.problems])),
        )

    def wishes(self, tree: TreeWalk | None = None) -> list[Wish]:
        """Return the requests for consent to all rules, sorted by path. `tree` is as in `everywhere`."""
        return [each.wish(self.root.path) for each in self.everywhere(tree).rules]


class _RuleReader:
    """Reads rule files, each real file once. Exact copies count once too, if `are_copies_once`."""

    def __init__(self, root: Root, *, are_copies_once: bool = True) -> None:
        self._root = root
        self._are_copies_once = are_copies_once
        self._room = MAX_TOTAL
        self._known: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._followed: dict[str, int] = {}  # length of the import chain by path; on a shorter chain more imports fit
        self._imported: dict[str, tuple[str, ...]] = {}
        self._repeats: list[Alias] = []
        self._problems: list[Problem] = []
        self.rules: list[AgentRule] = []

    def found(self) -> FoundRules:
        return FoundRules(rules=tuple(self.rules), repeats=tuple(self._repeats), problems=tuple(self._problems))

    def report(self, path: str, message: str, severity: Severity = "error", line: int = 0) -> None:
        self._problems.append(Problem(kind="parse", severity=severity, path=show(path), line=line, message=message))

    def read_root(self, root_file: str) -> None:
        """The rules of the root; `root_file` comes first and replaces AGENTS.md. A file that the settings name and that
        does not exist is reported."""
        if root_file == ROOT_FILE:
            self.read_folder("")
            return
        try:
            self.read(root_file, self._root.resolve(root_file), "")
        except FormatError as error:
            self.report(root_file, error.reason)
        self.read_folder("", without=(_OVERRIDE, ROOT_FILE))

    def read_folder(self, folder: str, without: Collection[str] = ()) -> None:
        """The rules of one folder that is real, in the order of RULE_FILES."""
        names = {name: found for name, found in self._names(folder) if name not in without}
        if _OVERRIDE in names:
            names.pop(_OVERRIDDEN, None)
        for path, real in names.values():
            self.read(path, real, folder)

    def _names(self, folder: str) -> Iterator[tuple[str, tuple[str, str]]]:
        for name in RULE_FILES:
            path = f"{folder}/{name}" if folder else name
            try:
                mode = os.lstat(self._root.absolute(path)).st_mode
            except (OSError, ValueError):
                continue
            if not stat.S_ISLNK(mode):
                yield name, (path, path)
                continue
            try:
                yield name, (path, self._root.resolve(path))
            except FormatError as error:
                self.report(path, f"the link {error.reason}: Clew does not follow it")

    def read(self, path: str, real: str, folder: str, importers: tuple[str, ...] = ()) -> None:
        """Read a rule and its imports, unless it was read already, and report problems."""
        if real in self._texts:
            self._repeat(path, real)
            self._follow(path, real, folder, importers)
            return
        try:
            text, raw, mtime = self._load(path, real)
        except FormatError as error:
            self.report(path, error.reason)
            return
        digest = hashlib.sha256(raw).hexdigest()
        if self._are_copies_once and digest in self._known:
            self._repeat(path, self._known[digest])
            return
        self._known[digest] = real
        self._texts[real] = text
        if self._has_own(real, importers):
            rule = AgentRule(
                path=path,
                real=real,
                folder=folder,
                text=text,
                digest=digest,
                mtime=mtime,
                imported_by=importers[-1] if importers else "",
                documents=find_documents(self._root, text, real),
            )
            self.rules.append(rule)
        self._follow(path, real, folder, importers)

    def _follow(self, path: str, real: str, folder: str, importers: tuple[str, ...]) -> None:
        hops = len(importers)
        if hops >= self._followed.get(real, MAX_HOPS) or not _is_importing(real, importers):
            return
        self._followed[real] = hops
        for each in self._imports(real):
            self.read(each, each, folder, (*importers, path))

    def _repeat(self, path: str, real: str) -> None:
        if path != real:
            self._repeats.append(Alias(path=show(path), target=real))

    def _load(self, path: str, real: str) -> tuple[str, bytes, int]:
        if not is_plain(path) or not is_plain(real):
            raise FormatError(path, "has a name with control characters or invalid bytes: Clew does not read it")
        if len(self.rules) >= MAX_RULES or self._room <= 0:
            raise FormatError(path, f"is ignored: the limit is {MAX_RULES:,} rule files and {MAX_TOTAL:,} bytes")
        stamp = self._root.stamp(real)
        raw = self._root.read(real, MAX_BYTES)
        self._room -= len(raw)
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise FormatError(path, f"is not UTF-8 text (byte {error.start})") from None
        if "\x00" in text:
            raise FormatError(path, "is not text: it has NUL characters")
        mtime = stamp[3] // 1_000_000 if stamp is not None else 0
        return text.replace("\r\n", "\n").replace("\r", "\n"), raw, mtime

    def _imports(self, real: str) -> tuple[str, ...]:
        """Return the files that a rule imports, and report each problem once."""
        if real not in self._imported:
            references, problems = read_imports(self._texts[real], real, self._find)
            self._problems += problems
            self._imported[real] = tuple(each.path for each in references)
        return self._imported[real]

    def _has_own(self, real: str, importers: tuple[str, ...]) -> bool:
        """Whether a file has any text other than imports."""
        if any(not each.startswith("@") for each in self._texts[real].split()):
            return True
        return bool(self._texts[real].strip()) and not (_is_importing(real, importers) and self._imports(real))

    def _find(self, path: str) -> str | None:
        """Return the real path of a text file below the root, or None."""
        if not path.lower().endswith(_IMPORTED):
            return None
        try:
            real = self._root.resolve(path)
        except FormatError:
            return None
        return real if os.path.isfile(self._root.absolute(real)) else None


def _is_importing(real: str, importers: tuple[str, ...]) -> bool:
    """Whether `@path` is an import: in a CLAUDE.md or GEMINI.md, and in the files that they import."""
    return bool(importers) or posixpath.basename(real).startswith(_IMPORTING)


def _is_ours(problem: Problem, tree: TreeWalk) -> bool:
    """Whether a problem of the walk is about a rule file or a skipped folder."""
    return posixpath.basename(problem.path) in RULE_FILES or problem.path in tree.left_out or problem.path == "."
