"""The limits of a session, applied to a request that starts in it."""

from __future__ import annotations

import msgspec

from clew.team.messages.payloads import PlanRequest
from clew.team.sessions.session import Session


def within_limits(request: PlanRequest, session: Session, base: str = "") -> PlanRequest:
    """The request with the limits and the branch of its session. `base` takes precedence over the base of the
    session."""
    limits = session.config
    return msgspec.structs.replace(
        request,
        base=base or session.base_branch or "HEAD",
        max_agents=min(request.max_agents, limits.max_concurrent_tasks),
        max_engineers=limits.max_engineers,
        task_timeout=limits.task_timeout,
        branch=session.branch_name,
    )
