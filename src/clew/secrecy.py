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
_KINDS = (
    (("sk-",), r"sk-[A-Za-z0-9_-]{16,}"),
    (("k_live_", "k_test_"), r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,}"),
    (("github_pat_",), r"github_pat_\w{20,}"),
    (("glpat-", "glrt-", "gldt-"), r"gl(?:pat|rt|dt)-[A-Za-z0-9_-]{20,}"),
    (("xox",), r"xox[abeprs]-[A-Za-z0-9-]{10,}"),
    (("xapp-",), r"xapp-\d-[A-Za-z0-9-]{16,}"),
    (("AKIA", "ASIA"), r"A[KS]IA[0-9A-Z]{16}(?![A-Za-z0-9])"),
    (("eyJ",), r"eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*"),
    (("AIza",), r"AIza[A-Za-z0-9_-]{30,}"),
    (("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    (("npm_",), r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    (("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    (("hf_",), r"hf_[A-Za-z0-9]{30,}(?![A-Za-z0-9_])"),
    (("SG.",), r"SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{32,}"),
    (("_v1_",), r"do[opr]_v1_[a-f0-9]{64}"),
    ((":AA",), r"\d{8,10}:AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9_-])"),
    (("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    (("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    (("dckr_",), r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    (("shpat_", "shpca_", "shppa_", "shpss_"), r"shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}"),
    (("whsec_",), r"whsec_[A-Za-z0-9+/=_-]{24,}"),
    (("ATATT3", "ATCTT3"), r"AT[AC]TT3[A-Za-z0-9_=-]{30,}"),
    (("lin_api_",), r"lin_api_[A-Za-z0-9]{32,}"),
    (("NRAK-",), r"NRAK-[A-Z0-9]{24,}"),
    (("hooks.slack.com",), r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
    (("/webhooks/",), r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{15,22}/[A-Za-z0-9_-]{50,}"),
)
"""What keys look like by themselves, each kind with texts of which every key has one."""
_NAMED_KINDS = (
    (("AccountKey=", "AccessKey="), r"(?:Account|SharedAccess)Key=)[A-Za-z0-9+/=]{40,}"),
    (
        ("uthorization", "UTHORIZATION"),
        r"(?i:authorization[\"']?\s{0,5}[:=,]\s{0,5}[\"']?basic)\s{1,5})[A-Za-z0-9+/=]{12,}",
    ),
    (
        ("ecret", "ECRET"),
        r"(?i:aws_?secret_?(?:access_?)?key|secret_?access_?key)[\"']?\s{0,5}[=:]{1,2}\s{0,5}[\"']?)"
        r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
    ),
)
"""Keys that are told by what stands before them, which stays."""
_SHAPES = re.compile(rf"\b(?:{'|'.join(shape for _, shape in _KINDS)})")
_NAMED = re.compile("|".join(rf"({shape}" for _, shape in _NAMED_KINDS))
_MARKS = ("PRIVATE KEY", *(mark for marks, _ in (*_KINDS, *_NAMED_KINDS) for mark in marks))
_ADDRESS = re.compile(r"://\S*")

_IN_ADDRESS = re.compile(
    # A password, or a long name without one; not where a variable stands for it. A password may have what ends a host
    # elsewhere; what only looks like one is a port, with an `@` in the path behind it.
    r"(://[^/\s:@\"'<>]{0,200}:)(?!\$\{?\w+\}?@|\{\w*\}@|\[masked\]|(?:\d{1,5}|\$\{?\w+\}?|\{\w*\})[/?#])"
    r"(?:[^/\s\"'<>]{1,1000}(?=@)|(?<!://\[:)[^\s\"'<>@]{1,200}+(?=@))"
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


def may_hold_keys(text: str) -> bool:
    """Whether a text has what every key has. Looking for whole keys takes ten times as long."""
    return any(mark in text for mark in _MARKS) or any("@" in address for address in _ADDRESS.findall(text))


def _mask_shapes(text: str) -> str:
    masked = _NAMED.sub(_keep_name, _SHAPES.sub(MASK, text)) if any(mark in text for mark in _MARKS) else text
    return _IN_ADDRESS.sub(rf"\g<1>\g<2>{MASK}", masked) if "@" in masked and "://" in masked else masked


def mask_secrets(text: str) -> str:
    """The text with what looks secret replaced; a guess, for where text of strangers cannot be avoided."""
    for secret in _SECRETS:
        text = secret.sub(rf"\g<1>{MASK}", text)
    return _mask_shapes(text)


def _keep_name(found: re.Match[str]) -> str:
    return next(filter(None, found.groups()), "") + MASK
