"""The files in a skill's folder: references, scripts and assets.

All files in the three folders of the format belong to the skill. Other files belong to it if the text links to them or
names them. Files that usually hold secrets never belong to it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

import msgspec

from clew.lazy_pattern import lazy_pattern
from clew.skills.files.document import MarkdownDocument
from clew.skills.files.links import extract_links
from clew.skills.files.tree_walk import show
from clew.skills.manifest import SkillLink
from clew.tools.files.folder import is_secret_path

MAX_LISTED = 1_000
"""The limit for files of one kind."""
MARKDOWN = ".md"

_WORD = lazy_pattern(r"[\w./~+@-]+")


class FolderContents(msgspec.Struct, frozen=True, kw_only=True):
    """References are markdown files; an asset is any other file. `scripts` and `assets` are paths within the folder."""

    references: tuple[SkillLink, ...]
    scripts: tuple[str, ...]
    assets: tuple[str, ...]


def list_contents(document: MarkdownDocument, files: Sequence[str], main: str) -> FolderContents:
    """Return the files of a skill whose text is `document`, in the file `main`; `files` are all in its folder."""
    references: dict[str, SkillLink] = {}
    if MARKDOWN in document.body.lower():
        for link in extract_links(document.body, extensions=(MARKDOWN,), first_line=document.body_line):
            path = posixpath.normpath(link.path)
            if path != main:
                references.setdefault(path, SkillLink(text=link.text or path, path=path, line=link.line))
    shown = [show(each) for each in files if each != main and not is_secret_path(each)]
    scripts = [each for each in shown if each.startswith("scripts/")]
    named = set(find_named(document.body, shown))
    assets = []
    for path in shown:
        is_listed = path.startswith(("references/", "assets/"))
        if path.startswith("scripts/") or not (is_listed or path in named):
            continue
        if path.lower().endswith(MARKDOWN) and not path.startswith("assets/"):
            references.setdefault(path, SkillLink(text=_title(path), path=path))
        else:
            assets.append(path)
    return FolderContents(
        references=tuple(references.values())[:MAX_LISTED],
        scripts=tuple(scripts[:MAX_LISTED]),
        assets=tuple(assets[:MAX_LISTED]),
    )


def find_named(text: str, files: Iterable[str]) -> list[str]:
    """Return the files that a text names: by path, by file name, or by a folder that ends in a slash."""
    words = {_trimmed(word) for word in _WORD.findall(text) if "." in word or "/" in word}
    tails = {tail for word in words for tail in _tails(word)}
    return [each for each in files if not tails.isdisjoint((each, posixpath.basename(each), *_folders(each)))]


def _trimmed(word: str) -> str:
    return word.removeprefix("./").rstrip(".")


def _tails(word: str) -> Iterable[str]:
    """Return the ends of a path: a text may name a file from the root, or with a variable for the folder."""
    parts = word.split("/")
    return ("/".join(parts[at:]) for at in range(min(len(parts), 20)))


def _folders(path: str) -> Iterable[str]:
    parts = path.split("/")
    return ("/".join((*parts[:at], "")) for at in range(1, len(parts)))


def _title(path: str) -> str:
    stem = posixpath.splitext(path.removeprefix("references/"))[0]
    return stem.replace("-", " ").replace("_", " ")
