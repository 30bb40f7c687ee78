"""The limits of a session on a request that begins in it."""

from __future__ import annotations

import msgspec

from clew.team.messages.payloads import PlanRequest
from clew.team.sessions.session import Session


def within_limits(request: PlanRequest, session: Session, base: str = "") -> PlanRequest:
    """The request within the limits of a session, on its branch. A base of its own comes before that of the session."""
    limits = session.config
    return msgspec.structs.replace(
        request,
        base=base or session.base_branch or "HEAD",
        max_agents=min(request.max_agents, limits.max_concurrent_tasks),
        max_engineers=limits.max_engineers,
        task_timeout=limits.task_timeout,
        branch=session.branch_name,
    )
