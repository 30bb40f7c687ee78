"""The packages that a project's manifests declare, with version, type and line. Manifests are read, never run; what
cannot be read declares nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

import msgspec

from clew.knowledge.project.devtools_manifests import read_toml
from clew.knowledge.project.texts import FileText, clip
from clew.secrecy import mask_keys

PackageType = Literal["runtime", "dev", "peer"]
MAX_DECLARED = 2_000
"""Packages that are taken from one manifest."""

_NPM = {
    "dependencies": "runtime",
    "optionalDependencies": "runtime",
    "devDependencies": "dev",
    "peerDependencies": "peer",
}
_NAME = re.compile(r"@?[A-Za-z0-9][A-Za-z0-9._/~-]{0,150}")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]{0,100})\s*(?:\[[^\]]{0,200}\])?\s*([^;#]{0,200})")
_PART = re.compile(r"[\w@/-]")
_TRIES = 50
_DEV = re.compile(r"dev|test|lint|docs?|typing|types|check|ci\b|format", re.IGNORECASE)
_GO = re.compile(
    r"^[ \t]*+(?:require[ \t]++)?+([\w.~-]++(?:/[\w.~/-]*+)?+)[ \t]++(v[\w.+-]++)(?!.*//\s*indirect)", re.MULTILINE
)
_GEM = re.compile(r"^\s*gem\s*\(?\s*[\"']([\w.-]+)[\"'](?:\s*,\s*[\"']([^\"']{1,50})[\"'])?(.*)$")
_GROUP = re.compile(r"^\s*group\b(.*)\bdo\b")
_END = re.compile(r"^\s*end\b")
_BLOCK = re.compile(r"^\s*(?:if|unless|source|path|git|platforms?)\b.*(?:\bdo\b)?")
_POM = re.compile(r"<dependency>(.{0,1500}?)</dependency>", re.DOTALL)
_PROPERTY = re.compile(r"<([\w.-]{1,100})>([^<>]{1,100})</\1>")
_XML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_MANAGED = re.compile(r"<dependencyManagement>.*?(?:</dependencyManagement>|\Z)", re.DOTALL)


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """A package as a manifest names it. `source` is the line of that, `path:line`."""

    ecosystem: str
    name: str
    version: str
    type: PackageType
    source: str


Parser = Callable[[FileText], Iterator[Declared]]


def parser_of(path: str) -> Parser | None:
    """What reads a manifest of this name, if it is one."""
    name = path.rpartition("/")[2]
    if name in _PARSERS:
        return _PARSERS[name]
    return _requirements if re.fullmatch(r"requirements[\w.-]*\.(?:txt|in)", name) or _in_folder(path) else None


def _in_folder(path: str) -> bool:
    return re.search(r"(?:^|/)requirements/[\w.-]+\.(?:txt|in)$", path) is not None


def _declare(file: FileText, ecosystem: str, name: str, version: str, type: PackageType, at: int) -> Declared:
    """`at` is where in the text the name is looked for."""
    source = file.source(file.line_of(_position(file.text, name, max(0, at))))
    said = mask_keys(clip(version, 100))
    return Declared(ecosystem=ecosystem, name=name, version=said, type=type, source=source)


def _position(text: str, name: str, at: int) -> int:
    """Where a name stands by itself, from a place on; that place where it does not."""
    found = text.find(name, at)
    for _ in range(_TRIES):
        end = found + len(name)
        if found < 0 or not (_PART.match(text[found - 1 : found]) or _PART.match(text[end : end + 1])):
            break
        found = text.find(name, end)
    return max(found, at)


def _package_json(file: FileText) -> Iterator[Declared]:
    try:
        said = json.loads(file.text)
    except (ValueError, RecursionError):
        return
    for part, type in _NPM.items():
        at = file.text.find(f'"{part}"')
        for name, version in _table(_table(said).get(part)).items():
            if _NAME.fullmatch(name) and isinstance(version, str):
                yield _declare(file, "npm", name, version, type, at)  # type: ignore[arg-type]  # from the table


def _requirements(file: FileText) -> Iterator[Declared]:
    type: PackageType = "dev" if _DEV.search(file.path.rpartition("/")[2].removeprefix("requirements")) else "runtime"
    for number, line in enumerate(file.lines, 1):
        if line.lstrip().startswith(("-", "#", "git+", "http")) or not (found := _REQUIREMENT.match(line)):
            continue
        version = mask_keys(clip(found[2].rstrip(" \\"), 100))
        yield Declared(
            ecosystem="python", name=normal_name(found[1]), version=version, type=type, source=file.source(number)
        )


def normal_name(name: str) -> str:
    """The one spelling of all that mean the same package of Python."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _pyproject(file: FileText) -> Iterator[Declared]:
    said = read_toml(file.text)
    project = _table(said.get("project"))
    yield from _python(file, project.get("dependencies"), "runtime", file.text.find("dependencies"))
    for part, at in (("optional-dependencies", project), ("dependency-groups", said)):
        for group, listed in _table(at.get(part)).items():
            is_dev = part == "dependency-groups" or _DEV.search(group)
            yield from _python(file, listed, "dev" if is_dev else "runtime", file.text.find(part))
    poetry = _table(_table(said.get("tool")).get("poetry"))
    yield from _poetry(file, poetry.get("dependencies"), "runtime")
    yield from _poetry(file, poetry.get("dev-dependencies"), "dev")
    for group, table in _table(poetry.get("group")).items():
        yield from _poetry(file, _table(table).get("dependencies"), "dev" if _DEV.search(group) else "runtime")


def _python(file: FileText, listed: object, type: PackageType, at: int) -> Iterator[Declared]:
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, str) and (found := _REQUIREMENT.match(each)):
            declared = _declare(file, "python", found[1], found[2].strip(), type, at)
            yield msgspec.structs.replace(declared, name=normal_name(found[1]))


def _poetry(file: FileText, table: object, type: PackageType) -> Iterator[Declared]:
    at = file.text.find("[tool.poetry")
    for name, wanted in _table(table).items():
        if name != "python" and _NAME.fullmatch(name):
            declared = _declare(file, "python", name, _version(wanted), type, at)
            yield msgspec.structs.replace(declared, name=normal_name(name))


def _cargo(file: FileText) -> Iterator[Declared]:
    said = read_toml(file.text)
    places = [said, _table(said.get("workspace")), *(_table(each) for each in _table(said.get("target")).values())]
    parts: tuple[tuple[str, PackageType], ...] = (
        ("dependencies", "runtime"),
        ("dev-dependencies", "dev"),
        ("build-dependencies", "dev"),
    )
    for place in places:
        for part, type in parts:
            at = max(0, file.text.find(f"{part}]"))
            for name, wanted in _table(place.get(part)).items():
                real = _table(wanted).get("package", name)
                if isinstance(real, str) and _NAME.fullmatch(real):
                    yield _declare(file, "rust", real, _version(wanted), type, at)


def _go_mod(file: FileText) -> Iterator[Declared]:
    for found in _GO.finditer(file.text):
        yield Declared(
            ecosystem="go",
            name=found[1],
            version=found[2][:100],
            type="runtime",
            source=file.source(file.line_of(found.start(1))),
        )


def _gemfile(file: FileText) -> Iterator[Declared]:
    groups: list[str] = []
    for number, line in enumerate(file.lines, 1):
        if found := _GROUP.match(line):
            groups.append(found[1])
        elif _END.match(line) and groups:
            groups.pop()
        elif _BLOCK.match(line) and not _GEM.match(line):
            groups.append("")
        elif found := _GEM.match(line):
            is_dev = any(_DEV.search(each) for each in groups) or re.search(r"group.*:(?:dev|test)", found[3])
            yield Declared(
                ecosystem="ruby",
                name=found[1],
                version=found[2] or "",
                type="dev" if is_dev else "runtime",
                source=file.source(number),
            )


def _pom(file: FileText) -> Iterator[Declared]:
    """By the shape of its elements: nothing in it is expanded. What is only managed gives its version to others."""
    text = _XML_COMMENT.sub(_blank, file.text)
    known = dict(_PROPERTY.findall(text))
    managed = {name: part.get("version", "") for name, part, _ in _pom_parts("".join(_MANAGED.findall(text)))}
    text = _MANAGED.sub(_blank, text)
    scopes: dict[str, PackageType] = {"test": "dev", "provided": "peer"}
    for name, part, at in _pom_parts(text):
        said = part.get("version") or managed.get(name, "")
        version = re.sub(r"\$\{([^}]{1,100})\}", lambda found: known.get(found[1], found[0]), said)
        yield Declared(
            ecosystem="java",
            name=name,
            version=clip(version, 100),
            type=scopes.get(part.get("scope", "").strip(), "runtime"),
            source=file.source(text.count("\n", 0, at) + 1),
        )


def _pom_parts(text: str) -> Iterator[tuple[str, dict[str, str], int]]:
    """Each dependency as its name, its elements, and where the name stands."""
    for found in _POM.finditer(text):
        part = {name: value.strip() for name, value in _PROPERTY.findall(found[1])}
        if "groupId" in part and "artifactId" in part:
            yield f"{part['groupId']}:{part['artifactId']}", part, found.start(1) + found[1].find("<artifactId>")


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _version(wanted: object) -> str:
    if isinstance(wanted, str):
        return wanted
    table = _table(wanted)
    said = table.get("version") or table.get("git") or table.get("path") or ""
    return said if isinstance(said, str) else ""


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


_PARSERS: dict[str, Parser] = {
    "package.json": _package_json,
    "go.mod": _go_mod,
    "pyproject.toml": _pyproject,
    "Cargo.toml": _cargo,
    "Gemfile": _gemfile,
    "pom.xml": _pom,
}
