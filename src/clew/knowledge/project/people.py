"""The people of a project as its files name them: code owners, maintainers, authors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from clew.knowledge.project.formats import TextFile
from clew.knowledge.project.manifests import Reader, Statement

MAX_LINES = 500
MAX_DEPTH = 1
"""Files further down name the people of a part, or of something that was copied."""

_FILES = re.compile(
    r"(maintainers|owners|codeowners|authors|contributors|credits)(?:\.(?:md|txt|rst|ya?ml))?", re.IGNORECASE
)
_ADDRESS = re.compile(r"\s*<?[\w.+-]{1,80}@[\w-]{1,80}\.[\w.]{1,80}>?")
_POINT = re.compile(r"^\s*[-*] ")
_COMMENT = re.compile(r"\s*(?:[#;<=*~-].*)?$|\s*//")


def people_reader_of(path: str) -> Reader | None:
    """The reader of a file of this name, if it names people."""
    is_one = _FILES.fullmatch(path.rpartition("/")[2]) and path.count("/") <= MAX_DEPTH
    return read_people if is_one else None


def read_people(file: TextFile) -> Iterator[Statement]:
    """A statement for each line that names somebody, without headings, comments and e-mail addresses. Code owners are
    named by the pattern of their files."""
    role = file.name.partition(".")[0].lower()
    for number, line in enumerate(file.lines[:MAX_LINES], 1):
        if role == "codeowners":
            pattern, _, owners = line[:500].partition("#")[0].strip().partition(" ")
            if owners.strip():
                yield Statement("people", pattern, _ADDRESS.sub("", owners).strip(), number, number)
            continue
        said = _POINT.sub("", _ADDRESS.sub("", line[:500])).strip()
        if re.search(r"\w", said) and not _COMMENT.match(_POINT.sub("", line[:500])):
            yield Statement("people", role, said, number, number)
