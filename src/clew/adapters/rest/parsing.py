"""Parses bodies, query strings and the few headers that have a meaning here.

Malformed bytes are refused with 400, values that break a rule with 422, too many of them with 413.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin
from urllib.parse import parse_qsl

import msgspec
from starlette.exceptions import HTTPException
from starlette.types import Receive

from clew.decode_errors import in_plain_words, suggest
from clew.errors import InvalidInput, NotFound, TooLarge

MAX_QUERY_FIELDS = 1_000
_ETAG = re.compile(r'"([0-9]{1,18})"')
_VERSION = re.compile(r"[0-9]{1,18}")


async def read_body(headers: dict[bytes, bytes], receive: Receive, limit: int) -> bytes:
    """Read the complete body. Raises TooLarge as soon as it exceeds `limit` bytes."""
    announced = headers.get(b"content-length", b"0")
    if announced.isdigit() and len(announced) < 19 and int(announced) > limit:
        raise TooLarge("body", int(announced), limit)
    chunks, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HTTPException(400, "the body is incomplete")
        chunks.append(message.get("body", b""))
        size += len(chunks[-1])
        if size > limit:
            raise TooLarge("body", size, limit)
        more = message.get("more_body", False)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def check_content_type(headers: dict[bytes, bytes]) -> None:
    """Refuse a body whose Content-Type is not JSON."""
    given = headers.get(b"content-type", b"application/json")
    if given.split(b";", 1)[0].strip().lower() != b"application/json":
        raise HTTPException(415, f"the body is sent as {given.decode('latin-1')[:100]!r}, not as JSON")


def body_decoder(kind: Any) -> Callable[[bytes], Any]:
    """A function from the bytes of a body to a value of this type."""
    decode = msgspec.json.Decoder(kind).decode

    def parse(body: bytes) -> Any:
        try:
            return decode(body)
        except msgspec.ValidationError as error:
            raise in_plain_words(error, kind, "body") from None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HTTPException(400, f"the body is not JSON: {_reason(error)}") from None
        except RecursionError:
            raise HTTPException(400, "the body is nested too deeply") from None

    return parse


def query_decoder(kind: type[msgspec.Struct] | None) -> Callable[[bytes], Any]:
    """A function from a query string to a value of this type; without a type, no parameter is allowed.

    A tuple field may be given many times, any other field once. Unknown names are refused, because ignoring a misspelt
    filter would widen the answer.
    """
    fields = msgspec.structs.fields(kind) if kind else ()
    repeated = {field.name: _is_tuple(field.type) for field in fields}
    empty = kind() if kind and not any(field.required for field in fields) else None

    def parse(query: bytes) -> Any:
        if not query and (kind is None or empty is not None):
            return empty
        values: dict[str, Any] = {}
        for name, value in _split_query(query):
            if name not in repeated:
                hint = suggest(name, repeated, "Parameters are") or "This path takes none"
                raise InvalidInput(name[:100], "is not a parameter here", hint=hint)
            if repeated[name]:
                values.setdefault(name, []).append(value)
            elif name in values:
                raise InvalidInput(name, "is given twice", hint="Send it once")
            else:
                values[name] = value
        try:
            return msgspec.convert(values, kind, strict=False)
        except msgspec.ValidationError as error:
            raise _query_error(error, kind) from None

    return parse


def _query_error(error: msgspec.ValidationError, kind: Any) -> InvalidInput:
    """Convert a decoder error of a query. The phrase "not text" is dropped, because every query value is text."""
    found = in_plain_words(error, kind, "query", called="parameter")
    hint = f"Add ?{found.field}=… to the address" if found.reason == "is missing" else found.hint
    return InvalidInput(found.field, found.reason.removesuffix(", not text"), hint=hint)


def _is_tuple(kind: Any) -> bool:
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_origin(bare) is tuple


def _split_query(query: bytes) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(
            query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_QUERY_FIELDS
        )
    except UnicodeDecodeError:
        raise HTTPException(400, "the query string is not percent-encoded UTF-8") from None
    except ValueError:
        raise TooLarge("query", query.count(b"&") + 1, MAX_QUERY_FIELDS, "parameters") from None
    for name, value in pairs:
        if "\x00" in value:
            raise HTTPException(400, f"the parameter {name[:100]!r} holds a NUL character")
    return pairs


def parse_if_match(headers: dict[bytes, bytes]) -> int | None:
    """The version in If-Match, or None without that header."""
    given = headers.get(b"if-match")
    if given is None:
        return None
    found = _ETAG.fullmatch(given.decode("latin-1").strip())
    if not found:
        raise HTTPException(400, 'If-Match must be one version in quotes, such as "5"')
    return int(found[1])


def parse_version(text: str, id: str) -> int:
    """Parse a version number in a path. Raises NotFound if it is not a number."""
    if not _VERSION.fullmatch(text):
        raise NotFound("version", f"{text[:40]} of {id}")
    return int(text)


def parse_text(headers: dict[bytes, bytes], name: str) -> str | None:
    """The value of a header as text, or None when it was not sent."""
    given = headers.get(name.encode())
    if given is None:
        return None
    try:
        return given.decode()
    except UnicodeDecodeError:
        raise HTTPException(400, f"the header {name} is not UTF-8") from None


def _reason(error: Exception) -> str:
    return "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).removeprefix("JSON is malformed: ")
