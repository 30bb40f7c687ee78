"""The packages of Java: `pom.xml`, by the shape of its elements: nothing in it is expanded."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.knowledge.manifests.records import Declared, PackageType
from clew.knowledge.manifests.source import ManifestText

_SCOPES: dict[str, PackageType] = {"test": "dev", "provided": "peer"}
_DEPENDENCY = re.compile(r"<dependency>(.{0,1500}?)</dependency>", re.DOTALL)
_ELEMENT = re.compile(r"<([\w.-]{1,100})>([^<>]{1,100})</\1>")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_MANAGED = re.compile(r"<dependencyManagement>.*?(?:</dependencyManagement>|\Z)", re.DOTALL)
_VARIABLE = re.compile(r"\$\{([^}]{1,100})\}")


def parse_pom(file: ManifestText) -> Iterator[Declared]:
    """What is only managed gives its version to others."""
    text = _COMMENT.sub(_blank, file.text)
    known = dict(_ELEMENT.findall(text))
    managed = {name: part.get("version", "") for name, part, _ in _dependencies("".join(_MANAGED.findall(text)))}
    plain = ManifestText(file.path, _MANAGED.sub(_blank, text))
    for name, part, at in _dependencies(plain.text):
        said = part.get("version") or managed.get(name, "")
        version = _VARIABLE.sub(lambda found: known.get(found[1], found[0]), said)
        type = _SCOPES.get(part.get("scope", ""), "runtime")
        yield plain.declare("java", name, version, type, plain.line_at(at))


def managed_packages(file: ManifestText) -> Iterator[Declared]:
    """What is only managed: the versions for whoever asks for such a package without one."""
    text = _COMMENT.sub(_blank, file.text)
    known = dict(_ELEMENT.findall(text))
    for block in _MANAGED.finditer(text):
        for name, part, at in _dependencies(block[0]):
            version = _VARIABLE.sub(lambda found: known.get(found[1], found[0]), part.get("version", ""))
            yield file.declare("java", name, version, "runtime", file.line_at(block.start() + at))


def _dependencies(text: str) -> Iterator[tuple[str, dict[str, str], int]]:
    """Each dependency as its name, its elements, and where the name stands."""
    for found in _DEPENDENCY.finditer(text):
        part = {name: value.strip() for name, value in _ELEMENT.findall(found[1])}
        if "groupId" in part and "artifactId" in part:
            yield f"{part['groupId']}:{part['artifactId']}", part, found.start(1) + found[1].find("<artifactId>")


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")
