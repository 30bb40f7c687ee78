"""Masks what looks like a key, token or password in text that goes to a log, a breadcrumb or a caller."""

from __future__ import annotations

import re

MASK = "[masked]"
_NAMES = (
    r"(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|token|passw(?:or)?d|passphrase|pwd|authorization|cookie)"
)
_KEY_BEGIN = r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
_SECRETS = (
    re.compile(r"(?i)(authorization[\"']?\s*[=:]\s*[\"']?(?:[a-z]+\s+)?)[^\s\"']+"),
    re.compile(r"(?i)((?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{8,}"),
    re.compile(rf"(?i)({_NAMES}[\"']?\s*[=:]\s*\")[^\"\n]+"),
    re.compile(rf"(?i)({_NAMES}[\"']?\s*[=:]\s*')[^'\n]+"),
    re.compile(rf"(?i)({_NAMES}[\"']?\s*[=:]\s*)[^\s\"'&,;]+"),
    re.compile(r"(://[^/\s:@]*:)[^/\s]+(?=@)"),
    re.compile(rf"({_KEY_BEGIN}).*?(?=-----END|\Z)", re.DOTALL),
)
_SHAPES = re.compile(
    r"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|AKIA[0-9A-Z]{16}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*|AIza[A-Za-z0-9_-]{30,})"
)

_IN_ADDRESS = re.compile(
    # A password, or a long name without one; not where a variable stands for it.
    r"(://[^/\s:@\"'<>]{0,200}:)(?!\$\{?\w+\}?@|\{\w*\}@|\[masked\])[^/\s\"'<>?#]{1,1000}(?=@)"
    r"|(\bhttps?://)(?!\$|\{)[^/\s:@\"'<>?#]{20,1000}(?=@)"
)

_PRIVATE_KEY = re.compile(
    # Up to its end; without one, the lines directly below that look like headers or base 64.
    rf"({_KEY_BEGIN})(?:[^-]*+(?:-(?!----)[^-]*+)*+(?=-----END)"
    r"|(?:\s*+(?:[A-Za-z-]{1,40}: [^\n]*+|[A-Za-z0-9+/=]{16,}+))++)"
)

_SECRET_FILE = re.compile(
    r"\.env(\.[\w-]+)?|\.envrc|\.netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.htpasswd|\.?credentials(\.\w+)?|id_(rsa|dsa|ecdsa|ed25519)"
    r"|.+\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk)|\.mcp\.json|mcp\.json|secrets?\.(json|ya?ml|toml|ini|env)|\.git-credentials",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(r".*\.(example|sample|template|dist)(\..+)?", re.IGNORECASE)


def is_secret_file(name: str) -> bool:
    """Whether files of this name are made to hold keys and passwords; the examples that come with many projects are
    not meant."""
    return _SECRET_FILE.fullmatch(name) is not None and _EXAMPLE.fullmatch(name) is None


def mask_private_keys(text: str) -> str:
    """The text of a whole document, not yet in parts, without private keys. What follows a mere mention stays."""
    return _PRIVATE_KEY.sub(rf"\g<1>{MASK}", text)


def mask_document(text: str) -> str:
    """The text of a whole document without keys of any unmistakable shape, to be cut afterwards."""
    return _mask_shapes(mask_private_keys(text))


def mask_in_place(text: str) -> str:
    """As `mask_document`, with every line where it was."""

    def mask(found: re.Match[str]) -> str:
        return found[1] + MASK + "\n" * found[0].count("\n")

    return _mask_shapes(_PRIVATE_KEY.sub(mask, text))


def mask_keys(text: str) -> str:
    """The text without what has the unmistakable shape of a key: for documents, which may speak of tokens."""
    return _mask_shapes(_SECRETS[-1].sub(rf"\g<1>{MASK}", text))


def _mask_shapes(text: str) -> str:
    masked = _SHAPES.sub(MASK, text)
    return _IN_ADDRESS.sub(rf"\g<1>\g<2>{MASK}", masked) if "@" in masked and "://" in masked else masked


def mask_secrets(text: str) -> str:
    """The text with what looks secret replaced; a guess, for where text of strangers cannot be avoided."""
    for secret in _SECRETS:
        text = secret.sub(rf"\g<1>{MASK}", text)
    return _SHAPES.sub(MASK, text)
