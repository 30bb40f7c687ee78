"""A tool, resource or prompt of a foreign server, and its breadcrumb on the trail."""

from __future__ import annotations

import hashlib
from typing import Any, Literal
from uuid import UUID, uuid5

import msgspec

from clew.catalog.operations.discovery import FOREIGN_TOOL_SCHEMA
from clew.catalog.operations.text import one_line
from clew.catalog.servers.entries.schemas import mask_schema, params_prose
from clew.errors import InvalidInput
from clew.fences import clean
from clew.secrecy import mask_document
from clew.trail.model.breadcrumb import NEVER, Breadcrumb, Change, Draft, check_context, encode_canonical

Kind = Literal["tool", "resource", "prompt"]
KINDS: tuple[Kind, ...] = ("tool", "resource", "prompt")
State = Literal["approved", "changed", "gone"]
SCHEMAS: dict[Kind, str] = {"tool": FOREIGN_TOOL_SCHEMA, "resource": "mcp.resource.v1", "prompt": "mcp.prompt.v1"}

SERVER_SCHEMA = "mcp.server.v1"

MAX_KEPT = 4_000
_NAMESPACE = UUID("6e0fba4c-61b5-5c0e-8f5e-1d1f7b2f6a3d")


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry in use. Its texts are free of invisible characters and secrets, but untrusted, so they must be shown as
    data. If the server changes a tool, the entry stays as approved and `pending` holds the new version.
    """

    server: str
    kind: Kind
    name: str
    title: str = ""
    description: str = ""
    schema: dict[str, Any] = {}
    output_schema: dict[str, Any] | None = None
    annotations: dict[str, Any] = {}
    arguments: tuple[dict[str, Any], ...] = ()
    mime_type: str = ""
    is_template: bool = False
    digest: str = ""
    approved: str = ""
    state: State = "approved"
    pending: dict[str, Any] | None = None

    def id_for(self, owner: str) -> str:
        return entry_id(owner, self.server, self.kind, self.name)


class ServerAbout(msgspec.Struct, frozen=True, kw_only=True):
    """A server's description of itself: untrusted text."""

    name: str = ""
    version: str = ""
    instructions: str = ""
    protocol: str = ""
    offers_subscriptions: bool = False


def entry_id(owner: str, server: str, kind: str, name: str) -> str:
    """A deterministic record id for an entry, so that it is never stored twice."""
    return str(uuid5(_NAMESPACE, "\x1f".join((owner, server, kind, name))))


def build_entry(server: str, kind: Kind, given: dict[str, Any]) -> ServerEntry:
    """An entry from what a server listed. Raises InvalidInput if the entry cannot be stored."""
    digest = digest_of(given)
    name = given.get("uriTemplate") or given.get("uri") or given.get("name") or ""
    entry = ServerEntry(
        server=server,
        kind=kind,
        name=name,
        title=one_line(kept_text(given.get("title") or (given.get("name", "") if kind == "resource" else "")), 200),
        description=kept_text(given.get("description") or "")[:MAX_KEPT],
        schema=mask_schema(given.get("inputSchema", {})),
        output_schema=mask_schema(given.get("outputSchema")),
        annotations=mask_schema(given.get("annotations", {})),
        arguments=tuple(mask_schema(each) for each in given.get("arguments", ())[:50]),
        mime_type=one_line(given.get("mimeType", ""), 100),
        is_template="uriTemplate" in given,
        digest=digest,
        approved=digest,
    )
    check_context(_context(entry))
    if not name.strip() or clean(name) != name or "\n" in name or "`" in name:
        raise InvalidInput("name", "holds line ends, backticks or characters that cannot be seen")
    if mask_document(name) != name:
        raise InvalidInput("name", "holds a secret")
    return entry


def kept_text(text: str) -> str:
    """A text of a server without invisible characters and secrets."""
    return mask_document(clean(text))


def digest_of(entry: dict[str, Any]) -> str:
    """The digest of everything that a model sees of an entry. Raises InvalidInput for values that JSON cannot hold."""
    shown = {key: value for key, value in entry.items() if key not in ("_meta", "icons", "execution")}
    return hashlib.blake2b(encode_canonical(shown, "entry"), digest_size=16).hexdigest()


def draft_of(entry: ServerEntry, owner: str, scopes: tuple[str, ...]) -> Draft:
    return Draft(
        id=entry.id_for(owner),
        title=_title(entry),
        context=_context(entry),
        tags=_tags(entry),
        schema_name=SCHEMAS[entry.kind],
        scopes=scopes,
        ttl=NEVER,
    )


def change_of(entry: ServerEntry, scopes: tuple[str, ...]) -> Change:
    return Change(title=_title(entry), context=_context(entry), tags=_tags(entry), scopes=scopes)


def about_draft(about: ServerAbout, server: str, owner: str, scopes: tuple[str, ...]) -> Draft:
    return Draft(
        id=entry_id(owner, server, "server", server),
        title=server,
        context={"server": server, **msgspec.to_builtins(about)},
        tags=(f"domain:{server}", f"server:{server}"),
        schema_name=SERVER_SCHEMA,
        scopes=scopes,
        ttl=NEVER,
    )


def entry_of(breadcrumb: Breadcrumb) -> ServerEntry | None:
    """The entry that a breadcrumb holds; None for one that was not written by us."""
    try:
        return msgspec.convert({"arguments": [], **breadcrumb.context}, ServerEntry)
    except msgspec.ValidationError:
        return None


def _title(entry: ServerEntry) -> str:
    return one_line(entry.title if entry.kind == "resource" and entry.title else entry.name, 200) or entry.kind


def _tags(entry: ServerEntry) -> tuple[str, ...]:
    return (f"domain:{entry.server}", f"server:{entry.server}", f"state:{entry.state}")


def _context(entry: ServerEntry) -> dict[str, Any]:
    context: dict[str, Any] = msgspec.to_builtins(entry)
    if entry.kind == "tool":
        context["params"] = params_prose(entry.schema)
    if entry.kind == "prompt":
        context["params"] = ", ".join(one_line(str(each.get("name", "")), 60) for each in entry.arguments)
    return context
