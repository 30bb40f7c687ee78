"""Selectors as SQL. SQL decides on tags, schema and time with indexes. The Python code that matches events also decides
on path globs and context conditions, after SQL has excluded as many records as it can."""

from __future__ import annotations

from typing import Any

from clew.access import Principal
from clew.clock import to_micros
from clew.trail.model.selector import ContextMatch, Selector, split_path
from clew.trail.model.tags import first_after
from clew.trail.postgres.rows import ALIVE, SEEN, seen_by

Where = tuple[str, dict[str, Any]]
INDEXED: dict[tuple[str | int, ...], str] = {
    ("request_id",): "request_id",
    ("requestId",): "request_id_camel",
    ("pattern",): "pattern",
}
"""Paths whose values have a column and an index of their own."""


def build_where(selector: Selector, by: Principal, now: int) -> Where:
    """The condition on `breadcrumbs b` for live records that the caller sees and the selector may match. If
    `needs_content` is true, the caller must also filter with `matches_content`."""
    parts, values = [SEEN, ALIVE], {"now": now, **seen_by(by)}

    def bind(value: Any) -> str:
        name = f"p{len(values)}"
        values[name] = value
        return f"%({name})s"

    if schemas := selector.schemas:
        parts.append(f"b.schema_name = ANY ({bind(list(schemas))})")
    if selector.except_schemas:
        parts.append(f"(b.schema_name IS NULL OR b.schema_name != ALL ({bind(list(selector.except_schemas))}))")
    wanted = [*selector.all_tags, *([f"session:{selector.session}"] if selector.session is not None else [])]
    tagged = f"b.rid IN (SELECT b.rid FROM tags b WHERE {SEEN} AND "
    parts += [f"{tagged}b.tag = {bind(tag)})" for tag in wanted]
    if selector.any_tags:
        parts.append(f"{tagged}b.tag = ANY ({bind(list(selector.any_tags))}))")
    if selector.tag_prefix is not None:
        after = first_after(selector.tag_prefix)
        below = f" AND b.tag < {bind(after)}" if after is not None else ""
        parts.append(f"{tagged}b.tag >= {bind(selector.tag_prefix)}{below})")
    if selector.created_after is not None:
        parts.append(f"b.created_at > {bind(to_micros(selector.created_after))}")
    if selector.created_before is not None:
        parts.append(f"b.created_at < {bind(to_micros(selector.created_before))}")
    for match in selector.context_match:
        if _sql_can_narrow(match):
            steps = split_path(match.path)
            column = INDEXED.get(steps)
            if column is not None:
                parts.append(f"b.{column} = {bind(match.value)}")
            else:
                path = bind([str(step) for step in steps])
                parts.append(
                    f"CASE WHEN {_HAS_TEXTS} THEN b.context::json #>> {path} = {bind(match.value)} ELSE true END"
                )
    return " AND ".join(parts), values


def needs_content(selector: Selector) -> bool:
    """Whether SQL alone cannot decide which records a selector matches."""
    return selector.path is not None or bool(selector.context_match)


_HAS_TEXTS = r"b.context NOT LIKE '%%\\u0000%%' AND b.context IS JSON"
"""Whether PostgreSQL can read the texts of a context. It cannot if one of them has a NUL."""


def _sql_can_narrow(match: ContextMatch) -> bool:
    """Whether SQL equality finds at least all records that the Python comparison finds. This holds for texts under
    plain keys."""
    plain = all(isinstance(step, str) for step in split_path(match.path))
    return match.op == "eq" and plain and isinstance(match.value, str) and "\0" not in match.value
