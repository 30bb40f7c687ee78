"""The packages of Go: `go.mod`."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from clew.knowledge.manifests.records import Declared
from clew.knowledge.manifests.source import ManifestText

_PATH = re.compile(r"[\w.~-]{1,200}(?:/[\w.~/-]{0,300})?")
_VERSION = re.compile(r"v[\w.+-]{1,200}")
_INDIRECT = re.compile(r"\s*indirect\b")


def parse_go_mod(file: ManifestText) -> Iterator[Declared]:
    """What is required, and the tools, which stand without a version; not what is replaced or excluded."""
    block = ""
    for number, line in enumerate(file.lines, 1):
        code, _, comment = line.partition("//")
        words = code.replace("(", " ( ").split()
        if words[1:2] == ["("] or words == [")"]:
            block = "" if ")" in words else words[0]
            continue
        word, *rest = (block, *words) if block else words or [""]
        match word, rest:
            case "require", [path, version] if _PATH.fullmatch(path) and _VERSION.fullmatch(version):
                found = file.declare("go", path, version, "runtime", number)
                yield msgspec.structs.replace(found, is_direct=not _INDIRECT.match(comment))
            case "tool", [path] if _PATH.fullmatch(path):
                yield file.declare("go", path, "", "dev", number)
