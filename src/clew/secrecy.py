"""Masks keys, tokens and passwords in text for logs, breadcrumbs and callers."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import TYPE_CHECKING

from clew.lazy_pattern import lazy_pattern
from clew.passphrases import ORDINARY, is_ordinary, is_phrase, mask_phrases

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MASK = "[masked]"
_NAMES = (
    r"(?:api[_-]?key|access[_-]?key|private[_-]?key|secret|token|passw(?:or)?d|passphrase|pwd|authorization|cookie)"
)
_KEY_BEGIN = r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_KEY_END = r"-{4,5} ?END"
_NAME_STEMS = (
    *("key", "secret", "token", "passw", "passphrase", "passcode", "_pass", "-pass", "pwd"),
    *("authorization", "cookie", "bearer", "basic"),
)
"""Every secret name and authentication scheme contains one of these."""
_TELLING = r"(?=[^\s\"'&,;]{0,200}(?:\d|[@#$%^*+=~_!](?=\w)))"
"""Looks ahead for a digit or a sign within a word: ordinary words have neither."""
_IN_ESCAPED = r"[^\"\\\n]|\\(?!\\{0,2}\")"
"""A character of a literal between escaped quotes, as JSON within JSON has them."""
_SECRETS = (
    lazy_pattern(
        r"(?i)(authorization[\"']?\s*[=:]\s*[\"']?(?:bearer|basic|digest|token|bot|negotiate|apikey)\s+)[^\s\"']+"
    ),
    lazy_pattern(
        r"(?i:((?:bearer|basic|token)\s+))(?=[A-Za-z._~+/=-]{0,200}\d|[A-Z]*[a-z]{1,20}[A-Z])[A-Za-z0-9._~+/=-]{8,}"
    ),
    lazy_pattern(rf"(?i)({_NAMES}[\"']?\s*(?:=+>?|:=?)\s*\")(?:[^\"\\\n]|\\.|\\)+"),
    lazy_pattern(rf"(?i)({_NAMES}[\"']?\s*(?:=+>?|:=?)\s*')(?:[^'\\\n]|\\.|\\)+"),
    lazy_pattern(rf"(?i)({_NAMES}\\{{1,3}}\"\s*:\s*\\{{1,3}}\")(?:{_IN_ESCAPED})+"),
    lazy_pattern(rf"(?i)({_NAMES}[\"']?\s*=(?![=>])\s*)[^\s\"',;&]+(?:&(?![\w-]+=)[^\s\"',;&]+)*"),
    lazy_pattern(
        # After a colon, a sentence may follow: so only a value that looks like a secret, or a single word that ends the
        # line.
        rf"(?im)((?<!/){_NAMES}[\"']?\s*:\s*)"
        rf"(?:{_TELLING}[^\s\"'&,;]+|(?!{ORDINARY}\b)[^\W\d_]{{2,}}(?=[.!]?\s*?$))"
    ),
)
_PASSWORD_IN_ADDRESS = lazy_pattern(r"(://[^/\s:@]*:)[^/\s]+(?=@)")
_KEY_BODY = lazy_pattern(rf"({_KEY_BEGIN}).*?(?={_KEY_END}|\Z)", re.DOTALL)
_ASSIGNED = lazy_pattern(
    # A name that is set to a value. After a colon, which sentences have too, only a value with a digit matches.
    rf"(?i)({_NAMES}[\"']?\s{{0,5}}(?:=\s{{0,5}}[\"']?|:\s{{0,5}}[\"']?(?=[^\s\"']{{0,100}}\d)))"
    r"(?!\$|\{|<|\[|os\.|\.\.\.)[^\s\"'&,;]{3,}"
)
_KINDS = (
    # With a capital or a digit, or with more small letters in a row than a word has.
    (("sk-",), r"sk-(?:(?=[a-z_-]{0,200}[A-Z0-9])[A-Za-z0-9_-]{16,}|(?:[a-z]{2,12}-){0,3}[a-z]{20,})"),
    (("k_live_", "k_test_"), r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,}"),
    (("github_pat_",), r"github_pat_\w{20,}"),
    (
        ("glpat-", "glrt-", "gldt-", "glptt-", "glft-", "glcbt-", "glagent-", "glimt-", "gloas-", "glsoat-"),
        r"gl(?:pat|rt|dt|ptt|ft|cbt|agent|imt|oas|soat)-[A-Za-z0-9_-]{20,}",
    ),
    (("GR1348941",), r"GR1348941[A-Za-z0-9_-]{20,}"),
    (("xox",), r"xox[abcdeprs]-[A-Za-z0-9%-]{10,}"),
    (("xapp-",), r"xapp-\d-[A-Za-z0-9-]{16,}"),
    (("AKIA", "ASIA", "ABIA", "ACCA"), r"A(?:KI|SI|BI|CC)A[0-9A-Z]{16}(?![A-Za-z0-9])"),
    (("IQoJb3JpZ2lu", "FwoGZXIvYXdz"), r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)[A-Za-z0-9/+=]{80,}"),
    (("eyJ",), r"eyJ[A-Za-z0-9_-]{10,2000}\.[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]*"),
    (("AIza",), r"AIza[A-Za-z0-9_-]{30,}"),
    (("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    (("1//0",), r"1//0[A-Za-z0-9_-]{30,}"),
    (("npm_",), r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    (("pypi-AgE",), r"pypi-AgE[A-Za-z0-9_-]{50,}"),
    (("rubygems_",), r"rubygems_[a-f0-9]{48}"),
    (("hf_",), r"hf_[A-Za-z0-9]{30,}(?![A-Za-z0-9_])"),
    (("gsk_",), r"gsk_[A-Za-z0-9]{40,}"),
    (("xai-",), r"xai-[A-Za-z0-9]{60,}"),
    (("r8_",), r"r8_[A-Za-z0-9]{37}(?![A-Za-z0-9_])"),
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
    (("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[A-Za-z0-9_-]{24,}"),
    (("glsa_",), r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    (("glc_eyJ",), r"glc_eyJ[A-Za-z0-9+/=]{30,}"),
    (("dapi",), r"dapi[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
    (("figd_",), r"figd_[A-Za-z0-9_-]{36,}"),
    (("PMAK-",), r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    (("sntrys_", "sntryu_"), r"sntry(?:s_eyJ[A-Za-z0-9+/=_-]{40,}|u_[a-f0-9]{64})"),
    (("ntn_", "ecret_"), r"(?:ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9_]))"),
    (("nfp_",), r"nfp_[A-Za-z0-9]{36,}"),
    (("sbp_", "sb_secret_"), r"sb(?:p_[a-f0-9]{40}|_secret_[A-Za-z0-9_-]{20,})"),
    (("pscale_",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,}"),
    (("dp.pt.", "dp.st.", "dp.ct.", "dp.sa."), r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9._-]{40,}"),
    (("sq0",), r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}"),
    (("EAA",), r"EAA(?:A[A-Za-z0-9_-]{60}|[B-Z][A-Za-z0-9]{90,})(?![A-Za-z0-9_/+=-])"),
    (("HRKU-",), r"HRKU-[A-Za-z0-9_-]{36,}"),
    ((".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    (("ailgun", "AILGUN"), r"key-[a-f0-9]{32}(?![A-Za-z0-9])"),
    (("wilio", "WILIO"), r"SK[a-f0-9]{32}(?![A-Za-z0-9])"),
    (("iscord", "ISCORD"), r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}(?![A-Za-z0-9_-])"),
    (("Q~",), r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}(?![A-Za-z0-9_~-])"),
    (("hooks.slack.com",), r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{20,}"),
    (("/webhooks/",), r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{15,22}/[A-Za-z0-9_-]{50,}"),
    ((".office.com/webhook",), r"(?:webhook|outlook)\.office\.com/webhook(?:b2)?/[A-Za-z0-9@/-]{40,}"),
)
"""Patterns of keys that need no name beside them. The texts before a pattern are its marks: every key of that kind, or
the text that names its service, contains one of them."""
_ASKED_FOR = ("password", "passwd", "token", "access_token", "api_key", "apikey", "client_secret", "secret")
"""Names of passwords in the query of an address."""
_STANDS_IN = r"(?![$<%{\[*.]|\\)"
"""Does not match if a variable or a placeholder replaces the secret."""
_ASSIGNMENT = lazy_pattern(
    # The name ends in a word for a secret, at the border of a snake, kebab or camel word.
    r"(?:(?<![A-Za-z])|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Za-z])(?=(?i:passw|passphrase|secret|token|apikey)))"
    r"(?:(?P<password>(?i:password|passwd|passphrase|passcode|pwd|pass))"
    r"|(?P<token>(?i:token))"
    r"|(?i:secret|credentials?|(?:api|access|secret|private|auth|encryption|signing|master)[_ -]?key))"
    r"(?:[_-]?\d{1,3})?(?:[\"']|\\{1,3}\")?"
    r"(?P<sign>\s{0,5}(?:={1,3}>?|:=?)\s{0,5})"
    r"(?:\"(?P<double>(?:[^\"\\\n]|\\.){4,200})(?=\")|'(?P<single>(?:[^'\\\n]|\\.){4,200})(?=')"
    rf"|\\{{1,3}}\"(?P<escaped>(?:{_IN_ESCAPED}){{4,200}})(?=\\)"
    r"|(?P<bare>(?>(?:[\w+/~!@#$%^*=-]|&(?![\w-]{1,40}=)){4,200}))(?![.(\[{<]))"
)
"""A name of a secret with the value that it is set to, on one line."""
_ASSIGNMENT_MARKS = (
    *("assw", "ASSW", "assphrase", "ASSPHRASE", "asscode", "ASSCODE", "pwd", "PWD", "Pwd", "Pass", "PASS", "_pass"),
    *("-pass", "ecret", "ECRET", "oken", "OKEN", "redential", "REDENTIAL"),
    *("pi_key", "pi-key", "pi key", "piKey", "pikey", "PI_KEY", "PI-KEY", "pi-Key", "PIKEY"),
    *(f"{stem}{end}" for stem in ("ss", "te", "th", "on", "ng", "er") for end in ("_key", "-key", "Key")),
    *(f"{stem}{end}" for stem in ("SS", "TE", "TH", "ON", "NG", "ER") for end in ("_KEY", "-KEY")),
)
_NO_VALUE = lazy_pattern(
    # A variable, a version, a path, an address, the name of a place where the key is, or a word for the reader.
    r"[$<%{\[*.\\(]|[\^~>=v]{0,3}\d+(?:\.\d+)+(?![A-Za-z0-9])|/|~/|(?i:https?:|env:|file:|keyring:|your|my[_-]|example|change|xxx|process\.)|.*[{}<>]|.*\$\("
)
_TYPES = lazy_pattern(r"(?i:u?int|uint|float|double|str|string|bytes|sha|md|base|utf|bool|[iuf])-?\d{1,3}")
_SIGN_IN_WORD = lazy_pattern(r"[@#$%^*+=~!](?=\w)")
_PHRASE_WORDS = 4
"""The least words of a phrase without quotes in a document, where two or three are mostly a label."""
_LINE_HEAD = lazy_pattern(r"\s*(?:[-+]\s+)?(?:export\s+|set\s+|ENV\s+)?[\"']?[\w.-]*\Z")
_LINE_TAIL = lazy_pattern(r"\s*(?:#|\Z)")
MAX_NAME = 200
"""The maximum length of a secret's name before `=` or `:`. A longer search would be quadratic in a long line."""
_RANDOM = 16
"""The least length of a bare token: shorter ones are mostly tokens of a language."""
_NAMED_KINDS = (
    (("AccountKey=", "AccessKey="), r"(?:Account|SharedAccess)Key=)[A-Za-z0-9+/=]{40,}"),
    (
        ("uthorization", "UTHORIZATION"),
        r"(?i:authorization[\"']?\s{0,5}[:=,]\s{0,5}[\"']?basic)\s{1,5})[A-Za-z0-9+/=]{12,}",
    ),
    (
        ("uthorization", "UTHORIZATION"),
        r"(?i:authorization[\"']?\s{0,5}[:=,]\s{0,5}[\"']?(?:bearer|token|bot))\s{1,5})"
        r"(?=[A-Za-z_.~+/=-]{0,100}\d)[A-Za-z0-9_.~+/=-]{12,}",
    ),
    (
        ("ecret", "ECRET"),
        r"(?i:aws_?secret_?(?:access_?)?key|secret_?access_?key)[\"']?\s{0,5}[=:]{1,2}\s{0,5}[\"']?)"
        r"[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])",
    ),
    (
        ("ession_token", "ESSION_TOKEN", "essionToken"),
        r"(?i:session_?token)[\"']?\s{0,5}[=:]\s{0,5}[\"']?)[A-Za-z0-9/+=]{80,}",
    ),
    (("wilio", "WILIO"), r"(?i:twilio[\w-]{0,30})[\"']?\s{0,5}[=:]\s{0,5}[\"']?)[a-f0-9]{32}(?![A-Za-z0-9])"),
    (("&sig=", "?sig=", ";sig="), r"[?&;]sig=)[A-Za-z0-9%+/=]{40,}"),
    ((":_auth", ":_password"), rf":_(?:authToken|auth|password)\s?=\s?[\"']?){_STANDS_IN}[^\s\"']{{8,}}"),
    (
        ('"auth"',),
        r"\"auth\"\s{0,5}:\s{0,5}\")(?=[A-Za-z+/]{0,60}[0-9=])(?=[a-z0-9+/]{0,60}[A-Z])[A-Za-z0-9+/]{12,}={0,2}(?![A-Za-z0-9+/=])",
    ),
    (("client-key-data",), r"client-key-data[\"']?\s{0,5}:\s{0,5}[\"']?)[A-Za-z0-9+/=]{40,}"),
    (
        ("curl ",),
        rf"\bcurl [^\n]{{0,200}}?(?<=\s)(?:-u|--user)[ =]?[\"']?[\w.@%+-]{{1,100}}:){_STANDS_IN}[^\s\"']{{1,200}}",
    ),
    (
        tuple(f"{before}{name}=" for before in "?&" for name in _ASKED_FOR),
        rf"[?&](?:{'|'.join(_ASKED_FOR)})=){_STANDS_IN}[^\s&\"'<>#`)]{{4,}}",
    ),
    (
        ("Password=", "PASSWORD=", "Pwd=", "PWD=", ";password=", ";pwd="),
        rf";\s?(?i:password|pwd)\s?=\s?){_STANDS_IN}[^\s;\"'<>]{{1,200}}",
    ),
    (
        ("Password=", "Pwd="),
        rf"(?<![A-Za-z0-9_.])(?:Password|Pwd)=){_STANDS_IN}[^\s;\"'<>]{{1,200}}(?=;\s?[A-Za-z][A-Za-z ]{{0,30}}=)",
    ),
)
"""Keys that are recognised by their prefix; the prefix stays."""
_PATTERNS = (
    *((marks, lazy_pattern(rf"(?<![A-Za-z0-9]){shape}")) for marks, shape in _KINDS),
    *((marks, lazy_pattern(rf"({shape}")) for marks, shape in _NAMED_KINDS),
)
_PRIVATE_MARKS = ("PRIVATE KEY", "Private-Lines:")
_MARKS = tuple(
    sorted({*_PRIVATE_MARKS, *_ASSIGNMENT_MARKS, *(mark for marks, _ in (*_KINDS, *_NAMED_KINDS) for mark in marks)})
)
_SHORT_MARKS = tuple(mark for mark in _MARKS if len(mark) < 3)
_LONG_MARKS = tuple(mark for mark in _MARKS if len(mark) >= 3)
_BY_RARITY = '&?;=_:/-."@0123456789ZQXJKVWYGUHBPFDMLCSRNIOATEzqxjkvwygubpfmdchlnriosate '
"""The characters of marks, rarest first."""
_MARKS_BY_LETTER: dict[str, list[str]] = {}
for _mark in _MARKS:
    _MARKS_BY_LETTER.setdefault(min(_mark, key=_BY_RARITY.find), []).append(_mark)
"""The marks by their rarest letter: a text without it need not be searched for them."""
_SERVICE_MARKS = ("ailgun", "AILGUN", "wilio", "WILIO", "iscord", "ISCORD")
"""Marks that may be far from a key: they name its service."""
NEAR = 20
_SHORT, _SHORT_WITHOUT_NUMPY = 350, 2_000  # loading numpy takes longer than searching a text
_ADDRESS = lazy_pattern(r"://\S*")
_IN_ADDRESS = lazy_pattern(
    # A password, or a long user name without one; not if a variable replaces it. A password may have characters that
    # end a host elsewhere; a port with an `@` in the path behind it only looks like one.
    r"(://[^/\s:@\"'<>]{0,200}:)(?!\$\{?\w+\}?@|\{\w*\}@|\[masked\]|(?:\d{1,5}|\$\{?\w+\}?|\{\w*\})[/?#])"
    r"(?:[^/\s\"'<>]{1,1000}(?=@)|(?<!://\[:)[^\s\"'<>@]{1,200}+(?=@))"
    r"|(\bhttps?://)(?!\$|\{)[^/\s:@\"'<>?#]{20,1000}(?=@)"
)

_PRIVATE_KEY = lazy_pattern(
    # Up to its end; without one, the lines directly below that look like headers or base 64. A key of PuTTY has such
    # lines below their number.
    rf"({_KEY_BEGIN})(?:[^-]*+(?>(?:-(?!-{{3,4}} ?(?:END|BEGIN))[^-]*+)*)(?={_KEY_END})"
    r"|(?>(?:\s*+(?:[A-Za-z-]{1,40}: [^\n]*+|[A-Za-z0-9+/=]{16,}+))+))"
    r"|(Private-Lines: \d{1,5})(?>(?:\r?\n[A-Za-z0-9+/=]{1,200}+(?=\r?\n|\Z))+)"
)

_SECRET_FILE = lazy_pattern(
    r"\.env(\.[\w-]+)?|\.envrc|\.netrc|_netrc|\.npmrc|\.pypirc|\.pgpass|\.htpasswd|\.?credentials(\.\w+)?|id_(rsa|dsa|ecdsa|ed25519)"
    r"|.+\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk)|\.mcp\.json|mcp\.json|secrets?\.(json|ya?ml|toml|ini|env)|\.git-credentials",
    re.IGNORECASE,
)
_EXAMPLE = lazy_pattern(r".*\.(example|sample|template|dist)(\..+)?", re.IGNORECASE)


def is_secret_file(name: str) -> bool:
    """Whether files of this name usually hold keys and passwords. Common example files do not count."""
    return _SECRET_FILE.fullmatch(name) is not None and _EXAMPLE.fullmatch(name) is None


def mask_private_keys(text: str) -> str:
    """Mask the private keys in a complete document. If a key is only mentioned, the text after it stays."""
    return _mask_private_keys(text, _keep_name)


def mask_document(text: str) -> str:
    """Mask all keys with an unmistakable format in a complete document, before it is split."""
    return _mask_shapes(mask_private_keys(text))


def mask_in_place(text: str) -> str:
    """Like `mask_document`, but keeps the number of every line."""
    return _mask_shapes(_mask_private_keys(text, _keep_lines))


def _keep_lines(found: re.Match[str]) -> str:
    return _keep_name(found) + "\n" * found[0].count("\n")


class MaskedLines:
    """The lines of `mask_in_place`, masked on demand. Private keys are searched for in the whole text; other keys,
    which span fewer than NEAR lines, only around the requested lines."""

    def __init__(self, text: str) -> None:
        self._lines = _mask_private_keys(text, _keep_lines).split("\n")
        self._services = [mark for mark in _SERVICE_MARKS if mark in text]

    def part(self, start: int, end: int) -> list[str]:
        """The lines from `start` to `end`, counted from 1, the last one included."""
        before = max(0, start - 1 - NEAR)
        masked = _mask_shapes("\n".join(self._lines[before : end + NEAR]), self._services).split("\n")
        return masked[start - 1 - before : end - before]


def _mask_private_keys(text: str, mask: Callable[[re.Match[str]], str]) -> str:
    return _PRIVATE_KEY.sub(mask, text) if any(mark in text for mark in _PRIVATE_MARKS) else text


def mask_keys(text: str) -> str:
    """Mask keys with an unmistakable format: for documents, which may discuss tokens."""
    return _mask_shapes(_mask_key_bodies(text))


def mask_message(text: str) -> str:
    """Like `mask_keys`, and also mask the values assigned to passwords and tokens: for commit messages, which mention
    tokens more often than they contain one."""
    masked = mask_keys(text)
    if "=" in masked or ":" in masked:
        lower = masked.lower()
        if any(stem in lower for stem in _NAME_STEMS):
            return _ASSIGNED.sub(rf"\g<1>{MASK}", mask_phrases(masked, MASK))
    return masked


def may_hold_keys(text: str) -> bool:
    """Whether a text may hold a key. Ten times as fast as masking."""
    return bool(_marks_in(text)) or any("@" in address for address in _ADDRESS.findall(text))


def _marks_in(text: str) -> set[str]:
    if len(text) < (_SHORT if "numpy" in sys.modules else _SHORT_WITHOUT_NUMPY):
        return {mark for rare, marks in _MARKS_BY_LETTER.items() if rare in text for mark in marks if mark in text}
    return {mark for mark in _possible(text) if mark in text}


def _possible(text: str) -> list[str]:
    """The marks that may occur in a text, judged by their trigrams, and all short marks. Only these must be searched
    for."""
    import numpy as np  # only needed for many texts

    is_there = np.zeros(1 << 16, np.bool_)
    is_there[_triples(text.encode("utf-8", "replace"))] = True
    found = is_there[_triples_of_marks()].all(axis=1)
    return [*_SHORT_MARKS, *(_LONG_MARKS[at] for at in np.flatnonzero(found))]


def _triples(text: bytes) -> NDArray[np.uint16]:
    """The hash of every trigram of a text. Different trigrams may have the same hash."""
    import numpy as np  # only needed for many texts

    letters = np.frombuffer(text, np.uint8).astype(np.uint16)
    return letters[:-2] * np.uint16(7919) + letters[1:-1] * np.uint16(263) + letters[2:]


@lru_cache(1)
def _triples_of_marks() -> NDArray[np.uint16]:
    """The trigram hashes of each long mark, padded with the first one to equal length."""
    import numpy as np  # only needed for many texts

    triples = [_triples(mark.encode()).tolist() for mark in _LONG_MARKS]
    longest = max(map(len, triples))
    return np.array([each + each[:1] * (longest - len(each)) for each in triples], np.uint16)


def _mask_key_bodies(text: str) -> str:
    """Mask private keys, even if their end is missing."""
    if "PRIVATE KEY" in text:
        text = _KEY_BODY.sub(rf"\g<1>{MASK}", text)
    return _PRIVATE_KEY.sub(_keep_name, text) if "Private-Lines:" in text else text


def _mask_shapes(text: str, services: Collection[str] = ()) -> str:
    """Mask keys by their shapes. `services` are marks that stand elsewhere in the document."""
    masked, found = text, _marks_in(text).union(services)
    for marks, pattern in _PATTERNS if found else ():
        if not found.isdisjoint(marks):
            masked = pattern.sub(_keep_name, masked)
    masked = _mask_assignments(masked, found.intersection(_ASSIGNMENT_MARKS))
    return _IN_ADDRESS.sub(rf"\g<1>\g<2>{MASK}", masked) if "@" in masked and "://" in masked else masked


def _mask_assignments(text: str, marks: set[str]) -> str:
    """Mask assigned values in the lines that hold one of the marks: looking at every line takes three times as long."""
    parts: list[str] = []
    done = 0
    for at in sorted(found.start() for mark in marks for found in re.finditer(re.escape(mark), text)):
        if at < done:
            continue
        start, end = text.rfind("\n", done, at) + 1 or done, text.find("\n", at)
        end = end if end >= 0 else len(text)
        line = mask_phrases(text[start:end], MASK, least=_PHRASE_WORDS)
        parts += (text[done:start], _ASSIGNMENT.sub(_mask_value, line))
        done = end
    return "".join((*parts, text[done:])) if parts else text


def _mask_value(found: re.Match[str]) -> str:
    group = str(found.lastgroup)
    value = found[group]
    is_secret = _is_bare_secret if group == "bare" else _is_quoted_secret
    if _NO_VALUE.match(value) or not is_secret(found, value):
        return found[0]
    return found[0][: found.start(group) - found.start()] + MASK


def _is_quoted_secret(found: re.Match[str], value: str) -> bool:
    """Whether a literal between quotes is the secret itself, and no label, message or name."""
    if any(each.isspace() for each in value):
        return found["password"] is not None and is_phrase(value)
    if found["token"] is not None and _is_single_word(found):
        return _is_random(value)
    if any(each.isdigit() for each in value) or _SIGN_IN_WORD.search(value):
        return _TYPES.fullmatch(value) is None
    is_password = (found["password"] or "pass").lower() != "pass"  # a pass by itself is often one of a compiler
    is_word = is_password and "=" in found["sign"] and ":" not in found["sign"]
    return is_word and re.fullmatch(r"[a-z]{6,}", value) is not None and not is_ordinary(value)


def _is_bare_secret(found: re.Match[str], value: str) -> bool:
    """Whether a value without quotes is the secret itself, and no expression of code or part of a sentence."""
    line, sign = found.string, found["sign"].strip()
    is_whole_line = _LINE_HEAD.match(line, 0, found.start()) and _LINE_TAIL.match(line, found.end())
    if sign not in ("=", ":") or (sign == ":" and not is_whole_line):
        return False
    if any(each.isdigit() for each in value):
        if found["token"] is not None and _is_single_word(found):
            return _is_random(value)
        least = 8 if sign == ":" and found["password"] is None else 6
        return len(value) >= least and _has_letter_and_digit(value) and _TYPES.fullmatch(value) is None
    is_setting = is_whole_line and found["password"] is not None and found["sign"] == "="
    name = line[max(0, found.start("sign") - MAX_NAME) : found.start("sign")].split()[-1]
    return bool(is_setting and name.isupper() and not is_ordinary(value))


def _is_single_word(found: re.Match[str]) -> bool:
    """Whether the name is just the word for the secret, without a prefix."""
    before = found.string[max(0, found.start() - 1) : found.start()]
    return not (before.isalnum() or before in ("_", "-"))


def _is_random(value: str) -> bool:
    return len(value) >= _RANDOM and _has_letter_and_digit(value)


def _has_letter_and_digit(value: str) -> bool:
    return any(each.isdigit() for each in value) and any(each.isalpha() for each in value)


def mask_secrets(text: str) -> str:
    """Mask everything that looks like a secret, by heuristics: for messages of other programs."""
    lower = text.lower()
    if any(stem in lower for stem in _NAME_STEMS):
        text = mask_phrases(text, MASK)
        for secret in _SECRETS:
            text = secret.sub(rf"\g<1>{MASK}", text)
    if "@" in text and "://" in text:
        text = _PASSWORD_IN_ADDRESS.sub(rf"\g<1>{MASK}", text)
    return _mask_shapes(_mask_key_bodies(text))


def _keep_name(found: re.Match[str]) -> str:
    return next(filter(None, found.groups()), "") + MASK
