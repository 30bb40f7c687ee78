"""The packages of Ruby: `Gemfile`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.knowledge.manifests.records import Declared, type_of_group
from clew.knowledge.manifests.source import ManifestText

_GEM = re.compile(r"^\s*gem\s*+(?:\(\s*+)?[\"']([\w.-]+)[\"'](?:\s*,\s*[\"']([^\"']{1,50})[\"'])?(.*)$")
_GROUP = re.compile(r"^\s*group\b(.*)\bdo\b")
_END = re.compile(r"^\s*end\b")
_BLOCK = re.compile(r"^\s*(?:if|unless|source|path|git|platforms?)\b")
_OWN_GROUP = re.compile(r"group.*:(?:dev|test)")


def parse_gemfile(file: ManifestText) -> Iterator[Declared]:
    groups: list[str] = []
    for number, line in enumerate(file.lines, 1):
        if found := _GEM.match(line):
            is_dev = _OWN_GROUP.search(found[3]) or "dev" in map(type_of_group, groups)
            yield file.declare("ruby", found[1], found[2] or "", "dev" if is_dev else "runtime", number)
        elif found := _GROUP.match(line):
            groups.append(found[1])
        elif _END.match(line) and groups:
            groups.pop()
        elif _BLOCK.match(line):
            groups.append("")
