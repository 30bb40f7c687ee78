"""Checks that the routes named in toolsets lead to tools, as far as the trail knows the tools of the domain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from clew.cli.folder_access import open_here
from clew.cli.options import Here
from clew.cli.project import trail_file
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.skills.checks.problems import Problem
    from clew.skills.manifest import Manifest, Toolset

_MAX_KNOWN = 200


async def check_routes(manifest: Manifest, root: Path, here: Here) -> list[Problem]:
    """A warning for each route of a known domain that leads to no tool of it, with the nearest one.

    Nothing is started or fetched. Without a trail that can be opened, there are no warnings.
    """
    from clew.skills.manifest import is_route

    if not any(is_route(tool) for each in manifest.toolsets.values() for tool in each.tools):
        return []
    file = trail_file(here.config())
    if file is None or not file.exists():
        return []
    try:
        async with open_here(here) as app:
            registry = (await app.workspace()).catalog.registry
            known = [each.text for each in registry.tools()]
    except ClewError:  # other checks report problems of the trail
        return []
    return [told for each in manifest.toolsets.values() for told in _check(each, root, known)]


def _check(toolset: Toolset, root: Path, known: list[str]) -> Iterator[Problem]:
    from clew.skills.checks.problems import Problem
    from clew.skills.checks.suggestions import nearest
    from clew.skills.manifest import is_route

    for route in filter(is_route, toolset.tools):
        domain = route.partition("://")[0]
        siblings = tuple(sorted(each for each in known if each.startswith(f"{domain}://")))
        if not siblings or route in siblings:
            continue
        line, column = _find(route, root / toolset.path)
        yield Problem(
            kind="build",
            severity="warning",
            path=toolset.path,
            line=line,
            column=column,
            width=len(route) if column else 0,
            message=f"{domain} has no tool `{route[:80]}`",
            allowed=siblings[:_MAX_KNOWN],
            nearest=nearest(route, siblings),
            context={"toolName": route, "requestedBy": toolset.name},
        )


def _find(route: str, file: Path) -> tuple[int, int]:
    """The line and column of a route in a file; 0 if the file does not contain it literally."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        return 0, 0
    return next(((number, line.index(route) + 1) for number, line in enumerate(lines, 1) if route in line), (0, 0))
