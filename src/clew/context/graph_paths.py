"""Paths from the seeds of a context: filters and descriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clew.context.edges import FOUND_ANEW, SEMANTIC
from clew.context.graph_walk import Expand, Links, ReachedBreadcrumb
from clew.context.relevance import LEAST_SAID
from clew.context.sources import Seed


def without_own(id: str, expand: Expand) -> Expand:
    """Remove the edges of one message that its sources find themselves, so that its context is the same before and
    after the handler writes its edges."""

    async def without(ids: Sequence[str]) -> Links:
        links = await expand(ids)
        own = [hop for hop in links.get(id, ()) if hop.kind not in FOUND_ANEW]
        return {**links, id: own} if id in links else links

    return without


def is_linked_to_close(walked: ReachedBreadcrumb, starts: Mapping[str, Seed]) -> bool:
    """Whether one edge connects it to a close hit. A semantic edge does not count, or one chat would lead to all
    others."""
    near = starts[walked.path[0]].similarity
    return walked.hops == 1 and SEMANTIC not in walked.kinds and near is not None and near >= LEAST_SAID


def describe_path(walked: ReachedBreadcrumb) -> str:
    """Describe in one line how a breadcrumb was reached."""
    return f"{walked.hops} {'hop' if walked.hops == 1 else 'hops'} from a seed by {', '.join(walked.kinds)}"
