"""Discoveries are kept on the trail for all sessions of an owner. One holds while the files that it rests on have the
same content, the same commit of the same branch is checked out, and the user prefers the same."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from clew.access import Principal
from clew.clock import Clock
from clew.errors import SourceError
from clew.knowledge.git.run import find_head, run_git
from clew.knowledge.project.devtools_records import (
    ToolDiscoveryEntry,
    ToolDiscoveryRequest,
    ToolDiscoveryResponse,
)
from clew.knowledge.upsert import find_keyed, keep_keyed, keyed_id
from clew.trail.breadcrumb import Breadcrumb, Draft
from clew.trail.store import Trail

SCHEMA = "system.devtools.v1"


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a discovery rests on: other grounds call for another look."""

    checkout: str
    files: dict[str, str]
    user_overrides: dict[str, str]


class DiscoveryCache:
    """Kept discoveries of one project. Who may see more than others has entries of their own."""

    def __init__(self, trail: Trail, clock: Clock, by: Principal, project_path: str) -> None:
        self._trail, self._clock, self._by, self._project = trail, clock, by, project_path

    async def recall(self, request: ToolDiscoveryRequest, grounds: Grounds) -> ToolDiscoveryResponse | None:
        """What was discovered for the same request, where it still holds."""
        found = await find_keyed(self._trail, self._key(request), by=self._by)
        entry = _to_entry(found) if found is not None else None
        if entry is None or (entry.checkout, entry.files) != (grounds.checkout, grounds.files):
            return None
        if entry.user_overrides != grounds.user_overrides:
            return None
        return ToolDiscoveryResponse(tier=entry.tier, confidence=entry.confidence, tools=entry.tools)

    async def keep(self, request: ToolDiscoveryRequest, grounds: Grounds, response: ToolDiscoveryResponse) -> None:
        """Keep a discovery in the place of the last one, if the caller may write at all. One that waits for the user is
        not kept."""
        if response.requires_user:
            return
        key = self._key(request)
        entry = ToolDiscoveryEntry(
            id=keyed_id(self._by.owner_id, key),
            session_id=request.session_id,
            project_path=self._project,
            discovered_at=self._clock.now(),
            tools=response.tools,
            tier=response.tier,
            user_overrides=grounds.user_overrides,
            confidence=response.confidence,
            checkout=grounds.checkout,
            files=grounds.files,
        )
        draft = Draft(title=f"Tools: {request.tool_category}", context=msgspec.to_builtins(entry), schema_name=SCHEMA)
        await keep_keyed(self._trail, key, draft, by=self._by)

    def _key(self, request: ToolDiscoveryRequest) -> str:
        asked = [self._project, request.tool_category, request.target_path, request.languages, sorted(self._by.scopes)]
        return f"devtools:{hashlib.sha256(msgspec.json.encode(asked)).hexdigest()}"


def checkout_of(root: Path) -> str:
    """The branch and commit that are checked out; empty where there is no git."""
    try:
        branch = run_git(root, ["symbolic-ref", "--quiet", "HEAD"]).decode(errors="replace").strip()
    except SourceError:
        branch = ""
    return f"{branch} {find_head(root) or ''}".strip()


def _to_entry(found: Breadcrumb) -> ToolDiscoveryEntry | None:
    if found.schema_name != SCHEMA:
        return None
    try:
        return msgspec.convert(found.context, ToolDiscoveryEntry)
    except msgspec.ValidationError:
        return None  # somebody else wrote something there
