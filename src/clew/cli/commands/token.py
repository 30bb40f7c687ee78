"""`clew token`: a token for the REST API, signed with the key of the folder."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from cyclopts import Parameter

from clew.access import ROLES, Principal
from clew.adapters.rest.auth import open_keys
from clew.cli.options import HERE, Here, Json
from clew.cli.project import mend_ignored
from clew.cli.terminal.output import print_json, say
from clew.clock import SystemClock
from clew.errors import ClewError, InvalidInput

LONGEST = 60 * 24 * 366


async def token(
    *,
    agent: Annotated[str, Parameter(help="The agent that will use it.")] = "cli",
    role: Annotated[tuple[str, ...], Parameter(help="curator, emitter or subscriber; repeated. [default: all]")] = (),
    session: Annotated[str | None, Parameter(help="The session that it belongs to.")] = None,
    minutes: Annotated[int | None, Parameter(help="How long it is good for. [default: server.token_minutes]")] = None,
    credential: Annotated[
        bool, Parameter(help="Print no token, but the path of the credential that issues tokens over REST.")
    ] = False,
    json: Json = False,
    here: Here = HERE,
) -> None:
    """Print a token for the REST API of this folder.

    Nothing else is printed, so that a shell can use the output directly. It holds the scopes of --scopes.

        curl -H "Authorization: Bearer $(clew token)" http://127.0.0.1:8081/breadcrumbs
        clew token --agent importer --role emitter --minutes 10
        clew token --agent reader --role subscriber --scopes hr
    """
    config = here.config()
    lifetime = config.server.token_minutes if minutes is None else minutes
    if not 1 <= lifetime <= LONGEST:
        raise InvalidInput("--minutes", f"must be between 1 and {LONGEST:,}")
    if not config.folder.is_dir():
        raise ClewError(f"there is no folder {config.folder}", hint="Start one with `clew up`, or name it: --folder")
    mend_ignored(config.folder)
    keys = open_keys(config.folder, SystemClock(), timedelta(minutes=lifetime))
    if credential:
        place = str((config.folder / "credential").resolve())
        print_json({"credential": place}) if json else say(place)
        return
    roles = frozenset(role) or ROLES
    issued = keys.issue(
        Principal(owner_id=config.owner, agent_id=agent, roles=roles, scopes=here.scope_set, session=session)
    )
    print_json(issued) if json else say(issued.token)
