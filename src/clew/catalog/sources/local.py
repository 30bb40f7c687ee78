"""Files of a folder, without files that git ignores. Every listing reads the folder again. Links are never followed;
their targets are read at their own path if they are in the folder. This holds even if the folder changes at the same
time, because paths are opened from the root, folder by folder.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from clew.catalog.resource import DocumentListing, RawContent, RawDocument, Skipped
from clew.catalog.sources.content_types import HEAD_BYTES, content_type_of, is_binary
from clew.catalog.sources.ids import source_id
from clew.errors import ConfigError, NotFound, SourceError
from clew.files import OPEN_FILE, OPEN_FOLDER, STEPWISE, open_inside
from clew.secrecy import is_secret_file
from clew.tools.search.gitignore import NEVER_READ, TOOLS_OWN, IgnoreRules, rules_above
from clew.trail.model.globs import glob_matches

MAX_BYTES = 2_000_000

_FileState = tuple[int, ...]
"""Changes whenever a file does: inode, size, time of the content, time of the last change of any kind."""


class LocalSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A folder, and which of its files; globs are of paths from the folder on, such as `docs/**/*.md`."""

    root: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_bytes: int = MAX_BYTES

    def __post_init__(self) -> None:
        if "\0" in self.root:
            raise ConfigError("local: root: not a valid name of a folder")


class LocalSource:
    """The text files of a folder whose path matches one of `include` (by default all) and none of `exclude`.
    `leaves_out` gets a path and whether it is a folder, and excludes further files. A document's id is its path
    relative to the folder, with `/`; its version changes with its time and size. Documents of the types `unlisted` are
    not listed, but `fetch_content` reads them.
    """

    name = "local"
    is_local = True

    def __init__(
        self,
        root: Path,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        max_bytes: int = MAX_BYTES,
        leaves_out: Callable[[str, bool], bool] = lambda path, is_folder: False,
        unlisted: Collection[str] = (),
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._include = tuple(include)
        self._exclude = tuple(exclude)
        self._max_bytes = max_bytes
        self._leaves_out = leaves_out
        self._unlisted = unlisted
        self._listed: dict[str, tuple[_FileState, RawDocument]] = {}

    @property
    def place(self) -> Path:
        """The folder, which need not exist."""
        return self._root

    @property
    def id(self) -> str:
        limit = "" if self._max_bytes == MAX_BYTES else str(self._max_bytes)
        chosen = {"include": ",".join(self._include), "exclude": ",".join(self._exclude), "max_bytes": limit}
        chosen["without"] = ",".join(self._unlisted)
        return source_id(f"local:{_shown(self._root.as_posix())}", chosen)

    async def list_documents(self) -> DocumentListing:
        return await asyncio.to_thread(self._list)

    async def fetch_content(self, id: str) -> RawContent:
        return await asyncio.to_thread(self._fetch, id)

    async def close(self) -> None:
        return None

    def _list(self) -> DocumentListing:
        if not self._root.is_dir():
            raise SourceError(self.id, "there is no such folder", hint="Check its `root`")
        documents: list[RawDocument] = []
        skipped: list[Skipped] = []
        known, self._listed = self._listed, {}
        for found in self._walk(known):
            if isinstance(found, Skipped):
                skipped.append(found)
            else:
                documents.append(found)
        documents.sort(key=lambda document: document.id)
        skipped.sort(key=lambda left_out: left_out.document)
        return DocumentListing(documents=documents, skipped=skipped)

    def _walk(self, known: Mapping[str, tuple[_FileState, RawDocument]]) -> Iterator[RawDocument | Skipped]:
        """All files that the settings choose, in no order. Files that have not changed since the last listing are not
        opened again."""
        pending = [("", rules_above(self._root))]
        while pending:
            folder, above = pending.pop()
            place = os.path.join(self._root, folder) if folder else str(self._root)
            rules = above.entering(place)
            try:
                descriptor = open_inside(str(self._root), folder, OPEN_FOLDER)
            except FileNotFoundError:
                continue
            except OSError as error:
                yield _skip(folder, f"cannot be read ({error.strerror})")
                continue
            try:
                for entry in _entries(descriptor if STEPWISE else place):
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if not is_folder and content_type_of(entry.name, b"") in self._unlisted:
                        continue
                    if not self._is_chosen(path, rules, is_folder=is_folder):
                        continue
                    if is_folder:
                        pending.append((path, rules))
                    elif found := self._remembered(path, known) or self._examine(path, entry, descriptor):
                        yield found
            finally:
                os.close(descriptor)

    def _is_chosen(self, path: str, rules: IgnoreRules, *, is_folder: bool) -> bool:
        """Whether a file is wanted, or a folder is worth entering."""
        name = path.rpartition("/")[2].lower()
        if name in NEVER_READ or (is_folder and name in TOOLS_OWN):
            return False
        if any(glob_matches(glob, path) or (is_folder and glob_matches(glob, f"{path}/")) for glob in self._exclude):
            return False
        if not is_folder and self._include and not any(glob_matches(glob, path) for glob in self._include):
            return False
        if rules.ignores(os.path.join(self._root, path), is_folder=is_folder):
            return False
        return not self._leaves_out(path, is_folder)

    def _remembered(self, path: str, known: Mapping[str, tuple[_FileState, RawDocument]]) -> RawDocument | None:
        """The document that the last listing made of a file, unless the file has changed."""
        state, document = known.get(path, (None, None))
        try:
            if document is None or _state_of(os.lstat(os.path.join(self._root, path))) != state:
                return None
        except OSError:
            return None
        self._listed[path] = known[path]
        return document

    def _examine(
        self, path: str, entry: os.DirEntry[str] | None = None, folder: int = -1
    ) -> RawDocument | Skipped | None:
        """Return a file as a document, or the reason why it is skipped; None if it is gone. `entry` is its directory
        entry."""
        place = os.path.join(self._root, path)
        try:
            is_plain = entry is not None and entry.is_file(follow_symlinks=False)
            if not is_plain and (refusal := self._refusal(path, place, os.lstat(place))):
                return _skip(path, refusal)
            with open(self._open(path, entry, folder), "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                if refusal := self._refusal(path, place, status):
                    return _skip(path, refusal)
                head = file.read(HEAD_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            return _skip(path, f"cannot be read ({error.strerror})")
        if is_binary(head):
            return _skip(path, "is binary")
        document = RawDocument(
            id=path,
            name=path.rpartition("/")[2],
            content_type=content_type_of(path, head),
            version=f"{status.st_mtime_ns}-{status.st_size}",
            metadata={"size": status.st_size, "modified_ns": status.st_mtime_ns},
        )
        self._listed[path] = _state_of(status), document
        return document

    def _open(self, path: str, entry: os.DirEntry[str] | None, folder: int) -> int:
        """A descriptor of a file. It is opened relative to its folder if that is open, which is faster than from the
        root."""
        if entry is None or not STEPWISE:
            return open_inside(str(self._root), path)
        return os.open(entry.name, OPEN_FILE, dir_fd=folder)

    def _refusal(self, path: str, place: str, status: os.stat_result) -> str | None:
        if not _is_utf8(path):
            return "has a name that is not UTF-8"
        if is_secret_file(path.rpartition("/")[2]):
            return "is of a kind that holds keys or passwords"
        if stat.S_ISLNK(status.st_mode):
            return self._about_link(place)
        if not stat.S_ISREG(status.st_mode):
            return "is not a regular file"
        if status.st_size > self._max_bytes:
            return f"has {status.st_size:,} bytes, over the limit of {self._max_bytes:,}"
        return None

    def _about_link(self, place: str) -> str:
        """The reason why a link is left out."""
        try:
            target = Path(os.path.realpath(place, strict=True))
        except OSError:
            return "is a link that leads nowhere"
        if not target.is_relative_to(self._root):
            return "is a link that leads out of the folder"
        return f"is a link; {_shown(target.relative_to(self._root).as_posix())} is read where it stands"

    def _fetch(self, id: str) -> RawContent:
        self._check_path(id)
        if not self._is_listed(id):
            raise NotFound("document", _shown(id)[:200])
        found = self._examine(id)
        if found is None:
            raise NotFound("document", _shown(id)[:200])
        if isinstance(found, Skipped):
            raise SourceError(self.id, f"{found.document[:200]} {found.reason}")
        try:
            with open(open_inside(str(self._root), id), "rb") as file:
                body = file.read(self._max_bytes + 1)
        except OSError as error:
            raise SourceError(self.id, f"{_shown(id)} cannot be read ({error.strerror})") from None
        if len(body) > self._max_bytes:
            raise SourceError(self.id, f"{_shown(id)} has grown over the limit of {self._max_bytes:,} bytes")
        return RawContent(id=id, name=found.name, content_type=found.content_type, body=body, metadata=found.metadata)

    def _check_path(self, id: str) -> None:
        """Raise SourceError unless the id is a plain relative path in the folder without links."""
        parts = id.split("/")
        if "\0" in id or any(part in ("", ".", "..") for part in parts) or os.path.isabs(id):
            raise SourceError(self.id, f"{_shown(id)[:80]!r} is not a path within the folder")
        above = os.path.dirname(os.path.join(self._root, id))
        try:
            is_plain = os.path.realpath(above) == os.path.normpath(above)
        except (OSError, ValueError):
            is_plain = False
        if not is_plain:
            raise SourceError(self.id, f"{_shown(id)[:80]!r} is not a path within the folder")

    def _is_listed(self, id: str) -> bool:
        """Whether the settings and git's rules choose a path, and every folder above it."""
        rules = rules_above(self._root).entering(str(self._root))
        parts = id.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            if not self._is_chosen(folder, rules, is_folder=True):
                return False
            rules = rules.entering(os.path.join(self._root, folder))
        return self._is_chosen(id, rules, is_folder=False)


def _entries(folder: int | str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return list(found)


def _state_of(status: os.stat_result) -> _FileState:
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _skip(path: str, reason: str) -> Skipped:
    return Skipped(document=_shown(path), reason=reason)


def _is_utf8(path: str) -> bool:
    return path.isascii() or _shown(path) == path


def _shown(path: str) -> str:
    """A path as text that can be stored, whatever bytes are in it."""
    return path.encode("utf-8", errors="backslashreplace").decode("utf-8")
