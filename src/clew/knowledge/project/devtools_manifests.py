"""What manifests say: the packages of a project with their versions, its sections and its scripts. Manifests are read,
never run; one that is broken, or not what it should be, says nothing."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

MAX_DEPENDENCIES = 5_000
MAX_VERSION = 60
MAX_SCRIPTS = 500
MAX_LINES = 5_000
MAX_PARTS = 100

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]{0,100})\s*(?:\[[^\]]{0,200}\])?\s*([^;#@]{0,200})")
_NPM_PARTS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_GO = re.compile(r"\s*(?:require\s+|tool\s+)?([a-z0-9][\w./~-]{2,300})(?:\s+(v[\w.+-]{1,100}))?")
_KEYS = re.compile(r"[={,#]")
_VERSION = re.compile(r"[\w.*^~<>=!|, +-]+")
_ELSEWHERE = {"npm": "--prefix", "pnpm": "--dir", "yarn": "--cwd", "bun": "--cwd", "make": "-C"}
"""How a program is told to work in another folder."""
_SCRIPT = re.compile(r"[\w][\w:.-]{0,60}")
_TARGET = re.compile(r"([A-Za-z0-9][\w.-]{0,60})\s*:(?!=)")


class Dependency(NamedTuple):
    """A package as a manifest names it; `kind` is the manifest whose rules are for it."""

    kind: str
    package: str
    version: str
    path: str


class Script(NamedTuple):
    """A line that somebody runs: `run` is how, `line` what it does."""

    run: str
    line: str


@lru_cache(maxsize=4)
def read_toml(text: str) -> dict[str, Any]:
    """What a text of TOML says; not to be changed. Keys of very many parts are refused: the time that they take grows
    with the square of their number."""
    if any(part.count(".") > MAX_PARTS for line in text.splitlines() for part in _KEYS.split(line)):
        return {}
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


@lru_cache(maxsize=4)
def read_json(text: str) -> dict[str, Any]:
    """What a text of JSON says, where it is an object; not to be changed."""
    try:
        return table(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def has_section(path: str, text: str, section: str) -> bool:
    """Whether a file has a section: a table of TOML by its dotted name, a key of JSON, else a `[section]` line."""
    name = path.rpartition("/")[2]
    if name.endswith((".toml", ".json")):
        found: object = read_toml(text) if name.endswith(".toml") else read_json(text)
        for key in section.split("."):
            if not isinstance(found, dict) or key not in found:
                return False
            found = found[key]
        return True
    return any(line.strip() == f"[{section}]" for line in text.splitlines())


def read_dependencies(path: str, text: str) -> list[Dependency]:
    """The packages of one manifest, by the name of the file; none for other files."""
    name = path.rpartition("/")[2]
    read = _READERS.get(name, _from_requirements if name.endswith(".txt") else None)
    if read is None:
        return []
    kind = "pyproject.toml" if name.endswith(".txt") else name
    found = []
    for package, version in read(text):
        found.append(Dependency(kind, package, _version(version), path))
        if len(found) >= MAX_DEPENDENCIES:
            break
    return found


def read_scripts(path: str, text: str, runner: str = "npm") -> list[Script]:
    """The lines of a file that run something. Those of a named script or target are run by that name; the others have
    no way to run them."""
    folder, _, name = path.rpartition("/")
    if name == "package.json":
        start = _in_folder(runner, folder)
        found = table(read_json(text).get("scripts")).items()
        named = ((key, line) for key, line in found if _SCRIPT.fullmatch(key) and isinstance(line, str))
        return [Script(f"{start} run {key}", line) for key, line in named][:MAX_SCRIPTS]
    if name.lower() in ("makefile", "gnumakefile"):
        return list(_from_make(text, _in_folder("make", folder)))
    return [Script("", line) for line in text.splitlines()[:MAX_LINES] if not line.lstrip().startswith("#")]


def table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _from_package_json(text: str) -> Iterator[tuple[str, object]]:
    said = read_json(text)
    for part in _NPM_PARTS:
        yield from table(said.get(part)).items()


def _from_pyproject(text: str) -> Iterator[tuple[str, object]]:
    said = read_toml(text)
    project = table(said.get("project"))
    groups = [project.get("dependencies"), *table(project.get("optional-dependencies")).values()]
    groups += table(said.get("dependency-groups")).values()
    tools = table(said.get("tool"))
    groups.append(table(tools.get("uv")).get("dev-dependencies"))
    for group in groups:
        yield from _requirements(group if isinstance(group, list) else ())
    poetry = table(tools.get("poetry"))
    for place in (poetry, *table(poetry.get("group")).values()):
        yield from _lowered(table(place).get("dependencies"))
    yield from _lowered(poetry.get("dev-dependencies"))


def _from_requirements(text: str) -> Iterator[tuple[str, object]]:
    lines = (line for line in text.splitlines() if not line.lstrip().startswith(("#", "-", "git+", "http")))
    return _requirements(lines)


def _from_cargo(text: str) -> Iterator[tuple[str, object]]:
    said = read_toml(text)
    for place in (said, table(said.get("workspace"))):
        for part in ("dev-dependencies", "build-dependencies", "dependencies"):
            yield from table(place.get(part)).items()


def _from_go_mod(text: str) -> Iterator[tuple[str, object]]:
    for line in text.splitlines():
        if (found := _GO.match(line)) and "/" in found[1]:
            yield found[1], found[2] or ""


def _requirements(lines: Iterable[object]) -> Iterator[tuple[str, object]]:
    for line in lines:
        if isinstance(line, str) and (found := _REQUIREMENT.match(line)):
            yield re.sub(r"[-_.]+", "-", found[1]).lower(), found[2]


def _lowered(packages: object) -> Iterator[tuple[str, object]]:
    for name, version in table(packages).items():
        yield name.lower(), version


def _in_folder(program: str, folder: str) -> str:
    return f"{program} {_ELSEWHERE[program]} {shlex.quote(folder)}" if folder else program


def _from_make(text: str, start: str) -> Iterator[Script]:
    target = ""
    for line in text.splitlines()[:MAX_LINES]:
        if line.startswith("\t"):
            yield Script(f"{start} {target}" if target else "", line.strip())
        elif found := _TARGET.match(line):
            target = found[1]
        elif line.strip() and not line.startswith("#"):
            target = ""


def _version(given: object) -> str:
    """A version as manifests write it, or nothing: what else may stand there is not shown."""
    said = given.get("version") if isinstance(given, Mapping) else given
    plain = said.strip()[: MAX_VERSION + 1] if isinstance(said, str) else ""
    return plain if len(plain) <= MAX_VERSION and _VERSION.fullmatch(plain) and re.search(r"\d", plain) else ""


_READERS: dict[str, Callable[[str], Iterator[tuple[str, object]]]] = {
    "package.json": _from_package_json,
    "pyproject.toml": _from_pyproject,
    "Cargo.toml": _from_cargo,
    "go.mod": _from_go_mod,
}
