"""The packages of JavaScript and TypeScript: `package.json`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.knowledge.manifests.formats import read_json, table
from clew.knowledge.manifests.records import Declared, PackageType
from clew.knowledge.manifests.source import ManifestText

_PARTS: dict[str, PackageType] = {
    "dependencies": "runtime",
    "optionalDependencies": "runtime",
    "devDependencies": "dev",
    "peerDependencies": "peer",
}
_WORD = r"[A-Za-z0-9~-][A-Za-z0-9._~-]{0,150}"
_NAME = re.compile(rf"(?:@{_WORD}/)?{_WORD}")


def is_name(text: str) -> bool:
    """Whether a text can be the name of a package: it then leads to no other folder than its own."""
    return _NAME.fullmatch(text) is not None


def parse_package_json(file: ManifestText) -> Iterator[Declared]:
    said = read_json(file.text).table
    for part, type in _PARTS.items():
        start = file.text.find(f'"{part}"')
        for name, version in table(said.get(part)).items():
            if is_name(name) and isinstance(version, str):
                yield file.declare("npm", name, version, type, file.line_of(name, start))
