"""The packages of Python: `pyproject.toml`, with what Poetry and uv write there, and requirements files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.knowledge.manifests.formats import read_toml, table, version_of
from clew.knowledge.manifests.records import Declared, PackageType, normal_name, type_of_group
from clew.knowledge.manifests.source import ManifestText

_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}"
_REQUIREMENT = re.compile(rf"\s*({_NAME})\s*(?:\[[^\]]{{0,200}}\])?\s*([^;#]{{0,200}})")
_NO_PACKAGE = ("-", "#", "git+", "http://", "https://")


def parse_requirements(file: ManifestText) -> Iterator[Declared]:
    type = type_of_group(file.path.rpartition("/")[2].replace("requirements", "", 1))
    for number, line in enumerate(file.lines, 1):
        if not line.lstrip().startswith(_NO_PACKAGE) and (found := _REQUIREMENT.match(line)):
            yield file.declare("python", normal_name(found[1]), found[2].rstrip(" \r\\"), type, number)


def parse_pyproject(file: ManifestText) -> Iterator[Declared]:
    said = read_toml(file.text).table
    project, tools = table(said.get("project")), table(said.get("tool"))
    yield from _listed(file, project.get("dependencies"), "runtime", "dependencies")
    for group, listed in table(project.get("optional-dependencies")).items():
        yield from _listed(file, listed, type_of_group(group), "optional-dependencies")
    for listed in table(said.get("dependency-groups")).values():
        yield from _listed(file, listed, "dev", "dependency-groups")
    yield from _listed(file, table(tools.get("uv")).get("dev-dependencies"), "dev", "[tool.uv")
    poetry = table(tools.get("poetry"))
    yield from _poetry(file, poetry.get("dependencies"), "runtime")
    yield from _poetry(file, poetry.get("dev-dependencies"), "dev")
    for group, inside in table(poetry.get("group")).items():
        yield from _poetry(file, table(inside).get("dependencies"), type_of_group(group))


def _listed(file: ManifestText, listed: object, type: PackageType, part: str) -> Iterator[Declared]:
    start = file.text.find(part)
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, str) and (found := _REQUIREMENT.match(each)):
            yield file.declare("python", normal_name(found[1]), found[2], type, file.line_of(found[1], start))


def _poetry(file: ManifestText, packages: object, type: PackageType) -> Iterator[Declared]:
    start = file.text.find("[tool.poetry")
    for name, wanted in table(packages).items():
        if name != "python" and re.fullmatch(_NAME, name):
            yield file.declare("python", normal_name(name), version_of(wanted), type, file.line_of(name, start))
