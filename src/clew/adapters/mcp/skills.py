"""Skills over MCP (SEP-2640): `skills/list`, `skills/get`, and each file of a skill as a resource `skill://NAME/PATH`.

Clients of the handshake era, which do not know the methods, see the same files as ordinary resources.
"""

from __future__ import annotations

import base64
import mimetypes
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from clew.access import Principal
from clew.adapters.mcp.catalog_interface import CatalogInterface
from clew.catalog.skills.files import SCHEME, ServedSkill
from clew.errors import InvalidInput, NotFound

EXTENSION: Final = "io.modelcontextprotocol/skills"
LIST: Final = "skills/list"
GET: Final = "skills/get"
PAGE = 100
MARKDOWN = "text/markdown"
_NEITHER = "application/octet-stream"
_FRESH = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
_TYPES = mimetypes.MimeTypes()
"""Python's own table, independent of the machine."""


class GetSkillParams(types.RequestParams):
    """The parameters of `skills/get`: the address of a SKILL.md."""

    uri: str


async def list_skills(catalog: CatalogInterface, by: Principal, cursor: str | None) -> dict[str, Any]:
    """Return one page of the skills that `by` may use. Raises InvalidInput for an invalid cursor."""
    page, more = await _page(catalog, by, cursor)
    next_page = {"nextCursor": more} if more is not None else {}
    return {"skills": [_entry(each) for each in page], **next_page, **_FRESH}


async def get_skill(catalog: CatalogInterface, by: Principal, uri: str) -> dict[str, Any]:
    """Return one skill. Raises the same MCPError if it does not exist and if `by` may not use it."""
    files = await catalog.skill_files(by=by)
    try:
        if files is None:
            raise NotFound("skill", uri)
        return {"skill": _entry(await files.get(uri)), **_FRESH}
    except NotFound:
        message = f"no such skill; {LIST} shows which there are"
        raise MCPError(code=types.INVALID_PARAMS, message=message, data={"uri": uri}) from None


async def list_files(
    catalog: CatalogInterface, by: Principal, cursor: str | None
) -> tuple[list[types.Resource], str | None]:
    """Return one page of the SKILL.md files as resources, and the cursor of the next page."""
    page, more = await _page(catalog, by, cursor)
    return [
        types.Resource(uri=each.uri, name=each.name, description=each.description, mime_type=MARKDOWN) for each in page
    ], more


async def read_file(catalog: CatalogInterface, by: Principal, uri: str) -> types.ReadResourceResult:
    """Return a file of a skill, unchanged; a binary file is base64-encoded. Raises NotFound."""
    files = await catalog.skill_files(by=by)
    if files is None:
        raise NotFound("skill file", uri[:200])
    content, kind = await files.read(uri), _type_of(uri)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        blob = base64.b64encode(content).decode()
        return types.ReadResourceResult(contents=[types.BlobResourceContents(uri=uri, mime_type=kind, blob=blob)])
    shown = kind if kind != _NEITHER else "text/plain"
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, mime_type=shown, text=text)])


def require_modern(protocol: str, method: str) -> None:
    """Raise MCPError on a connection of the handshake era, which does not have this method."""
    if protocol not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(code=types.METHOD_NOT_FOUND, message="Method not found", data=method)


async def _page(catalog: CatalogInterface, by: Principal, cursor: str | None) -> tuple[list[ServedSkill], str | None]:
    """Return the skills after the address in the cursor. Added and removed skills do not shift the pages."""
    if cursor is not None and not cursor.startswith(SCHEME):
        raise InvalidInput("cursor", "is not from this server")
    files = await catalog.skill_files(by=by)
    found = [each for each in await files.all() if each.uri > (cursor or "")] if files is not None else []
    return found[:PAGE], found[PAGE - 1].uri if len(found) > PAGE else None


def _entry(skill: ServedSkill) -> dict[str, Any]:
    files = [{"uri": each.uri, "digest": f"sha256:{each.sha256}", "size": each.size} for each in skill.files]
    return {"uri": skill.uri, "frontmatter": skill.frontmatter, "resources": files}


def _type_of(uri: str) -> str:
    if uri.lower().endswith(".md"):
        return MARKDOWN
    return _TYPES.guess_type(uri.rpartition("/")[2])[0] or _NEITHER
