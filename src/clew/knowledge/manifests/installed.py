"""Packages as they are installed in a project: where, and in which version. Folders are looked at, nothing is run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from clew.knowledge.code.file_content import read_content
from clew.knowledge.manifests.folders import list_names
from clew.knowledge.manifests.formats import read_json
from clew.knowledge.manifests.npm import is_name
from clew.knowledge.manifests.records import normal_name

_ENVIRONMENTS = (".venv", "venv", "env")
_INFO = ".dist-info"


class Place(NamedTuple):
    """The folder of a package of npm, or that of what is recorded of a package of Python; an empty version is not
    known."""

    path: str
    version: str


def find_npm(root: Path, name: str) -> Place | None:
    """A package below `node_modules`; a link counts where it stays within the project."""
    if not is_name(name):
        return None
    path = os.path.realpath(root / "node_modules" / name)
    manifest = read_content(path, "package.json")
    if manifest is None or not path.startswith(os.path.realpath(root) + os.sep):
        return None
    version = read_json(manifest.body.decode("utf-8-sig", "replace")).table.get("version")
    return Place(path, version if isinstance(version, str) else "")


def find_python(root: Path, name: str) -> Place | None:
    """A package of an environment that stands in the project."""
    for site in _find_sites(root):
        for entry in list_names(site):
            known, _, version = entry.removesuffix(_INFO).rpartition("-")
            if entry.endswith(_INFO) and normal_name(known) == normal_name(name):
                return Place(f"{site}/{entry}", version)
    return None


def _find_sites(root: Path) -> list[str]:
    found = []
    for name in _ENVIRONMENTS:
        inside = [root / name / "Lib" / "site-packages", *sorted((root / name).glob("lib/python3*/site-packages"))]
        found += [os.path.realpath(folder) for folder in inside if folder.is_dir()]
    return found
