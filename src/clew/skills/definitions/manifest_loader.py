"""Loads a manifest from a file: parses it, migrates it to the current version, and checks it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from clew.decode_errors import in_plain_words
from clew.errors import ConfigError, ParseError, ValidationError
from clew.skills.checks.problems import Problem
from clew.skills.checks.suggestions import nearest
from clew.skills.definitions.fields import RECORDS
from clew.skills.definitions.migrations import migrate
from clew.skills.definitions.references import DefinedNames, find_bad_references
from clew.skills.manifest import Manifest

MAX_BYTES = 268_435_456
_BYTE = re.compile(r" \(byte (\d+)\)")


def load_manifest(path: Path | str) -> Manifest:
    """Load the manifest of a JSON file that `build` wrote, of any supported version.

    Raises ConfigError if the file is missing or its version is not supported, ParseError with the line for invalid
    JSON, and ValidationError or BuildError for invalid values and names.
    """
    file = Path(path)
    try:
        size = file.stat().st_size
        if size > MAX_BYTES:
            raise ConfigError(f"{file}: {size:,} bytes are over the limit of {MAX_BYTES:,}")
        raw = file.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "is not a path"
        raise ConfigError(f"{file}: the manifest cannot be read: {reason}") from None
    return read_manifest(raw, str(path))


def read_manifest(raw: bytes, path: str = "") -> Manifest:
    """Like `load_manifest`, from bytes. `path` is only for error messages."""
    data = migrate(_decode(raw, path), path)
    for section, kind in (("agents", "agent"), ("skills", "skill"), ("toolsets", "toolset"), ("tools", "tool")):
        _check_keys(data.get(section, {}), section, RECORDS[kind], path)  # type: ignore[index]  # the four there are
    _check_top(data, path)
    try:
        manifest = msgspec.convert(data, Manifest)
    except msgspec.ValidationError as error:
        told = in_plain_words(error, Manifest, "manifest")
        raise ValidationError(str(told.message), path=path, hint=told.hint, field=told.field) from None
    _check_names(manifest, path)
    return _sorted(manifest)


def _decode(raw: bytes, path: str) -> dict[str, Any]:
    try:
        data = msgspec.json.decode(raw.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = str(error)
        at = _BYTE.search(said)
        line = raw.count(b"\n", 0, int(at[1])) + 1 if at else 1
        reason = _BYTE.sub("", said)[:200]
        raise ParseError(f"the manifest is not valid JSON: {reason}", path=path, line=line) from None
    if not isinstance(data, dict):
        raise ParseError("the manifest is not a JSON object", path=path, line=1)
    return data


def _check_top(data: dict[str, Any], path: str) -> None:
    _refuse_unknown(data, Manifest.__struct_fields__, "manifest", path)


def _check_keys(section: Any, name: str, kind: type[msgspec.Struct], path: str) -> None:
    if not isinstance(section, dict):
        return  # the conversion reports it
    known = kind.__struct_encode_fields__
    for key, each in section.items():
        if isinstance(each, dict):
            _refuse_unknown(each, known, f"{name}.{key}", path)


def _refuse_unknown(given: dict[str, Any], known: tuple[str, ...], place: str, path: str) -> None:
    for key in given:
        if key not in known:
            near = nearest(key, known)
            hint = f"{f'Did you mean {near}? ' if near else ''}Keys are: {', '.join(known)}"
            message = f"{place[:200]}: there is no key `{key[:80]}`"
            raise ValidationError(message, path=path, allowed=known, hint=hint, key=key, place=place)


def _check_names(manifest: Manifest, path: str) -> None:
    """Raise for an entry whose key is not its name, and for the first unknown reference."""
    for section in ("agents", "skills", "toolsets", "tools"):
        for key, each in getattr(manifest, section).items():
            if each.name != key:
                message = f"{section}.{key[:80]}: its name is {each.name[:80]}"
                raise ValidationError(message, path=path, allowed=(key,), name=each.name, key=key)
    names = DefinedNames(skills=manifest.skills, toolsets=manifest.toolsets, tools=manifest.tools)
    for misfit in find_bad_references(manifest, names):
        if misfit.field == "see_also":  # only a hint, so an unknown name is harmless
            continue
        place = f"{misfit.sort}s.{misfit.name[:80]}"
        told = Problem(
            kind=misfit.kind,
            path=path,
            message=f"{place}: {misfit.message}",
            allowed=misfit.allowed,
            nearest=misfit.nearest,
            context=misfit.context,
        )
        raise told.as_error()


def _sorted(manifest: Manifest) -> Manifest:
    sections = (name for name in get_type_hints(Manifest) if name != "version")
    return msgspec.structs.replace(
        manifest, **{each: dict(sorted(getattr(manifest, each).items())) for each in sections}
    )
