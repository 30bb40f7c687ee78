"""The packages that a project says it uses: the names in its manifests. Manifests are read, never run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from clew.knowledge.code.blobs import read_content
from clew.knowledge.project.devtools_manifests import read_toml

Ecosystem = Literal["python", "npm"]
MAX_NAMES = 1_000

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]{0,100})")
_REQUIREMENTS = re.compile(r"requirements[\w.-]*\.txt|requirements/[\w.-]+\.txt")
_NPM = re.compile(r"(?:@[a-z0-9-~][a-z0-9-._~]*/)?[a-z0-9-~][a-z0-9-._~]*")
_NPM_PARTS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")


class Named(msgspec.Struct, frozen=True, order=True):
    """A package by the name that its ecosystem knows it by."""

    ecosystem: Ecosystem
    name: str


def named_packages(root: Path) -> list[Named]:
    """The packages that pyproject.toml, requirements*.txt and package.json of a folder name, each once, in order. A
    manifest that cannot be read names none."""
    real = os.path.realpath(root)
    found = dict.fromkeys((*_from_pyproject(real), *_from_requirements(real), *_from_package_json(real)))
    return sorted(found)[:MAX_NAMES]


def normal_name(name: str) -> str:
    """The one spelling of all that mean the same package of Python."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _from_pyproject(root: str) -> Iterator[Named]:
    said = read_toml(_text(root, "pyproject.toml"))
    project = _table(said.get("project"))
    listed = [project.get("dependencies"), *_table(project.get("optional-dependencies")).values()]
    listed += _table(said.get("dependency-groups")).values()
    for group in listed:
        yield from _python(group if isinstance(group, list) else ())
    poetry = _table(_table(said.get("tool")).get("poetry"))
    groups = [poetry, *(_table(each) for each in _table(poetry.get("group")).values())]
    for group in groups:
        yield from _python(name for name in _table(group.get("dependencies")) if name != "python")


def _from_requirements(root: str) -> Iterator[Named]:
    for folder in ("", "requirements"):
        try:
            names = sorted(os.listdir(os.path.join(root, folder)))
        except OSError:
            continue
        for path in (f"{folder}/{name}" if folder else name for name in names):
            if _REQUIREMENTS.fullmatch(path):
                lines = _text(root, path).splitlines()
                yield from _python(line for line in lines if not line.lstrip().startswith(("#", "-", "git+", "http")))


def _from_package_json(root: str) -> Iterator[Named]:
    try:
        said = json.loads(_text(root, "package.json") or "{}")
    except (ValueError, RecursionError):
        return
    for part in _NPM_PARTS:
        for name in _table(_table(said).get(part)):
            if _NPM.fullmatch(name):
                yield Named("npm", name)


def _python(requirements: Any) -> Iterator[Named]:
    for each in requirements:
        if isinstance(each, str) and (found := _REQUIREMENT.match(each)):
            yield Named("python", normal_name(found[1]))


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(root: str, path: str) -> str:
    content = read_content(root, path)
    return content.body.decode("utf-8", "replace") if content is not None else ""
