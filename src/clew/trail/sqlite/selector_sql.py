"""Selectors as SQL. SQL decides on tags, schema and time with indexes. The Python code that matches events also decides
on path globs and context conditions, after SQL has excluded as many records as it can."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import apsw
import msgspec

from clew.clock import to_micros
from clew.lazy_pattern import lazy_pattern
from clew.trail.model.globs import glob_matches
from clew.trail.model.selector import ContextMatch, Selector, matches_value, split_path
from clew.trail.model.tags import first_after
from clew.trail.sqlite.rows import ALIVE, in_list

Where = tuple[str, dict[str, Any]]
_PLAIN = lazy_pattern(r"[\w -]+")
INDEXED = frozenset(('$."request_id"', '$."requestId"', '$."pattern"'))
"""Paths with an index. It serves only queries that name the path literally, not as a parameter."""


def leading_tag(selector: Selector, audiences: Sequence[int]) -> str | None:
    """The tag whose rows `t` lead through a list, so that SQLite reads no more of them than the list needs. None if
    another index does better: that of the schemas, or of several audiences."""
    tags = _tags_of(selector)
    return tags[0] if tags and not selector.schemas and len(audiences) == 1 else None


def build_where(
    selector: Selector,
    audiences: Sequence[int],
    now: int,
    *,
    after: int | None = None,
    oldest_first: bool = False,
    lead: str | None = None,
) -> Where:
    """The condition on `breadcrumbs b` for live records of these audiences that the selector matches. With `after`,
    only records that come after this row id in the order of the list. `lead` is the leading tag, if `tags t` is joined
    for it."""
    allowed = in_list(audiences)
    parts, values = [f"b.audience IN {allowed}", ALIVE], {"now": now}
    further = ""
    if after is not None:
        values["after"] = after
        further = " AND rid > :after" if oldest_first else " AND rid < :after"
        parts.append(f"{'b' if lead is None else 't'}.{further.removeprefix(' AND ')}")

    def bind(value: Any) -> str:
        name = f"p{len(values)}"
        values[name] = value
        return f":{name}"

    if schemas := selector.schemas:
        parts.append(f"b.schema_name IN ({','.join(bind(name) for name in schemas)})")
    if selector.except_schemas:
        others = ",".join(bind(name) for name in selector.except_schemas)
        parts.append(f"(b.schema_name IS NULL OR b.schema_name NOT IN ({others}))")
    wanted = _tags_of(selector)
    if lead is not None:
        parts.append(f"t.audience IN {allowed} AND t.tag = {bind(lead)}")
        wanted.remove(lead)
    # the tags are bounded as well: SQLite reads all that a subquery finds
    tagged = f"b.rid IN (SELECT rid FROM tags WHERE audience IN {allowed}{further} AND "
    parts += [f"{tagged}tag = {bind(tag)})" for tag in wanted]
    if selector.any_tags:
        parts.append(f"{tagged}tag IN ({','.join(bind(tag) for tag in selector.any_tags)}))")
    if selector.tag_prefix is not None:
        end = first_after(selector.tag_prefix)
        below = f" AND tag < {bind(end)}" if end is not None else ""
        parts.append(f"{tagged}tag >= {bind(selector.tag_prefix)}{below})")
    if selector.created_after is not None:
        parts.append(f"b.created_at > {bind(to_micros(selector.created_after))}")
    if selector.created_before is not None:
        parts.append(f"b.created_at < {bind(to_micros(selector.created_before))}")
    if selector.path is not None:
        # json_extract writes a list or an object out as text, which no glob is meant for
        is_text = "json_type(b.context, '$.path') = 'text'"
        parts.append(f"{is_text} AND clew_path({bind(selector.path)}, json_extract(b.context, '$.path'))")
    for match in selector.context_match:
        if _sql_can_narrow(match):
            parts.append(f"{_extracted(_json_path(match.path), bind)} = {bind(match.value)}")
        parts.append(f"clew_match({bind(msgspec.json.encode(match).decode())}, b.context)")
    return " AND ".join(parts), values


def _extracted(path: str, bind: Callable[[Any], str]) -> str:
    """The value at a path of the context. For a path with an index, the expression is that of migrations 0003 and
    0004."""
    if path in INDEXED:
        return f"CASE WHEN json_valid(b.context) THEN json_extract(b.context, '{path}') END"
    return f"json_extract(b.context, {bind(path)})"


def _tags_of(selector: Selector) -> list[str]:
    """The tags that each record of a list has."""
    return [*selector.all_tags, *([f"session:{selector.session}"] if selector.session is not None else [])]


def add_functions(connection: apsw.Connection) -> None:
    """Register SQL functions on a connection for the conditions that SQL lacks."""
    connection.create_scalar_function("clew_path", _path_matches, 2, deterministic=True)
    connection.create_scalar_function("clew_match", _context_matches, 2, deterministic=True)


def _path_matches(*values: Any) -> bool:
    glob, path = values
    return isinstance(path, str) and glob_matches(glob, path)


_decode_match = msgspec.json.Decoder(ContextMatch).decode
_decode_context = msgspec.json.Decoder().decode
_matches: dict[str, ContextMatch] = {}


def _context_matches(*values: Any) -> bool:
    match, context = values
    found = _matches.get(match)
    if found is None:
        if len(_matches) > 1_000:
            _matches.clear()
        found = _matches[match] = _decode_match(match)
    return matches_value(found, _decode_context(context))


def _sql_can_narrow(match: ContextMatch) -> bool:
    """Whether SQL equality finds at least all records that the Python comparison finds. This holds for texts and small
    integers under plain keys."""
    small = isinstance(match.value, int) and not isinstance(match.value, bool) and abs(match.value) < 2**53
    plain = all(isinstance(step, str) and _PLAIN.fullmatch(step) for step in split_path(match.path))
    return match.op == "eq" and plain and (small or isinstance(match.value, str))


def _json_path(path: str) -> str:
    return "$" + "".join(f'."{step}"' for step in split_path(path))
