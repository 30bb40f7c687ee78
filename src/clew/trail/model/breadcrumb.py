"""The breadcrumb: a durable, versioned, tagged, typed, owned JSON record; and the drafts and changes from which it is
made. The limits are here, so that all interfaces and backends reject the same input with the same message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from math import isfinite
from struct import Struct
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from clew.errors import InvalidInput, TooLarge
from clew.lazy_pattern import lazy_pattern

MAX_TITLE = 2_000
MAX_CONTEXT = 4_000_000
MAX_DEPTH = 64
MAX_TAGS = 1_000
MAX_TAG = 300
MAX_SCOPES = 64
MAX_BATCH = 10_000
MAX_DIMENSION = 4_096

_SCHEMA_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,199}")
_TAG = lazy_pattern(r"[^\s\x00-\x1f\x7f]+(?: [^\s\x00-\x1f\x7f]+)*")
_TAGS = lazy_pattern(rf"{_TAG.pattern}(?:\n{_TAG.pattern})*")
_ID = lazy_pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_canonical = msgspec.json.Encoder(order="deterministic")
_measure = Struct("<Q").pack
_decode = msgspec.json.Decoder().decode
_PLAIN_TYPES = frozenset((str, int, bool, type(None)))

TtlKind = Literal["never", "datetime", "usage", "hybrid"]


class Ttl(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The end of a breadcrumb: never, at a time, after a number of consumer reads, or at the earlier of the two."""

    kind: TtlKind = "never"
    expires_at: datetime | None = None
    max_reads: int | None = None
    read_count: int = 0


NEVER = Ttl()


class Draft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A breadcrumb to write. `ttl=None` lets the TTL policies decide. `embed="never"` keeps it out of vector search. A
    repeated `idempotency_key` returns the first result instead of writing again."""

    title: str
    context: dict[str, Any]
    tags: Sequence[str] = ()
    schema_name: str | None = None
    scopes: Sequence[str] = ()
    llm_hints: dict[str, Any] | None = None
    ttl: Ttl | None = None
    entities: dict[str, Any] | None = None
    embedding: Sequence[float] | None = None
    embed: Literal["auto", "never"] = "auto"
    idempotency_key: str | None = None
    id: str | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields that an update replaces; an absent field stays as it is."""

    title: str | UnsetType = UNSET
    context: dict[str, Any] | UnsetType = UNSET
    tags: Sequence[str] | UnsetType = UNSET
    schema_name: str | UnsetType | None = UNSET
    scopes: Sequence[str] | UnsetType = UNSET
    llm_hints: dict[str, Any] | UnsetType | None = UNSET
    ttl: Ttl | UnsetType = UNSET
    entities: dict[str, Any] | UnsetType | None = UNSET
    embedding: Sequence[float] | UnsetType | None = UNSET
    embed: Literal["auto", "never"] = "auto"


class Update(msgspec.Struct, frozen=True, kw_only=True):
    """A change to the breadcrumb of this id, whose version must be `expect`."""

    id: str
    change: Change
    expect: int


class Breadcrumb(msgspec.Struct, frozen=True, kw_only=True):
    """A record as stored. `embedding` is filled only if a caller asked for it."""

    id: str
    owner_id: str
    title: str
    context: dict[str, Any]
    tags: tuple[str, ...]
    schema_name: str | None
    version: int
    scopes: tuple[str, ...]
    llm_hints: dict[str, Any] | None
    ttl: Ttl
    entities: dict[str, Any] | None
    entity_keywords: tuple[str, ...]
    checksum: str
    created_at: datetime
    updated_at: datetime
    created_by: str | None
    updated_by: str | None
    embedding: tuple[float, ...] | None = None

    @property
    def session(self) -> str | None:
        return session_of(self.tags)

    @property
    def session_tags(self) -> tuple[str, ...]:
        return tuple(tag for tag in self.tags if tag.startswith("session:"))


class View(msgspec.Struct, frozen=True, kw_only=True):
    """A breadcrumb as a model should see it: `context` after its llm_hints."""

    id: str
    title: str
    context: dict[str, Any]
    tags: tuple[str, ...]
    schema_name: str | None
    version: int
    updated_at: datetime


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a listing; `cursor` continues it, and is None at the end. `end` is the cursor after the last item:
    pass it to a later listing, oldest first, to get the records written since."""

    items: tuple[Breadcrumb, ...]
    cursor: str | None
    end: str | None = None


def session_of(tags: Sequence[str]) -> str | None:
    """The id in the first `session:` tag."""
    return next((tag[8:] for tag in tags if tag.startswith("session:")), None)


def encode_canonical(value: Any, field: str) -> bytes:
    """The one JSON form that is stored and checksummed: sorted keys, UTF-8, no NaN.

    Raises InvalidInput for values that JSON cannot hold: lone surrogates, keys that are not text, foreign objects.
    """
    try:
        encoded = _canonical.encode(value)
        if _decode(encoded) != value:
            _check_json(value, field)
    except UnicodeEncodeError:
        raise InvalidInput(field, "holds half of a surrogate pair, which is not Unicode text") from None
    except RecursionError:
        raise InvalidInput(field, f"is nested deeper than {MAX_DEPTH} levels") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(field, f"cannot be written as JSON: {error}") from None
    return encoded


def encode_texts(texts: Sequence[str]) -> str:
    """The JSON of texts that were checked one by one."""
    return _canonical.encode(texts).decode()


def checksum_of(
    id: str,
    title: str,
    context: bytes,
    tags: Sequence[str],
    schema_name: str | None,
    llm_hints: bytes | None,
    entities: bytes | None,
) -> str:
    """The digest of a version's content and of the breadcrumb's id. It is checked on every read."""
    named, titled, schema = id.encode(), title.encode(), (schema_name or "").encode()
    tagged, hints, others = "\x1f".join(tags).encode(), llm_hints or b"", entities or b""
    sizes = map(len, (named, titled, context, tagged, schema, hints, others))
    a, b, c, d, e, f, g = map(_measure, sizes)
    measured = b"".join((a, named, b, titled, c, context, d, tagged, e, schema, f, hints, g, others))
    return hashlib.blake2b(measured, digest_size=16).hexdigest()


def check_title(title: str) -> str:
    if not title.strip():
        raise InvalidInput("title", "is empty", hint="Give a short human-readable title")
    if len(title) > MAX_TITLE:
        raise TooLarge("title", len(title), MAX_TITLE, "characters")
    if "\x00" in title:
        raise InvalidInput("title", "holds a NUL character")
    _check_encodable(title, "title")
    return title


def check_context(context: dict[str, Any]) -> bytes:
    """The canonical JSON of a context within its limits."""
    if not isinstance(context, dict):
        raise InvalidInput("context", "must be a JSON object")
    encoded = encode_canonical(context, "context")
    if len(encoded) > MAX_CONTEXT:
        raise TooLarge("context", len(encoded), MAX_CONTEXT)
    if encoded.count(b"{") + encoded.count(b"[") > MAX_DEPTH and _depth(context) > MAX_DEPTH:
        raise InvalidInput("context", f"is nested deeper than {MAX_DEPTH} levels")
    return encoded


def check_tags(tags: Sequence[str]) -> tuple[str, ...]:
    """Tags without duplicates, in the order given."""
    if isinstance(tags, str):
        raise InvalidInput("tags", "must be a list of texts")
    if len(tags) > MAX_TAGS:
        raise TooLarge("tags", len(tags), MAX_TAGS, "tags")
    if not _are_plain(tags):
        _check_each_tag(tags)
    return tuple(dict.fromkeys(tags))


def _are_plain(tags: Sequence[str]) -> bool:
    """Whether all tags pass one quick check. It is stricter than the full check: a valid tag that is not ASCII fails
    it."""
    try:
        joined = "\n".join(tags)
    except TypeError:
        return False
    is_plain = joined.isascii() and joined.count("\n") == len(tags) - 1 and _TAGS.fullmatch(joined) is not None
    return is_plain and max(map(len, tags)) <= MAX_TAG


def _check_each_tag(tags: Sequence[str]) -> None:
    for at, tag in enumerate(tags):
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise InvalidInput(f"tags[{at}]", "must be text without control characters or outer spaces")
        if len(tag) > MAX_TAG:
            raise TooLarge(f"tags[{at}]", len(tag), MAX_TAG, "characters")
        _check_encodable(tag, f"tags[{at}]")


def check_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """Scopes as a sorted set."""
    if isinstance(scopes, str):
        raise InvalidInput("scopes", "must be a list of texts")
    if len(scopes) > MAX_SCOPES:
        raise TooLarge("scopes", len(scopes), MAX_SCOPES, "scopes")
    for at, scope in enumerate(scopes):
        if not isinstance(scope, str) or not _TAG.fullmatch(scope) or len(scope) > 200 or " " in scope:
            raise InvalidInput(f"scopes[{at}]", "must be 1 to 200 characters without spaces")
        _check_encodable(scope, f"scopes[{at}]")
    return tuple(sorted(set(scopes)))


def check_schema_name(name: str | None) -> str | None:
    if name is not None and not _SCHEMA_NAME.fullmatch(name):
        raise InvalidInput(
            "schema_name", "must be letters, digits and . _ : - (at most 200)", hint="For example note.v1"
        )
    return name


def check_id(id: str) -> str:
    if not _ID.fullmatch(id):
        raise InvalidInput("id", "must be a lower-case UUID")
    return id


def check_key(key: str | None) -> str | None:
    if key is not None and not (0 < len(key) <= 300 and key.isprintable()):
        raise InvalidInput("idempotency_key", "must be 1 to 300 printable characters")
    return key


def check_ttl(ttl: Ttl) -> Ttl:
    """A TTL whose fields fit its kind, in UTC."""
    needs_time, needs_reads = ttl.kind in ("datetime", "hybrid"), ttl.kind in ("usage", "hybrid")
    if needs_time != (ttl.expires_at is not None):
        raise InvalidInput("ttl.expires_at", f"{'is needed' if needs_time else 'is not allowed'} in kind {ttl.kind}")
    if needs_reads != (ttl.max_reads is not None):
        raise InvalidInput("ttl.max_reads", f"{'is needed' if needs_reads else 'is not allowed'} in kind {ttl.kind}")
    if ttl.max_reads is not None and not 1 <= ttl.max_reads <= 1_000_000_000:
        raise InvalidInput("ttl.max_reads", "must be between 1 and 1,000,000,000")
    if ttl.expires_at is None:
        return msgspec.structs.replace(ttl, read_count=0)
    if ttl.expires_at.tzinfo is None:
        raise InvalidInput("ttl.expires_at", "must carry a time zone", hint="For example 2026-01-01T00:00:00Z")
    try:
        return msgspec.structs.replace(ttl, expires_at=ttl.expires_at.astimezone(UTC), read_count=0)
    except OverflowError:
        raise InvalidInput("ttl.expires_at", "is outside the years 1 to 9999") from None


def _check_encodable(text: str, field: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput(field, "holds half of a surrogate pair, which is not Unicode text") from None


def _check_json(value: Any, field: str) -> None:
    """Refuse values that the encoder would silently change."""
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) in _PLAIN_TYPES:
            continue
        if isinstance(item, dict):
            if not all(type(key) is str or isinstance(key, str) for key in item):
                raise InvalidInput(field, "has a key that is not text")
            stack.extend(item.values())
        elif isinstance(item, list | tuple):
            stack.extend(item)
        elif isinstance(item, float) and not isfinite(item):
            raise InvalidInput(field, "holds NaN or infinity, which JSON does not have")
        elif item is not None and not isinstance(item, str | int | float):
            raise InvalidInput(field, f"holds a {type(item).__name__}, which JSON does not have")


def _depth(value: Any) -> int:
    """The nesting depth of a JSON value, found without recursion."""
    deepest, stack = 0, [(value, 1)]
    while stack:
        item, level = stack.pop()
        deepest = max(deepest, level)
        children = item.values() if isinstance(item, dict) else item if isinstance(item, list | tuple) else ()
        stack.extend((child, level + 1) for child in children if isinstance(child, dict | list | tuple))
    return deepest
