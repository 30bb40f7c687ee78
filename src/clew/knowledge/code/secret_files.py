"""What is left out of the index at first sight: what is no text, and files that are keys or hold nothing but secrets.
Code that only speaks of passwords stays; keys in it are masked where it is shown."""

from __future__ import annotations

import codecs
import re

from clew.secrecy import is_secret_file, mask_keys

BINARY = "is binary"
_LOOKED_AT = 8_000
"""Bytes from which text is told from other things."""

_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MAGIC = (
    b"%PDF-",
    b"\x89PNG",
    b"GIF8",
    b"PK\x03\x04",
    b"\x7fELF",
    b"\x1f\x8b",
    b"SQLite format 3",
    b"\xca\xfe\xba\xbe",
)
_CONTROL = bytes(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 27})
_MANY = 0.1
"""The share of control characters from which something is no text."""

_KEY_FILE = re.compile(
    r"\s*(?:(?:#|//|[A-Za-z-]+:)[^\n]*\n\s*){0,20}-----BEGIN (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----(?!\\n)"
)
_PUTTY = re.compile(r"PuTTY-User-Key-File-\d")
_SETTING = re.compile(r"^[ \t]*(?:export[ \t]+)?[A-Za-z_][\w.-]*[ \t]*[=:][ \t]*(?P<value>[^\n]*)$", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*(?:[#;][^\n]*)?$\n?", re.MULTILINE)
_SERVICE_ACCOUNT = re.compile(
    r"\"private_key\"\s*:\s*\"-----BEGIN|\"type\"\s*:\s*\"service_account\"[^}]*\"private_key\""
)
_CODE = re.compile(
    r".+\.(?:py|pyi|js|mjs|cjs|jsx|ts|tsx|go|rs|java|c|h|cc|cpp|hpp|rb|php|cs|kt|swift|scala|md|rst|txt|html)",
    re.IGNORECASE,
)
_SETTINGS_FILE = re.compile(r"(?:.*\.)?(?:env|envrc|properties|conf|cfg|ini|toml|ya?ml|json|tfvars)", re.IGNORECASE)


def is_text(content: bytes) -> bool:
    """Whether the beginning of a file reads as text; an empty one does."""
    head = content[:_LOOKED_AT]
    if head.startswith(_MARKS):
        return True
    if head.startswith(_MAGIC) or b"\0" in head:
        return False
    return len(head) - len(head.translate(None, _CONTROL)) <= _MANY * len(head)


def looks_secret(path: str, content: bytes) -> str:
    """Why a file is left out altogether, or nothing: it is a key, a file made for secrets, or settings that are mostly
    keys. The examples that come with a project, and code with a key in it, are not meant."""
    name = path.replace("\\", "/").rpartition("/")[2]
    text = content[: 4 * _LOOKED_AT].decode("utf-8", "replace")
    if _KEY_FILE.match(text):
        return "a private key"
    if _PUTTY.match(text):
        return "a private key"
    if _SERVICE_ACCOUNT.search(text) and name.lower().endswith(".json"):
        return "the key of a service account"
    if is_secret_file(name) and not _CODE.fullmatch(name):
        return "" if _is_public(name, text) else "a file made for secrets"
    if _SETTINGS_FILE.fullmatch(name) and _is_mostly_keys(text):
        return "settings that are mostly keys"
    return ""


def _is_public(name: str, text: str) -> bool:
    """Certificates and public keys have the same endings as private ones; an empty file has nothing to hide."""
    if not text.strip():
        return True
    return name.lower().endswith((".pem", ".key")) and "-----BEGIN " in text and "PRIVATE" not in text


def _is_mostly_keys(text: str) -> bool:
    values = [found["value"] for found in _SETTING.finditer(_COMMENT.sub("", text))]
    keys = sum(mask_keys(value) != value for value in values)
    return keys > 0 and 2 * keys >= len(values)
