"""Documents that rules link to: markdown below the root. Consent to a rule covers their texts at that time."""

from __future__ import annotations

import hashlib

from clew.errors import FormatError
from clew.skills.files.document import MAX_BYTES
from clew.skills.files.links import extract_links
from clew.skills.formats.rules import resolve_beside
from clew.skills.formats.safe_open import Root

MARKDOWN = ".md"
MAX_DOCUMENTS = 500
"""The number of documents of one rule file that consent covers. Models never see the others."""
_MAX_TOTAL = 20_000_000

Documents = tuple[tuple[str, str], ...]
"""Real paths relative to the root, each with the digest of the text."""


def find_documents(root: Root, text: str, real: str) -> Documents:
    """Return the documents that the rule file at `real` links to, in order and without duplicates. Files that cannot be
    read are left out."""
    found: dict[str, str] = {}
    room = _MAX_TOTAL
    for link in extract_links(text, extensions=(MARKDOWN,)) if "]" in text else ():
        path = _resolve(root, real, link.path)
        if path is None or path in found:
            continue
        content = read_text(root, path)
        if content is None:
            continue
        room -= len(content)
        if room < 0 or len(found) >= MAX_DOCUMENTS:
            break
        found[path] = digest_text(content)
    return tuple(found.items())


def read_text(root: Root, path: str) -> str | None:
    """Return the text of a file below the root, with `\\n` as line ends; None if it cannot be read."""
    try:
        text = root.load(path, MAX_BYTES).decode("utf-8-sig")
    except (FormatError, UnicodeDecodeError):
        return None
    return None if "\x00" in text else text.replace("\r\n", "\n").replace("\r", "\n")


def digest_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _resolve(root: Root, real: str, written: str) -> str | None:
    target = resolve_beside(real, written)
    try:
        path = root.resolve(target) if target is not None else None
    except FormatError:
        return None
    return path if path is not None and path.lower().endswith(MARKDOWN) else None
