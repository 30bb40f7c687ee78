"""Files that the index leaves out: binary files, keys, and files with nothing but secrets. Code that mentions passwords
stays; keys in it are masked."""

from __future__ import annotations

import codecs
import re

from clew.secrecy import is_secret_file, mask_keys

BINARY = "is binary"
_HEAD_BYTES = 8_000
"""Bytes that decide whether a file is text."""

_BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MAGIC = (
    b"%PDF-",
    b"\x89PNG",
    b"GIF8",
    b"PK\3\4",
    b"\x7fELF",
    b"\x1f\x8b",
    b"SQLite format 3",
    b"\xca\xfe\xba\xbe",
)
_CONTROL = bytes(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 27})
_MAX_CONTROL = 0.1
"""The largest share of control characters in text."""

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
    """Whether a file is text. An empty one is."""
    head = content[:_HEAD_BYTES]
    if head.startswith(_BYTE_ORDER_MARKS):
        return True
    if head.startswith(_MAGIC) or b"\0" in head:
        return False
    return len(head) - len(head.translate(None, _CONTROL)) <= _MAX_CONTROL * len(head)


def looks_secret(path: str, content: bytes) -> str:
    """Why a file is left out, or empty: it is a key, a file made for secrets, or settings that are mostly keys.
    Examples in a project, and code with a key in it, are not left out."""
    name = path.replace("\\", "/").rpartition("/")[2]
    text = content[: 4 * _HEAD_BYTES].decode("utf-8", "replace")
    if _KEY_FILE.match(text) or _PUTTY.match(text):
        return "a private key"
    if _SERVICE_ACCOUNT.search(text) and name.lower().endswith(".json"):
        return "the key of a service account"
    if is_secret_file(name) and not _CODE.fullmatch(name):
        return "" if _is_public(name, text) else "a file made for secrets"
    if _SETTINGS_FILE.fullmatch(name) and _is_mostly_keys(text):
        return "settings that are mostly keys"
    return ""


def _is_public(name: str, text: str) -> bool:
    """Whether the file is empty, a certificate or a public key; these have the same extensions."""
    if not text.strip():
        return True
    return name.lower().endswith((".pem", ".key")) and "-----BEGIN " in text and "PRIVATE" not in text


def _is_mostly_keys(text: str) -> bool:
    values = [found["value"] for found in _SETTING.finditer(_COMMENT.sub("", text))]
    keys = sum(mask_keys(value) != value for value in values)
    return keys > 0 and 2 * keys >= len(values)
