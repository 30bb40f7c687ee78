"""The formats that manifests and configurations are written in. A text that is broken, or not what it should be, says
nothing, and why."""

from __future__ import annotations

import json
import tomllib
from functools import lru_cache
from typing import Any, NamedTuple

from clew.knowledge.lines import clip
from clew.secrecy import mask_keys

MAX_PARTS = 100
_SEPARATORS = str.maketrans(dict.fromkeys("={,#", "\n"))


class Said(NamedTuple):
    """What a text says, not to be changed; nothing where there is a problem."""

    table: dict[str, Any]
    problem: str = ""


@lru_cache(maxsize=4)
def read_toml(text: str) -> Said:
    """What a text of TOML says. Keys of very many parts are refused: the time that they take grows with the square of
    their number."""
    if any(part.count(".") > MAX_PARTS for part in text.translate(_SEPARATORS).splitlines()):
        return Said({}, f"has a key of over {MAX_PARTS} parts")
    try:
        return Said(tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        return Said({}, _problem("TOML", error))


@lru_cache(maxsize=4)
def read_json(text: str) -> Said:
    """What a text of JSON says, where it is an object."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Said({}, _problem("JSON", error))
    return Said(said) if isinstance(said, dict) else Said({}, "is not an object of JSON")


def read_by_name(path: str, text: str) -> Said | None:
    """What a file of TOML or JSON says, by the end of its name; None for other files."""
    if path.endswith(".toml"):
        return read_toml(text)
    return read_json(text) if path.endswith(".json") else None


def has_section(path: str, text: str, section: str) -> bool:
    """Whether a file has a section: a table of TOML by its dotted name, a key of JSON, else a `[section]` line."""
    said = read_by_name(path, text)
    if said is None:
        return any(line.strip() == f"[{section}]" for line in text.splitlines())
    found: object = said.table
    for key in section.split("."):
        if not isinstance(found, dict) or key not in found:
            return False
        found = found[key]
    return True


def table(value: object) -> dict[str, Any]:
    """A value that should be a table, if it is one."""
    return value if isinstance(value, dict) else {}


def version_of(wanted: object) -> str:
    """The version in what stands beside the name of a package, or where else it comes from; empty where neither is
    said."""
    given = table(wanted)
    said = wanted if isinstance(wanted, str) else given.get("version") or given.get("git") or given.get("path")
    return said if isinstance(said, str) else ""


def _problem(format: str, error: Exception) -> str:
    reason = "nested too deeply" if isinstance(error, RecursionError) else mask_keys(clip(str(error), 150))
    return f"is not valid {format}: {reason}"
