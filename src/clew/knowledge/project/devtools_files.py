"""The files of a project that may say which tools it uses: from the folder in question up to that of the project.
Only files are read, without following links, and no more than a limit of each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import islice

from clew.knowledge.code.file_content import read_content
from clew.knowledge.project.devtools_data import detection, language_by_extension
from clew.tools.ignoring import NEVER_READ, TOOLS_OWN

MAX_TEXT = 500_000
"""A larger file is there, but nothing is read from it: nobody writes such a configuration."""
MAX_LISTED = 50
SHORT_HASH = 10
MAX_WALKED = 5_000
MANIFESTS = {
    "package.json": "javascript",
    "pyproject.toml": "python",
    "go.mod": "go",
    "Cargo.toml": "rust",
    "pom.xml": "java",
}
BUILDS = frozenset(("pom.xml", "build.gradle", "build.gradle.kts"))
"""Files of a build that has modules in folders of their own, each with such a file."""
LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}

_NOT_ITS_OWN = NEVER_READ | TOOLS_OWN | frozenset(("vendor", "dist", "build", "target", "venv"))


class ProjectFiles:
    """What a real folder has for one target below it. Paths are relative to the root, with `/`; the files next to the
    target come first."""

    def __init__(self, root: str, target: str) -> None:
        self.root, self.target = root, target
        self.is_file = os.path.isfile(os.path.join(root, target))
        self._texts: dict[str, str] = {}
        self.paths = list(self._list())

    def text(self, path: str) -> str:
        """The text of a file; empty for one that is too large, gone, or not readable."""
        if path not in self._texts:
            content = read_content(self.root, path)
            fits = content is not None and len(content.body) <= MAX_TEXT
            self._texts[path] = content.body.decode("utf-8-sig", "replace") if content is not None and fits else ""
        return self._texts[path]

    def place(self, path: str, word: str) -> str:
        """Where a file first has a word, above all in the head of a section, at its content: `path:line@blob`; a file
        without it, by itself."""
        content, text = read_content(self.root, path), self.text(path).casefold()
        blob = f"@{content.blob[:SHORT_HASH]}" if content is not None and content.blob else ""
        having = [(number, each) for number, each in enumerate(text.splitlines(), 1) if word.casefold() in each]
        line, _ = min(having, key=lambda each: (not each[1].startswith("["), each[0]), default=(0, ""))
        return f"{path}:{line}{blob}" if line else f"{path}{blob}"

    def fingerprint(self) -> dict[str, str]:
        """The content of each file as it is now: the id of its blob. Of lock files only that they are there."""
        return {path: self._mark(path) for path in self.paths}

    def languages(self) -> list[str]:
        """The languages of the files below the target, those of most files first; else those of its manifests."""
        if self.is_file:
            return [found] if (found := language_by_extension(self.target)) else []
        counted = Counter(filter(None, map(language_by_extension, self._walk())))
        by_files = sorted(counted, key=lambda language: (-counted[language], language))
        names = {path.rpartition("/")[2] for path in self.paths}
        return by_files or [language for manifest, language in MANIFESTS.items() if manifest in names]

    def runner(self) -> str:
        """What runs the scripts of package.json."""
        names = [path.rpartition("/")[2] for path in self.paths]
        return next((LOCKS[name] for name in names if name in LOCKS), "npm")

    def _mark(self, path: str) -> str:
        if path.rpartition("/")[2] in LOCKS:
            return "there"
        content = read_content(self.root, path)
        if content is None:
            return ""
        return content.blob or f"{content.status.size} bytes at {content.status.mtime_ns}"

    def _list(self) -> Iterator[str]:
        for folder in self._folders():
            names = _names(self.root, folder)
            yield from (_join(folder, name) for name in names if name in _wanted())
            for inner, endings in {**detection().ci_folders, **detection().ide_folders}.items():
                if inner.split("/")[0] in names:
                    place = _join(folder, inner)
                    listed = [name for name in _names(self.root, place) if name.rpartition(".")[2] in endings]
                    yield from (_join(place, name) for name in listed[:MAX_LISTED])
        yield from self._modules()

    def _modules(self) -> Iterator[str]:
        """The files of the modules of a build, one level below the target."""
        if self.is_file or not BUILDS.intersection(names := _names(self.root, self.target)):
            return
        inner = [_join(self.target, name) for name in names if name not in _NOT_ITS_OWN and not name.startswith(".")]
        found = (_join(folder, name) for folder in inner for name in sorted(BUILDS) if self._is_there(folder, name))
        yield from islice(found, MAX_LISTED)

    def _is_there(self, folder: str, name: str) -> bool:
        place = os.path.join(self.root, folder)
        return not os.path.islink(place) and os.path.isfile(os.path.join(place, name))

    def _folders(self) -> Iterator[str]:
        folder = self.target.rpartition("/")[0] if self.is_file else self.target
        while folder:
            yield folder
            folder = folder.rpartition("/")[0]
        yield ""

    def _walk(self) -> Iterator[str]:
        """Names of files, up to a limit, level by level; links are not followed."""
        waiting, left = [os.path.join(self.root, self.target)], MAX_WALKED
        for place in waiting:
            try:
                with os.scandir(place) as listed:
                    entries = sorted((each for each, _ in zip(listed, range(left), strict=False)), key=lambda e: e.name)
            except OSError:
                continue
            left -= len(entries)
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    yield entry.name
                elif _is_own_folder(entry):
                    waiting.append(entry.path)


def _is_own_folder(entry: os.DirEntry[str]) -> bool:
    is_own = entry.name not in _NOT_ITS_OWN and not entry.name.startswith(".")
    return is_own and entry.is_dir(follow_symlinks=False)


def _names(root: str, folder: str) -> list[str]:
    place = os.path.join(root, folder)
    try:
        return sorted(os.listdir(place)) if os.path.realpath(place) == os.path.normpath(place) else []
    except OSError:
        return []


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


@cache
def _wanted() -> frozenset[str]:
    known = detection()
    rules = {rule.file for rule in (*known.configs, *known.sections)}
    return frozenset((*rules, *BUILDS, *MANIFESTS, *LOCKS, *known.scripts, *known.ci, *known.requirements))
