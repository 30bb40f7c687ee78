"""The user's consent to files of a folder that run or instruct agents. It is stored outside the folder, in one file of
the user, and bound to a digest of the content, so that every change needs new consent."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from clew.errors import ConfigError, InvalidInput, ReadOnly, TooLarge
from clew.files import take_lock
from clew.lazy_pattern import lazy_pattern

VARIABLE = "CLEW_TRUST"
FORMAT = 1
MAX_SUMMARY = 2_000
MAX_BYTES = 100_000_000
"""The limit for the content behind one digest, in bytes."""

MAKING = ".making"
"""The suffix of the lock file that `making` holds."""

_KIND = lazy_pattern(r"[a-z][a-z_-]{0,29}")
_DIGEST = lazy_pattern(r"[0-9a-f]{64}")


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """A request for consent to files of a folder that would be run or loaded. `folder` is a real path. `kind` is a
    short word such as server or domain. `summary` is one printable line, without secrets, about what would happen.
    `note` informs about an earlier consent and is not stored."""

    folder: str
    kind: str
    name: str
    digest: str
    summary: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        if not os.path.isabs(self.folder):
            raise InvalidInput("folder", "of a wish must be an absolute path")
        if not _KIND.fullmatch(self.kind) or not self.name.strip() or not self.name.isprintable():
            raise InvalidInput("wish", "needs a kind, which is a short word, and a name that can be printed")
        if not _DIGEST.fullmatch(self.digest):
            raise InvalidInput("digest", "must be a SHA-256 in hexadecimal")
        if len(self.summary) > MAX_SUMMARY or not self.summary.isprintable():
            raise InvalidInput("summary", f"must be one printable line of at most {MAX_SUMMARY:,} characters")


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Consent to one wish."""

    folder: str
    kind: str
    name: str
    digest: str
    when: datetime
    summary: str = ""


class _TrustFile(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    grants: tuple[Grant, ...] = ()


_Key = tuple[str, str, str, str]


class Trust:
    """The grants in one file. Every query reads the current file, so that consent given in another process counts at
    once. If the file cannot be read, methods raise ConfigError and nothing is trusted."""

    def __init__(self, path: Path, now: Callable[[], datetime]) -> None:
        self.path = path
        self._now = now
        self._seen: tuple[int, ...] | None = None
        self._held: frozenset[_Key] = frozenset()

    @classmethod
    def open(cls, path: Path | None = None, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> Trust:
        """The grants of a file; without one, of CLEW_TRUST or clew/trust.json in the user's configuration folder. The
        file need not exist. Raises ConfigError if there is no home folder."""
        return cls(Path(os.path.realpath(path or user_file())), now)

    def holds(self, wish: Wish) -> bool:
        """Whether the user has agreed to exactly this. Raises ConfigError."""
        seen = self.state()
        if seen != self._seen:
            self._held = frozenset(map(_key, self._read()))
            self._seen = seen
        return _key(wish) in self._held

    def compare(self, wish: Wish) -> Wish:
        """The wish, with a note if the user has agreed to a different content under its name. Raises ConfigError."""
        place = wish.folder, wish.kind, wish.name
        earlier = next((each for each in self._read() if (each.folder, each.kind, each.name) == place), None)
        if earlier is None or earlier.digest == wish.digest:
            return wish
        was = f", when it said: {earlier.summary}" if earlier.summary != wish.summary else ""
        return msgspec.structs.replace(wish, note=f"changed since you agreed on {earlier.when:%Y-%m-%d %H:%M} UTC{was}")

    def grant(self, wishes: Iterable[Wish]) -> None:
        """Store consent to all of these wishes, or to none. Each replaces an earlier grant of the same name. Raises
        ConfigError, ReadOnly."""
        now = self._now().astimezone(UTC).replace(microsecond=0)
        new = {
            (each.folder, each.kind, each.name): Grant(
                folder=each.folder,
                kind=each.kind,
                name=each.name,
                digest=each.digest,
                when=now,
                summary=each.summary,
            )
            for each in wishes
        }
        if not new:
            return
        with self._locked():
            kept = (each for each in self._read() if (each.folder, each.kind, each.name) not in new)
            self._write((*kept, *new.values()))

    def revoke(self, folder: str | Path, kind: str | None = None, name: str | None = None) -> int:
        """Revoke consent for a folder, optionally only for one kind or name. Returns the number of removed grants.
        Raises ConfigError, ReadOnly."""
        place = real_folder(folder)
        if not self.path.exists():
            return 0
        with self._locked():
            before = self._read()
            kept = [
                each
                for each in before
                if each.folder != place or (kind or each.kind) != each.kind or (name or each.name) != each.name
            ]
            if len(kept) < len(before):
                self._write(kept)
        return len(before) - len(kept)

    def grants(self, folder: str | Path | None = None) -> list[Grant]:
        """Return all grants, or the grants of one folder, in the order of folder, kind and name. Raises ConfigError."""
        place = None if folder is None else real_folder(folder)
        found = [each for each in self._read() if place is None or each.folder == place]
        return sorted(found, key=lambda each: (each.folder, each.kind, each.name))

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Hold a lock while this process creates a file, such as a trail, and grants it to the user. Other processes
        wait. Raises ReadOnly."""
        with self._locked(MAKING):
            yield

    def holds_once_made(self, wish: Wish) -> bool:
        """Like `holds`, but first waits for another process that is in `making`. Also raises ReadOnly."""
        if self.holds(wish):
            return True
        if not self._beside(MAKING).exists():
            return False
        with self.making():
            return self.holds(wish)

    def state(self) -> tuple[int, ...]:
        """A value that changes with the file and is cheap to read."""
        try:
            found = self.path.stat()
        except OSError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _read(self) -> tuple[Grant, ...]:
        try:
            self._check_mine()
            found = msgspec.json.decode(self.path.read_bytes(), type=_TrustFile)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise self._broken(f"cannot be read: {error.strerror}") from None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            raise self._broken("is damaged") from None
        if found.version != FORMAT:
            raise self._broken(f"has the format {found.version}, which this version of Clew does not know")
        return found.grants

    def _check_mine(self) -> None:
        """Check that others cannot write the file of grants."""
        found = self.path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise self._broken("is not a file")
        if os.name == "posix" and (found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022):
            raise self._broken("can be written by others")

    def _broken(self, reason: str) -> ConfigError:
        error = ConfigError(f"the file of what you trust, {self.path}, {reason}")
        error.hint = "Nothing is trusted until the file is repaired; remove it to start again with `clew trust`"
        return error

    def _write(self, grants: Iterable[Grant]) -> None:
        """Replace the file atomically. The caller must hold the lock."""
        content = msgspec.json.format(msgspec.json.encode(_TrustFile(version=FORMAT, grants=tuple(grants))), indent=2)
        draft = self._beside(".new")
        with _as_read_only(self.path):
            draft.unlink(missing_ok=True)  # of a process that was ended in the middle
            file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(file, "wb") as out:
                out.write(content + b"\n")
                out.flush()
                os.fsync(file)
            draft.replace(self.path)

    @contextlib.contextmanager
    def _locked(self, suffix: str = ".lock") -> Iterator[None]:
        """Hold a lock that excludes all other processes. It is released when the process ends."""
        with _as_read_only(self.path):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._beside(suffix), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            take_lock(lock)
            yield
        finally:
            os.close(lock)

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(f"{self.path.name}{suffix}")


def user_file() -> Path:
    """The file with this user's consent. Raises ConfigError if there is no home folder."""
    if given := os.environ.get(VARIABLE):
        return Path(given)
    base = os.environ.get("XDG_CONFIG_HOME", "")
    place = base if os.path.isabs(base) else os.path.expanduser("~/.config")
    if not os.path.isabs(place):
        error = ConfigError("there is no home folder to remember in what you trust")
        error.hint = f"Name a file for it: {VARIABLE}"
        raise error
    return Path(place) / "clew" / "trust.json"


def real_folder(folder: str | Path) -> str:
    """The real path of a folder, as storable text. It identifies the folder in wishes and grants, even if it is reached
    through different links."""
    return os.path.realpath(folder).encode("utf-8", "backslashreplace").decode()


def digest_parts(parts: Iterable[bytes]) -> str:
    """One digest of several parts. Different parts, or the same text divided differently, give a different digest."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def digest_files(files: Iterable[Path], root: Path) -> str:
    """One digest of regular files: of their paths below `root` and their contents. An unreadable file is included as
    unreadable. Raises TooLarge."""
    parts: list[bytes] = []
    size = 0
    for name, file in sorted((_name_in(root, file), file) for file in files):
        found = _content(file, MAX_BYTES - size)
        size += len(found or b"")
        parts += [os.fsencode(name), b"unreadable" if found is None else hashlib.sha256(found).digest()]
    return digest_parts(parts)


def printable(text: str, limit: int = MAX_SUMMARY) -> str:
    """A text on one line, with invisible characters spelled out and a note if it is truncated."""
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
    if len(shown) <= limit:
        return shown
    rest = f"… and {len(shown) - limit + 40:,} characters more"
    return shown[: limit - 40] + rest


def _name_in(root: Path, file: Path) -> str:
    """The path of a file below `root`. Links in both folders are resolved, but the file's own name stays."""
    return os.path.relpath(os.path.join(os.path.realpath(file.parent), file.name), os.path.realpath(root))


def _content(file: Path, room: int) -> bytes | None:
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):  # to open a pipe would wait for its writer
            return None
        if found.st_size > room:
            raise TooLarge(str(file), found.st_size, MAX_BYTES)
        return file.read_bytes()
    except OSError:
        return None


def _key(one: Wish | Grant) -> _Key:
    return one.folder, one.kind, one.name, one.digest


@contextlib.contextmanager
def _as_read_only(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        hint = f"Nothing was changed. {VARIABLE} can name a file elsewhere"
        raise ReadOnly(f"what you trust cannot be written to {path}: {error.strerror}", hint=hint) from None
