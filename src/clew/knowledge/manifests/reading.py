"""Manifests by their names: which files are some, what one of them declares, and those of a folder. Reading is bounded
and never fails: a manifest that cannot be read says why."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path

from clew.knowledge.code.file_content import read_content
from clew.knowledge.manifests.folders import list_names
from clew.knowledge.manifests.formats import read_by_name
from clew.knowledge.manifests.golang import parse_go_mod
from clew.knowledge.manifests.java import parse_pom
from clew.knowledge.manifests.npm import parse_package_json
from clew.knowledge.manifests.python import parse_pyproject, parse_requirements
from clew.knowledge.manifests.records import Manifest
from clew.knowledge.manifests.ruby import parse_gemfile
from clew.knowledge.manifests.rust import parse_cargo
from clew.knowledge.manifests.source import ManifestText, Parser

MAX_TEXT = 500_000
"""Nobody writes a larger manifest."""
MAX_DECLARED = 2_000
"""Packages that are taken from one manifest."""
MAX_LISTED = 200
"""Manifests that are read in one folder."""

_PARSERS: dict[str, Parser] = {
    "package.json": parse_package_json,
    "go.mod": parse_go_mod,
    "pyproject.toml": parse_pyproject,
    "Cargo.toml": parse_cargo,
    "Gemfile": parse_gemfile,
    "pom.xml": parse_pom,
}
_REQUIREMENTS = re.compile(r"(?:.*/)?(?:[\w.-]*requirements[\w.-]*|requirements/[\w.-]+)\.(?:txt|in)")


def is_manifest(path: str) -> bool:
    """Whether a file of this name is a manifest that can be parsed."""
    return _parser_of(path) is not None


def parse_manifest(path: str, text: str) -> Manifest:
    """What a manifest declares; nothing for a file that is none."""
    parse = _parser_of(path)
    if parse is None:
        return Manifest(path=path, problem="is no manifest of a known name")
    if len(text) > MAX_TEXT:
        return Manifest(path=path, problem=f"has over {MAX_TEXT:,} characters")
    said = read_by_name(path, text)
    packages = tuple(islice(parse(ManifestText(path, text)), MAX_DECLARED + 1))
    problem = said.problem if said else ""
    if len(packages) > MAX_DECLARED:
        problem = f"declares over {MAX_DECLARED:,} packages, of which the first are read"
    return Manifest(path=path, packages=packages[:MAX_DECLARED], problem=problem)


def read_manifests(root: Path) -> list[Manifest]:
    """The manifests that stand in a folder itself or in its folder `requirements`, in the order of their paths."""
    real = os.path.realpath(root)
    names = (*list_names(real), *(f"requirements/{name}" for name in list_names(f"{real}/requirements")))
    found = (_read(real, path) for path in islice(filter(is_manifest, names), MAX_LISTED))
    return [manifest for manifest in found if manifest is not None]


def _read(root: str, path: str) -> Manifest | None:
    content = read_content(root, path)
    if content is None:
        return None
    if content.left_out:
        return Manifest(path=path, problem=content.left_out)
    return parse_manifest(path, content.body.decode("utf-8-sig", "replace"))


def _parser_of(path: str) -> Parser | None:
    found = _PARSERS.get(path.rpartition("/")[2])
    return found or (parse_requirements if _REQUIREMENTS.fullmatch(path) else None)
