"""The worker pool: how many calls of models and of tools run at a time on one trail, over all sessions and processes.

The trail itself keeps the limits (`ClaimLimits`): each claimed call occupies a seat, sessions take turns, and calls of
the second lane wait for those of the first. Model calls and tool calls have separate queues, so that long calls of one
kind do not block the other.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from clew.access import Principal
from clew.errors import NotFound
from clew.trail.model.event import ClaimLimits, QueueLoad
from clew.trail.store import Trail
from clew.trail.work.correlation import LANE_TAG

MODELS, RUNNER = "models-runner", "tools-runner"
"""The queues of model requests and of all others."""
WORK_LANE = LANE_TAG + "work"
"""Tag of background runs: no user waits for their result."""


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Calls at a time: of models, of tools, and of each kind for one session. At most `queue` calls may wait before new
    work is refused."""

    models: int = 64
    tools: int = 32
    session: int = 8
    queue: int = 1_000

    @property
    def of_models(self) -> ClaimLimits:
        return ClaimLimits(workers=self.models, each=self.session, second_lane=WORK_LANE)

    @property
    def of_tools(self) -> ClaimLimits:
        return ClaimLimits(workers=self.tools, each=self.session, second_lane=WORK_LANE)


async def read_loads(trail: Trail, *, by: Principal) -> Sequence[tuple[str, QueueLoad]]:
    """The load of the queues of models and of tools. A queue that no runtime has opened yet is left out."""
    found = []
    for kind, consumer in (("models", MODELS), ("tools", RUNNER)):
        try:
            load = await trail.deliveries.load(consumer, by=by)
        except NotFound:
            continue
        if load is not None:
            found.append((kind, load))
    return found
