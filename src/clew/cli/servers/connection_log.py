"""The changes that `clew connect` made to settings, so that each can be undone to the byte.

The log is a file of the user, beside the file of consent. It holds no settings, only the place of each change and the
text that the change replaced.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from clew.errors import ConfigError, ReadOnly
from clew.files import locked, replace_file
from clew.trust import user_file

FILE = "connections.json"


class ConnectionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One entry in the settings of a client, and how to undo it.

    `at` is the position of the change. `inserted` is the number of new bytes there, `replaced` has the bytes that stood
    there before. `digest` is the digest of the settings after the change. `new_folders` counts the folders that were
    made for a new file; it is None if the file was there before.
    """

    client: str
    file: str
    entry: str
    folder: str
    at: int
    inserted: int
    replaced: bytes
    digest: str
    new_folders: int | None = None

    @classmethod
    def between(
        cls, before: bytes, after: bytes, *, client: str, file: Path, entry: str, folder: Path, new_folders: int | None
    ) -> ConnectionRecord:
        """The change from one content of a file to another."""
        shorter = min(len(before), len(after))
        at = next((n for n in range(shorter) if before[n] != after[n]), shorter)
        rest = shorter - at
        end = next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)
        return cls(
            client=client,
            file=str(file),
            entry=entry,
            folder=str(folder),
            at=at,
            inserted=len(after) - end - at,
            replaced=before[at : len(before) - end],
            digest=hashlib.sha256(after).hexdigest(),
            new_folders=new_folders,
        )

    def undo(self, content: bytes) -> bytes | None:
        """The content before the change; None if the file changed since."""
        if hashlib.sha256(content).hexdigest() != self.digest:
            return None
        return content[: self.at] + self.replaced + content[self.at + self.inserted :]


def read_connections() -> list[ConnectionRecord]:
    """All changes that are not undone. Raises ConfigError for a file that cannot be read."""
    path = _path()
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[ConnectionRecord])
    except FileNotFoundError:
        return []
    except (msgspec.DecodeError, UnicodeError):
        raise ConfigError(f"{path} is damaged: remove it; `clew connect --remove` then edits the settings") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def find_connection(file: Path, entry: str) -> ConnectionRecord | None:
    return next((each for each in read_connections() if (each.file, each.entry) == (str(file), entry)), None)


def replay_without(gone: ConnectionRecord, content: bytes, without: Callable[[bytes], bytes]) -> list[ConnectionRecord]:
    """Return the records of a file's changes after `gone`, recomputed as if `gone` had never been made. `content` is
    the file's present content, and `without` removes the entry of `gone` from a content. The result is empty if another
    program has changed the file since."""
    later: list[tuple[ConnectionRecord, bytes]] = []
    for each in reversed([each for each in read_connections() if each.file == gone.file]):
        before = each.undo(content)
        if before is None:
            return []
        if each.entry == gone.entry:
            return list(_rebased(before, gone.new_folders, reversed(later), without))
        later.append((each, content))
        content = before
    return []


def _rebased(
    before: bytes,
    new_folders: int | None,
    changes: Iterable[tuple[ConnectionRecord, bytes]],
    without: Callable[[bytes], bytes],
) -> Iterator[ConnectionRecord]:
    for each, content in changes:
        after = without(content)
        yield ConnectionRecord.between(
            before,
            after,
            client=each.client,
            file=Path(each.file),
            entry=each.entry,
            folder=Path(each.folder),
            new_folders=new_folders,
        )
        before, new_folders = after, None


def record_connection(connection: ConnectionRecord) -> None:
    """Store a change, replacing an earlier change of the same entry. Raises ConfigError, ReadOnly."""
    _update(connection.file, connection.entry, [connection])


def forget_connection(file: Path, entry: str) -> None:
    """Remove a change that was undone. Raises ConfigError, ReadOnly."""
    _update(str(file), entry, [])


def _update(file: str, entry: str, new: Iterable[ConnectionRecord]) -> None:
    path = _path()
    try:
        with locked(path):
            others = [each for each in read_connections() if (each.file, each.entry) != (file, entry)]
            replace_file(path, msgspec.json.encode([*others, *new]), 0o600)
    except OSError as error:
        raise ReadOnly(f"{path} cannot be written: {error.strerror}") from None


def _path() -> Path:
    return user_file().with_name(FILE)
