"""Promoted scripts: generated code that worked, stored for thirty days for later runs. This module runs no code.

scripts = open_scripts(read_config(), clock)
scripts.promote("count-lines", "python", "print(len(open('a.txt').readlines()))", about="count the lines of a file")
scripts.find("how many lines")[0].code
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Protocol

import msgspec

from clew.clock import Clock
from clew.config import Config
from clew.errors import ConfigError, InvalidInput, NotFound, ReadOnly, TooLarge
from clew.files import locked, read_file, replace_file
from clew.trail.config_consent import confirm_settings

FILE = Path(".clew/scripts.json")
LIFE = timedelta(days=30)
FORMAT = 1
MAX_CODE = 200_000
MAX_ABOUT = 1_000
MAX_SCRIPTS = 1_000
"""The limit for scripts. Above it, the oldest are dropped."""
Time = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with a time zone."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WORD = re.compile(r"[^\W_]{2,}")


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Code with its SHA-256 and expiry. `about` is its description."""

    name: str
    language: str
    code: str
    digest: str
    promoted_at: Time
    expires_at: Time
    about: str = ""


Edit = Callable[[Mapping[str, Script]], Mapping[str, Script]]


class Store(Protocol):
    """Stores scripts."""

    def read(self) -> Mapping[str, Script]:
        """Return all stored scripts, expired ones included. Raises ConfigError when they cannot be read."""
        ...

    def change(self, edit: Edit) -> None:
        """Replace the scripts by the result of an edit, under a lock. Raises ConfigError, ReadOnly."""
        ...


class FileStore:
    """One JSON file, replaced atomically; several processes may write it. Its content needs no consent."""

    def __init__(self, path: Path = FILE) -> None:
        self.path = Path(path)

    def read(self) -> Mapping[str, Script]:
        try:
            found = msgspec.json.decode(read_file(self.path), type=_ScriptsFile)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
            reason = getattr(error, "strerror", None) or "it is damaged"
            raise self._broken(str(reason)) from None
        if found.version != FORMAT:
            raise self._broken(f"it has the format {found.version}")
        return {each.name: each for each in found.scripts if each.digest == digest_of(each.language, each.code)}

    def change(self, edit: Edit) -> None:
        try:
            with locked(self.path):
                after = edit(self.read())
                content = msgspec.json.encode(_ScriptsFile(version=FORMAT, scripts=tuple(after.values())))
                replace_file(self.path, msgspec.json.format(content, indent=2) + b"\n", 0o600)
        except OSError as error:
            raise ReadOnly(f"scripts cannot be written to {self.path}: {error.strerror}") from None

    def _broken(self, reason: str) -> ConfigError:
        error = ConfigError(f"the scripts in {self.path} cannot be read: {reason}")
        error.hint = "Repair the file, or delete it"
        return error


class CallbackStore:
    """Storage by callbacks: `load` returns all scripts, and `save` receives all of them."""

    def __init__(self, load: Callable[[], Sequence[Script]], save: Callable[[Sequence[Script]], None]) -> None:
        self._load = load
        self._save = save

    def read(self) -> Mapping[str, Script]:
        return {each.name: each for each in self._load()}

    def change(self, edit: Edit) -> None:
        self._save(tuple(edit(self.read()).values()))


class Scripts:
    """The promoted scripts of a store, without expired ones."""

    def __init__(self, store: Store, clock: Clock, *, life: timedelta = LIFE) -> None:
        self._store = store
        self._clock = clock
        self._life = life

    def promote(self, name: str, language: str, code: str, *, about: str = "") -> Script:
        """Store proven code under a name, in place of an earlier version. Raises InvalidInput, TooLarge, and the errors
        of the store."""
        _check(name, language, code, about)
        now = self._clock.now()
        script = Script(
            name=name,
            language=language,
            code=code,
            digest=digest_of(language, code),
            promoted_at=now,
            expires_at=now + self._life,
            about=" ".join(about.split()),
        )
        self._store.change(lambda kept: {**_newest(_alive(kept, now), without=name), name: script})
        return script

    def get(self, name: str) -> Script:
        """Return a script. Raises NotFound if it does not exist or has expired."""
        found = _alive(self._store.read(), self._clock.now()).get(name)
        if found is None:
            raise NotFound("script", name[:100])
        return found

    def list(self) -> list[Script]:
        """Return all scripts, sorted by name."""
        kept = _alive(self._store.read(), self._clock.now())
        return [kept[name] for name in sorted(kept)]

    def find(self, intent: str, limit: int = 5) -> Sequence[Script]:
        """Return the scripts whose name or description has words of the intent, those with most words first."""
        wanted = _words(intent)
        scored = [(len(wanted & _words(f"{each.name} {each.about}")), each) for each in self.list()]
        ranked = sorted((pair for pair in scored if pair[0]), key=lambda pair: (-pair[0], pair[1].name))
        return [each for _, each in ranked[:limit]]

    def drop(self, name: str) -> None:
        """Delete a script. Raises NotFound."""
        self.get(name)
        now = self._clock.now()
        self._store.change(lambda kept: {key: each for key, each in _alive(kept, now).items() if key != name})


def open_scripts(config: Config, clock: Clock, callbacks: CallbackStore | None = None) -> Scripts:
    """The promoted scripts of a folder, stored as `[scripts]` of its settings says; `callbacks` are for
    `persistence = "callback"`. A file outside of the project is used only after the user's consent. Raises ConfigError
    if the settings and the callbacks do not fit."""
    settings = confirm_settings(config).scripts
    if (settings.persistence == "callback") != (callbacks is not None):
        error = ConfigError(f"scripts.persistence is {settings.persistence!r}")
        error.hint = "Give callbacks to open_scripts" if callbacks is None else "Leave out the callbacks, or change it"
        raise error
    file = FileStore(config.folder.absolute().parent / os.path.expanduser(settings.path))
    return Scripts(callbacks or file, clock, life=timedelta(days=settings.expiration_days))


class _ScriptsFile(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    scripts: tuple[Script, ...] = ()


def digest_of(language: str, code: str) -> str:
    """Return the SHA-256 of a language and its code."""
    return hashlib.sha256(f"{language}\n{code}".encode("utf-8", "surrogatepass")).hexdigest()


def _check(name: str, language: str, code: str, about: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput("name", f"{name[:100]!r} is not valid", hint="For example count-lines")
    if not _NAME.fullmatch(language):
        raise InvalidInput("language", f"{language[:100]!r} is not valid", hint="For example python")
    if not code.strip():
        raise InvalidInput("code", "is empty")
    if len(code) > MAX_CODE:
        raise TooLarge("code", len(code), MAX_CODE, "characters")
    if len(about) > MAX_ABOUT:
        raise TooLarge("about", len(about), MAX_ABOUT, "characters")


def _alive(kept: Mapping[str, Script], now: datetime) -> dict[str, Script]:
    return {name: each for name, each in kept.items() if each.expires_at > now}


def _newest(kept: Mapping[str, Script], *, without: str) -> dict[str, Script]:
    """Return the newest other scripts, up to the limit."""
    others = sorted((each for name, each in kept.items() if name != without), key=lambda each: each.promoted_at)
    return {each.name: each for each in others[-(MAX_SCRIPTS - 1) :]}


def _words(text: str) -> set[str]:
    """Return the words of a text in lower case and without a plural s."""
    return {word.removesuffix("s") for word in _WORD.findall(text.casefold())}
