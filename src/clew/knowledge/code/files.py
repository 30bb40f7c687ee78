"""The files of a folder that the index covers: those that git tracks or would add, without links, key files, caches of
tools and other repositories. Without git, the `.gitignore` files decide."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from clew.errors import SourceError
from clew.knowledge.code.models import FileStatus, is_utf8
from clew.knowledge.git.run import QUICK_SECONDS, note_stuck, run_git
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import is_secret_file
from clew.tools.search.gitignore import NEVER_READ, TOOLS_OWN, rules_above

ALWAYS_LEFT_OUT = NEVER_READ | TOOLS_OWN | frozenset((".idea", ".vscode", ".cache"))
LEFT_OUT_UNTRACKED = frozenset(("vendor", "dist", "build"))
"""Folders of generated or copied files. Tracked files in them count."""

GIT_SECONDS = QUICK_SECONDS
"""The time for git to list files. After that the folder is walked."""

TEST, ASIDE, TEXT, LOCK, CHANGELOG = 1, 2, 4, 8, 16
"""Bits of a path's kind; a plain source file has none."""
ALL_KINDS = range(2 * CHANGELOG)
VERSION_FILE = lazy_pattern(
    r"(?:[a-z]+[-_])?v?(?P<version>\d+(?:\.(?:\d+|x))+)[\w.-]*|v\d+|unreleased|next", re.IGNORECASE
)
"""Names of files with the notes of one version, without their endings."""

_LINK, _MODULE = "120000", "160000"
_TEST_FOLDER = lazy_pattern(r"(^|/)(tests?|testing|__tests__|testdata|specs?|fixtures?|e2e|[\w-]*[_-]tests?)/")
_TEST_NAME = lazy_pattern(r"(test_.*|conftest\.py|.*(_test|\.test|\.spec|Tests?|TestCase)\.\w+)$")
_ASIDE_FOLDER = lazy_pattern(
    r"(^|/)(docs?|examples?|benchmarks?|asv_bench|tutorials?|gallery|changelog|news|scripts?|tools|build_tools|ci"
    r"|\.github|vendor|vendored|extern|externals?|third_party|node_modules|dist|\w+_dist|demos?|samples?)/"
)
_ASIDE_NAME = lazy_pattern(r"(setup\.py|.*(\.min\.js|_pb2\.py|\.pb\.go|\.d\.ts|_generated\.\w+))$")
_LOCK = lazy_pattern(r"(^|/)([^/]*\.lock|[^/]*-lock\.(json|ya?ml)|go\.sum|npm-shrinkwrap\.json|[^/]*\.(map|min\.css))$")
_CODE = lazy_pattern(r"\.(pyx?|pxd|pyi|[cm]?[jt]sx?|go|rs|java|kt|c|cc|cpp|cxx|h|hh|hpp|rb)$")


_TEXT_FILE = lazy_pattern(r"(?P<stem>[^/]+?)(?:\.(?:md|markdown|mdx|rst|txt|adoc))?", re.IGNORECASE)
_CHANGELOG = lazy_pattern(
    r"(?:[\w.-]*[-_.])?change-?logs?(?:[-_.][\w.-]*)?"
    r"|(?:changes|history|news|releases?|release[-_]?notes|whats?[-_]?new)(?:[-_.]?v?\d[\w.]*)?",
    re.IGNORECASE,
)
_CHANGELOGS = lazy_pattern(r"change-?logs?|releases?|release[-_]?notes|whats?[-_]?new", re.IGNORECASE)
_GUIDE = lazy_pattern(r"migrat|upgrad", re.IGNORECASE)


@lru_cache(1 << 15)
def kind_of(path: str, qualname: str = "") -> int:
    """The bits of a path. TEST marks tests and their data. ASIDE marks examples, scripts, generated and copied files.
    TEXT marks files without code. LOCK marks lists that a package manager writes. CHANGELOG marks paths for which
    `is_changelog` holds. A symbol in the module `tests` of a Rust file is a test too."""
    folder, _, name = path.rpartition("/")
    of_folder = _kind_of_folder(folder)
    is_test = bool(of_folder & TEST) or _TEST_NAME.match(name) is not None or is_inline_test(path, qualname)
    return (
        (TEST if is_test else 0)
        | (CHANGELOG if not is_test and _names_changes(path) else 0)
        | (ASIDE if of_folder & ASIDE or _ASIDE_NAME.match(name) else 0)
        | (0 if _CODE.search(path) else TEXT)
        | (LOCK if _LOCK.search(path) else 0)
    )


@lru_cache(1 << 12)
def _kind_of_folder(folder: str) -> int:
    place = f"{folder}/"
    return (TEST if _TEST_FOLDER.search(place) else 0) | (ASIDE if _ASIDE_FOLDER.search(place) else 0)


def may_have_inline_tests(path: str) -> bool:
    """Whether `is_inline_test` may be true of symbols of a file."""
    return path.endswith(".rs")


def is_inline_test(path: str, qualname: str) -> bool:
    """Whether a symbol is in the module of unit tests that Rust files have at their end."""
    return may_have_inline_tests(path) and qualname.partition(".")[0] in ("tests", "test")


def is_changelog(path: str) -> bool:
    """Whether a path looks like that of a changelog, or of the notes of one version in a folder for them. Guides for
    migrations and upgrades are documents."""
    return bool(kind_of(path) & CHANGELOG)


def text_stem(path: str) -> str:
    """The name of a text file without its ending; empty for other files."""
    found = _TEXT_FILE.fullmatch(path.rpartition("/")[2])
    return found["stem"] if found else ""


def _names_changes(path: str) -> bool:
    stem, folder = text_stem(path), path.rpartition("/")[0].rpartition("/")[2]
    is_version = _CHANGELOGS.fullmatch(folder) is not None and VERSION_FILE.fullmatch(stem) is not None
    return (is_version or _CHANGELOG.fullmatch(stem) is not None) and not _GUIDE.search(stem)


def status_of(found: os.stat_result) -> FileStatus:
    return FileStatus(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


class Tree:
    """The files of one folder, listed again by each call. Paths are relative, with `/`."""

    def __init__(self, root: Path) -> None:
        self.root = os.path.realpath(root)

    def look(self) -> dict[str, FileStatus]:
        """All regular files of the index, in no order; empty without such a folder."""
        return self._statuses(self._list())

    def choose(self, paths: Iterable[str]) -> dict[str, FileStatus]:
        """The paths that count, with their status. Asks git once for all of them."""
        wanted = [path for path in paths if _is_wanted(path)]
        listed = self._list_git(wanted) or self._list() if wanted else []
        return self._statuses(set(wanted).intersection(listed))

    def status(self, path: str) -> FileStatus | None:
        """The status of a regular file, or None."""
        try:
            found = os.lstat(f"{self.root}/{path}")
        except (OSError, ValueError):
            return None
        return status_of(found) if stat.S_ISREG(found.st_mode) else None

    def folders(self, files: Iterable[str]) -> set[str]:
        """The folders that may get files that count, and those of these files. The root is the empty string."""
        found = {folder for folder, _ in _walk(self.root)}
        for path in files:
            while path and (path := path.rpartition("/")[0]) not in found:
                found.add(path)
        return found

    def _statuses(self, paths: Iterable[str]) -> dict[str, FileStatus]:
        return {path: status for path in paths if (status := self.status(path)) is not None}

    def _list(self) -> list[str]:
        """Paths that count. A folder that its repository ignores is walked as without git."""
        return self._list_git() or [path for _, files in _walk(self.root) for path in files]

    def _list_git(self, only: Iterable[str] = ()) -> list[str]:
        """The tracked paths, and the untracked ones that git does not ignore; empty if git fails or takes too long."""
        command = ["ls-files", "-z", "-t", "--stage", "--others", "--exclude-standard", "--", *only]
        began = time.monotonic()
        try:
            printed = run_git(Path(self.root), command, timeout=GIT_SECONDS)
        except SourceError:
            if time.monotonic() - began >= GIT_SECONDS:
                note_stuck(self.root, "ls-files")
            return []
        paths = dict.fromkeys(map(_listed_path, os.fsdecode(printed).split("\0")))
        return [path for path in paths if _is_wanted(path)]


def _listed_path(entry: str) -> str:
    """The path in an entry of `ls-files -t --stage`; empty for a link, a nested repository and generated files."""
    tag, _, rest = entry.partition(" ")
    if tag == "?":
        return rest if _is_own(rest) else ""
    return "" if rest.startswith((_LINK, _MODULE)) else rest.partition("\t")[2]


def _is_wanted(path: str) -> bool:
    """Whether a path may count. The path of a nested repository ends with a slash."""
    folder, _, name = path.rpartition("/")
    if not name or name in NEVER_READ or not _may_hold_files(folder):
        return False
    return not is_secret_file(name) and is_utf8(path)


@lru_cache(maxsize=20_000)
def _may_hold_files(folder: str) -> bool:
    names = folder.split("/")
    return ALWAYS_LEFT_OUT.isdisjoint(names) and (not folder or names[0] not in ("", ".."))


def _is_own(path: str) -> bool:
    return LEFT_OUT_UNTRACKED.isdisjoint(path.split("/")[:-1])


def _walk(root: str) -> Iterator[tuple[str, list[str]]]:
    """All folders that the `.gitignore` files allow, each with its files. Follows no links, and enters no other
    repository."""
    pending = [("", rules_above(Path(root)))]
    while pending:
        folder, above = pending.pop()
        place = f"{root}/{folder}" if folder else root
        rules = above.entering(place)
        files = []
        for entry in _entries(place, is_top=not folder):
            path = f"{folder}/{entry.name}" if folder else entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            inside = f"{path}/-" if is_folder else path
            if not (_is_wanted(inside) and _is_own(inside)) or rules.ignores(entry.path, is_folder=is_folder):
                continue
            if is_folder:
                pending.append((path, rules))
            else:
                files.append(path)
        yield folder, files


def _entries(place: str, *, is_top: bool) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as listing:
            entries = list(listing)
    except OSError:
        return []
    is_another = not is_top and any(entry.name == ".git" for entry in entries)
    return [] if is_another else entries
