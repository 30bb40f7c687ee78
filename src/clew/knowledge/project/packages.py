"""The packages of a project: those that its manifests declare, and those that are installed in it. Folders are read,
nothing is run."""

from __future__ import annotations

import os
import re
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, cast

import msgspec

from clew.knowledge.code.file_content import read_content
from clew.knowledge.lines import clip
from clew.knowledge.project.formats import TextFile, parse, parse_json
from clew.knowledge.project.manifests import DEV, INDIRECT, PEER, RUNTIME, normal_name, reader_of
from clew.secrecy import mask_keys

Ecosystem = Literal["npm", "python", "go", "rust", "ruby", "java"]
PackageType = Literal["runtime", "dev", "peer"]
MAX_TEXT = 500_000
"""Nobody writes a larger manifest."""
MAX_DECLARED = 2_000
"""Packages that are taken from one manifest."""
MAX_LISTED = 200
"""Manifests that are read in one folder."""
MAX_VERSION = 100

_ECOSYSTEMS: dict[str, Ecosystem] = {
    "package.json": "npm",
    "go.mod": "go",
    "Cargo.toml": "rust",
    "Gemfile": "ruby",
    **dict.fromkeys(("pom.xml", "build.gradle", "build.gradle.kts"), "java"),
    **dict.fromkeys(("pyproject.toml", "setup.py", "setup.cfg"), "python"),
}
_COPIED = re.compile(r"(?:^|/)(?:node_modules|vendor|vendored|third_party)/")
_ENVIRONMENTS = (".venv", "venv", "env")
_INFO = ".dist-info"
_NPM_WORD = r"[A-Za-z0-9~-][A-Za-z0-9._~-]{0,150}"
_NPM_NAME = re.compile(rf"(?:@{_NPM_WORD}/)?{_NPM_WORD}")


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """A package as a manifest names it, at `source`, `path:line`. One that only other packages need is not direct."""

    ecosystem: Ecosystem
    name: str
    version: str
    type: PackageType
    source: str
    is_direct: bool = True


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The packages of one manifest. `problem` says why it declares nothing, or not all."""

    path: str
    packages: tuple[Declared, ...] = ()
    problem: str = ""


class Place(NamedTuple):
    """The folder of an installed package (of npm), or of its metadata (of Python); the version may be empty."""

    path: str
    version: str


def is_copied(path: str) -> bool:
    """Whether a file stands where the packages of others are put."""
    return _COPIED.search(path) is not None


def is_manifest(path: str) -> bool:
    """Whether a file of this name declares packages."""
    return _ecosystem_of(path) is not None


def parse_manifest(path: str, text: str) -> Manifest:
    """The packages that a manifest declares, in the order of its parts; none for another file."""
    ecosystem, read = _ecosystem_of(path), reader_of(path)
    if ecosystem is None or read is None:
        return Manifest(path=path, problem="is no manifest of a known name")
    if len(text) > MAX_TEXT:
        return Manifest(path=path, problem=f"has over {MAX_TEXT:,} characters")
    file = TextFile(path, text)
    found = (each for each in read(file) if each.kind == "dependency" and each.group != "managed")
    packages = [
        Declared(
            ecosystem=ecosystem,
            name=each.name,
            version=mask_keys(clip(each.value, MAX_VERSION)),
            type=cast("PackageType", each.group if each.group in (DEV, PEER) else RUNTIME),
            source=f"{path}:{each.start}",
            is_direct=each.group != INDIRECT,
        )
        for each in islice(found, MAX_DECLARED + 1)
    ]
    problem = parse(file).problem if path.endswith((".toml", ".json", "setup.py")) else ""
    if len(packages) > MAX_DECLARED:
        problem = f"declares over {MAX_DECLARED:,} packages, of which the first are read"
    return Manifest(path=path, packages=tuple(packages[:MAX_DECLARED]), problem=problem)


def read_manifests(root: Path) -> list[Manifest]:
    """The manifests of a folder itself and of its folder `requirements`, in the order of their paths."""
    real = os.path.realpath(root)
    names = (*_list_names(real), *(f"requirements/{name}" for name in _list_names(f"{real}/requirements")))
    found = (_read_manifest(real, path) for path in islice(filter(is_manifest, names), MAX_LISTED))
    return [manifest for manifest in found if manifest is not None]


def is_npm_name(text: str) -> bool:
    """Whether a text can be the name of a package of npm, which then leads to no other folder than its own."""
    return _NPM_NAME.fullmatch(text) is not None


def find_npm(root: Path, name: str) -> Place | None:
    """A package below `node_modules`; a link counts where it stays within the project."""
    if not is_npm_name(name):
        return None
    path = os.path.realpath(root / "node_modules" / name)
    manifest = read_content(path, "package.json")
    if manifest is None or not path.startswith(os.path.realpath(root) + os.sep):
        return None
    version = parse_json(manifest.body.decode("utf-8-sig", "replace")).data.get("version")
    return Place(path, version if isinstance(version, str) else "")


def find_python(root: Path, name: str) -> Place | None:
    """A package of a virtual environment inside the project."""
    for site in _find_sites(root):
        for entry in _list_names(site):
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


def _list_names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read_manifest(root: str, path: str) -> Manifest | None:
    content = read_content(root, path)
    if content is None:
        return None
    if content.left_out:
        return Manifest(path=path, problem=content.left_out)
    return parse_manifest(path, content.body.decode("utf-8-sig", "replace"))


def _ecosystem_of(path: str) -> Ecosystem | None:
    name = path.rpartition("/")[2]
    if name.endswith(".gemspec"):
        return "ruby"
    is_requirements = name.endswith((".txt", ".in")) and reader_of(path) is not None and "LICENSE" not in name
    return _ECOSYSTEMS.get(name) or ("python" if is_requirements else None)
