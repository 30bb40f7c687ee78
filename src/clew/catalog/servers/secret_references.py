"""Keeps secrets in imported files out of Clew's files: a value that looks like a token is replaced by a reference."""

from __future__ import annotations

import re
from collections.abc import Mapping

from clew.catalog.servers.value_references import FromEnv, Value
from clew.lazy_pattern import lazy_pattern
from clew.secrecy import MASK

_SECRET_KEY = lazy_pattern(
    r"token|secret|passw|credential|cookie|api.?key|access.?key|private.?key|(?:^|[_-])(?:key|pat|auth|jwt)(?:$|[_-])"
    r"|authorization",
    re.IGNORECASE,
)
_KNOWN_TOKEN = lazy_pattern(
    r"(?:sk|pk|rk)-[\w-]{8,}|sk_(?:live|test)_\w+|gh[opsur]_\w{8,}|github_pat_\w+|glpat-[\w-]+|xox[abprs]-[\w-]+"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{20,}|hf_\w{8,}|npm_\w{8,}|pypi-[\w-]+|eyJ[\w-]+\.[\w-]+(?:\.[\w-]*)?"
)
_LONG_TOKEN = lazy_pattern(r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_+=-]{28,}")
_HARMLESS = lazy_pattern(r"\s*|true|false|yes|no|on|off|\d{1,6}|https?://[^@?]*|[~./\\][\w./\\~ -]*", re.IGNORECASE)
_BEARER = lazy_pattern(r"\s*bearer\s+(\S+)\s*", re.IGNORECASE)
_IN_ADDRESS = lazy_pattern(r"(?<=[?&])([\w.-]+)=([^&#]+)")
_IN_ARGUMENT = lazy_pattern(r"(--?[\w-]+=|[\w.-]+[=:] ?)?(.*)", re.DOTALL)
_USERINFO = lazy_pattern(r"(?<=://)[^/?#]+@")
_WORD = lazy_pattern(r"[\w.+%-]+")
_NOT_NAME = lazy_pattern(r"[^A-Za-z0-9]+")


def is_reference(text: str) -> bool:
    """Whether the text only names a value."""
    return "${" in text or re.fullmatch(r"\$\w+", text) is not None


def is_secret(key: str, text: str) -> bool:
    """Whether a value looks like a secret."""
    if is_reference(text):
        return False
    if _KNOWN_TOKEN.search(text) or _LONG_TOKEN.fullmatch(text) or _BEARER.fullmatch(text):
        return True
    return _SECRET_KEY.search(key) is not None and not _HARMLESS.fullmatch(text)


def env_name(*parts: str) -> str:
    """The name of an environment variable from parts of any kind."""
    name = _NOT_NAME.sub("_", "_".join(parts)).strip("_").upper()
    return name if name[:1].isalpha() else f"CLEW_{name}"


def mask_values(values: Mapping[str, Value], prefix: str, masked: list[str]) -> dict[str, Value]:
    """The values with a reference instead of each secret; `masked` gets the names of the variables to set."""
    found: dict[str, Value] = {}
    for key, value in values.items():
        if isinstance(value, str) and is_secret(key, value):
            value = FromEnv(env_name(prefix, key) if prefix else env_name(key))
            masked.append(value.name)
        found[key] = value
    return found


def mask_arguments(arguments: tuple[str, ...], id: str, masked: list[str]) -> tuple[str, ...]:
    """The arguments of a command with `${NAME}` instead of each secret."""
    found: list[str] = []
    for at, argument in enumerate(arguments):
        head, text = _IN_ARGUMENT.fullmatch(argument).groups()  # type: ignore[union-attr]  # fits every text
        before = arguments[at - 1] if at and arguments[at - 1].startswith("-") else ""
        if at and is_secret((head or before).rstrip("=: "), text.strip()):
            name = env_name(id, (head or before or str(at)).strip("-=: "))
            masked.append(name)
            argument = f"{head or ''}${{{name}}}"
        found.append(argument)
    return tuple(found)


def mask_address(url: str, id: str, masked: list[str]) -> str:
    """An address with `${NAME}` instead of each secret in its query, and without a user and password."""

    def mask(found: re.Match[str]) -> str:
        key, value = found.groups()
        if not is_secret(key, value):
            return found.group()
        masked.append(env_name(id, key))
        return f"{key}=${{{env_name(id, key)}}}"

    if _USERINFO.search(url) and not is_reference(url):
        masked.append(env_name(id, "login"))
        url = _USERINFO.sub(f"${{{env_name(id, 'login')}}}@", url)
    return _IN_ADDRESS.sub(mask, url)


def plain_address(url: str) -> str:
    """An address for people: every secret in it is masked."""
    names: list[str] = []
    masked = mask_address(url, "", names)
    for name in names:
        masked = masked.replace(f"${{{name}}}", MASK)
    return mask_words(masked)


def mask_words(text: str) -> str:
    """A text in which each word that looks like a secret by itself is masked."""
    return _WORD.sub(lambda word: MASK if is_secret("", word.group()) else word.group(), text)
