"""The packages of Rust: `Cargo.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.knowledge.manifests.formats import read_toml, table, version_of
from clew.knowledge.manifests.records import Declared, PackageType
from clew.knowledge.manifests.source import ManifestText

_PARTS: dict[str, PackageType] = {"dependencies": "runtime", "dev-dependencies": "dev", "build-dependencies": "dev"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,150}")


def parse_cargo(file: ManifestText) -> Iterator[Declared]:
    """With those of a workspace and of single targets. A package under another name is told by its own."""
    said = read_toml(file.text).table
    places = [said, table(said.get("workspace")), *map(table, table(said.get("target")).values())]
    for place in places:
        for part, type in _PARTS.items():
            start = file.text.find(f"{part}]")
            for name, wanted in table(place.get(part)).items():
                own = table(wanted).get("package", name)
                if isinstance(own, str) and _NAME.fullmatch(own):
                    yield file.declare("rust", own, version_of(wanted), type, file.line_of(own, start))
